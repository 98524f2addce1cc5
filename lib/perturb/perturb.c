#include "perturb/perturb.h"

#include "base/sort.h"

const char *const perturb_name[] = {
	[PERTURB_DELETE] = "delete", [PERTURB_OVEREXPRESS] = "overexpress", [PERTURB_ACTIVATE] = "activate", [PERTURB_INHIBIT] = "inhibit"};
EVERY_ROW(perturb_name, PERTURB_KINDS);

struct perturb_move {
	uint32_t gene, from, to; /* ranks */
};

void perturb_init(struct perturb *p, size_t vocab, size_t special, size_t max_len)
{
	*p = (struct perturb){.vocab = vocab, .special = special, .max_len = max_len};
	p->place = xmalloc(vocab * sizeof *p->place);
	memset(p->place, 0xFF, vocab * sizeof *p->place);
	p->member = xcalloc(vocab, sizeof *p->member);
}

uint32_t *perturb_room(struct perturb *p, size_t n)
{
	for (uint32_t i = 0; i < p->genes; i++)
		p->place[p->token[p->first + i]] = PERTURB_ABSENT;
	p->genes = 0;
	return grow(p->token, p->token_cap, n);
}

int perturb_cell(struct perturb *p, size_t n, struct error *e)
{
	const uint32_t *token = p->token;
	if (n > p->max_len)
		return error_set(e, "%zu tokens, but at most %zu fit into the model (--max-len)", n, p->max_len);
	uint32_t first = 0, end = (uint32_t)n;
	while (first < end && token[first] < p->special)
		first++;
	while (end > first && token[end - 1] < p->special)
		end--;
	p->n = (uint32_t)n;
	p->first = first;
	for (; p->genes < end - first; p->genes++) {
		uint32_t t = token[first + p->genes];
		if (t < p->special)
			return error_set(e, "a special token among its genes, at position %u", first + p->genes);
		if (p->place[t] != PERTURB_ABSENT)
			return error_set(e, "token %u twice, at positions %u and %u", t, first + p->place[t], first + p->genes);
		p->place[t] = p->genes;
	}
	return 0;
}

static void mark(struct perturb *p, const uint32_t *set, size_t n)
{
	if (!++p->stamp) {
		memset(p->member, 0, p->vocab * sizeof *p->member);
		p->stamp = 1;
	}
	for (size_t i = 0; i < n; i++)
		p->member[set[i]] = p->stamp;
}

static inline int is_member(const struct perturb *p, uint32_t gene)
{
	return p->member[gene] == p->stamp;
}

static inline void perturb_put(struct perturb *p, uint32_t token)
{
	p->out[p->nout++] = token;
}

/* Append the cell's genes that are not in the set, up to `limit` tokens; returns how many did not fit. */
static uint32_t put_others(struct perturb *p, size_t limit)
{
	uint32_t lost = 0;
	for (uint32_t i = 0; i < p->genes; i++) {
		uint32_t t = p->token[p->first + i];
		if (is_member(p, t))
			continue;
		if (p->nout < limit)
			perturb_put(p, t);
		else
			lost++;
	}
	return lost;
}

/* The cell without its last `lost` genes that are not in the set. */
static void cut_base(struct perturb *p)
{
	if (!p->lost) {
		p->base = p->token;
		p->nbase = p->n;
		return;
	}
	uint32_t keep = 0, seen = 0;
	for (uint32_t i = 0; i < p->genes; i++)
		keep += !is_member(p, p->token[p->first + i]);
	keep -= p->lost;
	grow(p->cut, p->cut_cap, p->n);
	p->nbase = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		int gene = i >= p->first && i < p->first + p->genes, other = gene && !is_member(p, p->token[i]);
		if (!other || seen++ < keep)
			p->cut[p->nbase++] = p->token[i];
	}
	p->base = p->cut;
}

COMPARE(compare_moves, struct perturb_move, ORDER(a->to, b->to) ?: ORDER(a->from, b->from))

/* The rank to which a gene of rank `from` among n moves, `by` quarters down. */
static uint32_t target_rank(uint32_t from, uint32_t n, int by)
{
	int quarter = (int)((uint64_t)from * 4 / n) + by;
	if (quarter < 0)
		return 0;
	if (quarter > 3)
		return n - 1;
	return (uint32_t)((uint64_t)(2 * quarter + 1) * n / 8);
}

/* Each gene of the set takes the place that its rank says, or the next free one; the others keep their order. */
static void put_moved(struct perturb *p, const uint32_t *set, size_t nset, int by)
{
	uint32_t k = 0, at = 0;
	grow(p->move, p->move_cap, nset);
	for (size_t i = 0; i < nset; i++) {
		uint32_t from = p->place[set[i]];
		if (from != PERTURB_ABSENT)
			p->move[k++] = (struct perturb_move){set[i], from, target_rank(from, p->genes, by)};
	}
	qsort(p->move, k, sizeof *p->move, compare_moves);
	for (uint32_t i = 1; i < k; i++)
		if (p->move[i].to <= p->move[i - 1].to)
			p->move[i].to = p->move[i - 1].to + 1;
	for (uint32_t i = k, last = p->genes; i-- > 0; last = p->move[i].to)
		if (p->move[i].to >= last)
			p->move[i].to = last - 1;
	for (uint32_t i = 0, next = 0; at < p->genes; at++) {
		if (next < k && p->move[next].to == at) {
			perturb_put(p, p->move[next++].gene);
			continue;
		}
		while (is_member(p, p->token[p->first + i]))
			i++;
		perturb_put(p, p->token[p->first + i++]);
	}
}

int perturb_make(struct perturb *p, enum perturb_kind kind, const uint32_t *set, size_t n)
{
	uint32_t has = 0, tail = p->n - p->first - p->genes;
	size_t limit = p->max_len - tail;
	for (size_t i = 0; i < n; i++)
		has += p->place[set[i]] != PERTURB_ABSENT;
	if (kind == PERTURB_OVEREXPRESS ? p->first + n > limit : !has)
		return 0;
	mark(p, set, n);
	grow(p->out, p->out_cap, p->n + n);
	p->nout = p->lost = 0;
	for (uint32_t i = 0; i < p->first; i++)
		perturb_put(p, p->token[i]);
	if (kind == PERTURB_OVEREXPRESS) {
		for (size_t i = 0; i < n; i++)
			perturb_put(p, set[i]);
		p->lost = put_others(p, limit);
	} else if (kind == PERTURB_DELETE) {
		put_others(p, limit);
	} else {
		put_moved(p, set, n, kind == PERTURB_ACTIVATE ? -1 : 1);
	}
	for (uint32_t i = 0; i < tail; i++)
		perturb_put(p, p->token[p->n - tail + i]);
	cut_base(p);
	return 1;
}

int perturb_same(const struct perturb *p)
{
	return p->nout == p->n && memcmp(p->out, p->token, p->n * sizeof *p->out) == 0;
}

/* A gene of the cell near rank r that is not taken, drawn uniformly. At least one is not. */
static uint32_t draw_near(const struct perturb *p, struct rng *rng, uint32_t r)
{
	uint32_t w = p->genes / 40 > 5 ? p->genes / 40 : 5;
	for (;; w *= 2) {
		uint32_t from = r > w ? r - w : 0, to = p->genes - r > w ? r + w + 1 : p->genes, left = 0;
		for (uint32_t i = from; i < to; i++)
			left += !is_member(p, p->token[p->first + i]);
		if (!left)
			continue;
		uint32_t k = rng_below(rng, left);
		for (uint32_t i = from; i < to; i++)
			if (!is_member(p, p->token[p->first + i]) && k-- == 0)
				return p->token[p->first + i];
	}
}

/* A gene that the cell lacks and that is not taken. */
static uint32_t draw_absent(const struct perturb *p, struct rng *rng)
{
	uint32_t genes = (uint32_t)(p->vocab - p->special);
	for (;;) {
		uint32_t g = (uint32_t)p->special + rng_below(rng, genes);
		if (p->place[g] == PERTURB_ABSENT && !is_member(p, g))
			return g;
	}
}

int perturb_control(struct perturb *p, struct rng *r, const uint32_t *set, size_t n, uint32_t *gene)
{
	size_t has = 0;
	for (size_t i = 0; i < n; i++)
		has += p->place[set[i]] != PERTURB_ABSENT;
	size_t absent = p->vocab - p->special - p->genes;
	if (2 * has > p->genes || 2 * (n - has) > absent)
		return 0;
	mark(p, set, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t rank = p->place[set[i]];
		gene[i] = rank == PERTURB_ABSENT ? draw_absent(p, r) : draw_near(p, r, rank);
		p->member[gene[i]] = p->stamp;
	}
	return 1;
}

#include "eval/lookup.h"

#include "base/error.h"
#include "base/sort.h"

static const uint32_t classes[LOOKUP_LEVELS] = {4, 16, 64};
static const double weights[] = {1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 100000, 1e9};
enum { WEIGHTS = sizeof weights / sizeof *weights, KEEP = 10, NOBODY = UINT32_MAX };

/* The visible context of a token: two genes whose medians are known (NOBODY: the end of the cell), or with ranks a gene and the rank. */
struct seen {
	uint32_t before, after;
};

void lookup_init(struct lookup *l, size_t V, size_t special, const double *median, int ranked)
{
	*l = (struct lookup){.V = V, .special = special, .median = median, .ranked = ranked, .slots = 1024};
	l->p = xcalloc(V, sizeof *l->p);
	l->key = xcalloc(l->slots, sizeof *l->key);
	l->count = xmalloc(l->slots * sizeof *l->count);
	for (int k = 0; k < LOOKUP_LEVELS; k++) {
		l->class[k] = xcalloc(V, sizeof *l->class[k]);
		l->total[k] = xcalloc((size_t)(classes[k] + 1) * (classes[k] + 1), sizeof *l->total[k]);
	}
}

void lookup_add(struct lookup *l, const struct lookup_cell *cell)
{
	grow(l->token, l->token_cap, l->tokens + cell->n);
	grow(l->end, l->end_cap, l->cells + 1);
	if (cell->n)
		memcpy(l->token + l->tokens, cell->token, cell->n * sizeof *cell->token);
	if (l->ranked) {
		grow(l->rank, l->rank_cap, l->tokens + cell->n);
		if (cell->n)
			memcpy(l->rank + l->tokens, cell->rank, cell->n * sizeof *cell->rank);
	}
	l->end[l->cells++] = l->tokens += cell->n;
}

/* ---- what is seen of a token ---- */

static int visible(const struct lookup *l, const struct lookup_cell *c, size_t i)
{
	return c->token[i] >= l->special && !(c->masked && c->masked[i]);
}

/* With ranks: of the visible genes of a token's rank, without itself, the one with the middle median. In a cell they are in the order of their
 * medians. */
static void see_ranks(const struct lookup *l, const struct lookup_cell *c, struct seen *out)
{
	uint32_t most = 0;
	for (size_t i = 0; i < c->n; i++)
		most = c->rank[i] > most ? c->rank[i] : most;
	size_t *start = xcalloc((size_t)most + 2, sizeof *start), *place = xmalloc((c->n + 1) * sizeof *place);
	uint32_t *gene = xmalloc((c->n + 1) * sizeof *gene); /* the visible ones of each rank, one rank after the other */
	for (size_t i = 0; i < c->n; i++)
		start[c->rank[i] + 1] += (size_t)visible(l, c, i);
	for (size_t r = 0; r <= most; r++)
		start[r + 1] += start[r];
	size_t *next = xmalloc(((size_t)most + 1) * sizeof *next);
	memcpy(next, start, ((size_t)most + 1) * sizeof *next);
	for (size_t i = 0; i < c->n; i++)
		if (visible(l, c, i))
			gene[place[i] = next[c->rank[i]]++] = c->token[i];
	for (size_t i = 0; i < c->n; i++) {
		int self = visible(l, c, i);
		size_t from = start[c->rank[i]], others = start[c->rank[i] + 1] - from - (size_t)self;
		size_t at = from + (others + 1) / 2 - 1;
		out[i].before = others ? gene[at + (self && at >= place[i])] : NOBODY;
		out[i].after = c->rank[i];
	}
	free_all(start, place, gene, next);
}

/* The visible context of each token of a cell: out [n] */
static void see(const struct lookup *l, const struct lookup_cell *c, struct seen *out)
{
	if (l->ranked) {
		see_ranks(l, c, out);
		return;
	}
	uint32_t last = NOBODY;
	for (size_t i = 0; i < c->n; i++) {
		out[i].before = last;
		last = visible(l, c, i) ? c->token[i] : last;
	}
	last = NOBODY;
	for (size_t i = c->n; i-- > 0;) {
		out[i].after = last;
		last = visible(l, c, i) ? c->token[i] : last;
	}
}

static uint32_t context(const struct lookup *l, int level, struct seen s)
{
	uint32_t most = classes[level], a = s.before == NOBODY ? 0 : l->class[level][s.before], b;
	if (l->ranked)
		b = s.after < most ? s.after : most;
	else
		b = s.after == NOBODY ? 0 : l->class[level][s.after];
	return a * (most + 1) + b;
}

/* ---- the table ---- */

/* The slot of a gene in a context, or the empty one for it [multiplier: Knuth 6.4] */
static size_t slot_of(const struct lookup *l, uint64_t key)
{
	size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (l->slots - 1);
	while (l->key[i] && l->key[i] != key)
		i = (i + 1) & (l->slots - 1);
	return i;
}

static uint64_t key_of(int level, uint32_t c, uint32_t g)
{
	return ((uint64_t)level << 48 | (uint64_t)c << 32 | g) + 1;
}

static void enlarge(struct lookup *l)
{
	struct lookup old = *l;
	l->slots *= 2;
	l->key = xcalloc(l->slots, sizeof *l->key);
	l->count = xmalloc(l->slots * sizeof *l->count);
	for (size_t i = 0; i < old.slots; i++)
		if (old.key[i]) {
			size_t at = slot_of(l, old.key[i]);
			l->key[at] = old.key[i];
			l->count[at] = old.count[i];
		}
	free_all(old.key, old.count);
}

static void learn(struct lookup *l, struct seen s, uint32_t g)
{
	for (int k = 0; k < LOOKUP_LEVELS; k++) {
		uint32_t c = context(l, k, s);
		uint64_t key = key_of(k, c, g);
		size_t i = slot_of(l, key);
		if (!l->key[i]) {
			l->key[i] = key;
			l->count[i] = 0;
			l->used++;
		}
		l->count[i]++;
		l->total[k][c]++;
		if (l->used > l->slots / 2)
			enlarge(l);
	}
}

/* n_c(g) and n_c */
static void counts(const struct lookup *l, int level, struct seen s, uint32_t g, double *of, double *all)
{
	uint32_t c = context(l, level, s);
	size_t i = slot_of(l, key_of(level, c, g));
	*of = l->key[i] ? l->count[i] : 0;
	*all = l->total[level][c];
}

/* ---- fitting ---- */

/* Classes of medians: the genes in the order of their medians, cut where their tokens fill a class; genes of equal median share one. n [V]: their
 * tokens, `seen` in all. */
static void cut(struct lookup *l, const uint64_t *n, uint64_t seen)
{
	FREED struct ranked *order = xmalloc(l->V * sizeof *order);
	size_t genes = 0;
	uint64_t sum = 0;
	for (size_t g = l->special; g < l->V; g++)
		order[genes++] = (struct ranked){isnan(l->median[g]) ? 0 : l->median[g], (uint32_t)g};
	qsort(order, genes, sizeof *order, compare_ranked);
	for (size_t i = 0, j; i < genes; i = j) {
		uint64_t here = 0;
		for (j = i; j < genes && order[j].value <= order[i].value; j++)
			here += n[order[j].at];
		for (size_t m = i; m < j && here; m++)
			for (int k = 0; k < LOOKUP_LEVELS; k++)
				l->class[k][order[m].at] = 1 + (uint32_t)((double)(classes[k] * sum) / (double)seen);
		sum += here;
	}
}

static void count_genes(struct lookup *l)
{
	uint64_t *n = xcalloc(l->V, sizeof *n), seen = 0;
	for (size_t i = 0; i < l->tokens; i++)
		if (l->token[i] >= l->special) {
			n[l->token[i]]++;
			seen++;
		}
	for (size_t g = l->special; g < l->V; g++) /* one count more for every gene, so that none is impossible */
		l->p[g] = (double)(n[g] + 1) / (double)(seen + l->V - l->special);
	cut(l, n, seen);
	free(n);
}

struct kept {
	struct seen seen;
	uint32_t gene;
	double p;
};

/* The best A of each level, on the tokens that were kept */
static void lookup_choose(struct lookup *l, struct kept *kept, size_t n)
{
	for (size_t i = 0; i < n; i++)
		kept[i].p = l->p[kept[i].gene];
	for (int k = 0; k < LOOKUP_LEVELS; k++) {
		double loss[WEIGHTS] = {0}, of, all;
		size_t best = WEIGHTS - 1;
		for (size_t i = 0; i < n; i++) {
			counts(l, k, kept[i].seen, kept[i].gene, &of, &all);
			for (size_t t = 0; t < WEIGHTS; t++)
				loss[t] -= log((of + weights[t] * kept[i].p) / (all + weights[t]));
		}
		for (size_t t = 0; t < WEIGHTS; t++)
			best = loss[t] < loss[best] ? t : best;
		l->weight[k] = weights[best];
		for (size_t i = 0; i < n; i++) {
			counts(l, k, kept[i].seen, kept[i].gene, &of, &all);
			kept[i].p = (of + l->weight[k] * kept[i].p) / (all + l->weight[k]);
		}
	}
}

void lookup_fit(struct lookup *l)
{
	FREED struct kept *kept = NULL;
	FREED struct seen *seen = NULL;
	size_t n = 0, cap = 0, seen_cap = 0;
	count_genes(l);
	for (size_t c = 0; c < l->cells; c++) {
		size_t from = c ? l->end[c - 1] : 0;
		struct lookup_cell cell = {l->token + from, l->ranked ? l->rank + from : NULL, NULL, l->end[c] - from};
		grow(seen, seen_cap, cell.n + 1);
		see(l, &cell, seen);
		for (size_t i = 0; i < cell.n; i++) {
			if (cell.token[i] < l->special)
				continue;
			if ((c + 2) % KEEP) {
				learn(l, seen[i], cell.token[i]);
				continue;
			}
			grow(kept, cap, n + 1);
			kept[n++] = (struct kept){.seen = seen[i], .gene = cell.token[i]};
		}
	}
	lookup_choose(l, kept, n);
}

void lookup_score(const struct lookup *l, const struct lookup_cell *cell, const uint16_t *position, const uint32_t *gene, size_t n,
	double *frequency, double *medians)
{
	FREED struct seen *seen = xmalloc((cell->n + 1) * sizeof *seen);
	see(l, cell, seen);
	for (size_t i = 0; i < n; i++) {
		double p = l->p[gene[i]];
		*frequency -= log(p);
		for (int k = 0; k < LOOKUP_LEVELS; k++) {
			double of, all;
			counts(l, k, seen[position[i]], gene[i], &of, &all);
			p = (of + l->weight[k] * p) / (all + l->weight[k]);
		}
		*medians -= log(p);
	}
}

#include "mask/input.h"

#include "base/rng.h"
#include "base/sort.h"

enum { FEW = 2, FEW_ZEROS = 128 }; /* a cell of fewer genes gets so many zeros */
static const double WITHOUT_ZEROS = 0.2; /* share of the cells that get none */

struct gene {
	uint32_t token, count;
};

struct inputs {
	const struct input_plan *p;
	const struct mask_plan *mask;
	struct rng r; /* of the cell */
	uint32_t *present; /* [words] bits of the genes that the cell has */
	uint32_t *batch; /* [words] of those that a cell of the batch has */
	size_t words;
	uint32_t *zero; /* [vocab] genes without a count; drawn ones first */
	struct gene gene[MASK_ROW_MAX]; /* of the cell, the genes of the input first */
	struct gene mixed[MASK_ROW_MAX]; /* of the input, with zeros */
	uint32_t input[MASK_ROW_MAX], target[MASK_ROW_MAX];
	uint32_t replaced[MASK_ROW_MAX]; /* of mask_cell, not used */
	float value[MASK_ROW_MAX], target_value[MASK_ROW_MAX];
	uint16_t position[MASK_ROW_MAX];
};

struct inputs *inputs_new(const struct input_plan *p, const struct mask_plan *mask)
{
	struct inputs *x = xcalloc(1, sizeof *x);
	x->p = p;
	x->mask = mask;
	x->words = panel_words(mask->vocab);
	x->present = xcalloc(x->words, sizeof *x->present);
	x->batch = xcalloc(x->words, sizeof *x->batch);
	x->zero = xcalloc(mask->vocab, sizeof *x->zero);
	return x;
}

void inputs_free(struct inputs *x)
{
	if (!x)
		return;
	free_all(x->present, x->batch, x->zero, x);
}

void inputs_start(struct inputs *x)
{
	memset(x->batch, 0, x->words * sizeof *x->batch);
}

void inputs_note(struct inputs *x, const uint32_t *token, const uint32_t *count, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (count[i])
			x->batch[token[i] / 32] |= 1u << token[i] % 32;
}

/* ---- the genes of a cell ---- */

/* Its genes [*from, *to), between special tokens; their bits. */
static int find_genes(struct inputs *x, const struct counted_cell *c, uint32_t *from, uint32_t *to, struct error *e)
{
	uint32_t special = x->mask->nspecial;
	memset(x->present, 0, x->words * sizeof *x->present);
	for (*from = 0; *from < c->n && c->token[*from] < special; ++*from)
		;
	for (*to = c->n; *to > *from && c->token[*to - 1] < special; --*to)
		;
	for (uint32_t i = *from; i < *to; i++) {
		uint32_t g = c->token[i];
		if (g < special)
			return error_set(e, "position %u: a special token (%u) between genes", i, g);
		if (panel_has(x->present, g))
			return error_set(e, "position %u: gene %u occurs twice", i, g);
		x->present[g / 32] |= 1u << g % 32;
	}
	return 0;
}

static double divisor(const struct input_plan *p, const struct counted_cell *c, const struct gene *g, size_t n)
{
	double sum = 1;
	for (size_t i = 0; i < n; i++)
		sum += g[i].count;
	return sum;
}

/* Step i of a Fisher-Yates shuffle from the front. */
static void draw(void *items, size_t size, uint32_t i, uint32_t n, struct rng *r)
{
	char swap[sizeof(struct gene)], *a = (char *)items + i * size, *b = (char *)items + (i + rng_below(r, n - i)) * size;
	memcpy(swap, a, size);
	memcpy(a, b, size);
	memcpy(b, swap, size);
}

/* ---- zeros ---- */

/* The first of x->zero become up to `want` zeros, drawn. Returns how many. */
static uint32_t draw_zeros(struct inputs *x, const struct counted_cell *c, uint32_t want)
{
	const struct panels *panels = x->p->panels;
	const uint32_t *panel = panels->n ? panels->bits + c->panel * panels->words : NULL;
	uint32_t n = 0, first = 0;
	for (int again = 0; again < 2; again++) { /* genes of the batch first, if they matter */
		if (again)
			first = n;
		for (uint32_t g = x->mask->nspecial; g < x->mask->vocab; g++)
			if (!panel_has(x->present, g) && (!panel || panel_has(panel, g)) &&
				(x->p->zeros == ZEROS_BATCH && panel_has(x->batch, g)) == !again)
				x->zero[n++] = g;
	}
	for (uint32_t i = 0; i < n && i < want; i++)
		draw(x->zero, sizeof *x->zero, i, i < first ? first : n, &x->r);
	return n < want ? n : want;
}

/* x->mixed: n genes and zeros, at most `most`. Returns how many. */
static uint32_t mix(struct inputs *x, const struct counted_cell *c, uint32_t n, uint32_t most)
{
	const struct input_plan *p = x->p;
	int few = n < FEW, none = p->zeros == ZEROS_NONE || !c->n || (rng_unit(&x->r) < WITHOUT_ZEROS && !few);
	uint32_t genes_of_ten = p->zeros == ZEROS_BATCH ? 9 : UINT32_MAX, k = 0, g = 0, z = 0;
	uint32_t want = few && most > FEW_ZEROS ? FEW_ZEROS : most, zeros = none ? 0 : draw_zeros(x, c, want);
	while (k < most && (g < n || z < zeros)) {
		int zero = g == n || (z < zeros && k % 10 >= genes_of_ten);
		x->mixed[k++] = zero ? (struct gene){x->zero[z++], 0} : x->gene[g++];
	}
	return k;
}

/* ---- input and targets ---- */

static void mask_input_put(struct inputs *x, uint32_t i, uint32_t token, float value)
{
	x->input[i] = token;
	x->value[i] = value;
}

/* Write the input: special tokens, the first n genes of x->gene with zeros, special tokens. */
static uint32_t write_input(struct inputs *x, const struct counted_cell *c, uint32_t from, uint32_t to, uint32_t n)
{
	uint32_t special = from + (c->n - to), most = x->p->max_len > special ? x->p->max_len - special : 0, k = 0;
	double d = divisor(x->p, c, x->gene, n);
	for (uint32_t i = 0; i < n; i++)
		draw(x->gene, sizeof *x->gene, i, n, &x->r);
	n = mix(x, c, n, most);
	for (uint32_t i = 0; i < from; i++, k++)
		mask_input_put(x, k, c->token[i], -(float)(c->token[i] + 1));
	for (uint32_t i = 0; i < n; i++, k++)
		mask_input_put(x, k, x->mixed[i].token, log_norm(x->mixed[i].count, d));
	for (uint32_t i = to; i < c->n; i++, k++)
		mask_input_put(x, k, c->token[i], -(float)(c->token[i] + 1));
	return k;
}

/* The whole cell as targets. x->gene has its n genes. */
static void write_targets(struct inputs *x, const struct counted_cell *c, uint32_t n)
{
	double d = divisor(x->p, c, x->gene, n);
	qsort(x->gene, n, sizeof *x->gene, compare_u32);
	for (uint32_t i = 0; i < n; i++) {
		x->target[i] = x->gene[i].token;
		x->target_value[i] = log_norm(x->gene[i].count, d);
	}
}

/* Hide the fields of the chosen tokens, and make them targets. */
static void hide(struct inputs *x, uint32_t chosen)
{
	const struct input_plan *p = x->p;
	for (uint32_t i = 0; i < chosen; i++) {
		uint16_t at = x->position[i];
		x->target[i] = x->input[at];
		x->target_value[i] = x->value[at];
		if (rng_unit(&x->r) >= p->hidden)
			continue;
		if (p->fields & FIELD_VALUE)
			x->value[at] = -(float)(x->mask->mask_id + 1);
		if (p->fields & FIELD_GENE)
			x->input[at] = x->mask->mask_id;
	}
}

/* x->gene: those of the cell that are not at the places x->position [chosen], then the others; zeros are no genes. *kept: how many come first. */
static uint32_t split(struct inputs *x, const struct counted_cell *c, uint32_t from, uint32_t to, uint32_t chosen, uint32_t *kept)
{
	uint32_t n = 0, out = 0, k = 0;
	for (uint32_t i = from; i < to; i++) {
		struct gene g = {c->token[i], c->count[i]};
		int left = k < chosen && x->position[k] == i;
		k += (uint32_t)left;
		if (left && g.count)
			x->mixed[out++] = g;
		else if (g.count)
			x->gene[n++] = g;
	}
	memcpy(x->gene + n, x->mixed, out * sizeof *x->gene);
	*kept = n;
	return n + out;
}

/* Of the n genes one stays in the input, drawn. Returns how many of the places x->position [chosen] are left. */
static uint32_t keep_one(struct inputs *x, uint32_t chosen, uint32_t n)
{
	if (!chosen || chosen < n)
		return chosen;
	uint32_t stays = rng_below(&x->r, chosen);
	memmove(x->position + stays, x->position + stays + 1, (chosen - stays - 1) * sizeof *x->position);
	return chosen - 1;
}

int inputs_make(struct inputs *x, struct masked_cell *out, struct masker *m, const struct counted_cell *c, double rate, double lambda,
	struct error *e)
{
	uint32_t from, to, kept, all, chosen = 0;
	const struct input_plan *p = x->p;
	*out = (struct masked_cell){
		.input = x->input, .value = x->value, .target = x->target, .target_value = x->target_value, .places = x->position};
	if (p->panels->n && c->panel >= p->panels->n)
		return error_set(e, "panel %u, but the header has %zu", c->panel, p->panels->n);
	if (find_genes(x, c, &from, &to, e))
		return -1;
	if (from < to && p->max_len <= from + (c->n - to))
		return error_set(e, "%u special tokens, and an input has %u tokens (--max-len): expected room for a gene",
			from + (c->n - to), p->max_len);
	x->r = rng_at(x->mask->seed, RNG_INPUT, c->cell, c->epoch);
	struct mask_tokens t = {.n = c->n, .token = c->token};
	if (p->cell)
		chosen = mask_cell(m, rate, lambda, c->cell, c->epoch, &t, x->position, x->replaced, &out->structural);
	if (p->cell)
		chosen = keep_one(x, chosen, to - from);
	if (out->structural > chosen)
		out->structural = chosen;
	all = split(x, c, from, to, chosen, &kept);
	out->n = write_input(x, c, from, to, kept);
	out->tokens = t.token;
	out->seen = t.n;
	if (p->cell) {
		write_targets(x, c, all);
		out->targets = all;
	} else {
		memcpy(x->replaced, x->input, out->n * sizeof *x->input); /* hide changes the input */
		t = (struct mask_tokens){.n = out->n, .token = x->replaced};
		out->tokens = x->replaced;
		out->seen = out->n;
		chosen = mask_cell(m, rate, lambda, c->cell, c->epoch, &t, x->position, x->target, &out->structural);
		hide(x, chosen);
		out->targets = chosen;
		out->position = x->position;
	}
	out->chosen = chosen;
	return 0;
}

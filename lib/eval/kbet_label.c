#include "eval/kbet_label.h"

#include "eval/mixing.h"

#include <lapacke.h>
#include <math.h>

enum { COMPONENTS = 100, LEAST_CELLS = 10, LEAST = 10, MOST = 70 };
#define DENSE 400 /* up to so many cells, all eigenvectors at once are faster */

/* A part of the graph: its vertices, renumbered, and the edges among them. */
struct part {
	struct network g;
	double *weight;
	uint32_t *batch; /* [n] 0, 1, ... without gaps */
	size_t batches;
};

static void part_release(struct part *p)
{
	free_all(p->g.end, p->weight, p->batch);
}

/* The part of those vertices of g for which keep [n] is 1. */
static void take_part(
	struct part *p, const struct network *g, const double *weight, const uint32_t *batch, size_t batches, const uint8_t *keep)
{
	FREED uint32_t *number = xmalloc((g->n + 1) * sizeof *number), *of = xmalloc(batches * sizeof *of);
	*p = (struct part){.g.end = xmalloc((2 * g->m + 1) * sizeof *p->g.end),
		.weight = xmalloc((g->m + 1) * sizeof *p->weight),
		.batch = xmalloc((g->n + 1) * sizeof *p->batch)};
	memset(of, 0xff, batches * sizeof *of);
	for (uint32_t i = 0; i < g->n; i++) {
		number[i] = keep[i] ? p->g.n : UINT32_MAX;
		if (!keep[i])
			continue;
		if (of[batch[i]] == UINT32_MAX)
			of[batch[i]] = (uint32_t)p->batches++;
		p->batch[p->g.n++] = of[batch[i]];
	}
	for (size_t i = 0; i < g->m; i++) {
		uint32_t a = number[g->end[2 * i]], b = number[g->end[2 * i + 1]];
		if (a == UINT32_MAX || b == UINT32_MAX)
			continue;
		p->g.end[2 * p->g.m] = a;
		p->g.end[2 * p->g.m + 1] = b;
		p->weight[p->g.m++] = weight[i];
	}
}

/* Divide each weight by the powers `power` of the sums of the rows of its ends. */
static void divide(struct part *p, double power)
{
	FREED double *sum = xcalloc(p->g.n, sizeof *sum);
	for (size_t i = 0; i < 2 * p->g.m; i++)
		sum[p->g.end[i]] += p->weight[i / 2];
	for (size_t i = 0; i < 2 * p->g.m; i++)
		p->weight[i / 2] /= pow(sum[p->g.end[i]], power);
}

/* network_eigen by LAPACK. */
static int eigen_dense(const struct part *p, size_t k, double *value, double *vector, struct error *e)
{
	size_t n = p->g.n, low = 0, high = n;
	FREED double *a = xcalloc(n * n, sizeof *a), *all = xmalloc(n * sizeof *all);
	for (size_t i = 0; i < p->g.m; i++) {
		size_t r = p->g.end[2 * i], c = p->g.end[2 * i + 1];
		a[r * n + c] = a[c * n + r] = p->weight[i];
	}
	int bad = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', (int)n, a, (int)n, all); /* rising */
	for (size_t c = 0; !bad && c < k; c++) {
		size_t at = fabs(all[low]) > fabs(all[high - 1]) ? low++ : --high;
		value[c] = all[at];
		for (size_t i = 0; i < n; i++)
			vector[i * k + c] = a[at * n + i];
	}
	return bad ? error_set(e, "no eigenvectors of %zu cells (dsyevd: %d)", n, bad) : 0;
}

/* The cells of p by the k components of diffusion, [n, k]. */
static int diffuse(struct part *p, size_t k, float *at, struct error *e)
{
	FREED double *value = xmalloc(k * sizeof *value), *vector = xmalloc(p->g.n * k * sizeof *vector);
	divide(p, 1);
	divide(p, 0.5);
	int bad = p->g.n <= DENSE ? eigen_dense(p, k, value, vector, e) : network_eigen(&p->g, p->weight, k, value, vector, e);
	for (size_t i = 0; !bad && i < p->g.n * k; i++) {
		float l = (float)value[i % k]; /* 1 is met by its float32 */
		at[i] = (float)vector[i] * (l >= 1 ? 1 : l / (1 - l));
	}
	return bad;
}

/* kBET of the part by k neighbours. */
static int score_part(double *score, struct part *p, size_t k, size_t components, const struct search_settings *s, struct error *e)
{
	FREED float *at = xmalloc(p->g.n * components * sizeof *at);
	int bad = diffuse(p, components, at, e);
	k = k < p->g.n ? k : p->g.n - 1;
	FREED uint32_t *neighbour = xmalloc(p->g.n * k * sizeof *neighbour);
	FREED double *distance = xmalloc(p->g.n * k * sizeof *distance);
	if (!bad) {
		some_neighbours(at, p->g.n, components, k, s, neighbour, distance);
		*score = mixing_kbet(neighbour, p->g.n, k, k + 1, p->batch, p->batches);
	}
	return bad;
}

/* Keep the components of `least` cells and more; returns how many cells that are. */
static size_t large_components(const struct part *p, const uint32_t *member, uint32_t components, size_t least, uint8_t *keep)
{
	size_t *size = xcalloc(components, sizeof *size), kept = 0;
	for (uint32_t i = 0; i < p->g.n; i++)
		size[member[i]]++;
	for (uint32_t i = 0; i < p->g.n; i++)
		kept += keep[i] = size[member[i]] >= least;
	free(size);
	return kept;
}

/* Of one class; *most components, of which it may leave fewer. */
static int score_class(double *score, struct part *p, size_t *most, const struct search_settings *s, struct error *e)
{
	size_t n = p->g.n, quarter = n / p->batches / 4, k = quarter < LEAST ? LEAST : quarter > MOST ? MOST : quarter;
	uint32_t *member = xmalloc(n * sizeof *member), components;
	uint8_t *keep = xcalloc(n, 1);
	int bad = network_members(&p->g, 0, member, &components, e);
	if (!bad && components == 1) {
		*most = *most < n - 1 ? *most : n - 1;
		bad = score_part(score, p, k, *most, s, e);
	} else if (!bad) {
		size_t kept = large_components(p, member, components, 3 * k, keep);
		*score = 0;
		if (4 * kept >= 3 * n) {
			struct part large;
			take_part(&large, &p->g, p->weight, p->batch, p->batches, keep);
			*most = *most < kept - 1 ? *most : kept - 1;
			if (large.batches > 1)
				bad = score_part(score, &large, k, *most, s, e);
			part_release(&large);
		}
	}
	free_all(member, keep);
	return bad;
}

int kbet_label(double *score, const struct network *g, const double *weight, const uint32_t *label, size_t labels, const uint32_t *batch,
	size_t batches, const struct search_settings *s, struct error *e)
{
	FREED uint8_t *keep = xmalloc(g->n);
	size_t most = COMPONENTS;
	int bad = 0;
	for (size_t c = 0; !bad && c < labels; c++) {
		struct part p;
		for (uint32_t i = 0; i < g->n; i++)
			keep[i] = label[i] == c;
		take_part(&p, g, weight, batch, batches, keep);
		score[c] = NAN;
		if (p.g.n >= LEAST_CELLS && p.batches > 1)
			bad = score_class(&score[c], &p, &most, s, e);
		part_release(&p);
	}
	return bad;
}

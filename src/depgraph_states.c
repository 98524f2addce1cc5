/*
 * depgraph --states: do edges differ between two states of the donors, such as healthy and sick?
 *     t = |r_a - r_b| / (se + s)     se: of the difference, by a jackknife over the donors of each state; s: its median over the edges [Tusher 2001]
 * The states are dealt to the donors anew. q of an edge is the mean number of edges that have at least its t in a deal, the true one among the
 * deals, over their number in truth; or that of a lower t, if it is smaller. So unequal numbers of donors, and donors that differ much, are allowed for.
 */
#include "depgraph.h"

#include "base/rng.h"
#include "base/sort.h"

enum { DEALS = 999 };

struct contrast {
	const struct within *x;
	const struct gene_pair *pair; /* [n] */
	const double *xy; /* [n, donors] */
	size_t n;
	struct within_score *of; /* [n, 2] */
	double *t, *se; /* [n]; t -1: too few donors */
};

/* Fill t, se and of for these states [donors]. */
static void contrast(struct contrast *c, const uint8_t *state)
{
	FREED double *sorted = xcalloc(c->n, sizeof *sorted);
	size_t m = 0;
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < c->n; i++) {
		struct within_score *of = &c->of[2 * i];
		for (int k = 0; k < 2; k++)
			within_donors(c->x, &c->pair[i], c->xy + i * c->x->donors, state, k, &of[k]);
		c->t[i] = of[0].donors < DONORS_STATE || of[1].donors < DONORS_STATE ? -1 : fabs(of[0].r - of[1].r);
		c->se[i] = sqrt(of[0].se * of[0].se + of[1].se * of[1].se);
	}
	for (size_t i = 0; i < c->n; i++)
		if (c->t[i] >= 0)
			sorted[m++] = c->se[i];
	qsort(sorted, m, sizeof *sorted, compare_double);
	for (size_t i = 0; i < c->n; i++)
		if (c->t[i] > 0)
			c->t[i] /= c->se[i] + sorted[m / 2];
}

/* q [n] of the edges in their order by t */
static double *deal(struct contrast *c, const uint8_t *state, const struct ranked *order)
{
	double *q = xcalloc(c->n + 1, sizeof *q);
	FREED uint8_t *dealt = xmalloc(c->x->donors);
	memcpy(dealt, state, c->x->donors);
	for (int i = 0; i < DEALS; i++) {
		struct rng r = rng_at((uint32_t)depgraph_cli.seed, RNG_HALVES, (uint64_t)i, 1);
		SHUFFLE(&r, dealt, c->x->donors);
		contrast(c, dealt);
		qsort(c->t, c->n, sizeof *c->t, compare_double_down);
		for (size_t k = 0, m = 0; k < c->n; q[k++] += (double)m)
			while (m < c->n && c->t[m] >= order[k].value)
				m++;
		progress("%d of %d deals", i + 1, DEALS);
	}
	contrast(c, state);
	for (size_t k = c->n; k-- > 0;) {
		q[k] = (q[k] / (double)(k + 1) + 1) / (DEALS + 1);
		q[k] = order[k].value < 0 ? NAN : k + 1 < c->n ? fmin(q[k], fmin(1, q[k + 1])) : fmin(1, q[k]);
	}
	return q;
}

void compare_states(const struct within *x, const struct gene_pair *pair, const struct within_score *score, size_t n,
	const struct donor_states *s, const struct vocab *v, FILE *f)
{
	FREED double *xy = xcalloc(n * x->donors, sizeof *xy), *t = xcalloc(n, sizeof *t), *se = xcalloc(n, sizeof *se);
	FREED struct within_score *of = xcalloc(2 * n, sizeof *of), *again = xcalloc(n, sizeof *again);
	FREED struct ranked *order = xcalloc(n, sizeof *order);
	struct contrast c = {x, pair, xy, n, of, t, se};
	size_t found = 0;
	within_score(x, pair, n, again, xy);
	contrast(&c, s->of);
	for (size_t i = 0; i < n; i++)
		order[i] = (struct ranked){t[i], (uint32_t)i};
	qsort(order, n, sizeof *order, compare_ranked_down);
	FREED double *q = deal(&c, s->of, order);
	fprintf(f, "gene_a\tsymbol_a\tgene_b\tsymbol_b\tscore\toverlap");
	for (int j = 0; j < 4; j++)
		fprintf(f, "\t%s_%s", j < 2 ? "r" : "donors", s->name[j % 2]);
	fprintf(f, "\tdifference\tse\tq\n");
	for (size_t k = 0; k < n; k++) {
		size_t i = order[k].at;
		const struct within_score *a = &of[2 * i], *b = a + 1;
		uint32_t u = x->token[pair[i].u], w = x->token[pair[i].v], low = u < w ? u : w, high = u < w ? w : u;
		fprintf(f, "%s\t%s\t%s\t%s\t%.6g\t%u\t%.6f\t%.6f\t%u\t%u\t%.6f", v->id[low], v->symbol[low], v->id[high], v->symbol[high],
			score[i].score, score[i].overlap, a->r, b->r, a->donors, b->donors, a->r - b->r);
		fprintf(f, t[i] < 0 ? "\tNA\tNA\n" : "\t%.6f\t%.6g\n", se[i], q[k]);
		found += q[k] < .05;
	}
	info("%zu of %zu edges differ between '%s' and '%s' with q below .05", found, n, s->name[0], s->name[1]);
}

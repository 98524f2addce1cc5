#include "graph/within.h"

#include "base/sort.h"

enum { GENES_MAX = 65535, BLOCK = 32, TILE = 512 }; /* genes whose sums are kept at a time, and partners of them in the cache */
#define SHRINK 10.
#define NOTHING 1e-9 /* a smaller share of the squares is rounding */

/* ---- cells ---- */

static int on_side(const struct within_cells *c, const uint8_t *side, int which, size_t i)
{
	return !side || side[c->donor[c->stratum[i]]] == which;
}

uint32_t *within_genes(const struct within_cells *c, const uint8_t *side, uint32_t min_cells, uint32_t vocab, uint32_t *n)
{
	FREED uint32_t *cells = xcalloc(2 * (size_t)vocab, sizeof *cells);
	FREED struct ranked *order = xcalloc(vocab, sizeof *order);
	struct sparse_row r = {0};
	for (size_t i = 0; i < c->counts.n; i++) {
		sparse_counts(&c->counts, i, &r);
		for (size_t k = 0; k < r.n; k++)
			cells[r.column[k] + (on_side(c, side, 0, i) ? 0 : vocab)]++;
	}
	sparse_row_release(&r);
	*n = 0;
	for (uint32_t g = 0; g < vocab; g++)
		if (cells[g] >= min_cells && cells[g] && (!side || cells[vocab + g] >= min_cells))
			order[(*n)++] = (struct ranked){cells[g] + (double)cells[vocab + g], g};
	qsort(order, *n, sizeof *order, compare_ranked_down);
	uint32_t *token = xmalloc((*n + 1) * sizeof *token);
	for (uint32_t g = 0; g < *n; g++)
		token[g] = order[g].at;
	return token;
}

/* The cells of a side in order of their strata: of order [x->n], malloced. size [strata] and x->end out. */
static uint32_t *strata_order(struct within *x, const struct within_cells *c, const uint8_t *side, int which, uint32_t *size)
{
	FREED uint32_t *at = xcalloc((size_t)c->strata + 1, sizeof *at);
	for (size_t i = 0; i < c->counts.n; i++)
		size[c->stratum[i]] += on_side(c, side, which, i) != 0;
	x->end = xcalloc(c->donors, sizeof *x->end);
	for (uint32_t s = 0; s < c->strata; s++)
		x->end[c->donor[s]] = at[s + 1] = at[s] + size[s];
	x->n = at[c->strata];
	uint32_t *order = xmalloc(((size_t)x->n + 1) * sizeof *order);
	for (size_t i = 0; i < c->counts.n; i++)
		if (on_side(c, side, which, i))
			order[at[c->stratum[i]]++] = (uint32_t)i;
	return order;
}

/* The largest steps, at most 2^11 a unit, with which a cell's products and the number of cells fit into 64 bits; how many the products get. */
static double steps(uint32_t n, int *bits)
{
	double most = log1p(1e4), step = 2048;
	for (*bits = 64; n >> (64 - *bits);)
		--*bits;
	while (n * (most * step + 1) * (most * step + 1) >= ldexp(1, *bits))
		step /= 2;
	return step;
}

/* Fill the columns of the genes and the rows of the cells. place [vocab]: a gene's number, or GENES_MAX; differs [genes] out: two cells of a
 * stratum have other counts above 0. */
static void fill_cells(struct within *x, const struct within_cells *c, const uint32_t *order, const uint16_t *place, uint8_t *differs)
{
	struct sparse_row r = {0};
	FREED uint64_t *at = xcalloc((size_t)x->genes + 1, sizeof *at), *count = xcalloc((size_t)x->genes + 1, sizeof *count);
	for (uint32_t i = 0; i < x->n; i++) {
		sparse_counts(&c->counts, order[i], &r);
		for (size_t k = 0; k < r.n; k++)
			if (place[r.column[k]] != GENES_MAX)
				x->offset[place[r.column[k]] + 1]++;
	}
	for (uint32_t g = 0; g < x->genes; g++)
		at[g + 1] = x->offset[g + 1] += x->offset[g];
	size_t values = x->offset[x->genes];
	x->cell = xlarge(values + 1, sizeof *x->cell);
	x->x = xlarge(values + 1, sizeof *x->x);
	x->entry = xlarge(values + 1, sizeof *x->entry);
	for (uint32_t i = 0; i < x->n; i++) {
		x->row[i + 1] = x->row[i];
		sparse_counts(&c->counts, order[i], &r);
		sparse_row(&c->counts, order[i], &r);
		for (size_t k = 0; k < r.n; k++) {
			uint32_t g = place[r.column[k]];
			if (g == GENES_MAX)
				continue;
			if (at[g] > x->offset[g] && c->stratum[order[x->cell[at[g] - 1]]] == c->stratum[order[i]])
				differs[g] |= r.count[k] != count[g];
			count[g] = r.count[k];
			x->row[i + 1]++;
			x->cell[at[g]] = i;
			x->x[at[g]++] = r.value[k];
		}
	}
	sparse_row_release(&r);
	/* in order of the genes, so that the rows are sorted */
	FREED uint64_t *next = xmalloc(((size_t)x->n + 1) * sizeof *next);
	memcpy(next, x->row, ((size_t)x->n + 1) * sizeof *next);
	for (uint32_t g = x->genes; g-- > 0;)
		for (uint64_t k = x->offset[g]; k < x->offset[g + 1]; k++)
			x->entry[next[x->cell[k]]++] = g | (uint32_t)lrint((double)x->x[k] * x->step) << 16;
}

/* The sums of gene g over strata, of size [strata] cells, and over donors. One count in each cell of a stratum says nothing but the depth, so
 * a gene varies if counts above 0 differ, or if only some cells of a stratum have it. */
static void gene_sums(struct within *x, const uint32_t *size, int differs, uint32_t g)
{
	double lost = 0;
	uint64_t k = x->offset[g];
	for (uint32_t s = 0, end = 0; s < x->strata; s++) {
		double sum = 0, rounded = 0, square = 0;
		uint64_t first = k;
		for (end += size[s]; k < x->offset[g + 1] && x->cell[k] < end; k++) {
			double v = (double)x->x[k], q = (double)lrint(v * x->step) / x->step;
			sum += v;
			square += v * v;
			rounded += q;
			lost += (v - q) * (v - q);
		}
		differs |= k > first && k - first < size[s];
		if (!size[s])
			continue;
		double root = sqrt(size[s]);
		x->sum[(size_t)g * x->strata + s] = sum / root;
		x->rounded[(size_t)s * x->genes + g] = rounded / root;
		double varies = square - sum / root * (sum / root);
		x->square[(size_t)g * x->donors + x->donor[s]] += varies > NOTHING * square ? varies : 0;
	}
	for (uint32_t d = 0; d < x->donors; d++)
		x->all[g] += x->square[(size_t)g * x->donors + d] *= differs != 0;
	x->lost[g] = x->all[g] > 0 ? sqrt(lost / x->all[g]) : 0;
}

int within_init(
	struct within *x, const struct within_cells *c, const uint8_t *side, int which, uint32_t *token, uint32_t genes, struct error *e)
{
	*x = (struct within){.genes = genes, .strata = c->strata, .donors = c->donors, .token = token, .donor = c->donor};
	if (genes > GENES_MAX)
		return error_set(e, "%u genes, expected at most %d: raise --min-cells", genes, GENES_MAX);
	int bits;
	FREED uint32_t *size = xcalloc(c->strata, sizeof *size);
	FREED uint32_t *order = strata_order(x, c, side, which, size);
	FREED uint16_t *place = xmalloc(c->counts.d * sizeof *place + 1);
	memset(place, 0xff, c->counts.d * sizeof *place);
	for (uint32_t g = 0; g < genes; g++)
		place[token[g]] = (uint16_t)g;
	x->offset = xcalloc((size_t)genes + 1, sizeof *x->offset);
	x->row = xcalloc((size_t)x->n + 1, sizeof *x->row);
	x->step = steps(x->n, &bits);
	FREED uint8_t *differs = xcalloc((size_t)genes + 1, sizeof *differs);
	fill_cells(x, c, order, place, differs);
	x->sum = xcalloc((size_t)genes * c->strata, sizeof *x->sum);
	x->rounded = xcalloc((size_t)genes * c->strata, sizeof *x->rounded);
	x->square = xcalloc((size_t)genes * c->donors, sizeof *x->square);
	x->all = xcalloc(genes, sizeof *x->all);
	x->lost = xcalloc(genes, sizeof *x->lost);
#pragma omp parallel for schedule(dynamic, 16)
	for (uint32_t g = 0; g < genes; g++)
		gene_sums(x, size, differs[g], g);
	return 0;
}

void within_release(struct within *x)
{
	free_all(x->token, x->end, x->offset, x->cell, x->x, x->row, x->entry, x->sum, x->rounded, x->square, x->all, x->lost);
	*x = (struct within){0};
}

/* ---- all pairs ---- */

struct block_sums { /* of genes v, v + 1, ... with all that are in as many cells */
	uint64_t *products; /* [BLOCK, genes] in steps, and from bit `bits` on the cells with both */
	double *means; /* [BLOCK, genes] of the strata's sums */
	uint64_t *next; /* [cells] the first gene in its row that has not come yet */
};

static void sum_means(const struct within *x, uint32_t first, uint32_t last, double *means)
{
	for (uint32_t b = first; b < last; b++)
		memset(means + (size_t)(b - first) * x->genes, 0, b * sizeof *means);
	for (uint32_t u = 0; u < last; u += TILE)
		for (uint32_t s = 0; s < x->strata; s++)
			for (uint32_t v = first > u ? first : u; v < last; v++) {
				const double *restrict t = x->rounded + (size_t)s * x->genes, a = t[v];
				double *restrict to = means + (size_t)(v - first) * x->genes;
				uint32_t end = v < u + TILE ? v : u + TILE;
				if (a > 0)
					for (uint32_t w = u; w < end; w++)
						to[w] += a * t[w];
			}
}

static void sum_products(const struct within *x, uint32_t v, int bits, uint64_t *next, uint64_t *restrict to)
{
	const uint32_t *restrict entry = x->entry;
	memset(to, 0, v * sizeof *to);
	for (uint64_t k = x->offset[v]; k < x->offset[v + 1]; k++) {
		uint64_t at = next[x->cell[k]]--, end = x->row[x->cell[k] + 1], a = entry[at] >> 16, one = 1ULL << bits;
#pragma GCC unroll 8
		for (at++; at < end; at++)
			to[entry[at] & GENES_MAX] += a * (entry[at] >> 16) + one;
	}
}

/* Offer gene v with the genes before it. The error is that of the rounding, by the inequality of Cauchy and Schwarz. */
static void offer_gene(const struct within *x, uint32_t v, int bits, const uint64_t *products, const double *means, struct candidates *to)
{
	double unit = 1 / (x->step * x->step), of_v = x->all[v] > 0 ? 1 / sqrt(x->all[v]) : 0;
	for (uint32_t u = 0; u < v; u++) {
		double overlap = (double)(products[u] >> bits), weight = overlap / (overlap + SHRINK);
		if (products[u] == 0 || x->all[u] <= 0 || x->all[v] <= 0)
			continue;
		double r = ((double)(products[u] & ((1ULL << bits) - 1)) * unit - means[u]) * of_v / sqrt(x->all[u]);
		double error = x->lost[u] + x->lost[v] + x->lost[u] * x->lost[v] + 1e-6, high = (r + error) * weight;
		if (high > 0)
			candidates_offer(to, u, v, (float)((r - error) * weight) - 1e-6f, (float)high + 1e-6f);
	}
}

/* In the row of cell i, the last of the genes from v on: rows are falling. */
static uint64_t last_from(const struct within *x, uint32_t i, uint32_t v)
{
	const uint32_t *entry = x->entry + x->row[i];
	return x->row[i] + LEADING(x->row[i + 1] - x->row[i], k, (entry[k] & GENES_MAX) >= v) - 1;
}

struct gene_pair *within_screen(const struct within *x, uint32_t most, size_t *n)
{
	struct candidates c;
	uint32_t blocks = (x->genes + BLOCK - 1) / BLOCK;
	int bits;
	steps(x->n, &bits);
	candidates_init(&c, x->genes, most, 0);
#pragma omp parallel
	{
		struct block_sums s = {xlarge((size_t)BLOCK * x->genes, sizeof *s.products),
			xlarge((size_t)BLOCK * x->genes, sizeof *s.means), xmalloc(((size_t)x->n + 1) * sizeof *s.next)};
#pragma omp for schedule(dynamic)
		for (uint32_t block = 0; block < blocks; block++) {
			uint32_t first = block * BLOCK, last = first + BLOCK < x->genes ? first + BLOCK : x->genes;
			for (uint32_t i = 0; i < x->n; i++)
				s.next[i] = last_from(x, i, first);
			sum_means(x, first, last, s.means);
			for (uint32_t v = first; v < last; v++) {
				uint64_t *products = s.products + (size_t)(v - first) * x->genes;
				sum_products(x, v, bits, s.next, products);
				offer_gene(x, v, bits, products, s.means + (size_t)(v - first) * x->genes, &c);
			}
		}
		free_all(s.products, s.means, s.next);
	}
	return candidates_pairs(&c, n);
}

/* ---- pairs ---- */

void within_donors(
	const struct within *x, const struct gene_pair *p, const double *xy, const uint8_t *side, int which, struct within_score *to)
{
	const double *u = x->square + (size_t)p->u * x->donors, *v = x->square + (size_t)p->v * x->donors;
	double all = 0, of_u = 0, of_v = 0, sum = 0, spread = 0, count = 0;
	*to = (struct within_score){.overlap = to->overlap, .se = NAN};
	for (uint32_t d = 0; d < x->donors; d++) {
		if (side && side[d] != which)
			continue;
		all += xy[d];
		of_u += u[d];
		of_v += v[d];
	}
	if (of_u <= 0 || of_v <= 0)
		return;
	to->r = all / (sqrt(of_u) * sqrt(of_v));
	for (uint32_t d = 0; d < x->donors; d++) {
		if ((side && side[d] != which) || x->end[d] == (d ? x->end[d - 1] : 0))
			continue; /* on the other side */
		double left_u = of_u - u[d], left_v = of_v - v[d], r = 0; /* without this donor; 0 if a gene varies in no other */
		to->donors += u[d] > 0 && v[d] > 0;
		to->agree += u[d] > 0 && v[d] > 0 && xy[d] * to->r > 0;
		if (left_u > NOTHING * of_u && left_v > NOTHING * of_v)
			r = (all - xy[d]) / (sqrt(left_u) * sqrt(left_v));
		sum += r - to->r;
		spread += (r - to->r) * (r - to->r);
		count++;
	}
	if (count > 1)
		to->se = sqrt((count - 1) / count * fmax(0, spread - sum / count * sum));
}

/* where [cells]: x of gene u, 0: absent; xy [donors] out */
static void score_pair(const struct within *x, const struct gene_pair *p, const float *where, double *xy, struct within_score *to)
{
	uint64_t k = x->offset[p->v], end = x->offset[p->v + 1];
	to->overlap = 0;
	for (uint32_t d = 0; d < x->donors; d++)
		for (xy[d] = 0; k < end && x->cell[k] < x->end[d]; k++) {
			xy[d] += (double)where[x->cell[k]] * (double)x->x[k];
			to->overlap += where[x->cell[k]] > 0;
		}
	for (uint32_t s = 0; s < x->strata; s++)
		xy[x->donor[s]] -= x->sum[(size_t)p->u * x->strata + s] * x->sum[(size_t)p->v * x->strata + s];
	within_donors(x, p, xy, NULL, 0, to);
	to->score = to->r * to->overlap / (to->overlap + SHRINK);
}

void within_score(const struct within *x, const struct gene_pair *pair, size_t n, struct within_score *score, double *xy)
{
	FREED size_t *first = xcalloc((size_t)x->genes + 1, sizeof *first);
	for (size_t u = 0, i = 0; u <= x->genes; u++) {
		while (i < n && pair[i].u < u)
			i++;
		first[u] = i;
	}
#pragma omp parallel
	{
		float *where = xcalloc(x->n, sizeof *where);
		double *of = xcalloc(x->donors, sizeof *of);
#pragma omp for schedule(dynamic)
		for (uint32_t u = 0; u < x->genes; u++) {
			if (first[u] == first[u + 1])
				continue;
			for (uint64_t k = x->offset[u]; k < x->offset[u + 1]; k++)
				where[x->cell[k]] = x->x[k];
			for (size_t i = first[u]; i < first[u + 1]; i++)
				score_pair(x, &pair[i], where, xy ? xy + i * x->donors : of, &score[i]);
			for (uint64_t k = x->offset[u]; k < x->offset[u + 1]; k++)
				where[x->cell[k]] = 0;
		}
		free_all(where, of);
	}
}

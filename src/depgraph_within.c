/* depgraph --within: correlation within donors and types, or clusters, of cells (lib/graph/within.h). */
#include "depgraph.h"

#include "cli_labels.h"
#include "eval/components.h"
#include "eval/distribution.h"
#include "eval/kmeans.h"
#include "eval/paired.h"
#include "base/option.h"
#include "base/rng.h"
#include "base/sort.h"

enum { CLUSTERED = 30, BEGIN = 20000 }; /* for clusters: components, and cells on which k-means begins */
enum { DONORS_LEAST = 6 }; /* with both genes, for a q */

/* ---- strata ---- */

/* Clusters of all cells: k-means on the components of their most variable genes. member [n] out */
static void cluster(const struct sparse *x, uint32_t k, uint32_t *member, const char *name)
{
	RELEASED(components_release) struct components c;
	int threads = (int)depgraph_cli.threads;
	components_choose(&c, x, NULL, x->n, 0);
	size_t d = CLUSTERED < c.g ? CLUSTERED : c.g;
	if (k > x->n || d < 2)
		die("%s: --clusters %u: there are %zu cells and %zu genes that vary", name, k, x->n, c.g);
	must(components_solve(&c, x, NULL, x->n, 1, d, threads, &failure));
	FREED float *z = components_project(&c, x, NULL, x->n);
	kmeans(z, x->n, d, k, x->n < BEGIN ? x->n : BEGIN, (uint32_t)depgraph_cli.seed, threads, member);
}

/* ---- cells ---- */

struct reading {
	size_t columns, strata; /* strata: those that make strata; the last one may be the states */
	char **column;
	struct labels *labels; /* [columns] */
	struct classes *classes;
	uint32_t **code; /* [columns] of [cells] */
	size_t *code_cap, count_cap;
	uint64_t *count; /* of a cell */
	size_t empty; /* cells without molecules, which would make all genes vary together */
	int gene, number, all; /* columns of the stream */
};

/* Add the cells of a block that have a value in each column, and a molecule. */
static void add_cells(struct within_cells *c, struct reading *in, const struct block *b, const char *name)
{
	const uint64_t *o = b->group[b->header->col[in->gene].group].offset;
	for (size_t row = 0; row < b->rows; row++) {
		size_t n = c->counts.n, m = o[row + 1] - o[row];
		const uint32_t *number = (const uint32_t *)b->col[in->number].data + o[row];
		int whole = 1;
		for (size_t k = 0; k < in->columns; k++) {
			grow(in->code[k], in->code_cap[k], n + 1);
			in->code[k][n] = labels_at(&in->labels[k], b, row);
			whole &= in->code[k][n] != MISSING_CODE;
		}
		if (!whole)
			continue;
		uint64_t total = ((const uint64_t *)b->col[in->all].data)[row];
		grow(in->count, in->count_cap, m + 1);
		FREED uint32_t *gene = xmalloc((m + 1) * sizeof *gene);
		size_t kept = 0;
		for (size_t k = 0; k < m; k++) {
			if (!number[k])
				continue;
			gene[kept] = block_id(b, in->gene, o[row] + k);
			in->count[kept++] = number[k];
			if (number[k] > total)
				die("%s: a cell with a count of %" PRIu32 ", but n_counts %" PRIu64, name, number[k], total);
		}
		in->empty += !total;
		if (total)
			sparse_pack(&c->counts, gene, in->count, kept, total);
	}
}

/* Number the strata, those of a donor together, and say which tell nothing. */
static void number_strata(struct within_cells *c, const struct reading *in, const struct within_options *o, const char *name)
{
	size_t n = c->counts.n, single = 0;
	c->stratum = xcalloc(n, sizeof *c->stratum);
	for (size_t k = 0; k < in->strata; k++) {
		c->strata = (uint32_t)classes_cross(c->stratum, in->code[k], in->classes[k].n, n);
		c->donors = k ? c->donors : c->strata;
	}
	if (o->clusters) {
		FREED uint32_t *member = xmalloc(n * sizeof *member);
		cluster(&c->counts, (uint32_t)o->clusters, member, name);
		c->strata = (uint32_t)classes_cross(c->stratum, member, (size_t)o->clusters, n);
	}
	FREED uint32_t *size = xcalloc(c->strata, sizeof *size), *donor = xcalloc(n, sizeof *donor);
	c->donor = xcalloc(c->strata, sizeof *c->donor);
	classes_cross(donor, in->code[0], in->classes[0].n, n);
	for (size_t i = 0; i < n; i++) {
		size[c->stratum[i]]++;
		c->donor[c->stratum[i]] = donor[i];
	}
	for (uint32_t s = 0; s < c->strata; s++)
		single += size[s] == 1;
	if (n < 2 * (size_t)c->strata)
		die("%s: --within %s: %u strata of %zu cells: expected at least two cells a stratum in the mean", name, o->columns,
			c->strata, n);
	if (single)
		info("%s: %zu of %u strata have one cell, which says nothing within them", name, single, c->strata);
}

/* The state of each donor. */
static void read_states(
	struct donor_states *s, const struct within_cells *c, const struct reading *in, const char *column, const char *name)
{
	const struct classes *state = &in->classes[in->strata];
	size_t donors[2] = {0};
	if (state->n != 2)
		die("%s: --states %s: %zu values, expected two: scsample --where keeps their cells", name, column, state->n);
	uint32_t swap = strcmp(state->name[0], state->name[1]) > 0;
	s->of = xmalloc(c->donors);
	memset(s->of, 0xff, c->donors);
	for (size_t i = 0; i < c->counts.n; i++) {
		uint8_t *of = &s->of[c->donor[c->stratum[i]]], v = (uint8_t)(in->code[in->strata][i] ^ swap);
		if (*of != 0xff && *of != v)
			die("%s: --states %s: donor '%s' has cells of '%s' and '%s', expected one state a donor", name, column,
				in->classes[0].name[in->code[0][i]], state->name[0], state->name[1]);
		donors[v] += *of == 0xff;
		*of = v;
	}
	for (int k = 0; k < 2; k++) {
		s->name[k] = xstrdup(state->name[(uint32_t)k ^ swap]);
		if (donors[k] < DONORS_STATE)
			die("%s: --states %s: %zu donor%s of '%s', expected at least %d", name, column, donors[k],
				donors[k] == 1 ? "" : "s", s->name[k], DONORS_STATE);
	}
}

static void read_counted(struct within_cells *c, struct stream *in, const struct within_options *o, struct donor_states *states)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	struct reading r = {0};
	RELEASED(block_release) struct block b = {0};
	must_kind(in, STREAM_COUNTS);
	r.gene = must_column(in, "gene", U32, RAGGED);
	r.number = must_column(in, "count", U32, RAGGED);
	r.all = must_column(in, "n_counts", U64, SCALAR);
	r.column = opt_list(o->columns, &r.columns);
	r.strata = r.columns;
	if (!r.columns)
		usage_error("--within: expected names of columns, the donors first");
	if (states) {
		r.column = xrealloc(r.column, r.columns + 1, sizeof *r.column);
		r.column[r.columns++] = xstrdup(o->states);
	}
	r.labels = xcalloc(r.columns, sizeof *r.labels);
	r.classes = xcalloc(r.columns, sizeof *r.classes);
	r.code = xcalloc(r.columns, sizeof *r.code);
	r.code_cap = xcalloc(r.columns, sizeof *r.code_cap);
	*c = (struct within_cells){.counts.d = h->vocab.n};
	for (size_t k = 0; k < r.columns; k++)
		labels_open(&r.labels[k], h, r.column[k], &r.classes[k], name);
	for (uint64_t seen = 0; must_read_cells(in, &b); progress_cells(seen, stream_expected(in))) {
		add_cells(c, &r, &b, name);
		seen += b.rows;
	}
	for (size_t k = 0; k < r.columns; k++)
		(k ? labels_read : groups_read)(&r.labels[k], r.column[k], name, "are left out");
	if (r.empty)
		info("%s: cells left out, as they have no count: %zu", name, r.empty);
	if (!c->counts.n)
		die("%s: no cell has counts, and a value in each column of --within", name);
	number_strata(c, &r, o, name);
	if (states)
		read_states(states, c, &r, o->states, name);
	for (size_t k = 0; k < r.columns; k++) {
		labels_release(&r.labels[k]);
		classes_release(&r.classes[k]);
		free(r.code[k]);
	}
	free_list(r.column, r.columns);
	free_all(r.labels, r.classes, r.code, r.code_cap, r.count);
}

static void counted_release(struct within_cells *c)
{
	sparse_release(&c->counts);
	free_all(c->stratum, c->donor);
}

/* ---- edges ---- */

static void begin(
	struct within *x, const struct within_cells *c, const uint8_t *side, int which, const struct within_options *o, const char *name)
{
	uint32_t genes, *token = within_genes(c, side, (uint32_t)o->min_cells, (uint32_t)c->counts.d, &genes);
	if (within_init(x, c, side, which, token, genes, &failure))
		die("%s: %s", name, failure.msg);
}

/* The pairs of positive score that are among the candidates of one of their genes, with their scores: *n of them. */
static struct gene_pair *best_pairs(const struct within *x, const struct within_options *o, struct within_score **score, size_t *n)
{
	size_t all, m = 0;
	struct gene_pair *pair = within_screen(x, (uint32_t)o->candidates, &all);
	*score = xcalloc(all, sizeof **score);
	within_score(x, pair, all, *score, NULL);
	FREED double *value = xcalloc(all, sizeof *value);
	for (size_t i = 0; i < all; i++)
		value[i] = (*score)[i].score;
	FREED uint8_t *best = candidates_best(pair, value, all, x->token, x->genes, (uint32_t)o->candidates);
	for (size_t i = 0; i < all; i++)
		if (best[i] && value[i] > 0) {
			pair[m] = pair[i];
			(*score)[m++] = (*score)[i];
		}
	*n = m;
	return pair;
}

/* rank [n] of pairs by score, from 0; malloced */
static uint32_t *ranks(const struct within_score *s, size_t n)
{
	FREED struct ranked *order = xcalloc(n, sizeof *order);
	uint32_t *rank = xcalloc(n, sizeof *rank);
	for (size_t i = 0; i < n; i++)
		order[i] = (struct ranked){s[i].score, (uint32_t)i};
	qsort(order, n, sizeof *order, compare_ranked_down);
	for (size_t i = 0; i < n; i++)
		rank[order[i].at] = (uint32_t)i;
	return rank;
}

/* Keep those of rank below `first`; how many these are. */
static size_t keep_first(struct gene_pair *pair, struct within_score *s, uint32_t *rank, size_t n, size_t first)
{
	size_t m = 0;
	for (size_t i = 0; i < n; i++)
		if (rank[i] < first) {
			pair[m] = pair[i];
			s[m] = s[i];
			rank[m++] = rank[i];
		}
	return m;
}

/* q [n] of scores: the t test of the jackknife against no correlation, one-sided; Benjamini and Hochberg over all pairs of genes. */
static double *q_values(const struct within_score *s, size_t n, double pairs)
{
	double *q = xmalloc((n + 1) * sizeof *q), tested = 0;
	for (size_t i = 0; i < n; i++) {
		q[i] = s[i].donors < DONORS_LEAST ? NAN : student_two_sided(s[i].r / s[i].se, s[i].donors - 1) / 2;
		tested += !isnan(q[i]);
	}
	correct_bh(q, n, sizeof *q);
	for (size_t i = 0; i < n; i++)
		q[i] = isnan(q[i]) ? NAN : fmin(1, q[i] * pairs / tested);
	return q;
}

struct edge *within_edges(struct stream *in, const struct within_options *o, uint32_t *genes, uint32_t *cells, size_t *n)
{
	RELEASED(counted_release) struct within_cells c;
	RELEASED(within_release) struct within x = {0};
	FREED struct within_score *s = NULL;
	size_t found = 0, vary = 0;
	read_counted(&c, in, o, NULL);
	begin(&x, &c, NULL, 0, o, stream_name(in));
	*genes = x.genes;
	sparse_release(&c.counts);
	for (uint32_t g = 0; g < *genes; g++)
		vary += x.all[g] > 0;
	FREED struct gene_pair *pair = best_pairs(&x, o, &s, n);
	FREED double *q = q_values(s, *n, (double)vary * (double)(vary - 1) / 2);
	struct edge *edge = xcalloc(*n, sizeof *edge);
	for (size_t i = 0; i < *n; i++) {
		uint32_t a = x.token[pair[i].u], b = x.token[pair[i].v];
		edge[i] = (struct edge){a < b ? a : b, a < b ? b : a, (float)s[i].score, s[i].overlap,
			{(float)s[i].r, (float)s[i].donors, (float)s[i].agree, (float)s[i].se, (float)q[i]}};
		found += q[i] < .05;
	}
	qsort(edge, *n, sizeof *edge, compare_two_u32);
	*cells = x.n;
	if (vary < *genes)
		info("%s: %zu of %u genes are constant in each stratum and have no partners", stream_name(in), *genes - vary, *genes);
	if (c.donors < DONORS_LEAST)
		info("%s: no q: %u donor%s, expected at least %d", stream_name(in), c.donors, c.donors == 1 ? "" : "s", DONORS_LEAST);
	info("%zu edges in %u cells, %u strata of %u donors; q below .05: %zu", *n, x.n, c.strata, c.donors, found);
	return edge;
}

/* ---- states of donors ---- */

void within_states(struct stream *in, const struct within_options *o, FILE *f)
{
	RELEASED(counted_release) struct within_cells c;
	RELEASED(within_release) struct within x = {0};
	FREED struct within_score *s = NULL;
	struct donor_states states = {0};
	size_t n;
	read_counted(&c, in, o, &states);
	begin(&x, &c, NULL, 0, o, stream_name(in));
	FREED struct gene_pair *pair = best_pairs(&x, o, &s, &n);
	FREED uint32_t *rank = ranks(s, n);
	if (o->strongest)
		n = keep_first(pair, s, rank, n, (size_t)o->strongest);
	compare_states(&x, pair, s, n, &states, &stream_header(in)->vocab, f);
	free_all(states.of, states.name[0], states.name[1]);
}

/* ---- halves of donors ---- */

static const size_t firsts[] = {100, 300, 1000, 3000};
enum { FIRSTS = sizeof firsts / sizeof *firsts };

struct half {
	struct within x;
	struct gene_pair *pair; /* [n] in order of (u, v), the strongest and no more than are compared */
	struct within_score *score; /* [n] */
	uint32_t *rank; /* [n] by score, from 0 */
	size_t n;
};

static void find_half(
	struct half *to, const struct within_cells *c, const struct within_options *o, const uint8_t *side, int which, const char *name)
{
	size_t n;
	begin(&to->x, c, side, which, o, name);
	to->pair = best_pairs(&to->x, o, &to->score, &n);
	to->rank = ranks(to->score, n);
	to->n = keep_first(to->pair, to->score, to->rank, n, firsts[FIRSTS - 1]);
}

/* Of the first edges of a half, the share among those of the other one: same [FIRSTS]. r, other [FIRSTS]: mean r of these edges in both. */
static void recurrence(const struct half *a, const struct half *b, double *same, double *r, double *other)
{
	FREED struct within_score *there = xcalloc(a->n, sizeof *there);
	within_score(&b->x, a->pair, a->n, there, NULL);
	for (size_t i = 0; i < a->n; i++) {
		const struct gene_pair *found = bsearch(&a->pair[i], b->pair, b->n, sizeof *found, compare_two_u32);
		for (size_t k = 0; k < FIRSTS; k++) {
			if (a->rank[i] >= firsts[k])
				continue;
			same[k] += (found && b->rank[found - b->pair] < firsts[k]) / (double)firsts[k];
			r[k] += a->score[i].r / (double)firsts[k];
			other[k] += there[i].r / (double)firsts[k];
		}
	}
}

void within_halves(struct stream *in, const struct within_options *o, FILE *f)
{
	RELEASED(counted_release) struct within_cells c;
	read_counted(&c, in, o, NULL);
	if (c.donors < 2)
		die("%s: --halves: one donor, expected at least two", stream_name(in));
	FREED uint32_t *order = xcalloc(c.donors, sizeof *order);
	FREED uint8_t *side = xcalloc(c.donors, 1);
	double sum[FIRSTS][5] = {0}; /* recurrence, its square, r, r in the other half, halves with so many edges */
	for (long long i = 0; i < o->halves; i++) {
		struct rng r = rng_at((uint32_t)depgraph_cli.seed, RNG_HALVES, (uint64_t)i, 0);
		rng_order(&r, order, c.donors);
		for (uint32_t d = 0; d < c.donors; d++)
			side[order[d]] = d < c.donors / 2;
		struct half half[2] = {0};
		for (int k = 0; k < 2; k++)
			find_half(&half[k], &c, o, side, k, stream_name(in));
		double same[2][FIRSTS] = {0}, r_own[FIRSTS] = {0}, r_other[FIRSTS] = {0};
		for (int k = 0; k < 2; k++)
			recurrence(&half[k], &half[!k], same[k], r_own, r_other);
		for (size_t k = 0; k < FIRSTS && firsts[k] <= half[0].n && firsts[k] <= half[1].n; k++) {
			double *s = sum[k], new[] = {same[0][k], same[0][k] * same[0][k], r_own[k], r_other[k], 1};
			for (int j = 0; j < 5; j++)
				s[j] += new[j];
		}
		for (int k = 0; k < 2; k++) {
			within_release(&half[k].x);
			free_all(half[k].pair, half[k].score, half[k].rank);
		}
		progress("%lld of %lld halves", i + 1, o->halves);
	}
	fputs("edges\thalves\trecurrence\tsd\tr\tr_other\n", f);
	for (size_t k = 0; k < FIRSTS; k++) {
		double n = sum[k][4], mean = sum[k][0] / n;
		if (n < 1)
			break;
		fprintf(f, "%zu\t%.0f\t%.6f\t", firsts[k], n, mean);
		fprintf(f, n > 1 ? "%.6f" : "NA", sqrt(fmax(0, sum[k][1] - n * mean * mean) / (n - 1)));
		fprintf(f, "\t%.6f\t%.6f\n", sum[k][2] / (2 * n), sum[k][3] / (2 * n));
	}
}

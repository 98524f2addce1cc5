/* ctaprobe transfer: the new cells, and the depth of the reference next to theirs. */
#include "cli.h"
#include "transfer.h"
#include "cli_genes.h"

#include "base/sort.h"
#include "cells/expressed.h"

enum { TOGETHER = 2048, BYTES = 64 << 20 }; /* so many cells, or bytes of them, are predicted at once */

/* The reference is thinned if new cells have fewer than this share of its molecules. */
static const double deep = 0.5;
/* If the genes that the new cells have are of fewer of the reference's molecules than this share, it is fitted on these genes alone. */
static const double few_shared = 0.8;
enum { FEWEST_DEPTHS = 20, MOST_MOLECULES = 200000 }; /* cells that say what depths are; molecules in half of the cells */
static const double least_spread = 0.1; /* of the quartiles of depth, over its median */

/* New cells, some at a time. */
struct gathered {
	struct embeddings d; /* of the cells that have values */
	struct expressed expressed; /* of counts */
	int x, cell; /* columns; x -1: counts */
	size_t bytes;
	struct predictions *keep; /* where the cells, and their clusters, are kept; NULL: nowhere */
	struct labels clusters;
};

static void gathered_init(struct gathered *g, const struct stream *in, const struct reference *r)
{
	const struct header *h = stream_header(in);
	*g = (struct gathered){.d.d = r->features,
		.d.sparse = {.d = r->features, .scale = 1e4 * r->shared_share},
		.x = r->genes ? -1 : header_find(h, "x"),
		.cell = header_find(h, "cell")};
	must(r->genes && expressed_init(&g->expressed, h, stream_name(in), r->genes, r->genes, r->name, &failure));
}

static void gathered_clear(struct gathered *g)
{
	g->d.n = g->bytes = 0;
	sparse_clear(&g->d.sparse);
}

static void gathered_release(struct gathered *g)
{
	expressed_release(&g->expressed);
	labels_release(&g->clusters);
	embeddings_release(&g->d);
}

/* For the list of clusters that are unlike the reference. */
static void keep_cell(struct gathered *g, const struct block *b, size_t i)
{
	struct predictions *to = g->keep;
	expressed_pack(&g->expressed, b, i, &to->cells);
	if (!g->clusters.classes)
		return;
	grow(to->cluster, to->cluster_cap, to->cells.n);
	to->cluster[to->cells.n - 1] = labels_at(&g->clusters, b, i);
}

/* Add the cells of b. there [b->rows] out: which have values */
static void transfer_gather(struct gathered *g, const struct block *b, uint8_t *there, const char *name)
{
	size_t k = g->d.d;
	if (g->x >= 0)
		grow(g->d.x, g->d.x_cap, (g->d.n + b->rows) * k);
	else
		grow(g->d.depth, g->d.depth_cap, g->d.n + b->rows);
	g->bytes += block_bytes(b);
	for (size_t i = 0; i < b->rows; i++) {
		const float *v = g->x < 0 ? NULL : (const float *)b->col[g->x].data + i * k;
		if (v)
			there[i] = !embedding_missing(v, k);
		else
			there[i] = (g->d.depth[g->d.n] = expressed_pack(&g->expressed, b, i, &g->d.sparse)) > 0;
		if (!there[i])
			continue;
		if (g->keep)
			keep_cell(g, b, i);
		if (v) {
			embedding_check(v, k, ((const uint64_t *)b->col[g->cell].data)[i], name);
			memcpy(g->d.x + g->d.n * k, v, k * sizeof *v);
		}
		g->d.n++;
	}
}

double depth_median(uint64_t *depth, size_t n, int *molecules)
{
	if (n)
		qsort(depth, n, sizeof *depth, compare_u64);
	double median = n ? (double)(depth[n / 2] + depth[(n - 1) / 2]) / 2 : NAN;
	if (n >= FEWEST_DEPTHS && (median > MOST_MOLECULES || (double)(depth[3 * n / 4] - depth[n / 4]) < least_spread * median))
		*molecules = 0;
	return median;
}

/* The depths of the new cells, malloced. */
static uint64_t *new_depths(struct gathered *g, struct stream *in, size_t *n)
{
	struct block b = {0};
	uint64_t *depth = NULL;
	uint8_t *there = NULL;
	size_t cap = 0, there_cap = 0;
	*n = 0;
	while (must_read_cells(in, &b)) {
		grow(there, there_cap, b.rows);
		transfer_gather(g, &b, there, stream_name(in));
		grow(depth, cap, *n + g->d.n + 1);
		memcpy(depth + *n, g->d.depth, g->d.n * sizeof *depth);
		*n += g->d.n;
		gathered_clear(g);
	}
	free(there);
	block_release(&b);
	return depth;
}

/* The genes that the new cells have. */
static void match_genes(struct reference *r, const struct gathered *g, const struct stream *in)
{
	const struct expressed *x = &g->expressed;
	say_matched(stream_name(in), r->name, &x->matched);
	r->shared_genes = x->shared;
	r->by_symbol = x->matched.by_symbol;
	r->shared = xcalloc(r->features + 1, 1);
	for (size_t i = 0; i < stream_header(in)->vocab.n; i++)
		if (x->feature[i] != EXPRESSED_NOT)
			r->shared[x->feature[i]] = 1;
	r->shared_share = 0;
	for (size_t j = 0; j < r->features; j++) {
		r->shared_share += r->shared[j] ? (double)r->kept.share[j] : 0;
		r->lacking |= !r->shared[j] && r->kept.share[j] > 0;
	}
	if (!r->lacking)
		r->shared_share = 1;
	r->few = r->shared_share < few_shared;
}

/* The reference without the genes that the new cells lack. */
static void drop_genes(struct reference *r)
{
	embeddings_keep(&r->d, r->shared);
	if (r->other.n)
		embeddings_keep(&r->other, r->shared);
	r->shared_share = 1;
	r->lacking = r->few = 0;
}

static void match_cells(struct reference *r)
{
	r->digest = embeddings_digests(&r->d, r->shared);
	r->digests = r->d.n;
	if (r->few)
		drop_genes(r);
	if (!r->rung)
		return;
	embeddings_thin(&r->d, ldexp(1, -(int)r->rung), r->options.seed);
	if (r->other.n)
		embeddings_thin(&r->other, ldexp(1, -(int)r->rung), r->options.seed);
}

void new_match(struct reference *r, struct stream *in)
{
	struct gathered g;
	size_t n;
	gathered_init(&g, in, r);
	match_genes(r, &g, in);
	FREED uint64_t *depth = new_depths(&g, in, &n);
	r->molecules = r->kept.molecules;
	r->new_depth = depth_median(depth, n, &r->molecules);
	r->depth = r->kept.depth * r->shared_share;
	int deeper = n && r->new_depth < deep * r->depth;
	r->rung = deeper && r->molecules ? saved_rung(r->new_depth / r->depth, r->kept.rungs) : 0;
	if (deeper && !r->molecules)
		warn("the values are sums of %.3g a new cell and %.3g a cell of the reference, which are no molecules: the reference is not thinned",
			r->new_depth, r->depth);
	if (r->rung)
		warn("the new cells have %.3g molecules of shared genes, those of the reference %.3g: the reference is thinned to %.3g of them",
			r->new_depth, r->depth, ldexp(1, -(int)r->rung));
	if (r->d.s)
		match_cells(r);
	else
		must(saved_read(&r->kept, r->rung, &r->fit, &r->options, &failure));
	gathered_release(&g);
}

/* Score the gathered cells, those that are there of the rows from `first` on. */
static void score_gathered(struct predictions *p, size_t first, struct gathered *g, struct reference *r)
{
	struct calibrated *c = &r->fit.calibrated;
	size_t k = r->kept.classes.n, n = g->d.n, at = 0;
	grow(p->logit, p->logit_cap, (p->scored + n + 1) * k);
	grow(p->far, p->far_cap, p->scored + n + 1);
	grow(p->class, p->class_cap, p->scored + n + 1);
	double *logit = p->logit + p->scored * k;
	if (n)
		method_score(&r->fit.method, &g->d, NULL, n, logit, p->far + p->scored);
	struct decision d = {.p = xmalloc(k * sizeof *d.p), .in_set = xmalloc(k)};
	for (size_t i = first; i < p->n; i++) {
		p->known[i] = (uint8_t)(p->there[i] && r->digest && embeddings_among(r->digest, r->digests, &g->d, at));
		if (!p->there[i])
			continue;
		transfer_decide(&c->rule, logit + at * k, p->far[p->scored + at], &d);
		p->class[p->scored + at] = d.class;
		calibrated_add(c, &d, &g->d, at++);
	}
	free_all(d.p, d.in_set);
	p->scored += n;
	gathered_clear(g);
}

void new_predict(struct predictions *p, struct stream *in, struct reference *r)
{
	struct block b = {0};
	struct gathered g;
	size_t first = 0;
	*p = (struct predictions){.in = in, .cells = {.d = r->features, .scale = 1e4 * r->shared_share}};
	gathered_init(&g, in, r);
	g.keep = transfer_set.unlike ? p : NULL;
	must(transfer_set.clusters &&
		labels_init(&g.clusters, stream_header(in), transfer_set.clusters, &p->clusters, LABEL_VALUES, stream_name(in), &failure));
	while (must_read_cells(in, &b)) {
		grow(p->there, p->there_cap, p->n + b.rows);
		grow(p->known, p->known_cap, p->n + b.rows);
		transfer_gather(&g, &b, p->there + p->n, stream_name(in));
		p->n += b.rows;
		if (p->n - first >= TOGETHER || g.bytes >= BYTES) {
			score_gathered(p, first, &g, r);
			first = p->n;
			progress_cells(p->n, stream_expected(in));
		}
	}
	must(p->clusters.n > 1 && 2 * p->clusters.n > p->n &&
		error_set(&failure, "%s: column '%s' has %zu values in %zu cells, expected clusters of many cells, as in leiden",
			stream_name(in), transfer_set.clusters, p->clusters.n, p->n));
	score_gathered(p, first, &g, r);
	block_release(&b);
	gathered_release(&g);
}

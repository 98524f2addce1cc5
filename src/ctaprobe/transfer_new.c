/* ctaprobe transfer: the new cells, and the depth of the reference next to theirs. */
#include "cli.h"
#include "transfer.h"

#include "base/sort.h"
#include "cells/copies.h"
#include "cells/expressed.h"
#include "label/label.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 2048, BYTES = 64 << 20 }; /* so many cells, or bytes of them, are predicted at once */

/* The reference is thinned if new cells have fewer than this share of its molecules. */
static const double deep = 0.5;
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
	const struct vocab *genes = &stream_header(r->d.s)->vocab;
	*g = (struct gathered){.d.d = r->d.d, .d.sparse.d = r->d.d, .x = r->d.x ? header_find(h, "x") : -1, .cell = header_find(h, "cell")};
	must(!r->d.x && expressed_init(&g->expressed, h, stream_name(in), genes, genes, stream_name(r->d.s), &failure));
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
			there[i] = (g->d.depth[g->d.n] = expressed_add(&g->expressed, b, i, &g->d.sparse)) > 0;
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

int new_next(struct stream *in, struct block *b)
{
	int got = must_read(in, b);
	must(got && copies_refuse(b, stream_name(in), &failure));
	return got;
}

/* The median of depth [n]; NaN: n is 0. molecules becomes 0 if these are sums of other values, such as reads or transcripts per million:
 * they are larger than those of molecules, or nearly equal. */
static double median_depth(uint64_t *depth, size_t n, int *molecules)
{
	qsort(depth, n, sizeof *depth, compare_u64);
	double median = n ? (double)(depth[n / 2] + depth[(n - 1) / 2]) / 2 : NAN;
	if (n >= FEWEST_DEPTHS && (median > MOST_MOLECULES || (double)(depth[3 * n / 4] - depth[n / 4]) < least_spread * median))
		*molecules = 0;
	return median;
}

void new_match_depth(struct reference *r, struct stream *in)
{
	struct gathered g;
	struct block b = {0};
	uint64_t *depth = NULL;
	uint8_t *there = NULL;
	size_t n = 0, cap = 0, there_cap = 0;
	gathered_init(&g, in, r);
	while (new_next(in, &b)) {
		grow(there, there_cap, b.rows);
		transfer_gather(&g, &b, there, stream_name(in));
		grow(depth, cap, n + g.d.n + 1);
		memcpy(depth + n, g.d.depth, g.d.n * sizeof *depth);
		n += g.d.n;
		gathered_clear(&g);
	}
	r->genes = g.expressed.shared;
	r->by_symbol = g.expressed.matched.by_symbol;
	r->molecules = 1;
	r->new_depth = median_depth(depth, n, &r->molecules);
	grow(depth, cap, r->d.n + 1);
	memcpy(depth, r->d.depth, r->d.n * sizeof *depth);
	r->depth = median_depth(depth, r->d.n, &r->molecules);
	int deeper = n && r->new_depth < deep * r->depth;
	r->thinned = deeper && r->molecules ? r->new_depth / r->depth : 1;
	if (deeper && !r->molecules)
		warn("the values are sums of %.3g a new cell and %.3g a cell of the reference, which are no molecules: the reference is not thinned",
			r->new_depth, r->depth);
	if (r->thinned < 1) {
		warn("the new cells have %.3g molecules of shared genes, those of the reference %.3g: the reference is thinned to match",
			r->new_depth, r->depth);
		embeddings_thin(&r->d, r->thinned, r->options.seed);
		if (r->other.n)
			embeddings_thin(&r->other, r->thinned, r->options.seed);
		memset(r->cells, 0, r->detail.labels * sizeof *r->cells);
		for (size_t i = 0; i < r->d.n; i++)
			r->cells[r->d.y[i]]++;
	}
	gathered_release(&g);
	block_release(&b);
	free_all(depth, there);
}

/* Score the gathered cells, those that are there of the rows from `first` on. */
static void score_gathered(struct predictions *p, size_t first, struct gathered *g, const struct reference *r, struct calibrated *c)
{
	size_t k = r->classes.n, n = g->d.n, at = 0;
	grow(p->logit, p->logit_cap, (p->scored + n + 1) * k);
	grow(p->far, p->far_cap, p->scored + n + 1);
	grow(p->class, p->class_cap, p->scored + n + 1);
	double *logit = p->logit + p->scored * k;
	if (n)
		method_score(&r->method, &g->d, NULL, n, logit, p->far + p->scored);
	struct decision d = {.p = xmalloc(k * sizeof *d.p), .in_set = xmalloc(k)};
	for (size_t i = first; i < p->n; i++) {
		p->known[i] = (uint8_t)(p->there[i] && embeddings_among(r->digest, r->digests, &g->d, at));
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

void new_predict(struct predictions *p, struct stream *in, const struct reference *r, struct calibrated *c)
{
	struct block b = {0};
	struct gathered g;
	size_t first = 0;
	*p = (struct predictions){.in = in, .cells.d = r->d.d};
	gathered_init(&g, in, r);
	g.keep = transfer_set.unlike ? p : NULL;
	must(transfer_set.clusters &&
		labels_init(&g.clusters, stream_header(in), transfer_set.clusters, &p->clusters, LABEL_VALUES, stream_name(in), &failure));
	while (new_next(in, &b)) {
		grow(p->there, p->there_cap, p->n + b.rows);
		grow(p->known, p->known_cap, p->n + b.rows);
		transfer_gather(&g, &b, p->there + p->n, stream_name(in));
		p->n += b.rows;
		if (p->n - first >= TOGETHER || g.bytes >= BYTES) {
			score_gathered(p, first, &g, r, c);
			first = p->n;
			progress_cells(p->n, stream_expected(in));
		}
	}
	score_gathered(p, first, &g, r, c);
	block_release(&b);
	gathered_release(&g);
}

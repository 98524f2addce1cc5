/* ctaprobe transfer: the new cells, and the depth of the reference beside theirs. */
#include "transfer.h"

#include "cells/copies.h"

#include <stdlib.h>
#include <string.h>

/* The reference is thinned if new cells have fewer than this share of its molecules. */
static const double deep = 0.5;

void gathered_init(struct gathered *g, const struct stream *in, const struct reference *r)
{
	const struct header *h = stream_header(in);
	const struct vocab *genes = &stream_header(r->d.s)->vocab;
	*g = (struct gathered){.d.d = r->d.d, .d.sparse.d = r->d.d, .x = r->d.x ? header_find(h, "x") : -1, .cell = header_find(h, "cell")};
	must(!r->d.x && expressed_init(&g->expressed, h, stream_name(in), genes, genes, stream_name(r->d.s), &failure));
}

void gathered_release(struct gathered *g)
{
	expressed_release(&g->expressed);
	embeddings_release(&g->d);
	free(g->there);
}

void gather(struct gathered *g, const struct block *b, size_t before, const char *name)
{
	size_t k = g->d.d;
	grow(g->there, g->there_cap, before + b->rows);
	if (g->x >= 0)
		grow(g->d.x, g->d.x_cap, (g->d.n + b->rows) * k);
	else
		grow(g->d.depth, g->d.depth_cap, g->d.n + b->rows);
	for (size_t i = 0; i < b->rows; i++) {
		const float *v = g->x < 0 ? NULL : (const float *)b->col[g->x].data + i * k;
		if (v)
			g->there[before + i] = !embedding_missing(v, k);
		else
			g->there[before + i] = (g->d.depth[g->d.n] = expressed_add(&g->expressed, b, i, &g->d.sparse)) > 0;
		if (!g->there[before + i])
			continue;
		if (v) {
			embedding_check(v, k, ((const uint64_t *)b->col[g->cell].data)[i], name);
			memcpy(g->d.x + g->d.n * k, v, k * sizeof *v);
		}
		g->d.n++;
	}
}

int next_block(struct stream *in, struct block *b)
{
	int got = must_read(in, b);
	must(got && copies_refuse(b, stream_name(in), &failure));
	return got;
}

/* Compare the depth of the reference with that of the new cells, and thin it if it is much deeper. */
void match_depth(struct reference *r, struct stream *in, uint32_t seed)
{
	struct gathered g;
	struct block b = {0};
	uint64_t *depth = NULL;
	size_t n = 0, cap = 0;
	must(stream_index(in, &failure));
	gathered_init(&g, in, r);
	while (next_block(in, &b)) {
		gather(&g, &b, 0, stream_name(in));
		grow(depth, cap, n + g.d.n + 1);
		memcpy(depth + n, g.d.depth, g.d.n * sizeof *depth);
		n += g.d.n;
		g.d.n = 0;
		sparse_clear(&g.d.sparse);
	}
	r->genes = g.expressed.shared;
	r->by_symbol = g.expressed.matched.by_symbol;
	r->depth = median_depth(r->d.depth, r->d.n);
	r->new_depth = median_depth(depth, n);
	r->thinned = n && r->new_depth < deep * r->depth ? r->new_depth / r->depth : 1;
	if (r->thinned < 1) {
		warn("the new cells have %.3g molecules of shared genes, those of the reference %.3g: the reference is thinned to match",
			r->new_depth, r->depth);
		thin_reference(&r->d, r->thinned, seed);
		if (r->other.n)
			thin_reference(&r->other, r->thinned, seed);
		memset(r->cells, 0, r->detail.labels * sizeof *r->cells);
		for (size_t i = 0; i < r->d.n; i++)
			r->cells[r->d.y[i]]++;
	}
	gathered_release(&g);
	block_release(&b);
	free(depth);
}

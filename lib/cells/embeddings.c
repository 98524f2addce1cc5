#include "cells/embeddings.h"

#include "base/sort.h"
#include "cells/expressed.h"
#include "cells/thin.h"

#include <xxhash.h>

void embeddings_move(struct embeddings *d, size_t to, size_t from)
{
	if (d->x)
		memmove(d->x + to * d->d, d->x + from * d->d, d->d * sizeof *d->x);
	else
		sparse_move(&d->sparse, to, from);
	d->y[to] = d->y[from];
	d->row[to] = d->row[from];
	d->cell[to] = d->cell[from];
	if (d->group)
		d->group[to] = d->group[from];
	if (d->part)
		d->part[to] = d->part[from];
	if (d->depth)
		d->depth[to] = d->depth[from];
}

void embeddings_resize(struct embeddings *d, size_t n)
{
	d->n = n;
	if (!d->x)
		d->sparse.n = n;
}

void embeddings_release(struct embeddings *d)
{
	stream_free(d->s);
	free(d->x);
	sparse_release(&d->sparse);
	free_all(d->y, d->target, d->group, d->part, d->cell, d->depth, d->row);
	*d = (struct embeddings){0};
}

static void *copy_of(const void *x, size_t size)
{
	return x ? memcpy(xmalloc(size + 1), x, size) : NULL;
}

void embeddings_copy(struct embeddings *to, const struct embeddings *from)
{
	const struct sparse *x = &from->sparse;
	size_t n = from->n;
	*to = (struct embeddings){.s = from->s, .rows = from->rows, .n = n, .d = from->d};
	to->sparse = (struct sparse){.n = n, .d = x->d, .values = x->values};
	to->sparse.offset = copy_of(x->offset, (n + 1) * sizeof *x->offset);
	to->sparse.packed = copy_of(x->packed, x->offset[n]);
	to->y = copy_of(from->y, n * sizeof *to->y);
	to->cell = copy_of(from->cell, n * sizeof *to->cell);
	to->row = copy_of(from->row, n * sizeof *to->row);
	to->depth = copy_of(from->depth, n * sizeof *to->depth);
	to->group = copy_of(from->group, n * sizeof *to->group);
}

float *embeddings_rows(const struct embeddings *d, const uint32_t *row, size_t n)
{
	float *x = xmalloc(n * d->d * sizeof *x);
	for (size_t i = 0; i < n; i++)
		memcpy(x + i * d->d, d->x + row[i] * d->d, d->d * sizeof *x);
	return x;
}

static void drop_empty(struct embeddings *d)
{
	size_t n = 0;
	for (size_t i = 0; i < d->n; i++)
		if (d->depth[i])
			embeddings_move(d, n++, i);
	embeddings_resize(d, n);
}

void embeddings_thin(struct embeddings *d, double share, uint32_t seed)
{
	expressed_thin(&d->sparse, d->depth, d->cell, seed, thin_before(stream_header(d->s)), share);
	drop_empty(d);
}

void embeddings_keep(struct embeddings *d, const uint8_t *keep)
{
	sparse_keep(&d->sparse, keep, d->depth);
	drop_empty(d);
}

float *embeddings_shares(const struct embeddings *d)
{
	double total = 0;
	FREED double *sum = xcalloc(d->d + 1, sizeof *sum);
	float *share = xmalloc((d->d + 1) * sizeof *share);
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < d->n; i++) {
		sparse_counts(&d->sparse, i, &r);
		for (size_t j = 0; j < r.n; j++)
			sum[r.column[j]] += (double)r.count[j];
		total += (double)d->depth[i];
	}
	for (size_t j = 0; j < d->d; j++)
		share[j] = (float)(sum[j] / total);
	return share;
}

enum { FEWEST_VALUES = 10 }; /* of a cell, to be told from others by its digest */

/* Of the values of cell i, in any order; 0: too few to tell it from others. */
static uint64_t digest_of(const struct embeddings *d, size_t i, const uint8_t *keep)
{
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	uint64_t sum = 1;
	size_t n = 0;
	if (d->x)
		return XXH3_64bits(d->x + i * d->d, d->d * sizeof *d->x);
	sparse_counts(&d->sparse, i, &r);
	for (size_t j = 0; j < r.n; j++)
		if (!keep || keep[r.column[j]]) {
			sum += XXH3_64bits_withSeed(r.count + j, sizeof *r.count, r.column[j]);
			n++;
		}
	sum = n < FEWEST_VALUES ? 0 : sum;
	return sum;
}

uint64_t *embeddings_digests(const struct embeddings *d, const uint8_t *keep)
{
	uint64_t *x = xmalloc((d->n + 1) * sizeof *x);
	for (size_t i = 0; i < d->n; i++)
		x[i] = digest_of(d, i, keep);
	qsort(x, d->n, sizeof *x, compare_u64);
	return x;
}

int embeddings_among(const uint64_t *sorted, size_t n, const struct embeddings *d, size_t i)
{
	uint64_t own = digest_of(d, i, NULL);
	return own && bsearch(&own, sorted, n, sizeof *sorted, compare_u64);
}

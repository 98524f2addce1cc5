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

float *embeddings_rows(const struct embeddings *d, const uint32_t *row, size_t n)
{
	float *x = xmalloc(n * d->d * sizeof *x);
	for (size_t i = 0; i < n; i++)
		memcpy(x + i * d->d, d->x + row[i] * d->d, d->d * sizeof *x);
	return x;
}

void embeddings_thin(struct embeddings *d, double share, uint32_t seed)
{
	size_t n = 0;
	expressed_thin(&d->sparse, d->depth, d->cell, seed, thin_before(stream_header(d->s)), share);
	for (size_t i = 0; i < d->n; i++)
		if (d->depth[i])
			embeddings_move(d, n++, i);
	embeddings_resize(d, n);
}

enum { FEWEST_VALUES = 10 }; /* of a cell, to be told from others by its digest */

/* Of the values of cell i, in any order; 0: too few to tell it from others. */
static uint64_t digest_of(const struct embeddings *d, size_t i)
{
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	uint64_t sum = 1;
	if (d->x)
		return XXH3_64bits(d->x + i * d->d, d->d * sizeof *d->x);
	sparse_row(&d->sparse, i, &r);
	for (size_t j = 0; j < r.n; j++)
		sum += XXH3_64bits_withSeed(r.value + j, sizeof *r.value, r.column[j]);
	sum = r.n < FEWEST_VALUES ? 0 : sum;
	return sum;
}

uint64_t *embeddings_digests(const struct embeddings *d)
{
	uint64_t *x = xmalloc((d->n + 1) * sizeof *x);
	for (size_t i = 0; i < d->n; i++)
		x[i] = digest_of(d, i);
	qsort(x, d->n, sizeof *x, compare_u64);
	return x;
}

int embeddings_among(const uint64_t *sorted, size_t n, const struct embeddings *d, size_t i)
{
	uint64_t own = digest_of(d, i);
	return own && bsearch(&own, sorted, n, sizeof *sorted, compare_u64);
}

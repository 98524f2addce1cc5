/* ctaprobe transfer: the cells of --calibration beside those of the reference. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* A digest of each embedding, or of the counts, sorted. Malloced. */
static uint64_t *digests(const struct embeddings *d)
{
	uint64_t *x = xmalloc((d->n + 1) * sizeof *x);
	for (size_t i = 0; i < d->n; i++)
		x[i] = d->x ? XXH3_64bits(d->x + i * d->d, d->d * sizeof *d->x)
			    : XXH3_64bits(d->sparse.value + d->sparse.offset[i],
				      (d->sparse.offset[i + 1] - d->sparse.offset[i]) * sizeof(float));
	qsort(x, d->n, sizeof *x, by_value);
	return x;
}

void refuse_shared(const struct embeddings *reference, const struct embeddings *other, const char *path)
{
	uint64_t *a = digests(reference), *b = digests(other);
	size_t shared = 0;
	for (size_t i = 0, k = 0; i < other->n; i++) {
		while (k < reference->n && a[k] < b[i])
			k++;
		shared += k < reference->n && a[k] == b[i];
	}
	free(a);
	free(b);
	if (2 * shared > other->n)
		die("--calibration: %s: %zu of its %zu cells have the embedding of a cell of %s: expected other cells",
			stream_name(other->s), shared, other->n, path);
}

void drop_unknown(struct embeddings *d, size_t classes, const char *path)
{
	size_t n = 0;
	for (size_t i = 0; i < d->n; i++) {
		if (d->y[i] >= classes)
			continue;
		if (d->x)
			memmove(d->x + n * d->d, d->x + i * d->d, d->d * sizeof *d->x);
		else
			sparse_move(&d->sparse, n, i);
		d->y[n] = d->y[i];
		d->row[n] = d->row[i];
		d->cell[n] = d->cell[i];
		if (d->group)
			d->group[n] = d->group[i];
		n++;
	}
	if (n < d->n)
		warn("%s: %zu of %zu cells have classes that %s does not have, and are left out", stream_name(d->s), d->n - n, d->n, path);
	d->n = n;
	if (!d->x)
		d->sparse.n = n;
	if (!n)
		die("%s: no cell has a class of %s", stream_name(d->s), path);
}

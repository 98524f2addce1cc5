/* ctaprobe transfer: cells that are left out, and cells that are in two streams. */
#include "transfer.h"
#include "cli.h"

#include "base/sort.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FEWEST_VALUES = 10 }; /* of a cell, to be told from others by its digest */

/* Of the values of cell i, in any order; 0: too few to tell it from others. */
static uint64_t digest(const struct embeddings *d, size_t i)
{
	struct sparse_row r = {0};
	uint64_t sum = 1;
	if (d->x)
		return XXH3_64bits(d->x + i * d->d, d->d * sizeof *d->x);
	sparse_row(&d->sparse, i, &r);
	for (size_t j = 0; j < r.n; j++)
		sum += XXH3_64bits_withSeed(r.value + j, sizeof *r.value, r.column[j]);
	sum = r.n < FEWEST_VALUES ? 0 : sum;
	sparse_row_release(&r);
	return sum;
}

uint64_t *digests(const struct embeddings *d)
{
	uint64_t *x = xmalloc((d->n + 1) * sizeof *x);
	for (size_t i = 0; i < d->n; i++)
		x[i] = digest(d, i);
	qsort(x, d->n, sizeof *x, compare_u64);
	return x;
}

int is_among(const uint64_t *sorted, size_t n, const struct embeddings *d, size_t i)
{
	uint64_t own = digest(d, i);
	return own && bsearch(&own, sorted, n, sizeof *sorted, compare_u64);
}

void refuse_shared(const struct embeddings *reference, const struct embeddings *other, const char *path)
{
	uint64_t *of = digests(reference);
	size_t shared = 0;
	for (size_t i = 0; i < other->n; i++)
		shared += (size_t)is_among(of, reference->n, other, i);
	free(of);
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
		embeddings_move(d, n++, i);
	}
	if (n < d->n)
		warn("%s: %zu of %zu cells have classes that %s does not have, and are left out", stream_name(d->s), d->n - n, d->n, path);
	embeddings_resize(d, n);
	if (!n)
		die("%s: no cell has a class of %s", stream_name(d->s), path);
}

void warn_names(const struct classes *c, const char *label)
{
	size_t numbers = 0;
	const char *set = NULL;
	for (size_t k = 0; k < c->n; k++) {
		numbers += c->name[k][strspn(c->name[k], "0123456789")] == 0;
		set = strstr(c->name[k], BETWEEN) ? c->name[k] : set;
	}
	if (numbers == c->n)
		warn("column '%s' has numbers, as clusters do: name their types in the reference first", label);
	if (set)
		warn("class '%s' has '%s' in its name, which separates classes in label_set: read in_set, or rename it", set, BETWEEN);
}

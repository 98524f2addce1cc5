#include "anndata/crosscheck.h"

#include "base/sort.h"

#include "genes/gene_name.h"

#include <xxhash.h>

static const char *const sums[CROSSCHECK_SUMS] = {"n_counts", "total_counts", "nCount_RNA", "raw_sum"};

static struct dataframe_column *column_of_sums(struct h5ad *h, const char *name)
{
	struct dataframe_column *c = dataframe_find(&h->obs, name);
	return c && (c->kind == DATAFRAME_I64 || c->kind == DATAFRAME_U64 || c->kind == DATAFRAME_F64) ? c : NULL;
}

void crosscheck_init(struct crosscheck *k, struct h5ad *h)
{
	*k = (struct crosscheck){.h = h};
	for (size_t i = 0; i < CROSSCHECK_SUMS; i++)
		k->sum[i].from = column_of_sums(h, sums[i]);
}

void crosscheck_release(struct crosscheck *k)
{
	dataframe_values_release(&k->values);
	free(k->name);
	*k = (struct crosscheck){0};
}

static uint64_t hash_name(const struct texts *t, size_t i)
{
	return XXH3_64bits(t->bytes + t->offset[i], t->offset[i + 1] - t->offset[i]);
}

/* Is this the sum? A float32 holds about 7 digits. */
static int is_sum(double says, double sum)
{
	return fabs(says - sum) <= 1e-6 * sum;
}

int crosscheck_sums(struct h5ad *h, const double *sum, size_t n, const char **column, struct error *e)
{
	RELEASED(dataframe_values_release) struct dataframe_values v = {0};
	int agrees = -1;
	n = n < h->obs.nrow ? n : h->obs.nrow;
	for (size_t s = 0; s < CROSSCHECK_SUMS && n >= CROSSCHECK_CELLS && agrees != 1; s++) {
		struct dataframe_column *c = column_of_sums(h, sums[s]);
		size_t good = 0;
		if (!c)
			continue;
		if (dataframe_read(c, 0, n, &v, 1, e)) {
			agrees = -2;
			break;
		}
		for (size_t i = 0; i < n; i++)
			good += (size_t)is_sum(dataframe_number(c, &v, i), sum[i]);
		agrees = 10 * good >= 9 * n;
		*column = sums[s];
	}
	return agrees;
}

int crosscheck_rows(
	struct crosscheck *k, const struct texts *names, size_t first, const uint64_t *total, size_t n, int threads, struct error *e)
{
	for (size_t s = 0; s < CROSSCHECK_SUMS; s++) {
		struct dataframe_column *c = k->sum[s].from;
		if (c && dataframe_read(c, k->rows, n, &k->values, threads, e))
			return -1;
		for (size_t i = 0; c && i < n; i++) {
			double x = dataframe_number(c, &k->values, i), y = (double)total[i];
			if (k->h->mat.unlog && y > 0) /* it may be divided by a common factor of the counts */
				y *= fmax(1, rint(x / y));
			if (is_sum(x, y))
				continue;
			if (!k->sum[s].wrong++) {
				k->sum[s].first = k->rows + i;
				k->sum[s].total = total[i];
				k->sum[s].says = x;
			}
		}
	}
	grow(k->name, k->name_cap, k->rows + n);
	for (size_t i = 0; i < n; i++) {
		uint64_t name = k->name[k->rows + i] = hash_name(names, first + i), both[] = {name, total[i]};
		const uint64_t *at = names->offset + first + i;
		k->cells.names += name;
		k->cells.counts += XXH3_64bits(both, sizeof both);
		k->cells.numbers += gene_kind(names->bytes + at[0], at[1] - at[0]) == GENE_NUMBER;
	}
	k->cells.n = k->rows += n;
	return 0;
}

enum crosscheck_alike crosscheck_alike(const struct crosscheck_cells *a, const struct crosscheck_cells *b)
{
	if (!a->n || a->n != b->n || a->names != b->names)
		return ALIKE_NOT;
	return a->counts == b->counts ? ALIKE_CELLS : a->numbers == a->n ? ALIKE_NOT : ALIKE_NAMES;
}

/* Cells whose name another cell before them has; *twice is the hash of one such name. Sorts k->name. */
static uint64_t repeated_names(struct crosscheck *k, uint64_t *twice)
{
	uint64_t repeated = 0;
	qsort(k->name, k->rows, sizeof *k->name, compare_u64);
	for (uint64_t i = 1; i < k->rows; i++) {
		if (k->name[i] != k->name[i - 1])
			continue;
		repeated++;
		*twice = k->name[i];
	}
	return repeated;
}

/* The first cell from `row` on whose name has this hash. The names are read again, as few files need this. */
static uint64_t find_name(struct crosscheck *k, uint64_t row, uint64_t hash)
{
	RELEASED(texts_release) struct texts t = {0};
	for (size_t i = 0, n = 0; i == n && row < k->rows; row += i) {
		n = k->rows - row < 4096 ? k->rows - row : 4096;
		if (h5ad_cell_names(k->h, row, n, &t, NULL))
			break;
		for (i = 0; i < n && hash_name(&t, i) != hash;)
			i++;
	}
	return row;
}

static char *crosscheck_name_of(struct crosscheck *k, uint64_t row)
{
	RELEASED(texts_release) struct texts t = {0};
	char *name = h5ad_cell_names(k->h, row, 1, &t, NULL) ? NULL : texts_dup(&t, 0);
	return name ? name : xstrdup("?");
}

char *crosscheck_finding(struct crosscheck *k)
{
	uint64_t twice = 0;
	char *text = NULL, *name;
	for (size_t s = 0; s < CROSSCHECK_SUMS && !text; s++) {
		uint64_t wrong = k->sum[s].wrong;
		k->sum[s].wrong = 0;
		if (!wrong || wrong > k->rows / 10)
			continue;
		name = crosscheck_name_of(k, k->sum[s].first);
		text = xasprintf("%s: obs/%s is the sum of the counts, but not in %" PRIu64 " of %" PRIu64 " cells: in cell %" PRIu64
				 " ('%s') it is %.10g, and the counts sum to %" PRIu64 ": damaged, or changed in part",
			k->h->path, sums[s], wrong, k->rows, k->sum[s].first, name, k->sum[s].says, k->sum[s].total);
		free(name);
	}
	uint64_t repeated = text ? 0 : repeated_names(k, &twice);
	if (repeated) {
		uint64_t a = find_name(k, 0, twice), b = find_name(k, a + 1, twice);
		name = crosscheck_name_of(k, a);
		text = xasprintf("%s: %" PRIu64 " %s the name of another cell, such as cells %" PRIu64 " and %" PRIu64 " ('%s')",
			k->h->path, repeated, repeated == 1 ? "cell has" : "cells have", a, b, name);
		free(name);
		k->rows = 0;
	}
	return text;
}

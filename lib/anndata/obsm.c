/* Embeddings of an AnnData file. */
#include "anndata/reader.h"

enum { ROWS = 4096 };

static int obsm_read_rows(struct h5array *a, float *x, uint64_t n, int threads, struct error *e)
{
	size_t d = a->dim[1];
	FREED double *rows = xmalloc(ROWS * d * sizeof *rows);
	FREED void *raw = xmalloc(ROWS * d * a->size);
	for (uint64_t from = 0; from < n; from += ROWS) {
		size_t m = n - from < ROWS ? n - from : ROWS;
		if (h5array_read(a, from, m, raw, threads, e))
			return -1;
		number_f64(a->type, raw, m * d, rows);
		for (size_t i = 0; i < m * d; i++) {
			x[from * d + i] = (float)rows[i];
			if (isfinite(rows[i]) && !isfinite(x[from * d + i]))
				return error_set(
					e, "%s: cell %zu holds %g, which is too large for float32", a->where, from + i / d, rows[i]);
		}
	}
	return 0;
}

/* A group where an array is expected: what anndata says that it is. */
static int no_array(struct h5ad *h, const char *path, struct error *e)
{
	static const struct {
		const char *type, *is, *make;
	} known[] = {{"dataframe", "a data frame", ".to_numpy()"}, {"csr_matrix", "a sparse matrix", ".toarray()"},
		{"csc_matrix", "a sparse matrix", ".toarray()"}};
	RELEASED(texts_release) struct texts t = {0};
	const char *is = "a group", *make = NULL;
	if (store_attribute_texts(&h->store, path, "encoding-type", &t) == 0 && t.n)
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (texts_is(&t, 0, known[i].type)) {
				is = known[i].is;
				make = known[i].make;
			}
	return error_set(e, "%s: %s is %s, expected an array of numbers%s%s", h->path, path, is,
		make ? "; in Python, make it one with " : "", make ? make : "");
}

int h5ad_obsm(struct h5ad *h, const char *key, float **x, size_t *d, int threads, struct error *e)
{
	RELEASED(h5array_release) struct h5array a = {0};
	const char *group = h->reader->obsm;
	if (!group)
		return error_set(e, "%s: %s, which holds no embeddings", h->path, h->reader->name);
	FREED char *path = xasprintf("%s/%s", group, key);
	if (!*key || strchr(key, '/') || store_type(&h->store, group) != STORE_GROUP || !store_has(&h->store, path)) {
		if (store_type(&h->store, group) == STORE_ARRAY)
			return error_set(
				e, "%s: %s is as anndata before 0.7 wrote it: read and write the file once with anndata", h->path, group);
		FREED char *there = store_type(&h->store, group) == STORE_GROUP ? reader_names(h, group, "") : xstrdup("");
		return store_check(&h->store, 0, e) ? -1
			: *there                    ? error_set(e, "%s: %s has no '%s': it has %s", h->path, group, key, there)
						    : error_set(e, "%s: it has no embeddings in %s", h->path, group);
	}
	if (store_type(&h->store, path) == STORE_GROUP)
		return no_array(h, path, e);
	if (h5array_open(&a, &h->store, path, e))
		return -1;
	if (a.ndim != 2)
		return error_set(e, "%s: one dimension, expected two: %" PRIu64 " rows of numbers, one for each cell", a.where, h->ncell);
	if (!a.dim[1] || a.dim[0] != h->ncell || a.dim[1] > UINT32_MAX)
		return error_set(e, "%s: expected %" PRIu64 " rows of numbers, one for each cell", a.where, h->ncell);
	*d = a.dim[1];
	*x = xlarge(h->ncell * *d + 1, sizeof **x);
	return obsm_read_rows(&a, *x, h->ncell, threads, e);
}

#include "anndata/export_impl.h"

#include "base/json.h"
#include "anndata/obs.h"
#include "stream/panels.h"

static int export_wanted(const char *name, char *const *keep, size_t nkeep)
{
	for (size_t i = 0; i < nkeep; i++)
		if (strcmp(keep[i], name) == 0)
			return 1;
	return !nkeep;
}

/* Counts that are read again have these anew: cell is the row, n_counts the sum of the row. And one file has one panel. */
static int of_the_stream(const struct header *h, const char *name)
{
	return !strcmp(name, "cell") || !strcmp(name, "n_counts") || (panels_there(h) && !strcmp(name, PANEL_COLUMN));
}

/* What the index of obs is called: as in the file that the stream was made of, unless a column has this name. */
static const char *index_name(const struct h5ad_writer *w)
{
	const char *name = json_text(w->header->extra, HEADER_INDEX);
	int fits = w->index >= 0 && name && *name && !strchr(name, '/') && strcmp(name, ".");
	for (size_t i = 0; i < w->nobs && fits; i++)
		fits = strcmp(w->obs[i].name, name) != 0;
	return fits ? name : "_index";
}

static void make_obs(struct h5ad_writer *w, char *const *keep, size_t nkeep)
{
	const struct header *h = w->header;
	FREED char *hidden = xcalloc(h->ncol, 1);
	for (size_t i = 0; i < h->ncol; i++)
		if (header_missing_of(h, (int)i) >= 0)
			hidden[header_missing_of(h, (int)i)] = 1;
	RELEASED(h5_close) hid_t obs = h5out_group(&w->h5, w->h5.file, "obs", "dataframe", "0.2.0");
	w->obs = xcalloc(h->ncol, sizeof *w->obs);
	FREED char **order = xcalloc(h->ncol, sizeof *order);
	for (size_t i = 0; i < h->ncol; i++) {
		if (h->col[i].shape != SCALAR || hidden[i] || (int)i == w->index || !export_wanted(h->col[i].name, keep, nkeep))
			continue;
		if (!nkeep && w->gene >= 0 && w->index >= 0 && of_the_stream(h, h->col[i].name))
			continue;
		struct obs_out *o = &w->obs[w->nobs];
		*o = (struct obs_out){.col = (int)i, .missing = header_missing_of(h, (int)i)};
		o->name = export_link_name(w->obs, w->nobs, obs_source_name(h->col[i].name));
		order[w->nobs++] = o->name;
		export_obs_column(w, obs, o);
	}
	h5out_array(&w->h5, &w->names, obs, index_name(w), w->h5.text, w->h5.text, 0, "string-array");
	h5out_text_attribute(&w->h5, obs, "_index", index_name(w));
	h5out_text_list(&w->h5, obs, "column-order", order, w->nobs);
}

/* One row a gene, label or dimension. */
static void make_var(struct h5ad_writer *w)
{
	const struct header *h = w->header;
	RELEASED(h5_close) hid_t var = h5out_group(&w->h5, w->h5.file, "var", "dataframe", "0.2.0");
	char symbol[] = "symbol", *column = symbol;
	h5out_text_attribute(&w->h5, var, "_index", "_index");
	h5out_text_list(&w->h5, var, "column-order", &column, w->gene >= 0);
	if (w->gene >= 0) {
		h5out_texts(&w->h5, var, "_index", h->vocab.id, h->vocab.n);
		h5out_texts(&w->h5, var, "symbol", h->vocab.symbol, h->vocab.n);
	} else {
		size_t n = h->col[w->main].n;
		const cJSON *labels = json_get(h->extra, "labels"), *l = NULL;
		if (cJSON_IsArray(labels) && cJSON_GetArraySize(labels) == (int)n)
			l = labels->child;
		char **name = xcalloc(n, sizeof *name);
		for (size_t i = 0; i < n; i++, l = l ? l->next : NULL)
			name[i] = cJSON_IsString(l) ? xstrdup(l->valuestring) : xasprintf("%zu", i);
		h5out_texts(&w->h5, var, "_index", name, n);
		free_list(name, n);
	}
}

static void make_matrices(struct h5ad_writer *w)
{
	const struct header *h = w->header;
	int64_t zero = 0;
	if (w->gene >= 0) {
		RELEASED(h5_close) hid_t x = h5out_group(&w->h5, w->h5.file, "X", "csr_matrix", "0.1.0");
		h5out_array(&w->h5, &w->data, x, "data", H5T_NATIVE_FLOAT, H5T_NATIVE_FLOAT, 0, NULL);
		h5out_array(&w->h5, &w->indices, x, "indices", H5T_NATIVE_INT32, H5T_NATIVE_INT32, 0, NULL);
		h5out_array(&w->h5, &w->indptr, x, "indptr", H5T_NATIVE_INT64, H5T_NATIVE_INT64, 0, NULL);
		h5out_append(&w->h5, &w->indptr, &zero, 1);
	} else {
		hid_t type = export_native(w, h->col[w->main].type);
		h5out_array(&w->h5, &w->x, w->h5.file, "X", type, type, h->col[w->main].n, "array");
	}
	RELEASED(h5_close) hid_t obsm = h5out_group(&w->h5, w->h5.file, "obsm", "dict", "0.1.0");
	w->obsm = xcalloc(h->ncol, sizeof *w->obsm);
	for (size_t i = 0; i < h->ncol; i++) {
		if (h->col[i].shape != FIXED || (int)i == w->main)
			continue;
		struct obs_out *o = &w->obsm[w->nobsm];
		o->col = (int)i;
		o->name = export_link_name(w->obsm, w->nobsm, h->col[i].name);
		h5out_array(&w->h5, &o->values, obsm, o->name, export_native(w, h->col[i].type), export_native(w, h->col[i].type),
			h->col[i].n, "array");
		w->nobsm++;
	}
}

static void make_rest(struct h5ad_writer *w)
{
	static const char *const empty[] = {"varm", "obsp", "varp", "layers"};
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
		H5Gclose(h5out_group(&w->h5, w->h5.file, empty[i], "dict", "0.1.0"));
	RELEASED(h5_close) hid_t uns = h5out_group(&w->h5, w->h5.file, "uns", "dict", "0.1.0");
	FREED char *text = cJSON_PrintUnformatted(w->header->provenance);
	h5out_string(&w->h5, uns, H5AD_PROVENANCE, text);
}

static int find_matrix(struct h5ad_writer *w, const char *name, struct error *e)
{
	const struct header *h = w->header;
	w->gene = w->count = w->main = -1;
	w->index = header_find(h, "barcode");
	if (w->index >= 0 && h->col[w->index].type != STR)
		w->index = -1;
	if (h->kind == STREAM_COUNTS) {
		if (!h->vocab.n)
			return error_set(e, "%s: no gene table, so the columns of X have no names", name);
		w->gene = header_need(h, "gene", U32, RAGGED, name, e);
		w->count = header_need(h, "count", U32, RAGGED, name, e);
		if (w->gene < 0 || w->count < 0)
			return -1;
		if (h->col[w->gene].group != h->col[w->count].group)
			return error_set(e, "%s: gene and count are not in one group", name);
		return 0;
	}
	if (!kind_matrix(h->kind))
		return error_set(e,
			"%s: a %s stream has no matrix that AnnData could hold: export counts, an "
			"embedding or a prediction (tokens keep the rank of a gene, not its count)",
			name, kind_name(h->kind));
	if (h->kind == STREAM_PREDICTION && header_find(h, "logit") < 0 && h->ngroup)
		return error_set(e, "%s: predictions of genes: AnnData has no place for lists; use -O tsv", name);
	if (h->kind == STREAM_PREDICTION && header_find(h, "logit") < 0 && header_find(h, "predicted") >= 0)
		return error_set(
			e, "%s: predictions of numbers are not a matrix: add them to the .h5ad of the cells with --into FILE", name);
	w->main = header_need(h, kind_matrix(h->kind), COLUMN_TYPES, FIXED, name, e);
	return w->main < 0 ? -1 : 0;
}

struct h5ad_writer *h5ad_writer_new(
	const char *path, const char *shown, const struct header *h, char *const *keep, size_t nkeep, const char *name, struct error *e)
{
	struct h5ad_writer *w = xcalloc(1, sizeof *w);
	w->header = h;
	int bad = find_matrix(w, name, e);
	for (size_t i = 0; i < nkeep && !bad; i++)
		bad = header_need(h, keep[i], COLUMN_TYPES, SCALAR, name, e) < 0;
	if (bad) {
		h5ad_writer_free(w);
		return NULL;
	}
	h5out_open(&w->h5, path, shown);
	if (!w->h5.failed) {
		h5out_encoding(&w->h5, w->h5.file, "anndata", "0.1.0");
		make_obs(w, keep, nkeep);
		make_var(w);
		make_matrices(w);
		make_rest(w);
	}
	if (w->h5.failed) {
		error_set(e, "%s", w->h5.error.msg);
		h5ad_writer_free(w);
		return NULL;
	}
	return w;
}

static void add_names(struct h5ad_writer *w, const struct block *b, size_t rows)
{
	if (w->index >= 0) {
		h5out_append(&w->h5, &w->names, export_texts(w, b, w->index, NULL, rows), rows);
		return;
	}
	char **s = export_scratch(w, rows * sizeof *s);
	w->pool = grow_bytes(w->pool, &w->pool_cap, rows * 24, 1);
	for (size_t r = 0; r < rows; r++) {
		s[r] = w->pool + r * 24;
		snprintf(s[r], 24, "%llu", (unsigned long long)(w->rows + r));
	}
	h5out_append(&w->h5, &w->names, s, rows);
}

/*
 * Write X/name [n] again with another type of the same values in memory. The array a, which is not open any more, is open at its end
 * afterwards.
 */
static void retype(struct h5ad_writer *w, struct h5out_array *a, const char *name, hid_t type, uint64_t n)
{
	enum { ITEMS = 4096 };
	RELEASED(h5_close) hid_t x = h5out_id(&w->h5, H5Gopen2(w->h5.file, "X", H5P_DEFAULT));
	hid_t from = h5out_id(&w->h5, H5Dopen2(x, name, H5P_DEFAULT));
	double part[ITEMS]; /* large enough for any type */
	h5out_array(&w->h5, a, x, "retyped", type, type, 0, NULL);
	for (hsize_t at = 0, m; at < n && !w->h5.failed; at += m) {
		m = n - at < ITEMS ? n - at : ITEMS;
		RELEASED(h5_close) hid_t mem = h5out_id(&w->h5, H5Screate_simple(1, &m, NULL)), file = h5out_id(&w->h5, H5Dget_space(from));
		h5out_ok(&w->h5, H5Sselect_hyperslab(file, H5S_SELECT_SET, &at, NULL, &m, NULL));
		h5out_ok(&w->h5, H5Dread(from, type, mem, file, H5P_DEFAULT, part));
		h5out_append(&w->h5, a, part, m);
	}
	H5Dclose(from);
	h5out_ok(&w->h5, H5Ldelete(x, name, H5P_DEFAULT));
	h5out_ok(&w->h5, H5Lmove(x, "retyped", x, name, H5P_DEFAULT, H5P_DEFAULT));
}

/* Append counts [n] to data: float32, scanpy's usual type, until one comes that float32 cannot hold. */
static void add_data(struct h5ad_writer *w, const uint32_t *count, size_t n)
{
	int round = 0;
	for (size_t i = 0; i < n; i++)
		round |= (double)(float)count[i] != (double)count[i];
	if (round && !w->wide) {
		h5out_close(&w->h5, &w->data);
		retype(w, &w->data, "data", H5T_NATIVE_DOUBLE, w->items);
		w->wide = 1;
	}
	float *x = export_scratch(w, n * sizeof(double));
	double *wide = (double *)(void *)x;
	for (size_t i = 0; i < n; i++)
		if (w->wide)
			wide[i] = count[i];
		else
			x[i] = (float)count[i];
	h5out_append(&w->h5, &w->data, x, n);
}

static void add_counts(struct h5ad_writer *w, const struct block *b, size_t rows)
{
	const uint64_t *o = b->group[w->header->col[w->gene].group].offset;
	size_t n = o[rows];
	add_data(w, b->col[w->count].data, n);
	int32_t *g = export_scratch(w, n * sizeof *g);
	for (size_t i = 0; i < n; i++)
		g[i] = (int32_t)block_id(b, w->gene, i);
	h5out_append(&w->h5, &w->indices, g, n);
	int64_t *p = export_scratch(w, rows * sizeof *p);
	for (size_t r = 0; r < rows; r++)
		p[r] = (int64_t)(w->items + o[r + 1]);
	h5out_append(&w->h5, &w->indptr, p, rows);
	w->items += n;
}

int h5ad_writer_add(struct h5ad_writer *w, const struct block *b, size_t rows, struct error *e)
{
	add_names(w, b, rows);
	for (size_t i = 0; i < w->nobs; i++)
		if (export_add_obs(w, b, &w->obs[i], rows, e))
			return -1;
	for (size_t i = 0; i < w->nobsm; i++)
		h5out_append(&w->h5, &w->obsm[i].values, b->col[w->obsm[i].col].data, rows);
	if (w->gene >= 0)
		add_counts(w, b, rows);
	else
		h5out_append(&w->h5, &w->x, b->col[w->main].data, rows);
	w->rows += rows;
	return w->h5.failed ? error_set(e, "%s", w->h5.error.msg) : 0;
}

static void close_arrays(struct h5ad_writer *w)
{
	struct h5out_array *own[] = {&w->data, &w->indices, &w->indptr, &w->x, &w->names};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		h5out_close(&w->h5, own[i]);
	for (size_t i = 0; i < w->nobs; i++) {
		h5out_close(&w->h5, &w->obs[i].values);
		h5out_close(&w->h5, &w->obs[i].mask);
	}
	for (size_t i = 0; i < w->nobsm; i++)
		h5out_close(&w->h5, &w->obsm[i].values);
}

int h5ad_writer_finish(struct h5ad_writer *w, struct error *e)
{
	close_arrays(w);
	/* indices are int32, and old versions of scipy cannot take rows of a matrix whose indptr has another type */
	if (w->gene >= 0 && w->items <= INT32_MAX && !w->h5.failed)
		retype(w, &w->indptr, "indptr", H5T_NATIVE_INT32, w->rows + 1);
	close_arrays(w);
	if (w->gene >= 0) {
		int64_t shape[2] = {(int64_t)w->rows, (int64_t)w->header->vocab.n};
		hid_t x = h5out_id(&w->h5, H5Gopen2(w->h5.file, "X", H5P_DEFAULT));
		h5out_attribute(&w->h5, x, "shape", H5T_NATIVE_INT64, 2, shape);
		H5Gclose(x);
	}
	h5out_close_file(&w->h5);
	return w->h5.failed ? error_set(e, "%s", w->h5.error.msg) : 0;
}

void h5ad_writer_free(struct h5ad_writer *w)
{
	if (!w)
		return;
	close_arrays(w);
	for (size_t i = 0; i < w->nobs; i++)
		free(w->obs[i].name);
	for (size_t i = 0; i < w->nobsm; i++)
		free(w->obsm[i].name);
	free_all(w->obs, w->obsm, w->scratch, w->pool);
	h5out_release(&w->h5);
	free(w);
}

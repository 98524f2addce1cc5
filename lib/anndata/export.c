#include "anndata/export.h"

#include "anndata/h5ad.h"
#include "anndata/h5out.h"
#include "anndata/obs.h"

#include <stdlib.h>
#include <string.h>

struct obs_out {
	int col, missing;                /* column of the stream, its companion or -1 */
	struct h5out_array values, mask; /* mask: nullable types only */
	char *name;                      /* in the file */
};

struct h5ad_writer {
	const struct header *header;
	struct h5out h5;
	int gene, count, index, main; /* columns: counts, obs names, the dense matrix; -1: none */
	struct h5out_array data, indices, indptr, x, names;
	struct obs_out *obs;  /* [nobs] scalar columns */
	struct obs_out *obsm; /* [nobsm] fixed columns */
	size_t nobs, nobsm;
	uint64_t rows, items;
	void *scratch; /* of one block */
	size_t scratch_cap;
	char *pool;
	size_t pool_cap;
};

/* ---- layout ---- */

static hid_t native(const struct h5ad_writer *w, enum column_type t)
{
	switch (t) {
	case U8:
		return w->h5.boolean;
	case U16:
		return H5T_NATIVE_UINT16;
	case U32:
		return H5T_NATIVE_UINT32;
	case U64:
		return H5T_NATIVE_UINT64;
	case I8:
		return H5T_NATIVE_INT8;
	case I16:
		return H5T_NATIVE_INT16;
	case I32:
	case CATEGORICAL:
		return H5T_NATIVE_INT32;
	case I64:
		return H5T_NATIVE_INT64;
	case F32:
		return H5T_NATIVE_FLOAT;
	case F64:
		return H5T_NATIVE_DOUBLE;
	default:
		return w->h5.text;
	}
}

static hid_t plain(const struct h5ad_writer *w, enum column_type t)
{
	return t == U8 ? H5T_NATIVE_UINT8 : native(w, t);
}

/* The type of a column in the file, where its header says that AnnData had a narrower one. */
static hid_t stored(const struct h5ad_writer *w, const struct column_spec *s)
{
	const struct {
		const char *name;
		hid_t type;
		enum column_type of;
	} type[] = {{"int8", H5T_NATIVE_INT8, I64}, {"uint8", H5T_NATIVE_UINT8, I64}, {"int16", H5T_NATIVE_INT16, I64},
		{"uint16", H5T_NATIVE_UINT16, I64}, {"int32", H5T_NATIVE_INT32, I64}, {"uint32", H5T_NATIVE_UINT32, I64},
		{"float32", H5T_NATIVE_FLOAT, F64}};
	for (size_t i = 0; s->dtype && i < sizeof type / sizeof *type; i++)
		if (type[i].of == s->type && !strcmp(type[i].name, s->dtype))
			return type[i].type;
	return native(w, s->type);
}

static int has_dtype(const struct column_spec *s, const char *dtype)
{
	return s->dtype && !strcmp(s->dtype, dtype);
}

/* Is the categorical column one of booleans, which a stream holds as the categories False and True? */
static int is_boolean(const struct column_spec *s)
{
	return s->type == CATEGORICAL && (has_dtype(s, "bool") || has_dtype(s, "boolean")) && s->ncategory == 2 &&
		!strcmp(s->category[0], "False") && !strcmp(s->category[1], "True");
}

/* A name that HDF5 takes for one link ('/' would make groups) and that no earlier column has. */
static char *link_name(const struct obs_out *o, size_t n, const char *name)
{
	char *s = xstrdup(name);
	for (char *p = s; *p; p++)
		if (*p == '/')
			*p = '_';
	for (size_t i = 0; i <= n; i++) {
		if (i < n ? strcmp(o[i].name, s) : strcmp(s, "_index") && strcmp(s, "."))
			continue;
		char *longer = xasprintf("%s_", s);
		free(s);
		s = longer;
		i = (size_t)-1;
	}
	return s;
}

/* The categories are texts in the stream. AnnData may have had numbers. */
static void categories(struct h5ad_writer *w, hid_t g, const struct column_spec *s)
{
	struct h5out_array a;
	int whole = has_dtype(s, "int64"), real = has_dtype(s, "float64");
	if (!whole && !real) {
		h5out_texts(&w->h5, g, "categories", s->category, s->ncategory);
		return;
	}
	hid_t type = whole ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE;
	int64_t *i64 = xmalloc(s->ncategory * sizeof *i64);
	double *f64 = xmalloc(s->ncategory * sizeof *f64);
	for (size_t i = 0; i < s->ncategory; i++) {
		i64[i] = strtoll(s->category[i], NULL, 10);
		f64[i] = strtod(s->category[i], NULL);
	}
	h5out_array(&w->h5, &a, g, "categories", type, type, 0, "array");
	h5out_append(&w->h5, &a, whole ? (void *)i64 : (void *)f64, s->ncategory);
	h5out_close(&w->h5, &a);
	free(i64);
	free(f64);
}

/* values and, for what may be missing, a mask */
static void nullable(struct h5ad_writer *w, hid_t obs, struct obs_out *o, const char *encoded, hid_t type, hid_t memory)
{
	hid_t g = h5out_group(&w->h5, obs, o->name, encoded, "0.1.0");
	h5out_array(&w->h5, &o->values, g, "values", type, memory, 0, memory == w->h5.text ? "string-array" : "array");
	h5out_array(&w->h5, &o->mask, g, "mask", w->h5.boolean, w->h5.boolean, 0, "array");
	H5Gclose(g);
}

static void obs_column(struct h5ad_writer *w, hid_t obs, struct obs_out *o)
{
	const struct column_spec *s = &w->header->col[o->col];
	int integer = s->type != STR && s->type != CATEGORICAL && s->type != F32 && s->type != F64;
	signed char ordered = (signed char)s->ordered;
	hid_t boolean = w->h5.boolean;
	if (is_boolean(s) && has_dtype(s, "bool")) {
		h5out_array(&w->h5, &o->values, obs, o->name, boolean, boolean, 0, "array");
	} else if (is_boolean(s)) {
		nullable(w, obs, o, "nullable-boolean", boolean, boolean);
	} else if (s->type == CATEGORICAL) {
		hid_t g = h5out_group(&w->h5, obs, o->name, "categorical", "0.2.0");
		h5out_attribute(&w->h5, g, "ordered", boolean, 0, &ordered);
		categories(w, g, s);
		h5out_array(&w->h5, &o->values, g, "codes", H5T_NATIVE_INT32, H5T_NATIVE_INT32, 0, "array");
		H5Gclose(g);
	} else if (integer && o->missing >= 0) {
		nullable(w, obs, o, s->type == U8 ? "nullable-boolean" : "nullable-integer", stored(w, s), native(w, s->type));
	} else if (s->type == STR && o->missing >= 0 && has_dtype(s, "string")) {
		nullable(w, obs, o, "nullable-string-array", w->h5.text, w->h5.text);
	} else {
		h5out_array(
			&w->h5, &o->values, obs, o->name, stored(w, s), native(w, s->type), 0, s->type == STR ? "string-array" : "array");
	}
}

static int wanted(const char *name, char *const *keep, size_t nkeep)
{
	for (size_t i = 0; i < nkeep; i++)
		if (strcmp(keep[i], name) == 0)
			return 1;
	return !nkeep;
}

static int companion(const struct header *h, int c)
{
	char *name = xasprintf("%s.missing", h->col[c].name);
	int m = header_find(h, name);
	free(name);
	return m >= 0 && h->col[m].type == U8 && h->col[m].shape == SCALAR ? m : -1;
}

/* Counts that are read again have these anew: cell is the row, n_counts the sum of the row. */
static int of_the_stream(const char *name)
{
	return !strcmp(name, "cell") || !strcmp(name, "n_counts");
}

static void make_obs(struct h5ad_writer *w, char *const *keep, size_t nkeep)
{
	const struct header *h = w->header;
	char *hidden = xcalloc(h->ncol, 1);
	for (size_t i = 0; i < h->ncol; i++)
		if (h->col[i].shape == SCALAR && companion(h, (int)i) >= 0)
			hidden[companion(h, (int)i)] = 1;
	hid_t obs = h5out_group(&w->h5, w->h5.file, "obs", "dataframe", "0.2.0");
	w->obs = xcalloc(h->ncol, sizeof *w->obs);
	char **order = xcalloc(h->ncol, sizeof *order);
	for (size_t i = 0; i < h->ncol; i++) {
		if (h->col[i].shape != SCALAR || hidden[i] || (int)i == w->index || !wanted(h->col[i].name, keep, nkeep))
			continue;
		if (!nkeep && w->gene >= 0 && w->index >= 0 && of_the_stream(h->col[i].name))
			continue;
		struct obs_out *o = &w->obs[w->nobs];
		*o = (struct obs_out){.col = (int)i, .missing = companion(h, (int)i)};
		o->name = link_name(w->obs, w->nobs, obs_source_name(h->col[i].name));
		order[w->nobs++] = o->name;
		obs_column(w, obs, o);
	}
	h5out_array(&w->h5, &w->names, obs, "_index", w->h5.text, w->h5.text, 0, "string-array");
	h5out_text_attribute(&w->h5, obs, "_index", "_index");
	h5out_text_list(&w->h5, obs, "column-order", order, w->nobs);
	H5Gclose(obs);
	free(order);
	free(hidden);
}

/* One row a gene, label or dimension. */
static void make_var(struct h5ad_writer *w)
{
	const struct header *h = w->header;
	hid_t var = h5out_group(&w->h5, w->h5.file, "var", "dataframe", "0.2.0");
	char symbol[] = "symbol", *column = symbol;
	h5out_text_attribute(&w->h5, var, "_index", "_index");
	h5out_text_list(&w->h5, var, "column-order", &column, w->gene >= 0);
	if (w->gene >= 0) {
		h5out_texts(&w->h5, var, "_index", h->vocab.id, h->vocab.n);
		h5out_texts(&w->h5, var, "symbol", h->vocab.symbol, h->vocab.n);
	} else {
		size_t n = h->col[w->main].n;
		const cJSON *labels = cJSON_GetObjectItemCaseSensitive(h->extra, "labels"), *l = NULL;
		if (cJSON_IsArray(labels) && cJSON_GetArraySize(labels) == (int)n)
			l = labels->child;
		char **name = xcalloc(n, sizeof *name);
		for (size_t i = 0; i < n; i++, l = l ? l->next : NULL)
			name[i] = cJSON_IsString(l) ? xstrdup(l->valuestring) : xasprintf("%zu", i);
		h5out_texts(&w->h5, var, "_index", name, n);
		for (size_t i = 0; i < n; i++)
			free(name[i]);
		free(name);
	}
	H5Gclose(var);
}

static void make_matrices(struct h5ad_writer *w)
{
	const struct header *h = w->header;
	int64_t zero = 0;
	if (w->gene >= 0) {
		hid_t x = h5out_group(&w->h5, w->h5.file, "X", "csr_matrix", "0.1.0");
		h5out_array(&w->h5, &w->data, x, "data", H5T_NATIVE_FLOAT, H5T_NATIVE_FLOAT, 0, NULL);
		h5out_array(&w->h5, &w->indices, x, "indices", H5T_NATIVE_INT32, H5T_NATIVE_INT32, 0, NULL);
		h5out_array(&w->h5, &w->indptr, x, "indptr", H5T_NATIVE_INT64, H5T_NATIVE_INT64, 0, NULL);
		h5out_append(&w->h5, &w->indptr, &zero, 1);
		H5Gclose(x);
	} else {
		hid_t type = plain(w, h->col[w->main].type);
		h5out_array(&w->h5, &w->x, w->h5.file, "X", type, type, h->col[w->main].n, "array");
	}
	hid_t obsm = h5out_group(&w->h5, w->h5.file, "obsm", "dict", "0.1.0");
	w->obsm = xcalloc(h->ncol, sizeof *w->obsm);
	for (size_t i = 0; i < h->ncol; i++) {
		if (h->col[i].shape != FIXED || (int)i == w->main)
			continue;
		struct obs_out *o = &w->obsm[w->nobsm];
		o->col = (int)i;
		o->name = link_name(w->obsm, w->nobsm, h->col[i].name);
		h5out_array(&w->h5, &o->values, obsm, o->name, plain(w, h->col[i].type), plain(w, h->col[i].type), h->col[i].n, "array");
		w->nobsm++;
	}
	H5Gclose(obsm);
}

static void make_rest(struct h5ad_writer *w)
{
	static const char *const empty[] = {"varm", "obsp", "varp", "layers"};
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
		H5Gclose(h5out_group(&w->h5, w->h5.file, empty[i], "dict", "0.1.0"));
	hid_t uns = h5out_group(&w->h5, w->h5.file, "uns", "dict", "0.1.0");
	char *text = cJSON_PrintUnformatted(w->header->provenance);
	h5out_string(&w->h5, uns, H5AD_PROVENANCE, text);
	free(text);
	H5Gclose(uns);
}

static int find_matrix(struct h5ad_writer *w, const char *name, struct error *e)
{
	const struct header *h = w->header;
	w->gene = w->count = w->main = -1;
	w->index = header_find(h, "barcode");
	if (w->index >= 0 && h->col[w->index].type != STR)
		w->index = -1;
	if (strcmp(h->kind, "counts") == 0) {
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
	if (strcmp(h->kind, "embedding") && strcmp(h->kind, "prediction"))
		return error_set(e,
			"%s: a %s stream has no matrix of cells by something that AnnData could hold: export counts, an "
			"embedding or a prediction (tokens keep the rank of a gene, not its count)",
			name, h->kind);
	if (strcmp(h->kind, "prediction") == 0 && header_find(h, "logit") < 0 && h->ngroup)
		return error_set(e, "%s: predictions of genes: AnnData has no place for lists; use -O tsv", name);
	w->main = header_need(h, strcmp(h->kind, "embedding") ? "logit" : "x", COLUMN_TYPES, FIXED, name, e);
	return w->main < 0 ? -1 : 0;
}

struct h5ad_writer *h5ad_writer_new(
	const char *path, const struct header *h, char *const *keep, size_t nkeep, const char *name, struct error *e)
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
	h5out_open(&w->h5, path);
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

/* ---- rows ---- */

static void *scratch(struct h5ad_writer *w, size_t bytes)
{
	return w->scratch = grow_bytes(w->scratch, &w->scratch_cap, bytes, 1);
}

/* The values of a STR column as NUL-terminated texts; empty where missing [rows] says so (it may be NULL). */
static char **texts(struct h5ad_writer *w, const struct block *b, int c, const uint8_t *missing, size_t rows)
{
	size_t n, at = 0;
	char **s = scratch(w, rows * sizeof *s);
	w->pool = grow_bytes(w->pool, &w->pool_cap, b->col[c].offset[rows] + rows, 1);
	for (size_t r = 0; r < rows; r++) {
		const char *v = block_str(b, c, r, &n);
		s[r] = w->pool + at;
		if (missing && missing[r])
			n = 0;
		memcpy(w->pool + at, v, n);
		at += n;
		w->pool[at++] = 0;
	}
	return s;
}

static void add_names(struct h5ad_writer *w, const struct block *b, size_t rows)
{
	if (w->index >= 0) {
		h5out_append(&w->h5, &w->names, texts(w, b, w->index, NULL, rows), rows);
		return;
	}
	char **s = scratch(w, rows * sizeof *s);
	w->pool = grow_bytes(w->pool, &w->pool_cap, rows * 24, 1);
	for (size_t r = 0; r < rows; r++) {
		s[r] = w->pool + r * 24;
		snprintf(s[r], 24, "%llu", (unsigned long long)(w->rows + r));
	}
	h5out_append(&w->h5, &w->names, s, rows);
}

/* Real numbers with a companion: NaN where it says missing. */
static const void *with_nan(struct h5ad_writer *w, const struct block *b, const struct obs_out *o, size_t rows)
{
	const uint8_t *missing = b->col[o->missing].data;
	size_t size = type_size(w->header->col[o->col].type);
	void *v = scratch(w, rows * size);
	memcpy(v, b->col[o->col].data, rows * size);
	for (size_t r = 0; r < rows; r++)
		if (missing[r] && size == 4)
			((float *)v)[r] = __builtin_nanf("");
		else if (missing[r])
			((double *)v)[r] = __builtin_nan("");
	return v;
}

/* The codes of False and True as booleans; a missing one is False. */
static const void *booleans(struct h5ad_writer *w, const struct block *b, const struct obs_out *o, size_t rows)
{
	const uint32_t *code = b->col[o->col].data;
	signed char *v = scratch(w, rows);
	for (size_t r = 0; r < rows; r++)
		v[r] = code[r] == 1;
	return v;
}

static int add_obs(struct h5ad_writer *w, const struct block *b, struct obs_out *o, size_t rows, struct error *e)
{
	const struct column_spec *s = &w->header->col[o->col];
	const uint8_t *v = b->col[o->col].data, *missing = o->missing < 0 ? NULL : b->col[o->missing].data;
	for (size_t r = 0; r < rows && s->type == U8; r++)
		if (v[r] > 1)
			return error_set(e,
				"column '%s' row %llu is %u: u8 columns are exported as booleans, 0 or 1 (name the others with "
				"--columns to leave it out)",
				s->name, (unsigned long long)(w->rows + r), v[r]);
	if (is_boolean(s))
		h5out_append(&w->h5, &o->values, booleans(w, b, o, rows), rows);
	else if (s->type == STR)
		h5out_append(&w->h5, &o->values, texts(w, b, o->col, missing, rows), rows);
	else if (missing && (s->type == F32 || s->type == F64))
		h5out_append(&w->h5, &o->values, with_nan(w, b, o, rows), rows);
	else
		h5out_append(&w->h5, &o->values, v, rows); /* a missing code, 0xFFFFFFFF, is int32 -1 */
	if (o->mask.set) {
		char *m = scratch(w, rows);
		for (size_t r = 0; r < rows; r++)
			m[r] = missing ? missing[r] != 0 : ((const uint32_t *)v)[r] == MISSING_CODE;
		h5out_append(&w->h5, &o->mask, m, rows);
	}
	return 0;
}

static void add_counts(struct h5ad_writer *w, const struct block *b, size_t rows)
{
	const uint64_t *o = b->group[w->header->col[w->gene].group].offset;
	size_t n = o[rows];
	float *x = scratch(w, n * sizeof *x);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)block_id(b, w->count, i);
	h5out_append(&w->h5, &w->data, x, n);
	int32_t *g = scratch(w, n * sizeof *g);
	for (size_t i = 0; i < n; i++)
		g[i] = (int32_t)block_id(b, w->gene, i);
	h5out_append(&w->h5, &w->indices, g, n);
	int64_t *p = scratch(w, rows * sizeof *p);
	for (size_t r = 0; r < rows; r++)
		p[r] = (int64_t)(w->items + o[r + 1]);
	h5out_append(&w->h5, &w->indptr, p, rows);
	w->items += n;
}

int h5ad_writer_add(struct h5ad_writer *w, const struct block *b, size_t rows, struct error *e)
{
	add_names(w, b, rows);
	for (size_t i = 0; i < w->nobs; i++)
		if (add_obs(w, b, &w->obs[i], rows, e))
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
	free(w->obs);
	free(w->obsm);
	free(w->scratch);
	free(w->pool);
	h5out_release(&w->h5);
	free(w);
}

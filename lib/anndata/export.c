#include "anndata/export.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (256u << 10)
#define CACHE_BYTES (1u << 20) /* of each open dataset: a chunk must stay until it is full */
#define DEFLATE 1

struct array {           /* a dataset that grows along its first dimension */
	hid_t set, type; /* type: of the memory, owned when it is not a constant of HDF5 */
	hsize_t rows, n; /* n: second dimension, 0 if there is none */
};

struct obs_out {
	int col, missing;          /* column of the stream, its companion or -1 */
	struct array values, mask; /* mask: nullable types only */
	char *name;                /* in the file */
};

struct h5ad_writer {
	const struct header *header;
	char *path; /* for messages */
	hid_t file, boolean, text;
	int gene, count, index, main; /* columns: counts, obs names, the dense matrix; -1: none */
	struct array data, indices, indptr, x, names;
	struct obs_out *obs;  /* [nobs] scalar columns */
	struct obs_out *obsm; /* [nobsm] fixed columns */
	size_t nobs, nobsm;
	uint64_t rows, items;
	void *scratch; /* of one block */
	size_t scratch_cap;
	char *pool;
	size_t pool_cap;
	int failed; /* an HDF5 call failed; w->error says which */
	struct error error;
};

/* ---- HDF5 with one place for failures ---- */

static herr_t innermost(unsigned n, const H5E_error2_t *err, void *to)
{
	if (n == 0)
		snprintf(to, 400, "%s", err->desc ? err->desc : "");
	return 0;
}

/* HDF5 reports a failure as a long stack of messages. The first one quotes the system's own message. */
static void fail(struct h5ad_writer *w)
{
	char why[400] = "";
	if (w->failed)
		return;
	w->failed = 1;
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, why);
	char *system = strstr(why, "error message = '");
	if (system) {
		system += strlen("error message = '");
		system[strcspn(system, "'")] = 0;
	}
	error_set(&w->error, "%s: cannot write HDF5: %s", w->path, system ? system : why);
}

static hid_t id(struct h5ad_writer *w, hid_t h)
{
	if (h < 0)
		fail(w);
	return h;
}

static void ok(struct h5ad_writer *w, herr_t r)
{
	if (r < 0)
		fail(w);
}

static void attribute(struct h5ad_writer *w, hid_t on, const char *name, hid_t type, hsize_t n, const void *value)
{
	hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
	hid_t a = id(w, H5Acreate2(on, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
	ok(w, H5Awrite(a, type, value));
	H5Aclose(a);
	H5Sclose(space);
}

static void text_attribute(struct h5ad_writer *w, hid_t on, const char *name, const char *value)
{
	attribute(w, on, name, w->text, 0, &value);
}

static void encoding(struct h5ad_writer *w, hid_t on, const char *type, const char *version)
{
	text_attribute(w, on, "encoding-type", type);
	text_attribute(w, on, "encoding-version", version);
}

static hid_t group(struct h5ad_writer *w, const char *path, const char *type, const char *version)
{
	hid_t g = id(w, H5Gcreate2(w->file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	encoding(w, g, type, version);
	return g;
}

/* A dataset of 0 rows at loc/name, compressed unless it is text (whose bytes lie elsewhere in the file). */
static void array_make(struct h5ad_writer *w, struct array *a, hid_t loc, const char *name, hid_t type, size_t n, const char *encoded)
{
	size_t row = H5Tget_size(type) * (n ? n : 1);
	hsize_t dims[2] = {0, n}, max[2] = {H5S_UNLIMITED, n}, chunk[2] = {CHUNK_BYTES / row ? CHUNK_BYTES / row : 1, n};
	hid_t space = id(w, H5Screate_simple(n ? 2 : 1, dims, max));
	hid_t create = id(w, H5Pcreate(H5P_DATASET_CREATE)), access = id(w, H5Pcreate(H5P_DATASET_ACCESS));
	ok(w, H5Pset_chunk(create, n ? 2 : 1, chunk));
	ok(w, H5Pset_chunk_cache(access, 521, CACHE_BYTES, 1));
	if (type != w->text) {
		ok(w, H5Pset_shuffle(create));
		ok(w, H5Pset_deflate(create, DEFLATE));
	}
	*a = (struct array){.type = type, .n = n};
	a->set = id(w, H5Dcreate2(loc, name, type, space, H5P_DEFAULT, create, access));
	if (encoded)
		encoding(w, a->set, encoded, "0.2.0");
	H5Pclose(access);
	H5Pclose(create);
	H5Sclose(space);
}

static void array_append(struct h5ad_writer *w, struct array *a, const void *data, size_t rows)
{
	if (!rows || w->failed)
		return;
	hsize_t total[2] = {a->rows + rows, a->n}, start[2] = {a->rows, 0}, count[2] = {rows, a->n};
	int rank = a->n ? 2 : 1;
	ok(w, H5Dset_extent(a->set, total));
	hid_t mem = id(w, H5Screate_simple(rank, count, NULL)), file = id(w, H5Dget_space(a->set));
	ok(w, H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL));
	ok(w, H5Dwrite(a->set, a->type, mem, file, H5P_DEFAULT, data));
	H5Sclose(mem);
	H5Sclose(file);
	a->rows += rows;
}

static void array_close(struct h5ad_writer *w, struct array *a)
{
	if (a->set > 0)
		ok(w, H5Dclose(a->set));
	a->set = 0;
}

static void texts_at(struct h5ad_writer *w, hid_t loc, const char *name, char *const *s, size_t n)
{
	struct array a;
	array_make(w, &a, loc, name, w->text, 0, "string-array");
	array_append(w, &a, s, n);
	array_close(w, &a);
}

/* ---- layout ---- */

static hid_t native(const struct h5ad_writer *w, enum column_type t)
{
	switch (t) {
	case U8:
		return w->boolean;
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
		return w->text;
	}
}

static hid_t plain(const struct h5ad_writer *w, enum column_type t)
{
	return t == U8 ? H5T_NATIVE_UINT8 : native(w, t);
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

static void obs_column(struct h5ad_writer *w, hid_t obs, struct obs_out *o)
{
	const struct column_spec *s = &w->header->col[o->col];
	int integer = s->type != STR && s->type != CATEGORICAL && s->type != F32 && s->type != F64;
	if (s->type == CATEGORICAL || (integer && o->missing >= 0)) {
		hid_t g = id(w, H5Gcreate2(obs, o->name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
		if (s->type == CATEGORICAL) {
			signed char no = 0;
			encoding(w, g, "categorical", "0.2.0");
			attribute(w, g, "ordered", w->boolean, 0, &no);
			texts_at(w, g, "categories", s->category, s->ncategory);
			array_make(w, &o->values, g, "codes", H5T_NATIVE_INT32, 0, "array");
		} else {
			encoding(w, g, s->type == U8 ? "nullable-boolean" : "nullable-integer", "0.1.0");
			array_make(w, &o->values, g, "values", native(w, s->type), 0, "array");
			array_make(w, &o->mask, g, "mask", w->boolean, 0, "array");
		}
		H5Gclose(g);
		return;
	}
	array_make(w, &o->values, obs, o->name, native(w, s->type), 0, s->type == STR ? "string-array" : "array");
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

static void make_obs(struct h5ad_writer *w, char *const *keep, size_t nkeep)
{
	const struct header *h = w->header;
	char *hidden = xcalloc(h->ncol, 1);
	for (size_t i = 0; i < h->ncol; i++)
		if (h->col[i].shape == SCALAR && companion(h, (int)i) >= 0)
			hidden[companion(h, (int)i)] = 1;
	hid_t obs = group(w, "obs", "dataframe", "0.2.0");
	w->obs = xcalloc(h->ncol, sizeof *w->obs);
	char **order = xcalloc(h->ncol, sizeof *order);
	for (size_t i = 0; i < h->ncol; i++) {
		if (h->col[i].shape != SCALAR || hidden[i] || (int)i == w->index || !wanted(h->col[i].name, keep, nkeep))
			continue;
		struct obs_out *o = &w->obs[w->nobs];
		*o = (struct obs_out){.col = (int)i, .missing = companion(h, (int)i)};
		o->name = link_name(w->obs, w->nobs, h->col[i].name);
		order[w->nobs++] = o->name;
		obs_column(w, obs, o);
	}
	array_make(w, &w->names, obs, "_index", w->text, 0, "string-array");
	text_attribute(w, obs, "_index", "_index");
	hsize_t n = w->nobs;
	hid_t space = H5Screate_simple(1, &n, NULL);
	hid_t a = id(w, H5Acreate2(obs, "column-order", w->text, space, H5P_DEFAULT, H5P_DEFAULT));
	if (n)
		ok(w, H5Awrite(a, w->text, order));
	H5Aclose(a);
	H5Sclose(space);
	H5Gclose(obs);
	free(order);
	free(hidden);
}

/* One row a gene, label or dimension. */
static void make_var(struct h5ad_writer *w)
{
	const struct header *h = w->header;
	hid_t var = group(w, "var", "dataframe", "0.2.0");
	const char *symbol = "symbol";
	hsize_t ncol = w->gene >= 0;
	text_attribute(w, var, "_index", "_index");
	hid_t space = H5Screate_simple(1, &ncol, NULL);
	hid_t a = id(w, H5Acreate2(var, "column-order", w->text, space, H5P_DEFAULT, H5P_DEFAULT));
	if (ncol)
		ok(w, H5Awrite(a, w->text, &symbol));
	H5Aclose(a);
	H5Sclose(space);
	if (w->gene >= 0) {
		texts_at(w, var, "_index", h->vocab.id, h->vocab.n);
		texts_at(w, var, "symbol", h->vocab.symbol, h->vocab.n);
	} else {
		size_t n = h->col[w->main].n;
		const cJSON *labels = cJSON_GetObjectItemCaseSensitive(h->extra, "labels"), *l = NULL;
		if (cJSON_IsArray(labels) && cJSON_GetArraySize(labels) == (int)n)
			l = labels->child;
		char **name = xcalloc(n, sizeof *name);
		for (size_t i = 0; i < n; i++, l = l ? l->next : NULL)
			name[i] = cJSON_IsString(l) ? xstrdup(l->valuestring) : xasprintf("%zu", i);
		texts_at(w, var, "_index", name, n);
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
		hid_t x = group(w, "X", "csr_matrix", "0.1.0");
		array_make(w, &w->data, x, "data", H5T_NATIVE_FLOAT, 0, NULL);
		array_make(w, &w->indices, x, "indices", H5T_NATIVE_INT32, 0, NULL);
		array_make(w, &w->indptr, x, "indptr", H5T_NATIVE_INT64, 0, NULL);
		array_append(w, &w->indptr, &zero, 1);
		H5Gclose(x);
	} else {
		array_make(w, &w->x, w->file, "X", plain(w, h->col[w->main].type), h->col[w->main].n, "array");
	}
	hid_t obsm = group(w, "obsm", "dict", "0.1.0");
	w->obsm = xcalloc(h->ncol, sizeof *w->obsm);
	for (size_t i = 0; i < h->ncol; i++) {
		if (h->col[i].shape != FIXED || (int)i == w->main)
			continue;
		struct obs_out *o = &w->obsm[w->nobsm];
		o->col = (int)i;
		o->name = link_name(w->obsm, w->nobsm, h->col[i].name);
		array_make(w, &o->values, obsm, o->name, plain(w, h->col[i].type), h->col[i].n, "array");
		w->nobsm++;
	}
	H5Gclose(obsm);
}

static void make_rest(struct h5ad_writer *w)
{
	static const char *const empty[] = {"varm", "obsp", "varp", "layers"};
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
		H5Gclose(group(w, empty[i], "dict", "0.1.0"));
	hid_t uns = group(w, "uns", "dict", "0.1.0"), space = H5Screate(H5S_SCALAR);
	hid_t set = id(w, H5Dcreate2(uns, "corrmask_provenance", w->text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	char *text = cJSON_PrintUnformatted(w->header->provenance);
	ok(w, H5Dwrite(set, w->text, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text));
	encoding(w, set, "string", "0.2.0");
	free(text);
	H5Dclose(set);
	H5Sclose(space);
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
	w->path = xstrdup(path);
	w->file = -1;
	int bad = find_matrix(w, name, e);
	for (size_t i = 0; i < nkeep && !bad; i++)
		bad = header_need(h, keep[i], COLUMN_TYPES, SCALAR, name, e) < 0;
	if (bad) {
		h5ad_writer_free(w);
		return NULL;
	}
	H5dont_atexit(); /* after a full disk its clean-up would write again, and crash */
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	w->text = H5Tcopy(H5T_C_S1);
	H5Tset_size(w->text, H5T_VARIABLE);
	H5Tset_cset(w->text, H5T_CSET_UTF8);
	signed char v = 0;
	w->boolean = H5Tenum_create(H5T_NATIVE_INT8); /* as h5py writes numpy's bool */
	H5Tenum_insert(w->boolean, "FALSE", &v);
	v = 1;
	H5Tenum_insert(w->boolean, "TRUE", &v);
	w->file = id(w, H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
	if (!w->failed) {
		encoding(w, w->file, "anndata", "0.1.0");
		make_obs(w, keep, nkeep);
		make_var(w);
		make_matrices(w);
		make_rest(w);
	}
	if (w->failed) {
		error_set(e, "%s", w->error.msg);
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
		array_append(w, &w->names, texts(w, b, w->index, NULL, rows), rows);
		return;
	}
	char **s = scratch(w, rows * sizeof *s);
	w->pool = grow_bytes(w->pool, &w->pool_cap, rows * 24, 1);
	for (size_t r = 0; r < rows; r++) {
		s[r] = w->pool + r * 24;
		snprintf(s[r], 24, "%llu", (unsigned long long)(w->rows + r));
	}
	array_append(w, &w->names, s, rows);
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
	if (s->type == STR)
		array_append(w, &o->values, texts(w, b, o->col, missing, rows), rows);
	else if (missing && (s->type == F32 || s->type == F64))
		array_append(w, &o->values, with_nan(w, b, o, rows), rows);
	else
		array_append(w, &o->values, v, rows); /* a missing code, 0xFFFFFFFF, is int32 -1 */
	if (o->mask.set) {
		char *m = scratch(w, rows);
		for (size_t r = 0; r < rows; r++)
			m[r] = missing[r] != 0;
		array_append(w, &o->mask, m, rows);
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
	array_append(w, &w->data, x, n);
	int32_t *g = scratch(w, n * sizeof *g);
	for (size_t i = 0; i < n; i++)
		g[i] = (int32_t)block_id(b, w->gene, i);
	array_append(w, &w->indices, g, n);
	int64_t *p = scratch(w, rows * sizeof *p);
	for (size_t r = 0; r < rows; r++)
		p[r] = (int64_t)(w->items + o[r + 1]);
	array_append(w, &w->indptr, p, rows);
	w->items += n;
}

int h5ad_writer_add(struct h5ad_writer *w, const struct block *b, size_t rows, struct error *e)
{
	add_names(w, b, rows);
	for (size_t i = 0; i < w->nobs; i++)
		if (add_obs(w, b, &w->obs[i], rows, e))
			return -1;
	for (size_t i = 0; i < w->nobsm; i++)
		array_append(w, &w->obsm[i].values, b->col[w->obsm[i].col].data, rows);
	if (w->gene >= 0)
		add_counts(w, b, rows);
	else
		array_append(w, &w->x, b->col[w->main].data, rows);
	w->rows += rows;
	return w->failed ? error_set(e, "%s", w->error.msg) : 0;
}

static void close_arrays(struct h5ad_writer *w)
{
	struct array *own[] = {&w->data, &w->indices, &w->indptr, &w->x, &w->names};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		array_close(w, own[i]);
	for (size_t i = 0; i < w->nobs; i++) {
		array_close(w, &w->obs[i].values);
		array_close(w, &w->obs[i].mask);
	}
	for (size_t i = 0; i < w->nobsm; i++)
		array_close(w, &w->obsm[i].values);
}

int h5ad_writer_finish(struct h5ad_writer *w, struct error *e)
{
	close_arrays(w);
	if (w->gene >= 0) {
		int64_t shape[2] = {(int64_t)w->rows, (int64_t)w->header->vocab.n};
		hid_t x = id(w, H5Gopen2(w->file, "X", H5P_DEFAULT));
		attribute(w, x, "shape", H5T_NATIVE_INT64, 2, shape);
		H5Gclose(x);
	}
	ok(w, H5Fclose(w->file));
	w->file = -1;
	return w->failed ? error_set(e, "%s", w->error.msg) : 0;
}

void h5ad_writer_free(struct h5ad_writer *w)
{
	if (!w)
		return;
	close_arrays(w);
	if (w->file >= 0)
		H5Fclose(w->file);
	if (w->text > 0)
		H5Tclose(w->text);
	if (w->boolean > 0)
		H5Tclose(w->boolean);
	for (size_t i = 0; i < w->nobs; i++)
		free(w->obs[i].name);
	for (size_t i = 0; i < w->nobsm; i++)
		free(w->obsm[i].name);
	free(w->obs);
	free(w->obsm);
	free(w->scratch);
	free(w->pool);
	free(w->path);
	free(w);
}

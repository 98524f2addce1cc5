#include "anndata/into.h"

#include "anndata/export_impl.h"
#include "anndata/h5ad.h"
#include "base/classes.h"

struct fixed { /* a column that goes to obsm */
	int col;
	char *name;
	hid_t set;
	char *values; /* of predictions, a value a class: instead of set, [classes, ncell], for a table whose columns have the names of the classes */
	int replaced; /* an array of this name was there */
	int there; /* the array is in the file, so nothing is written ... */
	struct h5array old; /* ... but compared with its values */
};

struct scalar { /* a column that goes to obs */
	int col, missing; /* of the stream; missing is -1 where there is no companion */
	int own; /* column of `table` */
	struct texts text;
	uint32_t *at; /* str: [ncell] which of the texts */
	int replaced; /* a column of this name was there */
};

struct h5ad_into {
	struct h5ad_writer w; /* its header is that of `table` */
	char *shown, *stream;
	const struct into_options *options;
	const char *key;
	const struct header *header; /* of the stream */
	struct dataframe obs;
	uint64_t ncell;
	struct strmap row; /* name of a cell -> the first row that has it */
	uint32_t *first; /* [ncell] the first row with the same name */
	uint8_t *seen; /* [ncell] */
	uint64_t added;
	int barcode, cell; /* columns of the stream; cell -1: the names of the file do not repeat */
	struct fixed *fixed;
	struct scalar *scalar;
	size_t nfixed, nscalar;
	struct header columns; /* the columns of obs under their new names, each with a companion for missing values behind it */
	struct block table; /* the values of these columns, [ncell] in the order of the file */
};

void h5ad_into_free(struct h5ad_into *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->nfixed; i++) {
		if (w->fixed[i].set > 0)
			H5Dclose(w->fixed[i].set);
		h5array_release(&w->fixed[i].old);
		free_all(w->fixed[i].name, w->fixed[i].values);
	}
	for (size_t i = 0; i < w->nscalar; i++) {
		texts_release(&w->scalar[i].text);
		free(w->scalar[i].at);
	}
	dataframe_release(&w->obs);
	h5out_release(&w->w.h5);
	free_all(w->w.scratch, w->w.pool);
	strmap_release(&w->row);
	header_release(&w->columns);
	block_release(&w->table);
	free_all(w->first, w->seen, w->fixed, w->scalar, w->shown, w->stream, w);
}

/* The names of the file's cells. */
static int read_names(struct h5ad_into *w, struct error *e)
{
	struct texts names = {0};
	hid_t file = w->w.h5.file;
	if (h5_object_type(file, "obs") != H5O_TYPE_GROUP)
		return error_set(e, "%s: no obs as anndata has written it since 0.7: %s", w->shown,
			H5Lexists(file, "obs", H5P_DEFAULT) > 0 ? "read and write the file once with anndata" : "this is not AnnData");
	if (dataframe_open(&w->obs, &(struct store){.kind = &store_hdf5, .name = w->shown, .h5 = file}, "obs", e) ||
		dataframe_texts(&w->obs.index, 0, w->obs.nrow, &names, e)) {
		texts_release(&names);
		return -1;
	}
	int repeated = 0, r = names.n >= UINT32_MAX ? error_set(e, "%s: more than 2^32 cells", w->shown) : 0;
	w->ncell = names.n;
	w->seen = xcalloc(names.n + 1, 1);
	w->first = xmalloc((names.n + 1) * sizeof *w->first);
	for (size_t i = 0; i < names.n && r == 0; i++) {
		w->first[i] = strmap_put(&w->row, names.bytes + names.offset[i], names.offset[i + 1] - names.offset[i], (uint32_t)i);
		repeated |= w->first[i] != i;
	}
	texts_release(&names);
	w->cell = repeated ? header_need(w->header, "cell", U64, SCALAR, w->stream, e) : -1;
	return r || (repeated && w->cell < 0) ? -1 : 0;
}

/* x is X_KEY. A map is X_umap, under which scanpy looks for it, or with a key of the user X_umap_KEY. */
static char *obsm_name(const struct h5ad_into *w, const char *column)
{
	FREED char *full = strcmp(column, "x") == 0 ? xasprintf("X_%s", w->key)
		: strncmp(column, "X_", 2)          ? xasprintf("%s_%s", w->key, column)
		: w->options->key                   ? xasprintf("%s_%s", column, w->key)
						    : xstrdup(column);
	return export_link_name(NULL, 0, full);
}

static int taken(const struct h5ad_into *w, const char *frame, const char *name, const char *how, struct error *e)
{
	return error_set(e, "%s: %s has '%s' already%s: --replace overwrites it; or choose another name with --key%s", w->shown, frame,
		name, how, strncmp(name, "X_umap", 6) ? "" : ", which makes the map X_umap_NAME");
}

/* The array is there already: open it, to compare its values with those of the stream. */
static int open_old(struct h5ad_into *w, hid_t obsm, struct fixed *f, struct error *e)
{
	const struct column_spec *s = &w->header->col[f->col];
	if (h5_object_type(obsm, f->name) != H5O_TYPE_DATASET ||
		h5array_open(&f->old, &(struct store){.kind = &store_hdf5, .name = w->shown, .h5 = obsm}, f->name, e))
		return taken(w, "obsm", f->name, "", e);
	if (f->old.ndim != 2 || f->old.dim[0] != w->ncell || f->old.dim[1] != s->n || f->old.size != type_size(s->type) ||
		number_is_float(f->old.type) != type_is_real(s->type))
		return taken(w, "obsm", f->name, ", of another shape or type", e);
	return 0;
}

/* A dataset [ncell, n] of NaN, or of 0 for whole numbers. */
static void make_array(struct h5ad_into *w, hid_t obsm, struct fixed *f)
{
	const struct column_spec *s = &w->header->col[f->col];
	struct h5out *o = &w->w.h5;
	hid_t type = export_native(&w->w, s->type);
	hsize_t dim[2] = {w->ncell, s->n};
	RELEASED(h5_close) hid_t space = h5out_id(o, H5Screate_simple(2, dim, NULL)), create = h5out_properties(o);
	h5out_ok(o, H5Pset_fill_value(create, type, type_kind(s->type)->missing));
	f->set = h5out_id(o, H5Dcreate2(obsm, f->name, type, space, H5P_DEFAULT, create, H5P_DEFAULT));
	h5out_encoding(o, f->set, "array", "0.2.0");
	FREED char *text = cJSON_PrintUnformatted(w->header->provenance);
	h5out_text_attribute(o, f->set, H5AD_PROVENANCE, text);
}

/* The names of the classes, if the fixed column s has a value for each. */
static const cJSON *classes_of(const struct h5ad_into *w, const struct column_spec *s)
{
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(w->header->extra, "labels");
	return w->header->kind == STREAM_PREDICTION && cJSON_IsArray(labels) && (uint32_t)cJSON_GetArraySize(labels) == s->n ? labels
															     : NULL;
}

/* The values of a table, of cells that the stream lacks: NaN, or 0. */
static char *make_values(const struct h5ad_into *w, const struct column_spec *s)
{
	size_t n = w->ncell * s->n;
	char *values = xcalloc(n + 1, type_size(s->type));
	type_fill_missing(s->type, values, n);
	return values;
}

/* --columns chooses among the arrays too, if it names one of them. */
static int chosen_array(const struct h5ad_into *w, const char *name)
{
	int any = 0, it = 0;
	for (size_t i = 0; i < w->options->nkeep; i++) {
		int c = header_find(w->header, w->options->keep[i]);
		any |= c >= 0 && w->header->col[c].shape == FIXED;
		it |= !strcmp(w->options->keep[i], name);
	}
	return it || !any;
}

static int make_obsm(struct h5ad_into *w, struct error *e)
{
	struct h5out *o = &w->w.h5;
	int there = H5Lexists(o->file, "obsm", H5P_DEFAULT) > 0, bad = 0;
	if (there && h5_object_type(o->file, "obsm") != H5O_TYPE_GROUP)
		return error_set(e, "%s: obsm is not a group: read and write the file once with anndata", w->shown);
	RELEASED(h5_close)
	hid_t obsm = there ? h5out_id(o, H5Gopen2(o->file, "obsm", H5P_DEFAULT)) : h5out_group(o, o->file, "obsm", "dict", "0.1.0");
	w->fixed = xcalloc(w->header->ncol, sizeof *w->fixed);
	for (size_t i = 0; i < w->header->ncol && !bad; i++) {
		if (w->header->col[i].shape != FIXED || !chosen_array(w, w->header->col[i].name))
			continue;
		struct fixed *f = &w->fixed[w->nfixed++];
		f->col = (int)i;
		f->name = obsm_name(w, w->header->col[i].name);
		f->there = H5Lexists(obsm, f->name, H5P_DEFAULT) > 0;
		if (f->there && w->options->replace) {
			h5out_ok(o, H5Ldelete(obsm, f->name, H5P_DEFAULT));
			f->there = 0;
			f->replaced = 1;
		}
		const struct column_spec *s = &w->header->col[f->col];
		if (classes_of(w, s) && f->there)
			bad = taken(w, "obsm", f->name, "", e);
		else if (classes_of(w, s))
			f->values = make_values(w, s);
		else if (f->there)
			bad = open_old(w, obsm, f, e);
		else
			make_array(w, obsm, f);
	}
	return bad;
}

static int is_kept(const struct h5ad_into *w, const struct column_spec *s)
{
	char *const *keep = w->options->keep;
	size_t nkeep = w->options->nkeep;
	static const char *const usual[] = {"predicted", "predicted_name", "probability", "fold", "expected", "assigned", "label_set",
		"likeness", "unlike", "is_unlike", "term", "term_name", "term_classes", "promised", "cell_type_ontology_term_id"};
	int kept = 0;
	for (size_t i = 0; i < nkeep; i++)
		kept |= !strcmp(keep[i], s->name);
	for (size_t i = 0; !nkeep && i < sizeof usual / sizeof *usual; i++)
		kept |= !strcmp(usual[i], s->name) && w->header->kind == STREAM_PREDICTION;
	return kept && s->shape == SCALAR && !header_companion(s->name);
}

/* The table that gathers the columns of obs. All its rows are missing. */
static int make_table(struct h5ad_into *w, struct error *e)
{
	header_init(&w->columns, STREAM_EMBEDDING);
	w->scalar = xcalloc(w->header->ncol, sizeof *w->scalar);
	for (size_t i = 0; i < w->header->ncol; i++) {
		const struct column_spec *s = &w->header->col[i];
		if (!is_kept(w, s))
			continue;
		int plain = !strcmp(s->name, "cell_type_ontology_term_id") && !dataframe_find(&w->obs, s->name); /* CELLxGENE's name */
		char *full = plain ? xstrdup(s->name) : xasprintf("%s_%s", w->key, s->name), *name = export_link_name(NULL, 0, full),
		     *companion = xasprintf("%s.missing", name);
		free(full);
		struct dataframe_column *old = dataframe_find(&w->obs, name);
		if (old && (!w->options->replace || old == &w->obs.index)) {
			if (old == &w->obs.index)
				error_set(e, "%s: the names of the cells in obs are called '%s': choose another name with --key", w->shown,
					name);
			else
				taken(w, "obs", name, "", e);
			free_all(name, companion);
			return -1;
		}
		struct scalar *c = &w->scalar[w->nscalar++];
		c->col = (int)i;
		c->replaced = old != NULL;
		c->missing = header_missing_of(w->header, (int)i);
		c->own = header_add_like(&w->columns, s);
		free(w->columns.col[c->own].name);
		w->columns.col[c->own].name = name;
		header_add(&w->columns, companion, U8);
		free(companion);
		if (s->type == STR)
			c->at = xcalloc(w->ncell, sizeof *c->at);
	}
	w->w.header = &w->columns;
	block_reset(&w->table, &w->columns);
	block_set_rows(&w->table, w->ncell);
	for (size_t i = 0; i < w->nscalar; i++) {
		struct scalar *c = &w->scalar[i];
		struct column *v = &w->table.col[c->own];
		memset(w->table.col[c->own + 1].data, 1, w->ncell);
		if (w->columns.col[c->own].type != STR)
			memset(v->data, w->columns.col[c->own].type == CATEGORICAL ? 0xff : 0,
				w->ncell * type_size(w->columns.col[c->own].type));
	}
	return 0;
}

/* Names under which scanpy looks for a map of the cells in the plane. */
static int is_map(const char *name)
{
	return !strcmp(name, "X_umap") || !strcmp(name, "X_tsne") || !strncmp(name, "X_draw_graph", 12);
}

static int check_key(const struct h5ad_into *w, struct error *e)
{
	int x = header_find(w->header, "x"), bad = 0;
	if (!*w->key || strpbrk(w->key, "/\t\r\n"))
		return error_set(e, "--key: '%.40s' is not a name: it is empty, or has a slash, a tab or a line break", w->key);
	FREED char *name = xasprintf("X_%s", w->key);
	if (x >= 0 && is_map(name) && header_find(w->header, name) >= 0)
		bad = error_set(e, "%s: with --key %s x and the map want the same name, %s: choose another one", w->stream, w->key, name);
	else if (x >= 0 && is_map(name) && w->header->col[x].n > 3)
		bad = error_set(e,
			"%s: %s is the name of a map, and x has %u dimensions: choose another --key, or make a map with screduce map",
			w->stream, name, (unsigned)w->header->col[x].n);
	return bad;
}

static int check_stream(struct h5ad_into *w, struct error *e)
{
	const struct header *h = w->header;
	if (!kind_matrix(h->kind))
		return error_set(e, "%s: this is a %s stream: an embedding or predictions of cells can be added to a file", w->stream,
			kind_name(h->kind));
	if (h->ngroup)
		return error_set(e, "%s: predictions of genes: AnnData has no place for lists; use -O tsv", w->stream);
	w->barcode = header_need(h, "barcode", STR, SCALAR, w->stream, e);
	for (size_t i = 0; i < w->options->nkeep && w->barcode >= 0; i++) {
		int c = header_find(h, w->options->keep[i]);
		if ((c < 0 || h->col[c].shape != FIXED) && header_need(h, w->options->keep[i], COLUMN_TYPES, SCALAR, w->stream, e) < 0)
			return -1;
	}
	return w->barcode < 0 ? -1 : check_key(w, e);
}

struct h5ad_into *h5ad_into_new(
	const char *path, const char *shown, const struct into_options *o, const struct header *h, const char *name, struct error *e)
{
	struct h5ad_into *w = xcalloc(1, sizeof *w);
	*w = (struct h5ad_into){.shown = xstrdup(shown),
		.stream = xstrdup(name),
		.options = o,
		.key = o->key ? o->key : "corrmask",
		.header = h,
		.w.h5.file = -1};
	int bad = check_stream(w, e);
	if (!bad) {
		h5out_modify(&w->w.h5, path, shown);
		bad = w->w.h5.failed ? error_set(e, "%s", w->w.h5.error.msg) : 0;
	}
	if (bad || read_names(w, e) || make_table(w, e) || make_obsm(w, e) || h5_check(shown, e)) {
		h5ad_into_free(w);
		return NULL;
	}
	return w;
}

/* Row `from` of b is cell `to`. */
static void take_classes(struct h5ad_into *w, const struct fixed *f, const struct block *b, size_t from, uint64_t to)
{
	const struct column_spec *s = &w->header->col[f->col];
	size_t size = type_size(s->type);
	for (size_t k = 0; k < s->n; k++)
		memcpy(f->values + (k * w->ncell + to) * size, (const char *)b->col[f->col].data + (from * s->n + k) * size, size);
}

/* Rows [from, from + n) of a fixed column to rows [to, to + n) of its dataset. */
static void write_array(struct h5ad_into *w, const struct fixed *f, const struct block *b, size_t from, uint64_t to, size_t n)
{
	const struct column_spec *s = &w->header->col[f->col];
	h5out_rows(&w->w.h5, f->set, export_native(&w->w, s->type), (hsize_t[]){to, 0}, (hsize_t[]){n, s->n}, 2,
		(char *)b->col[f->col].data + from * s->n * type_size(s->type));
}

/* The same rows, where the array is there already: their values must be those of the file. */
static int compare_array(struct h5ad_into *w, struct fixed *f, const struct block *b, size_t from, uint64_t to, size_t n, struct error *e)
{
	const struct column_spec *s = &w->header->col[f->col];
	size_t row = s->n * type_size(s->type);
	void *old = export_scratch(&w->w, n * row);
	if (h5array_read(&f->old, to, n, old, 1, e))
		return -1;
	return memcmp(old, (char *)b->col[f->col].data + from * row, n * row) ? taken(w, "obsm", f->name, ", with other values", e) : 0;
}

static void take_scalar(struct h5ad_into *w, struct scalar *c, const struct block *b, size_t from, uint32_t to)
{
	const struct column_spec *s = &w->header->col[c->col];
	size_t n, size = s->type == STR ? 0 : type_size(s->type);
	if (s->type == STR) {
		const char *text = block_str(b, c->col, from, &n);
		c->at[to] = (uint32_t)c->text.n;
		texts_push(&c->text, text, n);
	} else {
		memcpy((char *)w->table.col[c->own].data + to * size, (char *)b->col[c->col].data + from * size, size);
	}
	((uint8_t *)w->table.col[c->own + 1].data)[to] = c->missing < 0 ? 0 : ((const uint8_t *)b->col[c->missing].data)[from];
}

/* The row of the file for row r of b. By name, or where names repeat by number, which must have the name. */
static int find_cell(struct h5ad_into *w, const struct block *b, size_t r, uint32_t *to, struct error *e)
{
	size_t n;
	const char *s = block_str(b, w->barcode, r, &n);
	uint64_t cell = w->cell < 0 ? 0 : ((const uint64_t *)b->col[w->cell].data)[r];
	int shown = (int)(n < 100 ? n : 100);
	*to = strmap_get(&w->row, s, n);
	if (w->cell >= 0 && *to != STRMAP_NONE)
		*to = cell < w->ncell && w->first[cell] == *to ? (uint32_t)cell : STRMAP_NONE;
	if (*to == STRMAP_NONE && w->cell >= 0)
		return error_set(e,
			"%s: cell '%.*s' is not cell %" PRIu64
			" of %s, where names of cells repeat: its cells must be those of the file; or adata.obs_names_make_unique() first",
			w->stream, shown, s, cell, w->shown);
	if (*to == STRMAP_NONE)
		return error_set(e, "%s: cell '%.*s' (row %" PRIu64 ") is not in %s: its cells must be those of the file", w->stream, shown,
			s, w->added + r, w->shown);
	return w->seen[*to]++ ? error_set(e, "%s: cell '%.*s' occurs twice", w->stream, shown, s) : 0;
}

int h5ad_into_add(struct h5ad_into *w, const struct block *b, size_t rows, struct error *e)
{
	FREED uint32_t *to = xmalloc(rows * sizeof *to);
	int bad = 0;
	for (size_t r = 0; r < rows && !bad; r++)
		bad = find_cell(w, b, r, &to[r], e);
	for (size_t r = 0, run; r < rows && !bad; r += run) {
		for (run = 1; r + run < rows && to[r + run] == to[r] + run;)
			run++;
		for (size_t i = 0; i < w->nfixed && !bad; i++)
			if (w->fixed[i].values)
				for (size_t j = 0; j < run; j++)
					take_classes(w, &w->fixed[i], b, r + j, to[r] + j);
			else if (!w->fixed[i].there)
				write_array(w, &w->fixed[i], b, r, to[r], run);
			else
				bad = compare_array(w, &w->fixed[i], b, r, to[r], run, e);
	}
	for (size_t i = 0; i < w->nscalar && !bad; i++)
		for (size_t r = 0; r < rows; r++)
			take_scalar(w, &w->scalar[i], b, r, to[r]);
	w->added += rows;
	return !bad && w->w.h5.failed ? error_set(e, "%s", w->w.h5.error.msg) : bad;
}

/* The text of a cell; *n 0: it has none. */
static const char *text_of(const struct h5ad_into *w, const struct scalar *c, uint64_t cell, size_t *n)
{
	const uint64_t *at = w->seen[cell] ? c->text.offset + c->at[cell] : NULL;
	*n = at ? strnlen(c->text.bytes + at[0], at[1] - at[0]) : 0;
	return *n ? c->text.bytes + at[0] : "";
}

/* Texts of which some are missing are a categorical, as anndata writes them: a text of AnnData cannot be missing. */
static void texts_to_categories(struct h5ad_into *w, const struct scalar *c)
{
	struct column_spec *s = &w->columns.col[c->own];
	struct column *to = &w->table.col[c->own];
	RELEASED(classes_release) struct classes found = {0};
	uint32_t *code = xmalloc((w->ncell + 1) * sizeof *code);
	size_t n;
	for (uint64_t r = 0; r < w->ncell; r++) {
		const char *text = text_of(w, c, r, &n);
		code[r] = n ? classes_add(&found, text, n) : MISSING_CODE;
	}
	FREED uint32_t *order = classes_sorted(&found), *rank = xmalloc((found.n + 1) * sizeof *rank);
	s->type = CATEGORICAL;
	s->ncategory = found.n;
	s->category = xmalloc((found.n + 1) * sizeof *s->category);
	for (size_t k = 0; k < found.n; k++) {
		rank[order[k]] = (uint32_t)k;
		s->category[k] = xstrdup(found.name[order[k]]);
	}
	for (uint64_t r = 0; r < w->ncell; r++)
		code[r] = code[r] == MISSING_CODE ? code[r] : rank[code[r]];
	free(to->data);
	to->data = code;
	to->cap = w->ncell * sizeof *code;
}

/* A column of obs. gaps: some cells have no value. */
static int write_column(struct h5ad_into *w, hid_t obs, struct scalar *c, int gaps, struct error *e)
{
	struct column_spec *s = &w->columns.col[c->own];
	struct obs_out o = {.col = c->own, .missing = c->missing >= 0 || gaps ? c->own + 1 : -1, .name = s->name};
	if (gaps && s->type == CATEGORICAL && s->dtype && !strcmp(s->dtype, "bool")) {
		free(s->dtype);
		s->dtype = xstrdup("boolean");
	}
	size_t n = 1;
	for (uint64_t r = 0; r < w->ncell && n && s->type == STR && !s->dtype; r++)
		text_of(w, c, r, &n);
	if (!n)
		texts_to_categories(w, c);
	for (uint64_t r = 0; r < w->ncell && s->type == STR; r++) {
		const char *text = text_of(w, c, r, &n);
		block_push_str(&w->table, c->own, text, n);
	}
	if (s->type == CATEGORICAL)
		o.missing = -1;
	if (w->options->replace && H5Lexists(obs, s->name, H5P_DEFAULT) > 0)
		h5out_ok(&w->w.h5, H5Ldelete(obs, s->name, H5P_DEFAULT));
	export_obs_column(&w->w, obs, &o);
	int bad = export_add_obs(&w->w, &w->table, &o, w->ncell, e);
	h5out_close(&w->w.h5, &o.values);
	h5out_close(&w->w.h5, &o.mask);
	return bad;
}

char *h5ad_into_written(const struct h5ad_into *w)
{
	char *list = xstrdup("");
	int n = 0;
	for (size_t i = 0; i < w->nfixed + w->nscalar; i++) {
		int scalar = i >= w->nfixed;
		if (!scalar && w->fixed[i].there)
			continue;
		const char *name = scalar ? w->columns.col[w->scalar[i - w->nfixed].own].name : w->fixed[i].name;
		const char *before = scalar && i == w->nfixed ? (n ? "; obs " : "obs ") : n ? ", " : "obsm ";
		int replaced = scalar ? w->scalar[i - w->nfixed].replaced : w->fixed[i].replaced;
		xappend(&list, "%s%s%s", before, name, replaced ? " (replaced)" : "");
		n++;
	}
	return list;
}

int h5ad_into_finish(struct h5ad_into *w, uint64_t *absent, struct error *e)
{
	struct h5out *o = &w->w.h5;
	int bad = 0;
	*absent = w->ncell - w->added;
	hid_t obs = h5out_id(o, H5Gopen2(o->file, "obs", H5P_DEFAULT));
	FREED char **order = xcalloc(w->obs.ncol + w->nscalar, sizeof *order);
	size_t n = 0;
	while (n < w->obs.ncol) {
		order[n] = w->obs.col[n].name;
		n++;
	}
	for (size_t i = 0; i < w->nscalar && !bad; i++) {
		char *name = w->columns.col[w->scalar[i].own].name;
		if (!dataframe_find(&w->obs, name)) /* a column that is replaced keeps its place */
			order[n++] = name;
		bad = write_column(w, obs, &w->scalar[i], *absent > 0, e);
	}
	if (!bad && w->nscalar) {
		if (H5Aexists(obs, "column-order") > 0)
			h5out_ok(o, H5Adelete(obs, "column-order"));
		h5out_text_list(o, obs, "column-order", order, n);
	}
	H5Gclose(obs);
	export_said(o, w->header, w->key);
	for (size_t i = 0; i < w->nfixed; i++) {
		RELEASED(h5_close) hid_t obsm = w->fixed[i].values ? h5out_id(o, H5Gopen2(o->file, "obsm", H5P_DEFAULT)) : -1;
		if (w->fixed[i].values) {
			const struct column_spec *s = &w->header->col[w->fixed[i].col];
			export_classes(&w->w, obsm, w->fixed[i].name, s, classes_of(w, s), w->fixed[i].values, w->ncell, w->obs.index.name);
		} else if (!w->fixed[i].there)
			h5out_ok(o, H5Dclose(w->fixed[i].set));
		w->fixed[i].set = 0;
		h5array_release(&w->fixed[i].old);
	}
	dataframe_release(&w->obs);
	h5out_close_file(o);
	return bad ? bad : o->failed ? error_set(e, "%s", o->error.msg) : 0;
}

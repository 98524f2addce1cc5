/*
 * Columns of a stream as columns of AnnData's obs.
 */
#include "anndata/export_impl.h"

hid_t export_native(const struct h5ad_writer *w, enum column_type t)
{
	const struct column_kind *k = type_kind(t);
	const hid_t whole[][2] = {{H5T_NATIVE_UINT8, H5T_NATIVE_INT8}, {H5T_NATIVE_UINT16, H5T_NATIVE_INT16},
		{H5T_NATIVE_UINT32, H5T_NATIVE_INT32}, {H5T_NATIVE_UINT64, H5T_NATIVE_INT64}};
	switch (k->values) {
	case VALUES_UNSIGNED:
	case VALUES_SIGNED:
	case VALUES_CODE: /* -1: missing */
		return whole[__builtin_ctzl(k->size)][k->values != VALUES_UNSIGNED];
	case VALUES_FLOAT:
		return H5T_NATIVE_FLOAT;
	case VALUES_DOUBLE:
		return H5T_NATIVE_DOUBLE;
	case VALUES_TEXT:
		return w->h5.text;
	}
	return -1;
}

static hid_t obs_native(const struct h5ad_writer *w, enum column_type t)
{
	return t == U8 ? w->h5.boolean : export_native(w, t);
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
	return obs_native(w, s->type);
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

char *export_link_name(const struct obs_out *o, size_t n, const char *name)
{
	char *s = xstrdup(name);
	for (char *p = s; *p; p++)
		if (*p == '/')
			*p = '_';
	for (size_t i = 0; i <= n; i++) {
		if (i < n ? strcmp(o[i].name, s) : strcmp(s, "_index") && strcmp(s, "."))
			continue;
		xappend(&s, "_");
		i = (size_t)-1;
	}
	return s;
}

static int boolean_categories(const struct column_spec *s)
{
	int yes = has_dtype(s, "bool-categories");
	for (size_t i = 0; i < s->ncategory; i++)
		yes &= !strcmp(s->category[i], "False") || !strcmp(s->category[i], "True");
	return yes;
}

/* The categories are texts in the stream. AnnData may have had numbers or booleans. */
static void categories(struct h5ad_writer *w, hid_t g, const struct column_spec *s)
{
	struct h5out_array a;
	int whole = has_dtype(s, "int64"), real = has_dtype(s, "float64"), boolean = boolean_categories(s);
	if (!whole && !real && !boolean) {
		h5out_texts(&w->h5, g, "categories", s->category, s->ncategory);
		return;
	}
	hid_t type = whole ? H5T_NATIVE_INT64 : real ? H5T_NATIVE_DOUBLE : w->h5.boolean;
	int64_t *i64 = xmalloc(s->ncategory * sizeof *i64);
	double *f64 = xmalloc(s->ncategory * sizeof *f64);
	signed char *b = xmalloc(s->ncategory);
	for (size_t i = 0; i < s->ncategory; i++) {
		i64[i] = strtoll(s->category[i], NULL, 10);
		f64[i] = strtod(s->category[i], NULL);
		b[i] = s->category[i][0] == 'T';
	}
	h5out_array(&w->h5, &a, g, "categories", type, type, 0, "array");
	h5out_append(&w->h5, &a, whole ? (void *)i64 : real ? (void *)f64 : (void *)b, s->ncategory);
	h5out_close(&w->h5, &a);
	free_all(i64, f64, b);
}

/* values and, for what may be missing, a mask */
static void nullable(struct h5ad_writer *w, hid_t obs, struct obs_out *o, const char *encoded, hid_t type, hid_t memory)
{
	RELEASED(h5_close) hid_t g = h5out_group(&w->h5, obs, o->name, encoded, "0.1.0");
	h5out_array(&w->h5, &o->values, g, "values", type, memory, 0, memory == w->h5.text ? "string-array" : "array");
	h5out_array(&w->h5, &o->mask, g, "mask", w->h5.boolean, w->h5.boolean, 0, "array");
}

void export_obs_column(struct h5ad_writer *w, hid_t obs, struct obs_out *o)
{
	const struct column_spec *s = &w->header->col[o->col];
	int integer = type_is_whole(s->type);
	signed char ordered = (signed char)s->ordered;
	hid_t boolean = w->h5.boolean;
	if (is_boolean(s) && has_dtype(s, "bool")) {
		h5out_array(&w->h5, &o->values, obs, o->name, boolean, boolean, 0, "array");
	} else if (is_boolean(s)) {
		nullable(w, obs, o, "nullable-boolean", boolean, boolean);
	} else if (s->type == CATEGORICAL) {
		RELEASED(h5_close) hid_t g = h5out_group(&w->h5, obs, o->name, "categorical", "0.2.0");
		h5out_attribute(&w->h5, g, "ordered", boolean, 0, &ordered);
		categories(w, g, s);
		h5out_array(&w->h5, &o->values, g, "codes", H5T_NATIVE_INT32, H5T_NATIVE_INT32, 0, "array");
	} else if (integer && o->missing >= 0) {
		nullable(w, obs, o, s->type == U8 ? "nullable-boolean" : "nullable-integer", stored(w, s), obs_native(w, s->type));
	} else if (s->type == STR && o->missing >= 0 && has_dtype(s, "string")) {
		nullable(w, obs, o, "nullable-string-array", w->h5.text, w->h5.text);
	} else {
		h5out_array(&w->h5, &o->values, obs, o->name, stored(w, s), obs_native(w, s->type), 0,
			s->type == STR ? "string-array" : "array");
	}
}

void *export_scratch(struct h5ad_writer *w, size_t bytes)
{
	return w->scratch = grow_bytes(w->scratch, &w->scratch_cap, bytes, 1);
}

char **export_texts(struct h5ad_writer *w, const struct block *b, int c, const uint8_t *missing, size_t rows)
{
	size_t n, at = 0;
	char **s = export_scratch(w, rows * sizeof *s);
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

/* Real numbers with a companion: NaN where it says missing. */
static const void *with_nan(struct h5ad_writer *w, const struct block *b, const struct obs_out *o, size_t rows)
{
	const uint8_t *missing = b->col[o->missing].data;
	enum column_type type = w->header->col[o->col].type;
	size_t size = type_size(type);
	char *v = export_scratch(w, rows * size);
	memcpy(v, b->col[o->col].data, rows * size);
	for (size_t r = 0; r < rows; r++)
		if (missing[r])
			type_fill_missing(type, v + r * size, 1);
	return v;
}

/* The codes of False and True as booleans; a missing one is False. */
static const void *booleans(struct h5ad_writer *w, const struct block *b, const struct obs_out *o, size_t rows)
{
	const uint32_t *code = b->col[o->col].data;
	signed char *v = export_scratch(w, rows);
	for (size_t r = 0; r < rows; r++)
		v[r] = code[r] == 1;
	return v;
}

int export_add_obs(struct h5ad_writer *w, const struct block *b, struct obs_out *o, size_t rows, struct error *e)
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
		h5out_append(&w->h5, &o->values, export_texts(w, b, o->col, missing, rows), rows);
	else if (missing && type_is_real(s->type))
		h5out_append(&w->h5, &o->values, with_nan(w, b, o, rows), rows);
	else
		h5out_append(&w->h5, &o->values, v, rows); /* a missing code, 0xFFFFFFFF, is int32 -1 */
	if (o->mask.set) {
		char *m = export_scratch(w, rows);
		for (size_t r = 0; r < rows; r++)
			m[r] = missing ? missing[r] != 0 : ((const uint32_t *)v)[r] == MISSING_CODE;
		h5out_append(&w->h5, &o->mask, m, rows);
	}
	return 0;
}

void export_classes(struct h5ad_writer *w, hid_t obsm, const char *name, const struct column_spec *s, const cJSON *label,
	const char *values, size_t ncell, const char *index)
{
	struct h5out *o = &w->h5;
	struct obs_out *column = xcalloc(s->n, sizeof *column);
	char **order = xcalloc(s->n, sizeof *order), *from = xasprintf("/obs/%s", index);
	RELEASED(h5_close) hid_t group = h5out_group(o, obsm, name, "dataframe", "0.2.0");
	hid_t type = export_native(w, s->type);
	label = label->child;
	for (uint32_t k = 0; k < s->n; k++, label = label->next) {
		order[k] = column[k].name = export_link_name(column, k, label->valuestring);
		h5out_array(o, &column[k].values, group, order[k], type, type, 0, "array");
		h5out_append(o, &column[k].values, values + k * ncell * type_size(s->type), ncell);
		h5out_close(o, &column[k].values);
	}
	h5out_text_attribute(o, group, "_index", "_index");
	h5out_text_list(o, group, "column-order", order, s->n);
	h5out_ok(o, H5Lcreate_hard(o->file, from, group, "_index", H5P_DEFAULT, H5P_DEFAULT));
	free_list(order, s->n);
	free_all(column, from);
}

/* The group in/name, made if it is not there; the caller closes it. */
static hid_t need_group(struct h5out *o, hid_t in, const char *name)
{
	return H5Lexists(in, name, H5P_DEFAULT) > 0 ? h5out_id(o, H5Gopen2(in, name, H5P_DEFAULT))
						    : h5out_group(o, in, name, "dict", "0.1.0");
}

void export_said(struct h5out *o, const struct header *h, const char *key)
{
	const cJSON *said = cJSON_GetObjectItemCaseSensitive(h->extra, HEADER_SAID), *x;
	if (!cJSON_IsObject(said))
		return;
	RELEASED(h5_close) hid_t uns = need_group(o, o->file, "uns"), all = need_group(o, uns, "corrmask");
	if (H5Lexists(all, key, H5P_DEFAULT) > 0)
		h5out_ok(o, H5Ldelete(all, key, H5P_DEFAULT));
	RELEASED(h5_close) hid_t own = h5out_group(o, all, key, "dict", "0.1.0");
	cJSON_ArrayForEach(x, said)
	{
		if (cJSON_IsString(x))
			h5out_string(o, own, x->string, x->valuestring);
		else if (cJSON_IsNumber(x))
			h5out_number(o, own, x->string, x->valuedouble);
	}
}

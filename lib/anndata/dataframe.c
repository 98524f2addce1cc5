#include "anndata/dataframe.h"
#include "anndata/h5.h"
#include "anndata/zarr.h"

#include "base/strmap.h"

#define CATEGORIES_MAX ((uint64_t)1 << 26)

void dataframe_column_release(struct dataframe_column *c)
{
	if (!c->where)
		return;
	free_list(c->category, c->ncategory);
	free_all(c->name, c->why, c->note, c->where, c->row);
	texts_release(&c->held);
	h5array_release(&c->values);
	h5array_release(&c->mask);
	if (c->zarr)
		zarr_array_release(c->zarr);
	free(c->zarr);
	h5_close(&c->dataset);
	h5_close(&c->field);
	*c = (struct dataframe_column){0};
}

static void column_init(struct dataframe_column *c, const char *name, const struct store *s, const char *path)
{
	*c = (struct dataframe_column){
		.name = xstrdup(name), .kind = DATAFRAME_OTHER, .dataset = -1, .field = -1, .where = xasprintf("%s: %s", s->name, path)};
}

static int other(struct dataframe_column *c, const char *why)
{
	c->kind = DATAFRAME_OTHER;
	free(c->why); /* of a part of it */
	c->why = xstrdup(why);
	return 0;
}

/* Length of a one-dimensional dataset, or -1. */
static int64_t length(hid_t dataset)
{
	RELEASED(h5_close) hid_t space = H5Dget_space(dataset);
	hsize_t n = 0;
	int ok = space >= 0 && H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &n, NULL) == 1;
	return ok && n <= INT64_MAX ? (int64_t)n : -1;
}

static void number_kind(struct dataframe_column *c, enum number_type type)
{
	static const char *const dtype[] = {"int8", "uint8", "int16", "uint16", "int32", "uint32", NULL, NULL, "float32", NULL};
	EVERY_ROW(dtype, NUMBER_TYPES);
	c->kind = number_is_float(type) ? DATAFRAME_F64 : type == NUMBER_U64 ? DATAFRAME_U64 : DATAFRAME_I64;
	c->dtype = dtype[type];
}

static void boolean_kind(struct dataframe_column *c)
{
	c->kind = DATAFRAME_CATEGORICAL;
	c->dtype = "bool";
	c->category = xmalloc(2 * sizeof *c->category);
	c->category[c->ncategory++] = xstrdup("False");
	c->category[c->ncategory++] = xstrdup("True");
}

static int open_numbers(struct dataframe_column *c, struct store *s, const char *path, struct error *e)
{
	if (h5array_open(&c->values, s, path, e))
		return -1;
	if (c->values.boolean)
		boolean_kind(c);
	else
		number_kind(c, c->values.type);
	return 0;
}

static int open_zarr(struct dataframe_column *c, struct store *s, const char *path, int64_t *n, struct error *e)
{
	RELEASED(zarr_array_release) struct zarr_array a = {0};
	if (zarr_array_open(&a, s, path, e))
		return -1;
	*n = a.ndim != 1 ? -1 : (int64_t)a.dim[0];
	if (*n < 0)
		return other(c, "not one-dimensional");
	if (a.kind == ZARR_OTHER)
		return other(c, "neither numbers nor strings");
	if (a.kind != ZARR_TEXTS)
		return open_numbers(c, s, path, e);
	c->kind = DATAFRAME_STR;
	c->zarr = xmalloc(sizeof *c->zarr);
	*c->zarr = a;
	a = (struct zarr_array){0};
	return 0;
}

/* Open an array that holds strings, numbers or booleans as a column. */
static int open_values(struct dataframe_column *c, struct store *s, const char *path, int64_t *n, struct error *e)
{
	if (s->kind == &store_zarr)
		return open_zarr(c, s, path, n, e);
	RELEASED(h5_close) hid_t d = h5_dataset(s->h5, path, c->where, e), type = d < 0 ? -1 : H5Dget_type(d);
	if (d < 0)
		return -1;
	H5T_class_t class = H5Tget_class(type);
	*n = length(d);
	if (*n < 0)
		return other(c, "not one-dimensional");
	if (class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_ENUM)
		return open_numbers(c, s, path, e);
	if (class != H5T_STRING)
		return other(c, "neither numbers nor strings");
	if (H5Tis_variable_str(type) <= 0 && H5Tget_size(type) > H5_STRING_MAX)
		return other(c, "strings of more than 65,536 bytes");
	if (h5_check_chunks(d, c->where, e))
		return -1;
	c->kind = DATAFRAME_STR;
	c->dataset = d;
	d = -1;
	return 0;
}

int dataframe_strings(struct dataframe_column *c, struct store *s, const char *path, uint64_t *nrow, struct error *e)
{
	int64_t n = 0;
	column_init(c, "_index", s, path); /* which is no name */
	int r = store_type(s, path) != STORE_ARRAY ? error_set(e, "%s: missing", c->where) : open_values(c, s, path, &n, e);
	if (r == 0 && c->kind != DATAFRAME_STR)
		r = error_set(e, "%s: holds no strings", c->where);
	if (r)
		dataframe_column_release(c);
	*nrow = (uint64_t)n;
	return r;
}

/* The categories: any column of strings, numbers or booleans, as text. Without them c is DATAFRAME_OTHER. */
static int read_categories(struct dataframe_column *c, struct store *s, const char *path, struct error *e)
{
	RELEASED(dataframe_column_release) struct dataframe_column values;
	RELEASED(texts_release) struct texts t = {0};
	int64_t n = 0;
	column_init(&values, "categories", s, path);
	enum store_type type = store_type(s, path);
	/* a group: nullable strings. No category is missing, so the mask does not matter */
	FREED char *sub = type == STORE_GROUP ? xasprintf("%s/values", path) : xstrdup(path);
	if (store_type(s, sub) != STORE_ARRAY)
		return other(c, type == STORE_GROUP ? "unreadable categories" : "its categories are missing");
	if (open_values(&values, s, sub, &n, e))
		return -1;
	if (values.kind == DATAFRAME_OTHER || (uint64_t)n > CATEGORIES_MAX)
		return other(c, values.why ? "categories that are neither numbers nor strings in one dimension" : "too many categories");
	struct zarr_array *z = values.zarr ? values.zarr : values.values.zarr;
	if (z)
		z->fill_rows = 1; /* categories differ, so one at most is the fill value */
	if (dataframe_texts(&values, 0, (uint64_t)n, &t, e))
		return values.not_utf8 ? other(c, "a category is not UTF-8 (Latin-1?)") : -1;
	c->category = xmalloc(t.n * sizeof *c->category);
	for (size_t i = 0; i < t.n; i++)
		c->category[c->ncategory++] = texts_dup(&t, i);
	c->kind = DATAFRAME_CATEGORICAL;
	c->dtype = values.kind == DATAFRAME_I64        ? "int64"
		: values.kind == DATAFRAME_F64         ? "float64"
		: values.kind == DATAFRAME_CATEGORICAL ? "bool-categories"
						       : NULL;
	return 0;
}

/* The attribute "ordered" of a categorical: of its group or, before anndata 0.8, of its categories. */
static int is_ordered(struct store *s, const char *path)
{
	int64_t yes;
	return store_attribute_numbers(s, path, "ordered", &yes, 1) == 0 && yes;
}

/* The same in zarr: an attribute that names the categories, from the frame. */
static int named_categories(struct dataframe_column *c, struct store *s, const char *path, struct error *e)
{
	RELEASED(texts_release) struct texts t = {0};
	if (store_attribute_texts(s, path, "categories", &t) || t.n != 1)
		return 0;
	FREED char *name = texts_dup(&t, 0), *full = xasprintf("%.*s%s", (int)(strrchr(path, '/') + 1 - path), path, name);
	if (read_categories(c, s, full, e))
		return -1;
	c->ordered = is_ordered(s, full);
	return 1;
}

/* anndata 0.7: integer codes with an attribute that refers to the categories. 1 done, 0 no such attribute, -1 error. */
static int referred_categories(struct dataframe_column *c, struct store *s, const char *path, struct error *e)
{
	if (s->kind == &store_zarr)
		return named_categories(c, s, path, e);
	RELEASED(h5_close) hid_t d = h5_dataset(s->h5, path, c->where, e);
	if (d < 0)
		return -1;
	RELEASED(h5_close) hid_t a = H5Aexists(d, "categories") > 0 ? H5Aopen(d, "categories", H5P_DEFAULT) : -1, to = -1;
	if (a < 0)
		return 0;
	RELEASED(h5_close) hid_t type = H5Aget_type(a), space = H5Aget_space(a);
	hobj_ref_t ref = 0;
	char name[1024];
	if (H5Tget_class(type) == H5T_REFERENCE && H5Tequal(type, H5T_STD_REF_OBJ) > 0 && H5Sget_simple_extent_npoints(space) == 1 &&
		H5Aread(a, H5T_STD_REF_OBJ, &ref) >= 0)
		to = H5Rdereference2(d, H5P_DEFAULT, H5R_OBJECT, &ref);
	ssize_t n = to < 0 ? -1 : H5Iget_name(to, name, sizeof name);
	if (n <= 0 || (size_t)n >= sizeof name)
		return error_set(e, "%s: attribute categories does not refer to a dataset", c->where);
	if (read_categories(c, s, name, e))
		return -1;
	c->ordered = is_ordered(s, name);
	return 1;
}

/* Numbers that seem to be codes, but do not refer to the categories, would be labels 0, 1, 2, ... in silence. */
static void note_lost_categories(struct dataframe_column *c, struct store *s, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	FREED char *categories = xasprintf("%.*s__categories/%s", (int)(name - path), path, name);
	if (store_has(s, categories))
		c->note = xasprintf(
			"%s: whole numbers, perhaps the codes of %s, to which nothing refers: the names are lost", c->where, categories);
}

static int is_integer(const struct dataframe_column *c)
{
	return c->kind == DATAFRAME_I64 || c->kind == DATAFRAME_U64;
}

static int open_member(struct dataframe_column *c, struct store *s, const char *path, int64_t *n, struct error *e)
{
	RELEASED(texts_release) struct texts type_name = {0};
	enum store_type type = store_type(s, path);
	if (type == STORE_ARRAY) {
		if (open_values(c, s, path, n, e))
			return -1;
		int referred = c->kind == DATAFRAME_I64 ? referred_categories(c, s, path, e) : 1;
		if (!referred)
			note_lost_categories(c, s, path);
		return referred < 0 ? -1 : 0;
	}
	if (type != STORE_GROUP)
		return other(c, "missing, though its table names it: the program that wrote the file may not have finished");
	FREED char *codes = xasprintf("%s/codes", path), *categories = xasprintf("%s/categories", path),
		   *values = xasprintf("%s/values", path), *mask = xasprintf("%s/mask", path);
	if (store_type(s, codes) == STORE_ARRAY) {
		if (open_values(c, s, codes, n, e))
			return -1;
		if (!is_integer(c))
			return other(c, "codes that are not integers in one dimension");
		if (read_categories(c, s, categories, e))
			return -1;
		c->ordered = is_ordered(s, path);
		return 0;
	}
	if (store_type(s, values) != STORE_ARRAY || store_type(s, mask) != STORE_ARRAY)
		return other(c, "a group of an unknown kind");
	if (open_values(c, s, values, n, e) || h5array_open(&c->mask, s, mask, e))
		return -1;
	if (c->mask.ndim != 1 || c->mask.dim[0] != (uint64_t)*n || number_is_float(c->mask.type))
		return other(c, "a mask that is not a boolean for each row");
	if (is_integer(c) && store_attribute_texts(s, path, "encoding-type", &type_name) == 0 && type_name.n == 1 &&
		texts_is(&type_name, 0, "nullable-boolean"))
		boolean_kind(c); /* R writes 0 and 1 as 32 bits */
	c->has_mask = 1;
	c->nullable = c->kind == DATAFRAME_STR || is_integer(c);
	if (c->kind == DATAFRAME_STR)
		c->dtype = "string";
	else if (c->kind == DATAFRAME_CATEGORICAL)
		c->dtype = "boolean";
	return 0;
}

/* Open column `name` of the group at `path`. *n: its rows. */
static int open_column(struct dataframe_column *c, struct store *s, const char *path, const char *name, int64_t *n, struct error *e)
{
	FREED char *sub = xasprintf("%s/%s", path, name);
	column_init(c, name, s, sub);
	return open_member(c, s, sub, n, e);
}

static int open_index(struct dataframe *f, struct store *s, const char *path, const char *name, struct error *e)
{
	int64_t n = 0;
	if (open_column(&f->index, s, path, name, &n, e))
		return -1;
	if (f->index.zarr)
		f->index.zarr->fill_rows = 0; /* names that are all empty are none */
	f->nrow = (uint64_t)n;
	return f->index.kind == DATAFRAME_OTHER ? error_set(e, "%s: %s, expected the names of the rows", f->index.where, f->index.why) : 0;
}

/* The columns of these names, without the index. */
static int open_columns(struct dataframe *f, struct store *s, const char *path, const struct texts *names, struct error *e)
{
	RELEASED(strmap_release) struct strmap seen = {0};
	f->col = xcalloc(names->n, sizeof *f->col);
	for (size_t i = 0; i < names->n; i++) {
		FREED char *name = texts_dup(names, i);
		if (strmap_put(&seen, name, strlen(name), (uint32_t)i) != i)
			return error_set(e, "%s: column '%.80s' occurs twice in column-order", f->where, name);
		if (!*name || !strcmp(name, f->index.name) || !strcmp(name, "__categories"))
			continue;
		struct dataframe_column *c = f->col + f->ncol++;
		int64_t rows = (int64_t)f->nrow;
		if (open_column(c, s, path, name, &rows, e))
			return -1;
		if (c->kind != DATAFRAME_OTHER && rows != (int64_t)f->nrow) {
			FREED char *why = xasprintf("%" PRId64 " rows, expected %" PRIu64 " as in the index", rows, f->nrow);
			other(c, why);
		}
	}
	return 0;
}

static int open_group(struct dataframe *f, struct store *s, const char *path, struct error *e)
{
	RELEASED(texts_release) struct texts order = {0}, index = {0};
	FREED char *sub = xasprintf("%s/_index", path), *name;
	if (store_attribute_texts(s, path, "_index", &index) == 0 && index.n == 1)
		name = texts_dup(&index, 0);
	else
		name = xstrdup(store_has(s, sub) ? "_index" : "index");
	if (store_attribute_texts(s, path, "column-order", &order))
		store_names(s, path, &order);
	return open_index(f, s, path, name, e) || open_columns(f, s, path, &order, e) ? -1 : 0;
}

/* Number the rows. */
static void make_index(struct dataframe *f, uint64_t nrow)
{
	char name[24];
	dataframe_held(&f->index, "_index", f->where);
	f->nrow = nrow;
	for (uint64_t i = 0; i < nrow; i++)
		texts_push(&f->index.held, name, (size_t)snprintf(name, sizeof name, "%" PRIu64, i));
}

/* Does the array hold nrow texts that are all different? */
static int is_names(struct store *s, const char *path, const char *name, uint64_t nrow)
{
	RELEASED(dataframe_column_release) struct dataframe_column c;
	RELEASED(texts_release) struct texts t = {0};
	RELEASED(strmap_release) struct strmap seen = {0};
	int64_t n = 0;
	int is = open_column(&c, s, path, name, &n, NULL) == 0 && c.kind == DATAFRAME_STR && (uint64_t)n == nrow && nrow < UINT32_MAX &&
		dataframe_texts(&c, 0, nrow, &t, NULL) == 0;
	for (size_t i = 0; is && i < t.n; i++)
		is = strmap_put(&seen, t.bytes + t.offset[i], t.offset[i + 1] - t.offset[i], (uint32_t)i) == i;
	return is;
}

/* Which of the arrays has the names of the rows? NULL: none. */
static char *find_index(struct store *s, const char *path, const struct texts *names, const char *const *known, uint64_t nrow)
{
	char *found = NULL;
	for (const char *const *want = known; *want && !found; want++)
		for (size_t i = 0; i < names->n && !found; i++)
			found = texts_is(names, i, *want) ? texts_dup(names, i) : NULL;
	for (size_t i = 0; i < names->n && !found; i++) {
		found = texts_dup(names, i);
		if (!is_names(s, path, found, nrow)) {
			free(found);
			found = NULL;
		}
	}
	return found;
}

int dataframe_open_arrays(struct dataframe *f, struct store *s, const char *path, const char *const *index, uint64_t nrow, struct error *e)
{
	RELEASED(texts_release) struct texts names = {0};
	int r = 0;
	*f = (struct dataframe){.where = xasprintf("%s: %s", s->name, path)};
	store_names(s, path, &names);
	FREED char *name = find_index(s, path, &names, index, nrow);
	if (name)
		r = open_index(f, s, path, name, e);
	else
		make_index(f, nrow);
	if (r == 0 && f->nrow != nrow)
		r = error_set(e, "%s: %" PRIu64 " names, expected %" PRIu64, f->index.where, f->nrow, nrow);
	if (r == 0)
		r = open_columns(f, s, path, &names, e);
	if (r)
		dataframe_release(f);
	return r;
}

/* Field i of the compound dataset. */
static int open_field(struct dataframe_column *c, struct store *s, hid_t d, hid_t type, unsigned i, const char *path, struct error *e)
{
	char *name = H5Tget_member_name(type, i);
	if (!name)
		return h5_error(e, s->name, "reading the fields");
	FREED char *sub = xasprintf("%s/%s", path, name), *categories = xasprintf("uns/%s_categories", name);
	column_init(c, name, s, sub);
	RELEASED(h5_close) hid_t member = H5Tget_member_type(type, i), mem = -1;
	H5T_class_t class = H5Tget_class(member);
	int r = 0;
	if (class == H5T_STRING && (H5Tis_variable_str(member) > 0 || H5Tget_size(member) <= H5_STRING_MAX)) {
		c->kind = DATAFRAME_STR;
		mem = H5Tcopy(member);
	} else if (class == H5T_FLOAT) {
		number_kind(c, H5Tget_size(member) <= 4 ? NUMBER_F32 : NUMBER_F64);
		mem = H5Tcopy(H5T_NATIVE_DOUBLE);
	} else if (class == H5T_INTEGER) {
		number_kind(c, number_integer(H5Tget_size(member), H5Tget_sign(member) == H5T_SGN_2));
		mem = H5Tcopy(c->kind == DATAFRAME_U64 ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64);
		if (store_type(s, categories) == STORE_ARRAY)
			r = read_categories(c, s, categories, e);
	} else if (class == H5T_ENUM && H5Tget_size(member) == 1) {
		boolean_kind(c);
		mem = H5Tcopy(member);
	} else {
		other(c, "neither numbers nor strings");
	}
	if (mem >= 0) {
		c->field = H5Tcreate(H5T_COMPOUND, H5Tget_size(mem));
		H5Tinsert(c->field, name, 0, mem);
		H5Iinc_ref(d);
		c->dataset = d;
	}
	H5free_memory(name);
	return r;
}

static int open_compound(struct dataframe *f, struct store *s, const char *path, struct error *e)
{
	if (s->kind == &store_zarr)
		return error_set(e, "%s: expected a group", f->where);
	RELEASED(h5_close) hid_t d = h5_dataset(s->h5, path, f->where, e), type = d < 0 ? -1 : H5Dget_type(d);
	if (d < 0)
		return -1;
	if (H5Tget_class(type) != H5T_COMPOUND || length(d) < 0)
		return error_set(e, "%s: expected a group, or a table in one dimension", f->where);
	if (h5_check_chunks(d, f->where, e))
		return -1;
	int n = H5Tget_nmembers(type), r = 0;
	f->nrow = (uint64_t)length(d);
	f->col = xcalloc((size_t)n, sizeof *f->col);
	for (int i = 0; i < n && r == 0; i++) /* the first field is the index */
		r = open_field(i ? f->col + f->ncol++ : &f->index, s, d, type, (unsigned)i, path, e);
	return r;
}

int dataframe_open(struct dataframe *f, struct store *s, const char *path, struct error *e)
{
	*f = (struct dataframe){.where = xasprintf("%s: %s", s->name, path)};
	enum store_type type = store_type(s, path);
	int r = type == STORE_GROUP   ? open_group(f, s, path, e)
		: type == STORE_ARRAY ? open_compound(f, s, path, e)
				      : error_set(e, "%s: missing", f->where);
	if (r)
		dataframe_release(f);
	return r;
}

void dataframe_release(struct dataframe *f)
{
	for (size_t i = 0; i < f->ncol; i++)
		dataframe_column_release(f->col + i);
	dataframe_column_release(&f->index);
	free_all(f->col, f->where);
	*f = (struct dataframe){0};
}

struct dataframe_column *dataframe_find(struct dataframe *f, const char *name)
{
	for (size_t i = 0; i < f->ncol; i++)
		if (strcmp(f->col[i].name, name) == 0)
			return f->col + i;
	return f->index.name && strcmp(f->index.name, name) == 0 ? &f->index : NULL;
}

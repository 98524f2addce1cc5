#include "frame.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STRING_MAX 65536                        /* bytes of a fixed-length string */
#define CATEGORIES_MAX ((uint64_t)1 << 26)
#define STRETCH ((size_t)4096)

void texts_release(struct texts *t)
{
	free(t->bytes);
	free(t->offset);
	*t = (struct texts){0};
}

void texts_clear(struct texts *t)
{
	grow(t->offset, t->offset_cap, 1);
	t->offset[0] = 0;
	t->n = 0;
}

void texts_push(struct texts *t, const char *s, size_t n)
{
	if (!t->offset)
		texts_clear(t);
	uint64_t at = t->offset[t->n];
	grow(t->bytes, t->bytes_cap, at + n + 1);
	grow(t->offset, t->offset_cap, t->n + 2);
	memcpy(t->bytes + at, s, n);
	t->offset[++t->n] = at + n;
}

void frame_values_release(struct frame_values *v)
{
	texts_release(&v->str);
	free(v->code);
	free(v->i64);
	free(v->f64);
	free(v->missing);
	*v = (struct frame_values){0};
}

void frame_column_release(struct frame_column *c)
{
	if (!c->where)
		return;
	for (size_t i = 0; i < c->ncategory; i++)
		free(c->category[i]);
	free(c->category);
	free(c->name);
	free(c->why);
	free(c->where);
	h5array_release(&c->values);
	h5array_release(&c->mask);
	if (c->dataset >= 0)
		H5Dclose(c->dataset);
	if (c->field >= 0)
		H5Tclose(c->field);
	*c = (struct frame_column){0};
}

static void column_init(struct frame_column *c, const char *name, const char *path, const char *filename)
{
	*c = (struct frame_column){.name = xstrdup(name), .kind = FRAME_OTHER, .dataset = -1, .field = -1,
				   .where = xasprintf("%s: %s", filename, path)};
}

static int other(struct frame_column *c, const char *why)
{
	c->kind = FRAME_OTHER;
	c->why = xstrdup(why);
	return 0;
}

/* Strings of `type` (fixed or variable length), stored one every `step` bytes at `p`, onto t. */
static void push_strings(struct texts *t, hid_t type, const char *p, size_t n, size_t step)
{
	int variable = H5Tis_variable_str(type) > 0;
	size_t size = H5Tget_size(type);
	int spaces = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
	for (size_t i = 0; i < n; i++, p += step) {
		const char *s = p;
		if (variable)
			memcpy(&s, p, sizeof s);
		size_t len = !s ? 0 : variable ? strlen(s) : strnlen(s, size);
		while (!variable && spaces && len && s[len - 1] == ' ')
			len--;
		texts_push(t, s ? s : "", len);
	}
}

/*
 * For reading n elements: HDF5 clears its conversion buffer, 1 MiB, in every call for strings of variable length, which is more work
 * than reading the names of some cells.
 */
static hid_t small_buffer(hid_t dataset, hid_t mem, size_t n)
{
	hid_t stored = H5Dget_type(dataset), plist = H5Pcreate(H5P_DATASET_XFER);
	size_t size = stored < 0 ? 0 : H5Tget_size(stored);
	size = size > H5Tget_size(mem) ? size : H5Tget_size(mem);
	if (plist >= 0 && size && n < (1u << 18) / size)
		H5Pset_buffer(plist, 4096 + 2 * n * size, NULL, NULL);  /* in the file, strings take more than H5Tget_size says */
	if (stored >= 0)
		H5Tclose(stored);
	return plist;
}

/* Rows of a string dataset, or of one field of a compound dataset, as the bytes HDF5 gives for `mem`. */
static int read_rows(hid_t dataset, hid_t mem, uint64_t row, size_t n, void *buf, const char *where, struct error *e)
{
	hsize_t start = row, count = n;
	hid_t file = H5Dget_space(dataset), space = H5Screate_simple(1, &count, NULL), plist = small_buffer(dataset, mem, n);
	int ok = file >= 0 && space >= 0 && plist >= 0 && H5Sselect_hyperslab(file, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
		 H5Dread(dataset, mem, space, file, plist, buf) >= 0;
	int r = ok ? 0 : h5_error(e, where, "reading");
	if (file >= 0)
		H5Sclose(file);
	if (space >= 0)
		H5Sclose(space);
	if (plist >= 0)
		H5Pclose(plist);
	return r;
}

static void reclaim(hid_t mem, size_t n, void *buf)
{
	hsize_t count = n;
	hid_t space = H5Screate_simple(1, &count, NULL);
	H5Dvlen_reclaim(mem, space, H5P_DEFAULT, buf);
	H5Sclose(space);
}

static int read_strings(struct frame_column *c, uint64_t row, size_t n, struct texts *t, struct error *e)
{
	hid_t mem = c->field >= 0 ? H5Tcopy(c->field) : H5Dget_type(c->dataset);
	hid_t string = c->field >= 0 ? H5Tget_member_type(mem, 0) : H5Tcopy(mem);
	size_t step = H5Tget_size(mem);
	int r = 0;
	char *buf = xcalloc(n < STRETCH ? n : STRETCH, step);
	for (size_t done = 0; done < n && r == 0;) {
		size_t k = n - done < STRETCH ? n - done : STRETCH;
		r = read_rows(c->dataset, mem, row + done, k, buf, c->where, e);
		if (r == 0) {
			push_strings(t, string, buf, k, step);
			if (H5Tis_variable_str(string) > 0)
				reclaim(mem, k, buf);
		}
		done += k;
	}
	free(buf);
	H5Tclose(mem);
	H5Tclose(string);
	return r;
}

/* Length of a one-dimensional dataset, or -1. */
static int64_t length(hid_t dataset)
{
	hid_t space = H5Dget_space(dataset);
	hsize_t n = 0;
	int ok = space >= 0 && H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &n, NULL) == 1;
	if (space >= 0)
		H5Sclose(space);
	return ok && n <= INT64_MAX ? (int64_t)n : -1;
}

static int object_type(hid_t loc, const char *path)
{
	H5O_info_t info;
	if (H5Lexists(loc, path, H5P_DEFAULT) <= 0 || H5Oget_info_by_name2(loc, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
		return -1;
	return info.type;
}

/* Open a dataset that holds strings, numbers or booleans as a column. */
static int open_values(struct frame_column *c, hid_t loc, const char *path, const char *filename, int64_t *n, struct error *e)
{
	hid_t d = H5Dopen2(loc, path, H5P_DEFAULT), type = d < 0 ? -1 : H5Dget_type(d);
	if (type < 0) {
		if (d >= 0)
			H5Dclose(d);
		return h5_error(e, c->where, "opening the dataset");
	}
	H5T_class_t class = H5Tget_class(type);
	size_t size = H5Tget_size(type);
	*n = length(d);
	int r = 0;
	if (*n < 0) {
		r = other(c, "not one-dimensional");
	} else if (class == H5T_STRING) {
		if (H5Tis_variable_str(type) <= 0 && size > STRING_MAX)
			r = other(c, "strings of more than 65,536 bytes");
		else if ((r = h5_check_chunks(d, c->where, e)) == 0)
			c->kind = FRAME_STR;
	} else if (class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_ENUM) {
		r = h5array_open(&c->values, loc, path, filename, e);
		c->kind = class == H5T_FLOAT || c->values.type == NUM_U64 ? FRAME_F64 : FRAME_I64;
		if (r == 0 && class == H5T_ENUM && size == 1) {
			c->kind = FRAME_CATEGORICAL;
			c->category = xmalloc(2 * sizeof *c->category);
			c->category[c->ncategory++] = xstrdup("False");
			c->category[c->ncategory++] = xstrdup("True");
		}
	} else {
		r = other(c, "neither numbers nor strings");
	}
	H5Tclose(type);
	if (r == 0 && c->kind == FRAME_STR)
		c->dataset = d;
	else
		H5Dclose(d);
	return r;
}

int frame_strings(struct frame_column *c, hid_t file, const char *path, const char *filename, uint64_t *nrow, struct error *e)
{
	int64_t n = 0;
	column_init(c, path, path, filename);
	int r = object_type(file, path) != H5O_TYPE_DATASET ? error_set(e, "%s: missing", c->where) :
		open_values(c, file, path, filename, &n, e);
	if (r == 0 && c->kind != FRAME_STR)
		r = error_set(e, "%s: holds no strings", c->where);
	if (r)
		frame_column_release(c);
	*nrow = (uint64_t)n;
	return r;
}

/* The categories: any column of strings, numbers or booleans, as text. */
static int read_categories(struct frame_column *c, hid_t loc, const char *path, const char *filename, struct error *e)
{
	struct frame_column values;
	struct texts t = {0};
	int64_t n = 0;
	column_init(&values, "categories", path, filename);
	int type = object_type(loc, path), r = -1;
	if (type == H5O_TYPE_GROUP) {   /* nullable strings: no category is missing, so the mask does not matter */
		char *sub = xasprintf("%s/values", path);
		if (object_type(loc, sub) == H5O_TYPE_DATASET)
			r = open_values(&values, loc, sub, filename, &n, e);
		else
			error_set(e, "%s: no categories that can be read", values.where);
		free(sub);
	} else if (type == H5O_TYPE_DATASET) {
		r = open_values(&values, loc, path, filename, &n, e);
	} else {
		error_set(e, "%s: missing", values.where);
	}
	if (r == 0 && (values.kind == FRAME_OTHER || (uint64_t)n > CATEGORIES_MAX))
		r = error_set(e, "%s: %s", values.where, values.why ? values.why : "too many categories");
	if (r == 0)
		r = frame_texts(&values, (uint64_t)n, &t, e);
	if (r == 0) {
		c->category = xmalloc(t.n * sizeof *c->category);
		for (size_t i = 0; i < t.n; i++) {
			size_t len = t.offset[i + 1] - t.offset[i];
			char *s = xmalloc(len + 1);
			memcpy(s, t.bytes + t.offset[i], len);
			s[len] = 0;
			c->category[c->ncategory++] = s;
		}
		c->kind = FRAME_CATEGORICAL;
	}
	texts_release(&t);
	frame_column_release(&values);
	return r;
}

/* anndata 0.7: integer codes with an attribute that refers to the categories. 1 done, 0 no such attribute, -1 error. */
static int referred_categories(struct frame_column *c, hid_t loc, const char *path, const char *filename, struct error *e)
{
	hid_t d = H5Dopen2(loc, path, H5P_DEFAULT);
	if (d < 0)
		return h5_error(e, c->where, "opening the dataset");
	int r = 0;
	hid_t a = H5Aexists(d, "categories") > 0 ? H5Aopen(d, "categories", H5P_DEFAULT) : -1;
	if (a >= 0) {
		hid_t type = H5Aget_type(a), space = H5Aget_space(a);
		hobj_ref_t ref = 0;
		hid_t to = -1;
		char name[1024];
		if (H5Tget_class(type) == H5T_REFERENCE && H5Tequal(type, H5T_STD_REF_OBJ) > 0 &&
		    H5Sget_simple_extent_npoints(space) == 1 && H5Aread(a, H5T_STD_REF_OBJ, &ref) >= 0)
			to = H5Rdereference2(d, H5P_DEFAULT, H5R_OBJECT, &ref);
		ssize_t n = to < 0 ? -1 : H5Iget_name(to, name, sizeof name);
		if (n <= 0 || (size_t)n >= sizeof name)
			r = error_set(e, "%s: attribute categories does not refer to a dataset", c->where);
		else
			r = read_categories(c, loc, name, filename, e) ? -1 : 1;
		if (to >= 0)
			H5Oclose(to);
		H5Tclose(type);
		H5Sclose(space);
		H5Aclose(a);
	}
	H5Dclose(d);
	return r;
}

static int open_member(struct frame_column *c, hid_t file, const char *path, const char *filename, int64_t *n, struct error *e)
{
	int type = object_type(file, path);
	if (type == H5O_TYPE_DATASET) {
		if (open_values(c, file, path, filename, n, e))
			return -1;
		return c->kind == FRAME_I64 && referred_categories(c, file, path, filename, e) < 0 ? -1 : 0;
	}
	if (type != H5O_TYPE_GROUP)
		return error_set(e, "%s: missing", c->where);
	char *sub[4] = {xasprintf("%s/codes", path), xasprintf("%s/categories", path), xasprintf("%s/values", path),
			xasprintf("%s/mask", path)};
	int r = 0;
	if (object_type(file, sub[0]) == H5O_TYPE_DATASET) {
		r = h5array_open(&c->values, file, sub[0], filename, e);
		if (r == 0 && (c->values.ndim != 1 || c->values.type == NUM_F32 || c->values.type == NUM_F64))
			r = error_set(e, "%s: expected integers in one dimension", c->values.where);
		*n = r ? 0 : (int64_t)c->values.dim[0];
		if (r == 0)
			r = read_categories(c, file, sub[1], filename, e);
	} else if (object_type(file, sub[2]) == H5O_TYPE_DATASET && object_type(file, sub[3]) == H5O_TYPE_DATASET) {
		r = open_values(c, file, sub[2], filename, n, e) || h5array_open(&c->mask, file, sub[3], filename, e) ? -1 : 0;
		if (r == 0 && (c->mask.ndim != 1 || c->mask.dim[0] != (uint64_t)*n || c->mask.size != 1))
			r = error_set(e, "%s: expected %" PRId64 " booleans", c->mask.where, *n);
		c->has_mask = 1;
		c->nullable = c->kind == FRAME_STR || c->kind == FRAME_I64;
	} else {
		other(c, "a group of an unknown kind");
	}
	for (int i = 0; i < 4; i++)
		free(sub[i]);
	return r;
}

/* Attribute `name` of obj as texts; -1 when it is absent or not made of strings. */
static int text_list(hid_t obj, const char *name, struct texts *t)
{
	hid_t a = H5Aexists(obj, name) > 0 ? H5Aopen(obj, name, H5P_DEFAULT) : -1;
	if (a < 0)
		return -1;
	hid_t type = H5Aget_type(a), space = H5Aget_space(a);
	hssize_t n = H5Sget_simple_extent_npoints(space);
	int r = -1;
	if (n == 0) {
		texts_clear(t);
		r = 0;
	} else if (H5Tget_class(type) == H5T_STRING && n > 0 && n < 1 << 20 && H5Tget_size(type) <= STRING_MAX) {
		size_t step = H5Tget_size(type);
		char *buf = xcalloc((size_t)n, step);
		if (H5Aread(a, type, buf) >= 0) {
			texts_clear(t);
			push_strings(t, type, buf, (size_t)n, step);
			if (H5Tis_variable_str(type) > 0)
				H5Dvlen_reclaim(type, space, H5P_DEFAULT, buf);
			r = 0;
		}
		free(buf);
	}
	H5Tclose(type);
	H5Sclose(space);
	H5Aclose(a);
	return r;
}

static herr_t push_link(hid_t g, const char *name, const H5L_info_t *info, void *t)
{
	texts_push(t, name, strlen(name));
	return 0;
}

static char *text_dup(const struct texts *t, size_t i)
{
	size_t n = t->offset[i + 1] - t->offset[i];
	char *s = xmalloc(n + 1);
	memcpy(s, t->bytes + t->offset[i], n);
	s[n] = 0;
	return s;
}

static int open_group(struct frame *f, hid_t file, const char *path, const char *filename, struct error *e)
{
	hid_t g = H5Gopen2(file, path, H5P_DEFAULT);
	if (g < 0)
		return h5_error(e, f->where, "opening the group");
	struct texts order = {0}, index = {0};
	char *index_name;
	if (text_list(g, "_index", &index) == 0 && index.n == 1)
		index_name = text_dup(&index, 0);
	else
		index_name = xstrdup(H5Lexists(g, "_index", H5P_DEFAULT) > 0 ? "_index" : "index");
	if (text_list(g, "column-order", &order)) {
		texts_clear(&order);
		H5Literate(g, H5_INDEX_NAME, H5_ITER_INC, NULL, push_link, &order);
	}
	H5Gclose(g);
	f->col = xcalloc(order.n, sizeof *f->col);
	char *sub = xasprintf("%s/%s", path, index_name);
	int64_t n = 0;
	column_init(&f->index, index_name, sub, filename);
	int r = open_member(&f->index, file, sub, filename, &n, e);
	if (r == 0 && f->index.kind == FRAME_OTHER)
		r = error_set(e, "%s: %s, expected the names of the rows", f->index.where, f->index.why);
	free(sub);
	f->nrow = (uint64_t)n;
	for (size_t i = 0; i < order.n && r == 0; i++) {
		char *name = text_dup(&order, i);
		if (*name && strcmp(name, index_name) && strcmp(name, "__categories")) {
			struct frame_column *c = f->col + f->ncol++;
			int64_t rows = n;
			sub = xasprintf("%s/%s", path, name);
			column_init(c, name, sub, filename);
			r = open_member(c, file, sub, filename, &rows, e);
			if (r == 0 && c->kind != FRAME_OTHER && rows != n)
				r = error_set(e, "%s: %" PRId64 " rows, expected %" PRId64 " as in %s", c->where, rows, n, f->index.where);
			free(sub);
		}
		free(name);
	}
	free(index_name);
	texts_release(&order);
	texts_release(&index);
	return r;
}

/* Field i of the compound dataset. */
static int open_field(struct frame_column *c, hid_t file, hid_t d, hid_t type, unsigned i, const char *path, const char *filename,
		      struct error *e)
{
	char *name = H5Tget_member_name(type, i);
	if (!name)
		return h5_error(e, filename, "reading the fields");
	char *sub = xasprintf("%s/%s", path, name), *categories = xasprintf("uns/%s_categories", name);
	column_init(c, name, sub, filename);
	hid_t member = H5Tget_member_type(type, i), mem = -1;
	H5T_class_t class = H5Tget_class(member);
	int r = 0;
	if (class == H5T_STRING && (H5Tis_variable_str(member) > 0 || H5Tget_size(member) <= STRING_MAX)) {
		c->kind = FRAME_STR;
		mem = H5Tcopy(member);
	} else if (class == H5T_FLOAT) {
		c->kind = FRAME_F64;
		mem = H5Tcopy(H5T_NATIVE_DOUBLE);
	} else if (class == H5T_INTEGER) {
		c->kind = FRAME_I64;
		mem = H5Tcopy(H5T_NATIVE_INT64);
		if (object_type(file, categories) == H5O_TYPE_DATASET)
			r = read_categories(c, file, categories, filename, e);
	} else if (class == H5T_ENUM && H5Tget_size(member) == 1) {
		c->kind = FRAME_CATEGORICAL;
		mem = H5Tcopy(member);
		c->category = xmalloc(2 * sizeof *c->category);
		c->category[c->ncategory++] = xstrdup("False");
		c->category[c->ncategory++] = xstrdup("True");
	} else {
		other(c, "neither numbers nor strings");
	}
	if (mem >= 0) {
		c->field = H5Tcreate(H5T_COMPOUND, H5Tget_size(mem));
		H5Tinsert(c->field, name, 0, mem);
		H5Tclose(mem);
		H5Iinc_ref(d);
		c->dataset = d;
	}
	H5Tclose(member);
	H5free_memory(name);
	free(sub);
	free(categories);
	return r;
}

static int open_compound(struct frame *f, hid_t file, const char *path, const char *filename, struct error *e)
{
	hid_t d = H5Dopen2(file, path, H5P_DEFAULT), type = d < 0 ? -1 : H5Dget_type(d);
	int r = 0;
	if (type < 0) {
		r = h5_error(e, f->where, "opening the dataset");
	} else if (H5Tget_class(type) != H5T_COMPOUND || length(d) < 0) {
		r = error_set(e, "%s: expected a group, or a table in one dimension", f->where);
	} else if ((r = h5_check_chunks(d, f->where, e)) == 0) {
		int n = H5Tget_nmembers(type);
		f->nrow = (uint64_t)length(d);
		f->col = xcalloc((size_t)n, sizeof *f->col);
		for (int i = 0; i < n && r == 0; i++)   /* the first field is the index */
			r = open_field(i ? f->col + f->ncol++ : &f->index, file, d, type, (unsigned)i, path, filename, e);
	}
	if (type >= 0)
		H5Tclose(type);
	if (d >= 0)
		H5Dclose(d);
	return r;
}

int frame_open(struct frame *f, hid_t file, const char *path, const char *filename, struct error *e)
{
	*f = (struct frame){.where = xasprintf("%s: %s", filename, path)};
	int type = object_type(file, path);
	int r = type == H5O_TYPE_GROUP ? open_group(f, file, path, filename, e) :
		type == H5O_TYPE_DATASET ? open_compound(f, file, path, filename, e) : error_set(e, "%s: missing", f->where);
	if (r)
		frame_release(f);
	return r;
}

void frame_release(struct frame *f)
{
	for (size_t i = 0; i < f->ncol; i++)
		frame_column_release(f->col + i);
	frame_column_release(&f->index);
	free(f->col);
	free(f->where);
	*f = (struct frame){0};
}

struct frame_column *frame_find(struct frame *f, const char *name)
{
	for (size_t i = 0; i < f->ncol; i++)
		if (strcmp(f->col[i].name, name) == 0)
			return f->col + i;
	return f->index.name && strcmp(f->index.name, name) == 0 ? &f->index : NULL;
}

/* Integers of a column, wherever they are. */
static int read_integers(struct frame_column *c, uint64_t row, size_t n, int64_t *out, int threads, struct error *e)
{
	if (c->dataset < 0)
		return h5array_i64(&c->values, row, n, out, threads, e);
	if (H5Tget_size(c->field) == 8)
		return read_rows(c->dataset, c->field, row, n, out, c->where, e);
	int8_t *b = xmalloc(n);         /* booleans */
	int r = read_rows(c->dataset, c->field, row, n, b, c->where, e);
	for (size_t i = 0; i < n && r == 0; i++)
		out[i] = b[i];
	free(b);
	return r;
}

int frame_read(struct frame_column *c, uint64_t row, size_t n, struct frame_values *v, int threads, struct error *e)
{
	v->n = n;
	texts_clear(&v->str);
	grow(v->missing, v->missing_cap, n);
	memset(v->missing, 0, n);
	if (!n)
		return 0;
	if (c->has_mask && h5array_read(&c->mask, row, n, v->missing, threads, e))
		return -1;
	if (c->kind == FRAME_STR)
		return read_strings(c, row, n, &v->str, e);
	if (c->kind == FRAME_F64) {
		grow(v->f64, v->f64_cap, n);
		if (c->dataset >= 0 ? read_rows(c->dataset, c->field, row, n, v->f64, c->where, e) :
		    h5array_f64(&c->values, row, n, v->f64, threads, e))
			return -1;
		for (size_t i = 0; i < n; i++)
			if (v->missing[i])
				v->f64[i] = NAN;
		return 0;
	}
	if (c->kind == FRAME_OTHER)
		return error_set(e, "%s: %s", c->where, c->why);
	grow(v->i64, v->i64_cap, n);
	if (read_integers(c, row, n, v->i64, threads, e))
		return -1;
	if (c->kind == FRAME_CATEGORICAL) {
		grow(v->code, v->code_cap, n);
		for (size_t i = 0; i < n; i++) {
			int64_t k = v->i64[i];
			if (k < -1 || k >= (int64_t)c->ncategory)
				return error_set(e, "%s: row %" PRIu64 " has code %" PRId64 ", expected -1 (missing) or one of %zu categories",
						 c->where, row + i, k, c->ncategory);
			v->code[i] = k < 0 || v->missing[i] ? UINT32_MAX : (uint32_t)k;
		}
	}
	return 0;
}

size_t text_double(double x, char buf[32])
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(buf, 32, "%.*g", digits, x);
		if (strtod(buf, NULL) == x || isnan(x))
			break;
	}
	return strlen(buf);
}

size_t frame_text(const struct frame_column *c, const struct frame_values *v, size_t i, char buf[32], const char **text, int *missing)
{
	*text = buf;
	*missing = 0;
	switch (c->kind) {
	case FRAME_STR:
		*missing = v->missing[i];
		*text = v->str.bytes + v->str.offset[i];
		return *missing ? 0 : v->str.offset[i + 1] - v->str.offset[i];
	case FRAME_CATEGORICAL:
		*missing = v->code[i] == UINT32_MAX;
		if (*missing)
			return 0;
		*text = c->category[v->code[i]];
		return strlen(*text);
	case FRAME_I64:
		*missing = v->missing[i];
		return *missing ? 0 : (size_t)snprintf(buf, 32, "%" PRId64, v->i64[i]);
	default:
		*missing = isnan(v->f64[i]);
		return *missing ? 0 : text_double(v->f64[i], buf);
	}
}

int frame_texts(struct frame_column *c, uint64_t nrow, struct texts *t, struct error *e)
{
	struct frame_values v = {0};
	int r = 0;
	texts_clear(t);
	for (uint64_t row = 0; row < nrow && r == 0; row += v.n) {
		char buf[32];
		const char *s;
		int missing;
		r = frame_read(c, row, nrow - row < STRETCH ? nrow - row : STRETCH, &v, 1, e);
		for (size_t i = 0; i < v.n && r == 0; i++) {
			size_t n = frame_text(c, &v, i, buf, &s, &missing);
			texts_push(t, s, n);
		}
	}
	frame_values_release(&v);
	return r;
}

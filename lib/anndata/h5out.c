#include "anndata/h5out.h"

#define CHUNK_BYTES (256u << 10)
#define CACHE_BYTES (1u << 20) /* of each open dataset: a chunk must stay until it is full */
#define DEFLATE 1

static void fail(struct h5out *o)
{
	char why[H5_WHY];
	if (o->failed)
		return;
	o->failed = 1;
	h5_why(why);
	error_set(&o->error, "%s: cannot write HDF5: %s", o->path, why);
}

static void h5out_init(struct h5out *o, const char *shown)
{
	*o = (struct h5out){.path = xstrdup(shown), .file = -1};
	h5_setup();
	o->text = H5Tcopy(H5T_C_S1);
	H5Tset_size(o->text, H5T_VARIABLE);
	H5Tset_cset(o->text, H5T_CSET_UTF8);
	signed char v = 0;
	o->boolean = H5Tenum_create(H5T_NATIVE_INT8);
	H5Tenum_insert(o->boolean, "FALSE", &v);
	v = 1;
	H5Tenum_insert(o->boolean, "TRUE", &v);
}

void h5out_open(struct h5out *o, const char *path, const char *shown)
{
	h5out_init(o, shown);
	o->file = h5out_id(o, H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
}

void h5out_modify(struct h5out *o, const char *path, const char *shown)
{
	h5out_init(o, shown);
	o->file = h5out_id(o, H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
}

void h5out_close_file(struct h5out *o)
{
	h5out_ok(o, H5Fclose(o->file));
	o->file = -1;
}

void h5out_release(struct h5out *o)
{
	if (!o->path)
		return;
	if (o->file >= 0)
		H5Fclose(o->file);
	H5Tclose(o->text);
	H5Tclose(o->boolean);
	free(o->path);
	*o = (struct h5out){0};
}

hid_t h5out_id(struct h5out *o, hid_t h)
{
	if (h < 0)
		fail(o);
	return h;
}

void h5out_ok(struct h5out *o, herr_t r)
{
	if (r < 0)
		fail(o);
}

void h5out_attribute(struct h5out *o, hid_t on, const char *name, hid_t type, hsize_t n, const void *value)
{
	RELEASED(h5_close) hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
	RELEASED(h5_close) hid_t a = h5out_id(o, H5Acreate2(on, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
	h5out_ok(o, H5Awrite(a, type, value));
}

void h5out_text_attribute(struct h5out *o, hid_t on, const char *name, const char *value)
{
	h5out_attribute(o, on, name, o->text, 0, &value);
}

void h5out_text_list(struct h5out *o, hid_t on, const char *name, char *const *text, size_t n)
{
	hsize_t size = n;
	RELEASED(h5_close) hid_t space = H5Screate_simple(1, &size, NULL);
	RELEASED(h5_close) hid_t a = h5out_id(o, H5Acreate2(on, name, o->text, space, H5P_DEFAULT, H5P_DEFAULT));
	if (n)
		h5out_ok(o, H5Awrite(a, o->text, text));
}

void h5out_encoding(struct h5out *o, hid_t on, const char *type, const char *version)
{
	h5out_text_attribute(o, on, "encoding-type", type);
	h5out_text_attribute(o, on, "encoding-version", version);
}

hid_t h5out_group(struct h5out *o, hid_t in, const char *path, const char *type, const char *version)
{
	hid_t g = h5out_id(o, H5Gcreate2(in, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	h5out_encoding(o, g, type, version);
	return g;
}

hid_t h5out_properties(struct h5out *o)
{
	hid_t p = h5out_id(o, H5Pcreate(H5P_DATASET_CREATE));
	h5out_ok(o, H5Pset_obj_track_times(p, 0));
	return p;
}

void h5out_array(
	struct h5out *o, struct h5out_array *a, hid_t loc, const char *name, hid_t stored, hid_t type, size_t n, const char *encoded)
{
	size_t row = H5Tget_size(stored) * (n ? n : 1);
	hsize_t dims[2] = {0, n}, max[2] = {H5S_UNLIMITED, n}, chunk[2] = {CHUNK_BYTES / row ? CHUNK_BYTES / row : 1, n};
	RELEASED(h5_close) hid_t space = h5out_id(o, H5Screate_simple(n ? 2 : 1, dims, max));
	RELEASED(h5_close) hid_t create = h5out_properties(o), access = h5out_id(o, H5Pcreate(H5P_DATASET_ACCESS));
	h5out_ok(o, H5Pset_chunk(create, n ? 2 : 1, chunk));
	h5out_ok(o, H5Pset_chunk_cache(access, 521, CACHE_BYTES, 1));
	if (stored != o->text) {
		h5out_ok(o, H5Pset_shuffle(create));
		h5out_ok(o, H5Pset_deflate(create, DEFLATE));
	}
	*a = (struct h5out_array){.type = type, .n = n};
	a->set = h5out_id(o, H5Dcreate2(loc, name, stored, space, H5P_DEFAULT, create, access));
	if (encoded)
		h5out_encoding(o, a->set, encoded, "0.2.0");
}

void h5out_rows(struct h5out *o, hid_t set, hid_t type, const hsize_t start[], const hsize_t count[], int rank, const void *data)
{
	RELEASED(h5_close) hid_t mem = h5out_id(o, H5Screate_simple(rank, count, NULL)), file = h5out_id(o, H5Dget_space(set));
	h5out_ok(o, H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL));
	h5out_ok(o, H5Dwrite(set, type, mem, file, H5P_DEFAULT, data));
}

void h5out_append(struct h5out *o, struct h5out_array *a, const void *data, size_t rows)
{
	if (!rows || o->failed)
		return;
	hsize_t total[2] = {a->rows + rows, a->n}, start[2] = {a->rows, 0}, count[2] = {rows, a->n};
	h5out_ok(o, H5Dset_extent(a->set, total));
	h5out_rows(o, a->set, a->type, start, count, a->n ? 2 : 1, data);
	a->rows += rows;
}

void h5out_close(struct h5out *o, struct h5out_array *a)
{
	if (a->set > 0)
		h5out_ok(o, H5Dclose(a->set));
	a->set = 0;
}

void h5out_texts(struct h5out *o, hid_t loc, const char *name, char *const *s, size_t n)
{
	struct h5out_array a;
	h5out_array(o, &a, loc, name, o->text, o->text, 0, "string-array");
	h5out_append(o, &a, s, n);
	h5out_close(o, &a);
}

static void scalar(struct h5out *o, hid_t loc, const char *name, hid_t type, const void *value, const char *encoded)
{
	RELEASED(h5_close) hid_t space = h5out_id(o, H5Screate(H5S_SCALAR)), create = h5out_properties(o);
	RELEASED(h5_close) hid_t set = h5out_id(o, H5Dcreate2(loc, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT));
	h5out_ok(o, H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
	h5out_encoding(o, set, encoded, "0.2.0");
}

void h5out_string(struct h5out *o, hid_t loc, const char *name, const char *s)
{
	scalar(o, loc, name, o->text, &s, "string");
}

void h5out_number(struct h5out *o, hid_t loc, const char *name, double v)
{
	scalar(o, loc, name, H5T_NATIVE_DOUBLE, &v, "numeric-scalar");
}

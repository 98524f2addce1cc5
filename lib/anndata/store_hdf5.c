/* An HDF5 file as a store. */
#include "anndata/h5.h"
#include "anndata/store.h"

#define ATTRIBUTE_TEXTS (1 << 20) /* texts in one attribute */

void store_release(struct store *s)
{
	if (s->entered)
		H5Gclose(s->h5);
	free(s->failure);
	*s = (struct store){0};
}

static int hdf5_check(const struct store *s, int r, struct error *e)
{
	if (r && !h5_refused_link())
		return *h5_dangling_link() ? error_prefix(e, "%s is a link that leads nowhere", h5_dangling_link()) : r;
	return h5_check(s->name, e);
}

static int enter(struct store *s, const char *path, struct error *e)
{
	hid_t group = H5Gopen2(s->h5, path, H5P_DEFAULT);
	if (group < 0)
		return h5_error(e, s->name, "opening the group");
	s->h5 = group;
	s->entered = 1;
	return 0;
}

static enum store_type type_of(struct store *s, const char *path)
{
	FREED char *copy = xstrdup(path);
	int type = 0;
	/* HDF5 may be asked about a path only if the part before its last name is a group */
	for (char *p = copy; type >= 0 && (p = strchr(p + 1, '/'));) {
		*p = 0;
		type = h5_object_type(s->h5, copy) == H5O_TYPE_GROUP ? 0 : -1;
		*p = '/';
	}
	if (type >= 0)
		type = h5_object_type(s->h5, copy);
	return type == H5O_TYPE_GROUP ? STORE_GROUP : type == H5O_TYPE_DATASET ? STORE_ARRAY : STORE_NONE;
}

static int has_shape(struct store *s, const char *path)
{
	RELEASED(h5_close) hid_t d = h5_dataset(s->h5, path, path, NULL), space = d < 0 ? -1 : H5Dget_space(d);
	return d < 0 || (space >= 0 && H5Sget_simple_extent_type(space) == H5S_SIMPLE); /* who reads what is refused is told so */
}

static herr_t push_link(hid_t g, const char *name, const H5L_info_t *info, void *t)
{
	texts_push(t, name, strlen(name));
	return 0;
}

static void names(struct store *s, const char *path, struct texts *t)
{
	RELEASED(h5_close) hid_t g = !*path || type_of(s, path) == STORE_GROUP ? H5Gopen2(s->h5, *path ? path : ".", H5P_DEFAULT) : -1;
	if (g >= 0)
		H5Literate(g, H5_INDEX_NAME, H5_ITER_INC, NULL, push_link, t);
}

/* ---- attributes ---- */

struct attribute {
	hid_t id, type, space;
	hssize_t n; /* values */
};

/* 1 opened; 0 there is none. */
static int attribute_open(struct attribute *a, const struct store *s, const char *path, const char *name)
{
	*a = (struct attribute){-1, -1, -1, 0};
	if (H5Aexists_by_name(s->h5, path, name, H5P_DEFAULT) > 0)
		a->id = H5Aopen_by_name(s->h5, path, name, H5P_DEFAULT, H5P_DEFAULT);
	if (a->id < 0)
		return 0;
	a->type = H5Aget_type(a->id);
	a->space = H5Aget_space(a->id);
	a->n = H5Sget_simple_extent_npoints(a->space);
	return 1;
}

static void attribute_close(struct attribute *a)
{
	h5_close(&a->type);
	h5_close(&a->space);
	h5_close(&a->id);
}

static int attribute_texts(struct store *s, const char *path, const char *name, struct texts *t)
{
	RELEASED(attribute_close) struct attribute a;
	if (!attribute_open(&a, s, path, name))
		return -1;
	if (a.n == 0) {
		texts_clear(t);
		return 0;
	}
	size_t step = H5Tget_size(a.type);
	if (H5Tget_class(a.type) != H5T_STRING || a.n < 0 || a.n >= ATTRIBUTE_TEXTS || step > H5_STRING_MAX)
		return -1;
	FREED char *buf = xcalloc((size_t)a.n, step);
	if (H5Aread(a.id, a.type, buf) < 0)
		return -1;
	texts_clear(t);
	texts_push_hdf5(t, a.type, buf, (size_t)a.n, step);
	if (H5Tis_variable_str(a.type) > 0)
		H5Dvlen_reclaim(a.type, a.space, H5P_DEFAULT, buf);
	return 0;
}

/* A boolean as h5py stores it: an enumeration, which HDF5 does not convert to a number. */
static int read_boolean(const struct attribute *a, int64_t *v)
{
	signed char yes[16] = {0};
	if (a->n != 1 || H5Tget_size(a->type) > 8 || H5Aread(a->id, a->type, yes) < 0)
		return -1;
	*v = 0;
	for (size_t i = 0; i < sizeof yes; i++)
		*v |= yes[i] != 0;
	return 0;
}

static int attribute_numbers(struct store *s, const char *path, const char *name, int64_t *v, size_t n)
{
	RELEASED(attribute_close) struct attribute a;
	if (!attribute_open(&a, s, path, name))
		return -1;
	if (a.n == (hssize_t)n && H5Tget_class(a.type) == H5T_INTEGER)
		return H5Aread(a.id, H5T_NATIVE_INT64, v) < 0 ? -1 : 0;
	return n == 1 && H5Tget_class(a.type) == H5T_ENUM ? read_boolean(&a, v) : -1;
}

static char *text_at(struct store *s, const char *path)
{
	char *text = NULL, *from = NULL;
	RELEASED(h5_close) hid_t d = type_of(s, path) == STORE_ARRAY ? h5_dataset(s->h5, path, path, NULL) : -1;
	if (d < 0)
		return NULL;
	RELEASED(h5_close) hid_t type = H5Dget_type(d), space = H5Dget_space(d);
	if (H5Tis_variable_str(type) > 0 && H5Sget_simple_extent_npoints(space) == 1 &&
		H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &from) >= 0 && from) {
		text = xstrdup(from);
		H5Dvlen_reclaim(type, space, H5P_DEFAULT, &from);
	}
	return text;
}

const struct store_kind store_hdf5 = {
	.name = "HDF5",
	.type = type_of,
	.has_shape = has_shape,
	.names = names,
	.attribute_texts = attribute_texts,
	.attribute_numbers = attribute_numbers,
	.text = text_at,
	.enter = enter,
	.check = hdf5_check,
};

/* A zarr store as a store. */
#include "anndata/zarr.h"

#include "base/json.h"
#include "base/sort.h"

static int enter(struct store *s, const char *path, struct error *e)
{
	s->part = path;
	return 0;
}

static enum store_type type_of(struct store *s, const char *path)
{
	RELEASED(zarr_node_release) struct zarr_node node;
	return zarr_node_read(&node, s, path);
}

static int zarr_store_check(const struct store *s, int r, struct error *e)
{
	return s->failure ? error_set(e, "%s", s->failure) : r;
}

/* Dimensions of the array at path; -1: none. */
static int dimensions(struct store *s, const char *path)
{
	RELEASED(zarr_node_release) struct zarr_node node;
	const cJSON *shape = zarr_node_read(&node, s, path) == STORE_ARRAY ? json_get(node.meta, "shape") : NULL;
	return cJSON_IsArray(shape) ? cJSON_GetArraySize(shape) : -1;
}

static int has_shape(struct store *s, const char *path)
{
	return dimensions(s, path) != 0;
}

static void names(struct store *s, const char *path, struct texts *t)
{
	struct error e;
	struct zarr_node node;
	FREED char **name = NULL;
	DIR *d = NULL;
	if (zarr_node_read(&node, s, path) == STORE_GROUP && beneath_list(s->folder, *node.folder ? node.folder : ".", &d, &e) < 0)
		zarr_note(s, path, e.msg);
	zarr_node_release(&node);
	size_t n = 0, cap = 0;
	for (struct dirent *x; d && (x = readdir(d));) {
		FREED char *below = xasprintf("%s%s%s", path, *path ? "/" : "", x->d_name);
		if (*x->d_name != '.' && type_of(s, below) != STORE_NONE) {
			grow(name, cap, n + 1);
			name[n++] = xstrdup(x->d_name);
		}
	}
	if (d)
		closedir(d);
	if (n)
		qsort(name, n, sizeof *name, compare_text);
	for (size_t i = 0; i < n; i++) {
		texts_push(t, name[i], strlen(name[i]));
		free(name[i]);
	}
}

/* Attribute `name`, to be freed by cJSON_Delete; NULL: there is none. */
static cJSON *attribute(struct store *s, const char *path, const char *name)
{
	cJSON *all = zarr_attributes(s, path), *a = all ? cJSON_DetachItemFromObjectCaseSensitive(all, name) : NULL;
	cJSON_Delete(all);
	return a;
}

static int attribute_texts(struct store *s, const char *path, const char *name, struct texts *t)
{
	RELEASED(json_free_at) cJSON *a = attribute(s, path, name);
	const cJSON *x;
	int texts = cJSON_IsString(a) || cJSON_IsArray(a);
	cJSON_ArrayForEach(x, a) texts &= cJSON_IsString(x);
	if (!texts)
		return -1;
	texts_clear(t);
	if (cJSON_IsString(a))
		texts_push(t, a->valuestring, strlen(a->valuestring));
	cJSON_ArrayForEach(x, a) texts_push(t, x->valuestring, strlen(x->valuestring));
	return 0;
}

static int attribute_numbers(struct store *s, const char *path, const char *name, int64_t *v, size_t n)
{
	RELEASED(json_free_at) cJSON *a = attribute(s, path, name);
	const cJSON *x = cJSON_IsArray(a) ? a->child : a;
	int r = cJSON_IsArray(a) ? (size_t)cJSON_GetArraySize(a) == n ? 0 : -1 : a && n == 1 ? 0 : -1;
	for (size_t i = 0; i < n && r == 0; i++, x = x->next) {
		uint64_t whole;
		if (cJSON_IsBool(x))
			v[i] = cJSON_IsTrue(x);
		else if (json_to_whole(x, &whole) == 0)
			v[i] = (int64_t)whole;
		else
			r = -1;
	}
	return r;
}

static char *text_at(struct store *s, const char *path)
{
	RELEASED(zarr_array_release) struct zarr_array a = {0};
	RELEASED(texts_release) struct texts t = {0};
	struct error e;
	char *text = NULL;
	if (dimensions(s, path) != 0 || zarr_array_open(&a, s, path, &e))
		return NULL;
	if (a.kind == ZARR_TEXTS && zarr_read_texts(&a, 0, 1, &t, &e) == 0)
		text = texts_dup(&t, 0);
	return text;
}

const struct store_kind store_zarr = {
	.name = "zarr",
	.type = type_of,
	.has_shape = has_shape,
	.names = names,
	.attribute_texts = attribute_texts,
	.attribute_numbers = attribute_numbers,
	.text = text_at,
	.enter = enter,
	.check = zarr_store_check,
};

#include "anndata/zarr.h"

#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define META_MAX ((size_t)64 << 20) /* bytes of a file of metadata: the root's of version 3 may hold those of all arrays */

static void note(struct store *s, const char *path, const char *why)
{
	if (!s->failure)
		s->failure = xasprintf("%s: %s: %s", s->name, *path ? path : "the store", why);
}

/* The name of what lies in a folder of the store; "" is the store. */
static char *join(const char *folder, const char *name)
{
	return xasprintf("%s%s%s", folder, *folder && *name ? "/" : "", name);
}

/* Parse FOLDER/NAME. NULL: it is not there or, after a note, it cannot be read. */
static cJSON *read_json(struct store *s, const char *path, const char *folder, const char *name)
{
	struct error e;
	uint64_t bytes;
	int fd;
	char *file = join(folder, name), *text = NULL;
	int there = beneath_open(s->folder, file, &fd, &bytes, &e);
	FILE *f = there > 0 ? xchecked(fdopen(fd, "r")) : NULL;
	size_t n = 0, cap = 0;
	cJSON *j = NULL;
	if (there < 0)
		note(s, path, e.msg);
	for (size_t got = 1; f && got && n < META_MAX; n += got) {
		grow(text, cap, n + 65537);
		got = fread(text + n, 1, 65536, f);
	}
	if (f && ferror(f)) {
		note(s, path, strerror(errno));
	} else if (f && text) {
		text[n] = 0;
		j = n < META_MAX ? cJSON_ParseWithOpts(text, NULL, 1) : NULL;
		if (!cJSON_IsObject(j)) {
			char *why = xasprintf("%s is not JSON as zarr writes it; damaged or truncated", name);
			note(s, path, why);
			free(why);
			cJSON_Delete(j);
			j = NULL;
		}
	}
	if (f)
		fclose(f);
	free(text);
	free(file);
	return j;
}

/* The folder of the object at `path`. No name may lead to a file of metadata. */
static char *folder_of(const struct store *s, const char *path)
{
	for (const char *p = path, *end; *path && p; p = end) {
		size_t n = strcspn(p, "/");
		if (!n || *p == '.' || n > 255)
			return NULL;
		end = p[n] ? p + n + 1 : NULL;
	}
	return join(s->zarr, path);
}

int zarr_is_store(const char *folder)
{
	static const char *const names[] = {"zarr.json", ".zgroup", ".zarray"};
	int is = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct stat st;
		char *file = xasprintf("%s/%s", folder, names[i]);
		is |= stat(file, &st) == 0 && S_ISREG(st.st_mode);
		free(file);
	}
	return is;
}

void zarr_node_release(struct zarr_node *node)
{
	cJSON_Delete(node->meta);
	free(node->folder);
	*node = (struct zarr_node){0};
}

enum store_type zarr_node_read(struct zarr_node *node, struct store *s, const char *path)
{
	*node = (struct zarr_node){.folder = folder_of(s, path), .version = 3};
	if (!node->folder)
		return STORE_NONE;
	node->meta = read_json(s, path, node->folder, "zarr.json");
	if (node->meta) {
		const cJSON *type = cJSON_GetObjectItemCaseSensitive(node->meta, "node_type");
		if (cJSON_IsString(type) && !strcmp(type->valuestring, "array"))
			return STORE_ARRAY;
		if (cJSON_IsString(type) && !strcmp(type->valuestring, "group"))
			return STORE_GROUP;
		note(s, path, "zarr.json describes neither an array nor a group");
		return STORE_NONE;
	}
	node->version = 2;
	node->meta = read_json(s, path, node->folder, ".zarray");
	if (node->meta)
		return STORE_ARRAY;
	node->meta = read_json(s, path, node->folder, ".zgroup");
	return node->meta ? STORE_GROUP : STORE_NONE;
}

int zarr_dimensions(struct store *s, const char *path)
{
	struct zarr_node node;
	const cJSON *shape = zarr_node_read(&node, s, path) == STORE_ARRAY ? cJSON_GetObjectItemCaseSensitive(node.meta, "shape") : NULL;
	int n = cJSON_IsArray(shape) ? cJSON_GetArraySize(shape) : -1;
	zarr_node_release(&node);
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void zarr_names(struct store *s, const char *path, struct texts *t)
{
	struct error e;
	char *folder = folder_of(s, path), **name = NULL;
	DIR *d = NULL;
	if (folder && beneath_list(s->folder, *folder ? folder : ".", &d, &e) < 0)
		note(s, path, e.msg);
	size_t n = 0, cap = 0;
	for (struct dirent *x; d && (x = readdir(d));) {
		char *below = join(path, x->d_name);
		if (*x->d_name != '.' && store_type(s, below) != STORE_NONE) {
			grow(name, cap, n + 1);
			name[n++] = xstrdup(x->d_name);
		}
		free(below);
	}
	if (d)
		closedir(d);
	if (n)
		qsort(name, n, sizeof *name, by_name);
	for (size_t i = 0; i < n; i++) {
		texts_push(t, name[i], strlen(name[i]));
		free(name[i]);
	}
	free(name);
	free(folder);
}

/* Attribute `name`, to be freed by cJSON_Delete; NULL: there is none. */
static cJSON *attribute(struct store *s, const char *path, const char *name)
{
	struct zarr_node node;
	cJSON *all = NULL;
	if (zarr_node_read(&node, s, path) != STORE_NONE)
		all = node.version == 3 ? cJSON_DetachItemFromObjectCaseSensitive(node.meta, "attributes")
					: read_json(s, path, node.folder, ".zattrs");
	cJSON *a = all ? cJSON_DetachItemFromObjectCaseSensitive(all, name) : NULL;
	cJSON_Delete(all);
	zarr_node_release(&node);
	return a;
}

int zarr_attribute_texts(struct store *s, const char *path, const char *name, struct texts *t)
{
	cJSON *a = attribute(s, path, name);
	const cJSON *x;
	int r = cJSON_IsString(a) || cJSON_IsArray(a) ? 0 : -1;
	cJSON_ArrayForEach(x, a) r = cJSON_IsString(x) ? r : -1;
	if (r == 0)
		texts_clear(t);
	if (r == 0 && cJSON_IsString(a))
		texts_push(t, a->valuestring, strlen(a->valuestring));
	else if (r == 0)
		cJSON_ArrayForEach(x, a) texts_push(t, x->valuestring, strlen(x->valuestring));
	cJSON_Delete(a);
	return r;
}

int zarr_attribute_numbers(struct store *s, const char *path, const char *name, int64_t *v, size_t n)
{
	cJSON *a = attribute(s, path, name);
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
	cJSON_Delete(a);
	return r;
}

char *zarr_text(struct store *s, const char *path)
{
	struct zarr_array a = {0};
	struct texts t = {0};
	struct error e;
	char *text = NULL;
	if (zarr_dimensions(s, path) != 0 || zarr_array_open(&a, s, path, &e))
		return NULL;
	if (a.kind == ZARR_TEXTS && zarr_read_texts(&a, 0, 1, &t, &e) == 0)
		text = texts_dup(&t, 0);
	texts_release(&t);
	zarr_array_release(&a);
	return text;
}

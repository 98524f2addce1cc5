/* The metadata of zarr stores. */
#include "anndata/zarr.h"

#include "base/json.h"

#include <errno.h>
#include <sys/stat.h>

#define META_MAX ((size_t)64 << 20) /* bytes of a file of metadata: the root's of version 3 may hold those of all arrays */

void zarr_note(struct store *s, const char *path, const char *why)
{
	if (!s->failure)
		s->failure = xasprintf("%s: %s: %s", s->name, *path ? path : "the store", why);
}

/* The name of what lies in a folder of the store; "" is the store. */
static char *zarr_join(const char *folder, const char *name)
{
	return xasprintf("%s%s%s", folder, *folder && *name ? "/" : "", name);
}

/* Parse FOLDER/NAME. NULL: it is not there or, after a note, it cannot be read. */
static cJSON *read_json(struct store *s, const char *path, const char *folder, const char *name)
{
	struct error e;
	uint64_t bytes;
	int fd;
	FREED char *file = zarr_join(folder, name), *text = NULL;
	int there = beneath_open(s->folder, file, &fd, &bytes, &e);
	FILE *f = there > 0 ? xchecked(fdopen(fd, "r")) : NULL;
	size_t n = 0, cap = 0;
	cJSON *j = NULL;
	if (there < 0)
		zarr_note(s, path, e.msg);
	for (size_t got = 1; f && got && n < META_MAX; n += got) {
		grow(text, cap, n + 65537);
		got = fread(text + n, 1, 65536, f);
	}
	if (f && ferror(f)) {
		zarr_note(s, path, strerror(errno));
	} else if (f && text) {
		text[n] = 0;
		j = n < META_MAX ? cJSON_ParseWithOpts(text, NULL, 1) : NULL;
		if (!cJSON_IsObject(j)) {
			char *why = xasprintf("%s is not JSON as zarr writes it; damaged or truncated", name);
			zarr_note(s, path, why);
			free(why);
			cJSON_Delete(j);
			j = NULL;
		}
	}
	if (f)
		fclose(f);
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
	return zarr_join(s->part, path);
}

int zarr_is_store(const char *folder)
{
	static const char *const names[] = {"zarr.json", ".zgroup", ".zarray"};
	int is = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct stat st;
		FREED char *file = xasprintf("%s/%s", folder, names[i]);
		is |= stat(file, &st) == 0 && S_ISREG(st.st_mode);
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
		const cJSON *type = json_get(node->meta, "node_type");
		if (cJSON_IsString(type) && !strcmp(type->valuestring, "array"))
			return STORE_ARRAY;
		if (cJSON_IsString(type) && !strcmp(type->valuestring, "group"))
			return STORE_GROUP;
		zarr_note(s, path, "zarr.json describes neither an array nor a group");
		return STORE_NONE;
	}
	node->version = 2;
	node->meta = read_json(s, path, node->folder, ".zarray");
	if (node->meta)
		return STORE_ARRAY;
	node->meta = read_json(s, path, node->folder, ".zgroup");
	return node->meta ? STORE_GROUP : STORE_NONE;
}

cJSON *zarr_attributes(struct store *s, const char *path)
{
	RELEASED(zarr_node_release) struct zarr_node node;
	cJSON *all = NULL;
	if (zarr_node_read(&node, s, path) != STORE_NONE)
		all = node.version == 3 ? cJSON_DetachItemFromObjectCaseSensitive(node.meta, "attributes")
					: read_json(s, path, node.folder, ".zattrs");
	return all;
}

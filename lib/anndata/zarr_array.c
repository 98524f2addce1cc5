/* Opening an array of a zarr store, and reading its chunks. */
#include "anndata/zarr.h"
#include "anndata/h5.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <unistd.h>

#define INDEX_ENTRY 16 /* bytes of the index of a shard, for each chunk: its place and its size */
#define INDEX_MAX ((uint64_t)1 << 28)

void zarr_array_release(struct zarr_array *a)
{
	if (a->where && a->shard_file >= 0)
		close(a->shard_file);
	free_all(a->where, a->folder, a->fill_text, a->index, a->raw);
	texts_release(&a->text);
	zarr_scratch_release(&a->scratch);
	*a = (struct zarr_array){0};
}

/* The text at this key, or "". */
static const char *text(const cJSON *j, const char *key)
{
	const cJSON *s = json_get(j, key);
	return cJSON_IsString(s) ? s->valuestring : "";
}

/* The name of something that may have a configuration: "zstd", or {"name": "zstd", ...}. */
static const char *zarr_array_name_of(const cJSON *j)
{
	return cJSON_IsString(j) ? j->valuestring : text(j, "name");
}

/* ---- types ---- */

/* A number of this kind (i, u, f) and size. */
static void zarr_array_number(struct zarr_array *a, char kind, size_t size)
{
	a->half = kind == 'f' && size == 2;
	if (kind == 'f' && (a->half || size == 4 || size == 8))
		a->type = size == 8 ? NUMBER_F64 : NUMBER_F32;
	else if ((kind == 'i' || kind == 'u') && (size == 1 || size == 2 || size == 4 || size == 8))
		a->type = number_integer(size, kind == 'i');
	else
		return;
	a->kind = ZARR_NUMBERS;
	a->size = a->half ? 4 : size;
}

/* Version 2: NumPy's "<f4", "|b1"; "|O" with a filter for texts. */
static void type_v2(struct zarr_array *a, const cJSON *meta)
{
	const char *dtype = text(meta, "dtype");
	const cJSON *filters = json_get(meta, "filters");
	if (strlen(dtype) < 2 || !strchr("<>|", *dtype))
		return;
	a->swap = *dtype == '>';
	if (!strcmp(dtype + 1, "b1")) {
		zarr_array_number(a, 'u', 1);
		a->kind = ZARR_BOOLEANS;
	} else if (!strcmp(dtype, "|O") && cJSON_GetArraySize(filters) == 1 && !strcmp(text(filters->child, "id"), "vlen-utf8")) {
		a->kind = ZARR_TEXTS;
	} else if (dtype[2] >= '1' && dtype[2] <= '8' && !dtype[3]) {
		zarr_array_number(a, dtype[1], (size_t)(dtype[2] - '0'));
	}
}

/* Version 3: "int8" to "uint64", "float16" to "float64", "bool", "string". */
static void type_v3(struct zarr_array *a, const cJSON *meta)
{
	static const struct {
		const char *name;
		char kind;
		size_t size;
	} types[] = {{"int8", 'i', 1}, {"uint8", 'u', 1}, {"int16", 'i', 2}, {"uint16", 'u', 2}, {"int32", 'i', 4}, {"uint32", 'u', 4},
		{"int64", 'i', 8}, {"uint64", 'u', 8}, {"float16", 'f', 2}, {"float32", 'f', 4}, {"float64", 'f', 8}, {"bool", 'u', 1}};
	const char *name = zarr_array_name_of(json_get(meta, "data_type"));
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(name, types[i].name))
			zarr_array_number(a, types[i].kind, types[i].size);
	if (!strcmp(name, "bool"))
		a->kind = ZARR_BOOLEANS;
	else if (!strcmp(name, "string"))
		a->kind = ZARR_TEXTS;
}

static int bad_fill(const struct zarr_array *a, struct error *e)
{
	return error_set(e, "%s: unreadable fill_value", a->where);
}

static int read_fill(struct zarr_array *a, const cJSON *meta, struct error *e)
{
	const cJSON *fill = json_get(meta, "fill_value");
	const char *s = cJSON_IsString(fill) ? fill->valuestring : NULL;
	char *end = NULL;
	if (!fill)
		return bad_fill(a, e);
	if (a->kind == ZARR_TEXTS) {
		a->fill_text = xstrdup(s ? s : "");
		return 0;
	}
	double x = cJSON_IsNumber(fill) ? fill->valuedouble : cJSON_IsTrue(fill);
	if (s && number_is_float(a->type) && !strncmp(s, "0x", 2)) { /* the bits of a number */
		uint64_t bits = strtoull(s + 2, &end, 16);
		float wide = half_to_float((uint16_t)bits);
		memcpy(a->fill, a->half ? (void *)&wide : &bits, a->size);
		return *end ? bad_fill(a, e) : 0;
	}
	if (s && number_is_float(a->type)) /* "NaN", "-Infinity" */
		x = strtod(s, &end);
	if (s && (!end || *end))
		return bad_fill(a, e);
	if (a->type == NUMBER_F64) {
		memcpy(a->fill, &x, 8);
	} else if (a->type == NUMBER_F32) {
		float f = (float)x;
		memcpy(a->fill, &f, 4);
	} else {
		if (x != floor(x) || !(fabs(x) <= 0x1p53))
			return bad_fill(a, e);
		int64_t whole = (int64_t)x;
		memcpy(a->fill, &whole, a->size);
	}
	return 0;
}

/* ---- shapes ---- */

/* A list of a->ndim whole numbers into v. */
static int read_shape(const struct zarr_array *a, const cJSON *list, const char *what, uint64_t v[2], uint64_t least, struct error *e)
{
	v[0] = v[1] = 1;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != a->ndim)
		return error_set(e, "%s: no %s of %d numbers", a->where, what, a->ndim);
	const cJSON *x = list->child;
	for (int i = 0; i < a->ndim; i++, x = x->next)
		if (json_to_whole(x, &v[i]) || v[i] < least)
			return error_set(e, "%s: a %s that is impossible", a->where, what);
	return 0;
}

static int check_shape(const struct zarr_array *a, struct error *e)
{
	uint64_t most = ZARR_CHUNK_MAX / (a->size ? a->size : 1);
	if (a->dim[1] && a->dim[0] > UINT64_MAX / 16 / a->dim[1])
		return error_set(e, "%s: shape %" PRIu64 " x %" PRIu64 " is impossible", a->where, a->dim[0], a->dim[1]);
	if (a->chunk[0] > most || a->chunk[1] > most || a->chunk[0] * a->chunk[1] > most)
		return error_set(e,
			"%s: chunks of %" PRIu64 " x %" PRIu64
			" elements, expected at most 1 GiB each; rewrite the store with smaller chunks",
			a->where, a->chunk[0], a->chunk[1]);
	for (int i = 0; i < 2 && a->shard[0]; i++)
		if (a->shard[i] % a->chunk[i])
			return error_set(e, "%s: shards of %" PRIu64 " x %" PRIu64 " elements, expected multiples of the chunks", a->where,
				a->shard[0], a->shard[1]);
	uint64_t chunks = a->shard[0] ? a->shard[0] / a->chunk[0] : 0, across = a->shard[0] ? a->shard[1] / a->chunk[1] : 0;
	if (chunks > INDEX_MAX || across > INDEX_MAX || chunks * across * INDEX_ENTRY > INDEX_MAX)
		return error_set(e, "%s: shards of more than %" PRIu64 " chunks", a->where, INDEX_MAX / INDEX_ENTRY);
	return 0;
}

/* ---- codecs ---- */

static int bad_codec(const struct zarr_array *a, const char *name, const char *why, struct error *e)
{
	return error_set(e, "%s: codec '%s', %s", a->where, name, why);
}

static int codecs_v2(struct zarr_array *a, const cJSON *meta, struct error *e)
{
	const cJSON *filters = json_get(meta, "filters"), *compressor = json_get(meta, "compressor"), *f;
	cJSON_ArrayForEach(f, filters) if (a->kind != ZARR_TEXTS) return bad_codec(
		a, text(f, "id"), "a filter that is not supported; write the store without filters", e);
	a->columns = !strcmp(text(meta, "order"), "F") && a->ndim == 2;
	if (!compressor || cJSON_IsNull(compressor))
		return 0;
	const char *why = zarr_codec_add(&a->codecs, text(compressor, "id"));
	return why ? bad_codec(a, text(compressor, "id"), why, e) : 0;
}

static int codecs_v3(struct zarr_array *a, const cJSON *list, int sharded, struct error *e);

static int sharding(struct zarr_array *a, const cJSON *configuration, struct error *e)
{
	const char *location = text(configuration, "index_location");
	const cJSON *codec;
	memcpy(a->shard, a->chunk, sizeof a->shard);
	a->index_first = !strcmp(location, "start");
	if (*location && !a->index_first && strcmp(location, "end"))
		return error_set(e, "%s: a shard's index at '%s', expected start or end", a->where, location);
	cJSON_ArrayForEach(codec, json_get(configuration, "index_codecs"))
	{
		const char *name = zarr_array_name_of(codec);
		if (!strcmp(name, "crc32c"))
			a->index_checked = 1;
		else if (strcmp(name, "bytes") || !strcmp(text(json_get(codec, "configuration"), "endian"), "big"))
			return bad_codec(a, name, "in the index of a shard; expected bytes (little) and crc32c", e);
	}
	if (a->ndim == 0)
		return error_set(e, "%s: a shard without dimensions", a->where);
	return read_shape(a, json_get(configuration, "chunk_shape"), "chunk_shape", a->chunk, 1, e) ||
			codecs_v3(a, json_get(configuration, "codecs"), 1, e)
		? -1
		: 0;
}

/* The codecs of a chunk, or of a shard: first transpose, then how elements become bytes, then codecs of bytes. */
static int codecs_v3(struct zarr_array *a, const cJSON *list, int sharded, struct error *e)
{
	const char *first = a->kind == ZARR_TEXTS ? "vlen-utf8" : "bytes";
	const cJSON *codec = cJSON_IsArray(list) ? list->child : NULL;
	const cJSON *order =
		codec && !strcmp(zarr_array_name_of(codec), "transpose") ? json_get(json_get(codec, "configuration"), "order") : NULL;
	if (cJSON_GetArraySize(order) == a->ndim && a->ndim && a->kind != ZARR_TEXTS) {
		a->columns = a->ndim == 2 && order->child->valueint == 1;
		codec = codec->next;
	}
	if (codec && !strcmp(zarr_array_name_of(codec), "sharding_indexed") && !sharded && !codec->next && !a->columns)
		return sharding(a, json_get(codec, "configuration"), e);
	if (!codec || strcmp(zarr_array_name_of(codec), first))
		return bad_codec(a, codec ? zarr_array_name_of(codec) : "", "which is not supported there", e);
	a->swap = !strcmp(text(json_get(codec, "configuration"), "endian"), "big");
	while ((codec = codec->next)) {
		const char *why = zarr_codec_add(&a->codecs, zarr_array_name_of(codec));
		if (why)
			return bad_codec(a, zarr_array_name_of(codec), why, e);
	}
	return 0;
}

/* ---- opening ---- */

static int open_v2(struct zarr_array *a, const cJSON *meta, struct error *e)
{
	const char *separator = text(meta, "dimension_separator");
	a->separator = *separator ? *separator : '.';
	return read_shape(a, json_get(meta, "chunks"), "shape of chunks", a->chunk, 1, e) || codecs_v2(a, meta, e) ? -1 : 0;
}

static int open_v3(struct zarr_array *a, const cJSON *meta, struct error *e)
{
	const cJSON *grid = json_get(meta, "chunk_grid"), *keys = json_get(meta, "chunk_key_encoding");
	const char *separator = text(json_get(keys, "configuration"), "separator");
	a->prefix = !strcmp(zarr_array_name_of(keys), "default");
	a->separator = *separator ? *separator : a->prefix ? '/' : '.';
	if (strcmp(zarr_array_name_of(grid), "regular"))
		return error_set(e, "%s: chunks in a grid '%s', expected regular", a->where, zarr_array_name_of(grid));
	if (!a->prefix && strcmp(zarr_array_name_of(keys), "v2"))
		return error_set(e, "%s: names of chunks by '%s', expected default or v2", a->where, zarr_array_name_of(keys));
	if (cJSON_GetArraySize(json_get(meta, "storage_transformers")))
		return error_set(e, "%s: storage transformers are not supported", a->where);
	return read_shape(a, json_get(json_get(grid, "configuration"), "chunk_shape"), "chunk_shape", a->chunk, 1, e) ||
			codecs_v3(a, json_get(meta, "codecs"), 0, e)
		? -1
		: 0;
}

static int open_node(struct zarr_array *a, struct store *s, const char *path, struct error *e)
{
	RELEASED(zarr_node_release) struct zarr_node node;
	*a = (struct zarr_array){.where = xasprintf("%s: %s", s->name, path),
		.store = s->folder,
		.kind = ZARR_OTHER,
		.shard_file = -1,
		.text_chunk = UINT64_MAX,
		.fill_rows = UINT64_MAX};
	enum store_type type = zarr_node_read(&node, s, path);
	a->folder = node.folder;
	node.folder = NULL;
	if (type != STORE_ARRAY && s->failure)
		return error_set(e, "%s", s->failure);
	if (type != STORE_ARRAY)
		return error_set(e, type == STORE_NONE ? "%s: missing" : "%s: is not an array", a->where);
	const cJSON *shape = json_get(node.meta, "shape");
	a->ndim = cJSON_GetArraySize(shape);
	if (a->ndim > 2)
		return error_set(e, "%s: %d dimensions, expected 1 or 2", a->where, a->ndim);
	if (read_shape(a, shape, "shape", a->dim, 0, e))
		return -1;
	(node.version == 2 ? type_v2 : type_v3)(a, node.meta);
	if (a->kind != ZARR_OTHER &&
		(read_fill(a, node.meta, e) || (node.version == 2 ? open_v2 : open_v3)(a, node.meta, e) || check_shape(a, e)))
		return -1;
	a->swap = a->swap && a->size > 1;
	return 0;
}

int zarr_array_open(struct zarr_array *a, struct store *s, const char *path, struct error *e)
{
	int r = open_node(a, s, path, e);
	if (r)
		zarr_array_release(a);
	return r;
}

/* ---- chunks ---- */

/* The file of the chunk, or shard, at this place of the grid. */
static char *chunk_file(const struct zarr_array *a, uint64_t i, uint64_t k)
{
	if (a->ndim == 0)
		return xasprintf("%s/%s", a->folder, a->prefix ? "c" : "0");
	char first[2] = {a->prefix ? a->separator : 0, 0};
	if (a->ndim == 1)
		return xasprintf("%s/%s%s%" PRIu64, a->folder, a->prefix ? "c" : "", first, i);
	return xasprintf("%s/%s%s%" PRIu64 "%c%" PRIu64, a->folder, a->prefix ? "c" : "", first, i, a->separator, k);
}

/* 1 open, 0 it is not there, -1 error. */
static int open_file(const struct zarr_array *a, uint64_t i, uint64_t k, int *fd, uint64_t *bytes, struct error *e)
{
	FREED char *file = chunk_file(a, i, k);
	int r = beneath_open(a->store, file, fd, bytes, e);
	if (r == 0 && errno == ENOTDIR)
		r = error_set(e, "%s: %s", file, strerror(ENOTDIR));
	return r < 0 ? error_prefix(e, "%s", a->where) : r;
}

static int read_at(const struct zarr_array *a, int fd, unsigned char *to, size_t n, uint64_t from, const uint64_t at[2], struct error *e)
{
	const char *why = file_read_at(fd, to, n, from, "its file has become shorter");
	return why ? error_set(e, "%s: the chunk that starts at %" PRIu64 ": %s", a->where, at[0], why) : 0;
}

static int damaged_shard(const struct zarr_array *a, const uint64_t at[2], const char *what, struct error *e)
{
	return error_set(e, "%s: the shard with the chunk that starts at %" PRIu64 " %s; damaged store", a->where, at[0], what);
}

/* Open the shard that holds the chunk at `at`, and read its index. 1; 0: it is not there; -1. */
static int open_shard(struct zarr_array *a, const uint64_t at[2], struct error *e)
{
	uint64_t across = (a->dim[1] + a->shard[1] - 1) / a->shard[1], i = at[0] / a->shard[0], k = at[1] / a->shard[1];
	size_t entries = a->shard[0] / a->chunk[0] * (a->shard[1] / a->chunk[1]);
	size_t bytes = entries * INDEX_ENTRY, stored = bytes + (a->index_checked ? 4 : 0);
	if (a->shard_file >= 0 && a->shard_number == i * across + k)
		return 1;
	if (a->shard_file >= 0)
		close(a->shard_file);
	int r = open_file(a, i, k, &a->shard_file, &a->shard_bytes, e);
	if (r <= 0)
		return r;
	a->shard_number = i * across + k;
	if (a->shard_bytes < stored)
		r = damaged_shard(a, at, "is too short for its index", e);
	else if (!a->index)
		a->index = xmalloc(stored);
	if (r > 0 && read_at(a, a->shard_file, a->index, stored, a->index_first ? 0 : a->shard_bytes - stored, at, e))
		r = -1;
	if (r > 0 && a->index_checked && get_le32(a->index + bytes) != zarr_crc32c(a->index, bytes))
		r = damaged_shard(a, at, "has a wrong checksum of its index (crc32c)", e);
	if (r < 0) {
		close(a->shard_file);
		a->shard_file = -1;
	}
	return r;
}

/* Where the chunk lies: *fd, *from, *size. 1; 0: it is not there; -1. */
static int find_chunk(struct zarr_array *a, const uint64_t at[2], int *fd, uint64_t *from, uint64_t *size, struct error *e)
{
	*from = 0;
	if (!a->shard[0])
		return open_file(a, at[0] / a->chunk[0], at[1] / a->chunk[1], fd, size, e);
	int r = open_shard(a, at, e);
	if (r <= 0)
		return r;
	uint64_t row = at[0] % a->shard[0] / a->chunk[0], column = at[1] % a->shard[1] / a->chunk[1];
	const unsigned char *entry = a->index + (row * (a->shard[1] / a->chunk[1]) + column) * INDEX_ENTRY;
	*fd = a->shard_file;
	*from = get_le64(entry);
	*size = get_le64(entry + 8);
	if (*from == UINT64_MAX && *size == UINT64_MAX)
		return 0;
	if (*from > a->shard_bytes || *size > a->shard_bytes - *from)
		return damaged_shard(a, at, "is shorter than its index says", e);
	return 1;
}

int zarr_fetch(struct zarr_array *a, const uint64_t at[2], unsigned char **raw, size_t *cap, size_t used, size_t *size, struct error *e)
{
	uint64_t from, bytes;
	int fd = -1, r = find_chunk(a, at, &fd, &from, &bytes, e);
	*size = 0;
	if (r == 0 && a->fill_rows < UINT64_MAX) {
		uint64_t rows = a->dim[0] - at[0] < a->chunk[0] ? a->dim[0] - at[0] : a->chunk[0];
		if (rows > a->fill_rows)
			r = error_set(e, "%s: the chunk that starts at %" PRIu64 " is not in the store", a->where, at[0]);
		else
			a->fill_rows -= rows;
	}
	if (r > 0 && (!bytes || bytes > 2 * ZARR_CHUNK_MAX))
		r = error_set(
			e, "%s: the chunk that starts at %" PRIu64 " has %" PRIu64 " stored bytes; damaged store", a->where, at[0], bytes);
	if (r > 0) {
		*raw = grow_bytes(*raw, cap, used + bytes, 1);
		r = read_at(a, fd, *raw + used, bytes, from, at, e);
		*size = r ? 0 : bytes;
	}
	if (fd >= 0 && fd != a->shard_file)
		close(fd);
	return r < 0 ? -1 : 0;
}

/* n numbers of `size` bytes in the other byte order. */
static void swap_bytes(unsigned char *p, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++, p += size)
		for (size_t k = 0; k < size / 2; k++) {
			unsigned char x = p[k];
			p[k] = p[size - 1 - k];
			p[size - 1 - k] = x;
		}
}

const char *zarr_decode(const struct zarr_array *a, const unsigned char *in, size_t n, struct zarr_scratch *own, unsigned char *out)
{
	size_t rows = a->chunk[0], columns = a->chunk[1], size = a->half ? 2 : a->size, bytes = rows * columns * size, got;
	const unsigned char *from;
	const char *why = bytes / ZSTD_RATIO_MAX > n ? "is too short" : zarr_undo(&a->codecs, in, n, own, bytes, bytes, &from, &got);
	if (why)
		return why;
	if (!a->columns)
		memcpy(out, from, bytes);
	for (size_t i = 0; a->columns && i < rows; i++)
		for (size_t k = 0; k < columns; k++)
			memcpy(out + (i * columns + k) * size, from + (k * rows + i) * size, size);
	if (a->swap)
		swap_bytes(out, rows * columns, size);
	for (size_t i = rows * columns; a->half && i--;) {
		float wide = half_to_float(get_le16(out + 2 * i));
		memcpy(out + 4 * i, &wide, 4);
	}
	return NULL;
}

/* ---- texts ---- */

/* vlen-utf8: how many there are, then the length and the bytes of each. Returns NULL, or what is wrong. */
static const char *parse_texts(struct texts *t, const unsigned char *p, size_t n, uint64_t count)
{
	static const char *const wrong = "does not hold as many texts as its shape says";
	texts_clear(t);
	if (n < 4 || get_le32(p) != count)
		return wrong;
	p += 4;
	n -= 4;
	for (uint64_t i = 0; i < count; i++) {
		size_t len = n < 4 ? 0 : get_le32(p);
		if (n < 4 || len > n - 4)
			return wrong;
		if (memchr(p + 4, 0, len)) /* names of genes and cells are C strings: it would be cut there */
			return "holds a text with a NUL byte";
		texts_push(t, (const char *)p + 4, len);
		p += 4 + len;
		n -= 4 + len;
	}
	return n ? wrong : NULL;
}

/* Read the texts of chunk number `chunk` into a->text. */
static int load_texts(struct zarr_array *a, uint64_t chunk, struct error *e)
{
	uint64_t at[2] = {chunk * a->chunk[0], 0};
	size_t size, n;
	const unsigned char *bytes;
	if (zarr_fetch(a, at, &a->raw, &a->raw_cap, 0, &size, e))
		return -1;
	a->text_chunk = UINT64_MAX;
	if (!size) { /* the fill value: only as often as there are rows, for a chunk may be large */
		texts_clear(&a->text);
		for (uint64_t i = at[0]; i < a->dim[0] && i < at[0] + a->chunk[0]; i++)
			texts_push(&a->text, a->fill_text, strlen(a->fill_text));
	} else {
		const char *why = zarr_undo(&a->codecs, a->raw, size, &a->scratch, 0, ZARR_CHUNK_MAX, &bytes, &n);
		if (!why)
			why = parse_texts(&a->text, bytes, n, a->chunk[0]);
		if (why)
			return error_set(e, "%s: the chunk that starts at %" PRIu64 " %s; damaged store", a->where, at[0], why);
	}
	a->text_chunk = chunk;
	return 0;
}

int zarr_read_texts(struct zarr_array *a, uint64_t row, size_t n, struct texts *t, struct error *e)
{
	if (row > a->dim[0] || n > a->dim[0] - row)
		return error_set(e, "%s: has %" PRIu64 " texts, needed up to %" PRIu64, a->where, a->dim[0], row + n);
	for (size_t i = 0; i < n; i++) {
		uint64_t chunk = (row + i) / a->chunk[0], k = (row + i) % a->chunk[0];
		if (chunk != a->text_chunk && load_texts(a, chunk, e))
			return -1;
		texts_push(t, a->text.bytes + a->text.offset[k], a->text.offset[k + 1] - a->text.offset[k]);
	}
	return 0;
}

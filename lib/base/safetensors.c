#include "base/safetensors.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/magic.h"
#include "base/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned size;
} dtypes[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1}, {"U64", 8}, {"U32", 4},
	{"U16", 2}, {"U8", 1}, {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

char *safetensors_shape(char *buf, size_t size, const uint64_t *shape, int ndim)
{
	size_t at = (size_t)snprintf(buf, size, "[");
	for (int i = 0; i < ndim && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
	if (at < size)
		snprintf(buf + at, size - at, "]");
	return buf;
}

/* ---- reading ---- */

COMPARE(by_begin, struct safetensor, ORDER(a->begin, b->begin) ?: ORDER(a->end, b->end))

static int parse_tensor(struct safetensor *t, const cJSON *j, const char *path, struct error *e)
{
	const cJSON *dtype = json_get(j, "dtype"), *shape = json_get(j, "shape"), *range = json_get(j, "data_offsets"), *d;
	if (!cJSON_IsString(dtype) || !cJSON_IsArray(shape) || !cJSON_IsArray(range) || cJSON_GetArraySize(range) != 2)
		return error_set(e, "%s: tensor '%.80s': expected dtype, shape and two data_offsets", path, t->name);
	size_t k = 0;
	while (k < sizeof dtypes / sizeof *dtypes && strcmp(dtypes[k].name, dtype->valuestring))
		k++;
	if (k == sizeof dtypes / sizeof *dtypes)
		return error_set(e, "%s: tensor '%.80s': unknown dtype '%.20s'", path, t->name, dtype->valuestring);
	snprintf(t->dtype, sizeof t->dtype, "%s", dtypes[k].name);
	t->n = 1;
	cJSON_ArrayForEach(d, shape)
	{
		if (t->ndim == SAFETENSORS_NDIM)
			return error_set(e, "%s: tensor '%.80s' has more than %d dimensions", path, t->name, SAFETENSORS_NDIM);
		if (json_to_whole(d, &t->shape[t->ndim]) || __builtin_mul_overflow(t->n, t->shape[t->ndim], &t->n))
			return error_set(e, "%s: tensor '%.80s': dimension %d of its shape is not a usable size", path, t->name, t->ndim);
		t->ndim++;
	}
	uint64_t bytes;
	if (json_to_whole(range->child, &t->begin) || json_to_whole(range->child->next, &t->end) || t->end < t->begin)
		return error_set(e, "%s: tensor '%.80s': its data_offsets are not a range", path, t->name);
	if (__builtin_mul_overflow(t->n, (uint64_t)dtypes[k].size, &bytes) || bytes != t->end - t->begin) {
		char buf[160];
		return error_set(e, "%s: tensor '%.80s': %s%s do not fill its %llu bytes", path, t->name, t->dtype,
			safetensors_shape(buf, sizeof buf, t->shape, t->ndim), (unsigned long long)(t->end - t->begin));
	}
	return 0;
}

/* ---- digests ---- */

#define OWN "corrmask_digest"

static int damaged(const char *path, struct error *e)
{
	return error_set(e, "%s: damaged, or changed without its " OWN, path);
}

static int has_prefix(const cJSON *x)
{
	return cJSON_IsString(x) && strncmp(x->valuestring, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) == 0;
}

/* The digests of the metadata. In the header, json [n], zeros take the place of the file's own. */
static int parse_digests(struct safetensors *s, const cJSON *metadata, char *json, size_t n, struct error *e)
{
	const cJSON *own = json_get(metadata, OWN), *x;
	const char *hex;
	int ours = own != NULL;
	cJSON_ArrayForEach(x, metadata) ours |= has_prefix(x);
	if (!ours)
		return 0;
	if (digest_take(json, n, cJSON_GetStringValue(own), s->digest))
		return damaged(s->path, e);
	s->beside = xcalloc((size_t)cJSON_GetArraySize(metadata), sizeof *s->beside);
	cJSON_ArrayForEach(x, metadata)
	{
		if (x == own || !(hex = digest_digits(cJSON_GetStringValue(x))) || strchr(x->string, '/'))
			continue;
		struct safetensors_beside *b = &s->beside[s->nbeside++];
		b->name = xstrdup(x->string);
		memcpy(b->digest, hex, DIGEST_SIZE);
	}
	return 0;
}

/* ---- the header ---- */

static int parse_all(struct safetensors *s, const cJSON *j, struct error *e)
{
	const cJSON *x;
	s->tensor = xcalloc((size_t)cJSON_GetArraySize(j), sizeof *s->tensor);
	cJSON_ArrayForEach(x, j)
	{
		if (strcmp(x->string, "__metadata__") == 0)
			continue;
		struct safetensor *t = &s->tensor[s->n++];
		t->name = xstrdup(x->string);
		if (parse_tensor(t, x, s->path, e))
			return -1;
	}
	uint64_t at = 0;
	qsort(s->tensor, s->n, sizeof *s->tensor, by_begin);
	for (size_t i = 0; i < s->n; at = s->tensor[i++].end)
		if (s->tensor[i].begin != at)
			return error_set(e, "%s: tensor '%.80s' starts at byte %llu of the data, expected %llu", s->path, s->tensor[i].name,
				(unsigned long long)s->tensor[i].begin, (unsigned long long)at);
	if (at != s->size)
		return error_set(e, "%s: the tensors take %llu bytes, but %llu follow the header (is the file cut short?)", s->path,
			(unsigned long long)at, (unsigned long long)s->size);
	qsort(s->tensor, s->n, sizeof *s->tensor, compare_text);
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->tensor[i - 1].name, s->tensor[i].name) == 0)
			return error_set(e, "%s: tensor '%.80s' occurs twice", s->path, s->tensor[i].name);
	return 0;
}

/* The header: `size` is that of the whole file, head its first 8 bytes, json [n] the N bytes that follow. */
static int parse(struct safetensors *s, const uint8_t head[8], char *json, size_t n, uint64_t size, const char *path, struct error *e)
{
	*s = (struct safetensors){.path = xstrdup(path), .fd = -1, .data = 8 + (uint64_t)n, .hash = xchecked(XXH3_createState())};
	cJSON *j = n && json[0] == '{' ? cJSON_ParseWithLength(json, n) : NULL;
	int bad = -1;
	if (!cJSON_IsObject(j) || size < s->data) {
		error_set(e, "%s: not a safetensors file: its header is not a JSON object", path);
	} else {
		s->size = size - s->data;
		bad = parse_all(s, j, e) || parse_digests(s, json_get(j, "__metadata__"), json, n, e);
		s->metadata = cJSON_DetachItemFromObjectCaseSensitive(j, "__metadata__");
	}
	cJSON_Delete(j);
	XXH3_128bits_reset(s->hash);
	XXH3_128bits_update(s->hash, head, 8);
	XXH3_128bits_update(s->hash, json, n);
	if (bad)
		safetensors_close(s);
	return bad;
}

/* n bytes at offset `at`. */
static int read_at(int fd, void *to, size_t n, uint64_t at, const char *path, struct error *e)
{
	const char *why = file_read_at(fd, to, n, at, "the file has become shorter");
	return why ? error_set(e, "%s: cannot read: %s", path, why) : 0;
}

int safetensors_open(struct safetensors *s, const char *path, struct error *e)
{
	*s = (struct safetensors){.fd = -1};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), bad = -1;
	struct stat st;
	uint8_t head[8];
	if (fd < 0 || fstat(fd, &st)) {
		error_set(e, "%s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		error_set(e, "%s: not a regular file", path);
	} else if (st.st_size < 10) {
		error_set(e, "%s: not a safetensors file: only %lld bytes long", path, (long long)st.st_size);
	} else if (read_at(fd, head, sizeof head, 0, path, e) == 0) {
		uint64_t n = get_le64(head), size = (uint64_t)st.st_size;
		if (n > SAFETENSORS_HEADER_MAX || n > size - 8) {
			char start[32];
			size_t k = size < sizeof start ? (size_t)size : sizeof start;
			const struct magic *is = read_at(fd, start, k, 0, path, e) ? NULL : magic_find(start, k);
			if (is)
				error_set(e, "%s: this is %s, expected safetensors", path, is->name);
			else
				error_set(e, "%s: not a safetensors file, or cut short: a header of %llu bytes in a file of %llu", path,
					(unsigned long long)n, (unsigned long long)size);
		} else {
			FREED char *json = xmalloc((size_t)n);
			bad = read_at(fd, json, (size_t)n, 8, path, e) || parse(s, head, json, (size_t)n, size, path, e) ? -1 : 0;
		}
	}
	if (bad && fd >= 0)
		close(fd);
	else if (!bad)
		s->fd = fd;
	return bad;
}

void safetensors_close(struct safetensors *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->tensor[i].name);
	free(s->tensor);
	for (size_t i = 0; i < s->nbeside; i++)
		free(s->beside[i].name);
	free(s->beside);
	cJSON_Delete(s->metadata);
	XXH3_freeState(s->hash);
	if (s->path && s->fd >= 0)
		close(s->fd);
	free(s->path);
	*s = (struct safetensors){.fd = -1};
}

const struct safetensor *safetensors_find(const struct safetensors *s, const char *name)
{
	struct safetensor key = {.name = (char *)(uintptr_t)name};
	return s->n ? bsearch(&key, s->tensor, s->n, sizeof key, compare_text) : NULL;
}

void safetensors_set_close(struct safetensors_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		safetensors_close(&s->file[i]);
	free(s->file);
	*s = (struct safetensors_set){0};
}

/* Is tensor i of a file where the index says? */
static int check_place(const struct safetensors *s, size_t i, const cJSON *map, const char *index, struct error *e)
{
	const char *file = file_name(s->path);
	const cJSON *named = json_get(map, s->tensor[i].name);
	if (!named || strcmp(named->valuestring, file))
		return error_set(e, "%s: tensor '%.80s' is here, but %s has it in %.80s", s->path, s->tensor[i].name, index,
			named ? named->valuestring : "no file");
	return 0;
}

/* Open the files of a weight map, which lie beside the index. */
static int open_map(struct safetensors_set *s, const cJSON *map, const char *index, struct error *e)
{
	const cJSON *x;
	size_t n = 0, tensors = 0, mapped = (size_t)cJSON_GetArraySize(map);
	FREED const char **name = xcalloc(mapped, sizeof *name);
	int folder = (int)(file_name(index) - index);
	cJSON_ArrayForEach(x, map)
	{
		if (!cJSON_IsString(x) || !*x->valuestring || strchr(x->valuestring, '/'))
			return error_set(e, "%s: tensor '%.80s': expected the name of a file in the same folder", index, x->string);
		name[n++] = x->valuestring;
	}
	qsort(name, n, sizeof *name, compare_text);
	s->file = xcalloc(n, sizeof *s->file);
	for (size_t i = 0; i < n; i++) {
		if (i && !strcmp(name[i], name[i - 1]))
			continue;
		FREED char *path = xasprintf("%.*s%s", folder, index, name[i]);
		struct safetensors *file = &s->file[s->n];
		if (safetensors_open(file, path, e))
			return -1;
		s->n++;
		for (size_t k = 0; k < file->n; k++)
			if (check_place(file, k, map, index, e))
				return -1;
		tensors += file->n;
	}
	return n && tensors == mapped ? 0 : error_set(e, "%s: names %zu tensors, but its files hold %zu", index, mapped, tensors);
}

/* The text of a whole file with a NUL behind it, malloced; NULL with e set. */
static char *read_whole(const char *path, size_t *n, struct error *e)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	if (fd < 0 || fstat(fd, &st)) {
		error_set(e, "%s: %s", path, strerror(errno));
	} else if (st.st_size > SAFETENSORS_HEADER_MAX) {
		error_set(e, "%s: %lld bytes, expected at most %u", path, (long long)st.st_size, SAFETENSORS_HEADER_MAX);
	} else {
		*n = (size_t)st.st_size;
		text = xcalloc(*n + 1, 1);
		if (read_at(fd, text, *n, 0, path, e)) {
			free(text);
			text = NULL;
		}
	}
	if (fd >= 0)
		close(fd);
	return text;
}

int safetensors_set_open(struct safetensors_set *s, const char *path, struct error *e)
{
	FREED char *index = xasprintf("%s.index.json", path);
	size_t n = 0;
	int bad;
	*s = (struct safetensors_set){0};
	if (access(path, F_OK) == 0 || access(index, F_OK)) {
		s->file = xcalloc(1, sizeof *s->file);
		bad = safetensors_open(s->file, path, e);
		s->n = !bad;
	} else {
		FREED char *text = read_whole(index, &n, e);
		RELEASED(json_free_at) cJSON *j = text ? cJSON_ParseWithLength(text, n) : NULL;
		const cJSON *map = json_get(j, "weight_map");
		bad = !text                   ? -1
			: cJSON_IsObject(map) ? open_map(s, map, index, e)
					      : error_set(e, "%s: expected a JSON object with a weight_map", index);
	}
	if (bad)
		safetensors_set_close(s);
	return bad;
}

static float bfloat16_to_float(uint16_t h)
{
	union {
		uint32_t u;
		float f;
	} x = {.u = (uint32_t)h << 16};
	return x.f;
}

/* n bytes of the data at `at`. The digest goes on with them if they are next. */
static int read_data(struct safetensors *s, void *to, size_t n, uint64_t at, struct error *e)
{
	if (read_at(s->fd, to, n, s->data + at, s->path, e))
		return -1;
	if (at == s->hashed) {
		XXH3_128bits_update(s->hash, to, n);
		s->hashed += n;
	}
	return 0;
}

enum { CHUNK = 1 << 16 };

/* How many of the n values stand before the first that is not finite. */
static size_t count_finite(const float *x, size_t n)
{
	int bad = 0;
	for (size_t i = 0; i < n; i++) /* no branch: vectors */
		bad |= !isfinite(x[i]);
	for (size_t i = 0; i < n && bad; i++)
		if (!isfinite(x[i]))
			return i;
	return n;
}

int safetensors_read(struct safetensors *s, const struct safetensor *t, float *out, struct error *e)
{
	int f32 = strcmp(t->dtype, "F32") == 0, f16 = strcmp(t->dtype, "F16") == 0;
	if (!f32 && !f16 && strcmp(t->dtype, "BF16"))
		return error_set(e, "%s: tensor '%s' is %s: expected F32, F16 or BF16", s->path, t->name, t->dtype);
	size_t size = f32 ? 4 : 2;
	FREED uint8_t *half = f32 ? NULL : xmalloc(CHUNK * 2);
	for (uint64_t i = 0; i < t->n;) {
		size_t k = t->n - i < CHUNK ? (size_t)(t->n - i) : CHUNK;
		if (read_data(s, f32 ? (void *)(out + i) : half, k * size, t->begin + size * i, e))
			return -1;
		for (size_t m = 0; m < k && !f32; m++)
			out[i + m] = f16 ? half_to_float(get_le16(half + 2 * m)) : bfloat16_to_float(get_le16(half + 2 * m));
		size_t good = count_finite(out + i, k);
		i += good;
		if (good < k)
			return error_set(e, "%s: tensor '%s': value %llu is %g", s->path, t->name, (unsigned long long)i, (double)out[i]);
	}
	return 0;
}

int safetensors_digest(struct safetensors *s, char hex[DIGEST_SIZE], struct error *e)
{
	FREED char *rest = xmalloc(CHUNK);
	int bad = 0;
	while (s->hashed < s->size && !bad)
		bad = read_data(s, rest, s->size - s->hashed < CHUNK ? (size_t)(s->size - s->hashed) : CHUNK, s->hashed, e);
	if (bad)
		return -1;
	digest_hex(XXH3_128bits_digest(s->hash), hex);
	return *s->digest && strcmp(hex, s->digest) ? damaged(s->path, e) : 0;
}

int safetensors_set_digest(struct safetensors_set *s, char hex[DIGEST_SIZE], struct error *e)
{
	FREED char *all = xcalloc(s->n, DIGEST_SIZE);
	int bad = 0;
	for (size_t i = 0; i < s->n && !bad; i++)
		bad = safetensors_digest(&s->file[i], all + i * DIGEST_SIZE, e);
	if (s->n == 1)
		memcpy(hex, all, DIGEST_SIZE);
	else
		digest_bytes(all, s->n * DIGEST_SIZE, hex);
	return bad;
}

int safetensors_check_beside(const struct safetensors *s, struct error *e)
{
	char *folder = file_folder(s->path), hex[DIGEST_SIZE];
	int bad = 0;
	for (const struct safetensors_beside *b = s->beside; b < s->beside + s->nbeside && !bad; b++) {
		FREED char *path = xasprintf("%s/%s", folder, b->name);
		size_t n = 0;
		FREED char *text = read_whole(path, &n, e);
		digest_bytes(text, n, hex);
		bad = !text ? -1 : strcmp(hex, b->digest) ? error_set(e, "%s: damaged, or changed since %s was written", path, s->path) : 0;
	}
	free(folder);
	return bad;
}

/* ---- writing ---- */

static uint64_t elements(const struct safetensor_out *t)
{
	uint64_t n = 1;
	for (int i = 0; i < t->ndim; i++)
		n *= t->shape[i];
	return n;
}

static void print_quoted(FILE *f, const char *before, const char *s)
{
	cJSON *text = cJSON_CreateString(s);
	char *quoted = cJSON_PrintUnformatted(text);
	fprintf(f, "%s%s", before, quoted);
	cJSON_Delete(text);
	free(quoted);
}

/* N and the padded JSON (malloced), *size bytes. Its metadata begins with the file's digest, DIGEST_AT, which are zeros here. */
#define HEADER_BEGIN "01234567{\"__metadata__\":{\"" OWN "\":\"" DIGEST_PREFIX
#define DIGEST_AT (sizeof HEADER_BEGIN - 1)
static uint8_t *safetensors_make_header(
	const struct safetensor_out *t, size_t n, const struct text_file *beside, size_t nbeside, size_t *size)
{
	char *text = NULL, hex[DIGEST_SIZE];
	FILE *f = xmemopen(&text, size);
	fputs(HEADER_BEGIN DIGEST_ZEROS "\"", f);
	for (size_t i = 0; i < nbeside; i++) {
		if (beside[i].inside) {
			print_quoted(f, ",", beside[i].name);
			print_quoted(f, ":", beside[i].text);
			continue;
		}
		digest_bytes(beside[i].text, strlen(beside[i].text), hex);
		fprintf(f, ",\"%s\":\"" DIGEST_PREFIX "%s\"", beside[i].name, hex);
	}
	fputs(",\"format\":\"pt\"}", f);
	uint64_t at = 0;
	for (size_t i = 0; i < n; i++) {
		print_quoted(f, ",", t[i].name);
		fputs(":{\"dtype\":\"F32\",\"shape\":[", f);
		for (int k = 0; k < t[i].ndim; k++)
			fprintf(f, "%s%llu", k ? "," : "", (unsigned long long)t[i].shape[k]);
		uint64_t end = at + 4 * elements(&t[i]);
		fprintf(f, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)end);
		at = end;
	}
	fputc('}', f);
	fflush(f);
	for (size_t pad = (8 - *size % 8) % 8; pad; pad--)
		fputc(' ', f);
	xmemclose(f, &text);
	put_le64((uint8_t *)text, *size - 8);
	return (uint8_t *)text;
}

/* The header and the values, then the digest of both in its place. */
static int write_all(struct outfile *f, const uint8_t *header, size_t size, const struct safetensor_out *t, size_t n,
	void (*get)(const struct safetensor_out *t, float *values, void *arg), void *arg, struct error *e)
{
	size_t cap = 0;
	FREED float *values = NULL;
	char hex[DIGEST_SIZE];
	XXH3_state_t *hash = xchecked(XXH3_createState());
	XXH3_128bits_reset(hash);
	XXH3_128bits_update(hash, header, size);
	int bad = outfile_write(f, header, size, e);
	for (size_t i = 0; i < n && !bad; i++) {
		size_t k = (size_t)elements(&t[i]);
		grow(values, cap, k);
		get(&t[i], values, arg);
		XXH3_128bits_update(hash, values, k * sizeof *values);
		bad = outfile_write(f, values, k * sizeof *values, e);
	}
	digest_hex(XXH3_128bits_digest(hash), hex);
	XXH3_freeState(hash);
	if (!bad && pwrite(f->fd, hex, strlen(hex), DIGEST_AT) != (ssize_t)strlen(hex))
		bad = error_set(e, "%s: cannot write: %s", f->path, strerror(errno));
	return bad;
}

int safetensors_write(const char *path, struct safetensor_out *t, size_t n,
	void (*get)(const struct safetensor_out *t, float *values, void *arg), void *arg, const struct text_file *beside, size_t nbeside,
	struct error *e)
{
	qsort(t, n, sizeof *t, compare_text);
	for (size_t i = 1; i < n; i++)
		if (strcmp(t[i - 1].name, t[i].name) == 0)
			return error_set(e, "%s: two tensors named '%s'", path, t[i].name);
	struct outfile f;
	if (outfile_open(&f, path, 0, e))
		return -1;
	size_t size;
	FREED uint8_t *header = safetensors_make_header(t, n, beside, nbeside, &size);
	int bad = write_all(&f, header, size, t, n, get, arg, e);
	if (bad) {
		outfile_abort(&f);
		return -1;
	}
	return outfile_commit(&f, e);
}

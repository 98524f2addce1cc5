/*
 * Any bytes as a model's weights: a safetensors file, or, if they begin with '{', a model.safetensors.index.json beside two files of
 * tensors. They are refused, or the tensors fill the data exactly. Every tensor can be read, and a small model takes the weights, or
 * there is a message.
 */
#include "base/bytes.h"
#include "mutate.h"
#include "train/config.h"
#include "train/weights.h"

#include <assert.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- mutations ---- */

static uint64_t width_of(const cJSON *tensor)
{
	static const struct {
		const char *name;
		unsigned width;
	} type[] = {
		{"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"U16", 2}};
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tensor, "dtype"));
	for (size_t i = 0; name && i < sizeof type / sizeof *type; i++)
		if (!strcmp(type[i].name, name))
			return type[i].width;
	return 1;
}

/* Bytes of a tensor; UINT64_MAX: no usable shape. */
static uint64_t bytes_of(const cJSON *tensor)
{
	const cJSON *d;
	uint64_t n = width_of(tensor);
	cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(tensor, "shape"))
	{
		if (!cJSON_IsNumber(d) || !(d->valuedouble >= 0 && d->valuedouble < 1e6) || n > 1e6)
			return UINT64_MAX;
		n *= (uint64_t)d->valuedouble;
	}
	return n;
}

/* Put the tensors one after another; returns the bytes of the data. */
static size_t mend_offsets(cJSON *header)
{
	uint64_t at = 0;
	cJSON *tensor;
	cJSON_ArrayForEach(tensor, header)
	{
		uint64_t n = cJSON_IsObject(tensor) ? bytes_of(tensor) : UINT64_MAX;
		if (n > 1 << 20)
			continue;
		cJSON *offsets = cJSON_CreateIntArray((int[]){(int)at, (int)(at + n)}, 2);
		if (strcmp(tensor->string, "__metadata__") == 0 ||
			!cJSON_ReplaceItemInObjectCaseSensitive(tensor, "data_offsets", offsets)) {
			cJSON_Delete(offsets);
			continue;
		}
		at += n;
	}
	return at;
}

/* The size of the file of this header, made at `out`, or 0 if it does not fit into max. */
static size_t put_file(uint8_t *out, size_t max, const cJSON *header, const uint8_t *data, size_t have, size_t need)
{
	char *text = cJSON_PrintUnformatted(header);
	size_t n = strlen(text), size = 8 + n + need;
	if (size <= max) {
		put_le64(out, n);
		memcpy(out + 8, text, n);
		memcpy(out + 8 + n, data, have < need ? have : need);
		for (size_t i = have; i < need; i++)
			out[8 + n + i] = 0;
	}
	free(text);
	return size <= max ? size : 0;
}

static size_t mutate_file(uint8_t *data, size_t size, size_t max)
{
	uint64_t n = size < 8 ? 0 : get_le64(data);
	cJSON *header = n && n <= size - 8 ? cJSON_ParseWithLength((char *)data + 8, n) : NULL;
	if (!header)
		return 0;
	size_t have = size - 8 - n, need = have;
	uint8_t *values = xmalloc(have + 1);
	memcpy(values, data + 8 + n, have);
	if (one_in(3) && have) {
		have = need = LLVMFuzzerMutate(values, have, have);
	} else {
		for (unsigned k = 1 + draw_below(3); k; k--)
			mutate_json(header);
		if (!one_in(4))
			need = mend_offsets(header);
	}
	size_t made = put_file(data, max, header, values, have, need);
	free(values);
	cJSON_Delete(header);
	return made;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	size_t n = mutate_plain(seed) ? 0 : size && *data == '{' ? mutate_json_text(data, size, max) : mutate_file(data, size, max);
	return n ? n : LLVMFuzzerMutate(data, size, max);
}

/* ---- the target ---- */

static char dir[64], weights[96], list[112], part[2][96];

static void remove_files(void)
{
	unlink(weights);
	unlink(list);
	unlink(part[0]);
	unlink(part[1]);
	rmdir(dir);
}

static void write_file(const char *path, const uint8_t *data, size_t n)
{
	FILE *f = fopen(path, "w");
	assert(f && fwrite(data, 1, n, f) == n);
	fclose(f);
}

static void value_one(const struct safetensor_out *t, float *values, void *arg)
{
	*values = 1;
}

/* Two files, of one tensor each, for indexes to name: a.safetensors with `a`, b.safetensors with `b`. */
static void make_parts(void)
{
	struct error e;
	for (int i = 0; i < 2; i++) {
		struct safetensor_out t = {.name = i ? "b" : "a", .ndim = 1, .shape = {1}};
		snprintf(part[i], sizeof part[i], "%s/%s.safetensors", dir, t.name);
		assert(safetensors_write(part[i], &t, 1, value_one, NULL, NULL, 0, &e) == 0);
	}
}

static struct model *make_model(void)
{
	static const char json[] = "{\"model_type\":\"bert\",\"vocab_size\":3,\"hidden_size\":2,\"num_hidden_layers\":1,"
				   "\"num_attention_heads\":1,\"intermediate_size\":2,\"max_position_embeddings\":2}";
	static const struct head_spec mlm = {.kind = &head_mlm};
	struct model_config c;
	struct error e;
	assert(config_parse(&c, json, sizeof json - 1, "model", &e) == 0);
	struct model *m = model_blank(&c, &mlm, 1, ops_cpu_new(1), 1, &e);
	assert(m);
	return m;
}

static void check_tensors(struct safetensors *s)
{
	struct error e = {""};
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct safetensor *t = &s->tensor[i];
		uint64_t elements = 1;
		for (int k = 0; k < t->ndim; k++)
			elements *= t->shape[k];
		assert(elements == t->n && safetensors_find(s, t->name) == t);
		bytes += t->end - t->begin;
		float *x = xmalloc(t->n * sizeof *x);
		assert(safetensors_read(s, t, x, &e) == 0 || *e.msg);
		free(x);
	}
	struct stat st;
	assert(fstat(s->fd, &st) == 0 && s->data + bytes == (uint64_t)st.st_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model *m;
	struct safetensors_set set;
	struct weights_report r;
	struct error e = {""};
	if (!m) {
		m = make_model();
		snprintf(dir, sizeof dir, "%s/fuzz_safetensors.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		snprintf(weights, sizeof weights, "%s/model.safetensors", dir);
		snprintf(list, sizeof list, "%s.index.json", weights);
		assert(mkdir(dir, 0700) == 0);
		make_parts();
		atexit(remove_files);
	}
	int is_list = size && *data == '{';
	unlink(is_list ? weights : list);
	write_file(is_list ? list : weights, data, size);
	if (safetensors_set_open(&set, weights, &e)) {
		assert(*e.msg && !set.n);
	} else {
		for (size_t i = 0; i < set.n; i++)
			check_tensors(&set.file[i]);
		safetensors_set_close(&set);
	}
	e.msg[0] = 0;
	assert(weights_load(m, weights, &r, &e) == 0 || *e.msg);
	return 0;
}

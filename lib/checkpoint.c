#include "checkpoint.h"

#include "config.h"
#include "file.h"
#include "safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define STATE_FORMAT 1
#define LOG_COLUMNS "step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds\n"

/* ---- the masked stream ---- */

static int whole(const cJSON *o, const char *key, uint64_t otherwise, uint64_t *x)
{
	const cJSON *j = cJSON_GetObjectItemCaseSensitive(o, key);
	*x = otherwise;
	if (!j)
		return 0;
	if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0 && j->valuedouble <= 0x1p53) || j->valuedouble != floor(j->valuedouble))
		return -1;
	*x = (uint64_t)j->valuedouble;
	return 0;
}

int loader_parse(struct loader *l, const struct header *h, const char *name, struct error *e)
{
	const cJSON *o = cJSON_GetObjectItemCaseSensitive(h->extra, "loader");
	if (!cJSON_IsObject(o) || !cJSON_GetObjectItemCaseSensitive(o, "steps"))
		return error_set(e, "%s: the header does not say how many steps there are (no loader.steps): expected a stream of maskgen", name);
	if (whole(o, "rows", 0, &l->rows) || whole(o, "epochs", 0, &l->epochs) || whole(o, "batch", 0, &l->batch) ||
	    whole(o, "shards", 1, &l->shards) || whole(o, "shard", 0, &l->shard) || whole(o, "steps", 0, &l->steps) ||
	    whole(o, "first_step", 0, &l->first_step))
		return error_set(e, "%s: header: loader: expected whole numbers", name);
	if (l->first_step > l->steps || l->shard >= l->shards)
		return error_set(e, "%s: header: loader: step %llu of %llu, shard %llu of %llu", name, (unsigned long long)l->first_step,
				 (unsigned long long)l->steps, (unsigned long long)l->shard, (unsigned long long)l->shards);
	return 0;
}

void masked_digest(const struct header *h, char hex[33])
{
	cJSON *j = cJSON_CreateObject(), *loader = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(h->extra, "loader"), 1);
	cJSON_DeleteItemFromObjectCaseSensitive(loader, "first_step");
	cJSON_DeleteItemFromObjectCaseSensitive(loader, "shard");
	vocab_digest(&h->vocab, hex);
	cJSON_AddItemToObject(j, "loader", loader ? loader : cJSON_CreateNull());
	cJSON_AddStringToObject(j, "vocab", hex);
	cJSON_AddItemReferenceToObject(j, "provenance", h->provenance);
	char *text = cJSON_PrintUnformatted(j);
	XXH128_hash_t d = XXH3_128bits(text, strlen(text));
	snprintf(hex, 33, "%016llx%016llx", (unsigned long long)d.high64, (unsigned long long)d.low64);
	free(text);
	cJSON_Delete(j);
}

/* ---- folders ---- */

static char *at(const char *dir, const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static char *checkpoint_path(const char *model, uint64_t step, const char *suffix)
{
	return xasprintf("%s/checkpoint-%llu%s", model, (unsigned long long)step, suffix);
}

/* "checkpoint-120" or, with the suffix, "checkpoint-120.tmp": its step; else -1. */
static int64_t step_of(const char *name, const char *suffix)
{
	static const char prefix[] = "checkpoint-";
	if (strncmp(name, prefix, strlen(prefix)))
		return -1;
	const char *digits = name + strlen(prefix);
	size_t n = strspn(digits, "0123456789");
	if (!n || n > 18 || (n > 1 && *digits == '0') || strcmp(digits + n, suffix))
		return -1;
	return strtoll(digits, NULL, 10);
}

/* A folder of files, with the files. */
static int remove_folder(const char *path, struct error *e)
{
	DIR *d = opendir(path);
	if (!d)
		return errno == ENOENT ? 0 : error_set(e, "%s: %s", path, strerror(errno));
	int bad = 0;
	for (struct dirent *x; (x = readdir(d)) && !bad;)
		if (strcmp(x->d_name, ".") && strcmp(x->d_name, "..") && unlinkat(dirfd(d), x->d_name, 0))
			bad = error_set(e, "%s/%s: cannot remove: %s", path, x->d_name, strerror(errno));
	closedir(d);
	if (!bad && rmdir(path))
		bad = error_set(e, "%s: cannot remove: %s", path, strerror(errno));
	return bad;
}

static int sync_folder(const char *path, struct error *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || (fsync(fd) && errno != EINVAL)) {
		error_set(e, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

/* Steps of the folders checkpoint-STEP<suffix>, ascending (malloced). */
static int64_t list_checkpoints(const char *model, const char *suffix, uint64_t **steps, struct error *e)
{
	size_t n = 0, cap = 0;
	*steps = NULL;
	DIR *d = opendir(model);
	if (!d)
		return errno == ENOENT ? 0 : error_set(e, "%s: %s", model, strerror(errno));
	for (struct dirent *x; (x = readdir(d));) {
		int64_t step = step_of(x->d_name, suffix);
		if (step < 0)
			continue;
		grow(*steps, cap, n + 1);
		size_t i = n++;
		for (; i && (*steps)[i - 1] > (uint64_t)step; i--)
			(*steps)[i] = (*steps)[i - 1];
		(*steps)[i] = (uint64_t)step;
	}
	closedir(d);
	return (int64_t)n;
}

int checkpoint_latest(const char *model, uint64_t *step, struct error *e)
{
	uint64_t *steps;
	int64_t n = list_checkpoints(model, "", &steps, e);
	if (n > 0)
		*step = steps[n - 1];
	free(steps);
	return n < 0 ? -1 : n > 0;
}

int checkpoint_finished(const char *model)
{
	char *path = at(model, "model.safetensors");
	int there = access(path, F_OK) == 0;
	free(path);
	return there;
}

int checkpoint_lock(const char *model, struct error *e)
{
	if (mkdir(model, 0777) && errno != EEXIST)
		return error_set(e, "%s: cannot make the folder: %s", model, strerror(errno));
	int fd = open(model, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set(e, "%s: %s", model, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return error_set(e, "%s: another trainer is writing here", model);
	}
	return fd;
}

int checkpoint_clear(const char *model, int all, struct error *e)
{
	static const char *const top[] = {"model.safetensors", "config.json", "vocab.tsv", "train.tsv"};
	int bad = 0;
	for (size_t i = 0; all && i < sizeof top / sizeof *top && !bad; i++) {
		char *path = at(model, top[i]);
		if (unlink(path) && errno != ENOENT)
			bad = error_set(e, "%s: cannot remove: %s", path, strerror(errno));
		free(path);
	}
	for (int tmp = 1; tmp >= !all && !bad; tmp--) {
		uint64_t *steps;
		int64_t n = list_checkpoints(model, tmp ? ".tmp" : "", &steps, e);
		bad = n < 0;
		for (int64_t i = 0; i < n && !bad; i++) {
			char *path = checkpoint_path(model, steps[i], tmp ? ".tmp" : "");
			bad = remove_folder(path, e);
			free(path);
		}
		free(steps);
	}
	return bad ? -1 : 0;
}

/* ---- weights ---- */

static void get_values(const struct safetensor_out *o, float *values, void *arg)
{
	model_read(arg, (enum which)o->which, o->from, values);
}

/* One array of the model, or several with a prefix each, into one file. */
static int save_arrays(struct model *m, const char *path, const char *const prefix[], const enum which which[], size_t narray,
		       struct error *e)
{
	size_t n = model_ntensor(m);
	struct safetensor_out *out = xcalloc(n * narray, sizeof *out);
	char **name = xcalloc(n * narray, sizeof *name);
	for (size_t i = 0; i < n * narray; i++) {
		const struct tensor *t = model_tensor(m, i % n);
		name[i] = xasprintf("%s%s", prefix[i / n], t->name);
		out[i] = (struct safetensor_out){.name = name[i], .ndim = t->ndim, .shape = {t->shape[0], t->shape[1]},
						 .which = (int)which[i / n], .from = t};
	}
	int bad = safetensors_write(path, out, n * narray, get_values, m, e);
	for (size_t i = 0; i < n * narray; i++)
		free(name[i]);
	free(name);
	free(out);
	return bad;
}

int weights_save(struct model *m, const char *path, struct error *e)
{
	return save_arrays(m, path, (const char *const[]){""}, (const enum which[]){PARAM}, 1, e);
}

static int save_moments(struct model *m, const char *path, struct error *e)
{
	return save_arrays(m, path, (const char *const[]){"exp_avg.", "exp_avg_sq."}, (const enum which[]){MOMENT1, MOMENT2}, 2, e);
}

/* Read a file's tensor into a tensor of the model. */
static int load_one(struct model *m, enum which w, const struct tensor *t, const struct safetensors *s,
		    const struct safetensor *from, struct error *e)
{
	uint64_t want[2] = {t->shape[0], t->shape[1]};
	char a[160], b[160];
	if (from->ndim != t->ndim || from->shape[0] != want[0] || (t->ndim == 2 && from->shape[1] != want[1]))
		return error_set(e, "%s: tensor '%s' has shape %s, the configuration asks for %s", s->path, from->name,
				 safetensors_shape(a, sizeof a, from->shape, from->ndim), safetensors_shape(b, sizeof b, want, t->ndim));
	float *values = xmalloc(t->n * sizeof *values);
	int bad = safetensors_read(s, from, values, e);
	if (!bad)
		model_write(m, w, t, values);
	free(values);
	return bad;
}

static int has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The model's tensor that a tensor of a file belongs to; files of a bare BertModel leave "bert." away. */
static const struct tensor *place_of(struct model *m, const char *name)
{
	char full[96];
	const struct tensor *t = model_find(m, name);
	if (t || (!has_prefix(name, "embeddings.") && !has_prefix(name, "encoder.") && !has_prefix(name, "pooler.")))
		return t;
	return snprintf(full, sizeof full, "bert.%s", name) < (int)sizeof full ? model_find(m, full) : NULL;
}

/* Tensors of heads this task does not have, and what older versions of transformers saved besides. */
static int may_ignore(const struct model *m, const char *name)
{
	static const char *const other[] = {"cls.seq_relationship.", "bert.pooler.", "pooler.", "classifier."};
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (has_prefix(name, other[i]))
			return 1;
	return strcmp(name, "bert.embeddings.position_ids") == 0 || strcmp(name, "embeddings.position_ids") == 0 ||
	       (has_prefix(name, "cls.predictions.") && (model_task(m) != TASK_MLM || has_prefix(name, "cls.predictions.decoder.")));
}

/* A decoder stored beside the embedding (or beside the bias) must be the same numbers: here they are one. */
static int check_tied(struct model *m, const struct safetensors *s, const char *name, const char *with, struct error *e)
{
	const struct safetensor *d = safetensors_find(s, name);
	const struct tensor *t = model_find(m, with);
	if (!d || !t)
		return 0;
	float *a = xmalloc(t->n * sizeof *a), *b = xmalloc(t->n * sizeof *b);
	int bad = d->n != t->n || safetensors_read(s, d, a, e);
	if (!bad) {
		model_read(m, PARAM, t, b);
		bad = memcmp(a, b, t->n * sizeof *a) != 0;
	}
	free(a);
	free(b);
	return bad ? error_set(e, "%s: tensor '%s' differs from '%s': only tied decoders are supported", s->path, name, with) : 0;
}

static int load_all(struct model *m, const struct safetensors *s, struct weights_report *r, struct error *e)
{
	char *seen = xcalloc(model_ntensor(m), 1);
	int bad = 0;
	for (size_t i = 0; i < s->n && !bad; i++) {
		const struct tensor *t = place_of(m, s->tensor[i].name);
		if (t) {
			seen[t - model_tensor(m, 0)] = 1;
			bad = load_one(m, PARAM, t, s, &s->tensor[i], e);
		} else if (may_ignore(m, s->tensor[i].name)) {
			r->ignored++;
		} else {
			bad = error_set(e, "%s: tensor '%.80s' has no place in a model of this configuration (%u layers)", s->path,
					s->tensor[i].name, model_config(m)->num_hidden_layers);
		}
	}
	for (size_t i = 0; i < model_ntensor(m) && !bad; i++) {
		const struct tensor *t = model_tensor(m, i);
		char want[160];
		uint64_t shape[2] = {t->shape[0], t->shape[1]};
		if (seen[i])
			continue;
		if (t->layer < (int)model_config(m)->num_hidden_layers) {
			bad = error_set(e, "%s: no tensor '%s' (expected shape %s)", s->path, t->name,
					safetensors_shape(want, sizeof want, shape, t->ndim));
		} else if (!r->fresh++) {
			snprintf(r->first_fresh, sizeof r->first_fresh, "%s", t->name);
		}
	}
	free(seen);
	if (bad)
		return -1;
	return check_tied(m, s, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", e) ||
	       check_tied(m, s, "cls.predictions.decoder.bias", "cls.predictions.bias", e) ? -1 : 0;
}

int weights_load(struct model *m, const char *path, struct weights_report *r, struct error *e)
{
	struct safetensors s;
	*r = (struct weights_report){0};
	if (safetensors_open(&s, path, e))
		return -1;
	int bad = load_all(m, &s, r, e);
	safetensors_close(&s);
	return bad;
}

static int load_moments(struct model *m, const char *path, struct error *e)
{
	static const char *const prefix[] = {"exp_avg.", "exp_avg_sq."};
	struct safetensors s;
	char name[128];
	if (safetensors_open(&s, path, e))
		return -1;
	int bad = 0;
	if (s.n != 2 * model_ntensor(m))
		bad = error_set(e, "%s: %zu tensors, expected two moments for each of the model's %zu", path, s.n, model_ntensor(m));
	for (size_t i = 0; i < 2 * model_ntensor(m) && !bad; i++) {
		const struct tensor *t = model_tensor(m, i / 2);
		snprintf(name, sizeof name, "%s%s", prefix[i % 2], t->name);
		const struct safetensor *from = safetensors_find(&s, name);
		bad = from ? load_one(m, i % 2 ? MOMENT2 : MOMENT1, t, &s, from, e) : error_set(e, "%s: no tensor '%s'", path, name);
	}
	safetensors_close(&s);
	return bad;
}

/* ---- trainer_state.json ---- */

void train_state_release(struct train_state *s)
{
	cJSON_Delete(s->settings);
	*s = (struct train_state){0};
}

static int write_text(const char *path, const char *text, struct error *e)
{
	struct outfile f;
	if (outfile_open(&f, path, 0, e))
		return -1;
	if (outfile_write(&f, text, strlen(text), e)) {
		outfile_abort(&f);
		return -1;
	}
	return outfile_commit(&f, e);
}

static int save_state(const struct train_state *s, const char *path, struct error *e)
{
	cJSON *j = cJSON_CreateObject();
	cJSON_AddNumberToObject(j, "format", STATE_FORMAT);
	cJSON_AddNumberToObject(j, "step", (double)s->step);
	cJSON_AddNumberToObject(j, "steps", (double)s->steps);
	cJSON_AddNumberToObject(j, "epoch", s->epoch);
	cJSON_AddNumberToObject(j, "seconds", s->seconds);
	cJSON_AddStringToObject(j, "masked_digest", s->digest);
	cJSON_AddItemReferenceToObject(j, "settings", s->settings);
	char *text = cJSON_Print(j), *line = xasprintf("%s\n", text);
	cJSON_Delete(j);
	int bad = write_text(path, line, e);
	free(text);
	free(line);
	return bad;
}

static int parse_state(struct train_state *s, cJSON *j, const char *path, struct error *e)
{
	uint64_t format = 0;
	const cJSON *digest = cJSON_GetObjectItemCaseSensitive(j, "masked_digest"),
		*epoch = cJSON_GetObjectItemCaseSensitive(j, "epoch"), *seconds = cJSON_GetObjectItemCaseSensitive(j, "seconds");
	if (!cJSON_IsObject(j) || whole(j, "format", 0, &format) || whole(j, "step", UINT64_MAX, &s->step) ||
	    whole(j, "steps", 0, &s->steps) || s->step > s->steps || !cJSON_IsString(digest) || strlen(digest->valuestring) != 32 ||
	    !cJSON_IsNumber(epoch) || !cJSON_IsNumber(seconds))
		return error_set(e, "%s: not the state of a trainer", path);
	if (format != STATE_FORMAT)
		return error_set(e, "%s: format %llu, this program reads %d", path, (unsigned long long)format, STATE_FORMAT);
	s->epoch = epoch->valuedouble;
	s->seconds = seconds->valuedouble;
	strcpy(s->digest, digest->valuestring);
	s->settings = cJSON_DetachItemFromObjectCaseSensitive(j, "settings");
	return cJSON_IsObject(s->settings) ? 0 : error_set(e, "%s: no settings", path);
}

int checkpoint_state(struct train_state *s, const char *model, uint64_t step, struct error *e)
{
	char *dir = checkpoint_path(model, step, ""), *path = at(dir, "trainer_state.json"), text[65536];
	*s = (struct train_state){0};
	int bad = -1;
	FILE *f = fopen(path, "re");
	if (!f) {
		error_set(e, "%s: %s", path, strerror(errno));
	} else {
		size_t n = fread(text, 1, sizeof text, f);
		cJSON *j = cJSON_ParseWithLength(text, n);
		bad = parse_state(s, j, path, e);
		cJSON_Delete(j);
		fclose(f);
	}
	if (!bad && s->step != step)
		bad = error_set(e, "%s: says step %llu", path, (unsigned long long)s->step);
	if (bad)
		train_state_release(s);
	free(path);
	free(dir);
	return bad;
}

int checkpoint_load(struct train_state *s, struct model *m, const char *model, uint64_t step, struct error *e)
{
	if (checkpoint_state(s, model, step, e))
		return -1;
	char *dir = checkpoint_path(model, step, ""), *weights = at(dir, "model.safetensors"), *moments = at(dir, "optimizer.safetensors"),
	     *config = at(dir, "config.json");
	struct weights_report r;
	struct model_config c;
	int bad = config_load(&c, config, e);
	if (!bad) {
		char *had = config_print(&c, model_task(m)), *has = config_print(model_config(m), model_task(m));
		if (strcmp(had, has))
			bad = error_set(e, "%s: not the configuration asked for now", config);
		free(had);
		free(has);
	}
	bad = bad || weights_load(m, weights, &r, e);
	if (!bad && r.fresh)
		bad = error_set(e, "%s: no tensor '%s'", weights, r.first_fresh);
	bad = bad || load_moments(m, moments, e);
	free(config);
	free(moments);
	free(weights);
	free(dir);
	if (bad)
		train_state_release(s);
	return bad ? -1 : 0;
}

/* ---- writing ---- */

static int save_vocab(const struct vocab *v, const char *path, struct error *e)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int bad = vocab_save(v, f);
	fclose(f);
	bad = bad ? error_set(e, "%s: cannot write", path) : write_text(path, text, e);
	free(text);
	return bad;
}

/* config.json, vocab.tsv and last the weights. */
static int save_model(const char *dir, struct model *m, const struct vocab *v, struct error *e)
{
	char *config = at(dir, "config.json"), *vocab = at(dir, "vocab.tsv"), *weights = at(dir, "model.safetensors");
	int bad = config_save(model_config(m), model_task(m), config, e) || save_vocab(v, vocab, e) || weights_save(m, weights, e);
	free(config);
	free(vocab);
	free(weights);
	return bad ? -1 : 0;
}

static int save_into(const char *dir, struct model *m, const struct train_state *s, const struct vocab *v, struct error *e)
{
	char *moments = at(dir, "optimizer.safetensors"), *state = at(dir, "trainer_state.json");
	int bad = save_model(dir, m, v, e) || save_moments(m, moments, e) || save_state(s, state, e) || sync_folder(dir, e);
	free(moments);
	free(state);
	return bad ? -1 : 0;
}

int checkpoint_save(const char *model, struct model *m, const struct train_state *s, const struct vocab *v, int keep,
		    struct error *e)
{
	char *tmp = checkpoint_path(model, s->step, ".tmp"), *dir = checkpoint_path(model, s->step, "");
	struct error ignored;
	int bad = remove_folder(tmp, e);
	if (!bad && mkdir(tmp, 0777))
		bad = error_set(e, "%s: cannot make the folder: %s", tmp, strerror(errno));
	if (!bad && save_into(tmp, m, s, v, e)) {
		remove_folder(tmp, &ignored);
		bad = -1;
	}
	bad = bad || remove_folder(dir, e);
	if (!bad && rename(tmp, dir))
		bad = error_set(e, "%s: cannot finish: %s", dir, strerror(errno));
	bad = bad || sync_folder(model, e);
	free(tmp);
	free(dir);
	uint64_t *steps = NULL;
	int64_t n = bad ? 0 : list_checkpoints(model, "", &steps, e);
	bad = bad || n < 0;
	for (int64_t i = 0; i < n - keep && !bad; i++) {
		char *old = checkpoint_path(model, steps[i], "");
		bad = remove_folder(old, e);
		free(old);
	}
	free(steps);
	return bad ? -1 : 0;
}

int checkpoint_finish(const char *model, struct model *m, const struct vocab *v, struct error *e)
{
	return save_model(model, m, v, e) || sync_folder(model, e) ? -1 : 0;
}

/* ---- train.tsv ---- */

FILE *checkpoint_log(const char *model, uint64_t step, struct error *e)
{
	char *path = at(model, "train.tsv"), *line = NULL;
	size_t cap = 0;
	FILE *f = fopen(path, "a+e");
	off_t keep = 0;
	if (!f) {
		error_set(e, "%s: %s", path, strerror(errno));
		free(path);
		return NULL;
	}
	rewind(f);
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n'; keep += n)
		if (keep ? strtoull(line, NULL, 10) > step : strcmp(line, LOG_COLUMNS) != 0)
			break;
	free(line);
	if (ftruncate(fileno(f), keep) || fseeko(f, 0, SEEK_END) || (!keep && fputs(LOG_COLUMNS, f) < 0) || fflush(f)) {
		error_set(e, "%s: cannot write: %s", path, strerror(errno));
		fclose(f);
		f = NULL;
	}
	free(path);
	return f;
}

/* ---- use ---- */

struct model *model_dir_load(const char *dir, enum task task, struct ops *o, uint64_t seed, struct vocab *v,
			     struct weights_report *r, struct error *e)
{
	char *config = at(dir, "config.json"), *vocab = at(dir, "vocab.tsv"), *weights = at(dir, "model.safetensors");
	struct model_config c;
	struct model *m = NULL;
	*v = (struct vocab){0};
	int bad = config_load(&c, config, e);
	if (!bad && access(vocab, F_OK) == 0)
		bad = vocab_load(v, vocab, e);
	if (!bad && v->n && v->n != c.vocab_size)
		bad = error_set(e, "%s: %zu rows, but %s says vocab_size %u", vocab, v->n, config, c.vocab_size);
	if (!bad) {
		m = model_new(&c, task, o, seed, e);
		bad = !m ? error_prefix(e, "%s", config) : weights_load(m, weights, r, e);
	}
	if (bad) {
		model_free(m);
		m = NULL;
		vocab_release(v);
	}
	free(config);
	free(vocab);
	free(weights);
	return m;
}

int vocab_same(const struct vocab *v, const struct model_config *c, const char *dir, const struct header *h, const char *name,
	       struct error *e)
{
	char a[33], b[33];
	if (h->vocab.n != c->vocab_size)
		return error_set(e, "%s: a vocabulary of %zu tokens, but the model in %s has vocab_size %u", name, h->vocab.n, dir,
				 c->vocab_size);
	if (!v->n) {
		error_set(e, "%s has no vocab.tsv: only the size of the vocabulary was compared", dir);
		return 1;
	}
	vocab_digest(v, a);
	vocab_digest(&h->vocab, b);
	if (strcmp(a, b)) {
		size_t i = 0;
		while (i < v->n && strcmp(v->id[i], h->vocab.id[i]) == 0)
			i++;
		return error_set(e, "%s: not the vocabulary of %s: token %zu is %s here and %s in the model", name, dir, i,
				 i < v->n ? h->vocab.id[i] : "?", i < v->n ? v->id[i] : "?");
	}
	vocab_median_digest(v, a);
	vocab_median_digest(&h->vocab, b);
	if (strcmp(a, b) == 0)
		return 0;
	error_set(e, "%s: the gene medians differ from those of %s: the tokens are ranked in another way", name, dir);
	return 1;
}

#include "train/weights.h"

#include "train/config.h"
#include "train/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void get_values(const struct safetensor_out *o, float *values, void *arg)
{
	model_read(arg, (enum which)o->which, o->from, values);
}

int weights_save_arrays(
	struct model *m, const char *path, const char *const prefix[], const enum which which[], size_t narray, struct error *e)
{
	size_t n = model_ntensor(m), nout = 0;
	struct safetensor_out *out = xcalloc(n * narray, sizeof *out);
	char **name = xcalloc(n * narray, sizeof *name);
	for (size_t i = 0; i < n * narray; i++) {
		const struct tensor *t = model_tensor(m, i % n);
		if (which[i / n] != PARAM && t->role == BUFFER)
			continue;
		name[nout] = xasprintf("%s%s", prefix[i / n], t->name);
		out[nout] = (struct safetensor_out){
			.name = name[nout], .ndim = t->ndim, .shape = {t->shape[0], t->shape[1]}, .which = (int)which[i / n], .from = t};
		nout++;
	}
	int bad = safetensors_write(path, out, nout, get_values, m, e);
	for (size_t i = 0; i < nout; i++)
		free(name[i]);
	free(name);
	free(out);
	return bad;
}

int weights_save(struct model *m, const char *path, struct error *e)
{
	return weights_save_arrays(m, path, (const char *const[]){""}, (const enum which[]){PARAM}, 1, e);
}

static void copy_values(const struct safetensor_out *o, float *values, void *arg)
{
	const struct tensor *t = o->from;
	memcpy(values, (const real *)arg + t->at, t->n * sizeof *values);
}

int weights_save_copy(struct model *m, const real *values, const char *path, struct error *e)
{
	size_t n = model_ntensor(m);
	struct safetensor_out *out = xcalloc(n, sizeof *out);
	for (size_t i = 0; i < n; i++) {
		const struct tensor *t = model_tensor(m, i);
		out[i] = (struct safetensor_out){.name = t->name, .ndim = t->ndim, .shape = {t->shape[0], t->shape[1]}, .from = t};
	}
	int bad = safetensors_write(path, out, n, copy_values, (void *)(uintptr_t)values, e);
	free(out);
	return bad;
}

int weights_load_one(
	struct model *m, enum which w, const struct tensor *t, const struct safetensors *s, const struct safetensor *from, struct error *e)
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
	if (t)
		return t;
	return snprintf(full, sizeof full, "%s%s", model_config(m)->arch->prefix, name) < (int)sizeof full ? model_find(m, full) : NULL;
}

/* Tensors of heads that this model does not have, and what older versions of transformers saved besides. */
static int may_ignore(const struct model *m, const char *name)
{
	static const char *const older[] = {"cls.seq_relationship.", "cls.predictions.decoder.", "bert.pooler.", "pooler.", "classifier."};
	for (size_t i = 0; i < sizeof older / sizeof *older; i++)
		if (has_prefix(name, older[i]))
			return 1;
	for (size_t i = 0; head_at(i); i++) {
		int ours = 0;
		if (head_at(i)->only_training && has_prefix(name, head_at(i)->only_training))
			return 1;
		for (size_t k = 0; model_head(m, k); k++)
			ours |= model_head(m, k)->kind == head_at(i);
		for (const char *const *p = head_at(i)->prefix; !ours && *p; p++)
			if (has_prefix(name, *p))
				return 1;
	}
	return strcmp(name, "bert.embeddings.position_ids") == 0 || strcmp(name, "embeddings.position_ids") == 0;
}

/* The decoder shares its weights with the embedding, and its bias. A file that stores both must have the same numbers in both. */
static int check_tied(struct model *m, const struct safetensors_set *set, const char *name, const char *with, struct error *e)
{
	const struct safetensors *s = set->file;
	while (s < set->file + set->n && !safetensors_find(s, name))
		s++;
	const struct safetensor *d = s < set->file + set->n ? safetensors_find(s, name) : NULL;
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

/* The tensors of one file. seen [model_ntensor]: those that were loaded. */
static int load_file(struct model *m, const struct safetensors *s, const char *skip, char *seen, struct weights_report *r, struct error *e)
{
	int bad = 0;
	for (size_t i = 0; i < s->n && !bad; i++) {
		const struct tensor *t = place_of(m, s->tensor[i].name);
		if (skip && has_prefix(s->tensor[i].name, skip)) {
			r->ignored++;
		} else if (t) {
			seen[t - model_tensor(m, 0)] = 1;
			bad = weights_load_one(m, PARAM, t, s, &s->tensor[i], e);
		} else if (may_ignore(m, s->tensor[i].name)) {
			r->ignored++;
		} else {
			bad = error_set(e, "%s: tensor '%.80s' has no place in a model of this configuration (%u layers)", s->path,
				s->tensor[i].name, model_config(m)->num_hidden_layers);
		}
	}
	return bad;
}

static int load_all(struct model *m, const struct safetensors_set *s, const char *skip, struct weights_report *r, struct error *e)
{
	char *seen = xcalloc(model_ntensor(m), 1);
	int bad = 0;
	for (size_t i = 0; i < s->n && !bad; i++)
		bad = load_file(m, &s->file[i], skip, seen, r, e);
	for (size_t i = 0; i < model_ntensor(m) && !bad; i++) {
		const struct tensor *t = model_tensor(m, i);
		char want[160];
		uint64_t shape[2] = {t->shape[0], t->shape[1]};
		if (seen[i])
			continue;
		if (t->layer < (int)model_config(m)->num_hidden_layers) {
			bad = error_set(e, "%s: no tensor '%s' (expected shape %s)", s->file->path, t->name,
				safetensors_shape(want, sizeof want, shape, t->ndim));
		} else {
			model_draw(m, t);
			if (!r->fresh++)
				snprintf(r->first_fresh, sizeof r->first_fresh, "%s", t->name);
		}
	}
	free(seen);
	if (bad)
		return -1;
	return check_tied(m, s, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", e) ||
			check_tied(m, s, "cls.predictions.decoder.bias", "cls.predictions.bias", e)
		? -1
		: 0;
}

int weights_load(struct model *m, const char *path, struct weights_report *r, struct error *e)
{
	return weights_load_except(m, path, NULL, r, e);
}

/* A model that transformers can read and we cannot yet: say what to do. */
static int explain_missing(const char *path, struct error *e)
{
	const char *slash = strrchr(path, '/');
	char *pickled = xasprintf("%.*spytorch_model.bin", slash ? (int)(slash - path) + 1 : 0, path);
	if (access(path, F_OK) && access(pickled, F_OK) == 0)
		error_prefix(e, "%s is there, pickled weights: load and save it once with transformers, which writes model.safetensors",
			pickled);
	free(pickled);
	return -1;
}

int weights_load_except(struct model *m, const char *path, const char *skip, struct weights_report *r, struct error *e)
{
	struct safetensors_set s;
	*r = (struct weights_report){0};
	if (safetensors_set_open(&s, path, e))
		return explain_missing(path, e);
	int bad = load_all(m, &s, skip, r, e);
	safetensors_set_close(&s);
	return bad;
}

/* ---- a model directory ---- */

static char *join(const char *dir, const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

struct model *model_dir_load(const char *dir, const struct head_spec *head, size_t nhead, struct ops *o, uint64_t seed, struct vocab *v,
	struct weights_report *r, struct error *e)
{
	char *config = join(dir, "config.json"), *vocab = join(dir, "vocab.tsv"), *weights = join(dir, "model.safetensors");
	struct model_config c;
	struct model *m = NULL;
	*v = (struct vocab){0};
	int bad = config_folder(dir, e) || config_load(&c, config, e);
	if (!bad && access(vocab, F_OK) == 0)
		bad = vocab_load(v, vocab, e);
	if (!bad && v->n && v->n != c.vocab_size)
		bad = error_set(e, "%s: %zu rows, but %s says vocab_size %u", vocab, v->n, config, c.vocab_size);
	if (!bad) {
		m = model_blank(&c, head, nhead, o, seed, e);
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

int vocab_same(
	const struct vocab *v, const struct model_config *c, const char *dir, const struct header *h, const char *name, struct error *e)
{
	char a[33], b[33];
	if (h->vocab.n != c->vocab_size)
		return error_set(
			e, "%s: a vocabulary of %zu tokens, but the model in %s has vocab_size %u", name, h->vocab.n, dir, c->vocab_size);
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

#include "train/weights.h"

#include "base/file.h"
#include "train/model_dir.h"

#include <unistd.h>

static void get_values(const struct safetensor_out *o, float *values, void *arg)
{
	model_read(arg, (enum which)o->which, o->from, values);
}

int weights_save_arrays(struct model *m, const char *path, const char *const prefix[], const enum which which[], size_t narray,
	const struct text_file *beside, size_t nbeside, struct error *e)
{
	size_t n = model_ntensor(m), nout = 0;
	FREED struct safetensor_out *out = xcalloc(n * narray, sizeof *out);
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
	int bad = safetensors_write(path, out, nout, get_values, m, beside, nbeside, e);
	free_list(name, nout);
	return bad;
}

int weights_save(struct model *m, const char *path, const struct text_file *beside, size_t nbeside, struct error *e)
{
	return weights_save_arrays(m, path, (const char *const[]){""}, (const enum which[]){PARAM}, 1, beside, nbeside, e);
}

static void copy_values(const struct safetensor_out *o, float *values, void *arg)
{
	const struct tensor *t = o->from;
	memcpy(values, (const real *)arg + t->at, t->n * sizeof *values);
}

int weights_save_copy(struct model *m, const real *values, const char *path, struct error *e)
{
	size_t n = model_ntensor(m);
	FREED struct safetensor_out *out = xcalloc(n, sizeof *out);
	for (size_t i = 0; i < n; i++) {
		const struct tensor *t = model_tensor(m, i);
		out[i] = (struct safetensor_out){.name = t->name, .ndim = t->ndim, .shape = {t->shape[0], t->shape[1]}, .from = t};
	}
	return safetensors_write(path, out, n, copy_values, (void *)(uintptr_t)values, NULL, 0, e);
}

int weights_load_one(
	struct model *m, enum which w, const struct tensor *t, struct safetensors *s, const struct safetensor *from, struct error *e)
{
	uint64_t want[2] = {t->shape[0], t->shape[1]};
	char a[160], b[160];
	if (from->ndim != t->ndim || from->shape[0] != want[0] || (t->ndim == 2 && from->shape[1] != want[1]))
		return error_set(e, "%s: tensor '%s' has shape %s, the configuration asks for %s", s->path, from->name,
			safetensors_shape(a, sizeof a, from->shape, from->ndim), safetensors_shape(b, sizeof b, want, t->ndim));
	FREED float *values = xmalloc(t->n * sizeof *values);
	int bad = safetensors_read(s, from, values, e);
	if (!bad)
		model_write(m, w, t, values);
	return bad;
}

static int has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* A file, and the names that the model's tensors have in it. */
struct source {
	struct model *m;
	struct safetensors_set *set;
	char **name; /* [model_ntensor], NULL: not to be loaded */
	char *seen; /* [model_ntensor] those that were loaded */
};

/* from: as in weights_load_heads, or NULL: the model's own heads. */
static void name_tensors(struct source *s, const struct head_spec *const *from)
{
	size_t n = model_ntensor(s->m);
	s->name = xcalloc(n, sizeof *s->name);
	s->seen = xcalloc(n, 1);
	for (size_t i = 0; i < n; i++) {
		const struct tensor *t = model_tensor(s->m, i);
		if (t->head < 0 || !from) {
			s->name[i] = xstrdup(t->name);
		} else if (from[t->head]) {
			const char *own = model_head(s->m, (size_t)t->head)->prefix, *there = from[t->head]->prefix;
			s->name[i] = xasprintf("%s%s", there ? there : "", t->name + (own ? strlen(own) : 0));
		}
	}
}

static const struct tensor *named(const struct source *s, const char *name)
{
	for (size_t i = 0; i < model_ntensor(s->m); i++)
		if (s->name[i] && !strcmp(s->name[i], name))
			return model_tensor(s->m, i);
	return NULL;
}

/* The model's tensor that a tensor of a file belongs to. Files may leave away the prefix of the architecture. */
static const struct tensor *place_of(const struct source *s, const char *name)
{
	char full[TENSOR_NAME];
	const struct tensor *t = named(s, name);
	if (t)
		return t;
	return snprintf(full, sizeof full, "%s%s", model_config(s->m)->arch->prefix, name) < (int)sizeof full ? named(s, full) : NULL;
}

/* Does a loaded head of the model have its tensors under the names of this kind? */
static int takes(const struct source *s, const struct head_kind *k)
{
	for (size_t i = 0; i < model_ntensor(s->m); i++) {
		int head = model_tensor(s->m, i)->head;
		if (head < 0 || !s->name[i] || model_head(s->m, (size_t)head)->kind != k)
			continue;
		for (const char *const *p = k->prefix; *p; p++)
			if (has_prefix(s->name[i], *p))
				return 1;
	}
	return 0;
}

/* Tensors of heads that this model does not have, and what is not needed. */
static int may_ignore(const struct source *s, const char *name)
{
	const char *const *other = model_config(s->m)->arch->other;
	if (has_prefix(name, HEAD_PREFIX))
		return 1;
	for (; other && *other; other++)
		if (has_prefix(name, *other))
			return 1;
	for (size_t i = 0; head_at(i); i++) {
		const struct head_kind *k = head_at(i);
		if (k->only_training && has_prefix(name, k->only_training))
			return 1;
		for (size_t c = 0; k->copy && k->copy[c][0]; c++)
			if (strcmp(name, k->copy[c][0]) == 0)
				return 1;
		for (const char *const *p = k->prefix; *p && !takes(s, k); p++)
			if (has_prefix(name, *p))
				return 1;
	}
	return 0;
}

/* A decoder shares its weights with the embedding, and its bias. A file that stores both must have the same numbers in both. */
static int check_copy(struct model *m, struct safetensors_set *set, const char *name, const struct tensor *t, struct error *e)
{
	struct safetensors *s = set->file;
	while (s < set->file + set->n && !safetensors_find(s, name))
		s++;
	const struct safetensor *d = s < set->file + set->n ? safetensors_find(s, name) : NULL;
	if (!d || !t)
		return 0;
	FREED float *a = xmalloc(t->n * sizeof *a), *b = xmalloc(t->n * sizeof *b);
	int bad = d->n != t->n || safetensors_read(s, d, a, e);
	if (!bad) {
		model_read(m, PARAM, t, b);
		bad = memcmp(a, b, t->n * sizeof *a) != 0;
	}
	return bad ? error_set(e, "%s: tensor '%s' differs from '%s': only tied decoders are supported", s->path, name, t->name) : 0;
}

static int check_copies(struct model *m, struct safetensors_set *set, struct error *e)
{
	for (size_t i = 0; head_at(i); i++) {
		const char *const(*copy)[2] = head_at(i)->copy;
		for (; copy && (*copy)[0]; copy++)
			if (check_copy(m, set, (*copy)[0], *(*copy)[1] ? model_find(m, (*copy)[1]) : model_tied(m), e))
				return -1;
	}
	return 0;
}

#define BY_TRANSFORMERS "; load and save it once with transformers"

/* What to do about a tensor without a place, if its name says who gave it. */
static const char *renamed(const char *name)
{
	const char *end = strrchr(name, '.');
	return has_prefix(name, "module.") || has_prefix(name, "_orig_mod.")
		? "; it was saved in a wrapper of PyTorch: save model.module or model._orig_mod"
		: end && (!strcmp(end, ".gamma") || !strcmp(end, ".beta")) ? BY_TRANSFORMERS
									   : "";
}

/* The same about a tensor that is missing: a file can have the embedding as the decoder that shares it. */
static const char *shared(const struct source *o, const struct tensor *t)
{
	for (size_t i = 0; head_at(i) && t == model_tied(o->m); i++)
		for (const char *const(*copy)[2] = head_at(i)->copy; copy && (*copy)[0]; copy++)
			for (size_t k = 0; k < o->set->n; k++)
				if (!*(*copy)[1] && safetensors_find(&o->set->file[k], (*copy)[0]))
					return BY_TRANSFORMERS;
	return "";
}

static int load_file(const struct source *o, struct safetensors *s, struct weights_report *r, struct error *e)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct tensor *t = place_of(o, s->tensor[i].name);
		if (!t && may_ignore(o, s->tensor[i].name)) {
			r->ignored++;
			continue;
		}
		if (!t)
			return error_set(e, "%s: tensor '%.80s' has no place in a model of this configuration (%u layers)%s", s->path,
				s->tensor[i].name, model_config(o->m)->num_hidden_layers, renamed(s->tensor[i].name));
		if (o->seen[t - model_tensor(o->m, 0)]++)
			return error_set(e, "%s: tensor '%s' occurs twice, with and without the prefix '%s'", s->path, t->name,
				model_config(o->m)->arch->prefix);
		if (weights_load_one(o->m, PARAM, t, s, &s->tensor[i], e))
			return -1;
	}
	return 0;
}

static int load_all(const struct source *o, struct weights_report *r, struct error *e)
{
	for (size_t i = 0; i < o->set->n; i++)
		if (load_file(o, &o->set->file[i], r, e))
			return -1;
	for (size_t i = 0; i < model_ntensor(o->m); i++) {
		const struct tensor *t = model_tensor(o->m, i);
		char want[160];
		uint64_t shape[2] = {t->shape[0], t->shape[1]};
		if (o->seen[i])
			continue;
		if (t->layer < (int)model_config(o->m)->num_hidden_layers)
			return error_set(e, "%s: no tensor '%s' (expected shape %s)%s", o->set->file->path, t->name,
				safetensors_shape(want, sizeof want, shape, t->ndim), shared(o, t));
		model_draw(o->m, t);
		if (!r->fresh++)
			snprintf(r->first_fresh, sizeof r->first_fresh, "%s", t->name);
	}
	return check_copies(o->m, o->set, e);
}

/* A model that transformers can read and we cannot yet: say what to do. */
static int explain_missing(const char *path, struct error *e)
{
	FREED char *pickled = xasprintf("%.*spytorch_model.bin", (int)(file_name(path) - path), path);
	if (access(path, F_OK) && access(pickled, F_OK) == 0)
		error_prefix(e, "%s is there, pickled weights: load and save it once with transformers, which writes model.safetensors",
			pickled);
	return -1;
}

int weights_load_heads(struct model *m, const char *path, const struct head_spec *const *from, struct weights_report *r, struct error *e)
{
	RELEASED(safetensors_set_close) struct safetensors_set set;
	struct source o = {.m = m, .set = &set};
	*r = (struct weights_report){0};
	if (safetensors_set_open(&set, path, e))
		return explain_missing(path, e);
	name_tensors(&o, from);
	int bad = load_all(&o, r, e) || safetensors_set_digest(&set, r->digest, e) ? -1 : 0;
	free_list(o.name, model_ntensor(m));
	free(o.seen);
	return bad;
}

int weights_digest(const char *path, char hex[DIGEST_SIZE], struct error *e)
{
	RELEASED(safetensors_set_close) struct safetensors_set set;
	if (safetensors_set_open(&set, path, e))
		return explain_missing(path, e);
	if (set.n != 1 || !*set.file->digest)
		return safetensors_set_digest(&set, hex, e);
	strcpy(hex, set.file->digest);
	return 0;
}

int weights_load(struct model *m, const char *path, struct weights_report *r, struct error *e)
{
	return weights_load_heads(m, path, NULL, r, e);
}

/* ---- a model directory ---- */

struct model *model_dir_load(const char *dir, const struct head_spec *head, size_t nhead, struct ops *o, uint64_t seed, struct vocab *v,
	struct weights_report *r, struct error *e)
{
	struct model_config c;
	if (model_dir_tables(&c, v, dir, e))
		return NULL;
	FREED char *weights = xasprintf("%s/model.safetensors", dir);
	struct model *m = model_blank(&c, head, nhead, o, seed, e);
	if (!m)
		error_prefix(e, "%s/config.json", dir);
	if (!m || weights_load(m, weights, r, e)) {
		model_free(m);
		m = NULL;
		vocab_release(v);
	}
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
	if (!vocab_equal(v, &h->vocab)) {
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

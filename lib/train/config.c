#include "train/config_impl.h"

#include "base/json.h"
#include "base/sort.h"
#include "base/texts.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

/* Refuse a field that is there and says something else. */
static void must_be(struct config_reader *r, const char *key, const char *word)
{
	const cJSON *x = config_item(r, key);
	if (!x || r->bad)
		return;
	if (!cJSON_IsString(x))
		r->bad = error_set(r->e, "%s: %s: expected \"%s\"", r->name, key, word);
	else if (strcmp(x->valuestring, word))
		r->bad = error_set(r->e, "%s: %s is \"%.40s\": only \"%s\" is supported", r->name, key, x->valuestring, word);
}

static void must_be_bool(struct config_reader *r, const char *key, int value)
{
	const cJSON *x = config_item(r, key);
	if (x && !r->bad && (!cJSON_IsBool(x) || cJSON_IsTrue(x) != value))
		r->bad = error_set(r->e, "%s: %s: only %s is supported", r->name, key, value ? "true" : "false");
}

static uint32_t flag_field(struct config_reader *r, const char *key)
{
	const cJSON *x = config_item(r, key);
	if (x && !r->bad && !cJSON_IsBool(x))
		r->bad = error_set(r->e, "%s: %s: expected true or false", r->name, key);
	return x && cJSON_IsTrue(x);
}

static enum act act_field(struct config_reader *r, const char *key)
{
	const cJSON *x = config_item(r, key);
	for (enum act act = ACT_NONE; act < ACT_WORDS; act++)
		if (cJSON_IsString(x) && act_words[act] && !strcmp(x->valuestring, act_words[act]))
			return act;
	if (x && !r->bad)
		r->bad = error_set(r->e, "%s: %s is %s%.40s: expected relu or gelu", r->name, key, cJSON_IsString(x) ? "" : "no word",
			cJSON_IsString(x) ? x->valuestring : "");
	return ACT_GELU;
}

static uint32_t choice_field(struct config_reader *r, const struct config_field *f)
{
	const cJSON *x = config_item(r, f->key);
	char known[128] = "";
	uint32_t i = 0;
	if (!x)
		return (uint32_t)f->missing;
	for (const char *w = f->word; *w; w += strlen(w) + 1, i++) {
		if (cJSON_IsString(x) && !strcmp(x->valuestring, w))
			return i;
		size_t n = strlen(known);
		snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", w);
	}
	if (!r->bad)
		r->bad = error_set(r->e, "%s: %s is %s%.40s: expected one of %s", r->name, f->key, cJSON_IsString(x) ? "" : "no word",
			cJSON_IsString(x) ? x->valuestring : "", known);
	return (uint32_t)f->missing;
}

static struct reals reals_field(struct config_reader *r, const char *key)
{
	const cJSON *list = config_item(r, key), *x;
	struct reals all = {0};
	int bad = list && (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > REALS_MAX);
	list = bad ? NULL : list;
	cJSON_ArrayForEach(x, list)
	{
		bad |= !cJSON_IsNumber(x) || !(fabs(x->valuedouble) <= 1e6);
		all.x[all.n++] = cJSON_IsNumber(x) ? x->valuedouble : 0;
	}
	if (bad && !r->bad)
		r->bad = error_set(r->e, "%s: %s: expected a list of at most %d numbers up to 1e6", r->name, key, REALS_MAX);
	return all;
}

static void read_field(struct config_reader *r, const struct config_field *f, struct model_config *c)
{
	void *to = (char *)c + f->at;
	switch (f->type) {
	case FIELD_WHOLE:
	case FIELD_SOME:
		*(uint32_t *)to = config_whole(r, f->key, (uint32_t)f->missing);
		break;
	case FIELD_REAL:
	case FIELD_OPTIONAL:
		*(double *)to = config_real(r, f->key, f->missing);
		break;
	case FIELD_ACT:
		*(enum act *)to = act_field(r, f->key);
		break;
	case FIELD_FLAG:
		*(uint32_t *)to = flag_field(r, f->key);
		break;
	case FIELD_CHOICE:
		*(uint32_t *)to = choice_field(r, f);
		break;
	case FIELD_REALS:
		*(struct reals *)to = reals_field(r, f->key);
		break;
	case FIELD_WORD:
		must_be(r, f->key, f->word);
		break;
	case FIELD_TRUE:
	case FIELD_FALSE:
		must_be_bool(r, f->key, f->type == FIELD_TRUE);
		break;
	case FIELD_NOTE:
		break;
	}
}

/* By model_type; a file without one is a BERT. */
static const struct arch *arch_field(struct config_reader *r)
{
	const cJSON *x = config_item(r, "model_type");
	const char *word = cJSON_IsString(x) ? x->valuestring : "?";
	const struct arch *a = x ? arch_find(word) : arch_at(0), *other;
	char known[128] = "";
	for (size_t i = 0; !a && (other = arch_at(i)); i++)
		if (other->converted && !strcmp(other->converted, word))
			return r->bad =
				       error_set(r->e, "%s: model_type is \"%s\": %s makes a model of it", r->name, word, other->converter),
			       NULL;
	for (size_t i = 0, n = 0; !a && arch_at(i) && n < sizeof known; i++)
		n += (size_t)snprintf(known + n, sizeof known - n, "%s\"%s\"", i ? " or " : "", arch_at(i)->name);
	if (!a)
		r->bad = error_set(r->e, "%s: model_type is \"%.40s\": only %s is supported", r->name, word, known);
	return a;
}

/* Refuse a key that neither the architecture nor its heads have. */
static void check_keys(struct config_reader *r, const struct arch *a)
{
	static const char *const common[] = {
		"architectures", "corrmask_heads", "id2label", "label2id", "model_type", "num_labels", "problem_type", "torch_dtype", NULL};
	for (const cJSON *x = a->own_config ? r->j->child : NULL; x && !r->bad; x = x->next) {
		const struct config_field *f = a->field;
		while (f->key && strcmp(f->key, x->string))
			f++;
		if (!f->key && !text_among(x->string, common))
			r->bad = error_set(r->e, "%s: unknown key '%.40s'", r->name, x->string);
	}
}

int config_parse(struct model_config *c, const char *json, size_t n, const char *name, struct error *e)
{
	RELEASED(json_free_at) cJSON *j = config_object(json, n, name, e);
	if (!j)
		return -1;
	struct config_reader r = {.j = j, .name = name, .e = e};
	*c = (struct model_config){.arch = arch_field(&r)};
	for (const struct config_field *f = c->arch ? c->arch->field : NULL; f && f->key; f++)
		read_field(&r, f, c);
	if (c->arch)
		check_keys(&r, c->arch);
	if (!r.bad && model_check(c, e))
		r.bad = error_prefix(e, "%s", name);
	return r.bad ? -1 : 0;
}

int config_load(struct model_config *c, const char *path, struct error *e)
{
	size_t n;
	FREED char *text = config_text(path, &n, e);
	return !text || config_parse(c, text, n, path, e) ? -1 : 0;
}

/* Does the folder have this file? -1: it is a pipe, which would keep its reader waiting, or something else. */
static int has_file(const char *dir, const char *name, struct error *e)
{
	struct stat st;
	FREED char *path = xasprintf("%s/%s", dir, name);
	int there = stat(path, &st) == 0, r = there && !S_ISREG(st.st_mode) ? error_set(e, "%s: not a regular file", path) : there;
	return r;
}

int config_folder(const char *dir, struct error *e)
{
	static const char *const names[] = {
		"vocab.tsv", "genes.tsv", "groups.tsv", "ontology.obo", "model.safetensors", "model.safetensors.index.json"};
	struct stat st;
	unsigned long long newest = 0, step;
	int there = has_file(dir, "config.json", e);
	for (size_t i = 0; there > 0 && i < sizeof names / sizeof *names; i++)
		there = has_file(dir, names[i], e) < 0 ? -1 : 1;
	if (there)
		return there < 0 ? -1 : 0;
	if (stat(dir, &st))
		return error_set(e, "%s: %s: expected the folder of a model", dir, strerror(errno));
	DIR *d = S_ISDIR(st.st_mode) ? opendir(dir) : NULL;
	for (const struct dirent *f; d && (f = readdir(d));) {
		int end = 0;
		if (sscanf(f->d_name, "checkpoint-%llu%n", &step, &end) == 1 && !f->d_name[end] && step > newest)
			newest = step;
	}
	if (d)
		closedir(d);
	if (newest)
		return error_set(e, "%s: its training is not finished: sctrain --resume continues it; %s/checkpoint-%llu is a model", dir,
			dir, newest);
	return error_set(e, "%s: no config.json in it: expected the folder of a model", dir);
}

int config_get(struct model_config *c, const char *what, struct error *e)
{
	struct stat st;
	char known[512] = "";
	if (model_preset(c, what, e) == 0)
		return 0;
	for (size_t i = 0; model_preset_at(i); i++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
			!i                               ? ""
				: model_preset_at(i + 1) ? ", "
							 : " or ",
			model_preset_at(i)->name);
	if (stat(what, &st))
		return error_set(e, "%s: no such preset (%s), and no file: %s", what, known, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return config_load(c, what, e);
	FREED char *path = xasprintf("%s/config.json", what);
	return config_folder(what, e) || config_load(c, path, e) ? -1 : 0;
}

/* A field of the value encoder is written if the model has one; a list if it has numbers. */
static int written(const struct config_field *f, const struct model_config *c)
{
	size_t from = offsetof(struct model_config, value);
	int of_value = f->at >= from && f->at < from + sizeof c->value;
	if (f->type == FIELD_REALS && !((const struct reals *)((const char *)c + f->at))->n)
		return 0;
	return !of_value || c->value.kind != VALUE_NONE;
}

static const char *choice_word(const struct config_field *f, uint32_t i)
{
	const char *w = f->word;
	while (i--)
		w += strlen(w) + 1;
	return w;
}

static void add_field(cJSON *j, const struct config_field *f, const struct model_config *c)
{
	const void *from = (const char *)c + f->at;
	if (!written(f, c))
		return;
	switch (f->type) {
	case FIELD_SOME:
		if (!*(const uint32_t *)from)
			break; /* fall through */
	case FIELD_WHOLE:
		cJSON_AddNumberToObject(j, f->key, *(const uint32_t *)from);
		break;
	case FIELD_CHOICE:
		cJSON_AddStringToObject(j, f->key, choice_word(f, *(const uint32_t *)from));
		break;
	case FIELD_REALS:
		cJSON_AddItemToObject(
			j, f->key, cJSON_CreateDoubleArray(((const struct reals *)from)->x, (int)((const struct reals *)from)->n));
		break;
	case FIELD_OPTIONAL:
		if (*(const double *)from < 0) {
			cJSON_AddNullToObject(j, f->key);
			break;
		} /* fall through */
	case FIELD_REAL:
		json_add_real(j, f->key, *(const double *)from);
		break;
	case FIELD_ACT:
		cJSON_AddStringToObject(j, f->key, act_words[*(const enum act *)from]);
		break;
	case FIELD_FLAG:
		if (*(const uint32_t *)from)
			cJSON_AddTrueToObject(j, f->key);
		break;
	case FIELD_WORD:
		if (f->print)
			cJSON_AddStringToObject(j, f->key, f->word);
		break;
	case FIELD_TRUE:
	case FIELD_FALSE:
	case FIELD_NOTE:
		if (f->print)
			cJSON_AddBoolToObject(j, f->key, f->type != FIELD_FALSE);
		break;
	}
}

static int by_json_key(const void *a, const void *b)
{
	return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string);
}

/* The same object with its keys in byte order. */
static cJSON *sorted(cJSON *j)
{
	size_t n = 0, cap = 0;
	cJSON **item = NULL, *out = cJSON_CreateObject();
	while (j->child) {
		grow(item, cap, n + 1);
		item[n++] = cJSON_DetachItemViaPointer(j, j->child);
	}
	if (n)
		qsort(item, n, sizeof *item, by_json_key);
	for (size_t i = 0; i < n; i++) {
		char *key = xstrdup(item[i]->string); /* which cJSON frees before it copies */
		cJSON_AddItemToObject(out, key, item[i]);
		free(key);
	}
	free(item);
	cJSON_Delete(j);
	return out;
}

char *config_print(const struct model_config *c, const struct head_spec *head, size_t nhead)
{
	const struct arch *arch = c->arch ? c->arch : arch_at(0);
	RELEASED(json_free_at) cJSON *j = cJSON_CreateObject();
	config_add_heads(j, arch, head, nhead);
	for (const struct config_field *f = arch->field; f->key; f++)
		add_field(j, f, c);
	cJSON_AddStringToObject(j, "model_type", arch->name);
	cJSON_AddStringToObject(j, "torch_dtype", "float32");
	j = sorted(j);
	char *text = cJSON_Print(j), *out = xasprintf("%s\n", text);
	free(text);
	return out;
}

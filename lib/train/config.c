#include "train/config.h"

#include "base/file.h"
#include "base/json.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_MAX (16u << 20) /* id2label of many classes is the largest part */

struct reader {
	const cJSON *j;
	const char *name;
	struct error *e;
	int bad;
};

static const cJSON *field(struct reader *r, const char *key)
{
	const cJSON *x = cJSON_GetObjectItemCaseSensitive(r->j, key);
	return x && !cJSON_IsNull(x) ? x : NULL;
}

static double real_field(struct reader *r, const char *key, double otherwise)
{
	const cJSON *x = field(r, key);
	if (x && !cJSON_IsNumber(x) && !r->bad)
		r->bad = error_set(r->e, "%s: %s: expected a number", r->name, key);
	return x && cJSON_IsNumber(x) ? x->valuedouble : otherwise;
}

static uint32_t whole_field(struct reader *r, const char *key, uint32_t otherwise)
{
	double x = real_field(r, key, otherwise);
	if (x >= 0 && x <= UINT32_MAX && x == floor(x))
		return (uint32_t)x;
	if (!r->bad)
		r->bad = error_set(r->e, "%s: %s is %g: expected a whole number from 0", r->name, key, x);
	return otherwise;
}

/* Refuse a field that is there and says something else. */
static void must_be(struct reader *r, const char *key, const char *word)
{
	const cJSON *x = field(r, key);
	if (!x || r->bad)
		return;
	if (!cJSON_IsString(x))
		r->bad = error_set(r->e, "%s: %s: expected \"%s\"", r->name, key, word);
	else if (strcmp(x->valuestring, word))
		r->bad = error_set(r->e, "%s: %s is \"%.40s\": only \"%s\" is supported", r->name, key, x->valuestring, word);
}

static void must_be_bool(struct reader *r, const char *key, int value)
{
	const cJSON *x = field(r, key);
	if (x && !r->bad && (!cJSON_IsBool(x) || cJSON_IsTrue(x) != value))
		r->bad = error_set(r->e, "%s: %s: only %s is supported", r->name, key, value ? "true" : "false");
}

static uint32_t flag_field(struct reader *r, const char *key)
{
	const cJSON *x = field(r, key);
	if (x && !r->bad && !cJSON_IsBool(x))
		r->bad = error_set(r->e, "%s: %s: expected true or false", r->name, key);
	return x && cJSON_IsTrue(x);
}

static enum act act_field(struct reader *r, const char *key)
{
	const cJSON *x = field(r, key);
	if (!x || (cJSON_IsString(x) && strcmp(x->valuestring, "gelu") == 0))
		return ACT_GELU;
	if (cJSON_IsString(x) && strcmp(x->valuestring, "relu") == 0)
		return ACT_RELU;
	if (!r->bad)
		r->bad = error_set(r->e, "%s: %s is %s%.40s: expected relu or gelu", r->name, key, cJSON_IsString(x) ? "" : "no word",
			cJSON_IsString(x) ? x->valuestring : "");
	return ACT_GELU;
}

static void read_field(struct reader *r, const struct config_field *f, struct model_config *c)
{
	void *to = (char *)c + f->at;
	switch (f->type) {
	case FIELD_WHOLE:
		*(uint32_t *)to = whole_field(r, f->key, (uint32_t)f->missing);
		break;
	case FIELD_REAL:
	case FIELD_OPTIONAL:
		*(double *)to = real_field(r, f->key, f->missing);
		break;
	case FIELD_ACT:
		*(enum act *)to = act_field(r, f->key);
		break;
	case FIELD_FLAG:
		*(uint32_t *)to = flag_field(r, f->key);
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
static const struct arch *arch_field(struct reader *r)
{
	const cJSON *x = field(r, "model_type");
	const struct arch *a = cJSON_IsString(x) ? arch_find(x->valuestring) : x ? NULL : &arch_bert;
	char known[128] = "";
	for (size_t i = 0, n = 0; !a && arch_at(i) && n < sizeof known; i++)
		n += (size_t)snprintf(known + n, sizeof known - n, "%s\"%s\"", i ? " or " : "", arch_at(i)->name);
	if (!a)
		r->bad = error_set(r->e, "%s: model_type is \"%.40s\": only %s is supported", r->name,
			cJSON_IsString(x) ? x->valuestring : "?", known);
	return a;
}

int config_parse(struct model_config *c, const char *json, size_t n, const char *name, struct error *e)
{
	cJSON *j = cJSON_ParseWithLength(json, n);
	if (!cJSON_IsObject(j)) {
		cJSON_Delete(j);
		return error_set(e, "%s: not a JSON object", name);
	}
	struct reader r = {.j = j, .name = name, .e = e};
	*c = (struct model_config){.arch = arch_field(&r)};
	for (const struct config_field *f = c->arch ? c->arch->field : NULL; f && f->key; f++)
		read_field(&r, f, c);
	cJSON_Delete(j);
	if (!r.bad && model_check(c, e))
		r.bad = error_prefix(e, "%s", name);
	return r.bad ? -1 : 0;
}

/* The file's text (malloced), or NULL with e set. */
static char *read_text(const char *path, size_t *n, struct error *e)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return error_set(e, "%s: %s", path, strerror(errno)), NULL;
	char *text = xmalloc(CONFIG_MAX);
	*n = fread(text, 1, CONFIG_MAX, f);
	int bad = ferror(f)        ? error_set(e, "%s: cannot read: %s", path, strerror(errno))
		: *n == CONFIG_MAX ? error_set(e, "%s: longer than %u bytes: not a config.json", path, CONFIG_MAX)
				   : 0;
	fclose(f);
	if (!bad)
		return text;
	free(text);
	return NULL;
}

int config_load(struct model_config *c, const char *path, struct error *e)
{
	size_t n;
	char *text = read_text(path, &n, e);
	int bad = !text || config_parse(c, text, n, path, e);
	free(text);
	return bad ? -1 : 0;
}

/* ---- the heads ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names must be printable in a table, and different. */
static int check_names(const struct config_heads *h, const char *name, struct error *e)
{
	char **sorted = xmalloc(h->nlabel * sizeof *sorted);
	int bad = 0;
	for (size_t i = 0; i < h->nlabel && !bad; i++) {
		if (!h->label[i][0] || strpbrk(h->label[i], "\t\r\n"))
			bad = error_set(e, "%s: id2label: the name of class %zu is empty, or has a tab or line break", name, i);
		sorted[i] = h->label[i];
	}
	if (!bad)
		qsort(sorted, h->nlabel, sizeof *sorted, by_text);
	for (size_t i = 1; i < h->nlabel && !bad; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			bad = error_set(e, "%s: id2label: two classes are named '%.80s'", name, sorted[i]);
	free(sorted);
	return bad;
}

static int read_labels(struct config_heads *h, struct reader *r)
{
	const cJSON *labels = field(r, "id2label");
	int named = cJSON_IsObject(labels);
	uint32_t n = whole_field(r, "num_labels", named ? (uint32_t)cJSON_GetArraySize(labels) : 2);
	if (r->bad)
		return -1;
	if (named && n != (uint32_t)cJSON_GetArraySize(labels))
		return error_set(r->e, "%s: num_labels is %u, but id2label has %d names", r->name, n, cJSON_GetArraySize(labels));
	if (n > 1 << 20)
		return error_set(r->e, "%s: num_labels is %u: expected at most %d", r->name, n, 1 << 20);
	h->nlabel = n;
	h->label = xcalloc(n, sizeof *h->label);
	for (size_t i = 0; !named && i < n; i++)
		h->label[i] = xasprintf("LABEL_%zu", i);
	for (const cJSON *l = named ? labels->child : NULL; l; l = l->next) {
		char *end, *key = l->string;
		unsigned long long at = strtoull(key, &end, 10);
		if (*key < '0' || *key > '9' || *end || at >= n || h->label[at] || !cJSON_IsString(l))
			return error_set(r->e, "%s: id2label: \"%.40s\" is not the number of one of its %zu classes, with a name", r->name,
				key, h->nlabel);
		h->label[at] = xstrdup(l->valuestring);
	}
	return check_names(h, r->name, r->e);
}

/* The head of a class such as ForMaskedLM. Of two heads of one class, it is that with the problem type (may be NULL), or else the first. */
static const struct head_kind *head_of(const char *class_name, const char *problem)
{
	const struct head_kind *first = NULL;
	for (size_t i = 0; head_at(i); i++) {
		const struct head_kind *k = head_at(i);
		if (strcmp(class_name, k->class_name))
			continue;
		if (problem && k->problem_type && strcmp(problem, k->problem_type) == 0)
			return k;
		first = first ? first : k;
	}
	return first;
}

/* The head in a class name such as BertForMaskedLM; *none: BertModel. NULL: no such class. */
static const struct head_kind *class_head(const char *name, const char *problem, int *none)
{
	*none = 0;
	for (size_t a = 0; arch_at(a); a++) {
		size_t n = strlen(arch_at(a)->class_name);
		if (strncmp(name, arch_at(a)->class_name, n))
			continue;
		const struct head_kind *k = head_of(name + n, problem);
		if (k)
			return k;
		if (strcmp(name + n, "Model") == 0)
			*none = 1;
	}
	return NULL;
}

/* Names of the classes that class_head knows, for a message. */
static int unknown_class(struct reader *r)
{
	char known[512];
	size_t n = 0;
	for (size_t a = 0; arch_at(a); a++) {
		for (size_t i = 0; head_at(i) && n < sizeof known; i++)
			if (head_of(head_at(i)->class_name, NULL) == head_at(i))
				n += (size_t)snprintf(
					known + n, sizeof known - n, "%s%s, ", arch_at(a)->class_name, head_at(i)->class_name);
		if (n < sizeof known)
			n += (size_t)snprintf(known + n, sizeof known - n, "%sModel%s", arch_at(a)->class_name, arch_at(a + 1) ? ", " : "");
	}
	return error_set(r->e, "%s: architectures names none of %s", r->name, known);
}

static int one_head(struct config_heads *h, struct reader *r)
{
	const cJSON *list = field(r, "architectures"), *a = cJSON_IsArray(list) ? list->child : NULL;
	int none = 0;
	const char *problem = cJSON_GetStringValue(field(r, "problem_type"));
	const struct head_kind *kind = cJSON_IsString(a) ? class_head(a->valuestring, problem, &none) : NULL;
	if (!kind && !none)
		return unknown_class(r);
	h->n = kind != NULL;
	h->head[0].kind = kind;
	return 0;
}

static int listed_heads(struct config_heads *h, struct reader *r, const cJSON *list)
{
	const cJSON *x;
	cJSON_ArrayForEach(x, list)
	{
		const cJSON *kind = cJSON_GetObjectItemCaseSensitive(x, "kind"), *weight = cJSON_GetObjectItemCaseSensitive(x, "weight");
		const struct head_kind *k = cJSON_IsString(kind) ? head_find(kind->valuestring) : NULL;
		if (h->n == HEADS_MAX)
			return error_set(r->e, "%s: corrmask_heads: more than %d heads", r->name, HEADS_MAX);
		if (!k)
			return error_set(r->e, "%s: corrmask_heads: head %zu is of no known kind", r->name, h->n);
		if (!cJSON_IsNumber(weight) || !(weight->valuedouble > 0) || !isfinite(weight->valuedouble))
			return error_set(r->e, "%s: corrmask_heads: head %s: weight: expected a number above 0", r->name, k->name);
		for (size_t i = 0; i < h->n; i++)
			if (h->head[i].kind == k)
				return error_set(r->e, "%s: corrmask_heads: %s occurs twice", r->name, k->name);
		h->head[h->n++] = (struct head_spec){.kind = k, .weight = weight->valuedouble};
	}
	return h->n ? 0 : error_set(r->e, "%s: corrmask_heads: expected a list of heads", r->name);
}

int config_heads_parse(struct config_heads *h, const char *json, size_t n, const char *name, struct error *e)
{
	cJSON *j = cJSON_ParseWithLength(json, n);
	struct reader r = {.j = j, .name = name, .e = e};
	const cJSON *list = cJSON_IsObject(j) ? field(&r, "corrmask_heads") : NULL;
	int bad, classes = 0;
	*h = (struct config_heads){0};
	if (!cJSON_IsObject(j))
		bad = error_set(e, "%s: not a JSON object", name);
	else
		bad = list ? listed_heads(h, &r, list) : one_head(h, &r);
	for (size_t i = 0; i < h->n; i++)
		classes |= h->head[i].kind->classes;
	if (!bad && classes)
		bad = read_labels(h, &r);
	for (size_t i = 0; i < h->n && !bad; i++) {
		if (h->head[i].kind->classes) {
			h->head[i].nlabel = (uint32_t)h->nlabel;
			h->head[i].label = h->label;
		}
	}
	cJSON_Delete(j);
	if (bad)
		config_heads_release(h);
	return bad ? -1 : 0;
}

int config_heads_load(struct config_heads *h, const char *path, struct error *e)
{
	size_t n;
	char *text = read_text(path, &n, e);
	*h = (struct config_heads){0};
	int bad = !text || config_heads_parse(h, text, n, path, e);
	free(text);
	return bad ? -1 : 0;
}

void config_heads_release(struct config_heads *h)
{
	for (size_t i = 0; i < h->nlabel; i++)
		free(h->label[i]);
	free(h->label);
	*h = (struct config_heads){0};
}

int config_folder(const char *dir, struct error *e)
{
	struct stat st;
	unsigned long long newest = 0, step;
	char *path = xasprintf("%s/config.json", dir);
	int there = access(path, F_OK) == 0;
	free(path);
	if (there)
		return 0;
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
	if (model_preset(c, what, e) == 0)
		return 0;
	if (stat(what, &st))
		return error_set(e, "%s: no such preset (" MODEL_PRESETS "), and no file: %s", what, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return config_load(c, what, e);
	char *path = xasprintf("%s/config.json", what);
	int bad = access(path, F_OK) ? config_folder(what, e) : config_load(c, path, e);
	free(path);
	return bad;
}

/* A class's name, in text where it has none of its own. */
static const char *label_name(const struct head_spec *h, uint32_t i, char text[32])
{
	snprintf(text, 32, "LABEL_%u", i);
	return h->label ? h->label[i] : text;
}

/* Its classes, or the numbers that it predicts. */
static void add_labels(cJSON *j, const struct head_spec *h)
{
	char name[32], number[16];
	uint32_t n = h->kind->classes ? h->nlabel : h->kind->width;
	cJSON *names = cJSON_AddObjectToObject(j, "id2label"), *ids = cJSON_AddObjectToObject(j, "label2id");
	for (uint32_t i = 0; i < n; i++) {
		snprintf(number, sizeof number, "%u", i);
		cJSON_AddStringToObject(names, number, label_name(h, i, name));
		cJSON_AddNumberToObject(ids, label_name(h, i, name), i);
	}
}

static void add_field(cJSON *j, const struct config_field *f, const struct model_config *c)
{
	const void *from = (const char *)c + f->at;
	switch (f->type) {
	case FIELD_WHOLE:
		cJSON_AddNumberToObject(j, f->key, *(const uint32_t *)from);
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
		cJSON_AddStringToObject(j, f->key, *(const enum act *)from == ACT_RELU ? "relu" : "gelu");
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

static void add_heads(cJSON *j, const struct arch *arch, const struct head_spec *head, size_t nhead)
{
	char *name = xasprintf("%s%s", arch->class_name, nhead ? head[0].kind->class_name : "Model");
	cJSON_AddItemToObject(j, "architectures", cJSON_CreateStringArray((const char *const[]){name}, 1));
	free(name);
	for (size_t i = 0; i < nhead; i++) {
		if (head[i].kind->classes || head[i].kind->width)
			add_labels(j, &head[i]);
		if (head[i].kind->problem_type)
			cJSON_AddStringToObject(j, "problem_type", head[i].kind->problem_type);
	}
	if (nhead < 2)
		return;
	cJSON *list = cJSON_AddArrayToObject(j, "corrmask_heads");
	for (size_t i = 0; i < nhead; i++) {
		cJSON *x = cJSON_CreateObject();
		cJSON_AddStringToObject(x, "kind", head[i].kind->name);
		cJSON_AddNumberToObject(x, "weight", head[i].weight == 0 ? 1 : head[i].weight);
		cJSON_AddItemToArray(list, x);
	}
}

static int by_key(const void *a, const void *b)
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
		qsort(item, n, sizeof *item, by_key);
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
	const struct arch *arch = c->arch ? c->arch : &arch_bert;
	cJSON *j = cJSON_CreateObject();
	add_heads(j, arch, head, nhead);
	for (const struct config_field *f = arch->field; f->key; f++)
		add_field(j, f, c);
	cJSON_AddStringToObject(j, "model_type", arch->name);
	cJSON_AddStringToObject(j, "torch_dtype", "float32");
	j = sorted(j);
	char *text = cJSON_Print(j), *out = xasprintf("%s\n", text);
	cJSON_Delete(j);
	free(text);
	return out;
}

int config_save(const struct model_config *c, const struct head_spec *head, size_t nhead, const char *path, struct error *e)
{
	char *text = config_print(c, head, nhead);
	int bad = outfile_text(path, text, e);
	free(text);
	return bad;
}

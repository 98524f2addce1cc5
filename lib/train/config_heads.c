/* The heads in a config.json. */
#include "train/config_impl.h"

#include "base/json.h"
#include "base/sort.h"

#define LABELS_MAX (1 << 20)

/* ---- classes ---- */

/* Names must be printable in a table, and different. */
static int check_labels(char *const *label, size_t n, const struct config_reader *r)
{
	FREED char **sorted = xmalloc(n * sizeof *sorted);
	for (size_t i = 0; i < n; i++) {
		if (!label[i][0] || strpbrk(label[i], "\t\r\n"))
			return error_set(r->e, "%s: id2label: the name of class %zu is empty, or has a tab or line break", r->name, i);
		sorted[i] = label[i];
	}
	qsort(sorted, n, sizeof *sorted, compare_text);
	for (size_t i = 1; i < n; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			return error_set(r->e, "%s: id2label: two classes are named '%.80s'", r->name, sorted[i]);
	return 0;
}

/* Of how many classes or numbers "num_labels" or "id2label" speaks. */
static uint32_t number_of_labels(struct config_reader *r, uint32_t otherwise)
{
	const cJSON *labels = config_item(r, "id2label");
	return config_whole(r, "num_labels", cJSON_IsObject(labels) ? (uint32_t)cJSON_GetArraySize(labels) : otherwise);
}

/* The classes of head i, from the object that r reads. */
static int read_labels(struct config_heads *h, size_t i, struct config_reader *r)
{
	const cJSON *labels = config_item(r, "id2label");
	int named = cJSON_IsObject(labels);
	uint32_t n = number_of_labels(r, 2);
	if (r->bad)
		return -1;
	if (named && n != (uint32_t)cJSON_GetArraySize(labels))
		return error_set(r->e, "%s: num_labels is %u, but id2label has %d names", r->name, n, cJSON_GetArraySize(labels));
	if (n > LABELS_MAX)
		return error_set(r->e, "%s: num_labels is %u: expected at most %d", r->name, n, LABELS_MAX);
	char **label = xcalloc(n, sizeof *label);
	h->own[i].label = label;
	h->head[i].label = label;
	h->head[i].nlabel = n;
	for (size_t k = 0; !named && k < n; k++)
		label[k] = xasprintf("LABEL_%zu", k);
	for (const cJSON *l = named ? labels->child : NULL; l; l = l->next) {
		char *end, *key = l->string;
		unsigned long long at = strtoull(key, &end, 10);
		if (*key < '0' || *key > '9' || *end || at >= n || label[at] || !cJSON_IsString(l))
			return error_set(
				r->e, "%s: id2label: \"%.40s\" is not the number of one of its %u classes, with a name", r->name, key, n);
		label[at] = xstrdup(l->valuestring);
	}
	return check_labels(label, n, r);
}

/* ---- one head, by the name of its class ---- */

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
static int unknown_class(struct config_reader *r)
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

/* A head that predicts a number predicts one. */
static int check_number(struct config_reader *r)
{
	uint32_t n = number_of_labels(r, 1);
	if (r->bad || n == 1)
		return r->bad;
	return error_set(r->e, "%s: a regression of %u numbers: only one is supported", r->name, n);
}

static int one_head(struct config_heads *h, struct config_reader *r)
{
	const cJSON *list = config_item(r, "architectures"), *a = cJSON_IsArray(list) ? list->child : NULL;
	int none = 0;
	const char *problem = cJSON_GetStringValue(config_item(r, "problem_type"));
	if (!problem && number_of_labels(r, 2) == 1) /* transformers' rule; of classes, one would be none */
		problem = "regression";
	const struct head_kind *kind = cJSON_IsString(a) ? class_head(a->valuestring, problem, &none) : NULL;
	if (!kind && !none)
		return unknown_class(r);
	h->n = kind != NULL;
	h->head[0].kind = kind;
	if (!kind)
		return 0;
	if (problem && head_classifies(kind) && !strcmp(problem, "multi_label_classification"))
		return error_set(r->e, "%s: problem_type \"%s\": only one class per cell, and numbers, are supported", r->name, problem);
	return head_classifies(kind) ? read_labels(h, 0, r) : kind->target == TARGET_VALUE ? check_number(r) : 0;
}

/* ---- several heads ---- */

/* A text that can stand in a message, a table and the name of a tensor. */
static int is_plain(const char *s, size_t most)
{
	size_t n = strlen(s);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == '"' || s[i] == '\\' || s[i] == 0x7f)
			return 0;
	return n > 0 && n <= most;
}

int config_head_name(const char *name)
{
	return is_plain(name, HEAD_NAME);
}

/* A text of the head, malloced; NULL: it has none. */
static char *text_of(struct config_reader *r, const char *key, size_t most)
{
	const cJSON *x = config_item(r, key);
	if (!x || r->bad)
		return NULL;
	if (cJSON_IsString(x) && is_plain(x->valuestring, most))
		return xstrdup(x->valuestring);
	r->bad = error_set(r->e, "%s: corrmask_heads: %s: expected 1 to %zu bytes, without control characters, quotes and backslashes",
		r->name, key, most);
	return NULL;
}

static int check_listed(const struct config_heads *h, size_t i, const struct config_reader *r)
{
	const struct head_spec *s = &h->head[i];
	if (!isfinite(s->mean) || !isfinite(s->scale) || s->scale < 0)
		return error_set(r->e, "%s: corrmask_heads: head %s: mean %g, scale %g: expected numbers, the scale above 0", r->name,
			head_name(s), s->mean, s->scale);
	if (!isfinite(s->reverse) || s->reverse < 0)
		return error_set(
			r->e, "%s: corrmask_heads: head %s: reverse %g: expected a number, 0 or more", r->name, head_name(s), s->reverse);
	if (s->position > UINT16_MAX)
		return error_set(r->e, "%s: corrmask_heads: head %s: position %u: expected at most %u", r->name, head_name(s), s->position,
			UINT16_MAX);
	for (size_t k = 0; k < i; k++)
		if (strcmp(head_name(&h->head[k]), head_name(s)) == 0)
			return error_set(r->e, "%s: corrmask_heads: %s occurs twice", r->name, head_name(s));
	return 0;
}

/* One head of the list. Older versions wrote no name: such a head has the classes of the file. */
static int listed_head(struct config_heads *h, struct config_reader *file, const cJSON *x)
{
	struct config_reader r = {.j = x, .name = file->name, .e = file->e};
	const cJSON *kind = config_item(&r, "kind"), *weight = config_item(&r, "weight");
	const struct head_kind *k = cJSON_IsString(kind) ? head_find(kind->valuestring) : NULL;
	size_t i = h->n;
	if (i == HEADS_MAX)
		return error_set(r.e, "%s: corrmask_heads: more than %d heads", r.name, HEADS_MAX);
	if (!k)
		return error_set(r.e, "%s: corrmask_heads: head %zu is of an unknown kind", r.name, i);
	if (!cJSON_IsNumber(weight) || !(weight->valuedouble > 0) || !isfinite(weight->valuedouble))
		return error_set(r.e, "%s: corrmask_heads: head %s: weight: expected a number above 0", r.name, k->name);
	h->n++;
	struct head_spec *s = &h->head[i];
	s->kind = k;
	s->name = h->own[i].name = text_of(&r, "name", HEAD_NAME);
	s->prefix = h->own[i].prefix = text_of(&r, "prefix", HEAD_PREFIX_MAX);
	s->column = h->own[i].column = text_of(&r, "column", 4096);
	s->weight = weight->valuedouble;
	s->from = config_whole(&r, "from", 0);
	s->position = config_whole(&r, "position", 0);
	s->direct = cJSON_IsFalse(config_item(&r, "pooler"));
	s->reverse = config_real(&r, "reverse", 0);
	s->mean = config_real(&r, "mean", 0);
	s->scale = config_real(&r, "scale", 0);
	if (r.bad || check_listed(h, i, &r))
		return -1;
	return head_classifies(k) ? read_labels(h, i, s->name ? &r : file) : 0;
}

static int listed_heads(struct config_heads *h, struct config_reader *r, const cJSON *list)
{
	const cJSON *x;
	cJSON_ArrayForEach(x, list)
	{
		if (listed_head(h, r, x))
			return -1;
	}
	return h->n ? 0 : error_set(r->e, "%s: corrmask_heads: expected a list of heads", r->name);
}

/* ---- reading ---- */

int config_heads_parse(struct config_heads *h, const char *json, size_t n, const char *name, struct error *e)
{
	RELEASED(json_free_at) cJSON *j = config_object(json, n, name, e);
	struct config_reader r = {.j = j, .name = name, .e = e};
	*h = (struct config_heads){0};
	if (!j)
		return -1;
	const cJSON *list = config_item(&r, "corrmask_heads");
	int bad = list ? listed_heads(h, &r, list) : one_head(h, &r);
	if (bad)
		config_heads_release(h);
	return bad ? -1 : 0;
}

int config_heads_load(struct config_heads *h, const char *path, struct error *e)
{
	size_t n;
	FREED char *text = config_text(path, &n, e);
	*h = (struct config_heads){0};
	return !text || config_heads_parse(h, text, n, path, e) ? -1 : 0;
}

void config_heads_release(struct config_heads *h)
{
	for (size_t i = 0; i < HEADS_MAX; i++) {
		for (size_t k = 0; h->own[i].label && k < h->head[i].nlabel; k++)
			free(h->own[i].label[k]);
		free_all(h->own[i].label, h->own[i].name, h->own[i].prefix, h->own[i].column);
	}
	*h = (struct config_heads){0};
}

int head_same(const struct head_spec *a, const struct head_spec *b)
{
	if (a->kind != b->kind || a->nlabel != b->nlabel || (a->name && b->name && strcmp(a->name, b->name)))
		return 0;
	for (size_t i = 0; i < a->nlabel; i++)
		if (strcmp(a->label[i], b->label[i]))
			return 0;
	return 1;
}

/* ---- writing ---- */

/* A class's name, in text where it has none of its own. */
static const char *label_name(const struct head_spec *h, uint32_t i, char text[32])
{
	snprintf(text, 32, "LABEL_%u", i);
	return h->label ? h->label[i] : text;
}

/* Its classes, or the number that it predicts, under each key that is not NULL. */
static void add_labels(cJSON *j, const struct head_spec *h, const char *to_label, const char *to_id)
{
	char name[32], number[16];
	uint32_t n = head_classifies(h->kind) ? h->nlabel : 1;
	cJSON *names = cJSON_AddObjectToObject(j, to_label), *ids = to_id ? cJSON_AddObjectToObject(j, to_id) : NULL;
	for (uint32_t i = 0; i < n; i++) {
		snprintf(number, sizeof number, "%u", i);
		cJSON_AddStringToObject(names, number, label_name(h, i, name));
		if (ids)
			cJSON_AddNumberToObject(ids, label_name(h, i, name), i);
	}
}

/* A head of the list; without a name it is written as by older versions. */
static void add_listed(cJSON *list, const struct head_spec *h)
{
	cJSON *x = cJSON_CreateObject();
	cJSON_AddItemToArray(list, x);
	cJSON_AddStringToObject(x, "kind", h->kind->name);
	if (h->name)
		cJSON_AddStringToObject(x, "name", h->name);
	cJSON_AddNumberToObject(x, "weight", h->weight == 0 ? 1 : h->weight);
	if (h->prefix)
		cJSON_AddStringToObject(x, "prefix", h->prefix);
	if (h->column)
		cJSON_AddStringToObject(x, "column", h->column);
	if (h->position)
		cJSON_AddNumberToObject(x, "position", h->position);
	if (h->direct)
		cJSON_AddFalseToObject(x, "pooler");
	if (h->reverse > 0)
		json_add_real(x, "reverse", h->reverse);
	if (h->from)
		cJSON_AddNumberToObject(x, "from", (double)h->from);
	if (h->scale != 0) {
		json_add_real(x, "mean", h->mean);
		json_add_real(x, "scale", h->scale);
	}
	cJSON *losses = h->kind->part ? cJSON_AddObjectToObject(x, "losses") : NULL;
	for (size_t k = 0; losses && k < head_parts(h->kind); k++)
		json_add_real(losses, h->kind->part[k].name, head_part_weight(h, k));
	if (h->name && head_classifies(h->kind))
		add_labels(x, h, "id2label", NULL);
}

void config_add_heads(cJSON *j, const struct arch *arch, const struct head_spec *head, size_t nhead)
{
	FREED char *name = xasprintf("%s%s", arch->class_name, nhead ? head[0].kind->class_name : "Model");
	const struct head_spec *labels = NULL, *problem = NULL;
	cJSON_AddItemToObject(j, "architectures", cJSON_CreateStringArray((const char *const[]){name}, 1));
	for (size_t i = nhead; i-- > 0;) { /* transformers knows one head: these are of the first */
		labels = head_labels(head[i].kind) ? &head[i] : labels;
		problem = head[i].kind->problem_type ? &head[i] : problem;
	}
	if (labels)
		add_labels(j, labels, "id2label", "label2id");
	if (problem)
		cJSON_AddStringToObject(j, "problem_type", problem->kind->problem_type);
	if (nhead < 2 && !(nhead && (head[0].name || head[0].kind->part)))
		return;
	cJSON *list = cJSON_AddArrayToObject(j, "corrmask_heads");
	for (size_t i = 0; i < nhead; i++)
		add_listed(list, &head[i]);
}

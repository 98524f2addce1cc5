#include "config.h"

#include "file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONFIG_MAX (16u << 20)  /* id2label of many classes is the largest part */

static const char *const architecture[] = {
	[TASK_MLM] = "BertForMaskedLM", [TASK_CELLS] = "BertForSequenceClassification",
	[TASK_GENES] = "BertForTokenClassification", [TASK_BARE] = "BertModel",
};

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

static enum act act_field(struct reader *r)
{
	const cJSON *x = field(r, "hidden_act");
	if (!x || (cJSON_IsString(x) && strcmp(x->valuestring, "gelu") == 0))
		return ACT_GELU;
	if (cJSON_IsString(x) && strcmp(x->valuestring, "relu") == 0)
		return ACT_RELU;
	if (!r->bad)
		r->bad = error_set(r->e, "%s: hidden_act is %s%.40s: expected relu or gelu", r->name, cJSON_IsString(x) ? "" : "no word",
				   cJSON_IsString(x) ? x->valuestring : "");
	return ACT_GELU;
}

/* The task of the first architecture, or -1. */
static int task_field(struct reader *r)
{
	const cJSON *list = field(r, "architectures"), *a = cJSON_IsArray(list) ? list->child : NULL;
	for (size_t t = 0; cJSON_IsString(a) && t < sizeof architecture / sizeof *architecture; t++)
		if (strcmp(a->valuestring, architecture[t]) == 0)
			return (int)t;
	return -1;
}

/* Classes of id2label; a classifier without one has transformers' two. */
static uint32_t count_labels(struct reader *r)
{
	const cJSON *labels = field(r, "id2label");
	int task = task_field(r);
	return cJSON_IsObject(labels) ? (uint32_t)cJSON_GetArraySize(labels) : task == TASK_CELLS || task == TASK_GENES ? 2 : 0;
}

int config_parse(struct model_config *c, const char *json, size_t n, const char *name, struct error *e)
{
	cJSON *j = cJSON_ParseWithLength(json, n);
	if (!cJSON_IsObject(j)) {
		cJSON_Delete(j);
		return error_set(e, "%s: not a JSON object", name);
	}
	struct reader r = {.j = j, .name = name, .e = e};
	must_be(&r, "model_type", "bert");
	must_be(&r, "position_embedding_type", "absolute");
	must_be_bool(&r, "is_decoder", 0);
	must_be_bool(&r, "add_cross_attention", 0);
	must_be_bool(&r, "tie_word_embeddings", 1);
	*c = (struct model_config){
		.vocab_size = whole_field(&r, "vocab_size", 30522), .hidden_size = whole_field(&r, "hidden_size", 768),
		.num_hidden_layers = whole_field(&r, "num_hidden_layers", 12),
		.num_attention_heads = whole_field(&r, "num_attention_heads", 12),
		.intermediate_size = whole_field(&r, "intermediate_size", 3072),
		.max_position_embeddings = whole_field(&r, "max_position_embeddings", 512),
		.type_vocab_size = whole_field(&r, "type_vocab_size", 2), .pad_token_id = whole_field(&r, "pad_token_id", 0),
		.num_labels = whole_field(&r, "num_labels", count_labels(&r)), .hidden_act = act_field(&r),
		.hidden_dropout_prob = real_field(&r, "hidden_dropout_prob", 0.1),
		.attention_probs_dropout_prob = real_field(&r, "attention_probs_dropout_prob", 0.1),
		.classifier_dropout = real_field(&r, "classifier_dropout", -1),
		.layer_norm_eps = real_field(&r, "layer_norm_eps", 1e-12),
		.initializer_range = real_field(&r, "initializer_range", 0.02),
	};
	cJSON_Delete(j);
	if (!r.bad && model_check(c, TASK_MLM, e))
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
	int bad = ferror(f) ? error_set(e, "%s: cannot read: %s", path, strerror(errno))
		: *n == CONFIG_MAX ? error_set(e, "%s: longer than %u bytes: not a config.json", path, CONFIG_MAX) : 0;
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

/* ---- the head ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names must be printable in a table, and different. */
static int check_names(const struct config_head *h, const char *name, struct error *e)
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

int config_head_parse(struct config_head *h, const char *json, size_t n, const char *name, struct error *e)
{
	cJSON *j = cJSON_ParseWithLength(json, n);
	struct reader r = {.j = j, .name = name, .e = e};
	*h = (struct config_head){0};
	int task = cJSON_IsObject(j) ? task_field(&r) : -1, bad = 0;
	if (task < 0)
		bad = error_set(e, "%s: %s", name, !cJSON_IsObject(j) ? "not a JSON object" : "architectures names none of BertForMaskedLM, "
				"BertForSequenceClassification, BertForTokenClassification and BertModel");
	h->task = (enum task)task;
	if (!bad && (task == TASK_CELLS || task == TASK_GENES)) {
		const cJSON *labels = field(&r, "id2label"), *l;
		h->nlabel = count_labels(&r);
		h->label = xcalloc(h->nlabel, sizeof *h->label);
		for (size_t i = 0; !cJSON_IsObject(labels) && i < h->nlabel; i++)
			h->label[i] = xasprintf("LABEL_%zu", i);
		for (l = cJSON_IsObject(labels) ? labels->child : NULL; l && !bad; l = l->next) {
			char *end, *key = l->string;
			unsigned long long at = strtoull(key, &end, 10);
			if (*key < '0' || *key > '9' || *end || at >= h->nlabel || h->label[at] || !cJSON_IsString(l))
				bad = error_set(e, "%s: id2label: \"%.40s\" is not the number of one of its %zu classes, with a name", name, key, h->nlabel);
			else
				h->label[at] = xstrdup(l->valuestring);
		}
		bad = bad || check_names(h, name, e);
	}
	cJSON_Delete(j);
	if (bad)
		config_head_release(h);
	return bad ? -1 : 0;
}

int config_head_load(struct config_head *h, const char *path, struct error *e)
{
	size_t n;
	char *text = read_text(path, &n, e);
	*h = (struct config_head){0};
	int bad = !text || config_head_parse(h, text, n, path, e);
	free(text);
	return bad ? -1 : 0;
}

void config_head_release(struct config_head *h)
{
	for (size_t i = 0; i < h->nlabel; i++)
		free(h->label[i]);
	free(h->label);
	*h = (struct config_head){0};
}

int config_get(struct model_config *c, const char *what, struct error *e)
{
	struct stat st;
	if (model_preset(c, what, e) == 0)
		return 0;
	if (stat(what, &st))
		return error_set(e, "%s: no such preset (tiny, corrmask-paper, geneformer-v1-10m), and no file: %s", what, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return config_load(c, what, e);
	char *path = xasprintf("%s/config.json", what);
	int bad = config_load(c, path, e);
	free(path);
	return bad;
}

static void add_real(cJSON *j, const char *key, double x)
{
	char text[32];
	for (int digits = 1; digits <= 17; digits++) {  /* the shortest that reads back the same, as Python prints */
		snprintf(text, sizeof text, "%.*g", digits, x);
		if (strtod(text, NULL) == x)
			break;
	}
	if (!strpbrk(text, ".e"))
		strcat(text, ".0");
	cJSON_AddRawToObject(j, key, text);
}

/* A class's name, in text where it has none of its own. */
static const char *label_name(const struct model_config *c, uint32_t i, char text[32])
{
	snprintf(text, 32, "LABEL_%u", i);
	return c->label ? c->label[i] : text;
}

char *config_print(const struct model_config *c, enum task task)
{
	cJSON *j = cJSON_CreateObject();
	cJSON_AddItemToObject(j, "architectures", cJSON_CreateStringArray(&architecture[task], 1));
	add_real(j, "attention_probs_dropout_prob", c->attention_probs_dropout_prob);
	if (c->classifier_dropout < 0)
		cJSON_AddNullToObject(j, "classifier_dropout");
	else
		add_real(j, "classifier_dropout", c->classifier_dropout);
	cJSON_AddStringToObject(j, "hidden_act", c->hidden_act == ACT_RELU ? "relu" : "gelu");
	add_real(j, "hidden_dropout_prob", c->hidden_dropout_prob);
	cJSON_AddNumberToObject(j, "hidden_size", c->hidden_size);
	if (task == TASK_CELLS || task == TASK_GENES) {
		char name[32], number[16];
		cJSON *names = cJSON_AddObjectToObject(j, "id2label");
		for (uint32_t i = 0; i < c->num_labels; i++) {
			snprintf(number, sizeof number, "%u", i);
			cJSON_AddStringToObject(names, number, label_name(c, i, name));
		}
	}
	add_real(j, "initializer_range", c->initializer_range);
	cJSON_AddNumberToObject(j, "intermediate_size", c->intermediate_size);
	if (task == TASK_CELLS || task == TASK_GENES) {
		char name[32];
		cJSON *ids = cJSON_AddObjectToObject(j, "label2id");
		for (uint32_t i = 0; i < c->num_labels; i++) {
			cJSON_AddNumberToObject(ids, label_name(c, i, name), i);
		}
	}
	add_real(j, "layer_norm_eps", c->layer_norm_eps);
	cJSON_AddNumberToObject(j, "max_position_embeddings", c->max_position_embeddings);
	cJSON_AddStringToObject(j, "model_type", "bert");
	cJSON_AddNumberToObject(j, "num_attention_heads", c->num_attention_heads);
	cJSON_AddNumberToObject(j, "num_hidden_layers", c->num_hidden_layers);
	cJSON_AddNumberToObject(j, "pad_token_id", c->pad_token_id);
	cJSON_AddStringToObject(j, "position_embedding_type", "absolute");
	if (task == TASK_CELLS)
		cJSON_AddStringToObject(j, "problem_type", "single_label_classification");
	cJSON_AddStringToObject(j, "torch_dtype", "float32");
	cJSON_AddNumberToObject(j, "type_vocab_size", c->type_vocab_size);
	cJSON_AddTrueToObject(j, "use_cache");
	cJSON_AddNumberToObject(j, "vocab_size", c->vocab_size);
	char *text = cJSON_Print(j), *out = xasprintf("%s\n", text);
	cJSON_Delete(j);
	free(text);
	return out;
}

int config_save(const struct model_config *c, enum task task, const char *path, struct error *e)
{
	char *text = config_print(c, task);
	int bad = outfile_text(path, text, e);
	free(text);
	return bad;
}

#include "mask/masked.h"

#include "base/digest.h"
#include "base/json.h"
#include "label/label.h"
#include "label/number.h"

int masked_info_parse(struct masked_info *m, const struct header *h, const char *name, struct error *e)
{
	const cJSON *o = json_get(h->extra, "loader");
	if (!cJSON_IsObject(o) || !json_get(o, "steps"))
		return error_set(
			e, "%s: the header does not say how many steps there are (no loader.steps): expected a stream of maskgen", name);
	if (json_whole(o, "rows", 0, &m->rows) || json_whole(o, "epochs", 0, &m->epochs) || json_whole(o, "batch", 0, &m->batch) ||
		json_whole(o, "shards", 1, &m->shards) || json_whole(o, "shard", 0, &m->shard) || json_whole(o, "steps", 0, &m->steps) ||
		json_whole(o, "first_step", 0, &m->first_step))
		return error_set(e, "%s: header: loader: expected whole numbers", name);
	if (m->first_step > m->steps || m->shard >= m->shards)
		return error_set(e, "%s: header: loader: step %llu of %llu, shard %llu of %llu", name, (unsigned long long)m->first_step,
			(unsigned long long)m->steps, (unsigned long long)m->shard, (unsigned long long)m->shards);
	return 0;
}

const cJSON *masked_value(const struct header *h, const char *key)
{
	return json_get(json_get(h->extra, "loader"), key);
}

#define CLASSES_MAX 4096 /* a column with more values is not a label */

struct class_counts {
	struct labels labels;
	struct classes classes;
	uint64_t *n; /* [CLASSES_MAX] */
};

static void add_rows(struct class_counts *c, const struct block *b)
{
	for (size_t row = 0; row < b->rows && c->classes.n <= CLASSES_MAX; row++) {
		uint32_t y = labels_at(&c->labels, b, row);
		if (y < CLASSES_MAX)
			c->n[y]++;
	}
}

static void put_counts(cJSON *o, const struct class_counts *c)
{
	if (c->classes.n > CLASSES_MAX)
		return;
	cJSON *names = cJSON_AddObjectToObject(o, c->labels.spec->name);
	FREED uint32_t *order = classes_sorted(&c->classes);
	for (size_t k = 0; k < c->classes.n; k++)
		cJSON_AddNumberToObject(names, c->classes.name[order[k]], (double)c->n[order[k]]);
}

struct number_sums {
	struct numbers column;
	const char *name;
	double n, mean, m2; /* of the numbers so far; m2: sum of squared distances from the mean [Welford 1962] */
};

static int add_numbers(struct number_sums *x, const struct block *b, struct error *e)
{
	for (size_t row = 0; row < b->rows; row++) {
		double v = numbers_at(&x->column, b, row), off = v - x->mean;
		if (isinf(v))
			return error_set(e, "column '%s': an infinite number", x->name);
		if (isnan(v))
			continue;
		x->mean += off / ++x->n;
		x->m2 += off * (v - x->mean);
	}
	return 0;
}

static int put_numbers(cJSON *loader, const struct number_sums *x, size_t n, struct error *e)
{
	cJSON *o = n ? cJSON_AddObjectToObject(loader, "numbers") : NULL;
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(x[i].mean) || !isfinite(x[i].m2))
			return error_set(e, "column '%s': its numbers are too large: the squares of their differences overflow", x[i].name);
		cJSON *of = cJSON_AddObjectToObject(o, x[i].name);
		cJSON_AddNumberToObject(of, "n", x[i].n);
		json_add_real(of, "mean", x[i].mean);
		json_add_real(of, "sd", x[i].n > 0 ? sqrt(x[i].m2 / x[i].n) : 0);
	}
	return 0;
}

int masked_count_classes(struct header *h, struct stream *in, char *const *column, size_t n, struct error *e)
{
	size_t nc = 0, nx = 0;
	int bad = 0;
	FREED struct class_counts *c = xcalloc(n, sizeof *c);
	FREED struct number_sums *x = xcalloc(n, sizeof *x);
	RELEASED(block_release) struct block b = {0};
	cJSON *loader = json_get(h->extra, "loader"), *o = cJSON_AddObjectToObject(loader, "classes");
	for (size_t i = 0; i < n; i++) { /* floats and lists are not labels; whole numbers can be both */
		if (labels_init(&c[nc].labels, stream_header(in), column[i], &c[nc].classes, LABEL_VALUES, "", NULL) == 0)
			c[nc++].n = xcalloc(CLASSES_MAX, sizeof *c->n);
		if (numbers_init(&x[nx].column, stream_header(in), column[i], "", NULL) == 0)
			x[nx++].name = column[i];
	}
	for (size_t k = 0; nc + nx && !bad && k < stream_blocks(in); k++) {
		bad = stream_read_at(in, k, &b, e);
		for (size_t i = 0; i < nc && !bad; i++)
			add_rows(&c[i], &b);
		for (size_t i = 0; i < nx && !bad; i++)
			bad = add_numbers(&x[i], &b, e) ? error_prefix(e, "%s", stream_name(in)) : 0;
	}
	for (size_t i = 0; i < nc; i++) {
		put_counts(o, &c[i]);
		labels_release(&c[i].labels);
		classes_release(&c[i].classes);
		free(c[i].n);
	}
	if (!bad && put_numbers(loader, x, nx, e))
		bad = error_prefix(e, "%s", stream_name(in));
	return bad;
}

int masked_numbers(struct masked_numbers *n, const struct header *h, const char *column, const char *name, struct error *e)
{
	const cJSON *all = masked_value(h, "numbers"), *o = json_get(all, column);
	const char *const key[] = {"n", "mean", "sd"};
	double *const to[] = {&n->count, &n->mean, &n->sd};
	if (!cJSON_IsObject(o))
		return error_set(e,
			"%s: the header does not say how large the numbers of '%s' are: make the stream with maskgen --count-kept --keep %s",
			name, column, column);
	for (size_t i = 0; i < 3; i++) {
		const cJSON *x = json_get(o, key[i]);
		if (!cJSON_IsNumber(x) || !isfinite(x->valuedouble) || (i != 1 && x->valuedouble < 0))
			return error_set(e, "%s: header: loader.numbers: %s: expected n, mean and sd", name, column);
		*to[i] = x->valuedouble;
	}
	return 0;
}

/* Numbers as a reader of the header prints them: json_add_real writes others, such as 2.0 for 2. */
static cJSON *reread(cJSON *j)
{
	FREED char *text = xchecked(cJSON_PrintUnformatted(j));
	cJSON *read = cJSON_Parse(text);
	cJSON_Delete(j);
	return read;
}

/* The key "loader" without what differs between shards, and between the start of a training and its continuation. */
static cJSON *loader_of(const struct header *h)
{
	cJSON *loader = cJSON_Duplicate(json_get(h->extra, "loader"), 1);
	cJSON_DeleteItemFromObjectCaseSensitive(loader, "first_step");
	cJSON_DeleteItemFromObjectCaseSensitive(loader, "shard");
	return loader ? loader : cJSON_CreateNull();
}

void masked_digest(const struct header *h, char hex[33])
{
	cJSON *j = cJSON_CreateObject(), *loader = loader_of(h);
	if (cJSON_GetArraySize(json_get(loader, "files")) == 1)
		cJSON_DeleteItemFromObjectCaseSensitive(loader, "files"); /* earlier versions did not say which one file it was */
	vocab_digest(&h->vocab, hex);
	cJSON_AddItemToObject(j, "loader", loader);
	cJSON_AddStringToObject(j, "vocab", hex);
	cJSON_AddItemReferenceToObject(j, "provenance", h->provenance);
	FREED char *text = xchecked(cJSON_PrintUnformatted(j = reread(j)));
	digest_bytes(text, strlen(text), hex);
	cJSON_Delete(j);
}

cJSON *masked_description(const struct header *h)
{
	enum { SHORT = 256 };
	char hex[DIGEST_SIZE];
	cJSON *j = cJSON_CreateObject(), *out = cJSON_AddObjectToObject(j, "loader"), *loader = reread(loader_of(h));
	for (const cJSON *x = loader->child; x; x = x->next) {
		FREED char *text = xchecked(cJSON_PrintUnformatted(x));
		digest_bytes(text, strlen(text), hex);
		FREED char *in_short = xasprintf("%d entries, digest %s", cJSON_GetArraySize(x), hex);
		cJSON_AddItemToObject(out, x->string, strlen(text) < SHORT ? cJSON_Duplicate(x, 1) : cJSON_CreateString(in_short));
	}
	cJSON_Delete(loader);
	vocab_digest(&h->vocab, hex);
	cJSON_AddStringToObject(j, "vocabulary", hex);
	cJSON_AddItemToObject(j, "provenance", cJSON_Duplicate(h->provenance, 1));
	return j;
}

char *masked_differences(const cJSON *stream, const char *digest, const struct header *h)
{
	static const struct {
		const char *key, *word;
	} part[] = {{"vocabulary", "vocabulary "}, {"loader", ""},
		{"provenance", "program "}}; /* whose options say again what the loader says */
	char own[DIGEST_SIZE], *found = NULL, *text = NULL;
	RELEASED(json_free_at) cJSON *now = masked_description(h);
	for (size_t i = 0; stream && i < sizeof part / sizeof *part && !found; i++) {
		found = json_differences(json_get(stream, part[i].key), json_get(now, part[i].key), "before", "now", 4);
		text = found ? xasprintf("%s%s", part[i].word, found) : NULL;
	}
	free(found);
	masked_digest(h, own);
	return text || !strcmp(own, digest) ? text : xasprintf("digest %s before, %s now", digest, own);
}

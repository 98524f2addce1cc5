/*
 * scembed --predict: logits of a fine-tuned head [transformers BertForSequenceClassification, BertForTokenClassification].
 * Labels of cells: logits, the class and its probability. A number: itself. Genes: logits of tokens, by default only of held-out genes.
 */
#include "scembed.h"

#include "cli.h"
#include "base/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is written for one kind of head. */
struct writer {
	enum rows rows;
	enum target target;
	void (*header)(struct run *r, struct header *h, const char *name);
	void (*write)(struct run *r, size_t first, size_t n);
};
static const struct writer *writer_of(const struct head_spec *s); /* NULL: it has no predictions to write */

static const struct head_spec *spec(const struct run *r)
{
	return &r->heads.head[r->head];
}

int predict_tokens(const struct run *r)
{
	return spec(r)->kind->rows == ROWS_TOKEN;
}

/* Names of the heads that have predictions to write: "cell_type, donor" (malloced). */
static char *list_heads(const struct run *r)
{
	char *text = xstrdup("");
	for (size_t i = 0; i < r->heads.n; i++) {
		const struct head_spec *s = &r->heads.head[i];
		char *more = xasprintf("%s%s%s", text, *text ? ", " : "", head_name(s));
		if (!writer_of(s)) {
			free(more);
			continue;
		}
		free(text);
		text = more;
	}
	return text;
}

static void choose_head(struct run *r, const char *dir)
{
	size_t n = 0;
	for (size_t i = 0; i < r->heads.n; i++) {
		if (!writer_of(&r->heads.head[i]) || (r->head_option && strcmp(head_name(&r->heads.head[i]), r->head_option)))
			continue;
		r->head = i;
		n++;
	}
	if (n == 1)
		return;
	char *all = list_heads(r);
	if (!*all)
		die("--predict: the model in %s has no classifier: fine-tune it with sctrain cells or sctrain genes", dir);
	if (r->head_option && r->heads.n == 1 && !spec(r)->name)
		die("--head: the model in %s has one head, which has no name: leave out --head", dir);
	if (r->head_option)
		die("--head: the model in %s has no '%s': expected %s", dir, r->head_option, all);
	die("--predict: the model in %s has several heads: choose one with --head: %s", dir, all);
}

/* The genes of genes.tsv, and which were held out. */
static void read_genes(struct run *r, const char *dir, const struct header *h)
{
	struct error e;
	char *genes = xasprintf("%s/genes.tsv", dir);
	if (access(genes, F_OK) == 0) {
		must(gene_labels_read(&r->genes, genes, &h->vocab, spec(r)->label, spec(r)->nlabel, &e), &e);
		if (!r->all_genes && !r->genes.test)
			die("%s: no gene is in the split test; --all-genes predicts all genes", genes);
	} else if (!r->all_genes) {
		die("%s: the file does not exist, so no gene is known to be held out; --all-genes predicts all genes", genes);
	}
	free(genes);
}

void predict_open(struct run *r, const char *dir, const struct header *h)
{
	struct error e;
	char *config = xasprintf("%s/config.json", dir);
	must(config_heads_load(&r->heads, config, &e), &e);
	choose_head(r, dir);
	if (!predict_tokens(r) && r->all_genes)
		die("--all-genes: the model in %s classifies cells", dir);
	if (predict_tokens(r) && r->probabilities)
		die("--probabilities: the model in %s classifies genes", dir);
	if (spec(r)->kind->target == TARGET_VALUE && r->probabilities)
		die("--probabilities: the head '%s' predicts a number", head_name(spec(r)));
	if (predict_tokens(r))
		read_genes(r, dir, h);
	if (spec(r)->kind->target == TARGET_SET)
		terms_open(r, dir, spec(r));
	else if (r->greedy || r->nodes->n)
		die("--%s: the head '%s' has no ontology: it was not trained with sctrain --head COL:hce", r->nodes->n ? "node" : "decode",
			head_name(spec(r)));
	free(config);
}

void predict_free_name(const struct header *h, const char *column, const char *name)
{
	if (header_find(h, column) >= 0)
		die("%s: has a column '%s', which the prediction needs", name, column);
}

static void add_labels(struct run *r, struct header *h)
{
	cJSON_AddItemToObject(h->extra, "labels", cJSON_CreateStringArray((const char *const *)spec(r)->label, (int)spec(r)->nlabel));
}

static void cells_header(struct run *r, struct header *h, const char *name)
{
	static const char *const made[] = {"logit", "predicted", "probability", "probabilities"};
	add_labels(r, h);
	for (size_t i = 0; i < 3 + (size_t)r->probabilities; i++)
		predict_free_name(h, made[i], name);
	if (spec(r)->nlabel > FIXED_MAX)
		die("the model has %u classes: at most %u", spec(r)->nlabel, FIXED_MAX);
	r->logit = header_add_fixed(h, "logit", F32, (uint32_t)spec(r)->nlabel);
	r->predicted = header_add_categorical(h, "predicted", spec(r)->label, spec(r)->nlabel);
	r->probability = header_add(h, "probability", F32);
	r->probabilities_at = r->probabilities ? header_add_fixed(h, "probabilities", F32, (uint32_t)spec(r)->nlabel) : -1;
}

static void set_header(struct run *r, struct header *h, const char *name)
{
	cells_header(r, h, name);
	terms_header(r, h, name);
}

static void genes_header(struct run *r, struct header *h, const char *name)
{
	static const char *const made[] = {"token", "label", "held_out"};
	uint32_t K = spec(r)->nlabel;
	add_labels(r, h);
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		predict_free_name(h, made[i], name);
	for (size_t k = 0; k < K; k++) {
		char *column = xasprintf("logit.%s", spec(r)->label[k]);
		predict_free_name(h, column, name);
		free(column);
	}
	if (h->ncol + K + 3 > COLUMNS_MAX)
		die("the model has %u classes: too many for a column each", K);
	r->token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	r->label = r->genes.label ? header_add_ragged(h, "label", I32, "token") : -1;
	r->held_out = r->genes.label && r->all_genes ? header_add_ragged(h, "held_out", U8, "token") : -1;
	for (size_t k = 0; k < K; k++) {
		char *column = xasprintf("logit.%s", spec(r)->label[k]);
		int at = header_add_ragged(h, column, F32, "token");
		r->logit = k ? r->logit : at;
		free(column);
	}
}

static void number_header(struct run *r, struct header *h, const char *name)
{
	predict_free_name(h, "predicted", name);
	if (spec(r)->column)
		cJSON_AddStringToObject(h->extra, HEADER_TARGET, spec(r)->column);
	r->predicted = header_add(h, "predicted", F64); /* float32 would lose numbers far from 0 that differ little */
}

void predict_header(struct run *r, struct header *h, const char *name)
{
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, "labels");
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, HEADER_TARGET);
	writer_of(spec(r))->header(r, h, name);
}

/* Class of the largest logit (ties: the first), its probability, and the softmax. logit [K]; z [K] scratch; p [K], may be NULL. */
static uint32_t classify(const float *logit, size_t K, double *z, float *p, float *best)
{
	for (size_t i = 0; i < K; i++)
		z[i] = (double)logit[i];
	size_t k = softmax_argmax(z, K);
	softmax(z, K);
	for (size_t i = 0; p && i < K; i++)
		p[i] = (float)z[i];
	*best = (float)z[k];
	return (uint32_t)k;
}

static void predict_cells(struct run *r, size_t first, size_t n)
{
	struct error e;
	const struct batch *p = &r->packed.b;
	size_t K = spec(r)->nlabel;
	float *logit = (float *)r->out.col[r->logit].data + first * K, *best = (float *)r->out.col[r->probability].data + first;
	float *all = r->probabilities_at < 0 ? NULL : (float *)r->out.col[r->probabilities_at].data + first * K;
	uint32_t *predicted = (uint32_t *)r->out.col[r->predicted].data + first;
	if (p->offset[n])
		must(model_logits(r->model, p, r->head, logit, &e), &e);
	double *z = xmalloc(K * sizeof *z);
	for (size_t i = 0; i < n; i++) {
		if (p->offset[i] < p->offset[i + 1]) {
			predicted[i] = classify(logit + i * K, K, z, all ? all + i * K : NULL, best + i);
			if (r->terms) {
				predicted[i] = terms_decode(r, first + i, predicted[i], z);
				best[i] = (float)z[predicted[i]];
			}
			continue;
		}
		predicted[i] = MISSING_CODE;
		best[i] = NAN;
		if (r->terms)
			terms_missing(r, first + i);
		for (size_t k = 0; k < K; k++) {
			logit[i * K + k] = NAN;
			if (all)
				all[i * K + k] = NAN;
		}
		r->empty++;
	}
	free(z);
}

/* In the unit of the column that it was trained on; NaN for a cell without tokens. */
static void predict_numbers(struct run *r, size_t first, size_t n)
{
	struct error e;
	const struct batch *p = &r->packed.b;
	double mean = spec(r)->mean, scale = spec(r)->scale == 0 ? 1 : spec(r)->scale;
	double *predicted = (double *)r->out.col[r->predicted].data + first;
	grow(r->h, r->h_cap, n);
	if (p->offset[n])
		must(model_logits(r->model, p, r->head, r->h, &e), &e);
	for (size_t i = 0; i < n; i++) {
		int empty = p->offset[i] == p->offset[i + 1];
		predicted[i] = empty ? NAN : mean + scale * (double)r->h[i];
		if (!empty && !isfinite(predicted[i]))
			die("--predict: a prediction of '%s' is %g, expected a finite number: are the weights those of this config.json?",
				head_name(spec(r)), predicted[i]);
		r->empty += (uint64_t)empty;
	}
}

static int wanted(const struct run *r, const struct vocab *v, uint32_t id)
{
	return r->all_genes ? id >= v->nspecial : r->genes.held_out[id];
}

/* Remove cells without a token to predict from the batch. *n cells remain; keep[i] is the new index of cell i. */
static size_t drop_cells(struct run *r, size_t n)
{
	const struct vocab *v = &r->out.header->vocab;
	uint32_t *offset = r->packed.offset, *id = r->packed.id, at = 0;
	size_t kept = 0;
	for (size_t i = 0, from = 0, to; i < n; i++, from = to) {
		to = offset[i + 1];
		size_t t = from;
		while (t < to && !wanted(r, v, id[t]))
			t++;
		if (t == to)
			continue;
		memmove(id + at, id + from, (to - from) * sizeof *id);
		at += (uint32_t)(to - from);
		r->row[kept] = (uint32_t)i;
		offset[++kept] = at;
	}
	r->packed.b.ncell = kept;
	return kept;
}

static void predict_genes(struct run *r, size_t first, size_t n)
{
	struct error e;
	const struct vocab *v = &r->out.header->vocab;
	const struct batch *p = &r->packed.b;
	size_t K = spec(r)->nlabel, kept = drop_cells(r, n), T = p->offset[kept];
	grow(r->h, r->h_cap, T * K);
	if (T)
		must(model_logits(r->model, p, r->head, r->h, &e), &e);
	struct block *b = &r->out;
	int g = b->header->col[r->token].group;
	uint64_t *offset = b->group[g].offset, at = offset[first];
	block_set_items(b, g, at + T);
	for (size_t i = 0, c = 0; i < n; i++) {
		int has = c < kept && r->row[c] == i;
		for (size_t t = has ? p->offset[c] : 0; has && t < p->offset[c + 1]; t++) {
			uint32_t id = p->id[t];
			if (!wanted(r, v, id))
				continue;
			block_set_id(b, r->token, at, id);
			if (r->label >= 0)
				((int32_t *)b->col[r->label].data)[at] = r->genes.label[id];
			if (r->held_out >= 0)
				((uint8_t *)b->col[r->held_out].data)[at] = r->genes.held_out[id];
			for (size_t k = 0; k < K; k++)
				((float *)b->col[(size_t)r->logit + k].data)[at] = r->h[t * K + k];
			at++;
		}
		c += (size_t)has;
		r->empty += !has;
		offset[first + i + 1] = at;
	}
	r->predicted_tokens += at - offset[first];
}

static const struct writer *writer_of(const struct head_spec *s)
{
	static const struct writer all[] = {
		{ROWS_CELL, TARGET_CLASS, cells_header, predict_cells},
		{ROWS_CELL, TARGET_SET, set_header, predict_cells},
		{ROWS_CELL, TARGET_VALUE, number_header, predict_numbers},
		{ROWS_TOKEN, TARGET_CLASS, genes_header, predict_genes},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].rows == s->kind->rows && all[i].target == s->kind->target)
			return &all[i];
	return NULL;
}

void predict_rows(struct run *r, size_t first, size_t n)
{
	writer_of(spec(r))->write(r, first, n);
}

void predict_release(struct run *r)
{
	config_heads_release(&r->heads);
	gene_labels_release(&r->genes);
	terms_release(r);
}

/*
 * scembed --predict: logits of a fine-tuned head [transformers BertForSequenceClassification, BertForTokenClassification].
 * Cells: logits, the class and its probability. Genes: logits of tokens, by default of the genes the model was not shown.
 */
#include "scembed.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum task predict_open(struct run *r, const char *dir, const struct header *h)
{
	struct error e;
	char *config = xasprintf("%s/config.json", dir), *genes = xasprintf("%s/genes.tsv", dir);
	if (config_head_load(&r->head, config, &e))
		die("%s", e.msg);
	if (r->head.task != TASK_CELLS && r->head.task != TASK_GENES)
		die("--predict: the model in %s has no classifier: fine-tune it with sctrain cells or sctrain genes", dir);
	if (r->head.task == TASK_CELLS && r->all_genes)
		die("--all-genes: the model in %s classifies cells", dir);
	if (r->head.task == TASK_GENES && r->probabilities)
		die("--probabilities: the model in %s classifies genes", dir);
	if (r->head.task == TASK_GENES && access(genes, F_OK) == 0) {
		if (genelabels_load(&r->genes, genes, &h->vocab, r->head.label, r->head.nlabel, &e))
			die("%s", e.msg);
		if (!r->all_genes && !r->genes.test)
			die("%s: no gene of split test: with --all-genes all genes are predicted", genes);
	} else if (r->head.task == TASK_GENES && !r->all_genes) {
		die("%s: there is none, so no gene is known to be held out: with --all-genes all genes are predicted", genes);
	}
	free(config);
	free(genes);
	return r->head.task;
}

static void free_name(const struct header *h, const char *column, const char *name)
{
	if (header_find(h, column) >= 0)
		die("%s: has a column '%s', which the prediction needs", name, column);
}

static void cells_header(struct run *r, struct header *h, const char *name)
{
	static const char *const made[] = {"logit", "predicted", "probability", "probabilities"};
	for (size_t i = 0; i < 3 + (size_t)r->probabilities; i++)
		free_name(h, made[i], name);
	if (r->head.nlabel > FIXED_MAX)
		die("the model has %zu classes: at most %u", r->head.nlabel, FIXED_MAX);
	r->logit = header_add_fixed(h, "logit", F32, (uint32_t)r->head.nlabel);
	r->predicted = header_add_categorical(h, "predicted", r->head.label, r->head.nlabel);
	r->probability = header_add(h, "probability", F32);
	r->softmax = r->probabilities ? header_add_fixed(h, "probabilities", F32, (uint32_t)r->head.nlabel) : -1;
}

static void genes_header(struct run *r, struct header *h)
{
	if (h->ncol + r->head.nlabel + 3 > COLUMNS_MAX)
		die("the model has %zu classes: too many for a column each", r->head.nlabel);
	r->token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	r->label = r->genes.label ? header_add_ragged(h, "label", I32, "token") : -1;
	r->held_out = r->genes.label && r->all_genes ? header_add_ragged(h, "held_out", U8, "token") : -1;
	for (size_t k = 0; k < r->head.nlabel; k++) {
		char *column = xasprintf("logit.%s", r->head.label[k]);
		int at = header_add_ragged(h, column, F32, "token");
		r->logit = k ? r->logit : at;
		free(column);
	}
}

void predict_header(struct run *r, struct header *h, const char *name)
{
	if (r->head.nlabel != model_config(r->model)->num_labels)
		die("the model's config.json: num_labels is %u, but there are %zu names in id2label", model_config(r->model)->num_labels,
		    r->head.nlabel);
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, "labels");
	cJSON_AddItemToObject(h->extra, "labels", cJSON_CreateStringArray((const char *const *)r->head.label, (int)r->head.nlabel));
	if (r->head.task == TASK_CELLS) {
		cells_header(r, h, name);
		return;
	}
	static const char *const made[] = {"token", "label", "held_out"};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		free_name(h, made[i], name);
	for (size_t k = 0; k < r->head.nlabel; k++) {
		char *column = xasprintf("logit.%s", r->head.label[k]);
		free_name(h, column, name);
		free(column);
	}
	genes_header(r, h);
}

/* Class of the largest logit (ties: the first), and the softmax. logit [K]; p [K], may be NULL. */
static uint32_t classify(const float *logit, size_t K, float *p, float *best)
{
	size_t k = 0;
	double sum = 0;
	for (size_t i = 1; i < K; i++)
		k = logit[i] > logit[k] ? i : k;
	for (size_t i = 0; i < K; i++)
		sum += exp((double)logit[i] - logit[k]);
	for (size_t i = 0; p && i < K; i++)
		p[i] = (float)(exp((double)logit[i] - logit[k]) / sum);
	*best = (float)(1 / sum);
	return (uint32_t)k;
}

static void predict_cells(struct run *r, size_t first, size_t n)
{
	struct error e;
	const struct batch *p = &r->packed.b;
	size_t K = r->head.nlabel;
	float *logit = (float *)r->out.col[r->logit].data + first * K, *best = (float *)r->out.col[r->probability].data + first;
	float *softmax = r->softmax < 0 ? NULL : (float *)r->out.col[r->softmax].data + first * K;
	uint32_t *predicted = (uint32_t *)r->out.col[r->predicted].data + first;
	if (p->offset[n] && model_logits(r->model, p, logit, &e))
		die("%s", e.msg);
	for (size_t i = 0; i < n; i++) {
		if (p->offset[i] < p->offset[i + 1]) {
			predicted[i] = classify(logit + i * K, K, softmax ? softmax + i * K : NULL, best + i);
			continue;
		}
		predicted[i] = MISSING_CODE;
		best[i] = NAN;
		for (size_t k = 0; k < K; k++) {
			logit[i * K + k] = NAN;
			if (softmax)
				softmax[i * K + k] = NAN;
		}
		r->empty++;
	}
}

static int wanted(const struct run *r, const struct vocab *v, uint32_t id)
{
	return r->all_genes ? id >= v->nspecial : r->genes.held_out[id];
}

/* Leave cells without a wanted token out of the batch: nobody asks for their states. *n cells stay; keep[i] is where cell i went. */
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
	size_t K = r->head.nlabel, kept = drop_cells(r, n), T = p->offset[kept];
	grow(r->h, r->h_cap, T * K);
	if (T && model_logits(r->model, p, r->h, &e))
		die("%s", e.msg);
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

void predict_rows(struct run *r, size_t first, size_t n)
{
	(r->head.task == TASK_CELLS ? predict_cells : predict_genes)(r, first, n);
}

void predict_release(struct run *r)
{
	config_head_release(&r->head);
	genelabels_release(&r->genes);
}

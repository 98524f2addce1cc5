/*
 * scembed --predict: logits of a fine-tuned head [transformers BertForSequenceClassification, BertForTokenClassification].
 * Cells: logits, the class and its probability. Genes: logits of tokens, by default only of held-out genes.
 */
#include "scembed.h"

#include "cli.h"
#include "base/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Does the model classify tokens, not cells? */
static int of_tokens(const struct run *r)
{
	return r->heads.head[0].kind->rows == ROWS_TOKEN;
}

void predict_open(struct run *r, const char *dir, const struct header *h)
{
	struct error e;
	char *config = xasprintf("%s/config.json", dir), *genes = xasprintf("%s/genes.tsv", dir);
	if (config_folder(dir, &e) || config_heads_load(&r->heads, config, &e))
		die("%s", e.msg);
	if (!r->heads.n || !r->heads.head[0].kind->classes)
		die("--predict: the model in %s has no classifier: fine-tune it with sctrain cells or sctrain genes", dir);
	if (!of_tokens(r) && r->all_genes)
		die("--all-genes: the model in %s classifies cells", dir);
	if (of_tokens(r) && r->probabilities)
		die("--probabilities: the model in %s classifies genes", dir);
	if (of_tokens(r) && access(genes, F_OK) == 0) {
		if (gene_labels_read(&r->genes, genes, &h->vocab, r->heads.label, r->heads.nlabel, &e))
			die("%s", e.msg);
		if (!r->all_genes && !r->genes.test)
			die("%s: no gene is in the split test; --all-genes predicts all genes", genes);
	} else if (of_tokens(r) && !r->all_genes) {
		die("%s: the file does not exist, so no gene is known to be held out; --all-genes predicts all genes", genes);
	}
	free(config);
	free(genes);
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
	if (r->heads.nlabel > FIXED_MAX)
		die("the model has %zu classes: at most %u", r->heads.nlabel, FIXED_MAX);
	r->logit = header_add_fixed(h, "logit", F32, (uint32_t)r->heads.nlabel);
	r->predicted = header_add_categorical(h, "predicted", r->heads.label, r->heads.nlabel);
	r->probability = header_add(h, "probability", F32);
	r->probabilities_at = r->probabilities ? header_add_fixed(h, "probabilities", F32, (uint32_t)r->heads.nlabel) : -1;
}

static void genes_header(struct run *r, struct header *h)
{
	if (h->ncol + r->heads.nlabel + 3 > COLUMNS_MAX)
		die("the model has %zu classes: too many for a column each", r->heads.nlabel);
	r->token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	r->label = r->genes.label ? header_add_ragged(h, "label", I32, "token") : -1;
	r->held_out = r->genes.label && r->all_genes ? header_add_ragged(h, "held_out", U8, "token") : -1;
	for (size_t k = 0; k < r->heads.nlabel; k++) {
		char *column = xasprintf("logit.%s", r->heads.label[k]);
		int at = header_add_ragged(h, column, F32, "token");
		r->logit = k ? r->logit : at;
		free(column);
	}
}

void predict_header(struct run *r, struct header *h, const char *name)
{
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, "labels");
	cJSON_AddItemToObject(h->extra, "labels", cJSON_CreateStringArray((const char *const *)r->heads.label, (int)r->heads.nlabel));
	if (!of_tokens(r)) {
		cells_header(r, h, name);
		return;
	}
	static const char *const made[] = {"token", "label", "held_out"};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		free_name(h, made[i], name);
	for (size_t k = 0; k < r->heads.nlabel; k++) {
		char *column = xasprintf("logit.%s", r->heads.label[k]);
		free_name(h, column, name);
		free(column);
	}
	genes_header(r, h);
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
	size_t K = r->heads.nlabel;
	float *logit = (float *)r->out.col[r->logit].data + first * K, *best = (float *)r->out.col[r->probability].data + first;
	float *all = r->probabilities_at < 0 ? NULL : (float *)r->out.col[r->probabilities_at].data + first * K;
	uint32_t *predicted = (uint32_t *)r->out.col[r->predicted].data + first;
	if (p->offset[n] && model_logits(r->model, p, 0, logit, &e))
		die("%s", e.msg);
	double *z = xmalloc(K * sizeof *z);
	for (size_t i = 0; i < n; i++) {
		if (p->offset[i] < p->offset[i + 1]) {
			predicted[i] = classify(logit + i * K, K, z, all ? all + i * K : NULL, best + i);
			continue;
		}
		predicted[i] = MISSING_CODE;
		best[i] = NAN;
		for (size_t k = 0; k < K; k++) {
			logit[i * K + k] = NAN;
			if (all)
				all[i * K + k] = NAN;
		}
		r->empty++;
	}
	free(z);
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
	size_t K = r->heads.nlabel, kept = drop_cells(r, n), T = p->offset[kept];
	grow(r->h, r->h_cap, T * K);
	if (T && model_logits(r->model, p, 0, r->h, &e))
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
	(!of_tokens(r) ? predict_cells : predict_genes)(r, first, n);
}

void predict_release(struct run *r)
{
	config_heads_release(&r->heads);
	gene_labels_release(&r->genes);
}

/*
 * scpredict cells: what a fine-tuned head says of each cell [transformers BertForSequenceClassification]: logits, the class and its probability;
 * with an ontology also terms (terms.c); or a number.
 */
#include "scpredict.h"
#include "cli.h"

#include "base/softmax.h"
#include "cli_model.h"

#include <unistd.h>

static int probabilities, decode;
static struct opt_values node;

static struct option_def options[] = {
	{0, "Predictions", OPT_GROUP},
	{0, "head", OPT_STRING, &head, "NAME", "the head, if the model has several", .changes = 1},
	{0, "probabilities", OPT_FLAG, &probabilities, NULL, "also write the probability of every class", .changes = 1},
	{0, "decode", OPT_CHOICE, &decode, OPT_ENUM("leaf", "greedy"),
		"heads with an ontology: the likeliest leaf (default), or the likeliest child from the top down", .changes = 1},
	{0, "node", OPT_LIST, &node, "ID,...", "heads with an ontology: also write probabilities of these terms (repeatable)",
		.changes = 1},
	{0},
};

struct cli cells_cli = {.name = "scpredict cells",
	.operands = "[FILE...]",
	.summary = "Classes, terms of an ontology, or numbers of cells, by a fine-tuned head.",
	.options = options,
	.shared = inference_options,
	.common = CLI_STREAM_OUT | CLI_DEVICE | CLI_THREADS};

struct cells {
	struct chosen chosen;
	struct terms *terms; /* the ontology of the head, or NULL */
	int logit, predicted, probability, all; /* columns; all -1: none */
	float *number; /* [cells of the batch] */
	size_t number_cap;
};

static const struct head_spec *spec(const struct inference *r)
{
	return chosen(&((const struct cells *)r->of)->chosen);
}

static void class_header(struct inference *r, struct header *h)
{
	static const char *const made[] = {"logit", "predicted", "probability", NULL};
	struct cells *c = r->of;
	const struct head_spec *s = spec(r);
	prediction_header(h, r, made);
	cJSON_AddItemToObject(h->extra, "labels", cJSON_CreateStringArray((const char *const *)s->label, (int)s->nlabel));
	if (s->nlabel > FIXED_MAX)
		die("the model has %u classes: at most %u", s->nlabel, FIXED_MAX);
	c->logit = header_add_fixed(h, "logit", F32, s->nlabel);
	c->predicted = header_add_categorical(h, "predicted", s->label, s->nlabel);
	c->probability = header_add(h, "probability", F32);
	c->all = -1;
	if (!probabilities)
		return;
	prediction_free_name(h, "probabilities", r->name);
	c->all = header_add_fixed(h, "probabilities", F32, s->nlabel);
}

static void term_header(struct inference *r, struct header *h)
{
	class_header(r, h);
	if (((struct cells *)r->of)->terms)
		terms_header(((struct cells *)r->of)->terms, h, r->name);
}

static void number_header(struct inference *r, struct header *h)
{
	static const char *const made[] = {"predicted", NULL};
	prediction_header(h, r, made);
	if (spec(r)->column)
		cJSON_AddStringToObject(h->extra, HEADER_TARGET, spec(r)->column);
	((struct cells *)r->of)->predicted = header_add(h, "predicted", F64); /* float32 would lose numbers far from 0 that differ little */
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

static void class_rows(struct inference *r, size_t first, size_t n)
{
	struct cells *c = r->of;
	const struct batch *p = &r->packed.b;
	size_t K = spec(r)->nlabel;
	float *logit = (float *)r->out.col[c->logit].data + first * K, *best = (float *)r->out.col[c->probability].data + first;
	float *all = c->all < 0 ? NULL : (float *)r->out.col[c->all].data + first * K;
	uint32_t *predicted = (uint32_t *)r->out.col[c->predicted].data + first;
	if (p->offset[n])
		must(model_logits(r->model, p, c->chosen.head, logit, &failure));
	FREED double *z = xmalloc(K * sizeof *z);
	for (size_t i = 0; i < n; i++) {
		if (p->offset[i] < p->offset[i + 1]) {
			predicted[i] = classify(logit + i * K, K, z, all ? all + i * K : NULL, best + i);
			if (c->terms) {
				predicted[i] = terms_decode(c->terms, &r->out, first + i, predicted[i], z, decode);
				best[i] = (float)z[predicted[i]];
			}
			continue;
		}
		predicted[i] = MISSING_CODE;
		best[i] = NAN;
		if (c->terms)
			terms_missing(c->terms, &r->out, first + i);
		for (size_t k = 0; k < K; k++) {
			logit[i * K + k] = NAN;
			if (all)
				all[i * K + k] = NAN;
		}
		r->empty++;
	}
}

/* In the unit of the column that it was trained on; NaN for a cell without tokens. */
static void number_rows(struct inference *r, size_t first, size_t n)
{
	struct cells *c = r->of;
	const struct batch *p = &r->packed.b;
	double mean = spec(r)->mean, scale = spec(r)->scale == 0 ? 1 : spec(r)->scale;
	double *predicted = (double *)r->out.col[c->predicted].data + first;
	grow(c->number, c->number_cap, n);
	if (p->offset[n])
		must(model_logits(r->model, p, c->chosen.head, c->number, &failure));
	for (size_t i = 0; i < n; i++) {
		int empty = p->offset[i] == p->offset[i + 1];
		predicted[i] = empty ? NAN : mean + scale * (double)c->number[i];
		if (!empty && !isfinite(predicted[i]))
			die("a prediction of '%s' is %g, expected a finite number: do the weights belong to this config.json?",
				head_name(spec(r)), predicted[i]);
		r->empty += (uint64_t)empty;
	}
}

/* What is written for each kind of target. */
static const struct kind {
	enum target target;
	void (*header)(struct inference *r, struct header *h);
	void (*rows)(struct inference *r, size_t first, size_t n);
} kinds[] = {{TARGET_CLASS, class_header, class_rows}, {TARGET_SET, term_header, class_rows}, {TARGET_VALUE, number_header, number_rows}};

static const struct kind *kind_of(const struct head_spec *s)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (s->kind->rows == ROWS_CELL && s->kind->target == kinds[i].target)
			return &kinds[i];
	return NULL;
}

static int predict_cells_fit(const struct head_spec *s)
{
	return kind_of(s) != NULL;
}

/* A model that scstream from-bmfm made may have none. */
static int has_ontology(void)
{
	FREED char *path = xasprintf("%s/ontology.obo", asked.model);
	return access(path, F_OK) == 0;
}

int scpredict_cells(int argc, char **argv)
{
	static struct cells c;
	static struct inference r = {.of = &c};
	struct header h = {0};
	cli_init(&cells_cli, argc, argv);
	inference_open(&r, &cells_cli, INFERENCE_TOKENS);
	choose_head(&c.chosen, head, predict_cells_fit, "classes or numbers of cells", "cells");
	if (spec(&r)->kind->target == TARGET_VALUE && probabilities)
		die("--probabilities: the head '%s' predicts a number", head_name(spec(&r)));
	int set = spec(&r)->kind->target == TARGET_SET;
	if (set && (given(&decode) || node.n || has_ontology()))
		c.terms = terms_new(spec(&r), &node);
	else if (!set && (given(&decode) || node.n))
		die("--%s: the head '%s' has no ontology: it was not trained with sctrain --head COL:hce", node.n ? "node" : "decode",
			head_name(spec(&r)));
	inference_load(&r, &c.chosen.heads);
	cli_has_position(spec(&r), r.in);
	kind_of(spec(&r))->header(&r, &h);
	inference_run(&r, &h, kind_of(spec(&r))->rows, NULL);
	inference_report(&r, "cells have no token: their logits are NaN");
	return 0;
}

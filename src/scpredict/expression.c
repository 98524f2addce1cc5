/*
 * scpredict expression. By a model of counts (sctrain nb): the expected counts of masked genes, mu = library size x softmax(logits). By a
 * model of whole cells (sctrain wced): for each gene its value m if it is expressed, the probability that it is, sigmoid(-a), and the
 * released prediction, 0 where the logit a of zero is above 0 and m elsewhere. Values are log-normalised.
 */
#include "scpredict.h"
#include "cli.h"

#include "cli_recalibrate.h"

#include "base/softmax.h"

static struct option_def options[] = {
	{0, "Predictions", OPT_GROUP},
	RECALIBRATE_ROW(asked.recalibrate),
	{0},
};

struct cli expression_cli = {.name = "scpredict expression",
	.operands = "[FILE...]",
	.summary = "Expected counts of masked genes (sctrain nb), or the expression of every gene (sctrain wced).",
	.options = options,
	.shared = inference_options,
	.common = CLI_STREAM_OUT | CLI_DEVICE | CLI_THREADS};

struct expression {
	struct chosen chosen;
	int gene; /* columns: of both, */
	int library, count, expected; /* of counts, */
	int value, expressed, gated; /* of whole cells */
	float *h; /* [cells of the batch, outputs] */
	size_t h_cap;
};

/* ---- counts ---- */

static void count_header(const struct inference *r, struct header *h)
{
	static const char *const made[] = {"library", "gene", "count", "expected", NULL};
	struct expression *x = r->of;
	prediction_header(h, r, made);
	x->library = header_add(h, "library", U64);
	x->gene = header_add_ragged(h, "gene", id_type(h->vocab.n), "gene");
	x->count = header_add_ragged(h, "count", U32, "gene");
	x->expected = header_add_ragged(h, "expected", F32, "gene");
}

/* The list of one cell, at items at ..; returns where it ends. logit [genes]; z [genes] scratch. */
static uint64_t write_counts(struct inference *r, size_t row, uint64_t at, size_t cell, const float *logit, double *z)
{
	const struct expression *x = r->of;
	struct block *b = &r->out;
	const struct batch *p = &r->packed.b;
	size_t genes = b->header->vocab.n, words = nb_words(genes);
	const uint32_t *mask = r->packed.masked.mask + cell * words;
	uint64_t library = 0;
	uint32_t t = p->offset[cell], end = p->offset[cell + 1];
	for (uint32_t k = t; k < end; k++)
		library += p->count[k];
	for (size_t g = 0; g < genes; g++)
		z[g] = (double)logit[g];
	softmax(z, genes);
	((uint64_t *)b->col[x->library].data)[row] = library;
	for (uint32_t g = 0; g < genes; g++) {
		while (t < end && p->id[t] < g)
			t++;
		if (!(mask[g / 32] >> g % 32 & 1))
			continue;
		block_set_id(b, x->gene, at, g);
		((uint32_t *)b->col[x->count].data)[at] = t < end && p->id[t] == g ? p->count[t] : 0;
		((float *)b->col[x->expected].data)[at++] = (float)((double)library * z[g]);
	}
	return at;
}

static void count_rows(struct inference *r, size_t first, size_t n)
{
	struct expression *x = r->of;
	struct block *b = &r->out;
	int list = b->header->col[x->gene].group;
	size_t genes = b->header->vocab.n;
	uint64_t *offset = b->group[list].offset, at = offset[first];
	FREED double *z = xmalloc(genes * sizeof *z);
	grow(x->h, x->h_cap, n * genes);
	must(model_logits(r->model, &r->packed.b, x->chosen.head, x->h, &failure));
	block_set_items(b, list, at + r->packed.masked.n);
	for (size_t i = 0; i < n; i++)
		offset[first + i + 1] = at = write_counts(r, first + i, at, i, x->h + i * genes, z);
}

/* ---- whole cells ---- */

static void cell_header(const struct inference *r, struct header *h)
{
	static const char *const made[] = {"gene", "value", "expressed", "gated", NULL};
	struct expression *x = r->of;
	prediction_header(h, r, made);
	x->gene = header_add_ragged(h, "gene", id_type(h->vocab.n), "gene");
	x->value = header_add_ragged(h, "value", F32, "gene");
	x->expressed = header_add_ragged(h, "expressed", F32, "gene");
	x->gated = header_add_ragged(h, "gated", F32, "gene");
}

static void cell_rows(struct inference *r, size_t first, size_t n)
{
	struct expression *x = r->of;
	struct block *b = &r->out;
	const struct batch *p = &r->packed.b;
	int list = b->header->col[x->gene].group;
	size_t V = b->header->vocab.n, special = b->header->vocab.nspecial;
	uint64_t *offset = b->group[list].offset, at = offset[first];
	grow(x->h, x->h_cap, n * 2 * V);
	if (p->offset[n])
		must(model_logits(r->model, p, x->chosen.head, x->h, &failure));
	block_set_items(b, list, at + n * (V - special));
	for (size_t i = 0; i < n; i++) {
		int empty = p->offset[i] == p->offset[i + 1];
		const float *z = x->h + i * 2 * V;
		for (size_t g = special; g < V; g++, at++) {
			float m = empty ? NAN : z[2 * g], a = empty ? NAN : z[2 * g + 1];
			if (!empty && !(isfinite(m) && isfinite(a)))
				die("a prediction is %g, expected a finite number: do the weights belong to this config.json?",
					(double)(isfinite(m) ? a : m));
			block_set_id(b, x->gene, at, (uint32_t)g);
			((float *)b->col[x->value].data)[at] = m;
			((float *)b->col[x->expressed].data)[at] = (float)(1 / (1 + exp((double)a)));
			((float *)b->col[x->gated].data)[at] = a > 0 ? 0 : m;
		}
		r->empty += (uint64_t)empty;
		offset[first + i + 1] = at;
	}
}

static int of_counts(const struct head_spec *s)
{
	return s->kind->target == TARGET_COUNTS;
}

static int of_cells(const struct head_spec *s)
{
	return s->kind->target == TARGET_CELL;
}

int scpredict_expression(int argc, char **argv)
{
	static struct expression x;
	static struct inference r = {.of = &x};
	struct header h = {0};
	cli_init(&expression_cli, argc, argv);
	inference_open(&r, &expression_cli, INFERENCE_MASKED);
	choose_head(&x.chosen, NULL, r.counts ? of_counts : of_cells, "expression", r.counts ? "nb" : "wced");
	inference_load(&r, &x.chosen.heads);
	(r.counts ? count_header : cell_header)(&r, &h);
	inference_run(&r, &h, r.counts ? count_rows : cell_rows, NULL);
	inference_report(&r, "cells have no token: their predictions are NaN");
	return 0;
}

/* scembed: vectors of cells and of genes from the hidden states of a trained model [Geneformer emb_extractor.py]. */
#include "scembed.h"
#include "cli.h"

#include "cli_labels.h"
#include "cli_recalibrate.h"

enum { CELLS, GENES, STATIC, VECTORS }; /* whose vectors */

static const char *by, *pooling;
static long long layer = LAYER_USUAL;
static int of, similarity;

/* Modes. --similarity has two. */
enum {
	EMBED = 1 << CELLS,
	PER_GENE = 1 << GENES,
	TABLE = 1 << STATIC,
	SIMILAR_NONE = 1 << VECTORS,
	SIMILAR = SIMILAR_NONE << SIMILARITY_MEAN | SIMILAR_NONE << SIMILARITY_GENES
};

static struct option_def options[] = {
	{0, "Vectors", OPT_GROUP},
	{0, "of", OPT_CHOICE, &of, OPT_ENUM([CELLS] = "cells", [GENES] = "genes", [STATIC] = "static"),
		"vectors of the cells; of the genes, means over the cells that have them; or the model's table of genes (default cells)",
		.changes = 1, .mode = EMBED},
	{0, "by", OPT_STRING, &by, "COL", "with --of genes: a vector for each class of COL", .changes = 1, .modes = PER_GENE},
	{KEEP_UNKNOWN_LABELS, .modes = PER_GENE, .needs = "by"},
	{0, "emb-layer", OPT_INT, &layer, "N",
		"layer of the hidden states: 0 is the last, -1 the one before, ... (default -1; models of counts and bmfm: 0)", -65535, 0,
		.changes = 1, .modes = EMBED | PER_GENE | SIMILAR},
	{0, "pool", OPT_STRING, &pooling, "mean|cls|first|pooler|rest|token:K,...",
		"mean of the genes' states, the state of <cls> or of the first token, or those of the tokens at positions K, from 0, concatenated (default mean; bmfm: token:0); pooler: the first token's after the model's pooler; rest: the mean without perturbed genes",
		.changes = 1, .modes = EMBED},
	RECALIBRATE_ROW(asked.recalibrate),
	{0, "similarity", OPT_CHOICE, &similarity, OPT_ENUM([SIMILARITY_MEAN] = "mean", [SIMILARITY_GENES] = "genes"),
		"perturbed cells (scperturb): cosine similarities of the genes' states to the unperturbed ones, instead of vectors",
		.changes = 1, .mode = SIMILAR_NONE},
	{0},
};

static struct cli cli = {.name = "scembed",
	.operands = "[FILE...]",
	.summary = "Embed cells or genes with a trained model.",
	.options = options,
	.shared = inference_options,
	.common = CLI_STREAM_OUT | CLI_DEVICE | CLI_THREADS};

struct embedding {
	struct pool pool;
	size_t C; /* numbers of a vector */
	int x; /* its column */
	uint32_t *range; /* [2 pool.n cells of the batch] the tokens whose mean is taken */
	size_t range_cap;
	size_t queued_from, queued; /* rows of the output whose vectors the device still computes */
	uint64_t queued_empty; /* of them without a token: NaN */
	real *weight, *bias; /* [C, C], [C] of the pooler; NULL: the states as they are */
	double *state; /* [C] */
};

/* A tensor of the pooler, malloced. */
static real *pooler_tensor(struct model *m, const char *which)
{
	const char *pooler = model_config(m)->arch->pooler;
	FREED char *name = xasprintf("%s.%s", pooler ? pooler : "pooler", which);
	const struct tensor *t = model_find(m, name);
	if (!t)
		die("--pool pooler: no head of the model in %s uses a pooler", asked.model);
	real *x = xmalloc(t->n * sizeof *x);
	model_read(m, PARAM, t, x);
	return x;
}

/* x [C] becomes tanh(W x + b), as heads read it (nn/readout.c). */
static void through_pooler(const struct embedding *m, float *x)
{
	for (size_t k = 0; k < m->C; k++)
		m->state[k] = x[k];
	for (size_t j = 0; j < m->C; j++) {
		double sum = m->bias[j];
		for (size_t k = 0; k < m->C; k++)
			sum += m->weight[j * m->C + k] * m->state[k];
		x[j] = (float)tanh(sum);
	}
}

static void collect(struct inference *r)
{
	struct embedding *m = r->of;
	size_t lost = 0;
	if (!m->queued)
		return;
	float *x = (float *)r->out.col[m->x].data + m->queued_from * m->C;
	must(model_embedded(r->model, x, &failure));
	for (size_t i = 0; i < m->queued; i++) {
		int finite = 1;
		for (size_t j = 0; j < m->C; j++)
			finite &= isfinite(x[i * m->C + j]) != 0;
		lost += !finite;
		if (m->weight)
			through_pooler(m, x + i * m->C);
	}
	if (lost > m->queued_empty)
		die("%zu vectors of cells with tokens are not finite: do the weights belong to this config.json?",
			lost - (size_t)m->queued_empty);
	m->queued = 0;
}

/* Queue the vectors of rows [first, first + n) of the output, and collect those that were queued before. */
static void queue(struct inference *r, size_t first, size_t n)
{
	struct embedding *m = r->of;
	grow(m->range, m->range_cap, 2 * n * m->pool.n);
	uint64_t empty = pool_ranges(&m->pool, &r->packed.b, m->range);
	must(model_embed(r->model, &r->packed.b, (int)r->layer, m->range, m->pool.n, &failure));
	collect(r);
	r->empty += empty;
	m->queued_empty = empty;
	m->queued_from = first;
	m->queued = n;
}

/* The latent vectors of a model of counts (sctrain nb). */
static void latent(struct inference *r, size_t first, size_t n)
{
	struct embedding *m = r->of;
	const struct batch *b = &r->packed.b;
	float *x = (float *)r->out.col[m->x].data + first * m->C;
	must(model_hidden(r->model, b, 0, x, &failure));
	for (size_t i = 0; i < n; i++) {
		uint32_t t = b->offset[i], end = b->offset[i + 1];
		while (t < end && !b->count[t])
			t++;
		for (size_t j = 0; t == end && j < m->C; j++)
			x[i * m->C + j] = NAN;
		r->empty += t == end;
	}
}

static void embed(struct inference *r, struct embedding *m)
{
	struct header h = {0};
	r->of = m;
	pool_open(&m->pool, stream_header(r->in));
	m->C = model_config(r->model)->hidden_size * (r->counts ? 1 : m->pool.n);
	if (m->pool.pooler) {
		m->weight = pooler_tensor(r->model, "weight");
		m->bias = pooler_tensor(r->model, "bias");
		m->state = xmalloc(m->C * sizeof *m->state);
	}
	header_derive(&h, STREAM_EMBEDDING, stream_header(r->in));
	if (header_find(&h, "x") >= 0)
		die("%s: has a column 'x', which is what the embedding will be called", r->name);
	m->x = header_add_fixed(&h, "x", F32, (uint32_t)m->C);
	inference_run(r, &h, r->counts ? latent : queue, collect);
	inference_report(
		r, r->counts ? "cells have no counts: their vectors are NaN" : "cells have no token to embed: their vectors are NaN");
}

static void scembed_check_options(void)
{
	if (asked.max_len && (similarity || (pooling && !strcmp(pooling, "rest"))))
		usage_error("--max-len would cut a cell and its perturbed copies at different genes: give scperturb a smaller --max-len");
	if (of == STATIC)
		refuse("does not go with --of static", &asked.max_len);
	if (by)
		genes_check(by);
}

/* The pooler is among the tensors of a model that is loaded with its heads. */
static void load_heads(struct inference *r, struct config_heads *heads)
{
	FREED char *path = xasprintf("%s/config.json", asked.model);
	if (layer != LAYER_USUAL && layer)
		die("--pool pooler: it reads the last layer: expected --emb-layer 0");
	r->layer = 0;
	must(config_heads_load(heads, path, &failure));
}

int main(int argc, char **argv)
{
	static struct inference r;
	static struct embedding m;
	static struct config_heads heads;
	cli_init(&cli, argc, argv);
	scembed_check_options();
	r.layer = layer;
	inference_open(&r, &cli, INFERENCE_COUNTS);
	if (r.counts && (of || similarity || pooling))
		die("--%s: the model in %s has no tokens", of ? "of" : similarity ? "similarity" : "pool", asked.model);
	if (!r.counts && !of && !similarity) {
		pooling = pooling ? pooling : r.cell_token ? "token:0" : "mean";
		cli_decided(&pooling);
	}
	pool_read(&m.pool, pooling ? pooling : "mean");
	if (m.pool.pooler)
		load_heads(&r, &heads);
	if (of != STATIC) {
		layer = r.layer;
		cli_decided(&layer);
	}
	inference_load(&r, m.pool.pooler ? &heads : NULL);
	if (of)
		genes_run(&r, of == STATIC, by);
	else if (similarity || m.pool.kind == POOL_REST)
		perturbed_run(&r, (enum similarity)similarity);
	else
		embed(&r, &m);
	return 0;
}

/* scembed: one vector per cell from the hidden states of a trained model [Geneformer emb_extractor.py], or predictions of its head. */
#include "scembed.h"

#include "cli.h"
#include "nn/device.h"
#include "train/weights.h"
#include "cli_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS, GENES, STATIC }; /* whose vectors */
enum { COUNTS_MAX = 1 << 18, GRADIENT_MAX = 1 << 11 }; /* default of --batch-tokens for counts, for gradients */

static const char *model_dir, *head, *by, *pooling, *attribute;
static long long layer = -1, batch_max = 16384;
static int of, similarity, truncate_cells, predict, probabilities, all_genes, reconstruct, decode;
static struct opt_values gene, node;

/* Modes. --similarity has two. */
enum { EMBED = 1 << CELLS, PER_GENE = 1 << GENES, TABLE = 1 << STATIC, PREDICTED = 8, RECONSTRUCTED = 16, ATTRIBUTED = 32 };
enum { SIMILAR_NONE = 128, SIMILAR = 128 << SIMILARITY_MEAN | 128 << SIMILARITY_GENES, OF_MODEL = 1023 };

static struct option_def options[] = {
	{0, "Model", OPT_GROUP},
	{'M', "model", OPT_INPUT, &model_dir, "DIR", "the model directory", .modes = OF_MODEL},
	{0, "layer", OPT_INT, &layer, "N",
		"layer of the hidden states: 0 the last, -1 the one before, ... (default -1; of a model of counts and of bmfm, 0)", -65535,
		0, .changes = 1, .modes = EMBED | PER_GENE | SIMILAR},
	{0, "pool", OPT_STRING, &pooling, "mean|cls|first|rest|token:K,...",
		"mean of the genes' states, the state of <cls>, of the first token, or of the tokens at positions K, from 0, one after the "
		"other (default mean; bmfm: token:0); rest: the mean without perturbed genes",
		.changes = 1, .modes = EMBED},
	{0, "similarity", OPT_CHOICE, &similarity, OPT_ENUM([SIMILARITY_MEAN] = "mean", [SIMILARITY_GENES] = "genes"),
		"of perturbed cells (scperturb): cosine similarities of the genes' states to those before, instead of vectors",
		.changes = 1, .mode = SIMILAR_NONE},
	{0, "Genes", OPT_GROUP},
	{0, "of", OPT_CHOICE, &of, OPT_ENUM([CELLS] = "cells", [GENES] = "genes", [STATIC] = "static"),
		"vectors of the cells; of the genes, means over the cells that have them; or the model's table of genes (default cells)",
		.changes = 1, .mode = EMBED},
	{0, "by", OPT_STRING, &by, "COL", "with --of genes: a vector for each class of COL", .changes = 1, .modes = PER_GENE},
	{0, "Predictions", OPT_GROUP},
	{0, "predict", OPT_FLAG, &predict, NULL, "write predictions of a head of the model instead of embeddings", .changes = 1,
		.mode = PREDICTED},
	{0, "head", OPT_STRING, &head, "NAME", "with --predict: the head, if the model has several", .changes = 1, .modes = PREDICTED},
	{0, "probabilities", OPT_FLAG, &probabilities, NULL, "with --predict of cells: also write the probability of every class",
		.changes = 1, .modes = PREDICTED},
	{0, "decode", OPT_CHOICE, &decode, OPT_ENUM("leaf", "greedy"),
		"with --predict of a head with an ontology: the likeliest leaf (default), or the likeliest child from the top down",
		.changes = 1, .modes = PREDICTED},
	{0, "node", OPT_LIST, &node, "ID,...",
		"with --predict of a head with an ontology: also write the probability of these terms; repeat it for several", .changes = 1,
		.modes = PREDICTED},
	{0, "all-genes", OPT_FLAG, &all_genes, NULL, "with --predict of genes: predict all tokens, not only those of held-out genes",
		.changes = 1, .modes = PREDICTED},
	{0, "reconstruct", OPT_FLAG, &reconstruct, NULL,
		"write the expected counts of masked genes, from a masked-counts stream and a model of sctrain nb; or the expression of every "
		"gene, from tokens and a model of sctrain wced",
		.changes = 1, .mode = RECONSTRUCTED},
	{0, "gene", OPT_LIST, &gene, "ID",
		"with --reconstruct of a model of sctrain wced: a gene to write, by id or symbol; repeat it for several", .changes = 1,
		.modes = RECONSTRUCTED},
	{0, "attribute", OPT_STRING, &attribute, "HEAD[:CLASS]",
		"write how much each gene adds to the output of a head: the logit of CLASS (default: the predicted class), or a number",
		.changes = 1, .mode = ATTRIBUTED},
	{0, "Cells", OPT_GROUP},
	{0, "truncate", OPT_FLAG, &truncate_cells, NULL,
		"truncate cells that are longer than the model's positions (default: they are an error)", .changes = 1,
		.modes = OF_MODEL & ~(TABLE | SIMILAR)},
	{0, "batch-tokens", OPT_INT, &batch_max, "N",
		"compute about N tokens or counts at a time (default 16384; --attribute: 2048; counts: 262144)", 1, 1e9,
		.modes = OF_MODEL & ~TABLE},
	{0},
};

static struct cli cli = {.name = "scembed",
	.operands = "[FILE...]",
	.summary = "Embed cells with a trained model, or predict with one of its heads.",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_DEVICE | CLI_THREADS};

static void load_model(struct run *r, const struct stream *in, struct ops *ops)
{
	struct error e;
	const struct header *h = stream_header(in);
	struct vocab v;
	struct weights_report report;
	if (predict)
		predict_open(r, model_dir, h);
	if (attribute)
		attribute_open(r, model_dir, attribute);
	if (r->whole)
		whole_open(r, model_dir, h, &gene);
	if (r->counts)
		counts_open(r, model_dir, h, stream_name(in));
	r->model = model_dir_load(model_dir, r->heads.head, r->heads.n, ops, 1, &v, &report, &e);
	if (!r->model)
		die("%s", e.msg);
	if (report.fresh)
		die("%s/model.safetensors has no '%s': it is not that of a fine-tuned model", model_dir, report.first_fresh);
	snprintf(r->identity, sizeof r->identity, "--model xxh3:%s", report.digest);
	cli_same_vocab(&v, model_config(r->model), model_dir, in);
	cli_same_positions(model_config(r->model), model_dir, in);
	cli_needs_values(model_config(r->model), in);
	cli_same_library(model_config(r->model), model_dir, in);
	if (predict || attribute)
		cli_has_position(&r->heads.head[r->head], in);
	vocab_release(&v);
	long long layers = model_config(r->model)->num_hidden_layers;
	if (-layer > layers)
		die("--layer %lld: the model has %lld layers: expected %lld to 0", layer, layers, -layers);
	r->C = model_config(r->model)->hidden_size * (r->counts ? 1 : r->pool.n);
	r->cls = vocab_token(&h->vocab, TOKEN_CLS);
	r->eos = vocab_token(&h->vocab, TOKEN_EOS);
	const cJSON *cls = cJSON_GetObjectItemCaseSensitive(h->extra, HEADER_CLS);
	r->ncls = cJSON_IsNumber(cls) ? (size_t)fmin(fmax(1, cls->valuedouble), CLS_MAX) : 1;
	pool_check(r, h);
}

/* The tokens stream's header without its ragged columns, with x or the columns of the prediction. */
static void make_header(struct run *r, struct header *to, const struct header *from, const char *name)
{
	const char *model = r->identity;
	header_derive(to, predict || reconstruct || attribute ? "prediction" : "embedding", from);
	if (attribute) {
		attribute_header(r, to, name);
	} else if (predict) {
		predict_header(r, to, name);
	} else if (reconstruct) {
		(r->whole ? whole_header : counts_header)(r, to, name);
	} else if (r->perturbed) {
		perturbed_header(r, to);
	} else {
		if (header_find(to, "x") >= 0)
			die("%s: has a column 'x', which is what the embedding will be called", name);
		r->x = header_add_fixed(to, "x", F32, (uint32_t)r->C);
	}
	cli_provenance(&cli, to, model);
}

static void collect(struct run *r)
{
	struct error e;
	size_t lost = 0;
	if (!r->queued)
		return;
	float *x = (float *)r->out.col[r->x].data + r->queued_from * r->C;
	must(model_embedded(r->model, x, &e), &e);
	for (size_t i = 0; i < r->queued; i++) {
		int finite = 1;
		for (size_t j = 0; j < r->C; j++)
			finite &= isfinite(x[i * r->C + j]) != 0;
		lost += !finite;
	}
	if (lost > r->queued_empty)
		die("%zu vectors of cells with tokens are not finite: are the weights those of this config.json?",
			lost - (size_t)r->queued_empty);
	r->queued = 0;
}

/* Queue the vectors of rows [first, first + n) of the output, and collect those that were queued before. */
static void embed_rows(struct run *r, size_t first, size_t n)
{
	struct error e;
	const struct batch *p = &r->packed.b;
	grow(r->range, r->range_cap, 2 * n * r->pool.n);
	uint64_t empty = pool_ranges(r, r->range);
	must(model_embed(r->model, p, (int)layer, r->range, r->pool.n, &e), &e);
	collect(r);
	r->empty += empty;
	r->queued_empty = empty;
	r->queued_from = first;
	r->queued = n;
}

/* Pack rows [from, to) of a block, run the model, append to the output. */
static void work(struct run *r, const struct block *b, size_t from, size_t to, const char *name)
{
	struct error e;
	uint32_t eos = r->eos < 0 ? UINT32_MAX : (uint32_t)r->eos;
	size_t limit = model_positions(model_config(r->model));
	if (r->counts)
		counts_pack(r, b, from, to, name);
	else
		must(batch_tokens(&r->packed, &r->col, b, from, to, limit, truncate_cells, eos, name, &e), &e);
	size_t n = to - from, first = r->out.rows;
	r->tokens += r->packed.b.offset[n];
	grow(r->row, r->row_cap, n);
	for (size_t i = 0; i < n; i++)
		r->row[i] = (uint32_t)(from + i);
	block_take(&r->out, r->map, b, r->row, n);
	if (r->perturbed)
		perturbed_rows(r, b, from, first, n, (int)layer);
	else
		(attribute                  ? attribute_rows
				: predict   ? predict_rows
				: r->counts ? counts_rows
				: r->whole  ? whole_rows
					    : embed_rows)(r, first, n);
	r->cells += n;
	progress("%llu cells", (unsigned long long)r->cells);
}

static void write_out(struct run *r, struct stream *out)
{
	struct error e;
	collect(r);
	if (r->out.rows)
		must(stream_write(out, &r->out, &e), &e);
	block_reset(&r->out, stream_header(out));
}

/* What the model reads: tokens, or counts. */
static void choose_input(struct run *r, const struct header *h, const char *name)
{
	struct error e;
	struct model_config c;
	char *config = xasprintf("%s/config.json", model_dir);
	must(config_folder(model_dir, &e), &e);
	must(config_load(&c, config, &e), &e);
	free(config);
	r->counts = c.arch->counts;
	r->reconstruct = reconstruct;
	r->whole = reconstruct && !r->counts;
	if (gene.n && !r->whole)
		die("--gene: the model in %s is one of counts, of which the masked genes are written", model_dir);
	if (r->counts && (given(&pooling) || given(&similarity) || truncate_cells || predict || of || attribute))
		die("--%s: the model in %s has no tokens",
			of                           ? "of"
				: predict            ? "predict"
				: attribute          ? "attribute"
				: truncate_cells     ? "truncate"
				: given(&similarity) ? "similarity"
						     : "pool",
			model_dir);
	pool_read(&r->pool, pooling ? pooling : c.arch->cell_token && !similarity ? "token:0" : "mean");
	if ((r->counts || c.arch->cell_token) && !given(&layer))
		layer = 0;
	if (r->counts && !given(&batch_max))
		batch_max = COUNTS_MAX;
	if (attribute && !given(&batch_max))
		batch_max = GRADIENT_MAX;
	must(r->counts ? counts_columns(&r->col, h, !reconstruct, name, &e) : tokens_columns(&r->col, h, name, &e), &e);
	if (r->pool.kind == POOL_REST || given(&similarity))
		perturbed_open(r, (enum similarity)similarity, h, name);
}

static void check_options(void)
{
	if (!model_dir)
		usage_error("-M DIR is needed");
	if (truncate_cells && pooling && !strcmp(pooling, "rest"))
		usage_error("--truncate would cut a cell and its perturbed copies at different genes: give scperturb a smaller --max-len");
	if (by)
		genes_check(by);
}

/* Print what was written. */
static void report(const struct run *r, const char *name)
{
	unsigned long long cells = r->cells, empty = r->empty, tokens = r->tokens;
	cli_unknown_groups(&r->groups, r->groups.unknown, cells, name);
	if (r->counts) {
		cli_measured("cells", (double)cells);
		cli_measured("counts", (double)tokens);
		cli_report(&cli, "%llu cells, %llu counts", cells, tokens);
		return;
	}
	if (predict && predict_tokens(r)) {
		unsigned long long predicted_tokens = r->predicted_tokens;
		if (!predicted_tokens)
			warn("no cell has a token of the %zu held-out genes of the vocabulary", r->genes.test);
		cli_measured("cells", (double)cells);
		cli_measured("tokens", (double)tokens);
		cli_measured("tokens_predicted", (double)predicted_tokens);
		cli_measured("cells_without_tokens", (double)empty);
		cli_report(&cli, "%llu cells, %llu tokens, %llu of them predicted, %llu cells without any", cells, tokens, predicted_tokens,
			empty);
		return;
	}
	if (attribute)
		attribute_report(r);
	if (empty)
		warn(attribute                 ? "%llu of %llu cells have no gene: they have no attributions"
				: predict      ? "%llu of %llu cells have no token: their logits are NaN"
				: r->whole     ? "%llu of %llu cells have no token: their predictions are NaN"
				: r->perturbed ? "%llu of %llu rows have no token but the perturbed ones: their results are NaN"
					       : "%llu of %llu cells have no token to embed: their vectors are NaN",
			empty, cells);
	char gpu[384];
	device_report(r->ops, model_padding(r->model), gpu, sizeof gpu);
	cli_measured("cells", (double)cells);
	cli_measured("tokens", (double)tokens);
	cli_measured("cells_without_tokens", (double)empty);
	cli_report(&cli, "%llu cells, %llu tokens, %llu without tokens%s", cells, tokens, empty, gpu);
}

static void embed_genes(struct run *r, struct stream *in)
{
	struct genes_options g = {of == STATIC, by, (int)layer, truncate_cells, stream_header(in)->vocab.nspecial, batch_max};
	genes_run(r, &g, in, &cli, r->identity);
	free(r->h);
	packed_release(&r->packed);
	stream_free(in);
	model_free(r->model);
	r->ops->destroy(r->ops);
}

int main(int argc, char **argv)
{
	struct run r = {0};
	struct error e;
	struct block b = {0};
	struct header h = {0};
	int got;
	cli_init(&cli, argc, argv);
	check_options();
	r.probabilities = probabilities;
	r.greedy = decode;
	r.nodes = &node;
	r.all_genes = all_genes;
	r.head_option = head;
	struct stream *in = cli_open_all(&cli);
	const char *name = stream_name(in);
	choose_input(&r, stream_header(in), name);
	struct ops *ops = r.ops = cli_device(&cli);
	load_model(&r, in, ops);
	if (of) {
		embed_genes(&r, in);
		return 0;
	}
	make_header(&r, &h, stream_header(in), name);
	struct stream *out = cli_create(&cli, &h);
	r.map = xcalloc(h.ncol, sizeof *r.map);
	header_map(&h, stream_header(in), r.map);
	block_reset(&r.out, stream_header(out));
	while ((got = stream_read(in, &b, &e)) > 0) {
		const uint64_t *offset = b.group[r.col.input_group].offset;
		for (size_t from = 0, to; from < b.rows; from = to) {
			for (to = from + 1; to < b.rows && offset[to + 1] - offset[from] <= (uint64_t)batch_max; to++)
				;
			work(&r, &b, from, to, name);
			if (block_full(&r.out))
				write_out(&r, out);
		}
	}
	if (got < 0)
		die("%s", e.msg);
	write_out(&r, out);
	must(stream_commit(out, &e), &e);
	report(&r, name);
	free(r.map);
	free(r.range);
	free(r.h);
	free(r.gene_row);
	free(r.row);
	packed_release(&r.packed);
	predict_release(&r);
	counts_release(&r);
	perturbed_release(&r);
	attribute_release(&r);
	block_release(&r.out);
	block_release(&b);
	header_release(&h);
	stream_free(out);
	stream_free(in);
	model_free(r.model);
	ops->destroy(ops);
	return 0;
}

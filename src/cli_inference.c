#include "cli_inference.h"
#include "cli.h"

#include "cli_model.h"
#include "cli_recalibrate.h"
#include "nn/device.h"
#include "train/weights.h"

enum { TOKENS_MAX = 1 << 14, COUNTS_MAX = 1 << 18, GRADIENTS_MAX = 1 << 11 }; /* of a batch */

struct option_def inference_options[] = {
	{0, "Model", OPT_GROUP},
	{'M', "model", OPT_INPUT, &asked.model, "DIR", "the model directory"},
	{0, "max-len", OPT_INT, &asked.max_len, "N",
		"truncate cells to N tokens: special ones and those of the highest values or ranks (default: cells longer than the model's positions are an error)",
		3, 65535, .changes = 1},
	{0},
};

void inference_open(struct inference *r, const struct cli *cli, unsigned what)
{
	struct model_config c;
	if (!asked.model)
		usage_error("-M DIR is needed");
	r->cli = cli;
	r->in = cli_open_all(cli);
	r->name = stream_name(r->in);
	FREED char *config = xasprintf("%s/config.json", asked.model);
	must(config_folder(asked.model, &failure));
	must(config_load(&c, config, &failure));
	r->counts = c.arch->counts;
	r->cell_token = c.arch->cell_token;
	if (r->counts && (asked.max_len || !(what & (INFERENCE_COUNTS | INFERENCE_MASKED))))
		die("%sthe model in %s has no tokens", asked.max_len ? "--max-len: " : "", asked.model);
	if (asked.max_len && c.arch->positions && asked.max_len > c.max_position_embeddings)
		die("--max-len %lld: the model in %s has %u positions", asked.max_len, asked.model, c.max_position_embeddings);
	if (r->layer == LAYER_USUAL)
		r->layer = r->counts || r->cell_token ? 0 : -1;
	r->most = r->counts ? COUNTS_MAX : what & INFERENCE_GRADIENTS ? GRADIENTS_MAX : TOKENS_MAX;
	const struct header *h = stream_header(r->in);
	int plain = !(what & INFERENCE_MASKED) && h->kind != STREAM_MASKED_COUNTS;
	must(r->counts ? counts_columns(&r->col, h, plain, r->name, &failure) : tokens_columns(&r->col, h, r->name, &failure));
}

void inference_load(struct inference *r, const struct config_heads *heads)
{
	struct vocab v;
	struct weights_report report;
	const char *dir = asked.model;
	if (r->counts)
		inference_groups(r, asked.model);
	r->ops = cli_device(r->cli);
	r->model = model_dir_load(dir, heads ? heads->head : NULL, heads ? heads->n : 0, r->ops, 1, &v, &report, &failure);
	must(!r->model);
	if (report.fresh)
		die("%s/model.safetensors has no '%s': the model is not fine-tuned", dir, report.first_fresh);
	snprintf(r->identity, sizeof r->identity, "--model xxh3:%s", report.digest);
	const struct model_config *c = model_config(r->model);
	cli_same_vocab(&v, c, dir, r->in);
	cli_same_positions(c, dir, r->in);
	cli_needs_values(c, r->in);
	vocab_release(&v);
	long long layers = c->num_hidden_layers;
	if (-r->layer > layers)
		die("--emb-layer %lld: the model has %lld layers: expected %lld to 0", r->layer, layers, -layers);
	r->eos = vocab_token(&stream_header(r->in)->vocab, TOKEN_EOS);
	r->recalibration = recalibration_new(asked.recalibrate, r->model, dir, r->in);
}

static void write_out(struct inference *r, struct stream *out, void (*flush)(struct inference *r))
{
	if (flush)
		flush(r);
	must_flush(out, &r->out);
}

/* Rows [from, to) of a block, through the model, behind the rows of the output. */
static void work(
	struct inference *r, const struct block *b, size_t from, size_t to, void (*rows)(struct inference *r, size_t first, size_t n))
{
	size_t n = to - from, first = r->out.rows;
	inference_pack(r, b, from, to);
	grow(r->row, r->row_cap, n);
	for (size_t i = 0; i < n; i++)
		r->row[i] = (uint32_t)(from + i);
	block_take(&r->out, r->map, b, r->row, n);
	rows(r, first, n);
	progress_cells(r->cells, stream_expected(r->in));
}

void inference_run(struct inference *r, struct header *h, void (*rows)(struct inference *r, size_t first, size_t n),
	void (*flush)(struct inference *r))
{
	RELEASED(block_release) struct block b = {0};
	cli_provenance(r->cli, h, r->identity);
	struct stream *out = cli_create(r->cli, h, stream_expected(r->in));
	r->map = xcalloc(h->ncol, sizeof *r->map);
	header_map(h, stream_header(r->in), r->map);
	block_reset(&r->out, stream_header(out));
	while (must_read(r->in, &b)) {
		recalibration_fit(r->recalibration, &r->col, &b, r->name);
		masks_beyond(model_config(r->model), &r->col, &b, r->name);
		for (size_t from = 0, to; from < b.rows; from = to) {
			to = inference_batch(r, &b, from);
			work(r, &b, from, to, rows);
			if (block_full(&r->out))
				write_out(r, out, flush);
		}
	}
	write_out(r, out, flush);
	must_commit(out);
	block_release(&r->out);
	header_release(h);
}

void inference_report(const struct inference *r, const char *cells_are)
{
	unsigned long long cells = r->cells, empty = r->empty, tokens = r->tokens;
	char gpu[384];
	cli_unknown_groups(&r->groups, r->groups.unknown, cells, r->name);
	if (empty)
		warn("%llu of %llu %s", empty, cells, cells_are);
	cli_measured_all({"cells", (double)cells}, {r->counts ? "counts" : "tokens", (double)tokens});
	if (r->counts) {
		cli_report(r->cli, "%llu cells, %llu counts", cells, tokens);
		return;
	}
	device_report(r->ops, model_padding(r->model), gpu, sizeof gpu);
	cli_measured("cells_without_tokens", (double)empty);
	cli_cut(r->cut, cells, r->lost, tokens, (size_t)asked.max_len);
	cli_report(r->cli, "%llu cells, %llu tokens, %llu without tokens%s", cells, tokens, empty, gpu);
}

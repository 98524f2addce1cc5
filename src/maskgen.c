/* maskgen: the data loader. Epochs, shuffled batches, shards, and which tokens of every cell are masked. */
#include "audit.h"
#include "checkpoint.h"
#include "cli.h"
#include "feed.h"
#include "file.h"
#include "label.h"
#include "mask.h"
#include "rng.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_FIXED, RATE_UNIFORM, RATE_LINEAR };
static const char *const rate_name[] = {"fixed", "uniform", "linear"};

/* A value over the run: fixed, drawn for every global batch from [from, to], or going from `from` at the first step to `to` at the last. */
struct course {
	int kind;
	double from, to;
};

static struct course rate_course, lambda_course;

static const char *graph_path, *shard_text = "0/1", *keep_text, *resume, *audit_path, *modules, *groups, *rate_uniform, *rate_linear, *lambda_linear;
/* the words of --strategy; pmi and pmi-rand differ in lambda only */
enum { NONE, RANDOM, CORRMASK, PMI, PMI_RAND };
static const enum mask_strategy kind_of[] = {MASK_NONE, MASK_RANDOM, MASK_CORRMASK, MASK_PMI, MASK_PMI};
static const double usual_lambda[] = {0, 0, 0.5, 1, 0.5};
static const char *const strategy_name[] = {"none", "random", "corrmask", "pmi", "pmi-rand"};

static int strategy = RANDOM, bernoulli, partner_choice, balance;
static long long epochs = 1, batch = 12, window = 64, partners = 5;
static double rate = 0.15, lambda, seed_share = 1;

static struct option_def options[] = {
	{.letter = 'g', .name = "graph", .kind = OPT_STRING, .to = &graph_path, .arg = "FILE",
	 .help = "graph of depgraph for corrmask, of depgraph --pmi for pmi and pmi-rand"},
	{.name = "strategy", .kind = OPT_CHOICE, .to = &strategy, .arg = "none|random|corrmask|pmi|pmi-rand", .changes = 1,
	 .help = "which tokens are masked (default random)"},
	{.name = "rate", .kind = OPT_REAL, .to = &rate, .arg = "P", .min = 0, .max = 1, .changes = 1,
	 .help = "share of a cell's tokens to mask (default 0.15)"},
	{.name = "rate-uniform", .kind = OPT_STRING, .to = &rate_uniform, .arg = "A:B", .changes = 1,
	 .help = "draw the rate of every global batch from A to B"},
	{.name = "rate-linear", .kind = OPT_STRING, .to = &rate_linear, .arg = "A:B", .changes = 1,
	 .help = "let the rate go from A at the first step to B at the last"},
	{.name = "lambda", .kind = OPT_REAL, .to = &lambda, .arg = "F", .min = 0, .max = 1, .changes = 1,
	 .help = "share of the masks that follow the graph (default: corrmask and pmi-rand 0.5, pmi 1)"},
	{.name = "lambda-linear", .kind = OPT_STRING, .to = &lambda_linear, .arg = "A:B", .changes = 1,
	 .help = "let lambda go from A at the first step to B at the last"},
	{.name = "partners-max", .kind = OPT_INT, .to = &partners, .arg = "K", .min = 0, .max = 65535, .changes = 1,
	 .help = "corrmask: most neighbours masked with a seed (default 5)"},
	{.name = "partners", .kind = OPT_CHOICE, .to = &partner_choice, .arg = "uniform|weighted", .changes = 1,
	 .help = "corrmask: draw them uniformly (default) or in proportion to |rho|"},
	{.name = "modules", .kind = OPT_STRING, .to = &modules, .arg = "COL", .changes = 1,
	 .help = "corrmask: partners are the genes of the seed's module in this column of the graph, not its neighbours"},
	{.name = "groups", .kind = OPT_STRING, .to = &groups, .arg = "COL", .changes = 1,
	 .help = "corrmask: partners are the tokens with the seed's number in this list column of the cells; takes no graph"},
	{.name = "seed-share", .kind = OPT_REAL, .to = &seed_share, .arg = "P", .min = 0, .max = 1, .changes = 1,
	 .help = "corrmask: probability that the seed itself is masked, beside its partners (default 1)"},
	{.name = "bernoulli", .kind = OPT_FLAG, .to = &bernoulli, .changes = 1,
	 .help = "random: mask each token by itself with probability P, as Hugging Face does"},
	{.name = "epochs", .kind = OPT_INT, .to = &epochs, .arg = "N", .min = 1, .max = 4294967295.0, .changes = 1,
	 .help = "passes over the cells (default 1)"},
	{.letter = 'b', .name = "batch", .kind = OPT_INT, .to = &batch, .arg = "N", .min = 1, .max = 1e6, .changes = 1,
	 .help = "cells a batch and shard (default 12)"},
	{.name = "window", .kind = OPT_INT, .to = &window, .arg = "N", .min = 1, .max = 65536, .changes = 1,
	 .help = "blocks that are shuffled together and held in memory (default 64)"},
	{.name = "shard", .kind = OPT_STRING, .to = &shard_text, .arg = "R/N",
	 .help = "emit shard R (from 0) of N, or auto: rank and size from Open MPI, PMI or Slurm (default 0/1)"},
	{.name = "balance", .kind = OPT_FLAG, .to = &balance, .changes = 1,
	 .help = "deal the cells of a batch out by length, so that all shards have about as much to do"},
	{.name = "keep", .kind = OPT_STRING, .to = &keep_text, .arg = "COL,...", .changes = 1,
	 .help = "columns of the cells to pass on, such as cell_type"},
	{.name = "audit", .kind = OPT_STRING, .to = &audit_path, .arg = "GRAPH",
	 .help = "write no stream, but a table of how the masks treat neighbours in this graph"},
	{.name = "resume", .kind = OPT_STRING, .to = &resume, .arg = "MODEL",
	 .help = "start after the last checkpoint of this model directory, if it has one; it must be of the same stream"},
	{0}
};

static struct cli cli = {.name = "maskgen", .operands = "[FILE]", .summary = "Load cells in shuffled batches and mask them.",
			 .options = options, .common = CLI_STREAM_OUT | CLI_SEED | CLI_THREADS};

static int given(const void *to)
{
	for (const struct option_def *o = options; o->name; o++)
		if (o->to == to)
			return o->seen;
	return 0;
}

/* At most one of the three ways to say a value. */
static void parse_course(struct course *c, const char *name, const double *fixed, const char *const *uniform, const char *const *linear)
{
	const char *text = *linear ? *linear : uniform ? *uniform : NULL, *way = *linear ? "linear" : "uniform";
	if (given(fixed) + (uniform && *uniform) + !!*linear > 1)
		usage_error("--%s is given in more than one way", name);
	*c = (struct course){RATE_FIXED, *fixed, *fixed};
	if (!text)
		return;
	char *end;
	c->kind = *linear ? RATE_LINEAR : RATE_UNIFORM;
	c->from = strtod(text, &end);
	int good = end != text && *end == ':';
	if (good) {
		const char *second = end + 1;
		c->to = strtod(second, &end);
		good = end != second && !*end;
	}
	if (!good || !(c->from >= 0 && c->from <= 1 && c->to >= 0 && c->to <= 1))
		usage_error("--%s-%s: '%s' is not two numbers A:B from 0 to 1", name, way, text);
}

static double course_at(const struct course *c, const struct feed *f, uint64_t epoch, uint64_t step)
{
	if (c->kind == RATE_LINEAR)
		return f->steps > 1 ? c->from + (c->to - c->from) * (double)step / (double)(f->steps - 1) : c->from;
	if (c->kind == RATE_UNIFORM) {
		struct rng r = rng_at(f->seed, RNG_RATE, step % f->per_epoch, (uint32_t)epoch);
		return c->from + (c->to - c->from) * rng_unit(&r);
	}
	return c->from;
}

static void course_json(cJSON *o, const char *name, const struct course *c)
{
	if (c->kind == RATE_FIXED) {
		cJSON_AddNumberToObject(o, name, c->from);
		return;
	}
	cJSON *s = cJSON_AddObjectToObject(o, name);
	cJSON_AddStringToObject(s, "course", rate_name[c->kind]);
	cJSON_AddNumberToObject(s, "from", c->from);
	cJSON_AddNumberToObject(s, "to", c->to);
}

static void check_options(void)
{
	int graphed = strategy >= CORRMASK, grouped = strategy == CORRMASK && groups;
	if (cli.noperand > 1)
		usage_error("one input, not %d (scsample joins streams)", cli.noperand);
	if (graphed && !grouped && !graph_path)
		usage_error("--strategy %s needs a graph: --graph FILE", strategy_name[strategy]);
	if (!graphed && (graph_path || given(&lambda) || lambda_linear))
		usage_error("--strategy %s follows no graph, so it takes no --graph and no lambda", strategy_name[strategy]);
	if (strategy != CORRMASK && (given(&partners) || given(&partner_choice) || modules || groups || given(&seed_share)))
		usage_error("--partners, --partners-max, --modules, --groups and --seed-share are for --strategy corrmask");
	if (groups && (graph_path || modules))
		usage_error("--groups tells the partners, so it takes no --graph and no --modules");
	if ((modules || groups) && partner_choice)
		usage_error("--partners weighted needs the weights of edges, which the genes of a module do not all have");
	if (!given(&lambda))
		lambda = usual_lambda[strategy];
	if (audit_path && (resume || keep_text || cli.raw))
		usage_error("--audit writes a table: --resume, --keep and --uncompressed do not go with it");
	if (bernoulli && strategy != RANDOM)
		usage_error("--bernoulli is for --strategy random: the others fill an exact budget");
	if (strategy == NONE && (given(&rate) || rate_uniform || rate_linear))
		usage_error("--strategy none masks nothing, so it takes no rate");
	parse_course(&rate_course, "rate", &rate, &rate_uniform, &rate_linear);
	parse_course(&lambda_course, "lambda", &lambda, NULL, &lambda_linear);
}

static int whole(const char *s, uint64_t *v)
{
	char *end;
	if (!s || *s < '0' || *s > '9')
		return 0;
	*v = strtoull(s, &end, 10);
	return *end == 0 && *v <= 1000000;
}

/* Rank and size as the launcher tells them. */
static void shard_of_launcher(struct feed *f)
{
	static const char *const var[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMIX_RANK", "PMIX_SIZE"},
					     {"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}};
	for (size_t i = 0; i < sizeof var / sizeof *var; i++) {
		const char *r = getenv(var[i][0]), *n = getenv(var[i][1]);
		if (!r || !n)
			continue;
		if (!whole(r, &f->shard) || !whole(n, &f->shards) || f->shard >= f->shards)
			die("%s=%s, %s=%s: expected a rank below a size", var[i][0], r, var[i][1], n);
		return;
	}
	die("--shard auto: no rank in the environment (OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK or SLURM_PROCID, each with its size)");
}

static void parse_shard(struct feed *f)
{
	if (strcmp(shard_text, "auto") == 0) {
		shard_of_launcher(f);
		return;
	}
	char *r = xstrdup(shard_text), *slash = strchr(r, '/');
	if (slash)
		*slash++ = 0;
	if (!whole(r, &f->shard) || !whole(slash, &f->shards) || f->shard >= f->shards)
		usage_error("--shard: '%s' is not R/N with R below N, or auto", shard_text);
	free(r);
}

static void read_graph(struct graph *g, const char *path, const char *weight, const char *module, const struct header *tokens, const char *name)
{
	struct error e;
	struct stream *s = stream_open(path, &e);
	if (s && header_find(stream_header(s), weight) < 0 && strcmp(stream_header(s)->kind, "graph") == 0)
		die("%s: its weights are not %s: %s", path, weight, *weight == 'n' ? "pmi needs a graph of depgraph --pmi"
									       : "that is a PMI graph, not a dependency graph");
	if (!s || graph_read(g, s, weight, module, &e))
		die("%s", e.msg);
	char a[33], b[33];
	vocab_digest(&tokens->vocab, a);
	vocab_digest(&stream_header(s)->vocab, b);
	if (!module && !g->offset[g->n])
		warn("%s has no edges: all masks are random", path);
	if (strcmp(a, b))
		die("%s has vocabulary %s (%zu rows), but %s has %s (%zu rows): the graph is of other tokens", path, b,
		    stream_header(s)->vocab.n, name, a, tokens->vocab.n);
	stream_free(s);
}

/* The columns to gather (want) and those to write (out): cell, epoch, step, kept ones; input; position and target. */
static void make_headers(struct header *want, struct header *out, const struct header *in, const char *name)
{
	struct error e;
	int cell, token;
	if (header_kind(in, "tokens", name, &e) || (cell = header_need(in, "cell", U64, SCALAR, name, &e)) < 0 ||
	    (token = header_need(in, "token", U32, RAGGED, name, &e)) < 0)
		die("%s", e.msg);
	header_init(want, "tokens");
	header_copy(out, in);
	free(out->kind);
	out->kind = xstrdup("masked");
	while (out->ncol)
		header_drop(out, out->col[out->ncol - 1].name);
	header_add_like(want, &in->col[cell]);
	header_add_like(out, &in->col[cell]);
	header_add(out, "epoch", U32);
	header_add(out, "step", U32);
	if (balance) {
		header_add(want, "batch_row", U32);
		header_add(out, "batch_row", U32);
	}
	size_t n;
	char **keep = opt_list(keep_text, &n);
	for (size_t i = 0; i < n; i++) {
		int c = header_need(in, keep[i], COLUMN_TYPES, SCALAR, name, &e);
		if (c < 0 && (c = header_need(in, keep[i], COLUMN_TYPES, FIXED, name, NULL)) < 0)
			die("--keep: %s", e.msg);
		if (header_find(out, keep[i]) >= 0 || strcmp(keep[i], "input") == 0 || strcmp(keep[i], "position") == 0 ||
		    strcmp(keep[i], "target") == 0)
			die("--keep: a masked stream has a column %s of its own", keep[i]);
		header_add_like(want, &in->col[c]);
		header_add_like(out, &in->col[c]);
	}
	opt_list_free(keep, n);
	header_add_ragged(want, "token", in->col[token].type, in->group[in->col[token].group]);
	if (groups) {
		int c = header_need(in, groups, I32, RAGGED, name, &e);
		if (c < 0)
			die("--groups: %s", e.msg);
		if (in->col[c].group != in->col[token].group)
			die("--groups: %s: column %s is not beside token: it has lists of its own", name, groups);
		header_add_ragged(want, groups, I32, in->group[in->col[c].group]);
	}
	header_add_ragged(out, "input", in->col[token].type, "input");
	header_add_ragged(out, "position", U16, "masked");
	header_add_ragged(out, "target", in->col[token].type, "masked");
}

static void describe(struct header *h, const struct feed *f, const struct graph *g)
{
	cJSON_DeleteItemFromObjectCaseSensitive(h->extra, "loader");
	cJSON *o = cJSON_AddObjectToObject(h->extra, "loader");
	cJSON_AddNumberToObject(o, "rows", (double)f->rows);
	cJSON_AddNumberToObject(o, "epochs", (double)f->epochs);
	cJSON_AddNumberToObject(o, "batch", (double)f->batch);
	cJSON_AddNumberToObject(o, "shards", (double)f->shards);
	cJSON_AddNumberToObject(o, "shard", (double)f->shard);
	cJSON_AddNumberToObject(o, "steps", (double)f->steps);
	cJSON_AddNumberToObject(o, "first_step", (double)f->next);
	cJSON_AddNumberToObject(o, "window", (double)window);
	cJSON_AddNumberToObject(o, "seed", (double)f->seed);
	cJSON_AddStringToObject(o, "strategy", strategy_name[strategy]);
	if (strategy == NONE)
		return;
	course_json(o, "rate", &rate_course);
	cJSON_AddBoolToObject(o, "bernoulli", bernoulli);
	if (strategy < CORRMASK)
		return;
	course_json(o, "lambda", &lambda_course);
	if (strategy == CORRMASK) {
		cJSON_AddNumberToObject(o, "partners_max", (double)partners);
		cJSON_AddStringToObject(o, "partners", groups ? "group" : modules ? "module" : partner_choice ? "weighted" : "uniform");
		if (seed_share < 1)
			cJSON_AddNumberToObject(o, "seed_share", seed_share);
	}
	if (!g)
		return;
	char digest[33];
	graph_digest(g, digest);
	cJSON_AddStringToObject(o, "graph", digest);
}

#define CLASSES_MAX 4096        /* a column of more values is no label */

/* Training on labels must know them all before the first batch: how often each value of the kept columns occurs. */
static void count_classes(struct header *h, struct stream *in)
{
	struct error e;
	size_t n, nk = 0;
	char **keep = opt_list(keep_text, &n);
	struct labels *l = xcalloc(n, sizeof *l);
	struct classes *c = xcalloc(n, sizeof *c);
	uint64_t **count = xcalloc(n, sizeof *count);
	struct block b = {0};
	for (size_t i = 0; i < n; i++)          /* floats and lists name no classes */
		if (labels_init(&l[nk], stream_header(in), keep[i], &c[nk], "", NULL) == 0)
			count[nk++] = xcalloc(CLASSES_MAX, sizeof **count);
	for (size_t k = 0; nk && k < stream_blocks(in); k++) {
		if (stream_read_at(in, k, &b, &e))
			die("%s", e.msg);
		for (size_t i = 0; i < nk; i++)
			for (size_t row = 0; row < b.rows && c[i].n <= CLASSES_MAX; row++) {
				uint32_t y = label_at(&l[i], &b, row);
				if (y < CLASSES_MAX)
					count[i][y]++;
			}
	}
	cJSON *o = cJSON_AddObjectToObject(cJSON_GetObjectItemCaseSensitive(h->extra, "loader"), "classes");
	for (size_t i = 0; i < nk; i++) {
		if (c[i].n <= CLASSES_MAX) {
			cJSON *names = cJSON_AddObjectToObject(o, l[i].spec->name);
			uint32_t *order = classes_sorted(&c[i]);
			for (size_t k = 0; k < c[i].n; k++)
				cJSON_AddNumberToObject(names, c[i].name[order[k]], (double)count[i][order[k]]);
			free(order);
		}
		labels_release(&l[i]);
		classes_release(&c[i]);
		free(count[i]);
	}
	block_release(&b);
	free(count);
	free(c);
	free(l);
	opt_list_free(keep, n);
}

/* Start where the last checkpoint ended. A model without one starts at the beginning, so the same command begins and goes on. */
static void resume_from(struct header *h, struct feed *f)
{
	struct error e;
	struct train_state state;
	uint64_t step;
	char digest[33];
	int got = checkpoint_latest(resume, &step, &e);
	if (got < 0 || (got && checkpoint_state(&state, resume, step, &e)))
		die("%s", e.msg);
	if (!got) {
		info("%s has no checkpoint: starting at step 0", resume);
		return;
	}
	masked_digest(h, digest);
	if (strcmp(digest, state.digest))
		die("%s/checkpoint-%llu was trained on stream %s, and this is %s: cells, graph or options differ", resume,
		    (unsigned long long)step, state.digest, digest);
	train_state_release(&state);
	if (step > f->steps)
		die("%s/checkpoint-%llu is past the %llu steps of this stream", resume, (unsigned long long)step, (unsigned long long)f->steps);
	info("resuming at step %llu of %llu", (unsigned long long)step, (unsigned long long)f->steps);
	feed_seek(f, step);
	cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(h->extra, "loader"), "first_step"), (double)step);
}

/* One batch on its way: gathered by the feed, masked by any thread, written in order. */
struct job {
	struct block in, out;
	uint64_t epoch, step;
	double rate, lambda;
	uint64_t tokens, masked;
	struct audit audit;
	struct error e;
	int failed;
};

static int *out_map;            /* want -> out, by header_map */
static const struct header *out_header;
static struct graph audit_graph;

struct worker {
	struct masker *masker;
	uint32_t *token, *input;        /* [MASK_ROW_MAX] */
	uint16_t *position;             /* [MASK_ROW_MAX] */
	uint32_t nspecial;
	uint8_t *state;                 /* [vocab], zero: for --audit */
};

static void mask_row(struct worker *w, struct job *j, size_t row, const int col[3], const int32_t *module)
{
	struct block *b = &j->out;
	const uint64_t *o = b->group[0].offset;
	uint64_t at = o[row], had = b->group[1].offset[row];
	uint32_t n = (uint32_t)(o[row + 1] - at);
	for (uint32_t i = 0; i < n; i++)
		w->token[i] = block_id(b, col[0], at + i);
	uint32_t structural, k = mask_cell(w->masker, j->rate, j->lambda, ((const uint64_t *)b->col[0].data)[row], (uint32_t)j->epoch,
					   w->token, module ? module + at : NULL, n, w->position, w->input, &structural);
	if (audit_path)
		audit_cell(&j->audit, &audit_graph, w->nspecial, w->token, n, w->position, k, structural, w->state);
	block_set_items(b, 1, had + k);
	memcpy((uint16_t *)b->col[col[1]].data + had, w->position, k * sizeof *w->position);
	for (uint32_t i = 0; i < k; i++) {
		block_set_id(b, col[2], had + i, w->token[w->position[i]]);
		block_set_id(b, col[0], at + w->position[i], w->input[i]);
	}
	b->group[1].offset[row + 1] = had + k;
	j->masked += k;
}

static void mask_batch(struct worker *w, struct job *j)
{
	struct block *b = &j->out;
	const struct block *in = &j->in;
	int col[3] = {header_find(out_header, "input"), header_find(out_header, "position"), header_find(out_header, "target")};
	int token = header_find(in->header, "token");
	const int32_t *module = groups ? in->col[header_find(in->header, groups)].data : NULL;
	block_reset(b, out_header);
	block_take(b, out_map, in, NULL, in->rows);
	const uint64_t *o = in->group[0].offset;
	uint64_t items = block_items(in, 0);
	memcpy(b->group[0].offset, o, (in->rows + 1) * sizeof *o);
	block_set_items(b, 0, items);
	memcpy(b->col[col[0]].data, in->col[token].data, items * type_size(in->header->col[token].type));
	j->tokens = items;
	j->masked = 0;
	j->audit = (struct audit){0};
	for (size_t row = 0; row < b->rows; row++) {
		((uint32_t *)b->col[1].data)[row] = (uint32_t)j->epoch;
		((uint32_t *)b->col[2].data)[row] = (uint32_t)j->step;
		if (o[row + 1] - o[row] > MASK_ROW_MAX) {
			j->failed = error_set(&j->e, "cell %llu: %llu tokens, expected at most %d",
					      (unsigned long long)((const uint64_t *)b->col[0].data)[row],
					      (unsigned long long)(o[row + 1] - o[row]), MASK_ROW_MAX);
			return;
		}
		mask_row(w, j, row, col, module);
	}
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : NAN;
}

static void write_audit(const struct audit *a)
{
	struct error e;
	struct outfile f;
	const struct { const char *name; double value; } metric[] = {
		{"masking_rate", ratio(a->masked, a->tokens)},
		{"structural_share", ratio(a->structural, a->masked)},
		{"mean_span", ratio(a->masked, a->runs)},
		{"pair_span", ratio(2 * a->present, 2 * a->present - a->hits)},
		{"hit_rate_present", ratio(a->hits, a->present)},
		{"hit_rate", ratio(a->hits, a->partners)},
		{"neighbour_within_5", ratio(a->near, a->tokens)},
		{"neighbour_within_5_linked", ratio(a->near, a->linked)},
		{"grams_5_with_pair", ratio(a->held, a->grams)},
		{"pairs_within_5", ratio(a->close, a->pairs)},
	};
	char *text = xasprintf("metric\tvalue\ncells\t%llu\ntokens\t%llu\nmasked\t%llu\n", (unsigned long long)a->cells,
			       (unsigned long long)a->tokens, (unsigned long long)a->masked);
	for (size_t i = 0; i < sizeof metric / sizeof *metric; i++) {
		char *more = xasprintf("%s%s\t%.6f\n", text, metric[i].name, metric[i].value);
		free(text);
		text = more;
	}
	if (outfile_open(&f, cli.output, 0, &e) || outfile_write(&f, text, strlen(text), &e) || outfile_commit(&f, &e))
		die("%s", e.msg);
	free(text);
}

int main(int argc, char **argv)
{
	struct error e;
	cli_init(&cli, argc, argv);
	check_options();
	struct feed f = {.seed = (uint32_t)cli.seed, .epochs = (uint64_t)epochs, .batch = (uint64_t)batch, .shards = 1,
			 .window = (uint64_t)window, .balance = balance ? "token" : NULL};
	parse_shard(&f);
	struct stream *in = f.in = cli_open(&cli, 0);
	const struct header *h = stream_header(in);
	struct header want, out_h = {0};
	struct graph graph = {0};
	make_headers(&want, &out_h, h, stream_name(in));
	if (graph_path)
		read_graph(&graph, graph_path, strategy == CORRMASK ? "rho" : "npmi", modules, h, stream_name(in));
	if (audit_path)
		read_graph(&audit_graph, audit_path, "rho", NULL, h, stream_name(in));
	struct mask_plan plan = {.strategy = kind_of[strategy], .bernoulli = bernoulli, .weighted = partner_choice, .modular = modules || groups,
				 .seed_stays = 1 - seed_share, .partners = (uint32_t)partners, .seed = f.seed, .vocab = (uint32_t)h->vocab.n,
				 .nspecial = (uint32_t)h->vocab.nspecial, .graph = graph_path ? &graph : NULL};
	int64_t mask_id = vocab_find(&h->vocab, "<mask>");
	if (strategy != NONE && (mask_id < 0 || h->vocab.n == h->vocab.nspecial))
		die("%s: the vocabulary has no %s", stream_name(in), mask_id < 0 ? "<mask>" : "genes");
	plan.mask_id = (uint32_t)mask_id;
	f.want = &want;
	if (feed_init(&f, &e))
		die("%s", e.msg);

	char *how = cli_provenance(&cli);
	header_provenance(&out_h, "maskgen", how);
	describe(&out_h, &f, plan.graph);
	if (strategy == NONE && keep_text)
		count_classes(&out_h, in);
	if (resume)
		resume_from(&out_h, &f);
	struct stream *out = audit_path ? NULL : cli_create(&cli, &out_h);
	out_header = out ? stream_header(out) : &out_h;
	out_map = xcalloc(out_header->ncol, sizeof *out_map);
	header_map(out_header, &want, out_map);

	int nthread = (int)cli.threads, njob = nthread > 1 ? 4 * nthread : 1;
	struct job *job = xcalloc((size_t)njob, sizeof *job);
	struct worker *worker = xcalloc((size_t)nthread, sizeof *worker);
	for (int i = 0; i < nthread; i++)
		worker[i] = (struct worker){masker_new(&plan), xcalloc(MASK_ROW_MAX, 4), xcalloc(MASK_ROW_MAX, 4), xcalloc(MASK_ROW_MAX, 2),
					    plan.nspecial, xcalloc(plan.vocab, 1)};
	uint64_t tokens = 0, masked = 0, rows = 0;
	struct audit audit = {0};
	for (int n = njob; n == njob;) {
		for (n = 0; n < njob; n++) {
			int got = feed_next(&f, &job[n].in, &job[n].epoch, &job[n].step, &e);
			if (got < 0)
				die("%s", e.msg);
			if (!got)
				break;
			job[n].rate = course_at(&rate_course, &f, job[n].epoch, job[n].step);
			job[n].lambda = course_at(&lambda_course, &f, job[n].epoch, job[n].step);
		}
#pragma omp parallel for schedule(dynamic) if (n > 1)
		for (int i = 0; i < n; i++)
			mask_batch(&worker[omp_get_thread_num()], &job[i]);
		for (int i = 0; i < n; i++) {
			if (job[i].failed)
				die("%s: %s", stream_name(in), job[i].e.msg);
			if (out && stream_write(out, &job[i].out, &e))
				die("%s", e.msg);
			audit_add(&audit, &job[i].audit);
			tokens += job[i].tokens;
			masked += job[i].masked;
			rows += job[i].out.rows;
			progress("step %llu of %llu", (unsigned long long)job[i].step + 1, (unsigned long long)f.steps);
		}
	}
	if (audit_path)
		write_audit(&audit);
	else if (stream_commit(out, &e))
		die("%s", e.msg);
	stream_free(out);
	cli_report(&cli, "%llu cells in %llu steps, %llu tokens, %llu masked (%.2f %%)", (unsigned long long)rows,
		   (unsigned long long)f.steps, (unsigned long long)tokens, (unsigned long long)masked,
		   tokens ? 100 * (double)masked / (double)tokens : 0);
	for (int i = 0; i < njob; i++) {
		block_release(&job[i].in);
		block_release(&job[i].out);
	}
	for (int i = 0; i < nthread; i++) {
		masker_free(worker[i].masker);
		free(worker[i].token);
		free(worker[i].input);
		free(worker[i].position);
		free(worker[i].state);
	}
	free(job);
	free(worker);
	free(out_map);
	free(how);
	feed_release(&f);
	graph_release(&graph);
	graph_release(&audit_graph);
	header_release(&want);
	header_release(&out_h);
	stream_free(in);
	return 0;
}

/* maskgen: the data loader. Epochs, shuffled batches, shards, and which tokens of every cell are masked. */
#include "maskgen.h"
#include "cli.h"
#include "cli_genes.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/option.h"
#include "mask/masking.h"
#include "mask/masked.h"
#include "train/train_state.h"

static const char *graph_path, *panel, *shard_text = "0/1", *keep_text, *resume, *audit_path, *module, *rate_uniform, *rate_linear,
				       *rate_choice, *lambda_text;
/* What a strategy uses. */
enum {
	RATE = 1,
	GRAPH = 2,
	LAMBDA = 4,
	PARTNERS = 8,
	TARGET = 16,
	BERNOULLI = 32,
	COUNTS = 64,
	TIES = 128,
	INPUT = 256
}; /* INPUT: has values as input */
enum { RANDOM = 1 };
/* --strategy */
static const struct strategy {
	const char *word;
	enum mask_strategy kind;
	unsigned uses;
	double lambda; /* default */
	int weight; /* of the graph: GRAPH_RHO ... */
	const char *no_value; /* why it does not go with --objective value */
	const char *no_cell; /* the same of --objective cell */
} strategies[] = {
	{"none", MASK_NONE, 0, .no_value = "masks nothing"},
	[RANDOM] = {"random", MASK_RANDOM, RATE | BERNOULLI},
	{"runs", MASK_RUNS, RATE | TIES, .no_value = "needs tokens without ranks", .no_cell = "needs tokens with ties"},
	{"columns", MASK_COLUMNS, RATE | COUNTS, .no_value = "masks counts", .no_cell = "masks counts"},
	{"columns-corrmask", MASK_COLUMNS, RATE | COUNTS | GRAPH | LAMBDA, 0.5, GRAPH_RHO, .no_value = "masks counts",
		.no_cell = "masks counts"},
	{"corrmask", MASK_CORRMASK, RATE | GRAPH | LAMBDA | PARTNERS, 0.5, GRAPH_RHO},
	{"pmi", MASK_PMI, RATE | GRAPH | LAMBDA, 1, GRAPH_NPMI},
	{"pmi-rand", MASK_PMI, RATE | GRAPH | LAMBDA, 0.5, GRAPH_NPMI},
	{"probe", MASK_PROBE, GRAPH | TARGET, 0, GRAPH_RHO, .no_cell = "has one target"},
};
static int strategy_index = RANDOM;
static const struct strategy *strategy;
enum { TOKEN, VALUE, CELL }; /* --objective */
enum { UNIFORM, WEIGHTED, HIDDEN, VISIBLE }; /* --partners: two for corrmask, two for probe */
enum { SKIP, ZERO }; /* --unmeasured */
static const char *const fields[] = {[FIELD_VALUE] = "value", [FIELD_GENE] = "gene", [FIELD_VALUE | FIELD_GENE] = "both"},
			 *const zero_kinds[] = {[ZEROS_NONE] = "none", [ZEROS_RANDOM] = "random", [ZEROS_BATCH] = "batch"},
			 *const unmeasured_words[] = {[SKIP] = "skip", [ZERO] = "zero"};
enum { USUAL_BATCH = 12, USUAL_BATCH_COLUMNS = 400, WINDOW = 64 }; /* WINDOW: blocks that are shuffled together */

static int objective = TOKEN, bernoulli, partner_choice, balance, count_kept, field = FIELD_VALUE, zeros, unmeasured;
static long long epochs = 1, batch = USUAL_BATCH, lanes = 1, partners = 5, max_len;
static double rate = 0.15, seed_share = 1, hidden = 0.95;

static struct option_def options[] = {
	{0, "Masks", OPT_GROUP},
	{'g', "graph", OPT_INPUT, &graph_path, "FILE",
		"graph from depgraph for corrmask and probe, from depgraph --pmi for pmi and pmi-rand", .modes = GRAPH},
	{0, "strategy", OPT_CHOICE, &strategy_index, OPT_WORDS(strategies),
		"how to select the tokens to mask (default random); runs: adjacent genes with equal counts; columns: genes of a counts stream, columns-corrmask with their partners; "
		"probe: one target per cell, for sctrain eval",
		.changes = 1},
	{0, "panel", OPT_INPUT, &panel, "FILE", "columns: mask all genes except those in this list", .changes = 1, .modes = COUNTS,
		.excludes = "rate rate-uniform rate-choice rate-linear"},
	{0, "objective", OPT_CHOICE, &objective, OPT_ENUM([TOKEN] = "token", [VALUE] = "value", [CELL] = "cell"),
		"what the model predicts: the token at masked positions (default); its expression value there, for sctrain value; or the "
		"whole cell, from which the masked genes are left out, for sctrain wced",
		.changes = 1},
	{0, "Rate", OPT_GROUP},
	{0, "rate", OPT_REAL, &rate, "P", "share of a cell's tokens, or of the genes, to mask (default 0.15; whole cells: 0.2)", 0, 1,
		.changes = 1, .modes = RATE, .excludes = "rate-uniform rate-choice rate-linear"},
	{0, "rate-uniform", OPT_STRING, &rate_uniform, "A:B[:C]",
		"draw the rate of every global batch uniformly from A to B; with C, B changes linearly to C at the last step", .changes = 1,
		.modes = RATE, .excludes = "rate-choice rate-linear"},
	{0, "rate-choice", OPT_STRING, &rate_choice, "P,...", "draw the rate of every global batch from this ascending list", .changes = 1,
		.modes = RATE, .excludes = "rate-linear"},
	{0, "rate-linear", OPT_STRING, &rate_linear, "A:B", "change the rate linearly from A at the first step to B at the last step",
		.changes = 1, .modes = RATE},
	{0, "Partners in the graph", OPT_GROUP},
	{0, "lambda", OPT_STRING, &lambda_text, "F[:G]",
		"share of the budget masked by the graph (default: corrmask and pmi-rand 0.5, pmi 1); with G, it changes linearly to G at "
		"the last step",
		.changes = 1, .modes = LAMBDA},
	{0, "partners-max", OPT_INT, &partners, "K", "corrmask: maximum number of partners masked with a start gene (default 5)", 0, 65535,
		.changes = 1, .modes = PARTNERS},
	{0, "partners", OPT_CHOICE, &partner_choice,
		OPT_ENUM([UNIFORM] = "uniform", [WEIGHTED] = "weighted", [HIDDEN] = "hidden", [VISIBLE] = "visible"),
		"corrmask: draw the partners uniformly (default) or in proportion to |rho|; probe: mask the target's partners, or as "
		"many unrelated tokens",
		.changes = 1, .modes = PARTNERS | TARGET},
	{0, "module", OPT_STRING, &module, "COL",
		"corrmask: partners are the genes of the start gene's module, in this column of the graph, or without --graph the tokens with its "
		"number in this list column of the cells",
		.changes = 1, .modes = PARTNERS, .excludes = "partners=weighted"},
	{0, "seed-share", OPT_REAL, &seed_share, "P",
		"corrmask: probability that the start gene itself is masked with its partners (default 1)", 0, 1, .changes = 1,
		.modes = PARTNERS},
	{0, "Random masks", OPT_GROUP},
	{0, "bernoulli", OPT_FLAG, &bernoulli, NULL,
		"random: mask each token independently with the probability of --rate, as Hugging Face does", .changes = 1,
		.modes = BERNOULLI},
	{0, "Values as input", OPT_GROUP},
	{0, "field", OPT_CHOICE, &field, OPT_WORDS(fields),
		"--objective value of tokens with counts: what to hide of a masked token: its value (default), the gene, or both",
		.changes = 1, .modes = INPUT, .needs = "objective=value"},
	{0, "hidden", OPT_REAL, &hidden, "P", "share of the masked tokens that are hidden; the others are only predicted (default 0.95)", 0,
		1, .changes = 1, .modes = INPUT, .needs = "objective=value"},
	{0, "max-len", OPT_INT, &max_len, "N", "maximum number of tokens per input, including special tokens (default: all)", 3,
		MASK_ROW_MAX, .changes = 1, .modes = INPUT},
	{0, "zeros", OPT_CHOICE, &zeros, OPT_WORDS(zero_kinds),
		"genes with zero counts in the input of four fifths of the cells: none (default); random ones, up to --max-len; or one in ten, first "
		"those of the other cells of the batch",
		.changes = 1, .modes = INPUT, .needs = "max-len"},
	{0, "unmeasured", OPT_CHOICE, &unmeasured, OPT_WORDS(unmeasured_words),
		"--objective cell: genes that a cell's file did not measure are not targets (default), or zeros", .changes = 1,
		.needs = "objective=cell"},
	{0, "Order and batches", OPT_GROUP},
	{0, "epochs", OPT_INT, &epochs, "N", "number of passes over the cells (default 1)", 1, 4294967295.0, .changes = 1},
	{'b', "batch", OPT_INT, &batch, "N", "number of cells per batch and shard (default 12; columns: 400)", 1, 1e6, .changes = 1},
	{0, "shard", OPT_STRING, &shard_text, "R/N", "write shard R (from 0) of N; auto: as mpirun, PMI or srun say (default 0/1)"},
	{0, "lanes", OPT_INT, &lanes, "L",
		"shuffle in L lanes: then one of N shards reads 1/N of the cells if N divides L; the order depends on L, not on N (default 1)",
		1, LOADER_LANES, .changes = 1},
	{0, "balance-lengths", OPT_FLAG, &balance, NULL, "distribute the cells of a batch over the shards by length, for about equal work",
		.changes = 1},
	{0, "Output", OPT_GROUP},
	{0, "keep", OPT_STRING, &keep_text, "COL,...", "columns of the cells to copy, such as cell_type", .changes = 1},
	{0, "count-kept", OPT_FLAG, &count_kept, NULL,
		"count the labels and numbers of these columns, for sctrain --head (default except for masked tokens)", .changes = 1,
		.needs = "keep"},
	{0, "audit", OPT_INPUT, &audit_path, "GRAPH", "write a table of how the masks treat partners in this graph, instead of a stream",
		.excludes = "resume keep lanes balance-lengths shard uncompressed strategy=columns strategy=columns-corrmask"},
	{0, "resume", OPT_INPUT, &resume, "MODEL",
		"start where the training of this model directory can go on, if it has begun; it must be from the same stream"},
	{0},
};

static struct cli cli = {.name = "maskgen",
	.operands = "[FILE...]",
	.summary = "Shuffle cells into batches and mask them.",
	.options = options,
	.mode = ~0u,
	.common = CLI_STREAM_OUT | CLI_SEED | CLI_THREADS};

/* The state of one run. */
struct run {
	struct stream *in, *out; /* out NULL: --audit */
	struct header want, header; /* of the cells that are loaded, and of the masked stream */
	struct graph graph, audit_graph; /* --graph, --audit */
	struct loader loader;
	struct mask_plan plan;
	struct mask_schedule rate, lambda;
	struct panels panels;
	struct input_plan input;
	int counted; /* the values are input */
	struct masking masking;
	uint32_t *column; /* the genes outside --panel */
	struct audit audit;
	uint64_t rows, tokens, masked; /* totals */
};

/* ---- options ---- */

/* The fixed rate, or the one that was asked for. */
static struct mask_schedule rate_schedule(void)
{
	const struct {
		const char *word, *text, *form;
		enum mask_schedule_kind kind;
	} way[] = {{"uniform", rate_uniform, "two numbers A:B from 0 to 1, or A:B:C with A the smallest", MASK_SCHEDULE_UNIFORM},
		{"linear", rate_linear, "two numbers A:B from 0 to 1", MASK_SCHEDULE_LINEAR},
		{"choice", rate_choice, "a list of at most 64 ascending numbers from 0 to 1", MASK_SCHEDULE_CHOICE}};
	struct mask_schedule s = {MASK_SCHEDULE_FIXED, .from = rate};
	for (size_t i = 0; i < sizeof way / sizeof *way; i++)
		if (way[i].text && mask_schedule_parse(&s, way[i].kind, way[i].text))
			usage_error("--rate-%s: '%s' is not %s", way[i].word, way[i].text, way[i].form);
	return s;
}

/* A number, or two. */
static struct mask_schedule lambda_schedule(void)
{
	struct mask_schedule s = {MASK_SCHEDULE_FIXED, .from = strategy->lambda};
	if (lambda_text && mask_schedule_parse(&s, strchr(lambda_text, ':') ? MASK_SCHEDULE_LINEAR : MASK_SCHEDULE_FIXED, lambda_text))
		usage_error("--lambda: '%s' is not a number from 0 to 1, or two numbers F:G", lambda_text);
	return s;
}

/* The column of the cells whose numbers are the modules, NULL: none. */
static const char *groups(void)
{
	return graph_path ? NULL : module;
}

static void check_graph_options(void)
{
	if (strategy->uses & GRAPH && !graph_path && !module)
		usage_error("--strategy %s needs a graph: --graph FILE", strategy->word);
	if (!(strategy->uses & TARGET) == (partner_choice == HIDDEN || partner_choice == VISIBLE))
		usage_error(strategy->uses & TARGET ? "--strategy probe needs --partners hidden or --partners visible"
						    : "--partners hidden and visible are for --strategy probe");
}

/* Some options need tokens with counts as input. */
static void check_input_options(const struct run *r)
{
	if (!r->counted)
		cli_mode(strategy->uses, "it is for values as input, see --objective");
	if (given(&hidden) && hidden == 0)
		usage_error("--hidden 0 hides nothing: the input would have every value to predict");
	if (r->counted && (groups() || strategy->uses & TARGET))
		usage_error("--%s is for tokens without values as input", groups() ? "module without --graph" : "strategy probe");
	if (r->counted && objective == VALUE && strategy->kind == MASK_PMI)
		usage_error("--strategy %s masks neighbours in the order of ranks, which values as input do not have", strategy->word);
}

static void maskgen_check_options(struct run *r)
{
	strategy = &strategies[strategy_index];
	cli_mode(strategy->uses | INPUT, "it does not go with --strategy %s", strategy->word);
	check_graph_options();
	if (objective == VALUE && strategy->no_value)
		usage_error("--objective value hides the ranks of masked tokens, and --strategy %s %s", strategy->word, strategy->no_value);
	if (objective == CELL && strategy->no_cell)
		usage_error(
			"--objective cell leaves out the masked genes of a cell, and --strategy %s %s", strategy->word, strategy->no_cell);
	if (objective == CELL && !given(&rate))
		rate = 0.2;
	if (strategy->uses & COUNTS && !given(&batch))
		batch = USUAL_BATCH_COLUMNS;
	r->rate = rate_schedule();
	r->lambda = lambda_schedule();
}

/* ---- inputs ---- */

/* Counts have no special tokens: find the genes of the graph among theirs. Edges of the others are dropped. */
static void match_genes(struct graph *g, const struct gene_tables *t)
{
	struct gene_matched m;
	FREED uint32_t *to = xmalloc((g->n + 1) * sizeof *to);
	must(gene_match(to, t, &m, &failure));
	check_shared(t->from_name, t->to_name, &m, 1);
	graph_renumber(g, to, (uint32_t)t->to->n);
}

static void read_graph(struct graph *g, const char *path, const struct graph_weight *weight, const char *column, struct stream *tokens)
{
	const char *name = stream_name(tokens);
	const struct vocab *v = &stream_header(tokens)->vocab;
	RELEASED(stream_free_at) struct stream *s = stream_open(path, &failure);
	if (s && header_find(stream_header(s), weight->name) < 0 && stream_header(s)->kind == STREAM_GRAPH)
		die("%s: it has no weights %s: %s", path, weight->name, weight->expected);
	must(!s || graph_read(g, s, weight, column, &failure));
	char of_tokens[33], of_graph[33];
	if (strategy->uses & COUNTS)
		match_genes(g, &(struct gene_tables){&stream_header(s)->vocab, v, path, name, NULL, 1});
	vocab_digest(v, of_tokens);
	vocab_digest(&stream_header(s)->vocab, of_graph);
	if (!column && !g->offset[g->n])
		warn("%s has no edges: %s", path, strategy->uses & TARGET ? "no token can be a target" : "all masks are random");
	if (strcmp(of_tokens, of_graph) && !(strategy->uses & COUNTS))
		die("%s has vocabulary %s (%zu rows), but %s has %s (%zu rows): the graph has other tokens", path, of_graph,
			stream_header(s)->vocab.n, name, of_tokens, v->n);
}

static void make_headers(struct run *r)
{
	struct masking_columns c = {.groups = groups(),
		.cell = objective == CELL,
		.fields = field,
		.unmeasured = unmeasured,
		.runs = !!(strategy->uses & TIES),
		.value = objective == VALUE,
		.balance = balance,
		.counts = !!(strategy->uses & COUNTS)};
	char **keep = opt_list(keep_text, &c.nkeep);
	c.keep = keep;
	must(masking_headers(&r->want, &r->header, stream_header(r->in), &c, stream_name(r->in), &failure));
	free_list(keep, c.nkeep);
	r->counted = masking_counted(stream_header(r->in), &c);
	check_input_options(r);
	r->input = (struct input_plan){.cell = c.cell,
		.fields = c.fields,
		.hidden = hidden,
		.zeros = (enum zeros)zeros,
		.max_len = max_len ? (uint32_t)max_len : MASK_ROW_MAX,
		.panels = &r->panels};
	if (r->counted && !unmeasured)
		must(panels_read(&r->panels, stream_header(r->in), stream_name(r->in), &failure));
}

static void make_plan(struct run *r)
{
	const struct vocab *v = &stream_header(r->in)->vocab;
	int64_t mask_id = vocab_token(v, TOKEN_MASK);
	if (strategy->uses & COUNTS && v->n - v->nspecial < 2)
		die("%s: the vocabulary has %zu gene%s, expected at least 2: some are masked, and some are not", stream_name(r->in),
			v->n - v->nspecial, v->n - v->nspecial == 1 ? "" : "s");
	if (strategy->uses && !(strategy->uses & COUNTS) && (mask_id < 0 || v->n == v->nspecial))
		die("%s: the vocabulary has no %s", stream_name(r->in), mask_id < 0 ? vocab_token_name(v, TOKEN_MASK) : "genes");
	r->plan = (struct mask_plan){.strategy = strategy->kind,
		.bernoulli = bernoulli,
		.weighted = partner_choice == WEIGHTED,
		.hidden = partner_choice == HIDDEN,
		.modular = !!module,
		.seed_stays = 1 - seed_share,
		.partners = (uint32_t)partners,
		.seed = (uint32_t)cli.seed,
		.vocab = (uint32_t)v->n,
		.nspecial = (uint32_t)v->nspecial,
		.mask_id = (uint32_t)mask_id,
		.graph = graph_path ? &r->graph : NULL};
}

static void read_panel(struct run *r)
{
	const struct vocab *v = &stream_header(r->in)->vocab;
	FREED uint8_t *seen = cli_gene_list("--panel", panel, v, stream_name(r->in));
	uint32_t n = 0;
	r->column = xmalloc(v->n * sizeof *r->column);
	for (size_t i = v->nspecial; i < v->n; i++)
		if (!seen[i])
			r->column[n++] = (uint32_t)i;
	if (!n)
		die("--panel: %s: all genes of %s are in it: none is left to mask", panel, stream_name(r->in));
	r->plan.column = r->column;
	r->plan.ncolumn = n;
	r->rate = (struct mask_schedule){MASK_SCHEDULE_FIXED, .from = (double)n / (double)(v->n - v->nspecial)};
}

static void open_inputs(struct run *r)
{
	r->loader = (struct loader){.want = &r->want,
		.seed = (uint32_t)cli.seed,
		.epochs = (uint64_t)epochs,
		.batch = (uint64_t)batch,
		.shards = 1,
		.window = WINDOW,
		.lanes = (uint64_t)lanes,
		.balance = !balance               ? NULL
			: strategy->uses & COUNTS ? "gene"
						  : "token"};
	parse_shard(&r->loader, shard_text);
	r->in = r->loader.in = cli_open_all(&cli);
	make_headers(r);
	if (graph_path)
		read_graph(&r->graph, graph_path, &graph_weights[strategy->weight], module, r->in);
	if (audit_path)
		read_graph(&r->audit_graph, audit_path, &graph_weights[GRAPH_RHO], NULL, r->in);
	make_plan(r);
	if (panel)
		read_panel(r);
	must(loader_init(&r->loader, &failure));
	r->masking = (struct masking){.plan = &r->plan,
		.rate = r->rate,
		.lambda = r->lambda,
		.loader = &r->loader,
		.header = &r->header,
		.groups = groups(),
		.audit = audit_path ? &r->audit_graph : NULL,
		.plan_input = r->counted ? &r->input : NULL,
		.threads = (int)cli.threads};
	masking_init(&r->masking);
}

/* ---- the header's key "loader" ---- */

static void describe_input(cJSON *o)
{
	if (objective == VALUE) {
		cJSON_AddStringToObject(o, "field", fields[field]);
		json_add_real(o, "hidden", hidden);
	} else if (unmeasured)
		cJSON_AddStringToObject(o, "unmeasured", unmeasured_words[unmeasured]);
	if (max_len)
		cJSON_AddNumberToObject(o, "max_len", (double)max_len);
	cJSON_AddStringToObject(o, "zeros", zero_kinds[zeros]);
}

/* The files, so that --resume and other ranks see when one of them has changed. */
static void describe_files(cJSON *o, struct stream *in)
{
	cJSON *list = cJSON_AddArrayToObject(o, "files");
	for (size_t i = 0; i < stream_parts(in); i++) {
		struct stream *part = stream_part(in, i);
		char digest[33];
		stream_digest(part, digest);
		cJSON *file = cJSON_CreateObject();
		cJSON_AddNumberToObject(file, "rows", (double)stream_rows(part));
		cJSON_AddStringToObject(file, "digest", digest);
		cJSON_AddItemToArray(list, file);
	}
}

/* The genes themselves: a training that goes on must have the same. */
static void describe_panel(cJSON *o, const struct run *r)
{
	char hex[DIGEST_SIZE];
	if (!panel)
		return;
	digest_bytes(r->plan.column, r->plan.ncolumn * sizeof *r->plan.column, hex);
	cJSON_AddStringToObject(o, "panel", hex);
}

static void maskgen_describe(struct run *r)
{
	const struct loader *l = &r->loader;
	cJSON *extra = r->header.extra;
	cJSON_DeleteItemFromObjectCaseSensitive(extra, "loader");
	cJSON *o = cJSON_AddObjectToObject(extra, "loader");
	cJSON_AddNumberToObject(o, "rows", (double)l->rows);
	describe_files(o, r->in);
	cJSON_AddNumberToObject(o, "epochs", (double)l->epochs);
	cJSON_AddNumberToObject(o, "batch", (double)l->batch);
	cJSON_AddNumberToObject(o, "shards", (double)l->shards);
	cJSON_AddNumberToObject(o, "shard", (double)l->shard);
	cJSON_AddNumberToObject(o, "steps", (double)l->steps);
	cJSON_AddNumberToObject(o, "first_step", (double)l->next);
	cJSON_AddNumberToObject(o, "window", WINDOW);
	if (lanes > 1)
		cJSON_AddNumberToObject(o, "lanes", (double)lanes);
	cJSON_AddNumberToObject(o, "seed", (double)l->seed);
	cJSON_AddStringToObject(o, "strategy", strategy->word);
	if (objective != TOKEN)
		cJSON_AddStringToObject(o, "objective", objective == CELL ? "cell" : "value");
	if (r->counted)
		describe_input(o);
	if (strategy->uses & RATE)
		mask_schedule_json(o, "rate", &r->rate);
	describe_panel(o, r);
	if (strategy->uses & RATE && !(strategy->uses & COUNTS))
		cJSON_AddBoolToObject(o, "bernoulli", bernoulli);
	if (strategy->uses & TARGET)
		cJSON_AddStringToObject(o, "partners", partner_choice == HIDDEN ? "hidden" : "visible");
	if (strategy->uses & LAMBDA)
		mask_schedule_json(o, "lambda", &r->lambda);
	if (strategy->uses & PARTNERS) {
		cJSON_AddNumberToObject(o, "partners_max", (double)partners);
		cJSON_AddStringToObject(o, "partners",
			groups()                             ? "group"
				: module                     ? "module"
				: partner_choice == WEIGHTED ? "weighted"
							     : "uniform");
		if (seed_share < 1)
			cJSON_AddNumberToObject(o, "seed_share", seed_share);
	}
	if (!r->plan.graph)
		return;
	char digest[33];
	graph_digest(r->plan.graph, digest);
	cJSON_AddStringToObject(o, "graph", digest);
}

static void count_classes(struct run *r)
{
	size_t n;
	char **keep = opt_list(keep_text, &n);
	must(masked_count_classes(&r->header, r->in, keep, n, &failure));
	free_list(keep, n);
}

/* Start after the oldest checkpoint, as the trainer may have to go on from it, behind the last step if the model is finished, or at step 0.
 * So the same command starts a run and continues it. */
static void resume_from(struct run *r)
{
	struct train_state state;
	enum train_progress got = checkpoint_progress(&state, resume, NULL, &failure);
	must(got == TRAIN_FAULT);
	if (got == TRAIN_NEW) {
		info("%s has no checkpoint: starting at step 0", resume);
		return;
	}
	char *differ = masked_differences(state.stream, state.digest, &r->header);
	uint64_t step = got == TRAIN_FINISHED ? r->loader.steps : state.step;
	if (differ)
		die("--resume: %s was trained on another stream: %s", resume, differ);
	train_state_release(&state);
	if (step > r->loader.steps)
		die("%s/checkpoint-%llu is past the %llu steps of this stream", resume, (unsigned long long)step,
			(unsigned long long)r->loader.steps);
	info("resuming at step %llu of %llu", (unsigned long long)step, (unsigned long long)r->loader.steps);
	loader_seek(&r->loader, step);
	cJSON *loader = json_get(r->header.extra, "loader");
	cJSON_SetNumberValue(json_get(loader, "first_step"), (double)step);
}

/* ---- the run ---- */

/* Finish the header and, without --audit, start the masked stream. */
static void maskgen_open_output(struct run *r)
{
	cli_provenance(&cli, &r->header, "");
	maskgen_describe(r);
	/* streams of masked tokens have no counts unless asked: the digest of their header identifies a training */
	if (keep_text && (count_kept || objective != TOKEN || !strategy->uses || strategy->uses & COUNTS))
		count_classes(r);
	if (resume)
		resume_from(r);
	if (!audit_path)
		r->out = cli_create(&cli, &r->header, ROWS_UNKNOWN);
}

static void mask_all(struct run *r)
{
	const struct masked_batch *b;
	int got;
	while ((got = masking_next(&r->masking, &b, &failure)) > 0) {
		if (r->out)
			must(stream_write(r->out, &b->block, &failure));
		audit_add(&r->audit, &b->audit);
		r->rows += b->block.rows;
		r->tokens += b->tokens;
		r->masked += b->masked;
		progress("step %llu of %llu%s", (unsigned long long)b->step + 1, (unsigned long long)r->loader.steps,
			time_left((double)(b->step + 1) / (double)r->loader.steps));
	}
	must(got < 0);
}

/* Coverage bias [CorrMask, section 3]: a small file has few genes with partners, and they share the graph's part of the budget. */
static void note_coverage(const struct run *r)
{
	double linked = audit_rate_linked(&r->audit), others = audit_rate_others(&r->audit);
	if (linked > 0.5 && linked > 2 * others && !(strategy->uses & TARGET))
		info("genes with partners are masked %.0f %% of the time, all others %.0f %%: a model seldom sees them", 100 * linked,
			100 * others);
}

static void maskgen_finish(struct run *r)
{
	if (r->out)
		must(stream_commit(r->out, &failure));
	else
		cli_write(cli.output, audit_table(&r->audit));
	note_coverage(r);
	cli_measured_all({"cells", (double)r->rows}, {"steps", (double)r->loader.steps},
		{strategy->uses & COUNTS ? "values" : "tokens", (double)r->tokens}, {"masked", (double)r->masked},
		{"blocks_read", (double)r->loader.decoded});
	cli_report(&cli, "%llu cell%s in %llu step%s, %llu %s, %llu masked (%.2f %%)", (unsigned long long)r->rows, r->rows == 1 ? "" : "s",
		(unsigned long long)r->loader.steps, r->loader.steps == 1 ? "" : "s", (unsigned long long)r->tokens,
		strategy->uses & COUNTS ? "values" : "tokens", (unsigned long long)r->masked,
		r->tokens ? 100 * (double)r->masked / (double)r->tokens : 0);
}

int main(int argc, char **argv)
{
	static struct run r;
	cli_init(&cli, argc, argv);
	maskgen_check_options(&r);
	open_inputs(&r);
	maskgen_open_output(&r);
	mask_all(&r);
	maskgen_finish(&r);
	return 0;
}

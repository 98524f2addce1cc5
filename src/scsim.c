/* scsim: simulated cells with known modules and cell types; the generators of the CorrMask paper's appendix B. */
#include "cli.h"

#include "base/option.h"
#include "base/threads.h"
#include "cells/simulate.h"

enum { MODEL_CELLS, MODEL_B1, MODEL_B2 };
enum { CELLS = 1 << MODEL_CELLS, B1 = 1 << MODEL_B1, B2 = 1 << MODEL_B2 }; /* modes */
enum { EXP_SCALE, EXP_RATE };

static int model, exp_as, random_genes;
static long long ncells = -1, ngenes = -1, nmodules = -1, ntypes = 8, ndonors = 4, targets;
static struct sim sim = {
	.top = 100, .depth = 2000, .rarest = 0.01, .share = 0.5, .separation = 1, .activity = 0.7, .batch = 0.15, .noise = 0.2, .gamma = 1};

static struct option_def options[] = {
	{0, "Size", OPT_GROUP},
	{0, "kind", OPT_CHOICE, &model, OPT_ENUM([MODEL_CELLS] = "cells", [MODEL_B1] = "b1", [MODEL_B2] = "b2"),
		"counts of cells with types (cells, default), or tokens as in the CorrMask paper, appendix B.1 or B.2", .changes = 1,
		.mode = CELLS},
	{'n', "cells", OPT_INT, &ncells, "N", "number of cells (default 4000; b1 1000; b2 1500)", 0, 1e12, .changes = 1},
	{0, "genes", OPT_INT, &ngenes, "N", "number of genes (default 2000; b1 1000; b2 60)", 1, 1e6, .changes = 1},
	{0, "modules", OPT_INT, &nmodules, "N", "number of co-regulated modules (default 40; b1 5; b2 3)", 1, 1e5, .changes = 1},
	{0, "Counts (--kind cells)", OPT_GROUP},
	{0, "types", OPT_INT, &ntypes, "N", "number of cell types (default 8)", 1, 1000, .changes = 1, .modes = CELLS},
	{0, "rarest", OPT_REAL, &sim.rarest, "F", "frequency of the rarest type; the others increase geometrically (default 0.01)", 1e-6, 1,
		.changes = 1, .modes = CELLS},
	{0, "donors", OPT_INT, &ndonors, "N", "number of donors (default 4)", 1, 10000, .changes = 1, .modes = CELLS},
	{0, "depth", OPT_REAL, &sim.depth, "X", "median number of counts per cell (default 2000)", 1, 1e7, .changes = 1, .modes = CELLS},
	{0, "module-share", OPT_REAL, &sim.share, "F", "share of the genes in a module (default 0.5)", 0, 1, .changes = 1, .modes = CELLS},
	{0, "separation", OPT_REAL, &sim.separation, "F", "factor of the differences between cell types (default 1: far apart)", 0, 100,
		.changes = 1, .modes = CELLS},
	{0, "activity", OPT_REAL, &sim.activity, "SD", "standard deviation of a module's activity in a type, natural log (default 0.7)", 0,
		10, .changes = 1, .modes = CELLS},
	{0, "batch-effect", OPT_REAL, &sim.batch, "SD", "standard deviation of a gene's shift between donors, natural log (default 0.15)",
		0, 10, .changes = 1, .modes = CELLS},
	{0, "targets", OPT_INT, &targets, "N", "in half of the cells one gene drives N others (column state; default 0: none does)", 0, 1e6,
		.changes = 1, .modes = CELLS},
	{0, "noise", OPT_REAL, &sim.noise, "SD", "standard deviation of independent noise on every value, natural log (default 0.2)", 0, 10,
		.changes = 1, .modes = CELLS},
	{0, "Tokens (--kind b1, b2)", OPT_GROUP},
	{0, "gamma", OPT_REAL, &sim.gamma, "G", "b2: probability that the active genes are those of a module (default 1)", 0, 1,
		.changes = 1, .modes = B2},
	{0, "random-genes", OPT_CHOICE, &random_genes, OPT_ENUM("sample", "class"),
		"b2: active genes outside modules are drawn for each sample (default), or once for each class", .changes = 1, .modes = B2,
		.needs = "gamma"},
	{0, "exp", OPT_CHOICE, &exp_as, OPT_ENUM([EXP_SCALE] = "scale", [EXP_RATE] = "rate"),
		"b2: read Exp(0.1) as mean 0.1 (scale, default) or as mean 10 (rate)", .changes = 1, .modes = B2},
	{0},
};

static struct cli cli = {.name = "scsim",
	.summary = "Simulate cells with known modules and cell types.",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_SEED | CLI_THREADS};

static char **names(const char *stem, uint32_t n)
{
	char **p = xcalloc(n, sizeof *p);
	for (uint32_t i = 0; i < n; i++)
		p[i] = xasprintf("%s%u", stem, i + 1);
	return p;
}

static void free_names(char **p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(p[i]);
	free(p);
}

/* The symbol of a gene names its module, so every later stream shows it. */
static void push_gene(struct vocab *v, const struct sim *s, uint32_t g)
{
	FREED char *id = xasprintf("SIMG%06u", g + 1);
	int driven = s->driven && s->driven[g] > 0;
	FREED char *symbol = s->module[g] >= 0 ? xasprintf("m%d.%u", s->module[g] + 1, g + 1)
					       : xasprintf("%s.%u",
							 !driven                     ? "bg"
								 : g == s->regulator ? "regulator"
										     : "target",
							 g + 1);
	vocab_push(v, id, symbol, NAN);
}

static void scsim_make_header(struct header *h, const struct sim *s)
{
	header_init(h, model == MODEL_CELLS ? STREAM_COUNTS : STREAM_TOKENS);
	if (model != MODEL_CELLS) {
		vocab_push(&h->vocab, "<pad>", NULL, NAN);
		vocab_push(&h->vocab, "<mask>", NULL, NAN);
	}
	if (model == MODEL_B2)
		vocab_push(&h->vocab, "<cls>", NULL, NAN);
	for (uint32_t g = 0; g < s->genes; g++) {
		if (model == MODEL_B2) {
			FREED char *id = xasprintf("rank%u", g);
			vocab_push(&h->vocab, id, NULL, NAN);
		} else {
			push_gene(&h->vocab, s, g);
		}
	}
	header_add(h, "cell", U64);
	header_add(h, "barcode", STR);
	if (model == MODEL_CELLS) {
		header_add(h, "n_counts", U64);
		char **type = names("type", s->types), **donor = names("donor", s->donors);
		header_add_categorical(h, "cell_type", type, s->types);
		header_add_categorical(h, "donor", donor, s->donors);
		header_add_ragged(h, "gene", id_type(h->vocab.n), "gene");
		header_add_ragged(h, "count", U32, "gene");
		if (s->driven)
			header_add_categorical(h, "state", (char *[]){(char *)"off", (char *)"on"}, 2);
		free_names(type, s->types);
		free_names(donor, s->donors);
	} else {
		char **module = names("module", s->modules);
		header_add_categorical(h, "module", module, s->modules);
		header_add_ragged(h, "token", id_type(h->vocab.n), "token");
		if (model == MODEL_B2)
			header_add_ragged(h, "token_module", I32, "token");
		free_names(module, s->modules);
	}
}

/* One simulated cell; the lists are [genes]. */
struct cell {
	uint32_t n, type, donor, state; /* type: the active module of b1 and b2 */
	uint32_t *gene, *count;
	double *scratch;
};

enum { CHUNK = 64 }; /* cells that the threads simulate before they are written in order */

struct chunk {
	const struct sim *s;
	uint64_t first; /* number of cell[0] */
	struct cell cell[CHUNK];
};

static void simulate(void *arg, size_t i, int thread)
{
	struct chunk *b = arg;
	const struct sim *s = b->s;
	struct cell *c = &b->cell[i];
	uint64_t number = b->first + i;
	c->n = s->genes;
	if (model == MODEL_CELLS)
		c->n = sim_cell(s, number, &c->type, &c->donor, &c->state, c->gene, c->count, c->scratch);
	else if (model == MODEL_B1)
		c->n = sim_b1(s, number, &c->type, c->gene, c->scratch);
	else
		sim_b2(s, number, &c->type, c->gene, c->scratch);
}

/* Append one cell. The columns are in the order of make_header. */
static void append(struct block *b, uint64_t cell, const struct sim *s, const struct cell *m)
{
	size_t row = b->rows, at = row ? block_items(b, 0) : 0;
	char name[32];
	block_set_rows(b, row + 1);
	((uint64_t *)b->col[0].data)[row] = cell;
	block_push_str(b, 1, name, (size_t)snprintf(name, sizeof name, "sim%llu", (unsigned long long)cell + 1));
	if (model == MODEL_CELLS) {
		uint64_t sum = 0;
		block_set_items(b, 0, at + m->n);
		for (uint32_t i = 0; i < m->n; i++) {
			block_set_id(b, 5, at + i, m->gene[i]);
			sum += ((uint32_t *)b->col[6].data)[at + i] = m->count[i];
		}
		((uint64_t *)b->col[2].data)[row] = sum;
		((uint32_t *)b->col[3].data)[row] = m->type;
		((uint32_t *)b->col[4].data)[row] = m->donor;
		if (s->driven)
			((uint32_t *)b->col[7].data)[row] = m->state;
		b->group[0].offset[row + 1] = at + m->n;
		return;
	}
	uint32_t special = model == MODEL_B2 ? 3 : 2, lead = model == MODEL_B2;
	((uint32_t *)b->col[2].data)[row] = m->type;
	block_set_items(b, 0, at + lead + m->n);
	if (lead)
		block_set_id(b, 3, at, 2); /* <cls> */
	for (uint32_t i = 0; i < m->n; i++)
		block_set_id(b, 3, at + lead + i, special + m->gene[i]);
	if (model == MODEL_B2) { /* position is gene */
		int32_t *module = (int32_t *)b->col[4].data + at;
		module[0] = -1;
		memcpy(module + 1, s->module, m->n * sizeof *module);
	}
	b->group[0].offset[row + 1] = at + lead + m->n;
}

static void scsim_init(struct sim *s)
{
	static const long long default_genes[] = {2000, 1000, 60}, default_modules[] = {40, 5, 3};
	s->seed = (uint32_t)cli.seed;
	s->genes = (uint32_t)(ngenes < 0 ? default_genes[model] : ngenes);
	s->modules = (uint32_t)(nmodules < 0 ? default_modules[model] : nmodules);
	s->types = (uint32_t)ntypes;
	s->donors = (uint32_t)ndonors;
	s->targets = (uint32_t)targets;
	s->by_class = model == MODEL_B2 && random_genes;
	s->mean = exp_as == EXP_SCALE ? 0.1 : 10;
	if (model == MODEL_CELLS ? sim_init_cells(s, &failure) : sim_init_blocks(s, &failure))
		usage_error("%s", failure.msg);
}

static struct stream *scsim_open_output(const struct sim *s, uint64_t n)
{
	RELEASED(header_release) struct header h;
	scsim_make_header(&h, s);
	cli_provenance(&cli, &h, "");
	return cli_create(&cli, &h, n);
}

/* Write cells 0 ... n - 1. Returns the total number of genes (cells) or tokens (b1, b2). */
static uint64_t write_cells(struct stream *out, const struct sim *s, uint64_t n)
{
	RELEASED(block_release) struct block block = {0};
	struct chunk b = {.s = s};
	uint64_t entries = 0;
	block_reset(&block, stream_header(out));
	for (int i = 0; i < CHUNK; i++)
		b.cell[i] = (struct cell){.gene = xcalloc(s->genes, 4), .count = xcalloc(s->genes, 4), .scratch = xcalloc(s->genes, 8)};
	for (; b.first < n; b.first += CHUNK) {
		size_t k = n - b.first < CHUNK ? (size_t)(n - b.first) : CHUNK;
		pool_for((int)cli.threads, k, simulate, &b);
		for (size_t i = 0; i < k; i++) {
			append(&block, b.first + i, s, &b.cell[i]);
			entries += b.cell[i].n;
			if (block_full(&block))
				must_flush(out, &block);
		}
		progress("%llu of %llu cells%s", (unsigned long long)(b.first + k), (unsigned long long)n,
			time_left((double)(b.first + k) / (double)n));
	}
	must_flush(out, &block);
	for (int i = 0; i < CHUNK; i++)
		free_all(b.cell[i].gene, b.cell[i].count, b.cell[i].scratch);
	return entries;
}

int main(int argc, char **argv)
{
	static const long long default_cells[] = {4000, 1000, 1500};
	cli_init(&cli, argc, argv);
	scsim_init(&sim);
	uint64_t n = (uint64_t)(ncells < 0 ? default_cells[model] : ncells);
	struct stream *out = scsim_open_output(&sim, n);
	uint64_t entries = write_cells(out, &sim, n);
	must_commit(out);
	cli_measured_all({"cells_out", (double)n}, {"entries", (double)entries});
	cli_report(&cli, "%llu cells, %.0f %s a cell", (unsigned long long)n, n ? (double)entries / (double)n : 0,
		model == MODEL_CELLS ? "genes" : "tokens");
	return 0;
}

/*
 * scmetric reconstruction: compare expected and true counts of masked genes. For each cell, the correlation of
 *     log(1 + 10^4 expected / library)   and   log(1 + 10^4 count / library)
 * over its masked genes [R2MAE's reconstruction of log-normalised expression].
 */
#include "scmetric.h"
#include "cli.h"

#include "eval/correlation.h"

struct cli reconstruction_cli = {.name = "scmetric reconstruction",
	.operands = "[FILE]",
	.common = CLI_OUT,
	.summary = "Score predictions of the counts of masked genes."};

/* Mean and standard deviation of a score over cells. */
struct mean {
	double sum, square;
	uint64_t n;
};

static void mean_add(struct mean *m, double v)
{
	if (isnan(v))
		return;
	m->sum += v;
	m->square += v * v;
	m->n++;
}

static void mean_report(struct results *to, const struct mean *m, const char *key)
{
	double n = (double)m->n, mean = m->n ? m->sum / n : NAN;
	FREED char *sd = xasprintf("%s_sd", key);
	results_add_all(to, {key, mean}, {sd, m->n > 1 ? sqrt(fmax(0, (m->square - n * mean * mean) / (n - 1))) : NAN});
}

struct scores {
	struct mean pearson, spearman;
	uint64_t cells, undefined, genes;
	double *x, *y; /* log-normalised values of a cell: expected, true */
	size_t x_cap, y_cap;
};

struct columns {
	int cell, library, count, expected, group;
};

static void reconstruction_find_columns(struct columns *c, const struct stream *in)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	must_kind(in, STREAM_PREDICTION);
	if (header_find(h, "expected") < 0 || header_find(h, "library") < 0)
		die("%s: not predictions of counts (no columns 'expected' and 'library')", name);
	*c = (struct columns){.cell = must_column(in, "cell", U64, SCALAR),
		.library = must_column(in, "library", U64, SCALAR),
		.count = must_column(in, "count", U32, RAGGED),
		.expected = must_column(in, "expected", F32, RAGGED)};
	c->group = h->col[c->count].group;
	if (h->col[c->expected].group != c->group || h->col[c->count].type != U32)
		die("%s: columns count and expected do not have the layout of predictions of counts", name);
}

static void score_cell(struct scores *s, const struct columns *c, const struct block *b, size_t i, const char *name)
{
	uint64_t cell = ((const uint64_t *)b->col[c->cell].data)[i], library = ((const uint64_t *)b->col[c->library].data)[i];
	uint64_t from = b->group[c->group].offset[i], n = b->group[c->group].offset[i + 1] - from;
	const uint32_t *count = (const uint32_t *)b->col[c->count].data + from;
	const float *expected = (const float *)b->col[c->expected].data + from;
	s->cells++;
	s->genes += n;
	grow(s->x, s->x_cap, n);
	grow(s->y, s->y_cap, n);
	for (size_t g = 0; g < n; g++) {
		if (!(expected[g] >= 0 && isfinite(expected[g])) || count[g] > library)
			die("%s: cell %" PRIu64 ": expected count %g and count %" PRIu32 " of library %" PRIu64, name, cell,
				(double)expected[g], count[g], library);
		s->x[g] = log1p(1e4 * (double)expected[g] / (double)library);
		s->y[g] = log1p(1e4 * (double)count[g] / (double)library);
	}
	double r = library ? correlation_pearson(s->x, s->y, n) : NAN;
	s->undefined += isnan(r);
	mean_add(&s->pearson, r);
	mean_add(&s->spearman, isnan(r) ? r : correlation_spearman(s->x, s->y, n));
}

int scmetric_reconstruction(int argc, char **argv)
{
	static struct scores s;
	struct columns c;
	RELEASED(block_release) struct block b = {0};
	cli_init(&reconstruction_cli, argc, argv);
	RELEASED(stream_free_at) struct stream *in = cli_open(&reconstruction_cli, 0);
	const char *name = stream_name(in);
	reconstruction_find_columns(&c, in);
	while (must_read(in, &b)) {
		for (size_t i = 0; i < b.rows; i++)
			score_cell(&s, &c, &b, i, name);
		progress_cells(s.cells, stream_expected(in));
	}
	if (s.cells == s.undefined)
		die("%s: no cell to score among %" PRIu64 ": true or expected counts of the masked genes are all the same", name, s.cells);
	struct results *to = results_new();
	mean_report(to, &s.pearson, "pearson");
	mean_report(to, &s.spearman, "spearman");
	results_add_all(to, {"cells", (double)s.cells}, {"undefined", (double)s.undefined}, {"genes", (double)s.genes});
	cli_write_results(&reconstruction_cli, to);
	cli_measured_all({"cells", (double)s.cells}, {"cells_without_correlation", (double)s.undefined}, {"masked_genes", (double)s.genes});
	cli_report(&reconstruction_cli, "%" PRIu64 " cells, %" PRIu64 " of them without a correlation, %" PRIu64 " masked genes", s.cells,
		s.undefined, s.genes);
	return 0;
}

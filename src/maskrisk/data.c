/* maskrisk data: the masking ratio that theory suggests for the genes of given cells. */
#include "maskrisk.h"
#include "cli_blas.h"

#include "risk/risk_cells.h"
#include "risk/risk_genes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 0.95 /* share of the gain that a ratio of the flat range keeps */

static long long ngenes = 1000, rows = -1;
static const char *rates_text = DEFAULT_RATES, *table_path;

static struct option_def options[] = {
	{0, "genes", OPT_INT, &ngenes, "N", "use the N most highly expressed genes (default 1000)", 3, 5000},
	{0, "rows", OPT_INT, &rows, "N", "number of cells that the model will be trained on (default: those of the input)", 2, 1e9},
	{0, "rates", OPT_STRING, &rates_text, "LIST", "masking rates, A:B:STEP or A,B,... (default " DEFAULT_RATES ")"},
	{0, "gene-table", OPT_OUTPUT, &table_path, "FILE", "also write a table of the genes"},
	{0},
};

struct cli data_cli = {.name = "maskrisk data",
	.operands = "[FILE]",
	.summary = "The masking rate that theory suggests for each gene of your cells.",
	.options = options,
	.common = CLI_OUT | CLI_THREADS};

/* The best ratio of every gene, and the mean over the genes by ratio. */
struct summary {
	uint32_t *best; /* [p] index of the ratio */
	double *risk; /* [nrate] mean over the genes */
	double null; /* mean risk of predicting the mean of the gene */
	size_t lowest; /* index of the ratio with the lowest mean risk */
	size_t from, to; /* indices of the flat range around it */
	uint32_t pays; /* genes for which some ratio is better than predicting the mean */
	double *best_paying; /* [pays] their best ratios, ascending */
};

static int pays(const struct risk_genes *g, const struct summary *s, uint32_t gene)
{
	return g->risk[(size_t)s->best[gene] * g->p + gene] < g->explained[gene];
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void summarise(struct summary *s, const struct risk_genes *g)
{
	*s = (struct summary){.best = xcalloc(g->p, sizeof *s->best), .risk = xcalloc(g->nrate, sizeof *s->risk)};
	s->best_paying = xcalloc(g->p, sizeof *s->best_paying);
	for (uint32_t i = 0; i < g->p; i++) {
		for (uint32_t k = 0; k < g->nrate; k++)
			if (g->risk[(size_t)k * g->p + i] < g->risk[(size_t)s->best[i] * g->p + i])
				s->best[i] = k;
		s->null += g->explained[i] / g->p;
		if (pays(g, s, i))
			s->best_paying[s->pays++] = g->rate[s->best[i]];
	}
	qsort(s->best_paying, s->pays, sizeof *s->best_paying, ascending);
	for (size_t k = 0; k < g->nrate; k++) {
		for (uint32_t i = 0; i < g->p; i++)
			s->risk[k] += g->risk[k * g->p + i] / g->p;
		if (s->risk[k] < s->risk[s->lowest])
			s->lowest = k;
	}
	double enough = s->null - KEPT * (s->null - s->risk[s->lowest]);
	for (s->from = s->lowest; s->from > 0 && s->risk[s->from - 1] <= enough;)
		s->from--;
	for (s->to = s->lowest; s->to + 1 < g->nrate && s->risk[s->to + 1] <= enough;)
		s->to++;
}

static void print_summary(const struct summary *s, const struct risk_genes *g, uint64_t cells)
{
	static const struct {
		const char *name;
		double at;
	} quantile[] = {{"q05", 0.05}, {"q25", 0.25}, {"median", 0.5}, {"q75", 0.75}, {"q95", 0.95}};
	struct text t;
	int gain = s->risk[s->lowest] < s->null;
	text_start(&t);
	fprintf(t.f, "metric\tvalue\ncells\t%" PRIu64 "\ngenes\t%u\nrows\t%.9g\n", cells, g->p, g->rows);
	fprintf(t.f, "ratio\t%.9g\nrisk\t%.6g\nnull\t%.6g\n", gain ? g->rate[s->lowest] : 0, gain ? s->risk[s->lowest] : s->null, s->null);
	fprintf(t.f, "flat_from\t%.9g\nflat_to\t%.9g\n", gain ? g->rate[s->from] : 0, gain ? g->rate[s->to] : 0);
	fprintf(t.f, "pays\t%.6g\n", (double)s->pays / g->p);
	for (int i = 0; i < 5 && s->pays; i++)
		fprintf(t.f, "best_%s\t%.9g\n", quantile[i].name, s->best_paying[(size_t)(quantile[i].at * (s->pays - 1) + 0.5)]);
	for (size_t k = 0; k < g->nrate; k++)
		fprintf(t.f, "risk:%.9g\t%.6g\n", g->rate[k], s->risk[k]);
	text_write(&t, data_cli.output);
}

static void print_genes(const struct summary *s, const struct risk_genes *g, const uint32_t *gene, const struct vocab *v)
{
	struct text t;
	text_start(&t);
	fprintf(t.f, "gene_id\tsymbol\tvariance\texplained\tbest_ratio\trisk\n");
	for (uint32_t i = 0; i < g->p; i++) {
		int use = pays(g, s, i);
		fprintf(t.f, "%s\t%s\t%.6g\t%.6g\t%.9g\t%.6g\n", v->id[gene[i]], v->symbol[gene[i]], g->sigma[(size_t)i * g->p + i],
			g->explained[i], use ? g->rate[s->best[i]] : 0, use ? g->risk[(size_t)s->best[i] * g->p + i] : g->explained[i]);
	}
	text_write(&t, table_path);
}

static void say_suggestion(const struct summary *s, const struct risk_genes *g)
{
	if (s->risk[s->lowest] < s->null)
		info("%.0f rows, %u genes: theory suggests a masking rate of %.9g; from %.9g to %.9g, at least %.0f %% of the gain over predicting "
		     "the mean is kept",
			g->rows, g->p, g->rate[s->lowest], g->rate[s->from], g->rate[s->to], 100 * KEPT);
	else
		info("%.0f rows, %u genes: by theory no masking rate is better than predicting the mean", g->rows, g->p);
	info("this is for linear regression of each gene on the others, without regularisation and without sharing between genes; a deep "
	     "network can differ");
}

/* Read the cells; their covariance. *n genes, gene [*n]. */
static double *covariance(struct stream *in, uint32_t **gene, uint32_t *n, uint64_t *cells)
{
	struct error e;
	struct risk_cells c = {0};
	double *sigma;
	must(risk_cells_read(&c, in, &e), &e);
	if (!c.n)
		die("%s: no cells", stream_name(in));
	cli_blas(&data_cli);
	risk_cells_covariance(&c, stream_header(in)->vocab.n, (uint32_t)ngenes, gene, n, &sigma);
	*cells = c.n;
	risk_cells_release(&c);
	if (*n < 3)
		die("%s: %u genes whose values differ between cells, expected at least 3", stream_name(in), *n);
	if (*cells <= *n)
		die("%s: %" PRIu64 " cells for %u genes: their covariance is not positive definite; choose fewer genes (--genes)",
			stream_name(in), *cells, *n);
	if (*cells < 10 * (uint64_t)*n)
		warn("%s: only %" PRIu64 " cells for %u genes: genes seem to explain each other better than they do", stream_name(in),
			*cells, *n);
	return sigma;
}

int maskrisk_data(int argc, char **argv)
{
	struct error e;
	struct risk_genes g = {0};
	struct summary s;
	uint32_t *gene;
	uint64_t cells;
	cli_init(&data_cli, argc, argv);
	if (data_cli.noperand > 1)
		usage_error("one input, not %d (scsample joins streams)", data_cli.noperand);
	struct ratio *ratio = parse_rates(rates_text, &g.nrate);
	struct stream *in = cli_open(&data_cli, 0);
	double *rate = xcalloc(g.nrate, sizeof *rate), *sigma = covariance(in, &gene, &g.p, &cells);
	for (size_t k = 0; k < g.nrate; k++)
		rate[k] = ratio[k].lo;
	g.rate = rate;
	g.sigma = sigma;
	g.rows = rows > 0 ? (double)rows : (double)cells;
	g.threads = (int)data_cli.threads;
	if (risk_genes_run(&g, &e))
		die("%s: %s", stream_name(in), e.msg);
	summarise(&s, &g);
	if (table_path)
		print_genes(&s, &g, gene, &stream_header(in)->vocab);
	print_summary(&s, &g, cells);
	say_suggestion(&s, &g);
	cli_measured("cells", (double)cells);
	cli_measured("genes", (double)g.p);
	cli_measured("rates", (double)g.nrate);
	cli_report(&data_cli, "%" PRIu64 " cells, %u genes, %zu rate%s", cells, g.p, g.nrate, g.nrate == 1 ? "" : "s");
	stream_free(in);
	risk_genes_release(&g);
	free(s.best);
	free(s.risk);
	free(s.best_paying);
	free(rate);
	free(sigma);
	free(ratio);
	free(gene);
	return 0;
}

/*
 * scmetric integration: how well embeddings keep cell types apart and batches together, as scib-metrics, scIB [Luecken et al. 2022] and BMFM-RNA
 * score it.
 */
#include "scmetric.h"
#include "cli.h"
#include "integration.h"
#include "cli_labels.h"
#include "cli_sandbox.h"

#include "base/option.h"
#include "base/tsv.h"

#include <errno.h>
#include <sys/stat.h>

enum { LEAST_CELLS = 15, TEXT = 32 };
#define LEAST_PCR 1e-12 /* less is rounding */
enum { SCIB_METRICS = 1, SCIB = 2, BMFM = 4 };
enum { BIO, BATCH, NEITHER };

static const struct preset {
	const char *word;
	int bit; /* in the rows of the table */
	const char *total[3]; /* of BIO, BATCH, both */
	size_t components; /* of PCR, or as many as there are; 0: all */
} presets[] = {
	{"scib-metrics", SCIB_METRICS, {"bio_conservation", "batch_correction", "total"}},
	{"scib", SCIB, {"bio_conservation", "batch_correction", "total"}, 50},
	{"bmfm", BMFM, {"avg_bio_swept", "avg_batch", "score_swept"}, 50},
};

/* The rows of the table: in which presets, and in which mean. Those of no mean are printed below the means. */
static const struct row {
	enum integration_metric metric;
	const char *name;
	int mean, presets;
} rows[] = {
	{ISOLATED_LABELS, "isolated_labels", BIO, SCIB_METRICS | SCIB},
	{LEIDEN_NMI, "leiden_nmi", BIO, SCIB | BMFM},
	{LEIDEN_ARI, "leiden_ari", BIO, SCIB | BMFM},
	{KMEANS_NMI, "kmeans_nmi", BIO, SCIB_METRICS},
	{KMEANS_ARI, "kmeans_ari", BIO, SCIB_METRICS},
	{SILHOUETTE_LABEL, "silhouette_label", BIO, SCIB_METRICS | SCIB | BMFM},
	{CLISI, "clisi", BIO, SCIB_METRICS | SCIB},
	{BRAS, "bras", BATCH, SCIB_METRICS},
	{SILHOUETTE_BATCH, "silhouette_batch", BATCH, SCIB | BMFM},
	{ILISI, "ilisi", BATCH, SCIB_METRICS | SCIB},
	{KBET_PER_LABEL, "kbet_per_label", BATCH, SCIB_METRICS | SCIB},
	{CONNECTIVITY, "graph_connectivity", BATCH, SCIB_METRICS},
	{CONNECTIVITY_UMAP, "graph_connectivity", BATCH, SCIB | BMFM},
	{PCR_COMPARISON, "pcr_comparison", BATCH, SCIB_METRICS | SCIB},
	{SILHOUETTE_BATCH, "silhouette_batch", NEITHER, SCIB_METRICS},
	{SBEE, "sbee", NEITHER, SCIB_METRICS},
	{KBET, "kbet", NEITHER, SCIB_METRICS},
	{PCR, "pcr", NEITHER, SCIB_METRICS | SCIB},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *label, *batch, *keys;
static int preset, centred;
static long long exact = 30000;

static struct option_def options[] = {
	{'l', "label", OPT_STRING, &label, "COL", "the column of cell types", .changes = 1},
	{'b', "batch-key", OPT_STRING, &batch, "COL", "the column of batches (without it: no metrics of batches)", .changes = 1},
	{KEEP_UNKNOWN_LABELS},
	{0, "embedding", OPT_STRING, &keys, "KEY,...", "of an AnnData file, arrays of obsm; the first is before integration", .changes = 1},
	{0, "centred", OPT_FLAG, &centred, NULL, "also score embeddings minus the mean of the batch", .needs = "batch-key", .changes = 1},
	{0, "preset", OPT_CHOICE, &preset, OPT_WORDS(presets), "metrics and their means (default scib-metrics)", .changes = 1},
	{0, "exact-cells", OPT_INT, &exact, "N", "with more than N cells: approximate neighbours, random cells (default 30000)", 1,
		UINT32_MAX, .changes = 1},
	{0},
};
struct cli integration_cli = {.name = "scmetric integration",
	.operands = "[FILE...]",
	.options = options,
	.common = CLI_OUT | CLI_SEED | CLI_THREADS,
	.features = "igraph, LAPACK",
	.summary = "Score how well embeddings keep cell types apart and batches together (scIB)."};

static int shown(const struct row *r)
{
	return r->presets & presets[preset].bit;
}

/* ---- input ---- */

static void read_sets(struct integration_sets *s)
{
	const struct cli *c = &integration_cli;
	const char *path = c->noperand ? c->operand[0] : "-";
	if (!label)
		usage_error("name the column of cell types: --label COL");
	if (keys && c->noperand != 1)
		usage_error("--embedding is for one AnnData file, .h5ad or .zarr");
	if (!keys && integration_is_anndata(path))
		usage_error("%s: an AnnData file: name its embeddings, as in --embedding X_pca", path);
	struct stat st;
	for (int i = 0; i < c->noperand; i++)
		if (strcmp(c->operand[i], "-") && stat(c->operand[i], &st))
			die("%s: %s: expected %s", c->operand[i], strerror(errno),
				keys ? "an AnnData file, .h5ad or .zarr" : "a stream of embeddings");
	if (keys) {
		sandbox_start(&integration_cli, 0);
		integration_anndata(s, path, keys, label, batch, (int)c->threads);
	} else {
		integration_streams(s, c, label, batch);
	}
	classes_settle(&s->types, (uint32_t *[]){s->y}, (size_t[]){s->cells}, 1);
	if (batch)
		classes_settle(&s->batches, (uint32_t *[]){s->batch}, (size_t[]){s->cells}, 1);
}

static void check_sets(const struct integration_sets *s, const char *name)
{
	size_t n = s->cells;
	if (n < LEAST_CELLS)
		die("%s: %zu labelled %s: expected at least %d, as the graph joins a cell with %d others", name, n,
			n == 1 ? "cell" : "cells", LEAST_CELLS, LEAST_CELLS - 1);
	for (size_t t = 0; t < s->n; t++) {
		const struct integration_set *set = &s->set[t];
		size_t same = 1;
		while (same < n && !memcmp(set->x + same * set->d, set->x, set->d * sizeof *set->x))
			same++;
		if (same == n)
			die("%s: the embeddings of all %zu cells are equal: there is nothing to cluster", set->name, n);
	}
	if (s->types.n < 2)
		die("%s: all %zu labelled cells are '%s' in column '%s': expected at least two cell types", name, n, s->types.name[0],
			label);
	if (s->types.n == n)
		die("%s: each of the %zu cells has its own value in column '%s': expected cell types", name, n, label);
	if (s->batches.n == n)
		die("%s: each of the %zu cells has its own value in column '%s': expected batches of several cells", name, n, batch);
}

/* Each embedding minus the mean of the cells' batch: what a method of integration must beat. */
static void add_centred(struct integration_sets *s)
{
	size_t n = s->cells, before = s->n;
	FREED double *size = xcalloc(s->batches.n, sizeof *size);
	for (size_t i = 0; i < n; i++)
		size[s->batch[i]]++;
	for (size_t t = 0; t < before; t++) {
		size_t d = s->set[t].d;
		struct integration_set *to = integration_new_set(s, xasprintf("%s_centred", s->set[t].name));
		const float *x = s->set[t].x;
		FREED double *mean = xcalloc(s->batches.n * d, sizeof *mean);
		*to = (struct integration_set){to->name, xlarge(n * d, sizeof *to->x), d};
		for (size_t i = 0; i < n * d; i++)
			mean[s->batch[i / d] * d + i % d] += (double)x[i] / size[s->batch[i / d]];
		for (size_t i = 0; i < n * d; i++)
			to->x[i] = (float)((double)x[i] - mean[s->batch[i / d] * d + i % d]);
	}
}

/* ---- scores ---- */

/* Of one of n embeddings, with the share of the variance between the batches in the first one. */
static void compare_pcr(struct integration_scores *s, double before, size_t n)
{
	if (n > 1 && before > LEAST_PCR)
		s->value[PCR_COMPARISON] = fmax(1 - s->value[PCR] / before, 0);
	else if (!isnan(before))
		s->why[PCR_COMPARISON] = n < 2 ? "no second embedding" : "the batches of the first embedding have equal means";
}

static struct integration_scores *score_sets(const struct integration_sets *s)
{
	struct integration_scores *of = xcalloc(s->n, sizeof *of);
	struct integration_cells c = {s->cells, s->types.n, s->batches.n, s->y, s->batches.n > 1 ? s->batch : NULL,
		(int)integration_cli.threads, (uint32_t)integration_cli.seed, presets[preset].components, (size_t)exact, progress,
		cli_library};
	uint8_t wanted[INTEGRATION_METRICS] = {0};
	for (int r = 0; r < ROWS; r++)
		wanted[rows[r].metric] |= shown(&rows[r]) != 0;
	for (size_t t = 0; t < s->n; t++) {
		double before = of[0].value[PCR];
		must(integration_score(&of[t], &c, s->set[t].x, s->set[t].d, wanted, &failure));
		compare_pcr(&of[t], t ? before : of[0].value[PCR], s->n);
	}
	return of;
}

/* A metric of cell types that some embedding lacks, as without batches, is left out of their mean; a mean of batches needs all of its metrics. */
static int left_out(const struct row *r, const struct integration_scores *of, size_t n)
{
	int lacks = 0;
	for (size_t t = 0; t < n; t++)
		lacks |= isnan(of[t].value[r->metric]);
	return r->mean == BIO && lacks;
}

/* The means of the metrics of embedding t of n, and the least that they can be. */
static void means(const struct integration_scores *of, size_t t, size_t n, double mean[3], double low[3])
{
	double sum[3] = {0}, lows[3] = {0}, metrics[3] = {0};
	for (int r = 0; r < ROWS; r++)
		if (shown(&rows[r]) && !left_out(&rows[r], of, n)) {
			sum[rows[r].mean] += of[t].value[rows[r].metric];
			lows[rows[r].mean] += integration_kind[rows[r].metric].low;
			metrics[rows[r].mean]++;
		}
	for (int m = BIO; m <= BATCH; m++) {
		mean[m] = sum[m] / metrics[m];
		low[m] = metrics[m] > 0 ? lows[m] / metrics[m] : 0;
	}
	mean[2] = 0.6 * mean[BIO] + 0.4 * mean[BATCH];
	low[2] = 0.6 * low[BIO] + 0.4 * low[BATCH];
}

/* Of mean m; malloced */
static char *note_of_mean(const struct integration_scores *of, size_t n, int m, int known)
{
	if (!known)
		return xstrdup(m == 2 ? "one of the means is NA" : "a metric is NA");
	char *note = xstrdup(m == 2 ? "0.6 bio + 0.4 batch" : "mean");
	for (int r = 0, some = 0; r < ROWS && m == BIO; r++)
		if (shown(&rows[r]) && left_out(&rows[r], of, n))
			xappend(&note, "%s%s", some++ ? ", " : " without ", rows[r].name);
	return note;
}

/* ---- the table ---- */

static void add_value(struct record *to, const char *column, double v)
{
	char text[TEXT];
	snprintf(text, sizeof text, "%.6f", v);
	record_text(to, column, isnan(v) ? NULL : text);
}

static void integration_add_row(struct record *to, const struct integration_sets *s, const char *name, const double *value,
	const struct integration_kind *kind, const char *note)
{
	record_text(to, "metric", name);
	for (size_t t = 0; t < s->n; t++)
		add_value(to, s->set[t].name, value[t]);
	FREED char *range = xasprintf("%.2g to 1", kind->low);
	record_text(to, "range", range);
	record_text(to, "better", kind->lower ? "lower" : "higher");
	record_text(to, "note", note ? note : "");
	record_end(to);
}

/* All digits, and the values of the cell types, are for --report. */
static void report(const struct integration_set *set, const struct row *r, const struct integration_scores *s, const struct classes *types)
{
	FREED char *key = tsv_escaped(set->name), *name = xasprintf("%s:%s", key, r->name);
	const double *class = s->class[r->metric];
	cli_measured(name, s->value[r->metric]);
	for (size_t t = 0; class && t < types->n; t++) {
		FREED char *type = tsv_escaped(types->name[t]), *of = xasprintf("%s:%s", name, type);
		cli_measured(of, class[t]);
	}
}

static void add_means(struct record *to, const struct integration_sets *s, const struct integration_scores *of, double *value)
{
	for (int m = 0; m < 3; m++) {
		int known = 1;
		double mean[3], low[3] = {0};
		for (size_t t = 0; t < s->n; t++) {
			means(of, t, s->n, mean, low);
			value[t] = mean[m];
			known &= !isnan(mean[m]);
			FREED char *key = tsv_escaped(s->set[t].name), *name = xasprintf("%s:%s", key, presets[preset].total[m]);
			cli_measured(name, mean[m]);
		}
		FREED char *note = note_of_mean(of, s->n, m, known);
		integration_add_row(to, s, presets[preset].total[m], value, &(struct integration_kind){.low = low[m]}, note);
	}
}

/* Why a metric is NA, or of what its value is. malloced; NULL: all cells and their exact neighbours */
static char *note_of(const struct integration_sets *s, const struct integration_scores *of, const struct row *r)
{
	double recall = 1;
	for (size_t t = 0; t < s->n; t++) {
		if (of[t].why[r->metric])
			return xstrdup(of[t].why[r->metric]);
		recall = fmin(recall, of[t].recall);
	}
	if (of[0].cells[r->metric])
		return xasprintf("of %zu cells", of[0].cells[r->metric]);
	return s->cells > (size_t)exact && integration_kind[r->metric].from_neighbours
		? xasprintf("%.1f %% of the neighbours", 100 * recall)
		: NULL;
}

static void add_metric(
	struct record *to, const struct integration_sets *s, const struct integration_scores *of, const struct row *r, double *value)
{
	for (size_t t = 0; t < s->n; t++) {
		value[t] = of[t].value[r->metric];
		report(&s->set[t], r, &of[t], &s->types);
	}
	FREED char *note = note_of(s, of, r);
	integration_add_row(to, s, r->name, value, &integration_kind[r->metric], note);
}

static void print_scores(const struct integration_sets *s, const struct integration_scores *of)
{
	struct record to;
	FREED double *value = xmalloc(s->n * sizeof *value);
	record_open(&to);
	for (const struct row *r = rows; r < rows + ROWS; r++)
		if (shown(r) && r->mean != NEITHER)
			add_metric(&to, s, of, r, value);
	add_means(&to, s, of, value);
	for (const struct row *r = rows; r < rows + ROWS; r++)
		if (shown(r) && r->mean == NEITHER)
			add_metric(&to, s, of, r, value);
	cli_write_table(&integration_cli, record_print(&to));
}

int scmetric_integration(int argc, char **argv)
{
	static struct integration_sets s;
	cli_init(&integration_cli, argc, argv);
	read_sets(&s);
	cli_blas(&integration_cli);
	if (centred)
		add_centred(&s);
	check_sets(&s, integration_cli.noperand ? integration_cli.operand[0] : "standard input");
	const struct integration_scores *of = score_sets(&s);
	print_scores(&s, of);
	cli_measured("cells", (double)s.cells);
	for (size_t t = 0; t < s.n; t++) {
		FREED char *key = tsv_escaped(s.set[t].name), *name = xasprintf("%s:recall", key);
		cli_measured(name, of[t].recall);
	}
	cli_measured_all({"unlabelled", (double)s.unlabelled}, {"classes", (double)s.types.n}, {"batches", (double)s.batches.n});
	cli_report(&integration_cli, "%zu cells, %zu cell types, %zu batches, %zu embeddings", s.cells, s.types.n, s.batches.n, s.n);
	return 0;
}

/*
 * scmetric integration: how well embeddings keep cell types apart and batches together, by the metrics of scIB [Luecken et al. 2022]. All
 * start from one exact search of nearest neighbours.
 */
#include "scmetric.h"
#include "cli_embeddings.h"

#include "eval/bootstrap.h"
#include "eval/mixing.h"
#include "eval/neighbours.h"
#include "eval/pcr.h"
#include "eval/silhouette.h"
#include "eval/umap.h"
#include "network/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Neighbours, the cell itself counted, and components: those of scIB and scib-metrics. */
enum { GRAPH = 15, LISI = 90, KBET = 50, COMPONENTS = 50 };

enum { RESOLUTIONS = 10, ONE = 4 }; /* 0.2, 0.4, ... 2.0; the fifth is 1 */

static struct error e;
static const char *label, *batch, *clusters;
static long long runs = 3;

static struct option_def options[] = {
	{'l', "label", OPT_STRING, &label, "COL", "the column of cell types", .changes = 1},
	{'b', "batch", OPT_STRING, &batch, "COL", "the column of batches (without it: no metrics of batches)", .changes = 1},
	{0, "clusters", OPT_STRING, &clusters, "COL", "a column of clusters, instead of Leiden's", .changes = 1, .excludes = "runs"},
	{0, "runs", OPT_INT, &runs, "N", "runs of Leiden, each with its own seed (default 3)", 1, 100, .changes = 1},
	{0},
};
struct cli integration_cli = {.name = "scmetric integration",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_OUT | CLI_SEED | CLI_THREADS,
	.features = "igraph, LAPACK",
	.summary = "Score how well embeddings keep cell types apart and batches together (scIB)."};

struct scores {
	double *label_width, *batch_width, *connected, *cells; /* [k] of each cell type */
	double nmi, ari; /* of the clusters */
	double asw_label, asw_batch, connectivity;
	double ilisi, clisi, kbet, pcr;
	double nmi_run[100], ari_run[100], best[100], nmi_one[100], ari_one[100], modularity; /* of each run of Leiden */
};

static double mean_of(const double *v, size_t n)
{
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i])) {
			sum += v[i];
			known++;
		}
	return known ? sum / (double)known : NAN;
}

/* ---- widths ---- */

/* The mean widths of each cell type, and of them the scores. */
static void score_widths(struct scores *s, const struct embeddings *d, size_t k)
{
	double *by_label = xmalloc(d->n * sizeof *by_label), *by_batch = xmalloc(d->n * sizeof *by_batch);
	progress("distances of %zu cells", d->n);
	silhouettes(d->x, d->n, d->d, d->y, d->group, (int)integration_cli.threads, by_label, by_batch);
	s->asw_label = (1 + mean_of(by_label, d->n)) / 2;
	for (size_t i = 0; i < d->n; i++) {
		s->label_width[d->y[i]] += (1 + by_label[i]) / 2;
		s->batch_width[d->y[i]] += d->group ? 1 - fabs(by_batch[i]) : NAN;
		s->cells[d->y[i]]++;
	}
	for (size_t c = 0; c < k; c++) {
		s->label_width[c] /= s->cells[c];
		s->batch_width[c] /= s->cells[c];
	}
	s->asw_batch = mean_of(s->batch_width, k);
	free(by_label);
	free(by_batch);
}

/* ---- graph ---- */

/* The share of each cell type in the largest component of its own graph. */
static void score_connectivity(struct scores *s, const struct network *g, const struct embeddings *d, size_t k)
{
	struct network part = {.end = xmalloc(2 * g->m * sizeof *part.end)};
	uint32_t *number = xmalloc(d->n * sizeof *number);
	for (size_t c = 0; c < k; c++) {
		uint64_t components, largest;
		part.n = 0;
		part.m = 0;
		for (size_t i = 0; i < d->n; i++)
			number[i] = d->y[i] == c ? part.n++ : UINT32_MAX;
		for (size_t i = 0; i < g->m; i++) {
			uint32_t a = number[g->end[2 * i]], b = number[g->end[2 * i + 1]];
			if (a == UINT32_MAX || b == UINT32_MAX)
				continue;
			part.end[2 * part.m] = a;
			part.end[2 * part.m++ + 1] = b;
		}
		must(network_components(&part, &components, &largest, &e), &e);
		s->connected[c] = (double)largest / part.n;
	}
	s->connectivity = mean_of(s->connected, k);
	free(number);
	free(part.end);
}

/* One run of Leiden at all resolutions: the best NMI, the ARI of the same clusters, their resolution, and both at resolution 1. */
static void run_leiden(struct scores *s, const struct network *g, const double *weight, const struct embeddings *d, size_t run)
{
	uint32_t *member = xmalloc(d->n * sizeof *member), seed = (uint32_t)integration_cli.seed + (uint32_t)run;
	s->nmi_run[run] = -1;
	for (int i = 0; i < RESOLUTIONS; i++) {
		double resolution = (i + 1) / 5.0, nmi, ari;
		progress("run %zu of %lld of Leiden: resolution %.1f", run + 1, runs, resolution);
		if (network_leiden(g, weight, resolution, seed, member, &e) < 0 || network_agreement(member, d->y, d->n, &nmi, &ari, &e))
			die("%s", e.msg);
		if (nmi > s->nmi_run[run]) {
			s->nmi_run[run] = nmi;
			s->ari_run[run] = ari;
			s->best[run] = resolution;
		}
		if (i != ONE)
			continue;
		s->nmi_one[run] = nmi;
		s->ari_one[run] = ari;
		if (!run)
			must(network_modularity(g, weight, resolution, member, &s->modularity, &e), &e);
	}
	free(member);
}

/* The first k columns of v [n, width]. */
#define first_columns(v, n, width, k) first_bytes((v), (n), (width) * sizeof *(v), (k) * sizeof *(v))
static void *first_bytes(const void *v, size_t n, size_t width, size_t size)
{
	char *out = xmalloc(n * size);
	for (size_t i = 0; i < n; i++)
		memcpy(out + i * size, (const char *)v + i * width, size);
	return out;
}

static void score_graph(
	struct scores *s, const struct embeddings *d, const uint32_t *neighbour, const double *distance, size_t width, size_t k)
{
	size_t near = GRAPH - 1;
	uint32_t *row = first_columns(neighbour, d->n, width, near);
	double *far = first_columns(distance, d->n, width, near), *weight = xmalloc(d->n * near * sizeof *weight);
	struct network g = {.n = (uint32_t)d->n, .end = xmalloc(2 * d->n * near * sizeof *g.end)};
	g.m = umap_graph(g.end, weight, row, far, d->n, near, GRAPH);
	free(row);
	free(far);
	cli_library("igraph ended the program, as it does if memory is out");
	score_connectivity(s, &g, d, k);
	for (size_t run = 0; run < (size_t)runs && !clusters; run++)
		run_leiden(s, &g, weight, d, run);
	if (clusters)
		must(network_agreement(d->part, d->y, d->n, &s->nmi, &s->ari, &e), &e);
	cli_library(NULL);
	free(g.end);
	free(weight);
}

/* ---- neighbours ---- */

static double median_lisi(
	const struct embeddings *d, const uint32_t *neighbour, const double *distance, const uint32_t *group, size_t groups)
{
	double *lisi = xmalloc(d->n * sizeof *lisi);
	mixing_lisi(lisi, neighbour, distance, d->n, LISI - 1, group, groups, LISI / 3);
	double median = bootstrap_quantile(lisi, d->n, 0.5);
	free(lisi);
	return median;
}

/* All that begins with the neighbours of the cells. */
static void score_neighbours(struct scores *s, const struct embeddings *d, size_t k, size_t batches)
{
	size_t width = d->n > LISI ? LISI - 1 : d->n - 1;
	uint32_t *neighbour = xmalloc(d->n * width * sizeof *neighbour);
	double *distance = xmalloc(d->n * width * sizeof *distance);
	progress("nearest neighbours of %zu cells", d->n);
	nearest_neighbours(d->x, d->n, d->d, width, (int)integration_cli.threads, neighbour, distance);
	if (width == LISI - 1) {
		s->clisi = ((double)k - median_lisi(d, neighbour, distance, d->y, k)) / ((double)k - 1);
		if (batches > 1)
			s->ilisi = (median_lisi(d, neighbour, distance, d->group, batches) - 1) / ((double)batches - 1);
	}
	if (batches > 1 && width >= KBET - 1)
		s->kbet = mixing_kbet(neighbour, d->n, width, KBET, d->group, batches);
	score_graph(s, d, neighbour, distance, width, k);
	free(neighbour);
	free(distance);
}

/* ---- output ---- */

static void add(struct results *to, const char *key, const char *mode, double v)
{
	char *name = xasprintf("%s%s", key, mode);
	results_add(to, name, v);
	free(name);
}

/* NMI, ARI and their means, under names that say how the clusters were found. */
static void add_scores(struct results *to, const struct scores *s, const char *mode, double nmi, double ari)
{
	double bio = mean_of((double[]){nmi, ari, s->asw_label}, 3), both = mean_of((double[]){s->connectivity, s->asw_batch}, 2);
	int batches = !isnan(s->asw_batch);
	add(to, "nmi", mode, nmi);
	add(to, "ari", mode, ari);
	add(to, "avg_bio", mode, bio);
	add(to, "score", mode, batches ? 0.6 * bio + 0.4 * both : NAN);
}

static void add_range(struct results *to, const char *key, const double *v)
{
	double low = v[0], high = v[0];
	for (long long i = 1; i < runs; i++) {
		low = fmin(low, v[i]);
		high = fmax(high, v[i]);
	}
	add(to, key, "_min", low);
	add(to, key, "_max", high);
}

static void add_runs(struct results *to, const struct scores *s)
{
	size_t n = (size_t)runs;
	add_scores(to, s, "_swept", mean_of(s->nmi_run, n), mean_of(s->ari_run, n));
	add_range(to, "nmi_swept", s->nmi_run);
	add_range(to, "ari_swept", s->ari_run);
	add_range(to, "resolution", s->best);
	add_scores(to, s, "_resolution_1", mean_of(s->nmi_one, n), mean_of(s->ari_one, n));
	add(to, "modularity", "_resolution_1", s->modularity);
	add(to, "runs", "", (double)n);
}

static void print_scores(const struct scores *s, const struct embeddings *d, const struct classes *types, size_t batches)
{
	struct results *to = results_new();
	if (clusters)
		add_scores(to, s, "_clusters", s->nmi, s->ari);
	else
		add_runs(to, s);
	add(to, "asw_label", "", s->asw_label);
	add(to, "graph_connectivity", "", s->connectivity);
	add(to, "asw_batch", "", s->asw_batch);
	add(to, "avg_batch", "", isnan(s->asw_batch) ? NAN : (s->connectivity + s->asw_batch) / 2);
	add(to, "ilisi", "", s->ilisi);
	add(to, "clisi", "", s->clisi);
	add(to, "kbet", "", s->kbet);
	add(to, "pcr", "", s->pcr);
	add(to, "cells", "", (double)d->n);
	add(to, "unlabelled", "", (double)d->unlabelled);
	add(to, "batches", "", (double)batches);
	results_classes(to, types->name, types->n);
	results_list(to, "n", s->cells);
	results_list(to, "asw_label_class", s->label_width);
	results_list(to, "asw_batch_class", s->batch_width);
	results_list(to, "graph_connectivity_class", s->connected);
	cli_write_results(&integration_cli, to);
}

/* ---- main ---- */

static void check_data(const struct embeddings *d, const struct classes *types, const struct classes *batches)
{
	const char *name = stream_name(d->s);
	size_t same = 1;
	if (d->n < GRAPH)
		die("%s: %zu labelled %s: expected at least %d, as the graph joins a cell with %d others", name, d->n,
			d->n == 1 ? "cell" : "cells", GRAPH, GRAPH - 1);
	while (same < d->n && !memcmp(d->x + same * d->d, d->x, d->d * sizeof *d->x))
		same++;
	if (same == d->n && !clusters)
		die("%s: the embeddings of all %zu cells are equal: there is nothing to cluster", name, d->n);
	if (types->n < 2)
		die("%s: all %zu labelled cells are '%s' in column '%s': expected at least two cell types", name, d->n, types->name[0],
			label);
	if (types->n == d->n)
		die("%s: each of the %zu cells has its own value in column '%s': expected cell types", name, d->n, label);
	if (batches->n == d->n)
		die("%s: each of the %zu cells has its own value in column '%s': expected batches of several cells", name, d->n, batch);
	if (d->n < LISI)
		info("%s: %zu cells are fewer than the %d neighbours of ilisi and clisi%s: these are not known", name, d->n, LISI,
			d->n < KBET ? ", and the 50 of kbet" : "");
	if (batch && batches->n == 1)
		warn("%s: all %zu cells are '%s' in column '%s': there are no scores of batches", name, d->n, batches->name[0], batch);
}

static void note_edge(const struct scores *s)
{
	int low = 0, high = 0;
	for (long long i = 0; i < runs; i++) {
		low += s->best[i] < 0.3;
		high += s->best[i] > 1.9;
	}
	if (low || high)
		warn("the best resolution is at the edge of 0.2 to 2.0 in %d of %lld runs (%s): a %s one may be better", low + high, runs,
			high ? "2.0" : "0.2", high ? "higher" : "lower");
}

int scmetric_integration(int argc, char **argv)
{
	struct classes types = {0}, batches = {0}, parts = {0};
	struct embeddings d;
	cli_init(&integration_cli, argc, argv);
	if (!label)
		usage_error("name the column of cell types: --label COL");
	cli_blas(&integration_cli);
	embeddings_read(&d, cli_open(&integration_cli, 0), &(struct wanted){label, NULL, batch, &types, &batches, clusters, &parts}, 0);
	classes_settle(&types, (uint32_t *[]){d.y}, (size_t[]){d.n}, 1);
	if (batch)
		classes_settle(&batches, (uint32_t *[]){d.group}, (size_t[]){d.n}, 1);
	check_data(&d, &types, &batches);
	size_t k = types.n;
	struct scores s = {
		.label_width = xcalloc(4 * k, sizeof(double)), .asw_batch = NAN, .ilisi = NAN, .clisi = NAN, .kbet = NAN, .pcr = NAN};
	s.batch_width = s.label_width + k;
	s.connected = s.batch_width + k;
	s.cells = s.connected + k;
	score_neighbours(&s, &d, k, batches.n);
	score_widths(&s, &d, k);
	if (batches.n > 1 && isnan(s.asw_batch))
		warn("%s: no cell type has two batches and more cells than batches in column '%s': asw_batch, avg_batch and score are not known",
			stream_name(d.s), batch);
	if (batches.n > 1)
		must(pcr_share(d.x, d.n, d.d, d.group, batches.n, COMPONENTS, (int)integration_cli.threads, &s.pcr, &e), &e);
	if (d.unlabelled)
		info("%zu of %zu cells have no value in column '%s' and are left out", d.unlabelled, d.n + d.unlabelled, label);
	if (!clusters)
		note_edge(&s);
	print_scores(&s, &d, &types, batches.n);
	cli_measured("cells", (double)d.n);
	cli_measured("features", (double)d.d);
	cli_measured("classes", (double)k);
	cli_report(&integration_cli, "%zu cells, %zu cell types, %zu batches, %zu values each", d.n, k, batches.n, d.d);
	free(s.label_width);
	embeddings_release(&d);
	classes_release(&types);
	classes_release(&batches);
	classes_release(&parts);
	return 0;
}

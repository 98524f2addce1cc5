#include "eval/integration.h"

#include "eval/bootstrap.h"
#include "eval/bras.h"
#include "eval/inverted.h"
#include "eval/kbet_label.h"
#include "eval/kmeans.h"
#include "eval/mixing.h"
#include "eval/pcr.h"
#include "eval/sbee.h"
#include "eval/silhouette.h"
#include "eval/strata.h"
#include "eval/umap.h"
#include "network/network.h"

#include <math.h>

/* Neighbours, the cell itself counted: those of scIB and scib-metrics. */
enum { GRAPH = 15, NEAR_LISI = 90, NEAR_KBET = 50 };

enum { RESOLUTIONS = 10 }; /* 0.2, 0.4, ... 2.0 */

/* Of more cells than `exact`: this share of the neighbours is found, and exact / SHARE cells stand for all where time is quadratic. */
#define RECALL 0.99
enum { SHARE = 5 };

struct work {
	struct integration_scores *s;
	const struct integration_cells *c;
	const uint8_t *wanted;
	const float *x;
	size_t d, width; /* width: neighbours */
	uint32_t *neighbour; /* [n, width] */
	double *distance;
	struct error *e;
	uint32_t *of; /* [m] cells that stand for all, */
	double *weight; /* [m] each for so many; both NULL: all cells */
	size_t m;
};

#define SAY(w, ...) \
	do { \
		if ((w)->c->progress) \
			(w)->c->progress(__VA_ARGS__); \
	} while (0)

void integration_scores_release(struct integration_scores *s)
{
	for (int m = 0; m < INTEGRATION_METRICS; m++)
		free(s->class[m]);
	*s = (struct integration_scores){0};
}

static double mean_known(const double *v, size_t n)
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

/* A metric that is the mean over the cell types that have it. */
static void set_classes(struct work *w, int metric, double *class, const char *why)
{
	w->s->class[metric] = class;
	w->s->value[metric] = mean_known(class, w->c->k);
	w->s->why[metric] = isnan(w->s->value[metric]) ? why : NULL;
}

static double *new_classes(const struct work *w)
{
	return xcalloc(w->c->k, sizeof(double));
}

static int large(const struct work *w)
{
	return w->c->n > w->c->exact;
}

/* Cells of each type and batch that stand for all. */
static void draw_cells(struct work *w)
{
	const struct integration_cells *c = w->c;
	FREED uint32_t *group = xmalloc(c->n * sizeof *group);
	w->of = xmalloc(c->n * sizeof *w->of);
	w->weight = xmalloc(c->n * sizeof *w->weight);
	for (size_t i = 0; i < c->n; i++)
		group[i] = c->batch ? c->y[i] * (uint32_t)c->batches + c->batch[i] : c->y[i];
	w->m = strata_sample(w->of, w->weight, group, c->n, c->batch ? c->k * c->batches : c->k, c->exact / SHARE, c->seed);
	for (int m = 0; m < INTEGRATION_METRICS; m++)
		w->s->cells[m] = integration_kind[m].drawn ? w->m : 0;
}

/* ---- widths ---- */

/* The mean width of the types that are in the fewest batches. */
static void score_isolated(struct work *w, const double *by_type)
{
	const struct integration_cells *c = w->c;
	uint8_t *seen = xcalloc(c->k * c->batches, 1);
	double *class = new_classes(w);
	size_t *in = xcalloc(c->k, sizeof *in), least = SIZE_MAX;
	for (size_t i = 0; i < c->n; i++) {
		uint8_t *at = &seen[c->y[i] * c->batches + c->batch[i]];
		in[c->y[i]] += !*at;
		*at = 1;
	}
	for (size_t t = 0; t < c->k; t++)
		least = in[t] < least ? in[t] : least;
	for (size_t t = 0; t < c->k; t++)
		class[t] = in[t] == least ? by_type[t] : NAN;
	set_classes(w, ISOLATED_LABELS, class, NULL);
	free_all(seen, in);
}

static void score_widths(struct work *w)
{
	const struct integration_cells *c = w->c;
	size_t m = w->of ? w->m : c->n;
	double *by_label = xmalloc(m * sizeof *by_label), *by_batch = xmalloc(m * sizeof *by_batch);
	double *label = new_classes(w), *batch = new_classes(w), *cells = new_classes(w), sum = 0;
	const uint32_t *group = w->wanted[SILHOUETTE_BATCH] ? c->batch : NULL;
	SAY(w, "distances of %zu cells", m);
	silhouettes(w->x, c->n, w->d, c->y, group, w->of, w->m, c->threads, by_label, by_batch);
	for (size_t i = 0; i < m; i++) {
		size_t t = c->y[w->of ? w->of[i] : i];
		double weight = w->of ? w->weight[i] : 1;
		sum += weight * by_label[i];
		label[t] += weight * (1 + by_label[i]) / 2;
		batch[t] += weight * (group ? 1 - fabs(by_batch[i]) : NAN);
		cells[t] += weight;
	}
	for (size_t t = 0; t < c->k; t++) {
		label[t] /= cells[t];
		batch[t] /= cells[t];
	}
	if (c->batch)
		score_isolated(w, label);
	set_classes(w, SILHOUETTE_LABEL, label, NULL);
	w->s->value[SILHOUETTE_LABEL] = (1 + sum / (double)c->n) / 2; /* the mean over cells */
	set_classes(w, SILHOUETTE_BATCH, batch, c->batch ? "no type has two batches and more cells than batches" : NULL);
	free_all(cells, by_label, by_batch);
}

/* ---- graphs ---- */

/* The share of each cell type in the largest component of its own part of g. */
static int score_connectivity(struct work *w, int metric, const struct network *g, int strong)
{
	const struct integration_cells *c = w->c;
	struct network part = {.n = g->n, .end = xmalloc((2 * g->m + 1) * sizeof *part.end)};
	uint32_t *member = xmalloc(c->n * sizeof *member), components;
	double *class = new_classes(w), *cells = new_classes(w);
	for (size_t i = 0; i < g->m; i++)
		if (c->y[g->end[2 * i]] == c->y[g->end[2 * i + 1]])
			memcpy(part.end + 2 * part.m++, g->end + 2 * i, 2 * sizeof *part.end);
	int bad = network_members(&part, strong, member, &components, w->e);
	if (!bad) {
		FREED double *size = xcalloc(components, sizeof *size);
		for (size_t i = 0; i < c->n; i++) {
			cells[c->y[i]]++;
			size[member[i]]++;
		}
		for (size_t i = 0; i < c->n; i++)
			class[c->y[i]] = fmax(class[c->y[i]], size[member[i]] / cells[c->y[i]]);
	}
	set_classes(w, metric, class, NULL);
	free_all(cells, member, part.end);
	return bad;
}

/* The clusters of Leiden that agree best with the types. */
static int score_leiden(struct work *w, const struct network *g, const double *weight)
{
	const struct integration_cells *c = w->c;
	FREED uint32_t *member = xmalloc(c->n * sizeof *member);
	double most = -1;
	int bad = 0;
	for (int i = 0; i < RESOLUTIONS && !bad; i++) {
		double resolution = (i + 1) / 5.0, nmi, ari;
		SAY(w, "Leiden: resolution %.1f", resolution);
		bad = network_leiden(g, weight, resolution, c->seed, member, w->e) < 0 ||
			network_agreement(member, c->y, c->n, &nmi, &ari, w->e);
		if (bad || nmi <= most)
			continue;
		w->s->value[LEIDEN_NMI] = most = nmi;
		w->s->value[LEIDEN_ARI] = ari;
		w->s->why[LEIDEN_NMI] = i == 0 ? "the lowest resolution, 0.2" : i + 1 == RESOLUTIONS ? "the highest resolution, 2.0" : NULL;
	}
	return bad;
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

/* Neighbours joined to a graph, with UMAP's weights. */
struct joined {
	struct network g;
	double *weight;
};

static void scores_join(struct joined *j, const struct work *w, size_t K)
{
	size_t near = K - 1, n = w->c->n;
	FREED uint32_t *row = first_columns(w->neighbour, n, w->width, near);
	FREED double *far = first_columns(w->distance, n, w->width, near);
	j->weight = xmalloc(n * near * sizeof *j->weight);
	j->g = (struct network){.n = (uint32_t)n, .end = xmalloc(2 * n * near * sizeof *j->g.end)};
	j->g.m = umap_graph(j->g.end, j->weight, row, far, n, near, K);
}

static void joined_release(struct joined *j)
{
	free_all(j->g.end, j->weight);
}

/* The graph of directed neighbours. */
static int score_directed(struct work *w)
{
	size_t near = GRAPH - 1;
	struct network g = {.n = (uint32_t)w->c->n, .end = xmalloc(2 * w->c->n * near * sizeof *g.end)};
	for (uint32_t i = 0; i < g.n; i++)
		for (size_t j = 0; j < near; j++) {
			g.end[2 * g.m] = i;
			g.end[2 * g.m++ + 1] = w->neighbour[i * w->width + j];
		}
	int bad = score_connectivity(w, CONNECTIVITY, &g, 1);
	free(g.end);
	return bad;
}

static int wants_leiden(const struct work *w)
{
	return w->wanted[LEIDEN_NMI] || w->wanted[LEIDEN_ARI];
}

static int score_umap(struct work *w)
{
	struct joined j;
	scores_join(&j, w, GRAPH);
	int bad = (w->wanted[CONNECTIVITY_UMAP] && score_connectivity(w, CONNECTIVITY_UMAP, &j.g, 0)) ||
		(wants_leiden(w) && score_leiden(w, &j.g, j.weight));
	joined_release(&j);
	return bad;
}

static int score_kbet_label(struct work *w)
{
	const struct integration_cells *c = w->c;
	double *class = new_classes(w);
	struct joined j;
	scores_join(&j, w, NEAR_KBET);
	SAY(w, "kBET of %zu cell types", c->k);
	int bad = kbet_label(class, &j.g, j.weight, c->y, c->k, c->batch, c->batches,
		&(struct search_settings){large(w) ? c->exact / SHARE : c->n, RECALL, c->seed, c->threads}, w->e);
	joined_release(&j);
	set_classes(w, KBET_PER_LABEL, class, "no type has two batches and 10 cells");
	return bad;
}

static int score_graphs(struct work *w)
{
	if (w->c->library)
		w->c->library("igraph ended the program, as it does when memory runs out");
	int bad = (w->wanted[CONNECTIVITY] && score_directed(w)) || ((w->wanted[CONNECTIVITY_UMAP] || wants_leiden(w)) && score_umap(w)) ||
		(w->wanted[KBET_PER_LABEL] && w->width >= NEAR_KBET - 1 && w->c->batch && score_kbet_label(w));
	if (w->c->library)
		w->c->library(NULL);
	return bad;
}

/* ---- neighbours ---- */

static void score_lisi(struct work *w)
{
	const struct integration_cells *c = w->c;
	FREED double *of_label = xmalloc(c->n * sizeof *of_label), *of_batch = xmalloc(c->n * sizeof *of_batch);
	const struct grouping by[] = {{c->y, c->k, of_label}, {c->batch, c->batches, of_batch}};
	double *v = w->s->value;
	mixing_lisi(by, c->batch ? 2 : 1, w->neighbour, w->distance, c->n, NEAR_LISI - 1, NEAR_LISI / 3, c->threads);
	v[CLISI] = ((double)c->k - bootstrap_quantile(of_label, c->n, 0.5)) / (double)(c->k - 1);
	if (c->batch)
		v[ILISI] = (bootstrap_quantile(of_batch, c->n, 0.5) - 1) / (double)(c->batches - 1);
}

static void score_mixing(struct work *w)
{
	const struct integration_cells *c = w->c;
	if (w->width == NEAR_LISI - 1)
		score_lisi(w);
	if (c->batch && w->wanted[KBET] && w->width >= NEAR_KBET - 1)
		w->s->value[KBET] = mixing_kbet(w->neighbour, c->n, w->width, NEAR_KBET, c->batch, c->batches);
	if (c->batch && w->wanted[SBEE]) {
		double *class = new_classes(w);
		sbee(class, w->x, c->n, w->d, w->neighbour, w->width, c->y, c->k, c->batch, c->batches, w->of, w->m, c->threads);
		set_classes(w, SBEE, class, NULL);
	}
}

static int score_kmeans(struct work *w)
{
	const struct integration_cells *c = w->c;
	FREED uint32_t *member = xmalloc(c->n * sizeof *member);
	SAY(w, "k-means of %zu cells", c->n);
	kmeans(w->x, c->n, w->d, c->k, large(w) ? c->exact : c->n, c->seed, c->threads, member);
	return network_agreement(member, c->y, c->n, &w->s->value[KMEANS_NMI], &w->s->value[KMEANS_ARI], w->e);
}

const struct integration_kind integration_kind[] = {
	[ISOLATED_LABELS] = {.needs_batches = 1, .drawn = 1},
	[LEIDEN_NMI] = {.from_neighbours = 1},
	[LEIDEN_ARI] = {.low = -0.5, .from_neighbours = 1},
	[KMEANS_NMI] = {0},
	[KMEANS_ARI] = {.low = -0.5},
	[SILHOUETTE_LABEL] = {.drawn = 1},
	[CLISI] = {.from_neighbours = 1, .na = "fewer than 90 cells"},
	[BRAS] = {.needs_batches = 1},
	[SILHOUETTE_BATCH] = {.needs_batches = 1, .drawn = 1},
	[ILISI] = {.needs_batches = 1, .from_neighbours = 1, .na = "fewer than 90 cells"},
	[KBET_PER_LABEL] = {.needs_batches = 1, .from_neighbours = 1, .na = "fewer than 50 cells"},
	[CONNECTIVITY] = {.from_neighbours = 1},
	[CONNECTIVITY_UMAP] = {.from_neighbours = 1},
	[PCR_COMPARISON] = {.needs_batches = 1},
	[SBEE] = {.needs_batches = 1, .drawn = 1},
	[KBET] = {.needs_batches = 1, .from_neighbours = 1, .na = "fewer than 50 cells"},
	[PCR] = {.needs_batches = 1, .lower = 1, .na = "all cells are equal"},
};
EVERY_ROW(integration_kind, INTEGRATION_METRICS);

/* Why metrics are not known, but for what the functions above say. */
static void explain(struct integration_scores *s, const struct integration_cells *c)
{
	for (int m = 0; m < INTEGRATION_METRICS; m++) {
		if (!isnan(s->value[m]) || s->why[m])
			continue;
		if (integration_kind[m].needs_batches && !c->batch)
			s->why[m] = c->batches == 1 ? "one batch" : "no --batch-key";
		else
			s->why[m] = integration_kind[m].na ? integration_kind[m].na : "not computed";
	}
}

int integration_score(struct integration_scores *s, const struct integration_cells *c, const float *x, size_t d,
	const uint8_t wanted[INTEGRATION_METRICS], struct error *e)
{
	size_t width = c->n > NEAR_LISI ? NEAR_LISI - 1 : c->n - 1;
	struct work w = {s, c, wanted, x, d, width, xlarge(c->n * width, sizeof *w.neighbour), xlarge(c->n * width, sizeof *w.distance), e};
	*s = (struct integration_scores){.recall = 1};
	for (int m = 0; m < INTEGRATION_METRICS; m++)
		s->value[m] = NAN;
	SAY(&w, "nearest neighbours of %zu cells", c->n);
	s->recall = some_neighbours(
		x, c->n, d, width, &(struct search_settings){c->exact, RECALL, c->seed, c->threads}, w.neighbour, w.distance);
	if (large(&w))
		draw_cells(&w);
	score_mixing(&w);
	int bad = score_graphs(&w);
	free_all(w.neighbour, w.distance);
	if (bad) {
		free_all(w.of, w.weight);
		return -1;
	}
	if (c->batch && wanted[BRAS]) {
		double *class = new_classes(&w);
		bras(class, x, c->n, d, c->y, c->k, c->batch, c->batches);
		set_classes(&w, BRAS, class, "no type has two batches and more cells than batches");
	}
	score_widths(&w);
	free_all(w.of, w.weight);
	bad = ((wanted[KMEANS_NMI] || wanted[KMEANS_ARI]) && score_kmeans(&w)) ||
		(c->batch &&
			pcr_share(x, c->n, d, c->batch, c->batches, c->components && c->components < d ? c->components : d, c->threads,
				&s->value[PCR], e));
	explain(s, c);
	return bad ? -1 : 0;
}

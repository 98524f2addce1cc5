#include "transfer/unlike.h"

#include "base/sort.h"
#include "eval/inverted.h"
#include "eval/kmeans.h"
#include "stream/header.h"

enum { CLUSTER_CELLS = 30, MOST_CLUSTERS = 300, START_CELLS = 5000 }; /* of k-means */
enum { SHIFT_CELLS = 15, NEIGHBOURS = 15, EXACT_CELLS = 20000 }; /* a class of fewer new cells says nothing of the shift */
static const double least_variance = 0.01, recall = 0.95;

/* ---- the new cells ---- */

struct work {
	const struct marker_ranks *r;
	const struct components *c;
	const struct sparse *x;
	const uint32_t *class;
	int threads;
	uint32_t seed;
	double *shift, *weight, *near; /* [d] s; 1 / (sd^2 + .01); [k] squared distance of a class from the nearest other one */
	float *y; /* [n, q] the new cells on the components */
	double *outside; /* [n] of each cell */
};

static void work_release(struct work *w)
{
	free_all(w->shift, w->weight, w->near, w->y, w->outside);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, compare_double);
	return n ? (v[n / 2] + v[(n - 1) / 2]) / 2 : 0;
}

/* The shift, and what distances are measured by. */
static void find_shift(struct work *w)
{
	const struct marker_ranks *r = w->r;
	size_t k = r->k, d = r->d;
	FREED double *mean = xcalloc(k * d + 1, sizeof *mean), *variance = xcalloc(k * d + 1, sizeof *variance),
		     *cells = xmalloc(k * sizeof *cells), *gap = xmalloc(k * sizeof *gap);
	class_moments(w->x, NULL, w->x->n, w->class, NULL, k, mean, variance, cells);
	w->shift = xmalloc((d + 1) * sizeof *w->shift);
	w->weight = xmalloc((d + 1) * sizeof *w->weight);
	w->near = xmalloc(k * sizeof *w->near);
	for (size_t j = 0; j < d; j++) {
		size_t n = 0;
		for (size_t c = 0; c < k; c++)
			if (cells[c] >= SHIFT_CELLS)
				gap[n++] = mean[c * d + j] - (double)r->mean[c * d + j];
		w->shift[j] = median(gap, n);
		w->weight[j] = 1 / ((double)r->sd[j] * (double)r->sd[j] + least_variance);
	}
	for (size_t c = 0; c < k; c++) {
		w->near[c] = INFINITY;
		for (size_t b = 0; b < k; b++) {
			double square = 0;
			for (size_t j = 0; j < d; j++) {
				double v = (double)r->mean[c * d + j] - (double)r->mean[b * d + j];
				square += v * v * w->weight[j];
			}
			w->near[c] = b == c ? w->near[c] : fmin(w->near[c], square);
		}
	}
}

/* The shift on the components: the median over classes of the mean of the new cells less that of the reference. */
static void component_shift(const struct work *w, double *shift)
{
	const struct components *c = w->c;
	FREED double *mean = xcalloc(c->k * c->q, sizeof *mean), *cells = xcalloc(c->k, sizeof *cells), *gap = xmalloc(c->k * sizeof *gap);
	for (size_t i = 0; i < w->x->n; i++) {
		cells[w->class[i]]++;
		for (size_t a = 0; a < c->q; a++)
			mean[w->class[i] * c -> q + a] += (double)w->y[i * c->q + a];
	}
	for (size_t a = 0; a < c->q; a++) {
		size_t n = 0;
		for (size_t k = 0; k < c->k; k++)
			if (cells[k] >= SHIFT_CELLS)
				gap[n++] = mean[k * c->q + a] / cells[k] - c->types[k * c->q + a];
		shift[a] = median(gap, n);
	}
}

/* The squared Mahalanobis distance of each new cell from the nearest class, mean over it and its neighbours. */
static void find_outside(struct work *w)
{
	const struct components *c = w->c;
	size_t n = w->x->n, q = c->q, near = n - 1 < NEIGHBOURS ? n - 1 : NEIGHBOURS;
	double shift[COMPONENTS];
	FREED double *own = xmalloc(n * sizeof *own), *far = xmalloc((n * near + 1) * sizeof *far);
	FREED uint32_t *neighbour = xmalloc((n * near + 1) * sizeof *neighbour);
	component_shift(w, shift);
	for (size_t i = 0; i < n; i++) {
		own[i] = INFINITY;
		for (size_t k = 0; k < c->k; k++) {
			double square = 0;
			for (size_t a = 0; a < q; a++) {
				double v = (double)w->y[i * q + a] - shift[a] - c->types[k * q + a];
				square += v * v;
			}
			own[i] = fmin(own[i], square);
		}
	}
	if (near)
		some_neighbours(w->y, n, q, near, &(struct search_settings){EXACT_CELLS, recall, w->seed, w->threads}, neighbour, far);
	w->outside = xmalloc(n * sizeof *w->outside);
	for (size_t i = 0; i < n; i++) {
		w->outside[i] = own[i] / (double)(near + 1);
		for (size_t j = 0; j < near; j++)
			w->outside[i] += own[neighbour[i * near + j]] / (double)(near + 1);
	}
}

/* ---- clusters ---- */

/* Clusters that are small; or those of the caller, of which some may have no cell. Sets place and n of u. */
static void find_clusters(struct unlike *u, const struct work *w, const uint32_t *cluster, size_t clusters)
{
	size_t n = w->x->n, k = n / CLUSTER_CELLS < 1 ? 1 : n / CLUSTER_CELLS > MOST_CLUSTERS ? MOST_CLUSTERS : n / CLUSTER_CELLS;
	u->place = xcalloc(n + 1, sizeof *u->place);
	if (cluster)
		memcpy(u->place, cluster, n * sizeof *cluster);
	else if (k > 1)
		kmeans(w->y, n, w->c->q, k, START_CELLS, w->seed, w->threads, u->place);
	k = cluster ? clusters : k;
	FREED uint32_t *new = xmalloc((k + 1) * sizeof *new);
	memset(new, 0xFF, k * sizeof *new);
	for (size_t i = 0; i < n; i++)
		if (u->place[i] != MISSING_CODE)
			new[u->place[i]] = 0;
	u->of = xcalloc(k + 1, sizeof *u->of);
	for (uint32_t c = 0; c < k; c++)
		if (new[c] != MISSING_CODE) {
			u->of[u->n].id = c;
			new[c] = (uint32_t)u->n++;
		}
	u->cells = xcalloc(u->n * u->k + 1, sizeof *u->cells);
	for (size_t i = 0; i < n; i++)
		if (u->place[i] != MISSING_CODE) {
			u->place[i] = new[u->place[i]];
			u->of[u->place[i]].cells++;
			u->cells[u->place[i] * u->k + w->class[i]]++;
		}
}

/* Keep feature j of this value among the largest, value [UNLIKE_GENES], of which equal ones stay in order. */
static void keep_gene(struct unlike_genes *to, double *value, double v, size_t j)
{
	if (to->n == UNLIKE_GENES && !(v > value[to->n - 1]))
		return;
	to->n += to->n < UNLIKE_GENES;
	size_t i = to->n - 1;
	for (; i && value[i - 1] < v; i--) {
		value[i] = value[i - 1];
		to->at[i] = to->at[i - 1];
	}
	value[i] = v;
	to->at[i] = (uint32_t)j;
}

/* The markers of the class and what else is high. u: mean of the cluster less the shift */
static void find_genes(struct unlike_cluster *of, const struct work *w, const double *u)
{
	const float *m = w->r->mean + of->class * w->r->d;
	double lacks[UNLIKE_GENES], has[UNLIKE_GENES], more[UNLIKE_GENES], sum = 0, all = 0;
	for (size_t j = 0; j < w->r->d; j++) {
		double level = (double)m[j], scale = sqrt(w->weight[j]);
		if (u[j] > level)
			keep_gene(&of->more, more, (u[j] - level) * scale, j);
		if (!w->r->marker[of->class * w->r->d + j])
			continue;
		double others = 0;
		for (size_t c = 0; c < w->r->k; c++)
			others += c == of->class ? 0 : (double)w->r->mean[c * w->r->d + j] / (double)(w->r->k - 1);
		sum += u[j];
		all += level;
		if (2 * u[j] < level)
			keep_gene(&of->lacks, lacks, (level - u[j]) * scale, j);
		else
			keep_gene(&of->has, has, (level - others) * scale, j);
	}
	of->level = all > 0 ? sum / all : 1;
}

/* Scores of a cluster of rows row[0..cells). u, square [d]: scratch */
static void score_cluster(
	struct unlike_cluster *of, const struct work *w, const uint32_t *row, struct sparse_row *x, double *u, double *square)
{
	const struct marker_ranks *r = w->r;
	double noise = 0, n = (double)of->cells, near[UNLIKE_NEAREST] = {INFINITY, INFINITY};
	memset(u, 0, r->d * sizeof *u);
	memset(square, 0, r->d * sizeof *square);
	for (size_t i = 0; i < of->cells; i++) {
		sparse_row(w->x, row[i], x);
		for (size_t j = 0; j < x->n; j++) {
			double v = (double)x->value[j];
			u[x->column[j]] += v / n;
			square[x->column[j]] += v * v / n;
		}
		of->outside += w->outside[row[i]] / n;
	}
	for (size_t j = 0; j < r->d; j++) {
		noise += (of->cells > 1 ? fmax(square[j] - u[j] * u[j], 0) / (n - 1) : (double)r->sd[j] * (double)r->sd[j]) * w->weight[j];
		u[j] -= w->shift[j];
	}
	for (uint32_t c = 0; c < r->k; c++) {
		double far = 0;
		for (size_t j = 0; j < r->d; j++) {
			double v = u[j] - (double)r->mean[c * r->d + j];
			far += v * v * w->weight[j];
		}
		if (c == of->class)
			of->distance = (far - noise) / fmax(w->near[c], 1e-12);
		int first = far < near[0];
		if (first) {
			near[1] = near[0];
			of->nearest[1] = of->nearest[0];
		}
		if (first || far < near[1]) {
			near[!first] = far;
			of->nearest[!first] = c;
		}
	}
	find_genes(of, w, u);
}

COMPARE(by_ranks, struct unlike_cluster, ORDER(b->ranks, a->ranks) ?: ORDER(b->cells, a->cells) ?: ORDER(a->id, b->id))

static double rank_of(double x, double y)
{
	return x < y ? 1 : x > y ? 0 : 0.5;
}

/* The most unlike first. */
static void order_clusters(struct unlike *u)
{
	FREED struct unlike_cluster *old = xmalloc((u->n + 1) * sizeof *old);
	FREED uint32_t *to = xmalloc((u->n + 1) * sizeof *to), *cells = xmalloc((u->n * u->k + 1) * sizeof *cells);
	for (size_t a = 0; a < u->n; a++) {
		struct unlike_cluster *of = &u->of[a];
		for (size_t b = 0; b < u->n; b++)
			of->ranks += rank_of(u->of[b].distance, of->distance) + rank_of(of->level, u->of[b].level) +
				rank_of(u->of[b].outside, of->outside);
	}
	memcpy(old, u->of, u->n * sizeof *old);
	memcpy(cells, u->cells, u->n * u->k * sizeof *cells);
	qsort(u->of, u->n, sizeof *u->of, by_ranks);
	for (size_t a = 0; a < u->n; a++)
		for (size_t b = 0; b < u->n; b++)
			if (old[b].id == u->of[a].id) {
				to[b] = (uint32_t)a;
				memcpy(u->cells + a * u->k, cells + b * u->k, u->k * sizeof *cells);
			}
	for (size_t i = 0; u->place && i < u->rows; i++)
		if (u->place[i] != MISSING_CODE)
			u->place[i] = to[u->place[i]];
}

static void score_clusters(struct unlike *u, const struct work *w)
{
	size_t d = w->r->d, n = w->x->n;
	FREED double *of = xmalloc((2 * d + 1) * sizeof *of);
	FREED uint32_t *row = xmalloc((n + 1) * sizeof *row);
	FREED size_t *end = xcalloc(u->n + 1, sizeof *end); /* of the rows of a cluster, after those of the clusters before */
	RELEASED(sparse_row_release) struct sparse_row x = {0};
	for (size_t c = 1; c < u->n; c++)
		end[c] = end[c - 1] + u->of[c - 1].cells;
	for (uint32_t i = 0; i < n; i++)
		if (u->place[i] != MISSING_CODE)
			row[end[u->place[i]]++] = i;
	for (size_t c = 0; c < u->n; c++) {
		const uint32_t *cells = u->cells + c * u->k;
		for (uint32_t k = 1; k < u->k; k++)
			u->of[c].class = cells[k] > cells[u->of[c].class] ? k : u->of[c].class;
		score_cluster(&u->of[c], w, row + end[c] - u->of[c].cells, &x, of, of + d);
	}
}

void unlike_list(struct unlike *u, const struct marker_ranks *r, const struct components *c, const struct sparse *x, const uint32_t *class,
	const uint32_t *cluster, size_t clusters, uint32_t seed, int threads)
{
	RELEASED(work_release) struct work w = {.r = r, .c = c, .x = x, .class = class, .threads = threads, .seed = seed};
	*u = (struct unlike){.k = r->k, .rows = x->n};
	if (!x->n)
		return;
	find_shift(&w);
	w.y = components_project(c, x, NULL, x->n);
	find_outside(&w);
	find_clusters(u, &w, cluster, clusters);
	score_clusters(u, &w);
	order_clusters(u);
}

void unlike_release(struct unlike *u)
{
	free_all(u->of, u->place, u->cells);
	*u = (struct unlike){0};
}

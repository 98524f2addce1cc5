#include "eval/components.h"

#include "base/sort.h"
#include "eval/marker_ranks.h"
#include "eval/pca.h"

#include <cblas.h>
#include <lapacke.h>

enum { GENES = 1000, PCA_CELLS = 20000, TOGETHER = 256 }; /* the genes that vary most; cells that components are of */

void components_choose(struct components *c, const struct sparse *x, const uint32_t *row, size_t n, double least)
{
	double *mean = xcalloc(2 * x->d + 1, sizeof *mean), *variance = mean + x->d, cells;
	FREED struct ranked *order = xmalloc((x->d + 1) * sizeof *order);
	*c = (struct components){.d = x->d, .at = xmalloc((x->d + 1) * sizeof *c->at), .centre = xmalloc((GENES + 1) * sizeof *c->centre)};
	class_moments(x, row, n, NULL, NULL, 1, mean, variance, &cells);
	for (size_t j = 0; j < c->d; j++)
		order[j] = (struct ranked){variance[j], (uint32_t)j};
	qsort(order, c->d, sizeof *order, compare_ranked_down);
	while (c->g < c->d && c->g < GENES && order[c->g].value > least)
		c->g++;
	for (size_t j = 0; j < c->d; j++) {
		c->at[order[j].at] = (uint32_t)(j < c->g ? j : c->g);
		if (j < c->g)
			c->centre[j] = mean[order[j].at];
	}
	free(mean);
}

/* Rows row[0], row[step], ... (NULL: 0, step, ...) before n, at most TOGETHER, from i on, less the mean of the reference: to [rows, g]. How many. */
static size_t dense_rows(const struct components *c, const struct sparse *x, const uint32_t *row, size_t i, size_t n, size_t step,
	struct sparse_row *r, double *to)
{
	size_t m = 0;
	for (; m < TOGETHER && i < n; m++, i += step, to += c->g) {
		sparse_row(x, row ? row[i] : i, r);
		for (size_t j = 0; j < c->g; j++)
			to[j] = -c->centre[j];
		for (size_t j = 0; j < r->n; j++)
			if (c->at[r->column[j]] < c->g)
				to[c->at[r->column[j]]] += (double)r->value[j];
	}
	return m;
}

int components_solve(
	struct components *c, const struct sparse *x, const uint32_t *row, size_t n, size_t step, size_t q, int threads, struct error *e)
{
	FREED double *rows = xmalloc(TOGETHER * c->g * sizeof *rows);
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	RELEASED(pca_release) struct pca p;
	pca_init(&p, c->g);
	for (size_t i = 0, some; (some = dense_rows(c, x, row, i, n, step, &r, rows)); i += some * step)
		pca_add(&p, rows, some, threads);
	int failed = pca_solve(&p, q, e);
	c->q = q;
	c->w = p.w;
	p.w = NULL;
	return failed;
}

float *components_project(const struct components *c, const struct sparse *x, const uint32_t *row, size_t n)
{
	float *y = xmalloc((n * c->q + 1) * sizeof *y);
	FREED double *rows = xmalloc(TOGETHER * c->g * sizeof *rows), *on = xmalloc(TOGETHER * c->q * sizeof *on);
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0, m; (m = dense_rows(c, x, row, i, n, 1, &r, rows)); i += m) {
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)c->q, (int)c->g, 1, rows, (int)c->g, c->w, (int)c->q, 0,
			on, (int)c->q);
		for (size_t j = 0; j < m * c->q; j++)
			y[i * c->q + j] = (float)on[j];
	}
	return y;
}

/* The mean of each class, and the components so that the covariance within classes is the identity: its diagonal gets a thousandth of its mean more
 * before. y [n, q]: rows row[0..n) on the components as they were */
static int whiten(struct components *c, const float *y, const uint32_t *row, size_t n, const uint32_t *class, struct error *e)
{
	size_t q = c->q;
	double trace = 0, gap[COMPONENTS];
	FREED double *cells = xcalloc(c->k, sizeof *cells), *within = xcalloc(q * q, sizeof *within);
	c->types = xcalloc(c->k * q, sizeof *c->types);
	for (size_t i = 0; i < n; i++)
		cells[class[row[i]]]++;
	for (size_t i = 0; i < n; i++)
		for (size_t a = 0; a < q; a++)
			c->types[class[row[i]] * q + a] += (double)y[i * q + a] / cells[class[row[i]]];
	for (size_t i = 0; i < n; i++) {
		for (size_t a = 0; a < q; a++)
			gap[a] = (double)y[i * q + a] - c->types[class[row[i]] * q + a];
		cblas_dsyr(CblasRowMajor, CblasLower, (int)q, 1 / (double)n, gap, 1, within, (int)q);
	}
	for (size_t a = 0; a < q; a++)
		trace += within[a * q + a];
	for (size_t a = 0; a < q; a++)
		within[a * q + a] += 1e-3 * trace / (double)q + 1e-12;
	int bad = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (int)q, within, (int)q);
	if (bad)
		return error_set(e, "no covariance within the classes of %zu cells (dpotrf: %d)", n, bad);
	double *const rows[] = {c->w, c->types};
	const size_t many[] = {c->g, c->k};
	for (int i = 0; i < 2; i++)
		cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)many[i], (int)q, 1, within, (int)q,
			rows[i], (int)q);
	return 0;
}

/* As a file of them has them. */
static void round_components(struct components *c)
{
	double *const x[] = {c->centre, c->w, c->types};
	const size_t n[] = {c->g, c->g * c->q, c->k * c->q};
	for (int i = 0; i < 3; i++)
		for (size_t j = 0; j < n[i]; j++)
			x[i][j] = (double)(float)x[i][j];
}

int components_fit(struct components *c, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, size_t k, int threads,
	struct error *e)
{
	FREED uint32_t *of_class = xmalloc((n + 1) * sizeof *of_class);
	size_t m = 0;
	for (size_t i = 0; i < n; i++)
		if (y[row[i]] < k)
			of_class[m++] = row[i];
	components_choose(c, x, of_class, m, -1);
	c->k = k;
	int failed = components_solve(c, x, of_class, m, m / PCA_CELLS + 1, c->g < COMPONENTS ? c->g : COMPONENTS, threads, e);
	if (!failed) {
		FREED float *on = components_project(c, x, of_class, m);
		failed = whiten(c, on, of_class, m, y, e);
	}
	if (failed)
		components_release(c);
	else
		round_components(c);
	return failed;
}

void components_keep(struct components *c, const uint8_t *keep)
{
	for (size_t j = 0; j < c->d; j++)
		if (!keep[j] && c->at[j] < c->g) {
			c->centre[c->at[j]] = 0;
			c->at[j] = (uint32_t)c->g;
		}
}

void components_release(struct components *c)
{
	free_all(c->at, c->centre, c->w, c->types);
	*c = (struct components){0};
}

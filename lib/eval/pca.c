#include "eval/pca.h"

#include "base/threads.h"

#include <cblas.h>
#include <lapacke.h>

#define TILE 256 /* features: a tile of the covariance is one matrix product */

void pca_init(struct pca *p, size_t d)
{
	*p = (struct pca){.d = d, .gram = xcalloc(d * d, sizeof *p->gram)};
}

void pca_release(struct pca *p)
{
	free_all(p->gram, p->w, p->variance);
	*p = (struct pca){0};
}

struct rows {
	struct pca *p;
	const double *x;
	size_t n;
};

/* Tile number t of the lower triangle: rows i >= columns j of tiles. */
static void add_tile(void *arg, size_t t, int thread)
{
	const struct rows *a = arg;
	size_t i = 0, d = a->p->d;
	while ((i + 1) * (i + 2) / 2 <= t)
		i++;
	size_t from = i * TILE, at = (t - i * (i + 1) / 2) * TILE;
	size_t m = d - from < TILE ? d - from : TILE, n = d - at < TILE ? d - at : TILE;
	cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)n, (int)a->n, 1, a->x + from, (int)d, a->x + at, (int)d, 1,
		a->p->gram + from * d + at, (int)d);
}

void pca_add(struct pca *p, const double *x, size_t n, int threads)
{
	size_t tiles = (p->d + TILE - 1) / TILE;
	struct rows rows = {p, x, n};
	pool_for(threads, tiles * (tiles + 1) / 2, add_tile, &rows);
	p->n += n;
}

int pca_solve(struct pca *p, size_t k, struct error *e)
{
	const int d = (int)p->d;
	int found;
	p->k = k;
	p->w = xmalloc(p->d * k * sizeof *p->w);
	p->variance = xmalloc(k * sizeof *p->variance);
	for (size_t i = 0; i < p->d; i++)
		p->total += p->gram[i * p->d + i] / (double)(p->n - 1);
	FREED double *value = xmalloc(p->d * sizeof *value), *vector = xmalloc(p->d * k * sizeof *vector);
	FREED int *support = xmalloc(2 * p->d * sizeof *support);
	/* the row-major lower triangle is the column-major upper one */
	int bad = LAPACKE_dsyevr(
		LAPACK_COL_MAJOR, 'V', 'I', 'U', d, p->gram, d, 0, 0, d - (int)k + 1, d, 0, &found, value, vector, d, support);
	for (size_t c = 0; !bad && c < k; c++) {
		const double *v = vector + (k - 1 - c) * p->d;
		size_t top = cblas_idamax(d, v, 1);
		p->variance[c] = fmax(0, value[k - 1 - c]) / (double)(p->n - 1);
		for (size_t i = 0; i < p->d; i++)
			p->w[i * k + c] = v[top] < 0 ? -v[i] : v[i];
	}
	return bad ? error_set(e, "no principal components of %zu features (dsyevr: %d)", p->d, bad) : 0;
}

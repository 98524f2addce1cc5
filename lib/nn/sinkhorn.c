#include "nn/sinkhorn.h"

#include "base/error.h"

void sinkhorn_init(struct sinkhorn *x, size_t G, size_t K, size_t iterations)
{
	size_t n = K > 1 ? iterations : 1;
	*x = (struct sinkhorn){
		.G = G,
		.K = K,
		.iterations = n,
		.s = xcalloc(G * K, sizeof *x->s),
		.ds = xcalloc(G * K, sizeof *x->ds),
		.u = xcalloc(n * G, sizeof *x->u),
		.v = xcalloc((n + 1) * K, sizeof *x->v),
		.du = xcalloc(G, sizeof *x->du),
		.dv = xcalloc(2 * K, sizeof *x->dv),
	};
}

void sinkhorn_release(struct sinkhorn *x)
{
	free_all(x->s, x->ds, x->u, x->v, x->du, x->dv);
	*x = (struct sinkhorn){0};
}

/* u from v, then the next v from u. */
static void scale(const struct sinkhorn *x, double *u, const double *v, double *next)
{
	size_t G = x->G, K = x->K;
	memset(next, 0, K * sizeof *next);
	for (size_t j = 0; j < G; j++) {
		const double *s = x->s + j * K;
		double row = 0;
		for (size_t k = 0; k < K; k++)
			row += s[k] * v[k];
		u[j] = K > 1 ? (double)K / row : 1;
		for (size_t k = 0; k < K; k++)
			next[k] += s[k] * u[j];
	}
	for (size_t k = 0; k < K; k++)
		next[k] = (double)G / next[k];
}

void sinkhorn_forward(struct sinkhorn *x)
{
	for (size_t k = 0; k < x->K; k++)
		x->v[k] = 1;
	for (size_t i = 0; i < x->iterations; i++)
		scale(x, x->u + i * x->G, x->v + i * x->K, x->v + (i + 1) * x->K);
}

void sinkhorn_column(const struct sinkhorn *x, size_t k, double *w)
{
	const double *u = x->u + (x->iterations - 1) * x->G, v = x->v[x->iterations * x->K + k];
	for (size_t j = 0; j < x->G; j++)
		w[j] = u[j] * x->s[j * x->K + k] * v;
}

/*
 * The way back through one iteration, v'_k = G / sum_j s_jk u_j and u_j = K / sum_k s_jk v_k:
 *     dc_k = -dv'_k v'_k^2 / G;   ds_jk = dc_k u_j;          du_j += sum_k dc_k s_jk
 *     dr_j = -du_j u_j^2 / K;     ds_jk += dr_j v_k;         dv_k = sum_j dr_j s_jk
 * On the way in, du and dv have the gradients of u and v'; on the way out, du is 0 and dv that of v.
 */
static void scale_back(struct sinkhorn *x, const double *u, const double *v, const double *next)
{
	size_t G = x->G, K = x->K;
	double *dc = x->dv + K; /* the second half */
	for (size_t k = 0; k < K; k++) {
		dc[k] = -x->dv[k] * next[k] * next[k] / (double)G;
		x->dv[k] = 0;
	}
	for (size_t j = 0; j < G; j++) {
		const double *s = x->s + j * K;
		double du = x->du[j];
		for (size_t k = 0; k < K; k++)
			du += dc[k] * s[k];
		double dr = K > 1 ? -du * u[j] * u[j] / (double)K : 0;
		for (size_t k = 0; k < K; k++) {
			x->ds[j * K + k] += dc[k] * u[j] + dr * v[k];
			x->dv[k] += dr * s[k];
		}
		x->du[j] = 0;
	}
}

void sinkhorn_back(struct sinkhorn *x, size_t k, const double *dw)
{
	size_t G = x->G, K = x->K, n = x->iterations;
	const double *u = x->u + (n - 1) * G, *v = x->v + n * K;
	memset(x->ds, 0, G * K * sizeof *x->ds);
	memset(x->dv, 0, K * sizeof *x->dv);
	for (size_t j = 0; j < G; j++) { /* w_j = u_j s_jk v_k */
		double s = x->s[j * K + k];
		x->du[j] = dw[j] * s * v[k];
		x->dv[k] += dw[j] * s * u[j];
		x->ds[j * K + k] = dw[j] * u[j] * v[k];
	}
	for (size_t i = n; i-- > 0;)
		scale_back(x, x->u + i * G, x->v + i * K, x->v + (i + 1) * K);
}

#include "risk/risk_theory.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void risk_isotropic(double gamma, double b2, double s2, double r, struct risk *out)
{
	risk_spiked(gamma, 0, 0, b2, s2, r, out);
}

void risk_spiked(double gamma, double c, double t, double b2, double s2, double r, struct risk *out)
{
	double q = 1 - r, t2 = t * t, k = (1 + c) / (1 + q * c), tau2 = s2 + r * b2 + c * r * r * t2 / (1 + q * c);
	if (r < gamma) {
		double rho = r / gamma, pi = rho * (1 + q * c) / (1 + rho * q * c), miss = pi * k - 1;
		out->bias = (1 - rho) * (b2 - t2) + t2 * (1 + pi * k * (k - 2) + c * miss * miss);
		out->variance = tau2 * r / (q * (gamma - r));
		out->magnitude = rho * (b2 - t2) + t2 * (pi * k * k + c * pi * k * pi * k) + out->variance;
	} else {
		double a = c * r * t / (1 + q * c);
		out->bias = (1 + c) * a * a;
		out->variance = tau2 * gamma / (q * (r - gamma));
		out->magnitude = b2 - t2 + (1 + c) * t2 * k * k + out->variance;
	}
	out->risk = out->bias + out->variance;
}

double risk_threshold(double m1, double m2, double s2)
{
	double ratio = m2 / m1;
	return (ratio + sqrt(ratio * ratio + 8 * s2 * ratio)) / 4;
}

/* diagonal[j] = w_j' D w_j for the eigenvectors w */
static void rotate_diagonal(const struct risk_model *m, const double *vector, double *diagonal)
{
	size_t p = m->p;
	for (size_t j = 0; j < p; j++) {
		double sum = 0;
		for (size_t i = 0; i < p; i++)
			sum += m->sigma[i * p + i] * vector[j * p + i] * vector[j * p + i];
		diagonal[j] = sum;
	}
}

int risk_theory_init(struct risk_theory *t, const struct risk_model *m, struct error *e)
{
	size_t p = m->p;
	*t = (struct risk_theory){.m = m, .constant = 1};
	t->cov = xcalloc(p, sizeof *t->cov);
	t->value = xcalloc(p, sizeof *t->value);
	t->diagonal = xcalloc(p, sizeof *t->diagonal);
	t->vector = xmalloc(p * p * sizeof *t->vector);
	cblas_dsymv(CblasColMajor, CblasLower, (int)p, 1, m->sigma, (int)p, m->beta, 1, 0, t->cov, 1);
	t->null = cblas_ddot((int)p, t->cov, 1, m->beta, 1);
	for (size_t i = 0; i < p; i++)
		t->mean += m->sigma[i * p + i] / (double)p;
	for (size_t i = 0; i < p; i++)
		t->constant &= fabs(m->sigma[i * p + i] - t->mean) < 1e-12 * t->mean;
	memcpy(t->vector, m->sigma, p * p * sizeof *t->vector);
	int status = risk_eigen(t->vector, m->p, t->value, e);
	t->square = cblas_ddot((int)p, t->value, 1, t->value, 1) / (double)p;
	rotate_diagonal(m, t->vector, t->diagonal);
	if (status)
		risk_theory_release(t);
	return status;
}

void risk_theory_release(struct risk_theory *t)
{
	free(t->cov);
	free(t->value);
	free(t->vector);
	free(t->diagonal);
	*t = (struct risk_theory){0};
}

/* Newton's method from 0: the trace is convex and falls, so kappa rises to the solution. */
double risk_kappa(const double *s, uint32_t p, double n)
{
	double kappa = 0;
	for (int it = 0; n < p && it < 200; it++) {
		double over = -n, slope = 0;
		for (uint32_t j = 0; j < p; j++) {
			double x = s[j] / (s[j] + kappa);
			over += x;
			slope += x / (s[j] + kappa);
		}
		double step = over / slope;
		kappa += step;
		if (step <= 1e-15 * kappa)
			break;
	}
	return kappa;
}

/* Eigenvalues s and eigenvectors w of q^2 Sigma + q r D. w points to t->vector or to room [p, p], which the caller frees. */
static int masked_spectrum(
	const struct risk_theory *t, double r, double *s, double *diagonal, const double **w, double **room, struct error *e)
{
	size_t p = t->m->p;
	double q = 1 - r;
	if (t->constant) {
		for (size_t j = 0; j < p; j++)
			s[j] = q * q * t->value[j] + q * r * t->mean;
		memcpy(diagonal, t->diagonal, p * sizeof *diagonal);
		*w = t->vector;
		return 0;
	}
	double *a = *room = xmalloc(p * p * sizeof *a);
	for (size_t i = 0; i < p * p; i++)
		a[i] = q * q * t->m->sigma[i];
	for (size_t i = 0; i < p; i++)
		a[i * p + i] += q * r * t->m->sigma[i * p + i];
	*w = a;
	if (risk_eigen(a, t->m->p, s, e))
		return -1;
	rotate_diagonal(t->m, a, diagonal);
	return 0;
}

int risk_finite(const struct risk_theory *t, double n, double r, struct risk *out, struct error *e)
{
	size_t p = t->m->p;
	double q = 1 - r, rows = n * r, *room = NULL, *s = xcalloc(6 * p, sizeof *s), *diagonal = s + p, *cov = s + 2 * p, *b = s + 3 * p,
	       *x = s + 4 * p, *scratch = s + 5 * p;
	const double *w;
	int status = masked_spectrum(t, r, s, diagonal, &w, &room, e);
	if (!status) {
		double kappa = risk_kappa(s, t->m->p, rows), explained = 0, squares = 0, trace = 0, rest = 0;
		cblas_dgemv(CblasColMajor, CblasTrans, (int)p, (int)p, 1, w, (int)p, t->cov, 1, 0, cov, 1);
		for (size_t j = 0; j < p; j++) {
			double theta = q * cov[j] / s[j], share = s[j] / (s[j] + kappa);
			b[j] = share * theta;
			explained += q * cov[j] * theta;
			squares += share * share;
			/* w_j' Sigma w_j, as Sigma = (S - q r D) / q^2 */
			trace += (s[j] - q * r * diagonal[j]) / (q * q) * share * share / s[j];
			rest += kappa * kappa * theta * theta * s[j] / ((s[j] + kappa) * (s[j] + kappa));
		}
		double f = trace / (rows - squares), tau2 = t->m->noise + t->null - explained;
		cblas_dgemv(CblasColMajor, CblasNoTrans, (int)p, (int)p, 1, w, (int)p, b, 1, 0, x, 1);
		double size = risk_model_norm(t->m, x, scratch);
		cblas_daxpy((int)p, -1, t->m->beta, 1, x, 1);
		double miss = risk_model_norm(t->m, x, scratch);
		out->bias = miss + (kappa > 0 ? f * rest : 0); /* at the pole f is infinite and kappa 0 */
		out->variance = f * tau2;
		out->risk = out->bias + out->variance;
		out->magnitude = size + out->risk - miss;
	}
	free(room);
	free(s);
	return status;
}

/* ---- rows with ratios of their own ---- */

/* Groups of rows. The covariance of group i is S_i = q_i^2 Sigma + q_i r_i D, so traces with it are sums of traces with Sigma and D. */
struct groups {
	const struct risk_theory *t;
	uint32_t n;
	const double *ratio, *rows; /* [n] */
	double *g; /* [n] */
	double *k; /* [p, p] K */
};

/* Weights of Sigma and D in S_i */
static double weight_sigma(const struct groups *a, uint32_t i)
{
	return (1 - a->ratio[i]) * (1 - a->ratio[i]);
}

static double weight_diagonal(const struct groups *a, uint32_t i)
{
	return (1 - a->ratio[i]) * a->ratio[i];
}

static double sigma_ii(const struct groups *a, size_t i)
{
	return a->t->m->sigma[i * a->t->m->p + i];
}

/* K = (over I + sum_i rows_i / g_i S_i)^-1, with tr Sigma K and tr D K. */
static int find_k(struct groups *a, int over, double *sigma_k, double *d_k, struct error *e)
{
	size_t p = a->t->m->p;
	double s = 0, d = 0, *k = a->k;
	for (uint32_t i = 0; i < a->n; i++) {
		s += a->rows[i] / a->g[i] * weight_sigma(a, i);
		d += a->rows[i] / a->g[i] * weight_diagonal(a, i);
	}
	for (size_t i = 0; i < p * p; i++)
		k[i] = s * a->t->m->sigma[i];
	for (size_t i = 0; i < p; i++)
		k[i * p + i] += over + d * sigma_ii(a, i);
	lapack_int n = (lapack_int)p;
	if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', n, k, n) || LAPACKE_dpotri(LAPACK_COL_MAJOR, 'L', n, k, n))
		return error_set(e, "row-wise ratios: the covariance of the masked rows is not positive definite");
	*sigma_k = *d_k = 0;
	for (size_t j = 0; j < p; j++) {
		*d_k += sigma_ii(a, j) * k[j * p + j];
		*sigma_k += sigma_ii(a, j) * k[j * p + j];
		for (size_t i = j + 1; i < p; i++) {
			k[i * p + j] = k[j * p + i];
			*sigma_k += 2 * a->t->m->sigma[j * p + i] * k[j * p + i];
		}
	}
	return 0;
}

/* g_i = tr S_i K; with at least p rows K is without I, and g_i = 1 + tr S_i K. */
static int fixed_point(struct groups *a, struct error *e)
{
	double total = 0, p = a->t->m->p;
	for (uint32_t i = 0; i < a->n; i++)
		total += a->rows[i];
	int over = total < p;
	for (uint32_t i = 0; i < a->n; i++)
		a->g[i] = over ? p * a->t->mean * (weight_sigma(a, i) + weight_diagonal(a, i)) : 1;
	for (int it = 0; it < 10000; it++) {
		double change = 0, sigma_k = 0, d_k = 0;
		if (find_k(a, over, &sigma_k, &d_k, e))
			return -1;
		for (uint32_t i = 0; i < a->n; i++) {
			double g = !over + weight_sigma(a, i) * sigma_k + weight_diagonal(a, i) * d_k, d = fabs(g / a->g[i] - 1);
			change = d > change ? d : change;
			a->g[i] = g;
		}
		if (change < 1e-12)
			return 0;
	}
	return error_set(e, "the fixed point of row-wise ratios does not converge: %.6g expected rows for %.0f features", total, p);
}

/* tr Sigma K Sigma K, tr Sigma K D K, tr D K D K */
struct traces {
	double ss, sd, dd;
};

static struct traces find_traces(const struct groups *a)
{
	size_t p = a->t->m->p;
	struct traces t = {0};
	double *sk = xmalloc(p * p * sizeof *sk);
	cblas_dsymm(CblasColMajor, CblasLeft, CblasLower, (int)p, (int)p, 1, a->t->m->sigma, (int)p, a->k, (int)p, 0, sk, (int)p);
	for (size_t j = 0; j < p; j++)
		for (size_t i = 0; i < p; i++) {
			t.ss += sk[j * p + i] * sk[i * p + j];
			t.sd += sk[j * p + i] * sigma_ii(a, j) * a->k[j * p + i];
			t.dd += sigma_ii(a, i) * sigma_ii(a, j) * a->k[j * p + i] * a->k[j * p + i];
		}
	free(sk);
	return t;
}

/* error [n]: the residual variance of the rows of each group, by (I - T) error = c with T_ik = rows_k / g_k^2 tr S_i K S_k K. */
static int find_errors(const struct groups *a, const struct traces *t, double *error, struct error *e)
{
	lapack_int n = (lapack_int)a->n, *pivot = xcalloc(a->n, sizeof *pivot);
	double *matrix = xcalloc((size_t)a->n * a->n, sizeof *matrix);
	for (uint32_t i = 0; i < a->n; i++)
		for (uint32_t k = 0; k < a->n; k++) {
			double si = weight_sigma(a, i), di = weight_diagonal(a, i), sk = weight_sigma(a, k), dk = weight_diagonal(a, k);
			double trace = si * sk * t->ss + (si * dk + di * sk) * t->sd + di * dk * t->dd;
			matrix[(size_t)k * a->n + i] = (i == k) - a->rows[k] / (a->g[k] * a->g[k]) * trace;
		}
	int status = LAPACKE_dgesv(LAPACK_COL_MAJOR, n, 1, matrix, n, pivot, error, n) != 0;
	free(matrix);
	free(pivot);
	return status ? error_set(e, "row-wise ratios: the equations of the residuals are singular") : 0;
}

static int rowwise_risk(const struct groups *a, struct risk *out, struct error *e)
{
	const struct risk_theory *t = a->t;
	size_t p = t->m->p;
	double *b = xcalloc(2 * p, sizeof *b), *scratch = b + p, *error = xcalloc(a->n, sizeof *error), weight = 0, diagonal = 0, more = 0;
	for (uint32_t i = 0; i < a->n; i++)
		weight += a->rows[i] * (1 - a->ratio[i]) / a->g[i];
	cblas_dsymv(CblasColMajor, CblasLower, (int)p, weight, a->k, (int)p, t->cov, 1, 0, b, 1);
	double size = risk_model_norm(t->m, b, scratch), along = cblas_ddot((int)p, b, 1, t->cov, 1);
	for (size_t j = 0; j < p; j++)
		diagonal += sigma_ii(a, j) * b[j] * b[j];
	for (uint32_t i = 0; i < a->n; i++)
		error[i] = t->m->noise + t->null - 2 * (1 - a->ratio[i]) * along + weight_sigma(a, i) * size +
			weight_diagonal(a, i) * diagonal;
	struct traces traces = find_traces(a);
	int status = find_errors(a, &traces, error, e);
	for (uint32_t k = 0; k < a->n; k++)
		more += a->rows[k] * error[k] / (a->g[k] * a->g[k]) * (weight_sigma(a, k) * traces.ss + weight_diagonal(a, k) * traces.sd);
	cblas_daxpy((int)p, -1, t->m->beta, 1, b, 1);
	*out = (struct risk){.bias = NAN, .variance = NAN, .risk = risk_model_norm(t->m, b, scratch) + more, .magnitude = size + more};
	free(b);
	free(error);
	return status;
}

int risk_rowwise(const struct risk_theory *t, uint32_t groups, const double *ratio, const double *rows, struct risk *out, struct error *e)
{
	size_t p = t->m->p;
	struct groups a = {.t = t, .n = groups, .ratio = ratio, .rows = rows};
	a.g = xcalloc(groups, sizeof *a.g);
	a.k = xmalloc(p * p * sizeof *a.k);
	int status = fixed_point(&a, e);
	if (!status)
		status = rowwise_risk(&a, out, e);
	free(a.g);
	free(a.k);
	return status;
}

enum { NODES = 16 };

/* Nodes and weights (sum 1) of Gauss-Legendre quadrature on [0, 1]. [Golub and Welsch 1969] */
static int legendre(double node[NODES], double weight[NODES], struct error *e)
{
	double off[NODES] = {0}, vector[NODES * NODES];
	for (int i = 0; i < NODES; i++) {
		node[i] = 0;
		off[i] = (i + 1) / sqrt(4.0 * (i + 1) * (i + 1) - 1);
	}
	if (LAPACKE_dstev(LAPACK_COL_MAJOR, 'V', NODES, node, off, vector, NODES))
		return error_set(e, "the nodes of the quadrature were not found");
	for (int i = 0; i < NODES; i++) {
		node[i] = (node[i] + 1) / 2;
		weight[i] = vector[i * NODES] * vector[i * NODES];
	}
	return 0;
}

int risk_range(const struct risk_theory *t, double n, double lo, double hi, int coupled, struct risk *out, struct error *e)
{
	double node[NODES], weight[NODES], rows[NODES];
	if (legendre(node, weight, e))
		return -1;
	/* coupled: kept if u < lo + (hi - lo) u for the uniform u of the row, so u and the ratio have these upper ends */
	double end = lo / (1 - (hi - lo));
	for (int i = 0; i < NODES; i++) {
		node[i] = lo + (coupled ? end - lo : hi - lo) * node[i];
		rows[i] = n * weight[i] * (coupled ? end : node[i]);
	}
	return risk_rowwise(t, NODES, node, rows, out, e);
}

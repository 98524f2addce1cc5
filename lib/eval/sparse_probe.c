/*
 * L-BFGS (libLBFGS) on float32 rows. Features are centred, so that a step of the weights does not move all logits; the rows stay sparse, as
 * W (x - m) + b = W x + (b - W m)  and the gradient of W is  sum r x^T - (sum r) m^T.  Weights are divided by the square root of what the
 * Hessian has on its diagonal at W = 0 for a class against the rest. 15 to 40 passes over the rows come within a few per cent of the
 * optimum (tests/unit/test_sparse_probe.c); the folds of a calibration start from 0, as the solution of all rows would tell them of the
 * rows that are left out.
 */
#include "eval/sparse_probe.h"

#include <lbfgs.h>
#include <math.h>

enum { FEWEST_ROWS = 3, FEWEST_PASSES = 15, MOST_PASSES = 40, ROWS = 50000 }; /* n rows: FEWEST_PASSES + ROWS / n, at most MOST_PASSES */
enum { VECTOR = 8, TOGETHER = 4 }; /* so many vectors of a row's logits stay in registers */
typedef float vector __attribute__((vector_size(4 * VECTOR), aligned(4)));

struct fit {
	const struct sparse *x;
	const uint32_t *row, *y;
	size_t n, k, stride;
	const float *weight;
	double total; /* of the weights of the rows */
	const uint8_t *under;
	double penalty;
	double *mean; /* [x->d] */
	uint32_t *kept; /* [d] the features that enough rows have */
	size_t d, passes;
	double *scale; /* [d + 1] of a weight; the last one is of intercepts */
	float *w, *g; /* [x->d, stride] weights, gradient */
	float *b, *z, *sum; /* [stride] b - W m; logits; sum of r */
	struct sparse_row own; /* scratch */
};

static double weight_of(const float *weight, uint32_t row)
{
	return weight ? (double)weight[row] : 1;
}

static double total_weight(const uint32_t *row, size_t n, const float *weight)
{
	double total = 0;
	for (size_t i = 0; i < n; i++)
		total += weight_of(weight, row[i]);
	return total;
}

/* z += w x of `blocks` vectors of classes */
static inline __attribute__((always_inline)) void multiply(const float *w, size_t stride, const struct sparse_row *x, float *z, int blocks)
{
	vector a[TOGETHER];
	memcpy(a, z, (size_t)blocks * sizeof *a);
	for (size_t j = 0; j < x->n; j++) {
		const vector *f = (const vector *)(w + x->column[j] * stride);
		for (int c = 0; c < blocks; c++)
			a[c] += x->value[j] * f[c];
	}
	memcpy(z, a, (size_t)blocks * sizeof *a);
}

/* g += z x^T, likewise */
static inline __attribute__((always_inline)) void scatter(float *g, size_t stride, const struct sparse_row *x, float *z, int blocks)
{
	vector a[TOGETHER];
	memcpy(a, z, (size_t)blocks * sizeof *a);
	for (size_t j = 0; j < x->n; j++) {
		vector *f = (vector *)(g + x->column[j] * stride);
		for (int c = 0; c < blocks; c++)
			f[c] += x->value[j] * a[c];
	}
}

/* Call f for all classes, some vectors of them at a time. */
#define BY_VECTORS(f, w, stride, x, z) \
	for (size_t at = 0, left; at < stride; at += VECTOR * TOGETHER) { \
		left = (stride - at) / VECTOR; \
		if (left == 1) \
			f(w + at, stride, x, z + at, 1); \
		else if (left == 2) \
			f(w + at, stride, x, z + at, 2); \
		else if (left == 3) \
			f(w + at, stride, x, z + at, 3); \
		else \
			f(w + at, stride, x, z + at, TOGETHER); \
	}

/* z = w x + b */
static void logits(const float *w, size_t stride, const struct sparse_row *x, const float *b, float *z)
{
	memcpy(z, b, stride * sizeof *z);
	BY_VECTORS(multiply, w, stride, x, z)
}

/* Logits become (p - [class is y]) share; 0 after the k classes. Returns -log p[y]. */
static double row_residual(float *z, size_t k, size_t stride, uint32_t y, float share)
{
	float most = z[0], sum = 0, own = z[y];
	for (size_t c = 1; c < k; c++)
		most = z[c] > most ? z[c] : most;
	for (size_t c = 0; c < k; c++) {
		z[c] = expf(z[c] - most);
		sum += z[c];
	}
	for (size_t c = 0; c < stride; c++)
		z[c] = c < k ? z[c] / sum * share : 0;
	z[y] -= share;
	return log((double)sum) + (double)most - (double)own;
}

/* The same for a row whose class is one of those with in = 1. Each sum is taken relative to its own largest term, so none is 0. */
static double set_residual(float *z, size_t k, size_t stride, const uint8_t *in, float share)
{
	float most = z[0], most_in = -INFINITY, sum = 0, sum_in = 0;
	for (size_t c = 0; c < k; c++) {
		most = z[c] > most ? z[c] : most;
		most_in = in[c] && z[c] > most_in ? z[c] : most_in;
	}
	for (size_t c = 0; c < k; c++) {
		sum += expf(z[c] - most);
		sum_in += in[c] ? expf(z[c] - most_in) : 0;
	}
	for (size_t c = 0; c < stride; c++)
		z[c] = c < k ? (expf(z[c] - most) / sum - (in[c] ? expf(z[c] - most_in) / sum_in : 0)) * share : 0;
	return log((double)sum) + (double)most - log((double)sum_in) - (double)most_in;
}

/* The weights at u [d + 1, k], and b - W m. */
static void unpack(struct fit *f, const double *u)
{
	FREED double *b = xmalloc(f->stride * sizeof *b);
	for (size_t c = 0; c < f->stride; c++)
		b[c] = c < f->k ? u[f->d * f->k + c] * f->scale[f->d] : 0;
	for (size_t j = 0; j < f->d; j++)
		for (size_t c = 0; c < f->k; c++) {
			double w = u[j * f->k + c] * f->scale[j];
			f->w[f->kept[j] * f->stride + c] = (float)w;
			b[c] -= f->mean[f->kept[j]] * w;
		}
	for (size_t c = 0; c < f->stride; c++)
		f->b[c] = (float)b[c];
}

/* The objective at u, and its gradient. */
static lbfgsfloatval_t evaluate(void *arg, const lbfgsfloatval_t *u, lbfgsfloatval_t *g, const int size, const lbfgsfloatval_t step)
{
	struct fit *f = arg;
	double loss = 0, square = 0;
	(void)size;
	(void)step;
	unpack(f, u);
	memset(f->g, 0, f->x->d * f->stride * sizeof *f->g);
	memset(f->sum, 0, f->stride * sizeof *f->sum);
	for (size_t i = 0; i < f->n; i++) {
		sparse_row(f->x, f->row[i], &f->own);
		logits(f->w, f->stride, &f->own, f->b, f->z);
		uint32_t y = f->y[f->row[i]];
		double weight = weight_of(f->weight, f->row[i]);
		float share = (float)(weight / f->total);
		loss += weight *
			(y < f->k ? row_residual(f->z, f->k, f->stride, y, share)
				  : set_residual(f->z, f->k, f->stride, f->under + (y - f->k) * f->k, share));
		for (size_t c = 0; c < f->k; c++)
			f->sum[c] += f->z[c];
		BY_VECTORS(scatter, f->g, f->stride, &f->own, f->z)
	}
	for (size_t j = 0; j < f->d; j++)
		for (size_t c = 0; c < f->k; c++) {
			double w = u[j * f->k + c] * f->scale[j], v = (double)f->g[f->kept[j] * f->stride + c];
			square += w * w;
			g[j * f->k + c] = (v - f->mean[f->kept[j]] * (double)f->sum[c] + f->penalty * w) * f->scale[j];
		}
	for (size_t c = 0; c < f->k; c++)
		g[f->d * f->k + c] = (double)f->sum[c] * f->scale[f->d];
	f->passes -= f->passes > 0;
	return loss / f->total + f->penalty / 2 * square;
}

static int done(void *arg, const lbfgsfloatval_t *u, const lbfgsfloatval_t *g, const lbfgsfloatval_t fx, const lbfgsfloatval_t xnorm,
	const lbfgsfloatval_t gnorm, const lbfgsfloatval_t step, int n, int k, int ls)
{
	(void)u, (void)g, (void)fx, (void)xnorm, (void)gnorm, (void)step, (void)n, (void)k, (void)ls;
	return !((const struct fit *)arg)->passes;
}

/* The mean of the rows, malloced. */
static double *means(const struct sparse *x, const uint32_t *row, size_t n, const float *weight)
{
	double *mean = xcalloc(x->d + 1, sizeof *mean), total = total_weight(row, n, weight);
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < n; i++) {
		double share = weight_of(weight, row[i]) / total;
		sparse_row(x, row[i], &r);
		for (size_t j = 0; j < r.n; j++)
			mean[r.column[j]] += share * (double)r.value[j];
	}
	return mean;
}

/* The features that enough rows have, and the scales of their weights. */
static void choose_features(struct fit *f)
{
	const struct sparse *x = f->x;
	FREED double *square = xcalloc(x->d + 1, sizeof *square);
	FREED uint32_t *rows = xcalloc(x->d + 1, sizeof *rows);
	for (size_t i = 0; i < f->n; i++) {
		double weight = weight_of(f->weight, f->row[i]);
		sparse_row(x, f->row[i], &f->own);
		for (size_t j = 0; j < f->own.n; j++) {
			rows[f->own.column[j]]++;
			square[f->own.column[j]] += weight * (double)f->own.value[j] * (double)f->own.value[j];
		}
	}
	for (size_t j = 0; j < x->d; j++) {
		if (rows[j] < FEWEST_ROWS)
			continue;
		double variance = square[j] / f->total - f->mean[j] * f->mean[j];
		f->scale[f->d] = 1 / sqrt(fmax(variance, 0) / 4 + f->penalty);
		f->kept[f->d++] = (uint32_t)j;
	}
	f->scale[f->d] = 2;
}

int sparse_probe_fit(struct sparse_probe *p, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, size_t k,
	const float *weight, const uint8_t *under, double penalty, struct error *e)
{
	size_t stride = (k + VECTOR - 1) / VECTOR * VECTOR, passes = FEWEST_PASSES + ROWS / n;
	struct fit f = {x, row, y, n, k, stride, weight, total_weight(row, n, weight), under, penalty, means(x, row, n, weight),
		xmalloc((x->d + 1) * sizeof *f.kept), 0, passes < MOST_PASSES ? passes : MOST_PASSES, xmalloc((x->d + 1) * sizeof *f.scale),
		xlarge(x->d * stride + 1, sizeof *f.w), xlarge(x->d * stride + 1, sizeof *f.g), xmalloc(stride * sizeof *f.b),
		xmalloc(stride * sizeof *f.z), xmalloc(stride * sizeof *f.sum), {0}};
	lbfgs_parameter_t how;
	memset(f.w, 0, x->d * stride * sizeof *f.w);
	choose_features(&f);
	lbfgs_parameter_init(&how);
	how.epsilon = 1e-6;
	int size = (int)((f.d + 1) * k);
	lbfgsfloatval_t *u = xchecked(lbfgs_malloc(size)), unused;
	memset(u, 0, (size_t)size * sizeof *u);
	/* where it fails for another reason, u is the best point so far */
	if (lbfgs(size, u, &unused, evaluate, done, &f, &how) == LBFGSERR_OUTOFMEMORY)
		xchecked(NULL);
	unpack(&f, u);
	*p = (struct sparse_probe){k, x->d, stride, f.w, f.b};
	lbfgs_free(u);
	free_all(f.mean, f.kept, f.scale, f.g, f.z, f.sum);
	sparse_row_release(&f.own);
	return isfinite(p->b[0]) ? 0 : error_set(e, "the weights are not finite");
}

void sparse_probe_release(struct sparse_probe *p)
{
	free_all(p->w, p->b);
	*p = (struct sparse_probe){0};
}

void sparse_probe_keep(struct sparse_probe *p, const uint8_t *keep)
{
	for (size_t j = 0; j < p->d; j++)
		if (!keep[j])
			memset(p->w + j * p->stride, 0, p->stride * sizeof *p->w);
}

void sparse_probe_logits(const struct sparse_probe *p, const struct sparse_row *x, float *logit)
{
	logits(p->w, p->stride, x, p->b, logit);
}

/* The norms, b and |m|^2 of w and mean. */
static void centroids_settle(struct centroids *c)
{
	c->square = 0;
	for (size_t j = 0; j < c->d; j++)
		c->square += (double)c->mean[j] * (double)c->mean[j];
	for (size_t a = 0; a < c->k; a++) {
		double square = 0, offset = 0;
		for (size_t j = 0; j < c->d; j++) {
			double w = (double)c->w[j * c->stride + a];
			square += w * w;
			offset -= w * (double)c->mean[j];
		}
		for (size_t j = 0; j < c->d && square > 0; j++)
			c->w[j * c->stride + a] = (float)((double)c->w[j * c->stride + a] / sqrt(square));
		c->b[a] = square > 0 ? (float)(offset / sqrt(square)) : 0;
	}
}

void centroids_fit(
	struct centroids *c, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, const float *weight, size_t k)
{
	size_t d = x->d, stride = (k + 7) / 8 * 8;
	FREED double *sum = xcalloc(k * d + 1, sizeof *sum), *cells = xcalloc(k, sizeof *cells), *mean = means(x, row, n, weight);
	*c = (struct centroids){
		k, d, stride, xcalloc(d * stride + 1, sizeof *c->w), xcalloc(stride, sizeof *c->b), xmalloc((d + 1) * sizeof *c->mean), 0};
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < n; i++) {
		double own = weight_of(weight, row[i]);
		cells[y[row[i]]] += own;
		sparse_row(x, row[i], &r);
		for (size_t j = 0; j < r.n; j++)
			sum[y[row[i]] * d + r.column[j]] += own * (double)r.value[j];
	}
	for (size_t j = 0; j < d; j++) {
		c->mean[j] = (float)mean[j];
		for (size_t a = 0; a < k; a++)
			c->w[j * stride + a] = (float)(sum[a * d + j] / cells[a] - mean[j]);
	}
	centroids_settle(c);
}

void centroids_keep(struct centroids *c, const uint8_t *keep)
{
	for (size_t j = 0; j < c->d; j++)
		if (!keep[j]) {
			c->mean[j] = 0;
			memset(c->w + j * c->stride, 0, c->stride * sizeof *c->w);
		}
	centroids_settle(c);
}

void centroids_release(struct centroids *c)
{
	free_all(c->w, c->b, c->mean);
	*c = (struct centroids){0};
}

double centroids_distance(const struct centroids *c, const struct sparse_row *x)
{
	float *z = xmalloc(c->stride * sizeof *z), most;
	double square = c->square;
	logits(c->w, c->stride, x, c->b, z);
	for (size_t j = 0; j < x->n; j++) {
		double v = (double)x->value[j];
		square += v * (v - 2 * (double)c->mean[x->column[j]]);
	}
	most = z[0];
	for (size_t a = 1; a < c->k; a++)
		most = z[a] > most ? z[a] : most;
	free(z);
	return square > 0 ? 1 - (double)most / sqrt(square) : 1;
}

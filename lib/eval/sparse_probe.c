/*
 * Adam [Kingma, Ba 2015] on batches of rows, with steps that shrink to zero as half a wave of a cosine: five passes over many rows come within
 * a few per cent of the optimum (tests/unit/test_sparse_probe.c), where L-BFGS needs forty. Features are centred, so that a step of the weights does
 * not move all logits. The rows stay sparse, as  W (x - m) + b = W x + (b - W m)  and the gradient of W is  sum r x^T - (sum r) m^T.
 */
#include "eval/sparse_probe.h"

#include "base/error.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 5, STEPS = 2000 }; /* passes, but at least so many steps */
static const double rate = 0.03, beta1 = 0.9, beta2 = 0.99;

struct fit {
	const struct sparse *x;
	const uint32_t *y;
	size_t k, d, stride;
	double penalty;
	double *mean; /* [d] */
	float *w, *g, *m1, *m2; /* [d + 1, stride] weights, then intercepts of centred features; gradient; its moments */
	float *z, *b, *sum; /* [stride] logits; b - W m; sum of r */
};

/* z = w x_i + b */
static void logits(const float *w, size_t stride, const struct sparse *x, size_t i, const float *b, float *z)
{
	memcpy(z, b, stride * sizeof *z);
	for (uint64_t j = x->offset[i]; j < x->offset[i + 1]; j++) {
		const float *f = w + x->column[j] * stride, v = x->value[j];
		for (size_t c = 0; c < stride; c++)
			z[c] += v * f[c];
	}
}

/* Logits become p - [class is y]; 0 after the k classes. */
static void row_residual(float *z, size_t k, size_t stride, uint32_t y)
{
	float most = z[0], sum = 0;
	for (size_t c = 1; c < k; c++)
		most = z[c] > most ? z[c] : most;
	for (size_t c = 0; c < k; c++) {
		z[c] = expf(z[c] - most);
		sum += z[c];
	}
	for (size_t c = 0; c < stride; c++)
		z[c] = c < k ? z[c] / sum : 0;
	z[y] -= 1;
}

/* Rows of a step: a quarter of them, from 64 to 256 */
static size_t batch(size_t n)
{
	size_t rows = n / 4 < 64 ? 64 : n / 4 > 256 ? 256 : n / 4;
	return rows < n ? rows : n;
}

/* Add the gradient of the loss of row i, divided by the rows of the batch. */
static void add_gradient(struct fit *f, size_t i, float share)
{
	const struct sparse *x = f->x;
	logits(f->w, f->stride, x, i, f->b, f->z);
	row_residual(f->z, f->k, f->stride, f->y[i]);
	for (size_t c = 0; c < f->stride; c++) {
		f->z[c] *= share;
		f->sum[c] += f->z[c];
	}
	for (uint64_t j = x->offset[i]; j < x->offset[i + 1]; j++) {
		float *g = f->g + x->column[j] * f->stride, v = x->value[j];
		for (size_t c = 0; c < f->stride; c++)
			g[c] += v * f->z[c];
	}
}

/* b - W m of the intercepts and weights */
static void centre(const struct fit *f, float *b)
{
	memcpy(b, f->w + f->d * f->stride, f->stride * sizeof *b);
	for (size_t j = 0; j < f->d; j++)
		for (size_t c = 0; c < f->stride; c++)
			b[c] -= (float)f->mean[j] * f->w[j * f->stride + c];
}

/* Move the weights by the gradient in g; t: steps before this one, of `steps`. */
static void adam(struct fit *f, size_t t, size_t steps)
{
	double step = rate / 2 * (1 + cos(M_PI * (double)t / (double)steps)) / (1 - pow(beta1, (double)t + 1));
	const float to1 = (float)beta1, to2 = (float)beta2, by = (float)step, scale = (float)(1 / (1 - pow(beta2, (double)t + 1)));
	for (size_t j = 0; j <= f->d; j++) {
		const float mean = j < f->d ? (float)f->mean[j] : -1, penalty = j < f->d ? (float)f->penalty : 0;
		float *w = f->w + j * f->stride, *g = f->g + j * f->stride, *m1 = f->m1 + j * f->stride, *m2 = f->m2 + j * f->stride;
		for (size_t c = 0; c < f->stride; c++) {
			float v = g[c] - mean * f->sum[c] + penalty * w[c];
			m1[c] = to1 * m1[c] + (1 - to1) * v;
			m2[c] = to2 * m2[c] + (1 - to2) * v * v;
			w[c] -= by * m1[c] / (sqrtf(m2[c] * scale) + 1e-8f);
		}
	}
}

static void shuffle(uint32_t *row, size_t n, uint32_t seed, uint64_t pass)
{
	struct rng r = rng_at(seed, RNG_ROWS, pass, 0);
	for (size_t i = n; i > 1; i--) {
		size_t j = rng_below(&r, (uint32_t)i);
		uint32_t t = row[i - 1];
		row[i - 1] = row[j];
		row[j] = t;
	}
}

/* The mean of the rows, malloced. */
static double *means(const struct sparse *x, const uint32_t *row, size_t n)
{
	double *mean = xcalloc(x->d + 1, sizeof *mean);
	for (size_t i = 0; i < n; i++)
		for (uint64_t j = x->offset[row[i]]; j < x->offset[row[i] + 1]; j++)
			mean[x->column[j]] += (double)x->value[j];
	for (size_t j = 0; j < x->d; j++)
		mean[j] /= (double)n;
	return mean;
}

int sparse_probe_fit(struct sparse_probe *p, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, size_t k,
	double penalty, uint32_t seed, struct error *e)
{
	size_t stride = (k + 7) / 8 * 8, size = (x->d + 1) * stride, rows = batch(n), steps = PASSES * n / rows, at = n, pass = 0;
	struct fit f = {x, y, k, x->d, stride, penalty, means(x, row, n), xcalloc(size, sizeof *f.w), xmalloc(size * sizeof *f.g),
		xcalloc(size, sizeof *f.m1), xcalloc(size, sizeof *f.m2), xmalloc(stride * sizeof *f.z), xmalloc(stride * sizeof *f.b),
		xmalloc(stride * sizeof *f.sum)};
	uint32_t *order = xmalloc(n * sizeof *order);
	memcpy(order, row, n * sizeof *order);
	steps = steps > STEPS ? steps : STEPS;
	for (size_t t = 0; t < steps; t++) {
		centre(&f, f.b);
		memset(f.g, 0, size * sizeof *f.g);
		memset(f.sum, 0, stride * sizeof *f.sum);
		for (size_t i = 0; i < rows; i++) {
			if (at == n) {
				shuffle(order, n, seed, pass++);
				at = 0;
			}
			add_gradient(&f, order[at++], 1 / (float)rows);
		}
		adam(&f, t, steps);
	}
	centre(&f, f.b);
	*p = (struct sparse_probe){k, x->d, stride, f.w, f.b};
	free(f.mean);
	free(f.g);
	free(f.m1);
	free(f.m2);
	free(f.z);
	free(f.sum);
	free(order);
	return isfinite(p->b[0]) ? 0 : error_set(e, "the weights are not finite");
}

void sparse_probe_release(struct sparse_probe *p)
{
	free(p->w);
	free(p->b);
	*p = (struct sparse_probe){0};
}

void sparse_probe_logits(const struct sparse_probe *p, const struct sparse *x, size_t i, float *logit)
{
	logits(p->w, p->stride, x, i, p->b, logit);
}

void centroids_fit(struct centroids *c, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, size_t k)
{
	size_t d = x->d, stride = (k + 7) / 8 * 8;
	double *sum = xcalloc(k * d + 1, sizeof *sum), *cells = xcalloc(k, sizeof *cells);
	*c = (struct centroids){k, d, stride, xcalloc(d * stride + 1, sizeof *c->w), xcalloc(stride, sizeof *c->b), means(x, row, n), 0};
	for (size_t i = 0; i < n; i++) {
		cells[y[row[i]]]++;
		for (uint64_t j = x->offset[row[i]]; j < x->offset[row[i] + 1]; j++)
			sum[y[row[i]] * d + x->column[j]] += (double)x->value[j];
	}
	for (size_t j = 0; j < d; j++)
		c->square += c->mean[j] * c->mean[j];
	for (size_t a = 0; a < k; a++) {
		double square = 0, offset = 0, *s = sum + a * d;
		for (size_t j = 0; j < d; j++) {
			s[j] = s[j] / cells[a] - c->mean[j];
			square += s[j] * s[j];
			offset -= s[j] * c->mean[j];
		}
		for (size_t j = 0; j < d && square > 0; j++)
			c->w[j * stride + a] = (float)(s[j] / sqrt(square));
		c->b[a] = square > 0 ? (float)(offset / sqrt(square)) : 0;
	}
	free(sum);
	free(cells);
}

void centroids_release(struct centroids *c)
{
	free(c->w);
	free(c->b);
	free(c->mean);
	*c = (struct centroids){0};
}

double centroids_distance(const struct centroids *c, const struct sparse *x, size_t i)
{
	float *z = xmalloc(c->stride * sizeof *z), most;
	double square = c->square;
	logits(c->w, c->stride, x, i, c->b, z);
	for (uint64_t j = x->offset[i]; j < x->offset[i + 1]; j++) {
		double v = (double)x->value[j];
		square += v * (v - 2 * c->mean[x->column[j]]);
	}
	most = z[0];
	for (size_t a = 1; a < c->k; a++)
		most = z[a] > most ? z[a] : most;
	free(z);
	return square > 0 ? 1 - (double)most / sqrt(square) : 1;
}

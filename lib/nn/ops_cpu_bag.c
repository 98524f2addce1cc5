/* The CPU backend's ops of a network on cells instead of tokens: weighted sums of rows, and batch normalisation. */
#include "nn/ops_cpu.h"

/*
 * A job has BAG columns, so that they stay in registers, and their part of a matrix of 5,000 rows in the second cache.
 */
enum { VECS = 8, BAG = VECS * VL };

/* acc += v row, of n <= BAG columns */
static inline __attribute__((always_inline)) void add_row(vec acc[VECS], const real *row, real v)
{
#pragma GCC unroll 8
	for (int i = 0; i < VECS; i++)
		acc[i] += v * *(const vec *)(row + i * VL);
}

static void bag_cell(real *y, const real *W, const struct seq *s, const real *value, size_t b, size_t C, size_t n, int add)
{
	vec acc[VECS] = {0};
	if (n < BAG) { /* the last columns */
		for (size_t i = 0; i < n; i++) {
			real sum = add ? y[i] : 0;
			for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++)
				sum += (value ? value[t] : 1) * W[s->id[t] * C + i];
			y[i] = sum;
		}
		return;
	}
	if (add)
		memcpy(acc, y, sizeof acc);
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++)
		if (!value || value[t] != 0)
			add_row(acc, W + s->id[t] * C, value ? value[t] : 1);
	memcpy(y, acc, sizeof acc);
}

void cpu_bag(struct ops *o, void *y0, const real *W, const struct seq *s, const real *value, size_t B, size_t C, int add)
{
	struct cpu *c = (struct cpu *)o;
	real *y = y0;
	size_t R = chunk_rows(B), across = chunks(C, BAG);
	PARALLEL_FOR
	for (size_t job = 0; job < across * chunks(B, R); job++) { /* the jobs of some columns follow each other */
		size_t c0 = job / chunks(B, R) * BAG, k = job % chunks(B, R);
		for (size_t b = k * R; b < min_size(B, (k + 1) * R); b++)
			bag_cell(y + b * C + c0, W + c0, s, value, b, C, min_size(BAG, C - c0), add);
	}
}

static void bag_row_back(real *dw, const real *dy, const struct seq *s, const real *value, size_t v, size_t C, size_t n)
{
	vec acc[VECS];
	if (n < BAG) {
		for (size_t j = s->start[v]; j < s->start[v + 1]; j++)
			for (size_t i = 0, t = s->order[j]; i < n; i++)
				dw[i] += (value ? value[t] : 1) * dy[s->cell[t] * C + i];
		return;
	}
	memcpy(acc, dw, sizeof acc);
	for (size_t j = s->start[v]; j < s->start[v + 1]; j++) {
		size_t t = s->order[j];
		if (!value || value[t] != 0)
			add_row(acc, dy + s->cell[t] * C, value ? value[t] : 1);
	}
	memcpy(dw, acc, sizeof acc);
}

void cpu_bag_back(struct ops *o, real *dW, const void *dy, const struct seq *s, const real *value, size_t V, size_t C)
{
	struct cpu *c = (struct cpu *)o;
	size_t across = chunks(C, BAG), parts = chunks(V, ROWS);
	PARALLEL_FOR
	for (size_t job = 0; job < across * parts; job++) {
		size_t c0 = job / parts * BAG, k = job % parts;
		for (size_t v = k * ROWS; v < min_size(V, (k + 1) * ROWS); v++)
			bag_row_back(dW + v * C + c0, (const real *)dy + c0, s, value, v, C, min_size(BAG, C - c0));
	}
}

/*
 * ---- batch normalisation ----
 * A job has CHANNELS of all cells. Fewer would be a column of single cache lines, at distances that fall on the same places of the cache.
 */
enum { CHANNELS = 4 * BAG };

/* Mean and biased variance of n channels over N rows, in two passes. */
static void bag_moments(real *mean, real *var, const real *x, size_t N, size_t C, size_t n)
{
	memset(mean, 0, n * sizeof *mean);
	memset(var, 0, n * sizeof *var);
	add_parts(mean, x, N, C, n);
	for (size_t i = 0; i < n; i++)
		mean[i] /= (real)N;
	for (size_t k = 0; k < N; k++)
		SIMD for (size_t i = 0; i < n; i++) var[i] += (x[k * C + i] - mean[i]) * (x[k * C + i] - mean[i]);
	for (size_t i = 0; i < n; i++)
		var[i] /= (real)N;
}

void cpu_batch_norm(struct ops *o, void *y0, real *stat, const void *x0, const real *gamma, const real *beta, real *run_mean, real *run_var,
	size_t N, size_t C, double eps, double momentum, int train, enum act act)
{
	struct cpu *c = (struct cpu *)o;
	const real move = (real)momentum, unbias = N > 1 ? (real)N / (real)(N - 1) : 1;
	PARALLEL_FOR
	for (size_t c0 = 0; c0 < C; c0 += CHANNELS) {
		size_t n = min_size(CHANNELS, C - c0);
		real *y = (real *)y0 + c0, mean[CHANNELS], scale[CHANNELS], shift[CHANNELS];
		const real *x = (const real *)x0 + c0;
		if (train)
			bag_moments(mean, scale, x, N, C, n);
		for (size_t i = 0; i < n; i++) {
			size_t k = c0 + i;
			if (train) {
				run_mean[k] += move * (mean[i] - run_mean[k]);
				run_var[k] += move * (scale[i] * unbias - run_var[k]);
			}
			real m = train ? mean[i] : run_mean[k], rstd = 1 / (real)sqrt((train ? scale[i] : run_var[k]) + eps);
			if (train) {
				stat[k] = m;
				stat[C + k] = rstd;
			}
			scale[i] = rstd * gamma[k];
			shift[i] = beta[k];
			mean[i] = m;
		}
		const real floor = act == ACT_RELU ? 0 : -(real)INFINITY;
		for (size_t k = 0; k < N; k++)
			SIMD for (size_t i = 0; i < n; i++)
			{
				real v = (x[k * C + i] - mean[i]) * scale[i] + shift[i];
				y[k * C + i] = v < floor ? floor : v; /* so written, NaN stays NaN */
			}
	}
}

/*
 * With g = dy where act lets it through, n = (x - mean) / std:
 *     dbeta = sum g;  dgamma = sum g n;  dx = gamma / std (g - dbeta / N - n dgamma / N)
 */
void cpu_batch_norm_back(struct ops *o, void *dx0, real *dgamma, real *dbeta, const void *dy0, const void *x0, const void *y0,
	const real *stat, const real *gamma, size_t N, size_t C, enum act act)
{
	struct cpu *c = (struct cpu *)o;
	PARALLEL_FOR
	for (size_t c0 = 0; c0 < C; c0 += CHANNELS) {
		size_t n = min_size(CHANNELS, C - c0);
		const real *dy = (const real *)dy0 + c0, *x = (const real *)x0 + c0, *y = act == ACT_RELU ? (const real *)y0 + c0 : NULL;
		const real *mean = stat + c0, *rstd = stat + C + c0;
		real *dx = (real *)dx0 + c0, dg[CHANNELS] = {0}, db[CHANNELS] = {0};
		for (size_t k = 0; k < N * C; k += C)
			SIMD for (size_t i = 0; i < n; i++)
			{
				real g = !y || y[k + i] > 0 ? dy[k + i] : 0;
				dg[i] += g * ((x[k + i] - mean[i]) * rstd[i]);
				db[i] += g;
			}
		for (size_t i = 0; i < n; i++) {
			dgamma[c0 + i] += dg[i];
			dbeta[c0 + i] += db[i];
			dg[i] /= (real)N;
			db[i] /= (real)N;
		}
		for (size_t k = 0; k < N * C; k += C)
			SIMD for (size_t i = 0; i < n; i++)
			{
				real g = !y || y[k + i] > 0 ? dy[k + i] : 0;
				dx[k + i] = gamma[c0 + i] * rstd[i] * (g - db[i] - (x[k + i] - mean[i]) * rstd[i] * dg[i]);
			}
	}
}

/*
 * The CPU backend's features of values. Sines and cosines are the C library's, of phases in double, so all vector widths give the same bits.
 */
#include "nn/cpu_act.h"
#include "nn/ops_cpu.h"

static int has_row(const uint32_t *row, size_t t)
{
	return row && row[t] != ROW_NONE;
}

static void periodic_row(real *f, real x, const struct value_features *v)
{
	double y = (double)x - v->shift;
	for (size_t k = 0; k < v->n; k++) {
		double phase = (double)v->w[k] * y;
		f[k] = (real)sin(phase);
		f[v->n + k] = (real)cos(phase);
	}
	for (size_t j = 0; j < v->m; j++)
		f[2 * v->n + j] = (real)(1 / (1 + exp((double)v->center[j] - (double)v->orientation[j] * y)));
}

static void unit_row(real *f, real x, const real *own, const struct value_features *v)
{
	for (size_t k = 0; k < v->n; k++) {
		real u = own ? own[k] : leaky(v->w[k] * x + v->b[k]);
		f[k] = v->table ? leaky(u) : u;
	}
}

void cpu_value_features(struct ops *o, void *f0, const real *x, const uint32_t *row, const struct value_features *v, size_t T)
{
	struct cpu *c = (struct cpu *)o;
	size_t F = value_width(v), R = chunk_rows(T);
	real *f = f0;
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++) {
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			if (v->b)
				unit_row(f + t * F, x[t], has_row(row, t) ? v->table + row[t] * v->n : NULL, v);
			else if (has_row(row, t))
				memset(f + t * F, 0, F * sizeof *f);
			else
				periodic_row(f + t * F, x[t], v);
		}
	}
}

/* dw [n] += */
static void periodic_row_back(double *dw, const real *df, real x, const struct value_features *v)
{
	double y = (double)x - v->shift;
	for (size_t k = 0; k < v->n; k++) {
		double phase = (double)v->w[k] * y;
		dw[k] += y * ((double)df[k] * cos(phase) - (double)df[v->n + k] * sin(phase));
	}
}

static real slope(real x)
{
	return x > 0 ? 1 : (real)0.01;
}

/* dw, db [n] +=; df becomes the gradient of the row, or that of w x + b */
static void unit_row_back(double *dw, double *db, real *df, real x, const real *own, const struct value_features *v)
{
	for (size_t k = 0; k < v->n; k++) {
		real z = own ? own[k] : v->w[k] * x + v->b[k];
		df[k] *= v->table ? slope(z) : 1; /* leaky keeps the sign */
		if (own)
			continue;
		df[k] *= slope(z);
		dw[k] += (double)df[k] * (double)x;
		db[k] += (double)df[k];
	}
}

void cpu_value_features_back(
	struct ops *o, real *dw, real *db, void *df0, const real *x, const uint32_t *row, const struct value_features *v, size_t T)
{
	struct cpu *c = (struct cpu *)o;
	size_t F = value_width(v), R = chunk_rows(T), n = chunks(T, R), N = v->n;
	real *df = df0;
	double *part = (double *)shared(c, n * 2 * N * (sizeof(double) / sizeof(real)));
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		double *pw = part + k * 2 * N, *pb = pw + N;
		memset(pw, 0, 2 * N * sizeof *pw);
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			if (v->b)
				unit_row_back(pw, pb, df + t * F, x[t], has_row(row, t) ? v->table + row[t] * N : NULL, v);
			else if (dw && !has_row(row, t))
				periodic_row_back(pw, df + t * F, x[t], v);
		}
	}
	for (size_t i = 0; dw && i < N; i++) {
		double w = 0, b = 0;
		for (size_t k = 0; k < n; k++) {
			w += part[k * 2 * N + i];
			b += part[k * 2 * N + N + i];
		}
		dw[i] += (real)w;
		if (db)
			db[i] += (real)b;
	}
}

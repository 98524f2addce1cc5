/*
 * The CPU backend's negative binomial. Most masked genes of a cell have count 0, so all are first taken as 0, row by row, and the listed
 * genes are corrected. With r = mu / theta:
 *     loss(0) = theta log(1 + r)           loss(x) - loss(0) = -[lgamma(x + theta) - lgamma(theta)] + lgamma(x + 1) + x log((theta + mu) / mu)
 *     -dloss/dlog mu     = -mu / (1 + r)                                      + x / (1 + r)
 *     -dloss/dlog theta  = theta (r / (1 + r) - log(1 + r))                   + theta (psi(x + theta) - psi(theta) - x / (theta + mu))
 * The softmax spreads a gradient g of log mu:  dz_j = g_j - softmax_j sum_k g_k.
 */
#include "nn/ops_cpu.h"

#include <math.h>
#include <string.h>

#include "base/gamma.h"

static inline int masked(const uint32_t *mask, size_t g)
{
	return mask[g / 32] >> g % 32 & 1;
}

static real log1_(real x)
{
	return sizeof(real) == sizeof(float) ? (real)log1pf((float)x) : (real)log1p((double)x);
}

/* theta [G] in memory that lives until the next op. */
static real *make_theta(struct cpu *c, const real *t, size_t G, size_t more)
{
	real *theta = shared(c, G + more);
	for (size_t g = 0; g < G; g++)
		theta[g] = (real)exp(t[g]);
	return theta;
}

static double library(const struct seq *s, const uint32_t *count, size_t b)
{
	double sum = 0;
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++)
		sum += count[t];
	return sum;
}

/* e [round_up(G, STEP)] = e^(z - top); returns top + log of their sum. */
static real soften(real *e, const real *z, size_t G, real *total)
{
	size_t n = round_up(G, STEP);
	memcpy(e, z, G * sizeof *e);
	for (size_t g = G; g < n; g++)
		e[g] = -(real)INFINITY;
	real top = row_max(e, n, e[0]);
	*total = soft_row(e, NULL, n, top);
	return top + (real)log(*total);
}

static double cell_loss(const real *e, real lse, real share, double L, const real *z, const real *theta, const struct seq *s,
	const uint32_t *count, const uint32_t *mask, size_t b, size_t G)
{
	double loss = 0, logL = log(L);
	for (size_t w = 0; w < nb_words(G); w++)
		for (uint32_t bits = mask[w]; bits; bits &= bits - 1) {
			size_t g = w * 32 + (size_t)__builtin_ctz(bits);
			loss += theta[g] * log1_(share * e[g] / theta[g]);
		}
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++) {
		size_t g = s->id[t];
		if (!masked(mask, g) || !count[t])
			continue;
		double x = count[t], mu = (double)share * e[g], logmu = logL + z[g] - lse;
		loss += x * (log(theta[g] + mu) - logmu) + lgamma_rise(1, count[t]) - lgamma_rise(theta[g], count[t]);
	}
	return loss;
}

/* loss [G] += the losses of the genes of one cell, the same numbers as cell_loss adds up. */
static void gene_losses(double *loss, const real *e, real lse, real share, double L, const real *z, const real *theta, const struct seq *s,
	const uint32_t *count, const uint32_t *mask, size_t b, size_t G)
{
	double logL = log(L);
	for (size_t w = 0; w < nb_words(G); w++)
		for (uint32_t bits = mask[w]; bits; bits &= bits - 1) {
			size_t g = w * 32 + (size_t)__builtin_ctz(bits);
			loss[g] += theta[g] * log1_(share * e[g] / theta[g]);
		}
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++) {
		size_t g = s->id[t];
		if (!masked(mask, g) || !count[t])
			continue;
		double x = count[t], mu = (double)share * e[g], logmu = logL + z[g] - lse;
		loss[g] += x * (log(theta[g] + mu) - logmu) + lgamma_rise(1, count[t]) - lgamma_rise(theta[g], count[t]);
	}
}

/* sum += the weighted losses. w->loss is summed over fixed chunks of cells. */
static void weighted_loss(struct cpu *c, double *sum, real *lse, const real *z, const real *t, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G)
{
	size_t R = chunk_rows(B), n = chunks(B, R);
	real *theta = make_theta(c, t, G, 2 * n * G + 1);
	double *part = (double *)(theta + round_up(G, 2));
	own_need(c, round_up(G, STEP));
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		memset(part + k * G, 0, G * sizeof *part);
		for (size_t b = k * R; b < min_size(B, (k + 1) * R); b++) {
			real *e = own(c), total;
			double L = library(s, count, b);
			lse[b] = soften(e, z + b * G, G, &total);
			gene_losses(part + k * G, e, lse[b], (real)L / total, L, z + b * G, theta, s, count, mask + b * nb_words(G), b, G);
		}
	}
	for (size_t g = 0; g < G; g++) {
		double loss = 0;
		for (size_t k = 0; k < n; k++)
			loss += part[k * G + g];
		*sum += w->weight[g] * loss;
		w->loss[g] = (real)loss;
	}
}

void cpu_nb_loss(struct ops *o, double *sum, real *lse, const void *z0, const real *t, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G)
{
	struct cpu *c = (struct cpu *)o;
	if (w) {
		weighted_loss(c, sum, lse, z0, t, s, count, mask, w, B, G);
		return;
	}
	real *theta = make_theta(c, t, G, 2 * B + 1);
	double *loss = (double *)(theta + round_up(G, 2));
	own_need(c, round_up(G, STEP));
	PARALLEL_FOR
	for (size_t b = 0; b < B; b++) {
		const real *z = (const real *)z0 + b * G;
		real *e = own(c), total;
		double L = library(s, count, b);
		lse[b] = soften(e, z, G, &total);
		loss[b] = cell_loss(e, lse[b], (real)L / total, L, z, theta, s, count, mask + b * nb_words(G), b, G);
	}
	for (size_t b = 0; b < B; b++)
		*sum += loss[b];
}

/* z [G], the gradient of log mu, gets the weights. Returns its sum. */
static double weigh(real *z, const real *weight, size_t G)
{
	double all = 0;
	for (size_t g = 0; g < G; g++) {
		z[g] *= weight[g];
		all += z[g];
	}
	return all;
}

/* z becomes the gradient; dt [G] of this chunk is added to, without weights. p: scratch. */
static void cell_back(real *z, real *dt, real *p, real lse, real L, const real *theta, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, real scale, const real *weight, size_t b, size_t G)
{
	size_t n = round_up(G, STEP);
	memcpy(p, z, G * sizeof *p);
	for (size_t g = G; g < n; g++)
		p[g] = -(real)INFINITY;
	soft_row(p, NULL, n, lse);
	double all = 0;
	memset(z, 0, G * sizeof *z);
	for (size_t w = 0; w < nb_words(G); w++)
		for (uint32_t bits = mask[w]; bits; bits &= bits - 1) {
			size_t g = w * 32 + (size_t)__builtin_ctz(bits);
			real mu = L * p[g], r = mu / theta[g];
			z[g] = mu / (1 + r);
			all += z[g];
			dt[g] += scale * theta[g] * (log1_(r) - r / (1 + r));
		}
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++) {
		size_t g = s->id[t];
		if (!masked(mask, g) || !count[t])
			continue;
		real x = (real)count[t], mu = L * p[g], less = x * theta[g] / (theta[g] + mu);
		z[g] -= less;
		all -= less;
		dt[g] -= scale * theta[g] * (real)(digamma_rise(theta[g], count[t]) - x / (theta[g] + mu));
	}
	if (weight)
		all = weigh(z, weight, G);
	SIMD for (size_t g = 0; g < G; g++) z[g] = scale * (z[g] - p[g] * (real)all);
}

void cpu_nb_loss_back(struct ops *o, void *z, real *dt, const real *t, const struct seq *s, const uint32_t *count, const uint32_t *mask,
	const real *lse, const real *scale, const real *weight, size_t B, size_t G)
{
	struct cpu *c = (struct cpu *)o;
	size_t R = chunk_rows(B), n = chunks(B, R);
	real *theta = make_theta(c, t, G, n * G), *part = theta + G;
	own_need(c, round_up(G, STEP));
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		memset(part + k * G, 0, G * sizeof *part);
		for (size_t b = k * R; b < min_size(B, (k + 1) * R); b++)
			cell_back((real *)z + b * G, part + k * G, own(c), lse[b], (real)library(s, count, b), theta, s, count,
				mask + b * nb_words(G), scale ? *scale : 1, weight, b, G);
		for (size_t g = 0; weight && g < G; g++)
			part[k * G + g] *= weight[g];
	}
	add_parts(dt, part, n, G, G);
}

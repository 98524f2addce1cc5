/*
 * The CPU backend's negative binomial. Most masked genes of a cell have count 0, so all genes are first taken as 0, in vectors, what is not
 * masked is dropped, and the listed genes are corrected. With r = mu / theta:
 *     loss(0) = theta log(1 + r)           loss(x) - loss(0) = -[lgamma(x + theta) - lgamma(theta)] + lgamma(x + 1) + x log((theta + mu) / mu)
 *     -dloss/dlog mu     = -mu / (1 + r)                                      + x / (1 + r)
 *     -dloss/dlog theta  = theta (r / (1 + r) - log(1 + r))                   + theta (psi(x + theta) - psi(theta) - x / (theta + mu))
 * The softmax spreads a gradient g of log mu:  dz_j = g_j - softmax_j sum_k g_k.
 */
#include "nn/ops_cpu.h"

#include "base/gamma.h"

static inline int masked(const uint32_t *mask, size_t g)
{
	return mask[g / 32] >> g % 32 & 1;
}

/*
 * log(1 + x) of four vectors, x >= 0, to 1.2e-7 relative. NaN stays NaN. 1 + x = 2^k (1 + m), -1/4 <= m < 1/2: m = x 2^-k + (2^-k - 1) does
 * not lose a small x, and a polynomial fitted for the least relative error gives log(1 + m).
 */
static inline __attribute__((always_inline)) void log1p_step(vec x[4])
{
	if (sizeof(real) == sizeof(float)) {
		static const float fit[] = {0.0541324708f, -0.120673671f, 0.149839158f, -0.168228116f, 0.199770773f, -0.249934423f,
			0.333335486f, -0.500000606f};
		const lanes quarter = (lanes)((vec){0} + (real)0.75f), one = (lanes)((vec){0} + 1);
		lanes k[4];
		vec m[4], p[4];
		EACH k[h] = ((lanes)(x[h] + 1) - quarter) >> 23;
		EACH m[h] = (vec)(one - (k[h] << 23));
		EACH m[h] = x[h] * m[h] + (m[h] - 1);
		EACH p[h] = (vec){0} + (real)fit[0];
#pragma GCC unroll 10
		for (size_t i = 1; i < sizeof fit / sizeof *fit; i++)
			EACH p[h] = p[h] * m[h] + (real)fit[i];
		EACH x[h] = __builtin_convertvector(k[h], vec) * (real)0.693147181f + (p[h] * (m[h] * m[h]) + m[h]);
		return;
	}
	for (int h = 0; h < 4; h++)
		for (int i = 0; i < VL; i++)
			x[h][i] = (real)log1p((double)x[h][i]);
}

/* theta [round_up(G, STEP)], 1 past G, in memory that lives until the next op, and `more` reals behind it. */
static real *make_theta(struct cpu *c, const real *t, size_t G, size_t more)
{
	size_t n = round_up(G, STEP);
	real *theta = shared(c, n + more);
	for (size_t g = 0; g < n; g++)
		theta[g] = g < G ? (real)exp(t[g]) : 1;
	return theta;
}

/* The scratch of a cell, for n = round_up(G, STEP) genes. */
struct scratch {
	real *p; /* [n] e^(z - something), 0 or nearly so past G */
	real *x; /* [n] of the masked genes, 0 elsewhere */
	uint8_t *bits; /* the cell's mask, 0 past G */
};

static void scratch_need(struct cpu *c, size_t G)
{
	size_t n = round_up(G, STEP);
	own_need(c, 2 * n + n / 8);
}

/* p = z; -infinity past G. */
static struct scratch scratch(const struct cpu *c, const real *z, const uint32_t *mask, size_t G)
{
	size_t n = round_up(G, STEP);
	struct scratch s = {own(c), own(c) + n, (uint8_t *)(own(c) + 2 * n)};
	memcpy(s.p, z, G * sizeof *z);
	for (size_t g = G; g < n; g++)
		s.p[g] = -(real)INFINITY;
	memset(s.bits, 0, n / 8);
	memcpy(s.bits, mask, nb_words(G) * sizeof *mask);
	return s;
}

/* x = theta log(1 + share p / theta), the losses of count 0, where masked. */
LOOP void zero_losses(const struct scratch *s, const real *theta, real share, size_t n)
{
	for (size_t j = 0; j < n; j += STEP) {
		vec x[4];
		EACH x[h] = share * *(const vec *)(s->p + j + VL * h) / *(const vec *)(theta + j + VL * h);
		log1p_step(x);
		EACH x[h] *= *(const vec *)(theta + j + VL * h);
		keep_step(x, s->bits + j / 8);
		EACH *(vec *)(s->x + j + VL * h) = x[h];
	}
}

/* With mu = L p: x = mu / (1 + r), dt += scale theta (log(1 + r) - r / (1 + r)), the gradients of count 0, where masked. */
LOOP void zero_back(const struct scratch *s, real *dt, const real *theta, real L, real scale, size_t n)
{
	for (size_t j = 0; j < n; j += STEP) {
		vec r[4], log1[4], q[4];
		EACH r[h] = L * *(const vec *)(s->p + j + VL * h) / *(const vec *)(theta + j + VL * h);
		EACH log1[h] = r[h];
		log1p_step(log1);
		EACH q[h] = r[h] / (1 + r[h]);
		EACH log1[h] = scale * *(const vec *)(theta + j + VL * h) * (log1[h] - q[h]);
		EACH q[h] *= *(const vec *)(theta + j + VL * h);
		keep_step(q, s->bits + j / 8);
		keep_step(log1, s->bits + j / 8);
		EACH *(vec *)(s->x + j + VL * h) = q[h];
		EACH *(vec *)(dt + j + VL * h) += log1[h];
	}
}

static double sum_row(const real *x, size_t n)
{
	double sum = 0;
	SIMD_SUM(sum) for (size_t i = 0; i < n; i++) sum += x[i];
	return sum;
}

static double library(const struct seq *s, const uint32_t *count, size_t b)
{
	double sum = 0;
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++)
		sum += count[t];
	return sum;
}

/* What a listed masked gene adds to the loss of count 0. */
static double loss_rise(const struct scratch *k, real share, double logmu, real theta, size_t g, uint32_t count)
{
	double mu = (double)share * k->p[g];
	return count * (log(theta + mu) - logmu) + lgamma_rise(1, count) - lgamma_rise(theta, count);
}

/* Returns the loss of cell b. loss [G], if not NULL: the losses of the genes are added to it. */
static double cell_loss(const struct cpu *c, double *loss, real *lse, const real *z, const real *theta, const struct seq *s,
	const uint32_t *count, const uint32_t *mask, size_t b, size_t G)
{
	struct scratch k = scratch(c, z, mask, G);
	size_t n = round_up(G, STEP);
	real top = row_max(k.p, n, k.p[0]), total = soft_row(k.p, NULL, n, top);
	double L = library(s, count, b), logL = log(L);
	real share = (real)L / total;
	*lse = top + (real)log(total);
	zero_losses(&k, theta, share, n);
	double sum = loss ? 0 : sum_row(k.x, n);
	for (size_t g = 0; loss && g < G; g++)
		loss[g] += k.x[g];
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++) {
		size_t g = s->id[t];
		if (!masked(mask, g) || !count[t])
			continue;
		double rise = loss_rise(&k, share, logL + z[g] - *lse, theta[g], g, count[t]);
		if (loss)
			loss[g] += rise;
		else
			sum += rise;
	}
	return sum;
}

/* sum += the weighted losses. w->loss is summed over fixed chunks of cells. */
static void weighted_loss(struct cpu *c, double *sum, real *lse, const real *z, const real *t, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G)
{
	size_t R = chunk_rows(B), n = chunks(B, R);
	real *theta = make_theta(c, t, G, 2 * n * G);
	double *part = (double *)(theta + round_up(G, STEP));
	scratch_need(c, G);
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		memset(part + k * G, 0, G * sizeof *part);
		for (size_t b = k * R; b < min_size(B, (k + 1) * R); b++)
			cell_loss(c, part + k * G, lse + b, z + b * G, theta, s, count, mask + b * nb_words(G), b, G);
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
	real *theta = make_theta(c, t, G, 2 * B);
	double *loss = (double *)(theta + round_up(G, STEP));
	scratch_need(c, G);
	PARALLEL_FOR
	for (size_t b = 0; b < B; b++)
		loss[b] = cell_loss(c, NULL, lse + b, (const real *)z0 + b * G, theta, s, count, mask + b * nb_words(G), b, G);
	for (size_t b = 0; b < B; b++)
		*sum += loss[b];
}

/* z becomes the gradient; dt of this chunk is added to, without weights. */
static void cell_back(const struct cpu *c, real *z, real *dt, real lse, const real *theta, const struct seq *s, const uint32_t *count,
	const uint32_t *mask, real scale, const real *weight, size_t b, size_t G)
{
	struct scratch k = scratch(c, z, mask, G);
	size_t n = round_up(G, STEP);
	real L = (real)library(s, count, b), *x = k.x;
	soft_row(k.p, NULL, n, lse);
	zero_back(&k, dt, theta, L, scale, n);
	for (size_t t = s->offset[b]; t < s->offset[b + 1]; t++) {
		size_t g = s->id[t];
		if (!masked(mask, g) || !count[t])
			continue;
		real of = (real)count[t], sum = theta[g] + L * k.p[g];
		x[g] -= of * theta[g] / sum;
		dt[g] -= scale * theta[g] * (real)(digamma_rise(theta[g], count[t]) - of / sum);
	}
	if (weight)
		SIMD for (size_t g = 0; g < G; g++) x[g] *= weight[g];
	real all = (real)sum_row(x, G);
	SIMD for (size_t g = 0; g < G; g++) z[g] = scale * (x[g] - k.p[g] * all);
}

void cpu_nb_loss_back(struct ops *o, void *z, real *dt, const real *t, const struct seq *s, const uint32_t *count, const uint32_t *mask,
	const real *lse, const real *scale, const real *weight, size_t B, size_t G)
{
	struct cpu *c = (struct cpu *)o;
	size_t R = chunk_rows(B), n = chunks(B, R), row = round_up(G, STEP);
	real *theta = make_theta(c, t, G, n * row), *part = theta + row;
	scratch_need(c, G);
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		memset(part + k * row, 0, row * sizeof *part);
		for (size_t b = k * R; b < min_size(B, (k + 1) * R); b++)
			cell_back(c, (real *)z + b * G, part + k * row, lse[b], theta, s, count, mask + b * nb_words(G), scale ? *scale : 1,
				weight, b, G);
		for (size_t g = 0; weight && g < G; g++)
			part[k * row + g] *= weight[g];
	}
	add_parts(dt, part, n, row, G);
}

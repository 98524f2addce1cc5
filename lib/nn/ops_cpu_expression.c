/*
 * The CPU backend's loss of expression. With e = exp(-|a|), which cannot overflow, and m1 = log(1 + e):
 *     log(1 + exp(a)) = max(a, 0) + m1        sigmoid(a) = 1 / (1 + e) for a >= 0, e / (1 + e) for a < 0
 * Genes of the input are few: their losses are summed from the list of bits, and those of the others are the rest.
 */
#include "nn/ops_cpu.h"

enum { KINDS = 2 }; /* of losses: zero, value */

/* log(1 + e), 0 <= e <= 1, to 1e-7 relative: 2 atanh(s), s = e / (2 + e) <= 1/3. */
static inline real log_one_more(real e)
{
	if (sizeof(real) != sizeof(float))
		return (real)log1p((double)e);
	real s = e / (2 + e), q = s * s;
	real p = (real)(1.0 / 15) * q + (real)(1.0 / 13);
	p = p * q + (real)(1.0 / 11);
	p = p * q + (real)(1.0 / 9);
	p = p * q + (real)(1.0 / 7);
	p = p * q + (real)(1.0 / 5);
	p = p * q + (real)(1.0 / 3);
	return 2 * s * (p * q + 1);
}

/* The losses of the genes of a row: l [2G]; and those that are right. */
static double row_losses(real *l, const real *z, const real *y, size_t G)
{
	double right = 0;
	SIMD_SUM(right) for (size_t g = 0; g < G; g++)
	{
		real a = z[2 * g + 1], off = z[2 * g] - y[g], e = exp_fast(-(real)fabs(a));
		int has = y[g] == y[g], zero = y[g] == 0;
		real l0 = (a > 0 ? a : 0) + log_one_more(e) - (zero ? a : 0);
		l[2 * g] = has ? l0 : 0;
		l[2 * g + 1] = has && !zero ? off * off : 0;
		right += has && (a > 0) == zero;
	}
	return right;
}

static int is_right(real a, real y)
{
	return y == y && (a > 0) == (y == 0);
}

/* Add the sums of a row to part [3][2][2]: all, those of the input, the others; zero, value; loss, right. */
static void expression_add_row(double part[3][KINDS][2], real *l, const real *z, const real *y, const uint32_t *in, size_t G)
{
	double right = row_losses(l, z, y, G), sum[KINDS] = {0}, inside[KINDS][2] = {{0}};
	for (size_t g = 0; g < G; g++) {
		sum[0] += (double)l[2 * g];
		sum[1] += (double)l[2 * g + 1];
	}
	for (size_t w = 0; in && w < nb_words(G); w++)
		for (uint32_t bits = in[w]; bits; bits &= bits - 1) {
			size_t g = w * 32 + (size_t)__builtin_ctz(bits);
			inside[0][0] += (double)l[2 * g];
			inside[1][0] += (double)l[2 * g + 1];
			inside[0][1] += is_right(z[2 * g + 1], y[g]);
		}
	for (size_t k = 0; k < KINDS; k++) {
		part[0][k][0] += sum[k];
		part[1][k][0] += inside[k][0];
		part[2][k][0] += sum[k] - inside[k][0];
	}
	part[0][0][1] += right;
	part[1][0][1] += inside[0][1];
	part[2][0][1] += right - inside[0][1];
}

static size_t rows_of(size_t G)
{
	return G < FLAT ? FLAT / G : 1;
}

void cpu_expression_loss(struct ops *o, double *sum, const void *z0, const real *y, const uint32_t *in, size_t N, size_t G)
{
	struct cpu *c = (struct cpu *)o;
	size_t R = rows_of(G), n = chunks(N, R), values = (in ? 3 : 1) * KINDS * 2;
	double(*part)[3][KINDS][2] = (void *)shared(c, n * sizeof *part / sizeof(real));
	own_need(c, 2 * G);
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		memset(part[k], 0, sizeof *part);
		for (size_t i = k * R; i < min_size(N, (k + 1) * R); i++)
			expression_add_row(part[k], own(c), (const real *)z0 + 2 * i * G, y + i * G, in ? in + i * nb_words(G) : NULL, G);
	}
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < values; i++)
			sum[i] += ((const double *)part[k])[i];
}

/* z of a row becomes its gradient: zero and value are the factors of the two losses. */
LOOP void row_back(real *z, const real *y, real zero, real value, size_t G)
{
	SIMD for (size_t g = 0; g < G; g++)
	{
		real a = z[2 * g + 1], off = z[2 * g] - y[g], e = exp_fast(-(real)fabs(a));
		int has = y[g] == y[g], none = y[g] == 0;
		real d = (a < 0 ? e : 1) / (1 + e) - (none ? 1 : 0);
		z[2 * g] = has && !none ? 2 * off * value : 0;
		z[2 * g + 1] = has ? d * zero : 0;
	}
}

/* The same where genes of the input have other factors: f [2][2], of the others and of the input. */
static void row_back_apart(real *z, const real *y, const uint32_t *in, const real f[2][KINDS], size_t G)
{
	row_back(z, y, 1, 1, G);
	for (size_t g = 0; g < G; g++) {
		const real *by = f[in[g / 32] >> g % 32 & 1];
		z[2 * g] *= by[1];
		z[2 * g + 1] *= by[0];
	}
}

void cpu_expression_loss_back(struct ops *o, void *z0, const real *y, const uint32_t *in, const real *scale, size_t N, size_t G)
{
	struct cpu *c = (struct cpu *)o;
	size_t R = rows_of(G), n = chunks(N, R);
	real f[2][KINDS];
	for (int k = 0; k < KINDS && in; k++) {
		f[0][k] = scale[k] + scale[4 + k];
		f[1][k] = scale[k] + scale[2 + k];
	}
	int apart = in && (f[0][0] != f[1][0] || f[0][1] != f[1][1]);
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++)
		for (size_t i = k * R; i < min_size(N, (k + 1) * R); i++) {
			real *z = (real *)z0 + 2 * i * G;
			if (apart)
				row_back_apart(z, y + i * G, in + i * nb_words(G), f, G);
			else
				row_back(z, y + i * G, in ? f[0][0] : scale[0], in ? f[0][1] : scale[1], G);
		}
}

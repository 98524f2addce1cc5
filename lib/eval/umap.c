#include "eval/umap.h"

#include "base/error.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 5, EPOCHS = 500, EPOCHS_LARGE = 200, LARGE = 10000 };

static const double A = 1.57694346, B = 0.89506088; /* of a least distance of 0.1 */
static const double STRIDE = 4; /* most that a coordinate moves at once */

struct pair {
	uint32_t a, b;
	float weight;
};

/* exp(-max(0, d - rho) / sigma) for the neighbours of one row. */
static void membership(double *p, const double *d, size_t k)
{
	double rho = 0, low = 0, high = INFINITY, sigma = 1, mean = 0, want = log2((double)k > 2 ? (double)k : 2);
	for (size_t j = 0; j < k; j++)
		mean += d[j] / (double)k;
	for (size_t j = k; j--;)
		rho = d[j] > 0 ? d[j] : rho;
	sigma = mean > 0 ? mean : 1;
	for (int step = 0; step < 64; step++) {
		double sum = 0;
		for (size_t j = 0; j < k; j++)
			sum += p[j] = exp(-fmax(0, d[j] - rho) / sigma);
		if (fabs(sum - want) < 1e-5)
			break;
		if (sum > want)
			high = sigma;
		else
			low = sigma;
		sigma = isinf(high) ? 2 * sigma : (low + high) / 2;
		if (sigma < 1e-3 * mean)
			break;
	}
}

static double weight_of(const uint32_t *neighbour, const double *p, size_t k, uint32_t from, uint32_t to)
{
	for (size_t j = 0; j < k; j++)
		if (neighbour[from * k + j] == to)
			return p[from * k + j];
	return 0;
}

/* Each pair of neighbours once, with its weight. Returns how many. */
static size_t find_pairs(struct pair *pair, const uint32_t *neighbour, const double *distance, size_t n, size_t k)
{
	double *p = xmalloc((n * k + 1) * sizeof *p);
	size_t m = 0;
	for (size_t i = 0; i < n; i++)
		membership(p + i * k, distance + i * k, k);
	for (uint32_t i = 0; i < n; i++)
		for (size_t j = 0; j < k; j++) {
			uint32_t other = neighbour[i * k + j];
			double there = p[i * k + j], back = weight_of(neighbour, p, k, other, i);
			if (other > i || back == 0) /* else the other row has it */
				pair[m++] = (struct pair){i, other, (float)(there + back - there * back)};
		}
	free(p);
	return m;
}

static double clip(double v)
{
	return v > STRIDE ? STRIDE : v < -STRIDE ? -STRIDE : v;
}

/* Move a, and b if both, by the gradient of their pair, or of a random pair (apart). */
static void move(float *a, float *b, int apart, double rate)
{
	double dx = (double)a[0] - (double)b[0], dy = (double)a[1] - (double)b[1], square = dx * dx + dy * dy;
	double power = square > 0 ? pow(square, B) : 0, pull;
	if (apart)
		pull = square > 0 ? 2 * B / ((0.001 + square) * (1 + A * power)) : 0;
	else
		pull = square > 0 ? -2 * A * B * (power / square) / (1 + A * power) : 0;
	double mx = rate * clip(pull * dx), my = rate * clip(pull * dy);
	a[0] += (float)mx;
	a[1] += (float)my;
	if (apart)
		return;
	b[0] -= (float)mx;
	b[1] -= (float)my;
}

/* One epoch: a pair takes its turn as often, in proportion, as its weight says. */
static void run_epoch(
	float *xy, const struct pair *pair, double *turn, size_t m, double most, size_t n, int epoch, double rate, uint32_t seed)
{
	struct rng r = rng_at(seed, RNG_MAP, (uint64_t)epoch, 0);
	for (size_t e = 0; e < m; e++) {
		turn[e] += (double)pair[e].weight / most;
		if (turn[e] < 1)
			continue;
		turn[e] -= 1;
		for (int side = 0; side < 2; side++) {
			uint32_t a = side ? pair[e].b : pair[e].a, b = side ? pair[e].a : pair[e].b;
			move(xy + 2 * (size_t)a, xy + 2 * (size_t)b, 0, rate);
			for (int s = 0; s < SAMPLES; s++) {
				uint32_t other = rng_below(&r, (uint32_t)n);
				if (other != a)
					move(xy + 2 * (size_t)a, xy + 2 * (size_t)other, 1, rate);
			}
		}
	}
}

void umap_rows(float *xy, const uint32_t *neighbour, const double *distance, size_t n, size_t k, uint32_t seed)
{
	struct pair *pair = xmalloc((n * k + 1) * sizeof *pair);
	size_t m = find_pairs(pair, neighbour, distance, n, k);
	double *turn = xcalloc(m + 1, sizeof *turn), most = 0;
	int epochs = n > LARGE ? EPOCHS_LARGE : EPOCHS;
	for (size_t e = 0; e < m; e++)
		most = fmax(most, (double)pair[e].weight);
	for (int epoch = 0; most > 0 && epoch < epochs; epoch++)
		run_epoch(xy, pair, turn, m, most, n, epoch, 1 - (double)epoch / epochs, seed);
	free(turn);
	free(pair);
}

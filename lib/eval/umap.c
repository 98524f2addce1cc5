#include "eval/umap.h"

#include "base/error.h"
#include "base/rng.h"

enum { SAMPLES = 5, EPOCHS = 500, EPOCHS_LARGE = 200, LARGE = 10000 };

static const double A = 1.57694346, B = 0.89506088; /* of a least distance of 0.1 */
static const double STRIDE = 4; /* most that a coordinate moves at once */

/*
 * exp(-max(0, d - rho) / sigma) for the neighbours of one row. sigma is doubled, or halved, to the first power of two beyond the wanted
 * one, and
 * then found by bisection. umap-learn begins at 1; beginning near the mean distance comes to the same powers of two, at any scale.
 * mean: of all distances, for a row whose neighbours are all equal to it.
 */
static void membership(double *p, const double *d, size_t k, double want, double mean)
{
	double rho = 0, low = 0, high = INFINITY, sum = 0;
	int exponent;
	for (size_t j = 0; j < k; j++)
		sum += d[j];
	for (size_t j = k; j--;)
		rho = d[j] > 0 ? d[j] : rho;
	mean = rho > 0 ? sum / (double)(k + 1) : mean;
	frexp(mean, &exponent);
	double sigma = mean > 0 ? ldexp(1, exponent) : 1;
	for (int step = 0; step < 64; step++) {
		sum = 0;
		for (size_t j = 0; j < k; j++)
			sum += exp(-fmax(0, d[j] - rho) / sigma);
		if (fabs(sum - want) < 1e-5)
			break;
		if (sum > want)
			high = sigma;
		else
			low = sigma;
		sigma = isinf(high) ? 2 * sigma : (low + high) / 2;
	}
	sigma = fmax(sigma, 1e-3 * mean);
	for (size_t j = 0; j < k; j++)
		p[j] = d[j] > rho ? exp(-(d[j] - rho) / sigma) : 1;
}

/* p of a row and one of its neighbours; -1 if it is none. */
static double membership_of(const uint32_t *neighbour, const double *p, size_t k, uint32_t row, uint32_t other)
{
	for (size_t j = 0; j < k; j++)
		if (neighbour[row * k + j] == other)
			return p[row * k + j];
	return -1;
}

size_t umap_graph(uint32_t *end, double *weight, const uint32_t *neighbour, const double *distance, size_t n, size_t k, size_t K)
{
	double *p = xmalloc((n * k + 1) * sizeof *p), mean = 0;
	size_t m = 0;
	for (size_t i = 0; i < n * k; i++)
		mean += distance[i] / (double)(n * (k + 1));
	for (size_t i = 0; i < n; i++)
		membership(p + i * k, distance + i * k, k, log2((double)(K > 2 ? K : 2)), mean);
	for (uint32_t i = 0; i < n; i++)
		for (size_t j = 0; j < k; j++) {
			uint32_t other = neighbour[i * k + j];
			double there = p[i * k + j], back = membership_of(neighbour, p, k, other, i);
			if (back >= 0 && other < i) /* the other row has had the pair */
				continue;
			double w = back < 0 ? there : there + back - there * back;
			if (!((float)w > 0))
				continue;
			end[2 * m] = i;
			end[2 * m + 1] = other;
			weight[m++] = w;
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
static void run_epoch(float *xy, const uint32_t *end, const double *weight, double *turn, size_t m, double most, size_t n, int epoch,
	double rate, uint32_t seed)
{
	struct rng r = rng_at(seed, RNG_MAP, (uint64_t)epoch, 0);
	for (size_t e = 0; e < m; e++) {
		turn[e] += weight[e] / most;
		if (turn[e] < 1)
			continue;
		turn[e] -= 1;
		for (int side = 0; side < 2; side++) {
			uint32_t a = end[2 * e + (size_t)side], b = end[2 * e + 1 - (size_t)side];
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
	uint32_t *end = xmalloc((2 * n * k + 1) * sizeof *end);
	double *weight = xmalloc((n * k + 1) * sizeof *weight);
	size_t m = umap_graph(end, weight, neighbour, distance, n, k, k);
	double *turn = xcalloc(m + 1, sizeof *turn), most = 0;
	int epochs = n > LARGE ? EPOCHS_LARGE : EPOCHS;
	for (size_t e = 0; e < m; e++)
		most = fmax(most, weight[e]);
	for (int epoch = 0; most > 0 && epoch < epochs; epoch++)
		run_epoch(xy, end, weight, turn, m, most, n, epoch, 1 - (double)epoch / epochs, seed);
	free_all(turn, end, weight);
}

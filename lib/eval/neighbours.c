#include "eval/neighbours.h"

#include "base/error.h"
#include "base/threads.h"

#include <cblas.h>
#include <math.h>

#define ROWS 128 /* a block of rows ... */
#define TILE 2048 /* ... meets so many others in one matrix product */
#define LANES 16 /* products that are compared at once */

/* a pair of rows whose squared distance is surely above the limit by this bound is passed over; see the header */
#define UNIT 0x1p-24 /* largest relative error of one rounding to float32 */
#define RELATIVE(d) ((1.2 * (double)(d) + 16) * UNIT) /* of the sum of both squared lengths */
#define ABSOLUTE(d) (0x1p-120 * (double)(d)) /* products that underflow */
#define MOST_COLUMNS (1 << 21) /* RELATIVE holds up to here; wider rows are all computed exactly */

struct near {
	double distance; /* squared */
	uint32_t row;
};

struct search {
	const float *q; /* [m, d] whose neighbours are searched */
	const float *x; /* [n, d] among these */
	const double *weight; /* [d] of a difference */
	size_t m, n, d, k;
	int self; /* q is x, and a row is not its own neighbour */
	double unit; /* rough rows are weighted and centred rows times this power of two, so that no square overflows */
	float *rough_q, *rough_x; /* the rough rows [m, d], [n, d]; rough_q is rough_x if q is x */
	float *half; /* [n] half of the squared length of a row of rough_x, less its share of the bound */
	float *product; /* [threads, ROWS, TILE] */
	struct near *heap; /* [threads, ROWS, k] the farthest first */
	uint32_t *neighbour;
	double *distance;
};

static int farther(const struct near *a, const struct near *b)
{
	return a->distance > b->distance || (a->distance == b->distance && a->row > b->row);
}

static int by_distance(const void *a, const void *b)
{
	return farther(a, b) - farther(b, a);
}

/* Replace the farthest of the heap h [m]. */
static void replace_first(struct near *h, size_t m, struct near v)
{
	size_t i = 0, c;
	while ((c = 2 * i + 1) < m) {
		c += c + 1 < m && farther(&h[c + 1], &h[c]);
		if (!farther(&h[c], &v))
			break;
		h[i] = h[c];
		i = c;
	}
	h[i] = v;
}

/* The squared distance in float64: the sum of every fourth square, then of the four sums. The largest float32 cannot overflow it. */
static double squared(const struct search *s, size_t a, size_t b)
{
	const float *q = s->q + a * s->d, *x = s->x + b * s->d;
	double sum[4] = {0};
	size_t j = 0;
	for (; j + 4 <= s->d; j += 4)
		for (size_t l = 0; l < 4; l++) {
			double v = ((double)q[j + l] - (double)x[j + l]) * s->weight[j + l];
			sum[l] += v * v;
		}
	for (; j < s->d; j++) {
		double v = ((double)q[j] - (double)x[j]) * s->weight[j];
		sum[0] += v * v;
	}
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* Half of the squared length of a rough row of d values, less its share of the bound. */
static double half_square(const float *y, size_t d)
{
	double sum = 0;
	for (size_t j = 0; j < d; j++)
		sum += (double)y[j] * (double)y[j];
	return d < MOST_COLUMNS ? (1 - RELATIVE(d)) * sum / 2 : -INFINITY;
}

/* Of the next `width` rows of x from `at`, put those that are nearer than the farthest of the heap into it; of row `row` of q. */
static void meet(const struct search *s, size_t row, double half, size_t at, size_t width, const float *product, struct near *heap)
{
	const float *other = s->half + at;
	for (size_t from = 0; from < width; from += LANES) {
		size_t lanes = width - from < LANES ? width - from : LANES;
		float limit = nextafterf((float)(half - heap->distance * s->unit * s->unit / 2 - ABSOLUTE(s->d)), -INFINITY);
		int near = 0;
		for (size_t l = 0; l < lanes; l++)
			near |= product[from + l] >= limit + other[from + l];
		for (size_t l = 0; near && l < lanes; l++) {
			uint32_t b = (uint32_t)(at + from + l);
			if (!(product[from + l] >= limit + other[from + l]) || (s->self && b == row))
				continue;
			struct near v = {squared(s, row, b), b};
			if (farther(heap, &v))
				replace_first(heap, s->k, v);
		}
	}
}

static void search_rows(void *arg, size_t block, int thread)
{
	const struct search *s = arg;
	size_t from = block * ROWS, rows = s->m - from < ROWS ? s->m - from : ROWS;
	float *product = s->product + (size_t)thread * ROWS * TILE;
	struct near *heap = s->heap + (size_t)thread * ROWS * s->k;
	double half[ROWS];
	for (size_t i = 0; i < rows * s->k; i++)
		heap[i] = (struct near){INFINITY, UINT32_MAX};
	for (size_t i = 0; i < rows; i++)
		half[i] = half_square(s->rough_q + (from + i) * s->d, s->d);
	for (size_t at = 0; at < s->n; at += TILE) {
		size_t width = s->n - at < TILE ? s->n - at : TILE;
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)width, (int)s->d, 1, s->rough_q + from * s->d,
			(int)s->d, s->rough_x + at * s->d, (int)s->d, 0, product, TILE);
		for (size_t i = 0; i < rows; i++)
			meet(s, from + i, half[i], at, width, product + i * TILE, heap + i * s->k);
	}
	for (size_t i = 0; i < rows; i++) {
		struct near *h = heap + i * s->k;
		qsort(h, s->k, sizeof *h, by_distance);
		for (size_t j = 0; j < s->k; j++) {
			s->neighbour[(from + i) * s->k + j] = h[j].row;
			s->distance[(from + i) * s->k + j] = sqrt(h[j].distance);
		}
	}
}

/* Let most [d] be at least the differences of y [m, d] from mean [d]. */
static void find_most(double *most, const float *y, size_t m, size_t d, const double *mean)
{
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < d; j++) {
			double v = fabs((double)y[i * d + j] - mean[j]);
			most[j] = v > most[j] ? v : most[j];
		}
}

static float *rough(const struct search *s, const float *y, size_t m, const double *mean)
{
	float *out = xmalloc((m * s->d + 1) * sizeof *out);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < s->d; j++)
			out[i * s->d + j] = (float)(((double)y[i * s->d + j] - mean[j]) * s->weight[j] * s->unit);
	return out;
}

/* Rough rows about the mean of x: small numbers have small errors, so fewer pairs are computed exactly. */
static void make_rough(struct search *s)
{
	FREED double *mean = xcalloc(s->d, sizeof *mean), *most = xcalloc(s->d, sizeof *most);
	double largest = 0;
	int exponent;
	for (size_t i = 0; i < s->n; i++)
		for (size_t j = 0; j < s->d; j++)
			mean[j] += (double)s->x[i * s->d + j];
	for (size_t j = 0; j < s->d; j++)
		mean[j] /= (double)s->n;
	find_most(most, s->x, s->n, s->d, mean);
	if (!s->self)
		find_most(most, s->q, s->m, s->d, mean);
	for (size_t j = 0; j < s->d; j++)
		largest = fmax(largest, most[j] * s->weight[j]);
	frexp(largest, &exponent);
	s->unit = ldexp(1, 50 - exponent);
	s->rough_x = rough(s, s->x, s->n, mean);
	s->rough_q = s->self ? s->rough_x : rough(s, s->q, s->m, mean);
	s->half = xmalloc(s->n * sizeof *s->half);
	for (size_t i = 0; i < s->n; i++)
		s->half[i] = (float)half_square(s->rough_x + i * s->d, s->d);
}

static void search(struct search *s, const double *scale, int threads)
{
	double *weight = xmalloc(s->d * sizeof *weight);
	for (size_t j = 0; j < s->d; j++)
		weight[j] = scale ? 1 / scale[j] : 1;
	s->weight = weight;
	make_rough(s);
	s->product = xmalloc((size_t)threads * ROWS * TILE * sizeof *s->product);
	s->heap = xmalloc((size_t)threads * ROWS * s->k * sizeof *s->heap);
	pool_for(threads, (s->m + ROWS - 1) / ROWS, search_rows, s);
	free_all(s->product, s->heap, s->half);
	if (s->rough_q != s->rough_x)
		free(s->rough_q);
	free_all(s->rough_x, weight);
}

void nearest_neighbours(const float *x, size_t n, size_t d, size_t k, int threads, uint32_t *neighbour, double *distance)
{
	struct search s = {.q = x, .x = x, .m = n, .n = n, .d = d, .k = k, .self = 1, .neighbour = neighbour, .distance = distance};
	if (k)
		search(&s, NULL, threads);
}

void nearest_rows(const float *q, size_t m, const float *x, size_t n, size_t d, const double *scale, size_t k, int threads,
	uint32_t *neighbour, double *distance)
{
	struct search s = {.q = q, .x = x, .m = m, .n = n, .d = d, .k = k, .neighbour = neighbour, .distance = distance};
	search(&s, scale, threads);
}

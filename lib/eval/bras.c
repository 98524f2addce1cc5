#include "eval/bras.h"

#include "base/error.h"

/* x [d] of length 1 */
static void unit_row(double *to, const float *x, size_t d)
{
	double most = 0, square = 0;
	for (size_t j = 0; j < d; j++)
		most = fmax(most, fabs((double)x[j]));
	for (size_t j = 0; j < d; j++) {
		to[j] = most > 0 ? (double)x[j] / most : 0;
		square += to[j] * to[j];
	}
	for (size_t j = 0; j < d; j++)
		to[j] /= square > 0 ? sqrt(square) : 1;
}

static double dot(const double *a, const double *b, size_t d)
{
	double sum = 0;
	for (size_t j = 0; j < d; j++)
		sum += a[j] * b[j];
	return sum;
}

/* |s| of a row. own, rest: sums of its distances to the others of its batch, and to the rows of other batches. */
static double bras_width(double own, double same, double rest, double others)
{
	double a = fmax(own, 0) / (same - 1), b = fmax(rest, 0) / others;
	return same > 1 && (a > 0 || b > 0) ? fabs(b - a) / fmax(a, b) : 0;
}

void bras(double *score, const float *x, size_t n, size_t d, const uint32_t *label, size_t labels, const uint32_t *batch, size_t batches)
{
	FREED double *sum = xcalloc(labels * batches * d, sizeof *sum), *all = xcalloc(labels * d, sizeof *all),
		     *row = xmalloc(d * sizeof *row);
	FREED double *cells = xcalloc(labels * batches, sizeof *cells), *total = xcalloc(labels, sizeof *total);
	for (size_t i = 0; i < n; i++) {
		size_t at = label[i] * batches + batch[i];
		unit_row(row, x + i * d, d);
		cells[at]++;
		total[label[i]]++;
		for (size_t j = 0; j < d; j++) {
			sum[at * d + j] += row[j];
			all[label[i] * d + j] += row[j];
		}
	}
	for (size_t c = 0; c < labels; c++) {
		size_t seen = 0;
		for (size_t b = 0; b < batches; b++)
			seen += cells[c * batches + b] > 0;
		score[c] = seen < 2 || (double)seen >= total[c] ? NAN : 0;
	}
	for (size_t i = 0; i < n; i++) {
		size_t c = label[i], at = c * batches + batch[i];
		unit_row(row, x + i * d, d);
		double itself = dot(row, row, d) > 0 ? 0 : 1; /* the sum over the batch has the row's distance to itself, 1 if it is 0 */
		double own = dot(row, sum + at * d, d), rest = dot(row, all + c * d, d) - own, others = total[c] - cells[at];
		score[c] += (1 - bras_width(cells[at] - itself - own, cells[at], others - rest, others)) / total[c];
	}
}

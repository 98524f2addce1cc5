#include "eval/calibration.h"

#include "base/error.h"
#include "base/softmax.h"
#include "base/sort.h"

/* ---- temperature ---- */

/* The slope of the loss at b = 1 / T: sum_i (sum_c p_ic z_ic - z_iy). It rises with b, as the loss is convex. p [k] scratch */
static double slope(const double *logit, const uint32_t *y, size_t n, size_t k, double b, double *p)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		const double *z = logit + i * k;
		double mean = 0;
		if (!isfinite(z[y[i]]))
			continue;
		for (size_t c = 0; c < k; c++)
			p[c] = b * z[c];
		softmax(p, k);
		for (size_t c = 0; c < k; c++)
			if (isfinite(z[c]))
				mean += p[c] * (z[c] - z[y[i]]);
		sum += mean;
	}
	return sum;
}

double temperature_fit(const double *logit, const uint32_t *y, size_t n, size_t k)
{
	double low = log(1.0 / 16), high = log(16), *p = xmalloc(k * sizeof *p);
	if (fabs(slope(logit, y, n, k, 1, p)) <= 0) { /* no cell, or one class: any temperature is as good */
		free(p);
		return 1;
	}
	for (int i = 0; i < 48; i++) { /* of log b */
		double middle = (low + high) / 2;
		if (slope(logit, y, n, k, exp(middle), p) < 0)
			low = middle;
		else
			high = middle;
	}
	free(p);
	return exp(-(low + high) / 2);
}

/* ---- calibration error ---- */

void calibration_measure(struct calibration *c, const double *confidence, const uint8_t *right, size_t n)
{
	*c = (struct calibration){.error = n ? 0 : NAN};
	for (size_t i = 0; i < n; i++) {
		int b = 0;
		while (b < CALIBRATION_BINS - 1 && confidence[i] > (b + 1) * (1.0 / CALIBRATION_BINS))
			b++;
		c->cells[b]++;
		c->confidence[b] += confidence[i];
		c->accuracy[b] += right[i] != 0;
	}
	for (int b = 0; b < CALIBRATION_BINS; b++) {
		c->confidence[b] /= (double)c->cells[b]; /* 0/0 is NaN */
		c->accuracy[b] /= (double)c->cells[b];
		if (c->cells[b])
			c->error += (double)c->cells[b] / (double)n * fabs(c->accuracy[b] - c->confidence[b]);
	}
}

/* ---- risk by coverage ---- */

struct item {
	double confidence;
	uint8_t wrong;
};

double risk_coverage(const double *confidence, const uint8_t *right, size_t n, double risk[RISK_GRID])
{
	FREED struct item *it = xmalloc(n * sizeof *it);
	double before = 0, area = 0;
	int g = 0;
	for (size_t i = 0; i < n; i++)
		it[i] = (struct item){confidence[i], !right[i]};
	qsort(it, n, sizeof *it, compare_double_down);
	for (size_t from = 0, to; from < n; from = to) {
		double wrong = 0;
		for (to = from; to < n && it[to].confidence == it[from].confidence; to++)
			wrong += it[to].wrong;
		double each = wrong / (double)(to - from);
		for (size_t m = from + 1; m <= to; m++) {
			double r = (before + each * (double)(m - from)) / (double)m;
			area += r / (double)n;
			while (g < RISK_GRID && (n * (size_t)(g + 1) + RISK_GRID - 1) / RISK_GRID == m)
				risk[g++] = r;
		}
		before += wrong;
	}
	return area;
}

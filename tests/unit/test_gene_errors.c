/* Errors by gene in bounded memory, beside plain loops over all pairs. */
#include "eval/gene_errors.h"

#include "numbers.h"

#define PAIRS 6000

/* How the logits come: as they are, rounded so that many are equal, sorted, in runs of one class, or far outliers now and then. */
enum order { AS_DRAWN, ROUNDED, SORTED, RUNS, OUTLIERS, ORDERS };

struct pair {
	double y, m, a;
};

static int by_logit(const void *p, const void *q)
{
	const struct pair *x = p, *y = q;
	return (x->a > y->a) - (x->a < y->a);
}

static int by_value(const void *p, const void *q)
{
	const struct pair *x = p, *y = q;
	return (x->y > y->y) - (x->y < y->y);
}

static void draw_pairs(struct pair *p, size_t n, enum order order, uint32_t zeros)
{
	for (size_t i = 0; i < n; i++) {
		p[i].y = draw(100) < zeros ? 0 : (double)(float)(.1 + draw(9000) / 1000.);
		p[i].m = (double)(float)(draw(9000) / 1000.);
		p[i].a = (double)(float)(draw(60000) / 10000. - 3 + (p[i].y == 0));
		if (order == ROUNDED)
			p[i].a = rint(2 * p[i].a) / 2;
		if (order == OUTLIERS && !draw(50))
			p[i].a *= 1e4;
	}
	if (order == SORTED || order == RUNS)
		qsort(p, n, sizeof *p, order == SORTED ? by_logit : by_value);
}

static double exact_auc(const struct pair *p, size_t n)
{
	double pairs = 0, won = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			if (p[i].y != 0 || p[k].y == 0)
				continue;
			pairs++;
			won += (p[i].a > p[k].a) + .5 * (p[i].a == p[k].a);
		}
	return won / pairs;
}

/* Mean of |c - y|, or over the expressed alone; c is the mean of the same pairs. */
static double exact_null(const struct pair *p, size_t n, int expressed)
{
	double sum = 0, off = 0, count = 0;
	for (size_t i = 0; i < n; i++) {
		sum += p[i].y;
		count += !expressed || p[i].y != 0;
	}
	for (size_t i = 0; i < n; i++)
		off += !expressed || p[i].y != 0 ? fabs(sum / count - p[i].y) : 0;
	return off / count;
}

static void same(double x, double y)
{
	assert_true(fabs(x - y) <= 1e-12 * fmax(1, fabs(y)) || (isnan(x) && isnan(y)));
}

static void check(const struct pair *p, size_t n, struct gene_score *s)
{
	double sums[4] = {0}, expressed = 0, N = (double)n;
	for (size_t i = 0; i < n; i++) {
		double gated = fabs((p[i].a > 0 ? 0 : p[i].m) - p[i].y);
		expressed += p[i].y != 0;
		sums[0] += p[i].y;
		sums[1] += gated;
		sums[2] += p[i].y != 0 ? gated : 0;
		sums[3] += p[i].y != 0 ? fabs(p[i].m - p[i].y) : 0;
	}
	assert_true(s->n == n && (double)s->expressed == expressed);
	same(s->zero_fraction, 1 - expressed / N);
	same(s->mean, sums[0] / N);
	same(s->mean_expressed, sums[0] / expressed);
	same(s->mae, sums[1] / N);
	same(s->mae_expressed, sums[2] / expressed);
	same(s->mae_expressed_ungated, sums[3] / expressed);
	same(s->rescaled, sums[2] / sums[0]);
	same(s->rescaled_ungated, sums[3] / sums[0]);
	assert_true(fabs(s->null - exact_null(p, n, 0)) <= s->null_error + 1e-12 * N);
	assert_true(expressed == 0 || fabs(s->null_expressed - exact_null(p, n, 1)) <= s->null_error + 1e-12 * N);
}

static void many_pairs(void **state)
{
	static struct pair p[PAIRS];
	const size_t size[] = {3, 200, 256, 257, 1500, PAIRS};
	for (enum order order = 0; order < ORDERS; order++)
		for (size_t i = 0; i < sizeof size / sizeof *size; i++)
			for (uint32_t zeros = 10; zeros < 100; zeros += 40) {
				struct gene_errors x;
				struct gene_score s;
				gene_errors_init(&x, 2);
				draw_pairs(p, size[i], order, zeros);
				for (size_t k = 0; k < size[i]; k++)
					gene_errors_add(&x, 1, p[k].y, p[k].m, p[k].a);
				gene_errors_score(&x, 1, &s);
				check(p, size[i], &s);
				double auc = exact_auc(p, size[i]);
				assert_true(isnan(auc) ? isnan(s.auc) : fabs(s.auc - auc) <= s.auc_error + 1e-12);
				if (size[i] <= 256)
					assert_true(isnan(auc) || s.auc_error == 0);
				else if (order != SORTED && order != RUNS)
					assert_true(fabs(s.auc - auc) < 1e-3 && s.auc_error < .01 && s.null_error < .05);
				assert_true(x.of[1].logit.cap <= 256 && x.of[1].value.cap <= 64);
				gene_errors_release(&x);
			}
}

static void nothing(void **state)
{
	struct gene_errors x;
	struct gene_score s;
	gene_errors_init(&x, 2);
	gene_errors_score(&x, 0, &s);
	assert_true(s.n == 0 && isnan(s.auc) && isnan(s.mae) && isnan(s.null) && isnan(s.null_expressed) && isnan(s.rescaled));
	/* never expressed; and no logit */
	gene_errors_add(&x, 0, 0, 1, 2);
	gene_errors_score(&x, 0, &s);
	assert_true(s.zero_fraction == 1 && isnan(s.auc) && s.mae == 0 && s.null == 0 && isnan(s.rescaled));
	gene_errors_add(&x, 1, 2, 1.5, NAN);
	gene_errors_add(&x, 1, 0, 1, NAN);
	gene_errors_score(&x, 1, &s);
	assert_true(isnan(s.auc) && s.mae == .75 && s.mae_expressed == .5 && s.mae_expressed_ungated == .5 && s.null == 1);
	gene_errors_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(many_pairs), cmocka_unit_test(nothing)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

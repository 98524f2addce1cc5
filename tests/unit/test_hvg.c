/* Local regression against scikit-misc, and highly variable genes on small matrices. scanpy's choices are in tests/scsample.bats. */
#include "cells/hvg.h"
#include "cells/loess.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN "tests/ref/hvg_loess.tsv"

enum { MOST = 1000 };

static double fit_error(const double *x, const double *y, const double *want, size_t n)
{
	double got[MOST], worst = 0;
	loess(x, y, n, 0.3, got);
	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(got[i] - want[i]));
	return worst;
}

/* Measured: 3e-10 at most. */
static void as_scikit_misc(void **state)
{
	static double x[MOST], y[MOST], fitted[MOST];
	char last[16] = "", name[16];
	size_t n = 0, sets = 0;
	double v[3];
	FILE *f = fopen(GOLDEN, "r");
	assert_non_null(f);
	for (int got = 1; got;) {
		got = fscanf(f, "%15s %lf %lf %lf", name, &v[0], &v[1], &v[2]) == 4;
		if (n && (!got || strcmp(name, last))) {
			assert_true(fit_error(x, y, fitted, n) < 2e-9);
			sets++;
			n = 0;
		}
		strcpy(last, name);
		x[n] = v[0];
		y[n] = v[1];
		fitted[n++] = v[2];
	}
	fclose(f);
	assert_int_equal(sets, 4);
}

/* A parabola comes back, whatever the ties; with fewer different x than coefficients the fit is that of what there is. */
static void exact_fits(void **state)
{
	double x[MOST], y[MOST];
	for (int ties = 1; ties <= 4; ties++) {
		for (size_t i = 0; i < 200; i++) {
			x[i] = (double)(i * 7 % 200 / (size_t)ties) / 50;
			y[i] = 3 - 2 * x[i] + x[i] * x[i];
		}
		assert_true(fit_error(x, y, y, 200) < 1e-9);
	}
	for (size_t i = 0; i < 40; i++) {
		x[i] = 2;
		y[i] = 5;
	}
	assert_true(fit_error(x, y, y, 40) < 1e-12);
	assert_true(fit_error(x, y, y, 1) < 1e-12);
	for (size_t i = 0; i < 40; i++) {
		x[i] = i < 39 ? 2 : 3;
		y[i] = i < 39 ? 5 : 7;
	}
	assert_true(fit_error(x, y, y, 39) < 1e-12);
}

/* Cells whose gene g has the count 1 + (cell * (g + 1) mod 7) for g < vary, and 1 above; gene 5 is absent. */
static size_t choose(
	enum hvg_flavor flavor, size_t genes, size_t vary, size_t top, size_t cells, size_t batches, uint8_t *take, struct error *e)
{
	struct hvg h;
	uint32_t gene[64], count[64];
	size_t bad, n;
	int again;
	hvg_init(&h, flavor, genes, top);
	do {
		for (uint32_t c = 0; c < cells; c++) {
			uint32_t k = 0;
			for (uint32_t g = 0; g < genes; g++)
				if (g != 5) {
					gene[k] = g;
					count[k++] = g < vary ? 1 + c * (g + 1) % 7 * (g + 1) : 1;
				}
			hvg_add(&h, c % batches, gene, count, k);
		}
		again = hvg_again(&h, &bad, e);
	} while (again > 0);
	n = again < 0 ? 99 : hvg_choose(&h, take);
	hvg_release(&h);
	return n;
}

static void edges(void **state)
{
	struct error e;
	uint8_t take[64];
	for (int flavor = HVG_SEURAT; flavor <= HVG_CELL_RANGER; flavor++)
		for (size_t batches = 1; batches <= 3; batches += 2) {
			assert_int_equal(choose((enum hvg_flavor)flavor, 40, 30, 12, 60, batches, take, &e), 12);
			size_t n = 0;
			for (size_t g = 0; g < 40; g++)
				n += take[g];
			assert_int_equal(n, 12);
			assert_int_equal(take[5], 0);
			assert_int_equal(
				choose((enum hvg_flavor)flavor, 40, 30, 12, batches, batches, take, &e), 99); /* one cell a batch */
			assert_non_null(strstr(e.msg, "1 cell, but a variance needs at least 2"));
		}
	/* raw counts: genes 6 and 13 are constant too, as their factor is a multiple of 7 */
	assert_int_equal(choose(HVG_SEURAT_V3, 40, 20, 40, 60, 1, take, &e), 17);
	assert_true(take[4] && !take[5] && !take[6] && !take[13] && take[19] && !take[20]);
	assert_int_equal(choose(HVG_SEURAT_V3, 40, 8, 5, 60, 1, take, &e), 99);
	assert_non_null(strstr(e.msg, "6 genes vary, but seurat_v3 needs at least 10"));
	assert_int_equal(choose(HVG_SEURAT, 40, 0, 5, 60, 1, take, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_scikit_misc),
		cmocka_unit_test(exact_fits),
		cmocka_unit_test(edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

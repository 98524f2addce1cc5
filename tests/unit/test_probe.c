/* The probe: its optimum is stationary for the stated objective (central differences), threads do not matter, folds hold what
 * folds.h promises, labels and conditions what label.h and where.h do. scikit-learn is asked in tests/ctaprobe.bats. */
#include "label/folds.h"
#include "label/label.h"
#include "eval/probe.h"
#include "base/rng.h"
#include "cells/sample.h"
#include "cells/where.h"

#include <cblas.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct set {
	size_t n, d, k;
	float *x;
	uint32_t *y, *row;
};

static struct set make_set(size_t n, size_t d, size_t k, uint32_t seed)
{
	struct set s = {n, d, k, malloc(n * d * sizeof(float)), malloc(n * 4), malloc(n * 4)};
	struct rng r = rng_at(seed, RNG_TEST, 0, 0);
	for (size_t i = 0; i < n; i++) {
		s.y[i] = i < k ? (uint32_t)i : rng_below(&r, (uint32_t)k);
		s.row[i] = (uint32_t)i;
		for (size_t j = 0; j < d; j++)
			s.x[i * d + j] = (float)(rng_normal(&r) + (j % k == s.y[i]) + 2);
	}
	return s;
}

static void free_set(struct set *s)
{
	free(s->x);
	free(s->y);
	free(s->row);
}

/* The objective of probe.h, written straight from it. */
static double objective(const struct probe *p, const struct set *s, double c)
{
	double f = 0, *z = malloc(p->k * sizeof *z);
	for (size_t j = 0; j < p->rows * p->d; j++)
		f += p->w[j] * p->w[j] / (2 * c);
	for (size_t i = 0; i < s->n; i++) {
		double sum = 0;
		probe_logits(p, s->x + i * s->d, z);
		for (size_t c2 = 0; c2 < p->k; c2++)
			sum += exp(z[c2] - z[s->y[i]]);
		f += log(sum);
	}
	free(z);
	return f;
}

static void stationary(void **state)
{
	struct error e;
	openblas_set_num_threads(1);
	for (size_t k = 2; k < 5; k++) {
		struct set s = make_set(300, 6, k, 1);
		struct probe p = {0};
		struct probe_options o = {.c = 0.7, .tol = 1e-9, .max_iter = 10000, .threads = 1};
		assert_int_equal(probe_fit(&p, s.x, s.d, s.row, s.n, s.y, k, &o, &e), 0);
		assert_true(p.converged);
		assert_int_equal(p.rows, k == 2 ? 1 : k);
		for (size_t j = 0; j < p.rows * (p.d + 1); j++) {
			double *v = j < p.rows * p.d ? p.w + j : p.b + (j - p.rows * p.d), old = *v, h = 1e-4;
			*v = old + h;
			double up = objective(&p, &s, o.c);
			*v = old - h;
			double down = objective(&p, &s, o.c);
			*v = old;
			assert_true(fabs(up - down) / (2 * h) < 1e-5);
			assert_true(up > objective(&p, &s, o.c));
		}
		probe_release(&p);
		free_set(&s);
	}
}

/* Standardised, a feature that is constant but for rounding counts like any other: the probe is that of the feature in larger units. */
static void tiny_feature(void **state)
{
	struct error e;
	openblas_set_num_threads(1);
	struct probe_options o = {.c = 1, .tol = 1e-8, .max_iter = 1000, .standardize = 1, .threads = 1};
	for (size_t k = 2; k < 5; k++) {
		struct set s = make_set(28, 28, k, 4);
		struct probe as_is = {0}, tiny = {0};
		for (size_t i = 0; i < s.n; i++) /* around 0: float32 has all its digits there */
			s.x[i * s.d + 5] -= 2;
		assert_int_equal(probe_fit(&as_is, s.x, s.d, s.row, s.n, s.y, k, &o, &e), 0);
		for (size_t i = 0; i < s.n; i++)
			s.x[i * s.d + 5] *= 0x1p-50f;
		assert_int_equal(probe_fit(&tiny, s.x, s.d, s.row, s.n, s.y, k, &o, &e), 0);
		assert_true(as_is.converged && tiny.converged);
		for (size_t j = 0; j < tiny.rows * tiny.d; j++) {
			double w = tiny.w[j] * (j % tiny.d == 5 ? 0x1p-50 : 1);
			assert_true(fabs(w - as_is.w[j]) < 1e-6);
		}
		probe_release(&as_is);
		probe_release(&tiny);
		free_set(&s);
	}
}

static void threads_and_rows(void **state)
{
	struct error e;
	struct set s = make_set(1700, 13, 4, 2);
	struct probe one = {0}, three = {0};
	struct probe_options o = {.c = 1, .tol = 1e-6, .max_iter = 1000, .standardize = 1, .threads = 1};
	assert_int_equal(probe_fit(&one, s.x, s.d, s.row, s.n, s.y, s.k, &o, &e), 0);
	o.threads = 3;
	assert_int_equal(probe_fit(&three, s.x, s.d, s.row, s.n, s.y, s.k, &o, &e), 0);
	assert_memory_equal(one.w, three.w, s.k * s.d * sizeof(double));
	assert_memory_equal(one.b, three.b, s.k * sizeof(double));
	probe_release(&three);
	/* only the rows named take part: spoil the others */
	for (size_t i = 0; i < 1000; i++)
		s.row[i] = (uint32_t)i;
	probe_release(&one);
	assert_int_equal(probe_fit(&one, s.x, s.d, s.row, 1000, s.y, s.k, &o, &e), 0);
	for (size_t i = 1000 * s.d; i < s.n * s.d; i++)
		s.x[i] = NAN;
	assert_int_equal(probe_fit(&three, s.x, s.d, s.row, 1000, s.y, s.k, &o, &e), 0);
	assert_memory_equal(one.w, three.w, s.k * s.d * sizeof(double));
	probe_release(&one);
	probe_release(&three);
	free_set(&s);
}

static void stratified(void **state)
{
	const size_t n = 1003, k = 6, nfold = 5;
	uint32_t y[1003], fold[1003], back[1003];
	uint64_t cell[1003];
	struct rng r = rng_at(3, RNG_TEST, 0, 0);
	for (size_t i = 0; i < n; i++) {
		y[i] = rng_below(&r, 1 + rng_below(&r, k));
		cell[i] = i * 7;
	}
	folds_stratified(fold, y, cell, n, k, nfold, 1);
	size_t all[5] = {0}, each[6][5] = {{0}};
	for (size_t i = 0; i < n; i++) {
		assert_in_range(fold[i], 0, nfold - 1);
		all[fold[i]]++;
		each[y[i]][fold[i]]++;
	}
	for (size_t f = 0; f < nfold; f++)
		for (size_t g = 0; g < nfold; g++) {
			assert_true(all[f] <= all[g] + 1);
			for (size_t c = 0; c < k; c++)
				assert_true(each[c][f] <= each[c][g] + 1);
		}
	/* the same cells in another order fall into the same folds */
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t ty = y[i];
		uint64_t tc = cell[i];
		y[i] = y[n - 1 - i], cell[i] = cell[n - 1 - i];
		y[n - 1 - i] = ty, cell[n - 1 - i] = tc;
	}
	folds_stratified(back, y, cell, n, k, nfold, 1);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(back[i], fold[n - 1 - i]);
}

static void grouped(void **state)
{
	const size_t n = 900, ngroup = 12, k = 3;
	uint32_t y[900], group[900], fold[900], of[12];
	for (size_t nfold = 2; nfold <= ngroup; nfold++) {
		struct rng r = rng_at((uint32_t)nfold, RNG_TEST, 0, 0);
		for (size_t i = 0; i < n; i++) {
			group[i] = i < ngroup ? (uint32_t)i : rng_below(&r, 1 + rng_below(&r, (uint32_t)ngroup));
			y[i] = rng_below(&r, (uint32_t)k);
		}
		folds_grouped(fold, y, group, n, k, ngroup, nfold, 1);
		memset(of, 0xFF, sizeof of);
		size_t size[12] = {0};
		for (size_t i = 0; i < n; i++) {
			assert_in_range(fold[i], 0, nfold - 1);
			assert_true(of[group[i]] == fold[i] || of[group[i]] == ~0u);
			of[group[i]] = fold[i];
			size[fold[i]]++;
		}
		for (size_t f = 0; f < nfold; f++)
			assert_true(size[f] > 0);
	}
	/* twelve equal groups in four folds: exactly three each */
	for (size_t i = 0; i < n; i++) {
		group[i] = (uint32_t)(i / 75);
		y[i] = (uint32_t)(i % 3);
	}
	folds_grouped(fold, y, group, n, k, ngroup, 4, 1);
	size_t size[4] = {0};
	for (size_t i = 0; i < n; i++)
		size[fold[i]]++;
	for (size_t f = 0; f < 4; f++)
		assert_int_equal(size[f], 225);
}

static void quotas(void **state)
{
	uint64_t count[] = {5, 0, 100, 17, 3}, q[5], sum;
	for (uint64_t total = 0; total < 140; total++) {
		sample_proportional(count, 5, total, q);
		sum = 0;
		for (int c = 0; c < 5; c++) {
			assert_true(q[c] <= count[c]);
			assert_true(total > 125 || fabs((double)q[c] - (double)count[c] * (double)total / 125) < 1);
			sum += q[c];
		}
		assert_int_equal(sum, total < 125 ? total : 125);
		/* one at a time, as the header says */
		uint64_t want[5] = {0}, left = sum;
		for (int c = 0; left; c = (c + 1) % 5)
			if (want[c] < count[c]) {
				want[c]++;
				left--;
			}
		sample_round_robin(count, 5, total, q);
		assert_memory_equal(q, want, sizeof q);
	}
	uint64_t size[] = {10, 20, 30, 40, 1000}, draw[] = {5, 4, 3, 2, 1};
	uint8_t test[5];
	sample_groups(size, draw, 5, 0.05, test); /* 55 of 1100 wanted: not 1000; 40; 30 comes no nearer; 20 does; 10 not */
	assert_memory_equal(test, ((uint8_t[]){0, 1, 0, 1, 0}), 5);
	sample_groups(size, draw, 2, 0.9, test);
	assert_int_equal(test[0] + test[1], 1);
	sample_groups(size, draw, 2, 0.0, test);
	assert_int_equal(test[0] + test[1], 1);
}

static void conditions(void **state)
{
	struct error e;
	struct header h;
	char *cats[] = {(char *)"a", (char *)"", (char *)"7"};
	header_init(&h, STREAM_COUNTS);
	header_add(&h, "f", F32);
	header_add(&h, "flag", U8);
	header_add(&h, "flag.missing", U8);
	header_add_categorical(&h, "c", cats, 3);
	header_add(&h, "s", STR);
	struct block b = {0};
	block_reset(&b, &h);
	block_set_rows(&b, 4);
	memcpy(b.col[0].data, (float[]){1, -2.5f, NAN, 7}, 16);
	memcpy(b.col[1].data, (uint8_t[]){0, 1, 1, 0}, 4);
	memcpy(b.col[2].data, (uint8_t[]){0, 0, 1, 1}, 4);
	memcpy(b.col[3].data, (uint32_t[]){0, 1, 2, MISSING_CODE}, 16);
	const char *const text[] = {"x", "", "3", "x=y"};
	for (int i = 0; i < 4; i++)
		block_push_str(&b, 4, text[i], strlen(text[i]));
	static const struct {
		const char *cond;
		uint8_t want[4];
	} cases[] = {
		{"f=1", {1, 0, 0, 0}},
		{"f==7.0", {0, 0, 0, 1}},
		{"f!=1", {0, 1, 1, 1}},
		{"f<1", {0, 1, 0, 0}},
		{"f>=1", {1, 0, 0, 1}},
		{"f=", {0, 0, 1, 0}},
		{"f!=", {1, 1, 0, 1}},
		{"flag=true", {0, 1, 0, 0}},
		{"flag=False", {1, 0, 0, 0}},
		{"flag!=true", {1, 0, 1, 1}},
		{"flag=", {0, 0, 1, 1}},
		{"c=a", {1, 0, 0, 0}},
		{"c!=a", {0, 1, 1, 1}},
		{"c=", {0, 1, 0, 1}},
		{"c!=", {1, 0, 1, 0}},
		{"c<=7", {0, 0, 1, 0}},
		{"s=x=y", {0, 0, 0, 1}},
		{"c=NA", {0, 1, 0, 1}},
		{"c!=NA", {1, 0, 1, 0}},
		{"f!=NA", {1, 1, 0, 1}},
		{"f=NA", {0, 0, 1, 0}},
		{"s!=NA", {1, 0, 1, 1}},
		{"s>2", {0, 0, 1, 0}},
		{"s!=x", {0, 1, 1, 1}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct where w = {0};
		uint8_t keep[4] = {1, 1, 1, 1};
		assert_int_equal(where_add(&w, cases[i].cond, &e), 0);
		assert_int_equal(where_bind(&w, &h, "test", &e), 0);
		where_rows(&w, &b, keep);
		if (memcmp(keep, cases[i].want, 4))
			fail_msg("%s: %d%d%d%d", cases[i].cond, keep[0], keep[1], keep[2], keep[3]);
		where_release(&w);
	}
	struct where w = {0};
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(where_add(&w, ((const char *const[]){"s=x", "f>0", "s=x=y"})[i], &e), 0);
	uint8_t keep[4] = {1, 1, 1, 1};
	assert_int_equal(where_bind(&w, &h, "test", &e), 0);
	where_rows(&w, &b, keep);
	assert_memory_equal(keep, ((uint8_t[]){1, 0, 0, 1}), 4);
	where_release(&w);

	struct classes c = {0};
	struct labels l;
	assert_int_equal(labels_init(&l, &h, "f", &c, LABEL_WORDS_ASIDE, "test", &e), -1);
	labels_release(&l);
	assert_int_equal(labels_init(&l, &h, "flag", &c, LABEL_WORDS_ASIDE, "test", &e), 0);
	assert_int_equal(labels_at(&l, &b, 1), 0);
	assert_int_equal(labels_at(&l, &b, 2), MISSING_CODE);
	labels_release(&l);
	assert_int_equal(labels_init(&l, &h, "c", &c, LABEL_WORDS_ASIDE, "test", &e), 0);
	assert_int_equal(labels_at(&l, &b, 0), 1);
	assert_int_equal(labels_at(&l, &b, 1), MISSING_CODE);
	assert_int_equal(labels_at(&l, &b, 3), MISSING_CODE);
	labels_release(&l);
	classes_release(&c);
	block_release(&b);
	header_release(&h);
}

static void no_label(void **state)
{
	(void)state;
	static const char *const none[] = {"unknown", "Unknown", "UNKNOWN", " unknown ", "nan", "NaN", "NA", "N/A", "#N/A", "n.a.", "<NA>",
		"None", "NULL", "null", "undefined", "Unassigned", "not_assigned", "Not Assigned", "unlabelled", "Unlabeled",
		"unknown cell type", "Unclassified cells", "unannotated", "not applicable", "not available", "missing", "-", "--", "?", ".",
		" ", "_"};
	static const char *const labels[] = {"T cell", "null cell", "NAT", "native cell", "Na+", "+", "0", "-1", "unknown 1", "Unknown_2",
		"other", "doublet", "unipolar brush cell", "naive", "nanog", "not", "un", "low quality", "no cell", "nasal cells",
		"\xce\xb3\xce\xb4", "unknown unknown unknown unknown"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		if (!label_is_none(none[i], strlen(none[i])))
			fail_msg("'%s' is a label", none[i]);
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		if (label_is_none(labels[i], strlen(labels[i])))
			fail_msg("'%s' is no label", labels[i]);
	assert_true(label_is_none("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stationary),
		cmocka_unit_test(tiny_feature),
		cmocka_unit_test(threads_and_rows),
		cmocka_unit_test(stratified),
		cmocka_unit_test(grouped),
		cmocka_unit_test(quotas),
		cmocka_unit_test(conditions),
		cmocka_unit_test(no_label),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

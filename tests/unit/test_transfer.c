/* lib/transfer against numpy and scipy (tests/ref/transfer_rule.py): decisions, what is measured of them, and that a promise follows the decisions. */
#include "base/tsv.h"
#include "transfer/promise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 160, CLASSES = 3, GROUPS = 20 };
static const double coverage = 0.8, unknown = 0.12;
static char name_a[] = "a", name_b[] = "b", name_c[] = "c", *names[] = {name_a, name_b, name_c};

static struct error e;
static uint32_t y[N], group[N];
static float x[N * 2];
static double logit[N * CLASSES], far[N];
static struct cell {
	double class, probability, likeness, unlike, set[CLASSES];
} want[N];
static struct {
	char name[16];
	double value;
} values[32];
static size_t nvalues;

static double value(const char *name)
{
	for (size_t i = 0; i < nvalues; i++)
		if (!strcmp(values[i].name, name))
			return values[i].value;
	fail_msg("no %s", name);
	return NAN;
}

static int read_reference(void **state)
{
	struct tsv t;
	size_t n = 0;
	(void)state;
	if (tsv_open(&t, "tests/ref/transfer_rule.tsv", &e))
		return -1;
	while (tsv_next(&t, &e) > 0) {
		double v[16] = {0};
		if (*t.field[0] == '#')
			continue;
		for (size_t i = 1; i < t.n; i++)
			v[i] = strtod(t.field[i], NULL);
		if (strcmp(t.field[0], "cell")) {
			snprintf(values[nvalues].name, sizeof values->name, "%s", t.field[0]);
			values[nvalues++].value = v[1];
			continue;
		}
		y[n] = (uint32_t)v[1];
		group[n] = (uint32_t)v[2];
		for (size_t j = 0; j < 2; j++)
			x[2 * n + j] = (float)v[3 + j];
		memcpy(logit + n * CLASSES, v + 5, CLASSES * sizeof *logit);
		far[n] = v[8];
		want[n++] = (struct cell){v[9], v[10], v[11], v[12], {v[13], v[14], v[15]}};
	}
	tsv_close(&t);
	return n == N ? 0 : -1;
}

static void is_close(double a, double b, double most)
{
	if (!(fabs(a - b) <= most))
		fail_msg("%.12g, expected %.12g", a, b);
}

static struct held_out held(struct embeddings *d)
{
	*d = (struct embeddings){.n = N, .d = 2, .x = x, .y = y, .group = group};
	return (struct held_out){.d = d, .k = CLASSES, .logit = logit, .far = far};
}

static void test_decisions(void **state)
{
	struct embeddings d;
	struct held_out h = held(&d);
	struct calibrated c;
	double p[CLASSES];
	uint8_t in_set[CLASSES];
	struct decision got = {.p = p, .in_set = in_set};
	(void)state;
	assert_int_equal(transfer_calibrate(&c, &h, NULL, GROUPS, coverage, unknown, &e), 0);
	is_close(c.rule.temperature, value("temperature"), 1e-5);
	is_close(c.rule.most_missed, value("most_missed"), 1e-5);
	for (size_t i = 0; i < N; i++) {
		transfer_decide(&c.rule, logit + i * CLASSES, far[i], &got);
		assert_int_equal(got.class, (int)want[i].class);
		is_close(got.probability, want[i].probability, 1e-5);
		is_close(got.likeness, want[i].likeness, 1e-9);
		assert_int_equal(got.unlike, (int)want[i].unlike);
		for (size_t k = 0; k < CLASSES; k++)
			assert_int_equal(in_set[k], (int)want[i].set[k]);
	}
	is_close(c.coverage.sum, value("coverage"), 1e-9);
	char name[16] = "known0", of_groups[16] = "groups0", covered[16] = "covered0";
	is_close(c.of[0].covered, value(covered), 1e-9);
	/* all classes keep their promise: known is that of all cells */
	assert_int_equal(c.known.of, CLASSES);
	for (size_t k = 0; k < CLASSES; k++) {
		name[5] = of_groups[6] = covered[7] = (char)('0' + k);
		assert_true(value(name) >= (1 - unknown) * (value(of_groups) + 1));
		is_close(c.of[k].covered, value(covered), 1e-9);
	}
	for (size_t i = 0; i < N; i++)
		if (isfinite(logit[i * CLASSES + y[i]])) {
			for (size_t j = 0; j < 2; j++)
				x[2 * i + j] += 0.3f;
			shift_add(&c.shift, (uint32_t)want[i].class, &d, i);
			for (size_t j = 0; j < 2; j++)
				x[2 * i + j] -= 0.3f;
		}
	is_close(shift_of(&c.shift, CLASSES), value("shift"), 1e-5);
	is_close(c.shift.limit, value("limit"), 1e-9);
	calibrated_release(&c);
}

/* The same cells are the new ones; of those of one class all are unlike. */
static void add_new(struct calibrated *c, const struct embeddings *d, uint32_t unlike)
{
	double p[CLASSES];
	uint8_t in_set[CLASSES];
	struct decision of = {.p = p, .in_set = in_set};
	for (size_t i = 0; i < N; i++) {
		transfer_decide(&c->rule, logit + i * CLASSES, far[i], &of);
		of.unlike |= of.class == unlike;
		calibrated_add(c, &of, d, i);
	}
}

/* Which promises are kept, of new cells like the held-out ones. */
static void promised(struct calibrated *c, const struct held_out *h, int coverage_kept, int unknown_kept)
{
	struct promises p;
	transfer_measure(c, h, GROUPS);
	calibrated_mix(c, logit, N);
	promises_make(&p, c, "donor", names, NULL);
	assert_int_equal(!p.why[PROMISE_COVERAGE], coverage_kept);
	assert_int_equal(!p.why[PROMISE_UNKNOWN], unknown_kept);
	assert_null(p.why[PROMISE_ACCURACY]);
	if (!unknown_kept)
		assert_non_null(strstr(p.why[PROMISE_UNKNOWN], c->known.of < CLASSES ? names[c->known.of] : ""));
	promises_release(&p);
}

/* Whatever changes the decisions changes what is promised. */
static void test_promises_follow_decisions(void **state)
{
	struct embeddings d;
	struct held_out h = held(&d);
	struct calibrated c;
	struct promises p;
	double z[N * CLASSES];
	size_t n;
	(void)state;
	assert_int_equal(transfer_calibrate(&c, &h, NULL, GROUPS, coverage, unknown, &e), 0);
	add_new(&c, &d, CLASSES);
	promised(&c, &h, 1, 1);
	double most = c.rule.limit[1].most, missed = c.rule.most_missed;
	c.rule.limit[1].most -= 0.1; /* more cells of one class are unlike */
	promised(&c, &h, 1, 0);
	assert_int_equal(c.known.of, 1);
	c.rule.limit[1].most = most;
	c.rule.most_missed = 0.4; /* smaller sets */
	promised(&c, &h, 0, 1);
	c.rule.most_missed = missed;
	promised(&c, &h, 1, 1);
	c.rule.temperature *= 0.7; /* other probabilities */
	promised(&c, &h, 0, 1);
	c.rule.temperature /= 0.7;
	/* without groups, and far away, nothing is promised */
	promises_make(&p, &c, NULL, names, NULL);
	assert_true(p.why[PROMISE_COVERAGE] && p.why[PROMISE_UNKNOWN] && p.why[PROMISE_ACCURACY]);
	promises_release(&p);
	c.shift.limit = -9;
	promises_make(&p, &c, "donor", names, NULL);
	assert_true(p.why[PROMISE_COVERAGE] && p.why[PROMISE_UNKNOWN] && p.why[PROMISE_ACCURACY]);
	assert_string_equal(p.nothing, p.why[PROMISE_COVERAGE]);
	promises_release(&p);
	/* all reasons, each once */
	c.rule.most_missed = 0.4;
	transfer_measure(&c, &h, GROUPS);
	promises_make(&p, &c, "donor", names, "genes lack");
	assert_int_equal(strncmp(p.nothing, "genes lack; the new cells differ", 32), 0);
	assert_non_null(strstr(p.why[PROMISE_COVERAGE], "type in the set"));
	assert_null(strstr(p.why[PROMISE_UNKNOWN], "type in the set"));
	assert_null(strstr(strstr(p.nothing, "new cells differ") + 1, "new cells differ"));
	promises_release(&p);
	calibrated_release(&c);
	/* more new cells are unlike than donors have */
	assert_int_equal(transfer_calibrate(&c, &h, NULL, GROUPS, coverage, unknown, &e), 0);
	add_new(&c, &d, 1);
	calibrated_mix(&c, logit, N);
	promises_make(&p, &c, "donor", names, NULL);
	assert_true(!p.why[PROMISE_COVERAGE] && p.why[PROMISE_UNKNOWN] && p.why[PROMISE_ACCURACY] && !p.nothing);
	promises_release(&p);
	/* the new cells have the class whose sets hold it less often, and which is predicted wrongly more often */
	memset(c.of, 0, CLASSES * sizeof *c.of);
	add_new(&c, &d, CLASSES);
	transfer_measure(&c, &h, GROUPS);
	for (size_t i = n = 0; i < N; i++)
		if (y[i] == 2)
			memcpy(z + n++ * CLASSES, logit + i * CLASSES, sizeof *z * CLASSES);
	calibrated_mix(&c, z, n);
	is_close(c.of[2].share, value("mix2"), 1e-4);
	is_close(c.expected_covered, value("mix_covered"), 1e-4);
	promises_make(&p, &c, "donor", names, NULL);
	assert_true(p.why[PROMISE_COVERAGE] && !p.why[PROMISE_UNKNOWN] && p.why[PROMISE_ACCURACY]);
	promises_release(&p);
	calibrated_release(&c);
	/* more is asked for than so many groups can promise */
	assert_int_equal(transfer_calibrate(&c, &h, NULL, GROUPS, 0.97, 0.04, &e), 0);
	add_new(&c, &d, CLASSES);
	promised(&c, &h, 0, 0);
	calibrated_release(&c);
}

static void test_held_out(void **state)
{
	struct embeddings d;
	struct held_out h = held(&d);
	struct classes c = {0};
	struct method whole, part;
	struct method_options o = {.inverse_penalty = 1, .threads = 1, .label = "type"};
	uint32_t fold[N], all[N], train[N], test[N], n = 0, m = 0;
	double z[N * CLASSES], f[N];
	(void)state;
	for (size_t k = 0; k < CLASSES; k++)
		classes_add(&c, names[k], 1);
	for (uint32_t i = 0; i < N; i++) {
		all[i] = i;
		fold[i] = group[i] % 4;
		*(fold[i] == 2 ? &test[m++] : &train[n++]) = i;
	}
	for (o.nearest = 0; o.nearest <= 7; o.nearest += 7) {
		struct held_out got;
		assert_int_equal(method_fit(&whole, &d, all, N, &c, &o, NULL, &e), 0);
		assert_int_equal(hold_out(&got, &d, &whole, fold, 4, &e), 0);
		assert_int_equal(method_fit(&part, &d, train, n, &c, &o, NULL, &e), 0);
		method_score(&part, &d, test, m, z, f);
		for (size_t i = 0; i < m; i++) {
			is_close(got.far[test[i]], f[i], 1e-12);
			for (size_t k = 0; k < CLASSES; k++)
				is_close(got.logit[test[i] * CLASSES + k], z[i * CLASSES + k], 2e-3); /* another start */
		}
		held_out_release(&got);
		method_release(&part);
		method_release(&whole);
	}
	/* what is wrong is an error, and the fold is named */
	o.nearest = N;
	assert_int_equal(method_fit(&whole, &d, all, N, &c, &o, NULL, &e), 0);
	assert_int_equal(hold_out(&h, &d, &whole, fold, 4, &e), -1);
	assert_non_null(strstr(e.msg, "fold 1 of 4"));
	held_out_release(&h);
	method_release(&whole);
	o.nearest = 0;
	assert_int_equal(method_fit(&whole, &d, all, 2, &c, &o, NULL, &e), -1);
	classes_release(&c);
	/* no cell has a class that its method knew */
	double none[N * CLASSES];
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < CLASSES; k++)
			none[i * CLASSES + k] = k == y[i] ? -INFINITY : 0;
	struct calibrated cal;
	h = (struct held_out){.d = &d, .k = CLASSES, .logit = none, .far = far};
	assert_int_equal(transfer_calibrate(&cal, &h, NULL, GROUPS, coverage, unknown, &e), -1);
	calibrated_release(&cal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions), cmocka_unit_test(test_promises_follow_decisions), cmocka_unit_test(test_held_out)};
	return cmocka_run_group_tests(tests, read_reference, NULL);
}

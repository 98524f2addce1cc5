/* Clusters that are unlike a reference, against numpy (tests/ref/transfer_unlike.py): given ones by their scores, and those of k-means. */
#include "base/tsv.h"
#include "stream/header.h"
#include "transfer/unlike.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { FEATURES = 16, CLASSES = 3, CLUSTERS = 6, MOST = 100 };

static struct error e;
static struct sparse reference = {.d = FEATURES}, new = {.d = FEATURES};
static uint32_t y[MOST], class[MOST], cluster[MOST], all[MOST];
static struct want {
	double value[9]; /* id, cells, class, nearest two, distance, level, outside, ranks */
	char genes[3][64];
} want[CLUSTERS];
static size_t wanted;
static struct marker_ranks ranks;
static struct components components;

static void add(struct sparse *to, char **field)
{
	size_t n = 0;
	for (size_t j = 0; j < FEATURES; j++)
		n += strtod(field[j], NULL) > 0;
	uint64_t at = sparse_add(to, n);
	for (uint32_t j = 0; j < FEATURES; j++)
		if (strtod(field[j], NULL) > 0) {
			to->column[at] = j;
			to->value[at++] = strtof(field[j], NULL);
		}
}

static int fit(void **state)
{
	struct tsv t;
	(void)state;
	if (tsv_open(&t, "tests/ref/transfer_unlike.tsv", &e))
		return -1;
	while (tsv_next(&t, &e) > 0) {
		uint32_t first = t.n > 2 ? (uint32_t)strtoul(t.field[1], NULL, 10) : 0;
		if (!strcmp(t.field[0], "reference")) {
			y[reference.n] = first;
			add(&reference, t.field + 2);
		} else if (!strcmp(t.field[0], "new")) {
			class[new.n] = first;
			cluster[new.n] = (uint32_t)strtoul(t.field[2], NULL, 10);
			add(&new, t.field + 3);
		} else if (!strcmp(t.field[0], "cluster")) {
			for (size_t i = 0; i < 9; i++)
				want[wanted].value[i] = strtod(t.field[1 + i], NULL);
			for (size_t i = 0; i < 3; i++)
				snprintf(want[wanted].genes[i], sizeof want[wanted].genes[i], "%s", t.field[10 + i]);
			wanted++;
		}
	}
	tsv_close(&t);
	for (uint32_t i = 0; i < MOST; i++)
		all[i] = i;
	marker_ranks_fit(&ranks, &reference, all, reference.n, y, NULL, CLASSES);
	return components_fit(&components, &reference, all, reference.n, y, CLASSES, 1, &e);
}

static int release(void **state)
{
	(void)state;
	marker_ranks_release(&ranks);
	components_release(&components);
	sparse_release(&reference);
	sparse_release(&new);
	return 0;
}

static void has_genes(const struct unlike_genes *g, const char *text)
{
	char own[64] = "";
	for (size_t i = 0; i < g->n; i++)
		snprintf(own + strlen(own), sizeof own - strlen(own), "%s%u", i ? " " : "", g->at[i]);
	assert_string_equal(own, text);
}

static void test_given(void **state)
{
	struct unlike u;
	(void)state;
	unlike_list(&u, &ranks, &components, &new, class, cluster, CLUSTERS, 1, 1);
	assert_int_equal(u.n, wanted);
	for (size_t i = 0; i < u.n; i++) {
		const struct unlike_cluster *c = &u.of[i];
		const double own[] = {
			c->id, (double)c->cells, c->class, c->nearest[0], c->nearest[1], c->distance, c->level, c->outside, c->ranks};
		for (size_t j = 0; j < 9; j++)
			if (!(fabs(own[j] - want[i].value[j]) <= 1e-4 * (1 + fabs(own[j]))))
				fail_msg("cluster %zu, value %zu: %.9g, expected %.9g", i, j, own[j], want[i].value[j]);
		has_genes(&c->lacks, want[i].genes[0]);
		has_genes(&c->has, want[i].genes[1]);
		has_genes(&c->more, want[i].genes[2]);
		size_t cells = 0;
		for (size_t k = 0; k < CLASSES; k++)
			cells += u.cells[i * CLASSES + k];
		assert_int_equal(cells, c->cells);
	}
	for (size_t i = 0; i < new.n; i++)
		assert_int_equal(u.of[u.place[i]].id, cluster[i]);
	unlike_release(&u);
}

/* Cells in no cluster count in none; without clusters, k-means gives each cell one. A cell, and none. */
static void test_found(void **state)
{
	struct unlike u;
	uint32_t none[MOST];
	(void)state;
	memcpy(none, cluster, sizeof none);
	none[3] = MISSING_CODE;
	unlike_list(&u, &ranks, &components, &new, class, none, CLUSTERS, 1, 1);
	assert_int_equal(u.place[3], MISSING_CODE);
	assert_int_equal(u.n, wanted);
	unlike_release(&u);
	unlike_list(&u, &ranks, &components, &new, class, NULL, 0, 1, 1);
	size_t cells = 0;
	for (size_t i = 0; i < u.n; i++)
		cells += u.of[i].cells;
	assert_int_equal(u.n, 2);
	assert_int_equal(cells, new.n);
	unlike_release(&u);
	for (size_t n = 0; n < 2; n++) {
		struct sparse few = new;
		few.n = n;
		unlike_list(&u, &ranks, &components, &few, class, NULL, 0, 1, 1);
		assert_int_equal(u.n, n);
		unlike_release(&u);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_given), cmocka_unit_test(test_found)};
	return cmocka_run_group_tests(tests, fit, release);
}

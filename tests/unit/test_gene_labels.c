/* Labels of genes: a user's table, folds, genes.tsv and back. */
#include "label/gene_labels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { SPECIAL = 2, GENES = 60 };

static char path[] = "/tmp/test_gene_labels.XXXXXX";
static struct vocab v;

static int setup(void **unused)
{
	struct error e;
	int fd = mkstemp(path);
	char id[32], symbol[32];
	vocab_push(&v, "<pad>", "", NAN);
	vocab_push(&v, "<mask>", "", NAN);
	for (int i = 0; i < GENES; i++) {
		snprintf(id, sizeof id, "ENSG%011d", 100 + i);
		snprintf(symbol, sizeof symbol, "GENE%d", i);
		vocab_push(&v, id, i == 5 ? "" : symbol, 1);
	}
	return fd < 0 || close(fd) || vocab_index(&v, "test", &e);
}

static int teardown(void **unused)
{
	vocab_release(&v);
	return unlink(path);
}

static void write_text(const char *text, int gz)
{
	gzFile f = gzopen(path, gz ? "wb" : "wbT");
	assert_true(gzwrite(f, text, (unsigned)strlen(text)) == (int)strlen(text));
	gzclose(f);
}

static int load(struct gene_labels *g, const char *text, int gz, struct error *e)
{
	write_text(text, gz);
	return gene_labels_load(g, path, &v, e);
}

static int row(int gene)
{
	return SPECIAL + gene;
}

static void tables_of_users(void **unused)
{
	/* id, id with a version, symbol, symbol in lower case, unknown gene, special token, the same gene again, an empty line */
	static const char *const text[] = {"ENSG00000000100\tzeta\r\nENSG00000000101.7\talpha\nGENE2\tzeta\ngene3\tbeta\nNOGENE\tgamma\n"
					   "<pad>\talpha\nGENE2\tzeta\n\nENSG00000000105\tbeta",
		"symbol\tnotes\tlabel\n"
		"ENSG00000000100\tx\tzeta\r\nENSG00000000101.7\tx\talpha\nGENE2\t\tzeta\ngene3\tx\tbeta\tx\nNOGENE\tx\tgamma\n"
		"<pad>\tx\talpha\nGENE2\tx\tzeta\n\nENSG00000000105\tx\tbeta"};
	struct error e;
	for (int k = 0; k < 4; k++) {
		struct gene_labels g;
		if (load(&g, text[k & 1], k & 2, &e))
			fail_msg("%s", e.msg);
		static const int32_t want[] = {2, 0, 2, 1, -1, 1};
		assert_int_equal(g.nclass, 3); /* gamma has no gene of the vocabulary */
		assert_string_equal(g.name[0], "alpha");
		assert_string_equal(g.name[1], "beta");
		assert_string_equal(g.name[2], "zeta");
		assert_true(g.genes[0] == 1 && g.genes[1] == 2 && g.genes[2] == 2);
		for (int i = 0; i < GENES; i++)
			assert_int_equal(g.label[row(i)], i < 6 ? want[i] : -1);
		assert_true(g.label[0] == -1 && g.label[1] == -1);
		assert_int_equal(g.found, 5);
		assert_int_equal(g.listed, 7);
		assert_int_equal(g.absent, 2);
		assert_string_equal(g.missing, "NOGENE");
		gene_labels_release(&g);
	}
}

static void tables_that_are_refused(void **unused)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"", "no genes in it"},
		{"NOGENE\ta\n", "none of its 1 genes is in the vocabulary"},
		{"GENE1\ta\nGENE2\n", "line 2: expected a gene and its label, with a tab or comma between"},
		{"GENE1\ta\n\tb\n", "line 2: expected a gene and its label"},
		{"GENE1\ta\nGENE1\tb\n", "line 2: gene GENE1 has two labels"},
		{"GENE1\ta\nENSG00000000101\tb\n", "line 2: gene ENSG00000000101 has two labels"},
		{"name\tlabel\nGENE1\ta\n", "line 1: a column label, but none named gene_id, gene or symbol"},
	};
	struct error e;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct gene_labels g;
		assert_int_equal(load(&g, bad[i].text, 0, &e), -1);
		if (!strstr(e.msg, bad[i].message) || strncmp(e.msg, path, strlen(path)))
			fail_msg("'%s' does not have '%s'", e.msg, bad[i].message);
	}
	char *line = xcalloc(1, 5001);
	struct gene_labels g;
	memset(line, 'x', 5000);
	assert_int_equal(load(&g, line, 0, &e), -1);
	assert_non_null(strstr(e.msg, "line 1"));
	free(line);
	assert_int_equal(gene_labels_load(&g, "/nowhere/at/all", &v, &e), -1);
	gene_labels_release(&(struct gene_labels){0});
}

/* All genes but every seventh, in two classes. */
static void load_two_classes(struct gene_labels *g)
{
	struct error e;
	char text[GENES * 32] = "";
	for (int i = 0; i < GENES; i++)
		if (i % 7)
			sprintf(text + strlen(text), "ENSG%011d\t%s\n", 100 + i, i % 3 ? "most" : "few");
	if (load(g, text, 0, &e))
		fail_msg("%s", e.msg);
}

static void folds_and_back(void **unused)
{
	struct error e;
	struct gene_labels g, back, again;
	char few[] = "few", most[] = "most", *const name[] = {few, most};
	load_two_classes(&g);
	assert_int_equal(g.test, 0);
	if (gene_labels_folds(&g, &v, 4, 2, 7, &e))
		fail_msg("%s", e.msg);
	size_t in_fold[2][4] = {{0}}, test = 0;
	for (size_t i = 0; i < v.n; i++) {
		assert_int_equal(g.label[i] >= 0, g.fold[i] >= 0);
		assert_int_equal(g.held_out[i], g.fold[i] == 2);
		test += g.held_out[i];
		if (g.label[i] >= 0)
			in_fold[g.label[i]][g.fold[i]]++;
	}
	assert_int_equal(g.test, test);
	for (size_t k = 0; k < 2; k++)
		for (size_t f = 0; f < 4; f++) {
			assert_true(in_fold[k][f] >= g.genes[k] / 4);
			assert_true(in_fold[k][f] <= g.genes[k] / 4 + 1);
		}
	/* the folds do not depend on the one that is held out */
	load_two_classes(&again);
	assert_int_equal(gene_labels_folds(&again, &v, 4, 0, 7, &e), 0);
	assert_memory_equal(again.fold, g.fold, v.n * sizeof *g.fold);
	gene_labels_release(&again);
	/* genes.tsv */
	char *text = gene_labels_print(&g, &v);
	static const char start[] = "gene_id\tsymbol\tlabel\tfold\tsplit\nENSG00000000101\tGENE1\tmost\t";
	assert_memory_equal(text, start, sizeof start - 1);
	write_text(text, 0);
	if (gene_labels_read(&back, path, &v, name, 2, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(back.found, g.found);
	assert_int_equal(back.test, g.test);
	assert_memory_equal(back.genes, g.genes, 2 * sizeof *g.genes);
	assert_memory_equal(back.label, g.label, v.n * sizeof *g.label);
	assert_memory_equal(back.held_out, g.held_out, v.n);
	gene_labels_release(&back);
	free(text);
	assert_int_equal(gene_labels_folds(&g, &v, 100, 0, 7, &e), -1);
	assert_non_null(strstr(e.msg, "fewer than the 100 folds"));
	gene_labels_release(&g);
}

static void without_folds(void **unused)
{
	struct error e;
	struct gene_labels g;
	assert_int_equal(load(&g, "GENE5\ta\nGENE4\tb\nENSG00000000105\ta", 0, &e), 0); /* gene 5 has no symbol here */
	char *text = gene_labels_print(&g, &v);
	assert_string_equal(
		text, "gene_id\tsymbol\tlabel\tfold\tsplit\nENSG00000000104\tGENE4\tb\tNA\ttrain\nENSG00000000105\t\ta\tNA\ttrain\n");
	free(text);
	gene_labels_release(&g);
}

static void tables_of_models_that_are_refused(void **unused)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"", "empty: expected a table of genes"},
		{"gene_id\tlabel\n", "line 1: no column split"},
		{"gene_id\tlabel\tsplit\nENSG00000000100\ta\n", "line 2: no field split"},
		{"gene_id\tlabel\tsplit\nENSG00000000100\tc\ttest\n", "line 2: label 'c' is not one of the model's 2 classes"},
		{"gene_id\tlabel\tsplit\nENSG00000000100\ta\ttest\nENSG00000000100\ta\ttest\n", "line 3: gene ENSG00000000100"},
	};
	char a[] = "a", b[] = "b", *const name[] = {a, b};
	struct error e;
	struct gene_labels g;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_text(bad[i].text, 0);
		assert_int_equal(gene_labels_read(&g, path, &v, name, 2, &e), -1);
		if (!strstr(e.msg, bad[i].message))
			fail_msg("'%s' does not have '%s'", e.msg, bad[i].message);
	}
	/* columns in another order, others between them, and a gene that the vocabulary does not have */
	write_text("split\tx\tlabel\tgene_id\r\ntest\t1\tb\tENSG00000000103\r\ntest\t1\tb\tENSG1\r\ntrain\t1\ta\tENSG00000000104\n", 0);
	assert_int_equal(gene_labels_read(&g, path, &v, name, 2, &e), 0);
	assert_true(g.found == 2 && g.test == 1 && g.label[row(3)] == 1 && g.held_out[row(3)] && !g.label[row(4)] && !g.held_out[row(4)]);
	gene_labels_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_of_users),
		cmocka_unit_test(tables_that_are_refused),
		cmocka_unit_test(folds_and_back),
		cmocka_unit_test(without_folds),
		cmocka_unit_test(tables_of_models_that_are_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

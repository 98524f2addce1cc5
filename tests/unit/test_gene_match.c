/* Genes of two tables by id and by symbol. */
#include "stream/gene_match.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* n genes from the number `first` on, by Ensembl ids with symbols, or by symbols alone */
static struct vocab genes(int ensembl, int first, int n)
{
	struct vocab v = {0};
	char id[32], symbol[32];
	vocab_push(&v, "<pad>", "", NAN);
	for (int i = first; i < first + n; i++) {
		snprintf(id, sizeof id, "ENSG%011d", i);
		snprintf(symbol, sizeof symbol, "S%d", i);
		vocab_push(&v, ensembl ? id : symbol, ensembl ? symbol : "", NAN);
	}
	return v;
}

static void rename_gene(char **name, const char *new)
{
	free(*name);
	*name = xstrdup(new);
}

/* The pairs, which must be those of the other direction; row [a->n] */
static struct gene_matched pairs(uint32_t *row, struct vocab *a, struct vocab *b)
{
	uint32_t back[64];
	assert_true(a->n <= 64 && b->n <= 64);
	assert_true(!vocab_index(a, "a", NULL) && !vocab_index(b, "b", NULL));
	struct gene_matched m = gene_pairs(row, a, b), other = gene_pairs(back, b, a);
	assert_int_equal(m.n, other.n);
	assert_int_equal(m.by_symbol, other.by_symbol);
	size_t n = 0;
	for (size_t i = 0; i < a->n; i++)
		if (row[i] != GENE_NONE) {
			assert_int_equal(back[row[i]], i);
			n++;
		}
	assert_int_equal(n, m.n);
	assert_int_equal(row[0], GENE_NONE); /* <pad> is no gene */
	vocab_release(a);
	vocab_release(b);
	return m;
}

static void by_id(void **state)
{
	uint32_t row[64];
	char symbol[16];
	struct vocab a = genes(1, 12, 20), b = genes(1, 0, 20);
	for (int i = 1; i <= 5; i++) { /* genes that b lacks have symbols of others; ids match more genes */
		snprintf(symbol, sizeof symbol, "S%d", i);
		rename_gene(&a.symbol[10 + i], symbol);
	}
	struct gene_matched m = pairs(row, &a, &b);
	assert_true(m.n == 8 && !m.by_symbol && row[1] == 13 && row[11] == GENE_NONE);
}

static void versions(void **state)
{
	uint32_t row[64];
	struct vocab a = genes(1, 0, 4), b = genes(1, 0, 4);
	rename_gene(&a.id[1], "ENSG00000000000.2");
	rename_gene(&a.id[2], "ENSG00000000000.3");
	assert_true(!vocab_index(&a, "a", NULL) && !vocab_index(&b, "b", NULL));
	struct gene_matched m = gene_pairs(row, &a, &b);
	assert_true(m.n == 3 && row[1] == 1 && row[2] == GENE_NONE && row[3] == 3);
	vocab_release(&a);
	vocab_release(&b);
}

static void by_symbol(void **state)
{
	uint32_t row[64];
	for (int ensembl = 0; ensembl < 2; ensembl++) {
		struct vocab a = genes(ensembl, 10, 20), b = genes(!ensembl, 0, 20);
		struct gene_matched m = pairs(row, &a, &b);
		assert_true(m.n == 10 && m.by_symbol == 10);
		for (uint32_t i = 1; i <= 20; i++)
			assert_int_equal(row[i], i <= 10 ? i + 10 : GENE_NONE);
	}
	/* ids of other kinds with the same symbols */
	struct vocab a = genes(1, 0, 20), b = genes(1, 0, 20);
	for (size_t i = 1; i < b.n; i++)
		memcpy(b.id[i], "WBGe", 4);
	struct gene_matched m = pairs(row, &a, &b);
	assert_true(m.by_symbol == 20 && row[7] == 7);
}

static void unclear_symbols(void **state)
{
	uint32_t row[64];
	struct vocab a = genes(1, 0, 20), b = genes(0, 0, 20);
	rename_gene(&a.symbol[3], "S4"); /* two genes of a, with index 3 and 5 */
	rename_gene(&b.id[10], "ENSG00000000007"); /* S9 is called by the id of S7, which is gene 8 of both */
	rename_gene(&b.symbol[12], "S12"); /* S11 and S12, genes 12 and 13 */
	struct gene_matched m = pairs(row, &a, &b);
	assert_true(row[3] == GENE_NONE && row[5] == GENE_NONE);
	assert_true(row[8] == 10 && row[10] == GENE_NONE);
	assert_true(row[12] == GENE_NONE && row[13] == GENE_NONE);
	assert_true(m.n == 15 && m.by_symbol == 14);
}

static void other_species(void **state)
{
	uint32_t row[64];
	for (int shared = 1; shared < 3; shared++) {
		struct vocab a = genes(1, 0, 20), b = genes(0, 20 - shared, 40);
		struct gene_matched m = pairs(row, &a, &b);
		assert_int_equal(m.n, shared == 1 ? 0 : 2); /* one in GENES_FEW is too few */
	}
	/* Ensembl ids of two species that have the same symbols */
	struct vocab a = genes(1, 0, 20), b = genes(1, 0, 20);
	for (size_t i = 1; i < b.n; i++)
		memcpy(b.id[i], "ENSMMUG0", 8);
	assert_int_equal(pairs(row, &a, &b).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_id),
		cmocka_unit_test(versions),
		cmocka_unit_test(by_symbol),
		cmocka_unit_test(unclear_symbols),
		cmocka_unit_test(other_species),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

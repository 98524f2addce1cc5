/* Which gene is it: texts, columns, tables, and names of the user. Whole files in every order are tested by ref/gene_join.py. */
#include "genes/gene_columns.h"
#include "genes/gene_find.h"
#include "genes/gene_match.h"
#include "genes/gene_name.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void names(void **state)
{
	static const struct {
		const char *s;
		enum gene_kind kind;
		const char *key; /* NULL: the text itself */
	} t[] = {
		{"ENSG00000141510", GENE_ENSEMBL, NULL},
		{"ENSG00000141510.17", GENE_ENSEMBL, "ENSG00000141510"},
		{"ENSMUSG00000059552", GENE_ENSEMBL, NULL},
		{"ENSGR0000182378", GENE_ENSEMBL, NULL},
		{"ENSG00000223972.5_2", GENE_ENSEMBL, "ENSG00000223972"},
		{"ENSG00000124333.15_PAR_Y", GENE_ENSEMBL, "ENSG00000124333_PAR_Y"},
		{"ENSG00000124333_PAR_Y", GENE_ENSEMBL, NULL},
		{"ENSG00000124333.15_3_PAR_Y", GENE_ENSEMBL, "ENSG00000124333_PAR_Y"},
		{"ENSG000001415100000000", GENE_ENSEMBL, NULL},
		{"ENST00000269305", GENE_NAME, NULL},
		{"ENSG", GENE_NAME, NULL},
		{"ENSG00000141510.", GENE_NAME, NULL},
		{"ENSG00000141510.x", GENE_NAME, NULL},
		{"ENSG00000141510_2", GENE_NAME, NULL},
		{"ENSG00000124333_PAR_Y_PAR_Y", GENE_NAME, NULL},
		{"ENSGABCDEFGHIJK", GENE_NAME, NULL},
		{"TP53", GENE_NAME, NULL},
		{"7SK", GENE_NAME, NULL},
		{"1-Mar", GENE_NAME, NULL},
		{"1.5", GENE_NAME, NULL},
		{"0", GENE_NUMBER, NULL},
		{"-12", GENE_NUMBER, NULL},
		{"12.0", GENE_NUMBER, NULL},
		{"", GENE_NOTHING, NULL},
		{"nan", GENE_NOTHING, NULL},
		{"<NA>", GENE_NOTHING, NULL},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct gene_key k;
		const char *key = t[i].key ? t[i].key : t[i].s;
		gene_key(&k, t[i].s, strlen(t[i].s));
		assert_int_equal(k.kind, t[i].kind);
		assert_true(k.n == strlen(key) && !memcmp(k.s, key, k.n));
		assert_int_equal(k.version, t[i].key != NULL);
	}
	char *long_id = xmalloc(500);
	memset(long_id, '0', 499);
	memcpy(long_id, "ENSG", 4);
	memcpy(long_id + 499 - 6, "_PAR_Y", 7);
	assert_int_equal(gene_kind(long_id, 499), GENE_NAME);
	free(long_id);
	assert_true(
		gene_other_species("ENSG00000141510", "ENSMUSG00000059552") && !gene_other_species("ENSG00000141510", "ENSG00000000003"));
}

static void genomes_before_names(void **state)
{
	static const struct {
		const char *s;
		size_t prefix, genome;
	} t[] = {
		{"GRCh38_ENSG00000141510", 7, 6},
		{"GRCh38___ENSG00000141510.3", 9, 6},
		{"Rnor_6.0_ENSRNOG00000010756", 9, 8},
		{"human_ENSG00000141510", 6, 5},
		{"mm10___Xkr4", 7, 4},
		{"hg19_TP53", 5, 4},
		{"GRCm39_Trp53", 7, 6},
		{"MATR3_ENSG00000280987", 6, 5},
		{"ENSG00000124333_PAR_Y", 0, 0},
		{"ENSG00000157554_ENSG00000184012", 0, 0}, /* a fusion */
		{"HLA_A", 0, 0},
		{"mm_x", 0, 0},
		{"hg19_", 0, 0},
		{"_hg19_X", 0, 0},
		{"MATR3|ENSG00000280987", 6, 5},
		{"hg19|TP53", 0, 0},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		size_t genome = 0;
		assert_int_equal(gene_prefix(t[i].s, strlen(t[i].s), &genome), t[i].prefix);
		assert_int_equal(genome, t[i].genome);
	}
}

static void ids_before_symbols(void **state)
{
	static const struct {
		const char *s;
		size_t id;
		const char *symbol;
	} t[] = {
		{"ENSG00000000003_TSPAN6", 15, "TSPAN6"},
		{"ENSG00000000003.15|TSPAN6", 18, "TSPAN6"},
		{"ENSMUSG00000059552:Trp53", 18, "Trp53"},
		{"ENSG00000124333.15_PAR_Y_VAMP7", 24, "VAMP7"},
		{"ENSG00000223972.5_2_DDX11L1", 19, "DDX11L1"},
		{"ENSG00000280987_nan", 15, ""},
		{"ENSG00000280987_", 15, ""},
		{"ENSG00000280987_ENSG00000280987", 15, ""},
		{"ENSG00000276168_Y_RNA", 15, "Y_RNA"},
		{"ENSG00000157554_ENSG00000184012", 0, NULL}, /* a fusion */
		{"ENSG00000124333_PAR_Y", 0, NULL},
		{"ENSG00000124333.15_2", 0, NULL},
		{"ENSG00000124333_1", 0, NULL},
		{"ENSG00000124333-I", 0, NULL},
		{"ENSG123_X", 0, NULL},
		{"TSPAN6", 0, NULL},
		{"", 0, NULL},
	};
	for (size_t i = 0, at; i < sizeof t / sizeof *t; i++) {
		assert_int_equal(gene_id_first(t[i].s, strlen(t[i].s), &at), t[i].id);
		if (t[i].id)
			assert_string_equal(t[i].s + at, t[i].symbol);
	}
	/* a name of 10 MB takes no time */
	size_t n = 10000000, genome;
	char *s = xmalloc(n);
	memset(s, '_', n);
	memcpy(s, "ENSG00000000003", 15);
	for (size_t i = 16; i < n; i += 2)
		s[i] = '1';
	assert_int_equal(gene_prefix(s, n, &genome) + gene_id_first(s, n, &genome), 0);
	free(s);
}

/* A table of four genes; a column is a name and their texts, between blanks. */
struct frame {
	const char *column[4][2];
	size_t ncol;
};

static const char *frame_name(const void *of, size_t column)
{
	return ((const struct frame *)of)->column[column][0];
}

static int frame_load(void *of, size_t column, int any, struct texts *t, struct error *e)
{
	texts_clear(t);
	for (const char *s = ((struct frame *)of)->column[column][1]; *s;) {
		size_t n = strcspn(s, " ");
		texts_push(t, *s == '-' ? "" : s, *s == '-' ? 0 : n);
		s += n + (s[n] == ' ');
	}
	return 1;
}

/* The ids, symbols and source of a frame, between blanks; or the error. Malloced */
static char *read_frame(struct frame *f, const char *wanted, const char *genome, const uint8_t *drop)
{
	struct error e;
	struct gene_names g = {0};
	struct gene_columns c = {
		4, f->ncol, frame_name, frame_load, f, "FILE: /var", "var", "var index", "--gene-column", wanted, drop, genome};
	char *text = NULL;
	size_t size;
	FILE *to = xmemopen(&text, &size);
	if (gene_columns_read(&g, &c, &e)) {
		fputs(e.msg, to);
	} else {
		for (size_t i = 0; i < 4; i++)
			fprintf(to, "%.*s=%.*s ", (int)(g.id.offset[i + 1] - g.id.offset[i]), g.id.bytes + g.id.offset[i],
				(int)(g.symbol.offset[i + 1] - g.symbol.offset[i]), g.symbol.bytes + g.symbol.offset[i]);
		for (size_t i = 0; g.other && i < 4; i++)
			fprintf(to, "%d", g.other[i]);
		fputs(g.source, to);
	}
	xmemclose(to, &text);
	gene_names_release(&g);
	return text;
}

static void columns(void **state)
{
#define E1 "ENSG00000000001"
#define E2 "ENSG00000000002"
#define E3 "ENSG00000000003"
#define E4 "ENSG00000000004"
	static struct {
		struct frame f;
		const char *wanted, *genome, *want;
	} t[] = {
		{{{{"i", "A B C D"}}, 1}, NULL, NULL, "A= B= C= D= var index"},
		{{{{"i", "A B C D"}, {"Gene Name", "P Q - S"}}, 2}, NULL, NULL, "A=P B=Q C= D=S var index"},
		{{{{"i", "A B C D"}, {"x", E1 " " E2 " - D"}}, 2}, NULL, NULL, E1 "=A " E2 "=B C=C D=D var/x"},
		/* row numbers: the first column of symbols, or of other names */
		{{{{"i", "0 1 2 3"}, {"n", "7 8 9 10"}, {"feature_name", "P Q R S"}}, 3}, NULL, NULL, "P=P Q=Q R=R S=S var/feature_name"},
		{{{{"i", "0 1 2 3"}, {"gene_ids", "F1 F2 F3 F4"}}, 2}, NULL, NULL, "F1= F2= F3= F4= var/gene_ids"},
		{{{{"i", "0 1 2 3"}, {"name", "g g g g"}, {"Gene", "P Q R S"}}, 3}, NULL, NULL, "P=g Q=g R=g S=g var/Gene"},
		{{{{"i", "0 1 2 3"}, {"gene_ids", E1 " " E2 " " E3 " 4"}, {"symbol", "P Q R S"}}, 3}, NULL, NULL,
			E1 "=P " E2 "=Q " E3 "=R S=S var/gene_ids"},
		{{{{"i", "0 1 2 3"}, {"n", "P Q R S"}}, 2}, NULL, NULL,
			"FILE: /var: gene 0 is called '0', and a whole number does not say which gene it is; name a column of ids or symbols with "
			"--gene-column (there are: index, n)"},
		{{{{"i", "0 1 2 3"}, {"n", "P Q R S"}}, 2}, "n", NULL, "P= Q= R= S= var/n"},
		{{{{"i", "7157 1 2 3"}}, 1}, "index", NULL, "7157= 1= 2= 3= var index"},
		/* genomes */
		{{{{"i", "hg19_A hg19_B hg19_C D"}}, 1}, NULL, NULL, "A= B= C= D= var index"},
		{{{{"i", "GRCh38_" E1 " GRCh38_" E2 " mm10___ENSMUSG00000000001 mm10___ENSMUSG00000000002"},
			  {"name", "GRCh38_A GRCh38_B mm10___A mm10___B"}},
			 2},
			NULL, NULL,
			"GRCh38_" E1 "=GRCh38_A GRCh38_" E2
			"=GRCh38_B mm10___ENSMUSG00000000001=mm10___A mm10___ENSMUSG00000000002=mm10___B var index"},
		{{{{"i", "hg19_A hg19_B mm10_A mm10_B"}}, 1}, NULL, "mm10", "hg19_A= hg19_B= A= B= 1100var index"},
		{{{{"i", "hg19_A hg19_B mm10_A mm10_B"}}, 1}, NULL, "mm9",
			"FILE: /var: no genome 'mm9' before the names of the genes; there are: hg19, mm10"},
		{{{{"i", "A B C_" E3 " D_" E4}}, 1}, NULL, NULL, "A= B= " E3 "=C " E4 "=D var index"},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		char *got = read_frame(&t[i].f, t[i].wanted, t[i].genome, NULL);
		assert_string_equal(got, t[i].want);
		free(got);
	}
	struct frame guides = {{{"i", E1 " " E2 " 1 2"}}, 1};
	char *got = read_frame(&guides, NULL, NULL, (uint8_t[]){0, 0, 1, 1}); /* of what is no gene a number is no fault */
	assert_string_equal(got, E1 "= " E2 "= 1= 2= var index");
	free(got);
}

/* A vocabulary of "id=symbol id=symbol ..." */
static struct vocab vocabulary(const char *s)
{
	struct vocab v = {0};
	vocab_push(&v, "<pad>", "", NAN);
	while (*s) {
		size_t n = strcspn(s, " "), at = strcspn(s, "= ");
		char *id = xstrndup(s, at), *symbol = xstrndup(s + at + (at < n), at < n ? n - at - 1 : 0);
		vocab_push(&v, id, symbol, NAN);
		free(id);
		free(symbol);
		s += n + (s[n] == ' ');
	}
	assert_int_equal(vocab_index(&v, "v", NULL), 0);
	return v;
}

/* Rows of `to` for the genes of `from`, - for none; both ways. */
static void matches(const char *from, const char *to, const char *want, size_t by_symbol, size_t ambiguous)
{
	struct error e;
	struct vocab a = vocabulary(from), b = vocabulary(to);
	struct gene_matched m, back;
	uint32_t row[32], other[32];
	char got[128] = "";
	assert_int_equal(gene_match(row, &(struct gene_tables){&a, &b, "a", "b", NULL, 1}, &m, &e), 0);
	assert_int_equal(gene_match(other, &(struct gene_tables){&b, &a, "b", "a", NULL, 1}, &back, &e), 0);
	assert_true(m.n == back.n && m.by_symbol == back.by_symbol && m.shared == m.n && row[0] == GENE_NONE);
	for (size_t i = 1; i < a.n; i++) {
		size_t at = strlen(got);
		if (row[i] == GENE_NONE)
			snprintf(got + at, sizeof got - at, "-");
		else
			snprintf(got + at, sizeof got - at, "%u", row[i]);
		if (row[i] != GENE_NONE)
			assert_int_equal(other[row[i]], i);
	}
	assert_string_equal(got, want);
	if (m.by_symbol != by_symbol || m.ambiguous != ambiguous)
		fail_msg("%s, %s: %zu by symbol, %zu ambiguous", from, to, m.by_symbol, m.ambiguous);
	vocab_release(&a);
	vocab_release(&b);
}

static void two_tables(void **state)
{
	matches(E1 "=A " E2 "=B " E3 "=C", E3 "=C " E1 "=A", "2-1", 0, 0);
	matches(E1 ".2 " E2 ".7_1 " E3, E3 ".4 " E1, "2-1", 0, 0);
	matches("A B C", E3 "=C " E1 "=A", "2-1", 2, 0);
	matches(E1 "=A B C", "A " E2 "=B " E3 "=C", "123", 3, 0); /* gene by gene */
	matches(E1 "=A " E2 "=B", E1 "=B " E3 "=A", "1-", 0, 0); /* never two Ensembl ids */
	matches("A B", E1 "=A " E2 "=A " E3 "=B", "-3", 1, 1); /* a symbol of two genes */
	matches("A " E1 "=A", E1 "=A " E2 "=B", "-1", 0, 1); /* a table that has both */
	matches("A B", E1 "=A " E2 "=B A", "32", 1, 0); /* the same name comes first; the other table has both */
	matches("F1=A F2=B", "A B", "12", 2, 0);
	matches("W1=A W2=B", "X7=B X8=A", "--", 0, 0); /* other ids are other genes */
	matches("W1=A W2=B", E3 "=B " E4 "=A", "21", 2, 0); /* but for Ensembl ids */
	matches("A=B", E1 "=A " E2 "=B", "-", 0, 0); /* one name leads to each */
	matches("ENSMUSG00000000001=A", E1 "=A", "-", 0, 0);
	assert_int_equal(gene_share(0, 0, 0), GENES_OTHER);
	assert_int_equal(gene_share(4, 100, 300), GENES_OTHER);
	assert_int_equal(gene_share(5, 100, 300), GENES_FEW);
	assert_int_equal(gene_share(25, 100, 300), GENES_ENOUGH);
	assert_int_equal(gene_share(1, 1, 300), GENES_FEW);
	assert_int_equal(gene_share(8, 8, 8), GENES_ENOUGH);
}

/* A symbol that moved from one Ensembl id to another does not keep a gene from its other symbol. */
static void three_tables(void **state)
{
	static const char *const table[] = {E1 "=A " E3 "=C", E1 "=B " E2 "=A " E3 "=C", "B C"};
	for (int order = 0; order < 3; order++) {
		struct error e;
		struct gene_join j = {0};
		for (int t = 0; t < 3; t++) {
			struct vocab v = vocabulary(table[(t + order) % 3]);
			assert_int_equal(gene_join_vocab(&j, "t", &v, &e), 0);
			vocab_release(&v);
		}
		assert_int_equal(gene_join_finish(&j, &e), 0);
		assert_int_equal(j.genes.n, 3);
		const struct gene_table *last = j.table + (2 - order + 3) % 3;
		assert_string_equal(j.genes.id[last->row[1]], E1);
		assert_true(last->by_symbol == 2 && last->shared == 2 && !last->ambiguous);
		gene_join_release(&j);
	}
}

/* Are tables whose symbols differ for n ids refused? moved: symbols of other ids. */
static int refused(int n, int differ, int moved)
{
	struct error e;
	struct gene_join j = {0};
	char id[32], symbol[32];
	for (int t = 0; t < 3; t++) { /* the third has no symbols */
		gene_join_table(&j, t ? "b" : "a", (size_t)n);
		for (int i = 0; i < n; i++) {
			snprintf(id, sizeof id, "ENSG%011d", i);
			snprintf(symbol, sizeof symbol, t && i < differ ? "OTHER%d" : "S%d", t && i < moved ? (i + 1) % moved : i);
			assert_int_equal(gene_join_row(&j, id, strlen(id), symbol, t == 2 ? 0 : strlen(symbol), &e), 0);
		}
	}
	int r = gene_join_finish(&j, &e);
	gene_join_release(&j);
	return r != 0;
}

static void other_symbols(void **state)
{
	assert_true(!refused(100, 90, 0) && refused(100, 91, 0));
	assert_true(!refused(100, 0, 5) && refused(100, 0, 6));
	assert_true(!refused(10, 0, 2) && refused(10, 0, 3));
}

static void names_of_users(void **state)
{
	struct vocab v = vocabulary(E1 "=A " E2 "=B " E3 "=B C " E4 "=C");
	struct gene_find f;
	gene_find_init(&f, &v);
	static const struct {
		const char *s;
		int64_t row;
	} t[] = {{"A", 1}, {"a", 1}, {E2, 2}, {E2 ".5", 2}, {"B", GENE_AMBIGUOUS}, {"b", GENE_AMBIGUOUS}, {"C", 4}, {"x", GENE_UNKNOWN},
		{"", GENE_UNKNOWN}, {"<pad>", GENE_UNKNOWN}};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		assert_int_equal(gene_find(&f, t[i].s, strlen(t[i].s)), t[i].row);
	char *ids = gene_find_ids(&f, "b", 1);
	assert_string_equal(ids, E2 ", " E3);
	free(ids);
	gene_find_release(&f);
	vocab_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(genomes_before_names),
		cmocka_unit_test(ids_before_symbols),
		cmocka_unit_test(columns),
		cmocka_unit_test(two_tables),
		cmocka_unit_test(three_tables),
		cmocka_unit_test(other_symbols),
		cmocka_unit_test(names_of_users),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

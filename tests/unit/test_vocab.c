/* Vocabularies: the TSV and Geneformer's two tables, what they refuse, how rows are found, and the digests. */
#include "stream/vocab.h"
#include "base/tsv.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include <cmocka.h>

#define HEAD "token\tgene_id\tsymbol\tmedian\n"
#define GENES "0\t<pad>\t\tNA\n1\tENSG1\tA\t0.5\n"

static char dir[] = "/tmp/corrmask-test-XXXXXX";

static char *spit(const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	fclose(f);
	return path;
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = {"v.tsv", "v.tsv.gz", "cut.gz", "long.tsv", "tokens.tsv", "medians.tsv"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *path = xasprintf("%s/%s", dir, names[i]);
		unlink(path);
		free(path);
	}
	return rmdir(dir);
}

static void nothing_held(const struct vocab *v)
{
	assert_true(v->n == 0 && v->nspecial == 0 && !v->id && !v->symbol && !v->median && !v->sorted);
}

static void refused(const char *text, const char *why)
{
	char *path = spit("v.tsv", text);
	struct vocab v;
	struct error e = {""};
	if (vocab_load(&v, path, &e) == 0)
		fail_msg("accepted: %s", text);
	if (!strstr(e.msg, why) || strncmp(e.msg, path, strlen(path)))
		fail_msg("%s\n  gives: %s\n  expected: %s", text, e.msg, why);
	nothing_held(&v);
	free(path);
}

static struct vocab loaded(const char *path)
{
	struct vocab v;
	struct error e;
	if (vocab_load(&v, path, &e))
		fail_msg("%s", e.msg);
	return v;
}

static void expect_three_genes(const struct vocab *v)
{
	assert_int_equal(v->n, 5);
	assert_int_equal(v->nspecial, 2);
	assert_string_equal(v->id[0], "<pad>");
	assert_true(isnan(v->median[0]) && isnan(v->median[4]));
	assert_string_equal(v->symbol[2], "A B");
	assert_string_equal(v->symbol[3], "");
	assert_true(v->median[2] == 1.5 && v->median[3] == 2e-3);
	static const char *const ids[] = {"<pad>", "<mask>", "ENSG9", "ENSG1", "<late>"};
	for (int i = 0; i < 5; i++)
		assert_int_equal(vocab_find(v, ids[i]), i);
	assert_int_equal(vocab_find(v, "ENSG"), -1);
	assert_int_equal(vocab_find(v, "ENSG99"), -1);
	assert_int_equal(vocab_find(v, "A B"), -1);
	assert_int_equal(vocab_find(v, ""), -1);
}

/* Plain, with the line ends of Windows, without the last one, and gzipped in two members. */
static void the_tsv(void **state)
{
	const char *text = HEAD "0\t<pad>\t\tNA\n1\t<mask>\t\tNA\n2\tENSG9\tA B\t1.5\n3\tENSG1\t\t2e-3\n4\t<late>\tx\tNA\n";
	char *path = spit("v.tsv", text);
	struct vocab v = loaded(path);
	expect_three_genes(&v);
	vocab_release(&v);
	vocab_release(&v);
	free(path);

	char windows[512], *w = windows;
	for (const char *p = text; p[1]; p++) { /* but the last line end */
		if (*p == '\n')
			*w++ = '\r';
		*w++ = *p;
	}
	*w = 0;
	path = spit("v.tsv", windows);
	v = loaded(path);
	expect_three_genes(&v);
	vocab_release(&v);
	free(path);

	path = xasprintf("%s/v.tsv.gz", dir);
	for (int part = 0; part < 2; part++) {
		gzFile f = gzopen(path, part ? "ab" : "wb");
		size_t half = strlen(text) / 2;
		assert_true(gzwrite(f, part ? text + half : text, (unsigned)(part ? strlen(text) - half : half)) > 0);
		gzclose(f);
	}
	v = loaded(path);
	expect_three_genes(&v);
	vocab_release(&v);
	free(path);
}

static void saved_and_loaded(void **state)
{
	struct vocab v = {0}, back;
	vocab_push(&v, "<pad>", NULL, NAN);
	static const double medians[] = {1 / 3.0, 0.1, 5e-324, 1.7976931348623157e308, 1, 123456789.123456789};
	for (int i = 0; i < 3000; i++) { /* past the first allocation */
		char id[32];
		snprintf(id, sizeof id, "ENSG%05d", 99999 - i);
		vocab_push(&v, id, i % 2 ? "S" : NULL, medians[i % 6]);
	}
	char *path = xasprintf("%s/v.tsv", dir);
	FILE *f = fopen(path, "w");
	assert_int_equal(vocab_save(&v, f), 0);
	fclose(f);
	back = loaded(path);
	assert_int_equal(back.n, v.n);
	for (size_t i = 0; i < v.n; i++) {
		assert_string_equal(v.id[i], back.id[i]);
		assert_string_equal(v.symbol[i], back.symbol[i]);
		assert_true(v.median[i] == back.median[i] || (isnan(v.median[i]) && isnan(back.median[i])));
		assert_int_equal(vocab_find(&back, v.id[i]), i);
	}
	char a[33], b[33];
	vocab_median_digest(&v, a);
	vocab_median_digest(&back, b);
	assert_string_equal(a, b);
	vocab_release(&v);
	vocab_release(&back);
	free(path);
	f = fopen("/dev/full", "w");
	if (f) {
		vocab_push(&v, "A", "", 1);
		assert_int_equal(vocab_save(&v, f), -1);
		fclose(f);
		vocab_release(&v);
	}
}

static void bad_tsv(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "no genes"},
		{HEAD, "no genes"},
		{HEAD "0\t<pad>\t\tNA\n", "no genes"},
		{GENES, "line 1: expected a vocabulary"},
		{"token\tgene_id\tsymbol\n", "line 1: expected a vocabulary"},
		{HEAD HEAD, "line 2: token 'token', expected 0"},
		{HEAD GENES "2\tENSG2\tB\n", "line 4: found 3 fields"},
		{HEAD GENES "2\tENSG2\tB\t1\t\n", "line 4: found 5 fields"},
		{HEAD GENES "\n", "line 4: found 1 fields"},
		{HEAD GENES "3\tENSG2\tB\t1\n", "line 4: token '3', expected 2"},
		{HEAD GENES "1\tENSG2\tB\t1\n", "line 4: token '1', expected 2"},
		{HEAD GENES "-2\tENSG2\tB\t1\n", "line 4: token '-2'"},
		{HEAD GENES " 2\tENSG2\tB\t1\n", "line 4: token ' 2'"},
		{HEAD GENES "2x\tENSG2\tB\t1\n", "line 4: token '2x'"},
		{HEAD GENES "\tENSG2\tB\t1\n", "line 4: token ''"},
		{HEAD GENES "18446744073709551618\tENSG2\tB\t1\n", "line 4: token '18446744073709551618'"},
		{HEAD GENES "2\t\tB\t1\n", "line 4: empty gene_id"},
		{HEAD GENES "2\tENSG2\tB\t0\n", "line 4: median '0'"},
		{HEAD GENES "2\tENSG2\tB\t-1\n", "line 4: median '-1'"},
		{HEAD GENES "2\tENSG2\tB\tnan\n", "line 4: median 'nan'"},
		{HEAD GENES "2\tENSG2\tB\tinf\n", "line 4: median 'inf'"},
		{HEAD GENES "2\tENSG2\tB\t1e999\n", "line 4: median '1e999'"},
		{HEAD GENES "2\tENSG2\tB\t\n", "line 4: median ''"},
		{HEAD GENES "2\tENSG2\tB\t1.5 \n", "line 4: median '1.5 '"},
		{HEAD GENES "2\tENSG2\tB\t1\n3\tENSG1\tA\t1\n", "ENSG1"},
		{HEAD GENES "2\t<pad>\tB\t1\n", "<pad>"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		refused(cases[k].text, cases[k].why);
	refused(HEAD GENES "2\tENSG2\tB\t1\n3\tENSG2\tA\t1\n", "rows 2 and 3");
	struct vocab v;
	struct error e = {""};
	assert_int_equal(vocab_load(&v, "/nowhere/v.tsv", &e), -1);
	assert_non_null(strstr(e.msg, "/nowhere/v.tsv: No such file"));
	nothing_held(&v);
	assert_int_equal(vocab_load(&v, dir, &e), -1); /* a folder */
	nothing_held(&v);
}

/* A line of 4,094 bytes is read, a longer one refused. */
static void long_lines(void **state)
{
	static char symbol[TSV_LINE_MAX + 1], text[TSV_LINE_MAX + 200];
	for (int extra = 0; extra < 2; extra++) {
		size_t n = TSV_LINE_MAX - strlen("2\tENSG2\t\t1") + (size_t)extra;
		memset(symbol, 'x', n);
		symbol[n] = 0;
		snprintf(text, sizeof text, HEAD GENES "2\tENSG2\t%s\t1\n", symbol);
		if (extra) {
			refused(text, "longer than 65535 bytes");
		} else {
			char *path = spit("long.tsv", text);
			struct vocab v = loaded(path);
			assert_string_equal(v.symbol[2], symbol);
			vocab_release(&v);
			free(path);
		}
	}
}

/* A gzip file that was cut, or whose checksum is wrong, is no vocabulary. */
static void damaged_gzip(void **state)
{
	char *path = xasprintf("%s/cut.gz", dir);
	gzFile g = gzopen(path, "wb");
	gzprintf(g, HEAD GENES);
	for (int i = 2; i < 2000; i++)
		gzprintf(g, "%d\tENSG%d\tS%d\t%d.5\n", i, i, i * 7, i);
	gzclose(g);
	struct vocab v = loaded(path);
	assert_int_equal(v.n, 2000);
	vocab_release(&v);
	FILE *f = fopen(path, "rb");
	static uint8_t bytes[1 << 16];
	size_t n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	for (int how = 0; how < 2; how++) {
		f = fopen(path, "wb");
		bytes[n - 6] ^= (uint8_t)how; /* in the checksum */
		fwrite(bytes, 1, how ? n : n / 2, f);
		fclose(f);
		struct error e = {""};
		assert_int_equal(vocab_load(&v, path, &e), -1);
		assert_int_equal(strncmp(e.msg, path, strlen(path)), 0);
		nothing_held(&v);
	}
	free(path);
}

static int geneformer(struct vocab *v, const char *tokens, const char *medians, struct error *e)
{
	char *t = spit("tokens.tsv", tokens), *m = spit("medians.tsv", medians);
	int r = vocab_load_geneformer(v, t, m, e);
	free(t);
	free(m);
	return r;
}

#define TOKENS "token\tid\nENSG2\t3\n<pad>\t0\nENSG1\t2\n<mask>\t1\n"
#define MEDIANS "ensembl_id\tnonzero_median\n"

static void geneformers_tables(void **state)
{
	struct vocab v;
	struct error e;
	if (geneformer(&v, TOKENS, MEDIANS "ENSG7\t9\nENSG1\t0.25\nENSG2\t3\n", &e))
		fail_msg("%s", e.msg);
	assert_int_equal(v.n, 4);
	assert_int_equal(v.nspecial, 2);
	static const char *const ids[] = {"<pad>", "<mask>", "ENSG1", "ENSG2"};
	for (int i = 0; i < 4; i++) {
		assert_string_equal(v.id[i], ids[i]);
		assert_string_equal(v.symbol[i], "");
		assert_int_equal(vocab_find(&v, ids[i]), i);
	}
	assert_true(isnan(v.median[0]) && isnan(v.median[1]) && v.median[2] == 0.25 && v.median[3] == 3);
	assert_int_equal(vocab_find(&v, "ENSG7"), -1);
	vocab_release(&v);
}

static void bad_tables(void **state)
{
	static const struct {
		const char *tokens, *medians, *file, *why;
	} cases[] = {
		{"", "", "tokens.tsv", "no genes"},
		{"token\tid\n<pad>\t0\n", MEDIANS, "tokens.tsv", "no genes"},
		{"<pad>\t0\nENSG1\t1\n", MEDIANS, "tokens.tsv", "line 1"},
		{"token\tid\nENSG1\t0\nENSG2\t2\n", MEDIANS, "tokens.tsv", "number 1, expected 0 to 2"},
		{"token\tid\nENSG1\t0\nENSG2\t0\n", MEDIANS, "tokens.tsv", "line 3"},
		{"token\tid\nENSG1\t0\nENSG1\t1\n", MEDIANS, "tokens.tsv", "ENSG1"},
		{"token\tid\nENSG1\t0\t1\n", MEDIANS, "tokens.tsv", "line 2: found 3 fields"},
		{"token\tid\nENSG1\n", MEDIANS, "tokens.tsv", "line 2: found 1 fields"},
		{"token\tid\nENSG1\tx\n", MEDIANS, "tokens.tsv", "line 2: 'x'"},
		{"token\tid\nENSG1\t-1\n", MEDIANS, "tokens.tsv", "line 2: '-1'"},
		{"token\tid\nENSG1\t16777216\n", MEDIANS, "tokens.tsv", "line 2: '16777216'"},
		{"token\tid\n\t0\n", MEDIANS, "tokens.tsv", "line 2"},
		{TOKENS, "", "medians.tsv", "ENSG1"},
		{TOKENS, MEDIANS "ENSG1\t1\n", "medians.tsv", "ENSG2"},
		{TOKENS, "ENSG1\t1\nENSG2\t1\n", "medians.tsv", "line 1"},
		{TOKENS, MEDIANS "ENSG1\t0\nENSG2\t1\n", "medians.tsv", "line 2: median '0'"},
		{TOKENS, MEDIANS "ENSG1\tNA\nENSG2\t1\n", "medians.tsv", "line 2: median 'NA'"},
		{TOKENS, MEDIANS "ENSG1\t\nENSG2\t1\n", "medians.tsv", "line 2: median ''"},
		{TOKENS, MEDIANS "ENSG1\t1\nENSG2\t1\tx\n", "medians.tsv", "line 3: found 3 fields"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct vocab v;
		struct error e = {""};
		if (geneformer(&v, cases[k].tokens, cases[k].medians, &e) == 0)
			fail_msg("accepted: %s and %s", cases[k].tokens, cases[k].medians);
		if (!strstr(e.msg, cases[k].why) || !strstr(e.msg, cases[k].file))
			fail_msg("%s and %s\n  give: %s\n  expected: %s", cases[k].tokens, cases[k].medians, e.msg, cases[k].why);
		nothing_held(&v);
	}
	struct vocab v;
	struct error e = {""};
	char *tokens = spit("tokens.tsv", TOKENS);
	assert_int_equal(vocab_load_geneformer(&v, tokens, "/nowhere/m.tsv", &e), -1);
	assert_non_null(strstr(e.msg, "/nowhere/m.tsv: No such file"));
	nothing_held(&v);
	free(tokens);
}

/* Special tokens are the leading rows <...>; pushing makes an index void; a copy is its own. */
static void pushing(void **state)
{
	struct vocab v = {0}, copy;
	struct error e;
	static const char *const ids[] = {"<a>", "<>", "<b", "<c>"};
	static const size_t special[] = {1, 2, 2, 2};
	for (int i = 0; i < 4; i++) {
		vocab_push(&v, ids[i], NULL, 1);
		assert_int_equal(v.nspecial, special[i]);
	}
	assert_int_equal(vocab_index(&v, "mine", &e), 0);
	vocab_copy(&copy, &v);
	vocab_push(&v, "<b", NULL, 1);
	assert_null(v.sorted);
	assert_int_equal(vocab_index(&v, "mine", &e), -1);
	assert_non_null(strstr(e.msg, "mine: "));
	assert_non_null(strstr(e.msg, "<b"));
	vocab_release(&v);
	assert_int_equal(copy.n, 4);
	assert_int_equal(copy.nspecial, 2);
	assert_int_equal(vocab_find(&copy, "<c>"), 3);
	assert_string_equal(copy.symbol[3], "");
	vocab_release(&copy);
	assert_int_equal(vocab_index(&v, "empty", &e), 0);
	assert_int_equal(vocab_find(&v, "x"), -1);
	vocab_release(&v);
}

static void same_digest(const char hex[33], const void *bytes, size_t n)
{
	char want[33];
	XXH128_hash_t h = XXH3_128bits(bytes, n);
	snprintf(want, sizeof want, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
	assert_string_equal(hex, want);
}

/* By the page scstream(5): ids with their NUL, medians as doubles, one NaN for all. */
static void digests(void **state)
{
	struct vocab v = {0};
	char hex[33], other[33];
	vocab_digest(&v, hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f"); /* XXH3-128 of nothing, by its specification */
	vocab_push(&v, "<pad>", "x", NAN);
	vocab_push(&v, "ENSG1", "y", 0.5);
	vocab_push(&v, "E", "", -NAN);
	vocab_digest(&v, hex);
	same_digest(hex, "<pad>\0ENSG1\0E", sizeof "<pad>\0ENSG1\0E");
	static const uint8_t medians[24] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
	vocab_median_digest(&v, other);
	same_digest(other, medians, sizeof medians);
	/* symbols are in neither, an id in one, a median in the other */
	free(v.symbol[1]);
	v.symbol[1] = xstrdup("other");
	v.median[1] = nextafter(0.5, 1);
	char now[33];
	vocab_digest(&v, now);
	assert_string_equal(now, hex);
	vocab_median_digest(&v, now);
	assert_string_not_equal(now, other);
	vocab_release(&v);
	/* where one id ends matters */
	vocab_push(&v, "AB", "", 1);
	vocab_push(&v, "C", "", 1);
	vocab_digest(&v, hex);
	vocab_release(&v);
	vocab_push(&v, "A", "", 1);
	vocab_push(&v, "BC", "", 1);
	vocab_digest(&v, now);
	assert_string_not_equal(hex, now);
	vocab_release(&v);
	/* always 32 digits, also where the first is 0 */
	for (char id[] = "@"; *id < 127; ++*id) {
		vocab_push(&v, id, "", 1);
		vocab_digest(&v, hex);
		same_digest(hex, id, 2);
		vocab_release(&v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tsv),
		cmocka_unit_test(saved_and_loaded),
		cmocka_unit_test(bad_tsv),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(damaged_gzip),
		cmocka_unit_test(geneformers_tables),
		cmocka_unit_test(bad_tables),
		cmocka_unit_test(pushing),
		cmocka_unit_test(digests),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

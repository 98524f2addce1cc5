/* The small parts of lib/base: text tables, digests, softmax, random numbers, parallel loops, closest words, decimal numbers, options. */
#include "base/closest.h"
#include "base/decimal.h"
#include "base/digest.h"
#include "base/option.h"
#include "base/rng.h"
#include "base/softmax.h"
#include "base/texts.h"
#include "base/threads.h"
#include "base/tsv.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char path[] = "/tmp/corrmask-base-XXXXXX";

static int setup(void **state)
{
	return close(mkstemp(path));
}

static int teardown(void **state)
{
	return unlink(path);
}

static void write_table(const char *text, size_t n, const char *mode)
{
	gzFile f = gzopen(path, mode);
	assert_int_equal(gzwrite(f, text, (unsigned)n), n);
	assert_int_equal(gzclose(f), Z_OK);
}

static void table_of_fields(void **state)
{
	static const char text[] = "gene\tlabel\r\n\n\ta\t\nlast";
	static const char *const expected[][3] = {{"gene", "label"}, {""}, {"", "a", ""}, {"last"}};
	static const size_t n[] = {2, 1, 3, 1};
	for (int gz = 0; gz < 2; gz++) {
		struct error e;
		struct tsv t;
		write_table(text, sizeof text - 1, gz ? "wb" : "wbT");
		assert_int_equal(tsv_open(&t, path, &e), 0);
		for (size_t line = 0; line < 4; line++) {
			assert_int_equal(tsv_next(&t, &e), 1);
			assert_int_equal(t.line, line + 1);
			assert_int_equal(t.n, n[line]);
			for (size_t i = 0; i < n[line]; i++)
				assert_string_equal(t.field[i], expected[line][i]);
			if (!line) {
				assert_int_equal(tsv_find(&t, "label"), 1);
				assert_int_equal(tsv_find(&t, "lab"), -1);
			}
		}
		assert_int_equal(tsv_next(&t, &e), 0);
		tsv_close(&t);
	}
}

static void whole_lines(void **state)
{
	static const char text[] = "a\tb c\r\n\nx\ty\n";
	struct error e;
	struct tsv t;
	write_table(text, sizeof text - 1, "wb");
	assert_int_equal(tsv_open(&t, path, &e), 0);
	assert_int_equal(tsv_next_whole(&t, &e), 1);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.field[0], "a\tb c");
	assert_int_equal(tsv_next_whole(&t, &e), 1);
	assert_string_equal(t.field[0], "");
	assert_int_equal(tsv_next(&t, &e), 1);
	assert_int_equal(t.n, 2);
	assert_string_equal(t.field[1], "y");
	assert_int_equal(t.line, 3);
	assert_int_equal(tsv_next_whole(&t, &e), 0);
	tsv_close(&t);
}

static void bad_tables(void **state)
{
	struct error e;
	struct tsv t;
	assert_int_equal(tsv_open(&t, "/nowhere/table.tsv", &e), -1);
	assert_non_null(strstr(e.msg, "/nowhere/table.tsv: No such file"));
	tsv_close(&t);

	char *text = malloc(TSV_LINE_MAX + 3);
	memset(text, 'x', TSV_LINE_MAX + 3);
	text[TSV_LINE_MAX] = '\n'; /* the longest line that is read */
	write_table(text, TSV_LINE_MAX + 1, "wbT");
	assert_int_equal(tsv_open(&t, path, &e), 0);
	assert_int_equal(tsv_next(&t, &e), 1);
	assert_int_equal(strlen(t.field[0]), TSV_LINE_MAX);
	assert_int_equal(tsv_next(&t, &e), 0);
	tsv_close(&t);

	text[TSV_LINE_MAX] = 'x';
	text[TSV_LINE_MAX + 1] = '\n';
	write_table(text, TSV_LINE_MAX + 2, "wbT");
	assert_int_equal(tsv_open(&t, path, &e), 0);
	assert_int_equal(tsv_next(&t, &e), -1);
	assert_non_null(strstr(e.msg, "line 1: longer than"));
	tsv_close(&t);

	for (int i = 0; i < TSV_LINE_MAX; i++)
		text[i] = (char)(i % 7 == 6 ? '\n' : 'a' + i * 7919 % 26);
	write_table(text, TSV_LINE_MAX, "wb");
	assert_int_equal(truncate(path, 60), 0);
	assert_int_equal(tsv_open(&t, path, &e), 0);
	int got;
	while ((got = tsv_next(&t, &e)) > 0)
		;
	assert_int_equal(got, -1);
	assert_non_null(strstr(e.msg, path));
	assert_int_equal(tsv_error(&t, &e, "%d is odd", 3), -1);
	char *expected;
	assert_true(asprintf(&expected, "%s: line %zu: 3 is odd", path, t.line) > 0);
	assert_string_equal(e.msg, expected);
	tsv_close(&t);
	free(expected);
	free(text);
}

/* XXH3-128 of no bytes, as its specification gives it. */
/* What Python decodes as UTF-8, and what it does not: too long a form, a half of UTF-16, above U+10FFFF, cut short, Latin-1. */
static void utf8(void **state)
{
	static const char *const good[] = {
		"", "T cell", "na\xc3\xafve", "\xe2\x82\xac", "\xed\x9f\xbf\xee\x80\x80", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"na\xefve", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\x80", "\xff", "\xc3", "\xe2\x82", "\xe2\x82 ", "x\xf0\x90\x80"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(text_is_utf8(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(text_is_utf8(bad[i], strlen(bad[i])));
}

static void digest_of_nothing(void **state)
{
	char hex[DIGEST_SIZE];
	digest_bytes("", 0, hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
}

static void softmax_of_logits(void **state)
{
	double z[] = {1000, 1000 + log(2), 1000 + log(2), -INFINITY};
	assert_int_equal(softmax_argmax(z, 4), 1);
	assert_true(fabs(softmax(z, 4) - (1000 + log(5))) < 1e-12);
	assert_true(fabs(z[0] - 0.2) < 1e-12 && fabs(z[1] - 0.4) < 1e-12 && fabs(z[2] - 0.4) < 1e-12 && z[3] == 0);
}

/* Philox4x32-10 known answers [Random123 kat_vectors]. */
static void philox_known(void **state)
{
	uint32_t zero[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u}, out[4];
	rng_block(0, 0, zero, out);
	assert_int_equal(out[0], 0x6627e8d5u);
	assert_int_equal(out[3], 0x9b00dbd8u);
	rng_block(~0u, ~0u, ones, out);
	assert_int_equal(out[0], 0x408f276du);
}

enum { CALLS = 300, THREADS = 3 };

/* What a loop's calls did. */
struct calls {
	atomic_int times[CALLS], busy[THREADS], wrong, by_caller;
	struct calls
		*older; /* a loop that was started before: the last call waits until the caller has made one of its calls. NULL: none */
};

static void call(void *arg, size_t i, int thread)
{
	struct calls *c = arg;
	if (thread < 0 || thread >= THREADS || atomic_fetch_add(&c->busy[thread], 1)) {
		c->wrong++; /* two calls at the same time have the same number */
		return;
	}
	c->times[i]++;
	c->by_caller += !thread;
	usleep(50);
	if (c->older && thread && i == CALLS - 1) {
		for (int k = 0; !c->older->by_caller && k < 5000; k++)
			usleep(1000);
		c->wrong += !c->older->by_caller;
	}
	atomic_fetch_sub(&c->busy[thread], 1);
}

static void check_calls(const struct calls *c)
{
	assert_int_equal(c->wrong, 0);
	for (size_t i = 0; i < CALLS; i++)
		assert_int_equal(c->times[i], 1);
}

/* A loop runs behind others: every call is made once, a thread makes one at a time. */
static void loops_behind_others(void **state)
{
	struct calls a = {0}, b = {0}, c = {0};
	struct pool_loop behind, alone;
	pool_start(&behind, 3, CALLS, call, &a);
	pool_for(3, CALLS, call, &b);
	check_calls(&b);
	pool_finish(&behind);
	check_calls(&a);
	pool_start(&alone, 1, CALLS, call, &c);
	usleep(10000);
	assert_int_equal(c.times[0], 0);
	pool_finish(&alone);
	check_calls(&c);
	assert_int_equal(c.by_caller, CALLS);
}

/* With one other thread, nobody else can make the call that the last one waits for. */
static void caller_helps_while_it_waits(void **state)
{
	for (int turn = 0; turn < 5; turn++) {
		struct calls a = {0}, b = {.older = &a};
		struct pool_loop behind;
		pool_start(&behind, 2, CALLS, call, &a);
		pool_for(2, CALLS, call, &b);
		check_calls(&b);
		pool_finish(&behind);
		check_calls(&a);
	}
}

static const char *closest_of(const char *word, const char *choices)
{
	static char found[64];
	struct closest c = closest_to(word, strlen(word));
	closest_try_choices(&c, choices);
	snprintf(found, sizeof found, "%.*s", (int)c.best_length, c.best ? c.best : "");
	return found;
}

static void closest_words(void **state)
{
	static const char words[] = "random|corrmask|pmi|pmi-rand|reconstruction|epochs";
	static const char *const pair[][2] = {{"randm", "random"}, /* a letter left out */
		{"randomm", "random"}, /* one too many */
		{"rendom", "random"}, /* another letter */
		{"radnom", "random"}, {"pim", "pmi"}, /* swapped neighbours are one edit */
		{"corrmaks", "corrmask"}, {"crormaks", "corrmask"}, /* two of eight letters */
		{"crrmaks1", ""}, /* three */
		{"recon", "reconstruction"}, /* the beginning */
		{"re", ""}, {"pmj", "pmi"}, {"pxj", ""}, {"pmi-r", "pmi-rand"}, {"epoch", "epochs"}, {"", ""}, {"seed", ""}};
	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
		assert_string_equal(closest_of(pair[i][0], words), pair[i][1]);
	char longest[100];
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	assert_string_equal(closest_of(longest, words), "");
	assert_string_equal(closest_of("random", longest), "");
	struct closest c = closest_to("epoch=3", 5);
	closest_try(&c, "epochs", 6);
	char *question = closest_question(&c, "--");
	assert_string_equal(question, " (did you mean --epochs?)");
	free(question);
}

static void decimal_numbers(void **state)
{
	static const char *const same[] = {
		"0.42", "0.1", "5e-05", "1e-300", "123456789012345", "0.30000000000000004", "-2.5", "0", "1e+22", "inf"};
	char text[DECIMAL];
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		assert_string_equal(decimal_print(text, strtod(same[i], NULL)), same[i]);
	assert_string_equal(decimal_print_float(text, 0.42f), "0.42");
	assert_string_equal(decimal_print_float(text, 16777217.0f), "16777216");
	assert_string_equal(decimal_print_float(text, 0x1.fffffep-1f), "0.99999994");
	for (uint32_t i = 0; i < 20000; i++) { /* any bits come back */
		uint32_t counter[4] = {i}, bits[4];
		double d;
		float f;
		rng_block(7, 0, counter, bits);
		memcpy(&d, bits, sizeof d);
		memcpy(&f, bits + 2, sizeof f);
		assert_true(isnan(d) || strtod(decimal_print(text, d), NULL) == d);
		assert_true(isnan(f) || strtof(decimal_print_float(text, f), NULL) == f);
	}
	static const char *const read[] = {"0", "-1.5", "+.5", "1e3", "5x", "5 "},
				 *const not [] = {"", " 5", "0x10", "-0X1", "nan", "inf", "-", "."};
	char *end;
	for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
		assert_true(decimal_read(read[i], &end) == atof(read[i]));
		assert_int_equal(end - read[i], strcspn(read[i], "x ")); /* up to what is no part of the number */
	}
	for (size_t i = 0; i < sizeof not / sizeof *not ; i++) {
		decimal_read(not [i], &end);
		assert_ptr_equal(end, not [i]);
	}
	char *shorter = decimal_shorten(
		"--rate 0.41999999999999998 --seed 1 --column 0.41999 --id 0.419999999999999980 --x  1.0000000000000001e-05");
	assert_string_equal(shorter, "--rate 0.42 --seed 1 --column 0.41999 --id 0.419999999999999980 --x  1e-05");
	free(shorter);
	shorter = decimal_shorten("");
	assert_string_equal(shorter, "");
	free(shorter);
}

/* The ends of a range belong to it; what lies outside is refused; after -- all are operands. */
static void ranges_of_options(void **state)
{
	struct error e;
	long long n = 3;
	double x = 0.5;
	struct option_def table[] = {{'n', "number", OPT_INT, &n, "N", "", 2, 9, .changes = 1},
		{'x', "share", OPT_REAL, &x, "X", "", -0.25, 1, .changes = 1}, {0}},
			  *tables[] = {table, NULL};
	struct {
		char text[24];
		int good;
	} given[] = {{"-n2", 1}, {"-n9", 1}, {"-n1", 0}, {"-n10", 0}, {"-n-3", 0}, {"-n99999999999999999999", 0}, {"-n5.0", 0},
		{"-x-0.25", 1}, {"--share=1", 1}, {"-x-0.26", 0}, {"-x1.01", 0}, {"--share=nan", 0}, {"--share=", 0}};
	int operands;
	char tool[] = "tool";
	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		assert_int_equal(opt_parse(tables, 2, (char *[]){tool, given[i].text}, &operands, &e), given[i].good - 1);
	char word[][10] = {"tool", "--number", "5", "-", "-x", "0.5", "--", "-n1"}, *argv[8];
	for (int i = 0; i < 8; i++)
		argv[i] = word[i];
	assert_int_equal(opt_parse(tables, 8, argv, &operands, &e), 0);
	assert_int_equal(operands, 2);
	assert_string_equal(argv[1], "-");
	assert_string_equal(argv[2], "-n1");
	char *text = opt_provenance(tables);
	assert_string_equal(text, "--number 5 --share 0.5");
	free(text);
}

/* The words of a choice are those of the array, with their indices; a hole is no word. */
static void words_of_options(void **state)
{
	struct error e;
	static const struct {
		const char *word;
		double value;
	} rows[] = {{"none", 0}, {NULL, 1}, {"some", 2}};
	static const char *const sizes[] = {[1] = "small", [2] = "large"};
	int row = -1, size = 0, operands;
	struct option_def table[] = {{0, "row", OPT_CHOICE, &row, OPT_WORDS(rows), "", .changes = 1},
		{'s', "size", OPT_CHOICE, &size, OPT_WORDS(sizes), "the size", .changes = 1}, {0}},
			  *tables[] = {table, NULL};
	char word[][12] = {"tool", "--row=some", "-slarge", "-stiny", "--row="};
	assert_int_equal(opt_parse(tables, 3, (char *[]){word[0], word[1], word[2]}, &operands, &e), 0);
	assert_int_equal(row, 2);
	assert_int_equal(size, 2);
	char *text = opt_provenance(tables), *help = opt_words(tables, 0);
	assert_string_equal(text, "--row some --size large");
	assert_string_equal(help, "--row\tnone|some\t\n--size\tsmall|large\tthe size\n");
	free(text);
	free(help);
	assert_int_equal(opt_parse(tables, 2, (char *[]){word[0], word[3]}, &operands, &e), -1);
	assert_string_equal(e.msg, "--size: 'tiny' is not one of small|large");
	assert_int_equal(opt_parse(tables, 2, (char *[]){word[0], word[4]}, &operands, &e), -1);
	assert_string_equal(e.msg, "--row: the value is empty, expected none|some");
	free((void *)(uintptr_t)table[0].arg); /* a table of a program keeps them */
	free((void *)(uintptr_t)table[1].arg);
}

/* The message about a command line, "" if it is good. */
static const char *checked(struct option_def *const *tables, const char *line)
{
	static struct error e;
	static char text[100];
	char *argv[8] = {text}, *save;
	int argc = 0, operands;
	snprintf(text, sizeof text, "tool %s", line);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	assert_int_equal(opt_parse(tables, argc, argv, &operands, &e), 0);
	return opt_check(tables, 1, &e) ? e.msg : "";
}

/* What does not go together is named: an option of another mode, one that is needed, one that is excluded. */
static void options_together(void **state)
{
	struct error e;
	enum { MAKE = 1, LEARN = 2, ADD = 4, ROUND = 8, SQUARE = 16 };
	static const char *const shapes[] = {"round", "square"};
	int learn, add, fine, shape = 0, list, flat;
	long long n, most;
	struct option_def table[] = {{0, "learn", OPT_FLAG, &learn, NULL, "", .mode = LEARN, .modes = LEARN | ADD},
		{0, "add", OPT_FLAG, &add, NULL, "", .mode = ADD, .needs = "learn"},
		{0, "shape", OPT_CHOICE, &shape, OPT_WORDS(shapes), "", .mode = ROUND},
		{0, "fine", OPT_FLAG, &fine, NULL, "", .modes = MAKE}, {'n', "number", OPT_INT, &n, "N", "", 0, 9, .modes = LEARN | SQUARE},
		{0, "most", OPT_INT, &most, "N", "", 0, 9, .needs = "number list", .excludes = "fine shape=square"},
		{0, "list", OPT_FLAG, &list, NULL, ""}, {0, "flat", OPT_FLAG, &flat, NULL, "", .needs = "shape=square"}, {0}},
			  *tables[] = {table, NULL};
	assert_string_equal(checked(tables, "--fine"), "");
	assert_string_equal(checked(tables, "--learn --add"), "");
	assert_string_equal(checked(tables, "--add --learn"), "");
	assert_string_equal(checked(tables, "--add"), "--add needs --learn");
	assert_string_equal(checked(tables, "--learn -n1"), "");
	assert_string_equal(checked(tables, "--add --learn -n1"), "--number does not go with --add");
	assert_string_equal(checked(tables, "-n1"), "--number needs --learn or --shape square");
	assert_string_equal(checked(tables, "--fine --learn"), "--fine does not go with --learn");
	assert_string_equal(checked(tables, "--fine --shape=square"), "--fine does not go with --shape square");
	assert_string_equal(checked(tables, "--shape=square --learn"), "--learn does not go with --shape square");
	assert_string_equal(checked(tables, "--shape=square -n1 --flat"), "");
	shape = 0;
	assert_string_equal(checked(tables, "--most=1 --list"), "");
	assert_string_equal(checked(tables, "--most=1"), "--most needs --number or --list");
	assert_string_equal(checked(tables, "--most=1 --list --fine"), "--most does not go with --fine");
	assert_string_equal(checked(tables, "--most=1 --list --shape=square"), "--most does not go with --shape square");
	shape = 0;
	assert_string_equal(checked(tables, "--flat"), "--flat needs --shape square");
	assert_string_equal(checked(tables, "--fine"), "");
	assert_int_equal(opt_check_mode(tables, LEARN | ADD, "it is round", &e), -1);
	assert_string_equal(e.msg, "--fine: it is round");
	assert_int_equal(opt_check_mode(tables, LEARN | MAKE, "it is round", &e), 0);
}

/* A second value is refused, in any spelling; a list takes it, and a flag may be repeated. */
static void repeated_options(void **state)
{
	struct error e;
	long long n = 3;
	int flag = 0, operands;
	const char *name = NULL;
	struct opt_values list = {0};
	struct option_def table[] = {{'n', "number", OPT_INT, &n, "N", "", 2, 9}, {'s', "name", OPT_STRING, &name, "NAME", ""},
		{'l', "list", OPT_LIST, &list, "X", ""}, {'f', "flag", OPT_FLAG, &flag, NULL, ""}, {0}},
			  *tables[] = {table, NULL};
	char word[][12] = {"tool", "-n5", "--number=5", "-sa", "--name", "a", "-lx", "--list=x", "-f", "--flag"};
	char *two[] = {word[0], word[1], word[2]}, *texts[] = {word[0], word[3], word[4], word[5]},
	     *good[] = {word[0], word[6], word[7], word[8], word[9], word[1]};
	assert_int_equal(opt_parse(tables, 3, two, &operands, &e), -1);
	assert_string_equal(e.msg, "--number is given twice: expected one value (N)");
	assert_int_equal(opt_parse(tables, 4, texts, &operands, &e), -1);
	assert_string_equal(e.msg, "--name is given twice: expected one value (NAME)");
	assert_int_equal(opt_parse(tables, 6, good, &operands, &e), 0);
	assert_int_equal(list.n, 2);
	free(list.item);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_options),
		cmocka_unit_test(options_together),
		cmocka_unit_test(repeated_options),
		cmocka_unit_test(table_of_fields),
		cmocka_unit_test(whole_lines),
		cmocka_unit_test(bad_tables),
		cmocka_unit_test(utf8),
		cmocka_unit_test(digest_of_nothing),
		cmocka_unit_test(softmax_of_logits),
		cmocka_unit_test(philox_known),
		cmocka_unit_test(loops_behind_others),
		cmocka_unit_test(caller_helps_while_it_waits),
		cmocka_unit_test(closest_words),
		cmocka_unit_test(decimal_numbers),
		cmocka_unit_test(ranges_of_options),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

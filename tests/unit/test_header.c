/* Headers: what is written comes back, unknown keys are kept, and damaged JSON is refused with a message. */
#include "stream/block.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct header parsed(const char *json)
{
	struct header h;
	struct error e;
	if (header_parse(&h, json, strlen(json), "test", &e))
		fail_msg("%s\n  of %s", e.msg, json);
	return h;
}

static void refused(const char *json, size_t n, const char *why)
{
	struct header h;
	struct error e = {""};
	if (header_parse(&h, json, n, "test", &e) == 0)
		fail_msg("accepted: %s", json);
	if (!strstr(e.msg, why) || strncmp(e.msg, "test: ", 6))
		fail_msg("%s\n  gives: %s\n  expected: %s", json, e.msg, why);
	/* nothing is left behind: a second release is harmless */
	header_release(&h);
}

static void add_vocab(struct header *h)
{
	vocab_push(&h->vocab, "<pad>", NULL, NAN);
	vocab_push(&h->vocab, "ENSG1", "\"A\"", 1 / 3.0);
	vocab_push(&h->vocab, "ENSG2", "\xc2\xb5", 0.1);
	vocab_push(&h->vocab, "<odd>", "", 5e-324);
	vocab_push(&h->vocab, "ENSG3", "", NAN);
}

/* A column of every type and shape. */
static void add_columns(struct header *h)
{
	static const char *const category[] = {"T\tcell", "", "\xc2\xb5 \"q\"", "B"};
	char name[32];
	for (int t = U8; t <= F64; t++) {
		snprintf(name, sizeof name, "s %d", t);
		header_add(h, name, (enum column_type)t);
		snprintf(name, sizeof name, "r %d", t);
		header_add_ragged(h, name, (enum column_type)t, t % 3 ? "one" : "two");
		snprintf(name, sizeof name, "f %d", t);
		header_add_fixed(h, name, (enum column_type)t, t == U8 ? FIXED_MAX : (uint32_t)t);
	}
	header_add(h, "text", STR);
	header_add_categorical(h, "type", (char *const *)(uintptr_t)category, 4);
	header_add_categorical(h, "nothing", NULL, 0);
}

static void same(const struct header *a, const struct header *b)
{
	char *x = header_print(a), *y = header_print(b);
	assert_string_equal(x, y);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->ncol, b->ncol);
	assert_int_equal(a->ngroup, b->ngroup);
	for (size_t i = 0; i < a->ngroup; i++)
		assert_string_equal(a->group[i], b->group[i]);
	for (size_t i = 0; i < a->ncol; i++) {
		const struct column_spec *c = &a->col[i], *d = &b->col[i];
		assert_string_equal(c->name, d->name);
		assert_true(c->type == d->type && c->shape == d->shape && c->n == d->n && c->group == d->group);
		assert_int_equal(c->ncategory, d->ncategory);
		for (size_t k = 0; k < c->ncategory; k++)
			assert_string_equal(c->category[k], d->category[k]);
	}
	assert_int_equal(a->vocab.n, b->vocab.n);
	assert_int_equal(a->vocab.nspecial, b->vocab.nspecial);
	for (size_t i = 0; i < a->vocab.n; i++) {
		assert_string_equal(a->vocab.id[i], b->vocab.id[i]);
		assert_string_equal(a->vocab.symbol[i], b->vocab.symbol[i]);
		double m = a->vocab.median[i], k = b->vocab.median[i];
		assert_true(m == k || (isnan(m) && isnan(k)));
	}
	free(x);
	free(y);
}

static void comes_back(void **state)
{
	for (enum stream_kind k = 0; k < STREAM_KINDS; k++) {
		struct header h;
		header_init(&h, k);
		add_columns(&h);
		if (k % 2)
			add_vocab(&h);
		header_provenance(&h, "h5tok", "--obs \"cell type\"");
		char *text = header_print(&h);
		for (const char *p = text; *p; p++)
			assert_true((unsigned char)*p >= 0x20);
		struct header back = parsed(text), copy;
		same(&h, &back);
		header_copy(&copy, &back);
		header_release(&back);
		same(&h, &copy);
		free(text);
		header_release(&h);
		header_release(&copy);
	}
}

/* One line a program, oldest first; lines of other versions are kept word for word. */
static void provenance(void **state)
{
	struct header h = parsed("{\"kind\":\"counts\",\"columns\":[{\"name\":\"cell\",\"type\":\"u64\",\"shape\":\"scalar\"}],"
				 "\"provenance\":[{\"program\":\"old\",\"version\":\"0.0.1\",\"options\":\"\",\"more\":[1]}]}");
	header_provenance(&h, "rankenc", "--max-len 5");
	header_provenance(&h, "scsample", "");
	assert_int_equal(cJSON_GetArraySize(h.provenance), 3);
	char *text = cJSON_PrintUnformatted(h.provenance);
	assert_string_equal(text,
		"[{\"program\":\"old\",\"version\":\"0.0.1\",\"options\":\"\",\"more\":[1]},"
		"{\"program\":\"rankenc\",\"version\":\"" CORRMASK_VERSION "\",\"options\":\"--max-len 5\"},"
		"{\"program\":\"scsample\",\"version\":\"" CORRMASK_VERSION "\",\"options\":\"\"}]");
	cJSON_free(text);
	header_release(&h);
}

/* Keys that no version knows: any JSON, in their order, through parse, copy and print. */
static void unknown_keys(void **state)
{
	const char *extra =
		"\"zeta\":{\"deep\":[1,null,true,{\"x\":\"\\u0001\xc3\xb6\"}]},\"alpha\":-2.5,\"none\":null,\"vocabulary\":\"\"";
	char *json = xasprintf("{\"zeta\":{\"deep\":[1,null,true,{\"x\":\"\\u0001\xc3\xb6\"}]},\"kind\":\"graph\",\"alpha\":-2.5,"
			       "\"columns\":[{\"name\":\"token\",\"type\":\"u32\",\"shape\":\"scalar\",\"unit\":\"s\"}],"
			       "\"none\":null,\"provenance\":[],\"vocabulary\":\"\"}");
	struct header h = parsed(json), copy;
	header_copy(&copy, &h);
	header_release(&h);
	char *text = header_print(&copy), *want = xasprintf("\"provenance\":[],%s}", extra);
	assert_non_null(strstr(text, want));
	free(text);
	free(want);
	free(json);
	header_release(&copy);
}

static void columns(void **state)
{
	struct header h, other;
	header_init(&h, STREAM_TOKENS);
	add_columns(&h);
	assert_int_equal(header_find(&h, "s 3"), 9);
	assert_int_equal(header_find(&h, "S 3"), -1);
	assert_int_equal(header_find(&h, ""), -1);
	assert_string_equal(h.group[0], "two"); /* in order of first use: the first type is number 0 */
	assert_int_equal(h.ngroup, 2);
	/* a group goes with its last column, and the next ones move up */
	for (int t = U8; t <= F64; t += 3) {
		char name[32];
		assert_int_equal(h.ngroup, 2);
		snprintf(name, sizeof name, "r %d", t);
		header_drop(&h, name);
	}
	assert_int_equal(h.ngroup, 1);
	assert_string_equal(h.group[0], "one");
	assert_int_equal(h.col[header_find(&h, "r 1")].group, 0);
	size_t n = h.ncol;
	header_drop(&h, "not there");
	header_drop(&h, "text");
	assert_int_equal(h.ncol, n - 1);
	assert_int_equal(header_find(&h, "text"), -1);
	assert_int_equal(header_find(&h, "type"), n - 3);
	/* a copy of a column owns its categories */
	header_init(&other, STREAM_COUNTS);
	int at = header_add_like(&other, &h.col[header_find(&h, "type")]);
	header_add_like(&other, &h.col[header_find(&h, "f 7")]);
	header_release(&h);
	assert_string_equal(other.col[at].category[0], "T\tcell");
	assert_int_equal(other.col[1].n, 7);
	header_release(&other);
}

static void needs(const struct header *h, const char *name, enum column_type t, enum column_shape s, const char *const want[])
{
	struct error e = {""};
	assert_int_equal(header_need(h, name, t, s, "a.tok", &e), -1);
	for (; *want; want++)
		if (!strstr(e.msg, *want))
			fail_msg("%s\n  expected: %s", e.msg, *want);
}

static void needed_columns(void **state)
{
	struct header h;
	struct error e;
	header_init(&h, STREAM_TOKENS);
	header_add(&h, "cell", U64);
	header_add_ragged(&h, "token", U16, "token");
	header_add_fixed(&h, "x", F32, 2);
	assert_int_equal(header_need(&h, "token", U32, RAGGED, "a.tok", &e), 1); /* an id column is u16 or u32 */
	assert_int_equal(header_need(&h, "x", COLUMN_TYPES, FIXED, "a.tok", &e), 2);
	needs(&h, "gene", U32, RAGGED, (const char *const[]){"a.tok: ", "'gene'", "tokens stream", "cell, token, x", NULL});
	needs(&h, "cell", U32, SCALAR, (const char *const[]){"a.tok: ", "'cell'", "scalar u64", "expected scalar u32", NULL});
	needs(&h, "token", U16, SCALAR, (const char *const[]){"ragged u16", "expected scalar u16", NULL});
	needs(&h, "x", COLUMN_TYPES, RAGGED, (const char *const[]){"fixed f32", "expected ragged", NULL});
	/* U16 is not answered by U32 */
	header_add(&h, "wide", U32);
	needs(&h, "wide", U16, SCALAR, (const char *const[]){"scalar u32", "expected scalar u16", NULL});
	/* more columns than the message has room for */
	for (int i = 0; i < 300; i++) {
		char name[32];
		snprintf(name, sizeof name, "column %d", i);
		header_add(&h, name, U8);
	}
	needs(&h, "gene", U32, RAGGED, (const char *const[]){"'gene'", "column 0, column 1", NULL});
	assert_int_equal(header_kind(&h, STREAM_TOKENS, "a.tok", &e), 0);
	assert_int_equal(header_kind(&h, STREAM_GRAPH, "a.tok", &e), -1);
	assert_non_null(strstr(e.msg, "a.tok: this is a tokens stream, expected graph"));
	header_release(&h);
	header_init(&h, STREAM_EMBEDDING);
	assert_int_equal(header_kind(&h, STREAM_TOKENS, "-", &e), -1);
	assert_non_null(strstr(e.msg, "an embedding stream, expected tokens, made by rankenc"));
	h.kind = STREAM_COUNTS;
	assert_int_equal(header_kind(&h, STREAM_PREDICTION, "-", &e), -1);
	assert_non_null(strstr(e.msg, "a counts stream, expected prediction: run rankenc and scpredict cells first"));
	header_release(&h);
}

static void types(void **state)
{
	static const struct {
		const char *name;
		size_t size;
	} want[COLUMN_TYPES] = {{"u8", 1}, {"u16", 2}, {"u32", 4}, {"u64", 8}, {"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}, {"f32", 4},
		{"f64", 8}, {"str", 1}, {"categorical", 4}};
	for (int t = 0; t < COLUMN_TYPES; t++) {
		assert_string_equal(type_name((enum column_type)t), want[t].name);
		assert_int_equal(type_size((enum column_type)t), want[t].size);
		enum column_values values = type_kind((enum column_type)t)->values;
		assert_true(values != VALUES_FLOAT || want[t].size == sizeof(float));
		assert_true(values != VALUES_DOUBLE || want[t].size == sizeof(double));
		uint64_t bits[2];
		memset(bits, 0x55, sizeof bits);
		type_fill_missing((enum column_type)t, bits, 2); /* two values: NaN, the code, or 0 */
		struct column_spec spec = {.type = (enum column_type)t};
		struct column column = {.data = bits};
		const struct header h = {.ncol = 1, .col = &spec};
		const struct block b = {.header = &h, .col = &column};
		for (size_t i = 0; i < 2 && t != STR; i++) {
			double x = block_number(&b, 0, i);
			assert_true(type_is_real(t) ? isnan(x) : x == (t == CATEGORICAL ? MISSING_CODE : 0));
		}
	}
	assert_int_equal(id_type(65535), U16);
	assert_int_equal(id_type(65536), U32);
}

#define CELL "{\"name\":\"cell\",\"type\":\"u64\",\"shape\":\"scalar\"}"
#define REST "\"provenance\":[]"

static void bad_columns(void **state)
{
	static const struct {
		const char *column, *why;
	} cases[] = {
		{"7", "column 1"},
		{"{}", "column 1"},
		{"{\"name\":\"\",\"type\":\"u8\",\"shape\":\"scalar\"}", "column 1"},
		{"{\"name\":\"a\\tb\",\"type\":\"u8\",\"shape\":\"scalar\"}", "column 1"},
		{"{\"name\":\"a\\nb\",\"type\":\"u8\",\"shape\":\"scalar\"}", "column 1"},
		{"{\"name\":\"a\\rb\",\"type\":\"u8\",\"shape\":\"scalar\"}", "column 1"},
		{"{\"name\":5,\"type\":\"u8\",\"shape\":\"scalar\"}", "column 1"},
		{"{\"name\":\"a\",\"shape\":\"scalar\"}", "column 1"},
		{"{\"name\":\"a\",\"type\":\"u8\"}", "column 1"},
		{CELL, "column 'cell' occurs twice"},
		{"{\"name\":\"a\",\"type\":\"u128\",\"shape\":\"scalar\"}", "'u128'"},
		{"{\"name\":\"a\",\"type\":\"U8\",\"shape\":\"scalar\"}", "'U8'"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"round\"}", "'round'"},
		{"{\"name\":\"a\",\"type\":\"str\",\"shape\":\"ragged\",\"group\":\"g\"}", "str values must be scalar"},
		{"{\"name\":\"a\",\"type\":\"categorical\",\"shape\":\"fixed\",\"n\":2}", "categorical values must be scalar"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"ragged\"}", "group"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"ragged\",\"group\":\"\"}", "group"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"ragged\",\"group\":3}", "group"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"fixed\"}", "n must be from 1 to 1048576"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"fixed\",\"n\":0}", "n must be from 1 to 1048576"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"fixed\",\"n\":-1}", "n must be from 1 to 1048576"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"fixed\",\"n\":1048577}", "n must be from 1 to 1048576"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"fixed\",\"n\":1e300}", "n must be from 1 to 1048576"},
		{"{\"name\":\"a\",\"type\":\"u8\",\"shape\":\"fixed\",\"n\":\"2\"}", "n must be from 1 to 1048576"},
		{"{\"name\":\"a\",\"type\":\"categorical\",\"shape\":\"scalar\"}", "categories"},
		{"{\"name\":\"a\",\"type\":\"categorical\",\"shape\":\"scalar\",\"categories\":{}}", "categories"},
		{"{\"name\":\"a\",\"type\":\"categorical\",\"shape\":\"scalar\",\"categories\":[\"x\",null]}", "category 1"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		char *json = xasprintf("{\"kind\":\"counts\",\"columns\":[" CELL ",%s]," REST "}", cases[k].column);
		refused(json, strlen(json), cases[k].why);
		free(json);
	}
}

static void damaged(void **state)
{
	static const struct {
		const char *json, *why;
	} cases[] = {
		{"", "JSON"},
		{"[]", "JSON"},
		{"null", "JSON"},
		{"{\"kind\":\"counts\"", "JSON"},
		{"{\"kind\":\"counts\",\"columns\":[" CELL "]," REST "}x", "JSON"},
		{"{\"kind\":\"counts\",\"columns\":[" CELL "]," REST "} ", "JSON"},
		{"{\"kind\":\n\"counts\"}", "control character at byte 8"},
		{"{}", "kind"},
		{"{\"kind\":7}", "kind"},
		{"{\"kind\":\"count\"}", "'count'"},
		{"{\"Kind\":\"counts\",\"columns\":[" CELL "]," REST "}", "kind"},
		{"{\"kind\":\"counts\"," REST "}", "columns"},
		{"{\"kind\":\"counts\",\"columns\":[]," REST "}", "columns"},
		{"{\"kind\":\"counts\",\"columns\":{}," REST "}", "columns"},
		{"{\"kind\":\"counts\",\"columns\":[" CELL "]}", "provenance"},
		{"{\"kind\":\"counts\",\"columns\":[" CELL "],\"provenance\":{}}", "provenance"},
		{"{\"kind\":\"counts\",\"kind\":\"counts\",\"columns\":[" CELL "]," REST "}", "key 'kind' occurs twice"},
		{"{\"kind\":\"counts\",\"columns\":[" CELL "],\"COLUMNS\":[]," REST "}", "'columns'"},
		{"{\"kind\":\"counts\",\"columns\":[" CELL "],\"Vocab\":1," REST "}", "'vocab'"},
		{"{\"kind\":\"counts\",\"columns\":[" CELL "]," REST ",\"Provenance\":[]}", "'provenance'"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		refused(cases[k].json, strlen(cases[k].json), cases[k].why);
	/* a NUL inside */
	static const char nul[] = "{\"kind\":\"counts\0\",\"columns\":[" CELL "]," REST "}";
	refused(nul, sizeof nul - 1, "control character at byte 15");
}

static void too_many_columns(void **state)
{
	for (int n = COLUMNS_MAX; n <= COLUMNS_MAX + 1; n++) {
		struct header h, back;
		header_init(&h, STREAM_COUNTS);
		for (int i = 0; i < n; i++) {
			char name[32];
			snprintf(name, sizeof name, "c%d", i);
			header_add(&h, name, U8);
		}
		char *json = header_print(&h);
		if (n == COLUMNS_MAX) {
			back = parsed(json);
			header_release(&back);
		} else {
			refused(json, strlen(json), "1 to 4096 columns");
		}
		free(json);
		header_release(&h);
	}
}

/* The vocabulary of a header: lists of one length, sound rows, and the digests of what they say. */
static void bad_vocabulary(void **state)
{
	static const struct {
		const char *from, *to, *why;
	} cases[] = {
		{"\"id\":[\"<pad>\"", "\"id\":[\"<pa>\"", "digest"},
		{"0.1", "0.2", "digest"},
		{"\"ENSG3\"", "\"ENSG4\"", "digest"},
		{"\"ENSG3\"]", "\"ENSG1\"]", "digest"},
		{"\"ENSG3\"]", "\"ENSG3\",\"more\"]", "row 5"},
		{"\"ENSG3\"]", "null]", "row 4"},
		{"\"ENSG1\"", "\"\"", "row 1"},
		{"\"symbol\":[\"\",", "\"symbol\":[", "row 4"},
		{"\"symbol\":[\"\"", "\"symbol\":[0", "row 0"},
		{"\"symbol\":[", "\"symbol\":[\"\",", "length"},
		{"\"median\":[null", "\"median\":[0", "row 0"},
		{"\"median\":[null", "\"median\":[-1", "row 0"},
		{"\"median\":[null", "\"median\":[\"NA\"", "row 0"},
		{"\"special\":1", "\"special\":2", "special"},
		{"\"special\":1", "\"special\":\"1\"", "special"},
		{"\"medians_digest\":", "\"median_digest\":", "digests"},
		{"\"digest\":", "\"diges\":", "digests"},
		{"\"id\":", "\"ids\":", "id"},
	};
	struct header h;
	header_init(&h, STREAM_COUNTS);
	header_add(&h, "cell", U64);
	add_vocab(&h);
	char *json = header_print(&h);
	struct header back = parsed(json);
	assert_true(back.vocab.median[1] == 1 / 3.0 && back.vocab.median[3] == 5e-324);
	assert_int_equal(vocab_find(&back.vocab, "ENSG2"), 2);
	header_release(&back);
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		char *at = strstr(json, cases[k].from);
		assert_non_null(at);
		char *bad = xasprintf("%.*s%s%s", (int)(at - json), json, cases[k].to, at + strlen(cases[k].from));
		refused(bad, strlen(bad), cases[k].why);
		free(bad);
	}
	free(json);
	header_release(&h);
	refused("{\"kind\":\"counts\",\"columns\":[" CELL "],\"vocab\":7," REST "}",
		strlen("{\"kind\":\"counts\",\"columns\":[" CELL "],\"vocab\":7," REST "}"), "vocab");
	/* two rows with one id, under a digest that is right */
	header_init(&h, STREAM_COUNTS);
	header_add(&h, "cell", U64);
	vocab_push(&h.vocab, "ENSG1", "", 1);
	vocab_push(&h.vocab, "ENSG1", "", 1);
	json = header_print(&h);
	refused(json, strlen(json), "ENSG1");
	free(json);
	header_release(&h);
}

/* Every prefix is refused; any changed byte is refused or gives a header that prints and comes back. */
static void prefixes_and_changes(void **state)
{
	struct header h, back, again;
	struct error e;
	header_init(&h, STREAM_TOKENS);
	header_add(&h, "cell", U64);
	header_add_ragged(&h, "token", U16, "token");
	header_add_categorical(&h, "type", (char *[]){(char *)"B", (char *)"T"}, 2);
	add_vocab(&h);
	cJSON_AddStringToObject(h.extra, "note", "kept");
	header_provenance(&h, "test", "");
	char *json = header_print(&h);
	size_t n = strlen(json), taken = 0;
	for (size_t k = 0; k < n; k++)
		refused(json, k, "");
	static const char with[] = {'"', '}', '0', '\\', (char)0x80, 'x'};
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < sizeof with; i++) {
			char was = json[k];
			json[k] = with[i];
			if (header_parse(&back, json, n, "test", &e) == 0) {
				char *text = header_print(&back);
				if (header_parse(&again, text, strlen(text), "test", &e))
					fail_msg("accepted, but its print is not: %s", e.msg);
				same(&back, &again);
				header_release(&again);
				header_release(&back);
				free(text);
				taken++;
			}
			json[k] = was;
		}
	assert_true(taken > 0);
	free(json);
	header_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),
		cmocka_unit_test(provenance),
		cmocka_unit_test(unknown_keys),
		cmocka_unit_test(columns),
		cmocka_unit_test(needed_columns),
		cmocka_unit_test(types),
		cmocka_unit_test(bad_columns),
		cmocka_unit_test(damaged),
		cmocka_unit_test(too_many_columns),
		cmocka_unit_test(bad_vocabulary),
		cmocka_unit_test(prefixes_and_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

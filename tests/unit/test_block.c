/* Blocks: the bytes of scstream(5), every type and shape there and back, and what block_parse refuses. */
#include "base/bytes.h"
#include "base/rng.h"
#include "stream/block.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const colours[] = {"red", "green", "blue"};

/* Every type in every shape it may have; two ragged groups whose columns lie mixed. */
static void every_column(struct header *h)
{
	header_init(h, STREAM_EMBEDDING);
	for (int t = U8; t <= F64; t++) {
		char name[32];
		snprintf(name, sizeof name, "scalar_%s", type_name((enum column_type)t));
		header_add(h, name, (enum column_type)t);
		snprintf(name, sizeof name, "ragged_%s", type_name((enum column_type)t));
		header_add_ragged(h, name, (enum column_type)t, t % 2 ? "odd" : "even");
		snprintf(name, sizeof name, "fixed_%s", type_name((enum column_type)t));
		header_add_fixed(h, name, (enum column_type)t, (uint32_t)t + 1);
	}
	header_add(h, "text", STR);
	header_add_categorical(h, "colour", (char *const *)(uintptr_t)colours, 3);
}

/* Random bytes for numbers (so NaN and the extremes of integers too), lists of 0 to 5 items, texts of 0 to 9 bytes. */
static void fill(struct block *b, const struct header *h, uint32_t seed, size_t rows)
{
	struct rng r = rng_at(seed, RNG_TEST, 0, 0);
	block_reset(b, h);
	block_set_rows(b, rows);
	for (size_t g = 0; g < h->ngroup; g++) {
		for (size_t i = 0; i < rows; i++)
			b->group[g].offset[i + 1] = b->group[g].offset[i] + rng_below(&r, 6);
		block_set_items(b, (int)g, block_items(b, (int)g));
	}
	for (size_t c = 0; c < h->ncol; c++) {
		const struct column_spec *s = &h->col[c];
		if (s->type == STR) {
			for (size_t i = 0; i < rows; i++)
				block_push_str(b, (int)c, "ab\tc\0\n\xc3\xb6?", rng_below(&r, 10));
			continue;
		}
		size_t n = (s->shape == RAGGED ? block_items(b, s->group) : rows * s->n) * type_size(s->type);
		for (size_t i = 0; i < n; i++)
			((uint8_t *)b->col[c].data)[i] = (uint8_t)rng_u32(&r);
		for (size_t i = 0; s->type == CATEGORICAL && i < rows; i++) {
			uint32_t code = rng_below(&r, 4);
			((uint32_t *)b->col[c].data)[i] = code < 3 ? code : MISSING_CODE;
		}
	}
}

static uint8_t *packed(const struct block *b, size_t *n)
{
	*n = block_bytes(b);
	uint8_t *p = xmalloc(*n);
	block_pack(b, p);
	return p;
}

static void same_blocks(const struct block *a, const struct block *b)
{
	size_t n, m;
	uint8_t *p = packed(a, &n), *q = packed(b, &m);
	assert_int_equal(n, m);
	assert_memory_equal(p, q, n);
	free(p);
	free(q);
}

static void refused(const struct header *h, const uint8_t *p, size_t n, const char *why)
{
	struct block b = {0};
	struct error e = {""};
	/* a copy of its own size: a read past the end is seen by ASan */
	uint8_t *copy = xmalloc(n);
	memcpy(copy, p, n);
	if (block_parse(&b, h, copy, n, &e) == 0)
		fail_msg("accepted, expected: %s", why);
	if (!strstr(e.msg, why))
		fail_msg("message: %s\n  expected: %s", e.msg, why);
	free(copy);
	block_release(&b);
}

static void accepted(const struct header *h, const uint8_t *p, size_t n)
{
	struct block b = {0};
	struct error e = {""};
	if (block_parse(&b, h, p, n, &e))
		fail_msg("refused: %s", e.msg);
	block_release(&b);
}

/* The bytes, written by hand from the manual page. */
static void bytes_of_the_manual(void **state)
{
	static const uint8_t want[] = {'B', 'L', 'K', '1', 2, 0, 0, 0, /* rows */
		3, 0, 0, 0, 0, 0, 0, 0, /* lengths of group a */
		0, 0, 0, 0, 1, 0, 0, 0, /* and of group b */
		1, 2, 1, 3, 1, 4, /* first: u16, group a */
		0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0, /* age: i32, -2 and 7 */
		2, 0, 0, 0, 1, 0, 0, 0, 'h', 'i', '!', /* text */
		0, 0, 0x80, 0x3f, /* second: f32, group b */
		1, 2, 3, 4, 5, 6, /* third: u8, 3 values a row */
		9, 8, 7, /* fourth: i8, group a */
		0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}; /* colour: missing, green */
	struct header h;
	header_init(&h, STREAM_COUNTS);
	header_add_ragged(&h, "first", U16, "a");
	header_add(&h, "age", I32);
	header_add(&h, "text", STR);
	header_add_ragged(&h, "second", F32, "b");
	header_add_fixed(&h, "third", U8, 3);
	header_add_ragged(&h, "fourth", I8, "a");
	header_add_categorical(&h, "colour", (char *const *)(uintptr_t)colours, 3);
	struct block b = {0};
	struct error e = {""};
	assert_int_equal(block_parse(&b, &h, want, sizeof want, &e), 0);
	assert_int_equal(b.rows, 2);
	assert_int_equal(block_items(&b, 0), 3);
	assert_int_equal(block_items(&b, 1), 1);
	assert_int_equal(block_id(&b, 0, 1), 0x301);
	assert_int_equal(((int32_t *)b.col[1].data)[0], -2);
	size_t n;
	const char *text = block_str(&b, 2, 1, &n);
	assert_true(n == 1 && *text == '!');
	assert_true(((float *)b.col[3].data)[0] == 1);
	assert_int_equal(((uint32_t *)b.col[6].data)[0], MISSING_CODE);
	assert_int_equal(block_bytes(&b), sizeof want);
	uint8_t *p = packed(&b, &n);
	assert_memory_equal(p, want, sizeof want);
	free(p);
	block_release(&b);
	header_release(&h);
}

static void every_type_comes_back(void **state)
{
	struct header h;
	every_column(&h);
	struct block from = {0}, to = {0};
	struct error e = {""};
	for (uint32_t seed = 0; seed < 20; seed++) {
		fill(&from, &h, seed, seed * 3);
		size_t n, len;
		uint8_t *p = packed(&from, &n);
		if (block_parse(&to, &h, p, n, &e))
			fail_msg("%s", e.msg);
		same_blocks(&from, &to);
		for (size_t c = 0; c < h.ncol; c++) {
			const struct column_spec *s = &h.col[c];
			size_t values = s->shape == RAGGED ? block_items(&from, s->group) : from.rows * s->n;
			if (s->type != STR)
				assert_memory_equal(from.col[c].data, to.col[c].data, values * type_size(s->type));
		}
		for (size_t i = 0; i < from.rows; i++) {
			const char *a = block_str(&from, header_find(&h, "text"), i, &len);
			size_t len2;
			const char *b = block_str(&to, header_find(&h, "text"), i, &len2);
			assert_int_equal(len, len2);
			assert_memory_equal(a, b, len);
		}
		free(p);
	}
	block_release(&from);
	block_release(&to);
	header_release(&h);
}

/* One missing value of each kind: NaN with its bits, the missing code, and the companion column. */
static void missing_values(void **state)
{
	struct header h;
	header_init(&h, STREAM_COUNTS);
	header_add(&h, "x", F32);
	header_add(&h, "y", F64);
	header_add_categorical(&h, "colour", (char *const *)(uintptr_t)colours, 3);
	header_add_categorical(&h, "none", NULL, 0);
	header_add(&h, "age", I64);
	header_add(&h, "age.missing", U8);
	struct block b = {0}, back = {0};
	struct error e = {""};
	block_reset(&b, &h);
	block_set_rows(&b, 2);
	uint32_t bits = 0x7fc12345;
	memcpy(b.col[0].data, &bits, 4);
	((float *)b.col[0].data)[1] = 0;
	((double *)b.col[1].data)[0] = NAN;
	((double *)b.col[1].data)[1] = -INFINITY;
	((uint32_t *)b.col[2].data)[0] = MISSING_CODE;
	((uint32_t *)b.col[2].data)[1] = 2;
	((uint32_t *)b.col[3].data)[0] = ((uint32_t *)b.col[3].data)[1] = MISSING_CODE;
	((int64_t *)b.col[4].data)[0] = 0;
	((int64_t *)b.col[4].data)[1] = INT64_MIN;
	((uint8_t *)b.col[5].data)[0] = 1;
	((uint8_t *)b.col[5].data)[1] = 0;
	size_t n;
	uint8_t *p = packed(&b, &n);
	assert_int_equal(block_parse(&back, &h, p, n, &e), 0);
	assert_memory_equal(back.col[0].data, &bits, 4);
	assert_true(isnan(((double *)back.col[1].data)[0]) && ((double *)back.col[1].data)[1] == -INFINITY);
	assert_int_equal(((uint32_t *)back.col[2].data)[0], MISSING_CODE);
	assert_true(((int64_t *)back.col[4].data)[1] == INT64_MIN);
	/* a code past the table, and any code where there is no table */
	((uint32_t *)b.col[2].data)[1] = 3;
	block_pack(&b, p);
	refused(&h, p, n, "column 'colour': code 3");
	((uint32_t *)b.col[2].data)[1] = MISSING_CODE - 1;
	block_pack(&b, p);
	refused(&h, p, n, "column 'colour': code 4294967294");
	((uint32_t *)b.col[2].data)[1] = 0;
	((uint32_t *)b.col[3].data)[1] = 0;
	block_pack(&b, p);
	refused(&h, p, n, "column 'none'");
	free(p);
	block_release(&b);
	block_release(&back);
	header_release(&h);
}

static void ids_lie_in_the_vocabulary(void **state)
{
	static const struct {
		const char *name;
		enum column_type type;
		int is_id;
	} cases[] = {{"gene", U16, 1}, {"token", U32, 1}, {"input", U16, 1}, {"target", U32, 1}, {"neighbour", U16, 1}, {"gene", U64, 0},
		{"token", I32, 0}, {"position", U16, 0}, {"genes", U32, 0}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct header h;
		header_init(&h, STREAM_TOKENS);
		header_add_ragged(&h, cases[k].name, cases[k].type, "list");
		assert_int_equal(header_is_id(&h.col[0]), cases[k].is_id);
		uint8_t p[24] = {'B', 'L', 'K', '1', 1, 0, 0, 0, 1, 0, 0, 0, 7};
		size_t n = 12 + type_size(cases[k].type);
		accepted(&h, p, n); /* no vocabulary: nothing to hold it against */
		for (char id[] = "A"; *id <= 'G'; ++*id)
			vocab_push(&h.vocab, id, NULL, 1);
		if (cases[k].is_id)
			refused(&h, p, n, "id 7, but the vocabulary has 7 rows");
		else
			accepted(&h, p, n);
		p[12] = 6;
		accepted(&h, p, n);
		header_release(&h);
	}
}

static void every_prefix_is_refused(void **state)
{
	struct header h;
	every_column(&h);
	struct block b = {0};
	fill(&b, &h, 5, 7);
	size_t n;
	uint8_t *p = packed(&b, &n);
	for (size_t k = 0; k < n; k++)
		refused(&h, p, k, "");
	p = xrealloc(p, n + 3, 1);
	memset(p + n, 0, 3);
	refused(&h, p, n + 3, "3 bytes too many");
	p[3] = '2';
	refused(&h, p, n, "expected a block");
	free(p);
	block_release(&b);
	header_release(&h);
}

/* Lengths that promise more than there is, before memory is taken for it. */
static void lengths_that_lie(void **state)
{
	struct header h;
	header_init(&h, STREAM_COUNTS);
	header_add_fixed(&h, "x", F64, FIXED_MAX);
	uint8_t p[64] = {'B', 'L', 'K', '1', 0xff, 0xff, 0xff, 0xff};
	refused(&h, p, sizeof p, "4294967295 rows");
	header_release(&h);

	header_init(&h, STREAM_COUNTS);
	header_add(&h, "text", STR);
	memcpy(p, "BLK1\2\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16);
	refused(&h, p, sizeof p, "column 'text' is cut short");
	header_release(&h);

	/* 2^32 - 1 items a row of 8 bytes: no sum or product may wrap */
	header_init(&h, STREAM_COUNTS);
	header_add_ragged(&h, "count", U64, "gene");
	refused(&h, p, sizeof p, "column 'count' is cut short");
	memcpy(p + 4, "\x0f\0\0\0", 4);
	refused(&h, p, sizeof p, "rows");
	header_release(&h);
}

/* A block goes from a wide layout to a narrow one and back, and keeps what set_rows promises. */
static void buffers_are_reused(void **state)
{
	struct header wide, narrow;
	every_column(&wide);
	header_init(&narrow, STREAM_COUNTS);
	header_add(&narrow, "text", STR);
	header_add_ragged(&narrow, "gene", U16, "gene");
	struct block b = {0}, fresh = {0};
	for (uint32_t k = 0; k < 4; k++) {
		const struct header *h = k % 2 ? &narrow : &wide;
		fill(&b, h, k, 200 - 40 * k);
		block_release(&fresh);
		fill(&fresh, h, k, 200 - 40 * k);
		same_blocks(&b, &fresh);
	}
	block_reset(&b, &narrow);
	assert_int_equal(b.rows, 0);
	assert_int_equal(block_bytes(&b), 8);
	block_set_rows(&b, 1);
	block_set_items(&b, 0, 2);
	b.group[0].offset[1] = 2;
	block_set_id(&b, 1, 0, 11);
	block_set_id(&b, 1, 1, 12);
	block_push_str(&b, 0, "one", 3);
	block_set_rows(&b, 4);
	for (int k = 0; k < 3; k++)
		block_push_str(&b, 0, "", 0);
	assert_int_equal(block_items(&b, 0), 2); /* the new rows are empty */
	assert_int_equal(block_id(&b, 1, 0), 11);
	size_t n;
	assert_memory_equal(block_str(&b, 0, 0, &n), "one", 3);
	block_str(&b, 0, 3, &n);
	assert_int_equal(n, 0);
	block_release(&b);
	block_release(&fresh);
	header_release(&wide);
	header_release(&narrow);
}

static void rows_are_taken(void **state)
{
	struct header h;
	every_column(&h);
	struct block from = {0}, to = {0}, want = {0};
	int *map = xcalloc(h.ncol, sizeof *map);
	header_map(&h, &h, map);
	for (size_t c = 0; c < h.ncol; c++)
		assert_int_equal(map[c], c);
	fill(&from, &h, 9, 50);
	block_reset(&to, &h);
	block_take(&to, map, &from, NULL, 0);
	same_blocks(&from, &to);
	/* rows in another order, one of them twice, after those that are there; then value by value */
	static const uint32_t row[] = {49, 0, 7, 7, 30};
	block_take(&to, map, &from, row, 5);
	assert_int_equal(to.rows, 55);
	for (size_t c = 0; c < h.ncol; c++) {
		const struct column_spec *s = &h.col[c];
		for (size_t k = 0; k < 5; k++) {
			size_t w = type_size(s->type), at = 50 + k, n, m;
			if (s->type == STR) {
				const char *x = block_str(&to, (int)c, at, &n), *y = block_str(&from, (int)c, row[k], &m);
				assert_int_equal(n, m);
				assert_memory_equal(x, y, n);
			} else if (s->shape == RAGGED) {
				const uint64_t *o = to.group[s->group].offset, *p = from.group[s->group].offset;
				assert_int_equal(o[at + 1] - o[at], p[row[k] + 1] - p[row[k]]);
				assert_memory_equal((char *)to.col[c].data + o[at] * w, (char *)from.col[c].data + p[row[k]] * w,
					(o[at + 1] - o[at]) * w);
			} else {
				w *= s->n;
				assert_memory_equal((char *)to.col[c].data + at * w, (char *)from.col[c].data + row[k] * w, w);
			}
		}
	}
	free(map);
	block_release(&from);
	block_release(&to);
	block_release(&want);
	header_release(&h);
}

/* A column is filled by one of its name, type, shape and width; a ragged group as a whole or not at all. */
static void columns_that_match(void **state)
{
	struct header from, to;
	header_init(&from, STREAM_TOKENS);
	header_add(&from, "a", U32);
	header_add_fixed(&from, "x", F32, 3);
	header_add_ragged(&from, "token", U16, "token");
	header_add_ragged(&from, "value", F32, "token");
	header_add_ragged(&from, "other", F32, "other");
	header_add(&from, "plain", U8);
	header_init(&to, STREAM_TOKENS);
	header_add(&to, "plain", U8); /* another place */
	header_add(&to, "a", I32); /* another type */
	header_add_fixed(&to, "x", F32, 4); /* another width */
	header_add_ragged(&to, "token", U16, "token"); /* its group gets a column that is not there */
	header_add_ragged(&to, "weight", F32, "token");
	header_add_ragged(&to, "other", F32, "renamed"); /* another group */
	header_add(&to, "value", F32); /* another shape */
	int map[7];
	static const int want[] = {5, -1, -1, -1, -1, -1, -1};
	header_map(&to, &from, map);
	assert_memory_equal(map, want, sizeof want);
	header_drop(&to, "weight");
	header_map(&to, &from, map);
	assert_int_equal(map[3], 2);
	/* columns without a source: groups stay empty */
	struct block a = {0}, b = {0};
	block_reset(&a, &from);
	block_set_rows(&a, 3);
	block_set_items(&a, 0, 4);
	block_set_items(&a, 1, 2);
	memcpy(a.group[0].offset, (uint64_t[]){0, 1, 1, 4}, 32);
	memcpy(a.group[1].offset, (uint64_t[]){0, 2, 2, 2}, 32);
	memcpy(a.col[2].data, (uint16_t[]){5, 6, 7, 8}, 8);
	memcpy(a.col[5].data, (uint8_t[]){1, 2, 3}, 3);
	block_reset(&b, &to);
	block_take(&b, map, &a, (uint32_t[]){2, 0}, 2);
	assert_int_equal(b.rows, 2);
	assert_memory_equal(b.col[0].data, ((uint8_t[]){3, 1}), 2);
	assert_memory_equal(b.col[3].data, ((uint16_t[]){6, 7, 8, 5}), 8);
	assert_int_equal(block_items(&b, 1), 0);
	block_release(&a);
	block_release(&b);
	header_release(&from);
	header_release(&to);
}

static void when_a_block_is_full(void **state)
{
	struct header h;
	struct block b = {0};
	header_init(&h, STREAM_COUNTS);
	header_add(&h, "n", U8);
	block_reset(&b, &h);
	block_set_rows(&b, BLOCK_ROWS - 1);
	assert_false(block_full(&b));
	block_set_rows(&b, BLOCK_ROWS);
	assert_true(block_full(&b));
	header_release(&h);
	header_init(&h, STREAM_COUNTS);
	header_add_ragged(&h, "gene", U8, "gene");
	block_reset(&b, &h);
	block_set_rows(&b, 1);
	b.group[0].offset[1] = BLOCK_BYTES - 13; /* and 12 bytes before the items */
	assert_int_equal(block_bytes(&b), BLOCK_BYTES - 1);
	assert_false(block_full(&b));
	b.group[0].offset[1]++;
	assert_true(block_full(&b));
	header_release(&h);
	block_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_the_manual),
		cmocka_unit_test(every_type_comes_back),
		cmocka_unit_test(missing_values),
		cmocka_unit_test(ids_lie_in_the_vocabulary),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(lengths_that_lie),
		cmocka_unit_test(buffers_are_reused),
		cmocka_unit_test(rows_are_taken),
		cmocka_unit_test(columns_that_match),
		cmocka_unit_test(when_a_block_is_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

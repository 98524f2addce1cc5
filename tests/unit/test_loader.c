/* The loader's order: every row occurs once an epoch, the shards together are the stream of one shard, any batch can come first. And the sample. */
#include "graph/corpus.h"
#include "stream/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/corrmask-loader-XXXXXX";
static struct header header;
enum { ROWS = 501 };

/* Cell i has i % 5 tokens, all 2 + i % 7; blocks of 1 to 13 rows. */
static int setup(void **state)
{
	struct error e;
	close(mkstemp(path));
	header_init(&header, STREAM_TOKENS);
	vocab_push(&header.vocab, "<pad>", NULL, 0.0 / 0.0);
	vocab_push(&header.vocab, "<mask>", NULL, 0.0 / 0.0);
	for (int g = 0; g < 7; g++) {
		char id[16];
		snprintf(id, sizeof id, "G%d", g);
		vocab_push(&header.vocab, id, NULL, 1);
	}
	header_add(&header, "cell", U64);
	header_add(&header, "extra", F64);
	header_add_ragged(&header, "token", U16, "token");
	struct stream *s = stream_create(path, &header, 1, &e);
	struct block b = {0};
	for (uint64_t i = 0; i < ROWS;) {
		block_reset(&b, stream_header(s));
		for (uint64_t k = i % 13 + 1; k && i < ROWS; k--, i++) {
			size_t r = b.rows, at = r ? block_items(&b, 0) : 0;
			block_set_rows(&b, r + 1);
			block_set_items(&b, 0, at + i % 5);
			((uint64_t *)b.col[0].data)[r] = i;
			((double *)b.col[1].data)[r] = (double)i;
			for (size_t t = 0; t < i % 5; t++)
				block_set_id(&b, 2, at + t, (uint32_t)(2 + i % 7));
			b.group[0].offset[r + 1] = at + i % 5;
		}
		if (stream_write(s, &b, &e))
			return -1;
	}
	int bad = stream_commit(s, &e);
	stream_free(s);
	block_release(&b);
	return bad;
}

static int teardown(void **state)
{
	header_release(&header);
	return unlink(path);
}

static uint64_t lanes = 1, decoded; /* of the next walks; of the last walk, blocks */
static uint64_t blocks_of_file;

/* Cells of every batch of one shard, UINT64_MAX between batches; returns how many words. */
static size_t walk(uint64_t *out, uint64_t batch, uint64_t shards, uint64_t shard, uint64_t window, uint64_t epochs, uint64_t from)
{
	struct error e;
	struct stream *s = stream_open(path, &e);
	struct header want = {0};
	header_init(&want, STREAM_TOKENS);
	header_add(&want, "cell", U64);
	header_add_ragged(&want, "token", U16, "token");
	struct loader f = {.in = s,
		.want = &want,
		.seed = 3,
		.epochs = epochs,
		.batch = batch,
		.shards = shards,
		.shard = shard,
		.window = window,
		.lanes = lanes};
	assert_int_equal(loader_init(&f, &e), 0);
	assert_int_equal(f.per_epoch, (ROWS + batch * shards - 1) / (batch * shards));
	struct block b = {0};
	uint64_t epoch, step, expect = from;
	if (from) { /* back from the last step */
		loader_seek(&f, f.steps - 1);
		assert_int_equal(loader_next(&f, &b, &epoch, &step, &e), 1);
	}
	loader_seek(&f, from);
	size_t n = 0;
	while (loader_next(&f, &b, &epoch, &step, &e) > 0) {
		assert_int_equal(step, expect++);
		assert_int_equal(epoch, step / f.per_epoch);
		assert_true(b.rows <= batch);
		for (size_t r = 0; r < b.rows; r++) {
			uint64_t cell = ((uint64_t *)b.col[0].data)[r];
			const uint64_t *o = b.group[0].offset;
			assert_int_equal(o[r + 1] - o[r], cell % 5);
			for (uint64_t k = o[r]; k < o[r + 1]; k++)
				assert_int_equal(block_id(&b, 1, k), 2 + cell % 7);
			out[n++] = cell;
		}
		out[n++] = UINT64_MAX;
	}
	assert_int_equal(expect, f.steps);
	decoded = f.decoded;
	blocks_of_file = f.nblock;
	block_release(&b);
	loader_release(&f);
	stream_free(s);
	header_release(&want);
	return n;
}

static uint64_t one[8 * ROWS], part[16 * ROWS];

static void every_row_once(void **state)
{
	int block[ROWS];
	for (int i = 0, n = 0; i < ROWS; n++)
		for (int k = i % 13 + 1; k && i < ROWS; k--)
			block[i++] = n;
	static const uint64_t windows[] = {1, 2, 7, 64, 1000};
	for (int w = 0; w < 5; w++) {
		size_t n = walk(one, 10, 1, 0, windows[w], 2, 0), k = 0, moved = 0, changed = 0, blocks = 0;
		uint64_t order[2 * ROWS];
		int seen[ROWS] = {0};
		for (size_t i = 0; i < n; i++)
			if (one[i] != UINT64_MAX)
				order[k++] = one[i];
		assert_int_equal(k, 2 * ROWS);
		for (size_t i = 0; i < k; i++) {
			assert_int_equal(seen[order[i]]++, i / ROWS);
			moved += order[i] != i % ROWS;
			changed += i >= ROWS && order[i] != order[i - ROWS];
			blocks += i >= ROWS && block[order[i]] != block[order[i - ROWS]];
		}
		assert_true(moved > ROWS && changed > ROWS / 2 && blocks > ROWS / 2);
	}
}

static void shards_interleave(void **state)
{
	static const uint64_t windows[] = {1, 5, 64};
	for (uint64_t shards = 1; shards <= 5; shards++)
		for (int w = 0; w < 3; w++) {
			uint64_t batch = 4, *whole[6];
			size_t n = walk(one, batch * shards, 1, 0, windows[w], 2, 0), at[6] = {0}, len[6];
			for (uint64_t r = 0; r < shards; r++) {
				whole[r] = part + r * 3 * ROWS;
				len[r] = walk(whole[r], batch, shards, r, windows[w], 2, 0);
				assert_true(len[r] < 3 * ROWS);
			}
			for (size_t i = 0; i < n; i++) {
				size_t k = 0;
				for (; one[i] != UINT64_MAX; i++, k++)
					assert_int_equal(whole[k % shards][at[k % shards]++], one[i]);
				for (uint64_t r = 0; r < shards; r++)
					assert_true(whole[r][at[r]++] == UINT64_MAX);
			}
			for (uint64_t r = 0; r < shards; r++)
				assert_int_equal(at[r], len[r]);
		}
}

/* With lanes: every row once an epoch; the batches do not depend on the number of shards; and a shard decodes its share. */
static void lanes_are_shares(void **state)
{
	static const uint64_t windows[] = {1, 8, 64}, some[] = {1, 2, 4, 6, 12, 31, 501, 600};
	enum { GLOBAL = 24 };
	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		for (int w = 0; w < 3; w++) {
			uint64_t seen[ROWS] = {0};
			lanes = some[i];
			size_t n = walk(one, GLOBAL, 1, 0, windows[w], 2, 0);
			for (size_t k = 0; k < n; k++)
				if (one[k] != UINT64_MAX)
					seen[one[k]]++;
			for (size_t k = 0; k < ROWS; k++)
				assert_int_equal(seen[k], 2);
			for (uint64_t shards = 2; shards <= GLOBAL; shards++) {
				uint64_t all = 0;
				if (GLOBAL % shards)
					continue;
				for (uint64_t r = 0; r < shards; r++) {
					size_t at = 0, m = walk(part, GLOBAL / shards, shards, r, windows[w], 2, 0);
					for (size_t k = 0, row = 0; k < n; k++, row++) {
						if (one[k] == UINT64_MAX || row % shards == r)
							assert_true(part[at++] == one[k]);
						if (one[k] == UINT64_MAX)
							row = (size_t)-1;
					}
					assert_int_equal(at, m);
					all += decoded;
				}
				/* two epochs, and a block more for each lane that begins inside one */
				if (lanes % shards == 0)
					assert_true(all <= 2 * (blocks_of_file + lanes));
			}
		}
	lanes = 1;
}

static void seek_anywhere(void **state)
{
	for (lanes = 1; lanes < 9; lanes += 3) {
		size_t n = walk(one, 7, 1, 0, 3, 2, 0), i = 0;
		uint64_t step = 0;
		for (; i < n; step++) {
			size_t m = walk(part, 7, 1, 0, 3, 2, step);
			assert_int_equal(m, n - i);
			assert_memory_equal(part, one + i, m * sizeof *one);
			while (one[i++] != UINT64_MAX)
				;
		}
	}
	lanes = 1;
}

static void sample(struct corpus *c, uint64_t size, int backwards)
{
	struct error e;
	struct stream *s = stream_open(path, &e);
	assert_int_equal(stream_index(s, &e), 0);
	*c = (struct corpus){.seed = 1, .nspecial = 2, .max_len = 3, .size = size};
	struct block b = {0};
	for (size_t k = 0, n = stream_blocks(s); k < n; k++) {
		assert_int_equal(stream_read_at(s, backwards ? n - 1 - k : k, &b, &e), 0);
		assert_int_equal(corpus_add(c, &b, 0, 2, &e), 0);
	}
	corpus_sort(c);
	block_release(&b);
	stream_free(s);
}

static void sample_of_cells(void **state)
{
	struct corpus all, a, b;
	sample(&all, 0, 0);
	assert_int_equal(all.n, ROWS);
	sample(&a, 100, 0);
	sample(&b, 100, 1);
	assert_int_equal(a.n, 100);
	uint64_t worst = 0;
	for (uint32_t i = 0; i < a.n; i++) {
		assert_true(a.cell[i].cell == b.cell[i].cell && a.cell[i].n == b.cell[i].n);
		assert_int_equal(a.cell[i].n, a.cell[i].cell % 5 < 3 ? a.cell[i].cell % 5 : 3);
		for (uint32_t k = 0; k < a.cell[i].n; k++)
			assert_int_equal(corpus_token(&a, i, k), 2 + a.cell[i].cell % 7);
		worst = a.cell[i].key > worst ? a.cell[i].key : worst;
	}
	uint32_t smaller = 0;
	for (uint32_t i = 0; i < all.n; i++)
		smaller += all.cell[i].key <= worst;
	assert_int_equal(smaller, 100);
	corpus_release(&all);
	corpus_release(&a);
	corpus_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_once),
		cmocka_unit_test(shards_interleave),
		cmocka_unit_test(lanes_are_shares),
		cmocka_unit_test(seek_anywhere),
		cmocka_unit_test(sample_of_cells),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

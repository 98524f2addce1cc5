/* Streams: what is written comes back; every prefix is refused; every flipped byte is refused or changes nothing. */
#include "base/bytes.h"
#include "base/rng.h"
#include "stream/stream.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <cmocka.h>

static char dir[] = "/tmp/corrmask-test-XXXXXX";

static char *at(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void sample_header(struct header *h)
{
	char *types[] = {(char *)"B", (char *)"T cell"};
	header_init(h, STREAM_TOKENS);
	header_add(h, "cell", U64);
	header_add(h, "barcode", STR);
	header_add_categorical(h, "cell_type", types, 2);
	header_add_fixed(h, "x", F32, 3);
	header_add_ragged(h, "token", U16, "token");
	header_add_ragged(h, "value", F32, "token");
	vocab_push(&h->vocab, "<pad>", NULL, NAN);
	vocab_push(&h->vocab, "<mask>", NULL, NAN);
	vocab_push(&h->vocab, "ENSG1", "A", 1.25);
	vocab_push(&h->vocab, "ENSG2", "B\"\\", 0.1);
	struct error e;
	assert_int_equal(vocab_index(&h->vocab, "test", &e), 0);
	cJSON_AddStringToObject(h->extra, "new_key", "kept");
	header_provenance(h, "test", "--seed 1");
}

static void sample_block(struct block *b, const struct header *h, uint32_t seed, size_t rows)
{
	struct rng r = rng_at(seed, RNG_TEST, 0, 0);
	block_reset(b, h);
	block_set_rows(b, rows);
	for (size_t i = 0, n = 0; i < rows; i++) {
		char name[32];
		snprintf(name, sizeof name, "cell%u", rng_u32(&r) % 100000);
		((uint64_t *)b->col[0].data)[i] = i;
		block_push_str(b, 1, name, strlen(name));
		((uint32_t *)b->col[2].data)[i] = i % 3 == 2 ? MISSING_CODE : (uint32_t)(i % 3);
		for (int k = 0; k < 3; k++)
			((float *)b->col[3].data)[i * 3 + k] = (float)rng_unit(&r);
		size_t len = rng_below(&r, 6);
		block_set_items(b, 0, n + len);
		for (size_t k = n; k < n + len; k++) {
			block_set_id(b, 4, k, 2 + rng_below(&r, 2));
			((float *)b->col[5].data)[k] = (float)k;
		}
		b->group[0].offset[i + 1] = n += len;
	}
}

static void assert_same(const struct block *a, const struct block *b)
{
	size_t n = block_bytes(a);
	assert_int_equal(n, block_bytes(b));
	uint8_t *x = malloc(n), *y = malloc(n);
	block_pack(a, x);
	block_pack(b, y);
	assert_memory_equal(x, y, n);
	free(x);
	free(y);
}

static void write_sample(const char *path, int raw, int nblock, size_t rows)
{
	struct error e;
	struct header h;
	struct block b = {0};
	sample_header(&h);
	struct stream *s = stream_create(path, &h, raw, &e);
	assert_non_null(s);
	for (int k = 0; k < nblock; k++) {
		sample_block(&b, &h, (uint32_t)k, rows);
		assert_int_equal(stream_write(s, &b, &e), 0);
	}
	assert_int_equal(stream_commit(s, &e), 0);
	stream_free(s);
	block_release(&b);
	header_release(&h);
}

/* 0 when the whole file reads well; -1 with the message else. */
static int read_all(const char *path, struct error *e)
{
	struct stream *s = stream_open(path, e);
	if (!s)
		return -1;
	struct block b = {0};
	int got;
	while ((got = stream_read(s, &b, e)) > 0)
		;
	block_release(&b);
	stream_free(s);
	return got;
}

static void round_trip(void **state)
{
	for (int raw = 0; raw < 2; raw++) {
		char *path = at("rt");
		write_sample(path, raw, 7, 300);
		struct error e;
		struct stream *s = stream_open(path, &e);
		assert_non_null(s);
		const struct header *h = stream_header(s);
		assert_int_equal(h->kind, STREAM_TOKENS);
		assert_int_equal(h->vocab.n, 4);
		assert_int_equal(h->vocab.nspecial, 2);
		assert_int_equal(vocab_find(&h->vocab, "ENSG2"), 3);
		assert_string_equal(h->vocab.symbol[3], "B\"\\");
		assert_true(h->vocab.median[3] == 0.1 && isnan(h->vocab.median[0]));
		assert_string_equal(cJSON_GetObjectItem(h->extra, "new_key")->valuestring, "kept");
		assert_string_equal(h->col[2].category[1], "T cell");
		struct block b = {0}, want = {0};
		for (uint32_t k = 0; k < 7; k++) {
			assert_int_equal(stream_read(s, &b, &e), 1);
			sample_block(&want, h, k, 300);
			assert_same(&want, &b);
		}
		assert_int_equal(stream_read(s, &b, &e), 0);
		assert_int_equal(stream_read(s, &b, &e), 0);
		stream_free(s);
		s = stream_open(path, &e);
		assert_int_equal(stream_index(s, &e), 0);
		assert_int_equal(stream_blocks(s), 7);
		assert_int_equal(stream_rows(s), 2100);
		for (uint32_t k = 7; k-- > 0;) {
			assert_int_equal(stream_read_at(s, k, &b, &e), 0);
			sample_block(&want, stream_header(s), k, 300);
			assert_same(&want, &b);
		}
		stream_free(s);
		block_release(&b);
		block_release(&want);
		free(path);
	}
}

static void empty_stream(void **state)
{
	struct error e;
	char *path = at("none");
	write_sample(path, 0, 0, 0);
	assert_int_equal(read_all(path, &e), 0);
	write_sample(path, 1, 2, 0);
	assert_int_equal(read_all(path, &e), 0);
	free(path);
}

static uint8_t *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	uint8_t *p = malloc(*n);
	assert_int_equal(fread(p, 1, *n, f), *n);
	fclose(f);
	return p;
}

static void spit(const char *path, const uint8_t *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
}

static void prefixes_and_flips(void **state)
{
	struct error e;
	char *path = at("whole"), *cut = at("cut");
	for (int raw = 0; raw < 2; raw++) {
		size_t n;
		write_sample(path, raw, 3, 5);
		uint8_t *p = slurp(path, &n);
		for (size_t k = 0; k < n; k++) {
			spit(cut, p, k);
			assert_int_equal(read_all(cut, &e), -1);
		}
		for (size_t k = 0; k < n; k++) {
			p[k] ^= (uint8_t)(1 << k % 8);
			spit(cut, p, n);
			if (read_all(cut, &e) == 0) {
				struct stream *a = stream_open(path, &e), *b = stream_open(cut, &e);
				struct block x = {0}, y = {0};
				char *ja = header_print(stream_header(a)), *jb = header_print(stream_header(b));
				assert_string_equal(ja, jb);
				while (stream_read(a, &x, &e) > 0) {
					assert_int_equal(stream_read(b, &y, &e), 1);
					assert_same(&x, &y);
				}
				free(ja);
				free(jb);
				block_release(&x);
				block_release(&y);
				stream_free(a);
				stream_free(b);
			}
			p[k] ^= (uint8_t)(1 << k % 8);
		}
		uint8_t *more = malloc(n + 1);
		memcpy(more, p, n);
		more[n] = 0;
		spit(cut, more, n + 1);
		assert_int_equal(read_all(cut, &e), -1);
		assert_non_null(strstr(e.msg, "after the end"));
		free(more);
		free(p);
	}
	free(path);
	free(cut);
}

static void uncommitted(void **state)
{
	struct error e;
	struct header h;
	struct block b = {0};
	char *path = at("never");
	sample_header(&h);
	struct stream *s = stream_create(path, &h, 0, &e);
	sample_block(&b, &h, 1, 10);
	assert_int_equal(stream_write(s, &b, &e), 0);
	stream_free(s);
	assert_int_equal(access(path, F_OK), -1);
	s = stream_create("/dev/full", &h, 1, &e);
	if (s) {
		int bad = 0;
		for (int k = 0; k < 100 && !bad; k++)
			bad = stream_write(s, &b, &e);
		bad = bad || stream_commit(s, &e);
		assert_true(bad);
		stream_free(s);
	}
	assert_non_null(strstr(e.msg, "No space left"));
	block_release(&b);
	header_release(&h);
	free(path);
}

static void take_rows(void **state)
{
	struct header h, sub;
	struct block from = {0}, to = {0};
	sample_header(&h);
	sample_block(&from, &h, 3, 50);
	header_copy(&sub, &h);
	header_drop(&sub, "x");
	int map[16];
	header_map(&sub, &h, map);
	uint32_t rows[] = {49, 0, 7, 7};
	block_reset(&to, &sub);
	block_take(&to, map, &from, rows, 4);
	block_take(&to, map, &from, rows, 2);
	assert_int_equal(to.rows, 6);
	for (size_t k = 0; k < 6; k++) {
		size_t r = rows[k % 4], n, m;
		assert_int_equal(((uint64_t *)to.col[0].data)[k], r);
		const char *a = block_str(&to, 1, k, &n), *b = block_str(&from, 1, r, &m);
		assert_int_equal(n, m);
		assert_memory_equal(a, b, n);
		const uint64_t *o = to.group[0].offset, *f = from.group[0].offset;
		assert_int_equal(o[k + 1] - o[k], f[r + 1] - f[r]);
		for (size_t i = 0; i < o[k + 1] - o[k]; i++) {
			assert_int_equal(block_id(&to, 3, o[k] + i), block_id(&from, 4, f[r] + i));
			assert_true(((float *)to.col[4].data)[o[k] + i] == ((float *)from.col[5].data)[f[r] + i]);
		}
	}
	/* a group passes whole or not at all */
	header_drop(&h, "value");
	header_release(&sub);
	sample_header(&sub);
	header_map(&sub, &h, map);
	assert_int_equal(map[header_find(&sub, "token")], -1);
	block_release(&from);
	block_release(&to);
	header_release(&h);
	header_release(&sub);
}

static void ids_outside(void **state)
{
	struct error e;
	struct header h;
	struct block b = {0}, back = {0};
	sample_header(&h);
	sample_block(&b, &h, 1, 20);
	block_set_id(&b, 4, 3, 4);
	size_t n = block_bytes(&b);
	uint8_t *p = malloc(n);
	block_pack(&b, p);
	assert_int_equal(block_parse(&back, &h, p, n, &e), -1);
	assert_non_null(strstr(e.msg, "id 4"));
	block_set_id(&b, 4, 3, 2);
	((uint32_t *)b.col[2].data)[1] = 2;
	block_pack(&b, p);
	assert_int_equal(block_parse(&back, &h, p, n, &e), -1);
	free(p);
	block_release(&b);
	block_release(&back);
	header_release(&h);
}

/* A block that announces more rows than its bytes could hold is refused before memory is taken for them. */
static void hostile_rows(void **state)
{
	struct error e;
	struct header h;
	struct block b = {0};
	uint8_t p[4096] = "BLK1";
	header_init(&h, STREAM_EMBEDDING);
	header_add_fixed(&h, "x", F64, FIXED_MAX);
	put_le32(p + 4, 4000); /* 4000 * 8 MiB */
	assert_int_equal(block_parse(&b, &h, p, sizeof p, &e), -1);
	assert_non_null(strstr(e.msg, "4000 rows cannot be in 4088 bytes"));
	put_le32(p + 4, 0xFFFFFFFF);
	assert_int_equal(block_parse(&b, &h, p, sizeof p, &e), -1);
	header_release(&h);
	header_init(&h, STREAM_TOKENS);
	header_add_ragged(&h, "token", U64, "token");
	put_le32(p + 4, 2); /* lists of 2^32 - 1 items */
	memset(p + 8, 0xFF, 8);
	block_release(&b);
	b = (struct block){0};
	assert_int_equal(block_parse(&b, &h, p, sizeof p, &e), -1);
	assert_non_null(strstr(e.msg, "cut short"));
	block_release(&b);
	header_release(&h);
}

/* Read the whole of path through its index, from the first block on, or from the second one, and check the digest: 0, or -1. */
static int read_index_from(const char *path, size_t first, struct error *e)
{
	struct stream *s = stream_open(path, e);
	struct block b = {0};
	int bad = !s || stream_index(s, e);
	for (size_t i = 0; !bad && i < stream_blocks(s); i++)
		bad = stream_read_at(s, (first + i) % stream_blocks(s), &b, e);
	bad = bad || stream_checked(s, e);
	block_release(&b);
	stream_free(s);
	return bad ? -1 : 0;
}

static int read_index(const char *path, struct error *e)
{
	return read_index_from(path, 0, e);
}

/* Entries of the seek table that shift bytes between frames: the index must not read what reading in order would not. */
static void lying_table(void **state)
{
	struct error e;
	char *path = at("lying");
	size_t n;
	write_sample(path, 0, 3, 5);
	uint8_t *p = slurp(path, &n);
	uint8_t *entry = p + n - 9 - 8 * 5;
	for (int k = 0; k < 4; k++) {
		for (int field = 0; field < 8; field += 4) {
			uint32_t a = get_le32(entry + 8 * k + field), b = get_le32(entry + 8 * k + 8 + field);
			put_le32(entry + 8 * k + field, a + 1);
			put_le32(entry + 8 * k + 8 + field, b - 1);
			spit(path, p, n);
			assert_int_equal(read_all(path, &e), -1);
			assert_int_equal(read_index(path, &e), -1);
			put_le32(entry + 8 * k + field, a);
			put_le32(entry + 8 * k + 8 + field, b);
		}
	}
	free(p);
	free(path);
}

/* An empty frame hidden behind frame k, in whose entry of the seek table it is counted. */
static void hidden_frame(void **state)
{
	struct error e;
	char *path = at("hidden");
	size_t n;
	uint8_t empty[64];
	size_t extra = ZSTD_compress(empty, sizeof empty, "", 0, 1);
	write_sample(path, 0, 3, 5);
	uint8_t *p = slurp(path, &n), *more = malloc(n + extra);
	for (size_t k = 0, where = 0; k < 5; k++) {
		const uint8_t *entry = p + n - 9 - 8 * (5 - k);
		where += get_le32(entry);
		memcpy(more, p, where);
		memcpy(more + where, empty, extra);
		memcpy(more + where + extra, p + where, n - where);
		put_le32(more + extra + (entry - p), get_le32(entry) + (uint32_t)extra);
		spit(path, more, n + extra);
		assert_int_equal(read_all(path, &e), -1);
		assert_int_equal(read_index(path, &e), -1);
	}
	free(more);
	free(p);
	free(path);
}

/* Stored frames in several pieces, and others that start like them: a piece divided in two is as good a zstd frame. */
static void stored_pieces(void **state)
{
	struct error e;
	char *path = at("pieces"), *other = at("other");
	size_t n;
	write_sample(path, 1, 2, 12000);
	uint8_t *p = slurp(path, &n), *q = malloc(n + 3), *entry = p + n - 9 - 8 * 4;
	size_t first = get_le32(entry) + 14, pieces = (get_le32(entry + 12) + 131071) / 131072;
	assert_true(pieces >= 3);
	for (size_t k = 0; k <= pieces; k++) {
		size_t piece = first + k * 131075, cut = piece + 3 + 100;
		uint32_t mark = get_le32(p + piece) & 0xffffff, rest = mark - (100 << 3);
		memcpy(q, p, n);
		if (k < pieces) {
			put_le16(q + piece, 100 << 3);
			q[piece + 2] = 0;
			put_le16(q + cut, (uint16_t)rest);
			q[cut + 2] = (uint8_t)(rest >> 16);
			memcpy(q + cut + 3, p + cut, n - cut);
			put_le32(q + 3 + (entry - p) + 8, get_le32(entry + 8) + 3);
		}
		spit(other, q, n + (k < pieces ? 3 : 0));
		struct stream *a = stream_open(path, &e), *b = stream_open(other, &e);
		struct block x = {0}, y = {0};
		for (int i = 0; i < 2; i++) {
			assert_int_equal(stream_read(a, &x, &e), 1);
			assert_int_equal(stream_read(b, &y, &e), 1);
			assert_same(&x, &y);
		}
		assert_int_equal(stream_read(b, &y, &e), 0);
		stream_free(a);
		stream_free(b);
		block_release(&x);
		block_release(&y);
	}
	for (size_t k = 0; k < pieces; k++) { /* cut around every mark, and a bit flipped in every piece */
		size_t piece = first + k * 131075;
		for (size_t cut = piece - (k > 0); cut < piece + 5; cut++) {
			spit(other, p, cut);
			assert_int_equal(read_all(other, &e), -1);
			assert_non_null(strstr(e.msg, "cut short"));
		}
		p[piece + 50] ^= 4;
		spit(other, p, n);
		assert_int_equal(read_all(other, &e), -1);
		assert_non_null(strstr(e.msg, "the checksum of a frame does not match"));
		p[piece + 50] ^= 4;
	}
	free(p);
	free(q);
	free(path);
	free(other);
}

/* The n bytes at p of a stream of two blocks, with these in the other order (malloced). */
static uint8_t *swap_blocks(const uint8_t *p, size_t n)
{
	uint8_t *q = malloc(n);
	const uint8_t *entry = p + n - 9 - 8 * 4;
	size_t head = get_le32(entry), a = get_le32(entry + 8), b = get_le32(entry + 16);
	memcpy(q, p, n);
	memcpy(q + head, p + head + a, b);
	memcpy(q + head + b, p + head, a);
	memcpy(q + (entry - p) + 8, entry + 16, 8);
	memcpy(q + (entry - p) + 16, entry + 8, 8);
	return q;
}

/* Two blocks of the same number of rows in the wrong order: only the digest of the whole can tell. */
static void swapped_blocks(void **state)
{
	struct error e;
	char *path = at("swapped");
	size_t n;
	write_sample(path, 0, 2, 5);
	uint8_t *p = slurp(path, &n), *q = swap_blocks(p, n);
	spit(path, q, n);
	assert_int_equal(read_all(path, &e), -1);
	assert_non_null(strstr(e.msg, "different value for the content"));
	assert_int_equal(read_index(path, &e), -1);
	assert_non_null(strstr(e.msg, "different value for the content"));
	e.msg[0] = 0;
	assert_int_equal(read_index_from(path, 1, &e), -1);
	assert_non_null(strstr(e.msg, "different value for the content"));
	spit(path, p, n);
	assert_int_equal(read_index_from(path, 1, &e), 0);
	free(p);
	free(q);
	free(path);
}

/* A trailer with right sums and checksum, but other rows of the blocks. */
static void lying_trailer(void **state)
{
	struct error e;
	char *path = at("trailer");
	size_t n;
	write_sample(path, 1, 2, 5);
	uint8_t *p = slurp(path, &n), *entry = p + n - 9 - 8 * 4;
	size_t first = get_le32(entry) + get_le32(entry + 8) + get_le32(entry + 16) + 14 + 3, content = get_le32(entry + 28);
	assert_memory_equal(p + first, "END1", 4);
	assert_int_equal(get_le32(p + first + 36), 5);
	put_le32(p + first + 36, 6);
	put_le32(p + first + 40, 4);
	put_le32(p + first + content, (uint32_t)XXH64(p + first, content, 0));
	spit(path, p, n);
	assert_int_equal(read_all(path, &e), -1);
	assert_non_null(strstr(e.msg, "different value for the rows in a block"));
	assert_int_equal(read_index(path, &e), -1);
	free(p);
	free(path);
}

/* A block that is another one when it is read again, with the right checksum; and the thread that compares the digest sees it too. */
static void changed_while_read(void **state)
{
	struct error e = {""};
	char *path = at("changed");
	size_t n;
	struct block b = {0};
	write_sample(path, 1, 2, 5);
	uint8_t *p = slurp(path, &n), *entry = p + n - 9 - 8 * 4;
	size_t first = get_le32(entry) + get_le32(entry + 8) + 14 + 3, content = get_le32(entry + 20); /* of a stored frame */
	for (int again = 0; again < 2; again++) {
		struct stream *s = stream_open(path, &e);
		assert_int_equal(stream_index(s, &e), 0);
		assert_int_equal(stream_read_at(s, 1, &b, &e), 0);
		p[first + 8] ^= 1;
		put_le32(p + first + content, (uint32_t)XXH64(p + first, content, 0));
		spit(path, p, n);
		assert_int_equal(again ? stream_checked(s, &e) : stream_read_at(s, 1, &b, &e), -1);
		assert_non_null(strstr(e.msg, "block 1 has changed"));
		stream_free(s);
		p[first + 8] ^= 1;
		put_le32(p + first + content, (uint32_t)XXH64(p + first, content, 0));
		spit(path, p, n);
	}
	block_release(&b);
	free(p);
	free(path);
}

/* A pipe with only `n` of the bytes of `path` in it; the write end stays open in *keep, or is closed. */
static struct stream *open_pipe(const char *path, size_t cut, int *keep)
{
	struct error e;
	size_t n;
	int fd[2];
	char name[64];
	uint8_t *p = slurp(path, &n);
	assert_int_equal(pipe(fd), 0);
	n = n < cut ? n : cut;
	assert_int_equal(write(fd[1], p, n), n);
	if (keep)
		*keep = fd[1];
	else
		close(fd[1]);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd[0]);
	struct stream *s = stream_open(name, &e);
	close(fd[0]);
	free(p);
	return s;
}

/* A reader that stops early must not wait for a silent writer, wherever its thread is. */
static void early_free(void **state)
{
	struct error e;
	struct block b = {0};
	char *path = at("early");
	int keep;
	write_sample(path, 0, 6, 10);
	for (int blocks = 0; blocks < 3; blocks++) {
		struct stream *s = open_pipe(path, blocks == 2 ? SIZE_MAX : 1000, &keep);
		assert_non_null(s);
		alarm(10);
		for (int k = 0; k < blocks; k++)
			assert_int_equal(stream_read(s, &b, &e), 1);
		stream_free(s);
		alarm(0);
		close(keep);
	}
	block_release(&b);
	free(path);
}

/* Random access over a pipe copies it to $TMPDIR; a cut one is refused there too. */
static void index_over_pipe(void **state)
{
	struct error e;
	struct block b = {0}, want = {0};
	char *path = at("pipe");
	write_sample(path, 0, 4, 20);
	struct stream *s = open_pipe(path, SIZE_MAX, NULL);
	assert_int_equal(stream_index(s, &e), 0);
	assert_int_equal(stream_blocks(s), 4);
	for (uint32_t k = 4; k-- > 0;) {
		assert_int_equal(stream_read_at(s, k, &b, &e), 0);
		sample_block(&want, stream_header(s), k, 20);
		assert_same(&want, &b);
	}
	stream_free(s);
	s = open_pipe(path, 1000, NULL);
	assert_int_equal(stream_index(s, &e), -1);
	assert_non_null(strstr(e.msg, "cut short"));
	stream_free(s);
	setenv("TMPDIR", "/nonexistent", 1);
	s = open_pipe(path, SIZE_MAX, NULL);
	assert_int_equal(stream_index(s, &e), -1);
	assert_non_null(strstr(e.msg, "TMPDIR"));
	stream_free(s);
	unsetenv("TMPDIR");
	block_release(&b);
	block_release(&want);
	free(path);
}

/* Three files as one: PARTS blocks each, of these many rows. */
enum { PARTS = 3 };
static const size_t part_rows[PARTS] = {4, 1, 7};
static const int part_blocks[PARTS] = {3, 1, 2};

static struct stream *open_parts(char *name[PARTS])
{
	struct error e;
	char *warning;
	struct stream *s = stream_open_all((const char *const *)name, PARTS, &warning, &e);
	assert_non_null(s);
	assert_null(warning);
	return s;
}

/* Block k of the three files, with the cells numbered through. */
static void part_block(struct block *b, const struct header *h, size_t k)
{
	size_t p = 0, first = 0;
	for (; k >= (size_t)part_blocks[p]; k -= (size_t)part_blocks[p++])
		first += part_rows[p] * (size_t)part_blocks[p];
	sample_block(b, h, (uint32_t)k, part_rows[p]);
	for (size_t i = 0; i < b->rows; i++)
		((uint64_t *)b->col[0].data)[i] = first + k * part_rows[p] + i;
}

static void several_as_one(void **state)
{
	struct error e;
	struct block b = {0}, want = {0};
	char *name[PARTS] = {at("part0"), at("part1"), at("part2")}, digest[2][33];
	for (int i = 0; i < PARTS; i++)
		write_sample(name[i], i == 1, part_blocks[i], part_rows[i]);
	struct stream *s = open_parts(name);
	assert_non_null(strstr(stream_name(s), "part0 and 2 more"));
	for (size_t k = 0; k < 6; k++) {
		assert_int_equal(stream_read(s, &b, &e), 1);
		part_block(&want, stream_header(s), k);
		assert_same(&want, &b);
	}
	assert_int_equal(stream_read(s, &b, &e), 0);
	assert_int_equal(stream_rows(s), 27);
	stream_free(s);
	s = open_parts(name);
	assert_int_equal(stream_index(s, &e), 0);
	assert_int_equal(stream_blocks(s), 6);
	assert_int_equal(stream_rows(s), 27);
	assert_int_equal(stream_parts(s), PARTS);
	for (size_t i = 0; i < 60; i++) {
		size_t k = i * 7 % 6;
		part_block(&want, stream_header(s), k);
		assert_int_equal(stream_block_rows(s, k), want.rows);
		assert_int_equal(stream_read_at(s, k, &b, &e), 0);
		assert_same(&want, &b);
	}
	assert_int_equal(stream_checked(s, &e), 0);
	for (size_t i = 0; i < 2; i++)
		stream_digest(stream_part(s, i), digest[i]);
	assert_string_not_equal(digest[0], digest[1]);
	stream_free(s);
	block_release(&b);
	block_release(&want);
	for (int i = 0; i < PARTS; i++)
		free(name[i]);
}

/* Reader r of n finds what is wrong in part r, and leaves the others to the others. */
static void shares_of_the_check(void **state)
{
	struct error e;
	struct block b = {0};
	char *name[PARTS] = {at("part0"), at("swapped"), at("part2")};
	size_t n;
	for (int i = 0; i < PARTS; i++)
		write_sample(name[i], 0, 2, part_rows[i]);
	uint8_t *p = slurp(name[1], &n), *q = swap_blocks(p, n);
	spit(name[1], q, n);
	for (uint64_t readers = 1; readers < 5; readers++)
		for (uint64_t r = 0; r < readers; r++) {
			int finds = 1 % readers == r;
			struct stream *s = open_parts(name);
			assert_int_equal(stream_index(s, &e), 0);
			stream_check_share(s, r, readers);
			assert_int_equal(stream_check(s, &e), 0);
			int bad = 0;
			for (size_t k = 6; k-- > 0 && !bad;)
				bad = stream_read_at(s, k, &b, &e);
			bad = bad || stream_checked(s, &e);
			assert_int_equal(bad, finds);
			if (bad)
				assert_non_null(strstr(e.msg, "swapped: the stream is damaged"));
			stream_free(s);
		}
	block_release(&b);
	free(p);
	free(q);
	for (int i = 0; i < PARTS; i++)
		free(name[i]);
}

/* A file under two names, its copy, a cut one. */
static void several_refused(void **state)
{
	struct error e;
	char *warning, *name[PARTS] = {at("part0"), at("link"), at("part2")};
	write_sample(name[0], 0, 2, 5);
	write_sample(name[2], 0, 2, 6);
	assert_int_equal(symlink(name[0], name[1]), 0);
	assert_null(stream_open_all((const char *const *)name, PARTS, &warning, &e));
	assert_non_null(strstr(e.msg, "link: this file is given twice (as "));
	assert_int_equal(unlink(name[1]), 0);
	write_sample(name[1], 0, 2, 5);
	assert_null(stream_open_all((const char *const *)name, PARTS, &warning, &e));
	assert_non_null(strstr(e.msg, "link: it has the same cells as "));
	assert_int_equal(truncate(name[1], 700), 0);
	assert_null(stream_open_all((const char *const *)name, PARTS, &warning, &e));
	assert_non_null(strstr(e.msg, "link: the stream is cut short"));
	for (int i = 0; i < PARTS; i++)
		free(name[i]);
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char *cmd = xasprintf("rm -rf '%s'", dir);
	int r = system(cmd);
	free(cmd);
	return r;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(empty_stream),
		cmocka_unit_test(prefixes_and_flips),
		cmocka_unit_test(uncommitted),
		cmocka_unit_test(take_rows),
		cmocka_unit_test(ids_outside),
		cmocka_unit_test(hostile_rows),
		cmocka_unit_test(lying_table),
		cmocka_unit_test(hidden_frame),
		cmocka_unit_test(stored_pieces),
		cmocka_unit_test(swapped_blocks),
		cmocka_unit_test(lying_trailer),
		cmocka_unit_test(changed_while_read),
		cmocka_unit_test(early_free),
		cmocka_unit_test(index_over_pipe),
		cmocka_unit_test(several_as_one),
		cmocka_unit_test(shares_of_the_check),
		cmocka_unit_test(several_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

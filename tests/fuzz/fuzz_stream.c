/*
 * Any bytes as a stream: reading in order and by the index must not crash, must not take memory beyond the input's payloads,
 * and must agree. What is accepted is written again and must come back the same.
 */
#include "mutate_stream.h"

static const char *path;

static void content(struct buffer *to, const struct block *b)
{
	size_t n = block_bytes(b);
	to->p = grow_bytes(to->p, &to->cap, to->n + n, 1);
	block_pack(b, to->p + to->n);
	to->n += n;
}

/* The whole stream into `to`: 1 accepted, 0 refused, with a message. */
static int in_order(struct buffer *to)
{
	struct error e = {""};
	struct block b = {0};
	int got = -1;
	struct stream *s = stream_open(path, &e);
	to->n = 0;
	while (s && (got = stream_read(s, &b, &e)) > 0)
		content(to, &b);
	assert(got == 0 || e.msg[0]);
	block_release(&b);
	stream_free(s);
	return got == 0;
}

static int by_index(struct buffer *to)
{
	struct error e = {""};
	struct block b = {0};
	struct stream *s = stream_open(path, &e);
	int bad = !s || stream_index(s, &e);
	to->n = 0;
	uint64_t rows = 0;
	for (size_t k = 0; !bad && k < stream_blocks(s); k++) {
		bad = stream_read_at(s, k, &b, &e);
		if (!bad)
			content(to, &b);
		rows += b.rows;
	}
	assert(bad ? e.msg[0] != 0 : rows == stream_rows(s));
	block_release(&b);
	stream_free(s);
	return !bad;
}

/* Read, write to a second file (standard output, which libFuzzer does not use), read that. */
static void again(const struct buffer *want)
{
	static int ready;
	static const char copy[] = "/proc/self/fd/1";
	struct error e = {""};
	struct block b = {0};
	if (!ready)
		ready = dup2(memfd_create("copy", 0), STDOUT_FILENO) == STDOUT_FILENO;
	assert(ready && ftruncate(STDOUT_FILENO, 0) == 0 && lseek(STDOUT_FILENO, 0, SEEK_SET) == 0);
	struct stream *s = stream_open(path, &e), *t = stream_create("-", stream_header(s), want->n % 2, &e);
	struct buffer got = {0};
	assert(t);
	while (stream_read(s, &b, &e) > 0)
		assert(stream_write(t, &b, &e) == 0);
	assert(stream_commit(t, &e) == 0);
	stream_free(t);
	t = stream_open(copy, &e);
	assert(t);
	char *x = header_print(stream_header(s)), *y = header_print(stream_header(t));
	assert(strcmp(x, y) == 0);
	free(x);
	free(y);
	while (stream_read(t, &b, &e) > 0)
		content(&got, &b);
	assert(got.n == want->n && (!got.n || memcmp(got.p, want->p, got.n) == 0));
	stream_free(s);
	stream_free(t);
	block_release(&b);
	free(got.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer a = {0}, b = {0};
	if (!size)
		return 0;
	path = put_input(data, size);
	int one = in_order(&a), two = by_index(&b);
	/* the index does not see the digest of the whole, so it may accept what reading in order refuses; never the reverse */
	assert(!one || (two && a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0)));
	assert(one || !two || data[0] == 'F');
	if (one)
		again(&a);
	free(a.p);
	free(b.p);
	return 0;
}

/* Bytes of a stream's file, and frames. */
#include "stream/stream_impl.h"

#include <errno.h>
#include <poll.h>

ssize_t stream_read_some(struct stream *s, const struct iovec *part, int n, struct error *e)
{
	for (;;) {
		/* stream_thread_stop wakes the reading thread here: it must not wait for a pipe without data */
		struct pollfd ready[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
		ssize_t k = poll(ready, 2, -1);
		if (k > 0 && ready[1].revents)
			return error_set(e, "%s: stopped", s->name);
		if (k > 0)
			k = readv(s->fd, part, n);
		if (k < 0 && errno == EINTR)
			continue;
		return k < 0 ? error_set(e, "%s: cannot read: %s", s->name, strerror(errno)) : k;
	}
}

int64_t stream_fill(struct stream *s, size_t n, struct error *e)
{
	if (s->at && s->in.n - s->at < n) {
		memmove(s->in.p, s->in.p + s->at, s->in.n - s->at);
		s->in.n -= s->at;
		s->at = 0;
	}
	while (s->in.n - s->at < n) {
		size_t missing = n - (s->in.n - s->at), more = missing > s->step ? missing : s->step;
		bytes_reserve(&s->in, s->in.n + more);
		ssize_t k = stream_read_some(s, &(struct iovec){s->in.p + s->in.n, more}, 1, e);
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		s->in.n += (size_t)k;
	}
	return (int64_t)(s->in.n - s->at);
}

int stream_truncated(const struct stream *s, struct error *e)
{
	if (!s->seen)
		return error_set(e, "%s: the stream is cut short (the program that wrote it did not finish)", s->name);
	return error_set(e, "%s: the stream is cut short after %llu rows (the program that wrote it did not finish)", s->name,
		(unsigned long long)s->seen);
}

const char *stream_frame_size(const uint8_t *p, size_t n, size_t *content)
{
	unsigned long long size = ZSTD_getFrameContentSize(p, n);
	if (size == ZSTD_CONTENTSIZE_ERROR || get_le32(p) != ZSTD_MAGICNUMBER) /* skippable and legacy frames too */
		return "no zstd frame where one should start";
	if (!(p[4] & 4))
		return "a zstd frame without a checksum";
	if (size == ZSTD_CONTENTSIZE_UNKNOWN)
		return "a zstd frame that does not say its size";
	if (size > BLOCK_MAX)
		return "a frame larger than 256 MiB";
	*content = (size_t)size;
	return NULL;
}

const char *stream_inflate(ZSTD_DCtx *c, const uint8_t *p, size_t n, size_t content, struct bytes *out)
{
	bytes_reserve(out, content);
	size_t got = ZSTD_decompressDCtx(c, out->p, content, p, n);
	if (ZSTD_isError(got))
		return ZSTD_getErrorName(got);
	out->n = content;
	return got == content ? NULL : "wrong size";
}

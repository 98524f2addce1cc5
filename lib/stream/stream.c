#include "stream/stream_impl.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

void stream_add_entry(struct stream *s, size_t packed, size_t content, size_t rows)
{
	grow(s->entry, s->entry_cap, s->nentry + 1);
	s->entry[s->nentry] = (struct seek_entry){(uint32_t)packed, (uint32_t)content, (uint32_t)rows};
	s->nentry++;
}

struct stream *stream_new(const char *name)
{
	struct stream *s = xcalloc(1, sizeof *s);
	s->name = xstrdup(name);
	s->fd = -1;
	s->wake = -1;
	s->step = READ_STEP;
	s->out.fd = -1;
	s->shares = 1;
	s->expected = ROWS_UNKNOWN;
	s->digest = xchecked(XXH3_createState());
	XXH3_128bits_reset(s->digest);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	return s;
}

const struct header *stream_header(const struct stream *s)
{
	return s->joined ? joined_header(s->joined) : &s->header;
}

const char *stream_name(const struct stream *s)
{
	return s->name;
}

int stream_altered(const struct stream *s)
{
	return s->altered;
}

uint64_t stream_rows(const struct stream *s)
{
	return s->rows;
}

int stream_thread_start(struct stream *s, void *(*run)(void *), struct error *e)
{
	if (!s->writing && (s->wake = eventfd(0, EFD_CLOEXEC)) < 0)
		return error_set(e, "%s: eventfd: %s", s->name, strerror(errno));
	int code = pthread_create(&s->thread, NULL, run, s);
	if (code)
		return error_set(e, "%s: cannot start a thread: %s", s->name, strerror(code));
	s->started = 1;
	return 0;
}

void stream_thread_stop(struct stream *s)
{
	if (!s->started)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = 1;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (!s->writing)
		eventfd_write(s->wake, 1);
	pthread_join(s->thread, NULL);
	s->started = 0;
}

static void free_bytes(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){0};
}

void stream_rest(struct stream *s)
{
	stream_thread_stop(s);
	if (s->wake >= 0)
		close(s->wake);
	s->wake = -1;
	for (int i = 0; i < NBUF; i++)
		free_bytes(&s->buf[i]);
	free_bytes(&s->payload);
	free_bytes(&s->packed);
	ZSTD_freeDCtx(s->dctx);
	s->dctx = NULL;
	/* only the header was read: what was read ahead can be read again, but from a pipe */
	if (!s->ended && !s->indexed && lseek(s->fd, (off_t)s->entry[0].packed, SEEK_SET) < 0)
		return;
	free_bytes(&s->in);
	s->at = 0;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	stream_thread_stop(s);
	joined_free(s->joined);
	outfile_abort(&s->out);
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake >= 0)
		close(s->wake);
	for (int i = 0; i < NBUF; i++)
		free(s->buf[i].p);
	free_all(s->in.p, s->payload.p, s->packed.p, s->entry, s->start, s->sum, s->name);
	header_release(&s->header);
	ZSTD_freeDCtx(s->dctx);
	ZSTD_freeCCtx(s->cctx);
	XXH3_freeState(s->digest);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s);
}

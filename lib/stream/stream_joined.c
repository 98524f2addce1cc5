/* Several streams that are read as one. */
#include "stream/stream_impl.h"

#include "base/sort.h"
#include "stream/concat.h"

#include <sys/stat.h>
#include <unistd.h>

struct joined {
	struct concat all; /* how the parts are joined; its header describes the whole */
	size_t n;
	struct stream **part; /* [n] */
	size_t at; /* stream_read: the part that is read */
	size_t *first; /* stream_index: [n + 1] number of the first block of a part */
	uint64_t *cell; /* ... [blocks] number of the first cell of a block */
	struct block raw;
};

/* Is part i a file that was named before? Its cells would count twice. */
static int check_twice(const struct joined *j, size_t i, struct error *e)
{
	struct stat a, b;
	if (fstat(j->part[i]->fd, &a) || !S_ISREG(a.st_mode))
		return 0;
	for (size_t k = 0; k < i; k++)
		if (fstat(j->part[k]->fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
			return error_set(e, "%s: this file is given twice (as %s)", j->part[i]->name, j->part[k]->name);
	return 0;
}

/* Is part i a copy of another one, under another name? Its end says so, if it is a file. */
static int check_copies(const struct joined *j, size_t i, struct error *e)
{
	struct stream *p = j->part[i];
	if (lseek(p->fd, 0, SEEK_CUR) < 0)
		return 0;
	if (p->expected == ROWS_UNKNOWN) /* its end is not whole: why? */
		return stream_index(p, e);
	for (size_t k = 0; k < i && p->expected; k++)
		if (!memcmp(p->want, j->part[k]->want, sizeof p->want))
			return error_set(e, "%s: it has the same cells as %s (digest %016llx...)", p->name, j->part[k]->name,
				(unsigned long long)p->want[1]);
	return 0;
}

/* A part with the vocabulary of the first shares its copy: there may be hundreds of parts. */
static void share_vocab(struct stream *part, const struct vocab *v)
{
	vocab_release(&part->header.vocab);
	part->header.vocab = *v;
}

static int same_vocab(const struct vocab *a, const struct vocab *b)
{
	char x[33], y[33];
	vocab_median_digest(a, x);
	vocab_median_digest(b, y);
	return vocab_equal(a, b) && !strcmp(x, y);
}

static int open_parts(struct joined *j, const char *const *path, struct error *e)
{
	for (size_t i = 0; i < j->n; i++) {
		struct stream *p = stream_open(path[i], e);
		if (!p)
			return -1;
		j->part[i] = p;
		if (check_twice(j, i, e) || check_copies(j, i, e))
			return -1;
		stream_rest(p);
		const struct vocab *first = &j->part[0]->header.vocab;
		if (i && same_vocab(first, &p->header.vocab))
			share_vocab(p, first);
	}
	return 0;
}

struct stream *stream_open_all(const char *const *path, size_t n, char **warning, struct error *e)
{
	*warning = NULL;
	if (n == 1)
		return stream_open(path[0], e);
	FREED char *name = xasprintf("%s and %zu more", path[0], n - 1);
	struct stream *s = stream_new(name);
	struct joined *j = s->joined = xcalloc(1, sizeof *j);
	*j = (struct joined){.n = n, .part = xcalloc(n, sizeof *j->part)};
	FREED const struct header **h = xmalloc(n * sizeof *h);
	FREED const char **names = xmalloc(n * sizeof *names);
	int bad = open_parts(j, path, e);
	for (size_t i = 0; i < n && !bad; i++) {
		h[i] = &j->part[i]->header;
		names[i] = j->part[i]->name;
	}
	bad = bad || concat_init(&j->all, h, names, n, warning, e);
	if (bad) {
		stream_free(s);
		return NULL;
	}
	for (size_t i = 1; i < n; i++)
		if (j->part[i]->header.vocab.id != j->part[0]->header.vocab.id)
			share_vocab(j->part[i], &j->part[0]->header.vocab);
	return s;
}

void joined_free(struct joined *j)
{
	if (!j)
		return;
	for (size_t i = j->n; i-- > 0;) {
		struct stream *p = j->part[i];
		if (p && i && p->header.vocab.id == j->part[0]->header.vocab.id)
			p->header.vocab = (struct vocab){0}; /* the first part's */
		stream_free(p);
	}
	concat_release(&j->all);
	block_release(&j->raw);
	free_all(j->part, j->first, j->cell, j);
}

const struct header *joined_header(const struct joined *j)
{
	return &j->all.header;
}

uint64_t stream_expected(const struct stream *s)
{
	const struct joined *j = s->joined;
	uint64_t n = j ? 0 : s->expected;
	for (size_t i = 0; j && i < j->n; i++)
		n = rows_add(n, j->part[i]->expected);
	return n;
}

size_t stream_parts(const struct stream *s)
{
	return s->joined ? s->joined->n : 1;
}

struct stream *stream_part(struct stream *s, size_t i)
{
	return s->joined ? s->joined->part[i] : s;
}

int joined_read(struct stream *s, struct block *b, struct error *e)
{
	struct joined *j = s->joined;
	for (; j->at < j->n; j->at++) {
		struct stream *p = j->part[j->at];
		int got = stream_read(p, &j->raw, e);
		s->altered = p->altered;
		if (got < 0)
			return -1;
		if (got) {
			if (concat_block(&j->all, j->at, &j->raw, b, e))
				return -1;
			s->rows += b->rows;
			return 1;
		}
		stream_rest(p);
	}
	return 0;
}

int joined_index(struct stream *s, struct error *e)
{
	struct joined *j = s->joined;
	size_t blocks = 0;
	j->first = xcalloc(j->n + 1, sizeof *j->first);
	for (size_t i = 0; i < j->n; i++) {
		struct stream *p = j->part[i];
		if (stream_index(p, e))
			return -1;
		stream_rest(p);
		blocks += stream_blocks(p);
		j->first[i + 1] = blocks;
	}
	j->cell = xmalloc(blocks * sizeof *j->cell);
	for (size_t i = 0, at = 0; i < j->n; i++)
		for (size_t k = 0; k < stream_blocks(j->part[i]); k++) {
			j->cell[at++] = s->rows;
			s->rows += stream_block_rows(j->part[i], k);
		}
	s->indexed = 1;
	return 0;
}

size_t joined_blocks(const struct joined *j)
{
	return j->first[j->n];
}

struct stream *joined_block(const struct joined *j, size_t *k, size_t *part)
{
	*part = LEADING(j->n - 1, i, j->first[i + 1] <= *k);
	*k -= j->first[*part];
	return j->part[*part];
}

int joined_read_at(struct stream *s, size_t k, struct block *b, struct error *e)
{
	struct joined *j = s->joined;
	size_t i, at = k;
	struct stream *p = joined_block(j, &at, &i);
	if (stream_read_block(p, s, at, &j->raw, e))
		return -1;
	j->all.cells = j->cell[k];
	return concat_block(&j->all, i, &j->raw, b, e);
}

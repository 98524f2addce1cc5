#include "anndata/spill.h"

#include "base/file.h"

#include <errno.h>
#include <unistd.h>

void spill_init(struct spill *s, uint32_t nrow, size_t max)
{
	*s = (struct spill){.nrow = nrow, .fd = -1, .max = max ? max : SPILL_ENTRIES};
	s->row_n = xcalloc(nrow, sizeof *s->row_n);
	/* untouched pages cost nothing, so small matrices stay small */
	s->entry = xmalloc(s->max * sizeof *s->entry);
	s->sorted = xmalloc(s->max * sizeof *s->sorted);
}

void spill_release(struct spill *s)
{
	for (size_t i = 0; i < s->nrun; i++)
		free(s->run[i].buf);
	if (s->entry && s->fd >= 0)
		close(s->fd);
	free_all(s->run, s->row_n, s->entry, s->sorted);
	*s = (struct spill){0};
}

/* Stable radix sort of the buffer by row. */
static void sort_rows(struct spill *s)
{
	struct spill_entry *from = s->entry, *to = s->sorted;
	for (int shift = 0; shift < 32 && (s->nrow - 1) >> shift; shift += 11) {
		size_t at[2049] = {0};
		for (size_t i = 0; i < s->n; i++)
			at[(from[i].row >> shift & 2047) + 1]++;
		for (int b = 0; b < 2048; b++)
			at[b + 1] += at[b];
		for (size_t i = 0; i < s->n; i++)
			to[at[from[i].row >> shift & 2047]++] = from[i];
		struct spill_entry *swap = from;
		from = to;
		to = swap;
	}
	s->entry = from;
	s->sorted = to;
}

static int write_run(struct spill *s, struct error *e)
{
	if (s->fd < 0 && (s->fd = file_spill(e)) < 0)
		return -1;
	sort_rows(s);
	const char *p = (const char *)s->entry;
	size_t left = s->n * sizeof *s->entry;
	off_t at = (off_t)(s->written * sizeof *s->entry);
	while (left) {
		ssize_t k = pwrite(s->fd, p, left, at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return error_set(
				e, "writing a temporary file: %s; TMPDIR names the directory used", k < 0 ? strerror(errno) : "no space");
		p += k;
		at += k;
		left -= (size_t)k;
	}
	grow(s->run, s->run_cap, s->nrun + 1);
	s->run[s->nrun++] = (struct spill_run){.next = s->written, .end = s->written + s->n};
	s->written += s->n;
	s->n = 0;
	return 0;
}

int spill_add(struct spill *s, uint32_t row, uint32_t col, uint32_t value, struct error *e)
{
	if (s->n == s->max && write_run(s, e))
		return -1;
	s->entry[s->n++] = (struct spill_entry){row, col, value};
	s->row_n[row]++;
	return 0;
}

int spill_finish(struct spill *s, struct error *e)
{
	if (s->nrun && s->n && write_run(s, e))
		return -1;
	s->reading = 1;
	if (s->nrun) {
		free_all(s->sorted, s->entry);
		s->sorted = NULL;
		s->entry = xmalloc(1);
		s->ahead = s->max / s->nrun < 8192 ? s->max / s->nrun + 1 : 8192;
		for (size_t i = 0; i < s->nrun; i++)
			s->run[i].buf = xmalloc(s->ahead * sizeof *s->run[i].buf);
		return 0;
	}
	/* all in memory: one run that is its own buffer */
	sort_rows(s);
	grow(s->run, s->run_cap, 1);
	s->run[s->nrun++] = (struct spill_run){.buf = s->entry, .n = s->n};
	s->entry = xmalloc(1);
	return 0;
}

size_t spill_plan(const struct spill *s, size_t max_rows, size_t max_entries, size_t *entries)
{
	size_t rows = 0, n = 0;
	while (rows < max_rows && s->at_row + rows < s->nrow) {
		size_t k = s->row_n[s->at_row + rows];
		if (rows && n + k > max_entries)
			break;
		n += k;
		rows++;
	}
	*entries = n;
	return rows;
}

static int refill(struct spill *s, struct spill_run *r, struct error *e)
{
	r->at = 0;
	r->n = r->end - r->next < s->ahead ? r->end - r->next : s->ahead;
	const char *why = file_read_at(s->fd, r->buf, r->n * sizeof *r->buf, r->next * sizeof *r->buf, "it is too short");
	r->next += r->n;
	return why ? error_set(e, "reading a temporary file: %s", why) : 0;
}

int spill_read(struct spill *s, size_t rows, uint64_t *start, uint32_t *col, uint32_t *value, struct error *e)
{
	uint64_t end_row = (uint64_t)s->at_row + rows;
	start[0] = 0;
	for (size_t i = 0; i < rows; i++)
		start[i + 1] = start[i] + s->row_n[s->at_row + i];
	for (size_t k = 0; k < s->nrun; k++) {
		struct spill_run *r = s->run + k;
		for (;;) {
			if (r->at == r->n) {
				if (r->next == r->end)
					break;
				if (refill(s, r, e))
					return -1;
			}
			struct spill_entry x = r->buf[r->at];
			if (x.row >= end_row)
				break;
			uint64_t at = start[x.row - s->at_row]++;
			col[at] = x.col;
			value[at] = x.value;
			r->at++;
		}
	}
	/* start[] now holds the ends: shift it back */
	memmove(start + 1, start, rows * sizeof *start);
	start[0] = 0;
	s->at_row += (uint32_t)rows;
	return 0;
}

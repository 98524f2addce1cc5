#include "anndata/countmat_impl.h"

#define TALL_ENTRIES ((uint64_t)4 << 20) /* a band of dense rows may hold this many values */

void countrows_release(struct countrows *r)
{
	free_all(r->start, r->gene, r->count, r->total);
	*r = (struct countrows){0};
}

static int open_arrays(struct countmat *m, struct store *s, const char *path, struct error *e)
{
	char *name[3] = {xasprintf("%s/data", path), xasprintf("%s/indices", path), xasprintf("%s/indptr", path)};
	int r = h5array_open(&m->data, s, name[0], e) || h5array_open(&m->indices, s, name[1], e) ||
		h5array_open(&m->indptr, s, name[2], e);
	for (int i = 0; i < 3; i++)
		free(name[i]);
	if (r)
		return -1;
	const struct h5array *a[3] = {&m->data, &m->indices, &m->indptr};
	for (int i = 0; i < 3; i++)
		if (a[i]->ndim != 1)
			return error_set(e, "%s: %d dimensions, expected 1", a[i]->where, a[i]->ndim);
	for (int i = 1; i < 3; i++)
		if (a[i]->type == NUMBER_F32 || a[i]->type == NUMBER_F64)
			return error_set(e, "%s: holds floating point, expected integers", a[i]->where);
	uint64_t major = m->layout == LAYOUT_ROWS ? m->nrow : m->ncol;
	if (m->indptr.dim[0] != major + 1)
		return error_set(e, "%s: %" PRIu64 " elements, expected %" PRIu64 " (one more than the %s)", m->indptr.where,
			m->indptr.dim[0], major + 1, m->layout == LAYOUT_ROWS ? "cells" : "genes");
	if (m->data.dim[0] != m->indices.dim[0])
		return error_set(e, "%s: %" PRIu64 " elements, but indices has %" PRIu64, m->data.where, m->data.dim[0], m->indices.dim[0]);
	m->nnz = m->data.dim[0];
	int64_t ends[2];
	if (h5array_i64(&m->indptr, 0, 1, &ends[0], 1, e) || h5array_i64(&m->indptr, major, 1, &ends[1], 1, e))
		return -1;
	if (ends[0] != 0 || ends[1] < 0 || (uint64_t)ends[1] != m->nnz)
		return error_set(e, "%s: runs from %" PRId64 " to %" PRId64 ", expected from 0 to %" PRIu64 " (the length of data)",
			m->indptr.where, ends[0], ends[1], m->nnz);
	return 0;
}

static int check_shape(const struct countmat *m, struct error *e)
{
	if (m->ncol > GENES_MAX)
		return error_set(e, "%s: %" PRIu64 " genes, expected at most %u", m->where, m->ncol, GENES_MAX);
	if (m->nrow >= UINT32_MAX && m->layout != LAYOUT_ROWS)
		return error_set(e, "%s: %" PRIu64 " cells, expected fewer than 2^32 in this layout", m->where, m->nrow);
	return 0;
}

static int open_group(struct countmat *m, struct store *s, const char *path, struct error *e)
{
	RELEASED(texts_release) struct texts t = {0};
	int64_t shape[2] = {0};
	if (store_attribute_texts(s, path, "encoding-type", &t) && store_attribute_texts(s, path, "h5sparse_format", &t))
		texts_clear(&t);
	FREED char *format = t.n ? texts_dup(&t, 0) : xstrdup("");
	int known = store_attribute_numbers(s, path, "shape", shape, 2) == 0 ||
		store_attribute_numbers(s, path, "h5sparse_shape", shape, 2) == 0;
	int r = 0;
	if (strncmp(format, "csr", 3) && strncmp(format, "csc", 3))
		r = error_set(e, "%s: encoding '%.31s', expected csr_matrix or csc_matrix", m->where, format);
	else if (!known || shape[0] < 0 || shape[1] < 0)
		r = error_set(e, "%s: no attribute shape of two numbers", m->where);
	m->layout = r || format[2] == 'r' ? LAYOUT_ROWS : LAYOUT_COLUMNS;
	m->nrow = (uint64_t)shape[0];
	m->ncol = (uint64_t)shape[1];
	return r || check_shape(m, e) || open_arrays(m, s, path, e) ? -1 : 0;
}

static int open_dense(struct countmat *m, struct error *e)
{
	struct h5array *d = &m->data;
	m->layout = LAYOUT_DENSE;
	m->nrow = d->dim[m->across];
	m->ncol = d->dim[!m->across];
	m->nnz = m->nrow * m->ncol;
	m->tall = d->chunk[0] && d->chunk[m->across] * m->ncol > TALL_ENTRIES;
	if (m->across && !d->chunk[0] && m->nnz) { /* one piece: some genes of all cells at a time */
		d->chunk[0] = TALL_ENTRIES / m->nrow ? TALL_ENTRIES / m->nrow : 1;
		d->chunk[0] = d->chunk[0] < m->ncol ? d->chunk[0] : m->ncol;
		d->chunk[1] = m->nrow;
		m->tall = 1;
	}
	return check_shape(m, e);
}

int countmat_open(struct countmat *m, struct store *s, const char *path, int across, struct error *e)
{
	*m = (struct countmat){.where = xasprintf("%s: %s", s->name, path), .across = across};
	enum store_type type = across ? STORE_ARRAY : store_type(s, path);
	int r = -1;
	if (type == STORE_NONE)
		error_set(e, "%s: missing", m->where);
	else if (type == STORE_GROUP)
		r = open_group(m, s, path, e);
	else if (h5array_open(&m->data, s, path, e) == 0)
		r = m->data.ndim == 2
			? open_dense(m, e)
			: error_set(e, "%s: 1 dimension, expected 2 (%s)", m->where, across ? "genes, cells" : "cells, genes");
	if (r)
		countmat_release(m);
	return r;
}

int countmat_open_rows(struct countmat *m, struct store *s, const char *path, uint64_t nrow, uint64_t ncol, struct error *e)
{
	*m = (struct countmat){.where = xasprintf("%s: %s", s->name, path), .layout = LAYOUT_ROWS, .nrow = nrow, .ncol = ncol};
	int r = check_shape(m, e) || open_arrays(m, s, path, e) ? -1 : 0;
	if (r)
		countmat_release(m);
	return r;
}

void countmat_entries(struct countmat *m, const char *where, uint64_t nrow, uint64_t ncol, uint64_t nnz)
{
	*m = (struct countmat){.where = xstrdup(where), .layout = LAYOUT_ENTRIES, .nrow = nrow, .ncol = ncol};
	m->nnz = nnz;
	countmat_spill_init(m);
}

void countmat_release(struct countmat *m)
{
	free(m->where);
	h5array_release(&m->data);
	h5array_release(&m->indices);
	h5array_release(&m->indptr);
	spill_release(&m->spill);
	free_all(m->values, m->by_gene, m->start, m->ptr);
	*m = (struct countmat){0};
}

uint64_t countmat_spill_bytes(const struct countmat *m)
{
	int spills = m->layout == LAYOUT_COLUMNS || (m->layout == LAYOUT_DENSE && m->tall);
	return spills && m->nnz > SPILL_ENTRIES ? m->nnz * sizeof(struct spill_entry) : 0;
}

static void make_room(struct countrows *r, size_t rows, size_t entries)
{
	grow(r->start, r->start_cap, rows + 1);
	grow(r->total, r->total_cap, rows);
	r->gene = grow_bytes(r->gene, &r->gene_cap, (entries + 1) * (r->narrow ? 2 : 4), 1);
	r->count = grow_bytes(r->count, &r->count_cap, (entries + 1) * 4, 1);
	r->n = rows;
}

/* How many rows come next; *ptr: their part of indptr, of which more is read ahead. -1 error. */
static int64_t plan_rows(struct countmat *m, size_t max_rows, size_t entries, const int64_t **ptr, int threads, struct error *e)
{
	size_t n = m->nrow - m->row < max_rows ? m->nrow - m->row : max_rows, ahead = m->ptr_end - m->row;
	const int64_t *p = ahead ? m->ptr + (m->row - m->ptr_row) : m->ptr; /* no ptr yet: 0 is not added to NULL */
	if (ahead < n && (!ahead || (uint64_t)p[ahead] - (uint64_t)p[0] <= entries)) {
		grow(m->ptr, m->ptr_cap, n + 1);
		if (h5array_i64(&m->indptr, m->row, n + 1, m->ptr, threads, e))
			return -1;
		p = m->ptr;
		m->ptr_row = m->row;
		m->ptr_end = m->row + (ahead = n);
	}
	*ptr = p;
	for (size_t i = 0; i < n && i < ahead; i++) {
		int64_t a = p[i], b = p[i + 1];
		if (b < a || (uint64_t)b > m->nnz)
			return error_set(e, "%s: element %" PRIu64 " is %" PRId64 " after %" PRId64 ", expected a rise to at most %" PRIu64,
				m->indptr.where, m->row + i + 1, b, a, m->nnz);
		if ((uint64_t)(b - a) > countmat_row_max(m))
			return error_set(e, "%s: cell %" PRIu64 " has %" PRId64 " entries, but there are %" PRIu64 " genes", m->where,
				m->row + i, b - a, m->ncol);
		if (i && (uint64_t)(b - p[0]) > entries)
			return (int64_t)i;
	}
	return (int64_t)(n < ahead ? n : ahead);
}

/* The rows' values and indices as they are stored, into m->values. */
static int next_sparse(struct countmat *m, size_t max_rows, size_t entries, struct countrows *r, int threads, struct error *e)
{
	const int64_t *ptr;
	int64_t rows = plan_rows(m, max_rows, entries, &ptr, threads, e);
	if (rows < 0)
		return -1;
	uint64_t first = (uint64_t)ptr[0];
	size_t n = (uint64_t)ptr[rows] - first;
	if (first != m->entry)
		return error_set(e, "%s: element %" PRIu64 " is %" PRIu64 ", expected %" PRIu64, m->indptr.where, m->row, first, m->entry);
	make_room(r, (size_t)rows, n);
	for (int64_t i = 0; i <= rows; i++)
		r->start[i] = (uint64_t)ptr[i] - first;
	m->half = n * m->indices.size;
	m->half += -m->half & 63;
	m->values = grow_bytes(m->values, &m->values_cap, m->half + n * m->data.size + 1, 1);
	m->entry = (uint64_t)ptr[rows];
	if (h5array_read(&m->indices, first, n, m->values, threads, e) ||
		h5array_read(&m->data, first, n, (char *)m->values + m->half, threads, e))
		return -1;
	for (int64_t i = 0; i < rows && m->indices.absent; i++)
		for (uint64_t k = r->start[i]; k + 1 < r->start[i + 1]; k++)
			if (countmat_absent_twice(m, m->values, k, m->row + (uint64_t)i, e))
				return -1;
	return 0;
}

int countmat_dense(struct countmat *m, uint64_t row, size_t n, void *out, int threads, struct error *e)
{
	struct h5array *d = &m->data;
	if (!m->across)
		return h5array_read(d, row, n, out, threads, e);
	m->by_gene = grow_bytes(m->by_gene, &m->by_gene_cap, n * m->ncol * d->size + 1, 1);
	if (h5array_box(d, 0, m->ncol, row, n, m->by_gene, threads, e))
		return -1;
	const char *from = m->by_gene;
	for (size_t g = 0; g < m->ncol; g++)
		for (size_t c = 0; c < n; c++, from += d->size) {
			char *to = (char *)out + (c * m->ncol + g) * d->size;
			if (d->size == 4) /* mostly; much faster than a size that the compiler does not know */
				memcpy(to, from, 4);
			else
				memcpy(to, from, d->size);
		}
	return 0;
}

static int next_dense(struct countmat *m, size_t max_rows, size_t entries, struct countrows *r, int threads, struct error *e)
{
	struct h5array *d = &m->data;
	size_t rows = entries / (m->ncol + 1) + 1;
	if (rows > max_rows)
		rows = max_rows;
	uint64_t step = d->chunk[m->across];
	if (step)
		rows = (rows + step - 1) / step * step;
	if (rows > m->nrow - m->row)
		rows = m->nrow - m->row;
	size_t n = rows * m->ncol;
	make_room(r, rows, n);
	for (size_t i = 0; i <= rows; i++)
		r->start[i] = i * m->ncol;
	m->half = 0;
	m->values = grow_bytes(m->values, &m->values_cap, n * d->size + 1, 1);
	return countmat_dense(m, m->row, rows, m->values, threads, e);
}

static int next_spilled(struct countmat *m, size_t max_rows, size_t entries, struct countrows *r, struct error *e)
{
	if (!m->spill.reading && spill_finish(&m->spill, e))
		return -1;
	size_t n, rows = spill_plan(&m->spill, max_rows, entries, &n);
	make_room(r, rows, n);
	m->half = n * 4;
	m->values = grow_bytes(m->values, &m->values_cap, 2 * m->half + 1, 1);
	uint32_t *stored = m->values;
	return spill_read(&m->spill, rows, r->start, stored, stored + n, e);
}

int countmat_next(struct countmat *m, const uint32_t *map, int identity, size_t max_rows, size_t entries, struct countrows *r, int threads,
	struct error *e)
{
	int columns = m->layout == LAYOUT_COLUMNS, tall = m->layout == LAYOUT_DENSE && m->tall;
	if ((columns || tall) && !m->spilled && countmat_spill_fill(m, threads, e))
		return -1;
	r->n = 0;
	if (m->row == m->nrow)
		return 0;
	int bad = m->spilled               ? next_spilled(m, max_rows, entries, r, e)
		: m->layout == LAYOUT_ROWS ? next_sparse(m, max_rows, entries, r, threads, e)
					   : next_dense(m, max_rows, entries, r, threads, e);
	if (bad || countmat_finish_rows(m, map, identity, r, threads, e))
		return -1;
	m->row += r->n;
	return (int)r->n;
}

/*
 * Matrices that are not stored by rows, into the spill that hands them back by rows.
 */
#include "anndata/countmat_impl.h"

#define COLUMN_ENTRIES ((size_t)1 << 20) /* entries of sparse columns read at a time */

void countmat_spill_init(struct countmat *m)
{
	spill_init(&m->spill, (uint32_t)m->nrow, m->nnz < SPILL_ENTRIES ? (size_t)m->nnz + 1 : 0);
	m->spilled = 1;
}

size_t countmat_spill_values(struct countmat *m, enum number_type type, const void *in, size_t n, uint32_t *out)
{
	if (!m->unlog)
		return number_rounded(type, in, n, m->round, out, &m->off);
	for (size_t i = 0; i < n; i++) {
		double v = number_at(type, in, i);
		float stored = (float)v;
		if (!number_is_fraction(v))
			return i;
		memcpy(out + i, &stored, 4);
	}
	return n;
}

/* Sparse columns into the spill, about COLUMN_ENTRIES entries at a time, columns in order. */
static int spill_columns(struct countmat *m, int threads, struct error *e)
{
	uint64_t ncol = m->ncol, entry = 0, cell, col = 0;
	FREED int64_t *ptr = xmalloc((ncol + 1) * sizeof *ptr);
	FREED uint32_t *row = xmalloc(COLUMN_ENTRIES * sizeof *row), *count = xmalloc(COLUMN_ENTRIES * sizeof *count);
	FREED void *buf = xmalloc(COLUMN_ENTRIES * 8);
	if (h5array_i64(&m->indptr, 0, ncol + 1, ptr, threads, e))
		return -1;
	for (uint64_t i = 0; i < ncol; i++)
		if (ptr[i + 1] < ptr[i] || (uint64_t)ptr[i + 1] > m->nnz)
			return error_set(e, "%s: element %" PRIu64 " is %" PRId64 " after %" PRId64 ", expected a rise to at most %" PRIu64,
				m->indptr.where, i + 1, ptr[i + 1], ptr[i], m->nnz);
	for (size_t n, bad; entry < m->nnz; entry += n) {
		n = m->nnz - entry < COLUMN_ENTRIES ? m->nnz - entry : COLUMN_ENTRIES;
		if (h5array_read(&m->data, entry, n, buf, threads, e))
			return -1;
		if ((bad = countmat_spill_values(m, m->data.type, buf, n, count)) < n)
			return countmat_place(m, entry + bad, &cell, &col, e)
				? -1
				: countmat_bad_value(m, cell, col, number_at(m->data.type, buf, bad), e);
		if (h5array_read(&m->indices, entry, n, buf, threads, e))
			return -1;
		if ((bad = number_indices(m->indices.type, buf, n, m->nrow, row)) < n)
			return error_set(e, "%s: element %" PRIu64 " is %.0f, expected a cell number below %" PRIu64, m->indices.where,
				entry + bad, number_at(m->indices.type, buf, bad), m->nrow);
		for (size_t i = 0; i < n; i++) {
			while ((uint64_t)ptr[col + 1] <= entry + i)
				col++;
			if (m->indices.absent && i + 1 < n && (uint64_t)ptr[col + 1] > entry + i + 1 &&
				countmat_absent_twice(m, buf, i, col, e))
				return -1;
			if (count[i] && spill_add(&m->spill, row[i], (uint32_t)col, count[i], e))
				return -1;
		}
	}
	return 0;
}

static int spill_chunks(struct countmat *m, struct error *e)
{
	struct h5array *d = &m->data;
	uint64_t box[4], chunks = h5array_chunks(d);
	size_t wide = d->chunk[1], n = d->chunk[0] * wide;
	FREED void *buf = xmalloc(n * d->size);
	FREED uint32_t *count = xmalloc(wide * sizeof *count);
	for (uint64_t k = 0; k < chunks; k++) {
		if (h5array_chunk(d, k, box, buf, e))
			return -1;
		for (uint64_t i = 0; i < box[2]; i++) {
			const char *line = (const char *)buf + i * wide * d->size;
			size_t bad = countmat_spill_values(m, d->type, line, box[3], count);
			uint64_t at[2] = {box[0] + i, box[1] + bad};
			if (bad < box[3])
				return countmat_bad_value(m, at[m->across], at[!m->across], number_at(d->type, line, bad), e);
			for (at[1] = box[1]; at[1] < box[1] + box[3]; at[1]++) {
				uint32_t value = count[at[1] - box[1]];
				if (value && spill_add(&m->spill, (uint32_t)at[m->across], (uint32_t)at[!m->across], value, e))
					return -1;
			}
		}
	}
	return 0;
}

int countmat_spill_fill(struct countmat *m, int threads, struct error *e)
{
	countmat_spill_init(m);
	return m->layout == LAYOUT_COLUMNS ? spill_columns(m, threads, e) : spill_chunks(m, e);
}

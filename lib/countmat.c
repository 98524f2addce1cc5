#include "countmat.h"

#include "pool.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX INT32_MAX
#define TALL_ENTRIES ((uint64_t)4 << 20)        /* a band of dense rows may hold this many values */
#define COLUMN_ENTRIES ((size_t)1 << 20)        /* entries read at a time while turning columns into rows */
#define PROBE ((size_t)1 << 16)                 /* values looked at in each of three places */

void countrows_release(struct countrows *r)
{
	free(r->start);
	free(r->gene);
	free(r->count);
	free(r->total);
	*r = (struct countrows){0};
}

static int open_arrays(struct countmat *m, hid_t loc, const char *path, const char *file, struct error *e)
{
	char *name[3] = {xasprintf("%s/data", path), xasprintf("%s/indices", path), xasprintf("%s/indptr", path)};
	int r = h5array_open(&m->data, loc, name[0], file, e) || h5array_open(&m->indices, loc, name[1], file, e) ||
		h5array_open(&m->indptr, loc, name[2], file, e);
	for (int i = 0; i < 3; i++)
		free(name[i]);
	if (r)
		return -1;
	const struct h5array *a[3] = {&m->data, &m->indices, &m->indptr};
	for (int i = 0; i < 3; i++)
		if (a[i]->ndim != 1)
			return error_set(e, "%s: %d dimensions, expected 1", a[i]->where, a[i]->ndim);
	for (int i = 1; i < 3; i++)
		if (a[i]->type == NUM_F32 || a[i]->type == NUM_F64)
			return error_set(e, "%s: holds floating point, expected integers", a[i]->where);
	uint64_t major = m->layout == LAYOUT_ROWS ? m->nrow : m->ncol;
	if (m->indptr.dim[0] != major + 1)
		return error_set(e, "%s: %" PRIu64 " elements, expected %" PRIu64 " (one more than the %s)", m->indptr.where,
				 m->indptr.dim[0], major + 1, m->layout == LAYOUT_ROWS ? "cells" : "genes");
	if (m->data.dim[0] != m->indices.dim[0])
		return error_set(e, "%s: %" PRIu64 " elements, but indices has %" PRIu64, m->data.where, m->data.dim[0],
				 m->indices.dim[0]);
	m->nnz = m->data.dim[0];
	int64_t ends[2];
	if (h5array_i64(&m->indptr, 0, 1, &ends[0], 1, e) || h5array_i64(&m->indptr, major, 1, &ends[1], 1, e))
		return -1;
	if (ends[0] != 0 || ends[1] < 0 || (uint64_t)ends[1] != m->nnz)
		return error_set(e, "%s: runs from %" PRId64 " to %" PRId64 ", expected from 0 to %" PRIu64
				 " (the length of data)", m->indptr.where, ends[0], ends[1], m->nnz);
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

/* Text of a string attribute into s, or "" */
static void text_attribute(hid_t obj, const char *name, char *s, size_t cap)
{
	s[0] = 0;
	hid_t a = H5Aexists(obj, name) > 0 ? H5Aopen(obj, name, H5P_DEFAULT) : -1;
	if (a < 0)
		return;
	hid_t type = H5Aget_type(a), space = H5Aget_space(a);
	if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1) {
		if (H5Tis_variable_str(type) > 0) {
			char *v = NULL;
			if (H5Aread(a, type, &v) >= 0 && v)
				snprintf(s, cap, "%s", v);
			H5Dvlen_reclaim(type, space, H5P_DEFAULT, &v);
		} else if (H5Tget_size(type) < 4096) {
			char buf[4097] = "";
			if (H5Aread(a, type, buf) >= 0)
				snprintf(s, cap, "%s", buf);
		}
	}
	if (type >= 0)
		H5Tclose(type);
	if (space >= 0)
		H5Sclose(space);
	H5Aclose(a);
}

static int shape_attribute(hid_t obj, uint64_t shape[2])
{
	const char *names[2] = {"shape", "h5sparse_shape"};
	for (int i = 0; i < 2; i++) {
		hid_t a = H5Aexists(obj, names[i]) > 0 ? H5Aopen(obj, names[i], H5P_DEFAULT) : -1;
		if (a < 0)
			continue;
		hid_t space = H5Aget_space(a), type = H5Aget_type(a);
		int64_t v[2] = {-1, -1};
		int ok = H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == 2 &&
			 H5Aread(a, H5T_NATIVE_INT64, v) >= 0 && v[0] >= 0 && v[1] >= 0;
		H5Sclose(space);
		H5Tclose(type);
		H5Aclose(a);
		shape[0] = (uint64_t)v[0];
		shape[1] = (uint64_t)v[1];
		return ok ? 0 : -1;
	}
	return -1;
}

static int open_group(struct countmat *m, hid_t loc, const char *path, const char *file, struct error *e)
{
	hid_t g = H5Gopen2(loc, path, H5P_DEFAULT);
	if (g < 0)
		return h5_error(e, m->where, "opening the group");
	char format[32];
	text_attribute(g, "encoding-type", format, sizeof format);
	if (!*format)
		text_attribute(g, "h5sparse_format", format, sizeof format);
	uint64_t shape[2] = {0, 0};
	int known = shape_attribute(g, shape) == 0;
	H5Gclose(g);
	if (strncmp(format, "csr", 3) && strncmp(format, "csc", 3))
		return error_set(e, "%s: encoding '%s', expected csr_matrix or csc_matrix", m->where, format);
	if (!known)
		return error_set(e, "%s: no attribute shape of two numbers", m->where);
	m->layout = format[2] == 'r' ? LAYOUT_ROWS : LAYOUT_COLUMNS;
	m->nrow = shape[0];
	m->ncol = shape[1];
	return check_shape(m, e) || open_arrays(m, loc, path, file, e) ? -1 : 0;
}

int countmat_open(struct countmat *m, hid_t loc, const char *path, const char *file, struct error *e)
{
	*m = (struct countmat){.where = xasprintf("%s: %s", file, path)};
	H5O_info_t info;
	int r = -1;
	if (H5Oget_info_by_name2(loc, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
		h5_error(e, m->where, "opening");
	} else if (info.type == H5O_TYPE_GROUP) {
		r = open_group(m, loc, path, file, e);
	} else if (h5array_open(&m->data, loc, path, file, e) == 0) {
		const struct h5array *d = &m->data;
		m->layout = LAYOUT_DENSE;
		m->nrow = d->dim[0];
		m->ncol = d->dim[1];
		m->nnz = m->nrow * m->ncol;
		m->tall = d->chunk[0] && d->chunk[0] * m->ncol > TALL_ENTRIES;
		r = d->ndim == 2 ? check_shape(m, e) : error_set(e, "%s: 1 dimension, expected 2 (cells, genes)", m->where);
	}
	if (r)
		countmat_release(m);
	return r;
}

int countmat_open_rows(struct countmat *m, hid_t loc, const char *path, const char *file, uint64_t nrow, uint64_t ncol,
		       struct error *e)
{
	*m = (struct countmat){.where = xasprintf("%s: %s", file, path), .layout = LAYOUT_ROWS, .nrow = nrow, .ncol = ncol};
	int r = check_shape(m, e) || open_arrays(m, loc, path, file, e) ? -1 : 0;
	if (r)
		countmat_release(m);
	return r;
}

static void start_spill(struct countmat *m)
{
	spill_init(&m->spill, (uint32_t)m->nrow, m->nnz < SPILL_ENTRIES ? (size_t)m->nnz + 1 : 0);
	m->spilled = 1;
}

void countmat_entries(struct countmat *m, const char *where, uint64_t nrow, uint64_t ncol, uint64_t nnz)
{
	*m = (struct countmat){.where = xstrdup(where), .layout = LAYOUT_ENTRIES, .nrow = nrow, .ncol = ncol};
	m->nnz = nnz;
	start_spill(m);
}

void countmat_release(struct countmat *m)
{
	free(m->where);
	h5array_release(&m->data);
	h5array_release(&m->indices);
	h5array_release(&m->indptr);
	spill_release(&m->spill);
	free(m->values);
	free(m->start);
	free(m->ptr);
	*m = (struct countmat){0};
}

/*
 * Values to counts. Returns n, or the index of the first value that is no count. Written so that the loop over a
 * clean stretch has no branch: the exact test is made once more only where a stretch holds a bad value.
 */
#define FLOATS(ctype, itype, in, out, n) do { \
	const ctype *v_ = in; \
	unsigned bad_ = 0; \
	for (size_t i_ = 0; i_ < (n); i_++) { \
		ctype x_ = v_[i_]; \
		/* 2^31 - 128 is the largest float below 2^31; NaN fails every comparison */ \
		int in_range_ = x_ >= 0 && x_ <= (ctype)2147483520.0; \
		itype c_ = (itype)(in_range_ ? x_ : 0); \
		out[i_] = (uint32_t)c_; \
		bad_ |= !in_range_ | ((ctype)c_ != x_); \
	} \
	if (bad_) \
		for (size_t i_ = 0; i_ < (n); i_++) \
			if (!(v_[i_] >= 0 && v_[i_] <= (ctype)2147483520.0 && v_[i_] == floor(v_[i_]))) \
				return i_; \
} while (0)

#define INTEGERS(ctype, in, out, n) do { \
	const ctype *v_ = in; \
	unsigned bad_ = 0; \
	for (size_t i_ = 0; i_ < (n); i_++) { \
		bad_ |= (uint64_t)v_[i_] > COUNT_MAX;   /* negative ones too: they wrap around */ \
		out[i_] = (uint32_t)v_[i_]; \
	} \
	if (bad_) \
		for (size_t i_ = 0; i_ < (n); i_++) \
			if ((uint64_t)v_[i_] > COUNT_MAX) \
				return i_; \
} while (0)

/*
 * The common case, a float count below 2^23, without a branch: adding 2^23 rounds to a whole number and leaves it in the low
 * bits. Returns 0 when it is such a count.
 */
static inline uint32_t small_float(float v, uint32_t *count)
{
	float shifted = v + 0x1p23f;
	uint32_t bits;
	memcpy(&bits, &shifted, 4);
	*count = bits & 0x7fffff;
	/* the bits of 2^23 .. 2^24 all start with 0x4b0: NaN, negative and large values differ there */
	return (bits ^ 0x4b000000) >> 23 | (uint32_t)(shifted - 0x1p23f != v);
}

static int small_floats(const float *restrict v, size_t n, uint32_t *restrict out)
{
	uint32_t bad = 0;
	for (size_t i = 0; i < n; i++)
		bad |= small_float(v[i], out + i);
	return bad != 0;
}

static size_t to_counts(enum num_type type, const void *in, size_t n, uint32_t *out)
{
	switch (type) {
	case NUM_F32:
		if (small_floats(in, n, out) == 0)
			break;
		FLOATS(float, int32_t, in, out, n);
		break;
	case NUM_F64: FLOATS(double, int32_t, in, out, n); break;
	case NUM_I8: INTEGERS(int8_t, in, out, n); break;
	case NUM_U8: INTEGERS(uint8_t, in, out, n); break;
	case NUM_I16: INTEGERS(int16_t, in, out, n); break;
	case NUM_U16: INTEGERS(uint16_t, in, out, n); break;
	case NUM_I32: INTEGERS(int32_t, in, out, n); break;
	case NUM_U32: INTEGERS(uint32_t, in, out, n); break;
	case NUM_I64: INTEGERS(int64_t, in, out, n); break;
	case NUM_U64: INTEGERS(uint64_t, in, out, n); break;
	}
	return n;
}

/* Indices below limit; returns n, or the index of the first one outside. */
static size_t to_indices(enum num_type type, const void *in, size_t n, uint64_t limit, uint32_t *out)
{
#define INDICES(ctype) do { \
	const ctype *v = in; \
	unsigned bad = 0; \
	for (size_t i = 0; i < n; i++) { \
		bad |= (uint64_t)v[i] >= limit; \
		out[i] = (uint32_t)v[i]; \
	} \
	for (size_t i = 0; bad && i < n; i++) \
		if ((uint64_t)v[i] >= limit) \
			return i; \
} while (0)
	switch (type) {
	case NUM_I8: INDICES(int8_t); break;
	case NUM_U8: INDICES(uint8_t); break;
	case NUM_I16: INDICES(int16_t); break;
	case NUM_U16: INDICES(uint16_t); break;
	case NUM_I32: INDICES(int32_t); break;
	case NUM_U32: INDICES(uint32_t); break;
	case NUM_I64: INDICES(int64_t); break;
	case NUM_U64: INDICES(uint64_t); break;
	default: return 0;
	}
	return n;
}

static double value_at(enum num_type type, const void *p, size_t i)
{
	switch (type) {
	case NUM_I8: return ((const int8_t *)p)[i];
	case NUM_U8: return ((const uint8_t *)p)[i];
	case NUM_I16: return ((const int16_t *)p)[i];
	case NUM_U16: return ((const uint16_t *)p)[i];
	case NUM_I32: return ((const int32_t *)p)[i];
	case NUM_U32: return ((const uint32_t *)p)[i];
	case NUM_I64: return (double)((const int64_t *)p)[i];
	case NUM_U64: return (double)((const uint64_t *)p)[i];
	case NUM_F32: return ((const float *)p)[i];
	default: return ((const double *)p)[i];
	}
}

static const char *fault(double v)
{
	return isnan(v) ? "a missing value" : v < 0 ? "a negative value" : v > COUNT_MAX ? "too large" :
	       "not a whole number: normalised or log-transformed?";
}

static int bad_value(const struct countmat *m, const char *what, uint64_t where, double v, struct error *e)
{
	return error_set(e, "%s: %s %" PRIu64 " holds %.9g (%s), expected a count from 0 to %d", m->where, what, where, v,
			 fault(v), COUNT_MAX);
}

static int not_count(double v, char why[128])
{
	snprintf(why, 128, "%.6g, %s", v, fault(v));
	return 0;
}

/* Values of dense data in tall chunks: three whole chunks. */
static int probe_chunks(struct countmat *m, char why[128], struct error *e)
{
	struct h5array *d = &m->data;
	uint64_t box[4], chunks = h5array_chunks(d), at[3] = {0, chunks / 2, chunks - 1};
	void *buf = xmalloc(d->chunk[0] * d->chunk[1] * d->size);
	uint32_t *count = xmalloc(d->chunk[1] * sizeof *count);
	int r = 1;
	for (int k = 0; k < 3 && r == 1; k++) {
		if (h5array_chunk(d, at[k], box, buf, e))
			r = -1;
		for (uint64_t i = 0; r == 1 && i < box[2]; i++) {
			const char *line = (const char *)buf + i * d->chunk[1] * d->size;
			size_t bad = to_counts(d->type, line, box[3], count);
			if (bad < box[3])
				r = not_count(value_at(d->type, line, bad), why);
		}
	}
	free(buf);
	free(count);
	return r;
}

int countmat_probe(struct countmat *m, char why[128], struct error *e)
{
	struct h5array *d = &m->data;
	why[0] = 0;
	if (m->layout == LAYOUT_ENTRIES || !m->nnz)
		return 1;
	if (m->tall)
		return probe_chunks(m, why, e);
	size_t rows = PROBE / d->dim[1] + 1;
	if (rows > d->dim[0])
		rows = d->dim[0];
	uint64_t at[3] = {0, (d->dim[0] - rows) / 2, d->dim[0] - rows};
	size_t n = rows * d->dim[1];
	void *buf = xmalloc(n * d->size);
	uint32_t *count = xmalloc(n * sizeof *count);
	int r = 1;
	for (int k = 0; k < 3 && r == 1; k++) {
		if (h5array_read(d, at[k], rows, buf, 1, e))
			r = -1;
		size_t bad = r < 0 ? n : to_counts(d->type, buf, n, count);
		if (bad < n)
			r = not_count(value_at(d->type, buf, bad), why);
	}
	free(buf);
	free(count);
	return r;
}

uint64_t countmat_spill_bytes(const struct countmat *m)
{
	int spills = m->layout == LAYOUT_COLUMNS || (m->layout == LAYOUT_DENSE && m->tall);
	return spills && m->nnz > SPILL_ENTRIES ? m->nnz * sizeof(struct spill_entry) : 0;
}

/* Sparse columns into the spill, about COLUMN_ENTRIES entries at a time, columns in order. */
static int spill_columns(struct countmat *m, int threads, struct error *e)
{
	uint64_t ncol = m->ncol, entry = 0, col = 0;
	int64_t *ptr = xmalloc((ncol + 1) * sizeof *ptr);
	uint32_t *row = xmalloc(COLUMN_ENTRIES * sizeof *row), *count = xmalloc(COLUMN_ENTRIES * sizeof *count);
	void *buf = xmalloc(COLUMN_ENTRIES * 8);
	int r = h5array_i64(&m->indptr, 0, ncol + 1, ptr, threads, e);
	for (uint64_t i = 0; i < ncol && r == 0; i++)
		if (ptr[i + 1] < ptr[i] || (uint64_t)ptr[i + 1] > m->nnz)
			r = error_set(e, "%s: element %" PRIu64 " is %" PRId64 " after %" PRId64 ", expected a rise to at most %" PRIu64,
				      m->indptr.where, i + 1, ptr[i + 1], ptr[i], m->nnz);
	while (r == 0 && entry < m->nnz) {
		size_t n = m->nnz - entry < COLUMN_ENTRIES ? m->nnz - entry : COLUMN_ENTRIES;
		r = h5array_read(&m->data, entry, n, buf, threads, e);
		size_t bad = r ? n : to_counts(m->data.type, buf, n, count);
		if (bad < n)
			r = bad_value(m, "entry", entry + bad, value_at(m->data.type, buf, bad), e);
		if (r == 0)
			r = h5array_read(&m->indices, entry, n, buf, threads, e);
		bad = r ? n : to_indices(m->indices.type, buf, n, m->nrow, row);
		if (bad < n)
			r = error_set(e, "%s: element %" PRIu64 " is %.0f, expected a cell number below %" PRIu64, m->indices.where,
				      entry + bad, value_at(m->indices.type, buf, bad), m->nrow);
		for (size_t i = 0; i < n && r == 0; i++) {
			while ((uint64_t)ptr[col + 1] <= entry + i)
				col++;
			if (count[i])
				r = spill_add(&m->spill, row[i], (uint32_t)col, count[i], e);
		}
		entry += n;
	}
	free(ptr);
	free(row);
	free(count);
	free(buf);
	return r;
}

static int spill_chunks(struct countmat *m, struct error *e)
{
	struct h5array *d = &m->data;
	uint64_t box[4], chunks = h5array_chunks(d);
	size_t wide = d->chunk[1], n = d->chunk[0] * wide;
	void *buf = xmalloc(n * d->size);
	uint32_t *count = xmalloc(wide * sizeof *count);
	int r = 0;
	for (uint64_t k = 0; k < chunks && r == 0; k++) {
		r = h5array_chunk(d, k, box, buf, e);
		for (uint64_t i = 0; i < box[2] && r == 0; i++) {
			const char *line = (const char *)buf + i * wide * d->size;
			size_t bad = to_counts(d->type, line, box[3], count);
			if (bad < box[3])
				r = bad_value(m, "cell", box[0] + i, value_at(d->type, line, bad), e);
			for (uint64_t c = 0; c < box[3] && r == 0; c++)
				if (count[c])
					r = spill_add(&m->spill, (uint32_t)(box[0] + i), (uint32_t)(box[1] + c), count[c], e);
		}
	}
	free(buf);
	free(count);
	return r;
}

/* Room for `rows` rows and `entries` entries. */
static void make_room(struct countrows *r, size_t rows, size_t entries)
{
	grow(r->start, r->start_cap, rows + 1);
	grow(r->total, r->total_cap, rows);
	r->gene = grow_bytes(r->gene, &r->gene_cap, (entries + 1) * (r->narrow ? 2 : 4), 1);
	r->count = grow_bytes(r->count, &r->count_cap, (entries + 1) * 4, 1);
	r->n = rows;
}

/* How many rows come next: reads their stretch of indptr into m->ptr. -1 error. */
static int64_t plan_rows(struct countmat *m, size_t max_rows, size_t entries, int threads, struct error *e)
{
	size_t n = m->nrow - m->row < max_rows ? m->nrow - m->row : max_rows;
	grow(m->ptr, m->ptr_cap, n + 1);
	if (h5array_i64(&m->indptr, m->row, n + 1, m->ptr, threads, e))
		return -1;
	for (size_t i = 0; i < n; i++) {
		int64_t a = m->ptr[i], b = m->ptr[i + 1];
		if (b < a || (uint64_t)b > m->nnz)
			return error_set(e, "%s: element %" PRIu64 " is %" PRId64 " after %" PRId64 ", expected a rise to at most %" PRIu64,
					 m->indptr.where, m->row + i + 1, b, a, m->nnz);
		if ((uint64_t)(b - a) > m->ncol)
			return error_set(e, "%s: cell %" PRIu64 " has %" PRId64 " entries, but there are %" PRIu64 " genes",
					 m->where, m->row + i, b - a, m->ncol);
		if (i && (uint64_t)(b - m->ptr[0]) > entries)
			return (int64_t)i;
	}
	return (int64_t)n;
}

/* The rows' values and indices as they are stored, into m->values. */
static int next_sparse(struct countmat *m, size_t max_rows, size_t entries, struct countrows *r, int threads, struct error *e)
{
	int64_t rows = plan_rows(m, max_rows, entries, threads, e);
	if (rows < 0)
		return -1;
	uint64_t first = (uint64_t)m->ptr[0];
	size_t n = (uint64_t)m->ptr[rows] - first;
	if (first != m->entry)
		return error_set(e, "%s: element %" PRIu64 " is %" PRIu64 ", expected %" PRIu64, m->indptr.where, m->row, first, m->entry);
	make_room(r, (size_t)rows, n);
	for (int64_t i = 0; i <= rows; i++)
		r->start[i] = (uint64_t)m->ptr[i] - first;
	m->half = n * m->indices.size;
	m->half += -m->half & 63;
	m->values = grow_bytes(m->values, &m->values_cap, m->half + n * m->data.size + 1, 1);
	m->entry = (uint64_t)m->ptr[rows];
	return h5array_read(&m->indices, first, n, m->values, threads, e) ||
	       h5array_read(&m->data, first, n, (char *)m->values + m->half, threads, e) ? -1 : 0;
}

static int next_dense(struct countmat *m, size_t max_rows, size_t entries, struct countrows *r, int threads, struct error *e)
{
	struct h5array *d = &m->data;
	size_t rows = entries / (m->ncol + 1) + 1;
	if (rows > max_rows)
		rows = max_rows;
	if (d->chunk[0])
		rows = (rows + d->chunk[0] - 1) / d->chunk[0] * d->chunk[0];
	if (rows > m->nrow - m->row)
		rows = m->nrow - m->row;
	size_t n = rows * m->ncol;
	make_room(r, rows, n);
	for (size_t i = 0; i <= rows; i++)
		r->start[i] = i * m->ncol;
	m->half = 0;
	m->values = grow_bytes(m->values, &m->values_cap, n * d->size + 1, 1);
	return h5array_read(d, m->row, rows, m->values, threads, e);
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

static int by_gene(const void *a, const void *b)
{
	uint32_t x = (uint32_t)(*(const uint64_t *)a >> 32), y = (uint32_t)(*(const uint64_t *)b >> 32);
	return (x > y) - (x < y);
}

/* Sort a row by gene and add up repeats. */
static size_t sort_row(uint32_t *gene, uint32_t *count, size_t n, uint64_t **pair, size_t *cap, uint64_t *repeats, int *overflow)
{
	grow(*pair, *cap, n);
	uint64_t *p = *pair;
	for (size_t i = 0; i < n; i++)
		p[i] = (uint64_t)gene[i] << 32 | count[i];
	qsort(p, n, sizeof *p, by_gene);
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t g = (uint32_t)(p[i] >> 32), c = (uint32_t)p[i];
		if (k && gene[k - 1] == g) {
			(*repeats)++;
			if (c > COUNT_MAX - count[k - 1])
				*overflow = 1;
			else
				count[k - 1] += c;
		} else {
			gene[k] = g;
			count[k++] = c;
		}
	}
	return k;
}

#define GROUP 32                /* rows a thread takes at a time */

struct finish {
	struct countmat *m;
	struct countrows *r;
	const uint32_t *map;
	int identity;
	atomic_size_t bad;      /* first row that is not in order; r->n: none */
	atomic_size_t shrunk;   /* rows that lost entries */
	atomic_ullong repeats;
};

struct row {                    /* one row being put in order */
	uint32_t *gene, *count;
	uint64_t *pair;
	size_t gene_cap, count_cap, pair_cap;
};

static void row_release(struct row *row)
{
	free(row->gene);
	free(row->count);
	free(row->pair);
}

/* Where row i starts in m->values: its indices or its data. */
static const void *stored_indices(const struct countmat *m, const struct countrows *r, size_t i)
{
	return (const char *)m->values + r->start[i] * (m->spilled ? 4 : m->indices.size);
}

static const void *stored_data(const struct countmat *m, const struct countrows *r, size_t i)
{
	return (const char *)m->values + m->half + r->start[i] * (m->spilled ? 4 : m->data.size);
}

/* Row i as it is stored to genes and counts: 0, or -1 when something in it is wrong (reported later, by bad_row). */
static int convert_row(const struct countmat *m, const struct countrows *r, size_t i, struct row *row)
{
	size_t n = r->start[i + 1] - r->start[i];
	grow(row->gene, row->gene_cap, n);
	grow(row->count, row->count_cap, n);
	if (m->spilled) {
		memcpy(row->gene, stored_indices(m, r, i), n * sizeof *row->gene);
		memcpy(row->count, stored_data(m, r, i), n * sizeof *row->count);
		return 0;
	}
	if (m->layout == LAYOUT_DENSE) {
		for (size_t c = 0; c < n; c++)
			row->gene[c] = (uint32_t)c;
	} else if (to_indices(m->indices.type, stored_indices(m, r, i), n, m->ncol, row->gene) < n) {
		return -1;
	}
	return to_counts(m->data.type, stored_data(m, r, i), n, row->count) < n ? -1 : 0;
}

static int bad_row(const struct countmat *m, const struct countrows *r, size_t i, struct error *e)
{
	size_t n = r->start[i + 1] - r->start[i], k;
	const void *index = stored_indices(m, r, i), *data = stored_data(m, r, i);
	uint32_t *any = xmalloc(n * sizeof *any);
	if (!m->spilled && m->layout == LAYOUT_ROWS && (k = to_indices(m->indices.type, index, n, m->ncol, any)) < n)
		error_set(e, "%s: cell %" PRIu64 " has an entry for gene %.0f, expected a number below %" PRIu64, m->indices.where,
			  m->row + i, value_at(m->indices.type, index, k), m->ncol);
	else if (!m->spilled && (k = to_counts(m->data.type, data, n, any)) < n)
		bad_value(m, "cell", m->row + i, value_at(m->data.type, data, k), e);
	else
		error_set(e, "%s: cell %" PRIu64 ": counts of one gene add up to more than %d", m->where, m->row + i, COUNT_MAX);
	free(any);
	return -1;
}

/*
 * The common row, in one go and without a branch: genes ascending that need no map, floats that are counts from 1 to 2^23 - 1.
 * Returns 0, or 1 when the row is not like that and what was written is worthless.
 */
static inline int plain_row(const int32_t *restrict index, const float *restrict v, size_t n, uint64_t ngene, uint16_t *restrict gene16,
			    uint32_t *restrict gene32, uint32_t *restrict count, uint64_t *total)
{
	uint32_t bad = n && (index[0] < 0 || (uint64_t)index[n - 1] >= ngene);
	*total = 0;
	for (size_t at = 0; at < n; at += 256) {
		size_t end = n - at < 256 ? n : at + 256;
		uint32_t sum = 0;       /* at most 256 * 2^23 */
		for (size_t i = at; i < end; i++) {
			uint32_t whole = small_float(v[i], count + i);
			bad |= whole | !count[i];
			sum += count[i];
			if (gene16)
				gene16[i] = (uint16_t)index[i];
			else
				gene32[i] = (uint32_t)index[i];
		}
		for (size_t i = at + !at; i < end; i++)
			bad |= index[i] <= index[i - 1];
		*total += sum;
	}
	return bad != 0;
}

static int is_plain(const struct finish *f, size_t i)
{
	const struct countmat *m = f->m;
	struct countrows *r = f->r;
	uint64_t at = r->start[i], n = r->start[i + 1] - at;
	if (m->layout != LAYOUT_ROWS || m->indices.type != NUM_I32 || m->data.type != NUM_F32 || !f->identity)
		return 0;
	const void *index = stored_indices(m, r, i), *data = stored_data(m, r, i);
	return (r->narrow ? plain_row(index, data, n, m->ncol, (uint16_t *)r->gene + at, NULL, r->count + at, r->total + i) :
		plain_row(index, data, n, m->ncol, NULL, (uint32_t *)r->gene + at, r->count + at, r->total + i)) == 0;
}

/* Convert row i, map its genes, drop zeros, put it in order; its length goes to m->start[i]. */
static int finish_row(struct finish *f, size_t i, struct row *row)
{
	struct countmat *m = f->m;
	struct countrows *r = f->r;
	uint64_t at = r->start[i], total = 0, repeats = 0;
	size_t n = r->start[i + 1] - at, k = 0;
	unsigned back = 0;
	int overflow = 0;
	m->start[i] = n;
	r->total[i] = 0;
	if (!n || is_plain(f, i))
		return 0;
	if (convert_row(m, r, i, row))
		return -1;
	uint32_t *gene = row->gene, *count = row->count;
	for (size_t j = 0; j < n; j++) {
		uint32_t g = f->identity ? gene[j] : f->map[gene[j]], c = count[j];
		gene[k] = g;
		count[k] = c;
		k += c != 0 && g != GENE_DROPPED;
	}
	for (size_t j = 1; j < k; j++)
		back |= gene[j] <= gene[j - 1];
	if (back)
		k = sort_row(gene, count, k, &row->pair, &row->pair_cap, &repeats, &overflow);
	for (size_t j = 0; j < k; j++)
		total += count[j];
	for (size_t j = 0; j < k && r->narrow; j++)
		((uint16_t *)r->gene)[at + j] = (uint16_t)gene[j];
	if (!r->narrow)
		memcpy((uint32_t *)r->gene + at, gene, k * sizeof *gene);
	memcpy(r->count + at, count, k * sizeof *count);
	r->total[i] = total;
	m->start[i] = k;
	if (k != n)
		atomic_fetch_add(&f->shrunk, 1);
	if (repeats)
		atomic_fetch_add(&f->repeats, repeats);
	return overflow ? -1 : 0;
}

static void finish_group(void *arg, size_t group, int thread)
{
	struct finish *f = arg;
	struct row row = {0};
	size_t end = (group + 1) * GROUP < f->r->n ? (group + 1) * GROUP : f->r->n;
	for (size_t i = group * GROUP; i < end; i++) {
		if (finish_row(f, i, &row)) {
			size_t first = atomic_load(&f->bad);
			while (i < first && !atomic_compare_exchange_weak(&f->bad, &first, i))
				;
			break;
		}
	}
	row_release(&row);
}

/* All rows into canonical form, then the gaps closed. */
static int finish_rows(struct countmat *m, const uint32_t *map, int identity, struct countrows *r, int threads, struct error *e)
{
	struct finish f = {.m = m, .r = r, .map = map, .identity = identity};
	atomic_store(&f.bad, r->n);
	grow(m->start, m->start_cap, r->n);
	pool_for(threads, (r->n + GROUP - 1) / GROUP, finish_group, &f);
	if (f.bad < r->n)
		return bad_row(m, r, f.bad, e);
	r->repeats += f.repeats;
	if (f.shrunk) {
		uint64_t at = 0;
		size_t width = r->narrow ? 2 : 4;
		for (size_t i = 0; i < r->n; i++) {
			memmove((char *)r->gene + at * width, (char *)r->gene + r->start[i] * width, m->start[i] * width);
			memmove(r->count + at, r->count + r->start[i], m->start[i] * sizeof *r->count);
			r->start[i] = at;
			at += m->start[i];
		}
		r->start[r->n] = at;
	}
	return 0;
}

int countmat_next(struct countmat *m, const uint32_t *map, int identity, size_t max_rows, size_t entries,
		  struct countrows *r, int threads, struct error *e)
{
	int columns = m->layout == LAYOUT_COLUMNS, tall = m->layout == LAYOUT_DENSE && m->tall;
	if ((columns || tall) && !m->spilled) {
		start_spill(m);
		if (columns ? spill_columns(m, threads, e) : spill_chunks(m, e))
			return -1;
	}
	r->n = 0;
	if (m->row == m->nrow)
		return 0;
	int bad = m->spilled ? next_spilled(m, max_rows, entries, r, e) :
		  m->layout == LAYOUT_ROWS ? next_sparse(m, max_rows, entries, r, threads, e) :
		  next_dense(m, max_rows, entries, r, threads, e);
	if (bad || finish_rows(m, map, identity, r, threads, e))
		return -1;
	m->row += r->n;
	return (int)r->n;
}

/*
 * Rows as they are stored to rows in canonical form: genes ascending, no repeats, no zeros. Rows are independent, so threads share them.
 */
#include "anndata/countmat_impl.h"

#include "base/sort.h"
#include "base/threads.h"

#include <stdatomic.h>

/* ---- what is wrong ---- */

int countmat_bad_value(const struct countmat *m, uint64_t cell, uint64_t gene, double v, struct error *e)
{
	return error_set(e, "%s: cell %" PRIu64 ", gene %" PRIu64 " holds %.9g (%s), expected a count from 0 to %d%s", m->where, cell, gene,
		v, number_fault(v), NUMBER_COUNT_MAX, !m->unlog && number_is_fraction(v) ? "; " NEED_ROUND : "; " LEAVE_OUT);
}

int countmat_place(struct countmat *m, uint64_t entry, uint64_t *cell, uint64_t *gene, struct error *e)
{
	int by_gene = m->layout == LAYOUT_DENSE ? m->across : m->layout == LAYOUT_COLUMNS;
	uint64_t at[2] = {0, 0}, end = by_gene ? m->ncol : m->nrow, width = by_gene ? m->nrow : m->ncol, index;
	if (m->layout == LAYOUT_DENSE) {
		at[0] = entry / width;
		at[1] = entry % width;
	} else {
		while (end - at[0] > 1) {
			uint64_t middle = at[0] + (end - at[0]) / 2;
			int64_t start;
			if (h5array_i64(&m->indptr, middle, 1, &start, 1, e))
				return -1;
			*(start <= (int64_t)entry ? &at[0] : &end) = middle;
		}
		if (h5array_read(&m->indices, entry, 1, &index, 1, e))
			return -1;
		at[1] = (uint64_t)number_at(m->indices.type, &index, 0);
	}
	*cell = at[by_gene];
	*gene = at[!by_gene];
	return 0;
}

int countmat_absent_twice(const struct countmat *m, const void *indices, size_t k, uint64_t line, struct error *e)
{
	double first = number_at(m->indices.type, indices, k);
	if (!m->indices.absent || first != number_at(m->indices.type, indices, k + 1))
		return 0;
	return error_set(e, "%s: a chunk is not in the store, and the fill value would give %s %" PRIu64 " the index %.0f twice",
		m->indices.where, m->layout == LAYOUT_ROWS ? "cell" : "gene", line, first);
}

/* ---- rows ---- */

COMPARE(by_gene, uint64_t, ORDER(*a >> 32, *b >> 32))

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
			if (c > NUMBER_COUNT_MAX - count[k - 1])
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

#define GROUP 32 /* rows a thread takes at a time */

struct finish {
	struct countmat *m;
	struct countrows *r;
	const uint32_t *map;
	int identity;
	atomic_size_t bad; /* first row that is not in order; r->n: none */
	atomic_size_t shrunk; /* rows that lost entries */
	atomic_ullong repeats;
	atomic_ullong off; /* the bits of m->off: of numbers that are not negative, they have the same order */
};

struct row { /* one row being put in order */
	uint32_t *gene, *count;
	uint64_t *pair;
	double *value; /* and the error of each */
	double off;
	size_t gene_cap, count_cap, pair_cap, value_cap;
};

/* Where row i starts in m->values: its indices or its data. */
static const void *stored_indices(const struct countmat *m, const struct countrows *r, size_t i)
{
	return (const char *)m->values + r->start[i] * (m->spilled ? 4 : m->indices.size);
}

static const void *stored_data(const struct countmat *m, const struct countrows *r, size_t i)
{
	return (const char *)m->values + m->half + r->start[i] * (m->spilled ? 4 : m->data.size);
}

/* Counts of row i from normalised values: 0, or -1. */
static int unlog_row(const struct finish *f, size_t i, size_t n, struct row *row)
{
	const struct countmat *m = f->m;
	struct unlogged u;
	grow(row->value, row->value_cap, 2 * n);
	number_f64(m->spilled ? NUMBER_F32 : m->data.type, stored_data(m, f->r, i), n, row->value);
	int r = unlog_cell(m->unlog, row->value, row->value + n, n, row->count, &u);
	row->off = u.off > row->off ? u.off : row->off;
	return r;
}

/* Row i as it is stored to genes and counts: 0, or -1 when something in it is wrong (reported later, by bad_row). */
static int convert_row(const struct finish *f, size_t i, struct row *row)
{
	const struct countmat *m = f->m;
	const struct countrows *r = f->r;
	size_t n = r->start[i + 1] - r->start[i];
	grow(row->gene, row->gene_cap, n);
	grow(row->count, row->count_cap, n);
	if (m->spilled) {
		memcpy(row->gene, stored_indices(m, r, i), n * sizeof *row->gene);
	} else if (m->layout == LAYOUT_DENSE) {
		for (size_t c = 0; c < n; c++)
			row->gene[c] = (uint32_t)c;
	} else if (number_indices(m->indices.type, stored_indices(m, r, i), n, m->ncol, row->gene) < n) {
		return -1;
	}
	if (m->unlog)
		return unlog_row(f, i, n, row);
	if (m->spilled)
		memcpy(row->count, stored_data(m, r, i), n * sizeof *row->count);
	else if (number_rounded(m->data.type, stored_data(m, r, i), n, m->round, row->count, &row->off) < n)
		return -1;
	return 0;
}

static int bad_row(const struct countmat *m, const struct countrows *r, size_t i, struct error *e)
{
	size_t n = r->start[i + 1] - r->start[i], k;
	const void *index = stored_indices(m, r, i), *data = stored_data(m, r, i);
	FREED uint32_t *any = xmalloc(n * sizeof *any);
	double off = 0;
	if (!m->spilled && m->layout == LAYOUT_ROWS && (k = number_indices(m->indices.type, index, n, m->ncol, any)) < n)
		error_set(e, "%s: cell %" PRIu64 " has an entry for gene %.0f, expected a number below %" PRIu64, m->indices.where,
			m->row + i, number_at(m->indices.type, index, k), m->ncol);
	else if (m->unlog)
		error_set(e,
			"%s: cell %" PRIu64 ": its values are no multiples of one number within float32 rounding, so its counts do not "
			"come back; --unlog is for files where all do",
			m->where, m->row + i);
	else if (!m->spilled && (k = number_rounded(m->data.type, data, n, m->round, any, &off)) < n)
		countmat_bad_value(m, m->row + i, m->layout == LAYOUT_DENSE ? k : (uint64_t)number_at(m->indices.type, index, k),
			number_at(m->data.type, data, k), e);
	else
		error_set(e, "%s: cell %" PRIu64 ": counts of one gene add up to more than %d", m->where, m->row + i, NUMBER_COUNT_MAX);
	return -1;
}

/*
 * The common row, without a branch: genes ascending that need no map, and floats that are counts from 1 to 2^23 - 1. Returns 0, or 1 if
 * the row is not like that. What was written is then of no use.
 */
static inline int plain_row(const int32_t *restrict index, const float *restrict v, size_t n, uint64_t ngene, uint16_t *restrict gene16,
	uint32_t *restrict gene32, uint32_t *restrict count, uint64_t *total)
{
	uint32_t bad = n && (index[0] < 0 || (uint64_t)index[n - 1] >= ngene);
	*total = 0;
	for (size_t at = 0; at < n; at += 256) {
		size_t end = n - at < 256 ? n : at + 256;
		uint32_t sum = 0; /* at most 256 * 2^23 */
		for (size_t i = at; i < end; i++) {
			uint32_t whole = number_small_count(v[i], count + i);
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
	if (m->unlog || m->layout != LAYOUT_ROWS || m->indices.type != NUMBER_I32 || m->data.type != NUMBER_F32 || !f->identity)
		return 0;
	const void *index = stored_indices(m, r, i), *data = stored_data(m, r, i);
	return (r->narrow ? plain_row(index, data, n, m->ncol, (uint16_t *)r->gene + at, NULL, r->count + at, r->total + i)
			  : plain_row(index, data, n, m->ncol, NULL, (uint32_t *)r->gene + at, r->count + at, r->total + i)) == 0;
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
	if (convert_row(f, i, row))
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
	unsigned long long off = atomic_load(&f->off), bits;
	memcpy(&bits, &row.off, sizeof bits);
	while (bits > off && !atomic_compare_exchange_weak(&f->off, &off, bits))
		;
	free_all(row.gene, row.count, row.pair, row.value);
}

int countmat_finish_rows(struct countmat *m, const uint32_t *map, int identity, struct countrows *r, int threads, struct error *e)
{
	struct finish f = {.m = m, .r = r, .map = map, .identity = identity};
	unsigned long long off;
	memcpy(&off, &m->off, sizeof off);
	atomic_store(&f.bad, r->n);
	atomic_store(&f.off, off);
	grow(m->start, m->start_cap, r->n);
	pool_for(threads, (r->n + GROUP - 1) / GROUP, finish_group, &f);
	if (f.bad < r->n)
		return bad_row(m, r, f.bad, e);
	r->repeats += f.repeats;
	off = atomic_load(&f.off);
	memcpy(&m->off, &off, sizeof off);
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

/*
 * A packed row: its total; then for each value, the difference of its column from the column of the value before (modulo 2^32),
 * and the count. All are LEB128.
 */
#include "base/sparse.h"

#include "base/error.h"

enum { MOST_BYTES = 10, SMALL = 32 }; /* of a number; counts whose values are kept while a row is read */

static void begin(struct sparse *s)
{
	grow(s->offset, s->offset_cap, s->n + 2);
	if (!s->n)
		s->offset[0] = 0;
}

uint64_t sparse_add(struct sparse *s, size_t m)
{
	begin(s);
	uint64_t at = s->offset[s->n], end = at + m;
	grow(s->column, s->column_cap, end);
	grow(s->value, s->value_cap, end);
	s->offset[++s->n] = end;
	return at;
}

static uint8_t *sparse_put(uint8_t *to, uint64_t x)
{
	for (; x > 0x7F; x >>= 7)
		*to++ = (uint8_t)(x | 0x80);
	*to++ = (uint8_t)x;
	return to;
}

static inline const uint8_t *get(const uint8_t *from, uint64_t *x)
{
	uint64_t v = *from & 0x7F;
	for (int shift = 7; *from++ & 0x80; shift += 7)
		v |= (uint64_t)(*from & 0x7F) << shift;
	*x = v;
	return from;
}

void sparse_pack(struct sparse *s, const uint32_t *column, const uint64_t *count, size_t m, uint64_t total)
{
	uint64_t sum = 0;
	uint32_t last = 0;
	begin(s);
	grow(s->packed, s->packed_cap, s->offset[s->n] + (2 * m + 1) * MOST_BYTES);
	for (size_t j = 0; j < m; j++)
		sum += count[j];
	uint8_t *to = sparse_put(s->packed + s->offset[s->n], total ? total : sum);
	for (size_t j = 0; j < m; j++) {
		to = sparse_put(sparse_put(to, column[j] - last), count[j]);
		last = column[j];
	}
	s->values += m;
	s->offset[++s->n] = (uint64_t)(to - s->packed);
}

/* The values of a packed row. Returns how many. */
static size_t decode(const struct sparse *s, size_t i, uint32_t *column, float *value)
{
	const uint8_t *from = s->packed + s->offset[i], *end = s->packed + s->offset[i + 1];
	uint64_t total, gap, count;
	uint32_t last = 0;
	float small[SMALL] = {0};
	double scale = s->scale > 0 ? s->scale : 1e4;
	size_t n = 0;
	for (from = get(from, &total); from < end; n++) {
		from = get(get(from, &gap), &count);
		column[n] = last += (uint32_t)gap;
		if (count < SMALL && small[count] > 0) {
			value[n] = small[count];
			continue;
		}
		value[n] = (float)log1p(scale * (double)count / (double)total);
		if (count < SMALL)
			small[count] = value[n];
	}
	return n;
}

void sparse_row(const struct sparse *x, size_t i, struct sparse_row *r)
{
	size_t n = x->offset[i + 1] - x->offset[i];
	if (!x->packed) {
		r->n = n;
		r->column = x->column + x->offset[i];
		r->value = x->value + x->offset[i];
		return;
	}
	grow(r->own_column, r->column_cap, n / 2 + 1);
	grow(r->own_value, r->value_cap, n / 2 + 1);
	r->n = decode(x, i, r->own_column, r->own_value);
	r->column = r->own_column;
	r->value = r->own_value;
}

void sparse_counts(const struct sparse *x, size_t i, struct sparse_row *r)
{
	const uint8_t *from = x->packed + x->offset[i], *end = x->packed + x->offset[i + 1];
	size_t most = (size_t)(end - from) / 2 + 1;
	uint64_t gap;
	uint32_t last = 0;
	grow(r->own_column, r->column_cap, most);
	grow(r->count, r->count_cap, most);
	r->n = 0;
	for (from = get(from, &gap); from < end; r->n++) {
		from = get(get(from, &gap), r->count + r->n);
		r->own_column[r->n] = last += (uint32_t)gap;
	}
	r->column = r->own_column;
}

void sparse_row_release(struct sparse_row *r)
{
	free_all(r->count, r->own_column, r->own_value);
	*r = (struct sparse_row){0};
}

void sparse_unpack(struct sparse *s)
{
	struct sparse plain = {.d = s->d};
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	if (!s->packed)
		return;
	for (size_t i = 0; i < s->n; i++) {
		sparse_row(s, i, &r);
		uint64_t at = sparse_add(&plain, r.n);
		if (!r.n)
			continue;
		memcpy(plain.column + at, r.column, r.n * sizeof *r.column);
		memcpy(plain.value + at, r.value, r.n * sizeof *r.value);
	}
	sparse_release(s);
	*s = plain;
}

void sparse_keep(struct sparse *s, const uint8_t *keep, uint64_t *total)
{
	struct sparse to = {.d = s->d, .scale = s->scale};
	struct sparse_row r = {0};
	for (size_t i = 0; i < s->n; i++) {
		size_t n = 0;
		sparse_counts(s, i, &r);
		total[i] = 0;
		for (size_t j = 0; j < r.n; j++) {
			r.own_column[n] = r.column[j];
			r.count[n] = r.count[j];
			total[i] += keep[r.column[j]] ? r.count[j] : 0;
			n += keep[r.column[n]];
		}
		sparse_pack(&to, r.own_column, r.count, n, 0);
	}
	sparse_row_release(&r);
	sparse_release(s);
	*s = to;
}

void sparse_move(struct sparse *s, size_t to, size_t from)
{
	uint64_t at = s->offset[from], n = s->offset[from + 1] - at, end = s->offset[to];
	if (s->packed) {
		memmove(s->packed + end, s->packed + at, n);
	} else {
		memmove(s->column + end, s->column + at, n * sizeof *s->column);
		memmove(s->value + end, s->value + at, n * sizeof *s->value);
	}
	s->offset[to + 1] = end + n;
}

void sparse_clear(struct sparse *s)
{
	s->n = s->values = 0;
}

void sparse_release(struct sparse *s)
{
	free_all(s->offset, s->column, s->value, s->packed);
	*s = (struct sparse){0};
}

#include "stream/block.h"

#include "base/bytes.h"

static void *room(struct column *c, size_t bytes)
{
	return grow_bytes(c->data, &c->cap, bytes, 1);
}

void block_reset(struct block *b, const struct header *h)
{
	if (b->ncol < h->ncol) {
		b->col = xrealloc(b->col, h->ncol, sizeof *b->col);
		memset(b->col + b->ncol, 0, (h->ncol - b->ncol) * sizeof *b->col);
		b->ncol = h->ncol;
	}
	if (b->ngroup < h->ngroup) {
		b->group = xrealloc(b->group, h->ngroup, sizeof *b->group);
		memset(b->group + b->ngroup, 0, (h->ngroup - b->ngroup) * sizeof *b->group);
		b->ngroup = h->ngroup;
	}
	b->header = h;
	b->rows = 0;
	for (size_t i = 0; i < h->ncol; i++) {
		struct column *c = &b->col[i];
		c->data = room(c, 64);
		c->pushed = 0;
		if (h->col[i].type == STR) {
			grow(c->offset, c->offset_cap, 1);
			c->offset[0] = 0;
		}
	}
	for (size_t g = 0; g < h->ngroup; g++) {
		grow(b->group[g].offset, b->group[g].cap, 1);
		b->group[g].offset[0] = 0;
	}
}

void block_release(struct block *b)
{
	for (size_t i = 0; i < b->ncol; i++)
		free_all(b->col[i].data, b->col[i].offset);
	for (size_t g = 0; g < b->ngroup; g++)
		free(b->group[g].offset);
	free_all(b->col, b->group);
	*b = (struct block){0};
}

void block_set_rows(struct block *b, size_t rows)
{
	for (size_t i = 0; i < b->header->ncol; i++) {
		const struct column_spec *s = &b->header->col[i];
		struct column *c = &b->col[i];
		if (s->type == STR)
			grow(c->offset, c->offset_cap, rows + 1);
		else if (s->shape != RAGGED)
			c->data = room(c, rows * s->n * type_size(s->type));
	}
	for (size_t g = 0; g < b->header->ngroup; g++) {
		struct group *p = &b->group[g];
		grow(p->offset, p->cap, rows + 1);
		for (size_t r = b->rows; r < rows; r++)
			p->offset[r + 1] = p->offset[b->rows];
	}
	b->rows = rows;
}

void block_set_items(struct block *b, int g, size_t n)
{
	for (size_t i = 0; i < b->header->ncol; i++)
		if (b->header->col[i].group == g)
			b->col[i].data = room(&b->col[i], n * type_size(b->header->col[i].type));
}

void block_push_str(struct block *b, int col, const char *s, size_t n)
{
	struct column *c = &b->col[col];
	uint64_t at = c->offset[c->pushed];
	c->data = room(c, at + n);
	grow(c->offset, c->offset_cap, c->pushed + 2);
	memcpy((char *)c->data + at, s, n);
	c->offset[++c->pushed] = at + n;
}

const char *block_str(const struct block *b, int c, size_t row, size_t *n)
{
	const uint64_t *o = b->col[c].offset;
	*n = o[row + 1] - o[row];
	return (const char *)b->col[c].data + o[row];
}

uint64_t block_whole(const struct block *b, int c, size_t i)
{
	const struct column_kind *k = type_kind(b->header->col[c].type);
	uint64_t bits = 0;
	memcpy(&bits, (const char *)b->col[c].data + i * k->size, k->size);
	unsigned unused = 64 - 8 * (unsigned)k->size;
	return k->values == VALUES_SIGNED ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

double block_number(const struct block *b, int c, size_t i)
{
	const void *p = b->col[c].data;
	switch (type_kind(b->header->col[c].type)->values) {
	case VALUES_FLOAT:
		return (double)((const float *)p)[i];
	case VALUES_DOUBLE:
		return ((const double *)p)[i];
	case VALUES_SIGNED:
		return (double)(int64_t)block_whole(b, c, i);
	case VALUES_UNSIGNED:
	case VALUES_CODE:
		return (double)block_whole(b, c, i);
	case VALUES_TEXT:
		break;
	}
	return NAN;
}

static void take_values(char *to, const char *from, size_t width, const uint32_t *row, size_t n)
{
	if (!row) {
		memcpy(to, from, n * width);
		return;
	}
	if (width == 8) {
		for (size_t k = 0; k < n; k++)
			memcpy(to + k * 8, from + (size_t)row[k] * 8, 8);
		return;
	}
	for (size_t k = 0; k < n; k++)
		memcpy(to + k * width, from + row[k] * width, width);
}

static void take_ragged(struct block *b, const int *map, const struct block *from, size_t g, size_t first, const uint32_t *row, size_t n)
{
	int any = -1;
	for (size_t i = 0; i < b->header->ncol; i++)
		if (b->header->col[i].group == (int)g)
			any = map[i];
	if (any < 0)
		return;
	uint64_t *to = b->group[g].offset;
	const uint64_t *o = from->group[from->header->col[any].group].offset;
	for (size_t k = 0; k < n; k++) {
		size_t r = row ? row[k] : k;
		to[first + k + 1] = to[first + k] + (o[r + 1] - o[r]);
	}
	block_set_items(b, (int)g, to[first + n]);
	for (size_t i = 0; i < b->header->ncol; i++) {
		if (b->header->col[i].group != (int)g)
			continue;
		size_t w = type_size(b->header->col[i].type);
		for (size_t k = 0; k < n; k++) {
			size_t r = row ? row[k] : k;
			memcpy((char *)b->col[i].data + to[first + k] * w, (const char *)from->col[map[i]].data + o[r] * w,
				(o[r + 1] - o[r]) * w);
		}
	}
}

void block_take(struct block *b, const int *map, const struct block *from, const uint32_t *row, size_t n)
{
	if (!row)
		n = from->rows;
	size_t first = b->rows;
	block_set_rows(b, first + n);
	for (size_t i = 0; i < b->header->ncol; i++) {
		const struct column_spec *s = &b->header->col[i];
		if (map[i] < 0 || s->shape == RAGGED)
			continue;
		if (s->type == STR) {
			for (size_t k = 0; k < n; k++) {
				size_t len;
				const char *v = block_str(from, map[i], row ? row[k] : k, &len);
				block_push_str(b, (int)i, v, len);
			}
			continue;
		}
		size_t w = s->n * type_size(s->type);
		take_values((char *)b->col[i].data + first * w, from->col[map[i]].data, w, row, n);
	}
	for (size_t g = 0; g < b->header->ngroup; g++)
		take_ragged(b, map, from, g, first, row, n);
}

/* Bytes of column i, lengths of STR values included. */
static size_t column_bytes(const struct block *b, size_t i)
{
	const struct column_spec *s = &b->header->col[i];
	if (s->type == STR)
		return b->rows * 4 + b->col[i].offset[b->rows];
	size_t n = s->shape == RAGGED ? block_items(b, s->group) : b->rows * s->n;
	return n * type_size(s->type);
}

size_t block_bytes(const struct block *b)
{
	size_t n = 8 + b->header->ngroup * b->rows * 4;
	for (size_t i = 0; i < b->header->ncol; i++)
		n += column_bytes(b, i);
	return n;
}

int block_full(const struct block *b)
{
	return b->rows >= BLOCK_ROWS || block_bytes(b) >= BLOCK_BYTES;
}

static uint8_t *pack_lengths(uint8_t *p, const uint64_t *offset, size_t rows)
{
	for (size_t r = 0; r < rows; r++, p += 4)
		put_le32(p, (uint32_t)(offset[r + 1] - offset[r]));
	return p;
}

/* Values are copied without byte swaps: only for little-endian hosts (checked in bytes.h). */
void block_pack(const struct block *b, uint8_t *p)
{
	memcpy(p, "BLK1", 4);
	put_le32(p + 4, (uint32_t)b->rows);
	p += 8;
	for (size_t g = 0; g < b->header->ngroup; g++)
		p = pack_lengths(p, b->group[g].offset, b->rows);
	for (size_t i = 0; i < b->header->ncol; i++) {
		size_t n = column_bytes(b, i);
		if (b->header->col[i].type == STR) {
			p = pack_lengths(p, b->col[i].offset, b->rows);
			n -= b->rows * 4;
		}
		memcpy(p, b->col[i].data, n);
		p += n;
	}
}

/* Read `rows` lengths from *p. Returns their sum, or -1 if they exceed `left`. */
static int64_t parse_lengths(uint64_t *offset, size_t rows, const uint8_t **p, size_t *left)
{
	if (*left / 4 < rows)
		return -1;
	offset[0] = 0;
	for (size_t r = 0; r < rows; r++)
		offset[r + 1] = offset[r] + get_le32(*p + r * 4);
	*p += rows * 4;
	*left -= rows * 4;
	return (int64_t)offset[rows];
}

/* Largest of n values of a u16 or u32 column; MISSING_CODE is ignored if skip is set. */
static uint32_t largest(const struct column *c, enum column_type t, size_t n, int skip)
{
	uint32_t m = 0;
	if (t == U16) {
		const uint16_t *v = c->data;
		uint16_t m16 = 0;
		for (size_t i = 0; i < n; i++)
			m16 = v[i] > m16 ? v[i] : m16;
		return m16;
	}
	const uint32_t *v = c->data;
	for (size_t i = 0; i < n; i++) {
		uint32_t x = skip && v[i] == MISSING_CODE ? 0 : v[i];
		m = x > m ? x : m;
	}
	return m;
}

static int check_values(const struct block *b, size_t i, size_t n, struct error *e)
{
	const struct column_spec *s = &b->header->col[i];
	const struct column *c = &b->col[i];
	if (s->type == CATEGORICAL) {
		uint32_t m = largest(c, U32, n, 1);
		for (size_t k = 0; !s->ncategory && k < n; k++)
			if (((const uint32_t *)c->data)[k] != MISSING_CODE)
				return error_set(e, "column '%s': a code, but there are no categories", s->name);
		if (s->ncategory && m >= s->ncategory)
			return error_set(e, "column '%s': code %u, but there are %zu categories", s->name, m, s->ncategory);
	}
	if (b->header->vocab.n && n && header_is_id(s)) {
		uint32_t m = largest(c, s->type, n, 0);
		if (m >= b->header->vocab.n)
			return error_set(e, "column '%s': id %u, but the vocabulary has %zu rows", s->name, m, b->header->vocab.n);
	}
	return 0;
}

/* Smallest size of a row in bytes: without the items of its lists and texts. At most 2^35 (COLUMNS_MAX * FIXED_MAX * 8). */
static uint64_t row_bytes(const struct header *h)
{
	uint64_t n = 4 * (uint64_t)h->ngroup;
	for (size_t i = 0; i < h->ncol; i++)
		if (h->col[i].type == STR)
			n += 4;
		else if (h->col[i].shape != RAGGED)
			n += (uint64_t)h->col[i].n * type_size(h->col[i].type);
	return n;
}

int block_parse(struct block *b, const struct header *h, const uint8_t *p, size_t left, struct error *e)
{
	block_reset(b, h);
	if (left < 8 || memcmp(p, "BLK1", 4))
		return error_set(e, "expected a block of rows, found something else");
	size_t rows = get_le32(p + 4);
	p += 8;
	left -= 8;
	if (rows > left / row_bytes(h)) /* checked before memory is allocated for them */
		return error_set(e, "%zu rows cannot be in %zu bytes", rows, left);
	block_set_rows(b, rows);
	for (size_t g = 0; g < h->ngroup; g++)
		if (parse_lengths(b->group[g].offset, rows, &p, &left) < 0)
			return error_set(e, "group '%s' is cut short", h->group[g]);
	for (size_t i = 0; i < h->ncol; i++) {
		const struct column_spec *s = &h->col[i];
		struct column *c = &b->col[i];
		size_t w = type_size(s->type), n = rows * s->n;
		if (s->type == STR) {
			int64_t sum = parse_lengths(c->offset, rows, &p, &left);
			if (sum < 0)
				return error_set(e, "column '%s' is cut short", s->name);
			n = (size_t)sum;
			c->pushed = rows;
		} else if (s->shape == RAGGED) {
			n = block_items(b, s->group);
		}
		if (n > left / w)
			return error_set(e, "column '%s' is cut short", s->name);
		c->data = room(c, n * w);
		memcpy(c->data, p, n * w);
		p += n * w;
		left -= n * w;
		if (check_values(b, i, n, e))
			return -1;
	}
	if (left)
		return error_set(e, "%zu bytes too many", left);
	return 0;
}

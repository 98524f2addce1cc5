/*
 * A mutator of streams. Of payloads it changes one value of the header's JSON, one column of a block, its rows or lists, or the order of
 * the blocks; then it mends lengths, digests of the vocabulary and, mostly, what the kind of the stream says about its columns. Of files it
 * changes a payload, the trailer or the seek table, and mends the checksum of the frame, or the table, but not the digest of the whole.
 */
#pragma once

#include "mutate.h"
#include "payloads.h"

#include <math.h>

enum { PARTS = 64, LIST_MAX = 48, ROWS_MAX = 48 };

struct parts {
	size_t n;
	struct buffer part[PARTS]; /* the header, blocks */
};

static void set_part(struct buffer *b, const void *p, size_t n)
{
	b->n = 0;
	append(b, p, n);
}

/* Split payloads as wrap() does. */
static void split_parts(struct parts *to, const uint8_t *data, size_t size)
{
	while (size >= 4 && to->n < PARTS) {
		size_t n = get_le32(data), have = size - 4;
		set_part(&to->part[to->n++], data + 4, n < have ? n : have);
		n = 4 + (n < have ? n : have);
		data += n;
		size -= n;
	}
}

/* The size of the input of these payloads, written to data; 0 if it does not fit. */
static size_t join_parts(uint8_t *data, size_t max, const struct parts *p)
{
	size_t n = 1;
	for (size_t i = 0; i < p->n; i++)
		n += 4 + p->part[i].n;
	if (n > max || !p->n)
		return 0;
	*data++ = 'P';
	for (size_t i = 0; i < p->n; i++) {
		put_le32(data, (uint32_t)p->part[i].n);
		if (p->part[i].n)
			memcpy(data + 4, p->part[i].p, p->part[i].n);
		data += 4 + p->part[i].n;
	}
	return n;
}

/* ---- the header ---- */

static cJSON *header_json(const struct buffer *b)
{
	return b->n > 16 ? cJSON_ParseWithLength((char *)b->p + 16, b->n - 16) : NULL;
}

static void replace(cJSON *object, const char *key, cJSON *value)
{
	if (!cJSON_ReplaceItemInObjectCaseSensitive(object, key, value))
		cJSON_Delete(value);
}

/* The digests that belong to the ids and medians. */
static void mend_vocab(cJSON *vocab)
{
	struct vocab v = {0};
	char hex[33];
	const cJSON *median = cJSON_GetObjectItemCaseSensitive(vocab, "median"), *id;
	median = median ? median->child : NULL;
	cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(vocab, "id"))
	{
		vocab_push(&v, cJSON_IsString(id) ? id->valuestring : "x", "", cJSON_IsNumber(median) ? median->valuedouble : NAN);
		median = median ? median->next : NULL;
	}
	vocab_digest(&v, hex);
	replace(vocab, "digest", cJSON_CreateString(hex));
	vocab_median_digest(&v, hex);
	replace(vocab, "medians_digest", cJSON_CreateString(hex));
	replace(vocab, "special", cJSON_CreateNumber((double)v.nspecial));
	vocab_release(&v);
}

static void mutate_header(struct buffer *b)
{
	cJSON *j = header_json(b);
	if (!j) {
		if (b->n)
			b->n = LLVMFuzzerMutate(b->p, b->n, b->n);
		return;
	}
	cJSON *vocab = cJSON_GetObjectItemCaseSensitive(j, "vocab"), *columns = cJSON_GetObjectItemCaseSensitive(j, "columns");
	cJSON *at = one_in(2) && columns && columns->child ? columns : one_in(4) && vocab ? vocab : j;
	mutate_json(at);
	vocab = cJSON_GetObjectItemCaseSensitive(j, "vocab");
	if (cJSON_IsObject(vocab) && !one_in(8))
		mend_vocab(vocab);
	char *text = cJSON_PrintUnformatted(j);
	size_t n = strlen(text);
	b->n = 16;
	append(b, text, n);
	put_le32(b->p + 12, (uint32_t)n);
	free(text);
	cJSON_Delete(j);
}

/* ---- a block ---- */

static uint64_t some_whole(void)
{
	switch (draw_below(8)) {
	case 0:
		return (uint64_t)draw() << 32 | draw();
	case 1:
		return UINT64_MAX;
	case 2:
		return 1ull << draw_below(64);
	default:
		return draw_below(5);
	}
}

static void put_number(uint8_t *to, const struct column_spec *c, const struct header *h)
{
	static const double odd[] = {0, 1, -1, 0.5, 1e-300, 1e300, INFINITY, -INFINITY, NAN};
	uint64_t x = some_whole();
	if (header_is_id(c))
		x = draw_below(h->vocab.n);
	else if (c->type == CATEGORICAL)
		x = one_in(8) || !c->ncategory ? MISSING_CODE : draw_below(c->ncategory);
	else if (c->type == U8)
		x &= 1;
	double d = odd[draw_below(sizeof odd / sizeof *odd)];
	float f = (float)d;
	if (c->type == F64)
		memcpy(to, &d, sizeof d);
	else if (c->type == F32)
		memcpy(to, &f, sizeof f);
	else
		memcpy(to, &x, type_size(c->type));
}

/* Values of column c of `to`: those of `from` (had of them), a few changed, and new ones behind. */
static void fill_values(struct block *to, const struct block *from, size_t c, size_t at, size_t n, size_t source, size_t had)
{
	const struct column_spec *s = &to->header->col[c];
	size_t width = type_size(s->type);
	uint8_t *p = (uint8_t *)to->col[c].data + at * width;
	for (size_t i = 0; i < n; i++)
		if (i < had && !one_in(24))
			memcpy(p + i * width, (uint8_t *)from->col[c].data + (source + i) * width, width);
		else
			put_number(p + i * width, s, to->header);
}

static void fill_text(struct block *to, const struct block *from, size_t c)
{
	for (size_t r = 0; r < to->rows; r++) {
		size_t n = 0;
		const char *s = from && r < from->rows ? block_str(from, (int)c, r, &n) : "";
		char own[24];
		if (!from || r >= from->rows || one_in(24)) {
			n = (size_t)snprintf(own, sizeof own, "%.*s%u", (int)(n < 8 ? n : 8), s, draw_below(4));
			s = own;
		}
		block_push_str(to, (int)c, s, n);
	}
}

/* Lengths of the lists of group g. */
static void fill_lengths(struct block *to, const struct block *from, size_t g)
{
	uint64_t *o = to->group[g].offset;
	for (size_t r = 0; r < to->rows; r++) {
		uint64_t n = from && r < from->rows ? from->group[g].offset[r + 1] - from->group[g].offset[r] : draw_below(6);
		if (one_in(8))
			n = draw_below(one_in(4) ? LIST_MAX : 6);
		o[r + 1] = o[r] + n;
	}
	block_set_items(to, (int)g, o[to->rows]);
}

/* A block like `from` (NULL: any block of this header), with changes. -1: its rows would be too large. */
static int change_block(struct block *to, const struct block *from, const struct header *h)
{
	size_t rows = from ? from->rows : h->kind != STREAM_GRAPH ? draw_below(5) : h->vocab.n;
	if (one_in(4))
		rows = one_in(4) ? draw_below(9) : rows + one_in(2) - (rows && one_in(2));
	rows = rows < ROWS_MAX ? rows : ROWS_MAX;
	for (size_t c = 0; c < h->ncol; c++)
		if (h->col[c].n > 1024)
			return -1;
	block_reset(to, h);
	block_set_rows(to, rows);
	for (size_t g = 0; g < h->ngroup; g++)
		fill_lengths(to, from, g);
	for (size_t c = 0; c < h->ncol; c++) {
		const struct column_spec *s = &h->col[c];
		if (s->type == STR) {
			fill_text(to, from, c);
		} else if (s->shape == RAGGED) {
			const uint64_t *o = to->group[s->group].offset, *had = from ? from->group[s->group].offset : NULL;
			for (size_t r = 0; r < rows; r++) {
				int there = from && r < from->rows;
				fill_values(to, from, c, o[r], o[r + 1] - o[r], there ? had[r] : 0, there ? had[r + 1] - had[r] : 0);
			}
		} else {
			fill_values(to, from, c, 0, rows * s->n, 0, from ? from->rows * s->n : 0);
		}
	}
	return 0;
}

/* A column of lists of ids or, with `type`, of this type; -1: none. */
static int list_of(const struct header *h, const char *name, enum column_type type)
{
	struct error e;
	return header_need(h, name, type, RAGGED, "", &e);
}

/* Increasing values below `below` in the rows of a column of lists, where there are enough. */
static void mend_increasing(struct block *b, int c, size_t from, size_t below)
{
	if (c < 0)
		return;
	const uint64_t *o = b->group[b->header->col[c].group].offset;
	for (size_t r = 0; r < b->rows; r++) {
		size_t n = o[r + 1] - o[r], room = below > from ? below - from : 0;
		for (size_t k = 0; k < n && n <= room; k++)
			block_set_id(b, c, o[r] + k, (uint32_t)(from + k * room / n));
	}
}

static void mend_counts(struct block *b)
{
	const struct header *h = b->header;
	int count = list_of(h, "count", U32), total = header_find(h, "n_counts");
	mend_increasing(b, list_of(h, "gene", U32), 0, h->vocab.n);
	mend_increasing(b, list_of(h, "masked", U32), 0, h->vocab.n);
	if (count < 0 || h->col[count].type != U32)
		return;
	const uint64_t *o = b->group[h->col[count].group].offset;
	uint32_t *x = b->col[count].data;
	for (size_t r = 0; r < b->rows; r++) {
		uint64_t sum = 0;
		for (size_t k = o[r]; k < o[r + 1]; k++)
			sum += x[k] = x[k] ? x[k] & 0xffff : 1;
		if (total >= 0 && h->col[total].type == U64 && h->col[total].shape == SCALAR)
			memcpy((uint8_t *)b->col[total].data + 8 * r, &sum, 8);
	}
}

static void mend_masked(struct block *b)
{
	const struct header *h = b->header;
	int position = list_of(h, "position", U16), input = list_of(h, "input", U32);
	if (position < 0 || input < 0)
		return;
	const uint64_t *o = b->group[h->col[position].group].offset, *in = b->group[h->col[input].group].offset;
	for (size_t r = 0; r < b->rows; r++) {
		size_t n = o[r + 1] - o[r], room = in[r + 1] - in[r];
		for (size_t k = 0; k < n && n <= room; k++)
			((uint16_t *)b->col[position].data)[o[r] + k] = (uint16_t)(k * room / n);
	}
}

/* Row r is token r, its neighbours increase; mostly they are all genes but itself, which makes every edge one of both rows. */
static void mend_graph(struct block *b)
{
	const struct header *h = b->header;
	int token = header_find(h, "token"), c = list_of(h, "neighbour", U32);
	if (token < 0 || c < 0 || h->col[token].type != U32 || h->col[token].shape != SCALAR)
		return;
	int g = h->col[c].group, all = one_in(2);
	uint64_t *o = b->group[g].offset;
	size_t special = h->vocab.nspecial, genes = h->vocab.n - special, at = 0;
	for (size_t r = 0; all && r < b->rows; r++)
		o[r + 1] = at += r < special || !genes ? 0 : genes - 1;
	block_set_items(b, g, o[b->rows]);
	for (size_t r = 0; r < b->rows; r++) {
		((uint32_t *)b->col[token].data)[r] = (uint32_t)r;
		for (size_t k = o[r]; all && k < o[r + 1]; k++) {
			size_t v = special + k - o[r];
			block_set_id(b, c, k, (uint32_t)(v + (v >= r)));
		}
	}
	for (size_t i = 0; all && i < h->ncol; i++)
		if (h->col[i].group == g && (int)i != c)
			memset(b->col[i].data, 0, o[b->rows] * type_size(h->col[i].type));
	if (!all)
		mend_increasing(b, c, special, h->vocab.n);
}

static void mend_kind(struct block *b)
{
	enum stream_kind kind = b->header->kind;
	if (kind == STREAM_COUNTS || kind == STREAM_MASKED_COUNTS)
		mend_counts(b);
	else if (kind == STREAM_MASKED)
		mend_masked(b);
	else if (kind == STREAM_GRAPH)
		mend_graph(b);
}

/* Change a block, or make one where there is none that fits the header. Returns -1 if the header does not allow it. */
static int mutate_block(struct buffer *part, const struct buffer *header)
{
	struct header h;
	struct block from = {0}, to = {0};
	struct error e;
	if (header->n < 16 || header_parse(&h, (char *)header->p + 16, header->n - 16, "", &e))
		return -1;
	int fits = part->n && block_parse(&from, &h, part->p, part->n, &e) == 0;
	int bad = change_block(&to, fits ? &from : NULL, &h);
	if (!bad) {
		if (!one_in(4))
			mend_kind(&to);
		part->n = block_bytes(&to);
		part->p = grow_bytes(part->p, &part->cap, part->n, 1);
		block_pack(&to, part->p);
	}
	block_release(&from);
	block_release(&to);
	header_release(&h);
	return bad;
}

/* ---- payloads ---- */

static void move_parts(struct parts *p)
{
	size_t a = 1 + draw_below(p->n), b = 1 + draw_below(p->n);
	if (one_in(3) && p->n < PARTS) { /* a copy of block a at the end; with a = n an empty part */
		struct buffer *to = &p->part[p->n];
		to->n = 0;
		if (a < p->n)
			append(to, p->part[a].p, p->part[a].n);
		p->n++;
	} else if (a < p->n && b < p->n) {
		struct buffer t = p->part[a];
		p->part[a] = p->part[b];
		p->part[b] = t;
		p->n -= one_in(2);
	}
}

static size_t mutate_payloads(uint8_t *data, size_t size, size_t max)
{
	static struct parts p;
	p.n = 0;
	split_parts(&p, data + 1, size - 1);
	if (!p.n)
		return 0;
	for (unsigned n = 1 + draw_below(3); n; n--) {
		size_t k = 1 + draw_below(p.n);
		uint32_t what = draw_below(12);
		if (what < 4) {
			mutate_header(&p.part[0]);
			for (size_t i = 1; i < p.n && !one_in(4); i++)
				mutate_block(&p.part[i], &p.part[0]);
		} else if (what < 9 && (k < p.n || p.n < PARTS)) {
			if (k == p.n)
				p.part[p.n++].n = 0;
			mutate_block(&p.part[k], &p.part[0]);
		} else if (what < 11 && k < p.n && p.part[k].n) {
			size_t keep = p.part[k].n > 8 ? 4 * draw_below(3) : 0;
			p.part[k].n = keep + LLVMFuzzerMutate(p.part[k].p + keep, p.part[k].n - keep, p.part[k].n - keep);
		} else {
			move_parts(&p);
		}
	}
	return join_parts(data, max, &p);
}

/* ---- files ---- */

/* Compress a payload again, or store it. */
static void put_frame(struct buffer *to, const struct buffer *payload)
{
	struct buffer table = {0};
	append_frame(to, &table, payload->p, payload->n);
	free(table.p);
}

/* Change one frame of a file. Its place in the seek table is mended, the digest of the trailer is not. */
static size_t mutate_frames(uint8_t *data, size_t size, size_t max)
{
	const uint8_t *p = data + 1, *end = data + size;
	if (size < 18 || get_le32(end - 4) != 0x8F92EAB1u)
		return 0;
	size_t n = get_le32(end - 9), table = 8 + 8 * n + 9, at = 0;
	if (n < 2 || n > PARTS || table > size - 1)
		return 0;
	uint8_t *entry = data + size - table + 8;
	struct buffer out = {0}, payload = {0}, seek = {0};
	size_t k = draw_below(n + 1), made = 0;
	append(&out, "F", 1);
	append(&seek, data + size - table, table);
	for (size_t i = 0; i < n; i++) {
		size_t packed = get_le32(entry + 8 * i), content = get_le32(entry + 8 * i + 4), start = out.n;
		if (packed > size - 1 - table - at || content > 1 << 20)
			goto end;
		payload.p = grow_bytes(payload.p, &payload.cap, content + 64, 1);
		payload.n = ZSTD_decompress(payload.p, content, p + at, packed);
		at += packed;
		if (i != k || ZSTD_isError(payload.n)) {
			append(&out, p + at - packed, packed);
			continue;
		}
		if (one_in(3)) { /* the bytes of the frame */
			append(&out, p + at - packed, packed);
			out.p = grow_bytes(out.p, &out.cap, out.n + 16, 1);
			out.n = start + LLVMFuzzerMutate(out.p + start, packed, packed + 16);
		} else {
			payload.n = LLVMFuzzerMutate(payload.p, payload.n, payload.n + 16);
			put_frame(&out, &payload);
			put_le32(seek.p + 8 + 8 * i + 4, (uint32_t)payload.n);
		}
		put_le32(seek.p + 8 + 8 * i, (uint32_t)(out.n - start));
	}
	if (k == n)
		seek.n = LLVMFuzzerMutate(seek.p, seek.n, seek.n);
	append(&out, seek.p, seek.n);
	made = out.n <= max ? out.n : 0;
	if (made)
		memcpy(data, out.p, made);
end:
	free(out.p);
	free(payload.p);
	free(seek.p);
	return made;
}

/* The file of payloads. */
static size_t to_file(uint8_t *data, size_t size, size_t max)
{
	struct buffer out = {0};
	wrap(data + 1, size - 1, &out);
	size_t n = out.n + 1 <= max ? out.n + 1 : 0;
	if (n) {
		data[0] = 'F';
		memcpy(data + 1, out.p, out.n);
	}
	free(out.p);
	return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	size_t n = 0;
	if (!mutate_plain(seed) && size > 5)
		n = data[0] != 'P'   ? mutate_frames(data, size, max)
			: one_in(64) ? to_file(data, size, max)
				     : mutate_payloads(data, size, max);
	return n ? n : LLVMFuzzerMutate(data, size, max);
}

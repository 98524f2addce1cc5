/* Header, trailer and seek table as bytes. man scstream.5 gives offsets and widths. */
#include "stream/stream_impl.h"

int stream_parse_header(struct stream *s, const struct bytes *b, struct error *e)
{
	if (b->n < 16 || memcmp(b->p, "scstream", 8))
		return error_set(e, "%s: zstd data, but not an scstream", s->name);
	unsigned major = get_le16(b->p + 8);
	if (major != STREAM_MAJOR)
		return error_set(
			e, "%s: stream version %u, this program reads version %u; use the newer tools", s->name, major, STREAM_MAJOR);
	if (get_le32(b->p + 12) != b->n - 16)
		return error_set(e, "%s: the header has %zu bytes, but gives its length as %u", s->name, b->n - 16, get_le32(b->p + 12));
	return header_parse(&s->header, (const char *)b->p + 16, b->n - 16, s->name, e);
}

void stream_pack_header(const struct header *h, struct bytes *b)
{
	FREED char *json = header_print(h);
	size_t n = strlen(json);
	bytes_reserve(b, n + 16);
	memcpy(b->p, "scstream", 8);
	put_le16(b->p + 8, STREAM_MAJOR);
	put_le16(b->p + 10, STREAM_MINOR);
	put_le32(b->p + 12, (uint32_t)n);
	memcpy(b->p + 16, json, n);
	b->n = n + 16;
}

/* "ROWS", rows u64, and the low half of the XXH64 of both, as zstd has no checksum for skippable frames */
void stream_pack_expected(uint64_t rows, uint8_t p[ROWS_FRAME])
{
	put_le32(p, ROWS_MAGIC);
	put_le32(p + 4, ROWS_FRAME - 8);
	memcpy(p + 8, "ROWS", 4);
	put_le64(p + 12, rows);
	put_le32(p + 20, (uint32_t)XXH64(p + 8, 12, 0));
}

/* "END1", rows u64, blocks u64, digest low u64, high u64, rows of every block u32 */
void stream_pack_trailer(struct stream *s, struct bytes *b)
{
	size_t blocks = s->nentry - 1;
	b->n = 36 + 4 * blocks;
	bytes_reserve(b, b->n);
	memcpy(b->p, "END1", 4);
	put_le64(b->p + 4, s->rows);
	put_le64(b->p + 12, blocks);
	XXH128_hash_t h = XXH3_128bits_digest(s->digest);
	put_le64(b->p + 20, h.low64);
	put_le64(b->p + 28, h.high64);
	for (size_t k = 0; k < blocks; k++)
		put_le32(b->p + 36 + 4 * k, s->entry[k + 1].rows);
}

void stream_pack_seek_table(const struct stream *s, struct bytes *b)
{
	size_t n = s->nentry;
	b->n = 8 + 8 * n + 9;
	bytes_reserve(b, b->n);
	put_le32(b->p, SEEK_MAGIC);
	put_le32(b->p + 4, (uint32_t)(b->n - 8));
	for (size_t k = 0; k < n; k++) {
		put_le32(b->p + 8 + 8 * k, s->entry[k].packed);
		put_le32(b->p + 12 + 8 * k, s->entry[k].content);
	}
	uint8_t *f = b->p + 8 + 8 * n;
	put_le32(f, (uint32_t)n);
	f[4] = 0; /* no checksums in the table: every frame has its own */
	put_le32(f + 5, SEEK_FOOTER);
}

int stream_is_trailer(const struct bytes *b)
{
	return b->n >= 36 && memcmp(b->p, "END1", 4) == 0;
}

int stream_trailer_wrong(const struct stream *s, const char *what, struct error *e)
{
	return error_set(e, "%s: the stream is damaged: its trailer gives a different value for the %s", s->name, what);
}

int stream_check_trailer(struct stream *s, const struct bytes *b, struct error *e)
{
	size_t blocks = s->nentry - 2;
	XXH128_hash_t h = XXH3_128bits_digest(s->digest);
	if (get_le64(b->p + 12) != blocks || b->n != 36 + 4 * blocks)
		return stream_trailer_wrong(s, "blocks", e);
	uint64_t rows = 0;
	for (size_t k = 0; k < blocks; k++) {
		if (get_le32(b->p + 36 + 4 * k) != s->entry[k + 1].rows)
			return stream_trailer_wrong(s, "rows in a block", e);
		rows += s->entry[k + 1].rows;
	}
	if (get_le64(b->p + 4) != rows)
		return stream_trailer_wrong(s, "rows", e);
	if (get_le64(b->p + 20) != h.low64 || get_le64(b->p + 28) != h.high64)
		return stream_trailer_wrong(s, "content", e);
	return 0;
}

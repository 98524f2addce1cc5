#include "stream/counts.h"

int counts_find(struct counts_columns *c, const struct header *h, const char *name, struct error *e)
{
	if (header_kind(h, STREAM_COUNTS, name, e) || (c->gene = header_need(h, "gene", U32, RAGGED, name, e)) < 0 ||
		(c->count = header_need(h, "count", U32, RAGGED, name, e)) < 0 ||
		(c->total = header_need(h, "n_counts", U64, SCALAR, name, e)) < 0)
		return -1;
	c->group = h->col[c->gene].group;
	if (h->col[c->count].type != U32 || h->col[c->count].group != c->group)
		return error_set(e, "%s: columns gene and count do not have the layout of a counts stream", name);
	if (!h->vocab.n)
		return error_set(e, "%s: no table of genes in the header", name);
	return 0;
}

const uint32_t *counts_genes(
	const struct counts_columns *c, const struct block *b, uint64_t from, uint64_t end, uint32_t **wide, size_t *cap)
{
	const void *gene = b->col[c->gene].data;
	if (b->header->col[c->gene].type == U32)
		return (const uint32_t *)gene + from;
	const uint16_t *narrow = (const uint16_t *)gene + from;
	grow(*wide, *cap, end - from);
	for (size_t i = 0; i < end - from; i++)
		(*wide)[i] = narrow[i];
	return *wide;
}

static uint32_t row_most(const struct counts_columns *c, const struct block *b, size_t r)
{
	const uint64_t *start = b->group[c->group].offset;
	const uint32_t *count = b->col[c->count].data;
	uint32_t most = 0;
	for (uint64_t i = start[r]; i < start[r + 1]; i++)
		most = count[i] > most ? count[i] : most;
	return most;
}

int counts_wrong(const struct counts_columns *c, const struct block *b, size_t r, uint64_t *sum)
{
	const uint64_t *start = b->group[c->group].offset, total = ((const uint64_t *)b->col[c->total].data)[r];
	const uint32_t *count = b->col[c->count].data;
	uint64_t all = 0;
	for (uint64_t i = start[r]; i < start[r + 1]; i++)
		all += count[i];
	*sum = all;
	return all > total && row_most(c, b, r) > total; /* the sum is nearly always n_counts, and its loop is the faster one */
}

int counts_error(const struct counts_columns *c, const struct block *b, size_t r, const char *name, uint64_t before, struct error *e)
{
	return error_set(e, "%s: row %" PRIu64 ": a count of %u, but n_counts is %" PRIu64, name, before + r, row_most(c, b, r),
		((const uint64_t *)b->col[c->total].data)[r]);
}

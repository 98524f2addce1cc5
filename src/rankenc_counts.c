/* The columns of a counts stream. */
#include "rankenc.h"

#include <inttypes.h>
#include <stdlib.h>

void counts_open(struct counts_in *in, struct stream *s)
{
	struct error e;
	*in = (struct counts_in){.s = s};
	in->h = stream_header(in->s);
	const char *name = stream_name(in->s);
	if (header_kind(in->h, "counts", name, &e) || (in->gene = header_need(in->h, "gene", U32, RAGGED, name, &e)) < 0 ||
		(in->count = header_need(in->h, "count", U32, RAGGED, name, &e)) < 0 ||
		(in->total = header_need(in->h, "n_counts", U64, SCALAR, name, &e)) < 0)
		die("%s", e.msg);
	in->group = in->h->col[in->gene].group;
	if (in->h->col[in->count].type != U32 || in->h->col[in->count].group != in->group)
		die("%s: columns gene and count do not have the layout of a counts stream", name);
	if (!in->h->vocab.n)
		die("%s: no table of genes in the header", name);
}

void counts_close(struct counts_in *in)
{
	stream_free(in->s);
	block_release(&in->block);
}

const uint32_t *counts_genes(const struct counts_in *in, uint64_t from, uint64_t end, uint32_t **wide, size_t *cap)
{
	const struct column *c = in->block.col + in->gene;
	if (in->h->col[in->gene].type == U32)
		return (const uint32_t *)c->data + from;
	const uint16_t *narrow = (const uint16_t *)c->data + from;
	grow(*wide, *cap, end - from);
	for (size_t i = 0; i < end - from; i++)
		(*wide)[i] = narrow[i];
	return *wide;
}

/* The largest count of row r. */
static uint32_t row_most(const struct counts_in *in, size_t r)
{
	const struct block *b = &in->block;
	const uint64_t *start = b->group[in->group].offset;
	const uint32_t *count = b->col[in->count].data;
	uint32_t most = 0;
	for (uint64_t i = start[r]; i < start[r + 1]; i++)
		most = count[i] > most ? count[i] : most;
	return most;
}

int counts_wrong(const struct counts_in *in, size_t r)
{
	return row_most(in, r) > ((const uint64_t *)in->block.col[in->total].data)[r];
}

void counts_die(const struct counts_in *in, size_t r)
{
	die("%s: row %" PRIu64 ": a count of %u, but n_counts is %" PRIu64, stream_name(in->s), in->row + r, row_most(in, r),
		((const uint64_t *)in->block.col[in->total].data)[r]);
}

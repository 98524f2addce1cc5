#include "cli_embeddings.h"

static void vectors_add(
	struct gene_vectors *g, const float *x, uint32_t token, uint64_t cells, uint8_t *seen, const struct header *h, const char *name)
{
	embedding_check(x, g->d, g->n, name);
	if (seen[token]++)
		die("%s: gene %s has two vectors, expected one; choose a class with scsample --where", name, h->vocab.id[token]);
	grow(g->x, g->x_cap, (g->n + 1) * g->d);
	grow(g->token, g->token_cap, g->n + 1);
	grow(g->cells, g->cells_cap, g->n + 1);
	memcpy(g->x + g->n * g->d, x, g->d * sizeof *x);
	g->token[g->n] = token;
	g->cells[g->n++] = cells;
}

void gene_vectors_read(struct gene_vectors *g, struct stream *in)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	RELEASED(block_release) struct block b = {0};
	must_kind(in, STREAM_EMBEDDING);
	int x = must_column(in, "x", F32, FIXED), token = header_find(h, "token"), cells = header_find(h, "cells");
	if (token < 0 || h->col[token].shape != SCALAR || !header_is_id(&h->col[token]))
		die("%s: not embeddings of genes: expected the column token, as scembed --of genes writes it", name);
	if (cells >= 0)
		must_column(in, "cells", U64, SCALAR);
	*g = (struct gene_vectors){.d = h->col[x].n};
	FREED uint8_t *seen = xcalloc(h->vocab.n + 1, 1);
	while (must_read(in, &b))
		for (size_t i = 0; i < b.rows; i++)
			vectors_add(g, (const float *)b.col[x].data + i * g->d, block_id(&b, token, i),
				cells < 0 ? 0 : ((const uint64_t *)b.col[cells].data)[i], seen, h, name);
}

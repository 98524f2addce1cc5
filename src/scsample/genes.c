/* What changes the genes of a cell: --hvg and --keep-genes leave genes out, --thin molecules. */
#include "scsample.h"
#include "cli.h"
#include "cli_labels.h"

#include "cells/thin.h"
#include "stream/panels.h"

static const char *option(const struct genes *g)
{
	return sample_set.keep_genes ? "--keep-genes" : sample_set.hvg ? "--hvg" : "--thin";
}

static int need(const struct genes *g, const struct header *h, const char *column, enum column_type type, enum column_shape shape)
{
	int c = header_need(h, column, type, shape, g->file, &failure);
	if (c < 0)
		die("%s: %s", option(g), failure.msg);
	return c;
}

/* What is the same in the output; genes_fill writes the rest. */
static void set_map(struct genes *g, const struct header *from)
{
	struct header *h = &g->header;
	g->map = xrealloc(g->map, h->ncol, sizeof *g->map);
	header_map(h, from, g->map);
	g->map[header_find(h, "gene")] = g->map[header_find(h, "count")] = -1;
	if (sample_set.thin > 0)
		g->map[header_find(h, "n_counts")] = -1;
}

void genes_init(struct genes *g, const struct header *h, const char *file)
{
	g->file = file;
	if (header_kind(h, STREAM_COUNTS, file, &failure))
		die("%s: %s", option(g), failure.msg);
	g->cell = need(g, h, "cell", U64, SCALAR);
	g->gene = need(g, h, "gene", U32, RAGGED);
	g->count = need(g, h, "count", U32, RAGGED);
	g->total = need(g, h, "n_counts", U64, SCALAR);
	g->group = h->col[g->gene].group;
	if (h->col[g->count].type != U32 || h->col[g->count].group != g->group)
		die("%s: %s: column 'count' is not u32 in the group of column gene", option(g), file);
	if (sample_set.batch_key)
		labels_open(&g->labels, h, sample_set.batch_key, &g->classes, file);
	g->thinned = thin_before(h);
	hvg_init(&g->hvg, (enum hvg_flavor)sample_set.flavor, h->vocab.n, (size_t)sample_set.hvg);
	header_copy(&g->header, h);
	for (size_t c = 0; c < h->ncol; c++)
		if (h->col[c].group == g->group && (int)c != g->gene && (int)c != g->count) {
			warn("%s: the list %s is left out: it has a value for every gene", file, h->col[c].name);
			header_drop(&g->header, h->col[c].name);
		}
	set_map(g, h);
}

void genes_add(struct genes *g, const struct block *b, const uint8_t *keep)
{
	const uint64_t *o = b->group[g->group].offset;
	for (size_t row = 0; row < b->rows; row++) {
		if (!keep[row])
			continue;
		size_t n = o[row + 1] - o[row];
		uint32_t batch = sample_set.batch_key ? labels_at(&g->labels, b, row) : 0;
		if (batch == MISSING_CODE)
			continue;
		grow(g->id, g->cap, n);
		for (size_t i = 0; i < n; i++)
			g->id[i] = block_id(b, g->gene, o[row] + i);
		hvg_add(&g->hvg, batch, g->id, (const uint32_t *)b->col[g->count].data + o[row], n);
	}
}

/* The header with the chosen genes only. */
static void narrow(struct genes *g, const uint8_t *take)
{
	struct header *h = &g->header;
	RELEASED(header_release) struct header from = {0};
	header_copy(&from, h);
	g->number = xmalloc(from.vocab.n * sizeof *g->number);
	vocab_release(&h->vocab);
	for (size_t i = 0; i < from.vocab.n; i++) {
		int stays = take[i] || i < from.vocab.nspecial;
		g->number[i] = stays ? (uint32_t)h->vocab.n : GENE_DROPPED;
		if (stays)
			vocab_push(&h->vocab, from.vocab.id[i], from.vocab.symbol[i], from.vocab.median[i]);
	}
	struct panels p;
	must(panels_read(&p, &from, g->file, &failure));
	if (p.n)
		panels_renumber(h, &p, from.vocab.n, g->number);
	panels_release(&p);
	h->col[header_find(h, "gene")].type = id_type(h->vocab.n);
}

void genes_listed(struct genes *g)
{
	FREED uint8_t *take = cli_gene_list("--keep-genes", sample_set.keep_genes, &g->header.vocab, g->file);
	narrow(g, take);
}

int genes_again(struct genes *g)
{
	size_t bad = 0;
	if (sample_set.batch_key && !g->told++)
		groups_read(&g->labels, sample_set.batch_key, g->file, "do not count in the choice of genes");
	int again = hvg_again(&g->hvg, &bad, &failure);
	if (again < 0 && sample_set.batch_key)
		die("--hvg: %s: %s '%s': %s", g->file, sample_set.batch_key, g->classes.name[bad], failure.msg);
	if (again < 0 || !g->hvg.batches)
		die("--hvg: %s: %s", g->file, again < 0 ? failure.msg : "no cells to choose genes by");
	if (again)
		return 1;
	FREED uint8_t *take = xmalloc(g->hvg.genes);
	size_t n = hvg_choose(&g->hvg, take);
	if (!n)
		die("--hvg: %s: no gene is highly variable: every gene has the same count in all cells", g->file);
	if (n < (size_t)sample_set.hvg)
		warn("--hvg: %s: %lld genes were requested, but %zu vary; these are kept", g->file, sample_set.hvg, n);
	narrow(g, take);
	return 0;
}

/* How many of n molecules are written. */
static uint64_t thinned(const struct genes *g, struct rng *r, uint64_t n)
{
	uint64_t kept = thin_draw(r, n, sample_set.thin);
	return sample_set.complement ? n - kept : kept;
}

/* Append the items of row `row` of b at `at` of out; returns where they end. *total: n_counts of the cell, of which the genes of b may be a part */
static uint64_t fill_row(
	const struct genes *g, struct block *out, int gene, int count, uint64_t at, const struct block *b, size_t row, uint64_t *total)
{
	const uint64_t *o = b->group[g->group].offset;
	uint64_t seen = 0, kept = 0;
	struct rng r = thin_at((uint32_t)scsample_cli.seed, RNG_THIN, ((const uint64_t *)b->col[g->cell].data)[row], g->thinned);
	for (uint64_t i = o[row]; i < o[row + 1]; i++) {
		uint32_t id = block_id(b, g->gene, i), n = ((const uint32_t *)b->col[g->count].data)[i];
		seen += n;
		if (sample_set.thin > 0)
			n = (uint32_t)thinned(g, &r, n);
		kept += n;
		if (!n || (g->number && g->number[id] == GENE_DROPPED))
			continue;
		block_set_id(out, gene, at, g->number ? g->number[id] : id);
		((uint32_t *)out->col[count].data)[at++] = n;
	}
	if (sample_set.thin > 0)
		*total = kept + (*total > seen ? thinned(g, &r, *total - seen) : 0);
	return at;
}

void genes_fill(const struct genes *g, struct block *out, const struct block *b, const uint32_t *row, size_t n)
{
	const struct header *h = &g->header;
	int gene = header_find(h, "gene"), count = header_find(h, "count"), total = header_find(h, "n_counts"), group = h->col[gene].group;
	uint64_t *end = out->group[group].offset, at = end[out->rows - n];
	const uint64_t *o = b->group[g->group].offset;
	for (size_t k = 0; k < n; k++) {
		uint64_t *to = (uint64_t *)out->col[total].data + out->rows - n + k;
		block_set_items(out, group, at + o[row[k] + 1] - o[row[k]]);
		*to = ((const uint64_t *)b->col[g->total].data)[row[k]];
		end[out->rows - n + k + 1] = at = fill_row(g, out, gene, count, at, b, row[k], to);
	}
}

#include "cells/expressed.h"

#include "cells/thin.h"

/* row [from->n] out: the gene of `to`. Two names of one table are the same gene. */
static int match_genes(uint32_t *row, const struct gene_tables *t, struct gene_matched *m, struct error *e)
{
	if (t->from != t->to)
		return gene_match(row, t, m, e);
	for (size_t i = 0; i < t->from->n; i++)
		row[i] = i < t->from->nspecial ? GENE_NONE : (uint32_t)i;
	*m = (struct gene_matched){0};
	m->n = m->shared = m->from = m->to = t->from->n - t->from->nspecial;
	return 0;
}

int expressed_init(struct expressed *x, const struct header *h, const char *name, const struct vocab *genes, const struct vocab *with,
	const char *with_name, struct error *e)
{
	*x = (struct expressed){0};
	if (header_kind(h, STREAM_COUNTS, name, e) || (x->gene = header_need(h, "gene", U32, RAGGED, name, e)) < 0 ||
		(x->count = header_need(h, "count", U32, RAGGED, name, e)) < 0)
		return -1;
	if (h->col[x->count].type != U32 || h->col[x->count].group != h->col[x->gene].group)
		return error_set(e, "%s: column 'count' is not u32 in the group of column gene", name);
	size_t most = with->n > h->vocab.n ? with->n : h->vocab.n;
	FREED uint8_t *there = xcalloc(genes->n + 1, 1);
	uint32_t *row = x->feature = xmalloc((most + 1) * sizeof *row);
	struct gene_tables t = {.from = with, .to = genes, .from_name = with_name, .to_name = name, .once = 1};
	int bad = match_genes(row, &t, &x->matched, e);
	for (size_t i = 0; i < with->n && !bad; i++)
		if (row[i] != GENE_NONE)
			there[row[i]] = 1;
	if (!bad && genes != &h->vocab) {
		t.from = &h->vocab;
		t.from_name = name;
		t.to_name = with_name;
		bad = match_genes(row, &t, &x->matched, e);
	} else if (!bad) {
		for (size_t g = 0; g < h->vocab.n; g++)
			row[g] = (uint32_t)g;
	}
	if (bad)
		return -1;
	for (size_t g = 0; g < h->vocab.n; g++) {
		row[g] = row[g] != GENE_NONE && there[row[g]] ? row[g] : EXPRESSED_NOT;
		x->shared += row[g] != EXPRESSED_NOT;
	}
	return 0;
}

void expressed_release(struct expressed *x)
{
	free_all(x->feature, x->column, x->some);
	*x = (struct expressed){0};
}

uint64_t expressed_add(const struct expressed *x, const struct block *b, size_t r, struct sparse *to)
{
	const uint64_t *o = b->group[b->header->col[x->gene].group].offset;
	const uint32_t *count = b->col[x->count].data;
	uint64_t total = 0;
	size_t n = 0;
	for (uint64_t i = o[r]; i < o[r + 1]; i++)
		if (count[i] && x->feature[block_id(b, x->gene, i)] != EXPRESSED_NOT) {
			total += count[i];
			n++;
		}
	if (!total)
		return 0;
	uint64_t at = sparse_add(to, n);
	for (uint64_t i = o[r]; i < o[r + 1]; i++) {
		uint32_t f = x->feature[block_id(b, x->gene, i)];
		if (!count[i] || f == EXPRESSED_NOT)
			continue;
		to->column[at] = f;
		to->value[at++] = (float)log1p(1e4 * (double)count[i] / (double)total);
	}
	return total;
}

uint64_t expressed_pack(struct expressed *x, const struct block *b, size_t r, struct sparse *to)
{
	const uint64_t *o = b->group[b->header->col[x->gene].group].offset;
	const uint32_t *count = b->col[x->count].data;
	uint64_t total = 0;
	size_t n = 0;
	grow(x->column, x->column_cap, o[r + 1] - o[r] + 1);
	grow(x->some, x->some_cap, o[r + 1] - o[r] + 1);
	for (uint64_t i = o[r]; i < o[r + 1]; i++) {
		x->column[n] = x->feature[block_id(b, x->gene, i)];
		if (!count[i] || x->column[n] == EXPRESSED_NOT)
			continue;
		total += x->some[n++] = count[i];
	}
	if (total)
		sparse_pack(to, x->column, x->some, n, 0);
	return total;
}

void expressed_thin(struct sparse *x, uint64_t *total, const uint64_t *cell, uint32_t seed, uint32_t before, double p)
{
	struct sparse thin = {.d = x->d};
	RELEASED(sparse_row_release) struct sparse_row of = {0};
	for (size_t r = 0; r < x->n; r++) {
		struct rng draws = thin_at(seed, RNG_THIN_REFERENCE, cell[r], before);
		size_t n = 0;
		sparse_counts(x, r, &of);
		total[r] = 0;
		for (size_t i = 0; i < of.n; i++) {
			uint64_t kept = thin_draw(&draws, of.count[i], p);
			total[r] += of.count[n] = kept;
			of.own_column[n] = of.column[i];
			n += kept > 0;
		}
		sparse_pack(&thin, of.own_column, of.count, n, 0);
	}
	sparse_release(x);
	*x = thin;
}

#include "genes/gene_match.h"

#include "genes/gene_name.h"

static int same_key(const char *a, const char *b)
{
	struct gene_key x, y;
	gene_key(&x, a, strlen(a));
	gene_key(&y, b, strlen(b));
	return x.n == y.n && !memcmp(x.s, y.s, x.n);
}

/* first [genes] out: the first row of the table that is the gene */
static void first_rows(uint32_t *first, const struct gene_table *t, size_t genes)
{
	memset(first, 0xff, genes * sizeof *first);
	for (size_t i = t->n; i-- > 0;)
		if (t->row[i] != GENE_NONE)
			first[t->row[i]] = (uint32_t)i;
}

static const char *first_id(const struct vocab *v)
{
	return v->n > v->nspecial ? v->id[v->nspecial] : "";
}

static void match_rows(uint32_t *row, const struct gene_tables *t, const struct gene_join *j, struct gene_matched *m)
{
	const struct gene_table *to = j->table, *from = j->table + 1;
	FREED uint32_t *first = xmalloc((j->genes.n + 1) * sizeof *first);
	FREED uint8_t *seen = xcalloc(j->genes.n + 1, 1);
	first_rows(first, to, j->genes.n);
	*m = (struct gene_matched){.ambiguous = from->ambiguous,
		.by_alias = from->by_alias,
		.renamed = from->renamed,
		.from = from->genes,
		.to = to->genes,
		.from_like = first_id(t->from),
		.to_like = first_id(t->to)};
	for (size_t i = 0; i < from->n; i++) {
		uint32_t gene = from->row[i], there = gene == GENE_NONE ? GENE_NONE : first[gene];
		row[i] = there;
		if (there == GENE_NONE)
			continue;
		int64_t same = vocab_find(t->to, t->from->id[i]); /* another version of the id is another row of `to` */
		if (same >= 0 && to->row[same] == gene)
			row[i] = (uint32_t)same;
		m->repeated += seen[gene];
		m->shared += !seen[gene];
		if (seen[gene] && t->once) {
			row[i] = GENE_NONE;
			continue;
		}
		seen[gene] = 1;
		m->n++;
		m->by_symbol += !from->moved[i] && !same_key(t->from->id[i], t->to->id[there]);
	}
}

int gene_match(uint32_t *row, const struct gene_tables *t, struct gene_matched *m, struct error *e)
{
	RELEASED(gene_join_release) struct gene_join j = {0};
	int r = gene_join_vocab(&j, t->to_name, t->to, e);
	j.ids = t->ids;
	j.to = t->to;
	if (r || gene_join_vocab(&j, t->from_name, t->from, e) || gene_join_finish(&j, e))
		r = -1;
	else
		match_rows(row, t, &j, m);
	return r;
}

enum gene_share gene_share(size_t shared, size_t a, size_t b)
{
	size_t few = a < b ? a : b, many = a < b ? b : a;
	if (!shared || 20 * shared < few)
		return GENES_OTHER;
	return 4 * shared < few || (shared < 10 && 2 * shared < many) ? GENES_FEW : GENES_ENOUGH;
}

/* Genes of the user: lists of them; and what is said about those that tables share. */
#include "cli_genes.h"

#include "cli.h"

#include "base/tsv.h"

/* Read a list: one gene a line, or a table with a column gene_id, gene or symbol, such as a vocabulary. -1 with e set. */
static int read_list(struct vocab *list, const char *path, struct error *e)
{
	static const char *const names[] = {"gene_id", "gene", "symbol"};
	RELEASED(tsv_close) struct tsv t;
	if (tsv_open(&t, path, e))
		return -1;
	int got = tsv_first(&t, e), at = -1;
	for (size_t i = 0; got > 0 && at < 0 && i < 3; i++)
		at = tsv_find(&t, names[i]);
	for (int table = at >= 0; got > 0; got = got < 0 ? got : tsv_next(&t, e)) {
		if (table && t.line == 1)
			continue;
		if (!table && t.n > 1)
			got = tsv_error(
				&t, e, "%zu fields, expected one gene per line, or a table with a column gene_id, gene or symbol", t.n);
		else if (table && (size_t)at >= t.n)
			got = tsv_error(&t, e, "%zu fields, expected the gene in field %d", t.n, at + 1);
		else if (*t.field[table ? at : 0])
			vocab_push(list, t.field[table ? at : 0], NULL, NAN);
	}
	return got;
}

uint8_t *cli_gene_list(const char *option, const char *path, const struct vocab *v, const char *name)
{
	RELEASED(vocab_release) struct vocab list = {0};
	RELEASED(gene_find_release) struct gene_find find;
	if (read_list(&list, path, &failure))
		die("%s: %s", option, failure.msg);
	gene_find_init(&find, v);
	uint8_t *take = xcalloc(v->n + 1, 1);
	size_t absent = 0, wanted = list.n - list.nspecial;
	for (size_t i = list.nspecial; i < list.n; i++) {
		int64_t row = gene_find(&find, list.id[i], strlen(list.id[i]));
		if (row == GENE_AMBIGUOUS)
			die("%s: %s: %s", option, path, gene_ambiguous(&find, list.id[i], strlen(list.id[i])));
		if (row < 0)
			absent++;
		else
			take[row] = 1;
	}
	if (absent == wanted)
		die("%s: %s: none of its %zu genes is in %s", option, path, wanted, name);
	if (absent)
		warn("%s: %s: %zu of its %zu genes are not in %s", option, path, absent, wanted, name);
	return take;
}

void say_ambiguous(const char *path, size_t names)
{
	if (names)
		warn("%s: names left out, as they are symbols of several genes: %zu", path, names);
}

char *gene_ambiguous(const struct gene_find *f, const char *s, size_t n)
{
	char *ids = gene_find_ids(f, s, n),
	     *text = xasprintf("'%.*s' is the symbol of several genes: give one of the ids %s", (int)n, s, ids);
	free(ids);
	return text;
}

void say_genomes(const char *name, const struct gene_names *g)
{
	if (g->ngenome == 1)
		info("%s: the genome %s stands before the names of %zu genes, and is left out", name, g->genome[0].name,
			g->genome[0].genes);
	for (size_t k = 0; k < g->ngenome && g->ngenome > 1 && !g->other; k++)
		info("%s: genome %s: %zu genes, whose names keep it; --modality %s reads them alone", name, g->genome[k].name,
			g->genome[k].genes, g->genome[k].name);
}

enum { MAPPED_GENES_MIN = 20 }; /* percent: fewer are the wrong table of --map */

void check_mapped(const struct gene_table *t, const struct texts *id, const char *map)
{
	double percent = t->rows ? 100 * (double)t->mapped / (double)t->rows : 0;
	info("%s: %zu of %zu genes (%.1f %%) are in %s", t->name, t->mapped, t->rows, percent, map);
	size_t k = id->n / 2; /* a typical one: the first and the last are often odd */
	if (percent < MAPPED_GENES_MIN)
		die("%s: only %.1f %% of the genes are in %s, expected at least %d %%; ids are like '%.*s'", t->name, percent, map,
			MAPPED_GENES_MIN, (int)(id->n ? id->offset[k + 1] - id->offset[k] : 0), id->n ? id->bytes + id->offset[k] : "");
}

/* An id of the table, for messages: a typical one, as the first and the last are often odd. */
static const char *typical_id(const struct gene_join *j, const struct gene_table *t)
{
	size_t k = t->n / 2;
	while (k && t->row[k] == GENE_NONE)
		k--;
	return t->n && t->row[k] != GENE_NONE ? j->genes.id[t->row[k]] : "";
}

/* Does a table share enough genes with the others? */
static void say_shared(const struct gene_join *j, size_t i)
{
	const struct gene_table *t = j->table + i, *other = j->table + !i;
	enum gene_share share = gene_share(t->shared, t->genes, j->genes.n - (t->genes - t->shared));
	const char *with = i + 1 == j->ntable ? "the files before it" : "the other files";
	if (!t->shared)
		warn("%s: shares no gene with %s: another species, or other ids? Ids here are like '%s', there like '%s'", t->name, with,
			typical_id(j, t), typical_id(j, other));
	else if (share != GENES_ENOUGH)
		warn("%s: only %zu of its %zu genes are in %s: another species, or other ids? Ids here are like '%s', there like '%s'",
			t->name, t->shared, t->genes, with, typical_id(j, t), typical_id(j, other));
}

void say_joined(const struct gene_join *j, int mapped)
{
	for (size_t i = 0; i < j->ntable; i++) {
		const struct gene_table *t = j->table + i;
		if (2 * t->repeated > t->rows && !mapped)
			warn("%s: its %zu genes have %zu names: genes of one name are added", t->name, t->rows, t->genes);
		else if (t->repeated)
			info("%s: %zu %s to it", t->name, t->repeated,
				t->repeated == 1 ? "gene has the same id as another gene and is added"
						 : "genes have the same id as another gene and are added");
		if (t->by_symbol)
			info("%s: genes that are found by symbol: %zu", t->name, t->by_symbol);
		if (t->ambiguous && j->ntable > 1)
			info("%s: genes that stay apart, as their name is that of several: %zu", t->name, t->ambiguous);
		if (j->ntable > 2 || i)
			say_shared(j, i);
	}
}

void say_matched(const char *name, const char *other, const struct gene_matched *m)
{
	if (m->by_symbol)
		info("%s: genes that are found by symbol: %zu", name, m->by_symbol);
	if (m->ambiguous)
		info("%s: genes left out, as their name is that of several: %zu", name, m->ambiguous);
	check_shared(name, other, m, 0);
}

void check_shared(const char *name, const char *other, const struct gene_matched *m, int warn_only)
{
	if (m->renamed)
		warn("%s: %zu genes have other symbols than in %s: are the ids those of the same genes?", name, m->renamed, other);
	enum gene_share share = gene_share(m->shared, m->from, m->to);
	if (share == GENES_OTHER && !warn_only)
		die("%s: the cells of %s (%s ...) have %zu of its %zu genes (%s ...): expected the same species and kind of gene ids",
			other, name, m->from_like, m->shared, m->to, m->to_like);
	if (share != GENES_ENOUGH)
		warn("%s: only %zu of its %zu genes are among the %zu of %s", name, m->shared, m->from, m->to, other);
}

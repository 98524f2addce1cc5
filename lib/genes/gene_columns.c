#include "genes/gene_columns.h"

#include "genes/gene_name.h"

#include "base/strmap.h"

#include <ctype.h>

void gene_names_release(struct gene_names *g)
{
	texts_release(&g->id);
	texts_release(&g->symbol);
	for (size_t i = 0; i < GENE_GENOMES; i++)
		free(g->genome[i].name);
	free_all(g->source, g->instead, g->other);
	*g = (struct gene_names){0};
}

/* What the names of the genes are in a column. */
struct column_kinds {
	size_t n, ensembl, number, nothing;
};

static struct column_kinds column_kinds(const struct texts *t, const uint8_t *drop)
{
	struct column_kinds k = {0};
	for (size_t i = 0; i < t->n; i++) {
		size_t n, genome, prefix;
		if (drop && drop[i])
			continue;
		k.n++;
		const char *s = texts_at(t, i, &n);
		prefix = gene_prefix(s, n, &genome);
		switch (gene_id_first(s, n, &genome) ? GENE_ENSEMBL : gene_kind(s + prefix, n - prefix)) {
		case GENE_ENSEMBL:
			k.ensembl++;
			break;
		case GENE_NUMBER:
			k.number++;
			break;
		case GENE_NOTHING:
			k.nothing++;
			break;
		case GENE_NAME:
			break;
		}
	}
	return k;
}

static int mostly_ensembl(const struct texts *t, const uint8_t *drop)
{
	struct column_kinds k = column_kinds(t, drop);
	return k.n && 2 * k.ensembl >= k.n;
}

static int row_numbers(const struct texts *t, const uint8_t *drop)
{
	struct column_kinds k = column_kinds(t, drop);
	return k.number && 2 * (k.number + k.nothing) >= k.n;
}

static int names_genes(const struct texts *t, const uint8_t *drop)
{
	struct column_kinds k = column_kinds(t, drop);
	return k.nothing < k.n && (!k.number || 2 * (k.number + k.nothing) < k.n);
}

/* Have most genes a name of their own? */
static int tells_genes_apart(const struct texts *t, const uint8_t *drop)
{
	RELEASED(strmap_release) struct strmap seen = {0};
	for (size_t i = 0, n; i < t->n; i++) {
		const char *s = texts_at(t, i, &n);
		strmap_put(&seen, s, n, 0);
	}
	size_t distinct = seen.n;
	return 2 * distinct > t->n && names_genes(t, drop);
}

int gene_ids(const struct texts *t)
{
	return mostly_ensembl(t, NULL) && tells_genes_apart(t, NULL);
}

int gene_barcodes(const struct texts *t)
{
	enum { BARCODE = 12 };
	size_t barcodes = 0, run = 0;
	for (size_t i = 0, n; i < t->n; i++) {
		const char *s = texts_at(t, i, &n);
		for (size_t at = run = 0; at < n && run < BARCODE; at++)
			run = memchr("ACGT", s[at], 4) ? run + 1 : 0;
		barcodes += run == BARCODE;
	}
	return 2 * barcodes > t->n;
}

/* Is a column called so, whatever its case, dots, blanks and underscores? */
static int column_called(const char *name, const char *what)
{
	while (*name && *what) {
		if (strchr("_-. ", *name)) {
			name++;
			continue;
		}
		if (tolower((unsigned char)*name++) != *what++)
			return 0;
	}
	return !*name && !*what;
}

static int column_listed(const char *name, const char *const *list)
{
	while (*list && !column_called(name, *list))
		list++;
	return *list != NULL;
}

static const char *const id_columns[] = {
	"ensemblid", "ensemblids", "ensembl", "ensemblgeneid", "geneids", "geneid", "featureid", "id", NULL};
static const char *const symbol_columns[] = {"genesymbol", "genesymbols", "featurename", "genename", "genenames", "symbol", "symbols",
	"name", "hgncsymbol", "geneshortname", NULL};
/* Looked at only where the index does not name the genes */
static const char *const other_columns[] = {
	"featurenames", "mgisymbol", "externalgenename", "gene", "genes", "feature", "features", "names", "varnames", NULL};

/* The first column of a list (NULL: any) whose texts pass: *column is its number. 1, 0: there is none, -1. */
static int gene_columns_find_column(const struct gene_columns *c, const char *const *list,
	int (*pass)(const struct texts *, const uint8_t *), struct texts *t, size_t *column, struct error *e)
{
	for (size_t i = 1; i < c->ncol; i++) {
		if (list && !column_listed(c->name(c->of, i), list))
			continue;
		int r = c->load(c->of, i, 0, t, e);
		*column = i;
		if (r < 0 || (r > 0 && pass(t, c->drop)))
			return r;
	}
	return 0;
}

static void list_columns(const struct gene_columns *c, char has[300])
{
	size_t at = (size_t)snprintf(has, 300, "index");
	for (size_t i = 1; i < c->ncol && at < 300; i++)
		at += (size_t)snprintf(has + at, 300 - at, ", %s", c->name(c->of, i));
}

/* Find the column of ids: its number, and its texts in id unless it is the index. -1: an error. */
static int find_ids(const struct gene_columns *c, const struct texts *index, struct texts *id, size_t *column, struct error *e)
{
	char has[300];
	*column = 0;
	if (c->wanted) {
		while (strcmp(c->wanted, "index") && *column < c->ncol && strcmp(c->wanted, c->name(c->of, *column)))
			++*column;
		int r = *column == 0 ? 1 : *column < c->ncol ? c->load(c->of, *column, 1, id, e) : 0;
		if (r)
			return r < 0 ? -1 : 0;
		list_columns(c, has);
		return error_set(e, "%s: no column '%s' to take gene ids from (it has: %s)", c->where, c->wanted, has);
	}
	if (mostly_ensembl(index, c->drop))
		return 0;
	int r = gene_columns_find_column(c, id_columns, mostly_ensembl, id, column, e);
	if (r == 0)
		r = gene_columns_find_column(c, NULL, mostly_ensembl, id, column, e);
	int numbered = r == 0 && row_numbers(index, c->drop);
	const char *const *const lists[] = {symbol_columns, other_columns, id_columns};
	for (size_t i = 0; r == 0 && numbered && i < 3; i++)
		r = gene_columns_find_column(c, lists[i], tells_genes_apart, id, column, e);
	if (r == 0)
		*column = 0;
	return r < 0 ? -1 : 0;
}

/* The first of the texts that names a gene; `any`: the first may be a whole number. NULL: none does. */
static const char *first_name(const struct texts *const from[3], size_t i, int any, size_t *n, size_t *which)
{
	for (*which = 0; *which < 3; ++*which) {
		if (!from[*which] || !from[*which]->n)
			continue;
		const char *s = texts_at(from[*which], i, n);
		enum gene_kind k = gene_kind(s, *n);
		if (k == GENE_ENSEMBL || k == GENE_NAME || (k == GENE_NUMBER && any && *which == 0))
			return s;
	}
	return NULL;
}

static int no_name(const struct gene_columns *c, const struct texts *from, size_t row, struct error *e)
{
	char has[300];
	size_t n;
	const char *s = texts_at(from, row, &n);
	struct column_kinds k = column_kinds(from, c->drop);
	FREED char *empty = xasprintf("%zu of %zu genes have no name", k.nothing, k.n);
	list_columns(c, has);
	return error_set(e, "%s: gene %zu is called '%.*s', and %s%s%s%s%s%s", c->where, row, (int)(n < 40 ? n : 40), s,
		gene_kind(s, n) == GENE_NUMBER ? "a whole number does not say which gene it is" : empty,
		c->option ? "; name a column of ids or symbols with " : "", c->option ? c->option : "", c->option ? " (there are: " : "",
		c->option ? has : "", c->option ? ")" : "");
}

static int fill_names(
	struct gene_names *g, const struct gene_columns *c, const struct texts *const from[3], const struct texts *symbol, struct error *e)
{
	for (size_t i = 0; i < c->n; i++) {
		size_t n, which;
		const char *s = first_name(from, i, c->wanted != NULL, &n, &which);
		int gene = !c->drop || !c->drop[i];
		if (!s && gene)
			return no_name(c, from[0], i, e);
		if (!s)
			s = texts_at(from[0], i, &n);
		g->by_symbol += gene && which > 0;
		size_t at, id = gene_id_first(s, n, &at), m = 0;
		const char *named = symbol ? texts_at(symbol, i, &m) : "";
		texts_push(&g->id, s, id ? id : n);
		if (id && gene_kind(named, m) != GENE_NAME) {
			named = s;
			m = n;
		}
		at = gene_id_first(named, m, &at) ? at : 0;
		texts_push(&g->symbol, named + at, gene_kind(named, m) == GENE_NAME ? m - at : 0);
	}
	return 0;
}

/* ---- genomes ---- */

enum { GENOME_LEAST = 10 }; /* genes of a genome that is not called as assemblies are */

/* Count the genomes that stand before ids. More than there can be, or of few genes: none, as they are symbols then. Returns the genes with
 * any before their id. */
static size_t count_genomes(struct gene_names *g, const uint8_t *drop)
{
	size_t before = 0, n, genome, k;
	for (size_t i = 0; i < g->id.n && g->ngenome <= GENE_GENOMES; i++) {
		const char *s = texts_at(&g->id, i, &n);
		if ((drop && drop[i]) || !gene_prefix(s, n, &genome))
			continue;
		before++;
		for (k = 0; k < g->ngenome && (strncmp(g->genome[k].name, s, genome) || g->genome[k].name[genome]); k++)
			;
		if (k == g->ngenome && g->ngenome++ < GENE_GENOMES)
			g->genome[k].name = xstrndup(s, genome);
		if (k < GENE_GENOMES)
			g->genome[k].genes++;
	}
	int genomes = g->ngenome <= GENE_GENOMES && 2 * before >= g->id.n;
	for (k = 0; k < g->ngenome && genomes; k++)
		genomes = g->genome[k].genes >= GENOME_LEAST || gene_assembly(g->genome[k].name, strlen(g->genome[k].name));
	g->ngenome = genomes ? g->ngenome : 0;
	return before;
}

/* Leave out what stands before names: the genome `pick`; or, if there are no genomes, a symbol, as in MATR3_ENSG00000280987. */
static void drop_prefixes(struct gene_names *g, const char *pick, int alone)
{
	struct texts id = {0}, symbol = {0};
	size_t n, m, of_id, of_symbol;
	texts_clear(&id);
	texts_clear(&symbol);
	for (size_t i = 0; i < g->id.n; i++) {
		const char *s = texts_at(&g->id, i, &n), *t = texts_at(&g->symbol, i, &m);
		size_t p = gene_prefix(s, n, &of_id), q = gene_prefix(t, m, &of_symbol);
		int here = p && (pick ? strlen(pick) == of_id && !memcmp(s, pick, of_id) : gene_kind(s + p, n - p) == GENE_ENSEMBL);
		if (alone)
			g->other[i] = !here;
		texts_push(&id, s + (here ? p : 0), n - (here ? p : 0));
		if (here && !pick && !m)
			texts_push(&symbol, s, of_id);
		else if (here && pick && q && of_symbol == of_id && !memcmp(t, pick, of_id))
			texts_push(&symbol, t + q, m - q);
		else
			texts_push(&symbol, t, m);
	}
	texts_release(&g->id);
	texts_release(&g->symbol);
	g->id = id;
	g->symbol = symbol;
}

static int settle_genomes(struct gene_names *g, const struct gene_columns *c, struct error *e)
{
	char names[256] = "";
	size_t before = count_genomes(g, c->drop);
	const char *pick = g->ngenome == 1 ? g->genome[0].name : NULL;
	for (size_t k = 0, found = 0; k < g->ngenome && c->genome; k++) {
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k ? ", " : "", g->genome[k].name);
		found |= !strcmp(c->genome, g->genome[k].name);
		if (k + 1 == g->ngenome && !found)
			return error_set(e, "%s: no genome '%s' before the names of the genes; there are: %s", c->where, c->genome, names);
		pick = c->genome;
	}
	if (c->genome && g->ngenome)
		g->other = xcalloc(g->id.n + 1, 1);
	if (before && (pick || !g->ngenome))
		drop_prefixes(g, pick, g->other != NULL);
	return 0;
}

/* ---- */

static char *column_path(const struct gene_columns *c, size_t column)
{
	return column ? xasprintf("%s/%s", c->table, c->name(c->of, column)) : xstrdup(c->index);
}

int gene_columns_read(struct gene_names *g, const struct gene_columns *c, struct error *e)
{
	RELEASED(texts_release) struct texts index = {0}, id = {0}, symbol = {0};
	size_t ids = 0, symbols = 0;
	texts_clear(&g->id);
	texts_clear(&g->symbol);
	if (c->load(c->of, 0, 1, &index, e) < 0 || find_ids(c, &index, &id, &ids, e))
		return -1;
	int found = gene_columns_find_column(c, symbol_columns, names_genes, &symbol, &symbols, e);
	if (found < 0)
		return -1;
	const struct texts *of_symbols = found ? &symbol
		: ids                          ? &index
					       : NULL,
			   *const from[] = {ids ? &id : &index, found ? &symbol : NULL, &index};
	if (fill_names(g, c, from, of_symbols, e))
		return -1;
	g->source = column_path(c, ids);
	g->instead = g->by_symbol ? column_path(c, found ? symbols : 0) : NULL;
	if (settle_genomes(g, c, e))
		return -1;
	for (size_t i = 0; i < g->id.n; i++) {
		struct gene_key k;
		size_t n;
		const char *s = texts_at(&g->id, i, &n);
		if (c->drop && c->drop[i])
			continue;
		gene_key(&k, s, n);
		g->ensembl += k.kind == GENE_ENSEMBL;
		g->versions += (size_t)k.version;
	}
	return 0;
}

struct two_texts {
	const struct texts *text[2];
};

static const char *two_name(const void *of, size_t column)
{
	return column ? "name" : "id";
}

static int two_load(void *of, size_t column, int any, struct texts *t, struct error *e)
{
	const struct texts *from = ((const struct two_texts *)of)->text[column];
	texts_clear(t);
	for (size_t i = 0, n; i < from->n; i++) {
		const char *s = texts_at(from, i, &n);
		texts_push(t, s, n);
	}
	return 1;
}

int gene_texts_read(struct gene_names *g, const struct gene_columns *c, const struct texts *id, const struct texts *symbol, struct error *e)
{
	struct two_texts texts = {{id, symbol}};
	struct gene_columns two = *c;
	two.n = id->n;
	two.ncol = 2;
	two.name = two_name;
	two.load = two_load;
	two.of = &texts;
	return gene_columns_read(g, &two, e);
}

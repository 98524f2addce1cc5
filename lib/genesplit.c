#include "genesplit.h"

#include "folds.h"
#include "label.h"
#include "strmap.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

struct reader {
	struct genesplit *g;
	const struct vocab *v;
	struct classes classes;
	struct strmap symbol;   /* symbol -> row of the vocabulary */
	struct strmap seen;     /* gene as written -> its class */
	int gene_at, label_at;  /* columns */
	const char *path;
};

/* Column i of a line, *n bytes; NULL where it has fewer. */
static const char *column(const char *line, int i, size_t *n)
{
	while (i-- && line)
		line = (line = strchr(line, '\t')) ? line + 1 : NULL;
	*n = line ? strcspn(line, "\t") : 0;
	return line;
}

static int column_named(const char *line, const char *name)
{
	size_t n;
	const char *s;
	for (int i = 0; (s = column(line, i, &n)); i++)
		if (n == strlen(name) && memcmp(s, name, n) == 0)
			return i;
	return -1;
}

/* Row of the vocabulary, or -1. */
static int64_t find_gene(const struct reader *r, const char *s, size_t n)
{
	char text[256];
	size_t base;
	if (n >= sizeof text)
		return -1;
	if (ensembl_id(s, n, &base))
		n = base;
	memcpy(text, s, n);
	text[n] = 0;
	int64_t row = vocab_find(r->v, text);
	if (row >= (int64_t)r->v->nspecial)
		return row;
	uint32_t by_symbol = strmap_get(&r->symbol, text, n);
	for (size_t i = 0; by_symbol == STRMAP_NONE && i < n; i++)
		text[i] = (char)toupper((unsigned char)text[i]);
	if (by_symbol == STRMAP_NONE)
		by_symbol = strmap_get(&r->symbol, text, n);
	return by_symbol == STRMAP_NONE ? -1 : (int64_t)by_symbol;
}

static int add_line(struct reader *r, const char *line, size_t lineno, struct error *e)
{
	struct genesplit *g = r->g;
	size_t ngene, nlabel;
	if (lineno == 1 && (r->label_at = column_named(line, "label")) >= 0) {
		static const char *const names[] = {"gene_id", "gene", "symbol"};
		for (size_t i = 0; i < 3 && (r->gene_at = column_named(line, names[i])) < 0; i++)
			;
		return r->gene_at >= 0 ? 0 : error_set(e, "%s: line 1 has a column label, but none named gene_id, gene or symbol", r->path);
	}
	if (lineno == 1) {
		r->gene_at = 0;
		r->label_at = 1;
	}
	if (!*line)
		return 0;
	const char *gene = column(line, r->gene_at, &ngene), *label = column(line, r->label_at, &nlabel);
	if (!gene || !label || !ngene || !nlabel)
		return error_set(e, "%s: line %zu: expected a gene and its label, with a tab between", r->path, lineno);
	uint32_t y = classes_add(&r->classes, label, nlabel);
	int64_t row = find_gene(r, gene, ngene);
	if (strmap_get(&r->seen, gene, ngene) == STRMAP_NONE) {
		g->listed++;
		g->absent += row < 0;
	}
	if (strmap_put(&r->seen, gene, ngene, y) != y || (row >= 0 && g->label[row] >= 0 && g->label[row] != (int32_t)y))
		return error_set(e, "%s: line %zu: gene %.*s has two labels", r->path, lineno, (int)ngene, gene);
	if (row < 0 && !*g->missing)
		snprintf(g->missing, sizeof g->missing, "%.*s", (int)ngene, gene);
	if (row >= 0) {
		g->found += g->label[row] < 0;
		g->label[row] = (int32_t)y;
	}
	return 0;
}

static int read_lines(struct reader *r, gzFile f, struct error *e)
{
	char line[4096];
	int code;
	for (size_t lineno = 1; gzgets(f, line, sizeof line); lineno++) {
		size_t n = strlen(line);
		if (n == sizeof line - 1 && line[n - 1] != '\n')
			return error_set(e, "%s: line %zu is longer than %zu bytes", r->path, lineno, sizeof line - 2);
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		if (add_line(r, line, lineno, e))
			return -1;
	}
	const char *why = gzerror(f, &code);
	if (code != Z_OK && code != Z_STREAM_END)
		return error_set(e, "%s: %s", r->path, code == Z_ERRNO ? strerror(errno) : why);
	if (!r->g->found)
		return error_set(e, r->g->listed ? "%s: none of its %zu genes is in the vocabulary" : "%s: no genes in it", r->path, r->g->listed);
	return 0;
}

/* Classes by name, those of genes of the vocabulary alone. */
static void number_classes(struct genesplit *g, const struct classes *c, size_t nrow)
{
	uint32_t *order = classes_sorted(c);
	int32_t *to = xmalloc(c->n * sizeof *to);
	size_t *count = xcalloc(c->n, sizeof *count);
	for (size_t i = 0; i < nrow; i++)
		if (g->label[i] >= 0)
			count[g->label[i]]++;
	g->name = xcalloc(c->n, sizeof *g->name);
	g->genes = xcalloc(c->n, sizeof *g->genes);
	for (size_t k = 0; k < c->n; k++) {
		if (!count[order[k]])
			continue;
		g->name[g->nclass] = xstrdup(c->name[order[k]]);
		g->genes[g->nclass] = count[order[k]];
		to[order[k]] = (int32_t)g->nclass++;
	}
	for (size_t i = 0; i < nrow; i++)
		if (g->label[i] >= 0)
			g->label[i] = to[g->label[i]];
	free(count);
	free(to);
	free(order);
}

int genesplit_load(struct genesplit *g, const char *path, const struct vocab *v, struct error *e)
{
	struct reader r = {.g = g, .v = v, .path = path};
	*g = (struct genesplit){0};
	gzFile f = gzopen(path, "rb");
	if (!f)
		return error_set(e, "%s: %s", path, strerror(errno));
	g->label = xmalloc(v->n * sizeof *g->label);
	g->fold = xmalloc(v->n * sizeof *g->fold);
	for (size_t i = 0; i < v->n; i++) {
		g->label[i] = g->fold[i] = -1;
		if (i >= v->nspecial && v->symbol[i][0])
			strmap_put(&r.symbol, v->symbol[i], strlen(v->symbol[i]), (uint32_t)i);
	}
	int bad = read_lines(&r, f, e);
	gzclose(f);
	if (!bad)
		number_classes(g, &r.classes, v->n);
	else
		genesplit_release(g);
	classes_release(&r.classes);
	strmap_release(&r.symbol);
	strmap_release(&r.seen);
	return bad;
}

int genesplit_folds(struct genesplit *g, const struct vocab *v, size_t nfold, uint32_t seed, struct error *e)
{
	for (size_t k = 0; k < g->nclass; k++)
		if (g->genes[k] < nfold)
			return error_set(e, "label '%.80s' has %zu genes in the vocabulary, fewer than the %zu folds", g->name[k], g->genes[k], nfold);
	size_t n = 0;
	uint32_t *y = xmalloc(g->found * sizeof *y), *fold = xmalloc(g->found * sizeof *fold);
	uint64_t *id = xmalloc(g->found * sizeof *id);
	for (size_t i = 0; i < v->n; i++) {
		if (g->label[i] < 0)
			continue;
		y[n] = (uint32_t)g->label[i];
		id[n++] = XXH3_64bits(v->id[i], strlen(v->id[i]));
	}
	folds_stratified(fold, y, id, n, g->nclass, nfold, seed);
	n = 0;
	for (size_t i = 0; i < v->n; i++)
		if (g->label[i] >= 0)
			g->fold[i] = (int32_t)fold[n++];
	free(y);
	free(fold);
	free(id);
	return 0;
}

char *genesplit_print(const struct genesplit *g, const struct vocab *v, int32_t test)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	fputs("gene_id\tsymbol\tlabel\tfold\tsplit\n", f);
	for (size_t i = 0; i < v->n; i++) {
		char fold[16] = "NA";
		if (g->label[i] < 0)
			continue;
		if (g->fold[i] >= 0)
			snprintf(fold, sizeof fold, "%d", g->fold[i]);
		fprintf(f, "%s\t%s\t%s\t%s\t%s\n", v->id[i], v->symbol[i], g->name[g->label[i]], fold,
			g->fold[i] >= 0 && g->fold[i] == test ? "test" : "train");
	}
	if (fclose(f))
		abort();        /* out of memory in the C library */
	return text;
}

void genesplit_release(struct genesplit *g)
{
	for (size_t k = 0; k < g->nclass; k++)
		free(g->name[k]);
	free(g->name);
	free(g->genes);
	free(g->label);
	free(g->fold);
	*g = (struct genesplit){0};
}

#include "label/gene_labels.h"

#include "label/folds.h"
#include "genes/gene_find.h"
#include "label/label.h"
#include "genes/gene_name.h"
#include "base/tsv.h"

#include <xxhash.h>

static void gene_labels_init(struct gene_labels *g, size_t rows)
{
	*g = (struct gene_labels){0};
	g->label = xmalloc(rows * sizeof *g->label);
	g->fold = xmalloc(rows * sizeof *g->fold);
	g->held_out = xcalloc(rows, sizeof *g->held_out);
	for (size_t i = 0; i < rows; i++)
		g->label[i] = g->fold[i] = -1;
}

void gene_labels_release(struct gene_labels *g)
{
	free_list(g->name, g->nclass);
	free_all(g->genes, g->label, g->fold, g->held_out);
	*g = (struct gene_labels){0};
}

/* ---- the table of a user ---- */

struct reader {
	struct gene_labels *g;
	struct classes classes;
	struct gene_find find;
	struct strmap seen; /* gene as written -> its class */
	int gene_at, label_at; /* columns */
	char **first; /* [nfirst] the first line, if it does not name these columns */
	size_t nfirst;
	int wide; /* it names the classes: one column of genes each */
};

/* If the first line has a column `label`, find the columns and return 1. Returns 0 if it has none, or -1. */
static int find_gene_columns(struct reader *r, const struct tsv *t, struct error *e)
{
	static const char *const names[] = {"gene_id", "gene", "symbol"};
	r->gene_at = 0;
	r->label_at = 1;
	int label_at = tsv_find(t, "label");
	if (label_at < 0)
		return 0;
	r->label_at = label_at;
	for (size_t i = 0; i < 3; i++)
		if ((r->gene_at = tsv_find(t, names[i])) >= 0)
			return 1;
	return tsv_error(t, e, "a column label, but none named gene_id, gene or symbol");
}

static int add_gene(struct reader *r, const struct tsv *t, const char *gene, const char *label, struct error *e)
{
	struct gene_labels *g = r->g;
	size_t n = strlen(gene);
	if (!*gene || !*label)
		return tsv_error(t, e, "expected a gene and its label, with a tab or comma between");
	uint32_t y = classes_add(&r->classes, label, strlen(label));
	int64_t row = gene_find(&r->find, gene, n);
	if (strmap_get(&r->seen, gene, n) == STRMAP_NONE) {
		g->listed++;
		g->absent += row == GENE_UNKNOWN;
		g->ambiguous += row == GENE_AMBIGUOUS;
	}
	if (strmap_put(&r->seen, gene, n, y) != y || (row >= 0 && g->label[row] >= 0 && g->label[row] != (int32_t)y))
		return tsv_error(t, e, "gene %.80s has two labels", gene);
	if (row == GENE_UNKNOWN && !*g->missing)
		snprintf(g->missing, sizeof g->missing, "%s", gene);
	if (row >= 0) {
		g->found += g->label[row] < 0;
		g->label[row] = (int32_t)y;
	}
	return 0;
}

/* A line of the table: one gene and its label, or with a column for each class one gene a field. */
static int gene_labels_add_row(struct reader *r, const struct tsv *t, struct error *e)
{
	if (t->n == 1 && !*t->field[0])
		return 0;
	if (!r->wide)
		return add_gene(
			r, t, r->gene_at < (int)t->n ? t->field[r->gene_at] : "", r->label_at < (int)t->n ? t->field[r->label_at] : "", e);
	if (t->n > r->nfirst)
		return tsv_error(t, e, "%zu fields, but there are %zu classes", t->n, r->nfirst);
	for (size_t i = 0; i < t->n; i++)
		if (*t->field[i] && add_gene(r, t, t->field[i], r->first[i], e))
			return -1;
	return 0;
}

/* Is this second line one of genes alone? Then the first names the classes, a column each. */
static int is_wide(const struct reader *r, const struct tsv *t)
{
	int genes = t->n >= 2 && t->n == r->nfirst;
	for (size_t i = 0; genes && i < t->n; i++)
		genes = gene_kind(t->field[i], strlen(t->field[i])) == GENE_ENSEMBL ||
			gene_find(&r->find, t->field[i], strlen(t->field[i])) != GENE_UNKNOWN;
	for (size_t i = 0; genes && i < r->nfirst; i++)
		genes = *r->first[i] && gene_find(&r->find, r->first[i], strlen(r->first[i])) == GENE_UNKNOWN;
	return genes;
}

/* The first line is kept until the second shows what it is. */
static int add_first(struct reader *r, struct tsv *t, struct error *e)
{
	t->line--;
	int bad = r->nfirst == 1 && !*r->first[0] ? 0 : add_gene(r, t, r->first[0], r->nfirst > 1 ? r->first[1] : "", e);
	t->line++;
	return bad;
}

static int gene_labels_read_rows(struct reader *r, struct tsv *t, struct error *e)
{
	int got = tsv_first(t, e), named = got > 0 ? find_gene_columns(r, t, e) : 0;
	if (got < 0 || named < 0)
		return -1;
	if (got > 0 && !named) {
		r->first = xcalloc(t->n, sizeof *r->first);
		for (; r->nfirst < t->n; r->nfirst++)
			r->first[r->nfirst] = xstrdup(t->field[r->nfirst]);
	}
	for (size_t line = 2; got > 0 && (got = tsv_next(t, e)) > 0; line++) {
		r->wide = line == 2 && !named ? is_wide(r, t) : r->wide;
		if ((line == 2 && !named && !r->wide && add_first(r, t, e)) || gene_labels_add_row(r, t, e))
			return -1;
	}
	if (got == 0 && r->nfirst && t->line == 1)
		got = add_gene(r, t, r->first[0], r->nfirst > 1 ? r->first[1] : "", e);
	if (got == 0 && !r->g->found)
		got = error_set(
			e, r->g->listed ? "%s: none of its %zu genes is in the vocabulary" : "%s: no genes in it", t->path, r->g->listed);
	return got;
}

/* Number the classes in the order of their names. Classes without a gene of the vocabulary are left out. */
static void number_classes(struct gene_labels *g, const struct classes *c, size_t nrow)
{
	FREED uint32_t *order = classes_sorted(c);
	FREED int32_t *to = xmalloc(c->n * sizeof *to);
	FREED size_t *count = xcalloc(c->n, sizeof *count);
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
}

int gene_labels_load(struct gene_labels *g, const char *path, const struct vocab *v, struct error *e)
{
	struct reader r = {.g = g};
	RELEASED(tsv_close) struct tsv t;
	*g = (struct gene_labels){0};
	if (tsv_open(&t, path, e))
		return -1;
	gene_labels_init(g, v->n);
	gene_find_init(&r.find, v);
	int bad = gene_labels_read_rows(&r, &t, e);
	if (!bad)
		number_classes(g, &r.classes, v->n);
	else
		gene_labels_release(g);
	free_list(r.first, r.nfirst);
	classes_release(&r.classes);
	gene_find_release(&r.find);
	strmap_release(&r.seen);
	return bad;
}

/* ---- folds, and genes.tsv ---- */

int gene_labels_folds(struct gene_labels *g, const struct vocab *v, size_t nfold, size_t test, uint32_t seed, struct error *e)
{
	for (size_t k = 0; k < g->nclass; k++)
		if (g->genes[k] < nfold)
			return error_set(e, "label '%.80s' has %zu genes in the vocabulary, fewer than the %zu folds", g->name[k],
				g->genes[k], nfold);
	size_t n = 0;
	FREED uint32_t *y = xmalloc(g->found * sizeof *y), *fold = xmalloc(g->found * sizeof *fold);
	FREED uint64_t *id = xmalloc(g->found * sizeof *id);
	for (size_t i = 0; i < v->n; i++) {
		if (g->label[i] < 0)
			continue;
		y[n] = (uint32_t)g->label[i];
		id[n++] = XXH3_64bits(v->id[i], strlen(v->id[i]));
	}
	folds_stratified(fold, y, id, n, g->nclass, nfold, seed);
	n = 0;
	g->test = 0;
	for (size_t i = 0; i < v->n; i++) {
		if (g->label[i] < 0)
			continue;
		g->fold[i] = (int32_t)fold[n];
		g->held_out[i] = fold[n++] == test;
		g->test += g->held_out[i];
	}
	return 0;
}

char *gene_labels_print(const struct gene_labels *g, const struct vocab *v)
{
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	fputs("gene_id\tsymbol\tlabel\tfold\tsplit\n", f);
	for (size_t i = 0; i < v->n; i++) {
		char fold[16] = "NA";
		if (g->label[i] < 0)
			continue;
		if (g->fold[i] >= 0)
			snprintf(fold, sizeof fold, "%d", g->fold[i]);
		fprintf(f, "%s\t%s\t%s\t%s\t%s\n", v->id[i], v->symbol[i], g->name[g->label[i]], fold, g->held_out[i] ? "test" : "train");
	}
	xmemclose(f, &text);
	return text;
}

enum { GENE, LABEL, SPLIT, COLUMNS };
static const char *const column_name[] = {[GENE] = "gene_id", [LABEL] = "label", [SPLIT] = "split"};
EVERY_ROW(column_name, COLUMNS);

static int gene_labels_find_columns(int at[COLUMNS], const struct tsv *t, struct error *e)
{
	for (int c = 0; c < COLUMNS; c++)
		if ((at[c] = tsv_find(t, column_name[c])) < 0)
			return tsv_error(t, e, "no column %s (expected gene_id, label and split)", column_name[c]);
	return 0;
}

static int read_gene(struct gene_labels *g, const struct tsv *t, const int at[COLUMNS], const struct vocab *v, struct error *e)
{
	for (int c = 0; c < COLUMNS; c++)
		if (at[c] >= (int)t->n)
			return tsv_error(t, e, "no field %s", column_name[c]);
	const char *gene = t->field[at[GENE]], *label = t->field[at[LABEL]];
	int64_t id = vocab_find(v, gene);
	size_t k = 0;
	while (k < g->nclass && strcmp(label, g->name[k]))
		k++;
	if (k == g->nclass)
		return tsv_error(t, e, "label '%.80s' is not one of the model's %zu classes", label, g->nclass);
	if (id < 0)
		return 0;
	if (g->label[id] >= 0)
		return tsv_error(t, e, "gene %.80s occurs twice", gene);
	g->label[id] = (int32_t)k;
	g->held_out[id] = strcmp(t->field[at[SPLIT]], "test") == 0;
	g->genes[k]++;
	g->found++;
	g->test += g->held_out[id];
	return 0;
}

int gene_labels_read(struct gene_labels *g, const char *path, const struct vocab *v, char *const *name, size_t nlabel, struct error *e)
{
	RELEASED(tsv_close) struct tsv t;
	int at[COLUMNS], got;
	*g = (struct gene_labels){0};
	if (tsv_open(&t, path, e))
		return -1;
	gene_labels_init(g, v->n);
	g->nclass = nlabel;
	g->name = xstrdup_list(name, nlabel);
	g->genes = xcalloc(nlabel, sizeof *g->genes);
	if ((got = tsv_next(&t, e)) == 0)
		got = error_set(e, "%s: empty: expected a table of genes", path);
	else if (got > 0)
		got = gene_labels_find_columns(at, &t, e);
	while (!got && (got = tsv_next(&t, e)) > 0)
		got = read_gene(g, &t, at, v, e);
	if (got)
		gene_labels_release(g);
	return got;
}

#include "genelabels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GENE, LABEL, SPLIT, COLUMNS };
static const char *const column_name[COLUMNS] = {"gene_id", "label", "split"};

/* The wanted fields of a line, which is cut at its tabs; NULL where it has fewer. */
static void fields(char *line, const int at[COLUMNS], char *field[COLUMNS])
{
	char *start = line;
	memset(field, 0, COLUMNS * sizeof *field);
	for (int i = 0; start; i++) {
		char *tab = strchr(start, '\t');
		if (tab)
			*tab = 0;
		for (int c = 0; c < COLUMNS; c++)
			if (at[c] == i)
				field[c] = start;
		start = tab ? tab + 1 : NULL;
	}
}

static int find_columns(char *line, int at[COLUMNS], const char *path, struct error *e)
{
	for (int c = 0; c < COLUMNS; c++)
		at[c] = -1;
	char *rest = line, *word;
	for (int i = 0; (word = strsep(&rest, "\t")); i++)
		for (int c = 0; c < COLUMNS; c++)
			if (strcmp(word, column_name[c]) == 0)
				at[c] = i;
	for (int c = 0; c < COLUMNS; c++)
		if (at[c] < 0)
			return error_set(e, "%s: line 1 has no column %s (expected gene_id, label and split)", path, column_name[c]);
	return 0;
}

static int add_line(struct genelabels *g, char *field[COLUMNS], const struct vocab *v, char *const *name, size_t nlabel,
		    const char *path, size_t lineno, struct error *e)
{
	for (int c = 0; c < COLUMNS; c++)
		if (!field[c])
			return error_set(e, "%s: line %zu has no field %s", path, lineno, column_name[c]);
	int64_t id = vocab_find(v, field[GENE]);
	size_t k = 0;
	while (k < nlabel && strcmp(field[LABEL], name[k]))
		k++;
	if (k == nlabel)
		return error_set(e, "%s: line %zu: label '%.80s' is none of the model's %zu classes", path, lineno, field[LABEL], nlabel);
	if (id < 0)
		return 0;
	if (g->label[id] >= 0)
		return error_set(e, "%s: line %zu: gene %.80s stands twice", path, lineno, field[GENE]);
	g->label[id] = (int32_t)k;
	g->held_out[id] = strcmp(field[SPLIT], "test") == 0;
	g->genes++;
	g->test += g->held_out[id];
	return 0;
}

int genelabels_load(struct genelabels *g, const char *path, const struct vocab *v, char *const *name, size_t nlabel,
		    struct error *e)
{
	*g = (struct genelabels){0};
	FILE *f = fopen(path, "re");
	if (!f)
		return error_set(e, "%s: %s", path, strerror(errno));
	g->label = xmalloc(v->n * sizeof *g->label);
	memset(g->label, 0xFF, v->n * sizeof *g->label);
	g->held_out = xcalloc(v->n, 1);
	char *line = NULL, *field[COLUMNS];
	int at[COLUMNS] = {0}, bad = 0;
	size_t cap = 0, lineno = 0;
	ssize_t n;
	while (!bad && (n = getline(&line, &cap, f)) > 0) {
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		if (++lineno == 1) {
			bad = find_columns(line, at, path, e);
			continue;
		}
		fields(line, at, field);
		bad = add_line(g, field, v, name, nlabel, path, lineno, e);
	}
	if (!bad && ferror(f))
		bad = error_set(e, "%s: cannot read: %s", path, strerror(errno));
	if (!bad && !lineno)
		bad = error_set(e, "%s: empty: expected a table of genes", path);
	free(line);
	fclose(f);
	if (bad)
		genelabels_release(g);
	return bad;
}

void genelabels_release(struct genelabels *g)
{
	free(g->label);
	free(g->held_out);
	*g = (struct genelabels){0};
}

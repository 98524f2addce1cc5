#include "train/groups.h"

#include "base/tsv.h"
#include "nn/ops.h"

#include <unistd.h>

static int read_groups(struct groups *g, struct tsv *t, struct error *e)
{
	int got;
	while ((got = tsv_next(t, e)) > 0) {
		const char *name = t->field[0];
		size_t had = g->classes.n;
		if (t->n != 1 || !*name)
			return tsv_error(t, e, "expected one name");
		if (!g->column)
			g->column = xstrdup(name);
		else if (classes_add(&g->classes, name, strlen(name)) != had)
			return tsv_error(t, e, "group '%.80s' occurs twice", name);
	}
	g->n = g->classes.n;
	return got < 0 ? -1 : g->n ? 0 : error_set(e, "%s: expected the name of a column, then the groups", t->path);
}

int groups_load(struct groups *g, const char *dir, struct error *e)
{
	RELEASED(tsv_close) struct tsv t = {0};
	FREED char *path = xasprintf("%s/groups.tsv", dir);
	int bad = 0;
	if (access(path, F_OK) == 0)
		bad = tsv_open(&t, path, e) || read_groups(g, &t, e);
	if (bad)
		groups_release(g);
	return bad ? -1 : 0;
}

char *groups_print(const struct groups *g)
{
	char *text = xasprintf("%s\n", g->column);
	for (size_t i = 0; i < g->n; i++)
		xappend(&text, "%s\n", g->classes.name[i]);
	return text;
}

void groups_release(struct groups *g)
{
	free(g->column);
	classes_release(&g->classes);
	*g = (struct groups){0};
}

uint32_t groups_at(struct groups *g, struct labels *l, const struct block *b, size_t row)
{
	uint32_t k = labels_at(l, b, row);
	if (k < g->n)
		return k;
	g->unknown++;
	return ROW_NONE;
}

/* ctaprobe score --ontology: labels and predictions are terms of an ontology, so a prediction can say more or less than the label. */
#include "ctaprobe.h"
#include "cli.h"

#include "eval/hierarchy.h"
#include "label/ontology.h"

enum { LISTED = 10 }; /* labels that a message names */

/* Cells whose label, or prediction, is no term are left out; *unknown: how many. The labels among them are listed; more than half: an error. */
static size_t find_terms(struct terms_scored *s, const struct ontology *o, const struct classes *c, const char *path, const char *name)
{
	FREED uint32_t *term = xmalloc(c->n * sizeof *term);
	FREED uint8_t *listed = xcalloc(c->n, 1);
	size_t n = 0, out = 0, labels = 0;
	FREED char *list = xstrdup("");
	for (size_t k = 0; k < c->n; k++)
		term[k] = ontology_find(o, c->name[k], strlen(c->name[k]));
	for (size_t i = 0; i < s->n; i++) {
		uint32_t y = s->y[i], p = s->predicted[i];
		if (term[p] == TERM_NONE)
			die("%s: the predicted class '%s' is not an id, name or exact synonym of %s", name, c->name[p], path);
		if (term[y] != TERM_NONE) {
			s->y[n] = term[y];
			s->predicted[n++] = term[p];
			continue;
		}
		out++;
		if (!listed[y] && labels++ < LISTED)
			xappend(&list, "%s'%.80s'", labels > 1 ? ", " : "", c->name[y]);
		listed[y] = 1;
	}
	xappend(&list, "%s", labels > LISTED ? ", ..." : "");
	if (2 * out > s->n)
		die("%s: %zu of %zu cells have a label that is not an id, name or exact synonym of %s: %s: expected at most half", name,
			out, s->n, path, list);
	if (out)
		warn("%s: %zu of %zu cells have a label that is not an id, name or exact synonym of %s, and are left out: %s", name, out,
			s->n, path, list);
	s->n = n;
	return out;
}

/* The terms that occur, renumbered from 0 in the order of their ids: names of them, for the metrics of classes. */
static char **name_classes(const struct ontology *o, uint32_t *y, uint32_t *predicted, size_t n, size_t *k)
{
	FREED uint32_t *to = xcalloc(o->n, sizeof *to);
	char **name = xcalloc(o->n, sizeof *name);
	for (size_t i = 0; i < n; i++)
		to[y[i]] = to[predicted[i]] = 1;
	*k = 0;
	for (size_t v = 0; v < o->n; v++)
		if (to[v]) {
			to[v] = (uint32_t)*k;
			name[(*k)++] = o->id[v];
		}
	for (size_t i = 0; i < n; i++) {
		y[i] = to[y[i]];
		predicted[i] = to[predicted[i]];
	}
	return name;
}

static void add_classes(struct results *to, const struct metrics *m, char *const *name)
{
	results_classes(to, name, m->k);
	results_list(to, "f1", m->f1);
	results_counts(to, "n", m->support);
}

void score_terms(struct terms_scored *s, const struct classes *c, const char *path, const char *name)
{
	RELEASED(ontology_release) struct ontology o;
	struct hierarchy_scores x;
	RELEASED(metrics_release) struct metrics m;
	size_t k;
	if (ontology_load(&o, path, &failure))
		die("--ontology: %s", failure.msg);
	size_t unknown = find_terms(s, &o, c, path, name);
	FREED uint32_t *settled = xmalloc(s->n * sizeof *settled);
	hierarchy_score(&x, &(struct hierarchy){o.n, o.parent.at, o.parent.to}, s->y, s->predicted, s->n, settled);
	FREED char **class = name_classes(&o, s->y, settled, s->n, &k);
	metrics_init(&m, k);
	metrics_add(&m, s->y, settled, s->n);
	metrics_score(&m);
	struct results *to = results_new();
	results_add_all(to, {"exact", x.exact}, {"finer", x.finer}, {"coarser", x.coarser}, {"wrong", x.wrong},
		{"hierarchical_precision", x.precision}, {"hierarchical_recall", x.recall}, {"hierarchical_f1", x.f1},
		{"distance", x.distance}, {"accuracy", m.accuracy}, {"balanced_accuracy", m.balanced_accuracy}, {"macro_f1", m.macro_f1},
		{"cells", (double)s->n}, {"unlabelled", (double)s->unlabelled}, {"unknown", (double)unknown},
		{"unpredicted", (double)s->unpredicted}, {"apart", (double)x.apart});
	add_classes(to, &m, class);
	cli_write_results(&score_cli, to);
	cli_measured("cells", (double)s->n);
	cli_report(&score_cli, "%zu cells scored, %zu terms", s->n, k);
}

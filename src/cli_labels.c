#include "cli_labels.h"

#include "base/tsv.h"

#include <ctype.h>

int keep_unknown_labels;

/* Of all streams of the run. */
static struct {
	int labels, groups; /* there is such a column */
	uint64_t empty, aside, groupless;
	struct classes word; /* of labels, escaped */
	uint64_t *cells; /* [word.n] */
	size_t cap;
} found;

enum label_rule label_rule(void)
{
	return keep_unknown_labels ? LABEL_WORDS_KEPT : LABEL_WORDS_ASIDE;
}

void labels_open(struct labels *l, const struct header *h, const char *column, struct classes *c, const char *file)
{
	must(labels_init(l, h, column, c, label_rule(), file, &failure));
}

/* "FILE: 31 cells have no label in column 'cell_type' and are left out: unknown 30, nan 1" */
static void say_aside(const struct labels *l, const char *kind, const char *column, const char *file, const char *what)
{
	uint64_t n = l->empty + l->aside;
	FREED char *why = labels_aside(l);
	if (n)
		info("%s: %" PRIu64 " of %" PRIu64 " cells have no %s in column '%s' and %s: %s%s", file, n, n + l->cells, kind, column,
			what, why, l->aside ? " (--keep-unknown-labels keeps words)" : "");
}

/* Two spellings of one type or donor would be two, silently. */
static void say_alike(const struct labels *l, const char *kind, const char *column, const char *file)
{
	RELEASED(classes_release) struct classes name = {0};
	FREED uint32_t *first = xmalloc((l->classes->n + 1) * sizeof *first);
	for (uint32_t y = 0; y < l->classes->n && y < l->seen_cap; y++) {
		size_t had = name.n, n = 0;
		if (!l->seen[y])
			continue;
		FREED char *word = xstrdup(l->classes->name[y]);
		for (const char *c = word; *c; c++)
			if (*c != ' ' && *c != '_')
				word[n++] = (char)tolower((unsigned char)*c);
		uint32_t k = classes_add(&name, word, n);
		if (name.n == had)
			return warn("%s: column '%s': '%s' and '%s' differ in case or blanks alone: are they one %s?", file, column,
				l->classes->name[first[k]], l->classes->name[y], kind);
		first[k] = y;
	}
}

void labels_read(const struct labels *l, const char *column, const char *file, const char *what)
{
	must(labels_check(l, 1, column, file, &failure));
	if (!l->cells) {
		char *why = labels_aside(l);
		die("%s: no cell has a label in column '%s' (%" PRIu64 " cells read%s%s)", file, column, l->empty + l->aside,
			*why ? ": " : "", why);
	}
	labels_say(l, column, file, what);
	say_alike(l, "label", column, file);
}

void labels_say(const struct labels *l, const char *column, const char *file, const char *what)
{
	say_aside(l, "label", column, file, what);
	found.labels = 1;
	found.empty += l->empty;
	found.aside += l->aside;
	for (size_t w = 0; w < l->word.n; w++) {
		FREED char *word = tsv_escaped(l->word.name[w]);
		size_t had = found.word.n, k = classes_add(&found.word, word, strlen(word));
		grow(found.cells, found.cap, k + 1);
		found.cells[k] = (k < had ? found.cells[k] : 0) + l->word_cells[w];
	}
}

void groups_read(const struct labels *l, const char *column, const char *file, const char *what)
{
	say_aside(l, "group", column, file, what);
	say_alike(l, "group", column, file);
	found.groups = 1;
	found.groupless += l->empty + l->aside;
}

/* Less is taken for one than say_alike asks about: P1_1 and P_11 may be two. */
void groups_join(struct classes *c, uint32_t **of, const size_t *n, int lists, const char *column, const char *file)
{
	RELEASED(classes_release) struct classes plain = {0};
	struct classes joined = {0};
	FREED uint32_t *to = xmalloc((c->n + 1) * sizeof *to);
	for (uint32_t g = 0; g < c->n; g++) {
		FREED char *name = xstrdup(c->name[g]);
		char *from = name + strspn(name, " "), *end = from + strlen(from);
		while (end > from && end[-1] == ' ')
			end--;
		for (char *s = from; s < end; s++)
			*s = (char)tolower((unsigned char)*s);
		to[g] = classes_add(&plain, from, (size_t)(end - from));
		if (to[g] == joined.n)
			classes_add(&joined, c->name[g], strlen(c->name[g]));
		else
			info("%s: column '%s': '%s' counts as '%s'", file, column, c->name[g], joined.name[to[g]]);
	}
	for (int t = 0; t < lists; t++)
		for (size_t i = 0; i < n[t]; i++)
			of[t][i] = to[of[t][i]];
	classes_release(c);
	*c = joined;
}

void labels_report(void)
{
	if (found.labels)
		cli_measured_all({"set_aside:no_label", (double)found.empty}, {"set_aside:unknown_label", (double)found.aside});
	for (size_t k = 0; k < found.word.n; k++) { /* memory may not run out here */
		char name[128];
		snprintf(name, sizeof name, "set_aside:unknown_label:%.80s", found.word.name[k]);
		cli_measured(name, (double)found.cells[k]);
	}
	if (found.groups)
		cli_measured("set_aside:no_group", (double)found.groupless);
}

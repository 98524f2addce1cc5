#include "label/ontology.h"

#include "base/sort.h"

#include "label/obo.h"

#include <ctype.h>

/* What an alias is, in the order in which they are tried. */
static const char kinds[] = {'i', 'n', 's', 'N', 'S'}; /* an id of an older version; name, synonym; both in lower case */

void ontology_release(struct ontology *o)
{
	for (size_t i = 0; i < o->n; i++)
		free_all(o->id[i], o->name[i]);
	for (size_t i = 0; i < o->naliases; i++)
		free(o->alias[i].text);
	free_all(o->id, o->name, o->parent.at, o->parent.to, o->child.at, o->child.to, o->order, o->alias, o->source);
	*o = (struct ontology){0};
}

/* ---- finding ---- */

static uint32_t find_id(const struct ontology *o, const char *id)
{
	char *const *at = o->n ? bsearch(&id, o->id, o->n, sizeof *o->id, compare_text) : NULL;
	return at ? (uint32_t)(at - o->id) : TERM_NONE;
}

COMPARE(by_alias, struct alias, strcmp(a->text, b->text) ?: ORDER(a->term, b->term))

static void lower(char *s)
{
	for (; *s; s++)
		*s = (char)tolower((unsigned char)*s);
}

/* The term of an alias; *known: is there one? TERM_NONE if there are several. */
static uint32_t find_alias(const struct ontology *o, char kind, const char *label, int *known)
{
	FREED char *text = xasprintf("%c%s", kind, label);
	if (isupper((unsigned char)kind))
		lower(text + 1);
	size_t i = LEADING(o->naliases, k, strcmp(o->alias[k].text, text) < 0);
	int found = i < o->naliases && !strcmp(o->alias[i].text, text);
	int several = found && i + 1 < o->naliases && !strcmp(o->alias[i + 1].text, text);
	*known = found;
	return found && !several ? o->alias[i].term : TERM_NONE;
}

uint32_t ontology_find(const struct ontology *o, const char *label, size_t n)
{
	FREED char *text = xstrndup(label, n);
	uint32_t term = find_id(o, text);
	int known = term != TERM_NONE;
	for (size_t k = 0; k < sizeof kinds && !known; k++)
		term = find_alias(o, kinds[k], text, &known);
	return term;
}

static void add_alias(struct ontology *o, char kind, const char *text, uint32_t term)
{
	grow(o->alias, o->alias_cap, o->naliases + 2);
	o->alias[o->naliases++] = (struct alias){xasprintf("%c%s", kind, text), term};
	if (kind == 'i')
		return;
	struct alias *folded = &o->alias[o->naliases++];
	*folded = (struct alias){xasprintf("%c%s", toupper(kind), text), term};
	lower(folded->text + 1);
}

static void sort_aliases(struct ontology *o)
{
	size_t n = 0;
	if (o->naliases)
		qsort(o->alias, o->naliases, sizeof *o->alias, by_alias);
	for (size_t i = 0; i < o->naliases; i++) {
		if (n && !by_alias(&o->alias[n - 1], &o->alias[i]))
			free(o->alias[i].text);
		else
			o->alias[n++] = o->alias[i];
	}
	o->naliases = n;
}

/* ---- building ---- */

struct builder {
	struct ontology *o;
	const struct obo *from;
	struct {
		const char *id;
		uint32_t entry;
	} * by_id; /* [from->n] all entries, obsolete ones too, by id */
	uint32_t *term; /* [from->n] of each entry; TERM_NONE: it is obsolete */
};

/* The entry of an id, or TERM_NONE. */
static uint32_t find_entry(const struct builder *b, const char *id)
{
	size_t k = LEADING(b->from->n, i, strcmp(b->by_id[i].id, id) < 0);
	return k < b->from->n && !strcmp(b->by_id[k].id, id) ? b->by_id[k].entry : TERM_NONE;
}

/* Ids and names. Terms are numbered in the order of their ids. */
static int add_terms(struct builder *b, struct error *e)
{
	const struct obo *f = b->from;
	struct ontology *o = b->o;
	for (size_t i = 0; i < f->n; i++) {
		b->by_id[i].id = f->term[i].id;
		b->by_id[i].entry = (uint32_t)i;
	}
	qsort(b->by_id, f->n, sizeof *b->by_id, compare_text);
	o->id = xcalloc(f->n, sizeof *o->id);
	o->name = xcalloc(f->n, sizeof *o->name);
	for (size_t i = 0; i < f->n; i++) {
		const struct obo_term *x = &f->term[b->by_id[i].entry];
		if (i && !strcmp(b->by_id[i - 1].id, x->id))
			return error_set(e, "%s: line %zu: the term %.80s occurs twice", f->path, x->line, x->id);
		b->term[b->by_id[i].entry] = x->obsolete ? TERM_NONE : (uint32_t)o->n;
		if (x->obsolete)
			continue;
		o->id[o->n] = xstrdup(x->id);
		o->name[o->n++] = xstrdup(x->name && *x->name ? x->name : x->id);
	}
	return o->n ? 0 : error_set(e, "%s: all its terms are obsolete", f->path);
}

struct edge {
	uint32_t of, to;
};

COMPARE(by_edge, struct edge, ORDER(a->of, b->of) ?: ORDER(a->to, b->to))

/* The lists of edges of -> to, which are sorted here. */
static void make_lists(struct term_lists *l, struct edge *edge, size_t n, size_t terms)
{
	size_t at = 0;
	if (n)
		qsort(edge, n, sizeof *edge, by_edge);
	l->at = xcalloc(terms + 1, sizeof *l->at);
	l->to = xmalloc(n * sizeof *l->to);
	for (size_t i = 0; i < n; i++) {
		if (i && !by_edge(&edge[i - 1], &edge[i]))
			continue;
		l->to[at++] = edge[i].to;
		l->at[edge[i].of + 1] = (uint32_t)at;
	}
	for (size_t i = 0; i < terms; i++)
		l->at[i + 1] = l->at[i + 1] > l->at[i] ? l->at[i + 1] : l->at[i];
}

static int add_parents(struct builder *b, struct error *e)
{
	const struct obo *f = b->from;
	FREED struct edge *edge = xmalloc(f->ntags * sizeof *edge);
	size_t n = 0;
	for (const struct obo_line *x = f->tag; x < f->tag + f->ntags; x++) {
		if (x->tag != OBO_IS_A || b->term[x->term] == TERM_NONE)
			continue;
		uint32_t parent = find_entry(b, x->text);
		if (parent == TERM_NONE || b->term[parent] == TERM_NONE)
			return error_set(e, "%s: line %zu: %.80s is_a %.80s, which %s", f->path, x->line, f->term[x->term].id, x->text,
				parent == TERM_NONE ? "the file does not have" : "is obsolete");
		edge[n++] = (struct edge){b->term[x->term], b->term[parent]};
	}
	make_lists(&b->o->parent, edge, n, b->o->n);
	for (size_t i = 0; i < n; i++)
		edge[i] = (struct edge){edge[i].to, edge[i].of};
	make_lists(&b->o->child, edge, n, b->o->n);
	return 0;
}

/* Names a cycle among the terms that have unplaced parents. */
static int report_cycle(const struct builder *b, const uint32_t *left, struct error *e)
{
	const struct ontology *o = b->o;
	FREED uint8_t *seen = xcalloc(o->n, 1);
	uint32_t i = 0;
	while (!left[i])
		i++;
	while (!seen[i]) { /* from parent to parent, until one comes again */
		seen[i] = 1;
		const uint32_t *p = o->parent.to + o->parent.at[i];
		while (!left[*p])
			p++;
		i = *p;
	}
	return error_set(e, "%s: %.80s (%.80s) is a kind of itself: its is_a lines lead back to it", b->from->path, o->id[i], o->name[i]);
}

/* Parents first; of those that could come next, the one with the lowest number of the queue [Kahn 1962]. */
static int sort_terms(struct builder *b, struct error *e)
{
	struct ontology *o = b->o;
	uint32_t *left = xcalloc(o->n, sizeof *left); /* parents that are not placed yet */
	size_t placed = 0, done = 0;
	o->order = xmalloc(o->n * sizeof *o->order);
	for (uint32_t i = 0; i < o->n; i++) {
		left[i] = o->parent.at[i + 1] - o->parent.at[i];
		if (!left[i])
			o->order[placed++] = i;
	}
	for (; done < placed; done++) {
		uint32_t i = o->order[done];
		for (uint32_t k = o->child.at[i]; k < o->child.at[i + 1]; k++)
			if (!--left[o->child.to[k]])
				o->order[placed++] = o->child.to[k];
	}
	int bad = placed < o->n ? report_cycle(b, left, e) : 0;
	free(left);
	return bad;
}

/* ---- labels ---- */

/* What an id leads to: a term, also by alt_id; else an obsolete entry, *obsolete. */
static uint32_t lead(const struct builder *b, const char *id, uint32_t *obsolete)
{
	int known;
	uint32_t entry = find_entry(b, id);
	*obsolete = TERM_NONE;
	if (entry != TERM_NONE && b->term[entry] != TERM_NONE)
		return b->term[entry];
	uint32_t term = find_alias(b->o, 'i', id, &known);
	if (!known)
		*obsolete = entry;
	return term;
}

/* For each obsolete entry, the id that replaces it; NULL: none, or several. */
static const char **replacements(const struct builder *b)
{
	const struct obo *f = b->from;
	const char **by = xcalloc(f->n, sizeof *by);
	FREED uint8_t *several = xcalloc(f->n, 1);
	for (const struct obo_line *x = f->tag; x < f->tag + f->ntags; x++) {
		if (x->tag != OBO_REPLACED_BY || b->term[x->term] != TERM_NONE)
			continue;
		several[x->term] |= by[x->term] && strcmp(by[x->term], x->text);
		by[x->term] = x->text;
	}
	for (size_t i = 0; i < f->n; i++)
		by[i] = several[i] ? NULL : by[i];
	return by;
}

/* Follow the replacements of each obsolete entry to a term. A chain is followed once: what lies on it leads where it leads. */
static void add_replaced(const struct builder *b)
{
	const struct obo *f = b->from;
	const char **by = replacements(b);
	uint32_t *chain = xmalloc(f->n * sizeof *chain), *to = xmalloc(f->n * sizeof *to);
	uint8_t *state = xcalloc(f->n, 1); /* 1: on the chain; 2: followed */
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t at = b->term[i] == TERM_NONE ? i : TERM_NONE, term = TERM_NONE;
		size_t n = 0;
		while (at != TERM_NONE && !state[at]) {
			state[at] = 1;
			chain[n++] = at;
			if (by[at])
				term = lead(b, by[at], &at);
			else
				at = TERM_NONE;
		}
		if (at != TERM_NONE && state[at] == 2)
			term = to[at];
		while (n-- > 0) {
			state[chain[n]] = 2;
			to[chain[n]] = term;
		}
	}
	for (uint32_t i = 0; i < f->n; i++) { /* an alt_id of a term comes first */
		int known = b->term[i] != TERM_NONE;
		if (!known)
			find_alias(b->o, 'i', f->term[i].id, &known);
		to[i] = known ? TERM_NONE : to[i];
	}
	for (uint32_t i = 0; i < f->n; i++)
		if (to[i] != TERM_NONE)
			add_alias(b->o, 'i', f->term[i].id, to[i]);
	free_all(by, chain, to, state);
}

static void add_labels(const struct builder *b)
{
	const struct obo *f = b->from;
	struct ontology *o = b->o;
	for (const struct obo_line *x = f->tag; x < f->tag + f->ntags; x++)
		if (x->tag == OBO_ALT_ID && b->term[x->term] != TERM_NONE && find_id(o, x->text) == TERM_NONE)
			add_alias(o, 'i', x->text, b->term[x->term]);
	sort_aliases(o);
	add_replaced(b);
	for (uint32_t i = 0; i < o->n; i++)
		add_alias(o, 'n', o->name[i], i);
	for (const struct obo_line *x = f->tag; x < f->tag + f->ntags; x++)
		if (x->tag == OBO_SYNONYM && b->term[x->term] != TERM_NONE)
			add_alias(o, 's', x->text, b->term[x->term]);
	sort_aliases(o);
}

/* ---- namesakes ---- */

/* A text that can mean a term, in lower case. */
struct label {
	char *text;
	uint32_t term;
};

void ontology_add_namesakes(const struct ontology *o, uint8_t *chosen)
{
	size_t n = o->n + o->naliases;
	FREED struct label *all = xcalloc(n, sizeof *all);
	FREED uint8_t *had = xmalloc(o->n);
	memcpy(had, chosen, o->n);
	for (size_t i = 0; i < n; i++) {
		const struct alias *a = i < o->n ? NULL : &o->alias[i - o->n];
		all[i] = (struct label){xstrdup(a ? a->text + 1 : o->id[i]), a ? a->term : (uint32_t)i};
		lower(all[i].text);
	}
	qsort(all, n, sizeof *all, compare_text);
	for (size_t from = 0, to; from < n; from = to) {
		int found = 0;
		for (to = from; to < n && !compare_text(&all[from], &all[to]); to++)
			found |= had[all[to].term];
		for (size_t i = from; i < to; i++)
			chosen[all[i].term] |= (uint8_t)found;
	}
	for (size_t i = 0; i < n; i++)
		free(all[i].text);
}

/* ---- reading and writing ---- */

static int build(struct ontology *o, const struct obo *from, struct error *e)
{
	struct builder b = {.o = o, .from = from};
	b.by_id = xcalloc(from->n, sizeof *b.by_id);
	b.term = xmalloc(from->n * sizeof *b.term);
	o->source = xstrdup(from->source);
	int bad = add_terms(&b, e) || add_parents(&b, e) || sort_terms(&b, e);
	if (!bad)
		add_labels(&b);
	free_all(b.by_id, b.term);
	return bad ? -1 : 0;
}

int ontology_load(struct ontology *o, const char *path, struct error *e)
{
	RELEASED(obo_release) struct obo from = {0};
	*o = (struct ontology){0};
	int bad = obo_read(&from, path, e) || build(o, &from, e);
	if (bad)
		ontology_release(o);
	return bad ? -1 : 0;
}

/* A text as it stands in a file. quote: between quotes. */
static void print_text(FILE *f, const char *s, int quote)
{
	for (; *s; s++) {
		if (*s == '\\' || (quote ? *s == '"' : *s == '!' || *s == '{'))
			fputc('\\', f);
		fputc(*s, f);
	}
}

static void print_tag(FILE *f, const char *tag, const char *value)
{
	fprintf(f, "%s: ", tag);
	print_text(f, value, 0);
	fputc('\n', f);
}

static struct term_lists aliases_of(const struct ontology *o, char kind)
{
	struct term_lists l;
	FREED struct edge *edge = xmalloc(o->naliases * sizeof *edge);
	size_t n = 0;
	for (uint32_t i = 0; i < o->naliases; i++)
		if (*o->alias[i].text == kind)
			edge[n++] = (struct edge){o->alias[i].term, i};
	make_lists(&l, edge, n, o->n);
	return l;
}

static void print_term(FILE *f, const struct ontology *o, const uint8_t *chosen, uint32_t i, const struct term_lists *ids,
	const struct term_lists *synonyms)
{
	fputs("\n[Term]\n", f);
	print_tag(f, "id", o->id[i]);
	print_tag(f, "name", o->name[i]);
	for (uint32_t k = ids->at[i]; k < ids->at[i + 1]; k++)
		print_tag(f, "alt_id", o->alias[ids->to[k]].text + 1);
	for (uint32_t k = synonyms->at[i]; k < synonyms->at[i + 1]; k++) {
		fputs("synonym: \"", f);
		print_text(f, o->alias[synonyms->to[k]].text + 1, 1);
		fputs("\" EXACT []\n", f);
	}
	for (uint32_t k = o->parent.at[i]; k < o->parent.at[i + 1]; k++)
		if (chosen[o->parent.to[k]])
			print_tag(f, "is_a", o->id[o->parent.to[k]]);
}

char *ontology_print(const struct ontology *o, const uint8_t *chosen)
{
	char *text = NULL;
	size_t n;
	FILE *f = xmemopen(&text, &n);
	struct term_lists ids = aliases_of(o, 'i'), synonyms = aliases_of(o, 's');
	fputs("format-version: 1.2\n", f);
	if (*o->source)
		print_tag(f, "ontology", o->source);
	for (uint32_t i = 0; i < o->n; i++)
		if (chosen[i])
			print_term(f, o, chosen, i, &ids, &synonyms);
	xmemclose(f, &text);
	free_all(ids.at, ids.to, synonyms.at, synonyms.to);
	return text;
}

#include "transfer/detail.h"

#include "base/sort.h"
#include "label/ontology.h"

enum { LISTED = 10 }; /* labels that a message names */

/* ---- labels ---- */

/* The term of each class, TERM_NONE: it has none, which t says. */
static uint32_t *find_terms(struct detail *t, const struct ontology *o, const struct classes *c)
{
	uint32_t *term = xmalloc(c->n * sizeof *term);
	for (size_t k = 0; k < c->n; k++) {
		term[k] = ontology_find(o, c->name[k], strlen(c->name[k]));
		if (term[k] == TERM_NONE && t->without++ < LISTED)
			xappend(&t->listed, "%s'%.80s'", t->without > 1 ? ", " : "", c->name[k]);
	}
	if (t->without > LISTED)
		xappend(&t->listed, ", ...");
	return term;
}

static uint32_t count_classes(const uint8_t *in, size_t k)
{
	uint32_t n = 0;
	for (size_t c = 0; c < k; c++)
		n += in[c];
	return n;
}

/* Which labels are classes, is_class [n]: a label with two classes below its term is coarse. first [terms]: the first label of a term.
 * Returns the classes at or below each term, as labels [o->n, n]. Malloced. */
static uint8_t *find_classes(const struct ontology *o, const uint32_t *term, const uint32_t *first, size_t n, uint8_t *is_class)
{
	uint8_t *in = xcalloc(o->n, n);
	for (size_t k = 0; k < n; k++)
		is_class[k] = term[k] == TERM_NONE;
	for (size_t i = o->n; i-- > 0;) { /* children first */
		uint32_t v = o->order[i];
		if (first[v] != TERM_NONE && count_classes(in + v * n, n) < 2)
			in[v * n + first[v]] = is_class[first[v]] = 1;
		for (uint32_t j = o->parent.at[v]; j < o->parent.at[v + 1]; j++)
			for (size_t k = 0; k < n; k++)
				in[o->parent.to[j] * n + k] |= in[v * n + k];
	}
	return in;
}

/* The new number of each label: the classes first, then the coarse ones, both in the old order. Sets t->k, labels. */
static uint32_t *renumber(struct detail *t, const struct classes *c, const struct ontology *o, const uint32_t *term, const uint32_t *first,
	const uint8_t *is_class)
{
	uint32_t *to = xmalloc(c->n * sizeof *to);
	for (size_t k = 0; k < c->n; k++) {
		uint32_t same = term[k] == TERM_NONE ? (uint32_t)k : first[term[k]];
		if (!is_class[same])
			continue;
		if (same != k)
			xappend(&t->same, "%s'%.80s' (%s)", t->same ? ", " : "", c->name[k], o->id[term[k]]);
		to[k] = same == k ? (uint32_t)t->k++ : to[same];
	}
	t->labels = t->k;
	for (size_t k = 0; k < c->n; k++)
		if (term[k] != TERM_NONE && !is_class[first[term[k]]])
			to[k] = (uint32_t)t->labels++;
	return to;
}

/* The classes at or below each term, [o->n, t->k], of in [o->n, n]. Malloced. */
static uint8_t *by_class(const struct detail *t, const struct ontology *o, const uint8_t *in, size_t n, const uint32_t *to)
{
	uint8_t *of = xcalloc(o->n, t->k);
	for (size_t v = 0; v < o->n; v++)
		for (size_t k = 0; k < n; k++)
			if (in[v * n + k])
				of[v * t->k + to[k]] = 1;
	return of;
}

/* ---- terms ---- */

struct term {
	uint32_t term, size, depth; /* TERM_NONE: of a class of its own, `depth` */
	const uint8_t *in; /* [k] */
	size_t k;
};

/* The smallest first, of those the ones of the first classes, and of the same classes the deepest term. */
COMPARE(by_size, struct term, ORDER(a->size, b->size) ?: memcmp(b->in, a->in, a->k) ?: ORDER(b->depth, a->depth))

/* All terms with a class, and the classes without a term. Malloced. */
static struct term *all_terms(const struct detail *t, const struct ontology *o, uint8_t *in, const uint8_t *own, size_t *n)
{
	struct term *all = xcalloc(o->n + t->k, sizeof *all);
	*n = 0;
	for (uint32_t i = 0; i < o->n; i++) {
		uint32_t v = o->order[i], size = count_classes(in + v * t->k, t->k);
		if (size)
			all[(*n)++] = (struct term){v, size, i, in + v * t->k, t->k};
	}
	for (uint32_t c = 0; c < t->k; c++)
		if (own[c])
			all[(*n)++] = (struct term){TERM_NONE, 1, c, t->under + c * t->k, t->k};
	qsort(all, *n, sizeof *all, by_size);
	return all;
}

/* Of terms with the same classes, the deepest stays. */
static void keep_terms(struct detail *t, const struct ontology *o, char *const *class, struct term *all, size_t n)
{
	t->in = xmalloc(n * t->k);
	t->id = xcalloc(n, sizeof *t->id);
	t->name = xcalloc(n, sizeof *t->name);
	t->size = xmalloc(n * sizeof *t->size);
	for (size_t i = 0; i < n; i++) {
		size_t at = t->holds.n;
		int own = all[i].term == TERM_NONE;
		if (at && !memcmp(t->in + (at - 1) * t->k, all[i].in, t->k))
			continue;
		memcpy(t->in + at * t->k, all[i].in, t->k);
		t->size[at] = all[i].size;
		t->id[at] = xstrdup(own ? class[all[i].depth] : o->id[all[i].term]);
		t->name[at] = xstrdup(own ? class[all[i].depth] : o->name[all[i].term]);
		t->holds.n++;
	}
	t->holds.k = t->k;
	t->holds.in = t->in;
}

/* The classes get their new numbers, and of the names of a class that of its term, or else one that is no id. */
static void use_classes(
	struct detail *t, struct classes *c, struct embeddings *d, const uint32_t *to, const struct ontology *o, const uint32_t *term)
{
	FREED char **name = xcalloc(t->k, sizeof *name);
	for (size_t i = 0; i < d->n; i++) {
		d->y[i] = to[d->y[i]];
		t->coarse_cells += d->y[i] >= t->k;
	}
	for (size_t k = 0; k < c->n; k++) {
		char **at = to[k] < t->k ? &name[to[k]] : NULL;
		if (at && (!*at || !strcmp(*at, o->id[term[k]]) || !strcmp(c->name[k], o->name[term[k]]))) {
			char *id = *at;
			*at = c->name[k];
			c->name[k] = id;
		}
		free(c->name[k]);
	}
	memcpy(c->name, name, t->k * sizeof *name);
	c->n = t->k;
}

int detail_init(struct detail *t, const char *path, struct classes *c, struct embeddings *d, const char *label, struct error *e)
{
	struct ontology o;
	size_t n;
	*t = (struct detail){.all = c->n};
	if (ontology_load(&o, path, e))
		return -1;
	FREED uint32_t *term = find_terms(t, &o, c);
	if (t->without == c->n) {
		error_set(e, "%s: column '%s': no label is an id, name or exact synonym of a term of %s: %s", stream_name(d->s), label,
			path, t->listed);
		ontology_release(&o);
		return -1;
	}
	FREED uint32_t *first = xmalloc(o.n * sizeof *first);
	FREED uint8_t *own = xcalloc(c->n, 1), *is_class = xmalloc(c->n);
	memset(first, 0xFF, o.n * sizeof *first);
	for (size_t k = c->n; k-- > 0;)
		if (term[k] != TERM_NONE)
			first[term[k]] = (uint32_t)k;
	FREED uint8_t *of_labels = find_classes(&o, term, first, c->n, is_class);
	FREED uint32_t *to = renumber(t, c, &o, term, first, is_class);
	FREED uint8_t *in = by_class(t, &o, of_labels, c->n, to);
	t->under = xcalloc(t->labels, t->k);
	for (size_t k = 0; k < c->n; k++) {
		uint8_t *under = t->under + to[k] * t->k;
		own[to[k]] = term[k] == TERM_NONE;
		if (to[k] >= t->k)
			memcpy(under, in + term[k] * t->k, t->k);
		else
			under[to[k]] = 1;
	}
	use_classes(t, c, d, to, &o, term);
	FREED struct term *all = all_terms(t, &o, in, own, &n);
	keep_terms(t, &o, c->name, all, n);
	ontology_release(&o);
	return 0;
}

void detail_release(struct detail *t)
{
	for (size_t i = 0; i < t->holds.n; i++)
		free_all(t->id[i], t->name[i]);
	free_all(t->under, t->in, t->id, t->name, t->size, t->listed, t->same);
	*t = (struct detail){0};
}

/* ---- groups ---- */

size_t detail_counted(
	const struct detail *t, const uint32_t *y, const uint32_t *group, size_t n, size_t groups, double most, uint8_t *counted)
{
	size_t *cells = xcalloc(groups, sizeof *cells), *coarse = xcalloc(groups, sizeof *coarse), whole = 0;
	for (size_t i = 0; i < n && group; i++) {
		cells[group[i]]++;
		coarse[group[i]] += y[i] >= t->k;
	}
	for (size_t g = 0; g < groups; g++)
		whole += cells[g] && (double)coarse[g] <= most * (double)cells[g];
	for (size_t i = 0; i < n; i++)
		counted[i] = group && whole ? (double)coarse[group[i]] <= most * (double)cells[group[i]] : y[i] < t->k;
	free_all(cells, coarse);
	return whole;
}

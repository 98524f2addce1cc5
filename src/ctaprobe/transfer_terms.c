#include "transfer_terms.h"

#include "label/leaves.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED = 10 }; /* labels that a message names */

/* ---- labels ---- */

/* The term of each class, TERM_NONE: it has none, which is said. */
static uint32_t *find_terms(const struct ontology *o, const char *path, const struct classes *c, const char *name, const char *label)
{
	uint32_t *term = xmalloc(c->n * sizeof *term);
	size_t none = 0;
	char *list = NULL;
	FILE *f = xmemopen(&list, &(size_t){0});
	for (size_t k = 0; k < c->n; k++) {
		term[k] = ontology_find(o, c->name[k], strlen(c->name[k]));
		if (term[k] == TERM_NONE && none++ < LISTED)
			fprintf(f, "%s'%.80s'", none > 1 ? ", " : "", c->name[k]);
	}
	fprintf(f, "%s", none > LISTED ? ", ..." : "");
	xmemclose(f, &list);
	if (none == c->n)
		die("%s: column '%s': no label is an id, name or exact synonym of a term of %s: %s", name, label, path, list);
	if (none)
		warn("%s: column '%s': %zu of %zu labels are not an id, name or exact synonym of a term of %s that is not obsolete: they are types of "
		     "their own: %s",
			name, label, none, c->n, path, list);
	cli_measured("labels:no_term", (double)none);
	free(list);
	return term;
}

/* Is the label of this term coarse: do two leaves or more lie below it? */
static int is_coarse(const struct leaves *l, uint32_t term)
{
	const uint32_t *set = leaves_under(l, term);
	int n = 0;
	for (size_t w = 0; w < l->words; w++)
		n += __builtin_popcount(set[w]);
	return n > 1;
}

/* The new number of each class: the finest first, then the coarse ones, both in the old order. class_of [terms] out: the class of a term. Sets t->k, labels. */
static uint32_t *renumber(struct detail *t, const struct classes *c, const uint32_t *term, const struct leaves *l, uint32_t *class_of)
{
	uint32_t *to = xmalloc(c->n * sizeof *to);
	memset(class_of, 0xFF, l->o->n * sizeof *class_of);
	for (size_t k = 0; k < c->n; k++) {
		uint32_t v = term[k];
		if (v == TERM_NONE) {
			to[k] = (uint32_t)t->k++;
		} else if (!is_coarse(l, v)) {
			if (class_of[v] != TERM_NONE)
				info("label '%.80s' is the term %s, as another one is: they are one type", c->name[k], l->o->id[v]);
			else
				class_of[v] = (uint32_t)t->k++;
			to[k] = class_of[v];
		}
	}
	t->labels = t->k;
	for (size_t k = 0; k < c->n; k++)
		if (term[k] != TERM_NONE && is_coarse(l, term[k]))
			to[k] = (uint32_t)t->labels++;
	return to;
}

/* The classes at or below each term, [o->n, t->k]. Malloced. */
static uint8_t *classes_below(const struct detail *t, const struct ontology *o, const uint32_t *class_of)
{
	uint8_t *in = xcalloc(o->n, t->k);
	for (size_t i = o->n; i-- > 0;) { /* children first */
		uint32_t v = o->order[i];
		if (class_of[v] != TERM_NONE)
			in[v * t->k + class_of[v]] = 1;
		for (uint32_t j = o->parent.at[v]; j < o->parent.at[v + 1]; j++)
			for (size_t c = 0; c < t->k; c++)
				in[o->parent.to[j] * t->k + c] |= in[v * t->k + c];
	}
	return in;
}

/* ---- terms ---- */

struct term {
	uint32_t term, size, depth; /* TERM_NONE: of a class of its own, `depth` */
	const uint8_t *in;
};

/* The smallest first; of the same classes the deepest term first. */
static int by_size(const void *a, const void *b)
{
	const struct term *x = a, *y = b;
	return x->size != y->size ? (x->size > y->size) - (x->size < y->size) : (x->depth < y->depth) - (x->depth > y->depth);
}

static uint32_t count(const uint8_t *in, size_t k)
{
	uint32_t n = 0;
	for (size_t c = 0; c < k; c++)
		n += in[c];
	return n;
}

/* All terms with a class, and the classes without a term. Malloced. */
static struct term *all_terms(const struct detail *t, const struct ontology *o, uint8_t *in, const uint8_t *own, size_t *n)
{
	struct term *all = xcalloc(o->n + t->k, sizeof *all);
	*n = 0;
	for (uint32_t i = 0; i < o->n; i++) {
		uint32_t v = o->order[i], size = count(in + v * t->k, t->k);
		if (size)
			all[(*n)++] = (struct term){v, size, i, in + v * t->k};
	}
	for (uint32_t c = 0; c < t->k; c++)
		if (own[c])
			all[(*n)++] = (struct term){TERM_NONE, 1, c, t->under + c * t->k};
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
		size_t same = 0, at = t->holds.n;
		while (same < at && memcmp(t->in + same * t->k, all[i].in, t->k))
			same++;
		if (same == at) {
			int own = all[i].term == TERM_NONE;
			memcpy(t->in + at * t->k, all[i].in, t->k);
			t->size[at] = all[i].size;
			t->id[at] = xstrdup(own ? class[all[i].depth] : o->id[all[i].term]);
			t->name[at] = xstrdup(own ? class[all[i].depth] : o->name[all[i].term]);
			t->holds.n++;
		}
	}
	t->holds.k = t->k;
	t->holds.in = t->in;
}

/* The classes get their new numbers. */
static void apply(struct detail *t, struct classes *c, struct embeddings *d, const uint32_t *to)
{
	char **name = xcalloc(t->k, sizeof *name);
	for (size_t i = 0; i < d->n; i++) {
		d->y[i] = to[d->y[i]];
		t->coarse_cells += d->y[i] >= t->k;
	}
	for (size_t k = 0; k < c->n; k++) {
		if (to[k] < t->k && !name[to[k]])
			name[to[k]] = c->name[k];
		else
			free(c->name[k]);
	}
	memcpy(c->name, name, t->k * sizeof *name);
	c->n = t->k;
	free(name);
}

void detail_init(struct detail *t, const char *path, struct classes *c, struct embeddings *d, const char *label)
{
	struct ontology o;
	struct leaves l;
	struct error e;
	size_t n;
	*t = (struct detail){0};
	if (ontology_load(&o, path, &e))
		die("--ontology: %s", e.msg);
	uint32_t *term = find_terms(&o, path, c, stream_name(d->s), label);
	uint8_t *observed = xcalloc(o.n, 1), *own = xcalloc(c->n, 1);
	for (size_t k = 0; k < c->n; k++)
		if (term[k] != TERM_NONE)
			observed[term[k]] = 1;
	leaves_init(&l, &o, observed);
	uint32_t *class_of = xmalloc(o.n * sizeof *class_of), *to = renumber(t, c, term, &l, class_of);
	uint8_t *in = classes_below(t, &o, class_of);
	t->under = xcalloc(t->labels, t->k);
	for (size_t k = 0; k < c->n; k++) {
		uint8_t *under = t->under + to[k] * t->k;
		own[to[k]] = term[k] == TERM_NONE;
		if (to[k] >= t->k)
			memcpy(under, in + term[k] * t->k, t->k);
		else
			under[to[k]] = 1;
	}
	apply(t, c, d, to);
	struct term *all = all_terms(t, &o, in, own, &n);
	keep_terms(t, &o, c->name, all, n);
	cli_measured("labels:coarse", (double)(t->labels - t->k));
	cli_measured("labels:coarse_cells", (double)t->coarse_cells);
	leaves_release(&l);
	ontology_release(&o);
	free(all);
	free(in);
	free(term);
	free(observed);
	free(own);
	free(class_of);
	free(to);
}

void detail_release(struct detail *t)
{
	for (size_t i = 0; i < t->holds.n; i++) {
		free(t->id[i]);
		free(t->name[i]);
	}
	free(t->under);
	free(t->in);
	free(t->id);
	free(t->name);
	free(t->size);
	*t = (struct detail){0};
}

/* ---- answers ---- */

void term_columns_add(struct term_columns *to, struct header *h, const struct detail *t)
{
	to->id = header_add_categorical(h, "term", t->id, t->holds.n);
	to->name = header_add_categorical(h, "term_name", t->name, t->holds.n);
	to->classes = header_add(h, "term_classes", U32);
}

void term_put(struct term_columns *to, struct block *out, size_t i, const struct detail *t, const double *p, double threshold)
{
	size_t v = p ? finest_answer(&t->holds, p, threshold) : t->holds.n;
	uint32_t code = v < t->holds.n ? (uint32_t)v : MISSING_CODE, classes = v < t->holds.n ? t->size[v] : p ? (uint32_t)t->k : 0;
	((uint32_t *)out->col[to->id].data)[i] = ((uint32_t *)out->col[to->name].data)[i] = code;
	((uint32_t *)out->col[to->classes].data)[i] = classes;
	to->cells += p != NULL;
	to->sum += classes;
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
	free(cells);
	free(coarse);
	return whole;
}

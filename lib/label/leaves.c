#include "label/leaves.h"

/* Observed terms and what is above them. */
static void prune(struct leaves *l, const uint8_t *observed)
{
	const struct ontology *o = l->o;
	for (size_t i = o->n; i-- > 0;) { /* children first */
		uint32_t v = o->order[i];
		l->kept[v] |= observed[v];
		for (uint32_t k = o->parent.at[v]; l->kept[v] && k < o->parent.at[v + 1]; k++)
			l->kept[o->parent.to[k]] = 1;
	}
}

static int has_children(const struct leaves *l, uint32_t v)
{
	const struct term_lists *c = &l->o->child;
	uint32_t k = c->at[v];
	while (k < c->at[v + 1] && !l->kept[c->to[k]])
		k++;
	return k < c->at[v + 1];
}

static void leaves_join(uint32_t *to, const uint32_t *from, size_t words)
{
	for (size_t w = 0; w < words; w++)
		to[w] |= from[w];
}

void leaves_init(struct leaves *l, const struct ontology *o, const uint8_t *observed)
{
	*l = (struct leaves){.o = o, .kept = xcalloc(o->n, 1), .term = xmalloc(o->n * sizeof *l->term)};
	prune(l, observed);
	for (uint32_t v = 0; v < o->n; v++)
		if (l->kept[v] && !has_children(l, v))
			l->term[l->n++] = v;
	l->words = (l->n + 31) / 32;
	l->set = xcalloc(o->n, l->words * sizeof *l->set);
	for (size_t k = 0; k < l->n; k++)
		l->set[l->term[k] * l->words + k / 32] |= 1u << k % 32;
	for (size_t i = o->n; i-- > 0;) {
		uint32_t v = o->order[i];
		for (uint32_t k = o->child.at[v]; l->kept[v] && k < o->child.at[v + 1]; k++)
			leaves_join(l->set + v * l->words, leaves_under(l, o->child.to[k]), l->words);
	}
}

int leaves_of(struct leaves *l, const struct ontology *o, char *const *label, size_t n, struct error *e)
{
	FREED uint8_t *seen = xcalloc(o->n, 1);
	*l = (struct leaves){0};
	for (size_t k = 0; k < n; k++) {
		uint32_t term = ontology_find(o, label[k], strlen(label[k]));
		if (term == TERM_NONE || strcmp(o->id[term], label[k]))
			return error_set(e, "it has no term '%s', which is a class", label[k]);
		seen[term] = 1;
	}
	leaves_init(l, o, seen);
	for (size_t k = 0; k < l->n || k < n; k++)
		if (k == l->n || k == n || strcmp(o->id[l->term[k]], label[k]))
			return error_set(e, "its leaves are not the %zu classes", n);
	return 0;
}

void leaves_release(struct leaves *l)
{
	free_all(l->term, l->kept, l->set);
	*l = (struct leaves){0};
}

void leaves_sum(const struct leaves *l, const double *p, double *sum)
{
	for (uint32_t v = 0; v < l->o->n; v++) {
		const uint32_t *set = leaves_under(l, v);
		sum[v] = 0;
		for (size_t k = 0; l->kept[v] && k < l->n; k++)
			sum[v] += set[k / 32] >> k % 32 & 1 ? p[k] : 0;
	}
}

/* Does the way to `only` lead through v? */
static int leads(const struct leaves *l, uint32_t v, uint32_t only)
{
	const uint32_t *set = leaves_under(l, v), *leaf = leaves_under(l, only);
	size_t w = 0;
	while (w < l->words && !(set[w] & leaf[w]))
		w++;
	return w < l->words;
}

size_t leaves_descend(const struct leaves *l, const double *sum, uint32_t only, uint32_t *path)
{
	const struct ontology *o = l->o;
	size_t n = 0;
	uint32_t at = TERM_NONE;
	for (;;) {
		uint32_t best = TERM_NONE, from = at == TERM_NONE ? 0 : o->child.at[at];
		uint32_t to = at == TERM_NONE ? (uint32_t)o->n : o->child.at[at + 1];
		for (uint32_t k = from; k < to; k++) {
			uint32_t v = at == TERM_NONE ? k : o->child.to[k];
			if (!l->kept[v] || (at == TERM_NONE && o->parent.at[v] < o->parent.at[v + 1]) ||
				(only != TERM_NONE && !leads(l, v, only)))
				continue;
			if (best == TERM_NONE || sum[v] > sum[best])
				best = v;
		}
		if (best == TERM_NONE)
			return n;
		path[n++] = at = best;
	}
}

#include "eval/hierarchy.h"

#include "base/error.h"

/* The terms above one, itself first, in the order of their steps. */
struct above {
	uint32_t *term, *steps; /* [h->n]; steps by term, UINT32_MAX: it is not above */
	size_t n, counted; /* counted: those with a parent */
};

static int has_parent(const struct hierarchy *h, uint32_t v)
{
	return h->at[v] < h->at[v + 1];
}

static void above_init(struct above *a, const struct hierarchy *h)
{
	*a = (struct above){.term = xmalloc(h->n * sizeof *a->term), .steps = xmalloc(h->n * sizeof *a->steps)};
	memset(a->steps, 0xff, h->n * sizeof *a->steps);
}

static void above_release(struct above *a)
{
	free_all(a->term, a->steps);
}

static void climb(struct above *a, const struct hierarchy *h, uint32_t v)
{
	for (size_t i = 0; i < a->n; i++)
		a->steps[a->term[i]] = UINT32_MAX;
	a->n = 1;
	a->counted = 0;
	a->term[0] = v;
	a->steps[v] = 0;
	for (size_t i = 0; i < a->n; i++) {
		uint32_t at = a->term[i];
		a->counted += (size_t)has_parent(h, at);
		for (uint32_t k = h->at[at]; k < h->at[at + 1]; k++) {
			uint32_t up = h->parent[k];
			if (a->steps[up] != UINT32_MAX)
				continue;
			a->steps[up] = a->steps[at] + 1;
			a->term[a->n++] = up;
		}
	}
}

/* Terms in both that have a parent; *distance: fewest steps over a common one, UINT32_MAX: there is none. */
static size_t meet(const struct above *a, const struct above *b, const struct hierarchy *h, uint32_t *distance)
{
	size_t shared = 0;
	*distance = UINT32_MAX;
	for (size_t i = 0; i < a->n; i++) {
		uint32_t v = a->term[i], steps = a->steps[v];
		if (b->steps[v] == UINT32_MAX)
			continue;
		shared += (size_t)has_parent(h, v);
		*distance = steps + b->steps[v] < *distance ? steps + b->steps[v] : *distance;
	}
	return shared;
}

void hierarchy_score(struct hierarchy_scores *s, const struct hierarchy *h, const uint32_t *truth, const uint32_t *predicted, size_t cells,
	uint32_t *settled)
{
	struct above t, p;
	double shared = 0, of_p = 0, of_t = 0, steps = 0;
	*s = (struct hierarchy_scores){0};
	above_init(&t, h);
	above_init(&p, h);
	for (size_t i = 0; i < cells; i++) {
		uint32_t distance;
		climb(&t, h, truth[i]);
		climb(&p, h, predicted[i]);
		int exact = truth[i] == predicted[i], finer = p.steps[truth[i]] != UINT32_MAX,
		    coarser = t.steps[predicted[i]] != UINT32_MAX;
		s->exact += exact;
		s->finer += finer && !exact;
		s->coarser += coarser && !exact;
		s->wrong += !finer && !coarser;
		shared += (double)meet(&p, &t, h, &distance);
		of_p += (double)p.counted;
		of_t += (double)t.counted;
		s->apart += distance == UINT32_MAX;
		steps += distance == UINT32_MAX ? 0 : distance;
		if (settled)
			settled[i] = finer ? truth[i] : predicted[i];
	}
	double n = (double)cells;
	s->exact /= n;
	s->finer /= n;
	s->coarser /= n;
	s->wrong /= n;
	s->precision = of_p > 0 ? shared / of_p : NAN;
	s->recall = of_t > 0 ? shared / of_t : NAN;
	s->f1 = of_p + of_t > 0 ? 2 * shared / (of_p + of_t) : NAN;
	s->distance = s->apart < cells ? steps / (n - (double)s->apart) : NAN;
	above_release(&t);
	above_release(&p);
}

#include "eval/kbet_label.h"

#include "base/threads.h"
#include "eval/eigen.h"
#include "eval/mixing.h"

#include <math.h>

enum { COMPONENTS = 100, LEAST_CELLS = 10, LEAST = 10, MOST = 70 };

/* A part of the graph: its vertices, renumbered, and the edges among them. */
struct part {
	struct network g;
	double *weight;
	uint32_t *batch; /* [n] 0, 1, ... without gaps */
	size_t batches;
};

static void part_release(struct part *p)
{
	free_all(p->g.end, p->weight, p->batch);
}

/* The part of those vertices of g for which keep [n] is 1. */
static void take_part(
	struct part *p, const struct network *g, const double *weight, const uint32_t *batch, size_t batches, const uint8_t *keep)
{
	FREED uint32_t *number = xmalloc((g->n + 1) * sizeof *number), *of = xmalloc(batches * sizeof *of);
	*p = (struct part){.g.end = xmalloc((2 * g->m + 1) * sizeof *p->g.end),
		.weight = xmalloc((g->m + 1) * sizeof *p->weight),
		.batch = xmalloc((g->n + 1) * sizeof *p->batch)};
	memset(of, 0xff, batches * sizeof *of);
	for (uint32_t i = 0; i < g->n; i++) {
		number[i] = keep[i] ? p->g.n : UINT32_MAX;
		if (!keep[i])
			continue;
		if (of[batch[i]] == UINT32_MAX)
			of[batch[i]] = (uint32_t)p->batches++;
		p->batch[p->g.n++] = of[batch[i]];
	}
	for (size_t i = 0; i < g->m; i++) {
		uint32_t a = number[g->end[2 * i]], b = number[g->end[2 * i + 1]];
		if (a == UINT32_MAX || b == UINT32_MAX)
			continue;
		p->g.end[2 * p->g.m] = a;
		p->g.end[2 * p->g.m + 1] = b;
		p->weight[p->g.m++] = weight[i];
	}
}

/* Divide each weight by the powers `power` of the sums of the rows of its ends. */
static void divide(struct part *p, double power)
{
	FREED double *sum = xcalloc(p->g.n, sizeof *sum);
	for (size_t i = 0; i < 2 * p->g.m; i++)
		sum[p->g.end[i]] += p->weight[i / 2];
	for (size_t i = 0; i < 2 * p->g.m; i++)
		p->weight[i / 2] /= pow(sum[p->g.end[i]], power);
}

/* The cells of p by the k components of diffusion, [n, k]. */
static int diffuse(struct part *p, size_t k, float *at, struct error *e)
{
	FREED double *value = xmalloc(k * sizeof *value), *vector = xmalloc(p->g.n * k * sizeof *vector);
	divide(p, 1);
	divide(p, 0.5);
	int bad = eigen_largest(&p->g, p->weight, k, value, vector, e);
	for (size_t i = 0; !bad && i < p->g.n * k; i++) {
		float l = (float)value[i % k]; /* 1 is met by its float32 */
		at[i] = (float)vector[i] * (l >= 1 ? 1 : l / (1 - l));
	}
	return bad;
}

/* kBET of the part by k neighbours. */
static int score_part(double *score, struct part *p, size_t k, size_t components, const struct search_settings *s, struct error *e)
{
	FREED float *at = xmalloc(p->g.n * components * sizeof *at);
	int bad = diffuse(p, components, at, e);
	k = k < p->g.n ? k : p->g.n - 1;
	FREED uint32_t *neighbour = xmalloc(p->g.n * k * sizeof *neighbour);
	FREED double *distance = xmalloc(p->g.n * k * sizeof *distance);
	if (!bad) {
		some_neighbours(at, p->g.n, components, k, s, neighbour, distance);
		*score = mixing_kbet(neighbour, p->g.n, k, k + 1, p->batch, p->batches);
	}
	return bad;
}

/* What is scored of a class. */
struct class_part {
	size_t cells, kept; /* of components of its graph that are large enough */
	size_t components, near; /* of diffusion, 0: it has its score; neighbours */
	int whole; /* its graph is one component */
	int bad;
	struct error e;
};

struct parts {
	const struct network *g;
	const double *weight;
	const uint32_t *label, *batch;
	size_t batches;
	uint32_t *member; /* [n] component of the graph without pairs of two classes: one of its vertices */
	uint32_t *size; /* [n] of the component that is called so */
	struct class_part *class; /* [labels] */
	double *score; /* [labels] */
	struct search_settings search;
};

/* Here, as network_members would need a copy of the pairs, of 48 bytes each with igraph's. */
static uint32_t component_of(uint32_t *member, uint32_t i)
{
	while (member[i] != i)
		i = member[i] = member[member[i]];
	return i;
}

static void find_components(struct parts *s)
{
	for (uint32_t i = 0; i < s->g->n; i++)
		s->member[i] = i;
	for (size_t i = 0; i < s->g->m; i++) {
		uint32_t a = s->g->end[2 * i], b = s->g->end[2 * i + 1];
		if (s->label[a] == s->label[b])
			s->member[component_of(s->member, a)] = component_of(s->member, b);
	}
	for (uint32_t i = 0; i < s->g->n; i++)
		s->size[s->member[i] = component_of(s->member, i)]++;
}

/* Is cell i in a component that is large enough? */
static int is_kept(const struct parts *s, size_t i)
{
	const struct class_part *c = &s->class[s->label[i]];
	return c->whole || s->size[s->member[i]] >= 3 * c->near;
}

/* Count the cells of class number l; score it if it needs no diffusion. most: components, of which it may leave fewer to later classes. */
static void plan_class(struct parts *s, uint32_t l, size_t *most)
{
	struct class_part *c = &s->class[l];
	FREED uint8_t *seen = xcalloc(s->batches, 1);
	size_t batches = 0, component = 0;
	for (uint32_t i = 0; i < s->g->n; i++)
		if (s->label[i] == l) {
			batches += !seen[s->batch[i]];
			seen[s->batch[i]] = 1;
			c->cells++;
			component = s->size[s->member[i]];
		}
	s->score[l] = NAN;
	if (c->cells < LEAST_CELLS || batches < 2)
		return;
	size_t quarter = c->cells / batches / 4;
	c->near = quarter < LEAST ? LEAST : quarter > MOST ? MOST : quarter;
	c->whole = component == c->cells;
	for (uint32_t i = 0; i < s->g->n; i++)
		c->kept += s->label[i] == l && is_kept(s, i);
	s->score[l] = 0;
	if (4 * c->kept >= 3 * c->cells)
		c->components = *most = *most < c->kept - 1 ? *most : c->kept - 1;
}

static void score_class(void *arg, size_t l, int thread)
{
	struct parts *s = arg;
	struct class_part *c = &s->class[l];
	struct part p;
	(void)thread;
	if (!c->components)
		return;
	FREED uint8_t *keep = xmalloc(s->g->n);
	for (size_t i = 0; i < s->g->n; i++)
		keep[i] = s->label[i] == l && is_kept(s, i);
	take_part(&p, s->g, s->weight, s->batch, s->batches, keep);
	if (p.batches > 1)
		c->bad = score_part(&s->score[l], &p, c->near, c->components, &s->search, &c->e);
	part_release(&p);
}

int kbet_label(double *score, const struct network *g, const double *weight, const uint32_t *label, size_t labels, const uint32_t *batch,
	size_t batches, const struct search_settings *search, struct error *e)
{
	FREED uint32_t *member = xmalloc(g->n * sizeof *member), *size = xcalloc(g->n, sizeof *size);
	FREED struct class_part *class = xcalloc(labels, sizeof *class);
	struct parts s = {g, weight, label, batch, batches, member, size, class, score, *search};
	size_t most = COMPONENTS;
	s.search.threads = 1;
	find_components(&s);
	for (uint32_t l = 0; l < labels; l++)
		plan_class(&s, l, &most);
	pool_for(search->threads, labels, score_class, &s);
	for (size_t l = 0; l < labels; l++)
		if (class[l].bad) {
			*e = class[l].e;
			return -1;
		}
	return 0;
}

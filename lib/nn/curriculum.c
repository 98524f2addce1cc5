#include "nn/curriculum.h"

#include "nn/mlp.h"

enum { HIDDEN1 = 128, HIDDEN2 = 256, ITERATIONS = 10 };
#define LEAST 1e-9

static const char *const NAME[] = {CURRICULUM_PREFIX "hidden1", CURRICULUM_PREFIX "hidden2", CURRICULUM_PREFIX "output"};

/* ---- schedule ---- */

/*
 * The paper's steps of its lung atlas, as shares of that training (243,150 steps): fixed for 5,000, falling from 30,000 to 120,000. The two ends
 * of the slope are lost in our copy of the paper; 1 and -1 are those of CL-MAE.
 */
uint64_t curriculum_start(const struct curriculum *c)
{
	return c->steps / 50;
}

double curriculum_slope(const struct curriculum *c, uint64_t step)
{
	double from = (double)c->steps / 8, to = (double)c->steps / 2, x = ((double)step - from) / (to - from);
	return !c->hard || x < 0 ? 1 : x < 1 ? 1 - 2 * x : -1;
}

/* ---- network ---- */

static size_t curriculum_width(const struct curriculum *c, size_t G, int layer)
{
	return layer == 0 ? HIDDEN1 : layer == 1 ? HIDDEN2 : G * c->ratios;
}

void curriculum_tensors(const struct curriculum *c, struct params *p, int layer, size_t G)
{
	size_t first = p->n;
	for (int i = 0; i < 3 && c->ratios; i++)
		mlp_add_linear(p, layer, curriculum_width(c, G, i), i ? curriculum_width(c, G, i - 1) : G, 1, NAME[i]);
	for (size_t i = first; i < p->n; i++)
		p->tensor[i].start = curriculum_start(c);
}

void curriculum_resolve(struct curriculum_net *n, const struct curriculum *c, struct model *m)
{
	*n = (struct curriculum_net){.c = *c, .G = m->c.vocab_size};
	if (!c->ratios)
		return;
	for (int i = 0; i < 3; i++) {
		n->layer[i].out = curriculum_width(c, n->G, i);
		n->layer[i].w = params_at(&m->p, "%s.weight", NAME[i]);
		n->layer[i].b = params_at(&m->p, "%s.bias", NAME[i]);
	}
	sinkhorn_init(&n->scaling, n->G, c->ratios, ITERATIONS);
	n->host = xcalloc(n->G * c->ratios, sizeof *n->host);
	n->gene = xcalloc(n->G, sizeof *n->gene);
}

void curriculum_release(struct curriculum_net *n)
{
	sinkhorn_release(&n->scaling);
	free_all(n->host, n->gene);
}

void curriculum_carve(struct curriculum_net *n, struct arena *a)
{
	if (!n->c.ratios)
		return;
	n->x = arena_act(a, n->G);
	for (int i = 0; i < 3; i++) {
		n->layer[i].y = arena_act(a, n->layer[i].out);
		n->layer[i].dy = arena_act(a, n->layer[i].out);
	}
	n->weight = arena_real(a, n->G);
	n->loss = arena_real(a, n->G);
}

/* x, the network's input, to the device. */
static void send_mean(struct curriculum_net *n, struct model *m, const struct batch *b)
{
	memset(n->gene, 0, n->G * sizeof *n->gene);
	for (size_t t = 0; t < b->offset[b->ncell]; t++)
		n->gene[b->id[t]] += log1p(b->count[t]);
	for (size_t g = 0; g < n->G; g++)
		n->host[g] = (real)(n->gene[g] / (double)b->ncell);
	m->o->upload_act(m->o, n->x, n->host, n->G);
}

void curriculum_weigh(struct curriculum_net *n, struct model *m, const struct batch *b, uint32_t ratio)
{
	struct ops *o = m->o;
	struct sinkhorn *s = &n->scaling;
	size_t GK = n->G * n->c.ratios, in = n->G;
	const void *x = n->x;
	if (!n->c.ratios)
		return;
	n->ratio = ratio;
	send_mean(n, m, b);
	for (int i = 0; i < 3; i++) {
		o->linear(o, n->layer[i].y, NULL, x, P(m, n->layer[i].w), P(m, n->layer[i].b), 1, in, n->layer[i].out,
			i < 2 ? ACT_RELU : ACT_NONE);
		x = n->layer[i].y;
		in = n->layer[i].out;
	}
	o->download_act(o, n->host, x, GK);
	for (size_t i = 0; i < GK; i++)
		s->s[i] = 1 / (1 + exp(-(double)n->host[i])) + LEAST;
	sinkhorn_forward(s);
	sinkhorn_column(s, ratio, n->gene);
	for (size_t g = 0; g < n->G; g++)
		n->host[g] = (real)n->gene[g];
	o->upload(o, n->weight, n->host, n->G * sizeof *n->host);
}

void curriculum_back(struct curriculum_net *n, struct model *m, uint64_t step, double scale)
{
	struct ops *o = m->o;
	struct sinkhorn *s = &n->scaling;
	if (!n->c.ratios || step < curriculum_start(&n->c))
		return;
	double factor = scale * curriculum_slope(&n->c, step);
	o->download(o, n->host, n->loss, n->G * sizeof *n->host);
	for (size_t g = 0; g < n->G; g++)
		n->gene[g] = factor * n->host[g];
	sinkhorn_back(s, n->ratio, n->gene);
	for (size_t i = 0; i < n->G * n->c.ratios; i++) {
		double p = s->s[i] - LEAST;
		n->host[i] = (real)(s->ds[i] * p * (1 - p));
	}
	o->upload_act(o, n->layer[2].dy, n->host, n->G * n->c.ratios);
	for (int i = 2; i >= 0; i--) {
		const void *x = i ? n->layer[i - 1].y : n->x;
		o->linear_back(o, i ? n->layer[i - 1].dy : NULL, G(m, n->layer[i].w), G(m, n->layer[i].b), n->layer[i].dy, x,
			P(m, n->layer[i].w), n->layer[i].y, NULL, 1, i ? n->layer[i - 1].out : n->G, n->layer[i].out,
			i < 2 ? ACT_RELU : ACT_NONE, 0);
	}
}

/* The statistics of batch normalisation from given cells (model_recalibrate in model.h). */

#include "nn/model_impl.h"

/* One pass over the cells collects the moments of one normalisation, whose inputs depend on those before it. */
struct moments {
	size_t wanted, at; /* number of the normalisation; of the next one in this forward */
	size_t C, mean, var; /* of the wanted one; offsets of its statistics */
	double n, *sum, *square; /* [C] */
	real *z; /* [cells of the batch, C] */
	size_t sum_cap, square_cap, z_cap;
};

void model_moments(struct model *m, const struct forward *f, const void *z, size_t C, size_t mean, size_t var)
{
	struct moments *x = f->moments;
	size_t N = m->shape.cells;
	if (!x || x->at++ != x->wanted)
		return;
	if (x->n == 0) {
		x->C = C;
		x->mean = mean;
		x->var = var;
		grow(x->sum, x->sum_cap, C);
		grow(x->square, x->square_cap, C);
		memset(x->sum, 0, C * sizeof *x->sum);
		memset(x->square, 0, C * sizeof *x->square);
	}
	grow(x->z, x->z_cap, N * C);
	m->o->download_act(m->o, x->z, z, N * C);
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < C; j++) {
			double v = x->z[i * C + j];
			x->sum[j] += v;
			x->square[j] += v * v;
		}
	x->n += (double)N;
}

static void set(struct model *m, size_t to, real *x, size_t C)
{
	m->o->upload(m->o, P(m, to), x, C * sizeof *x);
	m->o->params_changed(m->o, P(m, to), C);
}

static void set_moments(struct model *m, struct moments *x)
{
	real *mean = x->z, *var = x->z + x->C; /* two cells at least */
	for (size_t j = 0; j < x->C; j++) {
		mean[j] = (real)(x->sum[j] / x->n);
		var[j] = (real)(fmax(0, x->square[j] - x->sum[j] * x->sum[j] / x->n) / (x->n - 1));
	}
	set(m, x->mean, mean, x->C);
	set(m, x->var, var, x->C);
}

static int pass(struct model *m, model_next *next, void *arg, struct moments *x, struct error *e)
{
	const struct forward f = {.moments = x};
	struct batch b;
	int got;
	x->n = 0;
	x->at = 1; /* without a cell nobody knows */
	while ((got = next(arg, &b, e)) > 0) {
		struct shape s = shape_of(m, &b);
		s.heads = s.logits = (1u << m->nhead) - 1;
		x->at = 0;
		if (batch_send(m, &b, s, &f, NULL, e))
			return -1;
		const void *states = m->arch->forward(m, &f, m->c.num_hidden_layers);
		for (size_t i = 0; i < m->nhead; i++)
			m->head[i]->kind->forward(m->head[i], m, &f, states);
		if (m->o->sync(m->o, e))
			return -1;
	}
	if (got < 0)
		return -1;
	if (!x->at)
		return error_set(e, "the model has no batch normalisation");
	if (x->n < 2)
		return error_set(e, "%.0f cells: statistics need at least two", x->n);
	grow(x->z, x->z_cap, 2 * x->C);
	set_moments(m, x);
	return 0;
}

int model_recalibrate(struct model *m, model_next *next, void *arg, struct error *e)
{
	struct moments x = {0};
	int bad = 0;
	do
		bad = pass(m, next, arg, &x, e);
	while (!bad && ++x.wanted < x.at);
	free_all(x.sum, x.square, x.z);
	return bad;
}

#include "nn/value.h"

#include "nn/model_impl.h"

static const struct {
	int periodic; /* else a layer of VALUE_UNITS lies between the value and the vector */
	int table; /* special tokens have rows of it: vectors, or units of that layer */
	enum act last;
} kinds[] = {
	[VALUE_NONE] = {.last = ACT_NONE},
	[VALUE_PERIODIC] = {.periodic = 1, .table = 1},
	[VALUE_MLP] = {.last = ACT_LEAKY},
	[VALUE_MLP_SPECIAL] = {.table = 1},
};
EVERY_ROW(kinds, VALUE_KINDS);

/* ---- configuration ---- */

size_t value_rows(const struct model_config *c)
{
	return kinds[c->value.kind].table ? c->value.specials + !c->value.zero_is_number : 0;
}

uint32_t value_row(const struct model_config *c, double x)
{
	const struct value_config *v = &c->value;
	if (x < 0)
		return (uint32_t)(-x) - 1;
	return x > 0 || v->zero_is_number ? ROW_NONE : v->specials;
}

uint32_t value_pad(const struct model_config *c)
{
	uint32_t pad = kinds[c->value.kind].periodic ? c->pad_token_id : 2;
	return pad < value_rows(c) ? pad : ROW_NONE;
}

static size_t features(const struct model_config *c)
{
	const struct value_config *v = &c->value;
	return kinds[c->value.kind].periodic ? 2 * (size_t)v->frequencies + v->center.n : VALUE_UNITS;
}

static int check_periodic(const struct value_config *v, struct error *e)
{
	if (v->frequencies > 1024)
		return error_set(e, "value_frequencies is %u: expected at most 1024", v->frequencies);
	if (!(v->scale > 0 && v->scale <= 1e6))
		return error_set(e, "value_scale is %g: expected a number above 0, at most 1e6", v->scale);
	if (!v->learned && v->scale * 2 * M_PI * pow(2, v->frequencies) > 1e38)
		return error_set(e, "value_frequencies is %u: the last frequency, %g doubled so often, is too large for a float",
			v->frequencies, 2 * M_PI * v->scale);
	if (!(fabs(v->shift) <= 1e6))
		return error_set(e, "value_shift is %g: expected a number up to 1e6", v->shift);
	if (v->center.n != v->orientation.n)
		return error_set(e, "value_sigmoid_centers has %u numbers, value_sigmoid_orientations %u", v->center.n, v->orientation.n);
	if (!v->frequencies && !v->center.n)
		return error_set(e, "value_frequencies is 0, and there are no value_sigmoid_centers: values have no feature");
	return 0;
}

int value_check(const struct model_config *c, struct error *e)
{
	const struct value_config *v = &c->value;
	if (v->kind == VALUE_NONE)
		return 0;
	if (v->specials > 1 << 20)
		return error_set(e, "value_specials is %u: expected at most %d", v->specials, 1 << 20);
	return kinds[c->value.kind].periodic ? check_periodic(v, e) : 0;
}

static int check_value(const struct model_config *c, double x, struct error *e)
{
	const struct value_config *v = &c->value;
	if (!isfinite(x))
		return error_set(e, "value %g: expected a number", x);
	if (x < 0 && kinds[c->value.kind].table && (x != floor(x) || x < -(double)v->specials))
		return error_set(e, "value %g: expected 0, a number above it, or -(id + 1) of one of %u special tokens", x, v->specials);
	return 0;
}

int value_check_batch(const struct model_config *c, const struct batch *b, int train, struct error *e)
{
	if (c->value.kind == VALUE_NONE)
		return 0;
	if (!b->value)
		return error_set(e, "batch: tokens without values, which the value encoder of the model needs");
	for (size_t i = 0; i < b->ncell; i++)
		for (uint32_t t = b->offset[i]; t < b->offset[i + 1]; t++)
			if (check_value(c, (double)b->value[t], e))
				return error_prefix(e, "cell %zu of the batch, position %u", i, t - b->offset[i]);
	return 0;
}

/* ---- tensors ---- */

static void periodic_tensors(struct params *p, const struct model_config *c, const char *name)
{
	const struct value_config *v = &c->value;
	const double first = 2 * M_PI * v->scale;
	const struct reals *const list[] = {&v->center, &v->orientation};
	static const char *const of[] = {"centers", "orientations"};
	if (v->frequencies) {
		struct tensor *t = params_add(p, v->learned ? INIT_NORMAL : INIT_DOUBLING, 0, -1, v->frequencies, 0, "%s.basis", name);
		t->std = first;
		t->role = v->learned ? LEARNED : BUFFER;
	}
	for (int i = 0; i < 2 && v->center.n; i++) {
		struct tensor *t = params_add(p, INIT_VALUES, 0, -1, v->center.n, 0, "%s.sigmoid_%s", name, of[i]);
		t->values = list[i]->x;
		t->role = BUFFER;
	}
}

void value_tensors(struct params *p, const struct model_config *c, const char *name)
{
	int periodic = kinds[c->value.kind].periodic;
	size_t C = c->hidden_size, rows = value_rows(c);
	char text[TENSOR_NAME];
#define NAME(part) (snprintf(text, sizeof text, "%s." part, name), text)
	if (rows) {
		struct tensor *t =
			params_add(p, INIT_NORMAL, 0, -1, rows, periodic ? C : VALUE_UNITS, "%s.special_token_embeddings.weight", name);
		t->std = 1;
		t->zero_row = value_pad(c) == ROW_NONE ? NO_ROW : value_pad(c);
	}
	if (periodic) {
		periodic_tensors(p, c, name);
		params_add_weight(p, -1, C, features(c), NAME("dense"));
	} else if (c->value.kind != VALUE_NONE) {
		params_add_linear(p, -1, VALUE_UNITS, 1, NAME("dense_1"));
		params_add_linear(p, -1, C, VALUE_UNITS, NAME("dense_2"));
	}
#undef NAME
}

/* The offset of a tensor, NO_ROW: there is none. */
static size_t at(const struct model *m, const char *name, const char *part)
{
	char text[TENSOR_NAME];
	snprintf(text, sizeof text, "%s.%s", name, part);
	const struct tensor *t = params_find(&m->p, text);
	return t ? t->at : NO_ROW;
}

void value_resolve(struct value_encoder *v, const struct model *m, const char *name)
{
	int periodic = kinds[m->c.value.kind].periodic;
	v->table = at(m, name, "special_token_embeddings.weight");
	v->w = at(m, name, periodic ? "basis" : "dense_1.weight");
	v->b = at(m, name, "dense_1.bias");
	v->center = at(m, name, "sigmoid_centers");
	v->orientation = at(m, name, "sigmoid_orientations");
	v->dense_w = at(m, name, periodic ? "dense.weight" : "dense_2.weight");
	v->dense_b = at(m, name, "dense_2.bias");
}

/* ---- forward and backward ---- */

void value_carve(struct value_encoder *v, struct model *m, struct arena *a, const struct shape *s)
{
	if (m->c.value.kind == VALUE_NONE)
		return;
	v->f = arena_act(a, s->T * features(&m->c));
	v->y = arena_act(a, s->T * m->c.hidden_size);
	v->df = s->train ? arena_act(a, s->T * features(&m->c)) : NULL;
}

static const real *param(const struct model *m, size_t offset)
{
	return offset == NO_ROW ? NULL : P(m, offset);
}

static real *grad(const struct model *m, size_t offset)
{
	return offset == NO_ROW ? NULL : G(m, offset);
}

static struct value_features parts(const struct value_encoder *v, const struct model *m)
{
	int periodic = kinds[m->c.value.kind].periodic;
	return (struct value_features){
		.n = periodic ? m->c.value.frequencies : VALUE_UNITS,
		.m = periodic ? m->c.value.center.n : 0,
		.shift = m->c.value.shift,
		.w = param(m, v->w),
		.b = param(m, v->b),
		.center = param(m, v->center),
		.orientation = param(m, v->orientation),
		.table = periodic ? NULL : param(m, v->table),
	};
}

const void *value_forward(struct value_encoder *v, struct model *m)
{
	struct ops *o = m->o;
	size_t T = m->seq.T, C = m->c.hidden_size;
	if (m->c.value.kind == VALUE_NONE)
		return NULL;
	struct value_features q = parts(v, m);
	o->value_features(o, v->f, m->dev.value, m->dev.coded.row, &q, T);
	o->linear(o, v->y, NULL, v->f, P(m, v->dense_w), param(m, v->dense_b), T, value_width(&q), C, kinds[m->c.value.kind].last);
	if (v->table != NO_ROW && !q.table)
		o->bag(o, v->y, P(m, v->table), &m->coded, NULL, T, C, 1);
	return v->y;
}

void value_backward(struct value_encoder *v, struct model *m, void *dy)
{
	struct ops *o = m->o;
	size_t T = m->seq.T, C = m->c.hidden_size, rows = value_rows(&m->c);
	if (m->c.value.kind == VALUE_NONE)
		return;
	struct value_features q = parts(v, m);
	int learned = q.b || m->c.value.learned; /* what is before the features */
	if (rows && !q.table)
		o->bag_back(o, G(m, v->table), dy, &m->coded, NULL, rows, C);
	o->linear_back(o, learned ? v->df : NULL, G(m, v->dense_w), grad(m, v->dense_b), dy, v->f, P(m, v->dense_w), v->y, NULL, T,
		value_width(&q), C, kinds[m->c.value.kind].last, 0);
	if (learned)
		o->value_features_back(o, grad(m, v->w), grad(m, v->b), v->df, m->dev.value, m->dev.coded.row, &q, T);
	if (q.table)
		o->bag_back(o, G(m, v->table), v->df, &m->coded, NULL, rows, VALUE_UNITS);
}

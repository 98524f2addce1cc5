#include "nn/params.h"

#include <assert.h>
#include <stdarg.h>

#include "base/rng.h"

/* ---- the table ---- */

static void tensor_name_of(char name[TENSOR_NAME], const struct params *p, const char *fmt, va_list ap)
{
	int n = snprintf(name, TENSOR_NAME, "%s", p->prefix ? p->prefix : "");
	vsnprintf(name + n, TENSOR_NAME - (size_t)n, fmt, ap);
}

struct tensor *params_add(struct params *p, enum init init, int decay, int layer, size_t d0, size_t d1, const char *fmt, ...)
{
	grow(p->tensor, p->cap, p->n + 1);
	struct tensor *t = &p->tensor[p->n++];
	*t = (struct tensor){
		.ndim = d1 ? 2 : 1,
		.shape = {d0, d1},
		.n = d0 * (d1 ? d1 : 1),
		.init = init,
		.decay = decay,
		.layer = layer,
		.head = -1,
		.zero_row = NO_ROW,
	};
	va_list ap;
	va_start(ap, fmt);
	tensor_name_of(t->name, p, fmt, ap);
	va_end(ap);
	return t;
}

struct tensor *params_add_weight(struct params *p, int layer, size_t out, size_t in, const char *name)
{
	struct tensor *t = params_add(p, p->torch_init ? INIT_UNIFORM : INIT_NORMAL, 1, layer, out, in, "%s.weight", name);
	t->std = p->torch_init ? 1 / sqrt((double)in) : 0;
	return t;
}

void params_add_linear(struct params *p, int layer, size_t out, size_t in, const char *name)
{
	params_add_weight(p, layer, out, in, name);
	params_add(p, p->torch_init ? INIT_UNIFORM : INIT_ZERO, 0, layer, out, 0, "%s.bias", name)->std = 1 / sqrt((double)in);
}

void params_add_last(struct params *p, int layer, size_t out, size_t in, const char *name)
{
	params_add_weight(p, layer, out, in, name);
	params_add(p, INIT_ZERO, 0, layer, out, 0, "%s.bias", name);
}

void params_add_norm(struct params *p, int layer, size_t C, const char *name)
{
	params_add(p, INIT_ONE, 0, layer, C, 0, "%s.weight", name);
	params_add(p, INIT_ZERO, 0, layer, C, 0, "%s.bias", name);
}

/* 0: learned, with decay; 1: learned, without; 2: buffers. The order in which they lie. */
static int group_of(const struct tensor *t)
{
	return t->role == BUFFER ? 2 : !t->decay;
}

void params_place(struct params *p)
{
	size_t at = 0, align = p->o->align ? p->o->align : 1;
	for (int group = 0; group < 3; group++) {
		for (size_t i = 0; i < p->n; i++) {
			struct tensor *t = &p->tensor[i];
			if (group_of(t) != group)
				continue;
			if (!t->joined)
				at = (at + align - 1) / align * align;
			t->at = at;
			at += t->n;
			p->nparam += t->role == LEARNED ? t->n : 0;
		}
		if (group == 0)
			p->decayed = at;
		if (group == 1)
			p->learned = (at + align - 1) / align * align;
	}
	p->size = (at + align - 1) / align * align;
	params_array(p, PARAM);
}

void params_release(struct params *p)
{
	for (int w = 0; w < 4; w++)
		p->o->free(p->o, p->array[w]);
	free(p->tensor);
	*p = (struct params){0};
}

const struct tensor *params_find(const struct params *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->tensor[i].name, name))
			return &p->tensor[i];
	return NULL;
}

size_t params_at(const struct params *p, const char *fmt, ...)
{
	char name[TENSOR_NAME];
	va_list ap;
	va_start(ap, fmt);
	tensor_name_of(name, p, fmt, ap);
	va_end(ap);
	const struct tensor *t = params_find(p, name);
	assert(t);
	return t->at;
}

/* ---- values ---- */

size_t params_size(const struct params *p, enum which w)
{
	return w == PARAM ? p->size : p->learned;
}

real *params_array(struct params *p, enum which w)
{
	if (!p->array[w])
		p->array[w] = p->o->alloc(p->o, params_size(p, w) * sizeof(real));
	return p->array[w];
}

static uint64_t name_hash(const char *s) /* FNV-1a */
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

static double first_value(const struct params *p, const struct tensor *t, struct rng *r, size_t i)
{
	switch (t->init) {
	case INIT_NORMAL:
		return rng_normal(r) * (t->std > 0 ? t->std : p->init_range);
	case INIT_UNIFORM:
		return (2 * rng_unit(r) - 1) * t->std;
	case INIT_DOUBLING:
		return ldexp(t->std, (int)i);
	case INIT_VALUES:
		return t->values[i];
	case INIT_ONE:
		return 1;
	case INIT_ZERO:
		break;
	}
	return 0;
}

void params_draw(struct params *p, const struct tensor *t)
{
	struct rng r = rng_at((uint32_t)(p->seed ^ p->seed >> 32), RNG_INIT, name_hash(t->name), 0);
	FREED real *host = xcalloc(t->n, sizeof *host);
	for (size_t i = 0; i < t->n; i++)
		host[i] = (real)first_value(p, t, &r, i);
	if (t->zero_row != NO_ROW)
		memset(host + t->zero_row * t->shape[1], 0, t->shape[1] * sizeof *host);
	params_write(p, PARAM, t, host);
}

void params_read(struct params *p, enum which w, const struct tensor *t, real *host)
{
	assert(w == PARAM || t->role == LEARNED);
	p->o->download(p->o, host, params_array(p, w) + t->at, t->n * sizeof *host);
}

void params_write(struct params *p, enum which w, const struct tensor *t, const real *host)
{
	assert(w == PARAM || t->role == LEARNED);
	p->o->upload(p->o, params_array(p, w) + t->at, host, t->n * sizeof *host);
	if (w == PARAM)
		p->o->params_changed(p->o, p->array[w] + t->at, t->n);
}

/* ---- training ---- */

void params_freeze(struct params *p, size_t n)
{
	for (size_t i = 0; i < p->n; i++)
		p->tensor[i].frozen = n && p->tensor[i].layer < (int)n;
}

/* params_place has laid the matrices of one layer side by side. */
void params_grad_part(const struct params *p, int layer, params_part *f, void *arg)
{
	size_t from = p->learned, to = 0, rest = p->learned;
	for (size_t i = 0; i < p->n; i++) {
		const struct tensor *t = &p->tensor[i];
		if (t->role == BUFFER)
			continue;
		if (!t->decay) {
			rest = t->at < rest ? t->at : rest;
		} else if (t->layer == layer && !t->frozen) {
			from = t->at < from ? t->at : from;
			to = t->at + t->n > to ? t->at + t->n : to;
		}
	}
	if (from < to)
		f(arg, from, to);
	if (layer < 0 && rest < p->learned)
		f(arg, rest, p->learned);
}

/* Stretches of the learned arrays without a frozen tensor, whose tensors start together: f gets [from, to) of each. */
static void each_run(struct params *p, void (*f)(struct params *, size_t from, size_t to, uint64_t start, void *), void *arg)
{
	const struct tensor *first = NULL, *last = NULL;
	for (int group = 0; group < 2; group++) {
		for (size_t i = 0; i < p->n; i++) {
			const struct tensor *t = &p->tensor[i];
			if (group_of(t) != group)
				continue;
			if (first && (t->frozen || t->start != first->start)) {
				f(p, first->at, last->at + last->n, first->start, arg);
				first = NULL;
			}
			if (!t->frozen) {
				first = first ? first : t;
				last = t;
			}
		}
	}
	if (first)
		f(p, first->at, last->at + last->n, first->start, arg);
}

static void sum_run(struct params *p, size_t from, size_t to, uint64_t start, void *sum)
{
	p->o->sumsq(p->o, sum, params_array(p, GRAD) + from, to - from);
}

void params_sum_squares(struct params *p, double *sum)
{
	each_run(p, sum_run, sum);
}

struct update {
	const struct adamw_args *a;
	const double *norm2;
};

static void update_run(struct params *p, size_t from, size_t to, uint64_t start, void *arg)
{
	const struct update *u = arg;
	struct adamw_args a = *u->a;
	if (a.t <= start)
		return;
	a.t -= start;
	a.decayed = from < p->decayed ? p->decayed - from : 0;
	p->o->adamw(p->o, params_array(p, PARAM) + from, params_array(p, GRAD) + from, params_array(p, MOMENT1) + from,
		params_array(p, MOMENT2) + from, to - from, u->norm2, &a);
}

void params_update(struct params *p, const struct adamw_args *a, const double *norm2)
{
	each_run(p, update_run, &(struct update){a, norm2});
}

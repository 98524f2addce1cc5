/* A model as a whole: making it from its parts, access to its tensors, and the optimiser step. */
#include "nn/model.h"

#include <assert.h>

#include "nn/model_impl.h"

const struct arch_preset *model_preset_at(size_t i)
{
	for (size_t a = 0; arch_at(a); a++)
		for (const struct arch_preset *p = arch_at(a)->preset; p->name; p++)
			if (!i--)
				return p;
	return NULL;
}

int model_preset(struct model_config *c, const char *name, struct error *e)
{
	char known[512] = "";
	const struct arch_preset *p;
	size_t i = 0;
	for (; (p = model_preset_at(i)) && strcmp(p->name, name); i++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? model_preset_at(i + 1) ? ", " : " or " : "",
			p->name);
	if (!p)
		return error_set(e, "unknown configuration '%s': expected %s", name, known);
	p->fill(c);
	return 0;
}

size_t model_positions(const struct model_config *c)
{
	return (c->arch ? c->arch : arch_at(0))->positions ? c->max_position_embeddings : SIZE_MAX;
}

int model_check(const struct model_config *c, struct error *e)
{
	return (c->arch ? c->arch : arch_at(0))->check(c, e);
}

/* ---- making ---- */

static int check_parts(const struct model_config *c, const struct head_spec *head, size_t nhead, struct error *e)
{
	size_t losses = 0;
	assert(nhead <= HEADS_MAX);
	if (c->arch->check(c, e))
		return -1;
	for (size_t i = 0; i < nhead; i++) {
		const struct head_kind *k = head[i].kind;
		losses += head_parts(k);
		if (losses > LOSSES_MAX)
			return error_set(e, "the heads have more than %d losses", LOSSES_MAX);
		if (readout_check(k, c, e) || (k->check && k->check(&head[i], c, e)))
			return -1;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(head_name(&head[i]), head_name(&head[j])))
				return error_set(e, "two heads are named '%s'", head_name(&head[i]));
	}
	return 0;
}

static void head_tensors(struct params *p, const struct model_config *c, const struct head_spec *s, size_t i)
{
	readout_tensors(s, p, c);
	size_t own = p->n;
	p->prefix = s->prefix;
	s->kind->tensors(s, p, c);
	p->prefix = NULL;
	for (; own < p->n; own++) {
		p->tensor[own].head = (int)i;
		p->tensor[own].start = p->tensor[own].start > s->from ? p->tensor[own].start : s->from;
	}
}

/* Heads that would share a tensor cannot be in one model. */
static int check_names(const struct params *p, size_t from, struct error *e)
{
	for (size_t i = from; i < p->n; i++)
		if (params_find(p, p->tensor[i].name) != &p->tensor[i])
			return error_set(e, "two heads have a tensor '%s'", p->tensor[i].name);
	return 0;
}

static struct head *head_new(const struct head_spec *spec, size_t index)
{
	struct head *h = xcalloc(1, spec->kind->size > sizeof *h ? spec->kind->size : sizeof *h);
	h->kind = spec->kind;
	h->spec = *spec;
	h->spec.weight = spec->weight == 0 ? 1 : spec->weight;
	h->spec.name = head_name(spec);
	h->index = index;
	h->nloss = head_parts(spec->kind);
	return h;
}

struct model *model_blank(
	const struct model_config *c, const struct head_spec *head, size_t nhead, struct ops *o, uint64_t seed, struct error *e)
{
	struct model_config config = *c;
	config.arch = c->arch ? c->arch : arch_at(0);
	if (check_parts(&config, head, nhead, e))
		return NULL;
	struct model *m = xcalloc(1, sizeof *m);
	m->c = config;
	m->arch = config.arch;
	m->o = o;
	m->seed = seed;
	m->tied = NO_ROW;
	m->p = (struct params){.o = o, .seed = seed, .init_range = c->initializer_range, .torch_init = m->arch->torch_init};
	m->arch->tensors(&m->p, &m->c);
	size_t own = m->p.n;
	for (size_t i = 0; i < nhead; i++)
		head_tensors(&m->p, &m->c, &head[i], i);
	if (check_names(&m->p, own, e)) {
		params_release(&m->p);
		free(m);
		return NULL;
	}
	params_place(&m->p);
	m->arch_state = xcalloc(1, m->arch->size);
	m->arch->resolve(m);
	for (m->nhead = 0; m->nhead < nhead; m->nhead++) {
		struct head *h = m->head[m->nhead] = head_new(&head[m->nhead], m->nhead);
		h->first = m->nloss;
		for (size_t k = 0; k < h->nloss; k++)
			m->weight[m->nloss++] = h->spec.weight * head_part_weight(&h->spec, k);
		m->spec[m->nhead] = head[m->nhead];
		readout_resolve(h, m);
		m->p.prefix = h->spec.prefix;
		h->kind->resolve(h, m);
		m->p.prefix = NULL;
	}
	m->sums = o->alloc(o, SUMS * sizeof *m->sums);
	for (int i = 0; i < 2; i++)
		m->result[i].sums = o->host_alloc(o, SUMS * sizeof *m->sums);
	return m;
}

struct model *model_new(
	const struct model_config *c, const struct head_spec *head, size_t nhead, struct ops *o, uint64_t seed, struct error *e)
{
	struct model *m = model_blank(c, head, nhead, o, seed, e);
	for (size_t i = 0; m && i < m->p.n; i++)
		model_draw(m, &m->p.tensor[i]);
	return m;
}

void model_draw(struct model *m, const struct tensor *t)
{
	params_draw(&m->p, t);
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->nhead; i++) {
		if (m->head[i]->kind->release)
			m->head[i]->kind->release(m->head[i], m);
		free(m->head[i]);
	}
	if (m->arch->release)
		m->arch->release(m);
	free(m->arch_state);
	params_release(&m->p);
	m->o->free(m->o, m->sums);
	m->o->free(m->o, m->memory);
	for (int i = 0; i < 2; i++) {
		m->o->host_free(m->o, m->stage[i].host);
		m->o->host_free(m->o, m->result[i].sums);
		m->o->host_free(m->o, m->result[i].x);
	}
	free(m);
}

/* ---- access ---- */

const struct model_config *model_config(const struct model *m)
{
	return &m->c;
}

size_t model_nhead(const struct model *m)
{
	return m->nhead;
}

size_t model_nloss(const struct model *m)
{
	return m->nloss;
}

size_t model_first_loss(const struct model *m, size_t head)
{
	return m->head[head]->first;
}

const struct head_spec *model_head(const struct model *m, size_t i)
{
	return i < m->nhead ? &m->spec[i] : NULL;
}

size_t model_ntensor(const struct model *m)
{
	return m->p.n;
}

const struct tensor *model_tensor(const struct model *m, size_t i)
{
	return &m->p.tensor[i];
}

const struct tensor *model_find(const struct model *m, const char *name)
{
	return params_find(&m->p, name);
}

const struct tensor *model_tied(const struct model *m)
{
	for (size_t i = 0; i < m->p.n; i++)
		if (m->p.tensor[i].at == m->tied)
			return &m->p.tensor[i];
	return NULL;
}

void model_read(struct model *m, enum which w, const struct tensor *t, real *host)
{
	params_read(&m->p, w, t, host);
}

void model_write(struct model *m, enum which w, const struct tensor *t, const real *host)
{
	params_write(&m->p, w, t, host);
}

size_t model_size(const struct model *m, enum which w)
{
	return params_size(&m->p, w);
}

void model_read_all(struct model *m, enum which w, real *host)
{
	model_read_part(m, w, 0, params_size(&m->p, w), host);
}

void model_write_all(struct model *m, enum which w, const real *host)
{
	size_t n = params_size(&m->p, w);
	m->o->upload(m->o, params_array(&m->p, w), host, n * sizeof *host);
	if (w == PARAM)
		m->o->params_changed(m->o, m->p.array[w], n);
}

void model_write_buffers(struct model *m, const real *host)
{
	real *to = m->p.array[PARAM] + m->p.learned;
	m->o->upload(m->o, to, host, (m->p.size - m->p.learned) * sizeof *host);
	m->o->params_changed(m->o, to, m->p.size - m->p.learned);
}

void model_read_part(struct model *m, enum which w, size_t from, size_t to, real *host)
{
	m->o->download(m->o, host, params_array(&m->p, w) + from, (to - from) * sizeof *host);
}

size_t model_nparam(const struct model *m)
{
	return m->p.nparam;
}

size_t model_bytes(const struct model *m)
{
	size_t arrays = 0;
	for (int w = 0; w < 4; w++)
		arrays += m->p.array[w] ? params_size(&m->p, (enum which)w) * sizeof(real) : 0;
	return arrays + m->memory_cap + m->stage[0].cap + m->stage[1].cap;
}

double model_padding(const struct model *m)
{
	return m->rows ? 1 - (double)m->tokens / (double)m->rows : 0;
}

void model_freeze(struct model *m, size_t n)
{
	m->frozen = n < m->c.num_hidden_layers ? n : m->c.num_hidden_layers;
	params_freeze(&m->p, m->frozen);
	m->settings++;
}

/* ---- gradients and the optimiser step ---- */

void model_grad_parts(struct model *m, params_part *f, void *arg)
{
	for (int l = (int)m->c.num_hidden_layers; l >= -1; l--)
		params_grad_part(&m->p, l, f, arg);
}

void model_on_grad(struct model *m, params_part *f, void *arg)
{
	/* a device that repeats recorded work must repeat the backward pass too, since the ops of its forward pass have set what it reads */
	m->on_grad = m->o->queued ? NULL : f;
	m->on_grad_arg = arg;
}

void model_zero_grad(struct model *m)
{
	m->o->zero(m->o, params_array(&m->p, GRAD), params_size(&m->p, GRAD) * sizeof(real));
	m->o->zero(m->o, m->sums, SUMS * sizeof *m->sums);
	for (size_t i = 0; i < m->nhead; i++)
		memset(m->head[i]->host_sum, 0, sizeof m->head[i]->host_sum);
}

void model_sum_grad(struct model *m)
{
	m->o->group_sum(m->o, params_array(&m->p, GRAD), params_size(&m->p, GRAD));
}

static void sum_squares(struct model *m)
{
	m->o->zero(m->o, m->sums, sizeof *m->sums);
	params_sum_squares(&m->p, m->sums);
}

/* L2 norm of GRAD times scale, over what is not frozen. */
static double grad_norm(struct model *m, double scale)
{
	double sum;
	sum_squares(m);
	m->o->download(m->o, &sum, m->sums, sizeof sum);
	return sqrt(sum) * fabs(scale);
}

static int check_norm(double norm, uint64_t done, struct error *e)
{
	return isfinite(norm) ? 0 : error_set(e, "update %llu: the gradient's norm is %g", (unsigned long long)done + 1, norm);
}

/* The update does nothing where m->sums[0] is not finite. */
static void update(struct model *m, const struct optim *o, uint64_t done, double count)
{
	struct adamw_args a = {
		.variant = o->variant,
		.lr = o->lr * optim_factor(o, done),
		.beta1 = o->beta1,
		.beta2 = o->beta2,
		.eps = o->eps,
		.decay = o->weight_decay,
		.t = done + 1,
		.gscale = 1 / count,
		.max_norm = o->max_norm,
	};
	params_update(&m->p, &a, m->sums);
}

int model_step(struct model *m, const struct optim *o, uint64_t done, double count, double *norm, struct error *e)
{
	if (!(count > 0))
		return error_set(e, "update %llu: no labelled position in the batch", (unsigned long long)done + 1);
	double n = grad_norm(m, 1 / count);
	if (norm)
		*norm = n;
	if (check_norm(n, done, e))
		return -1;
	update(m, o, done, count);
	return m->o->sync(m->o, e);
}

void model_step_later(struct model *m, const struct optim *o, uint64_t done, double count)
{
	unsigned slot = m->posted++ % 2;
	struct result *r = &m->result[slot];
	assert(m->posted - m->taken <= 2);
	sum_squares(m);
	update(m, o, done, count);
	m->o->fetch(m->o, r->sums, m->sums, SUMS * sizeof *m->sums);
	m->o->mark(m->o, MARK_RESULT + slot);
	for (size_t i = 0; i < m->nhead; i++)
		memcpy(r->host + 2 * m->head[i]->first, m->head[i]->host_sum, sizeof m->head[i]->host_sum);
	r->count = count;
}

int model_collect(struct model *m, struct loss *loss, double *norm, struct error *e)
{
	unsigned slot = m->taken++ % 2;
	const struct result *r = &m->result[slot];
	assert(m->taken <= m->posted);
	if (m->o->wait(m->o, MARK_RESULT + slot, e))
		return -1;
	for (size_t i = 0; i < m->nloss; i++)
		loss[i] = (struct loss){
			.sum = r->sums[1 + 2 * i] + r->host[2 * i],
			.measure = r->sums[2 + 2 * i] + r->host[2 * i + 1],
			.count = i ? 0 : r->count,
		};
	*norm = sqrt(r->sums[0]) / r->count;
	return 0;
}

int model_check_step(const struct model *m, const double *sum, double norm, uint64_t done, struct error *e)
{
	for (size_t i = 0; i < m->nloss; i++)
		if (!isfinite(sum[i]))
			return error_set(e, "the loss is %g", sum[i]);
	return check_norm(norm, done, e);
}

/* Forward, backward, embeddings and logits of one batch. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "nn/model_impl.h"

enum work {
	WORK_FORWARD,
	WORK_TRAIN,
	WORK_BACK,
	WORK_EMBED,
};

/*
 * 1: the device has recorded this work for a batch of this size, and runs it again. 0: the caller calls the ops, then replay_end. The
 * key holds everything on which the arguments of the ops depend.
 */
static int replay(struct model *m, enum work work, uint64_t detail)
{
	const struct shape *s = &m->shape;
	const uint64_t arrays = (uint64_t)s->ranks | (uint64_t)s->values << 1 | (uint64_t)s->counts << 2;
	uint64_t key[OPS_KEY] = {
		work, detail << 3 | arrays, s->B, s->T, s->heads, (uintptr_t)m->memory, (uintptr_t)m->p.array[PARAM], m->settings};
	for (size_t i = 0; i < m->nhead; i++)
		if (s->heads >> i & 1)
			key[8 + i] = m->head[i]->N << 1 | (m->head[i]->scale != NULL);
	return m->o->replay(m->o, key);
}

struct dropout model_dropout(const struct model *m, const struct forward *f, enum site site, uint32_t layer, double p)
{
	double threshold = f->train ? rint(p * 65536) : 0;
	return (struct dropout){
		.seed = (uint32_t)(m->seed ^ m->seed >> 32),
		.step = m->dev.step,
		.site = site,
		.layer = layer,
		.threshold = threshold < 65535 ? (uint32_t)threshold : 65535,
	};
}

size_t model_states(const struct model *m)
{
	return m->arch->per_cell ? m->shape.B : m->shape.T;
}

/* ---- forward ---- */

/* Heads that have something to predict in this batch, as bits. */
static unsigned heads_with_targets(const struct model *m, const struct batch *b)
{
	unsigned heads = 0;
	for (size_t i = 0; i < m->nhead; i++) {
		const struct head *h = m->head[i];
		const struct goal *g = &b->goal[i];
		size_t rows = goal_rows(h, b);
		int any = h->kind->rows == ROWS_LISTED && rows;
		any |= h->kind->counts && g->n;
		for (size_t r = 0; !any && !h->kind->counts && r < rows * (h->kind->width ? h->kind->width : 1); r++)
			any = h->kind->width ? g->value && !isnan(g->value[r]) : g->target && g->target[r] != ROW_NONE;
		heads |= (unsigned)(any && b->ncell && b->offset[b->ncell]) << i;
	}
	return heads;
}

static double count_rows(const struct head *h, const struct goal *g)
{
	double n = 0;
	if (h->kind->count)
		return h->kind->count(h, g);
	if (h->kind->counts)
		return (double)g->n;
	if (h->kind->rows == ROWS_LISTED && !h->kind->width)
		return (double)h->rows;
	for (size_t i = 0; i < h->rows; i++)
		n += h->kind->width ? !isnan(g->value[i * h->kind->width]) : g->target[i] != ROW_NONE;
	return n;
}

/* How far the targets of a head that predicts numbers are apart. */
static void add_targets(const struct head *h, const struct goal *g, struct loss *l)
{
	for (size_t i = 0; i < h->rows * h->kind->width; i++) {
		double v = isnan(g->value[i]) ? 0 : g->value[i];
		l->target += v;
		l->square += v * v;
	}
}

/* Work of heads that cannot be replayed, before that which can. back: of the backward. */
static void prepare(struct model *m, const struct batch *b, const struct forward *f, int back)
{
	for (size_t i = 0; i < m->nhead; i++) {
		struct head *h = m->head[i];
		if (!(m->shape.heads >> i & 1))
			continue;
		if (!back && f->train && h->kind->prepare)
			h->kind->prepare(h, m, b);
		if (back && h->kind->prepare_back)
			h->kind->prepare_back(h, m, f);
	}
}

static void forward_ops(struct model *m, const struct forward *f)
{
	const void *x = m->arch->forward(m, f, m->c.num_hidden_layers);
	for (size_t i = 0; i < m->nhead; i++) {
		struct head *h = m->head[i];
		if (!(m->shape.heads >> i & 1))
			continue;
		h->kind->forward(h, m, f, x);
		if (h->kind->loss)
			h->kind->loss(h, m, m->sums + 1 + 3 * i);
	}
}

/* Losses that the host computes, and what is known without waiting for the device. */
static void host_losses(struct model *m, const struct batch *b, const struct forward *f, struct loss *loss, unsigned *done)
{
	*done = 0;
	for (size_t i = 0; i < m->nhead; i++) {
		struct head *h = m->head[i];
		double sum[3] = {0};
		if (!(m->shape.heads >> i & 1))
			continue;
		loss[i].count = count_rows(h, &b->goal[i]);
		add_targets(h, &b->goal[i], &loss[i]);
		if (!h->kind->host_loss || !h->kind->host_loss(h, m, &b->goal[i], f->train, sum))
			continue;
		*done |= 1u << i;
		for (int k = 0; k < 3 && f->later; k++)
			h->host_sum[k] += sum[k];
		loss[i].sum = f->later ? 0 : sum[0];
		loss[i].correct = f->later ? 0 : sum[1];
	}
}

/* Wait for the device, and read the sums of heads that it computed. */
static int collect_losses(struct model *m, const struct forward *f, struct loss *loss, unsigned on_host, struct error *e)
{
	double sums[SUMS];
	if (m->o->sync(m->o, e))
		return -1;
	m->o->download(m->o, sums, m->sums, sizeof sums);
	for (size_t i = 0; i < m->nhead; i++) {
		if (!(m->shape.heads >> i & 1))
			continue;
		if (!(on_host >> i & 1)) {
			loss[i].sum = sums[1 + 3 * i];
			loss[i].correct = sums[2 + 3 * i];
		}
		if (!isfinite(loss[i].sum))
			return error_set(e, "step %llu: the loss is %g", (unsigned long long)f->step, loss[i].sum);
	}
	return 0;
}

int model_forward(struct model *m, const struct batch *b, const struct forward *f, struct loss *loss, struct error *e)
{
	struct ops *o = m->o;
	unsigned on_host;
	for (size_t i = 0; i < m->nhead; i++)
		loss[i] = (struct loss){0};
	m->ready = 0;
	struct shape s = shape_of(m, b);
	s.heads = heads_with_targets(m, b);
	s.train = f->train;
	s.labels = 1;
	if (!s.heads) {
		if (batch_check(m, b, (1u << m->nhead) - 1, 1, e))
			return -1;
		m->ready = f->train ? 2 : 0;
		return 0;
	}
	if (batch_send(m, b, s, f, NULL, e))
		return -1;
	if (!f->later)
		o->zero(o, m->sums + 1, (SUMS - 1) * sizeof *m->sums);
	prepare(m, b, f, 0);
	if (!replay(m, f->train ? WORK_TRAIN : WORK_FORWARD, 0)) {
		forward_ops(m, f);
		o->replay_end(o);
	}
	host_losses(m, b, f, loss, &on_host);
	m->last = *f;
	m->last.scale = NULL; /* borrowed for the call */
	if (!f->later && collect_losses(m, f, loss, on_host, e))
		return -1;
	m->ready = f->train ? 1 : 0;
	return 0;
}

/* ---- without a loss ---- */

static int check_layer(const struct model *m, int layer, struct error *e)
{
	int L = (int)m->c.num_hidden_layers;
	return layer > 0 || layer < -L ? error_set(e, "layer %d: expected %d (embeddings) to 0 (last layer)", layer, -L) : 0;
}

int model_hidden(struct model *m, const struct batch *b, int layer, real *h, struct error *e)
{
	struct forward f = {0};
	struct shape s = shape_of(m, b);
	if (check_layer(m, layer, e) || batch_send(m, b, s, &f, NULL, e))
		return -1;
	void *x = m->arch->forward(m, &f, (uint32_t)((int)m->c.num_hidden_layers + layer));
	if (m->o->sync(m->o, e))
		return -1;
	m->o->download_act(m->o, h, x, (m->arch->per_cell ? s.cells : s.tokens) * m->c.hidden_size);
	return 0;
}

static int check_ranges(const struct batch *b, const uint32_t *range, struct error *e)
{
	for (size_t i = 0; i < b->ncell; i++) {
		uint32_t from = range[2 * i], to = range[2 * i + 1];
		if (from > to || (from < to && (from < b->offset[i] || to > b->offset[i + 1])))
			return error_set(e, "cell %zu of the batch: tokens %u to %u are not its own", i, from, to);
	}
	return 0;
}

int model_embed(struct model *m, const struct batch *b, int layer, const uint32_t *range, struct error *e)
{
	struct ops *o = m->o;
	struct forward f = {0};
	struct shape s = shape_of(m, b);
	size_t C = m->c.hidden_size;
	uint32_t layers = (uint32_t)((int)m->c.num_hidden_layers + layer);
	s.ranges = 1;
	if (m->arch->per_cell)
		return error_set(e, "architecture %s has no hidden states of tokens", m->arch->name);
	if (check_ranges(b, range, e) || check_layer(m, layer, e) || batch_send(m, b, s, &f, range, e))
		return -1;
	unsigned slot = m->posted++ % 2;
	struct result *r = &m->result[slot];
	assert(m->posted - m->taken <= 2);
	if (s.cells * C > r->cap) {
		o->host_free(o, r->x);
		r->x = o->host_alloc(o, s.cells * C * sizeof *r->x);
		r->cap = s.cells * C;
	}
	if (!replay(m, WORK_EMBED, layers)) {
		o->pool(o, m->pooled, m->arch->forward(m, &f, layers), m->dev.range, s.B, C, 1);
		o->replay_end(o);
	}
	o->fetch(o, r->x, m->pooled, s.cells * C * sizeof *r->x);
	o->mark(o, MARK_RESULT + slot);
	r->cells = s.cells;
	return 0;
}

int model_embedded(struct model *m, real *x, struct error *e)
{
	unsigned slot = m->taken++ % 2;
	const struct result *r = &m->result[slot];
	assert(m->taken <= m->posted);
	if (m->o->wait(m->o, MARK_RESULT + slot, e))
		return -1;
	memcpy(x, r->x, r->cells * m->c.hidden_size * sizeof *x);
	return 0;
}

int model_logits(struct model *m, const struct batch *b, size_t head, real *logit, struct error *e)
{
	struct forward f = {0};
	if (head >= m->nhead)
		return error_set(e, "the model has %zu heads: no logits of head %zu", m->nhead, head);
	struct head *h = m->head[head];
	struct shape s = shape_of(m, b);
	s.heads = 1u << head;
	s.logits = (int)head;
	if (batch_send(m, b, s, &f, NULL, e))
		return -1;
	h->kind->forward(h, m, &f, m->arch->forward(m, &f, m->c.num_hidden_layers));
	const void *z = h->kind->logits(h, m);
	if (m->o->sync(m->o, e))
		return -1;
	m->o->download_act(m->o, logit, z, h->rows * h->kind->outputs(h, m));
	return 0;
}

/* ---- backward ---- */

/* From the losses to the embeddings. */
static void backward_ops(struct model *m)
{
	int first = 1;
	for (size_t i = 0; i < m->nhead; i++) {
		struct head *h = m->head[i];
		if (!(m->shape.heads >> i & 1))
			continue;
		h->kind->backward(h, m, &m->last, first ? m->dx : m->dx_more);
		if (!first)
			m->o->add(m->o, m->dx, m->dx, m->dx_more, model_states(m) * m->c.hidden_size);
		first = 0;
	}
	model_finished(m, (int)m->c.num_hidden_layers);
	m->arch->backward(m, &m->last);
}

int model_backward(struct model *m, struct error *e)
{
	if (!m->ready)
		return error_set(e, "model_backward without a training forward");
	if (m->ready == 1)
		prepare(m, NULL, &m->last, 1);
	if (m->ready == 2) {
		if (m->on_grad)
			model_grad_parts(m, m->on_grad, m->on_grad_arg);
	} else if (m->on_grad) { /* which reads what is finished: nothing to replay */
		backward_ops(m);
	} else if (!replay(m, WORK_BACK, 0)) {
		backward_ops(m);
		m->o->replay_end(m->o);
	}
	m->on_grad = NULL;
	m->ready = 0;
	return 0;
}

/* Forward, backward, embeddings and logits of one batch. */
#include <assert.h>

#include "nn/model_impl.h"

enum work { WORK_FORWARD, WORK_TRAIN, WORK_BACK, WORK_EMBED };

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

/* ---- forward ---- */

static double targets(const struct head *h, const struct batch *b)
{
	return target_kind[h->kind->target].count(&b->goal[h->index], goal_rows(h, b));
}

/* Heads that have something to predict in this batch, as bits; in a training, those that have started. */
static unsigned heads_with_targets(const struct model *m, const struct batch *b, int train, uint64_t step)
{
	unsigned heads = 0;
	for (size_t i = 0; b->ncell && b->offset[b->ncell] && i < m->nhead; i++)
		if (!(train && step < m->head[i]->spec.from))
			heads |= (unsigned)(targets(m->head[i], b) > 0) << i;
	return heads;
}

/* loss.count of each loss of the head: count [h->nloss]. */
static void loss_counts(const struct model *m, const struct head *h, const struct batch *b, double *count)
{
	const struct goal *g = &b->goal[h->index];
	if (h->kind->count_parts)
		h->kind->count_parts(h, m, g, goal_rows(h, b), count);
	else
		*count = h->kind->count ? h->kind->count(h, g, goal_rows(h, b)) : targets(h, b);
}

/* Does this head count rows without a target in this batch? heads: those that have targets. */
static int counts_rest(const struct head *h, unsigned heads, int train, uint64_t step)
{
	return h->spec.over_all && !(heads >> h->index & 1) && !(train && step < h->spec.from);
}

int model_count(const struct model *m, const struct batch *b, uint64_t step, double *count, struct error *e)
{
	unsigned heads = heads_with_targets(m, b, 1, step);
	if (batch_check(m, b, heads, 1, e))
		return -1;
	memset(count, 0, 2 * m->nloss * sizeof *count);
	for (size_t i = 0; i < m->nhead; i++) {
		const struct head *h = m->head[i];
		double *all = count + h->first;
		int learns = heads >> i & 1;
		if (learns || counts_rest(h, heads, 1, step))
			loss_counts(m, h, b, all);
		if (learns)
			memcpy(all + m->nloss, all, h->nloss * sizeof *all);
	}
	return 0;
}

int model_counts_first(const struct model *m)
{
	return m->nloss > 1 || (m->nhead && m->head[0]->spec.over_all);
}

/* 1 if the loss enters the mean: it has targets and a weight. */
static int counts(const struct model *m, size_t i, double count)
{
	return count > 0 && m->weight[i] > 0;
}

/* Of the losses with targets; *first: the first of them, nloss: there is none. */
static double sum_weights(const struct model *m, const double *count, size_t *first)
{
	double sum = 0;
	*first = m->nloss;
	for (size_t i = m->nloss; i-- > 0;) {
		if (!counts(m, i, count[i]))
			continue;
		sum += m->weight[i];
		*first = i;
	}
	return sum;
}

double model_weigh(const struct model *m, const double *count, double *scale)
{
	size_t first;
	const double *targets = count + m->nloss;
	double sum = sum_weights(m, targets, &first);
	for (size_t i = 0; i < m->nloss; i++)
		scale[i] = counts(m, i, targets[i]) ? m->weight[i] / sum * (count[first] / count[i]) : 0;
	return first < m->nloss ? count[first] : 0;
}

double model_mean_loss(const struct model *m, const double *sum, const double *count)
{
	size_t first;
	double weights = sum_weights(m, count, &first), loss = 0;
	for (size_t i = 0; i < m->nloss; i++)
		if (counts(m, i, count[i]))
			loss += m->weight[i] / weights * (sum[i] / count[i]);
	return weights > 0 ? loss : NAN;
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
			h->kind->loss(h, m, m->sums + 1 + 2 * h->first);
	}
}

/* Losses that the host computes, and what is known without waiting for the device. */
static void host_losses(struct model *m, const struct batch *b, const struct forward *f, struct loss *loss, unsigned *done)
{
	*done = 0;
	for (size_t i = 0; i < m->nhead; i++) {
		struct head *h = m->head[i];
		struct loss *l = loss + h->first;
		double sum[2] = {0}, count[PARTS_MAX];
		if (!(m->shape.heads >> i & 1))
			continue;
		loss_counts(m, h, b, count);
		for (size_t k = 0; k < h->nloss; k++)
			l[k].count = count[k];
		if (target_kind[h->kind->target].spread)
			target_kind[h->kind->target].spread(l, &b->goal[i], h->rows);
		if (!h->kind->host_loss || !h->kind->host_loss(h, m, &b->goal[i], f->train, sum))
			continue;
		*done |= 1u << i;
		for (int k = 0; k < 2 && f->later; k++)
			h->host_sum[k] += sum[k];
		l->sum = f->later ? 0 : sum[0];
		l->measure = f->later ? 0 : sum[1];
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
		const struct head *h = m->head[i];
		for (size_t k = h->first; k < h->first + h->nloss && m->shape.heads >> i & 1; k++) {
			if (!(on_host >> i & 1)) {
				loss[k].sum = sums[1 + 2 * k];
				loss[k].measure = sums[2 + 2 * k];
			}
			if (!isfinite(loss[k].sum))
				return error_set(e, "step %llu: the loss is %g", (unsigned long long)f->step, loss[k].sum);
		}
	}
	return 0;
}

int model_forward(struct model *m, const struct batch *b, const struct forward *f, struct loss *loss, struct error *e)
{
	struct ops *o = m->o;
	unsigned on_host;
	for (size_t i = 0; i < m->nloss; i++)
		loss[i] = (struct loss){0};
	m->ready = 0;
	struct shape s = shape_of(m, b);
	s.heads = heads_with_targets(m, b, f->train, f->step);
	for (size_t i = 0; i < m->nhead; i++)
		if (counts_rest(m->head[i], s.heads, f->train, f->step)) /* it has one loss */
			loss_counts(m, m->head[i], b, &loss[m->head[i]->first].count);
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

static int check_ranges(const struct batch *b, const uint32_t *range, size_t per, struct error *e)
{
	for (size_t k = 0; k < b->ncell * per; k++) {
		size_t i = k / per;
		uint32_t from = range[2 * k], to = range[2 * k + 1];
		if (from > to || (from < to && (from < b->offset[i] || to > b->offset[i + 1])))
			return error_set(e, "cell %zu of the batch: tokens %u to %u are not its own", i, from, to);
	}
	return 0;
}

int model_embed(struct model *m, const struct batch *b, int layer, const uint32_t *range, size_t per, struct error *e)
{
	struct ops *o = m->o;
	struct forward f = {0};
	struct shape s = shape_of(m, b);
	size_t C = m->c.hidden_size;
	uint32_t layers = (uint32_t)((int)m->c.num_hidden_layers + layer);
	s.ranges = per;
	if (m->arch->per_cell)
		return error_set(e, "architecture %s has no hidden states of tokens", m->arch->name);
	if (check_ranges(b, range, per, e) || check_layer(m, layer, e) || batch_send(m, b, s, &f, range, e))
		return -1;
	unsigned slot = m->posted++ % 2;
	struct result *r = &m->result[slot];
	assert(m->posted - m->taken <= 2);
	r->n = s.cells * per * C;
	if (r->n > r->cap) {
		o->host_free(o, r->x);
		r->x = o->host_alloc(o, r->n * sizeof *r->x);
		r->cap = r->n;
	}
	if (!replay(m, WORK_EMBED, (uint64_t)per << 32 | layers)) {
		o->pool(o, m->pooled, m->arch->forward(m, &f, layers), m->dev.range, s.B * per, C, 1);
		o->replay_end(o);
	}
	o->fetch(o, r->x, m->pooled, r->n * sizeof *r->x);
	o->mark(o, MARK_RESULT + slot);
	return 0;
}

int model_embedded(struct model *m, real *x, struct error *e)
{
	unsigned slot = m->taken++ % 2;
	const struct result *r = &m->result[slot];
	assert(m->taken <= m->posted);
	if (m->o->wait(m->o, MARK_RESULT + slot, e))
		return -1;
	memcpy(x, r->x, r->n * sizeof *x);
	return 0;
}

int model_logits_of(struct model *m, const struct batch *b, real *const *logit, struct error *e)
{
	struct forward f = {0};
	struct shape s = shape_of(m, b);
	const void *z[HEADS_MAX];
	for (size_t i = 0; i < m->nhead; i++)
		s.heads |= (unsigned)(logit[i] != NULL) << i;
	s.logits = s.heads;
	if (batch_send(m, b, s, &f, NULL, e))
		return -1;
	const void *x = m->arch->forward(m, &f, m->c.num_hidden_layers);
	for (size_t i = 0; i < m->nhead; i++) {
		if (!logit[i])
			continue;
		m->head[i]->kind->forward(m->head[i], m, &f, x);
		z[i] = head_logits(m->head[i], m);
	}
	if (m->o->sync(m->o, e))
		return -1;
	for (size_t i = 0; i < m->nhead; i++)
		if (logit[i])
			m->o->download_act(m->o, logit[i], z[i], m->head[i]->rows * m->head[i]->kind->outputs(m->head[i], m));
	return 0;
}

void model_last_logits(struct model *m, size_t head, real *logit)
{
	struct head *h = m->head[head];
	m->o->download_act(m->o, logit, head_logits(h, m), h->rows * h->kind->outputs(h, m));
}

int model_logits(struct model *m, const struct batch *b, size_t head, real *logit, struct error *e)
{
	real *all[HEADS_MAX] = {0};
	if (head >= m->nhead)
		return error_set(e, "the model has %zu heads: no logits of head %zu", m->nhead, head);
	all[head] = logit;
	return model_logits_of(m, b, all, e);
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
	m->arch->backward(m, &m->last, m->c.num_hidden_layers);
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

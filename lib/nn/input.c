#include "nn/input.h"

#include "nn/model_impl.h"
#include "nn/value.h"

static const real *tensor_or_null(const struct model *m, size_t offset)
{
	return offset == NO_ROW ? NULL : P(m, offset);
}

static const real *word_table(const struct model *m)
{
	return m->input.given ? NULL : P(m, m->input.word);
}

void input_embed(struct model *m, const struct forward *f, void *x)
{
	struct dropout d = model_dropout(m, f, SITE_EMBED, 0, m->c.hidden_dropout_prob);
	const void *more = m->input.given ? m->input.given : value_forward(m->input.value, m);
	m->o->embed(m->o, x, m->input.stat, word_table(m), tensor_or_null(m, m->input.position), tensor_or_null(m, m->input.type), more,
		P(m, m->input.norm_w), P(m, m->input.norm_b), &m->seq, m->c.hidden_size, m->c.layer_norm_eps, &d);
}

static void embed_back(struct model *m, const struct forward *f)
{
	struct dropout d = model_dropout(m, f, SITE_EMBED, 0, m->c.hidden_dropout_prob);
	int learn = !m->input.given;
#define GRADIENT(offset) (learn && (offset) != NO_ROW ? G(m, offset) : NULL)
	m->o->embed_back(m->o, GRADIENT(m->input.word), GRADIENT(m->input.position), GRADIENT(m->input.type), G(m, m->input.norm_w),
		G(m, m->input.norm_b), m->dx, m->input.stat, word_table(m), tensor_or_null(m, m->input.position),
		tensor_or_null(m, m->input.type), learn ? m->input.value->y : m->input.given, P(m, m->input.norm_w), &m->seq,
		m->c.vocab_size, m->c.max_position_embeddings, m->c.hidden_size, m->c.pad_token_id, &d);
#undef GRADIENT
	if (learn)
		value_backward(m->input.value, m, m->dx);
}

void input_learn(
	struct model *m, const struct forward *f, uint32_t layers, void layer(struct model *m, const struct forward *f, uint32_t l))
{
	for (uint32_t l = layers; l-- > 0;) {
		if (l >= m->frozen)
			layer(m, f, l);
		model_finished(m, (int)l);
	}
	if (!m->frozen)
		embed_back(m, f);
	model_finished(m, -1);
}

int input_check(const struct model *m, const struct input_to *to, struct error *e)
{
	if (!m->input.value)
		return error_set(e, "architecture %s has no vectors of tokens", m->arch->name);
	if (to->range)
		return to->layer > 0 || to->layer < -(int)m->c.num_hidden_layers
			? error_set(e, "layer %d: expected %d (embeddings) to 0 (last layer)", to->layer, -(int)m->c.num_hidden_layers)
			: 0;
	if (to->head >= m->nhead)
		return error_set(e, "the model has %zu heads: no head %zu", m->nhead, to->head);
	if (m->head[to->head]->kind->rows != ROWS_CELL || !head_labels(m->head[to->head]->kind))
		return error_set(e, "head '%s' has no classes and no number of a cell", head_name(&m->head[to->head]->spec));
	return 0;
}

/* The rows of the table of genes, and the vectors of values behind them in `values` (NULL: none). */
static void add_vectors(struct model *m, const struct batch *b, const real *values, real *v)
{
	size_t T = b->offset[b->ncell], C = m->c.hidden_size, V = m->c.vocab_size;
	FREED real *table = xmalloc(V * C * sizeof *table);
	m->o->download(m->o, table, P(m, m->input.word), V * C * sizeof *table);
	for (size_t t = 0; t < T; t++)
		for (size_t i = 0; i < C; i++)
			v[t * C + i] = table[b->id[t] * C + i] + (values ? values[t * C + i] : 0);
}

int input_vectors(struct model *m, const struct batch *b, real *v, struct error *e)
{
	struct forward f = {0};
	struct shape s = shape_of(m, b);
	FREED real *values = NULL;
	if (!m->input.value)
		return error_set(e, "architecture %s has no vectors of tokens", m->arch->name);
	if (batch_send(m, b, s, &f, NULL, e))
		return -1;
	const void *y = value_forward(m->input.value, m);
	if (m->o->sync(m->o, e))
		return -1;
	if (y) {
		values = xmalloc((s.tokens + 1) * m->c.hidden_size * sizeof *values);
		m->o->download_act(m->o, values, y, s.tokens * m->c.hidden_size);
	}
	add_vectors(m, b, values, v);
	return 0;
}

int input_ahead(struct model *m, const struct batch *b, real *d, struct error *e)
{
	size_t C = m->c.hidden_size, L = 0;
	if (!m->input.value)
		return error_set(e, "architecture %s has no vectors of tokens", m->arch->name);
	if (batch_check(m, b, 0, 0, e))
		return -1;
	memset(d, 0, b->offset[b->ncell] * C * sizeof *d);
	if (m->input.position == NO_ROW || b->rank)
		return 0;
	for (size_t i = 0; i < b->ncell; i++)
		L = b->offset[i + 1] - b->offset[i] > L ? b->offset[i + 1] - b->offset[i] : L;
	FREED real *table = xmalloc((L + 1) * C * sizeof *table);
	m->o->download(m->o, table, P(m, m->input.position), L * C * sizeof *table);
	for (size_t i = 0; i < b->ncell; i++)
		for (size_t t = b->offset[i] + 1, k = C; t < b->offset[i + 1]; t++)
			for (size_t c = 0; c < C; c++, k++)
				d[t * C + c] = table[k - C] - table[k];
	return 0;
}

/* The deviations by which the embeddings' LayerNorm has divided. */
static void read_deviations(struct model *m, real *deviation, size_t n)
{
	FREED real *stat = xmalloc((n + 1) * 2 * sizeof *stat);
	m->o->download(m->o, stat, m->input.stat, n * 2 * sizeof *stat);
	for (size_t t = 0; t < n; t++)
		deviation[t] = 1 / stat[2 * t + 1];
}

int input_forward(
	struct model *m, const struct batch *b, const real *v, const struct input_to *to, real *y, real *deviation, struct error *e)
{
	struct ops *o = m->o;
	struct forward f = {0};
	struct shape s = shape_of(m, b);
	size_t C = m->c.hidden_size;
	if (input_check(m, to, e))
		return -1;
	s.given = s.train = 1; /* activations are kept; dropout is off, as f.train is 0 */
	s.ranges = to->range != NULL;
	s.heads = s.logits = to->range ? 0 : 1u << to->head;
	if (batch_send(m, b, s, &f, to->range, e))
		return -1;
	if (s.T > s.tokens)
		o->zero(o, m->input.given, s.T * C * o->act_size);
	o->upload_act(o, m->input.given, v, s.tokens * C);
	m->input.layers = m->c.num_hidden_layers + (uint32_t)(to->range ? to->layer : 0);
	m->input.head = to->range ? SIZE_MAX : to->head;
	const void *x = m->input.x = m->arch->forward(m, &f, m->input.layers), *z = NULL;
	if (to->range) {
		o->pool(o, m->pooled, x, m->dev.range, s.B, C, 1);
	} else {
		m->head[to->head]->kind->forward(m->head[to->head], m, &f, x);
		z = head_logits(m->head[to->head], m);
	}
	if (o->sync(o, e))
		return -1;
	if (to->range)
		o->download(o, y, m->pooled, s.cells * C * sizeof *y);
	else
		o->download_act(o, y, z, s.cells * m->head[to->head]->kind->outputs(m->head[to->head], m));
	if (deviation)
		read_deviations(m, deviation, s.tokens);
	m->input.ready = 1;
	return 0;
}

/* dy [cells, n] to the device, where it has `rows` rows. */
static void send_gradient(struct model *m, void *dev, const real *dy, size_t n, size_t rows)
{
	m->o->zero(m->o, dev, rows * n * m->o->act_size);
	m->o->upload_act(m->o, dev, dy, m->shape.cells * n);
}

/* What the mean of states y = sum g x / sum g adds: dy . (x - y) / tokens, of those it is of. dy, y [cells, C]. */
static void add_means(struct model *m, const real *dy, real *presence)
{
	size_t C = m->c.hidden_size, B = m->shape.cells, T = m->shape.tokens;
	FREED real *x = xmalloc((T + 1) * C * sizeof *x), *y = xmalloc((B + 1) * C * sizeof *y);
	FREED uint32_t *range = xmalloc((B + 1) * 2 * sizeof *range);
	m->o->download_act(m->o, x, m->input.x, T * C);
	m->o->download(m->o, y, m->pooled, B * C * sizeof *y);
	m->o->download(m->o, range, m->dev.range, B * 2 * sizeof *range);
	for (size_t b = 0; b < B; b++)
		for (size_t t = range[2 * b]; t < range[2 * b + 1]; t++)
			for (size_t i = 0; i < C; i++)
				presence[t] += dy[b * C + i] * (x[t * C + i] - y[b * C + i]) / (real)(range[2 * b + 1] - range[2 * b]);
}

/* After the backward. */
static void read_presence(struct model *m, const real *dy, real *presence)
{
	m->o->download(m->o, presence, m->input.presence, m->shape.tokens * sizeof *presence);
	m->input.presence = NULL;
	if (m->input.head == SIZE_MAX)
		add_means(m, dy, presence);
}

int input_backward(struct model *m, const real *dy, real *dv, real *presence, struct error *e)
{
	struct ops *o = m->o;
	struct forward f = {0};
	size_t C = m->c.hidden_size;
	if (!m->input.ready)
		return error_set(e, "input_backward without input_forward");
	if (presence && !o->attention_presence)
		return error_set(e, "the device %s lacks the op attention_presence", o->name);
	m->input.ready = 0;
	m->input.presence = presence ? m->input.sums : NULL;
	if (presence)
		o->zero(o, m->input.presence, m->shape.T * sizeof *presence);
	if (m->input.head == SIZE_MAX) {
		send_gradient(m, m->input.pooled, dy, C, m->shape.B);
		o->pool_back(o, m->dx, m->input.pooled, m->dev.range, &m->seq, C);
	} else {
		struct head *h = m->head[m->input.head];
		send_gradient(m, h->dz, dy, h->kind->outputs(h, m), h->N);
		h->kind->backward(h, m, &f, m->dx);
	}
	m->arch->backward(m, &f, m->input.layers);
	if (o->sync(o, e))
		return -1;
	o->download_act(o, dv, m->dx, m->shape.tokens * C);
	if (presence)
		read_presence(m, dy, presence);
	return 0;
}

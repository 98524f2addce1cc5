/*
 * BERT over packed batches: upload and check a batch, forward, backward.
 *
 *     x = dropout(LN(word + type + position))
 *     per layer:  x = LN(x + dropout(attention(x W_qkv) W_o));  x = LN(x + dropout(act(x W_up) W_down))     [biases left out]
 *     masked tokens:  t = LN(act(x W_t));  logits = t word^T + bias
 *     cells:  logits = dropout(tanh(x[first] W_pool)) W_class          genes:  logits = dropout(x) W_class
 *
 * A training forward keeps, for each layer, 10 C + ... numbers a token (struct layer_act); a forward for use keeps one
 * layer's worth and goes back and forth between two x buffers.
 */
#include "model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_impl.h"

/* ---- the batch ---- */

static int check_batch(const struct model *m, const struct batch *b, int labels, struct error *e)
{
	uint32_t V = m->c.vocab_size, P = m->c.max_position_embeddings;
	size_t T = b->ncell ? b->offset[b->ncell] : 0;
	if (b->ncell && b->offset[0])
		return error_set(e, "batch: the first offset is %u, expected 0", b->offset[0]);
	for (size_t i = 0; i < b->ncell; i++) {
		if (b->offset[i + 1] < b->offset[i])
			return error_set(e, "batch: the offsets of cell %zu go backwards", i);
		uint32_t len = b->offset[i + 1] - b->offset[i];
		if (len > P)
			return error_set(e, "cell %zu of the batch has %u tokens: the model has %u positions", i, len, P);
		for (uint32_t t = b->offset[i]; t < b->offset[i + 1]; t++)
			if (b->id[t] >= V)
				return error_set(e, "cell %zu of the batch, position %u: token %u, the vocabulary has %u", i,
					t - b->offset[i], b->id[t], V);
	}
	for (size_t i = 0; m->task == TASK_MLM && i < b->nmask; i++) {
		if (b->mask[i] >= T || (i && b->mask[i] <= b->mask[i - 1]))
			return error_set(e, "batch: masked position %u is out of order or not below %zu", b->mask[i], T);
		if (labels && b->target[i] >= V)
			return error_set(e, "batch: target token %u at masked position %u, the vocabulary has %u", b->target[i], b->mask[i], V);
	}
	size_t n = m->task == TASK_CELLS ? b->ncell : m->task == TASK_GENES ? T : 0;
	for (size_t i = 0; labels && i < n; i++)
		if (b->label[i] >= (int32_t)m->c.num_labels)
			return error_set(e, "batch: label %d of %s %zu, the model has %u", b->label[i],
				m->task == TASK_CELLS ? "cell" : "token", i, m->c.num_labels);
	return 0;
}

static int has_labels(const struct model *m, const struct batch *b)
{
	size_t T = b->ncell ? b->offset[b->ncell] : 0, n = m->task == TASK_CELLS ? b->ncell : T;
	if (m->task == TASK_MLM)
		return b->nmask > 0;
	if (m->task == TASK_BARE)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (b->label[i] >= 0)
			return T > 0;
	return 0;
}

/* Hand out `bytes` of an arena that may not exist yet (base NULL): the same walk measures and carves. */
static void *carve(char *base, size_t *used, size_t bytes)
{
	void *p = base ? base + *used : NULL;
	*used += (bytes + 255) / 256 * 256;
	return p;
}

struct need {
	size_t B, T, N;            /* cells, tokens, rows of the head, filled up */
	size_t cells, tokens, rows; /* the batch's own */
	int train, head, labels, logits, ranges;
};

enum {
	PAD_CELL = 64, /* tokens of a cell that only fills up; B counts as many as may be needed, so that it does not change */
};

static size_t filled_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t pad_cell(const struct model *m)
{
	return m->c.max_position_embeddings < PAD_CELL ? m->c.max_position_embeddings : PAD_CELL;
}

/*
 * A batch is filled up to round sizes, so that equal work comes again and can be replayed: tokens by cells of <pad>, which nobody
 * sees and which have no loss, hence no gradient; masked positions by rows of zeros.
 */
static struct need need_of(const struct model *m, const struct batch *b)
{
	const struct ops *o = m->o;
	struct need n = { .cells = b->ncell, .tokens = b->ncell ? b->offset[b->ncell] : 0 };
	n.T = filled_up(n.tokens, o->round_tokens);
	n.B = n.cells + (o->round_tokens - 1 + pad_cell(m) - 1) / pad_cell(m);
	n.rows = m->task == TASK_MLM ? b->nmask : m->task == TASK_CELLS ? n.cells : m->task == TASK_GENES ? n.tokens : 0;
	n.N = m->task == TASK_MLM ? filled_up(n.rows, o->round_rows) : m->task == TASK_CELLS ? n.B : m->task == TASK_GENES ? n.T : 0;
	return n;
}

/* The arrays of a batch, one after the other, the same way on the device and on the host; returns their bytes. */
static size_t carve_batch(const struct model *m, struct arrays *a, const struct need *n, char *base)
{
	size_t used = 0, V = m->c.vocab_size;
	int mlm = n->head && m->task == TASK_MLM;
#define INT(wanted, count) ((wanted) ? carve(base, &used, (count) * 4) : NULL)
	a->step = INT(1, 1);
	a->offset = INT(1, n->B + 1);
	a->id = INT(1, n->T);
	a->pos = INT(1, n->T);
	a->cell = INT(1, n->T);
	a->key = INT(1, n->B);
	a->tile = INT(1, seq_tiles(n->B, n->T));
	a->order = INT(n->train, n->T);
	a->start = INT(n->train, V + 1);
	a->mask = INT(mlm, n->N);
	a->target = INT(mlm && n->labels, n->N);
	a->label = INT(n->head && n->labels && !mlm, n->N);
	a->range = INT(n->ranges || (n->head && m->task == TASK_CELLS), 2 * n->B);
#undef INT
	return used;
}

static size_t carve_all(struct model *m, const struct need *n, char *base)
{
	size_t C = m->c.hidden_size, F = m->c.intermediate_size, NH = m->c.num_attention_heads, T = n->T, N = n->N;
	size_t K = m->task == TASK_MLM ? m->c.vocab_size : m->c.num_labels, used = carve_batch(m, &m->dev, n, base);
	int gelu = m->c.hidden_act == ACT_GELU;
#define REAL(count) carve(base, &used, (count) * sizeof(real))
#define ACTS(count) carve(base, &used, (count) * m->o->act_size)
	m->x0 = ACTS(T * C);
	m->stat0 = REAL(2 * T);
	for (uint32_t l = 0; l < m->c.num_hidden_layers; l++) {
		struct layer_act *a = &m->act[l];
		if (l && !n->train) { /* all layers work in the same place; x2 alternates with x0 */
			*a = m->act[0];
			a->x2 = l % 2 ? m->x0 : m->act[0].x2;
			continue;
		}
		*a = (struct layer_act){
			.qkv = ACTS(T * 3 * C), .ctx = ACTS(T * C), .r1 = ACTS(T * C), .x1 = ACTS(T * C), .pre = gelu ? ACTS(T * F) : NULL,
			.up = ACTS(T * F), .r2 = ACTS(T * C), .x2 = ACTS(T * C),
			.lse = REAL(T * NH), .stat1 = REAL(2 * T), .stat2 = REAL(2 * T),
		};
	}
	if (n->head) {
		m->h = ACTS(N * C);
		m->z = ACTS(N * C);
		m->zpre = gelu ? ACTS(N * C) : NULL;
		m->y = ACTS(N * C);
		m->stat_head = REAL(2 * N);
		m->lse_head = REAL(N);
		m->logit = m->task != TASK_MLM || n->logits ? ACTS(N * K) : NULL;
		m->dlogit = m->task != TASK_MLM && n->train ? ACTS(N * K) : NULL;
	}
	m->pooled = n->ranges ? REAL(n->B * C) : NULL;
	if (n->train) {
		m->dx = ACTS(T * C);
		m->da = ACTS(T * C);
		m->dctx = ACTS(T * C);
		m->dbig = ACTS(T * (3 * C > F ? 3 * C : F));
		m->dh = ACTS(N * C);
		m->dz = ACTS(N * C);
	}
#undef REAL
#undef ACTS
	return used;
}

/* Tokens sorted by id, for the embedding's gradient: counting sort. start [V+1], order [T]. */
static void sort_tokens(uint32_t *start, uint32_t *order, const uint32_t *id, size_t T, size_t V)
{
	memset(start, 0, (V + 1) * sizeof *start);
	for (size_t t = 0; t < T; t++)
		start[id[t] + 1]++;
	for (size_t v = 0; v < V; v++)
		start[v + 1] += start[v];
	for (size_t t = 0; t < T; t++)
		order[start[id[t]]++] = (uint32_t)t;
	for (size_t v = V; v > 0; v--)
		start[v] = start[v - 1];
	start[0] = 0;
}

struct length {
	uint32_t cell, tokens;
};

static int by_length(const void *x, const void *y)
{
	const struct length *a = x, *b = y;
	return a->tokens != b->tokens ? (a->tokens < b->tokens) - (a->tokens > b->tokens) : (a->cell > b->cell) - (a->cell < b->cell);
}

/* Where the cells' stretches of SEQ_TILE tokens begin. The longest cells come first: their stretches take longest. */
static void list_tiles(uint32_t *tile, const uint32_t *offset, size_t B, size_t T)
{
	struct length *all = xcalloc(B, sizeof *all);
	size_t n = 0;
	for (uint32_t b = 0; b < B; b++)
		all[b] = (struct length){ b, offset[b + 1] - offset[b] };
	qsort(all, B, sizeof *all, by_length);
	for (size_t i = 0; i < B; i++)
		for (uint32_t t = 0; t < all[i].tokens; t += SEQ_TILE)
			tile[n++] = offset[all[i].cell] + t;
	free(all);
	while (n < seq_tiles(B, T))
		tile[n++] = ROW_NONE;
}

static void fill(uint32_t *to, const uint32_t *from, size_t n, size_t all, uint32_t rest)
{
	memcpy(to, from, n * sizeof *to);
	for (size_t i = n; i < all; i++)
		to[i] = rest;
}

/* The batch into the arrays a of the host; returns the tokens of its longest cell. */
static size_t fill_batch(const struct model *m, const struct arrays *a, const struct batch *b, const struct need *n, const struct forward *f,
	const uint32_t *range)
{
	size_t longest = 0;
	*a->step = (uint32_t)f->step;
	fill(a->id, b->id, n->tokens, n->T, m->c.pad_token_id);
	a->offset[0] = 0;
	for (size_t i = 0, at = 0; i < n->B; i++) {
		size_t len = i < n->cells ? b->offset[i + 1] - at : n->T - at < pad_cell(m) ? n->T - at : pad_cell(m);
		longest = len > longest ? len : longest;
		a->key[i] = i < n->cells && b->key ? b->key[i] : (uint32_t)i;
		for (size_t t = 0; t < len; t++) {
			a->pos[at + t] = (uint32_t)t;
			a->cell[at + t] = (uint32_t)i;
		}
		if (a->range) {
			a->range[2 * i] = range && i < n->cells ? range[2 * i] : (uint32_t)at;
			a->range[2 * i + 1] = range && i < n->cells ? range[2 * i + 1] : (uint32_t)at + (len > 0);
		}
		at += len;
		a->offset[i + 1] = (uint32_t)at;
	}
	list_tiles(a->tile, a->offset, n->B, n->T);
	if (a->order)
		sort_tokens(a->start, a->order, a->id, n->T, m->c.vocab_size);
	if (a->mask)
		fill(a->mask, b->mask, n->rows, n->N, ROW_NONE);
	if (a->target)
		fill(a->target, b->target, n->rows, n->N, ROW_NONE);
	if (a->label)
		fill((uint32_t *)a->label, (const uint32_t *)b->label, n->rows, n->N, (uint32_t)-1);
	return longest;
}

/* Check the batch, make room and send it to the device. n: what of it is wanted. */
static int load(struct model *m, const struct batch *b, struct need n, const struct forward *f, const uint32_t *range, struct error *e)
{
	struct ops *o = m->o;
	struct stage *g = &m->stage[m->turn ^= 1];
	struct arrays a;
	m->ready = 0;
	if (check_batch(m, b, n.labels, e) || o->wait(o, MARK_STAGE + m->turn, e))
		return -1;
	size_t bytes = carve_batch(m, &a, &n, NULL), all = carve_all(m, &n, NULL);
	if (bytes > g->cap) {
		o->host_free(o, g->host);
		g->host = o->host_alloc(o, bytes);
		g->cap = bytes;
	}
	if (all > m->arena_cap) {
		o->free(o, m->arena);
		m->arena = o->alloc(o, all);
		m->arena_cap = all;
	}
	if (n.train)
		model_array(m, GRAD);
	carve_batch(m, &a, &n, g->host);
	carve_all(m, &n, m->arena);
	size_t longest = fill_batch(m, &a, b, &n, f, range);
	o->send(o, m->arena, g->host, bytes);
	o->mark(o, MARK_STAGE + m->turn);
	m->seq = (struct seq){ .B = n.B, .T = n.T, .L = longest, .offset = m->dev.offset, .id = m->dev.id, .pos = m->dev.pos, .cell = m->dev.cell,
		.key = m->dev.key, .order = m->dev.order, .start = m->dev.start, .tile = m->dev.tile, .ntile = seq_tiles(n.B, n.T) };
	m->nrow = n.N;
	m->tokens += n.tokens;
	m->rows += n.T;
	return 0;
}

enum work {
	WORK_FORWARD,
	WORK_TRAIN,
	WORK_BACK,
	WORK_EMBED,
};

/* Is this work, on a batch of this size, known to the device? Else the caller asks for it, and calls replay_end. */
static int replay(struct model *m, enum work work, uint64_t detail)
{
	return m->o->replay(m->o, (const uint64_t[OPS_KEY]){ work, detail, m->seq.B, m->seq.T, m->nrow, (uintptr_t)m->arena,
		(uintptr_t)m->array[0], m->frozen });
}

/* ---- forward ---- */

static struct dropout site(const struct model *m, const struct forward *f, enum site s, uint32_t layer)
{
	double p = m->c.hidden_dropout_prob;
	if (s == SITE_PROB)
		p = m->c.attention_probs_dropout_prob;
	if (s == SITE_HEAD && m->c.classifier_dropout >= 0)
		p = m->c.classifier_dropout;
	double threshold = f->train ? rint(p * 65536) : 0;
	return (struct dropout){ .seed = (uint32_t)(m->seed ^ m->seed >> 32), .step = m->dev.step, .site = s, .layer = layer,
		.threshold = threshold < 65535 ? (uint32_t)threshold : 65535 };
}

#define P(offset) (m->array[PARAM] + (offset))
#define G(offset) (m->array[GRAD] + (offset))

/* Embeddings and the first `layers` encoder layers; returns the last x. */
static void *encode(struct model *m, const struct forward *f, uint32_t layers)
{
	struct ops *o = m->o;
	const struct seq *s = &m->seq;
	size_t T = s->T, C = m->c.hidden_size, F = m->c.intermediate_size;
	double eps = m->c.layer_norm_eps;
	struct dropout d = site(m, f, SITE_EMBED, 0);
	o->embed(o, m->x0, m->stat0, P(m->word), P(m->posw), P(m->type), P(m->norm_w), P(m->norm_b), s, C, eps, &d);
	void *x = m->x0;
	for (uint32_t l = 0; l < layers; l++) {
		const struct layer_at *w = &m->at[l];
		const struct layer_act *a = &m->act[l];
		o->linear(o, a->qkv, NULL, x, P(w->qkv_w), P(w->qkv_b), T, C, 3 * C, ACT_NONE);
		d = site(m, f, SITE_PROB, l);
		o->attention(o, a->ctx, a->lse, a->qkv, s, C, m->c.num_attention_heads, &d);
		o->linear(o, a->r1, NULL, a->ctx, P(w->out_w), P(w->out_b), T, C, C, ACT_NONE);
		d = site(m, f, SITE_ATTN, l);
		o->norm(o, a->x1, a->r1, a->stat1, a->r1, x, P(w->norm1_w), P(w->norm1_b), s, T, C, eps, &d);
		o->linear(o, a->up, a->pre, a->x1, P(w->up_w), P(w->up_b), T, C, F, m->c.hidden_act);
		o->linear(o, a->r2, NULL, a->up, P(w->down_w), P(w->down_b), T, F, C, ACT_NONE);
		d = site(m, f, SITE_FFN, l);
		o->norm(o, a->x2, a->r2, a->stat2, a->r2, a->x1, P(w->norm2_w), P(w->norm2_b), s, T, C, eps, &d);
		x = a->x2;
	}
	return x;
}

/* The head up to what the loss takes: y (mlm) or logits. */
static void head(struct model *m, const struct forward *f, void *x)
{
	struct ops *o = m->o;
	const struct head_at *w = &m->head;
	size_t N = m->nrow, C = m->c.hidden_size;
	struct dropout d = site(m, f, SITE_HEAD, 0);
	switch (m->task) {
	case TASK_MLM:
		o->gather(o, m->h, x, m->dev.mask, N, C);
		o->linear(o, m->z, m->zpre, m->h, P(w->dense_w), P(w->dense_b), N, C, C, m->c.hidden_act);
		o->norm(o, m->y, m->z, m->stat_head, m->z, NULL, P(w->norm_w), P(w->norm_b), NULL, N, C, m->c.layer_norm_eps, NULL);
		return;
	case TASK_CELLS:
		o->pool(o, m->h, x, m->dev.range, N, C, 0);
		o->linear(o, m->z, NULL, m->h, P(w->pool_w), P(w->pool_b), N, C, C, ACT_TANH);
		o->drop(o, m->y, m->z, &m->seq, 1, C, &d);
		break;
	case TASK_GENES:
		o->drop(o, m->y, x, &m->seq, 0, C, &d);
		break;
	case TASK_BARE:
		return;
	}
	o->linear(o, m->logit, NULL, m->y, P(w->class_w), P(w->class_b), N, C, m->c.num_labels, ACT_NONE);
}

/*
 * Focal loss. With p = softmax(z), q = p_y:
 *     dL/dz_j = w_y (gamma q (1 - q)^(gamma - 1) log q - (1 - q)^gamma) (delta_jy - p_j)
 */
static void focal_loss(struct model *m, const struct batch *b, double sum[3], int train)
{
	size_t N = m->nrow, K = m->c.num_labels, rows = m->task == TASK_CELLS ? b->ncell : b->offset[b->ncell];
	grow(m->host_logit, m->host_logit_cap, N * K);
	m->o->download_act(m->o, m->host_logit, m->logit, N * K);
	sum[0] = sum[1] = sum[2] = 0;
	for (size_t i = 0; i < N; i++) {
		real *z = m->host_logit + i * K;
		if (i >= rows || b->label[i] < 0) {
			memset(z, 0, K * sizeof *z);
			continue;
		}
		size_t y = (size_t)b->label[i], top = 0;
		double total = 0, w = m->host_weight ? m->host_weight[y] : 1;
		for (size_t k = 1; k < K; k++)
			top = z[k] > z[top] ? k : top;
		double max = z[top];
		for (size_t k = 0; k < K; k++)
			total += exp(z[k] - max);
		double logq = z[y] - max - log(total), q = exp(logq), rest = -expm1(logq);
		/* rest = 0: the factor of logq is 0 for gamma > 1, and q (1 - q)^(gamma - 1) log q goes to 0 for any gamma > 0 */
		double slope = rest > 0 ? w * (m->focal * q * pow(rest, m->focal - 1) * logq - pow(rest, m->focal)) : 0;
		sum[0] -= w * pow(rest, m->focal) * logq;
		sum[1] += top == y;
		sum[2] += w;
		for (size_t k = 0; k < K; k++)
			z[k] = (real)(slope * ((k == y) - exp(z[k] - max) / total));
	}
	if (train)
		m->o->upload_act(m->o, m->dlogit, m->host_logit, N * K);
}

/* Labelled positions, or the sum of their classes' weights. */
static double count_labels(const struct model *m, const struct batch *b)
{
	double sum = 0;
	size_t n = m->task == TASK_CELLS ? b->ncell : b->offset[b->ncell];
	if (m->task == TASK_MLM)
		return (double)b->nmask;
	for (size_t i = 0; i < n; i++)
		sum += b->label[i] < 0 ? 0 : m->host_weight ? (double)m->host_weight[b->label[i]] : 1;
	return sum;
}

int model_forward(struct model *m, const struct batch *b, const struct forward *f, struct loss *loss, struct error *e)
{
	struct ops *o = m->o;
	double sum[3] = { 0 }, *sums = m->sums + 1;
	int focal = m->task != TASK_MLM && m->focal > 0;
	*loss = (struct loss){ 0 };
	m->ready = 0;
	if (!has_labels(m, b)) {
		if (check_batch(m, b, 1, e))
			return -1;
		m->ready = f->train ? 2 : 0;
		return 0;
	}
	struct need n = need_of(m, b);
	n.train = f->train;
	n.head = n.labels = 1;
	if (load(m, b, n, f, NULL, e))
		return -1;
	if (!f->later)
		o->zero(o, sums, sizeof sum);
	if (!replay(m, f->train ? WORK_TRAIN : WORK_FORWARD, (uint64_t)focal)) {
		head(m, f, encode(m, f, m->c.num_hidden_layers));
		if (m->task == TASK_MLM)
			o->mlm_loss(o, sums, m->lse_head, m->y, P(m->word), P(m->head.bias), m->dev.target, m->nrow, m->c.hidden_size, m->c.vocab_size);
		else if (!focal)
			o->class_loss(o, sums, m->dlogit, m->logit, m->dev.label, m->class_weight, m->nrow, m->c.num_labels);
		o->replay_end(o);
	}
	if (focal)
		focal_loss(m, b, sum, f->train);
	loss->count = count_labels(m, b);
	m->last = *f;
	if (f->later) {
		for (int i = 0; i < 3; i++)
			m->host_sum[i] += sum[i];
	} else {
		if (o->sync(o, e))
			return -1;
		if (!focal)
			o->download(o, sum, sums, sizeof sum);
		loss->sum = sum[0];
		loss->correct = sum[1];
		if (!isfinite(loss->sum))
			return error_set(e, "step %llu: the loss is %g", (unsigned long long)f->step, loss->sum);
	}
	m->ready = f->train ? 1 : 0;
	return 0;
}

static int check_layer(const struct model *m, int layer, struct error *e)
{
	int L = (int)m->c.num_hidden_layers;
	return layer > 0 || layer < -L ? error_set(e, "layer %d: expected %d (embeddings) to 0 (last layer)", layer, -L) : 0;
}

/* The batch without what a head wants. */
static struct batch bare(const struct batch *b)
{
	struct batch x = *b;
	x.nmask = 0;
	return x;
}

int model_hidden(struct model *m, const struct batch *b, int layer, real *h, struct error *e)
{
	struct forward f = { 0 };
	struct batch x = bare(b);
	struct need n = need_of(m, &x);
	if (check_layer(m, layer, e) || load(m, &x, n, &f, NULL, e))
		return -1;
	void *last = encode(m, &f, (uint32_t)((int)m->c.num_hidden_layers + layer));
	if (m->o->sync(m->o, e))
		return -1;
	m->o->download_act(m->o, h, last, n.tokens * m->c.hidden_size);
	return 0;
}

int model_embed(struct model *m, const struct batch *b, int layer, const uint32_t *range, struct error *e)
{
	struct ops *o = m->o;
	struct forward f = { 0 };
	struct batch x = bare(b);
	struct need n = need_of(m, &x);
	size_t C = m->c.hidden_size;
	n.ranges = 1;
	for (size_t i = 0; i < b->ncell; i++)
		if (range[2 * i] > range[2 * i + 1] || (range[2 * i] < range[2 * i + 1] && (range[2 * i] < b->offset[i] || range[2 * i + 1] > b->offset[i + 1])))
			return error_set(e, "cell %zu of the batch: tokens %u to %u are not its own", i, range[2 * i], range[2 * i + 1]);
	if (check_layer(m, layer, e) || load(m, &x, n, &f, range, e))
		return -1;
	unsigned slot = m->posted++ % 2;
	struct result *r = &m->result[slot];
	assert(m->posted - m->taken <= 2);
	if (n.cells * C > r->cap) {
		o->host_free(o, r->x);
		r->x = o->host_alloc(o, n.cells * C * sizeof *r->x);
		r->cap = n.cells * C;
	}
	if (!replay(m, WORK_EMBED, (uint64_t)-layer)) {
		o->pool(o, m->pooled, encode(m, &f, (uint32_t)((int)m->c.num_hidden_layers + layer)), m->dev.range, n.B, C, 1);
		o->replay_end(o);
	}
	o->fetch(o, r->x, m->pooled, n.cells * C * sizeof *r->x);
	o->mark(o, MARK_RESULT + slot);
	r->cells = n.cells;
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

int model_logits(struct model *m, const struct batch *b, real *logit, struct error *e)
{
	struct ops *o = m->o;
	struct forward f = { 0 };
	size_t K = m->task == TASK_MLM ? m->c.vocab_size : m->c.num_labels;
	struct need n = need_of(m, b);
	n.head = n.logits = 1;
	if (m->task == TASK_BARE)
		return error_set(e, "the model has no head: no logits");
	if (load(m, b, n, &f, NULL, e))
		return -1;
	head(m, &f, encode(m, &f, m->c.num_hidden_layers));
	if (m->task == TASK_MLM)
		o->linear(o, m->logit, NULL, m->y, P(m->word), P(m->head.bias), m->nrow, m->c.hidden_size, K, ACT_NONE);
	if (o->sync(o, e))
		return -1;
	o->download_act(o, logit, m->logit, n.rows * K);
	return 0;
}

/* ---- backward ---- */

/* From the loss to m->dx, the gradient of the last layer's output. */
static void head_back(struct model *m)
{
	struct ops *o = m->o;
	const struct head_at *w = &m->head;
	size_t N = m->nrow, C = m->c.hidden_size, T = m->seq.T;
	struct dropout d = site(m, &m->last, SITE_HEAD, 0);
	switch (m->task) {
	case TASK_MLM:
		o->mlm_loss_back(o, m->dz, G(m->word), G(w->bias), m->y, P(m->word), P(w->bias), m->dev.target, m->lse_head, N, C, m->c.vocab_size);
		o->norm_back(o, NULL, m->dz, G(w->norm_w), G(w->norm_b), m->dz, m->z, m->stat_head, P(w->norm_w), NULL, N, C, NULL);
		o->linear_back(o, m->dh, G(w->dense_w), G(w->dense_b), m->dz, m->h, P(w->dense_w), m->z, m->zpre, N, C, C, m->c.hidden_act, 0);
		o->scatter(o, m->dx, m->dh, m->dev.mask, N, T, C);
		return;
	case TASK_CELLS:
		o->linear_back(o, m->dz, G(w->class_w), G(w->class_b), m->dlogit, m->y, P(w->class_w), NULL, NULL, N, C, m->c.num_labels, ACT_NONE, 0);
		o->drop(o, m->dz, m->dz, &m->seq, 1, C, &d);
		o->linear_back(o, m->dh, G(w->pool_w), G(w->pool_b), m->dz, m->h, P(w->pool_w), m->z, NULL, N, C, C, ACT_TANH, 0);
		o->pool_back(o, m->dx, m->dh, m->dev.range, &m->seq, C);
		return;
	case TASK_GENES:
		o->linear_back(o, m->dx, G(w->class_w), G(w->class_b), m->dlogit, m->y, P(w->class_w), NULL, NULL, N, C, m->c.num_labels, ACT_NONE, 0);
		o->drop(o, m->dx, m->dx, &m->seq, 0, C, &d);
		return;
	case TASK_BARE:
		return;
	}
}

static void finished(struct model *m, int layer)
{
	if (m->on_grad)
		model_grad_part(m, layer, m->on_grad, m->on_grad_arg);
}

/* All of it, from the loss to the embeddings. */
static void back(struct model *m)
{
	struct ops *o = m->o;
	const struct seq *s = &m->seq;
	size_t T = s->T, C = m->c.hidden_size, F = m->c.intermediate_size, NH = m->c.num_attention_heads;
	struct dropout d;
	head_back(m);
	finished(m, (int)m->c.num_hidden_layers);
	for (uint32_t l = m->c.num_hidden_layers; l-- > 0;) {
		const struct layer_at *w = &m->at[l];
		const struct layer_act *a = &m->act[l];
		const void *x = l ? m->act[l - 1].x2 : m->x0;
		int learn = l >= m->frozen;
#define GW(offset) (learn ? G(offset) : NULL)
		d = site(m, &m->last, SITE_FFN, l);
		o->norm_back(o, m->da, m->dx, G(w->norm2_w), G(w->norm2_b), m->dx, a->r2, a->stat2, P(w->norm2_w), s, T, C, &d);
		o->linear_back(o, m->dbig, GW(w->down_w), GW(w->down_b), m->da, a->up, P(w->down_w), NULL, NULL, T, F, C, ACT_NONE, 0);
		o->linear_back(o, m->dx, GW(w->up_w), GW(w->up_b), m->dbig, a->x1, P(w->up_w), a->up, a->pre, T, C, F, m->c.hidden_act, 1);
		d = site(m, &m->last, SITE_ATTN, l);
		o->norm_back(o, m->da, m->dx, G(w->norm1_w), G(w->norm1_b), m->dx, a->r1, a->stat1, P(w->norm1_w), s, T, C, &d);
		o->linear_back(o, m->dctx, GW(w->out_w), GW(w->out_b), m->da, a->ctx, P(w->out_w), NULL, NULL, T, C, C, ACT_NONE, 0);
		d = site(m, &m->last, SITE_PROB, l);
		o->attention_back(o, m->dbig, m->dctx, a->ctx, a->lse, a->qkv, s, C, NH, &d);
		o->linear_back(o, m->dx, GW(w->qkv_w), GW(w->qkv_b), m->dbig, x, P(w->qkv_w), NULL, NULL, T, C, 3 * C, ACT_NONE, 1);
#undef GW
		finished(m, (int)l);
	}
	d = site(m, &m->last, SITE_EMBED, 0);
	o->embed_back(o, G(m->word), G(m->posw), G(m->type), G(m->norm_w), G(m->norm_b), m->dx, m->stat0, P(m->word), P(m->posw), P(m->type),
		P(m->norm_w), s, m->c.vocab_size, m->c.max_position_embeddings, C, m->c.pad_token_id, &d);
	finished(m, -1);
}

int model_backward(struct model *m, struct error *e)
{
	if (!m->ready)
		return error_set(e, "model_backward without a training forward");
	if (m->ready == 2) {
		if (m->on_grad)
			model_grad_parts(m, m->on_grad, m->on_grad_arg);
	} else if (m->on_grad) { /* which reads what is finished: nothing to replay */
		back(m);
	} else if (!replay(m, WORK_BACK, 0)) {
		back(m);
		m->o->replay_end(m->o);
	}
	m->on_grad = NULL;
	m->ready = 0;
	return 0;
}

/*
 * The encoder of BMFM-RNA: pre-norm blocks without positions and biases, on the sum of a gene's vector and that of its value.
 *
 *     x = dropout(LN(gene + value))
 *     per block:  x = x + attention(RMS(x) W_qkv) W_o;  x = x + swiglu(RMS(x) [W_gate, W_up]) W_down
 *
 * The first block starts without a norm (first_norm), and none follows the last. SwiGLU is 8/3 hidden_size wide, rounded up to 256. Without
 * positions the order of the genes does not matter. Tensor names are those of the released modules.
 *
 * A training forward keeps of each block (struct block_act) only what is expensive to compute again: outputs of norms and of SwiGLU are computed
 * again.
 */

#include "nn/model_impl.h"
#include "nn/value.h"

struct block_at {
	size_t qkv, proj, gate, down, norm1, norm2; /* offsets; gate: W_gate and W_up as one [2F, C]; norm1 NO_ROW: no norm */
};

/* A block's activations [T, .]. mid and out: the sum after attention and that after SwiGLU. In a training every block has its own; else all
 * share them, and out is x0. */
struct block_act {
	void *qkv, *ctx, *mid, *z, *out;
	real *lse, *stat1, *stat2;
};

struct llama {
	struct value_encoder value;
	struct block_at *at; /* [num_hidden_layers] */
	struct block_act *act; /* the same */
	void *x0; /* [T,C] output of the embeddings */
	void *y, *gated; /* [T,C], [T,F] of one block: output of a norm, of SwiGLU */
	void *dy, *dgated, *dqkv; /* gradients; dy [T,C] also of what attention gives */
};

enum { OWN_RMS_EPS };

/* ---- configuration ---- */

#define FIELD(name) offsetof(struct model_config, name)

static const struct config_field fields[] = {
	{"cls_tokens", FIELD_SOME, FIELD(cls_tokens), 0, NULL, 0},
	{"first_norm", FIELD_FLAG, FIELD(first_norm), 0, NULL, 0},
	{"hidden_act", FIELD_ACT, FIELD(hidden_act), 0, NULL, 0},
	{"hidden_dropout_prob", FIELD_REAL, FIELD(hidden_dropout_prob), 0, NULL, 0},
	{"hidden_size", FIELD_WHOLE, FIELD(hidden_size), 768, NULL, 0},
	{"layer_norm_eps", FIELD_REAL, FIELD(layer_norm_eps), 1e-12, NULL, 0},
	{"num_attention_heads", FIELD_WHOLE, FIELD(num_attention_heads), 12, NULL, 0},
	{"num_hidden_layers", FIELD_WHOLE, FIELD(num_hidden_layers), 12, NULL, 0},
	{"pad_token_id", FIELD_WHOLE, FIELD(pad_token_id), 0, NULL, 0},
	{"position_embedding_type", FIELD_WORD, 0, 0, "none", 0},
	{"rms_norm_eps", FIELD_REAL, FIELD(own[OWN_RMS_EPS]), 1e-5, NULL, 0},
	{"vocab_size", FIELD_WHOLE, FIELD(vocab_size), 0, NULL, 0},
	VALUE_FIELDS,
	{0},
};

static int bmfm_check(const struct model_config *c, struct error *e)
{
	if (arch_check_encoder(c, e) || arch_in_range("rms_norm_eps", c->own[OWN_RMS_EPS], 1e-20, 1, e))
		return -1;
	return value_check(c, e);
}

/* F */
static size_t bmfm_width(const struct model_config *c)
{
	return ((size_t)c->hidden_size * 8 / 3 + 255) / 256 * 256;
}

/* ---- tensors ---- */

#define EMBEDDINGS "core.encoder.embeddings."
#define VALUE EMBEDDINGS "expressions_embeddings"
#define BLOCK "core.encoder.blocks.%u."

static int has_norm1(const struct model_config *c, uint32_t l)
{
	return l > 0 || c->first_norm;
}

static void bmfm_tensors(struct params *p, const struct model_config *c)
{
	size_t C = c->hidden_size, F = bmfm_width(c);
	struct tensor *gene = params_add(p, INIT_NORMAL, 0, -1, c->vocab_size, C, EMBEDDINGS "genes_embeddings.weight");
	gene->zero_row = c->pad_token_id;
	gene->std = 1;
	value_tensors(p, c, VALUE);
	params_add_norm(p, -1, C, EMBEDDINGS "LayerNorm");
	for (uint32_t l = 0; l < c->num_hidden_layers; l++) {
		char name[80];
#define NAME(part) (snprintf(name, sizeof name, BLOCK part, l), name)
		if (has_norm1(c, l))
			params_add(p, INIT_ONE, 0, (int)l, C, 0, BLOCK "rms_1.scale", l);
		params_add_weight(p, (int)l, 3 * C, C, NAME("attn.c_attn"));
		params_add_weight(p, (int)l, C, C, NAME("attn.proj"));
		params_add(p, INIT_ONE, 0, (int)l, C, 0, BLOCK "rms_2.scale", l);
		params_add_weight(p, (int)l, F, C, NAME("mlp.c_fc1"));
		params_add_weight(p, (int)l, F, C, NAME("mlp.c_fc2"))->joined = 1;
		params_add_weight(p, (int)l, C, F, NAME("mlp.c_proj"));
#undef NAME
	}
}

static void bmfm_resolve(struct model *m)
{
	struct llama *n = m->arch_state;
	const struct params *p = &m->p;
	m->input.word = params_at(p, EMBEDDINGS "genes_embeddings.weight");
	m->input.position = m->input.type = NO_ROW;
	m->input.norm_w = params_at(p, EMBEDDINGS "LayerNorm.weight");
	m->input.norm_b = params_at(p, EMBEDDINGS "LayerNorm.bias");
	value_resolve(&n->value, m, VALUE);
	m->input.value = &n->value;
	n->at = xcalloc(m->c.num_hidden_layers, sizeof *n->at);
	n->act = xcalloc(m->c.num_hidden_layers, sizeof *n->act);
	for (uint32_t l = 0; l < m->c.num_hidden_layers; l++) {
#define AT(part) params_at(p, BLOCK part, l)
		n->at[l] = (struct block_at){
			.qkv = AT("attn.c_attn.weight"),
			.proj = AT("attn.proj.weight"),
			.gate = AT("mlp.c_fc1.weight"),
			.down = AT("mlp.c_proj.weight"),
			.norm1 = has_norm1(&m->c, l) ? AT("rms_1.scale") : NO_ROW,
			.norm2 = AT("rms_2.scale"),
		};
#undef AT
	}
}

static void bmfm_release(struct model *m)
{
	struct llama *n = m->arch_state;
	free_all(n->at, n->act);
}

/* ---- activations ---- */

static void bmfm_carve(struct model *m, struct arena *a, const struct shape *s)
{
	struct llama *n = m->arch_state;
	size_t C = m->c.hidden_size, F = bmfm_width(&m->c), T = s->T;
	n->x0 = arena_act(a, T * C);
	m->input.stat = arena_real(a, 2 * T);
	value_carve(&n->value, m, a, s);
	n->y = arena_act(a, T * C);
	n->gated = arena_act(a, T * F);
	for (uint32_t l = 0; l < m->c.num_hidden_layers; l++) {
		struct block_act *x = &n->act[l];
		if (l && !s->train) {
			*x = n->act[0];
			continue;
		}
		x->qkv = arena_act(a, T * 3 * C);
		x->ctx = arena_act(a, T * C);
		x->mid = arena_act(a, T * C);
		x->z = arena_act(a, T * 2 * F);
		x->out = s->train ? arena_act(a, T * C) : n->x0;
		x->lse = arena_real(a, T * m->c.num_attention_heads);
		x->stat1 = arena_real(a, T);
		x->stat2 = arena_real(a, T);
	}
	if (s->train) {
		n->dy = arena_act(a, T * C);
		n->dgated = arena_act(a, T * F);
		n->dqkv = arena_act(a, T * 3 * C);
	}
}

/* ---- forward and backward ---- */

static const struct dropout *no_dropout(void)
{
	static const struct dropout none;
	return &none;
}

/* n->y = RMS(r), r = a + x. Returns n->y. */
static const void *norm(struct model *m, size_t scale, void *r, real *stat, const void *a, const void *x)
{
	struct llama *n = m->arch_state;
	m->o->rms_norm(m->o, n->y, r, stat, a, x, P(m, scale), m->seq.T, m->c.hidden_size, m->c.own[OWN_RMS_EPS]);
	return n->y;
}

/* What block l reads. `other` is to be added to x first, NULL: it has been. */
static const void *block_input(struct model *m, uint32_t l, void *x, const void *other)
{
	const struct llama *n = m->arch_state;
	return n->at[l].norm1 == NO_ROW ? x : norm(m, n->at[l].norm1, x, n->act[l].stat1, x, other);
}

static void *bmfm_forward(struct model *m, const struct forward *f, uint32_t layers)
{
	struct llama *n = m->arch_state;
	struct ops *o = m->o;
	const struct seq *s = &m->seq;
	size_t T = s->T, C = m->c.hidden_size, F = bmfm_width(&m->c);
	const void *mid = NULL;
	void *x = n->x0;
	input_embed(m, f, x);
	for (uint32_t l = 0; l < layers; l++) {
		const struct block_at *w = &n->at[l];
		const struct block_act *a = &n->act[l];
		o->linear(o, a->qkv, NULL, block_input(m, l, x, mid), P(m, w->qkv), NULL, T, C, 3 * C, ACT_NONE);
		o->attention(o, a->ctx, a->lse, a->qkv, s, C, m->c.num_attention_heads, no_dropout());
		o->linear(o, a->mid, NULL, a->ctx, P(m, w->proj), NULL, T, C, C, ACT_NONE);
		const void *y = norm(m, w->norm2, a->mid, a->stat2, a->mid, x);
		o->linear(o, a->z, NULL, y, P(m, w->gate), NULL, T, C, 2 * F, ACT_NONE);
		o->swiglu(o, n->gated, a->z, T, F);
		o->linear(o, a->out, NULL, n->gated, P(m, w->down), NULL, T, F, C, ACT_NONE);
		x = a->out; /* without mid, which the next norm adds */
		mid = a->mid;
	}
	if (mid)
		o->add(o, x, x, mid, T * C);
	return x;
}

/* m->dx becomes the gradient of what comes into the block. */
static void block_back(struct model *m, const struct forward *f, uint32_t l)
{
	struct llama *n = m->arch_state;
	struct ops *o = m->o;
	const struct block_at *w = &n->at[l];
	const struct block_act *a = &n->act[l];
	void *x = l ? n->act[l - 1].out : n->x0;
	size_t T = m->seq.T, C = m->c.hidden_size, F = bmfm_width(&m->c);
	int learn = !m->input.given;
#define GW(offset) (learn ? G(m, offset) : NULL)
	o->swiglu(o, n->gated, a->z, T, F);
	o->linear_back(o, n->dgated, GW(w->down), NULL, m->dx, n->gated, P(m, w->down), NULL, NULL, T, F, C, ACT_NONE, 0);
	o->swiglu_back(o, a->z, n->dgated, a->z, T, F);
	const void *y = norm(m, w->norm2, a->mid, a->stat2, a->mid, NULL);
	o->linear_back(o, n->dy, GW(w->gate), NULL, a->z, y, P(m, w->gate), NULL, NULL, T, C, 2 * F, ACT_NONE, 0);
	o->rms_norm_back(o, m->dx, G(m, w->norm2), n->dy, a->mid, a->stat2, P(m, w->norm2), T, C);
	o->linear_back(o, n->dy, GW(w->proj), NULL, m->dx, a->ctx, P(m, w->proj), NULL, NULL, T, C, C, ACT_NONE, 0);
	o->attention_back(o, n->dqkv, n->dy, a->ctx, a->lse, a->qkv, &m->seq, C, m->c.num_attention_heads, no_dropout());
	if (m->input.presence)
		o->attention_presence(o, m->input.presence, n->dy, a->ctx, a->lse, a->qkv, &m->seq, C, m->c.num_attention_heads);
	y = block_input(m, l, x, NULL);
	int direct = w->norm1 == NO_ROW;
	o->linear_back(o, direct ? m->dx : n->dy, GW(w->qkv), NULL, n->dqkv, y, P(m, w->qkv), NULL, NULL, T, C, 3 * C, ACT_NONE, direct);
	if (!direct)
		o->rms_norm_back(o, m->dx, G(m, w->norm1), n->dy, x, a->stat1, P(m, w->norm1), T, C);
#undef GW
}

static void bmfm_backward(struct model *m, const struct forward *f, uint32_t layers)
{
	input_learn(m, f, layers, block_back);
}

/* The released models: with wced and labels 47 million parameters, with mlm and labels 32. */
static void fill_released(struct model_config *c)
{
	*c = (struct model_config){
		.arch = &arch_bmfm_llama,
		.hidden_size = 384,
		.num_hidden_layers = 12,
		.num_attention_heads = 12,
		.hidden_act = ACT_GELU,
		.layer_norm_eps = 1e-12,
		.own = {[OWN_RMS_EPS] = 1e-5},
		.value = {.kind = VALUE_PERIODIC, .frequencies = 48, .scale = 0.01, .specials = 36},
	};
}

static void fill_tiny(struct model_config *c)
{
	fill_released(c);
	c->hidden_size = 64;
	c->num_hidden_layers = 2;
	c->num_attention_heads = 2;
	c->value.frequencies = 16;
}

static const struct arch_preset presets[] = {{"bmfm-47m", fill_released}, {"bmfm-32m", fill_released}, {"bmfm-tiny", fill_tiny}, {0}};

static const struct optim optim = {
	.variant = ADAMW_TORCH,
	.schedule = SCHEDULE_CONSTANT,
	.lr = 1e-4,
	.beta1 = 0.9,
	.beta2 = 0.99,
	.eps = 1e-8,
	.weight_decay = 0.1,
	.max_norm = 0.5,
	.warmup = 1000,
};

/* The pooler is in every released model, whether a head reads it or not. */
static const char *const other[] = {"core.pooler.", NULL};

const struct arch arch_bmfm_llama = {
	.name = "bmfm_llama",
	.class_name = "BmfmLlama",
	.prefix = "core.",
	.other = other,
	.table = EMBEDDINGS "genes_embeddings.weight",
	.pooler = "core.pooler.dense",
	.field = fields,
	.preset = presets,
	.converted = "scllama",
	.converter = "scstream from-bmfm",
	.own_config = 1,
	.torch_init = 1,
	.cell_token = 1,
	.optim = &optim,
	.size = sizeof(struct llama),
	.check = bmfm_check,
	.check_batch = value_check_batch,
	.tensors = bmfm_tensors,
	.resolve = bmfm_resolve,
	.carve = bmfm_carve,
	.forward = bmfm_forward,
	.backward = bmfm_backward,
	.release = bmfm_release,
};

/*
 * BERT as Geneformer uses it: post-norm, learned positions, one token type.
 *
 *     x = dropout(LN(word + type + position [+ value]))
 *     per layer:  x = LN(x + dropout(attention(x W_qkv) W_o));  x = LN(x + dropout(act(x W_up) W_down))     [biases left out]
 *
 * Equations: transformers modeling_bert.py. Tensor names are those of BertFor{MaskedLM,SequenceClassification,TokenClassification}.
 * Sites of dropout: embeddings, attention probabilities, attention output, feed-forward output.
 *
 * A training forward keeps, for each layer, about 10 C + 2 F numbers a token (struct layer_act); a forward for use keeps one layer's
 * worth and alternates between two x buffers.
 */

#include "nn/model_impl.h"
#include "nn/value.h"

/* Offsets of one layer's tensors; query, key and value lie together, so they are one [3C, C] matrix. */
struct layer_at {
	size_t qkv_w, qkv_b, out_w, out_b, norm1_w, norm1_b;
	size_t up_w, up_b, down_w, down_b, norm2_w, norm2_b;
};

/* A layer's activations [T, .] kept for the backward pass; without training all layers share one set. */
struct layer_act {
	void *qkv, *ctx, *r1, *x1, *pre, *up, *r2, *x2;
	real *lse, *stat1, *stat2;
	void *keep; /* attention's decisions of dropout, for backends that store them */
};

struct bert {
	struct value_encoder value;
	struct layer_at *at; /* [num_hidden_layers] */
	void *x0; /* [T,C] output of the embeddings */
	struct layer_act *act; /* [num_hidden_layers] */
	void *da, *dctx, *dbig; /* gradients */
};

/* ---- configuration ---- */

#define FIELD(name) offsetof(struct model_config, name)

static const struct config_field fields[] = {
	{"attention_probs_dropout_prob", FIELD_REAL, FIELD(attention_probs_dropout_prob), 0.1, NULL, 0},
	{"classifier_dropout", FIELD_OPTIONAL, FIELD(classifier_dropout), -1, NULL, 0},
	{"cls_tokens", FIELD_SOME, FIELD(cls_tokens), 0, NULL, 0},
	{"hidden_act", FIELD_ACT, FIELD(hidden_act), 0, NULL, 0},
	{"hidden_dropout_prob", FIELD_REAL, FIELD(hidden_dropout_prob), 0.1, NULL, 0},
	{"hidden_size", FIELD_WHOLE, FIELD(hidden_size), 768, NULL, 0},
	{"initializer_range", FIELD_REAL, FIELD(initializer_range), 0.02, NULL, 0},
	{"intermediate_size", FIELD_WHOLE, FIELD(intermediate_size), 3072, NULL, 0},
	{"layer_norm_eps", FIELD_REAL, FIELD(layer_norm_eps), 1e-12, NULL, 0},
	{"max_position_embeddings", FIELD_WHOLE, FIELD(max_position_embeddings), 512, NULL, 0},
	{"num_attention_heads", FIELD_WHOLE, FIELD(num_attention_heads), 12, NULL, 0},
	{"num_hidden_layers", FIELD_WHOLE, FIELD(num_hidden_layers), 12, NULL, 0},
	{"pad_token_id", FIELD_WHOLE, FIELD(pad_token_id), 0, NULL, 0},
	{"shared_positions", FIELD_FLAG, FIELD(shared_positions), 0, NULL, 0},
	{"type_vocab_size", FIELD_WHOLE, FIELD(type_vocab_size), 2, NULL, 0},
	{"vocab_size", FIELD_WHOLE, FIELD(vocab_size), 30522, NULL, 0},
	{"position_embedding_type", FIELD_WORD, 0, 0, "absolute", 1},
	{"is_decoder", FIELD_FALSE, 0, 0, NULL, 0},
	{"add_cross_attention", FIELD_FALSE, 0, 0, NULL, 0},
	{"tie_word_embeddings", FIELD_TRUE, 0, 0, NULL, 0},
	{"use_cache", FIELD_NOTE, 0, 0, NULL, 1},
	VALUE_FIELDS,
	{0},
};

static int bert_check(const struct model_config *c, struct error *e)
{
	/* The upper bound of positions is what a dropout counter holds (ops.h). */
	if (arch_check_encoder(c, e) || arch_in_range("intermediate_size", c->intermediate_size, 1, 1 << 20, e) ||
		arch_in_range("max_position_embeddings", c->max_position_embeddings, 1, 65535, e) ||
		arch_in_range("type_vocab_size", c->type_vocab_size, 1, 65535, e) ||
		arch_in_range("attention_probs_dropout_prob", c->attention_probs_dropout_prob, 0, 0.999, e) ||
		arch_in_range("classifier_dropout", c->classifier_dropout, -1, 0.999, e) ||
		arch_in_range("initializer_range", c->initializer_range, 0, 100, e))
		return -1;
	return value_check(c, e);
}

/* ---- tensors ---- */

#define LAYER "bert.encoder.layer.%u."
#define VALUE "bert.embeddings.expressions_embeddings"

static void bert_tensors(struct params *p, const struct model_config *c)
{
	size_t C = c->hidden_size, F = c->intermediate_size;
	params_add(p, INIT_NORMAL, 1, -1, c->vocab_size, C, "bert.embeddings.word_embeddings.weight")->zero_row = c->pad_token_id;
	params_add(p, INIT_NORMAL, 1, -1, c->max_position_embeddings, C, "bert.embeddings.position_embeddings.weight");
	params_add(p, INIT_NORMAL, 1, -1, c->type_vocab_size, C, "bert.embeddings.token_type_embeddings.weight");
	value_tensors(p, c, VALUE);
	params_add_norm(p, -1, C, "bert.embeddings.LayerNorm");
	for (uint32_t l = 0; l < c->num_hidden_layers; l++) {
		static const char *const qkv[] = {"query", "key", "value"};
		char name[80];
#define NAME(part) (snprintf(name, sizeof name, LAYER part, l), name)
		for (int i = 0; i < 3; i++) {
			params_add(p, INIT_NORMAL, 1, (int)l, C, C, LAYER "attention.self.%s.weight", l, qkv[i])->joined = i > 0;
			params_add(p, INIT_ZERO, 0, (int)l, C, 0, LAYER "attention.self.%s.bias", l, qkv[i])->joined = i > 0;
		}
		params_add_linear(p, (int)l, C, C, NAME("attention.output.dense"));
		params_add_norm(p, (int)l, C, NAME("attention.output.LayerNorm"));
		params_add_linear(p, (int)l, F, C, NAME("intermediate.dense"));
		params_add_linear(p, (int)l, C, F, NAME("output.dense"));
		params_add_norm(p, (int)l, C, NAME("output.LayerNorm"));
#undef NAME
	}
}

static void bert_resolve(struct model *m)
{
	struct bert *n = m->arch_state;
	const struct params *p = &m->p;
	m->input.word = m->tied = params_at(p, "bert.embeddings.word_embeddings.weight");
	m->input.position = params_at(p, "bert.embeddings.position_embeddings.weight");
	m->input.type = params_at(p, "bert.embeddings.token_type_embeddings.weight");
	m->input.norm_w = params_at(p, "bert.embeddings.LayerNorm.weight");
	m->input.norm_b = params_at(p, "bert.embeddings.LayerNorm.bias");
	value_resolve(&n->value, m, VALUE);
	m->input.value = &n->value;
	n->at = xcalloc(m->c.num_hidden_layers, sizeof *n->at);
	n->act = xcalloc(m->c.num_hidden_layers, sizeof *n->act);
	for (uint32_t l = 0; l < m->c.num_hidden_layers; l++) {
#define AT(name) params_at(p, LAYER name, l)
		n->at[l] = (struct layer_at){
			.qkv_w = AT("attention.self.query.weight"),
			.qkv_b = AT("attention.self.query.bias"),
			.out_w = AT("attention.output.dense.weight"),
			.out_b = AT("attention.output.dense.bias"),
			.norm1_w = AT("attention.output.LayerNorm.weight"),
			.norm1_b = AT("attention.output.LayerNorm.bias"),
			.up_w = AT("intermediate.dense.weight"),
			.up_b = AT("intermediate.dense.bias"),
			.down_w = AT("output.dense.weight"),
			.down_b = AT("output.dense.bias"),
			.norm2_w = AT("output.LayerNorm.weight"),
			.norm2_b = AT("output.LayerNorm.bias"),
		};
#undef AT
	}
}

static void bert_release(struct model *m)
{
	struct bert *n = m->arch_state;
	free_all(n->at, n->act);
}

/* ---- activations ---- */

/* Bytes of a layer's decisions of dropout. */
static size_t keep_bytes(const struct model *m, const struct shape *s)
{
	const struct ops *o = m->o;
	if (!s->train || !o->keep_bytes || m->c.attention_probs_dropout_prob == 0)
		return 0;
	return o->keep_bytes(o, s->B, s->T, m->c.max_position_embeddings, m->c.hidden_size, m->c.num_attention_heads);
}

static void bert_carve(struct model *m, struct arena *a, const struct shape *s)
{
	struct bert *n = m->arch_state;
	size_t C = m->c.hidden_size, F = m->c.intermediate_size, NH = m->c.num_attention_heads, T = s->T;
	size_t keep = keep_bytes(m, s);
	int pre = m->c.hidden_act != ACT_RELU; /* whose slope follows from its value */
	n->x0 = arena_act(a, T * C);
	m->input.stat = arena_real(a, 2 * T);
	value_carve(&n->value, m, a, s);
	for (uint32_t l = 0; l < m->c.num_hidden_layers; l++) {
		struct layer_act *x = &n->act[l];
		if (l && !s->train) { /* all layers work in the same place; x2 alternates with x0 */
			*x = n->act[0];
			x->x2 = l % 2 ? n->x0 : n->act[0].x2;
			continue;
		}
		x->qkv = arena_act(a, T * 3 * C);
		x->ctx = arena_act(a, T * C);
		x->r1 = arena_act(a, T * C);
		x->x1 = arena_act(a, T * C);
		x->pre = pre ? arena_act(a, T * F) : NULL;
		x->up = arena_act(a, T * F);
		x->r2 = arena_act(a, T * C);
		x->x2 = arena_act(a, T * C);
		x->lse = arena_real(a, T * NH);
		x->stat1 = arena_real(a, 2 * T);
		x->stat2 = arena_real(a, 2 * T);
		x->keep = keep ? arena_bytes(a, keep) : NULL;
	}
	if (s->train) {
		n->da = arena_act(a, T * C);
		n->dctx = arena_act(a, T * C);
		n->dbig = arena_act(a, T * (3 * C > F ? 3 * C : F));
	}
}

/* ---- forward and backward ---- */

static struct dropout hidden_drop(const struct model *m, const struct forward *f, enum site site, uint32_t layer)
{
	return model_dropout(m, f, site, layer, m->c.hidden_dropout_prob);
}

static struct dropout prob_drop(const struct model *m, const struct forward *f, uint32_t layer)
{
	const struct bert *n = m->arch_state;
	struct dropout d = model_dropout(m, f, SITE_PROB, layer, m->c.attention_probs_dropout_prob);
	d.keep = n->act[layer].keep;
	d.longest = m->c.max_position_embeddings;
	return d;
}

static void *bert_forward(struct model *m, const struct forward *f, uint32_t layers)
{
	struct bert *n = m->arch_state;
	struct ops *o = m->o;
	const struct seq *s = &m->seq;
	size_t T = s->T, C = m->c.hidden_size, F = m->c.intermediate_size;
	double eps = m->c.layer_norm_eps;
	void *x = n->x0;
	input_embed(m, f, x);
	for (uint32_t l = 0; l < layers; l++) {
		const struct layer_at *w = &n->at[l];
		const struct layer_act *a = &n->act[l];
		o->linear(o, a->qkv, NULL, x, P(m, w->qkv_w), P(m, w->qkv_b), T, C, 3 * C, ACT_NONE);
		struct dropout d = prob_drop(m, f, l);
		o->attention(o, a->ctx, a->lse, a->qkv, s, C, m->c.num_attention_heads, &d);
		o->linear(o, a->r1, NULL, a->ctx, P(m, w->out_w), P(m, w->out_b), T, C, C, ACT_NONE);
		d = hidden_drop(m, f, SITE_ATTN, l);
		o->norm(o, a->x1, a->r1, a->stat1, a->r1, x, P(m, w->norm1_w), P(m, w->norm1_b), s, T, C, eps, &d);
		o->linear(o, a->up, a->pre, a->x1, P(m, w->up_w), P(m, w->up_b), T, C, F, m->c.hidden_act);
		o->linear(o, a->r2, NULL, a->up, P(m, w->down_w), P(m, w->down_b), T, F, C, ACT_NONE);
		d = hidden_drop(m, f, SITE_FFN, l);
		o->norm(o, a->x2, a->r2, a->stat2, a->r2, a->x1, P(m, w->norm2_w), P(m, w->norm2_b), s, T, C, eps, &d);
		x = a->x2;
	}
	return x;
}

static void layer_back(struct model *m, const struct forward *f, uint32_t l)
{
	struct bert *n = m->arch_state;
	struct ops *o = m->o;
	const struct seq *s = &m->seq;
	const struct layer_at *w = &n->at[l];
	const struct layer_act *a = &n->act[l];
	const void *x = l ? n->act[l - 1].x2 : n->x0;
	size_t T = s->T, C = m->c.hidden_size, F = m->c.intermediate_size;
	int learn = !m->input.given;
#define GW(offset) (learn ? G(m, offset) : NULL)
	struct dropout d = hidden_drop(m, f, SITE_FFN, l);
	o->norm_back(
		o, n->da, m->dx, G(m, w->norm2_w), G(m, w->norm2_b), GW(w->down_b), m->dx, a->r2, a->stat2, P(m, w->norm2_w), s, T, C, &d);
	o->linear_back(o, n->dbig, GW(w->down_w), NULL, n->da, a->up, P(m, w->down_w), NULL, NULL, T, F, C, ACT_NONE, 0);
	o->linear_back(o, m->dx, GW(w->up_w), GW(w->up_b), n->dbig, a->x1, P(m, w->up_w), a->up, a->pre, T, C, F, m->c.hidden_act, 1);
	d = hidden_drop(m, f, SITE_ATTN, l);
	o->norm_back(
		o, n->da, m->dx, G(m, w->norm1_w), G(m, w->norm1_b), GW(w->out_b), m->dx, a->r1, a->stat1, P(m, w->norm1_w), s, T, C, &d);
	o->linear_back(o, n->dctx, GW(w->out_w), NULL, n->da, a->ctx, P(m, w->out_w), NULL, NULL, T, C, C, ACT_NONE, 0);
	d = prob_drop(m, f, l);
	o->attention_back(o, n->dbig, n->dctx, a->ctx, a->lse, a->qkv, s, C, m->c.num_attention_heads, &d);
	if (m->input.presence)
		o->attention_presence(o, m->input.presence, n->dctx, a->ctx, a->lse, a->qkv, s, C, m->c.num_attention_heads);
	o->linear_back(o, m->dx, GW(w->qkv_w), GW(w->qkv_b), n->dbig, x, P(m, w->qkv_w), NULL, NULL, T, C, 3 * C, ACT_NONE, 1);
#undef GW
}

static void bert_backward(struct model *m, const struct forward *f, uint32_t layers)
{
	input_learn(m, f, layers, layer_back);
}

/* What Geneformer V1 has and the CorrMask paper took over (its section 5.1). */
static void fill_geneformer(struct model_config *c)
{
	*c = (struct model_config){
		.arch = &arch_bert,
		.hidden_size = 256,
		.num_hidden_layers = 6,
		.num_attention_heads = 4,
		.intermediate_size = 512,
		.max_position_embeddings = 2048,
		.type_vocab_size = 2,
		.hidden_act = ACT_RELU,
		.hidden_dropout_prob = 0.02,
		.attention_probs_dropout_prob = 0.02,
		.classifier_dropout = -1,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.02,
	};
}

static void fill_tiny(struct model_config *c)
{
	fill_geneformer(c);
	c->hidden_size = 64;
	c->num_hidden_layers = 2;
	c->num_attention_heads = 2;
	c->intermediate_size = 128;
}

static const struct arch_preset presets[] = {
	{"tiny", fill_tiny}, {"corrmask-paper", fill_geneformer}, {"geneformer-v1-10m", fill_geneformer}, {0}};

/* What older versions of transformers saved besides, and the pooler where no head reads it. */
static const char *const other[] = {
	"cls.seq_relationship.", "bert.pooler.", "pooler.", "bert.embeddings.position_ids", "embeddings.position_ids", NULL};

const struct arch arch_bert = {
	.name = "bert",
	.class_name = "Bert",
	.prefix = "bert.",
	.other = other,
	.pooler = "bert.pooler.dense",
	.field = fields,
	.preset = presets,
	.positions = 1,
	.token_embedding = 1,
	.table = "bert.embeddings.word_embeddings.weight",
	.size = sizeof(struct bert),
	.check = bert_check,
	.check_batch = value_check_batch,
	.tensors = bert_tensors,
	.resolve = bert_resolve,
	.carve = bert_carve,
	.forward = bert_forward,
	.backward = bert_backward,
	.release = bert_release,
};

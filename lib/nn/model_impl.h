/* What the files of the model, its architectures and its heads share. */
#pragma once

#include "nn/input.h"
#include "nn/model.h"

/* Memory on the device from which pieces are taken. With base NULL the same calls only measure how much is needed. */
struct arena {
	char *base;
	size_t used, act_size;
};
static inline void *arena_bytes(struct arena *a, size_t n)
{
	void *p = a->base ? a->base + a->used : NULL;
	a->used += (n + 255) / 256 * 256;
	return p;
}

/* n activations */
static inline void *arena_act(struct arena *a, size_t n)
{
	return arena_bytes(a, n * a->act_size);
}

static inline real *arena_real(struct arena *a, size_t n)
{
	return arena_bytes(a, n * sizeof(real));
}

/* The sizes of a batch, padded for the backend (ops.round_tokens, round_rows), and what is to be computed. */
struct shape {
	size_t B, T; /* cells and tokens, with padding */
	size_t cells, tokens; /* the batch's own */
	unsigned heads; /* bit i: head i is computed */
	int train, labels;
	size_t ranges; /* of every cell: model_embed */
	int ranks; /* the batch says the positions of its tokens */
	int values, counts; /* it has values, or counts, of its tokens */
	int given; /* the vectors of its tokens are given (input.h) */
	unsigned logits; /* bit i: the logits of head i are wanted */
};

/* The targets of one head; NULL where it has others. */
struct target_arrays {
	uint32_t *target, *mask;
	real *value;
};

/* A batch, on the device or on its way there. */
struct arrays {
	uint32_t *step, *offset, *id, *pos, *cell, *key, *tile, *order, *start, *range, *count, *rank, *rank_order, *rank_start;
	struct {
		uint32_t *offset, *id, *cell, *order, *start;
	} group;
	struct {
		uint32_t *row, *offset, *id, *cell, *order, *start;
	} coded; /* tokens whose values have rows of a table (value.h) */
	real *value, *scale;
	struct {
		uint32_t *row, *range;
		struct target_arrays to;
	} head[HEADS_MAX];
};

/* The host's side of a batch: filled while the device works on the one before. */
struct stage {
	char *host; /* laid out as the arrays at the start of the arena */
	size_t cap;
};

/* Marks of ops: the stage is copied to the device; the result is copied back. */
enum { MARK_STAGE = 0, MARK_RESULT = 2 };

enum {
	SUMS = 1 + 2 * LOSSES_MAX, /* squares of the gradient; then of each loss: itself, its measure */
};

struct result {
	double *sums; /* [SUMS], from host_alloc */
	double host[2 * LOSSES_MAX], count;
	size_t n; /* model_embed: numbers */
	real *x; /* [n] */
	size_t cap;
};

/* What a head reads (readout.c). */
struct readout {
	size_t pool_w, pool_b; /* offsets */
	const void *x; /* [N, C] of cells: the rows */
	void *in, *din; /* [N, C] the rows, and their gradient; NULL if they are all hidden states */
	void *pooled, *dpooled; /* [N, C] after the pooler */
	void *dropped; /* [N, C] of cells, [T, C] of tokens: after dropout; NULL: none */
};

struct head {
	const struct head_kind *kind;
	struct head_spec spec; /* weight is not 0, name not NULL */
	size_t index;
	size_t first, nloss; /* its losses in the list of the model */
	size_t N, rows; /* rows with padding, and the batch's own */
	struct readout read;
	void *z, *dz; /* act [N, outputs] logits of the last forward, and their gradient if that has a place of its own; NULL: not kept */
	const real *scale; /* [nloss] on the device: multiplies the gradient; NULL: 1 */
	double host_scale; /* the first of them */
	double host_sum[2]; /* sums of host_loss since model_zero_grad */
};

struct model {
	struct model_config c;
	const struct arch *arch;
	void *arch_state;
	struct ops *o;
	uint64_t seed;
	struct params p;
	size_t nhead;
	struct head *head[HEADS_MAX];
	struct head_spec spec[HEADS_MAX];
	size_t nloss;
	double weight[LOSSES_MAX]; /* of each loss in the loss of the model */
	double host_scale[LOSSES_MAX]; /* of the batch: what their gradients are multiplied by */
	size_t frozen; /* layers */
	uint64_t settings; /* counts the changes of settings on which arguments of ops depend: freezing, class weights, focal loss */
	size_t tied; /* offset of the token embedding [V, C], for decoders that share it; NO_ROW: the architecture has none */

	/* One allocation for a batch and its activations, grown to the largest so far; the pointers are set per batch. */
	char *memory;
	size_t memory_cap;
	struct arrays dev;
	struct seq seq, groups; /* groups: a token for each cell that has a covariate, its id the category */
	struct seq coded; /* each token a cell: of one token, its id the row of its value, or of none */
	struct shape shape;
	void *dx, *dx_more; /* [T or B, C] gradient of the last hidden states; of one more head */
	real *pooled; /* model_embed: [B, ranges, C] */
	double *sums; /* [SUMS] device */
	struct stage stage[2];
	struct {
		/* offsets of the embeddings' tensors (NO_ROW: none); an architecture of tokens sets them and value, and stat at every carve */
		size_t word, type, position, norm_w, norm_b;
		struct value_encoder *value; /* NULL: the architecture has no tokens */
		real *stat; /* [T,2] of the embeddings' LayerNorm */
		void *given; /* act [T,C] the vectors that are read instead; NULL: gene + value */
		void *pooled; /* act [B,C] means of states, or their gradient */
		const void *x; /* act [T,C] the states of the last input_forward */
		real *sums; /* [T] room for presence */
		real *presence; /* [T] attention adds to it, in a backward that wants it; else NULL */
		uint32_t layers; /* of the last input_forward */
		size_t head; /* SIZE_MAX: a mean */
		int ready; /* input_backward can run */
	} input;
	unsigned turn; /* the stage of the batch that is on the device */
	struct result result[2];
	uint64_t posted, taken; /* results asked for, and collected */
	uint64_t tokens, rows; /* of all batches: theirs, and with padding */
	struct forward last; /* the training forward that model_backward belongs to */
	params_part *on_grad; /* of the next backward, or NULL */
	void *on_grad_arg;
	int ready; /* 1: model_backward can run; 2: it can, but the batch had no target; 0: it cannot */
};

/* Parameters and gradients at an offset. */
#define P(m, offset) ((m)->p.array[PARAM] + (offset))
#define G(m, offset) ((m)->p.array[GRAD] + (offset))

/* input.c: the embeddings x [T, C] = dropout(LN(word + type + position + value)); given vectors take the place of word and value. */
void input_embed(struct model *m, const struct forward *f, void *x);
/* arch.backward: `layer` of each layer that learns, from the last, and the embeddings. */
void input_learn(
	struct model *m, const struct forward *f, uint32_t layers, void layer(struct model *m, const struct forward *f, uint32_t l));

/* Dropout at a place of the network: off unless f->train. */
static inline struct dropout model_dropout(const struct model *m, const struct forward *f, enum site site, uint32_t layer, double p)
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

/* recalibrate.c: the input z [cells, C] of a batch normalisation, and the offsets of its statistics. Every one says so before it normalises. */
void model_moments(struct model *m, const struct forward *f, const void *z, size_t C, size_t mean, size_t var);

/* The gradients of `layer` are final (num_hidden_layers: the heads, -1: the rest). */
static inline void model_finished(struct model *m, int layer)
{
	if (m->on_grad)
		params_grad_part(&m->p, layer, m->on_grad, m->on_grad_arg);
}

/* Rows of hidden states: tokens, or cells where the architecture is per_cell. */
static inline size_t model_states(const struct model *m)
{
	return m->arch->per_cell ? m->shape.B : m->shape.T;
}

/*
 * readout.c. `readout` gives a head the rows that it reads, [h->N, C]. For the way back, the head writes their gradient to readout_grad, and
 * readout_back then computes dx from it.
 */
int readout_check(const struct head_kind *k, const struct model_config *c, struct error *e);
void readout_tensors(const struct head_spec *s, struct params *p, const struct model_config *c);
static inline const void *head_logits(struct head *h, struct model *m)
{
	return h->kind->logits ? h->kind->logits(h, m) : h->z;
}

void readout_resolve(struct head *h, struct model *m);
void readout_carve(struct head *h, struct model *m, struct arena *a, const struct shape *s);
const void *readout(struct head *h, struct model *m, const struct forward *f, const void *x);
void *readout_grad(struct head *h, struct model *m, void *dx);
void readout_back(struct head *h, struct model *m, const struct forward *f, void *dx);

/* target.c: by enum target. */
struct target_kind {
	/* Are the targets of its goal possible? rows: of the head. */
	int (*check)(const struct model *m, const struct head *h, const struct batch *b, size_t rows, struct error *e);
	void (*carve)(struct target_arrays *x, const struct model *m, const struct head *h, struct arena *a);
	void (*fill)(const struct target_arrays *x, const struct model *m, const struct head *h, const struct goal *g);
	double (*count)(const struct goal *g, size_t rows); /* targets of the goal */
	void (*spread)(struct loss *l, const struct goal *g, size_t rows); /* add to l->target and l->square, or NULL */
};
extern const struct target_kind target_kind[];

/* Metrics of heads: the share of predictions that are right; the mean loss. */
double head_accuracy(const struct loss *l, const struct head_spec *s);
double head_mean(const struct loss *l, const struct head_spec *s);

/* model_batch.c: check a batch, allocate memory and send it to the device. s: what is to be computed. range: as in model_embed, or
 * NULL. */
struct shape shape_of(const struct model *m, const struct batch *b);
size_t goal_rows(const struct head *h, const struct batch *b);
int batch_check(const struct model *m, const struct batch *b, unsigned heads, int labels, struct error *e);
int batch_send(struct model *m, const struct batch *b, struct shape s, const struct forward *f, const uint32_t *range, struct error *e);

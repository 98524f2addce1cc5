/*
 * An architecture computes hidden states from the tokens of a batch. Each architecture is one file (bert.c) and one line of the table in
 * arch.c. No other code tests which architecture a model has.
 *
 * Its functions get the model (model_impl.h): ops, configuration, parameters, the batch on the device, dropout. m->arch_state is for
 * the architecture alone: [size] bytes, zeros at first.
 */
#pragma once

#include "nn/ops.h"

struct model;
struct params;
struct arena;
struct shape;
struct forward;
struct batch;
struct arch;
struct optim;

#define ARCH_OWN 8

#define REALS_MAX 32
struct reals {
	uint32_t n;
	double x[REALS_MAX];
};

/* How the values of tokens are encoded (value.h). */
enum value_kind {
	VALUE_NONE, /* not at all */
	VALUE_PERIODIC,
	VALUE_MLP,
	VALUE_MLP_SPECIAL,
	VALUE_KINDS
};

struct value_config {
	uint32_t kind; /* enum value_kind */
	uint32_t frequencies, learned; /* periodic: how many; 1: they are learned */
	double scale, shift; /* periodic */
	struct reals center, orientation; /* periodic: of sigmoids */
	uint32_t specials; /* special tokens, and categories of values */
	uint32_t zero_is_number; /* 1: 0 has no vector of its own */
};

#define ACT_WORDS (ACT_GELU + 1)
extern const char *const act_words[ACT_WORDS]; /* of enum act in config.json; NULL: no architecture has it */

/* The fields of config.json, under their names there. The table of fields of an architecture says which of them it has. */
struct model_config {
	const struct arch *arch; /* NULL: the first of the table */
	uint32_t vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size;
	uint32_t max_position_embeddings, type_vocab_size, pad_token_id;
	uint32_t shared_positions; /* 1: the position of a token is its rank (struct batch), not its place in the cell */
	uint32_t cls_tokens; /* for the whole cell at the start of each; 0: not known */
	uint32_t num_groups; /* categories of the one-hot covariate of cells (struct batch) */
	double masked_least, masked_most; /* shares of the genes that the masks of the training hid; 0: not known */
	enum act hidden_act; /* one of act_words */
	double hidden_dropout_prob, attention_probs_dropout_prob;
	double classifier_dropout; /* negative: as hidden_dropout_prob */
	double layer_norm_eps, initializer_range;
	struct value_config value;
	uint32_t first_norm; /* 1: the first block starts with a norm, as the others do */
	double own[ARCH_OWN]; /* numbers that no other architecture has */
};

enum field_type {
	FIELD_WHOLE, /* uint32_t at `at` */
	FIELD_SOME, /* the same, written only if it is not 0 */
	FIELD_REAL, /* double */
	FIELD_OPTIONAL, /* double; null in the file means `missing`, which is negative */
	FIELD_ACT, /* enum act: one of act_words; missing: gelu */
	FIELD_FLAG, /* uint32_t: 1 for true; written only then */
	FIELD_CHOICE, /* uint32_t: which of the texts in `word`, which ends with an empty one */
	FIELD_REALS, /* struct reals: a list of numbers; missing: none */
	FIELD_WORD, /* if the file has it, it must be `word` */
	FIELD_TRUE, /* if the file has it, it must be true */
	FIELD_FALSE,
	FIELD_NOTE, /* written as true because transformers writes it; not read */
};

struct config_field {
	const char *key;
	enum field_type type;
	size_t at; /* offset in struct model_config */
	double missing; /* the value if the file does not have the field: the default of transformers */
	const char *word;
	int print; /* FIELD_WORD, _TRUE, _FALSE, _NOTE: 1 if the field is written */
};

/* A configuration with a name, without vocab_size. */
struct arch_preset {
	const char *name;
	void (*fill)(struct model_config *c);
};

struct arch {
	const char *name; /* config.json: model_type */
	const char *class_name; /* first part of the class name in transformers: "Bert" */
	const char *prefix; /* of the names of its tensors; files may omit it: "bert." */
	const char *const *other; /* ends with NULL; how tensors in files start that are not needed; may be NULL */
	const char *pooler; /* name of its pooler, a linear layer that heads of cells share; NULL: it has none */
	const char *table; /* name of the tensor [vocab_size, hidden_size] that has a row for each token; NULL: none */
	const struct config_field *field; /* ends with key NULL */
	const struct arch_preset *preset; /* ends with name NULL */
	int per_cell; /* 1: one hidden state per cell [B, C]; 0: one per token [T, C] */
	int positions; /* 1: a cell can have at most max_position_embeddings tokens */
	int counts; /* 1: it reads counts (batch.count, batch.value), in no order; 0: tokens in their order */
	int token_embedding; /* 1: it sets m->tied, the embedding that decoders share */
	const char *converted; /* model_type of another program's models that scstream converts, and by what; both NULL: none */
	const char *converter;
	int own_config; /* 1: no other program writes its config.json, so an unknown key there is a mistake */
	int torch_init; /* 1: linear layers start as in PyTorch; 0: from N(0, initializer_range^2), biases as 0 */
	int cell_token; /* 1: the state of a cell is the state of its first token after the last layer; 0: the mean over an inner layer */
	const struct optim *optim; /* defaults of a training; NULL: the defaults of the task */
	size_t size; /* bytes of m->arch_state */

	/* Is the configuration possible? The message names the field that is wrong. */
	int (*check)(const struct model_config *c, struct error *e);
	/* Can it compute this batch, and learn from it? NULL: every batch. */
	int (*check_batch)(const struct model_config *c, const struct batch *b, int train, struct error *e);
	/* `tensors` adds the tensors to the table. After all are placed, `resolve` stores their offsets. */
	void (*tensors)(struct params *p, const struct model_config *c);
	void (*resolve)(struct model *m);
	/* Take memory for the activations from the arena; with s->train also for what backward needs. */
	void (*carve)(struct model *m, struct arena *a, const struct shape *s);
	/* Returns the hidden states after the first `layers` layers (act, on the device). */
	void *(*forward)(struct model *m, const struct forward *f, uint32_t layers);
	/* Of a forward through the first `layers` layers: start from m->dx, the gradient of its result. Call model_finished after each
	 * layer. Where the vectors of tokens were given (input.h), m->dx becomes their gradient. */
	void (*backward)(struct model *m, const struct forward *f, uint32_t layers);
	void (*release)(struct model *m); /* NULL: nothing to release */
};

extern const struct arch arch_bert; /* the first of the table, and the one of a configuration that names none */
extern const struct arch arch_bmfm_llama; /* pre-norm blocks with SwiGLU, without positions */
extern const struct arch arch_mlp_nb; /* an encoder of counts: multilayer perceptron with batch normalisation */

/* By model_type; NULL: none. */
const struct arch *arch_find(const char *name);
const struct arch *arch_at(size_t i); /* the i-th, NULL past the last */

/* For the function `check` of an architecture: a field in [lo, hi], and all fields that encoders with attention share. */
int arch_in_range(const char *field, double x, double lo, double hi, struct error *e);
int arch_check_encoder(const struct model_config *c, struct error *e);

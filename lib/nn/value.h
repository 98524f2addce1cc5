/*
 * Value encoders: the vector that the value of a token adds to its embedding [BMFM-RNA]. An architecture of tokens that takes values has
 * struct value_encoder in its state and calls these functions; fields of config.json are VALUE_FIELDS.
 *
 *     periodic     W (sin(w (x - shift)) | cos(w (x - shift)) | sigmoids of x - shift)    w fixed, doubling from 2 pi scale, or learned, from
 *                  N(0, (2 pi scale)^2);  special tokens and 0: rows of a table [rows, C]
 *     mlp          leaky(W_2 leaky(w x + b) + b_2), also of special tokens
 *     mlp_special  W_2 leaky(u) + b_2, u = leaky(w x + b), or of special tokens and 0 rows of a table [rows, 128]
 *
 * A special token has the value -(id + 1). 0 is the last row of the table, unless value_zero_is_number. The table's row `pad` starts as 0 and is
 * not learned, as in torch.nn.Embedding: that of pad_token_id, of mlp_special row 2.
 */
#pragma once

#include "nn/arch.h"
#include "nn/params.h"

#define VALUE_UNITS 128 /* of the layer between a value and the vector of both mlp */

/* Fields for the table of an architecture. A configuration without an encoder is written without them. */
#define VALUE_AT(name) offsetof(struct model_config, value.name)
#define VALUE_FIELDS \
	{"value_encoder", FIELD_CHOICE, VALUE_AT(kind), VALUE_NONE, "none\0periodic\0mlp\0mlp_special\0", 0}, \
		{"value_frequencies", FIELD_WHOLE, VALUE_AT(frequencies), 48, NULL, 0}, \
		{"value_learned_frequencies", FIELD_FLAG, VALUE_AT(learned), 0, NULL, 0}, \
		{"value_scale", FIELD_REAL, VALUE_AT(scale), 0.01, NULL, 0}, {"value_shift", FIELD_REAL, VALUE_AT(shift), 0, NULL, 0}, \
		{"value_sigmoid_centers", FIELD_REALS, VALUE_AT(center), 0, NULL, 0}, \
		{"value_sigmoid_orientations", FIELD_REALS, VALUE_AT(orientation), 0, NULL, 0}, \
		{"value_specials", FIELD_WHOLE, VALUE_AT(specials), 36, NULL, 0}, \
	{ \
		"value_zero_is_number", FIELD_FLAG, VALUE_AT(zero_is_number), 0, NULL, 0 \
	}

struct value_encoder {
	size_t w, b, center, orientation, table, dense_w, dense_b; /* offsets; NO_ROW: it has none */
	void *f, *df, *y; /* [T, features], [T, hidden_size] */
};

/* Is the configuration possible? The message names the field. */
int value_check(const struct model_config *c, struct error *e);
/* arch.check_batch: do its tokens have values that the encoder takes? The message names cell and position. */
int value_check_batch(const struct model_config *c, const struct batch *b, int train, struct error *e);
/* Rows of its table, 0: it has none. Which row has a value; ROW_NONE: it is a number. The row that is not learned; ROW_NONE: all are. */
size_t value_rows(const struct model_config *c);
uint32_t value_row(const struct model_config *c, double x);
uint32_t value_pad(const struct model_config *c);

/* name: how the names of its tensors start, without a dot. Without an encoder these do nothing. */
void value_tensors(struct params *p, const struct model_config *c, const char *name);
void value_resolve(struct value_encoder *v, const struct model *m, const char *name);
void value_carve(struct value_encoder *v, struct model *m, struct arena *a, const struct shape *s);
/* The vectors, act [T, hidden_size]; NULL: there is no encoder. */
const void *value_forward(struct value_encoder *v, struct model *m);
void value_backward(struct value_encoder *v, struct model *m, void *dy); /* dy [T, hidden_size], their gradient, is used up */

/* Shared by the tools that run a model. The functions die on errors. */
#pragma once

#include "cli_stream.h"
#include "nn/model.h"
#include "train/groups.h"

/* Open the device of --device for the threads of --threads, and print its name. */
struct ops *cli_device(const struct cli *c);

uint32_t cli_cls_tokens(const struct stream *in); /* for the whole cell at the start of each (rankenc --cls); 0: the header does not say */

/* Does the model with configuration c, which is in dir, take the positions of tokens from where the stream has them: the list rank, or their
 * order, behind as many tokens for the whole cell? Dies if not. */
void cli_same_positions(const struct model_config *c, const char *dir, const struct stream *in);

/* Dies if the model reads values and the stream has none: beside its tokens counts (or values), beside masked ones input_value. */
void cli_needs_values(const struct model_config *c, const struct stream *in);

/* Dies if the head reads a token of each cell that stands behind those for the whole cell, of which the stream has fewer (position=K). */
void cli_has_position(const struct head_spec *s, const struct stream *in);

/* Compare the stream's vocabulary with v, the vocabulary of the model in dir (see vocab_same). Dies, or warns of a small difference. */
void cli_same_vocab(const struct vocab *v, const struct model_config *c, const char *dir, const struct stream *in);

/* Warn if `unknown` of the cells of the stream `name` have no group that the model knows. */
void cli_unknown_groups(const struct groups *g, uint64_t unknown, uint64_t cells, const char *name);

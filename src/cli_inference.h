/*
 * The cells of a stream through a trained model, batch by batch: what scembed, scpredict and scperturb screen share. The functions die on errors.
 *
 *     struct inference r = {.of = &mine};
 *     inference_open(&r, &cli, INFERENCE_COUNTS);
 *     inference_load(&r, NULL);
 *     header_derive(&h, STREAM_EMBEDDING, stream_header(r.in)), and columns of h
 *     inference_run(&r, &h, rows, NULL);
 *     inference_report(&r, "cells have no token to embed: their vectors are NaN");
 */
#pragma once

#include "cli_stream.h"

#include "base/option.h"
#include "train/batch.h"
#include "train/config.h"
#include "train/groups.h"

/* What -M and --max-len (0: not given) say; their table is for cli.shared. --recalibrate (cli_recalibrate.h) is a row of the tools that have it. */
extern struct inference_asked {
	const char *model, *recalibrate;
	long long max_len;
} asked;
extern struct option_def inference_options[];

enum { LAYER_USUAL = 1 }; /* --emb-layer was not given: that of the architecture */

struct recalibration;
struct inference {
	void *of; /* of the tool, for its functions */
	const struct cli *cli;
	struct stream *in;
	const char *name; /* of the input */
	int counts, cell_token; /* the model reads counts; the first token stands for the cell */
	struct ops *ops;
	struct model *model;
	char identity[64]; /* the model in provenance: not its path but the digest of its weights */
	long long layer; /* of the hidden states */
	long long most; /* tokens or counts of a batch */
	int64_t eos; /* token id, -1: none */

	struct masked_columns col; /* of the input */
	struct groups groups; /* the covariate of a model of counts, */
	struct labels labels; /* and its column of the input; spec NULL: there is none */
	uint32_t *group;
	size_t group_cap;
	struct recalibration *recalibration; /* NULL: none */

	struct packed packed; /* the batch: rows [from, ...) of a block of the input */
	const struct block *b;
	size_t from;
	struct block out;
	int *map; /* columns of the input for those of the output */
	uint32_t *row; /* [rows of the batch] */
	size_t row_cap;
	uint64_t cells, tokens, empty; /* empty: cells without a result */
	uint64_t cut, lost; /* cells that --max-len cut, and the tokens that they lost */
};

/* Open the input for the model of -M. what: it may be one of counts, which are masked or not; it computes gradients, in smaller batches. */
enum { INFERENCE_TOKENS = 0, INFERENCE_COUNTS = 1, INFERENCE_MASKED = 2, INFERENCE_GRADIENTS = 4 };
void inference_open(struct inference *r, const struct cli *cli, unsigned what);

/* Open the device and load the model with these heads of it, or NULL: none. It must fit the input. */
void inference_load(struct inference *r, const struct config_heads *heads);

/* cli_inference_pack.c. The next cells [from, *to) of a block that are a batch. Pack them. */
size_t inference_batch(const struct inference *r, const struct block *b, size_t from);
void inference_pack(struct inference *r, const struct block *b, size_t from, size_t to);
/* Before: the covariate of the model in dir, for cells of r->in. */
void inference_groups(struct inference *r, const char *dir);

/* The whole stream. rows: fill rows [first, first + n) of r->out, whose cells are in r->packed and whose copied columns are there. flush: before rows
 * are written, NULL: nothing to do. h is released. */
void inference_run(struct inference *r, struct header *h, void (*rows)(struct inference *r, size_t first, size_t n),
	void (*flush)(struct inference *r));

/* Say what was done, and how many cells are empty: "N of M CELLS_ARE". */
void inference_report(const struct inference *r, const char *cells_are);

/* The parts of scembed: scembed.c embeds cells; pool.c is --pool; genes.c one vector a gene; perturbed.c compares perturbed cells with the
 * unperturbed ones. */
#pragma once

#include "cli_inference.h"

/* --pool: which hidden states make the vector of a cell; of n positions, their states one after the other. */
enum { POOL_MAX = 32 };
struct pool {
	enum { POOL_MEAN, POOL_CLS, POOL_FIRST, POOL_REST, POOL_TOKENS } kind;
	size_t n; /* vectors that are joined */
	uint32_t position[POOL_MAX]; /* [n] POOL_TOKENS */
	int pooler; /* the state goes through the model's pooler */
	int64_t cls, eos; /* token ids, -1: none */
	size_t ncls; /* tokens for the whole cell before its genes */
};

/* Read --pool (usage error); is it possible for this input? Fill range [2 n cells] with the tokens of the batch whose mean is taken; returns how
 * many cells lack some. */
void pool_read(struct pool *p, const char *text);
void pool_open(struct pool *p, const struct header *h);
size_t pool_ranges(const struct pool *p, const struct batch *b, uint32_t *range);

/* One vector a gene: means of hidden states, or if fixed the table of token embeddings. by: a vector for each class of this column; NULL: one. */
void genes_check(const char *by); /* a usage error if the output has such a column itself */
void genes_run(struct inference *r, int fixed, const char *by);

/* Perturbed cells beside their unperturbed ones. SIMILARITY_NONE: x and x_original, the means without the perturbed tokens. Else the column
 * similarity, with SIMILARITY_GENES the lists token and cosine too. */
enum similarity { SIMILARITY_NONE, SIMILARITY_MEAN, SIMILARITY_GENES };
void perturbed_run(struct inference *r, enum similarity similarity);

/* The parts of rankenc: rankenc.c encodes, rankenc_fit.c learns a vocabulary (--fit), rankenc_counts.c reads counts for both. */
#ifndef RANKENC_H
#define RANKENC_H

#include "cli.h"

/* The columns of a counts stream. */
struct counts_in {
	struct stream *s;
	const struct header *h;
	int gene, count, total, group;
	struct block block;
	uint64_t row; /* rows before the block */
};

/* Find the columns of s. Dies if s is not a counts stream. counts_close frees s. */
void counts_open(struct counts_in *in, struct stream *s);
void counts_close(struct counts_in *in);

/* Genes of items [from, end) of the block: a pointer into the block, or u16 values copied to *wide. */
const uint32_t *counts_genes(const struct counts_in *in, uint64_t from, uint64_t end, uint32_t **wide, size_t *cap);

/* Is a count of row r larger than its n_counts? And the message about it. */
int counts_wrong(const struct counts_in *in, size_t r);
_Noreturn void counts_die(const struct counts_in *in, size_t r);

struct fit_options {
	const struct cli *cli;
	int style_v2;        /* with <cls> and <eos> */
	long long min_cells; /* leave out genes found in fewer cells */
};

/* --fit: learn medians from the operands and write a vocabulary. Returns the exit status. */
int fit_main(const struct fit_options *o);

#endif

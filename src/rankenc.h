/* The parts of rankenc: rankenc.c encodes, rankenc_fit.c learns a vocabulary (--fit). */
#pragma once

#include "cli_stream.h"

struct fit_options {
	const struct cli *cli;
	int style; /* STYLE_V2: with <cls> and <eos>; STYLE_BMFM: BMFM's tokens; any other: <pad> and <mask> */
	long long min_cells; /* leave out genes found in fewer cells */
	int sums; /* write the sums of one pass instead */
	const char *after; /* ... which are those of the pass before, or NULL */
};

/* --fit: learn medians from the operands and write a vocabulary. Returns the exit status. */
int fit_main(const struct fit_options *o);

/*
 * What masks do to the partners of a masked gene [CorrMask, section 6.5, Tables 3 and 8]. All are sums over cells, so that any
 * grouping of cells adds up to the same; the ratios are in man maskgen.1.
 */
#ifndef AUDIT_H
#define AUDIT_H

#include "graph.h"

#define AUDIT_REACH 5

struct audit {
	uint64_t cells, tokens;         /* maskable tokens */
	uint64_t masked, structural;
	uint64_t runs;                  /* maximal runs of masked positions side by side */
	uint64_t partners, present, hits;       /* over masked genes: graph neighbours; those in the cell; those masked */
	uint64_t linked;                /* tokens with neighbours in the graph */
	uint64_t near;                  /* tokens with a neighbour among the AUDIT_REACH nearest tokens on either side */
	uint64_t grams, held;           /* stretches of AUDIT_REACH tokens; those with two neighbours in them */
	uint64_t pairs, close;          /* pairs of neighbours in the cell; those at most AUDIT_REACH positions apart */
};

/* Add one cell: its n tokens, and its k masked positions (ascending), `structural` of them by the graph. state [g->n] must be
 * zero, and is again after the call. */
void audit_cell(struct audit *a, const struct graph *g, uint32_t nspecial, const uint32_t *token, uint32_t n, const uint16_t *position,
		uint32_t k, uint32_t structural, uint8_t *state);
void audit_add(struct audit *a, const struct audit *b);

#endif

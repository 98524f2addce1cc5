/*
 * What the masks do to the neighbours of a masked gene in a graph [CorrMask, section 6.5, Tables 3 and 8]. The counts are sums over
 * cells, so the order and the grouping of the cells do not matter. man maskgen.1 defines the ratios.
 */
#pragma once

#include "graph/graph.h"

#define AUDIT_REACH 5

struct audit {
	uint64_t cells, tokens; /* cells; tokens that can be masked: no special ones */
	uint64_t masked, structural; /* masked tokens; those chosen by the graph */
	uint64_t runs; /* maximal runs of adjacent masked positions */
	uint64_t partners, present,
		hits; /* sums over masked genes: neighbours in the graph; those in the cell; those that are masked too */
	uint64_t hit; /* masked genes of which a neighbour is masked too */
	uint64_t linked, linked_masked; /* tokens with neighbours in the graph; those that are masked */
	uint64_t near; /* tokens with a neighbour at most AUDIT_REACH positions away */
	uint64_t grams, grams_with_pair; /* AUDIT_REACH-grams: AUDIT_REACH adjacent tokens; those that contain two neighbours */
	uint64_t pairs, close_pairs; /* pairs of neighbours in a cell; those at most AUDIT_REACH positions apart */
};

/* Add one cell of n tokens. position [k]: the masked positions, ascending; the graph chose `structural` of them.
 * state [g->n] scratch: zero before the call and after it. */
void audit_cell(struct audit *a, const struct graph *g, uint32_t nspecial, const uint32_t *token, uint32_t n, const uint16_t *position,
	uint32_t k, uint32_t structural, uint8_t *state);
/* Only tokens, masked, linked and linked_masked of it. */
void audit_rates(
	struct audit *a, const struct graph *g, uint32_t nspecial, const uint32_t *token, uint32_t n, const uint16_t *position, uint32_t k);
void audit_add(struct audit *a, const struct audit *b);

/* The masking rate of tokens with neighbours in the graph, and of all others; nan: there are none. */
double audit_rate_linked(const struct audit *a);
double audit_rate_others(const struct audit *a);

/* All ratios as a table of metric and value (malloced). A ratio with denominator 0 is nan. */
char *audit_table(const struct audit *a);

/*
 * An order of the genes of equal count. The rank value encoding sorts them by their medians, so the place of a masked gene tells its median.
 * Here the genes of each tie (encoder.h) are permuted uniformly among their own places. All other tokens stay where they are.
 */
#pragma once

#include "base/rng.h"

struct tie_order { /* zeroed before the first use */
	uint32_t *from; /* [n] which token comes to each place */

	/* private */
	uint32_t *start, *place;
	size_t from_cap, start_cap, place_cap;
};

/* Draw the order of a cell from Philox(seed, cell, epoch). tie [n]; tokens of tie 0 stay. The result is in o->from. */
void tie_order_draw(struct tie_order *o, const uint16_t *tie, uint32_t n, uint32_t seed, uint64_t cell, uint32_t epoch);
void tie_order_release(struct tie_order *o);

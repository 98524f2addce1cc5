#include "stream/ties.h"

#include "base/error.h"

void tie_order_draw(struct tie_order *o, const uint16_t *tie, uint32_t n, uint32_t seed, uint64_t cell, uint32_t epoch)
{
	struct rng r = rng_at(seed, RNG_TIES, cell, epoch);
	uint32_t most = 0;
	for (uint32_t i = 0; i < n; i++)
		most = tie[i] > most ? tie[i] : most;
	grow(o->from, o->from_cap, n);
	grow(o->place, o->place_cap, n);
	grow(o->start, o->start_cap, (size_t)most + 2);
	/* the places of tie t are place[start[t]] .. place[start[t + 1]] */
	memset(o->start, 0, ((size_t)most + 2) * sizeof *o->start);
	for (uint32_t i = 0; i < n; i++)
		o->start[tie[i] + 1]++;
	for (uint32_t t = 0; t <= most; t++)
		o->start[t + 1] += o->start[t];
	for (uint32_t i = 0; i < n; i++)
		o->place[o->start[tie[i]]++] = i;
	for (uint32_t t = most + 1; t > 0; t--)
		o->start[t] = o->start[t - 1];
	o->start[0] = 0;
	for (uint32_t i = 0; i < n; i++)
		o->from[i] = i;
	for (uint32_t t = 1; t <= most; t++) {
		const uint32_t *place = o->place + o->start[t];
		for (uint32_t i = o->start[t + 1] - o->start[t]; i > 1; i--) {
			uint32_t k = rng_below(&r, i), *a = o->from + place[i - 1], *b = o->from + place[k], was = *a;
			*a = *b;
			*b = was;
		}
	}
}

void tie_order_release(struct tie_order *o)
{
	free_all(o->from, o->start, o->place);
	*o = (struct tie_order){0};
}

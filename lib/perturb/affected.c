#include "perturb/shift.h"

#include <stdlib.h>

struct affected *affected_new(void)
{
	return xcalloc(1, sizeof(struct affected));
}

void affected_free(struct affected *a)
{
	if (!a)
		return;
	strmap_release(&a->number);
	free(a->pair);
	free(a);
}

void affected_add(struct affected *a, uint32_t set, uint32_t gene, double cosine)
{
	const uint32_t key[2] = {set, gene};
	uint32_t k = strmap_put(&a->number, (const char *)key, sizeof key, (uint32_t)a->n);
	if (k == a->n) {
		grow(a->pair, a->cap, a->n + 1);
		a->pair[a->n++] = (struct affected_pair){set, gene, 0, 0, 0};
	}
	struct affected_pair *p = &a->pair[k];
	double d = cosine - p->mean;
	p->n++;
	p->mean += d / p->n;
	p->square += d * (cosine - p->mean);
}

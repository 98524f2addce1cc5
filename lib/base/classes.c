#include "base/classes.h"

#include "base/error.h"
#include "base/sort.h"

uint32_t classes_add(struct classes *c, const char *name, size_t n)
{
	uint32_t k = strmap_put(&c->number, name, n, (uint32_t)c->n);
	if (k < c->n)
		return k;
	grow(c->name, c->cap, c->n + 1);
	c->name[c->n++] = xasprintf("%.*s", (int)n, name);
	return k;
}

void classes_release(struct classes *c)
{
	free_list(c->name, c->n);
	strmap_release(&c->number);
	*c = (struct classes){0};
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct classes *c = arg;
	return strcmp(c->name[*(const uint32_t *)a], c->name[*(const uint32_t *)b]);
}

uint32_t *classes_sorted(const struct classes *c)
{
	uint32_t *order = xmalloc(c->n * sizeof *order);
	for (size_t i = 0; i < c->n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, c->n, sizeof *order, by_name, (void *)(uintptr_t)c);
	return order;
}

uint32_t *classes_ranks(const struct classes *c)
{
	uint32_t *order = classes_sorted(c), *rank = xmalloc(c->n * sizeof *rank);
	for (size_t k = 0; k < c->n; k++)
		rank[order[k]] = (uint32_t)k;
	free(order);
	return rank;
}

void classes_settle(struct classes *c, uint32_t **v, const size_t *n, int lists)
{
	FREED uint32_t *order = classes_sorted(c), *rank = xmalloc(c->n * sizeof *rank);
	FREED char **name = xmalloc(c->n * sizeof *name);
	FREED uint8_t *used = xcalloc(c->n, 1);
	size_t count = 0;
	for (int t = 0; t < lists; t++)
		for (size_t i = 0; i < n[t]; i++)
			used[v[t][i]] = 1;
	for (size_t k = 0; k < c->n; k++)
		if (used[order[k]]) {
			rank[order[k]] = (uint32_t)count;
			name[count++] = xstrdup(c->name[order[k]]);
		}
	for (int t = 0; t < lists; t++)
		for (size_t i = 0; i < n[t]; i++)
			v[t][i] = rank[v[t][i]];
	classes_release(c);
	for (size_t k = 0; k < count; k++) {
		classes_add(c, name[k], strlen(name[k]));
		free(name[k]);
	}
}

size_t classes_cross(uint32_t *a, const uint32_t *b, size_t m, size_t n)
{
	FREED uint64_t *pair = xmalloc((n + 1) * sizeof *pair);
	size_t pairs = 0;
	for (size_t i = 0; i < n; i++)
		pair[i] = (uint64_t)a[i] * m + b[i];
	qsort(pair, n, sizeof *pair, compare_u64);
	for (size_t i = 0; i < n; i++)
		if (!i || pair[i] != pair[pairs - 1])
			pair[pairs++] = pair[i];
	for (size_t i = 0; i < n; i++)
		a[i] = (uint32_t)LEADING(pairs, k, pair[k] < (uint64_t)a[i] * m + b[i]);
	return pairs;
}

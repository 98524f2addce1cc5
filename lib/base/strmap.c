#include "base/strmap.h"

#include "base/error.h"

#include <xxhash.h>

void strmap_release(struct strmap *m)
{
	free_all(m->slot, m->value, m->length, m->bytes);
	*m = (struct strmap){0};
}

/* The slot of a key, or the empty slot for it. */
static size_t find(const struct strmap *m, const char *key, size_t n)
{
	size_t i = XXH3_64bits(key, n) & (m->cap - 1);
	while (m->slot[i] && (m->length[i] != n || memcmp(m->bytes + m->slot[i] - 1, key, n)))
		i = (i + 1) & (m->cap - 1);
	return i;
}

uint32_t strmap_get(const struct strmap *m, const char *key, size_t n)
{
	if (!m->cap)
		return STRMAP_NONE;
	size_t i = find(m, key, n);
	return m->slot[i] ? m->value[i] : STRMAP_NONE;
}

static void enlarge(struct strmap *m)
{
	struct strmap old = *m;
	m->cap = old.cap ? old.cap * 2 : 1024;
	m->slot = xcalloc(m->cap, sizeof *m->slot);
	m->value = xmalloc(m->cap * sizeof *m->value);
	m->length = xmalloc(m->cap * sizeof *m->length);
	for (size_t i = 0; i < old.cap; i++) {
		if (!old.slot[i])
			continue;
		size_t k = find(m, m->bytes + old.slot[i] - 1, old.length[i]);
		m->slot[k] = old.slot[i];
		m->value[k] = old.value[i];
		m->length[k] = old.length[i];
	}
	free_all(old.slot, old.value, old.length);
}

uint32_t strmap_put(struct strmap *m, const char *key, size_t n, uint32_t value)
{
	if (m->n >= m->cap / 2)
		enlarge(m);
	size_t i = find(m, key, n);
	if (m->slot[i])
		return m->value[i];
	grow(m->bytes, m->bytes_cap, m->used + n + 1);
	memcpy(m->bytes + m->used, key, n);
	m->bytes[m->used + n] = 0;
	m->slot[i] = m->used + 1;
	m->length[i] = (uint32_t)n;
	m->value[i] = value;
	m->used += n + 1;
	m->n++;
	return value;
}

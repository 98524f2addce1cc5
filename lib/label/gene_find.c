#include "label/gene_find.h"

#include "base/idmap.h"

#include <ctype.h>
#include <string.h>

void gene_find_init(struct gene_find *f, const struct vocab *v)
{
	*f = (struct gene_find){.v = v};
	for (size_t i = v->nspecial; i < v->n; i++)
		if (v->symbol[i][0])
			strmap_put(&f->symbol, v->symbol[i], strlen(v->symbol[i]), (uint32_t)i);
}

void gene_find_release(struct gene_find *f)
{
	strmap_release(&f->symbol);
	*f = (struct gene_find){0};
}

int64_t gene_find(const struct gene_find *f, const char *s, size_t n)
{
	char text[256];
	size_t base;
	if (n >= sizeof text)
		return -1;
	if (ensembl_id(s, n, &base))
		n = base;
	memcpy(text, s, n);
	text[n] = 0;
	int64_t row = vocab_find(f->v, text);
	if (row >= (int64_t)f->v->nspecial)
		return row;
	uint32_t by_symbol = strmap_get(&f->symbol, text, n);
	for (size_t i = 0; by_symbol == STRMAP_NONE && i < n; i++)
		text[i] = (char)toupper((unsigned char)text[i]);
	if (by_symbol == STRMAP_NONE)
		by_symbol = strmap_get(&f->symbol, text, n);
	return by_symbol == STRMAP_NONE ? -1 : (int64_t)by_symbol;
}

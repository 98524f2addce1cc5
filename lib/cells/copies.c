#include "cells/copies.h"

#include <inttypes.h>

static uint32_t category_of(const struct column_spec *c, const char *name)
{
	uint32_t i = 0;
	while (i < c->ncategory && strcmp(c->category[i], name))
		i++;
	return i;
}

int copies_refuse(const struct block *b, const char *name, struct error *e)
{
	int kind = header_find(b->header, "perturbation"), cell = header_find(b->header, "cell");
	const struct column_spec *c = kind < 0 ? NULL : &b->header->col[kind];
	if (!c || c->type != CATEGORICAL || c->shape != SCALAR || category_of(c, "truncated") == c->ncategory)
		return 0;
	uint32_t original = category_of(c, "original");
	const uint32_t *code = b->col[kind].data;
	for (size_t i = 0; original < c->ncategory && i < b->rows; i++) {
		if (code[i] == original || code[i] == MISSING_CODE)
			continue;
		uint64_t of = cell < 0 || b->header->col[cell].type != U64 ? i : ((const uint64_t *)b->col[cell].data)[i];
		return error_set(e,
			"%s: cell %" PRIu64
			": a perturbed copy of scperturb, which would count as a cell: leave copies out with scsample --where "
			"perturbation=original",
			name, of);
	}
	return 0;
}

#include "cells/copies.h"

const char *const base_row_name[] = {[BASE_ORIGINAL] = "original", [BASE_TRUNCATED] = "truncated"};
EVERY_ROW(base_row_name, BASE_ROWS);

int base_row_find(const char *category)
{
	int k = 0;
	while (k < BASE_ROWS && strcmp(category, base_row_name[k]))
		k++;
	return k;
}

int copies_refuse(const struct block *b, const char *name, struct error *e)
{
	int kind = header_find(b->header, "perturbation"), cell = header_find(b->header, "cell");
	const struct column_spec *c = kind < 0 ? NULL : &b->header->col[kind];
	uint32_t base[BASE_ROWS + 1] = {[BASE_ORIGINAL] = MISSING_CODE, [BASE_TRUNCATED] = MISSING_CODE};
	if (!c || c->type != CATEGORICAL || c->shape != SCALAR)
		return 0;
	for (uint32_t k = 0; k < c->ncategory; k++)
		base[base_row_find(c->category[k])] = k;
	const uint32_t *code = b->col[kind].data;
	for (size_t i = 0; base[BASE_ORIGINAL] != MISSING_CODE && base[BASE_TRUNCATED] != MISSING_CODE && i < b->rows; i++) {
		if (code[i] == base[BASE_ORIGINAL] || code[i] == MISSING_CODE)
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

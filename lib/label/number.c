#include "label/number.h"

int numbers_init(struct numbers *n, const struct header *h, const char *name, const char *file, struct error *e)
{
	n->col = header_need(h, name, COLUMN_TYPES, SCALAR, file, e);
	if (n->col < 0)
		return -1;
	enum column_type t = h->col[n->col].type;
	if (!type_is_number(t))
		return error_set(e, "%s: column '%s' is %s, expected numbers", file, name, type_name(t));
	n->missing = header_missing(h, name);
	return 0;
}

double numbers_at(const struct numbers *n, const struct block *b, size_t row)
{
	if (n->missing >= 0 && ((const uint8_t *)b->col[n->missing].data)[row])
		return NAN;
	return block_number(b, n->col, row);
}

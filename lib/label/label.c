#include "label/label.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int labels_init(struct labels *l, const struct header *h, const char *name, struct classes *c, const char *file, struct error *e)
{
	*l = (struct labels){.classes = c};
	l->col = header_need(h, name, COLUMN_TYPES, SCALAR, file, e);
	if (l->col < 0)
		return -1;
	l->spec = &h->col[l->col];
	if (type_kind(l->spec->type)->values == VALUES_REAL)
		return error_set(e, "%s: column '%s' is %s; classes come from categorical, text or whole-number columns", file, name,
			type_name(l->spec->type));
	l->missing = header_missing(h, name);
	if (l->spec->type == CATEGORICAL) {
		l->known = xmalloc(l->spec->ncategory * sizeof *l->known);
		memset(l->known, 0xFF, l->spec->ncategory * sizeof *l->known);
	}
	return 0;
}

void labels_release(struct labels *l)
{
	free(l->known);
	*l = (struct labels){0};
}

uint32_t labels_at(struct labels *l, const struct block *b, size_t row)
{
	if (l->missing >= 0 && ((const uint8_t *)b->col[l->missing].data)[row])
		return MISSING_CODE;
	if (l->spec->type == CATEGORICAL) {
		uint32_t code = ((const uint32_t *)b->col[l->col].data)[row];
		if (code == MISSING_CODE || !l->spec->category[code][0])
			return MISSING_CODE;
		if (l->known[code] == MISSING_CODE)
			l->known[code] = classes_add(l->classes, l->spec->category[code], strlen(l->spec->category[code]));
		return l->known[code];
	}
	if (l->spec->type == STR) {
		size_t n;
		const char *s = block_str(b, l->col, row, &n);
		const char *nul = n ? memchr(s, 0, n) : NULL; /* a name is a C string, so a NUL ends it */
		n = nul ? (size_t)(nul - s) : n;
		return n ? classes_add(l->classes, s, n) : MISSING_CODE;
	}
	char text[32];
	uint64_t whole = block_whole(b, l->col, row);
	int n = type_kind(l->spec->type)->values == VALUES_SIGNED ? snprintf(text, sizeof text, "%" PRId64, (int64_t)whole)
								  : snprintf(text, sizeof text, "%" PRIu64, whole);
	return classes_add(l->classes, text, (size_t)n);
}

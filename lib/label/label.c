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
	if (l->spec->type == F32 || l->spec->type == F64)
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

static int whole_number(const struct block *b, int col, size_t row, char *text, size_t size)
{
	const void *p = b->col[col].data;
	switch (b->header->col[col].type) {
	case U8:
		return snprintf(text, size, "%u", ((const uint8_t *)p)[row]);
	case U16:
		return snprintf(text, size, "%u", ((const uint16_t *)p)[row]);
	case U32:
		return snprintf(text, size, "%" PRIu32, ((const uint32_t *)p)[row]);
	case U64:
		return snprintf(text, size, "%" PRIu64, ((const uint64_t *)p)[row]);
	case I8:
		return snprintf(text, size, "%d", ((const int8_t *)p)[row]);
	case I16:
		return snprintf(text, size, "%d", ((const int16_t *)p)[row]);
	case I32:
		return snprintf(text, size, "%" PRId32, ((const int32_t *)p)[row]);
	default:
		return snprintf(text, size, "%" PRId64, ((const int64_t *)p)[row]);
	}
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
	int n = whole_number(b, l->col, row, text, sizeof text);
	return classes_add(l->classes, text, (size_t)n);
}

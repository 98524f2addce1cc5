#include "base/texts.h"

void texts_release(struct texts *t)
{
	free_all(t->bytes, t->offset);
	*t = (struct texts){0};
}

void texts_clear(struct texts *t)
{
	grow(t->offset, t->offset_cap, 1);
	t->offset[0] = 0;
	t->n = 0;
}

void texts_push(struct texts *t, const char *s, size_t n)
{
	if (!t->offset)
		texts_clear(t);
	uint64_t at = t->offset[t->n];
	grow(t->bytes, t->bytes_cap, at + n + 1);
	grow(t->offset, t->offset_cap, t->n + 2);
	memcpy(t->bytes + at, s, n);
	t->offset[++t->n] = at + n;
}

const char *texts_at(const struct texts *t, size_t i, size_t *n)
{
	*n = t->offset[i + 1] - t->offset[i];
	return t->bytes + t->offset[i];
}

int texts_is(const struct texts *t, size_t i, const char *s)
{
	size_t n;
	const char *text = texts_at(t, i, &n);
	return n == strlen(s) && !memcmp(text, s, n);
}

char *texts_dup(const struct texts *t, size_t i)
{
	size_t n;
	const char *text = texts_at(t, i, &n);
	return xstrndup(text, n);
}

size_t text_character(const char *s, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* of 2, 3 and 4 bytes: a shorter form would do for less */
	const unsigned char *p = (const unsigned char *)s;
	size_t size = !n ? 0 : *p < 0x80 ? 1 : (*p & 0xe0) == 0xc0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : (*p & 0xf8) == 0xf0 ? 4 : 0;
	if (size < 2 || size > n)
		return size == 1;
	uint32_t point = *p & (0x7fu >> size);
	for (size_t i = 1; i < size; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (p[i] & 0x3f);
	}
	return point < least[size] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0 : size;
}

int text_is_utf8(const char *s, size_t n)
{
	while (n) {
		size_t size = text_character(s, n);
		if (!size)
			return 0;
		s += size;
		n -= size;
	}
	return 1;
}

int text_among(const char *s, const char *const *list)
{
	while (*list && strcmp(s, *list))
		list++;
	return *list != NULL;
}

size_t texts_double(double x, char buf[32])
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(buf, 32, "%.*g", digits, x);
		if (strtod(buf, NULL) == x || isnan(x))
			break;
	}
	return strlen(buf);
}

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

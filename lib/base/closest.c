#include "base/closest.h"

#include "base/error.h"

enum { LONGEST = 64 };

/* Edits that make a into b, each at most LONGEST long. */
static size_t edits(const char *a, size_t n, const char *b, size_t m)
{
	size_t row[3][LONGEST + 1]; /* of the table of prefixes: this row and the two before */
	for (size_t j = 0; j <= m; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = row[i % 3];
		const size_t *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < d)
				d = last[j] + 1;
			if (now[j - 1] + 1 < d)
				d = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < d)
				d = before[j - 2] + 1;
			now[j] = d;
		}
	}
	return row[n % 3][m];
}

struct closest closest_to(const char *word, size_t n)
{
	return (struct closest){.word = word, .length = n};
}

void closest_try(struct closest *c, const char *known, size_t n)
{
	if (!n || !c->length || n > LONGEST || c->length > LONGEST)
		return;
	size_t d = edits(c->word, c->length, known, n);
	if (c->length >= 3 && c->length < n && memcmp(c->word, known, c->length) == 0)
		d = 1;
	if (3 * d > (n > 3 ? n : 3) || (c->best && d >= c->distance))
		return;
	c->best = known;
	c->best_length = n;
	c->distance = d;
}

void closest_try_choices(struct closest *c, const char *choices)
{
	for (const char *w = choices;; w++) {
		size_t n = strcspn(w, "|");
		closest_try(c, w, n);
		w += n;
		if (!*w)
			return;
	}
}

char *closest_question(const struct closest *c, const char *prefix)
{
	return c->best ? xasprintf(" (did you mean %s%.*s?)", prefix, (int)c->best_length, c->best) : xstrdup("");
}

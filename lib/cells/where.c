#include "cells/where.h"

#include <strings.h>

#define OPERATORS "=!<>"

static const struct {
	const char *text;
	int numbers; /* compares numbers */
} ops[] = {
	[WHERE_EQ] = {"=", 0},
	[WHERE_NE] = {"!=", 0},
	[WHERE_LT] = {"<", 1},
	[WHERE_LE] = {"<=", 1},
	[WHERE_GT] = {">", 1},
	[WHERE_GE] = {">=", 1},
};

/* Read the condition at its operator at text[n..]. 0: there is none. */
static int split(struct condition *c, const char *text, size_t n)
{
	const char *p = text + n;
	if (!n || !*p || (*p == '!' && p[1] != '='))
		return 0;
	int two = p[1] == '=';
	c->op = *p == '=' ? WHERE_EQ : *p == '!' ? WHERE_NE : *p == '<' ? (two ? WHERE_LE : WHERE_LT) : (two ? WHERE_GE : WHERE_GT);
	p += 1 + two;
	free_all(c->column, c->value);
	c->column = xstrndup(text, n);
	c->value = xstrdup(p[strspn(p, " ")] || ops[c->op].numbers ? p : "NA"); /* no value, or NA: missing */
	return 1;
}

int where_add(struct where *w, const char *text, struct error *e)
{
	struct condition c = {0};
	if (!split(&c, text, strcspn(text, OPERATORS)))
		return error_set(e, "'%s' is not a condition (COL=VALUE, COL!=VALUE, COL<NUMBER, COL<=, COL>, COL>=)", text);
	c.text = xstrdup(text);
	w->c = xrealloc(w->c, w->n + 1, sizeof *w->c);
	w->c[w->n++] = c;
	return 0;
}

static void drop_blanks(char *s)
{
	size_t start = strspn(s, " "), n = strlen(s);
	while (n > start && s[n - 1] == ' ')
		n--;
	memmove(s, s + start, n - start);
	s[n - start] = 0;
}

/* The same, if a column of h stands before the operator. If none has the name as it is written, it is COL = VALUE without the blanks. */
static int split_column(struct condition *c, const char *text, size_t n, const struct header *h)
{
	if (!split(c, text, n))
		return 0;
	if (header_find(h, c->column) < 0) {
		drop_blanks(c->column);
		drop_blanks(c->value);
	}
	return header_find(h, c->column) >= 0;
}

/* A column can have = ! < > in its name: the operator is the one that stands after a column of h. */
static int choose_column(struct condition *c, const struct header *h, const char *file, struct error *e)
{
	struct condition one = {0};
	char *first = NULL;
	int bad = 0;
	for (size_t n = strcspn(c->text, OPERATORS); c->text[n] && !bad; n += 1 + strcspn(c->text + n + 1, OPERATORS)) {
		if (!split_column(&one, c->text, n, h))
			continue;
		if (first)
			bad = error_set(e, "%s: '%s' is a condition on column '%s' or on '%s'", file, c->text, first, one.column);
		else
			split_column(c, c->text, n, h);
		first = first ? first : xstrdup(one.column);
	}
	free_all(first, one.column, one.value);
	return bad;
}

void where_release(struct where *w)
{
	for (size_t i = 0; i < w->n; i++)
		free_all(w->c[i].text, w->c[i].column, w->c[i].value, w->c[i].holds);
	free(w->c);
	*w = (struct where){0};
}

/* The whole text as a number, NaN if it is not one. */
static double parse_number(const char *s)
{
	char *end;
	double v = strtod(s, &end);
	return *s && !*end ? v : NAN;
}

static int compare(const struct condition *c, double v)
{
	switch (c->op) {
	case WHERE_EQ:
		return v == c->number;
	case WHERE_NE:
		return v != c->number;
	case WHERE_LT:
		return v < c->number;
	case WHERE_LE:
		return v <= c->number;
	case WHERE_GT:
		return v > c->number;
	case WHERE_GE:
		return v >= c->number;
	}
	return 0;
}

static int text_holds(const struct condition *c, const char *s, size_t n)
{
	if (c->op == WHERE_EQ || c->op == WHERE_NE) {
		int same = strlen(c->value) == n && memcmp(s, c->value, n) == 0;
		return same == (c->op == WHERE_EQ);
	}
	char buf[64];
	if (!n || n >= sizeof buf)
		return 0;
	memcpy(buf, s, n);
	buf[n] = 0;
	return compare(c, parse_number(buf));
}

static int means_missing(const struct condition *c)
{
	return strcmp(c->value, "NA") == 0;
}

static int missing_holds(const struct condition *c)
{
	return c->op == WHERE_EQ ? means_missing(c) : c->op == WHERE_NE && !means_missing(c);
}

static int bind_categories(struct condition *c, const struct column_spec *s, const char *file, struct error *e)
{
	int numbers = 0;
	c->holds = xcalloc(s->ncategory, 1);
	for (size_t k = 0; k < s->ncategory; k++) {
		numbers |= !isnan(parse_number(s->category[k]));
		c->known |= strcmp(s->category[k], c->value) == 0;
		c->holds[k] = (uint8_t)(s->category[k][0] ? text_holds(c, s->category[k], strlen(s->category[k])) : missing_holds(c));
	}
	if (ops[c->op].numbers && !numbers && s->ncategory)
		return error_set(e, "%s: column '%s' holds text; %s compares numbers", file, s->name, ops[c->op].text);
	return 0;
}

int where_bind(struct where *w, const struct header *h, const char *file, struct error *e)
{
	for (size_t i = 0; i < w->n; i++) {
		struct condition *c = &w->c[i];
		if (choose_column(c, h, file, e))
			return -1;
		c->first = (int)i;
		for (size_t k = 0; k < i && c->op == WHERE_EQ && c->first == (int)i; k++)
			if (w->c[k].op == WHERE_EQ && strcmp(w->c[k].column, c->column) == 0)
				c->first = (int)k;
		c->col = header_need(h, c->column, COLUMN_TYPES, SCALAR, file, e);
		if (c->col < 0)
			return -1;
		const struct column_spec *s = &h->col[c->col];
		c->missing = header_missing(h, c->column);
		c->number = parse_number(c->value);
		if (s->type == U8 && (strcasecmp(c->value, "true") == 0 || strcasecmp(c->value, "false") == 0))
			c->number = strcasecmp(c->value, "true") == 0;
		int text = !type_is_number(s->type);
		c->known = ops[c->op].numbers || means_missing(c);
		if (isnan(c->number) && (ops[c->op].numbers || (!text && !means_missing(c))))
			return error_set(
				e, "%s: '%s' is not a number, and %s%s compares numbers", file, c->value, c->column, ops[c->op].text);
		if (s->type == CATEGORICAL && bind_categories(c, s, file, e))
			return -1;
		c->known |= s->type != CATEGORICAL;
	}
	return 0;
}

static int row_holds(const struct condition *c, const struct block *b, size_t row)
{
	if (c->missing >= 0 && ((const uint8_t *)b->col[c->missing].data)[row])
		return missing_holds(c);
	enum column_type t = b->header->col[c->col].type;
	if (t == CATEGORICAL) {
		uint32_t code = ((const uint32_t *)b->col[c->col].data)[row];
		return code == MISSING_CODE ? missing_holds(c) : c->holds[code];
	}
	if (t == STR) {
		size_t n;
		const char *s = block_str(b, c->col, row, &n);
		return n ? text_holds(c, s, n) : missing_holds(c);
	}
	double v = block_number(b, c->col, row);
	if (isnan(v))
		return missing_holds(c);
	return means_missing(c) ? c->op == WHERE_NE : compare(c, v);
}

void where_rows(const struct where *w, const struct block *b, uint8_t *keep)
{
	for (size_t i = 0; i < w->n; i++) {
		if (w->c[i].first != (int)i)
			continue;
		for (size_t row = 0; row < b->rows; row++) {
			int ok = row_holds(&w->c[i], b, row);
			for (size_t k = i + 1; k < w->n && !ok; k++)
				ok = w->c[k].first == (int)i && row_holds(&w->c[k], b, row);
			keep[row] &= (uint8_t)ok;
		}
	}
}

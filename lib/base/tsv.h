/*
 * Text tables, read line by line: fields between tabs, or between commas where tsv_first finds them; plain or gzip. A byte order mark at the
 * start is passed over.
 *
 *     struct tsv t;
 *     if (tsv_open(&t, path, e))
 *             return -1;
 *     while ((got = tsv_next(&t, e)) > 0)
 *             if (t.n != 2)
 *                     got = tsv_error(&t, e, "found %zu fields, expected 2", t.n);
 *     tsv_close(&t);
 */
#pragma once

#include "base/error.h"

#define TSV_LINE_MAX 65535 /* bytes of the longest line; longer lines are an error */

struct tsv {
	char *path; /* as it was opened */
	size_t line; /* number of the current line, from 1 */
	char **field; /* [n] the fields of the current line; the caller may change their bytes */
	size_t n; /* at least 1: an empty line has one empty field */
	int commas; /* fields are separated by commas: see tsv_first */

	/* private */
	char *text;
	int quoted;
	void *file;
	size_t cap;
};

/* -1 with e set when the file cannot be opened; t is then closed. */
int tsv_open(struct tsv *t, const char *path, struct error *e);
/* The same for a file that is open, called path in messages; t takes its descriptor. */
int tsv_open_fd(struct tsv *t, int fd, const char *path, struct error *e);

/* The next line, without its end (LF or CRLF). 1 a line, 0 the end of the file, -1 with e set. */
int tsv_next(struct tsv *t, struct error *e);

/* tsv_next for the first line of a table that a program for statistics may have written. If it has a comma and no tab, the fields of this
 * and all other lines lie between commas; one in quotes can contain commas, and "" for a quote. Quotes go in a table with tabs too, where a
 * field begins and ends with them. */
int tsv_first(struct tsv *t, struct error *e);

/* The same, but the whole line is field[0], with its tabs. */
int tsv_next_whole(struct tsv *t, struct error *e);

/* Index of the field of the current line that is this text, or -1: where a column is, by the line of column names. */
int tsv_find(const struct tsv *t, const char *text);

/* "PATH: line N: message" into e. Always returns -1. */
int tsv_error(const struct tsv *t, struct error *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A number of the current line, NaN if it is missing: empty, NA or nan. name: its column. -1 with e set if the text is anything else. */
int tsv_number(const struct tsv *t, const char *name, const char *text, double *value, struct error *e);

void tsv_close(struct tsv *t); /* accepts a zeroed struct */

/*
 * How the character at the beginning of s, of n bytes that are left, is written in a field: \t \n \r \\, and \x1b (two digits a byte) for the other
 * characters that control a terminal, U+0000 to U+001F and U+007F to U+009F. NULL: as it is. *eaten: how many bytes it has.
 */
#define TSV_ESCAPE 9
const char *tsv_escape(const char *s, size_t n, char text[TSV_ESCAPE], size_t *eaten);
char *tsv_escaped(const char *s); /* a whole text; malloced */
/* tsv_escape would give NULL for any character that begins with this byte, which is the common case. */
static inline int tsv_plain(char byte)
{
	unsigned char c = (unsigned char)byte;
	return c >= 0x20 && c != '\\' && c != 0x7f && c != 0xc2;
}

#include "base/tsv.h"

#include "base/decimal.h"
#include "base/magic.h"
#include "base/texts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>

int tsv_open(struct tsv *t, const char *path, struct error *e)
{
	*t = (struct tsv){0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? error_set(e, "%s: %s", path, strerror(errno)) : tsv_open_fd(t, fd, path, e);
}

int tsv_open_fd(struct tsv *t, int fd, const char *path, struct error *e)
{
	*t = (struct tsv){.file = gzdopen(fd, "rb")};
	if (!t->file) {
		close(fd);
		return error_set(e, "%s: %s", path, strerror(ENOMEM));
	}
	gzbuffer(t->file, 1 << 18);
	t->path = xstrdup(path);
	t->text = xmalloc(TSV_LINE_MAX + 2);
	return 0;
}

void tsv_close(struct tsv *t)
{
	if (t->file)
		gzclose(t->file);
	free_all(t->path, t->text, t->field);
	*t = (struct tsv){0};
}

int tsv_error(const struct tsv *t, struct error *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (e)
		vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return error_prefix(e, "%s: line %zu", t->path, t->line);
}

/* Fields that may be in quotes. -1: a quote that is not closed on this line. */
static int split_quoted(struct tsv *t)
{
	char *in = t->text, *out = t->text, separator = t->commas ? ',' : '\t';
	t->n = 0;
	for (;;) {
		grow(t->field, t->cap, t->n + 1);
		t->field[t->n++] = out;
		if (*in == '"') {
			for (in++; *in && (*in != '"' || in[1] == '"'); *out++ = *in++)
				in += *in == '"';
			if (!*in++)
				return -1;
		}
		while (*in && *in != separator)
			*out++ = *in++;
		int last = !*in++;
		*out++ = 0;
		if (last)
			return 0;
	}
}

static void split(struct tsv *t)
{
	char *start = t->text;
	t->n = 0;
	do {
		char *tab = strchr(start, '\t');
		grow(t->field, t->cap, t->n + 1);
		t->field[t->n++] = start;
		if (tab)
			*tab = 0;
		start = tab ? tab + 1 : NULL;
	} while (start);
}

int tsv_next_whole(struct tsv *t, struct error *e)
{
	z_off_t from = gztell(t->file);
	if (!gzgets(t->file, t->text, TSV_LINE_MAX + 2)) {
		int code;
		const char *why = gzerror(t->file, &code);
		if (code == Z_OK || code == Z_STREAM_END)
			return 0;
		if (code == Z_ERRNO)
			return error_set(e, "%s: %s", t->path, strerror(errno));
		const char *colon = strstr(why, ": "); /* after a name that zlib made of the descriptor */
		return error_set(e, "%s: damaged gzip data (%s), expected a whole file", t->path, colon ? colon + 2 : why);
	}
	t->line++;
	static const char bom[] = "\xef\xbb\xbf"; /* the mark that spreadsheets write before UTF-8 */
	size_t n = strlen(t->text), bytes = (size_t)(gztell(t->file) - from);
	size_t mark = !from && strncmp(t->text, bom, 3) == 0 ? 3 : 0;
	const struct magic *is = from ? NULL : magic_find(t->text + mark, bytes - mark);
	if (is && !is->text)
		return error_set(e, "%s: this is %s, expected text", t->path, is->name);
	if (bytes != n)
		return tsv_error(t, e, "a byte of value 0: the file is damaged, or not plain text (UTF-16?)");
	if (n > TSV_LINE_MAX && t->text[n - 1] != '\n')
		return tsv_error(t, e, "longer than %d bytes", TSV_LINE_MAX);
	if (mark && strncmp(t->text + mark, bom, 3) == 0)
		return tsv_error(t, e, "two byte order marks, expected at most one");
	if (!text_is_utf8(t->text, n))
		return tsv_error(t, e, "text that is not UTF-8 (Latin-1?): save the table as UTF-8");
	if (mark)
		memmove(t->text, t->text + mark, (n -= mark) + 1);
	while (n && (t->text[n - 1] == '\n' || t->text[n - 1] == '\r'))
		t->text[--n] = 0;
	grow(t->field, t->cap, 1);
	t->field[0] = t->text;
	t->n = 1;
	return 1;
}

int tsv_next(struct tsv *t, struct error *e)
{
	int got = tsv_next_whole(t, e);
	if (got > 0 && !t->quoted)
		split(t);
	else if (got > 0 && split_quoted(t))
		return tsv_error(t, e, "a quote that is not closed");
	return got;
}

int tsv_first(struct tsv *t, struct error *e)
{
	int got = tsv_next_whole(t, e);
	if (got < 1)
		return got;
	t->quoted = 1;
	t->commas = strchr(t->text, ',') && !strchr(t->text, '\t');
	return split_quoted(t) ? tsv_error(t, e, "a quote that is not closed") : 1;
}

int tsv_find(const struct tsv *t, const char *text)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->field[i], text) == 0)
			return (int)i;
	return -1;
}

int tsv_number(const struct tsv *t, const char *name, const char *text, double *value, struct error *e)
{
	char *end;
	*value = NAN;
	if (!*text || strcmp(text, "NA") == 0 || strcasecmp(text, "nan") == 0)
		return 0;
	*value = decimal_read(text, &end);
	if (end == text || *end || !isfinite(*value))
		return tsv_error(t, e, "%s is '%.60s', expected a finite number, or NA", name, text);
	return 0;
}

const char *tsv_escape(const char *s, size_t n, char text[TSV_ESCAPE], size_t *eaten)
{
	static const char plain[] = "\t\n\r\\", letter[] = "tnr\\";
	const unsigned char *c = (const unsigned char *)s;
	const char *at = *c ? strchr(plain, *c) : NULL;
	*eaten = 1;
	if (at)
		snprintf(text, TSV_ESCAPE, "\\%c", letter[at - plain]);
	else if (*c < 0x20 || *c == 0x7f)
		snprintf(text, TSV_ESCAPE, "\\x%02x", *c);
	else if (*c == 0xc2 && n > 1 && c[1] >= 0x80 && c[1] < 0xa0)
		snprintf(text, TSV_ESCAPE, "\\x%02x\\x%02x", *c, c[(*eaten)++]);
	else
		return NULL;
	return text;
}

char *tsv_escaped(const char *s)
{
	size_t n = strlen(s), used = 0, eaten;
	char *out = xmalloc(4 * n + 1), part[TSV_ESCAPE];
	for (size_t i = 0; i < n; i += eaten) {
		const char *as = tsv_escape(s + i, n - i, part, &eaten);
		used += (size_t)sprintf(out + used, "%.*s", as ? TSV_ESCAPE : (int)eaten, as ? as : s + i);
	}
	out[used] = 0;
	return out;
}

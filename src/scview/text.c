/* Text output. */
#include "scview.h"

#include "base/tsv.h"

#include <stdarg.h>

static char *buffer;
static size_t used, room;

void text_flush(void)
{
	must(outfile_write(&view_set.out, buffer, used, &failure));
	used = 0;
}

void text_open(void)
{
	must(outfile_open(&view_set.out, view_set.output, 0, &failure));
}

void text_commit(void)
{
	text_flush();
	must(outfile_commit(&view_set.out, &failure));
}

void text_put(const char *s, size_t n)
{
	if (used + n > 1 << 16)
		text_flush();
	buffer = grow_bytes(buffer, &room, used + n, 1);
	memcpy(buffer + used, s, n);
	used += n;
}

void text_puts(const char *s)
{
	text_put(s, strlen(s));
}

void text_putf(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	text_put(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void text_field(const char *s, size_t n)
{
	size_t done = 0, eaten;
	char part[TSV_ESCAPE];
	for (size_t i = 0; i < n; i += eaten) {
		const char *as = tsv_plain(s[i]) ? (eaten = 1, NULL) : tsv_escape(s + i, n - i, part, &eaten);
		if (!as)
			continue;
		text_put(s + done, i - done);
		text_puts(as);
		done = i + eaten;
	}
	text_put(s + done, n - done);
}

void text_real(double v, int single)
{
	char s[DECIMAL];
	text_puts(isnan(v) ? "NA" : single ? decimal_print_float(s, (float)v) : decimal_print(s, v));
}

void text_uint(uint64_t v)
{
	char s[20];
	size_t n = 0;
	do
		s[sizeof s - ++n] = (char)('0' + v % 10);
	while (v /= 10);
	text_put(s + sizeof s - n, n);
}

void text_int(int64_t v)
{
	if (v < 0)
		text_put("-", 1);
	text_uint(v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

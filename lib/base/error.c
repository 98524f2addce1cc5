#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

/* A message that is too long has the name of a file in it: its start and its end say more than the start alone. */
static void shorten(char *msg, size_t size, const char *fmt, va_list ap)
{
	static const char gap[] = " ... ";
	char *text;
	int n = vasprintf(&text, fmt, ap);
	if (n < 0)
		return;
	size_t half = (size - sizeof gap) / 2;
	snprintf(msg, size, "%.*s%s%s", (int)half, text, gap, text + (size_t)n - half);
	free(text);
}

int error_set(struct error *e, const char *fmt, ...)
{
	if (e) {
		va_list ap, again;
		va_start(ap, fmt);
		va_copy(again, ap);
		if (vsnprintf(e->msg, sizeof e->msg, fmt, ap) >= (int)sizeof e->msg)
			shorten(e->msg, sizeof e->msg, fmt, again);
		va_end(again);
		va_end(ap);
	}
	return -1;
}

int error_prefix(struct error *e, const char *fmt, ...)
{
	if (e) {
		char old[sizeof e->msg];
		memcpy(old, e->msg, sizeof old);
		va_list ap;
		va_start(ap, fmt);
		int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
		va_end(ap);
		if (n >= 0 && (size_t)n < sizeof e->msg)
			snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %.*s", (int)(sizeof e->msg - 3) - n, old);
	}
	return -1;
}

void (*memory_out)(void);

/* Only calls that are safe in any thread: the others may be at work, and exit() would run their libraries' destructors beside them. */
void *xchecked(void *p)
{
	if (!p) {
		dprintf(STDERR_FILENO, "%s: out of memory\n", program_invocation_short_name);
		if (memory_out)
			memory_out();
		_exit(1);
	}
	return p;
}

/* LAPACKE calls this, in place of its own function, when it has no memory (-1010, -1011). Some of its callers could not tell. */
void LAPACKE_xerbla(const char *name, int status);
void LAPACKE_xerbla(const char *name, int status)
{
	if (status == -1010 || status == -1011)
		xchecked(NULL);
	dprintf(STDERR_FILENO, "%s: argument %d is wrong\n", name, -status);
}

void *xmalloc(size_t size)
{
	return xchecked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return xchecked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	return xchecked(reallocarray(p, n ? n : 1, size ? size : 1));
}

void *xlarge(size_t n, size_t size)
{
	const size_t page = 2u << 20;
	size_t bytes, align;
	if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - 2 * page)
		return xchecked(NULL);
	align = bytes < page ? 64 : page;
	bytes = (bytes + align) / align * align;
	void *p = xchecked(aligned_alloc(align, bytes));
	if (align == page)
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

char *xstrdup(const char *s)
{
	return xchecked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return xchecked(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
	char *s;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return xchecked(n < 0 ? NULL : s);
}

void xappend(char **text, const char *fmt, ...)
{
	char *more;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&more, fmt, ap);
	va_end(ap);
	xchecked(n < 0 ? NULL : more);
	char *all = *text ? xasprintf("%s%s", *text, more) : xstrdup(more);
	free_all(more, *text);
	*text = all;
}

void free_each(void *const *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(p[i]);
}

void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

char **xstrdup_list(char *const *list, size_t n)
{
	char **copy = xmalloc(n * sizeof *copy);
	for (size_t i = 0; i < n; i++)
		copy[i] = xstrdup(list[i]);
	return copy;
}

FILE *xmemopen(char **text, size_t *size)
{
	return xchecked(open_memstream(text, size));
}

void xmemclose(FILE *f, char *const *text)
{
	int bad = ferror(f);
	bad |= fclose(f);
	xchecked(bad ? NULL : *text); /* glibc's fclose succeeds without memory for the text */
}

void *grow_bytes(void *p, size_t *cap, size_t n, size_t size)
{
	if (n <= *cap)
		return p;
	size_t want = *cap > SIZE_MAX / 2 ? SIZE_MAX : *cap * 2;
	if (want < n)
		want = n;
	if (want < 16)
		want = 16;
	p = xrealloc(p, want, size);
	*cap = want;
	return p;
}

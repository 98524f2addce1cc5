/*
 * Errors and memory. Library calls return -1 and fill a struct error of the caller; the tools print it and exit. xmalloc and the other
 * allocation functions end the program when memory is out. Brings the headers of C that nearly every file needs.
 */
#pragma once

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below a table that is declared with []: each member of the enum whose last one is n has its row. */
#define EVERY_ROW(table, n) _Static_assert(sizeof(table) / sizeof *(table) == (n), "each member of the enum has its row in " #table)

struct error {
	char msg[1024];
};

/* Fill e->msg (e may be NULL). Always returns -1, so a call can end `return error_set(e, ...)`. */
int error_set(struct error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "prefix: " before the message already in e. Always returns -1. */
int error_prefix(struct error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifdef ANALYZE /* make analyze: the analysers see one file at a time, and would try a return value of 0 */
#define error_set(...) (error_set(__VA_ARGS__), -1)
#define error_prefix(...) (error_prefix(__VA_ARGS__), -1)
#endif

/* Called before that, if it is not NULL: file.c removes temporary files. */
extern void (*memory_out)(void);
/* These end the program with a message when memory is out.
 * n * size is checked for overflow; a size of 0 gives a valid pointer. All are freed with free(). */
void *xmalloc(size_t size) __attribute__((returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((returns_nonnull));
void *xrealloc(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
/* n * size bytes, not zeroed, at a multiple of 64; large ones on huge pages, which makes address translation faster. */
void *xlarge(size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
void *xchecked(void *p) __attribute__((returns_nonnull)); /* p, which a library allocated */
/*
 * FREED double *z = xmalloc(n), *y = NULL;                 free them at the end of their block: at each return, break or continue, and behind the
 * RELEASED(header_release) struct header h = {0};          last statement; call header_release(&h) there. Nothing else frees these variables.
 */
#define FREED __attribute__((cleanup(free_at)))
#define RELEASED(by) __attribute__((cleanup(by)))
/* For FREED: the address of a pointer. Inline, so that the variable can be in a register. */
static inline __attribute__((always_inline)) void free_at(void *pointer)
{
	void *p;
	memcpy(&p, pointer, sizeof p);
	free(p);
}
/* free_all(a, b): frees each; NULL is none. */
#define free_all(...) free_each((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
void free_each(void *const *p, size_t n);
/* Put more text behind a malloced one; NULL is "". Free n texts and their list; copy them. */
void xappend(char **text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void free_list(char **list, size_t n);
char **xstrdup_list(char *const *list, size_t n) __attribute__((returns_nonnull));

#ifdef ANALYZE /* clang 14 and GCC 12 ignore returns_nonnull in their analysis */
#define NEVER_NULL(call) \
	__extension__({ \
		__auto_type x_ = (call); \
		if (!x_) \
			__builtin_unreachable(); \
		x_; \
	})
#define xmalloc(size) NEVER_NULL(xmalloc(size))
#define xcalloc(n, size) NEVER_NULL(xcalloc(n, size))
#define xrealloc(p, n, size) NEVER_NULL(xrealloc(p, n, size))
#define xlarge(n, size) NEVER_NULL(xlarge(n, size))
#define xstrdup(s) NEVER_NULL(xstrdup(s))
#define xstrndup(s, n) NEVER_NULL(xstrndup(s, n))
#define xasprintf(...) NEVER_NULL(xasprintf(__VA_ARGS__))
#define xchecked(p) NEVER_NULL(xchecked(p))
#define xstrdup_list(list, n) NEVER_NULL(xstrdup_list(list, n))
#endif

/* A text in memory: open_memstream, and fclose. They end the program when memory is out, so that the text never lacks a part. */
FILE *xmemopen(char **text, size_t *size);
void xmemclose(FILE *f, char *const *text);

/* Grow *p (cap elements of `size` bytes) to hold at least n elements; capacity doubles, contents stay. */
#define grow(p, cap, n) ((p) = grow_bytes((p), &(cap), (n), sizeof *(p)))
void *grow_bytes(void *p, size_t *cap, size_t n, size_t size);

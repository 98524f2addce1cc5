/*
 * A list of texts: names of cells, ids of genes, values of a column. The bytes of all texts lie end to end in one buffer.
 */
#pragma once

#include "base/error.h"

/* Text i is bytes[offset[i], offset[i + 1]), without a NUL at its end. */
struct texts {
	size_t n;
	char *bytes;
	uint64_t *offset; /* [n + 1] */
	size_t bytes_cap, offset_cap;
};
void texts_release(struct texts *t); /* accepts a zeroed struct */
void texts_clear(struct texts *t); /* n = 0, buffers stay */
void texts_push(struct texts *t, const char *s, size_t n);
char *texts_dup(const struct texts *t, size_t i); /* text i with a NUL, malloced */
const char *texts_at(const struct texts *t, size_t i, size_t *n); /* text i, and its length */

int texts_is(const struct texts *t, size_t i, const char *s); /* is text i this one? */

/* The bytes of the first character of s [n] in UTF-8 [RFC 3629]; 0: it is none, or n is 0. */
size_t text_character(const char *s, size_t n);
int text_is_utf8(const char *s, size_t n);

/* Is s one of the texts of a list that ends with NULL? */
int text_among(const char *s, const char *const *list);

/* x in the fewest digits (6 at least) that read back as x. Returns the length. */
size_t texts_double(double x, char buf[32]);

/* What kind of file this looks like, for messages about a file of the wrong kind. */
#pragma once

#include <stddef.h>

struct magic {
	const char *name; /* "an HDF5 file", "text", ... */
	const char *unpack; /* the program that unpacks it, or NULL */
	int text;
};

/* p [n]: the first bytes. NULL: nothing that is known. */
const struct magic *magic_find(const void *p, size_t n);

/* What kind of file this looks like, for messages about a file of the wrong kind. */
#ifndef MAGIC_H
#define MAGIC_H

#include <stddef.h>

/* p [n]: the first bytes. "an HDF5 file", "text", ...; NULL: nothing that is known. */
const char *magic_name(const void *p, size_t n);

#endif

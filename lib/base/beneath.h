/*
 * Files of a folder that comes from elsewhere, such as an unpacked archive. Nothing in it leads out of it: a name is walked part by part, and
 * no symbolic link is followed. Only regular files are opened, for a pipe would keep its reader waiting.
 *
 * openat2(RESOLVE_BENEATH) would be one call. But no filter of system calls can see its flags, so a process that may only read
 * (src/cli_sandbox.c) cannot have it. Instead the folder of the last file stays open: the next one mostly lies in it too.
 */
#pragma once

#include "base/error.h"

#include <dirent.h>

struct beneath {
	int folder; /* a descriptor, or -1 */
	int last; /* of the folder of the last file ... */
	char *at; /* ... that has this name; NULL: of none */
};

/* Links on the way to the folder itself are followed: the user has named it. */
int beneath_init(struct beneath *b, const char *folder, struct error *e);
void beneath_release(struct beneath *b); /* accepts one with folder -1 and at NULL */

/* Open the file `name`, such as "obs/donor/0", for reading. 1: *fd is open, and the file has *bytes; 0: it is not there (errno is ENOTDIR if a
 * file is in the place of a folder); -1 with e set. */
int beneath_open(struct beneath *b, const char *name, int *fd, uint64_t *bytes, struct error *e);

/* The same for a folder, to list it. */
int beneath_list(struct beneath *b, const char *name, DIR **list, struct error *e);

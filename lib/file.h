/*
 * Output files that appear whole or not at all: written to a temporary beside the target, renamed on commit. Where the
 * file system allows it the temporary has no name (O_TMPFILE), so not even SIGKILL leaves one behind.
 */
#ifndef FILE_H
#define FILE_H

#include "error.h"

#include <sys/uio.h>

struct outfile {
	int fd;                 /* write here; -1 when closed */
	char *path;             /* target, NULL for standard output */
	char *tmp;              /* name of the temporary, NULL if it has none */
	int direct;             /* standard output, or a target that is no regular file (/dev/null): no rename */
};

/* path NULL or "-" is standard output. A target that exists and is not a regular file is written directly.
 * named != 0 asks for a temporary with a name (for libraries that open by name). */
int outfile_open(struct outfile *f, const char *path, int named, struct error *e);
int outfile_write(struct outfile *f, const void *data, size_t n, struct error *e);
int outfile_writev(struct outfile *f, struct iovec *part, int n, struct error *e);        /* uses up part [n] */
int outfile_commit(struct outfile *f, struct error *e);   /* flush to disk, rename, close; releases f whatever it returns */
void outfile_abort(struct outfile *f);                    /* forget the temporary; accepts a released or zeroed struct */

/* The whole of a text file at once. */
int outfile_text(const char *path, const char *text, struct error *e);

/* Remove the named temporaries of this process; async-signal-safe, for signal handlers and die(). */
void outfile_cleanup(void);

/* An unlinked file in $TMPDIR (else /tmp) for spilling; fd or -1. */
int file_spill(struct error *e);

#endif

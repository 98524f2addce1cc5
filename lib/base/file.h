/*
 * Output files that appear only when they are complete. Data is written to a temporary file beside the target, which is renamed on
 * commit. If the file system allows it, the temporary file has no name (O_TMPFILE) until it is complete, so SIGKILL leaves no part of a
 * file behind.
 *
 * Until then only its owner can read it (mode 0600). On commit it gets the permissions and the group of the file that it replaces, or those of
 * a new file. Symbolic links are followed, also to a file that does not exist yet. Of a file with hard links, only the named one is replaced.
 */
#pragma once

#include "base/error.h"

#include <sys/uio.h>

struct outfile {
	int fd; /* write here; -1 when closed */
	char *path; /* target, NULL for standard output */
	char *tmp; /* name of the temporary file, NULL if it has none */
	int direct; /* standard output, or a target that is not a regular file (/dev/null): no rename */
};

/* path NULL or "-" is standard output. A target that exists and is not a regular file is written directly.
 * named != 0: the temporary file has a name (for libraries that open files by name, outfile_name). */
int outfile_open(struct outfile *f, const char *path, int named, struct error *e);
int outfile_write(struct outfile *f, const void *data, size_t n, struct error *e);
int outfile_writev(struct outfile *f, struct iovec *part, int n, struct error *e); /* uses up part [n] */
int outfile_commit(struct outfile *f, struct error *e); /* flush to disk, rename, close; releases f whatever it returns */
/* A program of several outputs: from outfile_hold on, committed files are complete but not in their places, so a failure of a later one leaves
 * none. outfile_publish puts them in place and ends this. */
void outfile_hold(void);
int outfile_publish(struct error *e);
void outfile_abort(struct outfile *f); /* remove the temporary file; accepts a released or zeroed struct */

/* A temporary file in $TMPDIR (else /tmp), which is never committed. */
int outfile_temporary(struct outfile *f, struct error *e);

/*
 * A name for libraries that open f by name: f was opened with `named`, or by outfile_temporary. It leads to the open file (/proc/self/fd), so
 * nobody who may write to the folder can put another file or a link in between. The caller frees it.
 */
char *outfile_name(const struct outfile *f);

/* Write a whole text file. */
int outfile_text(const char *path, const char *text, struct error *e);

/* Remove the named temporary files of this process. Async-signal-safe: for signal handlers and die(). */
void outfile_cleanup(void);
/* In a child process: the temporary files of now are the parent's, and outfile_cleanup leaves them. */
void outfile_leave(void);
/* The process made this folder: outfile_cleanup and the end of the program remove it if it is empty. */
void folder_made(const char *path);
/* Flush the names in a folder to disk; on a file system that cannot do that, nothing. */
int folder_sync(const char *path, struct error *e);

/* The last part of a path. */
const char *file_name(const char *path);

/* The same without `suffix`, if more than the suffix is there. The caller frees it. */
char *file_stem(const char *path, const char *suffix);

/* The folder that holds a file of this name: "." if the name has no slash. The caller frees it. */
char *file_folder(const char *path);

/* The file that `path` leads to through symbolic links, whether it exists or not; NULL with errno set. The caller frees it. */
char *file_target(const char *path);

/* Read all of n bytes at an offset. NULL: done; else why not: `ended`, if the file ends before. */
const char *file_read_at(int fd, void *to, size_t n, uint64_t at, const char *ended);

/* An unlinked file in $TMPDIR (else /tmp) for spilling; fd or -1. */
int file_spill(struct error *e);

/* Make the file of file_spill now, while this process may still make files. From then on there is one, and each call empties it. */
int file_spill_ahead(void); /* its descriptor, or -1 */

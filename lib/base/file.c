#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIVE_MAX 16
static char *volatile live[LIVE_MAX]; /* names of temporary files, for outfile_cleanup */

static void live_add(char *name)
{
	for (int i = 0; i < LIVE_MAX; i++)
		if (!live[i]) {
			live[i] = name;
			return;
		}
}

static void live_drop(const char *name)
{
	for (int i = 0; i < LIVE_MAX; i++)
		if (live[i] == name)
			live[i] = NULL;
}

void outfile_cleanup(void)
{
	for (int i = 0; i < LIVE_MAX; i++)
		if (live[i])
			unlink(live[i]);
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xasprintf("%.*s", (int)(slash - path), path);
}

static int open_named(struct outfile *f)
{
	mode_t mask = umask(0);
	umask(mask);
	f->tmp = xasprintf("%s.tmp.XXXXXX", f->path);
	int fd = mkostemp(f->tmp, O_CLOEXEC);
	if (fd < 0) {
		free(f->tmp);
		f->tmp = NULL;
		return -1;
	}
	fchmod(fd, 0666 & ~mask);
	live_add(f->tmp);
	return fd;
}

int outfile_open(struct outfile *f, const char *path, int named, struct error *e)
{
	*f = (struct outfile){.fd = -1};
	if (!path || strcmp(path, "-") == 0) {
		f->fd = dup(STDOUT_FILENO);
		f->direct = 1;
		return f->fd < 0 ? error_set(e, "standard output: %s", strerror(errno)) : 0;
	}
	char *real = realpath(path, NULL); /* follow symbolic links, so that the link is not replaced */
	f->path = real ? real : xstrdup(path);
	struct stat st;
	if (stat(f->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		f->direct = 1;
		f->fd = S_ISDIR(st.st_mode) ? (errno = EISDIR, -1) : open(f->path, O_WRONLY | O_CLOEXEC);
	} else {
		char *dir = folder_of(f->path);
		if (!named)
			f->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
		free(dir);
		if (f->fd < 0)
			f->fd = open_named(f);
	}
	if (f->fd < 0) {
		error_set(e, "%s: %s", path, strerror(errno));
		outfile_abort(f);
		return -1;
	}
	return 0;
}

static const char *shown(const struct outfile *f)
{
	return f->path ? f->path : "standard output";
}

int outfile_write(struct outfile *f, const void *data, size_t n, struct error *e)
{
	struct iovec part = {(void *)(uintptr_t)data, n};
	return outfile_writev(f, &part, 1, e);
}

int outfile_writev(struct outfile *f, struct iovec *part, int n, struct error *e)
{
	while (n) {
		ssize_t k = part->iov_len ? writev(f->fd, part, n) : 0;
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return error_set(e, "%s: cannot write: %s", shown(f), strerror(errno));
		for (; n && (size_t)k >= part->iov_len; part++, n--)
			k -= (ssize_t)part->iov_len;
		if (n) {
			part->iov_base = (char *)part->iov_base + k;
			part->iov_len -= (size_t)k;
		}
	}
	return 0;
}

/* Give the anonymous temporary a name, so that rename can put it in place. */
static int link_anonymous(struct outfile *f)
{
	char proc[64];
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", f->fd);
	for (unsigned i = 0; i < 1000; i++) {
		char *name = xasprintf("%s.tmp.%ld-%u", f->path, (long)getpid(), i);
		if (linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
			f->tmp = name;
			live_add(name);
			return 0;
		}
		free(name);
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Put the complete temporary file in place. The new name is on disk only when the folder is; some file systems cannot do that. */
static int put_in_place(struct outfile *f)
{
	char *folder = folder_of(f->path); /* before the rename: memory can run out here */
	int bad = rename(f->tmp, f->path), fd = bad ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(folder);
	if (!bad) {
		live_drop(f->tmp);
		free(f->tmp);
		f->tmp = NULL;
	}
	return bad;
}

int outfile_commit(struct outfile *f, struct error *e)
{
	int fd = f->fd, bad = !f->direct && (fsync(fd) || (!f->tmp && link_anonymous(f)));
	if (!bad) { /* close before rename: it can fail too, and then the target must stay as it was */
		f->fd = -1;
		bad = close(fd) || (!f->direct && put_in_place(f));
	}
	if (bad)
		error_set(e, "%s: cannot finish: %s", shown(f), strerror(errno));
	outfile_abort(f);
	return bad ? -1 : 0;
}

void outfile_abort(struct outfile *f)
{
	if (f->fd > 0)
		close(f->fd);
	if (f->tmp) {
		unlink(f->tmp);
		live_drop(f->tmp);
		free(f->tmp);
	}
	free(f->path);
	*f = (struct outfile){.fd = -1};
}

int outfile_text(const char *path, const char *text, struct error *e)
{
	struct outfile f;
	if (outfile_open(&f, path, 0, e))
		return -1;
	if (outfile_write(&f, text, strlen(text), e)) {
		outfile_abort(&f);
		return -1;
	}
	return outfile_commit(&f, e);
}

int file_spill(struct error *e)
{
	const char *dir = getenv("TMPDIR");
	if (!dir || !*dir)
		dir = "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	char *name = xasprintf("%s/corrmask.XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	else
		error_set(e, "%s: cannot make a temporary file: %s (set TMPDIR to a writable folder)", dir, strerror(errno));
	free(name);
	return fd;
}

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

#define LINKS_MAX 40 /* symbolic links in a row, as in Linux */
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
		if (live[i] && unlink(live[i]))
			rmdir(live[i]);
}

void folder_made(const char *path)
{
	live_add(xstrdup(path));
}

char *file_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xasprintf("%.*s", (int)(slash - path), path);
}

int folder_sync(const char *path, struct error *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), bad = fd < 0 || (fsync(fd) && errno != EINVAL);
	if (bad)
		error_set(e, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return bad ? -1 : 0;
}

/* The file that `path` names through symbolic links, whether it exists or not, so that no link is replaced; NULL with errno set. */
static char *follow_links(const char *path)
{
	char *at = realpath(path, NULL), to[PATH_MAX];
	if (at)
		return at;
	at = xstrdup(path);
	for (int i = 0; i < LINKS_MAX; i++) {
		ssize_t n = readlink(at, to, sizeof to - 1);
		if (n < 0)
			return at;
		to[n] = 0;
		char *dir = file_folder(at), *next = *to == '/' ? xstrdup(to) : xasprintf("%s/%s", dir, to);
		free(dir);
		free(at);
		at = next;
	}
	free(at);
	errno = ELOOP;
	return NULL;
}

/* The complete file gets the permissions and the group of the file that it replaces, else those of a new file. */
static int set_access(const struct outfile *f)
{
	struct stat old, made;
	if (stat(f->path, &old)) {
		mode_t mask = umask(0);
		umask(mask);
		return fchmod(f->fd, 0666 & ~mask);
	}
	mode_t mode = old.st_mode & 0777;
	if (fstat(f->fd, &made) || (made.st_gid != old.st_gid && fchown(f->fd, (uid_t)-1, old.st_gid) != 0))
		mode &= ~(mode_t)070; /* another group must not read what was not for it */
	return fchmod(f->fd, mode);
}

static int open_named(struct outfile *f)
{
	f->tmp = xasprintf("%s.tmp.XXXXXX", f->path);
	int fd = mkostemp(f->tmp, O_CLOEXEC);
	if (fd < 0) {
		free(f->tmp);
		f->tmp = NULL;
		return -1;
	}
	live_add(f->tmp);
	return fd;
}

static int lent = -1;

void outfile_lend(const struct outfile *f)
{
	lent = f->fd;
	for (int i = 0; i < LIVE_MAX; i++)
		live[i] = NULL;
}

int outfile_open(struct outfile *f, const char *path, int named, struct error *e)
{
	*f = (struct outfile){.fd = -1};
	if (lent >= 0) {
		*f = (struct outfile){.fd = lent, .path = xstrdup(path), .direct = 1};
		lent = -1;
		return 0;
	}
	if (!path || strcmp(path, "-") == 0) {
		f->fd = dup(STDOUT_FILENO);
		f->direct = 1;
		return f->fd < 0 ? error_set(e, "standard output: %s", strerror(errno)) : 0;
	}
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		/* not by follow_links: what /dev/stdout and /dev/fd/63 of a shell's >(...) lead to has no name */
		f->path = xstrdup(path);
		f->direct = 1;
		f->fd = S_ISDIR(st.st_mode) ? (errno = EISDIR, -1) : open(f->path, O_WRONLY | O_CLOEXEC);
	} else if ((f->path = follow_links(path))) {
		char *dir = file_folder(f->path);
		if (!named)
			f->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
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

/* Put the complete temporary file in place. A name that is not yet on disk is no error here: the old file is gone already. */
static int put_in_place(struct outfile *f)
{
	char *folder = file_folder(f->path); /* before the rename: memory can run out here */
	struct error ignored;
	int bad = rename(f->tmp, f->path);
	if (!bad) {
		folder_sync(folder, &ignored);
		live_drop(f->tmp);
		free(f->tmp);
		f->tmp = NULL;
	}
	free(folder);
	return bad;
}

int outfile_commit(struct outfile *f, struct error *e)
{
	int fd = f->fd, bad = !f->direct && (set_access(f) || fsync(fd) || (!f->tmp && link_anonymous(f)));
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

static int spill_ahead = -1;

void file_spill_ahead(void)
{
	spill_ahead = file_spill(NULL);
}

int file_spill(struct error *e)
{
	if (spill_ahead >= 0 && ftruncate(spill_ahead, 0) == 0)
		return fcntl(spill_ahead, F_DUPFD_CLOEXEC, 0);
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

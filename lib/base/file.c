#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* symbolic links in a row, as in Linux */
#define LIVE_MAX 16
static char *volatile live[LIVE_MAX]; /* names of temporary files, for outfile_cleanup */

static void live_add(char *name)
{
	memory_out = outfile_cleanup;
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

void outfile_leave(void)
{
	for (int i = 0; i < LIVE_MAX; i++)
		live[i] = NULL;
}

void folder_made(const char *path)
{
	live_add(xstrdup(path));
}

const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

char *file_stem(const char *path, const char *suffix)
{
	const char *name = file_name(path);
	size_t n = strlen(name), end = strlen(suffix);
	return xstrndup(name, n > end && !strcmp(name + n - end, suffix) ? n - end : n);
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

char *file_target(const char *path)
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
		free_all(dir, at);
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

/* A name for the temporary file, in the folder of the output: its name with `suffix`, shortened where it would be too long. */
static char *name_beside(const char *path, const char *suffix)
{
	const char *base = file_name(path);
	size_t dir = (size_t)(base - path), tail = strlen(suffix), n = strlen(base), most = NAME_MAX - tail;
	if (dir + most + tail >= PATH_MAX)
		most = dir + tail + 1 < PATH_MAX ? PATH_MAX - 1 - dir - tail : 0;
	return xasprintf("%.*s%.*s%s", (int)dir, path, (int)(n < most ? n : most), base, suffix);
}

/* Does the file system accept the names of the output and of its temporary file? Asked before the work, not after it. */
static int names_fit(const char *path)
{
	struct stat st;
	FREED char *name = name_beside(path, ".tmp.4194304-999"); /* the longest of link_anonymous */
	int bad = (lstat(path, &st) && errno == ENAMETOOLONG) || (lstat(name, &st) && errno == ENAMETOOLONG);
	if (bad)
		errno = ENAMETOOLONG;
	return !bad;
}

static int open_named(struct outfile *f)
{
	f->tmp = name_beside(f->path, ".tmp.XXXXXX");
	int fd = mkostemp(f->tmp, O_CLOEXEC);
	if (fd < 0) {
		free(f->tmp);
		f->tmp = NULL;
		return -1;
	}
	live_add(f->tmp);
	return fd;
}

/* The descriptor that the shell has opened: /dev/stdout, and /dev/fd/N of >(command). -1: another path. It may lead to a pipe, or into the
 * middle of a file. */
static int opened(const char *path)
{
	int fd, end = 0;
	if (strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	return sscanf(path, "/dev/fd/%4d%n", &fd, &end) == 1 && fd >= 0 && !path[end] ? fd : -1;
}

int outfile_open(struct outfile *f, const char *path, int named, struct error *e)
{
	*f = (struct outfile){.fd = -1};
	int given = !path || strcmp(path, "-") == 0 ? STDOUT_FILENO : opened(path);
	if (given >= 0) {
		f->fd = dup(given);
		f->direct = 1;
		return f->fd < 0 ? error_set(e, "%s: %s", given == STDOUT_FILENO ? "standard output" : path, strerror(errno)) : 0;
	}
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		/* not by file_target: what a link such as /proc/self/fd/63 leads to has no name */
		f->path = xstrdup(path);
		f->direct = 1;
		f->fd = S_ISDIR(st.st_mode) ? (errno = EISDIR, -1) : open(f->path, O_WRONLY | O_CLOEXEC);
	} else if ((f->path = file_target(path)) && names_fit(f->path)) {
		FREED char *dir = file_folder(f->path);
		if (!named)
			f->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
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
		char suffix[64];
		snprintf(suffix, sizeof suffix, ".tmp.%ld-%u", (long)getpid(), i);
		char *name = name_beside(f->path, suffix);
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

/* Name and close the complete temporary file. It is closed before the rename: that can fail too, and then the target must stay as it was. */
static int name_and_close(struct outfile *f)
{
	if (!f->tmp && link_anonymous(f))
		return -1;
	int fd = f->fd;
	f->fd = -1;
	return close(fd);
}

/* Put it in place, in this folder. A name that is not yet on disk is no error here: the old file is gone already. */
static int put_in_place(struct outfile *f, const char *folder)
{
	if (rename(f->tmp, f->path))
		return -1;
	folder_sync(folder, NULL);
	live_drop(f->tmp);
	free(f->tmp);
	f->tmp = NULL;
	return 0;
}

static int holding;
static struct outfile *held; /* [nheld] */
static size_t nheld, held_cap;

void outfile_hold(void)
{
	holding = 1;
}

static void keep(struct outfile *f)
{
	grow(held, held_cap, nheld + 1);
	held[nheld++] = *f;
	*f = (struct outfile){.fd = -1};
}

/* Put the complete files f [n] in place, or none of them if that can be known before. All are released. */
static int outfile_finish(struct outfile *f, size_t n, struct error *e)
{
	FREED char **folder = xcalloc(n, sizeof *folder);
	int bad = 0;
	for (size_t i = 0; i < n; i++)
		folder[i] = file_folder(f[i].path); /* before the first rename: memory can run out here */
	for (int step = 0; step < 2; step++)
		for (size_t i = 0; i < n && !bad; i++)
			if (step ? put_in_place(&f[i], folder[i]) : name_and_close(&f[i]))
				bad = error_set(e, "%s: cannot finish: %s", f[i].path, strerror(errno));
	for (size_t i = 0; i < n; i++) {
		outfile_abort(&f[i]);
		free(folder[i]);
	}
	return bad;
}

int outfile_publish(struct error *e)
{
	int bad = nheld ? outfile_finish(held, nheld, e) : 0;
	free(held);
	held = NULL;
	nheld = held_cap = 0;
	holding = 0;
	return bad;
}

int outfile_commit(struct outfile *f, struct error *e)
{
	int fd = f->fd, bad = f->direct ? (f->fd = -1, close(fd)) : set_access(f) || fsync(fd);
	if (bad)
		error_set(e, "%s: cannot finish: %s", shown(f), strerror(errno));
	else if (!f->direct && holding)
		keep(f);
	else if (!f->direct)
		return outfile_finish(f, 1, e);
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

char *outfile_name(const struct outfile *f)
{
	return xasprintf("/proc/self/fd/%d", f->fd);
}

static const char *temporary_folder(void)
{
	const char *dir = getenv("TMPDIR");
	return dir && *dir ? dir : "/tmp";
}

static int no_temporary(struct error *e)
{
	return error_set(e, "%s: cannot make a temporary file: %s (set TMPDIR to a writable folder)", temporary_folder(), strerror(errno));
}

int outfile_temporary(struct outfile *f, struct error *e)
{
	*f = (struct outfile){.path = xasprintf("%s/corrmask", temporary_folder())};
	f->fd = open_named(f);
	if (f->fd >= 0)
		return 0;
	no_temporary(e);
	outfile_abort(f);
	return -1;
}

const char *file_read_at(int fd, void *to, size_t n, uint64_t at, const char *ended)
{
	for (char *p = to; n;) {
		ssize_t k = pread(fd, p, n, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? strerror(errno) : ended;
		p += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
	return NULL;
}

static int spill_ahead = -1;

int file_spill_ahead(void)
{
	return spill_ahead = file_spill(NULL);
}

int file_spill(struct error *e)
{
	if (spill_ahead >= 0 && ftruncate(spill_ahead, 0) == 0)
		return fcntl(spill_ahead, F_DUPFD_CLOEXEC, 0);
	const char *dir = temporary_folder();
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	FREED char *name = xasprintf("%s/corrmask.XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	else
		no_temporary(e);
	return fd;
}

#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

int beneath_init(struct beneath *b, const char *folder, struct error *e)
{
	*b = (struct beneath){.folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	return b->folder < 0 ? error_set(e, "%s: %s", folder, strerror(errno)) : 0;
}

static void leave(struct beneath *b)
{
	if (b->at)
		close(b->last);
	free(b->at);
	b->at = NULL;
}

void beneath_release(struct beneath *b)
{
	leave(b);
	if (b->folder >= 0)
		close(b->folder);
	b->folder = -1;
}

/* Open the part of `name` at p in dir. 1: *fd is open, 0: it is not there, -1. */
static int step(int dir, const char *name, const char *p, int flags, int *fd, struct error *e)
{
	char part[NAME_MAX + 1], to[256];
	size_t n = strcspn(p, "/");
	if (!n || n > NAME_MAX || (n == 2 && !memcmp(p, "..", 2)))
		return error_set(e, "%s: not the name of a file in this folder", name);
	memcpy(part, p, n);
	part[n] = 0;
	*fd = openat(dir, part, O_NOFOLLOW | O_CLOEXEC | flags);
	if (*fd >= 0)
		return 1;
	int error = errno, shown = (int)(p + n - name);
	ssize_t linked = error == ELOOP || error == ENOTDIR ? readlinkat(dir, part, to, sizeof to) : -1;
	if (linked >= 0)
		return error_set(e, "%.*s is a symbolic link (to %.*s), which is not followed: if you trust it, copy with cp -rL", shown,
			name, (int)linked, to);
	errno = error;
	return error == ENOENT || error == ENOTDIR ? 0 : error_set(e, "%.*s: %s", shown, name, strerror(error));
}

/* Enter the folder name[n]: the last file is looked up in it. */
static int enter(struct beneath *b, const char *name, size_t n, struct error *e)
{
	int dir = b->folder, fd, r = 1;
	if (b->at && !strncmp(b->at, name, n) && !b->at[n])
		return 1;
	leave(b);
	for (const char *p = name; r > 0 && p < name + n; p += strcspn(p, "/") + 1) {
		r = step(dir, name, p, O_PATH | O_DIRECTORY, &fd, e);
		if (dir != b->folder)
			close(dir);
		dir = fd;
	}
	if (r > 0) {
		b->last = dir;
		b->at = xstrndup(name, n);
	}
	return r;
}

static int walk(struct beneath *b, const char *name, int flags, int *fd, struct error *e)
{
	const char *slash = strrchr(name, '/');
	int r = slash ? enter(b, name, (size_t)(slash - name), e) : 1;
	return r > 0 ? step(slash ? b->last : b->folder, name, slash ? slash + 1 : name, flags, fd, e) : r;
}

int beneath_open(struct beneath *b, const char *name, int *fd, uint64_t *bytes, struct error *e)
{
	struct stat st;
	int r = walk(b, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, fd, e);
	if (r > 0 && (fstat(*fd, &st) || !S_ISREG(st.st_mode))) {
		close(*fd);
		r = error_set(e, "%s is %s, expected a regular file", name,
			S_ISDIR(st.st_mode)            ? "a folder"
				: S_ISFIFO(st.st_mode) ? "a pipe"
						       : "a device");
	}
	*bytes = r > 0 ? (uint64_t)st.st_size : 0;
	if (r <= 0)
		*fd = -1;
	return r;
}

int beneath_list(struct beneath *b, const char *name, DIR **list, struct error *e)
{
	int fd, r = walk(b, name, O_RDONLY | O_DIRECTORY, &fd, e);
	if (r > 0 && !(*list = fdopendir(fd))) {
		r = error_set(e, "%s: %s", name, strerror(errno));
		close(fd);
	}
	return r;
}

/*
 * A zarr store, version 2 or 3: its files are in the input, one after another, as a byte for the length of the path, the path, two bytes for
 * the length of the content, and the content. "->NAME" is a symbolic link to a file of the same folder, "|" a pipe. What is read must be
 * canonical, or an error; nothing may be waited for.
 */
#include "mutate.h"
#include "read_counts.h"

#include "anndata/h5.h"
#include "anndata/zarr.h"
#include "base/bytes.h"

#include <assert.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 64, PATH = 80, CONTENT = 65535 };

struct part {
	char path[PATH];
	size_t n;
	uint8_t *content;
};

static char dir[64];

/* The next file of the input; 0: there is none. */
static int next_part(const uint8_t **data, size_t *size, struct part *p)
{
	const uint8_t *d = *data;
	size_t name = *size ? d[0] : 0;
	if (!name || name >= PATH || *size < 3 + name)
		return 0;
	memcpy(p->path, d + 1, name);
	p->path[name] = 0;
	size_t left = *size - 3 - name;
	p->n = get_le16(d + 1 + name);
	p->n = p->n < left ? p->n : left;
	p->content = xmalloc(p->n + 1);
	memcpy(p->content, d + 3 + name, p->n);
	*data += 3 + name + p->n;
	*size -= 3 + name + p->n;
	return 1;
}

static size_t join(const struct part *p, size_t n, uint8_t *data, size_t max)
{
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		size_t name = strlen(p[i].path);
		if (at + 3 + name + p[i].n > max)
			return 0;
		data[at] = (uint8_t)name;
		memcpy(data + at + 1, p[i].path, name);
		put_le16(data + at + 1 + name, (uint16_t)p[i].n);
		memcpy(data + at + 3 + name, p[i].content, p[i].n);
		at += 3 + name + p[i].n;
	}
	return at;
}

/* Change the content of a file. Mostly a shard gets the checksum of its index again: of one chunk, or of two. */
static void change(struct part *p)
{
	p->content = xrealloc(p->content, p->n + 256, 1);
	size_t n = one_in(8) ? 0 : mutate_json_text(p->content, p->n, p->n + 256);
	p->n = n ? n : LLVMFuzzerMutate(p->content, p->n, p->n + 64);
	size_t index = one_in(2) ? 16 : 32;
	if (!n && p->n >= index + 4 && !one_in(3))
		put_le32(p->content + p->n - 4, zarr_crc32c(p->content + p->n - 4 - index, index));
	p->n = p->n < CONTENT ? p->n : CONTENT;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct part part[FILES];
	size_t n = 0, left = size, made;
	const uint8_t *at = data;
	if (mutate_plain(seed))
		return LLVMFuzzerMutate(data, size, max);
	while (n < FILES && next_part(&at, &left, part + n))
		n++;
	if (n) {
		size_t i = draw_below(n);
		if (one_in(12)) { /* a file is lost, has the content of another, or is a link or a pipe */
			static const char *const no_files[] = {"|", "->0", "->.zarray", "->zarr.json", "->obs", "->."};
			size_t k = draw_below(n), to = draw_below(2 * sizeof no_files / sizeof *no_files);
			struct part from = part[k];
			if (to < sizeof no_files / sizeof *no_files)
				from = (struct part){.n = strlen(no_files[to]), .content = (uint8_t *)(uintptr_t)no_files[to]};
			uint8_t *content = xmalloc(from.n + 1);
			memcpy(content, from.content, from.n);
			free(part[i].content);
			part[i].content = content;
			part[i].n = one_in(3) ? 0 : from.n;
		} else {
			change(part + i);
		}
	}
	made = join(part, n, data, max);
	for (size_t i = 0; i < n; i++)
		free(part[i].content);
	return made ? made : LLVMFuzzerMutate(data, size, max);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	return remove(path);
}

static void put(const struct part *p)
{
	char path[sizeof dir + PATH + 2];
	if (strstr(p->path, "..") || *p->path == '/')
		return;
	snprintf(path, sizeof path, "%s/%s", dir, p->path);
	for (char *s = path + strlen(dir) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = 0;
		mkdir(path, 0700);
	}
	const char *text = (const char *)p->content;
	p->content[p->n] = 0;
	int link = p->n > 2 && !strncmp(text, "->", 2) && !strchr(text, '/') && strcmp(text, "->..");
	unlink(path); /* a pipe that was there would keep its writer waiting */
	if (link && symlink(text + 2, path) == 0)
		return;
	if (!strcmp(text, "|") && mkfifo(path, 0600) == 0)
		return;
	FILE *f = fopen(path, "we");
	if (f) {
		fwrite(p->content, 1, p->n, f);
		fclose(f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct part p;
	h5_setup();
	snprintf(dir, sizeof dir, "%s/fuzz_zarr.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	mkdir(dir, 0700);
	for (size_t n = 0; n < FILES && next_part(&data, &size, &p); n++) {
		put(&p);
		free(p.content);
	}
	read_counts(dir);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

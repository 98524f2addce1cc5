/* groups.tsv of a model of counts: what is read has a column and different groups, and reading its text again gives the same text. */
#include "train/groups.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64], path[96];

static void remove_files(void)
{
	unlink(path);
	rmdir(dir);
}

static void write_file(const void *text, size_t n)
{
	FILE *f = fopen(path, "w");
	assert(f && fwrite(text, 1, n, f) == n);
	fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e;
	struct groups g = {0}, again = {0};
	if (!*dir) {
		snprintf(dir, sizeof dir, "%s/fuzz_groups.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		snprintf(path, sizeof path, "%s/groups.tsv", dir);
		assert(mkdir(dir, 0700) == 0);
		atexit(remove_files);
	}
	write_file(data, size);
	if (groups_load(&g, dir, &e)) {
		assert(!g.column && !g.n && *e.msg);
		return 0;
	}
	assert(g.column && *g.column && g.n && g.n == g.classes.n);
	for (size_t i = 0; i < g.n; i++)
		assert(*g.classes.name[i] && classes_add(&g.classes, g.classes.name[i], strlen(g.classes.name[i])) == i);
	char *text = groups_print(&g);
	write_file(text, strlen(text));
	assert(groups_load(&again, dir, &e) == 0);
	char *second = groups_print(&again);
	assert(strcmp(text, second) == 0);
	free(text);
	free(second);
	groups_release(&g);
	groups_release(&again);
	return 0;
}

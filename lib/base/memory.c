#include "base/memory.h"

#include "base/error.h"

#include <sys/resource.h>
#include <unistd.h>

/* The number in a file; UINT64_MAX: none ("max"). */
static uint64_t number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long x = UINT64_MAX;
	if (f && fscanf(f, "%llu", &x) != 1)
		x = UINT64_MAX;
	if (f)
		fclose(f);
	return x;
}

/* The least limit of the control group of this process (version 2) and of those above it. */
static uint64_t group_limit(void)
{
	char line[4096] = "", *path = NULL;
	FILE *f = fopen("/proc/self/cgroup", "re");
	while (f && !path && fgets(line, sizeof line, f))
		path = strncmp(line, "0::/", 4) ? NULL : line + 3;
	if (f)
		fclose(f);
	uint64_t least = UINT64_MAX;
	for (char *end = path ? path + strcspn(path, "\n") : NULL; end; end = end == path ? NULL : strrchr(path, '/')) {
		*end = 0;
		FREED char *file = xasprintf("/sys/fs/cgroup%s/memory.max", path);
		uint64_t x = number_in(file);
		least = x < least ? x : least;
	}
	return least;
}

uint64_t memory_limit(const char **of)
{
	const char *job = getenv("SLURM_MEM_PER_NODE"); /* megabytes; 0 is all */
	struct rlimit r = {.rlim_cur = RLIM_INFINITY};
	getrlimit(RLIMIT_AS, &r);
	const struct {
		const char *of;
		uint64_t bytes;
	} limits[] = {{"its control group", group_limit()},
		{"its Slurm job", job && atoll(job) > 0 ? (uint64_t)atoll(job) << 20 : UINT64_MAX},
		{"ulimit -v", r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur}};
	uint64_t least = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	*of = "this machine";
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		if (limits[i].bytes < least) {
			least = limits[i].bytes;
			*of = limits[i].of;
		}
	return least;
}

/*
 * A libnccl.so.2 for tests of cuda/group.cu: the same calls, between processes of one machine and on streams of the emulation (emu.h). As in
 * NCCL, a sum is only queued. It runs when its stream comes to it, and waits there until all ranks have come to theirs; the host is not held up.
 *
 * What NCCL would not allow ends the program. Calls are written to $FAKE_NCCL_LOG.RANK. $FAKE_NCCL makes one fail:
 *     id            the id cannot be made
 *     init:R        rank R cannot join
 *     sum:R:N       sum N of rank R (from 1) is refused
 *     lost:R:N      rank R never comes to its sum N: there the others wait for ever, and learn of it when they ask
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* group.cu declares them for itself */

void emu_poll(void *stream, int (*work)(void *), void *arg);

enum {
	RANKS = 8,
	ROOM = 1 << 21, /* elements of a sum */
	SUCCESS = 0,
	SYSTEM_ERROR = 2,
	INVALID_ARGUMENT = 4,
	REMOTE_ERROR = 6,
	FLOAT = 7,
	SUM = 0,
};

struct id {
	char path[128];
};

/* A file that all ranks map. */
struct shared {
	atomic_int joined, lost;
	struct {
		atomic_ulong given, taken; /* sums to which this rank has given its numbers; whose result it has taken */
		unsigned long n;           /* of the sum under way */
	} rank[RANKS];
	float x[RANKS][ROOM];
};

struct comm {
	struct shared *shared;
	int rank, size, aborted;
	unsigned long asked;
	FILE *log;
};

static _Noreturn void fault(const char *what)
{
	fprintf(stderr, "fake_nccl.c: %s\n", what);
	abort();
}

static void say(const struct comm *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vfprintf(c->log, fmt, ap);
	va_end(ap);
	fflush(c->log);
}

/* Does $FAKE_NCCL ask for this? */
static int wanted(const char *what, int rank, unsigned long n)
{
	char text[64];
	const char *fails = getenv("FAKE_NCCL");
	snprintf(text, sizeof text, n ? "%s:%d:%lu" : "%s:%d", what, rank, n);
	return fails && !strcmp(fails, text);
}

int ncclGetVersion(int *version)
{
	*version = 22703;
	return SUCCESS;
}

const char *ncclGetErrorString(int result)
{
	if (result == REMOTE_ERROR)
		return "remote process exited or there was a network error";
	return result == SYSTEM_ERROR ? "unhandled system error" : result ? "invalid argument" : "no error";
}

int ncclGetUniqueId(struct id *id)
{
	const char *fails = getenv("FAKE_NCCL");
	if (fails && !strcmp(fails, "id"))
		return SYSTEM_ERROR;
	strcpy(id->path, "nccl.XXXXXX");
	int fd = mkstemp(id->path);
	if (fd < 0 || ftruncate(fd, sizeof(struct shared)))
		fault("cannot make a file");
	close(fd);
	return SUCCESS;
}

int ncclCommInitRank(struct comm **comm, int size, struct id id, int rank)
{
	char path[4096];
	if (size < 2 || size > RANKS || rank < 0 || rank >= size)
		fault("impossible rank");
	if (wanted("init", rank, 0))
		return SYSTEM_ERROR;
	struct comm *c = calloc(1, sizeof *c);
	int fd = open(id.path, O_RDWR);
	if (!c || fd < 0)
		fault("not the id of rank 0");
	c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	c->rank = rank;
	c->size = size;
	snprintf(path, sizeof path, "%s.%d", getenv("FAKE_NCCL_LOG"), rank);
	c->log = fopen(path, "w");
	if (c->shared == MAP_FAILED || !c->log)
		fault("cannot map the file, or no $FAKE_NCCL_LOG");
	say(c, "init %d of %d, %s %s\n", rank, size, getenv("NCCL_ALGO"), getenv("NCCL_PROTO"));
	atomic_fetch_add(&c->shared->joined, 1);
	while (atomic_load(&c->shared->joined) < size)
		usleep(100);
	if (!rank)
		unlink(id.path);
	*comm = c;
	return SUCCESS;
}

struct sum {
	struct comm *c;
	const float *from;
	float *to;
	size_t n;
	unsigned long number;
	int given;
};

/* 1: done. The sum is made in the order of the ranks. */
static int run(void *arg)
{
	struct sum *s = arg;
	struct comm *c = s->c;
	struct shared *m = c->shared;
	if (c->aborted) {
		free(s);
		return 1;
	}
	if (wanted("lost", c->rank, s->number)) {
		atomic_store(&m->lost, 1);
		return 0;
	}
	for (int r = 0; r < c->size; r++)
		if (!s->given && atomic_load(&m->rank[r].taken) < s->number - 1)
			return 0;
	if (!s->given) {
		memcpy(m->x[c->rank], s->from, s->n * sizeof *s->from);
		m->rank[c->rank].n = s->n;
		atomic_store(&m->rank[c->rank].given, s->number);
		s->given = 1;
	}
	for (int r = 0; r < c->size; r++)
		if (atomic_load(&m->rank[r].given) < s->number)
			return 0;
	for (int r = 0; r < c->size; r++)
		if (m->rank[r].n != s->n)
			fault("the ranks sum different lengths");
	for (size_t i = 0; i < s->n; i++) {
		float sum = m->x[0][i];
		for (int r = 1; r < c->size; r++)
			sum += m->x[r][i];
		s->to[i] = sum;
	}
	atomic_store(&m->rank[c->rank].taken, s->number);
	free(s);
	return 1;
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, struct comm *c, void *stream)
{
	if (type != FLOAT || op != SUM || n > ROOM || !stream)
		fault("not a sum of floats on a stream of the program");
	if (wanted("sum", c->rank, c->asked + 1))
		return INVALID_ARGUMENT;
	struct sum *s = malloc(sizeof *s);
	if (!s)
		fault("out of memory");
	*s = (struct sum){.c = c, .from = from, .to = to, .n = n, .number = ++c->asked};
	say(c, "sum %zu\n", n);
	emu_poll(stream, run, s);
	return SUCCESS;
}

int ncclCommGetAsyncError(struct comm *c, int *result)
{
	*result = atomic_load(&c->shared->lost) ? REMOTE_ERROR : SUCCESS;
	return SUCCESS;
}

/* Its sums on the stream still point to c. */
int ncclCommAbort(struct comm *c)
{
	say(c, "abort\n");
	c->aborted = 1;
	return SUCCESS;
}

int ncclCommDestroy(struct comm *c)
{
	if (atomic_load(&c->shared->rank[c->rank].taken) != c->asked)
		fault("destroyed before its sums are done");
	say(c, "destroy\n");
	fclose(c->log);
	munmap(c->shared, sizeof *c->shared);
	free(c);
	return SUCCESS;
}

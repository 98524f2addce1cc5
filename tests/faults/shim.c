/*
 * Makes one library call fail. LD_PRELOAD it into a tool (glibc only):
 *     FAULT=CALL:N[:FROM][:HOW]    fail the N-th call (N from 1) of the group CALL; with FROM = "on" that one and all after it.
 *     FAULT_COUNT=FILE             append "CALL COUNT" for every group when the program ends; nothing fails without FAULT
 *     FAULT_PLACES=FILE            append "CALL N STACK" for every call; STACK is a hash of the calls that led to it
 *     FAULT_TRACE=1                print the calls that led to the failing one
 *     FAULT_MPI=run                only calls between MPI_Init_thread and MPI_Finalize count
 *     FAULT_MPI=start              only calls inside MPI_Init_thread count
 * Groups: alloc (malloc, calloc, realloc, posix_memalign, aligned_alloc, reallocarray), thread (pthread_create), read (read, pread), write (write, writev, pwrite), open,
 * close, fsync, rename (rename, linkat), mmap. HOW is an errno by name (EIO, ENOSPC, EINTR, EMFILE, ENOMEM), or "short": half of the bytes.
 * Calls on file descriptors 0 to 2 count too: they are the streams of the tools. Only calls after the libraries' constructors count. A program that restarts itself counts anew, and a
 * child goes on with the count of its parent.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum group { ALLOC, THREAD, READ, WRITE, OPEN, CLOSE, FSYNC, RENAME, MMAP, GROUPS };
static const char *const names[GROUPS] = {"alloc", "thread", "read", "write", "open", "close", "fsync", "rename", "mmap"};
static atomic_long calls[GROUPS];
static int group = -1, from_then_on, error_number, half, started;
static long at;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

static int number_of(const char *how)
{
	static const struct {
		const char *name;
		int number;
	} all[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EINTR", EINTR}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(how, all[i].name))
			return all[i].number;
	return EIO;
}

static const char *mpi; /* FAULT_MPI */
static int counts = -1, places = -1; /* FAULT_COUNT, FAULT_PLACES, opened early: h5tok's child may not open them */
static int trace;
static _Thread_local int tracing; /* its own calls do not count */

static int file_of(const char *variable)
{
	const char *path = getenv(variable);
	return path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
}

static void count(void)
{
	for (int i = 0; i < GROUPS && counts >= 0; i++)
		dprintf(counts, "%s %ld\n", names[i], atomic_load(calls + i));
}

static void note_place(enum group g, long n)
{
	void *frame[64];
	unsigned long hash = 0;
	tracing = 1;
	for (int i = backtrace(frame, 64); i--;)
		hash = (hash ^ (unsigned long)frame[i]) * 0x100000001b3ul;
	dprintf(places, "%s %ld %lx\n", names[g], n, hash);
	tracing = 0;
}

__attribute__((constructor)) static void start(void)
{
	char *spec = getenv("FAULT");
	void *frame;
	counts = file_of("FAULT_COUNT");
	places = file_of("FAULT_PLACES");
	trace = getenv("FAULT_TRACE") != NULL;
	if (trace || places >= 0)
		backtrace(&frame, 1); /* loads a library, the first time */
	if (spec) {
		char *copy = __libc_malloc(strlen(spec) + 1), *rest = strcpy(copy, spec), *part;
		for (int i = 0; (part = strsep(&rest, ":")); i++)
			if (i == 0)
				for (int g = 0; g < GROUPS; g++)
					group = strcmp(part, names[g]) ? group : g;
			else if (i == 1)
				at = atol(part);
			else if (!strcmp(part, "on"))
				from_then_on = 1;
			else if (!strcmp(part, "short"))
				half = 1;
			else
				error_number = number_of(part);
	}
	if (!error_number)
		error_number = group == ALLOC || group == MMAP ? ENOMEM : group == THREAD ? EAGAIN : EIO;
	mpi = getenv("FAULT_MPI");
	started = !mpi;
}

/* The tools end by _exit when memory is out, so the count is written by both ways of ending. */
__attribute__((destructor)) static void end(void)
{
	if (started)
		count();
}

/*
 * OpenBLAS 0.3.21 does not check the few KiB that its products of small matrices take (dgemm_small_kernel_* for AVX-512): without them it
 * crashes, and no caller can help that. So these always succeed.
 */
static int is_unchecked(const void *caller)
{
	Dl_info place;
	tracing = 1;
	int is = caller && dladdr(caller, &place) && place.dli_sname && strstr(place.dli_sname, "gemm_small_kernel");
	tracing = 0;
	return is;
}

/* Does this call of the group fail? caller: of an allocation, where it is; else NULL. */
static int fails_at(enum group g, const void *caller)
{
	if (!started || tracing)
		return 0;
	long n = atomic_fetch_add(calls + g, 1) + 1;
	if (places >= 0)
		note_place(g, n);
	if ((int)g != group || !(n == at || (from_then_on && n > at)) || is_unchecked(caller))
		return 0;
	if (trace) {
		void *frame[40];
		tracing = 1;
		backtrace_symbols_fd(frame, backtrace(frame, 40), STDERR_FILENO);
		tracing = 0;
	}
	errno = error_number;
	return 1;
}

static int fails(enum group g)
{
	return fails_at(g, NULL);
}

/* The C library's functions. They are looked up before the program starts: dlsym allocates, and takes the loader's lock, which a failure inside keeps. */
static struct {
	const char *name;
	void *f;
} real[] = {
	{"close", NULL},
	{"fsync", NULL},
	{"linkat", NULL},
	{"mmap", NULL},
	{"open", NULL},
	{"open64", NULL},
	{"openat", NULL},
	{"pread", NULL},
	{"pread64", NULL},
	{"pthread_create", NULL},
	{"pwrite64", NULL},
	{"read", NULL},
	{"rename", NULL},
	{"__openat_2", NULL},
	{"write", NULL},
	{"writev", NULL},
};

static void find_real(void)
{
	for (size_t i = 0; i < sizeof real / sizeof *real; i++)
		if (!(real[i].f = dlsym(RTLD_NEXT, real[i].name)))
			abort();
}

static void *next(const char *name)
{
	if (!real[0].f)
		find_real(); /* called by another library's constructor */
	for (size_t i = 0;; i++)
		if (!strcmp(real[i].name, name))
			return real[i].f;
}
#define REAL(name) ((__typeof__(&name))next(#name))

void *malloc(size_t n)
{
	return fails_at(ALLOC, __builtin_return_address(0)) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
	return fails_at(ALLOC, __builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
	return fails_at(ALLOC, __builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}
void *aligned_alloc(size_t align, size_t n)
{
	return fails_at(ALLOC, __builtin_return_address(0)) ? NULL : __libc_memalign(align, n);
}
void *reallocarray(void *p, size_t n, size_t size)
{
	size_t all;
	if (__builtin_mul_overflow(n, size, &all))
		return errno = ENOMEM, NULL;
	return fails_at(ALLOC, __builtin_return_address(0)) ? NULL : __libc_realloc(p, all);
}
int posix_memalign(void **p, size_t align, size_t n)
{
	void *got = fails_at(ALLOC, __builtin_return_address(0)) ? NULL : __libc_memalign(align, n);
	if (got)
		*p = got;
	return got ? 0 : ENOMEM;
}

/* MPI's start and end have tens of thousands of calls, so the start is a case of its own, and the end is none. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int (*init)(int *, char ***, int, int *) = (int (*)(int *, char ***, int, int *))dlsym(RTLD_NEXT, "MPI_Init_thread");
	int start_only = mpi && !strcmp(mpi, "start");
	started = !mpi || start_only;
	int bad = init(argc, argv, required, provided);
	if (start_only)
		end();
	started = !start_only;
	return bad;
}
int MPI_Finalize(void)
{
	end();
	started = 0;
	return ((int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize"))();
}

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg)
{
	return fails(THREAD) ? error_number : REAL(pthread_create)(t, a, run, arg);
}

/* -1 when the call fails, else the bytes to ask for. */
static ssize_t part_of(enum group g, size_t n)
{
	if (!fails(g))
		return (ssize_t)n;
	return half ? (ssize_t)(n > 1 ? n / 2 : n) : -1;
}

ssize_t read(int fd, void *buf, size_t n)
{
	ssize_t k = part_of(READ, n);
	return k < 0 ? -1 : REAL(read)(fd, buf, (size_t)k);
}
ssize_t pread64(int fd, void *buf, size_t n, off64_t offset)
{
	ssize_t k = part_of(READ, n);
	return k < 0 ? -1 : REAL(pread64)(fd, buf, (size_t)k, offset);
}
ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
	ssize_t k = part_of(READ, n);
	return k < 0 ? -1 : REAL(pread)(fd, buf, (size_t)k, offset);
}
ssize_t write(int fd, const void *buf, size_t n)
{
	ssize_t k = part_of(WRITE, n);
	return k < 0 ? -1 : REAL(write)(fd, buf, (size_t)k);
}
ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t offset)
{
	ssize_t k = part_of(WRITE, n);
	return k < 0 ? -1 : REAL(pwrite64)(fd, buf, (size_t)k, offset);
}
ssize_t writev(int fd, const struct iovec *part, int n)
{
	ssize_t k = part_of(WRITE, 2);
	if (k == 1) { /* half: the first part, or half of it when it is alone */
		size_t first = part[0].iov_len;
		return REAL(write)(fd, part[0].iov_base, n > 1 ? first : (first + 1) / 2);
	}
	return k < 0 ? -1 : REAL(writev)(fd, part, n);
}

#define OPEN_LIKE(name, before, ...) \
	{ \
		mode_t mode = 0; \
		if (flags & (O_CREAT | O_TMPFILE)) { \
			va_list ap; \
			va_start(ap, flags); \
			mode = va_arg(ap, mode_t); \
			va_end(ap); \
		} \
		return fails(OPEN) ? -1 : REAL(name)(__VA_ARGS__, mode); \
	}
int open(const char *path, int flags, ...) OPEN_LIKE(open, , path, flags) int open64(const char *path, int flags, ...)
	OPEN_LIKE(open64, , path, flags) int openat(int dir, const char *path, int flags, ...) OPEN_LIKE(openat, , dir, path, flags)

	/* openat of code with _FORTIFY_SOURCE */
	int __openat_2(int dir, const char *path, int flags)
{
	return fails(OPEN) ? -1 : REAL(__openat_2)(dir, path, flags);
}
int close(int fd)
{
	if (!fails(CLOSE))
		return REAL(close)(fd);
	REAL(close)(fd); /* Linux closes the descriptor whatever it returns */
	errno = error_number;
	return -1;
}
int fsync(int fd)
{
	return fails(FSYNC) ? -1 : REAL(fsync)(fd);
}
int rename(const char *from, const char *to)
{
	return fails(RENAME) ? -1 : REAL(rename)(from, to);
}
int linkat(int d1, const char *from, int d2, const char *to, int flags)
{
	return fails(RENAME) ? -1 : REAL(linkat)(d1, from, d2, to, flags);
}
void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t offset)
{
	return fails(MMAP) ? MAP_FAILED : REAL(mmap)(p, n, prot, flags, fd, offset);
}

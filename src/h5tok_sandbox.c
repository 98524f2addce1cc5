#include "h5tok_sandbox.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const struct cli *cli;
static volatile int *reading; /* operand, shared by both processes; NULL: no sandbox */
static uint64_t stored;       /* bytes of all operands */

/* In some damaged files HDF5 never returns (a heap whose object has size 0). So each step has 3 s of processor time, and more in a large
 * file, because the first step may be the conversion of a whole matrix. */
void sandbox_reading(const char *operand)
{
	struct itimerval step = {.it_value.tv_sec = 3 + (time_t)(stored / 5000000)};
	if (!reading)
		return;
	setitimer(ITIMER_PROF, &step, NULL);
	for (int i = 0; i < cli->noperand; i++)
		if (cli->operand[i] == operand)
			*reading = i;
}

/* ---- files: Landlock ---- */

#ifdef LANDLOCK_ACCESS_FS_READ_FILE

enum { READ = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR };

/* Let the child read this file, or all below this folder. What does not exist, or is no file (a pipe), needs no rule. */
static void allow(int rules, const char *path)
{
	struct stat st;
	struct landlock_path_beneath_attr a = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
	if (a.parent_fd < 0)
		return;
	if (fstat(a.parent_fd, &st) == 0) {
		a.allowed_access = S_ISDIR(st.st_mode) ? READ : LANDLOCK_ACCESS_FS_READ_FILE;
		syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
	}
	close(a.parent_fd);
}

/* An operand: a folder, which may hold symbolic links to files elsewhere. A matrix has its genes and barcodes beside it, in its folder. */
static void allow_operand(int rules, const char *path)
{
	const char *name = strrchr(path, '/');
	char *folder =
		strstr(name ? name : path, "matrix.mtx") ? xasprintf("%.*s.", name ? (int)(name + 1 - path) : 0, path) : xstrdup(path);
	DIR *d = opendir(folder);
	allow(rules, path);
	for (struct dirent *x; d && (x = readdir(d));) {
		char *file = xasprintf("%s/%s", folder, x->d_name);
		if (strcmp(x->d_name, ".."))
			allow(rules, file);
		free(file);
	}
	if (d)
		closedir(d);
	free(folder);
}

static int only_named_files(void)
{
	/* libraries: HDF5 loads filters at run time */
	static const char *const system_files[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu"};
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 1)
		return 0;
	/* every right over files that this kernel knows: 13 in version 1, one more in 2 and 3 */
	struct landlock_ruleset_attr all = {.handled_access_fs = (1u << (version > 2 ? 15 : version > 1 ? 14 : 13)) - 1};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
	if (rules < 0)
		return 0;
	for (size_t i = 0; i < sizeof system_files / sizeof *system_files; i++)
		allow(rules, system_files[i]);
	char *plugins = xstrdup(getenv("HDF5_PLUGIN_PATH") ? getenv("HDF5_PLUGIN_PATH") : ""), *rest = plugins;
	for (char *p; (p = strsep(&rest, ":"));)
		allow(rules, p);
	free(plugins);
	for (int i = 0; i < cli->noperand; i++)
		allow_operand(rules, cli->operand[i]);
	for (const struct option_def *o = cli->options; o->name; o++)
		if (o->kind == OPT_STRING && *(char **)o->to)
			allow(rules, *(char **)o->to);
	int on = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
	close(rules);
	return on;
}

#else

static int only_named_files(void)
{
	return 0;
}

#endif

/* ---- system calls: seccomp ---- */

#ifdef ARCH

/* What reading, computing, threads and writing to open files need. Everything else does not exist (ENOSYS). */
static const int allowed[] = {
	SYS_read,
	SYS_readv,
	SYS_pread64,
	SYS_preadv,
	SYS_write,
	SYS_writev,
	SYS_pwrite64,
	SYS_pwritev,
	SYS_lseek,
	SYS_close,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_readlinkat,
	SYS_getcwd,
	SYS_getdents64,
	SYS_fcntl,
	SYS_flock,
	SYS_dup,
	SYS_ftruncate,
	SYS_fsync,
	SYS_fdatasync,
	SYS_ppoll,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_restart_syscall,
	SYS_exit,
	SYS_exit_group,
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_gettimeofday,
	SYS_setitimer,
	SYS_getrandom,
	SYS_getrusage,
	SYS_sysinfo,
	SYS_uname,
#ifdef SYS_stat /* older calls, which newer processors do not have */
	SYS_stat,
	SYS_lstat,
	SYS_access,
	SYS_readlink,
	SYS_poll,
	SYS_time,
	SYS_dup2,
#endif
};

/* Calls that are allowed if an argument has the right value: (argument & mask) == value, in its lower 32 bits. */
static const struct guarded {
	int call, argument;
	uint32_t mask, value;
} guarded[] = {
	{SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
#ifdef SYS_open
	{SYS_open, 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
#endif
	{SYS_clone, 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM}, /* threads, no processes; clone3 has no flags to look at */
	{SYS_ioctl, 1, UINT32_MAX, TCGETS},                               /* isatty */
	{SYS_prlimit64, 2, UINT32_MAX, 0},                                /* a question only */
};

enum { FILTER_MAX = 8 + 2 * sizeof allowed / sizeof *allowed + 6 * (sizeof guarded / sizeof *guarded + 1) };

static struct sock_filter load(size_t offset)
{
	return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* Where not equal, `skip` instructions are left out. */
static struct sock_filter equal(uint32_t value, uint8_t skip)
{
	return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}

static struct sock_filter answer(uint32_t what)
{
	return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
}

static int only_these_calls(void)
{
	const uint32_t no = SECCOMP_RET_ERRNO | ENOSYS;
	const struct guarded kill = {SYS_tgkill, 0, UINT32_MAX, (uint32_t)getpid()}; /* raise and abort */
	const size_t nr = offsetof(struct seccomp_data, nr), lower = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;
	struct sock_filter f[FILTER_MAX];
	unsigned short n = 0;
	f[n++] = load(offsetof(struct seccomp_data, arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	f[n++] = answer(no);
	f[n++] = load(nr);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* x32 */
	f[n++] = answer(no);
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
		f[n++] = equal((uint32_t)allowed[i], 1);
		f[n++] = answer(SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i <= sizeof guarded / sizeof *guarded; i++) {
		const struct guarded *g = i < sizeof guarded / sizeof *guarded ? guarded + i : &kill;
		f[n++] = equal((uint32_t)g->call, 5);
		f[n++] = load(offsetof(struct seccomp_data, args) + (size_t)g->argument * 8 + lower);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, g->mask);
		f[n++] = equal(g->value, 1);
		f[n++] = answer(SECCOMP_RET_ALLOW);
		f[n++] = answer(no);
	}
	f[n++] = answer(no);
	struct sock_fprog program = {n, f};
	/* SPEC_ALLOW: else some kernels slow down the processor for a filtered program */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0;
}

#else

static int only_these_calls(void)
{
	return 0;
}

#endif

/* ---- the child ---- */

static void limit(int what, uint64_t most)
{
	struct rlimit r;
	if (getrlimit((__rlimit_resource_t)what, &r))
		return;
	if (r.rlim_max > most)
		r.rlim_max = most;
	if (r.rlim_cur > r.rlim_max)
		r.rlim_cur = r.rlim_max;
	setrlimit((__rlimit_resource_t)what, &r);
}

#define GIB ((uint64_t)1 << 30)

/*
 * More than any sound file of this size needs. Memory: a base with the buffers of the spill; stack and heap of each thread; what is kept of the
 * file (categories, genes); chunks of at most 1 GiB, which at best compress by 1100. Time: 100 kB a second over all.
 */
static void limit_resources(void)
{
	uint64_t threads = (uint64_t)cli->threads, chunk;
	for (int i = 0; i < cli->noperand; i++) {
		struct stat st;
		stored += stat(cli->operand[i], &st) ? 0 : S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 16 * GIB; /* a folder of tables */
	}
	chunk = stored < GIB / 1100 ? stored * 1100 : GIB;
	limit(RLIMIT_AS, 2 * GIB + threads * GIB / 4 + 40 * stored + (threads + 3) * chunk);
	limit(RLIMIT_CPU, 60 + stored / 100000);
	limit(RLIMIT_CORE, 0);
}

/* Messages of libraries (C's own when the heap is damaged) go to `notes`; those of the program still to standard error. */
static void divert_notes(int notes)
{
#ifdef __GLIBC__
	int fd = notes < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		return;
	setvbuf(f, NULL, _IONBF, 0);
	stderr = f;
	dup2(notes, STDERR_FILENO);
#endif
}

static void become_child(pid_t parent, int notes)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before it could be seen dying */
		_exit(1);
	for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGABRT, SIGINT, SIGTERM, SIGHUP, 0}; *s; s++)
		if (signal(*s, SIG_DFL) == SIG_IGN)
			signal(*s, SIG_IGN);
	divert_notes(notes);
	limit_resources();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	int files = only_named_files(), calls = only_these_calls();
	if (cli->verbose)
		info("reading in a process of its own%s%s", calls ? ", without rights (seccomp)" : "",
			files ? ", and only the named files (Landlock)" : "");
}

/* ---- the parent ---- */

/* Die with the reason why the child did not end well. */
static _Noreturn void died(int status, const char *note)
{
	const char *file = cli->operand[*reading >= 0 && *reading < cli->noperand ? *reading : 0];
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (sig == SIGPIPE || sig == SIGINT || sig == SIGTERM || sig == SIGHUP) { /* nothing is wrong with the file */
		outfile_cleanup();
		signal(sig, SIG_DFL);
		raise(sig);
	}
	if (sig == SIGXCPU || sig == SIGPROF)
		die("%s: reading takes longer than any sound file of this size: damaged file", file);
	if (sig == SIGKILL)
		die("%s: the process that read this file was killed: no memory, or too much time", file);
	if (sig)
		die("%s: the HDF5 library crashed while reading this file: damaged HDF5, or no memory (signal %d%s%s)", file, sig,
			*note ? ": " : "", note);
	die("%s: the HDF5 library gave up while reading this file: damaged HDF5, or no memory (status %d%s%s)", file, WEXITSTATUS(status),
		*note ? ": " : "", note);
}

static _Noreturn void wait_for(pid_t child, struct outfile *out, int notes)
{
	struct error e;
	char note[1024];
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			die("cannot wait for the process that reads: %s", strerror(errno));
	ssize_t n = notes < 0 ? 0 : pread(notes, note, sizeof note - 1, 0);
	note[n > 0 ? n : 0] = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 2) {
		outfile_abort(out);
		note[strcspn(note, "\n")] = 0;
		died(status, note);
	}
	fputs(note, stderr);
	if (WEXITSTATUS(status) == 0 && out->fd >= 0 && outfile_commit(out, &e))
		die("%s", e.msg);
	outfile_abort(out);
	exit(WEXITSTATUS(status));
}

void sandbox_start(const struct cli *c)
{
	struct error e;
	struct outfile out = {.fd = -1};
	const char *choice = getenv("CORRMASK_SANDBOX");
	cli = c;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	return;
#endif
	if (choice && !strcmp(choice, "no"))
		return;
	if (c->output && strcmp(c->output, "-") && outfile_open(&out, c->output, 0, &e))
		die("%s", e.msg);
	reading = mmap(NULL, sizeof *reading, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reading == MAP_FAILED)
		die("out of memory");
	file_spill_ahead();
	int notes = memfd_create("notes", MFD_CLOEXEC);
	fflush(NULL);
	pid_t parent = getpid(), child = fork();
	if (child < 0)
		die("cannot make a process to read in: %s", strerror(errno));
	if (child)
		wait_for(child, &out, notes);
	outfile_lend(&out);
	become_child(parent, notes);
}

#include "cli_sandbox.h"
#include "cli.h"
#include "cli_report.h"

#include "anndata/h5ad.h"
#include "anndata/zarr.h"
#include "base/option.h"
#include "base/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
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

static const struct cli *cli;
static volatile int
	*reading; /* operand, and the signal that another process has sent to the child; shared by both processes; NULL: no sandbox */
static uint64_t stored; /* bytes of all operands */

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

void sandbox_finished(void)
{
	if (!reading)
		return;
	setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
	*reading = -1;
}

/* To read all the same, with all rights, would be what nobody has asked for. */
static _Noreturn void no_sandbox(const char *what, int error)
{
	die("cannot sandbox the process that reads files (%s: %s). CORRMASK_SANDBOX=no reads without it: only files that you trust", what,
		strerror(error));
}

/* ---- files: Landlock ---- */

#ifdef LANDLOCK_ACCESS_FS_READ_FILE

enum { READ = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR };

/* Let the child read this file, or all below this folder. What does not exist, or is no file (a pipe), needs no rule. What cannot be
 * allowed cannot be read. */
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

/* An operand. The genes and barcodes of a matrix lie in its folder, or where links in it lead to. */
static void allow_operand(int rules, const char *path)
{
	size_t prefix;
	FREED char *folder = h5ad_matrix_name(path, &prefix) ? file_folder(path) : xstrdup(path);
	DIR *d = opendir(folder);
	allow(rules, path);
	for (struct dirent *x; d && (x = readdir(d));) {
		FREED char *file = xasprintf("%s/%s", folder, x->d_name), *to = tenx_file(file, &failure);
		if (to)
			allow(rules, to);
	}
	if (d)
		closedir(d);
}

static int only_named_files(void)
{
	/* libraries: HDF5 loads filters at run time */
	static const char *const system_files[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu"};
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 1) /* a kernel before 5.13, or one without it */
		return 0;
	/* every right over files that this kernel knows: 13 in version 1, one more in 2 and 3 */
	struct landlock_ruleset_attr all = {.handled_access_fs = (1u << (version > 2 ? 15 : version > 1 ? 14 : 13)) - 1};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
	if (rules < 0)
		no_sandbox("Landlock", errno);
	for (size_t i = 0; i < sizeof system_files / sizeof *system_files; i++)
		allow(rules, system_files[i]);
	char *plugins = xstrdup(getenv("HDF5_PLUGIN_PATH") ? getenv("HDF5_PLUGIN_PATH") : ""), *rest = plugins;
	for (char *p; (p = strsep(&rest, ":"));)
		allow(rules, p);
	free(plugins);
	for (int i = 0; i < cli->noperand; i++)
		allow_operand(rules, cli->operand[i]);
	for (const struct option_def *o = cli->options; o->name; o++)
		if (o->kind == OPT_INPUT && opt_text(o))
			allow(rules, opt_text(o));
	if (syscall(SYS_landlock_restrict_self, rules, 0))
		no_sandbox("Landlock", errno);
	close(rules);
	return 1;
}

#else

static int only_named_files(void)
{
	return 0;
}

#endif

/* ---- system calls: seccomp ---- */

/* What reading, computing, threads and writing to open files need. Everything else does not exist (ENOSYS). */
static const int allowed[] = {SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev),
	SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx),
	SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(getdents64), SCMP_SYS(flock),
	SCMP_SYS(dup), SCMP_SYS(ftruncate), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(ppoll), SCMP_SYS(mmap), SCMP_SYS(munmap),
	SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
	SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(getpid), SCMP_SYS(gettid),
	SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(setitimer), SCMP_SYS(getrandom), SCMP_SYS(getrusage), SCMP_SYS(sysinfo),
	SCMP_SYS(uname), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(access), SCMP_SYS(readlink), SCMP_SYS(poll), SCMP_SYS(time),
	SCMP_SYS(dup2)};

/*
 * Calls that are allowed with some arguments only: files are opened for reading; clone makes threads, no processes (clone3 has no flags to
 * look at); ioctl asks for a terminal; prlimit64 asks; tgkill is raise and abort; fcntl copies descriptors and asks (F_SETOWN, F_SETSIG and
 * O_ASYNC of F_SETFL would signal other processes).
 */
static int allow_some(scmp_filter_ctx f)
{
	static const int commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GETLK, F_SETLK, F_SETLKW};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)commands[i])))
			return -1;
	const scmp_datum_t how = O_ACCMODE | O_CREAT | O_TRUNC, thread = CLONE_THREAD | CLONE_VM;
	return seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, how, O_RDONLY)) ||
		seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, how, O_RDONLY)) ||
		seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, thread, thread)) ||
		seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, TCGETS)) ||
		seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_EQ, 0)) ||
		seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

static void only_these_calls(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int bad = f ? allow_some(f) : -ENOSYS;
	for (size_t i = 0; !bad && i < sizeof allowed / sizeof *allowed; i++)
		bad = seccomp_rule_add(f, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!bad)
		seccomp_attr_set(f, SCMP_FLTATR_CTL_SSB, 1); /* else some kernels slow down the processor for a filtered program */
	bad = bad ? bad : seccomp_load(f);
	if (f)
		seccomp_release(f);
	if (bad)
		no_sandbox("seccomp", -bad);
}

/* ---- the child ---- */

/* At the hard limit of time the kernel kills without a reason, so it is a second higher. 1: this limit is in force, 0: a lower one is. */
static int limit(int what, uint64_t most)
{
	struct rlimit r;
	uint64_t hard = most + (what == RLIMIT_CPU);
	if (getrlimit((__rlimit_resource_t)what, &r))
		return 0;
	int ours = r.rlim_cur > most;
	if (ours)
		r.rlim_cur = most;
	if (r.rlim_max > hard)
		r.rlim_max = hard;
	setrlimit((__rlimit_resource_t)what, &r);
	return ours;
}

/* What the child's own faults and limits send. */
static const int own_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGPROF, SIGTRAP, SIGSYS, 0};

/* The same signals may come from another process, as all others do. */
static void on_own_signal(int sig, siginfo_t *from, void *context)
{
	if (from->si_code <= 0 && from->si_pid != getpid())
		reading[1] = sig;
	signal(sig, SIG_DFL);
	raise(sig);
}

#define GIB ((uint64_t)1 << 30)

static int add_size(const char *path, const struct stat *st, int type, struct FTW *where)
{
	stored += type == FTW_F ? (uint64_t)st->st_size : 0;
	return 0;
}

/*
 * More than any undamaged file of this size needs. Memory: a base with the buffers of the spill; stack and heap of each thread; what is kept of the
 * file (categories, genes); chunks of at most 1 GiB, which at best compress by 1100. Time: 100 kB a second over all.
 */
static void limit_resources(int only_reads)
{
	uint64_t threads = (uint64_t)cli->threads, chunk;
	for (int i = 0; i < cli->noperand; i++) {
		struct stat st;
		if (stat(cli->operand[i], &st))
			continue;
		if (S_ISDIR(st.st_mode) && zarr_is_store(cli->operand[i])) {
			char *inside = xasprintf("%s/.", cli->operand[i]); /* which may itself be a link */
			nftw(inside, add_size, 16, FTW_PHYS);
			free(inside);
		} else {
			stored += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 16 * GIB; /* a folder of tables */
		}
	}
	chunk = stored < GIB / 1100 ? stored * 1100 : GIB;
	limit(RLIMIT_CORE, 0);
	reading[1] = SIGXCPU; /* it comes from a limit of the user's */
	if (!only_reads)
		return;
	limit(RLIMIT_AS, 2 * GIB + threads * GIB / 4 + 40 * stored + (threads + 3) * chunk);
	if (limit(RLIMIT_CPU, 60 + stored / 100000))
		reading[1] = 0;
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

/* The N of an operand such as /dev/fd/N, or -1. */
static int names_descriptor(const char *path)
{
	int fd, end = 0;
	if (sscanf(path, "/dev/fd/%4d%n", &fd, &end) != 1 && sscanf(path, "/proc/self/fd/%4d%n", &fd, &end) != 1)
		return -1;
	return path[end] ? -1 : fd;
}

COMPARE(ascending, int, ORDER(*a, *b))

/* Close what the caller of the program has left open, and all of this program but the descriptors keep [n]. */
static void close_others(const int *keep, size_t n)
{
	int *open_ones = xmalloc((n + (size_t)cli->noperand) * sizeof *open_ones), from = STDERR_FILENO + 1;
	memcpy(open_ones, keep, n * sizeof *open_ones);
	for (int i = 0; i < cli->noperand; i++)
		open_ones[n++] = names_descriptor(cli->operand[i]);
	for (const struct option_def *o = cli->options; o->name; o++)
		if (o->kind == OPT_INPUT && opt_text(o)) {
			open_ones = xrealloc(open_ones, n + 1, sizeof *open_ones);
			open_ones[n++] = names_descriptor(opt_text(o));
		}
	qsort(open_ones, n, sizeof *open_ones, ascending);
	for (size_t i = 0; i <= n; i++) {
		unsigned last = i < n ? (unsigned)open_ones[i] - 1 : ~0u;
		if (i < n && open_ones[i] < from)
			continue;
		if ((unsigned)from <= last && syscall(SYS_close_range, (unsigned)from, last, 0) && errno == ENOSYS) /* before Linux 5.9 */
			for (long fd = from, most = sysconf(_SC_OPEN_MAX); fd <= (long)last && fd < most; fd++)
				close((int)fd);
		if (i < n)
			from = open_ones[i] + 1;
	}
	free(open_ones);
}

/* mask: of the signals, which all wait until then. */
static void become_child(pid_t parent, int notes, int only_reads, const sigset_t *mask)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before it could be seen dying */
		_exit(1);
	for (const int *s = (const int[]){SIGINT, SIGTERM, SIGHUP, 0}; *s; s++)
		if (signal(*s, SIG_DFL) == SIG_IGN)
			signal(*s, SIG_IGN);
	for (const int *s = own_signals; *s; s++)
		sigaction(*s, &(struct sigaction){.sa_sigaction = on_own_signal, .sa_flags = SA_SIGINFO}, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	divert_notes(notes);
	limit_resources(only_reads);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	int files = only_named_files();
	only_these_calls();
	if (cli->verbose)
		info("reading in a separate process, without privileges (seccomp)%s", files ? ", and only the named files (Landlock)" : "");
}

/* ---- the parent ---- */

/* Die with the reason why the child did not end well. */
static _Noreturn void died(int status, const char *note)
{
	const char *file = cli->operand[*reading >= 0 && *reading < cli->noperand ? *reading : 0];
	const char *library = zarr_is_store(file) ? "a library" : "the HDF5 library", *format = zarr_is_store(file) ? "store" : "HDF5";
	const int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0, *own = own_signals;
	while (*own && *own != sig)
		own++;
	if (sig &&
		(!*own ||
			reading[1] ==
				sig)) { /* another process sent it: nothing is wrong with the file, and this program ends in the same way */
		if (sig != SIGPIPE && sig != SIGINT && sig != SIGTERM && sig != SIGHUP)
			complain("%s: the process that reads was killed from outside (signal %d%s)", file, sig,
				sig == SIGKILL           ? ": no memory?"
					: sig == SIGXCPU ? ": ulimit -t?"
							 : "");
		outfile_cleanup();
		signal(sig, SIG_DFL);
		raise(sig);
	}
	if (*reading < 0)
		die("the computing process ended: out of memory? (%s %d%s%s)", sig ? "signal" : "status", sig ? sig : WEXITSTATUS(status),
			*note ? ": " : "", note);
	if (sig == SIGXCPU || sig == SIGPROF)
		die("%s: reading takes too long for an intact file of this size: the file is damaged", file);
	if (sig)
		die("%s: %s crashed while reading this file: damaged %s, or out of memory (signal %d%s%s)", file, library, format, sig,
			*note ? ": " : "", note);
	die("%s: %s gave up while reading this file: damaged %s, or out of memory (status %d%s%s)", file, library, format,
		WEXITSTATUS(status), *note ? ": " : "", note);
}

static _Noreturn void wait_for(pid_t child, struct outfile *out, int notes)
{
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
	if (WEXITSTATUS(status) == 0 && out->fd >= 0)
		must(outfile_commit(out, &failure));
	outfile_abort(out);
	if (WEXITSTATUS(status) == 0)
		must(cli_report_write(&failure));
	exit(WEXITSTATUS(status));
}

void sandbox_start(struct cli *c, int only_reads)
{
	struct outfile out = {.fd = -1};
	static struct outfile lent; /* the child writes into it; the parent puts it in place, or not */
	const char *choice = getenv("CORRMASK_SANDBOX");
	cli = c;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	return;
#endif
	if (choice && !strcmp(choice, "no"))
		return;
	if (c->output && strcmp(c->output, "-"))
		must(outfile_open(&out, c->output, 0, &failure));
	reading = mmap(NULL, 2 * sizeof *reading, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reading == MAP_FAILED)
		die("out of memory");
	int spill = file_spill_ahead();
	int notes = memfd_create("notes", MFD_CLOEXEC);
	fflush(NULL);
	sigset_t all, mask;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	pid_t parent = getpid(), child = fork();
	if (child)
		sigprocmask(SIG_SETMASK, &mask, NULL);
	if (child < 0)
		die("cannot start a process to read in: %s", strerror(errno));
	if (child)
		wait_for(child, &out, notes);
	close_others((int[]){out.fd, notes, spill}, 3);
	outfile_leave();
	if (out.fd >= 0) {
		lent = (struct outfile){.fd = out.fd, .path = xstrdup(c->output), .direct = 1};
		c->opened = &lent;
	}
	cli_report_leave();
	become_child(parent, notes, only_reads, &mask);
}

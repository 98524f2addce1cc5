#include "cli.h"
#include "cli_files.h"
#include "cli_impl.h"
#include "cli_manifest.h"
#include "cli_labels.h"
#include "cli_report.h"

#include "nn/blas.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

static int want_help, want_version, progress_choice;

void cli_report(const struct cli *c, const char *fmt, ...)
{
	progress_clear();
	labels_report();
	must(outfile_publish(&failure));
	double seconds = messages_seconds();
	if (c->verbose) {
		struct rusage r;
		getrusage(RUSAGE_SELF, &r);
		va_list ap;
		va_start(ap, fmt);
		fprintf(stderr, "%s: ", cli_program);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fprintf(stderr, "; %.2f s, peak memory %.0f MB\n", seconds, (double)r.ru_maxrss / 1024);
	}
	must(cli_report_end(seconds, &failure));
}

static void on_exit_call(void)
{
	cli_library_ended();
	outfile_cleanup();
}

static void on_signal(int sig)
{
	outfile_cleanup();
	signal(sig, SIG_DFL);
	raise(sig);
}

#ifndef __SANITIZE_ADDRESS__
static void on_crash(int sig)
{
	cli_library_ended();
	on_signal(sig);
}
#endif

static const char *const precisions[] = {"float32", "bf16"},
			 *const progress_words[] = {[PROGRESS_AUTO] = "auto", [PROGRESS_ALWAYS] = "always", [PROGRESS_NEVER] = "never"};

/* The options that several tools share. cli.common selects those of a tool. */
static struct option_def *common_table(struct cli *c)
{
	static struct option_def t[16] = {{0, "Common options", OPT_GROUP}};
	int n = 1;
	if (c->common & CLI_OUT)
		t[n++] = (struct option_def){'o', "output", OPT_OUTPUT, &c->output, "FILE",
			"write to FILE, which appears only when it is complete (default: standard output)"};
	if (c->common & CLI_RAW)
		t[n++] = (struct option_def){'u', "uncompressed", OPT_FLAG, &c->raw, NULL, "write uncompressed blocks, for pipes"};
	if (c->common & CLI_SEED)
		t[n++] = (struct option_def){0, "seed", OPT_INT, &c->seed, "N", "random seed (default 1)", 0, 4294967295.0, .changes = 1};
	if (c->common & CLI_DEVICE)
		t[n++] = (struct option_def){0, "device", OPT_STRING, &c->device, "DEVICE", "auto, cpu, cuda or cuda:N (default auto)"};
	if (c->common & CLI_DEVICE)
		t[n++] = (struct option_def){0, "precision", OPT_CHOICE, &c->bf16, OPT_WORDS(precisions),
			"precision of matrix products on the CPU (default float32; bf16 needs AVX512-BF16)", .changes = 1};
	if (c->common & CLI_THREADS)
		t[n++] = (struct option_def){'@', "threads", OPT_INT, &c->threads, "N", "total number of threads (default 1)", 1, 1024};
	t[n++] = (struct option_def){'q', "quiet", OPT_FLAG, &c->quiet, NULL, "print errors only"};
	t[n++] = (struct option_def){'v', "verbose", OPT_FLAG, &c->verbose, NULL, "report counts, time and peak memory at the end"};
	t[n++] = (struct option_def){
		0, "report", OPT_OUTPUT, &c->report, "FILE", "write the measurements to FILE, as a table of names and values"};
	t[n++] = (struct option_def){0, "progress", OPT_CHOICE, &progress_choice, OPT_WORDS(progress_words),
		"when to show progress (default auto: one line on a terminal, elsewhere a line every 30 s)"};
	t[n++] = (struct option_def){'h', "help", OPT_FLAG, &want_help, NULL, "print this help"};
	t[n++] = (struct option_def){'V', "version", OPT_FLAG, &want_version, NULL, "print versions"};
	return t;
}

static struct option_def no_options[1];
static struct option_def *tables[4]; /* the last is NULL */

static _Noreturn void print_help(const struct cli *c)
{
	FREED char *help = opt_help(tables);
	printf("Usage: %s [OPTION...]%s%s\n%s\n\n%s", c->name, c->operands ? " " : "", c->operands ? c->operands : "", c->summary, help);
	exit(stdout_lost());
}

/* TOOL --completion: what the shells' completion needs (src/completion.bash, src/completion.zsh); TOOL --manual: what man/pages.py needs. No options,
 * so --help does not show them. */
static void print_words(const struct cli *c, int argc, char **argv)
{
	int manual = argc == 2 && strcmp(argv[1], "--manual") == 0;
	if (!manual && (argc != 2 || strcmp(argv[1], "--completion") != 0))
		return;
	FREED char *words = opt_words(tables, manual ? c->mode ? c->mode : 1 : 0);
	fputs(words, stdout);
	exit(stdout_lost());
}

/* The arguments of main: opt_parse and subcommands change theirs. */
static char **arguments;

__attribute__((constructor)) static void keep_arguments(int argc, char **argv)
{
	arguments = xcalloc((size_t)argc + 1, sizeof *argv);
	memcpy(arguments, argv, (size_t)argc * sizeof *argv);
}

/*
 * A waiting thread of OpenMP spins for milliseconds. That slows down the other programs of a pipe, which need the cores (measured:
 * training took ten times as long). 1: the environment has a shorter time to spin now.
 */
static int limit_spinning(long long threads)
{
	if (threads < 2 || getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT"))
		return 0;
	return !setenv("GOMP_SPINCOUNT", "2000", 1);
}

/* libgomp and OpenBLAS read the environment before main begins, so the program sets it and starts again. */
static void set_environment(long long threads)
{
	int spin = limit_spinning(threads), core = blas_core_set();
	if (spin || core)
		execv("/proc/self/exe", arguments);
}

/* OpenBLAS calls this function when it is loaded, here instead of its own, which reads OPENBLAS_NUM_THREADS. Else it would start a thread for
 * each further core. They would not be used, but each takes 128 MB of addresses; where a limit leaves too few, the program would never end. */
int openblas_num_threads_env(void);
int openblas_num_threads_env(void)
{
	struct error e;
	if (blas_load(&e)) {
		dprintf(STDERR_FILENO, "%s: %s\n", program_invocation_short_name, e.msg);
		_exit(1);
	}
	return 1;
}

void cli_blas(const struct cli *c)
{
	must(blas_start((int)c->threads, &failure));
}

void cli_version(const char *name, const char *features)
{
	char kernels[128];
	set_environment(1);
	cpu_describe(kernels, sizeof kernels);
	printf("%s %s (scstream %d.%d, zstd %s%s%s, %s%s)\n", name, CORRMASK_VERSION, STREAM_MAJOR, STREAM_MINOR, ZSTD_versionString(),
		features ? ", " : "", features ? features : "", kernels, cpu_bf16() ? ", bf16" : "");
	exit(stdout_lost());
}

/*
 * A standard stream that the caller has closed (>&-) would be the number of the next file that is opened, and messages would go into an output.
 * Here each is open, in the other direction: its use fails, as that of a closed one.
 */
__attribute__((constructor)) static void open_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(1);
}

/* An output that cannot be made is refused before the work, not after it. */
static void check_output(const char *path)
{
	struct stat st;
	if (!path || !strcmp(path, "-"))
		return;
	FREED char *folder = file_folder(path);
	int there = lstat(path, &st) == 0;
	if (there ? S_ISDIR(st.st_mode) : access(folder, W_OK | X_OK) != 0)
		die("%s: %s", path, strerror(there ? EISDIR : errno));
}

/* n files may be open at once. If the highest limit is too few, one cannot be opened, and the message says so. */
static void raise_file_limit(size_t n)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= n + 64)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

/* The operands, with the files of lists in their place. No output is one of them, or a list. */
static void read_operands(struct cli *c, char **given)
{
	int ngiven = c->noperand;
	c->operand = given;
	if (c->operands)
		must(cli_manifest(given, &c->noperand, &c->operand, &failure));
	size_t n = 0;
	static char standard_input[] = "-";
	FREED char **file = xcalloc((size_t)(c->noperand + ngiven) + 1, sizeof *file);
	if (c->operands && !c->noperand)
		file[n++] = standard_input;
	for (int i = 0; i < c->noperand; i++)
		file[n++] = c->operand[i];
	for (int i = 0; i < ngiven && c->operand != given; i++)
		if (given[i][0] == '@')
			file[n++] = given[i] + 1;
	cli_check_files(tables, file, (int)n, c->common & CLI_LISTS, &c->output);
	raise_file_limit(n);
}

/* Tools of a pipe share a terminal: the last one shows its progress, not those that write to the next. */
static int feeds_pipe(const struct cli *c)
{
	struct stat st;
	return (c->common & CLI_OUT) && (!c->output || !strcmp(c->output, "-")) && fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode);
}

void cli_init(struct cli *c, int argc, char **argv)
{
	messages_begin(c->name);
	c->threads = 1;
	c->seed = 1;
	c->device = "auto";
	must(cpu_check(&failure));
	cJSON_InitHooks(&(cJSON_Hooks){xmalloc, free}); /* its callers need not look for NULL */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN); /* a file at the limit of its size (ulimit -f) is a write that fails, with a message */
	signal(SIGINT, on_signal);
	atexit(on_exit_call); /* HDF5 calls exit when its memory is out */
#ifndef __SANITIZE_ADDRESS__
	/* a crash leaves no temporary file either, even when HDF5 has used up the stack */
	static char stack[16384];
	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
	for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGABRT, 0}; *s; s++)
		sigaction(*s, &(struct sigaction){.sa_handler = on_crash, .sa_flags = SA_ONSTACK}, NULL);
#endif
	for (const int *s = (const int[]){SIGTERM, SIGHUP, 0}; *s; s++) /* an ignored signal stays ignored (nohup, trap '' TERM) */
		if (signal(*s, SIG_IGN) != SIG_IGN)
			signal(*s, on_signal);
	tables[0] = c->options ? c->options : no_options;
	tables[1] = c->shared ? c->shared : no_options;
	tables[2] = common_table(c);
	print_words(c, argc, argv);
	if (opt_parse(tables, argc, argv, &c->noperand, &failure))
		usage_error("%s", failure.msg);
	if (want_help)
		print_help(c);
	if (want_version)
		cli_version(c->name, c->features);
	if (opt_check(tables, c->mode ? c->mode : 1, &failure))
		usage_error("%s", failure.msg);
	check_output(c->common & CLI_OUT ? c->output : NULL);
	read_operands(c, argv + 1);
	set_environment(c->threads);
	must(blas_core_check(&failure));
	if (c->report && strcmp(c->report, "-") == 0)
		usage_error("--report needs a file, not '-'");
	must(cli_report_open(c->report, c->name, &failure));
	messages_choose(c->quiet, (enum progress_when)progress_choice, feeds_pipe(c));
	int most = !c->operands ? 0 : strstr(c->operands, "...") ? c->noperand : 1;
	if (c->noperand > most)
		usage_error("unexpected argument '%s'%s", c->operand[most], most ? ": expected one input (scsample joins streams)" : "");
	int from_stdin = c->operands && !c->noperand;
	for (int i = 0; i < c->noperand; i++)
		from_stdin |= strcmp(c->operand[i], "-") == 0;
	if (from_stdin && isatty(STDIN_FILENO))
		usage_error("no input: name a file, or pipe one in");
	omp_set_dynamic(0);
	omp_set_num_threads((int)c->threads);
}

static struct option_def *option_of(const void *to)
{
	for (struct option_def *const *t = tables; *t; t++)
		for (struct option_def *o = *t; o->name; o++)
			if (o->to == to)
				return o;
	return NULL;
}

const struct option_def *cli_option(const void *to)
{
	const struct option_def *o = option_of(to);
	assert(o);
	return o;
}

int given(const void *to)
{
	return cli_option(to)->seen;
}

void refuse_list(const char *why, const void *const *to)
{
	for (; *to; to++)
		if (given(*to))
			usage_error("--%s %s", cli_option(*to)->name, why);
}

void cli_mode(unsigned mode, const char *why, ...)
{
	va_list ap;
	va_start(ap, why);
	FREED char *text = NULL;
	if (vasprintf(&text, why, ap) < 0)
		die("out of memory");
	va_end(ap);
	if (opt_check_mode(tables, mode, text, &failure))
		usage_error("%s", failure.msg);
}

void cli_rank(struct cli *c, int rank)
{
	cli_program = xasprintf("%s[%d]", c->name, rank); /* kept to the end */
	if (!rank)
		return;
	cli_report_leave();
	c->quiet = 1;
	c->verbose = 0;
	messages_choose(1, PROGRESS_NEVER, 0);
}

void cli_decided(const void *to)
{
	struct option_def *o = option_of(to);
	if (o)
		o->seen = 1;
}

char *cli_settings(const struct cli *c)
{
	cli_decided(&c->seed);
	return opt_provenance(tables);
}

void cli_provenance(const struct cli *c, struct header *h, const char *more)
{
	FREED char *how = cli_settings(c), *all = xasprintf("%s%s%s", how, *how && *more ? " " : "", more);
	header_provenance(h, c->name, all);
}

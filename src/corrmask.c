/*
 * corrmask: one name for the tools and for the pipelines that are installed with them.
 *
 *     corrmask TOOL ARGUMENT...                runs the tool that lies beside this program
 *     corrmask EXPERIMENT VARIABLE=VALUE...    runs make with pipelines/Makefile, in the current folder; FILE... stands for DATA=FILE...;
 *                                              errors are those of the tools, without make's lines after them
 *     corrmask help TOOL|EXPERIMENT            the same as --help after the name
 *     corrmask data/NAME.h5ad                  the same, for a corpus of the catalogue
 *
 * The experiments are the make targets with a comment after ##, and their variables are those that the comments at the head of the .mk files
 * explain (variables.awk). Make refuses others (runs.mk).
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_tool(int argc, char **argv);
static int run_target(int argc, char **argv);
static int run_list(int argc, char **argv);

static const struct cli_command tools[] = {
	{"list", run_list, NULL, "list the tools and experiments; list papers: the experiments of the papers"},
#define SUBJECT(heading) {heading, NULL, NULL, NULL},
#define TOOL(name, text) {#name, run_tool, NULL, text},
#include "tools.def"
#undef SUBJECT
#undef TOOL
	{"Experiments", NULL, NULL, NULL},
	{0},
};
enum { TOOLS = sizeof tools / sizeof *tools - 1 };

static struct cli_command *commands; /* tools, then experiments */
static size_t papers; /* place of the heading over the experiments of the papers */
static char *here, *pipelines; /* the folders of this program and of the Makefile */

/* The folder of the Makefile: installed, or in the sources. */
static char *find_pipelines(void)
{
	static const char *const place[] = {"../share/corrmask/pipelines", "../pipelines", "../../../pipelines"};
	for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
		char *path = xasprintf("%s/%s/Makefile", here, place[i]), *found = realpath(path, NULL);
		free(path);
		if (found)
			return dirname(found); /* a part of found */
	}
	return NULL;
}

static void each_line_of(const char *path, void (*use)(char *line, void *arg), void *arg)
{
	FREED char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "re");
	if (!f)
		die("%s: %s", path, strerror(errno));
	while (getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		use(line, arg);
	}
	if (ferror(f))
		die("%s: %s", path, strerror(errno));
	fclose(f);
}

/* The .mk files: what experiments share, and a folder for each experiment. */
static void list_makefiles(glob_t *files)
{
	for (int deep = 0; deep < 2; deep++) {
		FREED char *pattern = xasprintf("%s/%s*.mk", pipelines, deep ? "*/" : "");
		if (glob(pattern, deep ? GLOB_APPEND : 0, NULL, files))
			die("%s: cannot be listed", pattern);
	}
}

/* Call use(line, arg) for every line of the .mk files: those of what people run first, then all others. */
static void each_line(void (*use)(char *line, void *arg), void *arg)
{
	static const char *const first[] = {"pretrain/pretrain.mk", "annotate/annotate.mk", "embed/embed.mk", "finetune/finetune.mk",
		"perturb/perturb.mk", "corpus/corpus.mk", "demo/demo.mk"};
	enum { FIRST = sizeof first / sizeof *first };
	glob_t files = {0};
	char *path[FIRST];
	for (size_t i = 0; i < FIRST; i++) {
		path[i] = xasprintf("%s/%s", pipelines, first[i]);
		each_line_of(path[i], use, arg);
	}
	list_makefiles(&files);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		size_t k = 0;
		while (k < FIRST && strcmp(files.gl_pathv[i], path[k]))
			k++;
		if (k == FIRST)
			each_line_of(files.gl_pathv[i], use, arg);
	}
	globfree(&files);
	for (size_t i = 0; i < FIRST; i++)
		free(path[i]);
}

static void add_command(struct cli_command command, size_t *n)
{
	commands = xrealloc(commands, *n + 2, sizeof *commands);
	commands[(*n)++] = command;
	commands[*n] = (struct cli_command){0};
}

/* How many commands there are, and the mark of the experiments to add: "demo: FILES ## text" is one for one's own cells, "table3: FILES ##@ text" one of
 * the papers' */
struct adding {
	size_t n;
	const char *mark;
};

static void add_target(char *line, void *arg)
{
	struct adding *a = arg;
	size_t length = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789-");
	const char *text = strstr(line, a->mark);
	if (length && line[length] == ':' && text)
		add_command((struct cli_command){xstrndup(line, length), run_target, NULL, xstrdup(text + strlen(a->mark))}, &a->n);
}

static size_t add_targets(size_t n)
{
	struct adding a = {n, "## "};
	each_line(add_target, &a);
	papers = a.n;
	add_command((struct cli_command){"Experiments of the papers", NULL, NULL, NULL}, &a.n);
	a.mark = "##@ ";
	each_line(add_target, &a);
	return a.n;
}

/* data/NAME.h5ad: a corpus to download, of which make knows by a pattern. */
static bool is_corpus(const char *word)
{
	size_t length = strlen(word);
	return length > strlen("data/.h5ad") && strncmp(word, "data/", 5) == 0 && strcmp(word + length - 5, ".h5ad") == 0;
}

/* "data/NAME" without .h5ad */
static bool is_corpus_without_end(const char *word)
{
	return strncmp(word, "data/", 5) == 0 && word[5] && !strpbrk(word + 5, "./");
}

static int run_list(int argc, char **argv)
{
	bool of_papers = argc == 2 && strcmp(argv[1], "papers") == 0;
	if (argc > 1 && !of_papers)
		usage_error("list takes no argument but papers, and got '%s'", argv[argc > 2 ? 2 : 1]);
	if (of_papers) {
		cli_list(commands + papers);
	} else {
		commands[papers] = (struct cli_command){0};
		cli_list(commands);
		if (pipelines)
			puts("\ncorrmask list papers: experiments for the tables and figures of the papers");
	}
	return stdout_lost();
}

static int run_tool(int argc, char **argv)
{
	char *path = xasprintf("%s/%s", here, argv[0]);
	execv(path, argv);
	die("%s: %s", path, strerror(errno));
}

/* The variables of an experiment, for the completion of a shell. make would tell too, but not as fast. */
static int print_variables(const char *experiment)
{
	glob_t files = {0};
	list_makefiles(&files);
	char **list = xcalloc(files.gl_pathc + 8, sizeof *list);
	int n = 0;
	list[n++] = xstrdup("awk");
	list[n++] = xstrdup("-v");
	list[n++] = xasprintf("of=%s", experiment);
	list[n++] = xstrdup("-v");
	list[n++] = xstrdup("words=1");
	list[n++] = xstrdup("-f");
	list[n++] = xasprintf("%s/variables.awk", pipelines);
	for (size_t i = 0; i < files.gl_pathc; i++)
		list[n++] = files.gl_pathv[i];
	execvp("awk", list);
	die("awk: %s", strerror(errno));
}

/* A word that is none of make: no option, no number of -j N, no variable, no other experiment. It is a file of cells. */
static bool is_file(const char *word)
{
	if (*word == '-' || !word[strspn(word, "0123456789")] || strchr(word, '='))
		return false;
	for (const struct cli_command *c = commands; c->name; c++)
		if (c->run == run_target && strcmp(c->name, word) == 0)
			return false;
	return true;
}

static char upper(char c)
{
	return c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

struct variable_search {
	const char *word; /* NAME, or --name and maybe =VALUE */
	char *name; /* what was found, or NULL */
};

/* A line "# NAME  text" of an .mk file has a variable; find the one that was written as an option, or apart from its value. */
static void find_variable(char *line, void *arg)
{
	struct variable_search *s = arg;
	const char *word = s->word;
	bool option = strncmp(word, "--", 2) == 0;
	size_t length = strncmp(line, "# ", 2) == 0 ? strspn(line + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") : 0, i = 0;
	if (s->name || !length || strncmp(line + 2 + length, "  ", 2))
		return;
	for (word += option ? 2 : 0; i < length && word[i]; i++)
		if ((option ? upper(word[i]) : word[i]) != line[2 + i])
			return;
	if (i == length && (!word[i] || (option && word[i] == '=')))
		s->name = xstrndup(line + 2, length);
}

/* --scale tiny, --scale=tiny and SCALE tiny are no arguments of make. */
static void refuse_option(const char *word, const char *next)
{
	struct variable_search s = {.word = word};
	if (strncmp(word, "--", 2) && (strchr(word, '=') || access(word, F_OK) == 0))
		return;
	each_line(find_variable, &s);
	const char *value = strchr(word, '=');
	if (s.name)
		usage_error("'%s': variables are VARIABLE=VALUE (did you mean %s=%s?)", word, s.name,
			value          ? value + 1
				: next ? next
				       : "VALUE");
}

/* "DATA=FILE", or of several files with \ before what xargs would read as more than a letter (common.sh, files) */
static char *data_of(char *const *file, int n)
{
	char *text = xasprintf("DATA=%s", n == 1 ? file[0] : "");
	for (int i = 0; n > 1 && i < n; i++)
		for (const char *s = file[i]; *s; s++)
			xappend(&text, "%s%s%c", s == file[i] && i ? " " : "", strchr(" \t\"'\\", *s) ? "\\" : "", *s);
	return text;
}

/*
 * Copy messages from f to standard error. Of make's own lines, "make: *** [FILE:9: demo] Error 1" follows the message of a tool and is left
 * out, unless there was none: the first is told then, as "make: *** Waiting for unfinished jobs...." may follow it.
 * "FILE:9: *** TEXT.  Stop." becomes "corrmask NAME: TEXT".
 */
static void copy_messages(FILE *f, const char *name)
{
	FREED char *line = NULL, *first = NULL;
	size_t size = 0, prefix = strlen(name);
	bool any = false;
	while (getline(&line, &size, f) > 0) {
		char *text = strstr(line, ": *** "), *stop = text ? strstr(text, ".  ") : NULL;
		if (!text || (strncmp(line, "make", 4) && strncmp(line, pipelines, strlen(pipelines)))) {
			fputs(line, stderr);
		} else if (stop) {
			*stop = 0;
			text += strlen(": *** ");
			if (strncmp(text, name, prefix) == 0 && strncmp(text + prefix, ": ", 2) == 0)
				text += prefix + 2;
			fprintf(stderr, "corrmask %s: %s\n", name, text);
		} else {
			if (!first)
				first = xstrdup(line);
			continue;
		}
		any = true;
	}
	if (first && !any)
		fputs(first, stderr);
}

/* Run make, with the terminal known to stage (common.sh), as standard error leads here. The end of make is that of this program. */
static int run_make(char *const *arguments, const char *name)
{
	int messages[2], status;
	setenv("CORRMASK_BY", "corrmask", 1); /* reports name the next command */
	if (isatty(STDERR_FILENO)) {
		FREED char *terminal = xasprintf("%d", fcntl(STDERR_FILENO, F_DUPFD, 20));
		setenv("CORRMASK_TERMINAL", terminal, 1);
	}
	pid_t make = pipe(messages) ? -1 : fork();
	if (make < 0)
		die("make: %s", strerror(errno));
	if (make == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(messages[1], STDERR_FILENO);
		close(messages[0]);
		close(messages[1]);
		execvp("make", arguments);
		die("make: %s%s", strerror(errno), errno == ENOENT ? ": the experiments need it (Debian package make)" : "");
	}
	signal(SIGINT, SIG_IGN); /* make has it too, and what it runs */
	signal(SIGQUIT, SIG_IGN);
	close(messages[1]);
	FILE *f = fdopen(messages[0], "r");
	if (f)
		copy_messages(f, name);
	while (waitpid(make, &status, 0) < 0)
		;
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 1;
}

static int run_target(int argc, char **argv)
{
	bool help = false;
	if (argc > 1 && strcmp(argv[1], "--completion") == 0)
		return print_variables(argv[0]);
	if (strpbrk(here, " \t") || strpbrk(pipelines, " \t"))
		die("'%s': make cannot read folder names with spaces: install in another folder", strpbrk(here, " \t") ? here : pipelines);
	char **list = xcalloc((size_t)argc + 9, sizeof *list), **file = xcalloc((size_t)argc, sizeof *file);
	int n = 0, files = 0;
	list[n++] = xstrdup("make");
	list[n++] = xstrdup("--no-print-directory");
	list[n++] = xstrdup("-f");
	list[n++] = xasprintf("%s/Makefile", pipelines);
	list[n++] = xasprintf("BIN=%s", here);
	for (int i = 1; i < argc; i++)
		refuse_option(argv[i], argv[i + 1]);
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			help = true;
		else if (is_file(argv[i]))
			file[files++] = argv[i];
		else
			list[n++] = argv[i];
	list[n++] = help ? xstrdup("help") : argv[0];
	if (help)
		list[n++] = xasprintf("OF=%s", argv[0]);
	if (files)
		list[n++] = data_of(file, files);
	return run_make(list, argv[0]);
}

int main(int argc, char **argv)
{
	char *self = realpath("/proc/self/exe", NULL);
	here = self ? dirname(self) : xstrdup(".");
	pipelines = find_pipelines();
	size_t n = TOOLS;
	commands = xcalloc(TOOLS + 1, sizeof *commands);
	memcpy(commands, tools, sizeof tools);
	if (pipelines)
		n = add_targets(n);
	else
		commands[papers = n - 1] = (struct cli_command){0}; /* no heading */
	if (pipelines && argc > 1 && is_corpus(argv[1]))
		add_command((struct cli_command){argv[1], run_target, NULL, NULL}, &n);
	if (pipelines && argc > 1 && is_corpus_without_end(argv[1]))
		usage_error("unknown command '%s' (did you mean %s.h5ad?)", argv[1], argv[1]);
	char option[] = "--help", *help[] = {argv[0], argc > 2 ? argv[2] : NULL, option, NULL};
	if (argc == 3 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "list"))
		argv = help; /* help TOOL, help EXPERIMENT: TOOL --help */
	return cli_commands("corrmask",
		"Run a tool or an experiment: corrmask TOOL [OPTION...] [FILE], corrmask EXPERIMENT [FILE...] [VARIABLE=VALUE...].", NULL,
		commands, argc, argv);
}

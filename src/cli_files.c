#include "cli_files.h"
#include "cli.h"
#include "cli_manifest.h"

#include "eval/results.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of the command line. */
struct named {
	char *name, *path; /* name: for messages */
	enum opt_kind kind; /* OPT_INPUT, OPT_OUTPUT, OPT_FOLDER */
};

struct names {
	struct named *file; /* [n] */
	size_t n, cap;
};

/* Pipes and devices cannot be replaced, nor an input that is not there: it may be a word, as in scperturb apply --delete all. */
static void files_add(struct names *l, const char *name, const char *path, enum opt_kind kind)
{
	struct stat st;
	if (path && kind == OPT_INPUT)
		must(cli_check_url(path, &failure));
	if (path && !strcmp(path, "-") && kind == OPT_INPUT)
		path = "/dev/stdin";
	if (!path || !*path || !strcmp(path, "-") || (stat(path, &st) ? kind == OPT_INPUT : !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return;
	grow(l->file, l->cap, l->n + 1);
	l->file[l->n++] = (struct named){xstrdup(name), xstrdup(path), kind};
}

static void add_list(struct names *l, const char *name, const char *paths)
{
	size_t n;
	char **path = opt_list(paths, &n);
	for (size_t i = 0; i < n; i++)
		files_add(l, name, path[i], OPT_INPUT);
	free_list(path, n);
}

int cli_same_place(const char *a, const char *b)
{
	struct stat s, t;
	return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

static int same_file(const char *a, const char *b)
{
	if (cli_same_place(a, b))
		return 1;
	FREED char *to = file_target(a), *also = file_target(b);
	FREED char *in = to ? file_folder(to) : NULL, *too = also ? file_folder(also) : NULL;
	return in && too && cli_same_place(in, too) && strcmp(file_name(to), file_name(also)) == 0;
}

static int lies_in(const char *path, const char *folder)
{
	FREED char *to = file_target(path), *in = to ? file_folder(to) : NULL, *real = in ? realpath(in, NULL) : NULL;
	int inside = 0;
	for (size_t n = real ? strlen(real) : 0; n && !inside; n = (size_t)(file_name(real) - real) - 1, real[n] = 0)
		inside = cli_same_place(real, folder);
	return inside;
}

/* In a zarr store, a new file can be a chunk that was not there. */
static int is_store(const char *folder)
{
	static const char *const marks[] = {"zarr.json", ".zgroup", ".zattrs"};
	int found = 0;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		FREED char *path = xasprintf("%s/%s", folder, marks[i]);
		found |= access(path, F_OK) == 0;
	}
	return found;
}

/* A new file may lie in a folder that is read, but for stores; none of the folder's files may be replaced. A folder that is written may lie
 * in one that is read, as a model next to that of --init: sctrain itself looks at what is there. */
static void compare(const struct named *out, const struct named *other)
{
	struct stat st;
	int folder = stat(other->path, &st) == 0 && S_ISDIR(st.st_mode), there = stat(out->path, &st) == 0;
	if (folder && out->kind == OPT_FOLDER && other->kind == OPT_INPUT)
		return;
	if (same_file(out->path, other->path))
		usage_error("%s and %s name the same file: %s", out->name, other->name, out->path);
	if (folder && other->kind != OPT_OUTPUT && (there || other->kind == OPT_FOLDER || is_store(other->path)) &&
		lies_in(out->path, other->path))
		usage_error(
			"%s is in %s, which is %s: %s", out->name, other->path, other->kind == OPT_INPUT ? "read" : "written", out->path);
}

static int is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

/* Two outputs would mix on standard output. */
static void check_stdout(struct option_def *const *tables, const char *const *output)
{
	const char *first = is_stdout(*output) ? "output" : NULL;
	for (; *tables; tables++)
		for (const struct option_def *o = *tables; o->name; o++) {
			if (o->kind != OPT_OUTPUT || o->to == (void *)(uintptr_t)output || !o->seen || !is_stdout(opt_text(o)))
				continue;
			if (first && strcmp(o->name, "report"))
				usage_error("--%s and --%s are both standard output: name a file for one of them", first, o->name);
			first = o->name;
		}
}

/* A folder that a file of the end cannot be written to is told before the work. Devices and links are what they lead to. */
static void check_folder(const char *path)
{
	struct stat at;
	if (is_stdout(path) || (!lstat(path, &at) && !S_ISREG(at.st_mode)))
		return;
	FREED char *folder = file_folder(path);
	if (access(folder, W_OK))
		die("%s: %s", path, strerror(errno));
}

void cli_check_files(struct option_def *const *tables, char *const *operand, int n, int lists, const char *const *output)
{
	struct names l = {0};
	check_stdout(tables, output);
	if (is_stdout(*output))
		files_add(&l, "standard output", "/dev/stdout", OPT_OUTPUT);
	for (int i = 0; i < n; i++)
		if (lists)
			add_list(&l, "an input", operand[i]);
		else
			files_add(&l, "an input", operand[i], OPT_INPUT);
	for (struct option_def *const *t = tables; *t; t++)
		for (const struct option_def *o = *t; o->name; o++) {
			if (!o->seen || (o->kind != OPT_INPUT && o->kind != OPT_OUTPUT && o->kind != OPT_FOLDER))
				continue;
			FREED char *name = xasprintf("--%s", o->name);
			files_add(&l, name, opt_text(o), o->kind);
			if (o->kind != OPT_OUTPUT || o->to == (void *)(uintptr_t)output)
				continue;
			check_folder(opt_text(o));
			if (strcmp(o->name, "report"))
				outfile_hold(); /* it appears with the main output, in cli_report, or not at all */
		}
	files_add(&l, "CORRMASK_REPORT", getenv("CORRMASK_REPORT"), OPT_OUTPUT);
	for (size_t i = 0; i < l.n; i++)
		for (size_t k = 0; k < l.n && l.file[i].kind != OPT_INPUT; k++)
			if (k != i)
				compare(l.file + i, l.file + k);
	for (size_t i = 0; i < l.n; i++)
		free_all(l.file[i].name, l.file[i].path);
	free(l.file);
}

void cli_output(const struct cli *c, struct outfile *f)
{
	if (c->opened)
		*f = *c->opened;
	else
		must(outfile_open(f, c->output, 0, &failure));
}

void cli_write(const char *path, char *text)
{
	must(outfile_text(path, text, &failure));
	free(text);
}

void cli_write_results(const struct cli *c, struct results *of)
{
	cli_write(c->output, results_print(of));
	results_free(of);
}

enum { COLUMNS = 256, SCREEN = 80 };

/* The columns from `from` to before `to` of all lines, after the first column, under each other. Nothing follows the last text of a line. */
static void print_columns(FILE *f, const char *text, const size_t *width, size_t from, size_t to)
{
	size_t column = 0, space = 0, n;
	for (const char *p = text; *p; p += n + 1) {
		n = strcspn(p, "\t\n");
		int last = p[n] == '\n', shown = !column || (column >= from && column < to);
		if (shown && n)
			fprintf(f, "%*s%.*s", (int)space, "", (int)n, p);
		space = !shown ? space : (n ? 0 : space) + width[column] - n + 2;
		if (last)
			fputc('\n', f);
		space = last ? 0 : space;
		column = last ? 0 : column + (column + 1 < COLUMNS);
	}
}

/* A table for a screen; the text is freed. A table wider than the screen is cut into several, of which each has the first column. */
static char *aligned(char *text)
{
	size_t width[COLUMNS] = {0}, column = 0, columns = 0, n = 0, size;
	char *out = NULL;
	for (const char *p = text; *p; p++) {
		int end = *p == '\t' || *p == '\n';
		n = end ? 0 : n + 1;
		width[column] = n > width[column] ? n : width[column];
		columns = column + 1 > columns ? column + 1 : columns;
		column = *p == '\n' ? 0 : *p == '\t' && column + 1 < COLUMNS ? column + 1 : column;
	}
	FILE *f = xmemopen(&out, &size);
	for (size_t from = 1, to; from < columns || from == 1; from = to) {
		size_t wide = width[0];
		for (to = from; to < columns && (to == from || wide + 2 + width[to] <= SCREEN); to++)
			wide += 2 + width[to];
		if (from > 1)
			fputc('\n', f);
		print_columns(f, text, width, from, to);
		to += to == 1; /* a table of one column */
	}
	xmemclose(f, &out);
	free(text);
	return out;
}

void cli_write_table(const struct cli *c, char *text)
{
	struct outfile f;
	if (is_stdout(c->output) && isatty(STDOUT_FILENO))
		text = aligned(text);
	cli_output(c, &f);
	must(outfile_write(&f, text, strlen(text), &failure));
	must(outfile_commit(&f, &failure));
	free(text);
}

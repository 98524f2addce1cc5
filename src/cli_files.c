#include "cli_files.h"
#include "cli.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Is it a file that an output replaces? Not a pipe, a device or standard output. */
static int is_file(const char *path)
{
	struct stat st;
	return path && *path && strcmp(path, "-") != 0 && (stat(path, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

int cli_same_place(const char *a, const char *b)
{
	struct stat s, t;
	return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int same_file(const char *a, const char *b)
{
	if (cli_same_place(a, b))
		return 1;
	char *to = file_target(a), *also = file_target(b);
	char *in = to ? file_folder(to) : NULL, *too = also ? file_folder(also) : NULL;
	int same = in && too && cli_same_place(in, too) && strcmp(base(to), base(also)) == 0;
	free(to);
	free(also);
	free(in);
	free(too);
	return same;
}

/* Does `path` lie in this folder, which is there or is still to be made? */
static int lies_in(const char *path, const char *folder)
{
	char *to = file_target(path), *in = to ? file_folder(to) : NULL;
	int inside = in && same_file(in, folder);
	free(to);
	free(in);
	return inside;
}

static void compare(const char *name, const char *path, const char *other_name, const char *other)
{
	if (is_file(other) && same_file(path, other))
		usage_error("%s and %s name the same file: %s", name, other_name, path);
}

static const char *value(const struct option_def *o)
{
	return o->kind == OPT_OUTPUT || o->kind == OPT_STRING ? *(const char **)o->to : NULL;
}

static int names_a_file(const struct option_def *o)
{
	static const char *const files[] = {"FILE", "EMB", "GRAPH", "TABLE", "MODEL"};
	int is = o->kind == OPT_OUTPUT;
	for (size_t i = 0; o->arg && i < sizeof files / sizeof *files; i++)
		is |= !strcmp(o->arg, files[i]);
	return is;
}

/* An output among the files of a model that is read would replace one of them, or be taken for one. */
static void check_folder(const char *name, const char *path, const struct option_def *o)
{
	if (o->kind == OPT_STRING && o->arg && !strcmp(o->arg, "DIR") && value(o) && lies_in(path, value(o)))
		usage_error("%s is in the folder of the model that is read, %s: %s", name, value(o), path);
}

/* Compare an output with all other files of the command line. self: its option, or NULL. */
static void check(const char *name, const char *path, const struct option_def *self, struct option_def *const *tables, char *const *operand,
	int n, const char *const *output)
{
	if (!is_file(path))
		return;
	for (int i = 0; i < n; i++)
		compare(name, path, "an input", operand[i]);
	for (; *tables; tables++)
		for (const struct option_def *o = *tables; o->name; o++) {
			check_folder(name, path, o);
			if (o == self || !names_a_file(o) || !value(o))
				continue;
			char *other = xasprintf("--%s", o->name);
			compare(name, path, other, value(o));
			if (o->to == (void *)(uintptr_t)output && is_file(*output) && lies_in(path, *output))
				usage_error("%s is in the output folder %s: %s", name, *output, path);
			free(other);
		}
}

/* The main output replaces no input. (scview --into FILE without -o changes FILE, so there both may be one; sctrain looks at its models,
 * and may write one into the folder of that of --init.) */
static void check_main(const char *path, struct option_def *const *tables, char *const *operand, int n)
{
	if (!is_file(path))
		return;
	for (int i = 0; i < n; i++)
		compare("--output", path, "an input", operand[i]);
	for (; *tables; tables++)
		for (const struct option_def *o = *tables; o->name; o++) {
			if (strcmp(o->name, "init"))
				check_folder("--output", path, o);
			if (o->kind != OPT_STRING || !names_a_file(o) || !strcmp(o->arg, "MODEL") || !strcmp(o->name, "into"))
				continue;
			char *other = xasprintf("--%s", o->name);
			compare("--output", path, other, value(o));
			free(other);
		}
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
			if (o->kind != OPT_OUTPUT || o->to == (void *)(uintptr_t)output || !value(o) || !is_stdout(value(o)))
				continue;
			if (first && strcmp(o->name, "report"))
				usage_error("--%s and --%s are both standard output: name a file for one of them", first, o->name);
			first = o->name;
		}
}

void cli_check_files(struct option_def *const *tables, char *const *operand, int n, const char *const *output)
{
	check_stdout(tables, output);
	check_main(*output, tables, operand, n);
	check("CORRMASK_REPORT", getenv("CORRMASK_REPORT"), NULL, tables, operand, n, output);
	for (struct option_def *const *t = tables; *t; t++)
		for (const struct option_def *o = *t; o->name; o++) {
			if (o->kind != OPT_OUTPUT || o->to == (void *)(uintptr_t)output)
				continue;
			char *name = xasprintf("--%s", o->name);
			check(name, value(o), o, tables, operand, n, output);
			free(name);
			if (value(o) && strcmp(o->name, "report"))
				outfile_hold(); /* it appears with the main output, in cli_report, or not at all */
		}
}

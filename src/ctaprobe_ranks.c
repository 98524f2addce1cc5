/*
 * ctaprobe ranks: one table of methods from their results. A method's score is the mean of its metrics. Its rank is the mean of its ranks
 * by each metric, where the largest value has rank 1 and equal values share the smallest rank [R2MAE's tables].
 */
#include "ctaprobe.h"

#include "base/tsv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct error e;
static const char *metrics_text = "balanced_accuracy+macro_f1";

static struct option_def options[] = {
	{.letter = 'm',
		.name = "metrics",
		.kind = OPT_STRING,
		.to = &metrics_text,
		.arg = "A+B,C",
		.help = "metrics of the first result, of the second, ... (default balanced_accuracy+macro_f1)"},
	{0},
};
struct cli ranks_cli = {.name = "ctaprobe ranks",
	.operands = "RESULT[,RESULT...]...",
	.options = options,
	.common = CLI_OUT,
	.summary = "Rank methods by the metrics of their results."};

/* The table: a row for each method, a column for each metric. */
struct table {
	size_t files, columns, methods;
	size_t *file;  /* [columns] which result of a method has the metric */
	char **metric; /* [columns] */
	double *value; /* [methods, columns] */
};

static void parse_metrics(struct table *t)
{
	char **list = opt_list(metrics_text, &t->files);
	for (size_t i = 0; i < t->files; i++) {
		char *save = NULL;
		if (!*list[i])
			usage_error("--metrics %s: no metric of result %zu", metrics_text, i + 1);
		for (char *name = strtok_r(list[i], "+", &save); name; name = strtok_r(NULL, "+", &save)) {
			t->metric = xrealloc(t->metric, t->columns + 1, sizeof *t->metric);
			t->file = xrealloc(t->file, t->columns + 1, sizeof *t->file);
			t->metric[t->columns] = xstrdup(name);
			t->file[t->columns++] = i;
		}
	}
	opt_list_free(list, t->files);
	if (!t->columns)
		usage_error("--metrics '%s': no metric", metrics_text);
}

/* Read the metrics of result `file` of a method into value [columns]. */
static void read_result(const struct table *t, size_t file, const char *path, double *value)
{
	struct tsv in;
	int got;
	if (tsv_open(&in, path, &e))
		die("%s", e.msg);
	while ((got = tsv_next(&in, &e)) > 0) {
		if (in.n != 2) {
			got = tsv_error(
				&in, &e, "found %zu fields, expected metric and value (the table of another ctaprobe command)", in.n);
			break;
		}
		for (size_t c = 0; c < t->columns; c++)
			if (t->file[c] == file && strcmp(in.field[0], t->metric[c]) == 0) {
				char *end;
				value[c] = strtod(in.field[1], &end);
				if (!*in.field[1] || *end || !isfinite(value[c]))
					die("%s: line %zu: %s is '%s', expected a number", path, in.line, in.field[0], in.field[1]);
			}
	}
	if (got < 0)
		die("%s", e.msg);
	for (size_t c = 0; c < t->columns; c++)
		if (t->file[c] == file && isnan(value[c]))
			die("%s: no metric '%s'", path, t->metric[c]);
	tsv_close(&in);
}

static void read_method(struct table *t, const char *results)
{
	size_t n;
	char **path = opt_list(results, &n);
	if (n != t->files)
		usage_error("'%s': %zu results, but --metrics has metrics of %zu", results, n, t->files);
	t->value = xrealloc(t->value, (t->methods + 1) * t->columns, sizeof *t->value);
	double *value = t->value + t->methods++ * t->columns;
	for (size_t c = 0; c < t->columns; c++)
		value[c] = NAN;
	for (size_t i = 0; i < n; i++)
		read_result(t, i, path[i], value);
	opt_list_free(path, n);
}

static void print_method(FILE *f, const struct table *t, size_t method)
{
	const double *value = t->value + method * t->columns;
	double score = 0, rank = 0;
	for (size_t c = 0; c < t->columns; c++) {
		score += value[c];
		rank += 1;
		for (size_t o = 0; o < t->methods; o++)
			rank += t->value[o * t->columns + c] > value[c];
	}
	fprintf(f, "%s\t%.17g\t%.17g", ranks_cli.operand[method], score / (double)t->columns, rank / (double)t->columns);
	for (size_t c = 0; c < t->columns; c++)
		fprintf(f, "\t%.17g", value[c]);
	fputc('\n', f);
}

int ranks_main(int argc, char **argv)
{
	struct table t = {0};
	char *text = NULL;
	size_t size;
	cli_init(&ranks_cli, argc, argv);
	if (ranks_cli.noperand < 1)
		usage_error("no results: name those of every method");
	parse_metrics(&t);
	for (int i = 0; i < ranks_cli.noperand; i++)
		read_method(&t, ranks_cli.operand[i]);
	FILE *f = xmemopen(&text, &size);
	fputs("method\tscore\trank", f);
	for (size_t c = 0; c < t.columns; c++)
		fprintf(f, "\t%s", t.metric[c]);
	fputc('\n', f);
	for (size_t i = 0; i < t.methods; i++)
		print_method(f, &t, i);
	xmemclose(f, &text);
	write_text(ranks_cli.output, text, size);
	cli_report(&ranks_cli, "%zu methods, %zu metrics", t.methods, t.columns);
	for (size_t c = 0; c < t.columns; c++)
		free(t.metric[c]);
	free(t.metric);
	free(t.file);
	free(t.value);
	return 0;
}

/*
 * armstat leaderboard: one table of methods from their results. A method's score is the mean of its metrics. Its rank is the mean of its ranks
 * by each metric, where the largest value has rank 1 and equal values share the smallest rank [R2MAE's tables].
 */
#include "armstat.h"
#include "cli.h"

#include "base/option.h"

static const char *metrics_text = "balanced_accuracy+macro_f1";

static struct option_def options[] = {
	{'m', "metrics", OPT_STRING, &metrics_text, "A+B,C",
		"metrics of the first result, of the second, ... (default balanced_accuracy+macro_f1)"},
	{0},
};
struct cli leaderboard_cli = {.name = "armstat leaderboard",
	.operands = "RESULT[,RESULT...]...",
	.options = options,
	.common = CLI_OUT | CLI_LISTS,
	.summary = "Rank methods by the metrics of their results."};

/* The table: a row for each method, a column for each metric. */
struct table {
	size_t files, columns, methods;
	size_t *file; /* [columns] which result of a method has the metric */
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
	free_list(list, t->files);
	if (!t->columns)
		usage_error("--metrics '%s': no metric", metrics_text);
}

static void read_method(struct table *t, const char *results)
{
	size_t n;
	char **path = opt_list(results, &n);
	if (n != t->files)
		usage_error("'%s': %zu results, but --metrics has metrics of %zu", results, n, t->files);
	t->value = xrealloc(t->value, (t->methods + 1) * t->columns, sizeof *t->value);
	double *value = t->value + t->methods++ * t->columns;
	for (size_t c = 0, k; c < t->columns; c += k) { /* the metrics of one result stand together */
		for (k = 1; c + k < t->columns && t->file[c + k] == t->file[c]; k++)
			;
		must(results_read(path[t->file[c]], t->metric + c, k, value + c, &failure));
	}
	free_list(path, n);
}

static void print_number(FILE *f, double v)
{
	char text[DECIMAL];
	fprintf(f, "\t%s", decimal_print(text, v));
}

/* The names of the columns: a metric of several results has the number of the result behind it. */
static void print_names(FILE *f, const struct table *t)
{
	fputs("method\tscore\trank", f);
	for (size_t c = 0; c < t->columns; c++) {
		size_t same = 0;
		for (size_t o = 0; o < t->columns; o++)
			same += !strcmp(t->metric[o], t->metric[c]);
		fprintf(f, same > 1 ? "\t%s.%zu" : "\t%s", t->metric[c], t->file[c] + 1);
	}
	fputc('\n', f);
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
	fputs(leaderboard_cli.operand[method], f);
	print_number(f, score / (double)t->columns);
	print_number(f, rank / (double)t->columns);
	for (size_t c = 0; c < t->columns; c++)
		print_number(f, value[c]);
	fputc('\n', f);
}

int armstat_leaderboard(int argc, char **argv)
{
	static struct table t;
	char *text = NULL;
	cli_init(&leaderboard_cli, argc, argv);
	if (leaderboard_cli.noperand < 1)
		usage_error("no results: name those of every method");
	parse_metrics(&t);
	for (int i = 0; i < leaderboard_cli.noperand; i++)
		read_method(&t, leaderboard_cli.operand[i]);
	FILE *f = xmemopen(&text, &(size_t){0});
	print_names(f, &t);
	for (size_t i = 0; i < t.methods; i++)
		print_method(f, &t, i);
	xmemclose(f, &text);
	cli_write(leaderboard_cli.output, text);
	cli_measured_all({"methods", (double)t.methods}, {"metrics", (double)t.columns});
	cli_report(&leaderboard_cli, "%zu methods, %zu metrics", t.methods, t.columns);
	return 0;
}

#include "eval/results.h"

#include "base/tsv.h"

struct results *results_new(void)
{
	return xcalloc(1, sizeof(struct results));
}

void results_free(struct results *r)
{
	for (size_t i = 0; i < r->n; i++)
		free_all(r->row[i].metric, r->row[i].text);
	free(r->row);
	free_list(r->name, r->k);
	free(r);
}

static struct result_row *results_add_row(struct results *r, const char *metric, double value)
{
	grow(r->row, r->cap, r->n + 1);
	r->row[r->n] = (struct result_row){.metric = xstrdup(metric), .value = value};
	return &r->row[r->n++];
}

void results_add(struct results *r, const char *metric, double value)
{
	results_add_row(r, metric, value);
}

void results_add_each(struct results *r, const struct named_number *row)
{
	for (; row->name; row++)
		results_add(r, row->name, row->value);
}

void results_text(struct results *r, const char *metric, const char *text)
{
	results_add_row(r, metric, NAN)->text = xstrdup(text);
}

void results_fold(struct results *r, const char *metric, double value)
{
	results_add_row(r, metric, value)->fold = 1;
}

void results_classes(struct results *r, char *const *name, size_t k)
{
	r->name = xstrdup_list(name, k);
	r->k = k;
	results_add(r, "classes", (double)k);
}

void results_list(struct results *r, const char *metric, const double *value)
{
	for (size_t i = 0; i < r->k; i++)
		results_add_row(r, metric, value[i])->class = i + 1;
}

void results_counts(struct results *r, const char *metric, const uint64_t *value)
{
	for (size_t i = 0; i < r->k; i++)
		results_add_row(r, metric, (double)value[i])->class = i + 1;
}

void results_flags(struct results *r, const char *metric, const uint8_t *value)
{
	for (size_t i = 0; i < r->k; i++)
		results_add_row(r, metric, value[i])->class = i + 1;
}

void results_pairs(struct results *r, const char *metric, const uint64_t *value)
{
	for (size_t i = 0; i < r->k * r->k; i++) {
		struct result_row *row = results_add_row(r, metric, (double)value[i]);
		row->class = i / r->k + 1;
		row->other = i % r->k + 1;
	}
}

/* ---- repeats ---- */

struct results *results_mean(struct results *const *one, size_t n, const char *metric)
{
	struct results *all = one[0];
	FREED char *list = xasprintf("%s_repeat", metric);
	size_t rows = all->n;
	if (n == 1)
		return all;
	FREED double *repeat = xmalloc(n * sizeof *repeat);
	for (size_t i = 0; i < rows; i++) {
		struct result_row *row = &all->row[i];
		double sum = 0;
		if (row->fold || row->text)
			continue;
		for (size_t t = 0; t < n; t++) {
			double value = t ? one[t]->row[i].value : row->value;
			sum += value / (double)n;
			if (strcmp(row->metric, metric) == 0)
				repeat[t] = value;
		}
		row->value = sum;
	}
	for (size_t t = 1; t < n; t++)
		for (size_t i = 0; i < rows; i++)
			if (one[t]->row[i].fold)
				results_fold(all, one[t]->row[i].metric, one[t]->row[i].value);
	for (size_t t = 0; t < n; t++)
		results_fold(all, list, repeat[t]);
	results_add(all, "repeats", (double)n);
	for (size_t t = 1; t < n; t++)
		results_free(one[t]);
	return all;
}

/* ---- text ---- */

static void print_number(FILE *f, double v)
{
	char text[DECIMAL];
	fprintf(f, "\t%s\n", isfinite(v) ? decimal_print(text, v) : "nan");
}

/* Class names are part of a metric's name: control characters and backslashes are escaped as in scview. */
static void print_name(FILE *f, const char *before, const char *name)
{
	FREED char *text = tsv_escaped(name);
	fprintf(f, "%s%s", before, text);
}

static void print_row(FILE *f, const struct results *r, const struct result_row *row)
{
	if (row->other && row->value == 0) /* NOLINT: no cell */
		return;
	fputs(row->metric, f);
	if (row->class)
		print_name(f, ":", r->name[row->class - 1]);
	if (row->other)
		print_name(f, ":", r->name[row->other - 1]);
	if (!row->text) {
		print_number(f, row->value);
		return;
	}
	print_name(f, "\t", row->text);
	fputc('\n', f);
}

/* The list over folds that begins at row `at`; the rows of several lists may alternate. */
static void print_folds(FILE *f, const struct results *r, size_t at)
{
	const char *metric = r->row[at].metric;
	double sum = 0, squares = 0;
	int n = 0;
	for (size_t i = at; i < r->n; i++)
		if (strcmp(r->row[i].metric, metric) == 0) {
			sum += r->row[i].value;
			n++;
		}
	for (size_t i = at; i < r->n; i++)
		if (strcmp(r->row[i].metric, metric) == 0)
			squares += (r->row[i].value - sum / n) * (r->row[i].value - sum / n);
	fprintf(f, "%s_mean", metric);
	print_number(f, sum / n);
	if (n > 1) {
		fprintf(f, "%s_sd", metric);
		print_number(f, sqrt(squares / (n - 1)));
	}
	n = 0;
	for (size_t i = at; i < r->n; i++)
		if (strcmp(r->row[i].metric, metric) == 0) {
			fprintf(f, "%s:%d", metric, ++n);
			print_number(f, r->row[i].value);
		}
}

char *results_print(const struct results *r)
{
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	fputs("metric\tvalue\n", f);
	for (size_t i = 0; i < r->n; i++) {
		size_t first = 0;
		if (!r->row[i].fold) {
			print_row(f, r, &r->row[i]);
			continue;
		}
		while (strcmp(r->row[first].metric, r->row[i].metric))
			first++;
		if (first == i)
			print_folds(f, r, i);
	}
	xmemclose(f, &text);
	return text;
}

/* ---- records ---- */

void record_open(struct record *r)
{
	*r = (struct record){0};
	r->names = xmemopen(&r->names_text, &r->names_size);
	r->rows = xmemopen(&r->rows_text, &r->rows_size);
}

void record_each(struct record *r, const struct named_number *v)
{
	for (; v->name; v++)
		record_number(r, v->name, v->value);
}

void record_text(struct record *r, const char *column, const char *v)
{
	const char *between = r->columns++ ? "\t" : "";
	if (!r->n)
		print_name(r->names, between, column);
	print_name(r->rows, between, v ? v : "NA");
}

void record_number(struct record *r, const char *column, double v)
{
	char text[DECIMAL];
	record_text(r, column, isfinite(v) ? decimal_print(text, v) : NULL);
}

void record_end(struct record *r)
{
	fputc('\n', r->rows);
	r->columns = 0;
	r->n++;
}

char *record_print(struct record *r)
{
	xmemclose(r->names, &r->names_text);
	xmemclose(r->rows, &r->rows_text);
	char *text = xasprintf("%s\n%s", r->names_text, r->rows_text);
	free_all(r->names_text, r->rows_text);
	return text;
}

/* ---- reading ---- */

static int read_line(const struct tsv *t, char *const *metric, size_t n, double *value, struct error *e)
{
	if (t->n != 2)
		return tsv_error(t, e, "found %zu fields, expected metric and value (the table of another command)", t->n);
	for (size_t i = 0; i < n; i++) {
		char *end;
		if (strcmp(t->field[0], metric[i]))
			continue;
		value[i] = strtod(t->field[1], &end);
		if (!*t->field[1] || *end || !isfinite(value[i]))
			return tsv_error(t, e, "%s is '%s', expected a number", t->field[0], t->field[1]);
	}
	return 0;
}

int results_read(const char *path, char *const *metric, size_t n, double *value, struct error *e)
{
	RELEASED(tsv_close) struct tsv t = {0};
	int got;
	for (size_t i = 0; i < n; i++)
		value[i] = NAN;
	if (tsv_open(&t, path, e))
		return -1;
	while ((got = tsv_next(&t, e)) > 0)
		if (read_line(&t, metric, n, value, e))
			return -1;
	for (size_t i = 0; i < n && !got; i++)
		if (isnan(value[i]))
			got = error_set(e, "%s: no metric '%s'", path, metric[i]);
	return got;
}

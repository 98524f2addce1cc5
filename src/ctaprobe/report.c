#include "ctaprobe.h"

#include "base/decimal.h"
#include "base/file.h"
#include "base/tsv.h"
#include "eval/bootstrap.h"
#include "eval/roc.h"
#include "eval/unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- into JSON ---- */

cJSON *report_number(double v)
{
	char text[DECIMAL];
	return isfinite(v) ? cJSON_CreateRaw(decimal_print(text, v)) : cJSON_CreateNull();
}

cJSON *report_numbers(const double *v, size_t n)
{
	cJSON *list = cJSON_CreateArray();
	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(list, report_number(v[i]));
	return list;
}

cJSON *report_counts(const uint64_t *v, size_t n)
{
	cJSON *list = cJSON_CreateArray();
	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(list, report_number((double)v[i]));
	return list;
}

void report_scores(cJSON *j, const struct metrics *m, const uint64_t *frequency, size_t rare)
{
	cJSON_AddItemToObject(j, "accuracy", report_number(m->accuracy));
	cJSON_AddItemToObject(j, "balanced_accuracy", report_number(m->balanced_accuracy));
	cJSON_AddItemToObject(j, "macro_f1", report_number(m->macro_f1));
	cJSON_AddItemToObject(j, "weighted_f1", report_number(m->weighted_f1));
	cJSON_AddItemToObject(j, "f1_rare", report_number(metrics_rare_f1(m, frequency, rare, NULL)));
}

void report_fit(cJSON *j, const double *predicted, const double *truth, size_t n)
{
	double unit = unit_for(fmax(largest_size(predicted, n), largest_size(truth, n))), mean = 0, total = 0, missed = 0;
	int varies = 0;
	for (size_t i = 0; i < n; i++)
		mean += truth[i] * unit / (double)n;
	for (size_t i = 0; i < n; i++) {
		double off = truth[i] * unit - mean, miss = truth[i] * unit - predicted[i] * unit;
		total += off * off;
		missed += miss * miss;
		varies |= truth[i] < truth[0] || truth[i] > truth[0];
	}
	cJSON_AddItemToObject(j, "mse", report_number(missed / (double)n / unit / unit));
	cJSON_AddItemToObject(j, "r2", report_number(varies ? 1 - missed / total : NAN));
}

static const char *const boot_key[BOOTSTRAP_SCORES] = {"accuracy", "balanced_accuracy", "macro_f1"};

static void write_replicates(const char *path, const double *value, size_t n)
{
	char *text = NULL;
	size_t size;
	FILE *f = xmemopen(&text, &size);
	fprintf(f, "replicate\t%s\t%s\t%s\n", boot_key[0], boot_key[1], boot_key[2]);
	for (size_t i = 0; i < n; i++, value += BOOTSTRAP_SCORES)
		fprintf(f, "%zu\t%.17g\t%.17g\t%.17g\n", i + 1, value[0], value[1], value[2]);
	xmemclose(f, &text);
	write_text(path, text);
}

void report_bootstrap(cJSON *j, const uint32_t *truth, const uint32_t *predicted, const uint32_t *unit, size_t n, size_t k,
	size_t replicates, uint32_t seed, const char *path)
{
	uint32_t *u = xmalloc(n * sizeof *u);
	double *value = xmalloc(replicates * BOOTSTRAP_SCORES * sizeof *value), *one = xmalloc(replicates * sizeof *one);
	for (size_t i = 0; i < n; i++)
		u[i] = unit ? unit[i] : (uint32_t)i;
	size_t units = close_gaps(u, n);
	if (units < 2)
		die("--bootstrap: the %zu tested cells are all of one group: expected at least two groups", n);
	bootstrap_scores(value, replicates, truth, predicted, u, n, k, units, seed);
	if (path)
		write_replicates(path, value, replicates);
	for (int s = 0; s < BOOTSTRAP_SCORES; s++) {
		for (size_t i = 0; i < replicates; i++)
			one[i] = value[i * BOOTSTRAP_SCORES + (size_t)s];
		char *low = xasprintf("%s_low", boot_key[s]), *high = xasprintf("%s_high", boot_key[s]);
		cJSON_AddItemToObject(j, low, report_number(bootstrap_quantile(one, replicates, 0.025)));
		cJSON_AddItemToObject(j, high, report_number(bootstrap_quantile(one, replicates, 0.975)));
		free(low);
		free(high);
	}
	cJSON_AddItemToObject(j, "bootstrap_units", report_number((double)units));
	free(u);
	free(value);
	free(one);
}

void report_classes(cJSON *j, const struct metrics *m, char *const *name, const uint64_t *frequency, const uint64_t *train_n, size_t rare)
{
	uint8_t *is_rare = xcalloc(m->k, 1);
	metrics_rare_f1(m, frequency, rare, is_rare);
	cJSON_AddItemToObject(j, "classes", cJSON_CreateStringArray((const char *const *)name, (int)m->k));
	cJSON_AddItemToObject(j, "f1", report_numbers(m->f1, m->k));
	cJSON_AddItemToObject(j, "n", report_counts(m->support, m->k));
	if (train_n)
		cJSON_AddItemToObject(j, "train_n", report_counts(train_n, m->k));
	cJSON *list = cJSON_AddArrayToObject(j, "rare");
	for (size_t k = 0; k < m->k; k++)
		cJSON_AddItemToArray(list, cJSON_CreateBool(is_rare[k]));
	report_confusion(j, m);
	free(is_rare);
}

void report_confusion(cJSON *j, const struct metrics *m)
{
	cJSON *list = cJSON_AddArrayToObject(j, "confusion");
	for (size_t t = 0; t < m->k; t++)
		cJSON_AddItemToArray(list, report_counts(m->confusion + t * m->k, m->k));
}

/* Whether a list has a number of each fold, or of each repeat. */
static int is_folds(const char *key)
{
	size_t n = strlen(key);
	return (n > 5 && strcmp(key + n - 5, "_fold") == 0) || (n > 7 && strcmp(key + n - 7, "_repeat") == 0);
}

static double value_of(const cJSON *v)
{
	return cJSON_IsNull(v) ? NAN : strtod(v->valuestring, NULL);
}

/* The mean of the items v [n], which are numbers or lists of them; texts and truths are those of the first, or false if one is. */
static cJSON *mean_item(const cJSON **v, size_t n)
{
	double sum = 0;
	if (cJSON_IsArray(v[0])) {
		cJSON *list = cJSON_CreateArray();
		const cJSON **at = xmalloc(n * sizeof *at);
		for (size_t i = 0; i < n; i++)
			at[i] = v[i]->child;
		while (at[0]) {
			cJSON_AddItemToArray(list, mean_item(at, n));
			for (size_t i = 0; i < n; i++)
				at[i] = at[i]->next;
		}
		free(at);
		return list;
	}
	if (cJSON_IsString(v[0]))
		return cJSON_Duplicate(v[0], 1);
	if (cJSON_IsBool(v[0])) {
		size_t i = 0;
		while (i + 1 < n && cJSON_IsTrue(v[i]))
			i++;
		return cJSON_Duplicate(v[i], 1);
	}
	for (size_t i = 0; i < n; i++)
		sum += value_of(v[i]) / (double)n;
	return report_number(sum);
}

cJSON *report_mean(cJSON *const *one, size_t n)
{
	if (n == 1)
		return one[0];
	cJSON *j = cJSON_CreateObject(), *item, *v;
	const cJSON **same = xmalloc(n * sizeof *same);
	const char *score = cJSON_GetObjectItemCaseSensitive(one[0], "macro_f1") ? "macro_f1" : "spearman";
	cJSON_ArrayForEach(item, one[0])
	{
		for (size_t i = 0; i < n; i++)
			same[i] = cJSON_GetObjectItemCaseSensitive(one[i], item->string);
		if (!is_folds(item->string)) {
			cJSON_AddItemToObject(j, item->string, mean_item(same, n));
			continue;
		}
		cJSON *list = cJSON_AddArrayToObject(j, item->string);
		for (size_t i = 0; i < n; i++)
			cJSON_ArrayForEach(v, same[i]) cJSON_AddItemToArray(list, cJSON_Duplicate(v, 1));
	}
	char *name = xasprintf("%s_repeat", score);
	cJSON *list = cJSON_AddArrayToObject(j, name);
	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(list, cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(one[i], score), 1));
	cJSON_AddItemToObject(j, "repeats", report_number((double)n));
	for (size_t i = 0; i < n; i++)
		cJSON_Delete(one[i]);
	free(name);
	free(same);
	return j;
}

/* ---- out of JSON ---- */

/* Class names are part of keys: control characters and backslashes are escaped as in scview. */
static void put_name(FILE *f, const char *s)
{
	char *text = tsv_escaped(s);
	fputs(text, f);
	free(text);
}

static void put_value(FILE *f, const cJSON *v)
{
	fputc('\t', f);
	if (cJSON_IsString(v))
		put_name(f, v->valuestring);
	else if (cJSON_IsBool(v))
		fputc(cJSON_IsTrue(v) ? '1' : '0', f);
	else
		fputs(cJSON_IsNull(v) ? "nan" : v->valuestring, f);
	fputc('\n', f);
}

static void put_folds(FILE *f, const cJSON *list)
{
	double sum = 0, squares = 0;
	char text[DECIMAL];
	int n = cJSON_GetArraySize(list), i = 0;
	const cJSON *v;
	cJSON_ArrayForEach(v, list) sum += value_of(v);
	cJSON_ArrayForEach(v, list) squares += (value_of(v) - sum / n) * (value_of(v) - sum / n);
	fprintf(f, "%s_mean\t%s\n", list->string, decimal_print(text, sum / n));
	if (n > 1)
		fprintf(f, "%s_sd\t%s\n", list->string, decimal_print(text, sqrt(squares / (n - 1))));
	cJSON_ArrayForEach(v, list)
	{
		fprintf(f, "%s:%d", list->string, ++i);
		put_value(f, v);
	}
}

static void put_confusion(FILE *f, const cJSON *rows, const cJSON *class)
{
	const cJSON *row, *v, *t = class->child, *p;
	cJSON_ArrayForEach(row, rows)
	{
		p = class->child;
		cJSON_ArrayForEach(v, row)
		{
			if (value_of(v) > 0) {
				fputs("confusion:", f);
				put_name(f, t->valuestring);
				fputc(':', f);
				put_name(f, p->valuestring);
				put_value(f, v);
			}
			p = p->next;
		}
		t = t->next;
	}
}

static void put_table(FILE *f, const cJSON *j)
{
	const cJSON *class = cJSON_GetObjectItemCaseSensitive(j, "classes"), *item, *v;
	fputs("metric\tvalue\n", f);
	cJSON_ArrayForEach(item, j)
	{
		const char *key = item->string;
		if (!cJSON_IsArray(item)) {
			fputs(key, f);
			put_value(f, item);
		} else if (item == class) {
			fprintf(f, "classes\t%d\n", cJSON_GetArraySize(class));
		} else if (strcmp(key, "confusion") == 0) {
			put_confusion(f, item, class);
		} else if (is_folds(key)) {
			put_folds(f, item);
		} else {
			const cJSON *c = class->child;
			cJSON_ArrayForEach(v, item)
			{
				fprintf(f, "%s:", key);
				put_name(f, c->valuestring);
				put_value(f, v);
				c = c->next;
			}
		}
	}
}

void write_text(const char *path, char *text)
{
	struct error e;
	must(outfile_text(path, text, &e), &e);
	free(text);
}

void report_write(const struct cli *c, cJSON *j, int json)
{
	char *text = NULL;
	size_t size;
	FILE *f = xmemopen(&text, &size);
	if (json) {
		char *printed = cJSON_Print(j);
		fprintf(f, "%s\n", printed);
		free(printed);
	} else {
		put_table(f, j);
	}
	xmemclose(f, &text);
	cJSON_Delete(j);
	write_text(c->output, text);
}

void report_rows(const struct cli *c, cJSON *j, cJSON *columns, const cJSON *rows)
{
	char *text = NULL;
	size_t size;
	FILE *f = xmemopen(&text, &size);
	const cJSON *row, *item;
	cJSON_ArrayForEach(item, columns)
	{
		put_name(f, item->string);
		fputc(item->next ? '\t' : '\n', f);
	}
	cJSON_ArrayForEach(row, rows)
	{
		cJSON_ArrayForEach(item, row)
		{
			if (cJSON_IsNull(item))
				fputs("NA", f);
			else
				put_name(f, item->valuestring);
			fputc(item->next ? '\t' : '\n', f);
		}
	}
	xmemclose(f, &text);
	cJSON_Delete(columns);
	cJSON_Delete(j);
	write_text(c->output, text);
}

void report_roc_curve(const char *path, const double *probability, const uint32_t *y, size_t n, size_t k)
{
	double tpr[ROC_GRID];
	char *text = NULL;
	size_t size;
	FILE *f = xmemopen(&text, &size);
	roc_mean(probability, y, n, k, tpr);
	fputs("fpr\ttpr\n", f);
	for (int g = 0; g < ROC_GRID && !isnan(tpr[g]); g++)
		fprintf(f, "%.9g\t%.9g\n", g / (ROC_GRID - 1.0), tpr[g]);
	xmemclose(f, &text);
	write_text(path, text);
}

/* ---- classes ---- */

void settle_classes(struct classes *c, uint32_t **v, const size_t *n, int lists)
{
	uint32_t *order = classes_sorted(c), *rank = xmalloc(c->n * sizeof *rank);
	char **name = xmalloc(c->n * sizeof *name);
	uint8_t *used = xcalloc(c->n, 1);
	size_t count = 0;
	for (int t = 0; t < lists; t++)
		for (size_t i = 0; i < n[t]; i++)
			used[v[t][i]] = 1;
	for (size_t k = 0; k < c->n; k++)
		if (used[order[k]]) {
			rank[order[k]] = (uint32_t)count;
			name[count++] = xstrdup(c->name[order[k]]);
		}
	for (int t = 0; t < lists; t++)
		for (size_t i = 0; i < n[t]; i++)
			v[t][i] = rank[v[t][i]];
	classes_release(c);
	for (size_t k = 0; k < count; k++) {
		classes_add(c, name[k], strlen(name[k]));
		free(name[k]);
	}
	free(name);
	free(used);
	free(order);
	free(rank);
}

size_t close_gaps(uint32_t *v, size_t n)
{
	size_t most = 0, count = 0;
	for (size_t i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	uint32_t *number = xcalloc(most + 1, sizeof *number);
	for (size_t i = 0; i < n; i++)
		number[v[i]] = 1;
	for (size_t i = 0; i <= most; i++)
		if (number[i])
			number[i] = (uint32_t)count++;
	for (size_t i = 0; i < n; i++)
		v[i] = number[v[i]];
	free(number);
	return count;
}

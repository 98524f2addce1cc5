/* Results of a command: a table of two columns, metric and value; or records, a table with a column for each name. */
#pragma once

#include "base/decimal.h"
#include "base/error.h"

struct result_row {
	char *metric;
	double value;
	char *text; /* instead of a value, or NULL */
	size_t class, other; /* 1, ...: the value of a class, or of a pair of classes; else 0 */
	unsigned fold; /* it is one value of a list: of each fold, or of each repeat */
};

struct results {
	struct result_row *row;
	size_t n, cap;
	char **name; /* [k] classes */
	size_t k;
};

/* Each function adds rows. results_list: a value for each class; results_pairs: for each pair of classes, [k, k]. */
struct results *results_new(void);
void results_free(struct results *r);
void results_add(struct results *r, const char *metric, double value);
/* results_add_all(r, {"cells", n}, {"mse", mse}): one row after another */
#define results_add_all(r, ...) results_add_each(r, (const struct named_number[]){__VA_ARGS__, {0}})
void results_add_each(struct results *r, const struct named_number *row);
void results_text(struct results *r, const char *metric, const char *text);
void results_fold(struct results *r, const char *metric, double value);
void results_classes(struct results *r, char *const *name, size_t k); /* the classes, and the row "classes", their number */
void results_list(struct results *r, const char *metric, const double *value);
void results_counts(struct results *r, const char *metric, const uint64_t *value);
void results_flags(struct results *r, const char *metric, const uint8_t *value);
void results_pairs(struct results *r, const char *metric, const uint64_t *value);

/* The mean of n results with the same rows, which are freed; one is returned as it is. Lists over folds are joined. The list METRIC_repeat has
 * the value of `metric` of each result, and "repeats" is n. */
struct results *results_mean(struct results *const *one, size_t n, const char *metric);

/* The table as text (malloced). The row of a class is called METRIC:CLASS, that of a pair METRIC:CLASS:CLASS; pairs of value 0 are left out. A
 * list over folds has its mean, METRIC_mean, its standard deviation (n - 1), METRIC_sd, and the rows METRIC:1, METRIC:2, ... */
char *results_print(const struct results *r);

/* Read the n metrics with these names from the table `path` into value [n]. Of a metric that occurs twice, the last one counts. -1 with e
 * set: a line that has not two fields, a value that is no finite number, a metric that the table lacks. */
int results_read(const char *path, char *const *metric, size_t n, double *value, struct error *e);

/*
 * Records: each has the same columns, in the same order.
 *     record_open(&r);
 *     for each record: record_text(&r, "gene", id); record_number(&r, "p", p); record_end(&r);
 *     text = record_print(&r);
 */
struct record {
	FILE *names, *rows;
	char *names_text, *rows_text;
	size_t names_size, rows_size, n, columns; /* n: finished records; columns of this one */
};
void record_open(struct record *r);
void record_number(struct record *r, const char *column, double v); /* NA if it is not finite */
#define record_numbers(r, ...) \
	record_each(r, (const struct named_number[]){__VA_ARGS__, {0}}) /* {"mean", mean}, {"sd", sd}: one after another */
void record_each(struct record *r, const struct named_number *v);
void record_text(struct record *r, const char *column, const char *v); /* NULL: NA */
void record_end(struct record *r);
char *record_print(struct record *r); /* malloced; r is closed */

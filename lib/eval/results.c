#include "eval/results.h"

#include "base/tsv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int read_line(const struct tsv *t, char *const *metric, size_t n, double *value, struct error *e)
{
	if (t->n != 2)
		return tsv_error(t, e, "found %zu fields, expected metric and value (the table of another ctaprobe command)", t->n);
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
	struct tsv t;
	int got;
	for (size_t i = 0; i < n; i++)
		value[i] = NAN;
	if (tsv_open(&t, path, e))
		return -1;
	while ((got = tsv_next(&t, e)) > 0)
		if (read_line(&t, metric, n, value, e)) {
			got = -1;
			break;
		}
	tsv_close(&t);
	for (size_t i = 0; i < n && !got; i++)
		if (isnan(value[i]))
			got = error_set(e, "%s: no metric '%s'", path, metric[i]);
	return got;
}

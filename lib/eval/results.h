/* Results of ctaprobe: tables of two columns, metric and value. */
#ifndef RESULTS_H
#define RESULTS_H

#include "base/error.h"

/* Read the n metrics with these names from the table `path` into value [n]. Of a metric that occurs twice, the last one counts. -1 with e
 * set: a line that has not two fields, a value that is no finite number, a metric that the table lacks. */
int results_read(const char *path, char *const *metric, size_t n, double *value, struct error *e);

#endif

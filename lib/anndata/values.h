/*
 * What are the values of a matrix: counts, counts that something has made fractional, normalised or logged values, or something else? It is
 * decided here alone, from values at the start, in the middle and at the end, and from the first cells:
 *     counts       whole numbers, but for noise (number_noise)
 *     fractions    at least half are whole within 1e-3; or nothing says that they are something else
 *     normalised   all cells have the same sum, or the values of a cell are multiples of one number; as they are, or taken as logarithms;
 *                  or fewer than one in 50 is whole within 1e-3, and none is above 9
 *     disguised    whole numbers, but all cells have nearly the same sum; or rounded multiples of one number; or they are small, and few are 1
 *     doubtful     whole numbers, but none above 1; or the largest of all cells is the same; or none above 9 though the cells have many genes
 */
#pragma once

#include "anndata/countmat.h"

enum { VALUES_CELLS = 100 }; /* the first ones are looked at as a whole */

enum values_kind { VALUES_COUNTS, VALUES_FRACTIONS, VALUES_NORMALISED, VALUES_DOUBTFUL, VALUES_DISGUISED, VALUES_WRONG };

struct values {
	enum values_kind kind;
	char *what; /* the kind with its reason: "log-transformed (exp(value) - 1: all cells have the sum 10000)" */
	enum unlog unlog; /* normalised: how the counts of all cells that were looked at come back; else UNLOG_NOT */
	int unlikely; /* fractions: nothing says that they are counts */
	int whole; /* at least half of the values are whole within 1e-3 */
	uint32_t largest; /* of the values that were looked at, rounded */
	size_t cells; /* whose sums are known */
	double sum[VALUES_CELLS];
};
void values_release(struct values *v); /* accepts a zeroed struct */

/* Lower is better: the matrix to take. What --round and --unlog would accept does not depend on whether they were given. */
int values_rank(const struct values *v);

enum values_named { NAMED_NOT, NAMED_ALONE, NAMED_BY_USER }; /* why this matrix: found among others, the only one, named */

/* NULL: h5tok takes values of this kind with these options. Else what to do, "" for nothing. */
const char *values_refused(const struct values *v, int round, int unlog, enum values_named named);

/* Set the matrix to make counts of these values, or say why it cannot: -1 with e set. */
int values_take(struct countmat *m, const struct values *v, int round, int unlog, enum values_named named, struct error *e);

/* Values of a matrix, collected. */
struct sample {
	double *value[VALUES_CELLS]; /* those of a cell, without zeros */
	size_t n[VALUES_CELLS], cap[VALUES_CELLS];
	size_t tried, whole, near; /* values that are not 0; of them: whole but for noise, whole within 1e-3 */
	double off, fraction, wrong, largest; /* the largest noise; a value that is not whole; one that is no count at all */
	int has_wrong;
	uint64_t wrong_at; /* of a matrix: which entry of its data */
};
void sample_add(struct sample *s, uint64_t cell, double v); /* of a cell from VALUES_CELLS on only what a single value says */
void sample_release(struct sample *s); /* accepts a zeroed struct */
void values_judge(struct values *v, const struct sample *s);

/* The same of a matrix that was opened. -1 with e set if it cannot be read. Not for LAYOUT_ENTRIES. */
int values_of_matrix(struct values *v, struct countmat *m, struct error *e);

#include "anndata/scale.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES ((size_t)1 << 16) /* of sparse columns, read at a time */
#define DENSE ((size_t)4 << 20) /* most values of dense data */

enum { FEW_VALUES = 10, FEW_CELLS = 5 }; /* fewer say nothing */

void scale_add(struct scale *s, uint64_t cell, double v)
{
	if (cell >= SCALE_CELLS || v == 0)
		return;
	grow(s->value[cell], s->cap[cell], s->n[cell] + 1);
	s->value[cell][s->n[cell]++] = v;
}

void scale_release(struct scale *s)
{
	for (size_t i = 0; i < SCALE_CELLS; i++)
		free(s->value[i]);
	*s = (struct scale){0};
}

static double same(double v)
{
	return v;
}

static double exp2_less_one(double v)
{
	return exp2(v) - 1;
}

static double exp10_less_one(double v)
{
	return pow(10, v) - 1;
}

static const struct transform {
	const char *name;
	double (*back)(double);
} transforms[] = {{"", same}, {"exp(value) - 1: ", expm1}, {"2^value - 1: ", exp2_less_one}, {"10^value - 1: ", exp10_less_one}};

/* Are the values of a cell multiples of the smallest one, *unit? 1 yes, 0 no, -1 too few to say. */
static int multiples(const double *v, size_t n, double (*back)(double), double *unit)
{
	double least = INFINITY;
	size_t tried = 0, good = 0;
	for (size_t i = 0; i < n; i++)
		least = fmin(least, back(v[i]));
	if (!(least > 0) || (back == same && least == rint(least)))
		return n < FEW_VALUES ? -1 : 0;
	for (size_t i = 0; i < n; i++) {
		double times = back(v[i]) / least;
		if (times > 100) /* a stored value has too few digits */
			continue;
		tried++;
		good += fabs(times - rint(times)) < 2e-3;
	}
	*unit = least;
	return tried < FEW_VALUES ? -1 : good >= .95 * (double)tried;
}

/* The sum that all cells have; 0 if they differ, or if there are too few. */
static double equal_sum(const struct scale *s, double (*back)(double))
{
	double least = INFINITY, most = 0;
	size_t cells = 0;
	for (size_t c = 0; c < SCALE_CELLS; c++) {
		double sum = 0;
		for (size_t i = 0; i < s->n[c]; i++)
			sum += back(s->value[c][i]);
		if (!s->n[c])
			continue;
		least = fmin(least, sum);
		most = fmax(most, sum);
		cells++;
	}
	return cells >= FEW_CELLS && least > 0 && most - least <= 1e-3 * most ? most : 0;
}

static char *scale_by(const struct scale *s, const struct transform *t)
{
	const char *kind = t->back == same ? "normalised" : "log-transformed";
	size_t tried = 0, good = 0;
	double sum = equal_sum(s, t->back), unit = 0, least = INFINITY, most = 0;
	if (sum > 0)
		return xasprintf("%s (%sall cells have the sum %.6g)", kind, t->name, sum);
	for (size_t c = 0; c < SCALE_CELLS; c++) {
		int r = multiples(s->value[c], s->n[c], t->back, &unit);
		tried += r >= 0;
		good += r > 0;
		least = r > 0 ? fmin(least, unit) : least;
		most = r > 0 ? fmax(most, unit) : most;
	}
	if (tried < FEW_CELLS || good < .8 * (double)tried)
		return NULL;
	if (t->back == same && most - least <= 1e-3 * most) /* halves, of reads that two genes share, are counts */
		return NULL;
	return xasprintf("%s (%sthe values of a cell are multiples of one number)", kind, t->name);
}

char *scale_of(const struct scale *s)
{
	int fractions = 0;
	double most = 0;
	for (size_t c = 0; c < SCALE_CELLS; c++)
		for (size_t i = 0; i < s->n[c]; i++) {
			fractions |= s->value[c][i] != rint(s->value[c][i]);
			most = fmax(most, s->value[c][i]);
		}
	char *text = NULL;
	for (size_t i = 0; i < sizeof transforms / sizeof *transforms && fractions && !text; i++)
		if (transforms[i].back == same || most < 40)
			text = scale_by(s, transforms + i);
	return text;
}

/* n values as they are stored: of the cells cell [n], or all of cell `one` */
static void add_values(struct scale *s, const struct countmat *m, const void *data, size_t n, const uint32_t *cell, uint64_t one)
{
	double *v = xmalloc((n + 1) * sizeof *v);
	number_f64(m->data.type, data, n, v);
	for (size_t i = 0; i < n; i++)
		scale_add(s, cell ? cell[i] : one, v[i]);
	free(v);
}

static int from_rows(struct scale *s, struct countmat *m, size_t cells, struct error *e)
{
	int64_t start[SCALE_CELLS + 1];
	if (h5array_i64(&m->indptr, 0, cells + 1, start, 1, e))
		return -1;
	for (size_t c = 0; c < cells; c++) {
		if (start[c + 1] < start[c] || (uint64_t)start[c + 1] > m->nnz || (uint64_t)(start[c + 1] - start[c]) > m->ncol)
			return 0; /* damaged: the reader says how */
		size_t n = (size_t)(start[c + 1] - start[c]);
		void *data = xmalloc(n * m->data.size + 1);
		int r = h5array_read(&m->data, (uint64_t)start[c], n, data, 1, e);
		if (r == 0)
			add_values(s, m, data, n, NULL, c);
		free(data);
		if (r)
			return -1;
	}
	return 0;
}

static int from_dense(struct scale *s, struct countmat *m, size_t cells, struct error *e)
{
	if (cells * m->ncol > DENSE)
		cells = DENSE / m->ncol + 1;
	void *data = xmalloc(cells * m->ncol * m->data.size + 1);
	int r = countmat_dense(m, 0, cells, data, 1, e);
	for (size_t c = 0; r == 0 && c < cells; c++)
		add_values(s, m, (char *)data + c * m->ncol * m->data.size, m->ncol, NULL, c);
	free(data);
	return r;
}

/* The first cells' values are anywhere. */
static int from_columns(struct scale *s, struct countmat *m, struct error *e)
{
	void *data = xmalloc(ENTRIES * m->data.size), *index = xmalloc(ENTRIES * m->indices.size);
	uint32_t *cell = xmalloc(ENTRIES * sizeof *cell);
	int r = 0;
	for (uint64_t at = 0; r == 0 && at < m->nnz; at += ENTRIES) {
		size_t n = m->nnz - at < ENTRIES ? m->nnz - at : ENTRIES;
		r = h5array_read(&m->data, at, n, data, 1, e) || h5array_read(&m->indices, at, n, index, 1, e) ? -1 : 0;
		if (r == 0 && number_indices(m->indices.type, index, n, m->nrow, cell) == n)
			add_values(s, m, data, n, cell, 0);
	}
	free(data);
	free(index);
	free(cell);
	return r;
}

int scale_of_matrix(struct countmat *m, char **text, struct error *e)
{
	struct scale s = {0};
	size_t cells = m->nrow < SCALE_CELLS ? m->nrow : SCALE_CELLS;
	int r = m->layout == LAYOUT_ROWS    ? from_rows(&s, m, cells, e)
		: m->layout == LAYOUT_DENSE ? from_dense(&s, m, cells, e)
					    : from_columns(&s, m, e);
	*text = r ? NULL : scale_of(&s);
	scale_release(&s);
	return r;
}

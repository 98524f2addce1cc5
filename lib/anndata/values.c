#include "anndata/values.h"

#define ENTRIES ((size_t)1 << 16) /* read at a time; and in each of three places */
#define DENSE ((size_t)4 << 20) /* most values of dense data */
#define ALL ((uint64_t)1 << 29) /* zeros, after which no value is expected */
#define ANY_CELL UINT64_MAX

enum { FEW_VALUES = 10, FEW_CELLS = 5, SOME_CELLS = 10 }; /* fewer say nothing */

void values_release(struct values *v)
{
	free(v->what);
	*v = (struct values){0};
}

void sample_release(struct sample *s)
{
	for (size_t i = 0; i < VALUES_CELLS; i++)
		free(s->value[i]);
	*s = (struct sample){0};
}

void sample_add(struct sample *s, uint64_t cell, double v)
{
	if (v == 0)
		return;
	if (!number_is_fraction(v)) {
		s->wrong = s->has_wrong ? s->wrong : v;
		s->has_wrong = 1;
		return;
	}
	double off = fabs(v - rint(v));
	s->tried++;
	s->near += off <= number_noise(v) + 9e-4;
	if (off <= number_noise(v))
		s->off = fmax(s->off, off);
	else if (!s->fraction)
		s->fraction = v;
	s->largest = fmax(s->largest, v);
	if (cell >= VALUES_CELLS)
		return;
	grow(s->value[cell], s->cap[cell], s->n[cell] + 1);
	s->value[cell][s->n[cell]++] = v;
}

/* The sum that all cells have; 0 if they differ, or if there are too few. */
static double equal_sum(const struct sample *s, enum unlog by)
{
	double least = INFINITY, most = 0;
	size_t cells = 0;
	for (size_t c = 0; c < VALUES_CELLS; c++) {
		double sum = 0;
		for (size_t i = 0; i < s->n[c]; i++)
			sum += unlog_value(by, s->value[c][i]);
		if (!s->n[c])
			continue;
		least = fmin(least, sum);
		most = fmax(most, sum);
		cells++;
	}
	return cells >= FEW_CELLS && least > 0 && most - least <= 1e-3 * most ? most : 0;
}

/* The unit of a cell if its counts come back, 0: they do not. *chance as in unlog.h. */
static double exact_unit(const double *value, size_t n, enum unlog by, double *chance)
{
	FREED double *v = xmalloc(2 * n * sizeof *v + 1);
	FREED uint32_t *count = xmalloc(n * sizeof *count + 1);
	struct unlogged u;
	memcpy(v, value, n * sizeof *v);
	int r = unlog_cell(by, v, v + n, n, count, &u);
	*chance = u.chance;
	return r ? 0 : u.unit;
}

/* The smallest value of a cell if most others are about multiples of it, 0: they are not, -1: too few to say. */
static double rough_unit(const double *v, size_t n, enum unlog by)
{
	double least = INFINITY;
	size_t tried = 0, good = 0;
	for (size_t i = 0; i < n; i++)
		least = fmin(least, unlog_value(by, v[i]));
	if (!(least > 0))
		return 0;
	for (size_t i = 0; i < n; i++) {
		double times = unlog_value(by, v[i]) / least;
		if (times > 20) /* a stored value may have few digits */
			continue;
		tried++;
		good += fabs(times - rint(times)) < 2e-3 + 3e-3 * times;
	}
	return tried < FEW_VALUES ? -1 : good >= .95 * (double)tried ? least : 0;
}

/* Are the values of each cell multiples of one number? exact: in all cells, and counts come back. */
static int multiples(const struct sample *s, enum unlog by, int exact)
{
	double least = INFINITY, most = 0, evidence = 0, chance = 1;
	size_t tried = 0, good = 0, simple = 0;
	for (size_t c = 0; c < VALUES_CELLS; c++) {
		if (!s->n[c])
			continue;
		double unit = exact ? exact_unit(s->value[c], s->n[c], by, &chance) : rough_unit(s->value[c], s->n[c], by);
		tried += unit >= 0;
		if (unit <= 0)
			continue;
		good++;
		simple += fabs(1 / unit - rint(1 / unit)) <= 1e-5 / unit;
		evidence -= log10(chance);
		least = fmin(least, unit);
		most = fmax(most, unit);
	}
	/* halves, of reads that two genes share, are counts; so are values of few decimals */
	if (by == UNLOG_SAME && (most - least <= 1e-3 * most || 2 * simple >= good) && equal_sum(s, by) == 0)
		return 0;
	return exact ? tried && good == tried && evidence >= 9 : tried >= FEW_CELLS && (double)good >= .8 * (double)tried;
}

/* Are these values normalised or logarithms? Sets v->what, and v->unlog if counts come back. */
static int normalised(struct values *v, const struct sample *s)
{
	enum unlog last = s->largest < 40 ? UNLOG_EXP10 : UNLOG_SAME, by = UNLOG_SAME;
	double sum = 0;
	for (by = v->whole ? UNLOG_EXP : UNLOG_SAME; by <= last && !v->unlog; by++)
		v->unlog = multiples(s, by, 1) ? by : UNLOG_NOT;
	if (v->unlog) {
		by = v->unlog;
		sum = equal_sum(s, by);
	} else {
		for (by = UNLOG_SAME; by <= last && !v->whole; by++)
			if ((sum = equal_sum(s, by)) > 0 || multiples(s, by, 0))
				break;
		if (v->whole || by > last)
			return 0;
	}
	FREED char *why =
		sum > 0 ? xasprintf("all cells have the sum %.6g", sum) : xstrdup("the values of a cell are multiples of one number");
	v->what = xasprintf(
		"%s (%s%s%s)", by == UNLOG_SAME ? "normalised" : "log-transformed", unlog_formula[by], by == UNLOG_SAME ? "" : ": ", why);
	return 1;
}

/* Are the whole numbers of a cell rounded multiples of one number? 1 yes, 0 no, -1: they do not say. */
static int rounded_multiples(const double *v, size_t n)
{
	enum { STEPS = 100, TIMES = 20, DIFFERENT = 6 };
	double least = INFINITY;
	for (size_t i = 0; i < n; i++)
		least = fmin(least, rint(v[i]));
	if (n < FEW_VALUES || least < 3)
		return -1;
	int different = 0, fits = 0;
	for (int step = 0; step <= STEPS && !fits; step++) {
		double unit = least - .5 + (double)step / STEPS;
		uint32_t seen = 0; /* multiples */
		fits = 1;
		for (size_t i = 0; i < n && fits; i++) {
			double times = rint(rint(v[i]) / unit);
			if (times > TIMES)
				continue;
			fits = fabs(rint(v[i]) - times * unit) <= .5 + .5 * times / STEPS;
			seen |= 1u << (int)times;
		}
		different = __builtin_popcount(seen);
	}
	return !fits ? 0 : different >= DIFFERENT ? 1 : -1;
}

struct whole { /* of whole numbers in cells */
	double sum[2], top[2]; /* the least and the largest */
	size_t cells, n; /* that have values; most values of one */
	size_t ones, values;
	size_t rich, without_one; /* cells with RICH values; of them: without a 1 */
	size_t told, multiples; /* cells that say whether they are rounded multiples of one number; of them: that are */
};

static struct whole whole_numbers(const struct sample *s)
{
	enum { RICH = 50 };
	struct whole w = {.sum = {INFINITY, 0}, .top = {INFINITY, 0}};
	for (size_t c = 0; c < VALUES_CELLS; c++) {
		double sum = 0, most = 0;
		size_t ones = 0;
		for (size_t i = 0; i < s->n[c]; i++) {
			double v = rint(s->value[c][i]);
			sum += v;
			most = fmax(most, v);
			ones += v == 1;
		}
		if (!s->n[c])
			continue;
		int multiples = rounded_multiples(s->value[c], s->n[c]);
		w.cells++;
		w.n = s->n[c] > w.n ? s->n[c] : w.n;
		w.ones += ones;
		w.values += s->n[c];
		w.rich += s->n[c] >= RICH;
		w.without_one += s->n[c] >= RICH && !ones;
		w.told += multiples >= 0;
		w.multiples += multiples > 0;
		w.sum[0] = fmin(w.sum[0], sum);
		w.sum[1] = fmax(w.sum[1], sum);
		w.top[0] = fmin(w.top[0], most);
		w.top[1] = fmax(w.top[1], most);
	}
	return w;
}

/* Of whole numbers: what they are if they are no counts (malloced), else NULL. */
static char *disguise(const struct values *v, const struct whole *w)
{
	double apart = w->sum[1] - w->sum[0];
	/* as near to each other as rounding leaves them; but exactly equal are the sums of counts that were drawn from more */
	if (w->cells >= SOME_CELLS && apart > 0 && apart <= fmin(.02 * w->sum[1], 1 + 2 * sqrt((double)w->n)))
		return xasprintf("normalised and rounded (the sums of all cells are from %.6g to %.6g)", w->sum[0], w->sum[1]);
	if (w->told >= SOME_CELLS && 10 * w->multiples >= 8 * w->told)
		return xstrdup("normalised and rounded (the values of a cell are multiples of one number but for rounding)");
	if ((v->largest <= 9 && !w->ones && w->values >= 200) ||
		(v->largest <= 14 && w->rich >= SOME_CELLS && 2 * w->without_one > w->rich))
		return xasprintf("log-transformed and rounded (no value above %u, and most cells have no 1)", v->largest);
	return NULL;
}

static enum values_kind judge_whole(struct values *v, const struct sample *s)
{
	struct whole w = whole_numbers(s);
	if (v->largest > 1 && (v->what = disguise(v, &w)))
		return VALUES_DISGUISED;
	if (v->largest <= 1)
		v->what = xasprintf("no value above %u among those looked at: %s", v->largest,
			v->largest ? "does it only say whether a gene is expressed?" : "is it empty?");
	else if (w.cells >= SOME_CELLS && w.top[0] == w.top[1] && w.top[0] >= 5)
		v->what = xasprintf("the largest value of every cell is %.6g: bins?", w.top[0]);
	else if (v->largest <= 9 && w.values >= 1000 * w.cells && w.cells)
		v->what = xasprintf("no value above %u in cells of %zu genes: logarithms, rounded?", v->largest, w.values / w.cells);
	if (v->what)
		return VALUES_DOUBTFUL;
	v->what = s->off > 0 ? xasprintf("whole numbers, but for noise of up to %.2g", s->off) : xstrdup("whole numbers");
	return VALUES_COUNTS;
}

void values_judge(struct values *v, const struct sample *s)
{
	*v = (struct values){.largest = (uint32_t)rint(s->largest), .whole = 2 * s->near >= s->tried};
	int fractions = 0;
	for (size_t c = 0; c < VALUES_CELLS; c++)
		for (size_t i = 0; i < s->n[c]; i++) {
			double x = s->value[c][i];
			fractions |= fabs(x - rint(x)) > number_noise(x);
			v->sum[c] += rint(x);
		}
	if (s->has_wrong) {
		v->kind = VALUES_WRONG;
		v->what = xasprintf("holds %.6g, %s", s->wrong, number_fault(s->wrong));
	} else if (!s->fraction) {
		v->kind = judge_whole(v, s);
	} else if (fractions && normalised(v, s)) {
		v->kind = VALUES_NORMALISED;
	} else {
		/* of numbers that have nothing to do with whole ones, one in 500 is so near to one; log(1 + 10,000) is 9.2 */
		int none = v->largest <= 9 && 50 * s->near < s->tried;
		v->kind = VALUES_FRACTIONS;
		v->unlikely = none;
		v->what = xasprintf("%s%.3g %% of the values are fractions, such as %.6g%s", none ? "normalised or log-transformed: " : "",
			100 * (double)(s->tried - s->near) / (double)s->tried, s->fraction,
			none                                   ? ", and none is above 9"
				: v->whole || v->largest >= 20 ? ""
							       : ", and none is above 20: normalised or logged?");
	}
}

int values_rank(const struct values *v)
{
	switch (v->kind) {
	case VALUES_COUNTS:
		return 0;
	case VALUES_FRACTIONS:
		return v->whole ? 1 : v->unlikely ? 6 : 3;
	case VALUES_NORMALISED:
		return v->unlog ? 2 : 6;
	case VALUES_DOUBTFUL:
		return v->largest ? 4 : 8;
	case VALUES_DISGUISED:
		return 5;
	case VALUES_WRONG:
		break;
	}
	return 7;
}

const char *values_refused(const struct values *v, int round, int unlog, enum values_named named)
{
	switch (v->kind) {
	case VALUES_COUNTS:
	case VALUES_DOUBTFUL:
		return NULL;
	case VALUES_FRACTIONS:
		if (v->unlikely)
			return round && named == NAMED_BY_USER
				? NULL
				: "keep raw counts in .raw or in layers['counts']; if these are counts, name them: --layer NAME --round";
		return round ? NULL : NEED_ROUND;
	case VALUES_NORMALISED:
		return !v->unlog ? "keep raw counts in .raw or in layers['counts'] when you normalise"
			: unlog  ? NULL
				 : "--unlog takes the counts back";
	case VALUES_DISGUISED:
		return named ? NULL : "name it with --layer to take it all the same";
	case VALUES_WRONG:
		break;
	}
	return LEAVE_OUT;
}

int values_take(struct countmat *m, const struct values *v, int round, int unlog, enum values_named named, struct error *e)
{
	const char *hint = values_refused(v, round, unlog, named);
	if (hint)
		return error_set(e, "%s: %s: no raw counts%s%s", m->where, v->what, *hint ? "; " : "", hint);
	m->round = round;
	m->unlog = v->unlog;
	return 0;
}

/* n values as they are stored, every step-th entry from `first` on: of the cells cell [n], or all of cell `one` */
static void add_values(struct sample *s, const struct countmat *m, const void *data, size_t n, uint64_t first, uint64_t step,
	const uint32_t *cell, uint64_t one)
{
	FREED double *v = xmalloc((n + 1) * sizeof *v);
	number_f64(m->data.type, data, n, v);
	for (size_t i = 0; i < n; i++) {
		s->wrong_at = s->has_wrong ? s->wrong_at : first + i * step;
		sample_add(s, cell ? cell[i] : one, v[i]);
	}
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int has_values(const struct sample *s)
{
	return s->tried || s->has_wrong;
}

/* Three whole chunks of dense data in tall chunks; all: all of them, up to a value that is not 0. */
static int from_chunks(struct sample *s, struct countmat *m, int all, struct error *e)
{
	struct h5array *d = &m->data;
	uint64_t box[4], chunks = h5array_chunks(d), last = all ? lesser(chunks - 1, ALL / (d->chunk[0] * d->chunk[1])) : 2;
	FREED char *buf = xmalloc(d->chunk[0] * d->chunk[1] * d->size);
	for (uint64_t k = 0; k <= last && !(all && has_values(s)); k++) {
		if (h5array_chunk(d, all ? k : k * (chunks - 1) / 2, box, buf, e))
			return -1;
		for (uint64_t i = 0; i < box[2]; i++)
			add_values(s, m, buf + i * d->chunk[1] * d->size, box[3], (box[0] + i) * d->dim[1] + box[1], 1, NULL, ANY_CELL);
	}
	return 0;
}

/* Values at the start, in the middle and at the end; or all, as above. */
static int from_places(struct sample *s, struct countmat *m, int all, struct error *e)
{
	struct h5array *d = &m->data;
	if (m->tall)
		return from_chunks(s, m, all, e);
	size_t rows = ENTRIES / d->dim[1] + 1;
	rows = rows > d->dim[0] ? d->dim[0] : rows;
	uint64_t end = d->dim[0] - rows, last = all ? lesser((end + rows - 1) / rows, ALL / d->dim[1] / rows) : 2;
	FREED void *buf = xmalloc(rows * d->dim[1] * d->size);
	for (uint64_t k = 0; k <= last && !(all && has_values(s)); k++) {
		uint64_t at = !all ? end * k / 2 : k * rows < end ? k * rows : end;
		if (h5array_read(d, at, rows, buf, 1, e))
			return -1;
		add_values(s, m, buf, rows * d->dim[1], at * d->dim[1], 1, NULL, ANY_CELL);
	}
	return 0;
}

/* The first cells. Returns their number, -1 error. */
static int from_rows(struct sample *s, struct countmat *m, size_t cells, struct error *e)
{
	int64_t start[VALUES_CELLS + 1];
	if (h5array_i64(&m->indptr, 0, cells + 1, start, 1, e))
		return -1;
	for (size_t c = 0; c < cells; c++) {
		if (start[c + 1] < start[c] || (uint64_t)start[c + 1] > m->nnz || (uint64_t)(start[c + 1] - start[c]) > countmat_row_max(m))
			return 0; /* damaged: the reader says how */
		size_t n = (size_t)(start[c + 1] - start[c]);
		void *data = xmalloc(n * m->data.size + 1);
		int r = h5array_read(&m->data, (uint64_t)start[c], n, data, 1, e);
		if (r == 0)
			add_values(s, m, data, n, (uint64_t)start[c], 1, NULL, c);
		free(data);
		if (r)
			return -1;
	}
	return (int)cells;
}

static int from_dense(struct sample *s, struct countmat *m, size_t cells, struct error *e)
{
	if (cells * m->ncol > DENSE)
		cells = DENSE / m->ncol + 1;
	FREED char *data = xmalloc(cells * m->ncol * m->data.size + 1);
	int r = countmat_dense(m, 0, cells, data, 1, e);
	for (size_t c = 0; r == 0 && c < cells; c++)
		add_values(s, m, data + c * m->ncol * m->data.size, m->ncol, m->across ? c : c * m->ncol, m->across ? m->nrow : 1, NULL, c);
	return r ? -1 : (int)cells;
}

/* Their values are anywhere. */
static int from_columns(struct sample *s, struct countmat *m, size_t cells, struct error *e)
{
	FREED void *data = xmalloc(ENTRIES * m->data.size), *index = xmalloc(ENTRIES * m->indices.size);
	FREED uint32_t *cell = xmalloc(ENTRIES * sizeof *cell);
	int r = 0;
	for (uint64_t at = 0; r == 0 && at < m->nnz; at += ENTRIES) {
		size_t n = m->nnz - at < ENTRIES ? m->nnz - at : ENTRIES;
		r = h5array_read(&m->data, at, n, data, 1, e) || h5array_read(&m->indices, at, n, index, 1, e) ? -1 : 0;
		if (r == 0 && number_indices(m->indices.type, index, n, m->nrow, cell) == n)
			add_values(s, m, data, n, at, 1, cell, 0);
	}
	return r ? -1 : (int)cells;
}

int values_of_matrix(struct values *v, struct countmat *m, struct error *e)
{
	RELEASED(sample_release) struct sample s = {0};
	size_t cells = m->nrow < VALUES_CELLS ? m->nrow : VALUES_CELLS;
	uint64_t cell, gene;
	int n = 0;
	*v = (struct values){0};
	if (m->nnz)
		n = from_places(&s, m, 0, e)        ? -1
			: m->layout == LAYOUT_ROWS  ? from_rows(&s, m, cells, e)
			: m->layout == LAYOUT_DENSE ? from_dense(&s, m, cells, e)
						    : from_columns(&s, m, cells, e);
	if (n >= 0 && m->nnz && !has_values(&s) && from_places(&s, m, 1, e))
		n = -1;
	if (n >= 0)
		values_judge(v, &s);
	if (n >= 0 && s.has_wrong && countmat_place(m, s.wrong_at, &cell, &gene, e) == 0)
		xappend(&v->what, " (cell %" PRIu64 ", gene %" PRIu64 ")", cell, gene);
	v->cells = n > 0 ? (size_t)n : 0;
	return n < 0 ? -1 : 0;
}

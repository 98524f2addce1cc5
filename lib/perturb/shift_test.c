#include "perturb/shift.h"

#include "eval/paired.h"

enum { BACKGROUND_MAX = 100000 };

/* The records of each set, in the order of the stream. */
struct index {
	size_t *start; /* [sets + 1] into record */
	uint32_t *record; /* [n] */
};

static struct index index_of(const struct shifts *r, size_t sets)
{
	struct index x = {xcalloc(sets + 1, sizeof *x.start), xmalloc(r->n * sizeof *x.record)};
	FREED size_t *next = xmalloc((sets + 1) * sizeof *next);
	for (size_t i = 0; i < r->n; i++)
		x.start[r->set[i] + 1]++;
	for (size_t s = 0; s < sets; s++)
		x.start[s + 1] += x.start[s];
	memcpy(next, x.start, (sets + 1) * sizeof *next);
	for (size_t i = 0; i < r->n; i++)
		x.record[next[r->set[i]]++] = (uint32_t)i;
	return x;
}

/* ---- what each perturbation is compared with: all of its kind ---- */

struct background {
	double *value; /* [n] sorted; of at most BACKGROUND_MAX records */
	size_t n;
	double *sum; /* [groups] over all records of the kind: the excess over controls, or the value */
	double *count;
};

/* is_kind [sets]: which sets are of the kind. */
static struct background background_of(const struct shifts *r, const uint8_t *is_kind, size_t state, size_t groups)
{
	struct background b = {xmalloc((r->n < BACKGROUND_MAX ? r->n : BACKGROUND_MAX) * sizeof *b.value), 0,
		xcalloc(groups + 1, sizeof *b.sum), xcalloc(groups + 1, sizeof *b.count)};
	struct rng rng = rng_at(1, RNG_SAMPLE, state, 0);
	size_t all = 0, seen = 0;
	for (size_t i = 0; i < r->n; i++)
		all += is_kind[r->set[i]];
	for (size_t i = 0; i < r->n; i++) {
		if (!is_kind[r->set[i]])
			continue;
		double v = r->value[i * r->K + state];
		size_t left = all - seen++, wanted = BACKGROUND_MAX - b.n;
		b.sum[r->group[i]] += v;
		b.count[r->group[i]]++;
		/* selection sampling: each record is taken with the share that is still wanted of those that are left */
		if (left <= wanted || (wanted && rng_unit(&rng) * (double)left < (double)wanted))
			b.value[b.n++] = v;
	}
	ranksum_sort(b.value, b.n);
	return b;
}

/* ---- one line of the table ---- */

struct scratch {
	double *value, *excess; /* [most records of a set] */
	double *sum, *more, *n, *nmore; /* [groups] values, excess, and their numbers */
	double *mean, *difference; /* [groups] */
};

static void of_groups(
	struct shift_row *row, const struct shifts *r, const struct index *x, const struct background *b, size_t groups, struct scratch *s)
{
	size_t k = 0, m = 0;
	memset(s->sum, 0, 4 * groups * sizeof *s->sum);
	for (size_t i = x->start[row->set]; i < x->start[row->set + 1]; i++) {
		uint32_t rec = x->record[i], g = r->group[rec];
		double v = r->value[rec * r->K + row->state], c = r->controls ? r->control[rec * r->K + row->state] : NAN;
		s->sum[g] += v;
		s->n[g]++;
		if (isnan(c))
			continue;
		s->more[g] += v - c;
		s->nmore[g]++;
	}
	for (size_t g = 0; g < groups; g++) {
		if (!s->n[g])
			continue;
		s->mean[k++] = s->sum[g] / s->n[g];
		if (s->nmore[g])
			s->difference[m++] = s->more[g] / s->nmore[g];
		else if (!r->controls && b->count[g] > s->n[g])
			s->difference[m++] = s->sum[g] / s->n[g] - (b->sum[g] - s->sum[g]) / (b->count[g] - s->n[g]);
	}
	struct difference d;
	difference_mean(&d, s->mean, k);
	row->groups = k;
	row->group_mean = d.mean;
	row->low = d.low;
	row->high = d.high;
	row->p_group = sign_flips(s->difference, m);
	if (!r->controls)
		return;
	difference_mean(&d, s->difference, m);
	row->excess = d.mean;
	row->excess_low = d.low;
	row->excess_high = d.high;
}

static void of_controls(struct shift_row *row, const struct shifts *r, const struct index *x, struct scratch *s)
{
	size_t n = 0;
	double sum = 0;
	for (size_t i = x->start[row->set]; i < x->start[row->set + 1]; i++) {
		size_t at = x->record[i] * r->K + row->state;
		if (isnan(r->control[at]))
			continue;
		sum += r->control[at];
		s->excess[n++] = r->value[at] - r->control[at];
	}
	struct difference d;
	difference_paired(&d, s->excess, NULL, n, 0);
	row->control = n ? sum / (double)n : NAN;
	row->excess = d.mean;
	row->excess_low = d.low;
	row->excess_high = d.high;
	row->p_control = d.rank_p;
}

static size_t shift_gather(double *v, const struct shifts *r, const struct index *x, const struct shift_row *row)
{
	size_t n = 0;
	for (size_t i = x->start[row->set]; i < x->start[row->set + 1]; i++)
		v[n++] = r->value[x->record[i] * r->K + row->state];
	return n;
}

static const struct shift_row unknown = {.mean = NAN,
	.sd = NAN,
	.group_mean = NAN,
	.low = NAN,
	.high = NAN,
	.control = NAN,
	.excess = NAN,
	.excess_low = NAN,
	.excess_high = NAN,
	.p_control = NAN,
	.against = {NAN, NAN, NAN, NAN, NAN},
	.p_group = NAN,
	.q = NAN,
	.q_control = NAN,
	.q_group = NAN};

/* ---- all lines ---- */

struct test {
	const struct shifts *r;
	struct index of;
	size_t groups;
	struct scratch s;
	struct shift_notes *notes;
};

static void one_row(struct shift_row *row, const struct test *t, const struct background *b, size_t compared)
{
	double *v = t->s.value;
	size_t n = shift_gather(v, t->r, &t->of, row);
	row->cells = n;
	struct difference d;
	difference_mean(&d, v, n);
	row->mean = d.mean;
	row->sd = d.sd;
	row->low = d.low;
	row->high = d.high;
	if (compared > 1)
		ranksum_against(&row->against, v, n, b->value, b->n);
	struct scratch s = t->s;
	if (t->r->controls)
		of_controls(row, t->r, &t->of, &s);
	if (t->groups)
		of_groups(row, t->r, &t->of, b, t->groups, &s);
}

/* Few groups have large p whatever they say, and q is of all rows: noted once. */
static void note_groups(struct shift_notes *to, const struct shift_row *row, size_t n)
{
	size_t most = 1;
	for (size_t i = 0; i < n; i++)
		most = row[i].groups > most ? row[i].groups : most;
	if (!to->groups && shift_groups_needed(most, n) >= 2)
		*to = (struct shift_notes){most, n};
}

/* The rows of one kind and state. Returns their number. */
static size_t rows_of(struct shift_row *row, const struct test *t, const uint8_t *is_kind, size_t sets, size_t state)
{
	size_t n = 0, compared = 0;
	struct background b = background_of(t->r, is_kind, state, t->groups);
	for (size_t k = 0; k < sets; k++)
		compared += is_kind[k] && t->of.start[k + 1] > t->of.start[k];
	for (uint32_t k = 0; k < sets; k++) {
		if (!is_kind[k] || t->of.start[k + 1] == t->of.start[k])
			continue;
		row[n] = unknown;
		row[n].set = k;
		row[n].state = state;
		one_row(&row[n++], t, &b, compared);
	}
	for (size_t i = 0; i < n; i++) {
		row[i].q = row[i].against.p;
		row[i].q_control = row[i].p_control;
		row[i].q_group = row[i].p_group;
	}
	correct_bh(&row->q, n, sizeof *row);
	correct_bh(&row->q_control, n, sizeof *row);
	correct_bh(&row->q_group, n, sizeof *row);
	if (t->groups)
		note_groups(t->notes, row, n);
	free_all(b.value, b.sum, b.count);
	return n;
}

double shift_groups_needed(size_t groups, size_t rows)
{
	return ceil((double)rows * sign_flips_least(groups) / 0.05);
}

struct shift_row *shift_test(const struct shifts *r, const struct classes *sets, size_t groups, size_t *n, struct shift_notes *notes)
{
	struct test t = {.r = r, .of = index_of(r, sets->n), .groups = groups, .notes = notes};
	struct shift_row *row = xcalloc(sets->n * r->K + 1, sizeof *row);
	uint8_t *is_kind = xmalloc(sets->n);
	size_t most = 1;
	for (size_t k = 0; k < sets->n; k++)
		most = t.of.start[k + 1] - t.of.start[k] > most ? t.of.start[k + 1] - t.of.start[k] : most;
	double *scratch = xmalloc((2 * most + 6 * groups) * sizeof *scratch), *g = scratch + 2 * most;
	t.s = (struct scratch){scratch, scratch + most, g, g + groups, g + 2 * groups, g + 3 * groups, g + 4 * groups, g + 5 * groups};
	*n = 0;
	*notes = (struct shift_notes){0};
	for (int kind = 0; kind < PERTURB_KINDS; kind++) {
		for (size_t k = 0; k < sets->n; k++)
			is_kind[k] = sets->name[k][0] == 'a' + kind;
		for (size_t state = 0; state < r->K; state++)
			*n += rows_of(row + *n, &t, is_kind, sets->n, state);
	}
	free_all(t.of.start, t.of.record, scratch, is_kind);
	return row;
}

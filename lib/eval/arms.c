#include "eval/arms.h"

/* ---- groups and arms ---- */

static int by_arm_key(const void *a, const void *b)
{
	static const int order[] = {ARMS_WITHIN, ARMS_BY, ARMS_DRAW, ARMS_PAIR};
	const struct value *x = a, *y = b;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (x->key[order[i]] != y->key[order[i]])
			return x->key[order[i]] < y->key[order[i]] ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static int is_paired(const struct values *v)
{
	return v->columns[ARMS_PAIR] || v->columns[ARMS_DRAW];
}

static int same_pair(const struct value *a, const struct value *b)
{
	static const int keys[] = {ARMS_WITHIN, ARMS_BY, ARMS_DRAW, ARMS_PAIR};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (a->key[keys[i]] != b->key[keys[i]])
			return 0;
	return 1;
}

size_t arms_sort(struct study *s)
{
	struct values *v = &s->v;
	size_t arms = v->key[ARMS_BY].n, groups = v->key[ARMS_WITHIN].n, at = 0;
	qsort(v->value, v->n, sizeof *v->value, by_arm_key);
	s->start = xmalloc((groups * arms + 1) * sizeof *s->start);
	for (size_t k = 0; k <= groups * arms; k++) {
		s->start[k] = at;
		while (k < groups * arms && at < v->n && v->value[at].key[ARMS_WITHIN] * arms + v->value[at].key[ARMS_BY] == k)
			at++;
	}
	for (size_t i = 1; is_paired(v) && i < v->n; i++)
		if (same_pair(&v->value[i - 1], &v->value[i]))
			return i;
	return 0;
}

/* ---- differences ---- */

/* The values of two runs, side by side by their pairs; NaN where one has none. Returns their number. */
static size_t side_by_side(const struct value *a, size_t n, const struct value *b, size_t m, double *x, double *y, const struct value **of)
{
	size_t i = 0, j = 0, k = 0;
	while (i < n || j < m) {
		int c = i == n ? 1 : j == m ? -1 : 0;
		for (int key = ARMS_DRAW; !c && key >= ARMS_PAIR; key -= ARMS_DRAW - ARMS_PAIR)
			c = (a[i].key[key] > b[j].key[key]) - (a[i].key[key] < b[j].key[key]);
		of[k] = c <= 0 ? &a[i] : &b[j];
		x[k] = c <= 0 ? a[i++].value : NAN;
		y[k++] = c >= 0 ? b[j++].value : NAN;
	}
	return k;
}

/* Of pairs x, y [n], which are in order of their draws: the mean difference of each draw, in x. Returns the number of draws. */
static size_t draw_means(double *x, const double *y, const struct value *const *of, size_t n)
{
	size_t draws = 0;
	for (size_t i = 0, j; i < n; i = j) {
		double sum = 0;
		size_t k = 0;
		for (j = i; j < n && of[j]->key[ARMS_DRAW] == of[i]->key[ARMS_DRAW]; j++)
			if (!isnan(x[j] - y[j])) {
				sum += x[j] - y[j];
				k++;
			}
		x[draws++] = k ? sum / (double)k : NAN;
	}
	return draws;
}

/* Two seeds with the same values in both arms can be the same split, counted twice. Whole numbers, such as 0 errors, are equal by chance.
 * Found once, not for the draws of a bootstrap or the cells of a cluster. */
static void find_same(struct study *s, const double *x, const double *y, const struct value *const *of, size_t n)
{
	enum { MOST = 200 };
	const size_t *columns = s->v.columns;
	if (columns[ARMS_CLUSTER] || columns[ARMS_DRAW] || columns[ARMS_PAIR] != 1 || n > MOST)
		return;
	for (size_t i = 0; i < n && !s->same[0]; i++)
		for (size_t j = i + 1; j < n && !s->same[0]; j++)
			if (x[i] == x[j] && y[i] == y[j] && x[i] != floor(x[i]) && y[i] != floor(y[i])) {
				s->same[0] = of[i];
				s->same[1] = of[j];
			}
}

static void compare_runs(struct study *s, struct difference *d, const struct value *a, size_t n, const struct value *b, size_t m)
{
	FREED double *x = xmalloc((n + m) * sizeof *x), *y = xmalloc((n + m) * sizeof *y);
	FREED const struct value **of = xmalloc((n + m) * sizeof *of);
	FREED uint32_t *cluster = xmalloc((n + m) * sizeof *cluster);
	int means = !s->pair;
	if (!is_paired(&s->v) && !means) {
		for (size_t i = 0; i < n; i++)
			x[i] = a[i].value;
		for (size_t i = 0; i < m; i++)
			y[i] = b[i].value;
		difference_unpaired(d, x, n, y, m);
	} else {
		size_t k = side_by_side(a, n, b, m, x, y, of);
		for (size_t i = 0; i < k; i++)
			cluster[i] = of[i]->key[ARMS_CLUSTER];
		if (s->v.columns[ARMS_CLUSTER])
			difference_clusters(d, x, means ? NULL : y, k, cluster, s->v.key[ARMS_CLUSTER].n);
		else
			difference_paired(d, x, means ? NULL : y, k, s->share);
		if (!means)
			find_same(s, x, y, of, k);
		if (s->v.columns[ARMS_DRAW]) {
			struct difference all = *d;
			difference_draws(d, x, draw_means(x, y, of, k));
			d->x = all.x;
			d->y = all.y;
		}
	}
}

static struct row *arms_add_row(struct study *s, uint32_t arm, uint32_t reference, uint32_t group)
{
	grow(s->row, s->cap, s->rows + 1);
	s->row[s->rows] = (struct row){.arm = arm, .reference = reference, .group = group, .corrected = NAN};
	return &s->row[s->rows++];
}

void arms_compare(struct study *s)
{
	size_t arms = s->v.key[ARMS_BY].n, means = !s->pair;
	for (uint32_t g = 0; g < s->v.key[ARMS_WITHIN].n; g++) {
		const size_t *start = s->start + g * arms;
		for (size_t i = 0; i < (means ? arms : s->pairs); i++) {
			uint32_t a = means ? (uint32_t)i : s->pair[i][0], b = means ? a : s->pair[i][1];
			size_t n = start[a + 1] - start[a], m = means ? 0 : start[b + 1] - start[b];
			if (n && (m || means))
				compare_runs(s, &arms_add_row(s, a, b, g)->d, s->v.value + start[a], n, s->v.value + start[b], m);
		}
	}
}

size_t arms_fields(const struct study *s)
{
	return s->v.columns[ARMS_WITHIN] + (s->v.metrics > 1);
}

void arms_correct(struct study *s)
{
	for (size_t i = 0; i < s->rows; i++)
		s->row[i].corrected = s->row[i].d.p;
	if (s->rows)
		correct_holm(&s->row->corrected, s->rows, sizeof *s->row);
}

void arms_release(struct study *s)
{
	free_all(s->start, s->pair, s->row);
	values_release(&s->v);
}

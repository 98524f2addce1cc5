#include "eval/inverted.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/sort.h"
#include "base/threads.h"
#include "eval/neighbours.h"

#include <cblas.h>
#include <math.h>

enum { ROUNDS = 3, SHARE = 50 }; /* of k-means, with so many rows a centre */
enum { TASK = 512 }; /* rows that look into the same cells */
enum { TASKS_TRIED = 32, ROWS_TRIED = 32 }; /* to measure the recall, of each */

struct task {
	size_t from, rows; /* in `row` */
};

struct inverted {
	const float *x;
	size_t n, d, k;
	double unit; /* products are of rows times this power of two, so that none overflows */
	float *centre; /* [cells, d] times unit */
	double *half; /* [cells] half of its squared length */
	size_t cells;
	uint32_t *row; /* [n] those of a cell together, rising */
	size_t *first; /* [cells + 1] of a cell in row */
	struct task *task;
	size_t tasks, task_cap;
	size_t least; /* rows that are looked at, or more */
	const struct task *todo;
	uint32_t *neighbour; /* of all rows, or [todo, ROWS_TRIED, k] while the recall is measured */
	double *distance;
	int trial;
};

/* ---- cells ---- */

static void take_row(const struct inverted *f, float *to, size_t row)
{
	for (size_t j = 0; j < f->d; j++)
		to[j] = (float)((double)f->x[row * f->d + j] * f->unit);
}

/* The rows of `sample` [m, d] move their centres to their mean. */
static void move_centres(struct inverted *f, const float *sample, size_t m, int threads)
{
	FREED uint32_t *cell = xmalloc(m * sizeof *cell);
	FREED double *far = xmalloc(m * sizeof *far), *sum = xcalloc(f->cells * f->d, sizeof *sum), *size = xcalloc(f->cells, sizeof *size);
	nearest_rows(sample, m, f->centre, f->cells, f->d, NULL, 1, threads, cell, far);
	for (size_t i = 0; i < m; i++) {
		size[cell[i]]++;
		for (size_t j = 0; j < f->d; j++)
			sum[cell[i] * f->d + j] += (double)sample[i * f->d + j];
	}
	for (size_t c = 0; c < f->cells; c++)
		for (size_t j = 0; size[c] > 0 && j < f->d; j++)
			f->centre[c * f->d + j] = (float)(sum[c * f->d + j] / size[c]);
}

static void find_centres(struct inverted *f, uint32_t seed, int threads)
{
	struct rng r = rng_at(seed, RNG_NEIGHBOURS, 0, 0);
	size_t m = f->cells * SHARE < f->n ? f->cells * SHARE : f->n;
	FREED float *sample = xmalloc(m * f->d * sizeof *sample);
	for (size_t i = 0; i < m; i++)
		take_row(f, sample + i * f->d, rng_below(&r, (uint32_t)f->n));
	memcpy(f->centre, sample, f->cells * f->d * sizeof *sample);
	for (int i = 0; i < ROUNDS; i++)
		move_centres(f, sample, m, threads);
	for (size_t c = 0; c < f->cells; c++)
		f->half[c] = (double)cblas_sdot((int)f->d, f->centre + c * f->d, 1, f->centre + c * f->d, 1) / 2;
}

/* Sort the rows by their cell, and cut the cells into tasks. */
static void fill_cells(struct inverted *f, int threads)
{
	enum { AT_ONCE = 65536 };
	FREED uint32_t *cell = xmalloc(f->n * sizeof *cell);
	FREED double *far = xmalloc(AT_ONCE * sizeof *far);
	FREED float *rows = xmalloc(AT_ONCE * f->d * sizeof *rows);
	for (size_t from = 0; from < f->n; from += AT_ONCE) {
		size_t m = f->n - from < AT_ONCE ? f->n - from : AT_ONCE;
		for (size_t i = 0; i < m; i++)
			take_row(f, rows + i * f->d, from + i);
		nearest_rows(rows, m, f->centre, f->cells, f->d, NULL, 1, threads, cell + from, far);
	}
	FREED size_t *at = xcalloc(f->cells + 1, sizeof *at);
	for (size_t i = 0; i < f->n; i++)
		f->first[cell[i] + 1]++;
	for (size_t c = 0; c < f->cells; c++) {
		at[c] = f->first[c];
		f->first[c + 1] += f->first[c];
		for (size_t from = f->first[c]; from < f->first[c + 1]; from += TASK) {
			grow(f->task, f->task_cap, f->tasks + 1);
			f->task[f->tasks++] = (struct task){from, f->first[c + 1] - from < TASK ? f->first[c + 1] - from : TASK};
		}
	}
	for (uint32_t i = 0; i < f->n; i++)
		f->row[at[cell[i]]++] = i;
}

/* ---- search ---- */

/* The cells in the order of the squared distance from their centre to the nearest row of q [m, d]. */
static struct ranked *order_cells(const struct inverted *f, const struct task *t)
{
	struct ranked *o = xmalloc(f->cells * sizeof *o);
	FREED float *q = xmalloc(t->rows * f->d * sizeof *q), *product = xmalloc(t->rows * f->cells * sizeof *product);
	for (size_t i = 0; i < t->rows; i++)
		take_row(f, q + i * f->d, f->row[t->from + i]);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)t->rows, (int)f->cells, (int)f->d, 1, q, (int)f->d, f->centre, (int)f->d,
		0, product, (int)f->cells);
	for (uint32_t c = 0; c < f->cells; c++)
		o[c] = (struct ranked){INFINITY, c};
	for (size_t i = 0; i < t->rows; i++) {
		double own = (double)cblas_sdot((int)f->d, q + i * f->d, 1, q + i * f->d, 1) / 2;
		for (size_t c = 0; c < f->cells; c++)
			o[c].value = fmin(o[c].value, own + f->half[c] - (double)product[i * f->cells + c]);
	}
	qsort(o, f->cells, sizeof *o, compare_ranked);
	return o;
}

/* The rows of the nearest cells, these first, so that few of the later ones are near; at least f->least of them. */
static uint32_t *candidates(const struct inverted *f, const struct task *t, size_t *m)
{
	FREED struct ranked *o = order_cells(f, t);
	uint32_t *row = NULL;
	size_t cap = 0;
	*m = 0;
	for (size_t i = 0; i < f->cells && *m < f->least; i++) {
		size_t from = f->first[o[i].at], rows = f->first[o[i].at + 1] - from;
		grow(row, cap, *m + rows);
		memcpy(row + *m, f->row + from, rows * sizeof *row);
		*m += rows;
	}
	return row;
}

static float *inverted_gather(const struct inverted *f, const uint32_t *row, size_t m)
{
	float *to = xmalloc(m * f->d * sizeof *to);
	for (size_t i = 0; i < m; i++)
		memcpy(to + i * f->d, f->x + row[i] * f->d, f->d * sizeof *to);
	return to;
}

/* The k + 1 nearest rows without the row itself, or, if that has k + 1 equal ones, without the last. */
static void leave_out(uint32_t row, size_t k, struct ranked *found, uint32_t *neighbour, double *distance)
{
	qsort(found, k + 1, sizeof *found, compare_ranked);
	for (size_t j = 0, to = 0; to < k; j++)
		if (found[j].at != row) {
			neighbour[to] = found[j].at;
			distance[to++] = found[j].value;
		}
}

static void search_task(void *arg, size_t number, int thread)
{
	const struct inverted *f = arg;
	struct task t = f->todo[number];
	size_t m, k = f->k;
	(void)thread;
	FREED uint32_t *among = candidates(f, &t, &m);
	t.rows = f->trial && t.rows > ROWS_TRIED ? ROWS_TRIED : t.rows;
	FREED float *q = inverted_gather(f, f->row + t.from, t.rows), *x = inverted_gather(f, among, m);
	FREED uint32_t *near = xmalloc(t.rows * (k + 1) * sizeof *near);
	FREED double *far = xmalloc(t.rows * (k + 1) * sizeof *far);
	FREED struct ranked *found = xmalloc((k + 1) * sizeof *found);
	nearest_rows(q, t.rows, x, m, f->d, NULL, k + 1, 1, near, far);
	for (size_t i = 0; i < t.rows; i++) {
		uint32_t row = f->row[t.from + i];
		size_t at = (f->trial ? number * ROWS_TRIED + i : row) * k;
		for (size_t j = 0; j <= k; j++)
			found[j] = (struct ranked){far[i * (k + 1) + j], among[near[i * (k + 1) + j]]};
		leave_out(row, k, found, f->neighbour + at, f->distance + at);
	}
}

/* ---- recall ---- */

/* The distance from each row that is tried, [TASKS_TRIED, ROWS_TRIED], to the farthest of its k neighbours: the row itself is one more. */
static double *true_distances(const struct inverted *f, int threads)
{
	size_t k = f->k + 1, m = 0;
	FREED uint32_t *row = xmalloc((size_t)TASKS_TRIED * ROWS_TRIED * sizeof *row), *near = NULL;
	for (size_t t = 0; t < TASKS_TRIED; t++)
		for (size_t i = 0; i < ROWS_TRIED; i++) /* a short task repeats its last row */
			row[m++] = f->row[f->todo[t].from + (i < f->todo[t].rows ? i : f->todo[t].rows - 1)];
	FREED float *q = inverted_gather(f, row, m);
	FREED double *far = xmalloc(m * k * sizeof *far);
	double *farthest = xmalloc(m * sizeof *farthest);
	near = xmalloc(m * k * sizeof *near);
	nearest_rows(q, m, f->x, f->n, f->d, NULL, k, threads, near, far);
	for (size_t i = 0; i < m; i++)
		farthest[i] = far[i * k + f->k];
	return farthest;
}

/* The share of the true neighbours that a search of the tasks finds. Equal distances count as found. */
static double recall_of(struct inverted *f, const double *farthest, int threads)
{
	double found = 0, all = 0;
	pool_for(threads, TASKS_TRIED, search_task, f);
	for (size_t t = 0; t < TASKS_TRIED; t++)
		for (size_t i = 0; i < ROWS_TRIED && i < f->todo[t].rows; i++) {
			size_t at = t * ROWS_TRIED + i;
			for (size_t j = 0; j < f->k; j++)
				found += f->distance[at * f->k + j] <= farthest[at];
			all += (double)f->k;
		}
	return found / all;
}

/* Let f->least grow until the recall of tasks at random is enough. */
static double choose_least(struct inverted *f, double recall, uint32_t seed, int threads)
{
	struct rng r = rng_at(seed, RNG_NEIGHBOURS, 1, 0);
	struct task todo[TASKS_TRIED];
	size_t values = (size_t)TASKS_TRIED * ROWS_TRIED * f->k;
	double found;
	f->neighbour = xmalloc(values * sizeof *f->neighbour);
	f->distance = xmalloc(values * sizeof *f->distance);
	f->todo = todo;
	f->trial = 1;
	for (size_t t = 0; t < TASKS_TRIED; t++) {
		size_t at = rng_below(&r, (uint32_t)f->n);
		todo[t] = f->task[LEADING(f->tasks - 1, i, f->task[i + 1].from <= at)]; /* of the row `at` */
	}
	FREED double *farthest = true_distances(f, threads);
	for (f->least = 16 * (f->k + 1); (found = recall_of(f, farthest, threads)) < recall && f->least < f->n; f->least += f->least / 2)
		;
	free_all(f->neighbour, f->distance);
	f->trial = 0;
	return found;
}

double inverted_neighbours(
	const float *x, size_t n, size_t d, size_t k, double recall, uint32_t seed, int threads, uint32_t *neighbour, double *distance)
{
	struct inverted f = {.x = x, .n = n, .d = d, .k = k, .cells = (size_t)ceil(2 * sqrt((double)n))};
	double most = 0;
	int exponent;
	f.cells = f.cells < n ? f.cells : n;
	for (size_t i = 0; i < n * d; i++)
		most = fmax(most, fabs((double)x[i]));
	frexp(most, &exponent);
	f.unit = ldexp(1, 40 - exponent);
	f.centre = xmalloc(f.cells * d * sizeof *f.centre);
	f.half = xmalloc(f.cells * sizeof *f.half);
	f.row = xmalloc(n * sizeof *f.row);
	f.first = xcalloc(f.cells + 1, sizeof *f.first);
	find_centres(&f, seed, threads);
	fill_cells(&f, threads);
	double found = choose_least(&f, recall, seed, threads);
	f.neighbour = neighbour;
	f.distance = distance;
	f.todo = f.task;
	pool_for(threads, f.tasks, search_task, &f);
	free_all(f.centre, f.half, f.row, f.first, f.task);
	return found;
}

double some_neighbours(const float *x, size_t n, size_t d, size_t k, const struct search_settings *s, uint32_t *neighbour, double *distance)
{
	if (n > s->exact)
		return inverted_neighbours(x, n, d, k, s->recall, s->seed, s->threads, neighbour, distance);
	nearest_neighbours(x, n, d, k, s->threads, neighbour, distance);
	return 1;
}

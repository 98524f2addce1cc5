/*
 * scpredict attribution: integrated gradients [Sundararajan et al. 2017, eq. 1] of a head's number f, the logit of a class or a number. The
 * baseline is a vector of 0 for every gene (gene + value, nn/input.h); special tokens stay as they are.
 *     attribution_t = v_t . integral over a from 0 to 1 of df/dv_t (a v);    sum over t = f(v) - f(0), exactly
 *
 * The network normalises v_t + rest_t first, so f changes only where a v is about as large as the rest: of bmfm_llama, which has no positions,
 * at a = 1e-6, where the epsilon of the norm is. So the integral is over u with
 *     a = k u / sqrt(k^2 + 1 - u^2),    da/du = k (k^2 + 1) / (k^2 + 1 - u^2)^(3/2),
 * k the ratio of the deviations by which the norm divides at a = 0 and at a = 1, means over the cell's genes. The norm then gives about u times
 * what it gives at 1. A large k leaves a = u. A change of variable changes no integral, only how many points it needs.
 *
 * The rule is Fejer's second, whose points at n steps are among those at 2 n, and which leaves out the ends: at u = 1 a float has lost how f
 * changes by the length of v. A cell is done when the sum is within 1 % of f(v) - f(0), and its attributions together changed by less than 1 %
 * since half as many steps.
 */
#include "scpredict.h"
#include "cli.h"

#include "cli_model.h"
#include "nn/input.h"

#include <float.h>

struct cli attribution_cli = {.name = "scpredict attribution",
	.operands = "[FILE...]",
	.summary = "How much each gene of a cell adds to the output of a head.",
	.options = head_options,
	.shared = inference_options,
	.common = CLI_STREAM_OUT | CLI_DEVICE | CLI_THREADS};

#define TOLERANCE 0.01
enum { STEPS_MIN = 8, STEPS_MAX = 256 };

/* A cell of the batch. */
struct part {
	uint32_t class;
	double high, low; /* f(v), f(0) */
	double k;
	double sum; /* of its attributions */
	uint32_t steps;
	int done;
};

struct attribution {
	struct chosen chosen;
	size_t outputs, C;
	double scale, mean; /* of a number: its unit */
	int class, output, baseline, completeness, steps, token, attribution, group; /* columns of the output; class -1: a number */
	struct part *part; /* [cells] of the batch */
	float *v; /* [T, C] */
	double *slope; /* [STEPS_MAX, T] v_t . df/dv_t at each point */
	double *sum, *before; /* [T] the attributions, and those of half the steps */
	/* the cells that are worked on: their batch, its vectors, gradients and results; which cells of the whole batch, and where theirs begin */
	struct batch b;
	uint32_t *offset, *id, *rank, *cell;
	float *value, *x, *dx, *y, *dy, *deviation;
	size_t part_cap, v_cap, slope_cap, sum_cap, before_cap, offset_cap, id_cap, rank_cap, cell_cap, value_cap, x_cap, dx_cap, y_cap,
		dy_cap, deviation_cap;
	uint64_t unmet, done; /* cells */
	double worst; /* |1 - completeness| of all */
};

/* ---- which head and class ---- */

static int attribution_fit(const struct head_spec *s)
{
	return s->kind->rows == ROWS_CELL && head_labels(s->kind);
}

static void attribution_choose(struct attribution *a)
{
	choose_head(&a->chosen, head, attribution_fit, "classes or numbers of cells", "cells");
	const struct head_spec *s = chosen(&a->chosen);
	a->scale = s->kind->target != TARGET_VALUE || s->scale == 0 ? 1 : s->scale;
	a->mean = s->kind->target == TARGET_VALUE ? s->mean : 0;
	a->outputs = head_classifies(s->kind) ? s->nlabel : 1;
}

static void attribution_make_header(const struct inference *r, struct header *h)
{
	static const char *const made[] = {"attributed", "output", "baseline", "completeness", "steps", "token", "attribution", NULL};
	struct attribution *a = r->of;
	const struct head_spec *s = chosen(&a->chosen);
	prediction_header(h, r, made);
	must(input_check(r->model, &(struct input_to){.head = a->chosen.head}, &failure));
	a->C = model_config(r->model)->hidden_size;
	a->class = head_classifies(s->kind) ? header_add_categorical(h, "attributed", s->label, s->nlabel) : -1;
	a->output = header_add(h, "output", F64);
	a->baseline = header_add(h, "baseline", F64);
	a->completeness = header_add(h, "completeness", F64);
	a->steps = header_add(h, "steps", U32);
	a->token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	a->attribution = header_add_ragged(h, "attribution", F32, "token");
	a->group = h->col[a->token].group;
}

/* ---- the function on some cells ---- */

/* The batch of these cells of p, cell [n] (in a->cell already). */
static void attribution_take(struct attribution *a, const struct batch *p, size_t n)
{
	uint32_t at = 0;
	grow(a->offset, a->offset_cap, n + 1);
	a->offset[0] = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t from = p->offset[a->cell[i]], len = p->offset[a->cell[i] + 1] - from;
		grow(a->id, a->id_cap, at + len);
		grow(a->rank, a->rank_cap, at + len);
		grow(a->value, a->value_cap, at + len);
		memcpy(a->id + at, p->id + from, len * sizeof *a->id);
		if (p->rank)
			memcpy(a->rank + at, p->rank + from, len * sizeof *a->rank);
		if (p->value)
			memcpy(a->value + at, p->value + from, len * sizeof *a->value);
		a->offset[i + 1] = at += len;
	}
	a->b = (struct batch){
		.ncell = n, .offset = a->offset, .id = a->id, .rank = p->rank ? a->rank : NULL, .value = p->value ? a->value : NULL};
	grow(a->x, a->x_cap, at * a->C);
	grow(a->dx, a->dx_cap, at * a->C);
	grow(a->deviation, a->deviation_cap, at);
	grow(a->y, a->y_cap, n * a->outputs);
	grow(a->dy, a->dy_cap, n * a->outputs);
}

static int is_gene(const struct inference *r, uint32_t id)
{
	return id >= r->out.header->vocab.nspecial;
}

static double path(double k, double u)
{
	return u < 1 ? k * u / sqrt(k * k + 1 - u * u) : 1;
}

static double path_slope(double k, double u)
{
	return k * (k * k + 1) / pow(k * k + 1 - u * u, 1.5);
}

/* f at point u of the path of each cell: a->y, and a->deviation if `first`. */
static void compute(struct inference *r, const struct batch *p, double u, int first)
{
	struct attribution *a = r->of;
	for (size_t i = 0; i < a->b.ncell; i++) {
		double by = first ? u : path(a->part[a->cell[i]].k, u);
		const float *v = a->v + p->offset[a->cell[i]] * a->C;
		for (size_t t = a->offset[i]; t < a->offset[i + 1]; t++, v += a->C)
			for (size_t c = 0; c < a->C; c++)
				a->x[t * a->C + c] = is_gene(r, a->id[t]) ? (float)(by * (double)v[c]) : v[c];
	}
	must(input_forward(r->model, &a->b, a->x, &(struct input_to){.head = a->chosen.head}, a->y, a->deviation, &failure));
}

/* The slopes of the cells' numbers at this point, after compute: slope [T of the whole batch]. */
static void slopes(struct inference *r, const struct batch *p, double *slope)
{
	struct attribution *a = r->of;
	memset(a->dy, 0, a->b.ncell * a->outputs * sizeof *a->dy);
	for (size_t i = 0; i < a->b.ncell; i++)
		a->dy[i * a->outputs + a->part[a->cell[i]].class] = 1;
	must(input_backward(r->model, a->dy, a->dx, NULL, &failure));
	for (size_t i = 0; i < a->b.ncell; i++) {
		size_t to = p->offset[a->cell[i]];
		for (size_t t = a->offset[i]; t < a->offset[i + 1]; t++, to++) {
			double dot = 0;
			for (size_t c = 0; c < a->C; c++)
				dot += (double)a->dx[t * a->C + c] * (double)a->v[to * a->C + c];
			slope[to] = is_gene(r, a->id[t]) ? a->scale * dot : 0;
		}
	}
}

static double attribution_number(const struct attribution *a, size_t i, uint32_t class)
{
	double y = (double)a->y[i * a->outputs + class];
	if (!isfinite(y))
		die("an output of the head is %g, expected a finite number: do the weights belong to this config.json?", y);
	return a->mean + a->scale * y;
}

/* Mean over the genes of cell i of the batch that is worked on. */
static double mean_deviation(const struct inference *r, size_t i)
{
	const struct attribution *a = r->of;
	double sum = 0, n = 0;
	for (size_t t = a->offset[i]; t < a->offset[i + 1]; t++)
		if (is_gene(r, a->id[t])) {
			sum += (double)a->deviation[t];
			n++;
		}
	return sum / n;
}

/* Both ends of the path: the class, f and k. */
static void ends(struct inference *r, const struct batch *p)
{
	struct attribution *a = r->of;
	for (int high = 1; high >= 0; high--) {
		compute(r, p, high, 1);
		for (size_t i = 0; i < a->b.ncell; i++) {
			struct part *x = &a->part[a->cell[i]];
			if (high) {
				x->class = 0;
				for (uint32_t k = 1; k < a->outputs; k++)
					x->class = a->y[i * a->outputs + k] > a->y[i * a->outputs + x->class] ? k : x->class;
				x->high = attribution_number(a, i, x->class);
				x->k = 1 / mean_deviation(r, i);
			} else {
				x->low = attribution_number(a, i, x->class);
				x->k = fmax(x->k * mean_deviation(r, i), DBL_MIN);
			}
		}
	}
}

/* ---- the integral ---- */

/* Weight of point i of 1 .. n - 1 on [0, 1], at (1 - cos(i pi / n)) / 2 [Fejer 1933; n is even]. */
static double weight(size_t i, size_t n)
{
	double sum = 0, angle = M_PI * (double)i / (double)n;
	for (size_t j = 1; j < n; j += 2)
		sum += sin((double)j * angle) / (double)j;
	return 2 * sin(angle) / (double)n * sum;
}

static double point(size_t i, size_t n)
{
	return (1 - cos(M_PI * (double)i / (double)n)) / 2;
}

/* The attributions of cell c at n steps. Is it done? */
static void attribution_finish(struct attribution *a, const struct batch *p, size_t T, uint32_t c, size_t n)
{
	struct part *x = &a->part[c];
	double change = 0, size = 0, all = x->high - x->low;
	size_t from = p->offset[c], to = p->offset[c + 1];
	memset(a->sum + from, 0, (to - from) * sizeof *a->sum);
	for (size_t i = 1; i < n; i++) {
		double w = weight(i, n) * path_slope(x->k, point(i, n));
		const double *slope = a->slope + i * (STEPS_MAX / n) * T;
		for (size_t t = from; t < to; t++)
			a->sum[t] += w * slope[t];
	}
	x->sum = 0;
	for (size_t t = from; t < to; t++) {
		change += fabs(a->sum[t] - a->before[t]);
		size += fabs(a->sum[t]);
		x->sum += a->sum[t];
	}
	x->steps = (uint32_t)n;
	x->done = n > STEPS_MIN && fabs(x->sum - all) <= TOLERANCE * fabs(all) && change <= TOLERANCE * size;
	memcpy(a->before + from, a->sum + from, (to - from) * sizeof *a->sum);
}

/* The cells of p that have genes and are not done, as the batch to work on. */
static size_t take_open(struct inference *r, const struct batch *p)
{
	struct attribution *a = r->of;
	size_t n = 0;
	grow(a->cell, a->cell_cap, p->ncell);
	for (uint32_t c = 0; c < p->ncell; c++) {
		int genes = 0;
		for (uint32_t t = p->offset[c]; t < p->offset[c + 1] && !genes; t++)
			genes = is_gene(r, p->id[t]);
		if (genes && !a->part[c].done)
			a->cell[n++] = c;
	}
	attribution_take(a, p, n);
	return n;
}

static void integrate(struct inference *r, const struct batch *p)
{
	struct attribution *a = r->of;
	size_t T = p->offset[p->ncell], first = 1;
	if (!take_open(r, p))
		return;
	ends(r, p);
	for (size_t n = STEPS_MIN; n <= STEPS_MAX && take_open(r, p); n *= 2, first = 2) {
		for (size_t i = 1; i < n; i += first) { /* then the points between */
			compute(r, p, point(i, n), 0);
			slopes(r, p, a->slope + i * (STEPS_MAX / n) * T);
		}
		for (size_t i = 0; i < a->b.ncell; i++)
			attribution_finish(a, p, T, a->cell[i], n);
	}
}

/* ---- output ---- */

static void write_list(struct inference *r, const struct batch *p, size_t i, size_t row)
{
	const struct attribution *a = r->of;
	struct block *b = &r->out;
	uint64_t at = b->group[a->group].offset[row];
	block_set_items(b, a->group, at + p->offset[i + 1] - p->offset[i]);
	for (uint32_t t = p->offset[i]; t < p->offset[i + 1]; t++) {
		if (!is_gene(r, p->id[t]))
			continue;
		block_set_id(b, a->token, at, p->id[t]);
		((float *)b->col[a->attribution].data)[at++] = (float)a->sum[t];
	}
	block_set_items(b, a->group, at);
	b->group[a->group].offset[row + 1] = at;
}

static void attribution_rows(struct inference *r, size_t first, size_t n)
{
	struct attribution *a = r->of;
	const struct batch *p = &r->packed.b;
	struct block *b = &r->out;
	size_t T = p->offset[n];
	grow(a->part, a->part_cap, n);
	grow(a->v, a->v_cap, T * a->C);
	grow(a->slope, a->slope_cap, STEPS_MAX * T);
	grow(a->sum, a->sum_cap, T);
	grow(a->before, a->before_cap, T);
	memset(a->part, 0, n * sizeof *a->part);
	if (T) {
		must(input_vectors(r->model, p, a->v, &failure));
		integrate(r, p);
	}
	for (size_t i = 0; i < n; i++) {
		const struct part *x = &a->part[i];
		int has = x->steps > 0;
		double all = x->high - x->low, complete = !has ? NAN : x->sum == all ? 1 : x->sum / all;
		write_list(r, p, i, first + i);
		if (a->class >= 0)
			((uint32_t *)b->col[a->class].data)[first + i] = has ? x->class : MISSING_CODE;
		((double *)b->col[a->output].data)[first + i] = has ? x->high : NAN;
		((double *)b->col[a->baseline].data)[first + i] = has ? x->low : NAN;
		((double *)b->col[a->completeness].data)[first + i] = complete;
		((uint32_t *)b->col[a->steps].data)[first + i] = x->steps;
		r->empty += !has;
		a->done += (uint64_t)(has && x->done);
		a->unmet += (uint64_t)(has && !x->done);
		if (has && x->done)
			a->worst = fmax(a->worst, fabs(complete - 1));
	}
}

static void report_steps(const struct inference *r)
{
	const struct attribution *a = r->of;
	if (a->unmet)
		warn("%llu of %llu cells: their attributions do not add up to output - baseline within %g %%, or still change, after %d steps: "
		     "see the columns completeness and steps",
			(unsigned long long)a->unmet, (unsigned long long)r->cells, 100 * TOLERANCE, STEPS_MAX);
	cli_measured_all({"cells_incomplete", (double)a->unmet}, {"completeness_error", a->worst});
}

int scpredict_attribution(int argc, char **argv)
{
	static struct attribution a;
	static struct inference r = {.of = &a};
	struct header h = {0};
	cli_init(&attribution_cli, argc, argv);
	inference_open(&r, &attribution_cli, INFERENCE_GRADIENTS);
	attribution_choose(&a);
	inference_load(&r, &a.chosen.heads);
	cli_has_position(chosen(&a.chosen), r.in);
	attribution_make_header(&r, &h);
	inference_run(&r, &h, attribution_rows, NULL);
	report_steps(&r);
	inference_report(&r, "cells have no gene: they have no attributions");
	return 0;
}

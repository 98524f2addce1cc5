/*
 * Dual coordinate ascent (Shalev-Shwartz and Zhang, JMLR 14, 2013) on float32 rows. At the optimum
 *     W = 1/penalty sum_i v_i a_i (x_i - m)^T,   a_i = t_i - p_i
 * with t_i the class of row i and p_i its softmax, so the a_i are the unknowns. They begin at 0, and one row at a time, in random order, gets the
 * a_i that is best while all others stay. A pass takes about as long as a gradient, but its steps are as long as each row allows, where those of
 * L-BFGS are bound by the common genes (docs/experiments/transfer.md). Passes end when what is left of the way to the optimum, as they shrink by a
 * constant factor, is short.
 * Features are centred; the rows stay sparse, as  W (x - m) = A x - (m x) a - (A m - |m|^2 a)  with  W = A - a m^T.  The intercept is free: in a
 * pass it is drawn to where it was before, as the weight of a feature of constant value, and stays where it came to (augmented Lagrangian).
 * Of a row that is of one of a set of classes, t_i is the softmax over the set at its last visit. These rows come last, from the third pass on, when
 * the others have said something about the classes.
 */
#include "eval/sparse_probe.h"

#include "base/rng.h"
#include "base/softmax.h"

enum { FEWEST_ROWS = 3, MOST_PASSES = 300, SETS_FROM = 2 };
static const double enough = .015; /* the way that is left, relative to the a_i */
/* The square of the constant feature, relative to the mean |x - m|^2: larger, and the steps of all rows are shorter; smaller, and the intercept needs
 * more passes. */
static const double constant_share = .1;
enum { VECTOR = 8, TOGETHER = 4 }; /* so many vectors of a row's logits stay in registers */
typedef float vector __attribute__((vector_size(4 * VECTOR), aligned(4)));

struct row_state {
	double product, square; /* m x; |x - m|^2, with the constant feature */
	double size; /* of a_i: the sum over classes */
	int dropped; /* 1: the row has features that are not kept */
};

struct fit {
	const struct sparse *x;
	const uint32_t *row, *y;
	size_t n, k, stride;
	const float *weight;
	double total; /* of the weights of the rows */
	const uint8_t *under;
	double penalty;
	double *mean; /* [x->d] m; 0 of features that are not kept */
	uint8_t *keep; /* [x->d] 1: enough rows have the feature */
	double mean_square, constant; /* |m|^2; square of the constant feature */
	double size, moved; /* weighted sums over rows: of the a_i, and of their changes in this pass */
	float *w; /* [x->d, stride] A */
	double *sum, *product, *intercept, *centre; /* [k] a; A m; what a pass adds to the intercepts; those before it */
	float *dual; /* [n, k] a_i */
	struct row_state *state; /* [n] */
	double *target, *p, *z0; /* [k] scratch: t_i; p_i; logits without row i and with its target */
	float *b, *z; /* [stride] scratch: what does not depend on A; logits */
	struct sparse_row own; /* scratch */
	uint32_t *column; /* [x->d] scratch: of the row's features that are kept */
	float *value;
};

static double weight_of(const float *weight, uint32_t row)
{
	return weight ? (double)weight[row] : 1;
}

static double total_weight(const uint32_t *row, size_t n, const float *weight)
{
	double total = 0;
	for (size_t i = 0; i < n; i++)
		total += weight_of(weight, row[i]);
	return total;
}

/* z += w x of `blocks` vectors of classes */
static inline __attribute__((always_inline)) void multiply(const float *w, size_t stride, const struct sparse_row *x, float *z, int blocks)
{
	vector a[TOGETHER];
	memcpy(a, z, (size_t)blocks * sizeof *a);
	for (size_t j = 0; j < x->n; j++) {
		const vector *f = (const vector *)(w + x->column[j] * stride);
		for (int c = 0; c < blocks; c++)
			a[c] += x->value[j] * f[c];
	}
	memcpy(z, a, (size_t)blocks * sizeof *a);
}

/* g += z x^T, likewise */
static inline __attribute__((always_inline)) void scatter(float *g, size_t stride, const struct sparse_row *x, float *z, int blocks)
{
	vector a[TOGETHER];
	memcpy(a, z, (size_t)blocks * sizeof *a);
	for (size_t j = 0; j < x->n; j++) {
		vector *f = (vector *)(g + x->column[j] * stride);
		for (int c = 0; c < blocks; c++)
			f[c] += x->value[j] * a[c];
	}
}

/* Call f for all classes, some vectors of them at a time. */
#define BY_VECTORS(f, w, stride, x, z) \
	for (size_t at = 0, left; at < stride; at += VECTOR * TOGETHER) { \
		left = (stride - at) / VECTOR; \
		if (left == 1) \
			f(w + at, stride, x, z + at, 1); \
		else if (left == 2) \
			f(w + at, stride, x, z + at, 2); \
		else if (left == 3) \
			f(w + at, stride, x, z + at, 3); \
		else \
			f(w + at, stride, x, z + at, TOGETHER); \
	}

/* z = w x + b */
static void logits(const float *w, size_t stride, const struct sparse_row *x, const float *b, float *z)
{
	memcpy(z, b, stride * sizeof *z);
	BY_VECTORS(multiply, w, stride, x, z)
}

/* The w with  w + log w = s  (the Wright omega function), to about 1e-5 of it */
static double omega(double s)
{
	double w = s < -2 ? exp(s) : s < 2 ? .5671 + s * (.3619 + s * .0737) : s - log(s);
	for (int i = s < -12 ? 0 : s < -4 ? 1 : 2; i > 0; i--) /* Newton's method */
		w *= 1 + (s - w - log(w)) / (1 + w);
	return w;
}

/* p = softmax(z0 - q p): with w = q p this is  w + log w = z0 + log q - c  where c makes the sum of p 1. Newton's method for c: the sum is convex and
 * falls with c, so from where the largest class alone has all, its steps do not pass the solution. */
static void solve_p(const double *z0, size_t k, double q, double *p)
{
	enum { MOST_STEPS = 50 }; /* about six are needed; of huge numbers no step may be small */
	double shift = log(q), c = z0[0], sum = q, step = 1;
	for (size_t a = 1; a < k; a++)
		c = fmax(c, z0[a]);
	c -= q;
	for (int i = 0; i < MOST_STEPS && step > 1e-3; i++, c += step) {
		double slope = sum = 0;
		for (size_t a = 0; a < k; a++) {
			p[a] = omega(z0[a] + shift - c);
			sum += p[a];
			slope += p[a] / (1 + p[a]);
		}
		step = (sum - q) / slope;
	}
	for (size_t a = 0; a < k; a++)
		p[a] /= sum;
}

/* The features of row i that are kept. */
static struct sparse_row kept_row(struct fit *f, size_t i)
{
	size_t n = 0;
	sparse_row(f->x, f->row[i], &f->own);
	if (!f->state[i].dropped)
		return f->own;
	for (size_t j = 0; j < f->own.n; j++) {
		f->column[n] = f->own.column[j];
		f->value[n] = f->own.value[j];
		n += f->keep[f->own.column[j]];
	}
	return (struct sparse_row){.n = n, .column = f->column, .value = f->value};
}

/* target: its class, or the softmax of z over the set of classes. */
static void choose_target(struct fit *f, uint32_t y)
{
	const uint8_t *in = y < f->k ? NULL : f->under + (y - f->k) * f->k;
	for (size_t c = 0; c < f->k; c++)
		f->target[c] = !in ? c == y : in[c] ? (double)f->z[c] : -INFINITY;
	if (in)
		softmax(f->target, f->k);
}

/* The a_i of row i become `to`. */
static void take_step(struct fit *f, size_t i, const struct sparse_row *x, const double *to)
{
	float *dual = f->dual + i * f->k;
	double share = weight_of(f->weight, f->row[i]) / f->total / f->penalty;
	memset(f->z, 0, f->stride * sizeof *f->z);
	for (size_t c = 0; c < f->k; c++) {
		double step = (to[c] - (double)dual[c]) * share;
		f->z[c] = (float)step;
		dual[c] = (float)to[c];
		f->sum[c] += step;
		f->product[c] += step * f->state[i].product;
		f->intercept[c] += step * f->constant;
	}
	BY_VECTORS(scatter, f->w, f->stride, x, f->z)
}

/* Row i gets the a_i that is best for it. */
static void visit(struct fit *f, size_t i)
{
	struct row_state *state = f->state + i;
	struct sparse_row x = kept_row(f, i);
	double weight = weight_of(f->weight, f->row[i]), q = weight / f->total / f->penalty * state->square, size = 0;
	const float *dual = f->dual + i * f->k;
	for (size_t c = 0; c < f->stride; c++)
		f->b[c] = c < f->k ? (float)(f->centre[c] + f->intercept[c] - f->product[c] - f->sum[c] * (state->product - f->mean_square))
				   : 0;
	logits(f->w, f->stride, &x, f->b, f->z);
	choose_target(f, f->y[f->row[i]]);
	for (size_t c = 0; c < f->k; c++)
		f->z0[c] = (double)f->z[c] + q * (f->target[c] - (double)dual[c]);
	solve_p(f->z0, f->k, q, f->p);
	for (size_t c = 0; c < f->k; c++) {
		f->target[c] -= f->p[c];
		size += fabs(f->target[c]);
		f->moved += weight * fabs(f->target[c] - (double)dual[c]);
	}
	f->size += weight * (size - state->size);
	state->size = size;
	take_step(f, i, &x, f->target);
}

/* The mean of the rows, malloced. */
static double *means(const struct sparse *x, const uint32_t *row, size_t n, const float *weight)
{
	double *mean = xcalloc(x->d + 1, sizeof *mean), total = total_weight(row, n, weight);
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < n; i++) {
		double share = weight_of(weight, row[i]) / total;
		sparse_row(x, row[i], &r);
		for (size_t j = 0; j < r.n; j++)
			mean[r.column[j]] += share * (double)r.value[j];
	}
	return mean;
}

/* Which features enough rows have, and what follows from it. */
static void choose_features(struct fit *f)
{
	const struct sparse *x = f->x;
	FREED double *square = xcalloc(x->d + 1, sizeof *square);
	FREED uint32_t *rows = xcalloc(x->d + 1, sizeof *rows);
	double variance = 0;
	for (size_t i = 0; i < f->n; i++) {
		double share = weight_of(f->weight, f->row[i]) / f->total;
		sparse_row(x, f->row[i], &f->own);
		for (size_t j = 0; j < f->own.n; j++) {
			rows[f->own.column[j]]++;
			square[f->own.column[j]] += share * (double)f->own.value[j] * (double)f->own.value[j];
		}
	}
	for (size_t j = 0; j < x->d; j++) {
		f->keep[j] = rows[j] >= FEWEST_ROWS;
		f->mean[j] = f->keep[j] ? f->mean[j] : 0;
		f->mean_square += f->mean[j] * f->mean[j];
		variance += f->keep[j] ? square[j] - f->mean[j] * f->mean[j] : 0;
	}
	f->constant = fmax(constant_share * variance, 10 * f->penalty); /* the intercept moves although all rows are the same */
}

static void measure_rows(struct fit *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct row_state *state = f->state + i;
		*state = (struct row_state){.square = f->mean_square + f->constant};
		sparse_row(f->x, f->row[i], &f->own);
		for (size_t j = 0; j < f->own.n; j++) {
			double v = (double)f->own.value[j], m = f->mean[f->own.column[j]];
			if (!f->keep[f->own.column[j]]) {
				state->dropped = 1;
				continue;
			}
			state->product += v * m;
			state->square += v * (v - 2 * m);
		}
	}
}

/* One visit to each row, in random order. */
static void pass_over(struct fit *f, uint32_t pass, uint32_t *order)
{
	struct rng r = rng_at(0, RNG_ROWS, pass, 1);
	rng_order(&r, order, (uint32_t)f->n);
	f->moved = 0;
	for (size_t i = 0; i < f->n; i++)
		if (pass >= SETS_FROM || f->y[f->row[order[i]]] < f->k)
			visit(f, order[i]);
	for (size_t c = 0; c < f->k; c++) {
		f->centre[c] += f->intercept[c];
		f->moved += fabs(f->sum[c]) * f->penalty * f->total; /* 0 at the optimum */
	}
}

static void ascend(struct fit *f)
{
	FREED uint32_t *order = xmalloc(f->n * sizeof *order);
	double left = INFINITY, before = 0;
	for (uint32_t pass = 0; pass < MOST_PASSES && (pass <= SETS_FROM + 1 || left > enough * f->size); pass++) {
		pass_over(f, pass, order);
		double factor = before > 0 ? fmin(f->moved / before, .99) : .99;
		left = f->moved * factor / (1 - factor);
		before = f->moved;
	}
}

/* W = A - a m^T, and the intercept for rows that are not centred. */
static void finish(struct fit *f)
{
	FREED double *b = xcalloc(f->stride, sizeof *b);
	for (size_t j = 0; j < f->x->d; j++)
		for (size_t c = 0; c < f->k; c++) {
			double w = (double)f->w[j * f->stride + c] - f->sum[c] * f->mean[j];
			f->w[j * f->stride + c] = (float)w;
			b[c] -= w * f->mean[j];
		}
	for (size_t c = 0; c < f->stride; c++)
		f->b[c] = c < f->k ? (float)(b[c] + f->centre[c]) : 0;
}

int sparse_probe_fit(struct sparse_probe *p, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, size_t k,
	const float *weight, const uint8_t *under, double penalty, struct error *e)
{
	size_t stride = (k + VECTOR - 1) / VECTOR * VECTOR, numbers = x->d * stride + 1;
	FREED double *of_classes = xcalloc(7 * k, sizeof *of_classes);
	struct fit f = {.x = x,
		.row = row,
		.y = y,
		.n = n,
		.k = k,
		.stride = stride,
		.weight = weight,
		.total = total_weight(row, n, weight),
		.under = under,
		.penalty = penalty,
		.mean = means(x, row, n, weight),
		.keep = xcalloc(x->d + 1, 1),
		.w = xlarge(numbers, sizeof *f.w),
		.sum = of_classes,
		.product = of_classes + k,
		.intercept = of_classes + 2 * k,
		.dual = xcalloc(n * k, sizeof *f.dual),
		.state = xmalloc(n * sizeof *f.state),
		.target = of_classes + 3 * k,
		.p = of_classes + 4 * k,
		.z0 = of_classes + 5 * k,
		.centre = of_classes + 6 * k,
		.b = xmalloc(stride * sizeof *f.b),
		.z = xmalloc(stride * sizeof *f.z),
		.column = xmalloc((x->d + 1) * sizeof *f.column),
		.value = xmalloc((x->d + 1) * sizeof *f.value)};
	memset(f.w, 0, numbers * sizeof *f.w);
	choose_features(&f);
	measure_rows(&f);
	ascend(&f);
	finish(&f);
	*p = (struct sparse_probe){k, x->d, stride, f.w, f.b};
	free_all(f.mean, f.keep, f.dual, f.state, f.z, f.column, f.value);
	sparse_row_release(&f.own);
	return isfinite(p->b[0]) ? 0 : error_set(e, "the weights are not finite");
}

void sparse_probe_release(struct sparse_probe *p)
{
	free_all(p->w, p->b);
	*p = (struct sparse_probe){0};
}

void sparse_probe_keep(struct sparse_probe *p, const uint8_t *keep)
{
	for (size_t j = 0; j < p->d; j++)
		if (!keep[j])
			memset(p->w + j * p->stride, 0, p->stride * sizeof *p->w);
}

void sparse_probe_logits(const struct sparse_probe *p, const struct sparse_row *x, float *logit)
{
	logits(p->w, p->stride, x, p->b, logit);
}

/* The norms, b and |m|^2 of w and mean. */
static void centroids_settle(struct centroids *c)
{
	c->square = 0;
	for (size_t j = 0; j < c->d; j++)
		c->square += (double)c->mean[j] * (double)c->mean[j];
	for (size_t a = 0; a < c->k; a++) {
		double square = 0, offset = 0;
		for (size_t j = 0; j < c->d; j++) {
			double w = (double)c->w[j * c->stride + a];
			square += w * w;
			offset -= w * (double)c->mean[j];
		}
		for (size_t j = 0; j < c->d && square > 0; j++)
			c->w[j * c->stride + a] = (float)((double)c->w[j * c->stride + a] / sqrt(square));
		c->b[a] = square > 0 ? (float)(offset / sqrt(square)) : 0;
	}
}

void centroids_fit(
	struct centroids *c, const struct sparse *x, const uint32_t *row, size_t n, const uint32_t *y, const float *weight, size_t k)
{
	size_t d = x->d, stride = (k + 7) / 8 * 8;
	FREED double *sum = xcalloc(k * d + 1, sizeof *sum), *cells = xcalloc(k, sizeof *cells), *mean = means(x, row, n, weight);
	*c = (struct centroids){
		k, d, stride, xcalloc(d * stride + 1, sizeof *c->w), xcalloc(stride, sizeof *c->b), xmalloc((d + 1) * sizeof *c->mean), 0};
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	for (size_t i = 0; i < n; i++) {
		double own = weight_of(weight, row[i]);
		cells[y[row[i]]] += own;
		sparse_row(x, row[i], &r);
		for (size_t j = 0; j < r.n; j++)
			sum[y[row[i]] * d + r.column[j]] += own * (double)r.value[j];
	}
	for (size_t j = 0; j < d; j++) {
		c->mean[j] = (float)mean[j];
		for (size_t a = 0; a < k; a++)
			c->w[j * stride + a] = (float)(sum[a * d + j] / cells[a] - mean[j]);
	}
	centroids_settle(c);
}

void centroids_keep(struct centroids *c, const uint8_t *keep)
{
	for (size_t j = 0; j < c->d; j++)
		if (!keep[j]) {
			c->mean[j] = 0;
			memset(c->w + j * c->stride, 0, c->stride * sizeof *c->w);
		}
	centroids_settle(c);
}

void centroids_release(struct centroids *c)
{
	free_all(c->w, c->b, c->mean);
	*c = (struct centroids){0};
}

double centroids_distance(const struct centroids *c, const struct sparse_row *x)
{
	float *z = xmalloc(c->stride * sizeof *z), most;
	double square = c->square;
	logits(c->w, c->stride, x, c->b, z);
	for (size_t j = 0; j < x->n; j++) {
		double v = (double)x->value[j];
		square += v * (v - 2 * (double)c->mean[x->column[j]]);
	}
	most = z[0];
	for (size_t a = 1; a < c->k; a++)
		most = z[a] > most ? z[a] : most;
	free(z);
	return square > 0 ? 1 - (double)most / sqrt(square) : 1;
}

/* ctaprobe cells --label: fit the logistic-regression probe, with a search of its penalty, and score its predictions. */
#include "cells.h"
#include "cli.h"

#include "base/softmax.h"
#include "base/threads.h"
#include "eval/roc.h"
#include "transfer/fitted.h"

/* Train on rows row[0..n) with inverse penalty C, from the weights of `start` or NULL. */
static void classes_train(struct fitted *f, const struct embeddings *d, const uint32_t *row, size_t n, double inverse_penalty,
	const struct fitted *start, const struct classes *c, const char *what)
{
	struct probe_options o = {.c = inverse_penalty,
		.tol = PROBE_TOL_CELL * (double)n / fmax(inverse_penalty, 1), /* weights are at most C times the gradient away */
		.max_iter = (int)cells_set.max_iter,
		.standardize = !cells_set.as_given,
		.threads = (int)cells_cli.threads,
		.start = start ? &start->p : NULL};
	progress("%s: fitting %zu cells, %zu classes, %zu features", what, n, c->n, d->d);
	if (fitted_train(f, d, row, n, c, cells_set.label, &o, &failure))
		die("%s: %s: %s", stream_name(d->s), what, failure.msg);
}

struct prediction {
	const struct fitted *f;
	const struct embeddings *of;
	const uint32_t *test; /* rows of `of` */
	uint32_t *predicted; /* [rows of `of`] */
	double *logit; /* [rows of `of`, classes] */
};

/* Predict row test[i]. */
static void predict(void *arg, size_t i, int thread)
{
	const struct prediction *a = arg;
	size_t row = a->test[i];
	double *logit = a->logit + row * a->f->all;
	fitted_logits(a->f, a->of->x + row * a->of->d, logit);
	a->predicted[row] = (uint32_t)softmax_argmax(logit, a->f->all);
}

/* ---- search of the penalty ---- */

enum { GRID = 10 };

/* C = 10^-6 ... 10^2 [numpy: logspace(-6, 2, 10)] */
static double grid_at(int i)
{
	return pow(10, -6 + i * 8.0 / (GRID - 1));
}

/* Balanced accuracy on the inner fold for every C of the grid is added to score [GRID]. */
static void search_fold(struct result *r, const struct split *s, const struct split *inner, const struct classes *c, uint32_t *predicted,
	double *logit, double *score)
{
	struct fitted f[2] = {{.all = 0}};
	FREED uint32_t *truth = xmalloc(inner->m * sizeof *truth), *guess = xmalloc(inner->m * sizeof *guess);
	for (int i = 0; i < GRID; i++) {
		struct fitted *now = f + i % 2, *before = f + (i + 1) % 2;
		RELEASED(metrics_release) struct metrics m;
		fitted_release(now);
		classes_train(now, s->from, inner->train, inner->n, grid_at(i), i ? before : NULL, c, inner->what);
		r->unfinished += !now->p.converged;
		r->iterations += now->p.iterations;
		struct prediction p = {now, s->from, inner->test, predicted, logit};
		pool_for((int)cells_cli.threads, inner->m, predict, &p);
		for (size_t j = 0; j < inner->m; j++) {
			truth[j] = s->from->y[inner->test[j]];
			guess[j] = predicted[inner->test[j]];
		}
		metrics_init(&m, c->n);
		metrics_add(&m, truth, guess, inner->m);
		metrics_score(&m);
		score[i] += m.balanced_accuracy;
	}
	fitted_release(f);
	fitted_release(f + 1);
}

/* The C with the best mean balanced accuracy over folds of the training cells; of equal ones the smallest. */
static double search(struct result *r, const struct split *s, const struct classes *c)
{
	size_t nfold = (size_t)cells_set.search, n = s->from->n;
	FREED uint32_t *fold = xmalloc(s->n * sizeof *fold), *train = xmalloc(s->n * sizeof *train), *test = xmalloc(s->n * sizeof *test);
	FREED uint32_t *predicted = xmalloc(n * sizeof *predicted);
	double *logit = xmalloc(n * c->n * sizeof *logit), score[GRID] = {0};
	assign_folds(fold, s->from, s->train, s->n, nfold, (uint32_t)cells_cli.seed, s->what);
	for (uint32_t f = 0; f < nfold; f++) {
		FREED char *what = xasprintf("%s, fold %u of %zu of the search", s->what, f + 1, nfold);
		struct split inner = {.train = train, .test = test, .what = what};
		inner.n = fold_rows(fold, f, s->train, s->n, train, test);
		inner.m = s->n - inner.n;
		search_fold(r, s, &inner, c, predicted, logit, score);
	}
	int best = 0;
	for (int i = 1; i < GRID; i++)
		if (score[i] > score[best] + 1e-12)
			best = i;
	free(logit);
	return grid_at(best);
}

/* ---- one split ---- */

void classes_fit(struct result *r, const struct split *s, const struct classes *c)
{
	struct fitted f;
	double inverse_penalty = cells_set.search ? search(r, s, c) : cells_set.inverse_penalty;
	classes_train(&f, s->from, s->train, s->n, inverse_penalty, NULL, c, s->what);
	if (!f.p.converged && f.p.iterations < cells_set.max_iter)
		warn("%s: the probe stopped after %d iteration%s: rounding hides whether a step is smaller (largest gradient entry %.3g); %s",
			s->what, f.p.iterations, f.p.iterations == 1 ? "" : "s", f.p.gradient,
			cells_set.as_given ? "leave out --no-standardize" : "lower --inverse-penalty");
	else if (!f.p.converged)
		warn("%s: the probe did not converge in %d iterations (largest gradient entry %.3g); raise --max-iter%s", s->what,
			f.p.iterations, f.p.gradient, inverse_penalty > 1 ? " or lower --inverse-penalty" : "");
	grow(r->penalty, r->penalty_cap, r->fits + 1);
	r->penalty[r->fits++] = inverse_penalty;
	r->converged += f.p.converged;
	r->iterations += f.p.iterations;
	struct prediction p = {&f, s->to, s->test, r->predicted, r->logit};
	pool_for((int)cells_cli.threads, s->m, predict, &p);
	fitted_release(&f);
}

/* ---- scores ---- */

/* Mean probabilities of the cells of each group, as roc_macro takes them. Returns the number of groups, or 0 if a group has two labels. */
static size_t group_means(const struct embeddings *d, const double *probability, size_t k, double **mean, uint32_t **label)
{
	size_t groups = 0, used = 0;
	for (size_t i = 0; i < d->n; i++)
		groups = d->group[i] >= groups ? d->group[i] + 1 : groups;
	double *sum = xcalloc(groups * k, sizeof *sum), *n = xcalloc(groups, sizeof *n);
	uint32_t *y = xmalloc(groups * sizeof *y);
	int one_label = 1;
	for (size_t i = 0; i < d->n; i++) {
		uint32_t g = d->group[i];
		one_label = one_label && (n[g] == 0 || y[g] == d->y[i]);
		y[g] = d->y[i];
		n[g]++;
		for (size_t c = 0; c < k; c++)
			sum[g * k + c] += probability[i * k + c];
	}
	for (size_t g = 0; g < groups; g++) { /* groups of the training cells alone are left out */
		if (n[g] == 0)
			continue;
		for (size_t c = 0; c < k; c++)
			sum[used * k + c] = sum[g * k + c] / n[g];
		y[used++] = y[g];
	}
	free(n);
	*mean = sum;
	*label = y;
	return one_label ? used : 0;
}

/* The probabilities p [k] of a cell. Shares of neighbours are whole numbers of them, so that equal shares are equal for the ROC. */
static void probabilities(double *p, const struct result *r, size_t cell)
{
	double near = (double)cells_set.nearest;
	memcpy(p, r->logit + cell * r->k, r->k * sizeof *p);
	softmax(p, r->k);
	for (size_t c = 0; cells_set.nearest && c < r->k; c++)
		p[c] = round(p[c] * near) / near;
}

static void report_roc(struct results *to, const struct embeddings *d, struct result *r)
{
	FREED double *probability = xmalloc(d->n * r->k * sizeof *probability);
	for (size_t i = 0; i < d->n; i++)
		probabilities(probability + i * r->k, r, i);
	if (cells_set.roc_path)
		report_roc_curve(cells_set.roc_path, probability, d->y, d->n, r->k);
	results_add(to, "auroc", roc_macro(probability, d->y, d->n, r->k, r->auroc));
	if (d->group) {
		FREED double *mean, *unused = xmalloc(r->k * sizeof *unused);
		FREED uint32_t *label;
		size_t n = group_means(d, probability, r->k, &mean, &label);
		if (n)
			results_add(to, "group_auroc", roc_macro(mean, label, n, r->k, unused));
	}
}

/* The scores of cz-benchmarks: those of the second class if there are two, else means over the classes of the fold's labels and
 * predictions. */
static void score_cz(struct results *to, const struct metrics *m)
{
	double precision = 0, recall = 0, f1 = 0, classes = 0;
	for (size_t c = m->k == 2; c < m->k; c++) {
		double right = (double)m->confusion[c * m->k + c];
		if (m->k > 2 && !m->support[c] && !m->predicted[c])
			continue;
		precision += m->predicted[c] ? right / (double)m->predicted[c] : 0;
		recall += m->support[c] ? right / (double)m->support[c] : 0;
		f1 += m->f1[c];
		classes++;
	}
	results_fold(to, "cz_accuracy_fold", m->accuracy);
	results_fold(to, "cz_f1_fold", f1 / classes);
	results_fold(to, "cz_precision_fold", precision / classes);
	results_fold(to, "cz_recall_fold", recall / classes);
}

static void score_fold(struct results *to, const struct embeddings *d, const struct result *r, const uint32_t *fold, uint32_t f)
{
	RELEASED(metrics_release) struct metrics one;
	size_t n = 0, k = r->k;
	FREED double *probability = xmalloc((d->n + 1) * k * sizeof *probability), *each = xmalloc(k * sizeof *each);
	FREED uint32_t *y = xmalloc(d->n * sizeof *y);
	metrics_init(&one, k);
	for (size_t i = 0; i < d->n; i++) {
		if (fold[i] != f)
			continue;
		metrics_add(&one, d->y + i, r->predicted + i, 1);
		probabilities(probability + n * k, r, i);
		y[n++] = d->y[i];
	}
	metrics_score(&one);
	results_fold(to, "accuracy_fold", one.accuracy);
	results_fold(to, "macro_f1_fold", one.macro_f1);
	if (cells_set.protocol == PROTOCOL_CZ) {
		score_cz(to, &one);
		results_fold(to, "cz_auroc_fold", roc_macro(probability, y, n, k, each));
	}
}

void classes_scores(struct results *to, const struct embeddings *d, struct result *r, const uint32_t *fold)
{
	metrics_init(&r->metrics, r->k);
	metrics_add(&r->metrics, d->y, r->predicted, d->n);
	metrics_score(&r->metrics);
	report_scores(to, &r->metrics, r->frequency);
	r->auroc = xmalloc(r->k * sizeof *r->auroc);
	report_roc(to, d, r);
	if (cells_set.replicates)
		report_bootstrap(to, d->y, r->predicted, d->group, d->n, r->k, (size_t)cells_set.replicates, (uint32_t)cells_cli.seed,
			cells_set.replicates_path);
	for (uint32_t f = 0; fold && f < (uint32_t)cells_set.nfold; f++)
		score_fold(to, d, r, fold, f);
}

void classes_details(struct results *to, const struct result *r, const struct classes *c)
{
	report_classes(to, &r->metrics, c->name, r->frequency, r->frequency);
	results_list(to, "auroc_class", r->auroc);
}

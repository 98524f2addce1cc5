#include "transfer/calibrate.h"

#include "base/threads.h"
#include "eval/calibration.h"
#include "eval/distribution.h"
#include "label/folds.h"

enum { MIX_CELLS = 20000, MIX_PASSES = 50 }; /* at most so many new cells say what shares the classes have */

/* ---- cells that were held out ---- */

static void held_out_init(struct held_out *h, const struct embeddings *d, size_t k)
{
	*h = (struct held_out){.d = d, .k = k, .logit = xmalloc(d->n * k * sizeof *h->logit), .far = xmalloc(d->n * sizeof *h->far)};
}

void held_out_release(struct held_out *h)
{
	free_all(h->logit, h->far);
	*h = (struct held_out){0};
}

/* Predict rows test[0..n) of the cells by m. */
static void predict_rows(struct held_out *h, const struct method *m, const uint32_t *test, size_t n)
{
	size_t k = h->k;
	FREED double *logit = xmalloc(n * k * sizeof *logit), *far = xmalloc(n * sizeof *far);
	method_score(m, h->d, test, n, logit, far);
	for (size_t i = 0; i < n; i++) {
		memcpy(h->logit + test[i] * k, logit + i * k, k * sizeof *logit);
		h->far[test[i]] = far[i];
	}
}

struct fold_job {
	struct held_out *h;
	const struct method *whole;
	const uint32_t *fold;
	size_t folds;
	struct error *e; /* [folds] */
};

/* Fit without fold f, and predict its cells. */
static void hold_out_fold(void *arg, size_t f, int thread)
{
	const struct fold_job *a = arg;
	const struct embeddings *d = a->h->d;
	FREED uint32_t *train = xmalloc(d->n * sizeof *train), *test = xmalloc(d->n * sizeof *test);
	size_t n = 0, m = 0;
	struct method of_others = {0};
	(void)thread;
	for (uint32_t i = 0; i < d->n; i++)
		*(a->fold[i] == f ? &test[m++] : &train[n++]) = i;
	if (m && method_fit(&of_others, d, train, n, a->whole->c, a->whole->o, a->whole, &a->e[f]))
		error_prefix(&a->e[f], "fold %zu of %zu", f + 1, a->folds);
	else if (m)
		predict_rows(a->h, &of_others, test, m);
	if (d->x) /* one fold at a time */
		a->h->unfinished += of_others.probe.p.k && !of_others.probe.p.converged;
	method_release(&of_others);
}

int hold_out(
	struct held_out *h, const struct embeddings *d, const struct method *whole, const uint32_t *fold, size_t folds, struct error *e)
{
	struct fold_job job = {h, whole, fold, folds, xcalloc(folds, sizeof *job.e)};
	int failed = 0;
	held_out_init(h, d, whole->c->n);
	if (d->x) /* each fit has threads of its own */
		for (size_t f = 0; f < folds; f++)
			hold_out_fold(&job, f, 0);
	else
		pool_for(whole->o->threads, folds, hold_out_fold, &job);
	for (size_t f = 0; f < folds && !failed; f++)
		if (*job.e[f].msg)
			failed = error_set(e, "%s", job.e[f].msg);
	free(job.e);
	return failed;
}

void hold_out_others(struct held_out *h, const struct embeddings *d, const struct method *whole)
{
	held_out_init(h, d, whole->c->n);
	method_score(whole, d, NULL, d->n, h->logit, h->far);
}

/* ---- the cells that are calibrated on ---- */

/* Held-out cells whose class their method knew. */
struct known {
	size_t n, groups; /* groups: cells, without groups */
	uint32_t *row, *class; /* [n] of held_out, malloced with all of the struct; of a coarse label the likeliest class that it allows */
	uint32_t *group; /* [n] without gaps; 0 without groups */
	const uint32_t *grouped; /* group, or NULL: each cell is one */
};

/* The class of cell i. */
static uint32_t class_at(const struct held_out *h, const struct detail *t, size_t i)
{
	uint32_t y = h->d->y[i], best = y;
	const double *z = h->logit + i * h->k;
	if (y < h->k)
		return y;
	for (uint32_t c = 0; c < h->k; c++)
		if (t->under[y * h->k + c] && (best == y || z[c] > z[best]))
			best = c;
	return best;
}

/* chosen [h->d->n]: 1: the cell is taken; NULL: all are */
static void known_init(struct known *to, const struct held_out *h, const struct detail *t, const uint8_t *chosen)
{
	size_t all = h->d->n + 1;
	uint32_t *room = xcalloc(3 * all, sizeof *room);
	*to = (struct known){.row = room, .class = room + all, .group = room + 2 * all};
	for (size_t i = 0; i < h->d->n; i++) {
		uint32_t class = class_at(h, t, i);
		if (!isfinite(h->logit[i * h->k + class]) || (chosen && !chosen[i]))
			continue;
		to->row[to->n] = (uint32_t)i;
		to->class[to->n] = class;
		to->group[to->n++] = h->d->group ? h->d->group[i] : 0;
	}
	to->grouped = h->d->group ? to->group : NULL;
	to->groups = to->grouped ? close_gaps(to->group, to->n) : to->n;
}

/* Those whose labels say enough for coverage. Returns how many groups count whole, of labels of unequal detail. */
static size_t known_counted(struct known *to, const struct held_out *h, const struct detail *t, size_t groups, double coverage)
{
	FREED uint8_t *counted = t ? xmalloc(h->d->n) : NULL;
	size_t whole = t ? detail_counted(t, h->d->y, h->d->group, h->d->n, groups, (1 - coverage) / 2, counted) : 0;
	known_init(to, h, t, counted);
	return whole;
}

/* ---- thresholds ---- */

/* The temperature, and the thresholds of sets and terms. d: scratch */
static void calibrate_sets(struct rule *r, const struct held_out *h, const struct known *at, double coverage, struct decision *d)
{
	struct conformal missed;
	const struct detail *t = r->detail;
	size_t k = r->k;
	double *logit = xmalloc(at->n * k * sizeof *logit), *score = xmalloc(2 * at->n * sizeof *score), *finest = score + at->n;
	for (size_t i = 0; i < at->n; i++)
		memcpy(logit + i * k, h->logit + at->row[i] * k, k * sizeof *logit);
	r->temperature = temperature_fit(logit, at->class, at->n, k);
	for (size_t i = 0; i < at->n; i++) {
		const uint8_t *truth = t ? t->under + h->d->y[at->row[i]] * k : NULL;
		decide_class(r, logit + i * k, d);
		score[i] = 1 - d->p[at->class[i]];
		for (size_t c = 0; c < k && truth; c++) /* a set must have all classes that a coarse label allows */
			score[i] = truth[c] ? fmax(score[i], 1 - d->p[c]) : score[i];
		if (t)
			finest[i] = finest_score(&t->holds, d->p, truth);
	}
	for (int terms = 0; terms < (t ? 2 : 1); terms++) {
		conformal_init(&missed, terms ? finest : score, at->grouped, at->n, at->groups);
		*(terms ? &r->finest : &r->most_missed) = conformal_threshold(&missed, 1 - coverage);
		conformal_release(&missed);
	}
	free_all(logit, score);
}

/* The limits of how strange a cell may be, by predicted class: guess [at->n]. With n cells, 1 / (n + 1) of new ones are stranger than all:
 * fewer cells than that of the wanted share say too little of a class. */
static void calibrate_limits(struct rule *r, const struct known *at, const double *strange, const uint32_t *guess, double unknown)
{
	FREED double *some = xmalloc(at->n * sizeof *some);
	FREED uint32_t *of = xmalloc(at->n * sizeof *of);
	r->limit = xcalloc(r->k + 1, sizeof *r->limit);
	r->of = xmalloc(r->k * sizeof *r->of);
	for (size_t k = 0; k <= r->k; k++) {
		size_t n = 0;
		for (size_t i = 0; i < at->n; i++) {
			if (k < r->k && guess[i] != k)
				continue;
			some[n] = strange[i];
			of[n++] = at->group[i];
		}
		int enough = k == r->k || unknown * ((double)n + 1) >= 1;
		r->limit[k].most = INFINITY;
		if (k < r->k)
			r->of[k] = enough ? k : r->k;
		if (!enough)
			continue;
		conformal_init(&r->limit[k].strange, some, at->grouped ? of : NULL, n, at->grouped ? close_gaps(of, n) : n);
		if (unknown > 0)
			r->limit[k].most = conformal_threshold(&r->limit[k].strange, unknown);
		conformal_shorten(&r->limit[k].strange);
	}
}

static void calibrate_unlike(struct calibrated *c, const struct held_out *h, const struct known *at, double unknown, struct decision *d)
{
	struct rule *r = &c->rule;
	double *far = xmalloc(2 * at->n * sizeof *far), *unsure = far + at->n;
	uint32_t *guess = xmalloc(at->n * sizeof *guess);
	for (size_t i = 0; i < at->n; i++) {
		decide_class(r, h->logit + at->row[i] * r->k, d);
		guess[i] = d->class;
		unsure[i] = rule_unsure(d->probability);
		far[i] = h->far[at->row[i]];
	}
	conformal_init(&r->far, far, at->grouped, at->n, at->groups);
	conformal_init(&r->unsure, unsure, at->grouped, at->n, at->groups);
	conformal_shorten(&r->far);
	conformal_shorten(&r->unsure);
	for (size_t i = 0; i < at->n; i++)
		far[i] = rule_strange(r, far[i], unsure[i]);
	calibrate_limits(r, at, far, guess, unknown);
	shift_init(&c->shift, h->d, at->row, guess, at->group, at->n, at->grouped ? at->groups : 1, r->k);
	free_all(far, guess);
}

int transfer_calibrate(struct calibrated *c, const struct held_out *h, const struct detail *t, size_t groups, double coverage,
	double unknown, struct error *e)
{
	struct known all, counted;
	*c = (struct calibrated){.rule = {.k = h->k, .detail = t}, .of = xcalloc(h->k, sizeof *c->of)};
	known_init(&all, h, t, NULL);
	known_counted(&counted, h, t, groups, coverage);
	int failed = counted.n
		? 0
		: error_set(e, "no class has cells both to learn from and to calibrate with: expected each in two groups, or files");
	struct decision d = {.p = xmalloc(h->k * sizeof *d.p), .in_set = xmalloc(h->k)};
	if (!failed) {
		calibrate_sets(&c->rule, h, &counted, coverage, &d);
		calibrate_unlike(c, h, &all, unknown, &d);
		c->coverage.wanted = coverage;
		c->known.wanted = unknown > 0 ? 1 - unknown : 0;
		transfer_measure(c, h, groups);
	}
	free_all(all.row, counted.row, d.p, d.in_set);
	return failed;
}

/* ---- promises ---- */

/* Of the cells at, those whose guess is class `of` (guess NULL: all), the share that is right; each group counts as one. */
static struct measured measure_share(const struct known *at, const uint8_t *right, const uint32_t *guess, size_t of, double wanted)
{
	struct measured m = {.wanted = wanted, .of = of};
	FREED double *n = xcalloc(at->groups + 1, sizeof *n), *hit = xcalloc(at->groups + 1, sizeof *hit);
	for (size_t i = 0; i < at->n; i++) {
		size_t g = at->grouped ? at->group[i] : i;
		if (guess && guess[i] != of)
			continue;
		n[g]++;
		hit[g] += right[i];
	}
	for (size_t g = 0; g < at->groups; g++) {
		m.groups += n[g] > 0;
		m.sum += n[g] > 0 ? hit[g] / n[g] : 0;
	}
	m.needed = wanted * (double)(m.groups + 1);
	return m;
}

size_t measured_groups(double wanted)
{
	return (size_t)ceil(wanted / (1 - wanted) - 1e-9);
}

/* Of the classes with a limit of their own, and of all cells, what holds least: what is not kept, of the fewest groups. */
static void measure_known(struct calibrated *c, const struct known *at, const uint8_t *called_known, const uint32_t *guess)
{
	size_t k = c->rule.k;
	double wanted = c->known.wanted;
	struct measured least = measure_share(at, called_known, NULL, k, wanted);
	/* all cells together: their sum is that of limits that hold for each class, in so many groups */
	if (least.needed <= (double)least.groups)
		least.needed = wanted * (double)least.groups;
	for (size_t of = k; of-- > 0;) {
		if (c->rule.of[of] != of)
			continue;
		struct measured m = measure_share(at, called_known, guess, of, wanted);
		if (!measured_keeps(&m) && (measured_keeps(&least) || m.groups <= least.groups))
			least = m;
	}
	c->known = least;
}

/* How the share of cells that are not known differs between groups. */
static void measure_unlike(struct unlike_shares *u, const struct known *at, const uint8_t *known)
{
	double *n = xcalloc(2 * at->groups + 1, sizeof *n), *share = n + at->groups, drawn = 0;
	*u = (struct unlike_shares){.groups = at->grouped ? at->groups : 0};
	for (size_t i = 0; i < at->n && at->grouped; i++) {
		n[at->group[i]]++;
		share[at->group[i]] += !known[i];
	}
	for (size_t g = 0; g < u->groups; g++) {
		share[g] /= n[g];
		u->mean += share[g] / (double)u->groups;
		drawn += 1 / n[g] / (double)u->groups;
	}
	for (size_t g = 0; g < u->groups; g++)
		u->total += (share[g] - u->mean) * (share[g] - u->mean) / ((double)u->groups - 1);
	u->between = fmax(0, u->total - u->mean * (1 - u->mean) * drawn);
	free(n);
}

double unlike_limit(const struct unlike_shares *u, double n)
{
	if (u->groups < 3)
		return NAN;
	return u->mean +
		student_quantile(2 * SHIFT_FALSE_ALARM, (double)u->groups - 1) *
		sqrt(u->between + u->total / (double)u->groups + u->mean * (1 - u->mean) / n);
}

/* Has the set all that the label of this row says? */
static int set_has(const struct rule *r, const uint8_t *in_set, uint32_t y)
{
	if (y < r->k)
		return in_set[y];
	for (size_t c = 0; c < r->k; c++)
		if (r->detail->under[y * r->k + c] && !in_set[c])
			return 0;
	return 1;
}

/* Is the term the class of the label, or above all of its classes? */
static int term_has(const struct rule *r, size_t term, uint32_t y)
{
	const struct detail *t = r->detail;
	for (size_t c = 0; t && term < t->holds.n && c < r->k; c++)
		if (t->under[y * r->k + c] && !t->in[term * r->k + c])
			return 0;
	return 1;
}

void transfer_measure(struct calibrated *c, const struct held_out *h, size_t groups)
{
	const struct rule *r = &c->rule;
	struct known all, counted;
	known_init(&all, h, r->detail, NULL);
	size_t whole = known_counted(&counted, h, r->detail, groups, c->coverage.wanted), n = h->d->n;
	c->cells = all.n;
	c->groups = all.groups;
	c->whole = r->detail && h->d->group && !whole ? 0 : counted.groups;
	double right = 0;
	uint8_t *in_set = xmalloc(r->k), *inside = xcalloc(n, 1), *termed = xcalloc(n, 1), *known = xmalloc(all.n + 1);
	uint32_t *guess = xmalloc((all.n + 1) * sizeof *guess);
	struct decision d = {.p = xmalloc(r->k * sizeof *d.p), .in_set = in_set};
	for (size_t k = 0; k < r->k; k++)
		c->of[k].held = c->of[k].covered = c->of[k].right = 0;
	for (size_t j = 0; j < all.n; j++) {
		size_t i = all.row[j];
		uint32_t y = h->d->y[i];
		transfer_decide(r, h->logit + i * r->k, h->far[i], &d);
		inside[i] = (uint8_t)set_has(r, in_set, y);
		termed[i] = (uint8_t)term_has(r, d.term, y);
		known[j] = !d.unlike;
		guess[j] = d.class;
		if (y < r->k) {
			c->of[y].held++;
			c->of[y].covered += inside[i];
			c->of[y].right += d.class == y;
			right += d.class == y;
		}
	}
	for (size_t k = 0; k < r->k; k++) {
		c->of[k].covered /= c->of[k].held;
		c->of[k].right /= c->of[k].held;
	}
	c->right = right / (double)all.n;
	measure_known(c, &all, known, guess);
	measure_unlike(&c->unlike, &all, known);
	for (size_t j = 0; j < counted.n; j++) { /* the sets, or with detail the terms, whichever hold less */
		inside[j] = inside[counted.row[j]];
		termed[j] = termed[counted.row[j]];
	}
	struct measured sets = measure_share(&counted, inside, NULL, r->k, c->coverage.wanted),
			terms = measure_share(&counted, termed, NULL, r->k, c->coverage.wanted);
	c->coverage = terms.sum < sets.sum ? terms : sets;
	if (!c->whole)
		c->coverage.needed = INFINITY;
	free_all(all.row, counted.row, in_set, inside, termed, known, guess, d.p);
}

void calibrated_add(struct calibrated *c, const struct decision *of, const struct embeddings *d, size_t i)
{
	c->of[of->class].cells++;
	c->of[of->class].unlike += of->unlike;
	shift_add(&c->shift, of->class, d, i);
}

void calibrated_mix(struct calibrated *c, const double *logit, size_t n)
{
	size_t k = c->rule.k, step = n / MIX_CELLS + 1, m = (n + step - 1) / step;
	FREED double *p = xmalloc((m + 1) * k * sizeof *p), *next = xmalloc(k * sizeof *next);
	for (size_t a = 0; a < k; a++)
		c->of[a].share = c->of[a].held / (double)c->cells;
	for (size_t i = 0; i < m; i++)
		decide_class(&c->rule, logit + i * step * k, &(struct decision){.p = p + i * k});
	for (int pass = 0; pass < MIX_PASSES && m; pass++) {
		memset(next, 0, k * sizeof *next);
		for (size_t i = 0; i < m; i++) {
			double sum = 0;
			for (size_t a = 0; a < k; a++)
				sum += c->of[a].held > 0 ? p[i * k + a] * c->of[a].share / c->of[a].held : 0;
			for (size_t a = 0; a < k && sum > 0; a++)
				next[a] += c->of[a].held > 0 ? p[i * k + a] * c->of[a].share / c->of[a].held / sum : 0;
		}
		for (size_t a = 0; a < k; a++)
			c->of[a].share = next[a] / (double)m;
	}
	double all = 0, covered = 0, right = 0;
	for (size_t a = 0; a < k; a++)
		if (c->of[a].held > 0) {
			all += c->of[a].share;
			covered += c->of[a].share * c->of[a].covered;
			right += c->of[a].share * c->of[a].right;
		}
	c->expected_covered = covered / all;
	c->expected_right = right / all;
}

void calibrated_release(struct calibrated *c)
{
	rule_release(&c->rule);
	shift_release(&c->shift);
	free(c->of);
	*c = (struct calibrated){0};
}

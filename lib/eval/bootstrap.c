#include "eval/bootstrap.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/sort.h"
#include "eval/distribution.h"
#include "eval/metrics.h"

static void scores_of(double *value, struct metrics *m)
{
	metrics_score(m);
	value[BOOTSTRAP_ACCURACY] = m->accuracy;
	value[BOOTSTRAP_BALANCED] = m->balanced_accuracy;
	value[BOOTSTRAP_MACRO_F1] = m->macro_f1;
	metrics_release(m);
}

void bootstrap_scores(double *value, size_t replicates, const uint32_t *truth, const uint32_t *predicted, const uint32_t *unit, size_t n,
	size_t k, size_t units, uint32_t seed)
{
	/* the cells in order of their units */
	FREED size_t *start = xcalloc(units + 1, sizeof *start), *at = xcalloc(units + 1, sizeof *at);
	FREED uint32_t *t = xmalloc(n * sizeof *t), *p = xmalloc(n * sizeof *p);
	double all[BOOTSTRAP_SCORES];
	struct metrics m;
	for (size_t i = 0; i < n; i++)
		start[unit[i] + 1]++;
	double df = clusters_df(start + 1, units, n), G = (double)units;
	double wider = df >= CLUSTERS_DF_MIN ? student_quantile(0.05, df) / NORMAL_975 * G / (G - 1) : NAN;
	for (size_t u = 0; u < units; u++)
		at[u + 1] = start[u + 1] += start[u];
	for (size_t i = 0; i < n; i++) {
		t[at[unit[i]]] = truth[i];
		p[at[unit[i]]++] = predicted[i];
	}
	metrics_init(&m, k);
	metrics_add(&m, t, p, n);
	scores_of(all, &m);
	for (size_t r = 0; r < replicates; r++, value += BOOTSTRAP_SCORES) {
		struct rng g = rng_at(seed, RNG_BOOTSTRAP, r, 0);
		metrics_init(&m, k);
		for (size_t i = 0; i < units; i++) {
			size_t u = rng_below(&g, (uint32_t)units);
			metrics_add(&m, t + start[u], p + start[u], start[u + 1] - start[u]);
		}
		scores_of(value, &m);
		for (int s = 0; (units < n || isnan(wider)) && s < BOOTSTRAP_SCORES; s++)
			value[s] = all[s] + wider * (value[s] - all[s]);
	}
}

double bootstrap_quantile(double *v, size_t n, double q)
{
	qsort(v, n, sizeof *v, compare_double);
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;
	return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

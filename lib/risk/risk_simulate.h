/*
 * Simulated masked regression: the risk of beta_hat, computed exactly from beta_hat, over repeated draws of rows, noise and masks.
 *
 * All ratios of a run share their random numbers: rows, noise, and one uniform number for every entry (masked if below the ratio) and
 * every row (kept if below the ratio). So differences between ratios are more exact than the risks. A run is a function of (seed, run),
 * and the results are the same for any number of threads.
 */
#ifndef RISK_SIMULATE_H
#define RISK_SIMULATE_H

#include "risk/risk_model.h"

/* The ratio of a row is uniform in [lo, hi]; lo = hi is one ratio. A row is kept with its ratio as the probability: */
enum risk_keep {
	RISK_ROUNDED, /* one ratio: the first n lo rows, rounded */
	RISK_INDEPENDENT, /* by a uniform number of its own */
	RISK_COUPLED, /* by the uniform number that also makes its ratio: kept rows have lower ratios */
};

struct risk_rate {
	double lo, hi;
	enum risk_keep keep;
};

/* What the runs share instead of drawing it anew */
enum risk_same { RISK_SAME_NOTHING, RISK_SAME_MASKS, RISK_SAME_ROWS };

struct risk_trials {
	const struct risk_model *m;
	uint32_t seed, rows, runs;
	enum risk_same same;
	size_t nrate;
	const struct risk_rate *rate; /* [nrate] */
	int threads;
};

/* Over the runs: means, and standard errors of the means (NaN for one run). */
struct risk_mean {
	double risk, risk_se, magnitude, magnitude_se;
	double kept; /* mean number of kept rows */
};

/* out [nrate]. BLAS must run on one thread. -1 with e set if a least-squares solution fails. */
int risk_simulate(const struct risk_trials *t, struct risk_mean *out, struct error *e);

/*
 * The least-squares solution of smallest norm, b [p], of n equations in p unknowns: row i of the design is x + i p, y [n]. Any rank.
 * scratch [min(n, p)^2 + max(n, p)]. -1 with e set if the SVD fails.
 */
int risk_solve(const double *x, const double *y, size_t n, size_t p, double *b, double *scratch, struct error *e);

#endif

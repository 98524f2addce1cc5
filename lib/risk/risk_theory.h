/*
 * The test risk of masked ridge-less regression, by theory [Dong et al. 2025, theorems 1 to 3, corollary 1; derived anew where the paper
 * gives no formula, see docs/experiments/r2mae-theory.md].
 *
 * n rows, p features, gamma = p / n. A row is used if its target is masked, with probability r: n r rows. Of its features a share r is set
 * to zero, without rescaling; q = 1 - r. beta_hat is the least-squares solution of smallest norm. The test sample is not masked:
 *     risk = E[(x'beta_hat - x'beta)^2] = bias + variance,   magnitude = E[(x'beta_hat)^2]
 * Predicting 0 has the risk beta' Sigma beta, the "null".
 */
#ifndef RISK_THEORY_H
#define RISK_THEORY_H

#include "risk/risk_model.h"

struct risk {
	double bias, variance, risk, magnitude; /* infinite at the pole n r = p; NaN where not known */
};

/* Sigma = I (theorem 1), with p and n large; b2 = |beta|^2, s2 = variance of the noise. */
void risk_isotropic(double gamma, double b2, double s2, double r, struct risk *out);

/* Sigma = I + c u u' with t = u'beta (corollary 1), with p and n large; the error is of order c / p. */
void risk_spiked(double gamma, double c, double t, double b2, double s2, double r, struct risk *out);

/* The smallest eigenvalue of an eigenvector beta (|beta| = 1) for which masking can be better than predicting 0: the risk falls at r = 0.
 * m1, m2: mean eigenvalue and mean squared eigenvalue of Sigma. */
double risk_threshold(double m1, double m2, double s2);

/* What all ratios of one model share. The model must outlive it. */
struct risk_theory {
	const struct risk_model *m;
	double null; /* beta' Sigma beta */
	double mean; /* mean of the diagonal of Sigma */
	double square; /* mean squared eigenvalue of Sigma */
	double *cov; /* [p] Sigma beta */
	double *value; /* [p] eigenvalues of Sigma, ascending */
	double *vector; /* [p, p] its eigenvectors, vector j at j p */
	double *diagonal; /* [p] w_j' D w_j for eigenvector w_j, D the diagonal of Sigma */
	int constant; /* the diagonal of Sigma is constant: Sigma and the covariance of masked rows share their eigenvectors */
};

int risk_theory_init(struct risk_theory *t, const struct risk_model *m, struct error *e);
void risk_theory_release(struct risk_theory *t); /* accepts a zeroed struct */

/*
 * The deterministic equivalent for any Sigma and beta, with finite p and n:
 *     S = q^2 Sigma + q r D,  theta = q S^-1 Sigma beta,  tau2 = s2 + beta'Sigma beta - q beta'Sigma theta
 *     kappa >= 0 with tr S (S + kappa)^-1 = n r (0 if n r >= p),  P = S (S + kappa)^-1,  b = P theta
 *     f = tr[Sigma S (S + kappa)^-2] / (n r - tr P^2)
 *     bias = |b - beta|_Sigma^2 + f kappa^2 theta'(S + kappa)^-1 S (S + kappa)^-1 theta,   variance = f tau2
 * Takes an eigendecomposition of p x p for every ratio unless `constant`. -1 with e set if that fails. Threads may call it side by side.
 */
int risk_finite(const struct risk_theory *t, double n, double r, struct risk *out, struct error *e);

/* tr S (S + kappa)^-1 = n for eigenvalues s [p] > 0 of S; 0 if n >= p. */
double risk_kappa(const double *s, uint32_t p, double n);

/*
 * Every row has a ratio of its own: groups of rows[i] expected kept rows with ratio[i], i < groups. One group is risk_finite. bias and
 * variance are not known (NaN). -1 with e set if the fixed point does not converge.
 */
int risk_rowwise(const struct risk_theory *t, uint32_t groups, const double *ratio, const double *rows, struct risk *out, struct error *e);

/* Row-wise ratios uniform in [lo, hi]. A row is kept with its ratio as the probability: by a draw of its own, or (coupled) by the draw
 * that made the ratio. */
int risk_range(const struct risk_theory *t, double n, double lo, double hi, int coupled, struct risk *out, struct error *e);

#endif

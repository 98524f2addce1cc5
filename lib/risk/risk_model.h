/*
 * Models of masked linear regression [Dong et al. 2025, section 3; appendix C.1]. A target y = x'beta + noise is predicted from features
 * x ~ N(0, Sigma) of which a share r is set to zero. Only rows whose target is masked are trained on, so n rows give about n r.
 *
 * isotropic  Sigma = I
 * spiked     Sigma = I + spike u u', |u| = 1, u from uniform entries
 * uniform    Sigma = Q diag(eigenvalues) Q', Q a random rotation, eigenvalues uniform between 1 and `largest`
 * beta       the same with eigenvalues Beta(a, b), scaled to lie between exactly 1 and `largest`
 * latent     Sigma = I + W W', W [p, latent] normal with the variance at which the largest eigenvalue of W W' is about largest - 1
 *            (Marchenko-Pastur)
 * block      Sigma = 1 on the diagonal, `correlation` within equal runs of features, 0 elsewhere
 * eigen      Sigma = Q diag(eigenvalues) Q' with the given eigenvalues
 * matrix     the given Sigma
 *
 * beta has norm 1. Isotropic: uniform entries. Spiked: alignment u + sqrt(1 - alignment^2) v, with v orthogonal to u. Else: the
 * eigenvector of Sigma at a quantile of the spectrum, or a random direction in the span of the `top` largest eigenvectors.
 */
#ifndef RISK_MODEL_H
#define RISK_MODEL_H

#include "base/error.h"
#include "base/rng.h"

#include <stdint.h>

enum risk_kind { RISK_ISOTROPIC, RISK_SPIKED, RISK_UNIFORM, RISK_BETA, RISK_LATENT, RISK_BLOCK, RISK_EIGEN, RISK_MATRIX };

struct risk_spec {
	enum risk_kind kind;
	uint32_t seed, p;
	double spike, alignment; /* spiked */
	double largest; /* uniform, beta, latent; > 1 */
	double a, b; /* beta */
	uint32_t latent; /* latent */
	uint32_t blocks; /* block; <= p */
	double correlation; /* block; in [0, 1) */
	const double *eigenvalue; /* eigen: [p], > 0 */
	const double *matrix; /* matrix: [p, p] */
	double quantile; /* 0 smallest ... 1 largest eigenvalue */
	uint32_t top; /* > 0: replaces quantile */
};

struct risk_model {
	uint32_t p;
	double *sigma; /* [p, p] symmetric, positive definite */
	double *factor; /* [p, p] lower triangle by columns: Sigma = factor factor'; above the diagonal it is not set */
	double *beta; /* [p] norm 1 */
	double noise; /* variance of the noise; the caller sets it */
};

/* Draw a model; everything is a function of the spec. -1 with e set if Sigma is not positive definite. m is zeroed or released before. */
int risk_model_draw(struct risk_model *m, const struct risk_spec *s, struct error *e);
void risk_model_release(struct risk_model *m); /* accepts a zeroed struct */

/* x' Sigma x: the risk of a coefficient error x, or the magnitude of predictions with coefficients x. scratch [p]. */
double risk_model_norm(const struct risk_model *m, const double *x, double *scratch);

/*
 * Eigenvalues, ascending, of the symmetric matrix a [p, p], which is replaced by the eigenvectors: vector j is a + j p. -1 with e set if
 * the algorithm does not converge.
 */
int risk_eigen(double *a, uint32_t p, double *value, struct error *e);

/* A draw of Gamma(shape, 1). [Marsaglia and Tsang 2000; shapes below 1 by their power of a uniform number] */
double risk_gamma(struct rng *r, double shape);

/* The covariance matrix of a text table, p lines of p numbers (malloced). -1 with e set if it is not square, symmetric and finite. */
int risk_read_matrix(const char *path, double **matrix, uint32_t *p, struct error *e);

/* Eigenvalues of a text table, one a line, or a value and how often it occurs (malloced). */
int risk_read_eigenvalues(const char *path, double **value, uint32_t *p, struct error *e);

#define RISK_FEATURES_MAX 20000

#endif

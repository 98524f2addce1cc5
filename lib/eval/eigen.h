/*
 * Eigenvectors of a symmetric matrix that is mostly zeros: Lanczos with thick restarts [Wu and Simon 2000]. Of about
 * 2 k vectors the best ones stay, and the others are made again, until the residuals of the k wanted ones are below 1e-10 of the largest eigenvalue,
 * and a new start finds no other of the same size. Each vector is orthogonal to all others, to the last digit. Small matrices go to LAPACK as a whole.
 */
#pragma once

#include "network/network.h"

/*
 * The k eigenvalues of largest size of the matrix whose entries are the weights of the edges, each pair once, and 0 elsewhere. 0 < k < g->n.
 * value [k] by falling size, vector [g->n, k] of unit length  out
 * -1 with e set if they are not found. BLAS must be set to one thread.
 */
int eigen_largest(const struct network *g, const double *weight, size_t k, double *value, double *vector, struct error *e);

/*
 * kBET within each class [Buettner et al. 2019; Luecken et al. 2022], as kbet_per_label of scib-metrics 0.6.1: the neighbours of a cell are
 * those of its class by the distance of diffusion, so that every cell has equally many.
 *
 * W, the weights of the graph among the cells of the class, becomes  T = Z^-1/2 Q^-1 W Q^-1 Z^-1/2,  Q and Z the sums of the rows of W and
 * of Q^-1 W Q^-1 [Coifman et al. 2005]. A cell is the row of the 100 eigenvectors of T of largest size (or as many as cells, less 1), times
 * l / (1 - l) of their eigenvalues l, 1 for l = 1. Its neighbours are the nearest k such rows, k a quarter of the mean number of cells of a
 * batch, but from 10 to 70; then mixing_kbet.
 * A graph of several components keeps those of 3 k cells and more. If these are not three quarters of the cells, or of one batch, the score
 * is 0.
 *
 * scib-metrics lowers the 100 for all classes that come after a small one in the order of the names, and so does this. It searches the
 * neighbours approximately; this as s says.
 */
#pragma once

#include "eval/inverted.h"
#include "network/network.h"

/*
 * g, weight [g->m]  the graph of all cells, each pair once
 * label [n] < labels, batch [n] < batches; classes in the order of their names
 * score [labels]    out: NaN for a class of one batch, or of fewer than 10 cells
 * -1 with e set if the eigenvectors are not found. BLAS must be set to one thread.
 */
int kbet_label(double *score, const struct network *g, const double *weight, const uint32_t *label, size_t labels, const uint32_t *batch,
	size_t batches, const struct search_settings *s, struct error *e);

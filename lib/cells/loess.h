/*
 * Local regression of y on one x [Cleveland and Devlin 1988]: at a point q, a parabola is fitted to the nearest `span` of the points, with
 * tricube weights (1 - (distance / the largest distance)^3)^3. As in netlib's dloess, which R and scikit-misc use, the parabolas are fitted
 * at few points only: a tree halves the points until a cell has at most floor(n span 0.2) of them. Between the ends of a cell the fit is
 * the cubic with the values and slopes of the parabolas there.
 */
#pragma once

#include <stddef.h>

/* fitted [n] out: the fit at each x [n]. n >= 1, span in (0, 1], all numbers finite. If the nearest points have fewer than three different x,
 * the missing coefficients of the parabola are 0. */
void loess(const double *x, const double *y, size_t n, double span, double *fitted);

/*
 * The hypergeometric distribution: of N things, K are marked and n are drawn without replacement; X of the drawn are marked. P(X >= x) is Fisher's
 * one-sided exact test of a 2 x 2 table.
 */
#pragma once

#include <stdint.h>

/* P(X >= x); K, n <= N. Against exact fractions, errors are below 1e-12 relative for N up to 1e9 (Loader's saddle points, not differences of
 * log Gamma) [Loader 2000, Fast and accurate computation of binomial probabilities]. */
double hypergeometric_tail(uint64_t x, uint64_t N, uint64_t K, uint64_t n);

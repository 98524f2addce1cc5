/*
 * Folds of cross-validation. They depend on the seed, the labels, the groups and the cells' numbers, not on the order of the cells.
 * `seed` has the seed in its low 32 bits and the number of the repetition above.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Stratified folds. The cells of each class, in random order, are given to the folds in turn, and the next class continues with the fold
 * after the last one. So any two folds differ by at most one cell, in all and in each class.
 * y [n] < k; cell [n]; fold [n] out, < nfold.
 */
void folds_stratified(uint32_t *fold, const uint32_t *y, const uint64_t *cell, size_t n, size_t k, size_t nfold, uint64_t seed);

/*
 * Folds of whole groups, as stratified as possible [the method of scikit-learn's StratifiedGroupKFold]. Groups are placed one by one, those
 * with the most uneven classes first (of one class: the largest, as GroupKFold; ties: by their draws). Each goes to the fold that makes the
 * class shares most even: the standard deviation of a class's share over the folds, averaged over the classes, becomes smallest (ties: the
 * fold with fewer cells). group [n] < ngroup; nfold <= ngroup, and no fold stays empty.
 */
void folds_grouped(
	uint32_t *fold, const uint32_t *y, const uint32_t *group, size_t n, size_t k, size_t ngroup, size_t nfold, uint64_t seed);

/* Renumber v [n] without gaps and in the same order; returns how many numbers there are. */
size_t close_gaps(uint32_t *v, size_t n);

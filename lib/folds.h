/*
 * Folds of cross-validation, seeded: a function of the labels, the groups and the cells' numbers, not of their order.
 */
#ifndef FOLDS_H
#define FOLDS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Stratified folds: the cells of each class, in the order of their draws, are dealt to the folds in turn; the next class goes on
 * where the last one ended. So the cells of a class in any two folds, and the cells of any two folds, differ by at most 1.
 * y [n] < k; cell [n]; fold [n] out, < nfold.
 */
void folds_stratified(uint32_t *fold, const uint32_t *y, const uint64_t *cell, size_t n, size_t k, size_t nfold, uint32_t seed);

/*
 * Whole groups, stratified as far as they allow: groups are placed one by one, those of the most uneven classes first (ties by
 * their draws), each where the standard deviation over folds of the share of each class, averaged over the classes, becomes least
 * (ties: the fold with fewer cells) [the method of scikit-learn's StratifiedGroupKFold]. group [n] < ngroup; nfold <= ngroup, and
 * no fold stays empty.
 */
void folds_grouped(uint32_t *fold, const uint32_t *y, const uint32_t *group, size_t n, size_t k, size_t ngroup, size_t nfold,
		   uint32_t seed);

#endif

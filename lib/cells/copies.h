/*
 * A stream of scperturb holds cells and perturbed copies of them, in rows alike. Numbers over cells must not count the copies: the tools that
 * make such numbers refuse them.
 */
#pragma once

#include "stream/block.h"

/* Categories of its column `perturbation` whose rows hold a cell, or one without the genes that its copy lost; kinds of perturb.h follow them. */
enum base_row { BASE_ORIGINAL, BASE_TRUNCATED, BASE_ROWS };
extern const char *const base_row_name[];
int base_row_find(const char *category); /* BASE_ROWS: it is none of them */

/* Are the rows of b cells? -1 with e set, if one of them is a perturbed copy: its column `perturbation`, whose categories have `original` and
 * `truncated` as those of scperturb do, is not `original`. A column of this name with other categories says what was done to a real cell. */
int copies_refuse(const struct block *b, const char *name, struct error *e);

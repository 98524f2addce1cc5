/*
 * Simulated cells with a known truth.
 *
 * cells  counts. Genes have log-normal mean levels; a share of them is in co-regulated modules. A cell's type sets the
 *        mean activity of every module and a few marker genes; the cell adds its own activity of each module, so the
 *        genes of a module are correlated within a type too. A donor shifts every gene a little and the depth as a whole.
 *            log l_g = mu_g + load_g (a[type][m] + s z_m) + marker[type][g] + batch[donor][g] + noise
 *            count_g ~ Poisson(depth l_g / sum_h l_h),      depth log-normal
 *        Types form a tree (type t descends from (t - 1) / 2), and their frequencies fall geometrically.
 *        With targets, half of the cells of each type are in a state that one gene, the regulator, drives: its activity
 *        a ~ N(2, 0.5) there, else N(0, 0.5), adds a to its own log l_g, and w_g a to that of each target, w_g from 0.3 to 1.
 *        The level of the regulator is that of the highest target, so counts show it well; its noise is that of any gene.
 * b1     tokens. CorrMask, Appendix B.1 (structure recovery): Exp(1) background, N(10, 2) (standard deviation 2) on the
 *        genes of one active module, half of the values dropped, the `top` largest kept, in falling order.
 * b2     tokens. CorrMask, Appendix B.2 (modularity sweep): Exp background of mean `mean`, one delta ~ N(10, 0.5) per sample,
 *        added to the genes of the active module (probability gamma) or to as many random genes, drawn for each sample or once
 *        for each module; the token at position g is the rank of gene g (0 = lowest).
 *
 * Everything is a function of (seed, cell) or (seed, gene), so cells can be made in any order.
 */
#pragma once

#include "base/error.h"

struct sim {
	/* set by the caller */
	uint32_t seed;
	uint32_t genes, modules; /* modules <= genes */
	uint32_t types, donors; /* cells */
	uint32_t top; /* b1 */
	double gamma, mean; /* b2 */
	int by_class; /* b2: random genes are those of the module's own draw */
	double depth; /* cells: median counts per cell */
	double rarest; /* cells: frequency of the rarest type, <= 1 / types */
	double share; /* cells: share of the genes that are in modules */
	double separation; /* cells: factor of the differences between types, in modules and markers */
	double activity; /* cells: s, spread of a module's activity within a type */
	double batch, noise; /* cells: standard deviations, natural log */
	uint32_t targets; /* cells: genes that the regulator drives; 0: there is no regulator, and one state */

	/* made by sim_init_...; all but module and chosen are for "cells" only */
	int32_t *module; /* [genes] module of a gene, -1 for none */
	double *frequency; /* [types] sums to 1 */
	double *depth_of; /* [donors] factor */
	float *level; /* [types, genes] log level without the cell's own activity */
	float *load; /* [genes] */
	float *shift; /* [donors, genes] */
	float *driven; /* [genes] w_g, 1 for the regulator, 0 for others; NULL: there is none */
	uint32_t regulator;
	uint8_t *chosen; /* [modules, genes] b2 with by_class, else NULL: the random genes of a module */
};

/* Draw the tables. -1 with e set if the settings contradict each other. */
int sim_init_cells(struct sim *s, struct error *e);
int sim_init_blocks(struct sim *s, struct error *e); /* b1, b2: modules are equal runs of genes */

/* One cell of "cells": gene [genes] and count [genes] out, genes ascending; rate [genes] scratch. Returns how many. */
/* *state: 1 if the regulator is active, else 0. */
uint32_t sim_cell(const struct sim *s, uint64_t cell, uint32_t *type, uint32_t *donor, uint32_t *state, uint32_t *gene, uint32_t *count,
	double *rate);

/* One cell of b1: gene [top] out; x [genes] scratch. Returns how many (fewer than top if too many were dropped). */
uint32_t sim_b1(const struct sim *s, uint64_t cell, uint32_t *module, uint32_t *gene, double *x);

/* One sample of b2: rank [genes] out; x [genes] scratch. */
void sim_b2(const struct sim *s, uint64_t cell, uint32_t *module, uint32_t *rank, double *x);

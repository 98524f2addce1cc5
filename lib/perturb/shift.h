/*
 * What perturbations do to cells [Theodoris et al. 2023, Methods]: shift_read.c reads what every perturbation did to every cell, shift_test.c has
 * the statistics over cells, groups, controls and other cells (scperturb shift).
 */
#pragma once

#include "eval/ranksum.h"
#include "label/label.h"
#include "perturb/perturb.h"
#include "stream/stream.h"

#define STATE_CELLS_MIN 10 /* cells whose mean stands for a state */

/* The states that shifts are measured towards. */
struct states {
	const char *column; /* NULL: no states */
	char **name; /* [n + 1] the goal, the alternatives, and last the start */
	size_t n; /* without the start */
	double *mean; /* [n, d] */
	double *norm; /* [n] */
	size_t d;
	int shuffle; /* cells of the start and the goal get one of the two at random, by seed and cell */
	uint32_t seed;
};

/* What perturbations did: one record for a perturbation of a cell. */
struct shifts {
	size_t n, K; /* records; values of each: one a state, or 1 */
	uint32_t *set, *group; /* [n] number in sets; in groups */
	double *value; /* [n, K] shift, or similarity */
	double *control; /* [n, K] the mean of its controls, NaN: it has none */
	uint64_t cells, missing, rows; /* cells perturbed; rows without a vector; all rows */
	size_t set_cap, group_cap, value_cap, control_cap;
	int controls; /* the stream has them */
};

/* The tables of names that several streams share. The name of a set begins with one letter, 'a' + kind, before its label. */
struct shift_names {
	struct classes sets, groups, states;
};

/* Read the means of the states from s, which is then read again if it is the stream of perturbed cells. -1 with e set: no embeddings, or a state
 * has too few cells. */
int states_read(struct states *t, struct stream *s, int again, struct shift_names *names, struct error *e);

/* Read a stream of perturbed cells into r, which is empty; indexed: by its blocks. group: its column of groups, or NULL: cells without
 * one are left out. NULL with e set: it is no stream of perturbed cells. */
struct shift_reader *shifts_open(struct shifts *r, struct stream *s, int indexed, const struct states *t, struct labels *group,
	struct shift_names *names, struct error *e);
int shifts_next(struct shift_reader *in, struct error *e); /* 1: a block was read, 0: all were, -1 with e set: a wrong row */
void shifts_close(struct shift_reader *in);

/* A line of the table: a set and a state. Numbers that are not known are NaN. */
struct shift_row {
	uint32_t set;
	size_t state, cells, groups;
	double mean, sd, group_mean, low, high;
	double control, excess, excess_low, excess_high, p_control;
	struct ranksum against; /* all perturbations of this kind */
	double p_group;
	double q, q_control, q_group;
};

/* What a reader of the table must know. */
struct shift_notes {
	size_t groups, rows; /* with so few groups and so many rows, q_group cannot be below .05, or only together; 0: it can */
};

/* How many of the rows must have the smallest p of so many groups before one has a q below .05. */
double shift_groups_needed(size_t groups, size_t rows);

/* The table: rows [*n], malloced. */
struct shift_row *shift_test(const struct shifts *r, const struct classes *sets, size_t groups, size_t *n, struct shift_notes *notes);

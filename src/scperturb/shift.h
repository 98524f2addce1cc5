/* The parts of scperturb shift: shift.c (options, the table), shift_read.c (what every perturbation did to every cell), shift_test.c
 * (statistics), shift_genes.c (--affected). */
#ifndef SHIFT_H
#define SHIFT_H

#include "scperturb.h"
#include "cli_embeddings.h"
#include "eval/mixture.h"
#include "eval/ranksum.h"

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
	uint64_t cells, missing; /* cells perturbed; rows without a vector */
	size_t set_cap, group_cap, value_cap, control_cap;
	int of_genes; /* the values are similarities of genes */
	int controls; /* the stream has them */
};

/* The tables of names that several streams share. The name of a set begins with one letter, 'a' + kind, before its label. */
struct shift_names {
	struct classes sets, groups, states;
};

struct affected;

/* Read the means of the states from s, which is then read again if it is the stream of perturbed cells. */
void states_read(struct states *t, struct stream *s, int again, struct shift_names *names);
/* Read a stream of perturbed cells; indexed: by its blocks. group: a column, or NULL. affected: NULL, or filled. */
void shifts_read(struct shifts *r, struct stream *s, int indexed, const struct states *t, const char *group, struct shift_names *names,
	struct affected *affected);
void shifts_release(struct shifts *r);

/* A line of the table: a set and a state. Numbers that are not known are NaN. */
struct shift_row {
	uint32_t set;
	size_t state, cells, groups, null_cells;
	double mean, sd, group_mean, low, high;
	double control, excess, excess_low, excess_high, p_control;
	struct ranksum against; /* all perturbations of this kind */
	double p_group;
	double null_mean, p_null;
	double q, q_control, q_group, q_null;
	int component; /* of the mixture: 1 impact, 0 none, -1 not fitted */
	double probability, share;
};

/* The table: rows [*n], malloced. null: NULL, or the shifts of other cells. mixture: fit it. */
struct shift_row *shift_test(
	const struct shifts *r, const struct shifts *null, const struct classes *sets, size_t groups, int mixture, size_t *n);

/* --affected: similarities by perturbed and affected gene. */
struct affected *affected_new(void);
void affected_add(struct affected *a, uint32_t set, uint32_t gene, double cosine);
void affected_write(const struct affected *a, const char *path, const struct shift_names *names, const struct vocab *v);
void affected_free(struct affected *a); /* NULL is fine */

/* Symbols of the ids of a label, with + between (malloced); "" if it has other parts than ids. */
char *shift_symbols(const char *label, const struct vocab *v);

#endif

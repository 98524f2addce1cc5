/*
 * Objectives whose targets are columns of the cells: label.c, hce.c, number.c. Each has a head of its own on the same network. sctrain cells has
 * nothing else; every training can have some beside its own objective (--head).
 */
#pragma once

#include "sctrain.h"
#include "label/label.h"

/* ---- --head, --ontology (heads.c) ---- */

#define HEAD_LOSSES "ce, focal, hce or mse" /* for messages */
extern struct opt_values head_option;
extern const char *ontology_option;

/* Add the columns of --head behind what the list has. balanced: the option of class weights of the training, or NULL. */
void heads_add(struct objectives *list, const int *balanced);

/* ---- the kinds of columns ---- */

extern const char *const class_weights[2]; /* --class-weight: without, with */

struct label_options {
	const char *column;
	int balanced; /* class weights */
	double focal; /* 0: cross-entropy */
	int own; /* its loss is its own, not that of all columns */
};

/* name: of the head; NULL: the only one. */
struct objective *label_add(struct objectives *list, const char *name, const struct label_options *options);
struct objective *number_add(struct objectives *list, const char *column);
/* Labels that are terms of an ontology (path). known: the mean loss is over the cells with a label, not over all. */
struct objective *hce_add(struct objectives *list, const char *column, const char *path, int known);

/* The options of maskgen, before the name of a column, that write it with its counts for this training. */
const char *heads_keep(const struct train *t);

/* ---- a column of labels (label.c) ---- */

struct label_column {
	const char *name;
	struct classes classes; /* those in training, then those that only --eval has */
	size_t nclass; /* in training */
	double *count; /* [nclass] cells per epoch; NULL: not known */
	double labelled; /* cells per epoch with a label; 0: not known */
	struct labels labels[2]; /* of the training stream, of --eval */
};

/* Find the column in the streams of t, and the classes in the header. Dies on errors. */
void label_column_open(struct label_column *c, struct train *t);
/* For sctrain eval: find the column of o in s, and the n classes of its head, if its labels are classes. Dies on errors. */
void label_column_eval(struct label_column *c, const struct objective *o, size_t n, const struct masked_source *s);

/* Does cell i of the batch have the token that the head reads? */
static inline int cell_has_token(const struct objective *o, const struct packed *p, size_t i)
{
	return p->offset[i + 1] - p->offset[i] > o->head.position;
}

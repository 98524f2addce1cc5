/*
 * A reference that is kept: what was learned of it, without its cells. It is one safetensors file. Its tensors are float32 [genes with a molecule, ...];
 * its metadata has one more text, "corrmask_reference", a JSON object with all else: names, genes, thresholds, what groups that were held out say of
 * new ones. Groups are counted and not named. Of what was learned there is a rung for each share of the molecules, 1, 1/2, 1/4 ..., so that
 * shallower new cells find their like.
 *
 * All that is written is float32 where a tensor has it, so that what is read predicts as what was learned, to the bit.
 */
#pragma once

#include "base/safetensors.h"
#include "transfer/calibrate.h"

#define SAVED_VERSION 1
#define SAVED_KEY "corrmask_reference" /* of the metadata */
enum { SAVED_RUNGS = 6, SAVED_FEWEST = 100 }; /* at most so many rungs; the last one has this many molecules or more in half of the cells */

/* What was learned of the cells at one depth. */
struct learned {
	double share; /* of the molecules that the cells have */
	size_t cells;
	uint64_t *of; /* [labels] cells of the classes, then of coarse labels */
	uint8_t *untested; /* [classes] never held out while others of it were there */
	struct method method;
	struct calibrated calibrated;
};
void learned_release(struct learned *l); /* accepts a zeroed struct */

struct saved {
	char *label, *unit; /* columns of classes and groups; unit NULL: cells were held out */
	char *source, *options; /* digest of the cells; options that it was learned with */
	double depth, coverage, unknown, seed; /* median of the molecules */
	int molecules, has_terms,
		unknown_asked; /* the counts are molecules; detail is there; unlike cells are called unknown, promised or not */
	struct classes classes;
	char **term_id; /* [classes] of the ontology, such as CL:0000084, or an empty text; NULL: no class has one */
	struct detail detail;
	struct vocab genes;
	float *share; /* [genes] of all molecules */
	struct cJSON *about; /* texts that its maker gives, such as title, licence and doi */
	size_t rungs;
	struct safetensors file; /* of one that was opened */
	struct cJSON *all; /* its JSON */
};

/* The number of rungs of cells with this median depth, and the one for new cells with this share of it: the nearest by the logarithm, 0 unless they are
 * below half. */
size_t saved_rungs(double depth, int molecules);
size_t saved_rung(double share, size_t rungs);

/* The fields of s, and what is said of l, in the file that a writes or reads (archive.h). */
struct archive;
void saved_fields(struct archive *a, struct saved *s);
void learned_said(struct archive *a, struct learned *l, const struct saved *s);

/* Write l [s->rungs], each learned at a share of 2^-i, to path. -1 with e set. */
int saved_write(const char *path, struct saved *s, struct learned *l, struct error *e);
/* Is this a file of safetensors, and no stream? */
int saved_is(const char *path);
/* All but what was learned; the whole file is checked by its digest. -1 with e set; s is released then. */
int saved_open(struct saved *s, const char *path, struct error *e);
/* Rung i < s->rungs. Its method and rule borrow s and o. -1 with e set; l is released then. */
int saved_read(struct saved *s, size_t i, struct learned *l, const struct method_options *o, struct error *e);
/* Of the first rung what learned_said has, and nothing else: it needs no method. l->of, l->untested and l->calibrated.of are malloced. -1 with e set. */
int saved_said(struct saved *s, struct learned *l, struct error *e);
void saved_release(struct saved *s); /* accepts a zeroed struct */

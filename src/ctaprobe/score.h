/* The parts of ctaprobe score: score.c compares classes, score_calibration.c probabilities, label sets and unknown cells. */
#pragma once

#include "ctaprobe.h"

/* What predictions say of their certainty, for each scored cell. */
struct confident {
	size_t classes; /* of the model */
	int in_set_at, likeness_at, assigned_at; /* columns, -1: none */
	size_t n, novels; /* cells; of these, of classes that the model does not know */
	double *probability; /* [n] of the predicted class */
	double *likeness; /* [n] as in the stream, or the probability */
	uint8_t *right, *covered, *unknown, *novel; /* [n] is the class right, in the set; is the cell called unknown, is its class one? */
	uint32_t *size; /* [n] classes in the set */
	size_t probability_cap, likeness_cap, right_cap, covered_cap, unknown_cap, novel_cap, size_cap;
};

/* Find the columns. Dies if one has another layout than ctaprobe transfer gives it. */
void confident_columns(struct confident *c, const struct stream *in, size_t classes);

/* Add a cell: row of b, of class y (classes and above: the model does not know it). */
void confident_add(struct confident *c, const struct block *b, size_t row, uint32_t y, uint32_t predicted, double probability);

/* ece, aurc, and where the stream has them coverage, set_size, known_called_unknown; with cells of unknown classes novel_auroc. */
void confident_report(struct results *to, const struct confident *c);

/* A table of the reliability curve and of the risk-coverage curve: curve, x, y, cells. */
void confident_curves(const struct confident *c, const char *path);

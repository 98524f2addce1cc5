/* The parts of ctaprobe transfer: transfer.c has the options, transfer_reference.c the cells with known classes, transfer_new.c the new
 * ones, transfer_write.c the predictions, transfer_unlike.c the clusters that are unlike the reference, transfer_report.c the rows of --report. What
 * predicts, decides and promises is in lib/transfer. */
#pragma once

#include "ctaprobe.h"
#include "base/option.h"
#include "base/texts.h"
#include "transfer/promise.h"
#include "transfer/saved.h"

#define BETWEEN " | " /* classes of a set, as text */
#define UNKNOWN "unknown"
#define TERM_ID "cell_type_ontology_term_id" /* column of the ids of terms, as CELLxGENE calls it */

struct transfer_options {
	const char *reference, *calibration, *held_out, *label, *group, *ontology, *unlike, *clusters, *save;
	struct opt_values about;
	long long nearest, folds;
	double inverse_penalty, coverage, unknown;
	int as_given, require_promise;
};
extern struct transfer_options transfer_set;

/* The columns that it writes, in place of those of the input; NULL is the last. */
extern const char *const transfer_made[];

struct reference {
	struct embeddings d, other; /* the reference, and the cells of --calibration; no cells of a saved reference */
	struct classes groups;
	const char *group; /* column of groups, NULL: none, or all cells have one value */
	struct saved kept; /* a saved reference, or what would be saved; without --ontology the labels of its detail are the classes */
	struct learned fit; /* of its cells at the depth of the new ones */
	const char *name;
	const struct vocab *genes; /* of counts; NULL: the cells have embeddings */
	size_t features;
	uint8_t *shared; /* [genes] 1: the new cells have it */
	double shared_share; /* of its molecules that are of such genes */
	size_t shared_genes, by_symbol; /* of those: matched by symbol */
	int lacking, few; /* the new cells lack genes that it has learned from; so many that nothing can be promised */
	uint64_t *digest; /* [digests] of its cells by the shared genes, before they were thinned */
	size_t digests;
	double depth, new_depth; /* medians of counts of shared genes */
	size_t rung; /* the reference is thinned to 2^-rung of its molecules */
	int molecules; /* counts are molecules, of the reference and of the new cells */
	struct method_options options;
	struct held_out held;
	uint32_t *fold; /* [held.d->n]; NULL with --calibration */
	struct promises promised; /* for the new cells */
};

/* Read it, for new cells that are in the stream `new`, or to be saved: NULL. Dies on errors, and if they are no such cells as the reference. */
void reference_read(struct reference *r, const struct stream *new);
/* The same of a saved reference. */
void reference_open(struct reference *r, const struct stream *new);
/* Fit the method, and those of the folds, predict the cells that are held out, and calibrate. */
void reference_fit(struct reference *r);
/* --save */
void reference_save(struct reference *r);

/* Cells of a stream and what the method says of them. */
struct predictions {
	struct stream *in;
	size_t n, scored; /* rows; those that have values */
	const size_t *row; /* [n] rising rows of the stream; NULL: all */
	double *logit, *far; /* [scored, classes], [scored] */
	uint8_t *there, *known; /* [n] of new cells: it has values; the reference has a cell of the same */
	struct sparse cells; /* with --unlike: packed */
	uint32_t *class, *cluster; /* [scored] predicted; of --clusters, or NULL */
	struct classes clusters;
	size_t logit_cap, far_cap, there_cap, known_cap, class_cap, cluster_cap;
};

/* The median of depth [n], which it sorts; NaN: n is 0. molecules becomes 0 if these are sums of other values, such as reads or transcripts per
 * million: they are larger than those of molecules, or nearly equal. */
double depth_median(uint64_t *depth, size_t n, int *molecules);
/* Which genes the new cells have, and how deep they are: the reference loses the other genes if these are many, and is thinned if it is much deeper, or
 * the rung of a saved one is read. */
void new_match(struct reference *r, struct stream *in);
/* Predict the new cells, and add them to r->fit.calibrated. */
void new_predict(struct predictions *p, struct stream *in, struct reference *r);

/* --unlike: find the clusters, and write their table. */
void transfer_unlike(struct unlike *u, const struct predictions *p, const struct reference *r);

/* What was written. */
struct written {
	uint64_t cells, unknown, empty, of_untested, known;
	uint64_t term_cells, term_sum; /* with an answer or any class, and the classes of these answers */
	uint64_t *may_be; /* [classes] cells that may be of an untested class */
};
/* Write the predictions of new cells to -o, with their places in the list u (of no clusters: no column), those of held-out cells, with their folds,
 * to --held-out. */
void transfer_write_new(struct written *w, const struct predictions *p, const struct reference *r, const struct unlike *u);
void transfer_write_held_out(const struct reference *r);

/* The notes and the rows of --report. */
void transfer_report(const struct reference *r, const struct predictions *p, const struct written *w);

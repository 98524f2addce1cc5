/*
 * The metrics of an integration of cells from several batches: those of scib-metrics, scIB [Luecken et al. 2022] and BMFM-RNA. How well are
 * cell types apart, and batches together? All start from one search for the nearest neighbours.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum integration_metric {
	ISOLATED_LABELS,
	LEIDEN_NMI,
	LEIDEN_ARI,
	KMEANS_NMI,
	KMEANS_ARI,
	SILHOUETTE_LABEL,
	CLISI,
	BRAS,
	SILHOUETTE_BATCH,
	ILISI,
	KBET_PER_LABEL,
	CONNECTIVITY, /* strong components of the directed neighbours, as scib-metrics */
	CONNECTIVITY_UMAP, /* components of UMAP's graph, as scIB */
	PCR_COMPARISON,
	SBEE,
	KBET,
	PCR,
	INTEGRATION_METRICS
};

/* What is to be known of a metric, next to how it is computed. All have a label of each cell. */
struct integration_kind {
	uint8_t needs_batches, from_neighbours; /* from_neighbours: approximate ones of many cells change it */
	uint8_t drawn; /* of many cells, those that were drawn stand for all */
	uint8_t lower; /* is better */
	double low; /* its values are from here to 1 */
	const char *na; /* why it can be NA although there are batches; NULL: it cannot, or why[] says it */
};
extern const struct integration_kind integration_kind[];

struct integration_cells {
	size_t n, k, batches;
	const uint32_t *y, *batch; /* [n] < k and < batches, numbered by name; batch NULL: none are known */
	int threads;
	uint32_t seed;
	size_t components; /* of PCR, or as many as there are; 0: all */
	size_t exact; /* of more cells, the neighbours are approximate, and some metrics those of cells drawn at random */
	/* Called before each long part, and around igraph, which may end the program, with what to say then, or NULL. Each may be NULL. */
	void (*progress)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
	void (*library)(const char *message);
};

struct integration_scores {
	double value[INTEGRATION_METRICS]; /* NaN: not known */
	const char *why[INTEGRATION_METRICS]; /* and why, or a remark on the value; static, or NULL */
	size_t cells[INTEGRATION_METRICS]; /* that were drawn for it; 0: all count */
	double recall; /* share of the neighbours that were found */
	double *class[INTEGRATION_METRICS]; /* [k], owned; NULL: not a mean over the cell types */
};
void integration_scores_release(struct integration_scores *s);

/*
 * The metrics with wanted[metric] of x [n, d], finite; n >= 15, k > 1; not PCR_COMPARISON, which is of two embeddings. -1 with e set if
 * igraph or LAPACK fails.
 */
int integration_score(struct integration_scores *s, const struct integration_cells *c, const float *x, size_t d,
	const uint8_t wanted[INTEGRATION_METRICS], struct error *e);

/* Embeddings of the same cells, for scmetric integration. The functions die on errors. */
#pragma once

#include "base/classes.h"
#include "cli_stream.h"
#include "eval/integration.h"

struct integration_set {
	char *name;
	float *x; /* [cells, d], finite */
	size_t d;
};

/* The cells that have a label. */
struct integration_sets {
	size_t cells, unlabelled; /* unlabelled: those left out */
	uint32_t *y, *batch; /* [cells]; batch: NULL if no column is named */
	struct classes types, batches;
	struct integration_set *set; /* [n] */
	size_t n, set_cap;
};

/* All operands, streams of the same cells; or the arrays `keys`, between commas, of obsm of an AnnData file. */
void integration_streams(struct integration_sets *s, const struct cli *c, const char *label, const char *batch);
void integration_anndata(struct integration_sets *s, const char *path, const char *keys, const char *label, const char *batch, int threads);
struct integration_set *integration_new_set(struct integration_sets *s, char *name); /* empty; takes the name */
int integration_is_anndata(const char *path); /* HDF5 or zarr? */

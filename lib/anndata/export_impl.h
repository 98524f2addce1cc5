/* What the writers of AnnData files share: export.c writes a whole file, into.c adds to one, export_obs.c writes columns of obs. */
#pragma once

#include "anndata/export.h"
#include "anndata/h5out.h"

struct obs_out {
	int col, missing; /* column of the stream, its companion or -1 */
	struct h5out_array values, mask; /* mask: nullable types only */
	char *name; /* in the file */
};

struct h5ad_writer {
	const struct header *header;
	struct h5out h5;
	int gene, count, index, main; /* columns: counts, obs names, the dense matrix; -1: none */
	struct h5out_array data, indices, indptr, x, names;
	struct obs_out *obs; /* [nobs] scalar columns */
	struct obs_out *obsm; /* [nobsm] fixed columns */
	size_t nobs, nobsm;
	uint64_t rows, items;
	int wide; /* data are float64, as float32 rounds some count */
	void *scratch; /* of one block */
	size_t scratch_cap;
	char *pool;
	size_t pool_cap;
};

/* The type of values in HDF5. */
hid_t export_native(const struct h5ad_writer *w, enum column_type t);

/* A name that HDF5 takes for one link ('/' would make groups) and that none of the n columns in o has. The caller frees it. */
char *export_link_name(const struct obs_out *o, size_t n, const char *name);

/* Make the column o in the group obs, without rows; then append the first `rows` rows of b. -1 with e set: a u8 value above 1. */
void export_obs_column(struct h5ad_writer *w, hid_t obs, struct obs_out *o);
int export_add_obs(struct h5ad_writer *w, const struct block *b, struct obs_out *o, size_t rows, struct error *e);

/* Memory of the writer until the next call. */
void *export_scratch(struct h5ad_writer *w, size_t bytes);
/* The values of a STR column as NUL-terminated texts; empty where missing [rows] says so (it may be NULL). */
char **export_texts(struct h5ad_writer *w, const struct block *b, int c, const uint8_t *missing, size_t rows);

/* A table of obsm with a column for each class: values [s->n, ncell] of the type of s, label: their names. Its index is that of obs, called so. */
void export_classes(struct h5ad_writer *w, hid_t obsm, const char *name, const struct column_spec *s, const cJSON *label,
	const char *values, size_t ncell, const char *index);
/* What the header says of predictions, if it does: uns/corrmask/KEY, in place of one that is there. */
void export_said(struct h5out *o, const struct header *h, const char *key);

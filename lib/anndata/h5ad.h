/*
 * Cells from a file: AnnData, as .h5ad of any age or a zarr store; a modality of MuData; 10x Genomics HDF5 (Cell Ranger 2 and 3), or a 10x
 * matrix directory. One struct for all: the names and annotation of the cells, the ids and symbols of the genes, and a matrix of raw
 * counts. The matrix is found by a look at the values (values.h), whatever the options. raw/X is tried before X, because X may hold only
 * some of the genes; then the layers that are usually called after counts.
 */
#pragma once

#include "anndata/dataframe.h"
#include "anndata/features.h"
#include "anndata/values.h"
#include "genes/gene_columns.h"

#include <cjson/cJSON.h>

struct h5ad_options {
	const char *layer; /* NULL: find the counts; else a name in layers/, "X" or "raw/X" */
	const char *gene_column; /* NULL: find the ids (genes/gene_columns.h); else a column of var, or "index" */
	const char *modality; /* of MuData; NULL: rna, or the only one. 10x: the genome; NULL: the only one (Cell Ranger 2), or all */
	int round; /* fractions are rounded to whole counts (countmat.h) */
	int unlog; /* counts are taken back from normalised values (unlog.h) */
	int all_features; /* rows that are no genes are read too (features.h) */
	int annotation; /* the annotation of cells alone: no matrix and no genes are looked for */
};

struct h5ad {
	char *path;
	const struct reader *reader; /* its format */
	char *stem; /* 10x in text files: what their names begin with, "DIR/" or "DIR/GSM1_s1_" */
	hid_t file; /* HDF5; else -1 */
	char *modality; /* MuData: "FILE: mod/rna" */
	char *part; /* where in the file the cells are, if not at its root: "mod/rna"; 10x: "matrix", or a genome */
	struct beneath root; /* zarr: the store's folder */
	struct store store; /* what is read from; not for a matrix directory */
	uint64_t ncell;
	size_t ngene; /* columns of the matrix */
	struct gene_names genes; /* [ngene] their ids and symbols */
	uint8_t *drop; /* [ngene] != 0: not a gene (antibody, guide); NULL: all are genes */
	struct features features; /* of what kinds those are */
	char *matrix; /* which matrix the counts come from: "raw/X" ... */
	char *why; /* ... and why this one */
	char *layers; /* names of the other layers, or ""; NULL: not looked for */
	int by_sums; /* ... because its sums are in obs, and not those of an earlier one */
	struct values values; /* of that matrix */
	const char *var; /* AnnData: the frame of genes that belongs to the matrix */
	struct dataframe obs; /* its index are the names of the cells */
	struct texts elsewhere; /* columns of obs that the file has in another place: MuData, for all modalities */
	char *refused; /* which columns of obs say of which cells that they are not to be taken; NULL: none */
	struct texts notes; /* what is odd about the file, each a sentence for the user */
	struct countmat mat; /* read it with countmat_next, after h5ad_start */
};

/* Is this the name of the matrix of 10x text files: matrix.mtx or matrix.mtx.gz, anything before it? Then *prefix is the length of that. */
int h5ad_matrix_name(const char *path, size_t *prefix);

/*
 * What is read for the file `path` of a 10x directory: the file that it leads to, through symbolic links too, malloced. Workflow managers make such
 * directories of links; so a link may lead elsewhere, but only to a file that is called like one of these, *barcodes.tsv.gz for example, and
 * not to any file of the user. NULL with e set if it is another file; e->msg is "" if there is none.
 */
char *tenx_file(const char *path, struct error *e);

/* Open and check everything but the matrix entries. -1 with e set; on failure h is released. */
int h5ad_open(struct h5ad *h, const char *path, const struct h5ad_options *opt, struct error *e);
/* The same, but on failure h holds what was found by then, and is to be released. */
int h5ad_try(struct h5ad *h, const char *path, const struct h5ad_options *opt, struct error *e);
void h5ad_release(struct h5ad *h); /* accepts a zeroed struct */

/* Add a sentence to h->notes. */
void h5ad_note(struct h5ad *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What to do for a column of obs that is elsewhere in the file, malloced; NULL: it is not. */
char *h5ad_elsewhere(const struct h5ad *h, const char *column);

/* What a program of corrmask noted of the file's origin (uns/corrmask_provenance), entry by entry: those that `to` lacks are added. -1 with e
 * set if the file cannot be read. */
#define H5AD_PROVENANCE "corrmask_provenance"
int h5ad_provenance(struct h5ad *h, cJSON *to, struct error *e);

/* Call it before the first countmat_next. A matrix directory reads its entries here. */
int h5ad_start(struct h5ad *h, struct error *e);

/* Names of cells [row, row + n). */
int h5ad_cell_names(struct h5ad *h, uint64_t row, size_t n, struct texts *t, struct error *e);

/*
 * obsm/KEY as float32, x [ncell, d], malloced. -1 with e set: it is not there, and then the message names the keys that are; or it is no array of
 * two dimensions.
 */
int h5ad_obsm(struct h5ad *h, const char *key, float **x, size_t *d, int threads, struct error *e);

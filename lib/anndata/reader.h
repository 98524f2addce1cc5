/*
 * The formats of files with cells. Each is a struct reader; nothing else knows which format is open, and no format's words are said of another's
 * file. To read a new one:
 *     1. Write a file NAME.c with `const struct reader reader_NAME`. Its functions get struct h5ad (h5ad.h) with the store opened, and fill it.
 *     2. Say in why_not which options are FOLLOWED, and why others have no meaning. One that is not named is refused.
 *     3. Declare it below, and enter it in the table of reader.c: of the readers whose sign is in a file, the first one reads it.
 *     4. Name it in man h5tok.1, let tests/fuzz/fuzz_h5ad.c write it, and compare it in tests with the same cells as .h5ad.
 */
#pragma once

#include "anndata/h5ad.h"

enum reader_container { IN_HDF5 = 1, IN_ZARR = 2, IN_TEXT = 4 };

enum reader_option { OPTION_LAYER, OPTION_GENE_COLUMN, OPTION_MODALITY, OPTION_ROUND, READER_OPTIONS };
#define FOLLOWED ""

/* A matrix that may hold counts, and the frame of its genes. */
struct reader_matrix {
	const char *path, *var;
	int optional; /* nobody needs hear that it is not there */
};
enum { READER_MATRICES = 8 };

struct reader {
	const char *name; /* "AnnData": for messages and reports */
	unsigned in; /* where it can lie, of enum reader_container */
	const char *sign; /* a path that such files have; "x" in each of some groups: any of these; NULL: all that lies there */
	const char *ending[2]; /* of names of such files; NULL: none */
	const char *why_not[READER_OPTIONS]; /* FOLLOWED, or why not; NULL: not, without a reason */
	struct reader_matrix matrix[READER_MATRICES]; /* for h5ad_counts: in the order in which they are tried; unused ones are zeroed */
	int across; /* matrices are genes x cells */
	const char *provenance; /* path of what a program of corrmask noted of the file's origin, or NULL */
	const char *obsm; /* path of the group of embeddings, or NULL */
	/* All return -1 with e set. */
	int (*open)(
		struct h5ad *h, const struct h5ad_options *opt, struct error *e); /* what comes first, such as to choose a part; or NULL */
	int (*obs)(struct h5ad *h, struct error *e); /* obs: the annotation and the names of the cells */
	int (*counts)(struct h5ad *h, const struct h5ad_options *opt, struct error *e); /* mat, matrix */
	int (*features)(struct h5ad *h, const struct h5ad_options *opt, struct error *e); /* drop, then genes: after counts */
	int (*start)(struct h5ad *h, struct error *e); /* before the first countmat_next, or NULL */
};

extern const struct reader reader_anndata, reader_mudata, reader_seurat, reader_loom, reader_tenx3, reader_tenx2, reader_tenx_text;

/* "X_pca, X_scVI": the names in a group but for `without`, malloced. */
char *reader_names(struct h5ad *h, const char *group, const char *without);

/* What readers share whose matrices and data frames are like those of AnnData (h5ad.c): find the counts; find ids and symbols in var. */
int h5ad_counts(struct h5ad *h, const struct h5ad_options *opt, struct error *e);
int h5ad_features(struct h5ad *h, struct dataframe *var, const struct h5ad_options *opt, struct error *e);

/* All, ended by NULL, in the order in which they are asked. */
extern const struct reader *const readers[];

/* Bytes of the ending of a file name such as ".h5ad", 0: none that a reader has. */
size_t reader_ending(const char *name);

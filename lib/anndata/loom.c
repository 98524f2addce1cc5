/*
 * loom [https://linnarssonlab.org/loompy/format]: dense matrices of genes x cells, /matrix and /layers/NAME, and a group of arrays for the genes
 * (/row_attrs) and one for the cells (/col_attrs). Nothing says which of these arrays are names.
 */
#include "anndata/reader.h"

/* Names of cells and of genes as loompy, velocyto, scanpy, SCope and SeuratDisk call them. */
static const char *const cell_names[] = {"CellID", "obs_names", "cell_names", "cell_id", "Cell", "barcode", "barcodes", "index", NULL};
static const char *const gene_names[] = {"var_names", "Gene", "gene_names", "gene_name", "Gene_names", "gene_symbol", "Symbol", "Accession",
	"gene_id", "ensembl_id", "index", NULL};

static int open_obs(struct h5ad *h, struct error *e)
{
	RELEASED(h5array_release) struct h5array matrix = {0};
	if (h5array_open(&matrix, &h->store, "matrix", e))
		return -1;
	if (matrix.ndim != 2)
		return error_set(e, "%s: 1 dimension, expected genes x cells", matrix.where);
	return dataframe_open_arrays(&h->obs, &h->store, "col_attrs", cell_names, matrix.dim[1], e);
}

static int open_features(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	RELEASED(dataframe_release) struct dataframe var = {0};
	return dataframe_open_arrays(&var, &h->store, h->var, gene_names, h->ngene, e) || h5ad_features(h, &var, opt, e) ? -1 : 0;
}

const struct reader reader_loom = {
	.name = "loom",
	.in = IN_HDF5,
	.sign = "col_attrs",
	.ending = {".loom"},
	.why_not = {[OPTION_LAYER] = FOLLOWED, [OPTION_GENE_COLUMN] = FOLLOWED, [OPTION_ROUND] = FOLLOWED},
	.matrix = {{"matrix", "row_attrs"}, {"layers/counts", "row_attrs", 1}, {"layers/raw_counts", "row_attrs", 1},
		{"layers/raw", "row_attrs", 1}},
	.across = 1,
	.obsm = "col_attrs",
	.obs = open_obs,
	.counts = h5ad_counts,
	.features = open_features,
};

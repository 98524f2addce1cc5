# make annotate: the cell types of your cells, from a file whose cell types are known. It writes a copy of your file with the classes in obs, and a
# page that says how far they can be trusted.
#
#     make annotate REFERENCE=atlas.h5ad LABEL=cell_type DATA=new.h5ad      the answer: results/annotate/latest/annotated.h5ad
#     make annotate                                                         simulated cells, of which one type is not in the reference
#
# What is trusted is measured on donors of the reference that were held out (ctaprobe transfer). If DATA has the column LABEL too, the page also has
# the scores of the new cells.
# DATA       AnnData or 10x file with the new cells; without it and REFERENCE, cells are simulated
# REFERENCE  AnnData or 10x file with known cell types
# LABEL      obs column of REFERENCE with the cell type
# GROUP      obs column of REFERENCE with the donor; none: cells are held out; auto: as in make demo
# COVERAGE   share of the cells whose label set has the true type
# UNKNOWN    share of the cells like those of the reference that may be called unknown
# FEATURES   what types are told by: expression, pca (50 components), or the folder of a model of sctrain
# METHOD     probe (logistic regression), or the number of nearest cells that vote
# MIN_CELLS  leave out types of the reference with fewer cells

REFERENCE ?=
COVERAGE  ?= 0.9
UNKNOWN   ?= 0.05
FEATURES  ?= pca
METHOD    ?= probe
MIN_CELLS ?= 10

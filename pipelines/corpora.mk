# make data/NAME.h5ad: a public corpus of the catalogue. The download goes on where it stopped, and is checked against the sum in the catalogue.
#
#     make catalog                         the names, with the LABEL and GROUP to give to an experiment
#     make data/NAME.h5ad
#     make data/MINE.h5ad CATALOG=my.tsv   from a table of your own, with the same columns
#
# CATALOG  table of corpora: name, url, sum, bytes, licence, label, donor, description, with tabs between
# sum: the 64 digits of a sha256, or md5: and 32 digits. label and donor: the obs columns for LABEL and GROUP, or NA if there is none.

CATALOG ?= $(PIPELINES)/../data/catalog.tsv

.PHONY: catalog
catalog: ## list the public corpora that make data/NAME.h5ad downloads (CATALOG=)
	@$(PIPELINES)/fetch.sh $(call text,CATALOG)
data/%.h5ad:
	@$(PIPELINES)/fetch.sh $(call text,CATALOG) $* $@

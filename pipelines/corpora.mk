# make data/NAME.h5ad: a public corpus of the catalogue. The download goes on where it stopped, and is checked against the sum in the catalogue.
#
#     make catalog                         the names, with the columns to give as LABEL and GROUP
#     make data/NAME.h5ad
#     make data/MINE.h5ad CATALOG=my.tsv   from a table of your own, with the same columns
#
# CATALOG  table of corpora: name, url, sha256, bytes, licence, label, donor, description, with tabs between; NA: no such column

CATALOG ?= $(PIPELINES)/../data/catalog.tsv

.PHONY: catalog
catalog: ## list the public corpora that make data/NAME.h5ad downloads (CATALOG=)
	@$(PIPELINES)/fetch.sh $(call text,CATALOG)
data/%.h5ad:
	@$(PIPELINES)/fetch.sh $(call text,CATALOG) $* $@

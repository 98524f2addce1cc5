# make annotate: the cell types of your cells, from a file whose cell types are known. It writes a copy of your file with the types in obs, and a
# report that says how far they can be trusted.
#
#     make annotate REFERENCE=atlas.h5ad LABEL=cell_type DATA=new.h5ad      the answer is results/annotate/latest/annotated.h5ad
#     make reference REFERENCE=atlas.h5ad LABEL=cell_type                   learns it once: results/annotate/latest/reference.ref
#     make references                                                       learns two small ones of blood cells, CC BY 4.0
#     make annotate REFERENCE=reference.ref DATA=new.h5ad                   uses that, without its cells
#     make annotate REFERENCE=reference.ref DATA="a.h5ad b.h5ad"            many samples, one by one: a page and a table, samples.tsv
#     make annotate                                                         blood cells of two donors (data/make_pbmc.py); the reference has no B cells
#
# How far is measured on donors of the reference that were held out (ctaprobe transfer). If DATA has the column LABEL too, the report also has the
# scores of the new cells. No network is needed: types are told by logistic regression on the genes that both files have and by ranks over
# marker genes (docs/experiments/transfer.md).
# DATA       AnnData or 10x file with the new cells, or several: each is a sample of its own, and REFERENCE is learned once
# REFERENCE  AnnData or 10x file, or several, with known cell types; or a .ref file of make reference, which has its LABEL, GROUP, COVERAGE and ONTOLOGY
# REFERENCE_LAYER  layer of REFERENCE with the raw counts, as LAYER of DATA
# LABEL      obs column of REFERENCE with the cell type
# GROUP      obs column of REFERENCE with the donor; none: cells are held out; auto: the first of donor_id, donor, patient_id, patient, individual, subject with 4 values, or else sample_id, sample
# COVERAGE   share of the cells whose label set has the true type
# UNKNOWN    call cells unknown that are less like the reference than all but this share of its own; default: .05, where that can be promised
# REQUIRE_PROMISE  1: fail at the end, with all results, if nothing is promised for a sample
# MIN_CELLS  leave out types of the reference with fewer cells
# GENES      learn on so many genes of REFERENCE alone, those that vary most, for a small file; 0: all
# KEEP_UNKNOWN_LABELS  1: words such as unknown and none are types of REFERENCE, too (corrmask(7))
# CLUSTERS   obs column of DATA with clusters or labels, which the list of unlike clusters has instead of its own
# ABOUT      of make reference: texts for its users, such as "'title=Blood atlas' 'licence=CC BY 4.0' doi=10.1234/5"
# ONTOLOGY   OBO file, such as the Cell Ontology's cl-basic.obo: types of REFERENCE may be its terms, at any level, and each cell gets the finest one that holds

REFERENCE ?=
LABEL     ?= cell_type
GROUP     ?= auto
COVERAGE  ?= 0.9
UNKNOWN   ?=
REQUIRE_PROMISE ?=
ABOUT     ?=
CLUSTERS  ?=
MIN_CELLS ?= 2
# given by the user: combine, which shares the name, has a default
annotate_ontology := $(if $(filter-out undefined file,$(origin ONTOLOGY)),$(value ONTOLOGY))
own_annotate_ONTOLOGY = $(annotate_ontology)

annotate_genes = $(filter-out 0,$(GENES))
ANNOTATE_SETTINGS := DATA REFERENCE LABEL GROUP COVERAGE UNKNOWN $(if $(value CLUSTERS),CLUSTERS) MIN_CELLS $(if $(annotate_genes),GENES) $(if $(annotate_ontology),ONTOLOGY) SEED \
	$(foreach v,REFERENCE_LAYER KEEP_UNKNOWN_LABELS,$(if $(value $v),$v))
annotate_words = $(if $(value KEEP_UNKNOWN_LABELS),--keep-unknown-labels)
annotate_saved := $(filter %.ref,$(value REFERENCE))
annotate_many := $(if $(filter annotate,$(MAKECMDGOALS)),$(call several,DATA))
annotate_alone := $(if $(annotate_many)$(filter reference,$(MAKECMDGOALS)),,$(value DATA))
$(eval $(call run_folder,ANNOTATE,annotate,$(ANNOTATE_SETTINGS)))
# What is learned for many samples is that of make reference, which has a folder of its own, so that other samples find it
ifneq ($(annotate_many)$(filter reference,$(MAKECMDGOALS)),)
$(eval $(call run_folder,LEARNED,annotate,$(filter-out DATA,$(ANNOTATE_SETTINGS)) $(if $(value ABOUT),ABOUT)))
else
LEARNED := $(ANNOTATE)
LEARNED_stage = $(call ANNOTATE_stage,$1)
endif

annotate: ## cell types for your cells from a reference: a report and an annotated .h5ad (REFERENCE= LABEL= DATA=)
$(call check,annotate reference,DATA REFERENCE COVERAGE UNKNOWN MIN_CELLS $(if $(annotate_ontology),ONTOLOGY))
own_annotate_DATA := $(realpath $(PIPELINES)/../data/pbmc4k_sample.h5ad)
own_annotate_REFERENCE := $(realpath $(PIPELINES)/../data/pbmc3k_sample.h5ad)
then_annotate = $(PIPELINES)/step.sh annotate/settle $(ANNOTATE)/samples.tsv $(REQUIRE_PROMISE)
ifeq ($(value DATA)$(value REFERENCE),)
$(eval $(call own,annotate,DATA REFERENCE))
else
$(eval $(call page,annotate,$(ANNOTATE),$(if $(annotate_many),$(ANNOTATE)/samples.txt,$(ANNOTATE)/report.txt $(ANNOTATE)/annotated.h5ad)))
endif
ifneq ($(filter reference,$(MAKECMDGOALS)),)
$(call stop,$(if $(value REFERENCE),$(if $(annotate_saved),REFERENCE= is saved already),REFERENCE= which file has known cell types?))
endif
annotate_without = $(if $(filter annotate,$(OWN)),--where $(call text,LABEL)'!=B cells')
ifneq ($(filter annotate,$(MAKECMDGOALS)),)
$(call stop,$(if $(value DATA),$(if $(value REFERENCE),,DATA= without REFERENCE=: which file has known cell types?),$(if $(value REFERENCE),REFERENCE= without DATA=: which file has the new cells?)))
endif

$(LEARNED)/known.counts: | $(LEARNED)/settings
	$(if $(filter annotate,$(OWN)),@echo '  no DATA: blood cells of two donors (10x Genomics). The reference lacks B cells: look for them in the list of clusters')
	@$(script)/with-files.sh $(call text,REFERENCE) $(PIPELINES)/columns.sh $(call text,LABEL) $(call text,GROUP)
	$(if $(annotate_alone),@$(BIN)/h5tok -q --list-obs $(call one_file,DATA) > /dev/null)
	$(call LEARNED_stage,h5tok-reference) $(PIPELINES)/with-files.sh $(call text,REFERENCE) $(BIN)/h5tok -v $(if $(value REFERENCE_LAYER),--layer $(call text,REFERENCE_LAYER)) \
		$(reading_others) -@ $(THREADS) -o $@
ifneq ($(value CLUSTERS),)
$(ANNOTATE)/clusters: | $(ANNOTATE)/settings
	@$(script)/columns.sh '' CLUSTERS=$(call text,CLUSTERS) $(call one_file,DATA) $(whole)
$(LEARNED)/known.counts $(ANNOTATE)/new.counts: | $(ANNOTATE)/clusters
endif
$(ANNOTATE)/new.counts: | $(ANNOTATE)/settings
	$(call ANNOTATE_stage,h5tok-new) $(BIN)/h5tok -v $(reading) -@ $(THREADS) -o $@ $(call one_file,DATA)

$(LEARNED)/reference.counts: $(LEARNED)/known.counts
	$(call LEARNED_stage,scsample-reference) $(BIN)/scsample -v $(annotate_without) $(annotate_words) --min-class $(call text,LABEL):$(MIN_CELLS) \
		$(if $(annotate_genes),--hvg $(annotate_genes)) -o $@ $<
$(LEARNED)/group: $(LEARNED)/reference.counts
	@$(script)/group.sh $(call text,GROUP) $(call text,LABEL) $< $(whole)
	@$(script)/step.sh annotate/donors $(call text,REFERENCE) $@

reference: $(LEARNED)/reference.ref ## learn the cell types of a reference once: a .ref file for make annotate (REFERENCE= LABEL= ONTOLOGY=)
	@$(BIN)/scview -q $< | grep -v :; echo $<
.PHONY: reference
annotate_learning = $(annotate_words) --label $(call text,LABEL) --coverage $(COVERAGE) $(if $(UNKNOWN),--unknown $(UNKNOWN)) \
	$(if $(annotate_ontology),--ontology $(call one_file,ONTOLOGY)) --seed $(SEED) -@ $(THREADS)
$(LEARNED)/reference.ref: $(LEARNED)/reference.counts $(LEARNED)/group
	$(call LEARNED_stage,ctaprobe-save) $(PIPELINES)/step.sh annotate/learn $^ $@ $(call text,ABOUT) $(annotate_learning)

# Two small references of one donor each, which may be given away: RESULTS/pbmc3k.ref and pbmc4k.ref
.PHONY: references
references: ## two small references of blood cells that may be given away: one donor each, CC BY 4.0
	+@for sample in pbmc3k:cell_type pbmc4k:author_type; do \
		$(MAKE) --no-print-directory -f $(firstword $(MAKEFILE_LIST)) reference REFERENCE="$(PIPELINES)/../data/$${sample%:*}_sample.h5ad" LABEL="$${sample#*:}" \
			ABOUT="'title=Blood cells, a sample of $${sample%:*}' 'source=10x Genomics' 'licence=CC BY 4.0'" && \
		cp $(RESULTS)/annotate/latest/reference.ref "$(RESULTS)/$${sample%:*}.ref" || exit 1; done

annotate_unlike = --unlike $(ANNOTATE)/unlike.tsv $(if $(value CLUSTERS),--clusters $(call text,CLUSTERS))
ifneq ($(annotate_saved),)
annotate_measured := held-out.score.tsv
$(ANNOTATE)/new.emb: $(ANNOTATE)/new.counts
	$(call ANNOTATE_stage,screduce-pca) $(BIN)/screduce pca -v -k 50 -@ $(THREADS) -o $@ $<
$(ANNOTATE)/new.pred: $(ANNOTATE)/new.counts
	$(call ANNOTATE_stage,ctaprobe-transfer) $(BIN)/ctaprobe transfer -v --reference $(call one_file,REFERENCE) $(if $(UNKNOWN),--unknown $(UNKNOWN)) \
		$(annotate_unlike) -@ $(THREADS) -o $@ $<
$(ANNOTATE)/held-out.score.tsv: $(ANNOTATE)/new.pred
	$(call ANNOTATE_stage,scview-reference) $(BIN)/scview -o $@ $(call one_file,REFERENCE)
else
annotate_measured := held-out.score.tsv markers.tsv
# A map for the report and for scanpy
$(ANNOTATE)/new.emb: $(ANNOTATE)/reference.counts $(ANNOTATE)/new.counts
	$(call ANNOTATE_stage,screduce-pca) $(BIN)/screduce pca -v -k 50 --train $< --shared-with $(ANNOTATE)/new.counts -@ $(THREADS) -o $@ $(ANNOTATE)/new.counts
# One run writes both, so neither is made without the other
$(ANNOTATE)/new.pred: $(ANNOTATE)/reference.counts $(ANNOTATE)/new.counts $(ANNOTATE)/group
	$(call ANNOTATE_stage,ctaprobe-transfer) $(PIPELINES)/step.sh annotate/transfer $^ $(ANNOTATE)/held-out.pred $@ $(annotate_learning) $(annotate_unlike)
$(ANNOTATE)/held-out.score.tsv: $(ANNOTATE)/new.pred
	$(call ANNOTATE_stage,ctaprobe-score) $(BIN)/ctaprobe score -v $(annotate_words) --label $(if $(annotate_ontology),fine_label,$(call text,LABEL)) \
		--curves $(ANNOTATE)/held-out.curves.tsv -o $@ $(<D)/held-out.pred
# What a biologist can check: the marker genes of the types, in the reference and in the new cells
$(ANNOTATE)/markers.tsv: $(ANNOTATE)/reference.counts $(ANNOTATE)/new.counts $(ANNOTATE)/new.pred
	$(call ANNOTATE_stage,scgenes-markers) $(BIN)/scgenes markers -v $(annotate_words) --label $(call text,LABEL) --new $(ANNOTATE)/new.counts \
		--assigned $(ANNOTATE)/new.pred -o $@ $<
endif
$(ANNOTATE)/new.map: $(ANNOTATE)/new.emb
	$(call ANNOTATE_stage,screduce-map) $(BIN)/screduce map -v --seed $(SEED) -@ $(THREADS) -o $@ $<
$(ANNOTATE)/annotated.h5ad: $(ANNOTATE)/new.pred $(ANNOTATE)/new.map $(ANNOTATE)/new.counts
	$(call ANNOTATE_stage,scview-into) $(PIPELINES)/step.sh annotate/into $(call one_file,DATA) $^ $@

# Of many samples: a make for each, as if it were alone
$(ANNOTATE)/samples.runs: $(if $(annotate_saved),,$(LEARNED)/reference.ref) FORCE | $(ANNOTATE)/settings
	+@$(script)/step.sh annotate/samples $@ $(call text,DATA) $(MAKE) --no-print-directory -f $(firstword $(MAKEFILE_LIST)) annotate REQUIRE_PROMISE= \
		REFERENCE=$(if $(annotate_saved),$(call text,REFERENCE),$(LEARNED)/reference.ref)
$(ANNOTATE)/samples.txt: $(ANNOTATE)/samples.runs $(PIPELINES)/annotate/samples.py
	@$(table) annotate/samples $(ANNOTATE) $(whole)

$(ANNOTATE)/report.txt: $(addprefix $(ANNOTATE)/,$(annotate_measured) annotated.h5ad) $(PIPELINES)/annotate/report.py
	@$(table) annotate/report $(ANNOTATE) $(call text,DATA) $(call text,REFERENCE) $(call text,LABEL) $(call text,COVERAGE) $(call text,CLUSTERS) $(whole)

# make network: which genes vary together within the cells of one donor and type, and do they in other donors? It writes the network of the strongest
# edges, its modules by name, how stable these are over halves of the donors, and a page that draws them.
#
#     make network DATA=cohort.h5ad                     within each donor and 15 clusters of the cells; no labels are needed
#     make network DATA=cohort.h5ad LABEL=cell_type     within each donor and type
#     make network DATA='a.h5ad b.h5ad c.h5ad'          files without a column of donors: each is one
#     make network                                      blood cells of two donors (data/make_pbmc.py)
#
# For others: network.graphml (Cytoscape), edges.tsv, and genes.tsv, whose columns module, module_name and stability are for var of scanpy.
# DATA         AnnData or 10x file, or several
# WITHIN       obs columns with commas, the donors first; auto: the first of donor_id, donor, patient_id, patient, individual, subject with 4 values, or else sample_id, sample, or else the files
# LABEL        obs column with the cell type; none: clusters
# EDGES        edges of the network: those of highest score
# HALVES       how often the donors are halved
# RESOLUTION   of the modules (depgraph --leiden); larger: more and smaller ones
# LEAST_CELLS  leave out genes found in fewer of these cells
# GENESETS     file of gene sets that name the modules (.gmt, .gmt.gz); none: programs of human genes (pipelines/network/programs.gmt)

WITHIN ?= auto
EDGES  ?= 1000
HALVES ?= $(call scale,2,5,10)
network_clusters := 15
network_label = $(if $(filter command environment,$(origin LABEL)),$(call text,LABEL),'')
own_network_LABEL :=
own_network_DATA := $(foreach k,3 4,"$(realpath $(PIPELINES)/../data/pbmc$kk_sample.h5ad)")
own_network_LEAST_CELLS := 20

NETWORK_SETTINGS := DATA WITHIN $(if $(filter command environment,$(origin LABEL)),LABEL) EDGES HALVES RESOLUTION LEAST_CELLS GENESETS SEED
$(eval $(call run_folder,NETWORK,network,$(NETWORK_SETTINGS)))

network: ## which genes vary together, in modules with names, and what other donors repeat (DATA= WITHIN= LABEL=)
$(call check,network,DATA GENESETS EDGES HALVES RESOLUTION LEAST_CELLS)
ifeq ($(value DATA),)
$(eval $(call own,network,DATA LEAST_CELLS))
else
$(eval $(call page,network,$(NETWORK),$(NETWORK)/report.txt $(NETWORK)/network.svg))
endif

$(NETWORK)/cells.counts: | $(NETWORK)/settings
	$(if $(filter network,$(OWN)),@echo '  no DATA: blood cells of two donors (10x Genomics)')
	@$(script)/with-files.sh $(call text,DATA) $(PIPELINES)/columns.sh $(network_label) WITHIN=$(call text,WITHIN)
	$(call NETWORK_stage,h5tok) $(PIPELINES)/with-files.sh $(call text,DATA) $(BIN)/h5tok -v --sample-column input_file $(reading) -@ $(THREADS) -o $@
$(NETWORK)/within: $(NETWORK)/cells.counts
	@$(script)/step.sh network/within $(call text,WITHIN) $(network_label) $< $(whole)

# Donors, with clusters if no type is named
network_how = $(LEAST_CELLS) $(NETWORK)/within $(network_clusters) --seed $(SEED) -@ $(THREADS)
network_modules = --strongest $(EDGES) --leiden $(RESOLUTION) --seed $(SEED)
$(NETWORK)/graphs/all.graph: $(NETWORK)/cells.counts $(NETWORK)/within
	@mkdir -p $(@D)
	$(call NETWORK_stage,depgraph) $(PIPELINES)/step.sh network/graph $< $@ $(network_how)
$(NETWORK)/network.graph: $(NETWORK)/graphs/all.graph
	$(call NETWORK_stage,depgraph-modules) $(BIN)/depgraph -v $(network_modules) -o $@ $<
$(NETWORK)/halves.tsv: $(NETWORK)/cells.counts $(NETWORK)/within
	$(call NETWORK_stage,depgraph-halves) $(PIPELINES)/step.sh network/recurrence $< $@ $(HALVES) $(network_how)
$(NETWORK)/halves/done: $(NETWORK)/cells.counts $(NETWORK)/within
	@mkdir -p $(@D)
	$(call NETWORK_stage,modules-of-halves) $(PIPELINES)/step.sh network/halves $< $@ $(HALVES) $(SEED) "$(network_modules)" $(network_how)

# The masks of one cell, by Algorithm 1's graph, as trainings have them
$(NETWORK)/vocab.tsv: $(NETWORK)/cells.counts
	$(call NETWORK_stage,rankenc-fit) $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
$(NETWORK)/cells.tok: $(NETWORK)/cells.counts $(NETWORK)/vocab.tsv
	$(call NETWORK_stage,rankenc) $(BIN)/rankenc -v -m $(NETWORK)/vocab.tsv --max-len 16777216 -@ $(THREADS) -o $@ $<
$(NETWORK)/graphs/masks.graph: $(NETWORK)/cells.tok
	@mkdir -p $(@D)
	$(call NETWORK_stage,depgraph-masks) $(PIPELINES)/graph.sh $< $@ --seed $(SEED) -@ $(THREADS)

$(NETWORK)/sets.tsv: $(NETWORK)/network.graph $(PIPELINES)/network/programs.gmt
	$(call NETWORK_stage,scgenes-genesets) $(PIPELINES)/step.sh network/sets $< $@ $(if $(value GENESETS),$(call one_file,GENESETS),'') $(PIPELINES)/network/programs.gmt
$(NETWORK)/genes.tsv: $(NETWORK)/network.graph $(NETWORK)/sets.tsv $(NETWORK)/halves/done $(PIPELINES)/network/modules.py
	@$(table) network/modules $(NETWORK) $(RESOLUTION) $(SEED) $(whole)
$(NETWORK)/cell.tsv: $(NETWORK)/genes.tsv $(NETWORK)/cells.tok $(NETWORK)/graphs/masks.graph $(PIPELINES)/network/cell.py
	@$(table) network/cell $(NETWORK) $(SEED) $(whole)
$(NETWORK)/report.txt: $(addprefix $(NETWORK)/,genes.tsv cell.tsv halves.tsv) $(PIPELINES)/network/report.py
	@$(table) network/report $(NETWORK) $(call text,DATA) $(call text,WITHIN) $(whole)

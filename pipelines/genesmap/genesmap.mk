# make genes-map: a map of the genes as a trained model sees them. Genes that are near each other are joined, cut into modules, and the modules named by
# the gene sets that they are rich in; the page has the map, and says whether the network of the embedding finds known sets better than
# graphs that need no network.
#
#     make genes-map DATA=lung.h5ad MODEL=Geneformer/Geneformer-V2-104M GENESETS=reactome.gmt
#     make genes-map                                simulated cells, a small network trained on them; the sets are the modules of the simulation
#
# The embedding of a gene is the mean of its hidden states over the cells that have it (scembed --of genes). Beside its graph of nearest genes are that
# of the model's table of tokens (static), the dependency graph, and a graph of each gene's strongest correlations (co-expression).
# Also those of pretrained.mk, cells.mk: only without MODEL, of the small network that is trained then:
# DATA       AnnData or 10x file
# MODEL      folder of a model, as for make embed
# MEDIANS      as for make embed
# TOKEN_TABLE  as for make embed
# GENE_NAMES   as for make embed
# RANK_ARGS    as for make embed
# MAXLEN     maximum number of tokens per cell; default with MODEL: all that the model has positions for
# HIDDEN_LAYER  the layer of the network: 0 is the last one, -1 the one before (scembed --emb-layer)
# GENESETS   file of gene sets (.gmt, .gmt.gz); without DATA, the modules of the simulation
# MAP_GENE_CELLS  maximum number of cells to use
# LEAST_CELLS  leave out genes found in fewer of these cells
# NEAREST    edges per gene
# RESOLUTION  of the modules (depgraph --leiden); larger: more and smaller ones

own_genes-map_SIM := --genes 200 --modules 8 --module-share 1 --types 4 --rarest 0.15 --depth 6000 --activity 2 --noise 0.3
own_genes-map_EPOCHS := $(call scale,1,20,3)
$(eval $(call own,genes-map,SIM EPOCHS))
own_genes-map_MAXLEN = $(own_embed_MAXLEN)
MAP_GENE_CELLS ?= $(call scale,300,2000,20000)
LEAST_CELLS ?= $(call scale,20,50,200)
NEAREST     ?= 10
RESOLUTION  ?= 1
GM_SETTINGS := $(if $(value MODEL),DATA MODEL $(foreach v,MEDIANS TOKEN_TABLE GENE_NAMES RANK_ARGS,$(if $(value $v),$v)) \
	$(if $(embed_maxlen),MAXLEN) SEED,$(PRETRAINED_SETTINGS)) $(if $(value HIDDEN_LAYER),HIDDEN_LAYER) GENESETS MAP_GENE_CELLS LEAST_CELLS NEAREST RESOLUTION
$(eval $(call run_folder,GM,genes-map,$(GM_SETTINGS)))
gm_model = $(if $(value MODEL),$(call found_model,$(GM)),$(PRETRAINED)/random-$(SEED).model)
gm_trained := $(if $(value MODEL),,$(PRETRAINED)/random-$(SEED).model/model.safetensors)

genes-map: ## map of genes from a trained model, its modules named by gene sets (DATA= MODEL= GENESETS=)
$(eval $(call page,genes-map,$(GM),$(GM)/report.txt))
ifneq ($(filter genes-map,$(MAKECMDGOALS)),)
$(call stop,$(if $(value DATA),$(or $(if $(value MODEL),,DATA= without MODEL=: which model?),$(call several,DATA),$(call several,GENESETS),$(if $(value GENESETS),,GENESETS=FILE.gmt is needed with DATA=: the sets that name modules)),$(if $(value MODEL),MODEL= without DATA=: which file has the cells?)))
endif
$(call check,genes-map,DATA MODEL MEDIANS TOKEN_TABLE GENE_NAMES GENESETS MAP_GENE_CELLS LEAST_CELLS NEAREST)

ifneq ($(value MODEL),)
$(eval $(call model,$(GM),MODEL,MEDIANS,TOKEN_TABLE))
$(GM)/all.tok: $(GM)/model.tsv
	$(call GM_stage,h5tok) $(PIPELINES)/tokens.sh $< '$(if $(embed_maxlen),$(MAXLEN))' $(call one_file,DATA) $@ $(map_genes) $(reading) $(RANK_ARGS) -@ $(THREADS)
else
$(GM)/all.tok: $(PREPARED)/cells.counts $(PREPARED)/vocab.tsv | $(GM)/settings
	$(call GM_stage,rankenc) $(BIN)/rankenc -v -m $(PREPARED)/vocab.tsv --max-len $(MAXLEN) $(RANK_ARGS) -@ $(THREADS) -o $@ $<
endif
$(GM)/cells.tok: $(GM)/all.tok
	$(call GM_stage,scsample) $(PIPELINES)/step.sh audit/sample $(MAP_GENE_CELLS) $< $@ $(SEED)
ifneq ($(value GENESETS),)
$(GM)/sets.gmt: | $(GM)/settings
	@zcat -f -- $(call one_file,GENESETS) $(whole)
else
$(GM)/sets.gmt: $(GM)/all.tok $(PIPELINES)/genesmap/steps.sh
	@$(script)/step.sh genesmap/sets $< $(whole)
endif

$(GM)/genes.emb: $(GM)/cells.tok $(gm_trained)
	$(call GM_stage,scembed-genes) $(PIPELINES)/step.sh genesmap/vectors $(LEAST_CELLS) $@ --of genes -M $(gm_model) $(HIDDEN_LAYER:%=--emb-layer %) -@ $(THREADS) $<
$(GM)/graphs: | $(GM)/settings
	@mkdir -p $@
# The static vectors of the same genes
$(GM)/graphs/static.graph: $(GM)/cells.tok $(GM)/genes.emb | $(GM)/graphs
	$(call GM_stage,static) $(PIPELINES)/step.sh genesmap/static $^ $@ $(NEAREST) $(gm_model) -@ $(THREADS)
$(GM)/genes.map: $(GM)/genes.emb
	$(call GM_stage,screduce-map) $(BIN)/screduce map -v --seed $(SEED) -@ $(THREADS) -o $@ $<
$(GM)/genes.graph: $(GM)/genes.emb
	$(call GM_stage,scgenes-network) $(PIPELINES)/step.sh genesmap/network $< $@ $(NEAREST) $(RESOLUTION) $(SEED) $(THREADS)
$(GM)/graphs/dependency.graph: $(GM)/cells.tok | $(GM)/graphs
	$(call GM_stage,depgraph) $(PIPELINES)/graph.sh $< $@ --top-genes 0 --min-cells $(LEAST_CELLS) --seed $(SEED) -@ $(THREADS)
$(GM)/graphs/co-expression.graph: $(GM)/cells.tok | $(GM)/graphs
	$(call GM_stage,depgraph-nearest) $(BIN)/depgraph -v --top-genes 0 --min-cells $(LEAST_CELLS) --min-overlap 10 --rho-min 0 --candidates $(NEAREST) \
		--positive --seed $(SEED) -@ $(THREADS) -o $@ $<
GM_GRAPHS := $(GM)/genes.graph $(addprefix $(GM)/graphs/,static.graph co-expression.graph dependency.graph)
$(GM)/scores.tsv: $(GM)/sets.gmt $(GM_GRAPHS) $(PIPELINES)/genesmap/steps.sh
	$(call GM_stage,scgenes-genesets) $(PIPELINES)/step.sh genesmap/scores $< $@ $(SEED) $(GM_GRAPHS)
$(GM)/genes.modules.tsv: $(GM)/genes.graph $(GM)/sets.gmt
	$(call GM_stage,scgenes-modules) $(BIN)/scgenes genesets -v --sets $(GM)/sets.gmt --module module -o $@ $<

$(GM)/report.txt: $(GM)/scores.tsv $(GM)/genes.modules.tsv $(GM)/genes.map $(PIPELINES)/genesmap/report.py
	@$(table) genesmap/report $(GM) $(call text,DATA) $(call quote,$(if $(value MODEL),$(call given,MODEL),trained here: $(pretrained_how))) \
		$(call text,GENESETS) $(whole)

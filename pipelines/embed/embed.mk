# make embed: the cells of a file as a trained model sees them. It writes a copy of your file with the embedding and a map of it, and a page.
#
#     make embed DATA=new.h5ad MODEL=Geneformer/Geneformer-V2-104M     the answer is results/embed/latest/embedded.h5ad
#     make embed DATA=new.h5ad MODEL=biomed.rna.llama.47m.wced.multitask.v1 POOL=token:1 RANK_ARGS='--gene-column feature_name'
#     make embed                                                       blood cells (data/make_pbmc.py), and a small network that is trained on them
#
# In scanpy: sc.pp.neighbors(adata, use_rep="X_corrmask"), sc.pl.umap(adata). Memory is that of the model and of a batch of cells, and of the map:
# 4 bytes a number for MAP_CELLS cells. Cells are embedded in parts, so an interrupted run goes on after the last part. The vocabulary is the
# model's vocab.tsv, that of MEDIANS and TOKEN_TABLE, or, of a Geneformer as it lies on the hub, that of the dictionaries beside it, with its table of
# old ids and symbols (scstream(1), model). The first line says what was found.
# Also those of pretrained.mk, cells.mk: only without MODEL, of the small network that is trained then:
# DATA         AnnData or 10x file
# MODEL        folder of a model: sctrain's, transformers', a published Geneformer or a released BMFM-RNA
# MEDIANS      the model's vocabulary, or Geneformer's table of medians with TOKEN_TABLE, if the model has no vocab.tsv; also its two pickles
# TOKEN_TABLE  Geneformer's table of tokens, if MEDIANS is its table
# GENE_NAMES   table of key and gene id, if DATA and the vocabulary name genes differently, such as one of orthologs
# RANK_ARGS    more options of h5tok --rank, such as '--min-matched 0' for a vocabulary of few genes
# LABEL        obs column that colours the map, if DATA has it
# MAXLEN       maximum number of tokens per cell; default with MODEL: all that the model has positions for
# POOL         which hidden states to keep: mean, cls, first, token:K (scembed --pool); default: the model's
# HIDDEN_LAYER  the layer of the network: 0 is the last one, -1 the one before (scembed --emb-layer); default: the model's
# EMBED_PART   cells per part
# MAP_CELLS    maximum number of cells on the map

MODEL      ?=
POOL       ?=
HIDDEN_LAYER ?=
EMBED_PART ?= 20000
MAP_CELLS  ?= 50000
# The defaults of the experiments that train are not those of a model that is there.
embed_maxlen = $(filter command environment,$(origin MAXLEN))
positions = $(shell awk -F : '/"max_position_embeddings"/ { gsub(/[^0-9]/, "", $$2); print $$2 }' $(call one_file,MODEL)/config.json 2> /dev/null)
own_embed_MAXLEN = $(if $(and $(value MODEL),$(if $(embed_maxlen),,1)),$(positions),$(MAXLEN))

EMBED_SETTINGS := $(if $(value MODEL),DATA MODEL LABEL $(foreach v,MEDIANS TOKEN_TABLE GENE_NAMES RANK_ARGS,$(if $(value $v),$v)) \
	$(if $(embed_maxlen),MAXLEN) SEED,$(PRETRAINED_SETTINGS)) $(foreach v,POOL HIDDEN_LAYER,$(if $(value $v),$v)) EMBED_PART MAP_CELLS
$(eval $(call run_folder,EMBED,embed,$(EMBED_SETTINGS)))
embed_model = $(if $(value MODEL),$(call found_model,$(EMBED)),$(PRETRAINED)/random-$(SEED).model)
embed_trained := $(if $(value MODEL),,$(PRETRAINED)/random-$(SEED).model/model.safetensors)

embed: ## embed the cells of a file with a trained model: an .h5ad with the embedding and a map, and a report (DATA= MODEL=)
own_embed_DATA := $(realpath $(PIPELINES)/../data/pbmc3k_sample.h5ad)
own_embed_CELLS := 0
own_embed_EPOCHS := $(call scale,1,30,30)
ifeq ($(value DATA)$(value MODEL),)
$(eval $(call own,embed,DATA CELLS EPOCHS))
else
$(eval $(call page,embed,$(EMBED),$(EMBED)/report.txt $(EMBED)/embedded.h5ad))
endif
ifeq ($(filter embed,$(MAKECMDGOALS))$(OWN),embed)
$(call stop,$(if $(value DATA),$(or $(if $(value MODEL),,DATA= without MODEL=: which model? The folder of a Geneformer, or of one that is trained here \
	(make demo DATA=)),$(call several,DATA)),$(if $(value MODEL),MODEL= without DATA=: which file has the cells?)))
endif
$(call check,embed,DATA MODEL MEDIANS TOKEN_TABLE GENE_NAMES EMBED_PART MAP_CELLS)

ifneq ($(value MODEL),)
$(eval $(call model,$(EMBED),MODEL,MEDIANS,TOKEN_TABLE))
$(EMBED)/cells.tok: $(EMBED)/model.tsv
	@$(if $(filter command environment,$(origin LABEL)),$(script)/columns.sh $(call text,LABEL) none $(call one_file,DATA))
	$(call EMBED_stage,h5tok) $(PIPELINES)/tokens.sh $< '$(if $(embed_maxlen),$(MAXLEN))' $(call one_file,DATA) $@ $(map_genes) $(reading) $(RANK_ARGS) -@ $(THREADS)
else
$(EMBED)/cells.tok: $(PREPARED)/cells.counts $(PREPARED)/vocab.tsv | $(EMBED)/settings
	$(call EMBED_stage,rankenc) $(BIN)/rankenc -v -m $(PREPARED)/vocab.tsv --max-len $(MAXLEN) $(RANK_ARGS) -@ $(THREADS) -o $@ $<
endif
$(EMBED)/group: $(EMBED)/cells.tok
	@$(script)/group.sh auto $(call text,LABEL) $< $(whole)

$(EMBED)/embedding.emb: $(EMBED)/cells.tok $(embed_trained)
	@$(script)/step.sh embed/names $< $(call text,DATA)
	$(call EMBED_stage,scembed) $(PIPELINES)/step.sh embed/parts $< $@ $(EMBED_PART) -M $(embed_model) $(POOL:%=--pool %) $(HIDDEN_LAYER:%=--emb-layer %) $(if $(embed_maxlen),--max-len $(MAXLEN)) -@ $(THREADS)
$(EMBED)/embedding.map: $(EMBED)/embedding.emb
	@rm -rf $<.parts
	$(call EMBED_stage,screduce-map) $(PIPELINES)/step.sh embed/map $< $@ $(MAP_CELLS) $(SEED) -@ $(THREADS)
$(EMBED)/embedded.h5ad: $(EMBED)/embedding.map $(EMBED)/embedding.emb $(if $(value MODEL),,$(PREPARED)/cells.counts)
	$(call EMBED_stage,scview-into) $(PIPELINES)/step.sh embed/into $(or $(if $(value MODEL),$(call one_file,DATA)),$(PREPARED)/cells.counts) $(EMBED)/embedding.map $(EMBED)/embedding.emb $@ $(reading)

$(EMBED)/report.txt: $(EMBED)/embedding.map $(EMBED)/embedded.h5ad $(EMBED)/group $(PIPELINES)/embed/report.py
	@$(table) embed/report $(EMBED) $(call text,DATA) \
		$(call quote,$(if $(value MODEL),$(call given,MODEL),trained here: $(pretrained_how))) $(call text,LABEL) $(whole)

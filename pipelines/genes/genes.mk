# make genes: can a model classify genes that were not in its training? (for example dosage-sensitive transcription factors)
#
#     make genes                                                   simulated cells: is a gene in an odd or an even module?
#     make genes DATA=lung.h5ad GENE_LABELS=tf.tsv INIT=DIR        your cells, genes and model (INIT as in make finetune)
#     make table1 DATA=lung.h5ad CROSS=all.h5ad GENE_LABELS=tf.tsv     the CorrMask paper's Table 1: four masking strategies, two tissues
#
# Geneformer's protocol: FOLDS folds over the genes. A model is fine-tuned on the other folds for one epoch and predicts this one. The AUC
# is over tokens. Unlike there, the cells of the prediction are from donors that were not used in fine-tuning.
# Also those of finetune.mk
# STARTS       models to start from: scratch, random, pmi, pmi-rand, corrmask, with INIT also init
# CROSS        AnnData or 10x files of other tissues: the models also predict the genes in these cells
# GENE_LABELS  table of gene (id or symbol) and label
# FOLDS        folds over the genes
# GC_EPOCHS    passes of the fine-tuning
# GC_LR        peak learning rate of the fine-tuning
# GC_ARGS      more options of sctrain genes, such as '--freeze 4'
# Cells, vocabulary and models are those of make finetune, with its settings.

STARTS      ?= $(FT_STARTS)
CROSS       ?=
GENE_LABELS ?=
FOLDS       ?= 5
GC_EPOCHS   ?= 1
GC_LR       ?= $(FT_LR)
GC_ARGS     ?=

GC_SETTINGS := $(FT_SETTINGS) GENE_LABELS FOLDS GC_EPOCHS GC_LR GC_ARGS $(if $(value CROSS),CROSS)
$(eval $(call run_folder,GC,genes,$(GC_SETTINGS)))
GC_FOLDS := $(shell seq 0 $$(($(FOLDS) - 1)))

own_genes_LABEL = $(label_if_there)
$(if $(value DATA),$(eval $(call own,genes,LABEL)))
own_table1_LABEL = $(label_if_there)
own_table1_STARTS := scratch $(ft_pretrained)
$(eval $(call own,table1,STARTS $(if $(value DATA),LABEL),genes))
genes: ## fine-tune for classes of genes, folds over genes (DATA= GENE_LABELS= INIT= FOLDS=)
table1: ##@ table 1: classes of genes by masking strategy, within and across tissues (DATA= CROSS= GENE_LABELS=)
$(call check,genes table1,DATA CORPUS CROSS GENE_LABELS $(ft_model))
$(eval $(call page,genes,$(GC),$(GC)/report.txt))
$(foreach s,$(filter-out $(FT_STARTS) $(ft_pretrained),$(STARTS)),$(error genes: STARTS: unknown start '$s' (expected $(sort $(FT_STARTS) $(ft_pretrained)))))
ifneq ($(filter genes table1,$(MAKECMDGOALS)),)
ifneq ($(value DATA),)
$(if $(value GENE_LABELS),,$(error genes: GENE_LABELS=FILE is needed: a table of genes and their labels))
endif
endif

$(GC)/labels.tsv: $(FT)/learn.tok | $(GC)/settings
ifneq ($(value GENE_LABELS),)
	@cp $(call text,GENE_LABELS) $@
else
	@$(script)/step.sh genes/labels $< $(whole)
endif

define gc_start
$$(GC_FOLDS:%=$$(GC)/$1-%.model/model.safetensors): $$(GC)/$1-%.model/model.safetensors: $$(FT)/learn.tok $$(GC)/labels.tsv \
		$$(call ft_needs,$1)
	$$(call GC_stage,sctrain-$1-$$*) $$(PIPELINES)/train.sh genes $$(GC)/$1-$$*.model $$< \
		--strategy none $$(ft_values) --epochs $$(GC_EPOCHS) --batch $$(FT_BATCH) --seed $$(SEED) -- \
		--gene-labels $$(GC)/labels.tsv --fold $$*/$$(FOLDS) $$(ft_start_$1) --lr $$(GC_LR) $$(GC_ARGS) --seed $$(SEED) -@ $$(THREADS)
$$(GC)/$1.score.tsv: $$(GC_FOLDS:%=$$(GC)/$1-%.pred)
	$$(call GC_stage,ctaprobe-$1) $$(BIN)/ctaprobe genes -v --gene-scores $$(GC)/$1.genes.tsv --roc $$(GC)/$1.roc.tsv -o $$@ $$^
$$(GC)/$1.cross.score.tsv: $$(GC_FOLDS:%=$$(GC)/$1-%.cross.pred)
	$$(call GC_stage,ctaprobe-$1-cross) $$(BIN)/ctaprobe genes -v -o $$@ $$^
$$(GC_FOLDS:%=$$(GC)/$1-%.pred): $$(GC)/$1-%.pred: $$(FT)/test.tok $$(GC)/$1-%.model/model.safetensors
	$$(call GC_stage,scpredict-$1-$$*) $$(BIN)/scpredict genes -v -M $$(GC)/$1-$$*.model $$(call ft_whole) -@ $$(THREADS) -o $$@ $$<
$$(GC_FOLDS:%=$$(GC)/$1-%.cross.pred): $$(GC)/$1-%.cross.pred: $$(GC)/cross.tok $$(GC)/$1-%.model/model.safetensors
	$$(call GC_stage,scpredict-$1-$$*-cross) $$(BIN)/scpredict genes -v -M $$(GC)/$1-$$*.model $$(call ft_whole) -@ $$(THREADS) -o $$@ $$<
endef
$(foreach m,$(STARTS),$(eval $(call gc_start,$m)))

# The cells of other tissues in the vocabulary of the models
$(GC)/cross.counts: | $(GC)/settings
	$(call GC_stage,h5tok-cross) $(PIPELINES)/with-files.sh $(call text,CROSS) $(BIN)/h5tok -v $(reading_others) -@ $(THREADS) -o $@
$(GC)/cross.tok: $(GC)/cross.counts $(if $(value INIT),$(FT)/model.tsv,$(if $(value MEDIANS),,$(PREPARED)/vocab.tsv))
	$(call GC_stage,rankenc-cross) $(if $(value INIT),$(PIPELINES)/tokens.sh $(FT)/model.tsv $(MAXLEN) $< $@ $(map_genes),$(BIN)/rankenc -v $(prepared_vocab) \
		--max-len $(MAXLEN) -o $@ $<) $(RANK_ARGS) -@ $(THREADS)

$(eval $(call grid,$(GC),$(STARTS)))
$(GC)/report.txt: $(STARTS:%=$(GC)/%.score.tsv) $(if $(value CROSS),$(STARTS:%=$(GC)/%.cross.score.tsv)) $(GC)/grid $(PIPELINES)/genes/report.py
	@$(table) genes/report $(GC) $(call text,DATA) $(call text,CROSS) $(call text,GENE_LABELS) $(STARTS) $(whole)

# make genes: can a model classify genes that were not in its training? (for example dosage-sensitive transcription factors)
#
#     make genes                                                   simulated cells: is a gene in a module, or background?
#     make genes DATA=lung.h5ad GENE_LABELS=tf.tsv INIT=DIR        your cells, genes and model (INIT as in make finetune)
#
# Geneformer's protocol: FOLDS folds over the genes. A model is fine-tuned on the other folds for one epoch and predicts this one. The AUC
# is over tokens. Unlike there, the cells of the prediction are from donors that were not used in fine-tuning.
# GENE_LABELS   table of gene (id or symbol) and label          GC_EPOCHS, GC_LR   of the fine-tuning
# GC_ARGS       more options of sctrain genes, such as '--freeze 4'
# Cells, vocabulary and models are those of make finetune, with its settings.

GENE_LABELS ?=
FOLDS       ?= 5
GC_EPOCHS   ?= 1
GC_LR       ?= $(FT_LR)
GC_ARGS     ?=

GC_SETTINGS := $(FT_SETTINGS) GENE_LABELS FOLDS GC_EPOCHS GC_LR GC_ARGS
$(eval $(call run_folder,GC,genes,$(GC_SETTINGS)))
GC_FOLDS := $(shell seq 0 $$(($(FOLDS) - 1)))
gc_stage = $(call stage_in,$(GC),$1)

.PHONY: genes

genes: $(GC)/report.txt ## fine-tune for classes of genes, folds over genes (DATA= GENE_LABELS= INIT= FOLDS=)
	@cat $(GC)/report.txt
$(call check,genes,DATA INIT $(if $(value INIT),VOCAB) GENE_LABELS)
$(eval $(call page,genes,$(GC),$(GC)/report.txt))
ifneq ($(filter genes,$(MAKECMDGOALS)),)
ifneq ($(value DATA),)
$(if $(value GENE_LABELS),,$(error genes: GENE_LABELS=FILE is needed: a table of genes and their labels))
endif
endif

$(GC)/labels.tsv: $(FT)/learn.tok | $(GC)/settings
ifneq ($(value GENE_LABELS),)
	@cp $(call text,GENE_LABELS) $@
else
	@$(script)/genes-labels.sh $< > $@
endif

define gc_start
$$(GC_FOLDS:%=$$(GC)/$1-%.model/model.safetensors): $$(GC)/$1-%.model/model.safetensors: $$(FT)/learn.tok $$(GC)/labels.tsv \
		$$(call ft_needs,$1)
	$$(call gc_stage,sctrain-$1-$$*) $$(PIPELINES)/train.sh genes $$(GC)/$1-$$*.model $$< \
		--strategy none --epochs $$(GC_EPOCHS) --batch $$(FT_BATCH) --seed $$(SEED) -- \
		--gene-labels $$(GC)/labels.tsv --fold $$*/$$(FOLDS) $$(ft_start_$1) --lr $$(GC_LR) $$(GC_ARGS) --seed $$(SEED) -@ $$(THREADS)
$$(GC_FOLDS:%=$$(GC)/$1-%.pred): $$(GC)/$1-%.pred: $$(FT)/test.tok $$(GC)/$1-%.model/model.safetensors
	$$(call gc_stage,scembed-$1-$$*) $$(BIN)/scembed --predict -v -M $$(GC)/$1-$$*.model -@ $$(THREADS) -o $$@ $$<
$$(GC)/$1.score.tsv: $$(GC_FOLDS:%=$$(GC)/$1-%.pred)
	$$(call gc_stage,ctaprobe-$1) $$(BIN)/ctaprobe genes -v --gene-scores $$(GC)/$1.genes.tsv --roc $$(GC)/$1.roc.tsv -o $$@ $$^
endef
$(foreach m,$(FT_STARTS),$(eval $(call gc_start,$m)))

$(GC)/report.txt: $(FT_STARTS:%=$(GC)/%.score.tsv) $(PIPELINES)/genes-report.sh
	@$(PIPELINES)/genes-report.sh $(GC) $(call text,DATA) $(call text,GENE_LABELS) $(FT_STARTS) > $@

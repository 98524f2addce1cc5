# make genes: can a model tell classes of genes it was not shown? (dosage-sensitive transcription factors, for one)
#
#     make genes                                                   simulated cells: is a gene in a module, or background?
#     make genes DATA=lung.h5ad GENE_LABELS=tf.tsv INIT=DIR        your cells, genes and model (INIT as in make finetune)
#
# Geneformer's protocol: FOLDS folds over the genes; each is predicted by a model that was fine-tuned on the others, for one epoch; AUC
# over tokens. Here the cells of the prediction are of donors that the fine-tuning has not seen either.
# GENE_LABELS   table of gene (id or symbol) and label          GC_EPOCHS, GC_LR   of the fine-tuning
# GC_ARGS       more options of sctrain genes, such as '--freeze 4'
# Cells, vocabulary and models are those of make finetune, with its settings. Every stage is a file under results/genes/NAME.

GENE_LABELS ?=
FOLDS       ?= 5
GC_EPOCHS   ?= 1
GC_LR       ?= $(FT_LR)
GC_ARGS     ?=

GC := results/genes/$(notdir $(DEMO))
GC_KEY := $(FT_KEY) $(GENE_LABELS) $(FOLDS) $(GC_EPOCHS) $(GC_LR) $(GC_ARGS)
GC_FOLDS := $(shell seq 0 $$(($(FOLDS) - 1)))
gc_stage = $(subst $(DEMO),$(GC),$(call stage,$1))

.PHONY: genes

genes: $(GC)/report.txt ## fine-tune for classes of genes, folds over genes (DATA= GENE_LABELS= INIT= FOLDS=)
	@cat $(GC)/report.txt

$(GC)/settings: FORCE
	@echo '$(GC_KEY)' | cmp -s - $@ || { rm -rf $(GC); mkdir -p $(GC); echo '$(GC_KEY)' > $@; }

$(GC)/labels.tsv: $(GC)/settings $(GENE_LABELS) $(FT)/learn.tok
ifneq ($(GENE_LABELS),)
	@cp $(GENE_LABELS) $@
else ifneq ($(DATA),)
	@echo 'make genes: GENE_LABELS= is needed: a table of genes and their labels' >&2; exit 1
else
	@$(BIN)/scview --vocab $(FT)/learn.tok | awk -F '\t' '$$3 ~ /^(m|bg)[0-9.]+$$/ { print $$2 "\t" ($$3 ~ /^bg/ ? "background" : "module") }' > $@
endif

define gc_start
$$(GC_FOLDS:%=$$(GC)/$1-%.model/model.safetensors): $$(GC)/$1-%.model/model.safetensors: $$(FT)/learn.tok $$(GC)/labels.tsv $$(if $$(filter scratch,$1),,$$(ft_model_$1)/model.safetensors)
	$$(call gc_stage,sctrain-$1-$$*) $$(BIN)/maskgen --strategy none --epochs $$(GC_EPOCHS) --batch $$(FT_BATCH) --seed $$(SEED) -u $$< | \
		run $$(BIN)/sctrain genes -v --gene-labels $$(GC)/labels.tsv --fold $$*/$$(FOLDS) $$(ft_start_$1) --lr $$(GC_LR) $$(GC_ARGS) \
		--save-every 200 $$(call go_on,$$(GC)/$1-$$*.model) --seed $$(SEED) -@ $$(THREADS) -o $$(GC)/$1-$$*.model
$$(GC_FOLDS:%=$$(GC)/$1-%.pred): $$(GC)/$1-%.pred: $$(FT)/test.tok $$(GC)/$1-%.model/model.safetensors
	$$(call gc_stage,scembed-$1-$$*) run $$(BIN)/scembed --predict -v -M $$(GC)/$1-$$*.model -@ $$(THREADS) -o $$@ $$<
$$(GC)/$1.score.tsv: $$(GC_FOLDS:%=$$(GC)/$1-%.pred)
	$$(call gc_stage,ctaprobe-$1) run $$(BIN)/ctaprobe genes -v --gene-scores $$(GC)/$1.genes.tsv --roc $$(GC)/$1.roc.tsv -o $$@ $$^
endef
$(foreach m,$(FT_STARTS),$(eval $(call gc_start,$m)))

$(GC)/report.txt: $(FT_STARTS:%=$(GC)/%.score.tsv) $(PIPELINES)/genes-report.sh
	@$(PIPELINES)/genes-report.sh $(GC) '$(DATA)' '$(GENE_LABELS)' $(FT_STARTS) > $@

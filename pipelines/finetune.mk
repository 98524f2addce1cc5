# make finetune: cell types by fine-tuning, scored on donors the model has not seen.
#
#     make finetune                                             the demo's cells and its two pre-trained models
#     make finetune DATA=lung.h5ad LABEL=cell_type              the same on your file
#     make finetune DATA=lung.h5ad LABEL=cell_type INIT=DIR     from a model of your own, of sctrain's or transformers'
#
# The same network is also trained from random weights. A quarter of the donors is for the test, a fifth of the others for validation:
# the weights with the smallest loss are kept [Geneformer's protocol]. Cells are read, sampled and split as by make demo, with its settings
# (cells.mk). Without INIT the demo's pre-training runs first.
# VOCAB   the model's vocabulary (default INIT/vocab.tsv)         FT_EPOCHS, FT_BATCH, FT_LR   of the fine-tuning
# FT_ARGS more options of sctrain cells, such as '--freeze 2 --class-weight balanced'

INIT      ?=
VOCAB     ?= $(call given,INIT)/vocab.tsv
FT_EPOCHS ?= $(call scale,10,10,5)
FT_BATCH  ?= 12
FT_LR     ?= $(if $(value INIT),5e-5,$(call scale,1e-3,1e-3,5e-5))
FT_ARGS   ?=

# With INIT, nothing of the demo but its cells has a part
FT_SETTINGS := $(if $(value INIT),$(PREPARED_SETTINGS) INIT VOCAB,$(DEMO_SETTINGS)) FT_EPOCHS FT_BATCH FT_LR FT_ARGS
$(eval $(call run_folder,FT,finetune,$(FT_SETTINGS)))
ft_stage = $(call stage_in,$(FT),$1)

FT_STARTS := scratch $(if $(value INIT),init,$(DEMO_MODELS))
ft_model_random := $(DEMO)/random.model
ft_model_corrmask := $(DEMO)/corrmask.model
# The network that starts from random weights is the same as the others'.
ft_start_scratch = --config $(if $(value INIT),$(call text,INIT)/config.json,$(CONFIG))
ft_start_init = --init $(call text,INIT)
$(foreach m,$(DEMO_MODELS),$(eval ft_start_$m := --init $(ft_model_$m)))
# What the start's model is made from; a model of the user is among the settings.
ft_needs = $(addsuffix /model.safetensors,$(ft_model_$1))

.PHONY: finetune

finetune: $(FT)/report.txt ## fine-tune for cell types and score on unseen donors (DATA= LABEL= INIT=)
	@cat $(FT)/report.txt
$(call check,finetune,DATA INIT $(if $(value INIT),VOCAB))
$(eval $(call page,finetune,$(FT),$(FT)/report.txt))

ifeq ($(value INIT),)
$(FT)/test.tok: $(PREPARED)/test.tok | $(FT)/settings
	@ln -sfr $< $@
$(FT)/learn.tok: $(PREPARED)/train.tok | $(FT)/settings
	@ln -sfr $< $@
else
$(FT)/test.tok: $(PREPARED)/test.counts
$(FT)/learn.tok: $(PREPARED)/train.counts
$(FT)/learn.tok $(FT)/test.tok: $(FT)/%.tok: | $(FT)/settings
	$(call ft_stage,rankenc-$*) $(BIN)/rankenc -v -m $(call text,VOCAB) --max-len $(MAXLEN) -@ $(THREADS) -o $@ $<
endif

# $(call ft_split,DIR,TOKENS,GROUP,STAGE): DIR/train.tok for training and DIR/valid.masked for validation
define ft_split
$1/train.tok $1/valid.tok: $1/%.tok: $2 $3
	$$(call $4,scsample-$$*) $$(PIPELINES)/split.sh $$(if $$(filter valid,$$*),test,train) 0.2 $3 $$< $$@ $$(SEED)
$1/valid.masked: $1/valid.tok
	$$(call $4,maskgen-valid) $$(BIN)/maskgen -v --strategy none --keep $$(call text,LABEL) --batch $$(FT_BATCH) -o $$@ $$<
endef
$(eval $(call ft_split,$(FT),$(FT)/learn.tok,$(PREPARED)/group,ft_stage))

define ft_start
$$(FT)/$1.model/model.safetensors: $$(FT)/train.tok $$(FT)/valid.masked $$(call ft_needs,$1) | $$(DEMO_TOOLS)
	$$(call ft_stage,sctrain-$1) $$(PIPELINES)/train.sh cells $$(FT)/$1.model $$< \
		--strategy none --keep $$(call text,LABEL) --epochs $$(FT_EPOCHS) --batch $$(FT_BATCH) --seed $$(SEED) -- \
		--label $$(call text,LABEL) $$(ft_start_$1) --lr $$(FT_LR) --eval $$(FT)/valid.masked --patience 3 $$(FT_ARGS) --seed $$(SEED) -@ $$(THREADS)
endef
$(foreach m,$(FT_STARTS),$(eval $(call ft_start,$m)))

$(FT_STARTS:%=$(FT)/%.pred): $(FT)/%.pred: $(FT)/test.tok $(FT)/%.model/model.safetensors
	$(call ft_stage,scembed-$*) $(BIN)/scembed --predict -v -M $(FT)/$*.model -@ $(THREADS) -o $@ $<
$(FT_STARTS:%=$(FT)/%.score.tsv): $(FT)/%.score.tsv: $(FT)/%.pred $(FT)/train.tok
	$(call ft_stage,ctaprobe-$*) $(BIN)/ctaprobe score -v --label $(call text,LABEL) --train $(FT)/train.tok -o $@ $<

$(FT)/report.txt: $(FT_STARTS:%=$(FT)/%.score.tsv) $(PIPELINES)/finetune-report.sh
	@$(PIPELINES)/finetune-report.sh $(FT) $(call text,DATA) $(call text,LABEL) $(FT_STARTS) > $@

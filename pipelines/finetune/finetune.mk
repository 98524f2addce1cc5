# make finetune: cell types by fine-tuning, scored on donors the model has not seen.
#
#     make finetune                                             simulated cells and the demo's pre-trained models of SEED
#     make finetune DATA=lung.h5ad LABEL=cell_type              the same on your file
#     make finetune DATA=lung.h5ad LABEL=cell_type INIT=DIR     from a model of your own
#     make finetune DATA=lung.h5ad INIT=Geneformer/Geneformer-V2-104M    from a Geneformer as it lies on the hub
#
# The same network is also trained from random weights. A quarter of the donors is for the test, a fifth of the others for validation:
# the weights with the smallest loss are kept [Geneformer's protocol]. Cells are read, sampled and split as by make demo, with its settings
# (cells.mk). Without INIT the pre-training of SEED runs first (pretrained.mk).
# The table has three baselines without a network (logistic regression on log-normalised expression and on 50 principal components, and naive Bayes
# of the counts), and intervals by a bootstrap of the test's donors, or of cells if they are fewer than three.
# Also those of pretrained.mk, cells.mk
# INIT       folder of the model to start from, as MODEL of make embed: sctrain's, a Geneformer, transformers'; none: the demo's two models
# VOCAB      a vocabulary in place of the model's
# FT_EPOCHS  maximum number of passes of the fine-tuning
# FT_BATCH   cells per batch
# FT_LR      peak learning rate of the fine-tuning
# FT_STOP    when to stop and which weights to keep; --best last: no early stopping
# FT_ARGS    more options of sctrain cells, such as '--freeze 2 --class-weight balanced'

INIT      ?=
VOCAB     ?=
FT_EPOCHS ?= $(if $(paper_protocol),5,$(call scale,3,10,5))
FT_BATCH  ?= 12
# The default of sctrain: a network of a width below 128 needs a higher rate
ft_init_lr = $(shell awk '/"hidden_size"/ { gsub(/[^0-9]/, ""); print $$0 + 0 < 128 ? "1e-3" : "5e-5" }' $(call one_file,INIT)/config.json 2>/dev/null)
FT_LR     ?= $(if $(value INIT),$(or $(ft_init_lr),5e-5),$(call scale,1e-3,1e-3,5e-5))
FT_STOP   ?= $(if $(paper_protocol),--best last,--patience 3)
FT_ARGS   ?=

ft_stop = $(if $(filter-out --patience 3,$(FT_STOP)),FT_STOP)
# With INIT, nothing of the demo but its cells has a part
FT_SETTINGS := $(if $(value INIT),$(PREPARED_SETTINGS) INIT $(if $(value VOCAB),VOCAB),$(PRETRAINED_SETTINGS)) FT_EPOCHS FT_BATCH FT_LR FT_ARGS $(ft_stop)
$(eval $(call run_folder,FT,finetune,$(FT_SETTINGS)))
# What the model is that INIT names, with the vocabulary of VOCAB, or else MEDIANS, if one is given
ft_vocab = $(if $(value VOCAB),VOCAB,MEDIANS)
ft_model = $(if $(value INIT),INIT $(ft_vocab) TOKEN_TABLE)
$(if $(value INIT),$(eval $(call model,$(FT),INIT,$(ft_vocab),TOKEN_TABLE)))
# Cells of a model that reads values are whole; what reads them cuts them
ft_values = $(call ft_whole,--objective cell)
ft_whole = $(if $(value INIT),$$(awk -F '\t' '$$1 == "cls" && $$2 { print "$1 --max-len $(MAXLEN)" }' $(FT)/model.tsv))

FT_STARTS := scratch $(if $(value INIT),init,random corrmask)
ft_pretrained := random pmi pmi-rand corrmask
$(foreach m,$(ft_pretrained),$(eval ft_model_$m := $(PRETRAINED)/$m-$(SEED).model))
# The network that starts from random weights is the same as the others'.
ft_start_scratch = --config $(if $(value INIT),$(call found_model,$(FT))/config.json,$(CONFIG))
ft_start_init = --init $(call found_model,$(FT))
$(foreach m,$(ft_pretrained),$(eval ft_start_$m := --init $(ft_model_$m)))
# What the start's model is made from; a model of the user is among the settings.
ft_needs = $(addsuffix /model.safetensors,$(ft_model_$1))

finetune: ## fine-tune for cell types and score on unseen donors (DATA= LABEL= INIT=)
$(call check,finetune,DATA $(ft_model))
$(eval $(call page,finetune,$(FT),$(FT)/report.txt))

ifeq ($(value INIT),)
$(FT)/test.tok: $(PREPARED)/test.tok | $(FT)/settings
	@ln -sfr $< $@
$(FT)/learn.tok: $(PREPARED)/train.tok | $(FT)/settings
	@ln -sfr $< $@
else
$(FT)/test.tok: $(PREPARED)/test.counts
$(FT)/learn.tok: $(PREPARED)/train.counts
$(FT)/learn.tok $(FT)/test.tok: $(FT)/%.tok: $(FT)/model.tsv
	$(call FT_stage,rankenc-$*) $(PIPELINES)/tokens.sh $(FT)/model.tsv $(MAXLEN) $(filter %.counts,$^) $@ $(map_genes) $(RANK_ARGS) -@ $(THREADS)
endif

# $(call ft_split,DIR,TOKENS,GROUP,STAGE,OPTION-OF-MASKGEN): DIR/train.tok for training and DIR/valid.masked for validation
define ft_split
$1/train.tok $1/valid.tok: $1/%.tok: $2 $3
	$$(call $4,scsample-$$*) $$(PIPELINES)/split.sh $$(if $$(filter valid,$$*),test,train) 0.2 $3 $$< $$@ $$(SEED)
$1/valid.masked: $1/valid.tok
	$$(call $4,maskgen-valid) $$(BIN)/maskgen -v --strategy none $5 --keep $$(call text,LABEL) --batch $$(FT_BATCH) -o $$@ $$<
endef
$(eval $(call ft_split,$(FT),$(FT)/learn.tok,$(PREPARED)/group,FT_stage,$$(ft_values)))

define ft_start
$$(FT)/$1.model/model.safetensors: $$(FT)/train.tok $$(FT)/valid.masked $$(call ft_needs,$1)
	$$(call FT_stage,sctrain-$1) $$(PIPELINES)/train.sh cells $$(FT)/$1.model $$< \
		--strategy none $$(ft_values) --keep $$(call text,LABEL) --epochs $$(FT_EPOCHS) --batch $$(FT_BATCH) --seed $$(SEED) -- \
		--label $$(call text,LABEL) $$(ft_start_$1) --lr $$(FT_LR) --eval $$(FT)/valid.masked $$(FT_STOP) $$(FT_ARGS) --seed $$(SEED) -@ $$(THREADS)
endef
$(foreach m,$(FT_STARTS),$(eval $(call ft_start,$m)))

$(FT_STARTS:%=$(FT)/%.pred): $(FT)/%.pred: $(FT)/test.tok $(FT)/%.model/model.safetensors
	$(call FT_stage,scpredict-$*) $(BIN)/scpredict cells -v -M $(FT)/$*.model $(call ft_whole) -@ $(THREADS) -o $@ $<
$(FT_STARTS:%=$(FT)/%.score.tsv): $(FT)/%.score.tsv: $(FT)/%.pred $(FT)/train.tok $(PREPARED)/group
	$(call FT_stage,ctaprobe-$*) $(PIPELINES)/bootstrap.sh score $(PREPARED)/group $(call text,LABEL) $(FT)/train.tok $< $@

# Without a network, from all cells that are not for the test
$(NO_NETWORK:%=$(FT)/%.score.tsv): $(FT)/%.score.tsv: $(PREPARED)/%.score.tsv | $(FT)/settings
	@cp $(<:.tsv=.replicates) $(@:.tsv=.replicates); cp $< $@

$(FT)/report.txt: $(patsubst %,$(FT)/%.score.tsv,$(FT_STARTS) $(NO_NETWORK)) $(PIPELINES)/finetune/report.py
	@$(table) finetune/report $(FT) $(call text,DATA) $(call text,LABEL) $(FT_STARTS) $(whole)

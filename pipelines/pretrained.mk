# The pre-trained models of demo, reliance, finetune and genes: $(PRETRAINED)/STRATEGY-SEED.model.
#
# EPOCHS  passes of the pre-training over the cells
# BATCH   cells per batch
# CONFIG  network: tiny, corrmask-paper or a config.json
# LR      peak learning rate of the pre-training (0.001 in Table 5 of the CorrMask paper, 1e-4 in its appendix C.7)
# PT_ARGS  more options of sctrain mlm, such as '--warmup 10000' (of SCALE=paper: fewer steps do not reach LR)
# SEEDS   seeds of masks, order, initial weights and dropout; default: 1 2 3. SEED alone determines the cells and their split
# SCALE=paper has the values of the paper's Table 5.
# STRATEGY is random, pmi, pmi-rand, corrmask, shuffled (CorrMask with a graph whose genes have changed places: a control) or untrained.

EPOCHS ?= $(call scale,1,$(if $(value DATA),6,12),3)
BATCH  ?= 12
CONFIG ?= $(call scale,tiny,tiny,corrmask-paper)
LR     ?= $(call scale,0.003,0.003,0.001)
ifeq ($(SCALE),paper)
PT_ARGS ?= --warmup 10000
endif
PT_ARGS ?=
DEMO_SEEDS := $(or $(SEEDS),$(call scale,1 2,1 2 3,1 2 3))
RELIANCE_SEEDS := $(or $(SEEDS),$(call scale,1 2,1 2 3,1 2 3 4 5))

PRETRAINED_SETTINGS := $(PREPARED_SETTINGS) EPOCHS BATCH CONFIG LR $(if $(value PT_ARGS),PT_ARGS)
$(eval $(call run_folder,PRETRAINED,pretrained,$(PRETRAINED_SETTINGS)))
pretrained_how = $(CONFIG), $(call plural,$(EPOCHS),epoch) of batches of $(BATCH), rate $(LR)$(PT_ARGS:%= %)

$(PREPARED)/shuffled.graph: $(PREPARED)/corpus.graph
	$(call PREPARED_stage,depgraph-shuffle) $(BIN)/depgraph -v --shuffle --seed $(SEED) -@ $(THREADS) -o $@ $<

$(PREPARED)/pmi.graph: $(PREPARED)/corpus.tok
	$(call PREPARED_stage,depgraph-pmi) $(BIN)/depgraph -v --pmi --seed $(SEED) -@ $(THREADS) -o $@ $<

graph_pmi := $(PREPARED)/pmi.graph
graph_pmi-rand := $(PREPARED)/pmi.graph
graph_corrmask := $(PREPARED)/corpus.graph
graph_shuffled := $(PREPARED)/shuffled.graph
# The network with its initial weights: one step on a few cells at rate 0
$(PRETRAINED)/few.tok: $(PREPARED)/train.tok | $(PRETRAINED)/settings
	$(call PRETRAINED_stage,scsample-few) $(BIN)/scsample -v -n $(BATCH) --seed $(SEED) -o $@ $<

# $1: strategy, $2: cells, $3: epochs, $4: rate; * is the seed
define pretrain
$$(PRETRAINED_SEEDS:%=$$(PRETRAINED)/$1-%.model/model.safetensors): $$(PRETRAINED)/$1-%.model/model.safetensors: $2 $$(graph_$1) \
		| $$(PRETRAINED)/settings
	$$(call PRETRAINED_stage,sctrain-$1-$$*) env GRAPH=$$(graph_$1) PMI=$$(graph_$1) $$(PIPELINES)/train.sh pretrain/$1 $$(PRETRAINED)/$1-$$*.model $$< \
		--batch $$(BATCH) --epochs $3 --seed $$* -- --config $$(CONFIG) --lr $4 $$(PT_ARGS) --seed $$* -@ $$(job_threads)
endef
PRETRAINED_SEEDS := $(sort $(SEED) $(DEMO_SEEDS) $(RELIANCE_SEEDS))
$(foreach s,random pmi pmi-rand corrmask shuffled,$(eval $(call pretrain,$s,$(PREPARED)/corpus.tok,$(EPOCHS),$(LR))))
$(eval $(call pretrain,untrained,$(PRETRAINED)/few.tok,1,0))

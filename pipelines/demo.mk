# make demo: from cells to cell-type scores, with random masks and with CorrMask's, beside baselines without a network or without training.
#
#     make demo                                  simulated cells with known modules and cell types
#     make demo DATA=lung.h5ad LABEL=cell_type   the same on your file
#
# EPOCHS, BATCH, CONFIG, LR   of the pre-training; cells.mk has the settings of the cells
# SCALE   tiny, small (default) or paper: sets the defaults of these, of CELLS and MAXLEN; paper has the values of the paper's Table 5
# The logs ($(DEMO)/log) have the messages of every stage, with its time and peak memory.

EPOCHS ?= $(call scale,1,6,3)
BATCH  ?= 12
CONFIG ?= $(call scale,tiny,tiny,corrmask-paper)
LR     ?= $(call scale,0.003,0.003,0.001)

DEMO_SETTINGS := $(PREPARED_SETTINGS) EPOCHS BATCH CONFIG LR
$(eval $(call run_folder,DEMO,demo,$(DEMO_SETTINGS)))
DEMO_TOOLS := $(addprefix $(BIN)/,maskgen sctrain scembed ctaprobe scsample scview)
stage = $(call stage_in,$(DEMO),$1)

.PHONY: demo

demo: $(DEMO)/report.txt $(DEMO)/demo.svg $(DEMO)/demo.png ## pre-train with random and with CorrMask masks, and compare (DATA= LABEL= CELLS=)
	@cat $(DEMO)/report.txt
$(call check,demo,DATA)
$(eval $(call page,demo,$(DEMO),$(DEMO)/report.txt $(DEMO)/demo.svg))

# Two models, and the same held-out masks for both
DEMO_MODELS := random corrmask
masks_random := --strategy random --rate 0.15 --batch $(BATCH) --seed $(SEED)
masks_corrmask := --strategy corrmask --lambda 0.5 --rate 0.15 --batch $(BATCH) --seed $(SEED) -g $(PREPARED)/train.graph

$(DEMO_MODELS:%=$(DEMO)/heldout-%.masked): $(DEMO)/heldout-%.masked: $(PREPARED)/test.tok $(PREPARED)/train.graph | $(DEMO)/settings $(DEMO_TOOLS)
	$(call stage,maskgen-heldout-$*) $(BIN)/maskgen -v $(masks_$*) -o $@ $<

$(DEMO_MODELS:%=$(DEMO)/%.model/model.safetensors): $(DEMO)/%.model/model.safetensors: $(PREPARED)/train.tok $(PREPARED)/train.graph | $(DEMO)/settings $(DEMO_TOOLS)
	$(call stage,sctrain-$*) $(PIPELINES)/train.sh mlm $(DEMO)/$*.model $< $(masks_$*) --epochs $(EPOCHS) -- \
		--config $(CONFIG) --lr $(LR) --seed $(SEED) -@ $(THREADS)

define demo_model
$$(DEMO_MODELS:%=$$(DEMO)/$1.loss-%.tsv): $$(DEMO)/$1.loss-%.tsv: $$(DEMO)/heldout-%.masked $$(DEMO)/$1.model/model.safetensors
	$$(call stage,eval-$1-$$*) $$(BIN)/sctrain eval -v -M $$(DEMO)/$1.model -@ $$(THREADS) -o $$@ $$<
$$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb: $$(DEMO)/$1.%.emb: $$(PREPARED)/%.tok $$(DEMO)/$1.model/model.safetensors
	$$(call stage,scembed-$1-$$*) $$(BIN)/scembed -v -M $$(DEMO)/$1.model -@ $$(THREADS) -o $$@ $$<
endef
$(foreach m,$(DEMO_MODELS) untrained,$(eval $(call demo_model,$m)))

# The network with its initial weights: one step on a few cells at rate 0
$(DEMO)/untrained.tok: $(PREPARED)/train.tok | $(DEMO)/settings $(DEMO_TOOLS)
	$(call stage,scsample-untrained) $(BIN)/scsample -v -n $(BATCH) --seed $(SEED) -o $@ $<
$(DEMO)/untrained.model/model.safetensors: $(DEMO)/untrained.tok
	$(call stage,sctrain-untrained) $(PIPELINES)/train.sh mlm $(DEMO)/untrained.model $< $(masks_random) --epochs 1 -- \
		--config $(CONFIG) --lr 0 --seed $(SEED) -@ $(THREADS)

# Embeddings without a network
embed_expression := --expression
embed_pca := --pca 50
define demo_baseline
$$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb: $$(DEMO)/$1.%.emb: $$(PREPARED)/%.counts $$(PREPARED)/train.counts | $$(DEMO)/settings $$(DEMO_TOOLS)
	$$(call stage,scembed-$1-$$*) $$(BIN)/scembed -v $$(embed_$1) --fit $$(PREPARED)/train.counts -@ $$(THREADS) -o $$@ $$<
endef
$(foreach b,expression pca,$(eval $(call demo_baseline,$b)))

DEMO_PROBED := expression pca untrained $(DEMO_MODELS)
$(DEMO_PROBED:%=$(DEMO)/%.probe.tsv): $(DEMO)/%.probe.tsv: $(DEMO)/%.train.emb $(DEMO)/%.test.emb
	$(call stage,ctaprobe-$*) $(PIPELINES)/probe.sh $(PREPARED)/group $(call text,LABEL) $^ $@ -@ $(THREADS)

DEMO_SCORES := $(foreach m,$(DEMO_MODELS),$(DEMO)/$m.loss-random.tsv $(DEMO)/$m.loss-corrmask.tsv) $(DEMO_PROBED:%=$(DEMO)/%.probe.tsv)
$(DEMO)/report.txt: $(DEMO_SCORES) $(PIPELINES)/demo-report.sh
	@$(PIPELINES)/demo-report.sh $(DEMO) $(PREPARED) $(call text,DATA) $(call text,LABEL) '$(CELLS)' > $@
$(DEMO)/demo.svg $(DEMO)/demo.png &: $(DEMO_SCORES) $(PIPELINES)/demo.gp
	@$(PIPELINES)/demo-plot.sh $(DEMO)

# make demo: from cells to cell-type scores, with random masks and with CorrMask's.
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
DEMO_TOOLS := $(addprefix $(BIN)/,maskgen sctrain scembed ctaprobe)
stage = $(call stage_in,$(DEMO),$1)

.PHONY: demo

demo: $(DEMO)/report.txt $(DEMO)/demo.svg $(DEMO)/demo.png ## pre-train with random and with CorrMask masks, and compare (DATA= LABEL= CELLS=)
	@cat $(DEMO)/report.txt
$(call check,demo,DATA)

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
$$(DEMO)/$1.probe.tsv: $$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb
	$$(call stage,ctaprobe-$1) $$(BIN)/ctaprobe cells -v --label $$(call text,LABEL) --standardize \
		--train $$(DEMO)/$1.train.emb --test $$(DEMO)/$1.test.emb -@ $$(THREADS) -o $$@
endef
$(foreach m,$(DEMO_MODELS),$(eval $(call demo_model,$m)))

DEMO_SCORES := $(foreach m,$(DEMO_MODELS),$(DEMO)/$m.loss-random.tsv $(DEMO)/$m.loss-corrmask.tsv $(DEMO)/$m.probe.tsv)
$(DEMO)/report.txt: $(DEMO_SCORES) $(PIPELINES)/demo-report.sh
	@$(PIPELINES)/demo-report.sh $(DEMO) $(PREPARED) $(call text,DATA) $(call text,LABEL) '$(CELLS)' > $@
$(DEMO)/demo.svg $(DEMO)/demo.png &: $(DEMO_SCORES) $(PIPELINES)/demo.gp
	@$(PIPELINES)/demo-plot.sh $(DEMO)

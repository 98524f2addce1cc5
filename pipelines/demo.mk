# make demo: from cells to cell-type scores, with random masks and with CorrMask's.
#
#     make demo                                  simulated cells with known modules and cell types
#     make demo DATA=lung.h5ad LABEL=cell_type   the same on your file
#
# LABEL   obs column with the cell type           GROUP  obs column to split by (donor); auto: find one; none: split by cell
# CELLS   cells to use, 0: all                    EPOCHS, BATCH, CONFIG, LR   of the pre-training
# SCALE   tiny, small (default) or paper: sets the defaults of these and of MAXLEN; paper has the values of the paper's Table 5
# Every stage is a file under demo/NAME, so a second run does nothing and an interrupted run continues where it stopped. With other
# settings all stages are made again. The logs (demo/NAME/log) have the messages of every stage, with its time and peak memory.

DATA   ?=
LABEL  ?= cell_type
GROUP  ?= auto
SCALE  ?= small
# $(call scale,TINY,SMALL,PAPER)
scale = $(if $(filter tiny,$(SCALE)),$1,$(if $(filter paper,$(SCALE)),$3,$2))
CELLS  ?= $(call scale,400,3000,$(if $(DATA),0,40000))
EPOCHS ?= $(call scale,1,6,3)
BATCH  ?= 12
CONFIG ?= $(call scale,tiny,tiny,corrmask-paper)
LR     ?= $(call scale,0.003,0.003,0.001)
SEED   ?= 1
MAXLEN ?= $(call scale,64,256,2048)
THREADS ?= $(shell nproc)

DEMO := demo/$(if $(DATA),$(basename $(notdir $(DATA))),sim)
DEMO_KEY := $(DATA) $(LABEL) $(GROUP) $(CELLS) $(EPOCHS) $(BATCH) $(CONFIG) $(LR) $(SEED) $(MAXLEN)
DEMO_TOOLS := $(addprefix $(BIN)/,h5tok rankenc depgraph maskgen sctrain scembed ctaprobe scsample scsim scview)
# A script with the tools of this build; $(call stage_in,DIR,NAME): run the command that follows, with its messages in DIR/log/NAME.log
script = BIN=$(BIN) $(PIPELINES)
stage_in = @$(script)/stage.sh $1/log $2
stage = $(call stage_in,$(DEMO),$1)

.PHONY: demo

demo: $(DEMO)/report.txt $(DEMO)/demo.svg $(DEMO)/demo.png ## pre-train with random and with CorrMask masks, and compare (DATA= LABEL= CELLS=)
	@cat $(DEMO)/report.txt

$(DEMO)/settings: FORCE
	@$(script)/settings.sh $@ '$(DEMO_KEY)' $(DEMO)

$(DEMO)/all.counts: $(DEMO)/settings $(DATA) | $(DEMO_TOOLS)
ifeq ($(DATA),)
	$(call stage,scsim) $(BIN)/scsim -v --cells $(CELLS) --seed $(SEED) -@ $(THREADS) -o $@
else
	$(call stage,h5tok) $(BIN)/h5tok -v -@ $(THREADS) -o $@ $(DATA)
endif

$(DEMO)/cells.counts: $(DEMO)/all.counts
	$(call stage,scsample) $(BIN)/scsample -v $(if $(DATA),--where '$(LABEL)!=NA' $(if $(filter-out 0,$(CELLS)),-n $(CELLS))) \
		--seed $(SEED) -o $@ $<

$(DEMO)/group: $(DEMO)/cells.counts
	@$(script)/demo-group.sh '$(GROUP)' $< > $@

# All rules are static pattern rules, so make does not delete their files as intermediate.
$(DEMO)/train.counts $(DEMO)/test.counts: $(DEMO)/%.counts: $(DEMO)/cells.counts $(DEMO)/group
	$(call stage,scsample-$*) $(PIPELINES)/split.sh $* 0.25 $(DEMO)/group $< $@ $(SEED)

$(DEMO)/vocab.tsv: $(DEMO)/train.counts
	$(call stage,rankenc-fit) $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
$(DEMO)/train.tok $(DEMO)/test.tok: $(DEMO)/%.tok: $(DEMO)/%.counts $(DEMO)/vocab.tsv
	$(call stage,rankenc-$*) $(BIN)/rankenc -v -m $(DEMO)/vocab.tsv --max-len $(MAXLEN) -@ $(THREADS) -o $@ $<

$(DEMO)/train.graph: $(DEMO)/train.tok
	$(call stage,depgraph) $(PIPELINES)/demo-graph.sh $< $@ --seed $(SEED) -@ $(THREADS)

# Two models, and the same held-out masks for both
DEMO_MODELS := random corrmask
masks_random := --strategy random --rate 0.15 --batch $(BATCH) --seed $(SEED)
masks_corrmask := --strategy corrmask --lambda 0.5 --rate 0.15 --batch $(BATCH) --seed $(SEED) -g $(DEMO)/train.graph

$(DEMO_MODELS:%=$(DEMO)/heldout-%.masked): $(DEMO)/heldout-%.masked: $(DEMO)/test.tok $(DEMO)/train.graph
	$(call stage,maskgen-heldout-$*) $(BIN)/maskgen -v $(masks_$*) -o $@ $<

$(DEMO_MODELS:%=$(DEMO)/%.model/model.safetensors): $(DEMO)/%.model/model.safetensors: $(DEMO)/train.tok $(DEMO)/train.graph
	$(call stage,sctrain-$*) $(PIPELINES)/train.sh mlm $(DEMO)/$*.model $< $(masks_$*) --epochs $(EPOCHS) -- \
		--config $(CONFIG) --lr $(LR) --seed $(SEED) -@ $(THREADS)

define demo_model
$$(DEMO_MODELS:%=$$(DEMO)/$1.loss-%.tsv): $$(DEMO)/$1.loss-%.tsv: $$(DEMO)/heldout-%.masked $$(DEMO)/$1.model/model.safetensors
	$$(call stage,eval-$1-$$*) $$(BIN)/sctrain eval -v -M $$(DEMO)/$1.model -@ $$(THREADS) -o $$@ $$<
$$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb: $$(DEMO)/$1.%.emb: $$(DEMO)/%.tok $$(DEMO)/$1.model/model.safetensors
	$$(call stage,scembed-$1-$$*) $$(BIN)/scembed -v -M $$(DEMO)/$1.model -@ $$(THREADS) -o $$@ $$<
$$(DEMO)/$1.probe.tsv: $$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb
	$$(call stage,ctaprobe-$1) $$(BIN)/ctaprobe cells -v --label $$(LABEL) --standardize \
		--train $$(DEMO)/$1.train.emb --test $$(DEMO)/$1.test.emb -@ $$(THREADS) -o $$@
endef
$(foreach m,$(DEMO_MODELS),$(eval $(call demo_model,$m)))

DEMO_SCORES := $(foreach m,$(DEMO_MODELS),$(DEMO)/$m.loss-random.tsv $(DEMO)/$m.loss-corrmask.tsv $(DEMO)/$m.probe.tsv)
$(DEMO)/report.txt: $(DEMO_SCORES) $(PIPELINES)/demo-report.sh
	@$(PIPELINES)/demo-report.sh $(DEMO) '$(DATA)' '$(LABEL)' '$(CELLS)' > $@
$(DEMO)/demo.svg $(DEMO)/demo.png &: $(DEMO_SCORES) $(PIPELINES)/demo.gp
	@$(PIPELINES)/demo-plot.sh $(DEMO)

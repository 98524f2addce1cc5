# make demo: from cells to cell-type scores, random masks beside CorrMask's.
#
#     make demo                                  simulated cells with known modules and cell types
#     make demo DATA=lung.h5ad LABEL=cell_type   the same on your file
#
# LABEL   obs column with the cell type           GROUP  obs column to split by (donor); auto finds one, none splits by cell
# CELLS   cells to use, 0 takes all               EPOCHS, BATCH, CONFIG, LR   of the pre-training
# SCALE   tiny, small (default) or paper: the defaults of those, and of MAXLEN; paper has the values of the paper's Table 5
# Every stage is a file under demo/NAME, so a second run does nothing and an interrupted one goes on where it stopped; other
# settings start afresh.
# The logs (demo/NAME/log) hold what every stage said, with its time and peak memory.

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
# $(call stage,NAME): run what follows with its messages in the log, and show them if it fails
stage = @echo '  $1'; mkdir -p $(DEMO)/log; run() { "$$@" 2>$(DEMO)/log/$1.log || { cat $(DEMO)/log/$1.log >&2; return 1; }; };

.PHONY: demo

demo: $(DEMO)/report.txt $(DEMO)/demo.svg $(DEMO)/demo.png ## pre-train with random and CorrMask masks, compare (DATA= LABEL= CELLS=)
	@cat $(DEMO)/report.txt

$(DEMO)/settings: FORCE
	@echo '$(DEMO_KEY)' | cmp -s - $@ || { rm -rf $(DEMO); mkdir -p $(DEMO); echo '$(DEMO_KEY)' > $@; }

$(DEMO)/all.counts: $(DEMO)/settings $(DATA) | $(DEMO_TOOLS)
ifeq ($(DATA),)
	$(call stage,scsim) run $(BIN)/scsim -v --cells $(CELLS) --seed $(SEED) -@ $(THREADS) -o $@
else
	$(call stage,h5tok) run $(BIN)/h5tok -v -@ $(THREADS) -o $@ $(DATA)
endif

$(DEMO)/cells.counts: $(DEMO)/all.counts
	$(call stage,scsample) run $(BIN)/scsample -v $(if $(DATA),--where '$(LABEL)!=NA' $(if $(filter-out 0,$(CELLS)),-n $(CELLS))) --seed $(SEED) -o $@ $<

$(DEMO)/group: $(DEMO)/cells.counts
	@$(PIPELINES)/demo-group.sh $(BIN)/scview '$(GROUP)' $< > $@

# Static pattern rules throughout: make deletes no file of theirs as intermediate
$(DEMO)/train.counts $(DEMO)/test.counts: $(DEMO)/%.counts: $(DEMO)/cells.counts $(DEMO)/group
	$(call stage,scsample-$*) run $(BIN)/scsample -v --test-fraction 0.25 $$(cat $(DEMO)/group) --part $* --seed $(SEED) -o $@ $<

$(DEMO)/vocab.tsv: $(DEMO)/train.counts
	$(call stage,rankenc-fit) run $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
$(DEMO)/train.tok $(DEMO)/test.tok: $(DEMO)/%.tok: $(DEMO)/%.counts $(DEMO)/vocab.tsv
	$(call stage,rankenc-$*) run $(BIN)/rankenc -v -m $(DEMO)/vocab.tsv --max-len $(MAXLEN) -@ $(THREADS) -o $@ $<

# $(call rows,FILE): its number of cells
rows = $$($(BIN)/scview -s $1 | awk -F '\t' '$$2 == "rows" { print $$3; exit }')
# The paper's 200 cells that hold both genes of an edge are out of 100,000: a twentieth of a small corpus instead, from 10
demo_overlap = $$(n=$$(( $(call rows,$1) / 20 )); echo $$((n < 10 ? 10 : n > 200 ? 200 : n)))
$(DEMO)/train.graph: $(DEMO)/train.tok
	$(call stage,depgraph) run $(BIN)/depgraph -v --min-overlap $(call demo_overlap,$<) --seed $(SEED) -@ $(THREADS) -o $@ $<

# Two models, and the same held-out masks for both
DEMO_MODELS := random corrmask
masks_random := --strategy random --rate 0.15 --batch $(BATCH) --seed $(SEED)
masks_corrmask := --strategy corrmask --lambda 0.5 --rate 0.15 --batch $(BATCH) --seed $(SEED) -g $(DEMO)/train.graph

$(DEMO_MODELS:%=$(DEMO)/heldout-%.masked): $(DEMO)/heldout-%.masked: $(DEMO)/test.tok $(DEMO)/train.graph
	$(call stage,maskgen-heldout-$*) run $(BIN)/maskgen -v $(masks_$*) -o $@ $<

# A finished model whose rule runs was trained on other cells
go_on = $(if $(wildcard $1/model.safetensors),--force,--resume)
$(DEMO_MODELS:%=$(DEMO)/%.model/model.safetensors): $(DEMO)/%.model/model.safetensors: $(DEMO)/train.tok $(DEMO)/train.graph
	$(call stage,sctrain-$*) $(BIN)/maskgen $(masks_$*) --epochs $(EPOCHS) -u $< | \
		run $(BIN)/sctrain mlm -v --config $(CONFIG) --lr $(LR) --save-every 200 $(call go_on,$(DEMO)/$*.model) --seed $(SEED) -@ $(THREADS) -o $(DEMO)/$*.model

define demo_model
$$(DEMO_MODELS:%=$$(DEMO)/$1.loss-%.tsv): $$(DEMO)/$1.loss-%.tsv: $$(DEMO)/heldout-%.masked $$(DEMO)/$1.model/model.safetensors
	$$(call stage,eval-$1-$$*) run $$(BIN)/sctrain eval -v -M $$(DEMO)/$1.model -@ $$(THREADS) -o $$@ $$<
$$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb: $$(DEMO)/$1.%.emb: $$(DEMO)/%.tok $$(DEMO)/$1.model/model.safetensors
	$$(call stage,scembed-$1-$$*) run $$(BIN)/scembed -v -M $$(DEMO)/$1.model -@ $$(THREADS) -o $$@ $$<
$$(DEMO)/$1.probe.tsv: $$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb
	$$(call stage,ctaprobe-$1) run $$(BIN)/ctaprobe cells -v --label $$(LABEL) --standardize --train $$(DEMO)/$1.train.emb --test $$(DEMO)/$1.test.emb -@ $$(THREADS) -o $$@
endef
$(foreach m,$(DEMO_MODELS),$(eval $(call demo_model,$m)))

DEMO_SCORES := $(foreach m,$(DEMO_MODELS),$(DEMO)/$m.loss-random.tsv $(DEMO)/$m.loss-corrmask.tsv $(DEMO)/$m.probe.tsv)
$(DEMO)/report.txt: $(DEMO_SCORES) $(PIPELINES)/demo-report.sh
	@$(PIPELINES)/demo-report.sh $(DEMO) '$(DATA)' '$(LABEL)' '$(CELLS)' > $@
$(DEMO)/demo.svg $(DEMO)/demo.png &: $(DEMO_SCORES) $(PIPELINES)/demo.gp
	@$(PIPELINES)/demo-plot.sh $(DEMO)

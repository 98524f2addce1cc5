# make ties: does a network learn something else if the sort order of the tokens tells it less?
#
#     make ties                                          simulated cells, new ones for every seed
#     make ties DATA=lung.h5ad GENES=800 MAXLEN=128      your file
#
# Among genes of equal count, the rank value encoding sorts by the genes' medians, so the neighbours of a masked gene tell which gene it is,
# without any biology (scmetric reference). An arm is an encoding and masks, ENCODING-MASKS:
#
#     median-random, median-corrmask   the encoding as it is
#     random-random, random-corrmask   genes of equal count in random order, a new one every epoch (rankenc --ties random)
#     group-random, group-corrmask     genes of equal count share a position (rankenc --ties group)
#     median-runs                      the encoding as it is; masks over runs of genes of equal count (maskgen --strategy runs)
#     value-random, value-corrmask     the value of a masked gene is predicted, not the gene (maskgen --objective value)
#
# median-corrmask+PART, CorrMask with another setting of the masks or of the graph; its probes are those of the default graph, as the others':
#
#     +partnersN     most partners masked with a start gene (maskgen --partners-max; default 5)
#     +seedsN        percentage of the start genes that are masked, too (--seed-share; 100)
#     +rhoN          least correlation of an edge, in hundredths (depgraph --rho-min; 20)
#     +overlapN      cells that both genes need (--min-overlap; a twentieth of the cells)
#     +candidatesN   candidates of a gene (--candidates; 50)
#     +cellsN        cells that the graph is from (-n; all)
#
# make sweep compares these settings with the default one.
#
# Also those of reliance.mk
# ARMS  arms; the others are compared with the first one
# SETS  instead of DATA: table of several sets, columns set (a name), DATA, LABEL and other variables: each by itself, then all compared
# FEW  labels a class of the probe with few labels
# KEEP_MODELS  1 keeps the models; 0 removes a model after it is scored
# SEEDS are 1 to 8 by default (SCALE=tiny: 1 2). A seed determines the split (without DATA also the cells), the masks, the order, the initial weights
# and dropout. All arms of a seed have the same cells, vocabulary and graph, so differences are paired by seed.
# Cells are those of cells.mk and trainings those of pretrained.mk. A model is measured on the test cells, and then removed; pipelines/arm.sh makes one run by hand. More arms or seeds add runs to the same folder and keep those that are done. Without
# -j, make runs as many trainings side by side as there are cores.

own_sweep_ARMS := median-corrmask median-random $(addprefix median-corrmask+,partners1 partners15 seeds0 rho10 rho40 overlap10 overlap200 candidates10 cells300)
$(eval $(call own,sweep,ARMS,ties))
ARMS ?= median-random median-corrmask random-random random-corrmask group-random group-corrmask median-runs value-random value-corrmask
FEW  ?= 5
TIES_SEEDS := $(or $(SEEDS),$(call scale,1 2,1 2 3 4 5 6 7 8,1 2 3 4 5 6 7 8))

TIES_SETTINGS := $(PRETRAINED_SETTINGS) PROBES FEW
$(eval $(call run_folder,TIES,ties,$(TIES_SETTINGS)))

.PHONY: ties-now
sweep: ##@ settings of CorrMask's masks and graph, each beside the default (DATA= LABEL= ARMS= SEEDS=)
ties: ##@ does a model learn something else if the sort order tells it less? (DATA= LABEL= ARMS= SEEDS=)
$(call check,ties,DATA)
$(call check_arms,ties,ties,ARMS)
$(eval $(call page,ties,$(TIES),$(TIES)/table.txt $(TIES)/ties.svg))

# A split has a folder of its own; * is its seed.
ties_each = $(TIES_SEEDS:%=$(TIES)/split-%/$1)
ifeq ($(value DATA),)
$(call ties_each,cells.counts): $(TIES)/split-%/cells.counts: | $(TIES)/settings
	@mkdir -p $(@D)
	$(call TIES_stage,scsim-$*) $(BIN)/scsim -v $(SIM) --cells $(CELLS) --seed $* -@ $(job_threads) -o $@
ties_cells = $(TIES)/split-%/cells.counts
else
ties_cells = $(PREPARED)/cells.counts
endif
define ties_part
$(call ties_each,$1.counts): $(TIES)/split-%/$1.counts: $(ties_cells) $(PREPARED)/group | $(TIES)/settings
	@mkdir -p $$(@D)
	$$(call TIES_stage,scsample-$1-$$*) $$(PIPELINES)/split.sh $1 0.25 $$(PREPARED)/group $$< $$@ $$*
endef
$(foreach p,train test,$(eval $(call ties_part,$p)))
$(call ties_each,vocab.tsv): %/vocab.tsv: %/train.counts
	$(call TIES_stage,rankenc-fit-$(notdir $*)) $(BIN)/rankenc -v --fit -o $@ $<

ties_encode_random := --ties random
ties_encode_group := --ties group
ties_encode_value := --ties group --value
# $1: encoding, $2: train or test
define ties_tokens
$(call ties_each,$1.$2.tok): %/$1.$2.tok: %/$2.counts %/vocab.tsv
	$$(call TIES_stage,rankenc-$1-$2-$$(notdir $$*)) $$(BIN)/rankenc -v -m $$*/vocab.tsv --max-len $$(MAXLEN) $(ties_encode_$1) -@ $$(job_threads) -o $$@ $$<
endef
$(foreach e,median random group value,$(foreach p,train test,$(eval $(call ties_tokens,$e,$p))))
$(call ties_each,graph): %/graph: %/median.train.tok
	$(call TIES_stage,depgraph-$(notdir $*)) $(PIPELINES)/graph.sh $< $@ -@ $(job_threads)

# What the models are measured on: random masks, and probes of partner reliance
ties_measure_test := --strategy random --rate 0.15
ties_measure_hidden = --strategy probe --partners hidden --epochs $(PROBES) -g $$*/graph
ties_measure_visible = --strategy probe --partners visible --epochs $(PROBES) -g $$*/graph
ties_objective_value := --objective value
# $1: encoding, $2: test, hidden or visible
define ties_masks
$(call ties_each,$1.$2.masked): %/$1.$2.masked: %/$1.test.tok %/graph
	$$(call TIES_stage,maskgen-$1-$2-$$(notdir $$*)) $$(BIN)/maskgen -v $(ties_measure_$2) $(ties_objective_$1) --seed $$(subst split-,,$$(notdir $$*)) -@ $$(job_threads) -o $$@ $$<
endef
$(foreach e,median random group value,$(foreach m,test hidden visible,$(eval $(call ties_masks,$e,$m))))

# Tables that know no biology, on the same masked genes
$(foreach e,median random group value,$(call ties_each,$e.reference.tsv)): %.reference.tsv: %.train.tok %.test.masked %.hidden.masked %.visible.masked \
		$(PIPELINES)/reference.sh
	@$(job) $(script)/reference.sh $< 1 $(filter %.masked,$^) $(whole)

# A run makes all its stages before the next one begins, so an interrupted grid has complete runs.
TIES_OTHER := expression pca naive-bayes untrained
ties_encoding = $(if $(filter $(TIES_OTHER),$1),median,$(firstword $(subst -, ,$1)))
ties_needs = $(if $(filter expression pca naive-bayes,$1),train.counts test.counts,$(foreach f,train.tok test.tok test.masked hidden.masked visible.masked,$(call \
	ties_encoding,$1).$f) graph $(if $(filter median-runs,$1),random.train.tok))
TIES_RUN = $(PIPELINES)/arm.sh ties --logs $(TIES)/log --label $(call text,LABEL) --config $(CONFIG) --epochs $(EPOCHS) --batch $(BATCH) --lr $(LR) \
	--pt-args $(call text,PT_ARGS) --few $(FEW) --threads $(job_threads) --keep-models $(KEEP_MODELS)
define ties_rule
$(TIES_SEEDS:%=$(TIES)/runs/$1-%/scores.tsv): $(TIES)/runs/$1-%/scores.tsv: $(foreach f,$(call ties_needs,$1),$(TIES)/split-%/$f)
	@$$(job) BIN=$$(BIN) $$(TIES_RUN) --inputs $(TIES)/split-$$* --arm $1 --seed $$* --out $$(@D)
endef
$(foreach a,$(TIES_OTHER) $(ARMS),$(eval $(call ties_rule,$a)))
TIES_RUNS := $(foreach k,$(TIES_SEEDS),$(foreach a,$(TIES_OTHER) $(ARMS),$(TIES)/runs/$a-$k/scores.tsv))
$(call with_jobs,ties,$(words $(TIES_RUNS)))
TIES_REFERENCES := $(foreach k,$(TIES_SEEDS),$(foreach e,$(sort $(foreach a,$(ARMS),$(call ties_encoding,$a))),$(TIES)/split-$k/$e.reference.tsv))

$(eval $(call commands,ties,$(TIES_RUNS),$(foreach k,$(TIES_SEEDS),$(addprefix $(TIES)/split-$k/,$(sort $(foreach a,$(TIES_OTHER) $(ARMS),$(call ties_needs,$a)))))))

$(eval $(call grid,$(TIES),$(ARMS); $(TIES_SEEDS)))
ties_table = $(table) ties/table $(TIES) '$(ARMS)' '$(TIES_SEEDS)' $(call text,DATA) $(call text,LABEL) $(FEW) $(call quote,$(pretrained_how)) $(PREPARED)
$(TIES)/table.txt: $(TIES_RUNS) $(TIES_REFERENCES) $(TIES)/grid $(PIPELINES)/ties/table.py
	@$(ties_table) $(whole)
ties-now: ##@ the table of make ties from the finished runs
	$(call some_done,$(TIES))
	@$(ties_table)

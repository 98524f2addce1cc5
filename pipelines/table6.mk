# make table6: cell types after pre-training under each masking strategy on more and more cells (the CorrMask paper's Table 6 and its
# figures 5 and 6).
#
#     make -j2 table6                                      simulated cells
#     make -j2 table6 DATA=lung.h5ad LABEL=cell_type       the same on your file
#     make -j2 table6 STRATEGIES="random corrmask corrmask-100" SIZES=1 SEEDS="1 2 3 4 5"      such as the paper's Table 2
#
# STRATEGIES  random, bernoulli, pmi, pmi-rand, corrmask, corrmask-100; the first is what the others are held against
# SIZES       corpora to pre-train on: numbers of training cells, or shares of them (at most 1), each within the next larger
# SEEDS       of masks, order, initial weights and dropout, in both trainings; the split and the corpora are always those of SEED
# LABELLED    training cells to fine-tune on (a fifth of them to say when to stop); 0: all
# SCALE       tiny: a minute; small: half an hour on 2 cores; paper: the paper's network, epochs and rates, on all cells of DATA
# DEVICE      as --device of sctrain(1)
# KEEP_MODELS 1 keeps models, each removed otherwise once it is scored
# Cells are read, sampled and split as by make demo, with its settings, but EPOCHS is 3; fine-tuning is that of make finetune. Each graph is
# of its corpus alone. A model is scored on the held-out cells twice: fine-tuned, and as it is by a linear probe that learns from all training cells.
# Every stage is a file under results/table6/NAME; more strategies, sizes or seeds add to what is there.
#
# Elsewhere, such as on a GPU in a bare container: make table6-inputs makes results/table6/NAME/inputs; there,
# make table6 INPUTS=results/table6/NAME goes on from them with maskgen, sctrain, scembed, ctaprobe and gnuplot (table6-runs: without). It
# takes the settings of the networks again. tests/bench/gpu_experiments.sh does it within a time limit.

STRATEGIES  ?= random pmi pmi-rand corrmask
INPUTS      ?=
DEVICE      ?=
KEEP_MODELS ?= 0
LABELLED    ?= $(call scale,150,600,0)
T6_SIZES := $(or $(SIZES),$(call scale,0.3 1,0.1 0.3 1,0.03 0.1 0.3 1))
T6_SEEDS := $(or $(SEEDS),$(call scale,1 2,1 2 3,1 2 3))

T6 := $(if $(INPUTS),$(INPUTS:/=),results/table6/$(notdir $(DEMO)))
T6_IN := $(T6)/inputs
ifneq ($(INPUTS),)
LABEL := $(shell cat $(T6_IN)/label)
endif
# EPOCHS has the demo's default, unless somebody set it
T6_EPOCHS := $(if $(filter file,$(origin EPOCHS)),$(call scale,1,3,3),$(EPOCHS))
T6_HOW := $(LABEL); $(CONFIG), $(T6_EPOCHS) epochs of batches of $(BATCH), rate $(LR); fine-tuning: at most $(FT_EPOCHS) epochs of batches of $(FT_BATCH), rate $(FT_LR) $(FT_ARGS)
T6_TOOLS := $(addprefix $(BIN)/,maskgen sctrain scembed ctaprobe)
t6_stage = $(subst $(DEMO)/log,$(T6)/log,$(call stage,$1))
# With -jN, that many trainings share the threads
t6_threads = $(shell n=$$(( $(THREADS) / $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),1) )); echo $$((n > 0 ? n : 1)))
t6_compute = -@ $(t6_threads) $(if $(DEVICE),--device $(DEVICE))

.PHONY: table6 table6-now table6-inputs table6-runs table6-list
table6: $(T6)/table.txt $(T6)/table6.svg $(T6)/table6.png ## table 6: cell types by masking strategy and corpus size (DATA= LABEL= SCALE= STRATEGIES= SIZES= SEEDS=)
	@cat $<

ifeq ($(INPUTS),)
# Copies, made anew when their content is: what other targets do with the demo's files must not undo a long grid
$(T6_IN)/ready: $(DEMO)/train.tok $(DEMO)/test.tok $(DEMO)/group FORCE
	@mkdir -p $(@D); { echo '$(LABEL) $(LABELLED) $(SEED)'; cat $(filter-out FORCE,$^) | cksum; } > $@.new; if cmp -s $@.new $@; then rm $@.new; else \
		cp $< $(@D)/learn.tok && cp $(DEMO)/test.tok $(DEMO)/group $(@D) && echo '$(LABEL)' > $(@D)/label && mv $@.new $@ && touch $(@D)/learn.tok $(@D)/group; fi
$(T6_IN)/group: $(T6_IN)/ready ;

# $(call t6_sample,WANTED,OUT): a number or a share of the training cells
t6_sample = all=$(call rows,$(T6_IN)/learn.tok); case $1 in \
		0 | 1) ln -sf learn.tok $2 ;; \
		0.* | .*) run $(BIN)/scsample -v -f $1 --seed $(SEED) -o $2 $(T6_IN)/learn.tok ;; \
		*) [ $1 -le $$all ] || { echo "table6: $1 cells wanted, there are $$all to train on" >&2; exit 1; }; \
			run $(BIN)/scsample -v -n $1 --seed $(SEED) -o $2 $(T6_IN)/learn.tok ;; esac
$(T6_IN)/labelled.tok: $(T6_IN)/ready
	$(call t6_stage,scsample-labelled) $(call t6_sample,$(LABELLED),$@)
$(eval $(call ft_split,$(T6_IN),$(T6_IN)/labelled.tok,$(T6_IN)/group,t6_stage))

$(T6_SIZES:%=$(T6_IN)/corpus-%.tok): $(T6_IN)/corpus-%.tok: $(T6_IN)/ready
	$(call t6_stage,scsample-$*) $(call t6_sample,$*,$@) && echo $(call rows,$@) > $(@D)/corpus-$*.cells
$(T6_IN)/corpus-0.tok: $(T6_IN)/ready
	$(call t6_stage,scsample-0) run $(BIN)/scsample -v -n $(BATCH) --seed $(SEED) -o $@ $(@D)/learn.tok
$(T6_SIZES:%=$(T6_IN)/corrmask-%.graph): $(T6_IN)/corrmask-%.graph: $(T6_IN)/corpus-%.tok
	$(call t6_stage,depgraph-$*) run $(BIN)/depgraph -v --min-overlap $(call demo_overlap,$<) --seed $(SEED) -@ $(t6_threads) -o $@ $<
$(T6_SIZES:%=$(T6_IN)/pmi-%.graph): $(T6_IN)/pmi-%.graph: $(T6_IN)/corpus-%.tok
	$(call t6_stage,depgraph-pmi-$*) run $(BIN)/depgraph -v --pmi --seed $(SEED) -@ $(t6_threads) -o $@ $<
t6_edges = $$($(BIN)/depgraph -q --stats $1 | awk -F '\t' '$$1 == "edges" { print $$2 }')
$(T6_IN)/about: $(T6_IN)/train.tok $(T6_IN)/valid.masked $(T6_IN)/corpus-0.tok $(foreach z,$(T6_SIZES),$(T6_IN)/corrmask-$z.graph $(T6_IN)/pmi-$z.graph)
	@{ echo "$(or $(DATA),simulated cells (scsim)): $(call rows,$(T6_IN)/learn.tok) cells to train, $(call rows,$(T6_IN)/test.tok) held out$$(sed 's/^--by /, split by /' $(T6_IN)/group)"; \
		echo "fine-tuning learns from $(call rows,$(T6_IN)/train.tok) labelled cells, $(call rows,$(T6_IN)/valid.tok) more say when to stop"; \
		$(foreach z,$(T6_SIZES),echo "graphs of $$(cat $(T6_IN)/corpus-$z.cells) cells: $(call t6_edges,$(T6_IN)/corrmask-$z.graph) edges, PMI $(call t6_edges,$(T6_IN)/pmi-$z.graph)";) } > $@
endif
table6-inputs: $(T6_IN)/about ## what table6 trains on, to carry to another machine
	@echo $(T6_IN)

$(T6)/settings: $(T6_IN)/ready FORCE
	@{ echo '$(T6_HOW)'; cat $<; } | cmp -s - $@ || { rm -rf $(T6)/runs; { echo '$(T6_HOW)'; cat $<; } > $@; }

t6_graph = $(if $(filter pmi%,$1),$(T6_IN)/pmi-$2.graph,$(if $(filter corrmask%,$1),$(T6_IN)/corrmask-$2.graph))
t6_masks_random := --strategy random
t6_masks_bernoulli := --strategy random --bernoulli
t6_masks_pmi := --strategy pmi
t6_masks_pmi-rand := --strategy pmi-rand
t6_masks_corrmask := --strategy corrmask --lambda 0.5
t6_masks_corrmask-100 := --strategy corrmask --lambda 1
$(foreach s,$(STRATEGIES),$(if $(t6_masks_$s),,$(error table6: STRATEGIES: no '$s' (random, bernoulli, pmi, pmi-rand, corrmask, corrmask-100))))

# One run is a folder: STRATEGY-SIZE-SEED, and scratch-0-SEED, a network with random weights: a step on few cells at rate 0
T6_SCORES := $(foreach k,$(T6_SEEDS),$(T6)/runs/scratch-0-$k/scores.tsv $(foreach z,$(T6_SIZES),$(STRATEGIES:%=$(T6)/runs/%-$z-$k/scores.tsv)))
table6-runs: $(T6_SCORES)
table6-list:
	@printf '%s\n' $(T6_SCORES)

# A run goes through all its stages before the next begins, so that a grid cut short has whole runs; one that was cut goes on.
# $1 strategy, $2 size, $3 epochs, $4 rate; * is the seed
define t6_rule
$(T6_SEEDS:%=$(T6)/runs/$1-$2-%/scores.tsv): $(T6)/runs/$1-$2-%/scores.tsv: $(T6)/settings $(T6_IN)/corpus-$2.tok $(call t6_graph,$1,$2) | $(T6_IN)/about $(T6_TOOLS)
	@mkdir -p $$(@D)
	$$(call t6_stage,pretrain-$1-$2-$$*) $(BIN)/maskgen $(t6_masks_$1) $(addprefix -g ,$(call t6_graph,$1,$2)) --rate 0.15 --batch $(BATCH) --epochs $3 --seed $$* -u $(T6_IN)/corpus-$2.tok | \
		run $(BIN)/sctrain mlm -v --config $(CONFIG) --lr $4 --save-every 200 --resume --seed $$* $$(t6_compute) -o $$(@D)/model
	@cp $$(@D)/model/train.tsv $$(@D)/pretrain.tsv
	$$(call t6_stage,probe-$1-$2-$$*) for part in learn test; do $(BIN)/scembed -q -M $$(@D)/model $$(t6_compute) -o $$(@D)/$$$$part.emb $(T6_IN)/$$$$part.tok || exit 1; done; \
		run $(BIN)/ctaprobe cells -v --label '$(LABEL)' --standardize --train $$(@D)/learn.emb --test $$(@D)/test.emb -@ $$(t6_threads) -o $$(@D)/probe.score.tsv
	$$(call t6_stage,finetune-$1-$2-$$*) $$(call fine_tune,$(T6_IN)/train.tok,$(T6_IN)/valid.masked,--init $$(@D)/model $(if $(DEVICE),--device $(DEVICE)),$$*,$$(t6_threads),$$(@D)/cells)
	@cp $$(@D)/cells/train.tsv $$(@D)/finetune.tsv
	$$(call t6_stage,score-$1-$2-$$*) $(BIN)/scembed --predict -q -M $$(@D)/cells $$(t6_compute) -u $(T6_IN)/test.tok | \
		run $(BIN)/ctaprobe score -v --label '$(LABEL)' --train $(T6_IN)/train.tok -o $$(@D)/finetune.score.tsv
	@cd $$(@D) && for stage in finetune probe; do sed "1d; s/^/$$$$stage\t/" $$$$stage.score.tsv; done > scores.tsv
	$(if $(filter 1,$(KEEP_MODELS)),,@rm -rf $$(addprefix $$(@D)/,model cells learn.emb test.emb))
endef
$(eval $(call t6_rule,scratch,0,1,0))
$(foreach s,$(STRATEGIES),$(foreach z,$(T6_SIZES),$(eval $(call t6_rule,$s,$z,$(T6_EPOCHS),$(LR)))))

# What changes when the table must be made anew though no run was
$(T6)/grid: $(T6)/settings FORCE
	@echo '$(STRATEGIES); $(T6_SIZES); $(T6_SEEDS)' | cmp -s - $@ || echo '$(STRATEGIES); $(T6_SIZES); $(T6_SEEDS)' > $@
t6_table = $(PIPELINES)/table6-table.sh $(T6) '$(STRATEGIES)' '$(T6_SIZES)' '$(T6_SEEDS)'
t6_plot = gnuplot -e "dir='$(T6)'; terminal='$1'; strategies='$(STRATEGIES)'" $(PIPELINES)/table6.gp 2>$(T6)/log/gnuplot-$1.log || { cat $(T6)/log/gnuplot-$1.log >&2; exit 1; }
$(T6)/table.txt: $(T6_SCORES) $(T6)/grid $(PIPELINES)/table6-table.sh $(PIPELINES)/stats.awk
	@$(t6_table) > $@
$(T6)/table6.svg $(T6)/table6.png: $(T6)/table6.%: $(T6)/table.txt $(PIPELINES)/table6.gp
	@$(call t6_plot,$*)
table6-now: ## table 6 from the runs that are done, others left out
	@$(t6_table)
	@! command -v gnuplot >/dev/null || { $(call t6_plot,svg); $(call t6_plot,png); }

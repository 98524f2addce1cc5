# make table6: classify cell types after pre-training with each masking strategy, on corpora of several sizes (the CorrMask paper's
# Table 6 and its figures 5 and 6; tables 2 and 7 and figure 7).
#
#     make -j2 table6                                      simulated cells
#     make -j2 table6 DATA=lung.h5ad LABEL=cell_type       the same on your file
#     make -j2 table6 DATA=lung.h5ad CORPUS=pan-cancer.h5ad PROTOCOL=paper          pre-trained on other cells
#
#     make -j2 table2 DATA=lung.h5ad                         random, PMI, PMI with random spans, CorrMask with lambda 1 and with 0.5
#     make -j2 table7 DATA=lung.h5ad CORPUS=pan-cancer.h5ad  pre-trained on other tissues
#     make -j2 fig7 DATA=lung.h5ad                           lambda 0 (random masks), 0.25, 0.5, 0.75, 1: the table and a figure
#
# table2, table7 and fig7 are the same runs, in the same folder, with other defaults of STRATEGIES; their SIZES is 1.
# Also those of finetune.mk
# STRATEGIES   random, bernoulli, pmi, pmi-rand, corrmask, corrmask-N (lambda is N percent), shuffled (CorrMask with a graph whose genes have
#              changed places: the same genes are masked more often, but not with their partners); the others are compared with the first one. r2mae_mlm.mk: suffixes for the rate
# SIZES        corpora to pre-train on: numbers of training cells, or shares of them up to 1; default: by SCALE, 0.1 0.3 1 for small
# SEEDS        seeds of masks, order, initial weights and dropout in both trainings; default: 1 2 3, with SCALE=tiny 1 2
# LABELLED     training cells to fine-tune on, a fifth of them for validation; 0: all
# DEVICE       as --device of sctrain(1)
# KEEP_MODELS  1 keeps the models; 0 removes a model after it is scored
# INPUTS       folder of table6-inputs, made on another machine
# SCALE=tiny takes a minute, small half an hour on 2 cores; paper has the paper's network, epochs and rates, on all cells of DATA. A corpus is
# part of the next larger one. SEED alone determines the split and the corpora.
# Cells are those of cells.mk. The pre-training has the settings of make demo, but EPOCHS is 3; fine-tuning is that of make finetune. Each
# graph is computed from its corpus alone. A model is scored on the test cells in two ways: after fine-tuning, and by a linear probe that is
# trained on the frozen embeddings of all training cells. pipelines/arm.sh makes one run by hand. Beside the probes, the table has three
# baselines without a network: logistic regression on log-normalised expression and on 50 principal components of all training cells, and naive
# Bayes of their counts, with intervals by a bootstrap of the donors of the test cells, or of cells if they are fewer than three.
# More strategies, sizes or seeds add trainings to the same folder and keep those that are done.
#
# To train on another machine, such as a container with a GPU: make table6-inputs makes a folder of inputs and prints its name. Copy it. On
# the other machine, make table6 INPUTS=FOLDER needs only maskgen, sctrain, scembed, scpredict, ctaprobe, armstat and python3 (table6-runs: no python3). Give the
# settings of the networks again. tests/bench/gpu_experiments.sh does this within a time limit.

own_table2_STRATEGIES := random pmi pmi-rand corrmask-100 corrmask
own_table7_STRATEGIES := random corrmask
own_fig7_STRATEGIES   := random corrmask-25 corrmask corrmask-75 corrmask-100
$(foreach t,table2 table7 fig7,$(eval own_$t_SIZES := 1))
STRATEGIES  ?= random pmi pmi-rand corrmask shuffled
SIZES       ?=
INPUTS      ?=
DEVICE      ?=
KEEP_MODELS ?= 0
LABELLED    ?= $(call scale,150,600,0)
T6_SIZES := $(or $(SIZES),$(call scale,0.3 1,0.1 0.3 1,0.03 0.1 0.3 1))
T6_SEEDS := $(or $(SEEDS),$(call scale,1 2,1 2 3,1 2 3))

# The inputs have a folder of their own: here by their settings, on another machine INPUTS
ifeq ($(INPUTS),)
T6_IN_SETTINGS := $(PREPARED_SETTINGS) LABELLED FT_BATCH
$(eval $(call run_folder,T6_IN,table6-inputs,$(T6_IN_SETTINGS)))
else
T6_IN := $(INPUTS:/=)
LABEL := $(shell sed -n 's/^LABEL = //p' $(T6_IN)/settings)
endif
# EPOCHS is the demo's default unless the user has set it.
T6_EPOCHS := $(if $(filter file,$(origin EPOCHS)),$(call scale,1,3,3),$(EPOCHS))
T6_SETTINGS := CONFIG T6_EPOCHS BATCH LR FT_EPOCHS FT_LR FT_ARGS $(if $(value PT_ARGS),PT_ARGS) $(ft_stop)
$(eval $(call run_folder,T6,table6,$(T6_IN_SETTINGS) $(T6_SETTINGS),$(INPUTS:%=@$(T6_IN)/settings)))
t6_threads = $(job_threads)

.PHONY: table6-now table6-inputs table6-runs table6-list
table6: ##@ table 6: cell types by masking strategy and corpus size (DATA= LABEL= SCALE= STRATEGIES= SIZES= SEEDS=)
$(call check,table6 table6-inputs table6-runs table2 table7 fig7,DATA CORPUS $(if $(value MEDIANS),MEDIANS TOKEN_TABLE GENE_NAMES))

table2: ##@ table 2: what each part of CorrMask gives (DATA= LABEL= SCALE= SEEDS=)
table7: ##@ table 7: cell types after pre-training on other tissues (DATA= CORPUS= LABEL= SCALE= SEEDS=)
fig7: ##@ figure 7: macro F1 by lambda (DATA= LABEL= SCALE= SEEDS=)
$(foreach t,table2 table7,$(eval $(call own,$t,STRATEGIES SIZES,table6)))
$(eval $(call own,fig7,STRATEGIES SIZES,table6 $(T6)/fig7.svg))
ifneq ($(filter table7,$(MAKECMDGOALS)),)
$(if $(value CORPUS),,$(error table7: CORPUS=FILE is needed: cells of other tissues to pre-train on))
endif
$(eval $(call page,table6,$(T6),$(T6)/table.txt $(T6)/table6.svg))

ifeq ($(INPUTS),)
# Copies that stay as they are, so that cells that are prepared again do not undo a long grid of trainings
$(T6_IN)/learn.tok: | $(T6_IN)/settings $(PREPARED)/train.tok
	@cp $(PREPARED)/train.tok $@
$(T6_IN)/test.tok $(T6_IN)/corpus.tok $(T6_IN)/group: $(T6_IN)/%: | $(T6_IN)/settings $(PREPARED)/%
	@cp $(PREPARED)/$* $@

$(T6_IN)/labelled.tok: $(T6_IN)/learn.tok
	$(call T6_IN_stage,scsample-labelled) $(PIPELINES)/step.sh table6/sample $(LABELLED) $< $@ $(SEED)
$(eval $(call ft_split,$(T6_IN),$(T6_IN)/labelled.tok,$(T6_IN)/group,T6_IN_stage))

$(T6_SIZES:%=$(T6_IN)/corpus-%.tok): $(T6_IN)/corpus-%.tok: $(T6_IN)/corpus.tok
	$(call T6_IN_stage,scsample-$*) $(PIPELINES)/step.sh table6/sample $* $< $@ $(SEED)
$(T6_IN)/corpus-0.tok: $(T6_IN)/learn.tok
	$(call T6_IN_stage,scsample-0) $(BIN)/scsample -v -n 12 --seed $(SEED) -o $@ $<
$(T6_SIZES:%=$(T6_IN)/corrmask-%.graph): $(T6_IN)/corrmask-%.graph: $(T6_IN)/corpus-%.tok
	$(call T6_IN_stage,depgraph-$*) $(PIPELINES)/graph.sh $< $@ --seed $(SEED) -@ $(t6_threads)
$(T6_SIZES:%=$(T6_IN)/shuffled-%.graph): $(T6_IN)/shuffled-%.graph: $(T6_IN)/corrmask-%.graph
	$(call T6_IN_stage,depgraph-shuffle-$*) $(BIN)/depgraph -v --shuffle --seed $(SEED) -@ $(t6_threads) -o $@ $<
$(T6_SIZES:%=$(T6_IN)/pmi-%.graph): $(T6_IN)/pmi-%.graph: $(T6_IN)/corpus-%.tok
	$(call T6_IN_stage,depgraph-pmi-$*) $(BIN)/depgraph -v --pmi --seed $(SEED) -@ $(t6_threads) -o $@ $<
# The scores without a network are inputs, as they need the counts.
T6_BASELINES := $(NO_NETWORK:%=$(T6_IN)/%.tsv)
$(T6_BASELINES): $(T6_IN)/%.tsv: | $(T6_IN)/settings $(PREPARED)/%.score.tsv
	@cp $(PREPARED)/$*.score.tsv $@
$(T6_IN)/about: $(T6_IN)/test.tok $(T6_IN)/train.tok $(T6_IN)/valid.masked $(T6_IN)/corpus-0.tok \
		$(foreach z,$(T6_SIZES),$(T6_IN)/corrmask-$z.graph $(T6_IN)/shuffled-$z.graph $(T6_IN)/pmi-$z.graph)
	@$(table) table6/about $(@D) $(call text,DATA) '$(T6_SIZES)' $(whole)
else
# A folder of inputs that an older version made has none.
T6_BASELINES := $(wildcard $(NO_NETWORK:%=$(T6_IN)/%.tsv))
endif
table6-inputs: $(T6_IN)/about $(T6_BASELINES) ##@ make the inputs of table6, to copy to another machine
	@echo $(T6_IN)

t6_graph = $(if $(filter pmi%,$1),$(T6_IN)/pmi-$2.graph,$(foreach g,corrmask shuffled,$(if $(filter $g%,$1),$(T6_IN)/$g-$2.graph)))
$(call check_arms,table6 table6-runs table2 table7 fig7 r2mae-mlm,table6,STRATEGIES)

# Each run has a folder STRATEGY-SIZE-SEED. scratch-0-SEED is a network with random weights: one step on few cells at learning rate 0.
T6_SCORES := $(foreach k,$(T6_SEEDS),$(T6)/runs/scratch-0-$k/scores.tsv \
	$(foreach z,$(T6_SIZES),$(STRATEGIES:%=$(T6)/runs/%-$z-$k/scores.tsv)))
table6-runs: $(T6_SCORES)
table6-list:
	@printf '%s\n' $(T6_SCORES)

# A run finishes all its stages before the next one begins, so an interrupted grid has complete runs. An interrupted run is continued.
T6_RUN = $(PIPELINES)/arm.sh table6 --inputs $(T6_IN) --logs $(T6)/log \
	--config $(CONFIG) --epochs $(T6_EPOCHS) --batch $(BATCH) --lr $(LR) \
	--pt-args $(call text,PT_ARGS) \
	--ft-epochs $(FT_EPOCHS) --ft-batch $(FT_BATCH) --ft-lr $(FT_LR) --ft-args $(call quote,$(FT_STOP) $(call given,FT_ARGS)) --threads $(t6_threads) \
	$(if $(DEVICE),--device $(DEVICE)) --keep-models $(KEEP_MODELS)
# $1 strategy, $2 size; * is the seed
define t6_rule
$(T6_SEEDS:%=$(T6)/runs/$1-$2-%/scores.tsv): $(T6)/runs/$1-$2-%/scores.tsv: \
		$(T6_IN)/corpus-$2.tok $(call t6_graph,$1,$2) | $(T6)/settings $(T6_IN)/about
	@$$(job) BIN=$$(BIN) $$(T6_RUN) --arm $1 --size $2 --seed $$* --out $$(@D)
endef
$(eval $(call t6_rule,scratch,0))
$(foreach s,$(STRATEGIES),$(foreach z,$(T6_SIZES),$(eval $(call t6_rule,$s,$z))))

$(eval $(call commands,table6,table6-runs,$(T6_IN)/about $(T6_BASELINES)))

$(eval $(call grid,$(T6),$(STRATEGIES); $(T6_SIZES); $(T6_SEEDS)))
t6_how = label $(LABEL); pre-training: $(CONFIG), $(call plural,$(T6_EPOCHS),epoch) of batches of $(BATCH), rate $(LR)$(PT_ARGS:%= %);\
 fine-tuning: at most $(call plural,$(FT_EPOCHS),epoch) of batches of $(FT_BATCH), rate $(FT_LR), $(FT_STOP)$(FT_ARGS:%= %)
t6_table = $(table) table6/table $(T6) $(T6_IN) '$(STRATEGIES)' '$(T6_SIZES)' '$(T6_SEEDS)' $(call quote,$(t6_how))
$(T6)/table.txt: $(T6_SCORES) $(T6_BASELINES) $(T6)/grid $(PIPELINES)/table6/table.py
	@$(t6_table) $(whole)
$(eval $(call figure,$(T6)/fig7,$(T6)/table.txt))
table6-now: ##@ table 6 from the finished runs
	$(call some_done,$(T6))
	@$(t6_table)
	@$(draw) table6 $(T6) $(call whole_to,$(T6)/table6.svg)

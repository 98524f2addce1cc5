# make pretrain: a network learns from your own cells. One command reads the files, holds out donors, builds the graph, trains, and writes a report.
#
#     make pretrain DATA=lung.h5ad HELD_OUT=donor                        the model is results/pretrain/latest/model
#     make pretrain DATA=atlas HELD_OUT=donor_id LABEL=cell_type         a folder of files
#     make pretrain DATA=atlas INIT=Geneformer/Geneformer-V1-10M         go on from a model
#     make pretrain                                                      three simulated files
#
# The same command goes on after a kill; a finished run only prints its report. Other settings or files are another run. Before the training it says how many cells,
# tokens and steps there are, and, by some first steps on this machine, how much time, memory and disk they will need.
# Files are read as by make corpus: those that are done are not read again. The graph, the medians and the weights come from the cells for training; the held-out ones
# validate (on random masks whatever STRATEGY is, so that runs can be compared) and are embedded.
# DATA      AnnData or 10x file, or several, a folder of .h5ad files and .zarr stores, or @LIST: the files that LIST names; also the corpus.txt of make corpus
# HELD_OUT  obs column, such as donor: whole donors are held out; none: single cells, which tells less
# HELD_OUT_SHARE  share of the cells to hold out
# LABEL     obs column with cell types, which some files may lack: then a linear probe is compared with baselines without a network
# WHERE     conditions on the cells, as for make corpus
# REFUSED   skip: leave out files that cannot be read
# VOCAB     vocabulary, folder of a model or of Geneformer's dictionaries, or its medians with TOKEN_TABLE; none: that of INIT, or learned from the cells for training
# TOKEN_TABLE  Geneformer's tokens, if VOCAB are its medians
# GENE_NAMES  table of name and gene id, if the files and VOCAB name genes differently
# INIT      folder of a model to go on from: sctrain's, or a Geneformer as it lies on the hub
# STRATEGY  of the masks: corrmask, random, pmi or pmi-rand
# RATE      masking rate; A:B draws one between these for each batch (R2MAE)
# MASK_ARGS  more options of maskgen, such as '--lambda 1'
# CONFIG    network: tiny, corrmask-paper or a config.json; default: tiny below 30,000 cells
# MAXLEN    maximum number of tokens per cell; default: 256 below 30,000 cells, else 2048
# EPOCHS    passes over the cells, if the validation does not end them; default: 6 below 30,000 cells, else 3
# BATCH     cells per batch of all ranks
# LR        peak learning rate; default: 0.003 for tiny, else 0.001; from INIT a tenth
# PATIENCE  stop after this many validations in a row without a better loss; 0: never. There are ten in a run
# PT_ARGS   more options of sctrain mlm, such as '--accum 4'
# PRECISION  float32 or bf16 (sctrain --precision)
# DEVICE    cpu or cuda (sctrain --device); default: a GPU if there is one
# RANKS     processes that train (mpirun; with CLUSTER=slurm srun), each with THREADS threads
# VALID_CELLS  maximum number of held-out cells for validation
# PROBE_CELLS  maximum number of cells of each part that are embedded, for map and probe
# H5TOK_ARGS  more options of h5tok, such as '--layer counts'
# RANK_ARGS  more options of rankenc, such as '--ties group'
# SEED      of the split, the masks, the order, the initial weights and dropout

own_pretrain_LABEL :=
own_pretrain_CONFIG := $(call scale,tiny,,corrmask-paper)
own_pretrain_MAXLEN := $(call scale,64,,2048)
own_pretrain_EPOCHS := $(call scale,1,,3)
own_pretrain_LR :=
own_pretrain_VOCAB :=
STRATEGY  ?= corrmask
RATE      ?=
MASK_ARGS ?=
PATIENCE  ?= 3
PRECISION ?=
RANKS     ?= 1
VALID_CELLS ?= 5000
PROBE_CELLS ?= 10000
$(eval $(call own,pretrain,LABEL CONFIG MAXLEN EPOCHS LR VOCAB))

pretrain: ## pre-train a network on your own cells: model, validation on held-out donors, embedding, report (DATA= HELD_OUT=)

# The files have a part in the name of the run, and none in that of the corpus, which grows with them.
ifeq ($(OWN),pretrain)
$(call stop,$(shell BIN=$(BIN) $(PIPELINES)/pretrain/check.sh $(call settings,DATA HELD_OUT HELD_OUT_SHARE LABEL STRATEGY RATE INIT VOCAB TOKEN_TABLE GENE_NAMES CONFIG PRECISION RANKS \
	BATCH EPOCHS MAXLEN PATIENCE VALID_CELLS PROBE_CELLS LR DEVICE CLUSTER) 2>&1))
$(call check,pretrain,GENE_NAMES)
ifeq ($(value DATA),)
PT_SIM := $(RESULTS)/pretrain-inputs/sim-$(SCALE)-$(SEED)
PT_FILES := $(foreach i,1 2 3,$(PT_SIM)/$i.h5ad)
pt_inputs :=
# One simulation, and two donors in each file: genes of two simulations would be in other modules
$(PT_SIM)/all.counts: | $(tools)
	@echo '  no DATA: simulated cells (scsim)'; mkdir -p $(@D)
	@$(BIN)/scsim -q $(SIM) --cells $(call scale,360,3000,30000) --donors 6 --seed $(SEED) -o $@
$(PT_FILES): $(PT_SIM)/%.h5ad: $(PT_SIM)/all.counts
	@$(BIN)/scsample -q -u --where donor=donor$$((2 * $* - 1)) --where donor=donor$$((2 * $*)) $< | $(BIN)/scview -q -O h5ad -o $@ -
else
PT_FILES = $(call given,DATA)
pt_inputs := $(shell BIN=$(BIN) $(PIPELINES)/step.sh pretrain/files_of $(call text,DATA))
endif
# The vocabulary and MAXLEN have none either: what they change is made again, file by file (corpus.sh)
pt_corpus = $(if $(value DATA),$(call quote,FILES=$(PT_FILES)),$(call settings,DATA SIM SCALE)) $(call settings,WHERE HELD_OUT HELD_OUT_SHARE LABEL PROBE_CELLS GENE_NAMES H5TOK_ARGS \
	RANK_ARGS SEED $(reading_settings))
PT_CORPUS := $(shell $(PIPELINES)/run.sh folder '$(RESULTS)/corpus' $(pt_corpus))
pt_settings = $(pt_corpus) $(call quote,INPUTS=$(pt_inputs)) $(call settings,VOCAB TOKEN_TABLE INIT REFUSED STRATEGY RATE MASK_ARGS CONFIG MAXLEN EPOCHS BATCH LR PATIENCE PT_ARGS PRECISION \
	DEVICE RANKS VALID_CELLS SCALE)
PT := $(shell $(PIPELINES)/run.sh folder '$(RESULTS)/pretrain' $(pt_settings))
pt_stage = $(call stage_in,$(PT),$1)
pt_trained := $(wildcard $(PT)/model/model.safetensors)
pt_done := $(wildcard $(PT)/losses.tsv)
$(call stop,$(if $(and $(pt_trained),$(wildcard $(BIN)/scview)),$(shell $(BIN)/scview -q --check $(PT)/model 2>&1 >/dev/null | sed 's|^scview: ||; s|$$|: remove \
	$(pt_trained), and the same command makes the model again from its newest checkpoint|')))
ifneq ($(wildcard $(PT)/report.html),)
$(info $(PT): finished, with the same settings and files: nothing to do)
endif

$(PT)/settings: FORCE | $(tools)
	@$(PIPELINES)/run.sh settings '$(RESULTS)/corpus' $(pt_corpus)
	@$(PIPELINES)/run.sh settings '$(RESULTS)/pretrain' $(pt_settings)

# Until the losses are measured, the corpus is looked at again: it may have been another one in between
$(PT)/train.txt: $(if $(pt_done),,FORCE) | $(PT)/settings $(if $(value DATA),,$(PT_FILES))
	@$(job) BIN=$(BIN) SCALE=$(SCALE) $(PIPELINES)/pretrain/inputs.sh $(PT) $(PT_CORPUS) --data $(call quote,$(PT_FILES)) --where $(call text,WHERE) --held-out $(call text,HELD_OUT) \
		--share $(call text,HELD_OUT_SHARE) --label $(call text,LABEL) --refused $(call text,REFUSED) --vocab $(call text,VOCAB) --token-table $(call text,TOKEN_TABLE) \
		--map $(call text,GENE_NAMES) --init $(call one_file,INIT) --config $(call text,CONFIG) --max-len $(call text,MAXLEN) --epochs $(call text,EPOCHS) --batch $(BATCH) \
		--lr $(call text,LR) --sample $(PROBE_CELLS) --h5tok-args $(reading_word) --rank-args $(call text,RANK_ARGS) --seed $(SEED) --threads $(THREADS)

pt_graph := $(PT)/$(if $(filter pmi%,$(STRATEGY)),pmi,dependency).graph
$(PT)/dependency.graph $(PT)/pmi.graph: $(PT)/train.txt
	$(call pt_stage,depgraph) $(PIPELINES)/step.sh pretrain/graph $(PT) $@ --seed $(SEED) -@ $(THREADS)
$(PT)/few.tok $(PT)/known.tok $(PT)/test.tok $(PT)/valid.masked: $(PT)/%: $(PT)/train.txt
	$(call pt_stage,cells-$*) $(PIPELINES)/step.sh pretrain/sample $(PT) $@ $(VALID_CELLS) $(PROBE_CELLS) $(BATCH) $(SEED)

PT_INPUTS := $(if $(filter random,$(STRATEGY)),,$(pt_graph)) $(addprefix $(PT)/,valid.masked test.tok few.tok $(if $(value LABEL),known.tok) train.txt)
pt_train = env RANKS=$(RANKS) CLUSTER=$(CLUSTER) CLUSTER_MEMORY=$(MEMORY) $(PIPELINES)/pretrain/train.sh $(PT) $1 --strategy $(STRATEGY) --graph '$(filter %.graph,$(PT_INPUTS))' --rate $(call text,RATE) \
	--mask-args $(call text,MASK_ARGS) --batch $(BATCH) --patience $(PATIENCE) --pt-args $(call text,PT_ARGS) --precision $(call text,PRECISION) --device $(call text,DEVICE) \
	--seed $(SEED) --threads $(THREADS)
# The first steps, with a learning rate of 0: how long they take, and a network that has learned nothing here
$(PT)/plan.txt: $(PT_INPUTS)
	@$(script)/pretrain/plan.sh $(PT) $(RANKS) $(BATCH) -- $(call pt_train,first)

# Order alone: whatever becomes of the inputs, a model that was trained is not trained again
$(PT)/model/model.safetensors: | $(PT)/plan.txt $(PT_INPUTS)
	@cat $(PT)/plan.txt
	$(if $(filter-out 1,$(RANKS)),@$(script)/stage.sh $(PT)/log,$(call pt_stage,)) sctrain $(call pt_train,whole)

PT_NETWORKS := untrained model
PT_PARTS := test $(if $(value LABEL),known)
define pt_embed
$(PT)/$1.$2.emb: $(PT)/model/model.safetensors $(PT)/$2.tok
	$$(call pt_stage,scembed-$1-$2) $(PIPELINES)/step.sh pretrain/embed $(PT) $1 $$(word 2,$$^) $$@ $(if $(value DEVICE),--device $(DEVICE)) -@ $(THREADS)
endef
$(foreach n,$(PT_NETWORKS),$(foreach p,$(PT_PARTS),$(eval $(call pt_embed,$n,$p))))
$(PT)/losses.tsv: $(PT)/model/model.safetensors $(PT)/valid.masked
	$(call pt_stage,sctrain-eval) $(PIPELINES)/step.sh pretrain/losses $(PT) $@ $(SEED) -@ $(THREADS)
$(foreach m,$(BASELINES) $(PT_NETWORKS),$(PT)/$m.probe.tsv): $(PT)/%.probe.tsv: $(PT)/%.known.emb $(PT)/%.test.emb
	$(call pt_stage,ctaprobe-$*) $(PIPELINES)/bootstrap.sh cells $(PT)/group $(call text,LABEL) $^ $@ -@ $(THREADS)
$(foreach b,$(BASELINES),$(foreach p,$(PT_PARTS),$(PT)/$b.$p.emb)): $(PT)/%.emb: $(PT)/known.tok $(PT)/test.tok
	$(call pt_stage,screduce-$*) $(BIN)/screduce $(baseline_$(basename $*)) -v --train $(PT)/known.tok -@ $(THREADS) -o $@ $(PT)/$(subst .,,$(suffix $*)).tok

PT_PROBES := $(if $(value LABEL),$(foreach m,$(BASELINES) $(PT_NETWORKS),$(PT)/$m.probe.tsv),$(PT)/model.test.emb)
$(PT)/report.txt: $(PT)/losses.tsv $(PT_PROBES) $(PIPELINES)/pretrain/report.py
	@$(table) pretrain/report $(PT) $(call quote,$(PT_FILES)) $(call text,LABEL) $(STRATEGY) $(whole)
$(eval $(call page,pretrain,$(PT),$(PT)/report.txt))
endif

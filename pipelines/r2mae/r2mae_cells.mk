# make r2mae-cells: which masking rate suits a model of counts (Dong et al. 2025: R2MAE's single-cell model, tables 4 and 6 to 8).
#
#     make -j2 r2mae-cells                                            simulated cells
#     make -j2 r2mae-cells DATA=lung.h5ad LABEL=cell_type CELLS=0     the same on all cells of your file
#     make -j2 r2mae-cells DATA=aml.h5ad MORE_LABELS=disease TARGET=age    three tasks of the probe, whose mean is that of the paper's table 6
#
# Also those of cells.mk
# METHODS     fixed-0.P, mdlm, dynamic, r2mae, r2mae-dynamic, cl, r2mae-cl (with -easy: the paper's k=0); the others are compared with the first one
# SEEDS       seeds of masks, order and initial weights; SEED alone determines the cells and their split
# MORE_LABELS  also predict these obs columns of classes from the embeddings (a list with commas); cells without a class are left out of it
# TARGET      also predict this obs column of numbers from the embeddings
# HVG         number of genes, chosen by scsample --hvg from all cells
# FLAVOR      --flavor of scsample --hvg
# HIDDEN      width of the hidden layers
# LATENT      width of the latent layer
# NB_EPOCHS   passes of the training over the cells
# NB_BATCH    cells per batch
# NB_LR       learning rate
# PER_GROUP   maximum number of cells of each donor that the probe uses
# KEEP_MODELS  1 keeps the models; 0 removes a model after it is scored
# The donors (GROUP of cells.mk) are a covariate of the model, and whole donors are held out from the probe. SCALE=tiny takes a minute, small
# minutes to an hour; paper has the paper's sizes.
# Cells are those of cells.mk. All of them are pre-trained on, as in the paper, but a tenth is for validation: masked genes of these cells are
# predicted at five ratios, with the same masks for all methods. The probe learns from the cells of half of the donors and is tested on
# those of the others. `untrained` is the network with random weights. More methods or seeds add trainings and keep those that are done.

TARGET    ?=
MORE_LABELS ?=
METHODS   ?= fixed-0.25 fixed-0.10 fixed-0.50 mdlm dynamic r2mae r2mae-dynamic cl r2mae-cl
FLAVOR    ?= seurat
HVG       ?= $(call scale,150,2000,5000)
HIDDEN    ?= $(call scale,16,128,1024)
LATENT    ?= $(call scale,4,32,512)
NB_EPOCHS ?= $(call scale,3,30,50)
NB_BATCH  ?= $(call scale,50,200,400)
NB_LR     ?= 1e-3
PER_GROUP ?= 1000
R2_SEEDS  := $(or $(SEEDS),$(call scale,1 2,1 2 3,1 2 3))
R2_RATES  := 0.1 0.2 0.3 0.5 0.7

R2_IN_SETTINGS := DATA LABEL $(if $(value MORE_LABELS),MORE_LABELS) TARGET GROUP CELLS SEED HVG FLAVOR PER_GROUP NB_BATCH
R2_SETTINGS := $(R2_IN_SETTINGS) HIDDEN LATENT NB_EPOCHS NB_LR
$(eval $(call run_folder,R2_IN,r2mae-cells-inputs,$(R2_IN_SETTINGS)))
$(eval $(call run_folder,R2,r2mae-cells,$(R2_SETTINGS)))

.PHONY: r2mae-cells-now
r2mae-cells: ##@ masking rates for a model of counts (DATA= LABEL= MORE_LABELS= TARGET= METHODS= SEEDS=)
$(call check,r2mae-cells,DATA)
$(eval $(call page,r2mae-cells,$(R2),$(R2)/table.txt $(R2)/r2mae-cells.svg))

# Made once, so that cells that are prepared again do not undo a long grid of trainings
$(R2_IN)/about: | $(R2_IN)/settings $(PREPARED)/cells.counts $(PREPARED)/group
	$(call stage_in,$(R2_IN),cells) $(PIPELINES)/r2mae/cells.sh $(PREPARED) $(R2_IN) $(call text,DATA) $(call text,LABEL) $(call text,MORE_LABELS) \
		$(call text,TARGET) $(HVG) $(FLAVOR) $(PER_GROUP) '$(R2_RATES)' $(NB_BATCH) $(SEED)
$(R2_IN)/baselines.tsv: $(R2_IN)/about
	@$(job) $(script)/r2mae/baselines.sh $(R2_IN) $(t6_threads)

$(call check_arms,r2mae-cells,r2mae,METHODS)
R2_SCORES := $(foreach k,$(R2_SEEDS),$(patsubst %,$(R2)/runs/%-$k/scores.tsv,untrained $(METHODS)))
R2_RUN = $(PIPELINES)/arm.sh r2mae --inputs $(R2_IN) --logs $(R2)/log --hidden $(HIDDEN) --latent $(LATENT) --epochs $(NB_EPOCHS) \
	--batch $(NB_BATCH) --lr $(NB_LR) --threads $(t6_threads) --keep-models $(KEEP_MODELS)
define r2_rule
$(R2_SEEDS:%=$(R2)/runs/$1-%/scores.tsv): $(R2)/runs/$1-%/scores.tsv: $(R2_IN)/about | $(R2)/settings
	@$$(job) BIN=$$(BIN) $$(R2_RUN) --arm $1 --seed $$* --out $$(@D)
endef
$(foreach m,untrained $(METHODS),$(eval $(call r2_rule,$m)))

$(eval $(call commands,r2mae-cells,$(R2_SCORES),$(R2_IN)/about))

$(eval $(call grid,$(R2),$(METHODS); $(R2_SEEDS)))
r2_how = hidden layers of $(HIDDEN), latent $(LATENT), $(call plural,$(NB_EPOCHS),epoch) of batches of $(NB_BATCH), rate $(NB_LR)
r2_table = $(table) r2mae/table $(R2) $(R2_IN) '$(METHODS)' '$(R2_SEEDS)' $(call quote,$(r2_how))
$(R2)/table.txt: $(R2_SCORES) $(R2_IN)/baselines.tsv $(R2)/grid $(PIPELINES)/r2mae/table.py $(PIPELINES)/r2mae/paper.txt
	@$(r2_table) $(whole)
r2mae-cells-now: ##@ the tables of r2mae-cells from the finished runs
	$(call some_done,$(R2))
	@$(r2_table)

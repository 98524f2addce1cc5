# make panel: which genes does a panel of genes predict, and how well? For spatial and targeted assays, before they are ordered.
#
#     make panel                                              simulated cells, their 20 most variable genes
#     make panel DATA=lung.h5ad PANEL=genes.txt               your panel, and a reference with donors
#     make panel DATA=lung.h5ad PANEL="100 300 graph-100"     the most variable genes; those that cover the dependency graph best
#
# Also those of r2mae_cells.mk
# PANEL   panels: K, the most variable genes; graph-K, chosen one by one by the partners that they add; or a file of genes
# ARMS    networks, which see any panel: fixed-0.P, r2mae, r2mae-wide, corrmask-wide, wced-wide; and regressions that are fitted for the
#         panel: poisson, ridge, components, nearest, mean. All are compared with poisson. The first one makes the table of genes, genes.tsv
# HVG     genes that vary most among all cells; with those of PANEL, the others are left out
# KEEP_MODELS  1 keeps the models; 0 removes a model after it is scored
# A network is an auto-encoder of counts. decoder: what it predicts under the mask; without it, Poisson regression on its latent vector. Its batch
# normalisation has the statistics of the training cells under the panel (--recalibrate). untrained: one with random weights. wced-wide is a
# transformer of whole cells instead (bmfm-tiny, batches of 32, learning rate .002). Scored are genes outside the panel that are in 5 % of the training
# cells. SEEDS are splits by donor. The models know the panel's total of a cell alone.

PANEL ?= $(call scale,20,100 300,100 300)
own_panel_HVG := $(call scale,150,1000,5000)
own_panel_LABEL = $(label_if_there)
own_panel_ARMS := ridge poisson components nearest mean r2mae-wide fixed-0.25 r2mae
$(eval $(call own,panel,ARMS HVG $(if $(value DATA),LABEL)))
PN_SEEDS := $(or $(SEEDS),$(call scale,1 2,1 2 3,1 2 3 4 5))

PN_SETTINGS := $(PREPARED_SETTINGS) PANEL HVG HIDDEN LATENT NB_EPOCHS NB_BATCH NB_LR
$(eval $(call run_folder,PN,panel,$(PN_SETTINGS)))

panel: ## which genes does a panel predict, and how well? (DATA= PANEL= ARMS= SEEDS=)
$(call check,panel,DATA)
$(eval $(call page,panel,$(PN),$(PN)/table.txt $(PN)/panel.svg))
$(if $(OWN),$(call check_arms,panel,panel,ARMS))

# A split has a folder of its own; * is its seed.
$(PN_SEEDS:%=$(PN)/split-%/about): $(PN)/split-%/about: $(PREPARED)/cells.counts $(PREPARED)/group | $(PN)/settings
	$(call stage_in,$(PN),split-$*) $(PIPELINES)/panel/split.sh $(PREPARED) $(@D) $(call text,PANEL) $(HVG) $*

PN_RUN = $(PIPELINES)/arm.sh panel --logs $(PN)/log --hidden $(HIDDEN) --latent $(LATENT) --epochs $(NB_EPOCHS) --batch $(NB_BATCH) --lr $(NB_LR) \
	--threads $(job_threads) --keep-models $(KEEP_MODELS)
define pn_rule
$(PN_SEEDS:%=$(PN)/runs/$1-%/scores.tsv): $(PN)/runs/$1-%/scores.tsv: $(PN)/split-%/about | $(PN)/settings
	@$$(job) BIN=$$(BIN) $$(PN_RUN) --inputs $(PN)/split-$$* --arm $1 --seed $$* --out $$(@D)
endef
PN_ARMS := $(if $(filter-out poisson ridge components nearest mean,$(ARMS)),untrained) $(ARMS)
$(foreach a,$(PN_ARMS),$(eval $(call pn_rule,$a)))
PN_RUNS := $(foreach k,$(PN_SEEDS),$(foreach a,$(PN_ARMS),$(PN)/runs/$a-$k/scores.tsv))
$(eval $(call commands,panel,$(PN_RUNS),$(PN_SEEDS:%=$(PN)/split-%/about)))

$(eval $(call grid,$(PN),$(ARMS); $(PN_SEEDS)))
pn_how = hidden layers of $(HIDDEN), latent $(LATENT), $(call plural,$(NB_EPOCHS),epoch) of batches of $(NB_BATCH), rate $(NB_LR)
pn_table = $(table) panel/table $(PN) '$(ARMS) untrained' '$(PN_SEEDS)' $(call text,DATA) $(call quote,$(pn_how))
$(PN)/table.txt: $(PN_RUNS) $(PN)/grid $(PIPELINES)/panel/table.py
	@$(pn_table) $(whole)

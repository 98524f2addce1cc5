# make fig3: can modules be recovered from ranked cells? (CorrMask paper, figure 3 and appendix B.1)
#
#     make -j2 fig3             ten simulations (SCALE=tiny: two), AUROC of gene pairs within a module against pairs between modules
#
# The matrices are the paper's: A counts adjacent genes, C genes in the same cell. The graphs of depgraph are made from the same cells:
# NPMI of adjacent genes (all pairs that occur), and Algorithm 1. By default an edge needs 200 cells with both genes. In 1,000
# cells of B.1 two genes of one module are together in about 50, so --min-overlap is 20.
# SEEDS  which simulations; default 1 to 10, with SCALE=tiny 1 and 2

FIG3_SEEDS := $(if $(SEEDS),$(SEEDS),$(if $(filter tiny,$(SCALE)),1 2,1 2 3 4 5 6 7 8 9 10))
FIG3_SETTINGS := SCALE FIG3_SEEDS
$(eval $(call run_folder,FIG3,fig3,$(FIG3_SETTINGS)))

fig3: ##@ figure 3: module recovery from adjacency, co-occurrence, graph (SCALE= SEEDS=)
$(call check,fig3)
$(eval $(call page,fig3,$(FIG3),$(FIG3)/table.txt $(FIG3)/fig3.svg))

# The heat maps show the first simulation
FIG3_MAPS := $(FIG3)/matrix-A.txt $(FIG3)/matrix-C.txt $(FIG3)/matrix-truth.txt
FIG3_FIRST := $(firstword $(FIG3_SEEDS))
FIG3_NEEDS := $(PIPELINES)/fig3/recover.py

$(FIG3_MAPS) $(FIG3)/auroc-$(FIG3_FIRST).tsv &: $(FIG3_NEEDS) | $(FIG3)/settings
	@echo '  fig3 simulation $(FIG3_FIRST)'
	@$(job) $(table) fig3/recover $(FIG3_FIRST) $(FIG3) > $(FIG3)/auroc-$(FIG3_FIRST).tsv
$(patsubst %,$(FIG3)/auroc-%.tsv,$(filter-out $(FIG3_FIRST),$(FIG3_SEEDS))): $(FIG3)/auroc-%.tsv: $(FIG3_NEEDS) | $(FIG3)/settings
	@echo '  fig3 simulation $*'
	@$(job) $(table) fig3/recover $* $(whole)

$(FIG3)/table.txt: $(FIG3_SEEDS:%=$(FIG3)/auroc-%.tsv) $(PIPELINES)/fig3/table.py
	@$(table) fig3/table $(FIG3_SEEDS:%=$(FIG3)/auroc-%.tsv) $(whole)

$(FIG3)/fig3.svg: $(FIG3_MAPS)

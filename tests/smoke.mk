# make smoke: does every experiment run? Each target that make help lists under Experiments, at toy size (SCALE=tiny), from simulated cells.
#
# A case is a file, so an interrupted run goes on; new tools or pipelines begin anew. A new experiment is a case by itself; what it needs beside
# SCALE=tiny is smoke_NAME. The tests of the pipelines (tests/*.bats) have the same sizes.

SMOKE := $(B)/smoke
SMOKE_EXPERIMENTS := $(filter-out clean-runs,$(experiments))
# The first ones have what others use. More cases: goals with other settings.
SMOKE_CASES ?= demo reliance finetune genes table6 $(filter-out demo reliance finetune genes table6 %-now report plot-train list-runs,$(SMOKE_EXPERIMENTS)) \
	demo-data finetune-init fig4-sample download $(filter %-now report plot-train list-runs,$(SMOKE_EXPERIMENTS))
# They run in the folder $(SMOKE), which also has the files that smoke.sh makes: corpus.h5ad, sets.gmt, catalog.tsv.
smoke_genes := FOLDS=2
smoke_corpus := FILES=corpus.h5ad
smoke_table1 := FOLDS=2 CROSS=corpus.h5ad STARTS='scratch pmi-rand corrmask'
smoke_table6 := SEEDS=1 SIZES='0.3 1'
smoke_table6-inputs := SIZES='0.3 1'
smoke_table6-now := SEEDS=1 SIZES='0.3 1'
smoke_table2 := SEEDS=1
smoke_table7 := SEEDS=1 CORPUS=corpus.h5ad PROTOCOL=paper
smoke_fig7 := SEEDS=1
smoke_r2mae-mlm := SEEDS=1 STRATEGIES='random random+50 random+r2mae corrmask+dyn corrmask+mdlm'
smoke_r2mae-cells := SEEDS=1
smoke_panel := SEEDS=1
smoke_r2mae-cells-now := SEEDS=1
smoke_genesets := GENESETS=sets.gmt
smoke_fig3 := SEEDS=1
smoke_combine := SEEDS=1 BMFM_ARMS='mlm-corrmask+r2mae value wced+hce'
smoke_bmfm-objectives := SEEDS=1 BMFM_ARMS='value wced+hce'
smoke_bmfm-ontology := SEEDS=1 BMFM_ARMS='wced+moved-hce wced+dropped-ce'
smoke_bmfm-learnability := SEEDS=1 BMFM_ARMS='wced value'
smoke_bmfm-finetune := SEEDS=1 BMFM_ARMS='wced wced+tuned'
smoke_bmfm-zeroshot := SEEDS=1 LEFT_OUT=2 BMFM_ARMS='wced+hce wced-zeros+hce'
smoke_fig4 := TRIALS=1
smoke_report := RUN=demo/latest
smoke_plot-train := MODEL=results/pretrained/latest/random-1.model
goal_demo-data := demo
smoke_demo-data := DATA=corpus.h5ad GENES=200
goal_finetune-init := finetune
smoke_finetune-init := INIT=results/pretrained/latest/random-1.model
goal_fig4-sample := fig4
smoke_fig4-sample := RANDOM_GENES=sample TRIALS=1 GAMMAS=0
goal_download := data/small.h5ad
smoke_download := CATALOG=catalog.tsv

.PHONY: smoke smoke-list
smoke-list:
	@printf '%s\n' $(SMOKE_CASES)
smoke: all ## run every experiment at toy size, on simulated cells (five minutes on two cores)
	+@$(MAKE) --no-print-directory -k -j1 $(SMOKE_CASES:%=$(SMOKE)/%.seconds); status=$$?; \
		tests/smoke.sh summary $(SMOKE) $(SMOKE_CASES) && exit $$status

$(SMOKE)/fresh: $(TOOLS:%=$(BIN)/%) $(wildcard pipelines/* pipelines/*/*) tests/smoke.mk tests/smoke.sh
	@rm -rf $(SMOKE)
	@mkdir -p $(SMOKE)
	@BIN=$(BIN) tests/smoke.sh inputs $(SMOKE)
	@touch $@
$(SMOKE_CASES:%=$(SMOKE)/%.seconds): $(SMOKE)/%.seconds: $(SMOKE)/fresh
	@BIN=$(abspath $(BIN)) JOBS=$(JOBS) tests/smoke.sh run $(SMOKE) $* $(or $(goal_$*),$*) $(smoke_$*)

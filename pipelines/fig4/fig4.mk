# make fig4: from which modularity on does masking by module improve accuracy? (CorrMask paper, figure 4 and appendix B.2)
#
#     make -j2 fig4              small: 5 trials a condition, 20 of gamma 1 with Exp(0.1) of mean 10; half an hour on 2 cores
#     make -j2 fig4 SCALE=tiny   2 trials of 5 epochs at gamma 0 and 1; half a minute
#     make -j2 fig4 SCALE=paper  20 trials a condition; an hour and a half
#
# EXP           how Exp(0.1) is read: scale (mean 0.1), rate (mean 10); default both
# GAMMAS        modularities, instead of those of SCALE
# TRIALS        trials per condition, instead of those of SCALE
# RANDOM_GENES  genes with a signal that are not those of the module: drawn once for each class, or for each sample (no signal at gamma 0)
# A trial is a file under results/fig4/trials, shared by all runs, so an interrupted run continues where it stopped.

RANDOM_GENES ?= class
FIG4_HOW = '$(SCALE)' '$(EXP)' '$(GAMMAS)' '$(TRIALS)' '$(RANDOM_GENES)'
FIG4_SETTINGS := SCALE EXP GAMMAS TRIALS RANDOM_GENES
$(eval $(call run_folder,FIG4,fig4,$(FIG4_SETTINGS)))
FIG4_TRIALS := $(patsubst %,$(RESULTS)/fig4/trials/%.tsv,$(shell $(PIPELINES)/step.sh fig4/runs $(FIG4_HOW) 2>/dev/null))

fig4: ##@ figure 4: accuracy by modularity, CorrMask against random masks (SCALE= EXP=)
$(call check,fig4)
$(if $(filter-out class sample,$(RANDOM_GENES)),$(error fig4: RANDOM_GENES=$(RANDOM_GENES): expected class or sample))
$(eval $(call page,fig4,$(FIG4),$(FIG4)/table.txt $(FIG4)/fig4.svg))

$(FIG4_TRIALS): $(RESULTS)/fig4/trials/%.tsv: $(addprefix $(PIPELINES)/,fig4/steps.sh fig4/fig4.json) | $(FIG4)/settings
	@echo '  fig4 $*'
	@mkdir -p $(@D)
	@$(job) $(script)/step.sh fig4/trial $* $(whole)

$(FIG4)/table.txt: $(FIG4_TRIALS) $(PIPELINES)/fig4/table.py
	@$(table) fig4/table $(FIG4) $(FIG4_TRIALS) $(whole)

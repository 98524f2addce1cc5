# make fig4: from which modularity on does masking by module improve accuracy? (CorrMask paper, figure 4 and appendix B.2)
#
#     make -j2 fig4              small: 3 trials a condition, 20 of gamma 1 with Exp(0.1) of mean 10; 45 minutes on 2 cores
#     make -j2 fig4 SCALE=tiny   2 trials of 25 epochs at gamma 0 and 1; a minute
#     make -j2 fig4 SCALE=paper  20 trials a condition; about three hours
#
# EXP     how Exp(0.1) is read: scale (mean 0.1), rate (mean 10); default both
# GAMMAS  modularities, instead of those of SCALE
# TRIALS  trials of a condition, instead of those of SCALE
# A trial is a file under results/fig4/trials, shared by all runs, so an interrupted run continues where it stopped.

FIG4_HOW = '$(SCALE)' '$(EXP)' '$(GAMMAS)' '$(TRIALS)'
FIG4_SETTINGS := SCALE EXP GAMMAS TRIALS
$(eval $(call run_folder,FIG4,fig4,$(FIG4_SETTINGS)))
FIG4_TOOLS := $(addprefix $(BIN)/,scsim scsample maskgen sctrain scembed ctaprobe)
FIG4_TRIALS := $(patsubst %,$(RESULTS)/fig4/trials/%.tsv,$(shell $(PIPELINES)/fig4-runs.sh $(FIG4_HOW) 2>/dev/null))

.PHONY: fig4

fig4: $(FIG4)/table.txt $(FIG4)/fig4.svg $(FIG4)/fig4.png ## figure 4: accuracy by modularity, CorrMask against random masks (SCALE= EXP=)
	@cat $(FIG4)/table.txt
$(call check,fig4)
$(eval $(call page,fig4,$(FIG4),$(FIG4)/table.txt $(FIG4)/fig4.svg))

$(FIG4_TRIALS): $(RESULTS)/fig4/trials/%.tsv: $(PIPELINES)/fig4-trial.sh $(PIPELINES)/fig4.json | $(FIG4)/settings $(FIG4_TOOLS)
	@echo '  fig4 $*'
	@mkdir -p $(@D)
	@$(script)/fig4-trial.sh $* > $@

$(FIG4)/table.txt: $(FIG4_TRIALS) $(PIPELINES)/fig4-table.sh $(PIPELINES)/stats.awk
	@$(PIPELINES)/fig4-table.sh $(FIG4) $(FIG4_TRIALS) > $@
$(FIG4)/fig4.svg $(FIG4)/fig4.png: $(FIG4)/fig4.%: $(FIG4)/table.txt $(PIPELINES)/fig4.gp
	@$(PIPELINES)/plot.sh fig4 $(FIG4) $*

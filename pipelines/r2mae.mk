# make r2mae-fig1, r2mae-table5, r2mae-table9: the linear model of the R2MAE paper (Dong et al. 2025: figure 1, tables 5 and 9)
#
#     make -j2 r2mae-fig1                  theory (lines) and simulations (points) of panels A to E and G; a minute on 2 cores
#     make -j2 r2mae-table5 r2mae-table9   best fixed ratio, and ratios by row, with five seeds; ten seconds
#
# The sizes of the paper's simulations are not in its text. Those here were chosen because their fixed ratios come close to the paper's tables.
# SCALE=tiny   small models, for tests
# SAME=masks   tables: the 50 simulations of a seed share their masks

SCALE ?= small
R2MAE := results/r2mae
R2MAE_TOOL := $(BIN)/maskrisk
R2MAE_AS := $(if $(SAME),-$(SAME))

.PHONY: r2mae-fig1 r2mae-table5 r2mae-table9

r2mae-fig1: $(R2MAE)/fig1.svg $(R2MAE)/fig1.png ## R2MAE, figure 1: risk by masking ratio, theory and simulation (SCALE=)
	@echo '  $(R2MAE)/fig1.svg'
r2mae-table5: $(R2MAE)/table5$(R2MAE_AS).txt ## R2MAE, table 5: fixed ratios and ratios by row, largest eigenvector (SCALE= SAME=)
	@cat $<
r2mae-table9: $(R2MAE)/table9$(R2MAE_AS).txt ## R2MAE, table 9: the same with smaller eigenvectors (SCALE= SAME=)
	@cat $<

$(R2MAE)/settings: FORCE
	@$(script)/settings.sh $@ '$(SCALE)' $(R2MAE)

R2MAE_NEEDS := $(PIPELINES)/r2mae-run.sh $(R2MAE)/settings

R2MAE_CURVES := $(shell $(PIPELINES)/r2mae-run.sh curves)
R2MAE_CURVE_FILES := $(foreach c,$(R2MAE_CURVES),$(R2MAE)/fig1/$c.theory.tsv $(R2MAE)/fig1/$c.simulate.tsv)
$(R2MAE_CURVE_FILES): $(R2MAE)/fig1/%.tsv: $(R2MAE_NEEDS) | $(R2MAE_TOOL)
	@echo '  r2mae-fig1 $*'
	@mkdir -p $(@D)
	@$(script)/r2mae-run.sh $* $(SCALE) > $@

$(R2MAE)/fig1.svg $(R2MAE)/fig1.png: $(R2MAE)/fig1.%: $(R2MAE_CURVE_FILES) $(PIPELINES)/r2mae-fig1.gp
	@$(PIPELINES)/plot.sh r2mae-fig1 $(R2MAE) $* 'runs = $(if $(filter tiny,$(SCALE)),5,100)'
	@mv $(R2MAE)/r2mae-fig1.$* $@

# The two files of every row of a table
r2mae_rows = $(foreach r,$(shell $(PIPELINES)/r2mae-run.sh rows),$(R2MAE)/$1/$r.theory.tsv $(R2MAE)/$1/$r.simulate.tsv)
R2MAE_TABLE5 := $(call r2mae_rows,table5$(R2MAE_AS))
R2MAE_TABLE9 := $(call r2mae_rows,table9$(R2MAE_AS))
$(R2MAE_TABLE5) $(R2MAE_TABLE9): $(R2MAE)/%.tsv: $(R2MAE_NEEDS) | $(R2MAE_TOOL)
	@echo '  r2mae $*'
	@mkdir -p $(@D)
	@$(script)/r2mae-run.sh $(subst /,-,$*) $(SCALE) > $@

$(R2MAE)/table5$(R2MAE_AS).txt: $(R2MAE_TABLE5)
$(R2MAE)/table9$(R2MAE_AS).txt: $(R2MAE_TABLE9)
$(R2MAE)/table5$(R2MAE_AS).txt $(R2MAE)/table9$(R2MAE_AS).txt: $(R2MAE)/%.txt: $(PIPELINES)/r2mae-table.sh $(PIPELINES)/r2mae-paper.tsv $(PIPELINES)/stats.awk
	@$(PIPELINES)/r2mae-table.sh $* $(R2MAE) > $@

# make r2mae-fig1, r2mae-table5, r2mae-table9: the linear model of the R2MAE paper (Dong et al. 2025: figure 1, tables 5 and 9)
#
#     make -j2 r2mae-fig1                  theory (lines) and simulations (points); two minutes on 2 cores
#     make -j2 r2mae-table5 r2mae-table9   best fixed ratio, and ratios by row, with five seeds; half a minute
#
# The sizes of the paper's simulations are not in its text. Those here were chosen because their fixed ratios come close to the paper's tables.
# SCALE=tiny has small models, for tests.
# ACCURACY  figure 1: a table of accuracies by masking rate, for panel F (r2mae/accuracy.py); by default those of make r2mae-other, as the paper's
#           accuracies of BERT are not in its text
# SAME  tables: what the 50 simulations of a seed share: nothing (default), or masks

R2MAE_SAME := $(or $(SAME),nothing)
ACCURACY ?= $(PIPELINES)/r2mae/accuracy.tsv
$(eval $(call run_folder,R2MAE_FIG1,r2mae-fig1,SCALE ACCURACY))
$(eval $(call run_folder,R2MAE_TABLE5,r2mae-table5,SCALE R2MAE_SAME))
$(eval $(call run_folder,R2MAE_TABLE9,r2mae-table9,SCALE R2MAE_SAME))
R2MAE_LINEAR_FILES := $(addprefix $(PIPELINES)/r2mae/,linear.sh risk.py)
R2MAE_LINEAR := $(PIPELINES)/r2mae/linear.sh
# $(call r2mae_files,FOLDER,NAMES): theory and simulation of every name
r2mae_files = $(foreach n,$2,$1/$n.theory.tsv $1/$n.simulate.tsv)

r2mae-fig1: ##@ R2MAE, figure 1: risk by masking rate, theory and simulation (SCALE= ACCURACY=)
r2mae-table5: ##@ R2MAE, table 5: fixed masking rates and a rate for each row, largest eigenvector (SCALE= SAME=)
r2mae-table9: ##@ R2MAE, table 9: the same with smaller eigenvectors (SCALE= SAME=)
$(call check,r2mae-fig1 r2mae-table5 r2mae-table9)
$(eval $(call page,r2mae-fig1,$(R2MAE_FIG1),$(R2MAE_FIG1)/fig1.svg))
$(eval $(call page,r2mae-table5,$(R2MAE_TABLE5),$(R2MAE_TABLE5)/table.txt))
$(eval $(call page,r2mae-table9,$(R2MAE_TABLE9),$(R2MAE_TABLE9)/table.txt))
$(call check,r2mae-fig1,ACCURACY)

R2MAE_CURVES := $(call r2mae_files,$(R2MAE_FIG1),$(shell $(R2MAE_LINEAR) curves))
$(R2MAE_CURVES): $(R2MAE_FIG1)/%.tsv: $(R2MAE_LINEAR_FILES) | $(R2MAE_FIG1)/settings
	@echo '  r2mae-fig1 $*'
	@$(job) $(script)/r2mae/linear.sh $* $(SCALE) $(whole)
$(R2MAE_FIG1)/panel-f.tsv: $(PIPELINES)/r2mae/accuracy.py | $(R2MAE_FIG1)/settings
	@$(table) r2mae/accuracy $(call text,ACCURACY) $(whole)
$(R2MAE_FIG1)/fig1.svg: $(R2MAE_CURVES) $(R2MAE_FIG1)/panel-f.tsv $(PIPELINES)/r2mae/figures.py $(PIPELINES)/page/plot.py
	@$(draw) fig1 $(R2MAE_FIG1) runs=$(if $(filter tiny,$(SCALE)),5,100) $(whole)

# $(eval $(call r2mae_table,FOLDER,table5))
define r2mae_table
$(call r2mae_files,$1,$(R2MAE_ROWS)): $1/%.tsv: $$(R2MAE_LINEAR_FILES) | $1/settings
	@echo '  r2mae-$2 $$*'
	@$$(job) $$(script)/r2mae/linear.sh $2-$$* $$(SCALE) $$(R2MAE_SAME) $$(whole)
$1/table.txt: $(call r2mae_files,$1,$(R2MAE_ROWS)) $$(addprefix $$(PIPELINES)/,r2mae/linear_table.py r2mae/linear-paper.tsv)
	@$$(table) r2mae/linear_table $2 $1 $$(R2MAE_SAME) $$(whole)
endef
R2MAE_ROWS := $(shell $(R2MAE_LINEAR) rows)
$(eval $(call r2mae_table,$(R2MAE_TABLE5),table5))
$(eval $(call r2mae_table,$(R2MAE_TABLE9),table9))

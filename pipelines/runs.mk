# What all experiments share: their settings, the folders of their runs, their stages. The Makefiles include this file, and it includes
# the others.
#
# A run is one experiment with one set of settings. Its folder is results/EXPERIMENT/NAME-DIGEST: NAME is that of the data, DIGEST is of the
# settings and of the path, size and time of every file among them. So no run replaces the results of another one, and the same
# settings find their own results again. The file `settings` in the folder lists them. results/EXPERIMENT/latest leads to the newest run.
#
# An experiment of yours begins with two lines (PREPARED_SETTINGS are those of cells.mk), and has its files under $(MINE):
#
#     MINE_SETTINGS := $(PREPARED_SETTINGS) EPOCHS LR
#     $(eval $(call run_folder,MINE,mine,$(MINE_SETTINGS)))
#     $(MINE)/loss.tsv: $(PREPARED)/train.tok | $(MINE)/settings
#
# A recipe passes what a user may set as $(call text,LABEL), which the shell reads as one word whatever is in it.

RESULTS ?= results
DATA    ?=
SEED    ?= 1
SCALE   ?= small
THREADS ?= $(shell nproc)
# $(call scale,TINY,SMALL,PAPER)
scale = $(if $(filter tiny,$(SCALE)),$1,$(if $(filter paper,$(SCALE)),$3,$2))

# What a user wrote is taken as it is: a dollar sign in it is no variable of make.
given = $(if $(filter command environment,$(origin $1)),$(value $1),$($1))
quote = '$(subst ','\'',$1)'
text = $(call quote,$(call given,$1))

# $(eval $(call run_folder,VARIABLE,EXPERIMENT,SETTINGS,@FILE)): VARIABLE is the folder of this run, in which `settings` holds the values of
# SETTINGS, and before them those of FILE, if given. Files of the run are made after it: ... | $(VARIABLE)/settings. It also moves the link `latest`.
settings = $(foreach v,$1,$(call quote,$v=$(call given,$v)))
define run_folder
$1 := $$(shell $$(PIPELINES)/run.sh folder '$$(RESULTS)/$2' $4 $$(call settings,$3))
$$($1)/settings: FORCE
	@$$(PIPELINES)/run.sh settings '$$(RESULTS)/$2' $4 $$(call settings,$3)
endef

# $(call check,GOALS,SETTINGS): if one of GOALS is to be made, stop now if the files that SETTINGS name are not there
check = $(if $(filter $1,$(MAKECMDGOALS)),$(call stop,$(shell $(PIPELINES)/run.sh check $(call settings,SCALE $2) 2>&1)))
stop = $(if $1,$(error $1))

# A script with the tools of this build; $(call stage_in,DIR,NAME): run the command that follows, with its messages in DIR/log/NAME.log
script = BIN=$(BIN) $(PIPELINES)
stage_in = @$(script)/stage.sh $1/log $2

.PHONY: list-runs clean-runs
list-runs: ## list the runs of all experiments with their settings; * marks the latest
	@$(PIPELINES)/run.sh list '$(RESULTS)'
clean-runs: ## remove runs (RUN="demo/lung-1a2b3c4d ...", as make list-runs prints them)
	@$(PIPELINES)/run.sh clean '$(RESULTS)' $(call text,RUN)

include $(PIPELINES)/report.mk $(PIPELINES)/cells.mk $(sort $(filter-out %/runs.mk %/report.mk %/cells.mk,$(wildcard $(PIPELINES)/*.mk)))

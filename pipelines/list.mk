# make list-runs, make clean-runs: the runs that are there.
#
# RUN  runs to remove, as make list-runs prints them

.PHONY: list-runs clean-runs
list-runs: ## list the runs of all experiments with their settings; * marks the latest
	@$(PIPELINES)/run.sh list '$(RESULTS)'
clean-runs: ## remove runs (RUN="demo/lung-1a2b3c4d ...", as make list-runs prints them)
	@$(PIPELINES)/run.sh clean '$(RESULTS)' $(call text,RUN)

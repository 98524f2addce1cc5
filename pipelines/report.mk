# Every experiment ends with a page, report.html in the folder of the run: its tables, figures, maps of the embeddings, loss curves,
# confusion matrices, modules of the graph, settings, commands, times, digests. It is one file that needs no network. report.sh makes it from
# what it finds in the folder, so an experiment says only what must be there first:
#
#     $(eval $(call page,mine,$(MINE),$(MINE)/table.txt $(MINE)/mine.svg))
#
# RUN  a run, as make list-runs prints it, or EXPERIMENT/latest
# Figures are *.svg, tables are *.tsv, texts are *.txt. NAME.KIND.tsv with the columns metric and value are shown side by side by KIND.

# $(eval $(call page,TARGET,FOLDER,FILES)): TARGET makes FOLDER/report.html, after FILES
define page
$1: $2/report.html
$2/report.html: $3 $(wildcard $(PIPELINES)/report*)
	@echo '  page $$@'
	@$$(script)/report.sh $2
endef

.PHONY: report
report: ## make the page of a run again (RUN=demo/latest, or as make list-runs prints it)
	@[ -n $(call text,RUN) ] || { echo 'report: RUN= is needed, such as RUN=demo/latest; make list-runs lists the runs' >&2; exit 2; }
	@$(script)/report.sh '$(RESULTS)/'$(call text,RUN)
	@echo '$(RESULTS)/'$(call text,RUN)/report.html

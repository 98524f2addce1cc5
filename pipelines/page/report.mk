# Every experiment ends with a page, report.html in the folder of the run: its tables, figures, maps of the embeddings, loss curves,
# confusion matrices, modules of the graph, settings, commands, times, digests. It is one file that needs no network. page/page.py makes it
# from what it finds in the folder, so an experiment says only what must be there first:
#
#     $(eval $(call page,mine,$(MINE),$(MINE)/table.txt $(MINE)/mine.svg))
#
# RUN  a run, as make list-runs prints it, or EXPERIMENT/latest
# page.py says at its head which files it shows. A page that cannot be made costs no results: the experiment ends well, with a line that says so.

# $(eval $(call page,TARGET,FOLDER,FILES)): TARGET makes FOLDER/report.html, after FILES
define page
$1: $2/report.html
$2/report.html: $3 $(wildcard $(PIPELINES)/page/*.*)
	@echo '  page $$@'
	@$$(make_page) $2 || echo '$2: the page could not be made, but all results are there; make report RUN= makes it again' >&2
endef
make_page = BIN=$(BIN) python3 -B $(PIPELINES)/page/page.py

.PHONY: report
report: ## make the page of a run again (RUN=demo/latest, or as make list-runs prints it)
	@[ -n $(call text,RUN) ] || { echo 'report: RUN= is needed, such as RUN=demo/latest; make list-runs lists the runs' >&2; exit 2; }
	@$(make_page) '$(RESULTS)/'$(call text,RUN)
	@echo '$(RESULTS)/'$(call text,RUN)/report.html

# Every experiment ends with a page, report.html in the folder of the run: its tables, figures, maps of the embeddings, loss curves,
# confusion matrices, modules of the graph, settings, commands, times, digests. It is one file that needs no network. page/page.py makes it
# from what it finds in the folder, so an experiment says only what must be there first:
#
#     $(eval $(call page,mine,$(MINE),$(MINE)/table.txt $(MINE)/mine.svg))
#     mine: ## what it shows, for make help
#
# RUN  a run, as make list-runs prints it, or EXPERIMENT/latest
# page.py says at its head which files it shows. A page that cannot be made costs no results: the experiment ends well, with a line that says so.

# $(eval $(call page,TARGET,FOLDER,FILES)): TARGET makes FOLDER/report.html after FILES, and prints those that are text, and the names of .h5ad files or
# of a first figure; then_TARGET is a command for the end. Other figures, NAME.svg, are drawn when the first file is there, as the function NAME of a figures.py says (page/figure.py).
define page
$(if $(filter $1,$(elsewhere)),,$(call shown,$1,$3))
$(foreach f,$(basename $(filter %.svg,$(wordlist 2,9,$3))),$(call figure,$f,$(firstword $3)))
$(call page_alone,$1,$2,$3)
endef
define page_alone
$(if $(filter $1,$(elsewhere)),,$1: $2/report.html)
$2/report.html: $3 $(wildcard $(PIPELINES)/page/*.*)
	@echo '  report $$@'
	@$$(make_page) $2 || echo '$2: the report could not be made, but all results are there; make report RUN= makes it again' >&2
endef
define shown
.PHONY: $1
$1: $2
	$(patsubst %,@cat % &&,$(filter %.txt,$2)) $(patsubst %,echo '%' &&,$(filter %.h5ad,$2)) $(patsubst %,@echo '  %' &&,$(filter %.svg,$(firstword $2))) $(or $(then_$1),:)
endef
# $(call figure,FOLDER/NAME,FILE): FOLDER/NAME.svg, drawn when FILE is there
define figure

$1.svg: $2 $(wildcard $(PIPELINES)/*/figures.py) $(PIPELINES)/page/plot.py
	@$$(draw) $(notdir $1) $(patsubst %/,%,$(dir $1)) $$(whole)

endef
draw = python3 -B $(PIPELINES)/page/figure.py
make_page = BIN=$(BIN) python3 -B $(PIPELINES)/page/page.py

.PHONY: report
report: ## make the report of a run again (RUN=demo/latest, or as make list-runs prints it)
	@[ -n $(call text,RUN) ] || { echo 'report: RUN= is needed, such as RUN=demo/latest; make list-runs lists the runs' >&2; exit 2; }
	@$(make_page) '$(RESULTS)/'$(call text,RUN)
	@echo '$(RESULTS)/'$(call text,RUN)/report.html

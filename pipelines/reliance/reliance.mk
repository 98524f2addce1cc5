# make reliance: how much does a network copy a masked gene from the partners of that gene that it sees?
#
#     make reliance                                            simulated cells
#     make reliance DATA=lung.h5ad SEEDS="1 2 3 4 5"           your file
#
# Partner reliance R: the loss of one masked gene of a test cell with all its partners in the graph masked too (hidden), minus its
# loss with as many unrelated genes masked instead (visible). The gene is the same both times, so how frequent it is cancels.
# Networks: random masks, CorrMask, and as a control CorrMask with a graph whose genes have changed places (shuffled).
#
# Also those of pretrained.mk, cells.mk
# PROBES  number of genes to probe in every test cell
# SEEDS are paired; more seeds add trainings and keep those that are done. Cells and trainings are those of cells.mk and pretrained.mk. Without
# -j, make runs as many trainings side by side as there are cores.

own_reliance_LABEL = $(label_if_there)
$(if $(value DATA),$(eval $(call own,reliance,LABEL)))
PROBES ?= $(call scale,2,8,8)
RELIANCE_STRATEGIES := random corrmask shuffled
RELIANCE_SETTINGS := $(PRETRAINED_SETTINGS) PROBES
$(eval $(call run_folder,RELIANCE,reliance,$(RELIANCE_SETTINGS)))

reliance: ##@ how much do networks copy a gene from its partners? random masks, CorrMask, shuffled graph (DATA= SEEDS=)
$(call check,reliance,DATA)
$(call with_jobs,reliance,$(words $(foreach k,$(RELIANCE_SEEDS),$(RELIANCE_STRATEGIES))))
$(eval $(call page,reliance,$(RELIANCE),$(RELIANCE)/table.txt $(RELIANCE)/reliance.svg))

$(RELIANCE)/hidden.masked $(RELIANCE)/visible.masked: $(RELIANCE)/%.masked: $(PREPARED)/test.tok $(PREPARED)/corpus.graph \
		| $(RELIANCE)/settings
	$(call RELIANCE_stage,maskgen-$*) $(BIN)/maskgen -v --strategy probe --partners $* -g $(PREPARED)/corpus.graph --epochs $(PROBES) \
		--seed $(SEED) -@ $(job_threads) -o $@ $<

# $(call reliance_losses,STRATEGIES,SEEDS): the losses of networks on both streams. The rows of the cells are in the .cells beside each.
reliance_losses = $(foreach s,$1,$(foreach k,$2,$(foreach p,hidden visible,$(RELIANCE)/$s-$k.$p.tsv)))
# $1: strategy, $2: hidden or visible; * is the seed
define reliance_eval
$$(PRETRAINED_SEEDS:%=$$(RELIANCE)/$1-%.$2.tsv): $$(RELIANCE)/$1-%.$2.tsv: $$(RELIANCE)/$2.masked $$(PRETRAINED)/$1-%.model/model.safetensors
	$$(call RELIANCE_stage,eval-$1-$$*-$2) $$(PIPELINES)/step.sh reliance/losses $$(PRETRAINED)/$1-$$*.model $$< $$@ -@ $$(job_threads)
endef
$(foreach s,$(RELIANCE_STRATEGIES),$(foreach p,hidden visible,$(eval $(call reliance_eval,$s,$p))))

# Two tables that know no biology
$(RELIANCE)/reference.tsv: $(PREPARED)/corpus.tok $(RELIANCE)/hidden.masked $(RELIANCE)/visible.masked $(PIPELINES)/reference.sh
	@$(job) $(script)/reference.sh $< $(SEED) $(filter %.masked,$^) $(whole)

$(eval $(call grid,$(RELIANCE),$(RELIANCE_SEEDS)))
$(RELIANCE)/table.txt: $(call reliance_losses,$(RELIANCE_STRATEGIES),$(RELIANCE_SEEDS)) $(RELIANCE)/reference.tsv $(RELIANCE)/grid \
		$(addprefix $(PIPELINES)/,reliance/table.py reliance/points.py)
	@$(table) reliance/table $(RELIANCE) $(PREPARED) '$(RELIANCE_STRATEGIES)' '$(RELIANCE_SEEDS)' $(call text,DATA) \
		$(call quote,$(pretrained_how)) $(whole)

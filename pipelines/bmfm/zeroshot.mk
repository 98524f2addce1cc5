# make bmfm-zeroshot: a network and cells of a data set that it has never seen, which measured other genes (BMFM-RNA).
#
#     make bmfm-zeroshot                                                        four simulated sets, each without other genes
#     make bmfm-zeroshot DATA="a.h5ad b.h5ad c.h5ad" GENES=1000 ONTOLOGY=cl-basic.obo    your sets, each file is one
#
# Every set is left out in turn. Networks learn from the others, and predict the terms of its cells without training on it: the likeliest leaf of the
# ontology, the likeliest child from the top down, and a probe of the embeddings, which learns from the training cells too. All cells together say how
# well sets are mixed and lineages kept apart (scmetric integration), the left-out cells alone how well terms are. The bar of a network that saw labels is a
# linear probe that saw them: its logits are an embedding, too. Arms are those of bmfm/objectives.mk: in wced, a gene that a set did not measure
# is no target; in wced-zeros it is a target of value 0. Without a network: log-normalised expression and its 50 components, of the genes of all files
# (unmeasured ones are zeros) and of the genes that all files share (expression-shared, pca-shared); naive Bayes of the counts of all genes.
#
# Also those of objectives.mk
# SET_CELLS  cells per set; 0: all
# LEFT_OUT   numbers of the sets that are left out, in the order of DATA; none: each

SET_CELLS ?= $(call scale,100,1000,0)
LEFT_OUT  ?=
ZERO_ARMS := wced+hce wced-zeros+hce wced wced-zeros
ZERO_BASELINES := expression pca naive-bayes expression-shared pca-shared untrained
ZERO_SEEDS := $(OBJ_SEEDS)

ZERO_SETTINGS := DATA LABEL SET_CELLS $(if $(value DATA),,SEED) $(if $(filter-out 0,$(GENES)),GENES) ONTOLOGY LABELS BMFM_EPOCHS BMFM_LR BMFM_BATCH BMFM_CONFIG
$(eval $(call run_folder,ZERO,bmfm-zeroshot,$(ZERO_SETTINGS)))
# DATA is looked at only if these are its files
zero_now := $(filter bmfm-zeroshot%,$(MAKECMDGOALS))
ZERO_OUT := $(or $(LEFT_OUT),$(if $(value DATA),$(if $(zero_now),$(shell $(PIPELINES)/with-files.sh $(call text,DATA) sh -c 'seq $$#' -)),1 2 3 4))
ZERO_SPLITS := $(foreach k,$(ZERO_SEEDS),$(ZERO_OUT:%=%-$k))

ifeq ($(value DATA),)
zero_files = $(foreach k,1 2 3 4,$(ZERO)/set$k.h5ad)
$(ZERO)/set4.h5ad: | $(ZERO)/settings
	$(call ZERO_stage,scsim) $(PIPELINES)/step.sh bmfm/sim-sets $(ZERO) $(SET_CELLS) $(SEED) $(OBJ_SIM) --batch-effect 0.4
$(ZERO)/shared.counts: $(ZERO)/set4.h5ad
	$(call ZERO_stage,h5tok) $(PIPELINES)/step.sh bmfm/sets $(ZERO) $(call text,LABEL) $(call text,ONTOLOGY) $(call text,LABELS) '' $(zero_files)
else
$(ZERO)/shared.counts: | $(ZERO)/settings
	@$(script)/with-files.sh $(call text,DATA) $(PIPELINES)/columns.sh $(call text,LABEL) none
	$(call ZERO_stage,h5tok) $(PIPELINES)/with-files.sh $(call text,DATA) $(PIPELINES)/step.sh bmfm/sets $(ZERO) $(call text,LABEL) $(call text,ONTOLOGY) \
		$(call text,LABELS) $(reading_word)
endif
$(ZERO_SPLITS:%=$(ZERO)/without-%/group): $(ZERO)/without-%/group: $(ZERO)/shared.counts
	$(call ZERO_stage,scsample-$*) $(PIPELINES)/step.sh bmfm/leave-out $(ZERO) $(subst -, ,$*) $(SET_CELLS) $(GENES) $(@D)

ZERO_RUN = $(PIPELINES)/arm.sh bmfm --logs $(ZERO)/log --label term --left-out coarse --ontology $(call text,ONTOLOGY) --config $(call text,BMFM_CONFIG) \
	--epochs $(BMFM_EPOCHS) --batch $(BMFM_BATCH) --lr $(BMFM_LR) --threads $(job_threads) --keep-models $(KEEP_MODELS)
zero_grid := $(or $(BMFM_ARMS),$(ZERO_ARMS))
define zero_rule
$(ZERO_SPLITS:%=$(ZERO)/runs/$1-%/scores.tsv): $(ZERO)/runs/$1-%/scores.tsv: $(ZERO)/without-%/group
	@$$(job) BIN=$$(BIN) $$(ZERO_RUN) --inputs $(ZERO)/without-$$* --arm $1 --seed $$(lastword $$(subst -, ,$$*)) --stage $1-$$* --out $$(@D)
endef
$(foreach a,$(sort $(ZERO_BASELINES) $(zero_grid)),$(eval $(call zero_rule,$a)))
ZERO_RUNS := $(foreach s,$(ZERO_SPLITS),$(foreach a,$(ZERO_BASELINES) $(zero_grid),$(ZERO)/runs/$a-$s/scores.tsv))

$(eval $(call grid,$(ZERO),$(zero_grid); $(ZERO_SPLITS)))
$(ZERO)/table.txt: $(ZERO_RUNS) $(ZERO)/grid $(PIPELINES)/bmfm/zeroshot.py
	@$(table) bmfm/zeroshot $(ZERO) '$(zero_grid)' '$(ZERO_BASELINES)' '$(ZERO_SPLITS)' $(call text,DATA) $(call quote,$(obj_how)) $(whole)
bmfm-zeroshot: ##@ networks on an unseen set of cells with other genes: types by both decodings, integration by set
$(eval $(call page,bmfm-zeroshot,$(ZERO),$(ZERO)/table.txt))
$(call check,bmfm-zeroshot,BMFM_ARMS DATA ONTOLOGY LABELS BMFM_EPOCHS BMFM_BATCH SET_CELLS LEFT_OUT)
$(call check_arms,bmfm-zeroshot,bmfm,BMFM_ARMS)
$(call with_jobs,bmfm-zeroshot,$(words $(ZERO_RUNS)))

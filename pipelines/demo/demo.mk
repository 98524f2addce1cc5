# make demo: do dependency-aware masks help? It compares random masks with CorrMask's. How much do the networks copy a gene from its partners?
# How well do their embeddings separate cell types, beside baselines without a network or without training?
#
#     make demo                                  simulated cells with known modules and cell types
#     make demo DATA=lung.h5ad LABEL=cell_type   the same on your file
#
# Also those of reliance.mk
# Losses are those of make reliance, which adds a control. Without -j, make runs as
# many trainings side by side as there are cores. The logs ($(DEMO)/log, $(PRETRAINED)/log) have the messages of every stage, with its time
# and peak memory.

DEMO_SETTINGS := $(RELIANCE_SETTINGS)
$(eval $(call run_folder,DEMO,demo,$(DEMO_SETTINGS)))
DEMO_MODELS := random corrmask

demo: ## do dependency-aware masks help? random masks against CorrMask, with baselines (DATA= LABEL= CELLS= SEEDS=)
$(call check,demo,DATA)
$(call with_jobs,demo,$(words $(foreach k,$(DEMO_SEEDS),$(DEMO_MODELS))))
$(eval $(call page,demo,$(DEMO),$(DEMO)/report.txt $(DEMO)/demo.svg))

DEMO_NETWORKS := $(foreach s,untrained $(DEMO_MODELS),$(DEMO_SEEDS:%=$s-%))
define demo_embed
$$(DEMO)/$1.train.emb $$(DEMO)/$1.test.emb: $$(DEMO)/$1.%.emb: $$(PREPARED)/%.tok $$(PRETRAINED)/$1.model/model.safetensors \
		| $$(DEMO)/settings
	$$(call DEMO_stage,scembed-$1-$$*) $$(BIN)/scembed -v -M $$(PRETRAINED)/$1.model -@ $$(job_threads) -o $$@ $$<
endef
$(foreach m,$(DEMO_NETWORKS),$(eval $(call demo_embed,$m)))
$(DEMO_NETWORKS:%=$(DEMO)/%.probe.tsv): $(DEMO)/%.probe.tsv: $(DEMO)/%.train.emb $(DEMO)/%.test.emb
	$(call DEMO_stage,ctaprobe-$*) $(PIPELINES)/bootstrap.sh cells $(PREPARED)/group $(call text,LABEL) $^ $@ -@ $(job_threads)

# The page also has a map of each baseline.
$(BASELINES:%=$(DEMO)/%.probe.tsv): $(DEMO)/%.probe.tsv: $(PREPARED)/%.score.tsv | $(DEMO)/settings
	@ln -sfr $(PREPARED)/$*.test.emb $(DEMO)
	@cp $< $@
	@[ ! -e $(<:.tsv=.roc.tsv) ] || cp $(<:.tsv=.roc.tsv) $(@:.tsv=.roc.tsv)

# The expression of the genes that the networks read, and the graph of all genes: what the cut to MAXLEN genes takes away
$(DEMO)/train.read.tok $(DEMO)/test.read.tok: $(DEMO)/%.read.tok: $(PREPARED)/%.counts $(if $(value MEDIANS),,$(PREPARED)/vocab.tsv) \
		| $(DEMO)/settings
	$(call DEMO_stage,rankenc-read-$*) $(BIN)/rankenc -v $(prepared_vocab) --value --max-len $(MAXLEN) -@ $(job_threads) -o $@ $<
$(DEMO)/read.train.emb $(DEMO)/read.test.emb: $(DEMO)/read.%.emb: $(DEMO)/%.read.tok $(DEMO)/train.read.tok
	$(call DEMO_stage,screduce-read-$*) $(BIN)/screduce expression -v --train $(DEMO)/train.read.tok -@ $(job_threads) -o $@ $<
$(DEMO)/read.probe.tsv: $(DEMO)/%.probe.tsv: $(DEMO)/%.train.emb $(DEMO)/%.test.emb
	$(call DEMO_stage,ctaprobe-$*) $(PIPELINES)/bootstrap.sh cells $(PREPARED)/group $(call text,LABEL) $^ $@ -@ $(job_threads)
$(DEMO)/all-genes.tok: $(PREPARED)/corpus.counts $(if $(value MEDIANS),,$(PREPARED)/vocab.tsv) | $(DEMO)/settings
	$(call DEMO_stage,rankenc-all-genes) $(BIN)/rankenc -v $(prepared_vocab) --max-len 16777216 -@ $(job_threads) -o $@ $<
$(DEMO)/all-genes.graph: $(DEMO)/all-genes.tok
	$(call DEMO_stage,depgraph-all-genes) $(PIPELINES)/graph.sh $< $@ --seed $(SEED) -@ $(job_threads)

$(eval $(call grid,$(DEMO),$(DEMO_SEEDS)))
$(DEMO)/report.txt: $(call reliance_losses,$(DEMO_MODELS),$(DEMO_SEEDS)) $(patsubst %,$(DEMO)/%.probe.tsv,$(BASELINES) read $(DEMO_NETWORKS)) \
		$(DEMO)/all-genes.graph $(RELIANCE)/reference.tsv $(DEMO)/grid $(addprefix $(PIPELINES)/,demo/report.py reliance/points.py)
	@$(table) demo/report $(DEMO) $(PREPARED) $(PRETRAINED) $(RELIANCE) '$(DEMO_SEEDS)' $(call text,DATA) $(call text,LABEL) '$(CELLS)' '$(MAXLEN)' \
		$(call quote,$(pretrained_how)) $(whole)

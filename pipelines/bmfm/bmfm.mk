# make demo-bmfm: a network that decodes whole cells and learns cell types of the Cell Ontology at the same time (BMFM-RNA).
#
#     make demo-bmfm               1,500 simulated cells of eight types, two minutes on two cores
#     make demo-bmfm SCALE=tiny    300 cells, one epoch: it only tests the installation
#
# The network is bmfm-tiny. A fifth of the genes of each cell is left out of the input. It predicts the expression of all genes from the
# first token, and the cell type, a term of data/blood-cells.obo, from the second. A third of the cells is labelled by a term above their type.
# These cells show how it works, not how well: simulated types are far apart.
#
# BMFM_CELLS   simulated cells
# BMFM_EPOCHS  passes over the training cells
# BMFM_LR      learning rate

BMFM_CELLS  ?= $(call scale,300,1500,4000)
BMFM_EPOCHS ?= $(call scale,1,6,20)
BMFM_LR     ?= 0.002

BMFM_SETTINGS := SCALE SEED BMFM_CELLS BMFM_EPOCHS BMFM_LR
$(eval $(call run_folder,BMFM,bmfm,$(BMFM_SETTINGS)))
BMFM_ONTOLOGY := $(PIPELINES)/../data/blood-cells.obo

demo-bmfm: ##@ decode whole cells and learn the Cell Ontology: losses of both, and cells along the lineages
$(call check,demo-bmfm,BMFM_CELLS BMFM_EPOCHS)
$(eval $(call page,demo-bmfm,$(BMFM),$(BMFM)/report.txt $(BMFM)/lineages.svg))

$(BMFM)/simulated.counts: | $(BMFM)/settings
	$(call BMFM_stage,scsim) $(BIN)/scsim -v --cells $(BMFM_CELLS) --genes 300 --modules 30 --module-share 1 --depth 3000 --types 8 --rarest 0.04 \
		--seed $(SEED) -@ $(THREADS) -o $@
$(BMFM)/cells.h5ad: $(BMFM)/simulated.counts
	$(call BMFM_stage,scview) $(BIN)/scview -v -O h5ad -o $@ $<
$(BMFM)/labels.tsv: $(BMFM)/simulated.counts $(PIPELINES)/bmfm/terms.py
	@$(table) bmfm/terms simulated $< $(whole)
$(BMFM)/cells.counts: $(BMFM)/cells.h5ad $(BMFM)/labels.tsv
	$(call BMFM_stage,h5tok) $(BIN)/h5tok -v --obs-table $(BMFM)/labels.tsv -@ $(THREADS) -o $@ $<
$(BMFM)/vocab.tsv: $(BMFM)/cells.counts
	$(call BMFM_stage,rankenc-fit) $(BIN)/rankenc -v --fit --vocab-style bmfm -@ $(THREADS) -o $@ $<
$(BMFM)/cells.tok: $(BMFM)/cells.counts $(BMFM)/vocab.tsv
	$(call BMFM_stage,rankenc) $(BIN)/rankenc -v -m $(BMFM)/vocab.tsv --cls 2 -@ $(THREADS) -o $@ $<
$(BMFM)/train.tok $(BMFM)/test.tok: $(BMFM)/%.tok: $(BMFM)/cells.tok
	$(call BMFM_stage,scsample-$*) $(BIN)/scsample -v --test-fraction 0.2 --part $* --seed $(SEED) -o $@ $<

bmfm_masks = --objective cell --rate 0.2 --bernoulli --keep term --count-kept --batch 32 --seed $(SEED)
$(BMFM)/test.masked: $(BMFM)/test.tok
	$(call BMFM_stage,maskgen-test) $(BIN)/maskgen -v $(bmfm_masks) -o $@ $<
$(BMFM)/bmfm.model/model.safetensors: $(BMFM)/train.tok $(BMFM)/test.masked $(BMFM_ONTOLOGY)
	$(call BMFM_stage,sctrain) $(PIPELINES)/train.sh wced $(BMFM)/bmfm.model $< $(bmfm_masks) --epochs $(BMFM_EPOCHS) -- --config bmfm-tiny \
		--head term:hce,position=1 --ontology $(BMFM_ONTOLOGY) --eval $(BMFM)/test.masked --lr $(BMFM_LR) --seed $(SEED) -@ $(THREADS)
$(BMFM)/leaf.pred $(BMFM)/greedy.pred: $(BMFM)/%.pred: $(BMFM)/test.tok $(BMFM)/bmfm.model/model.safetensors
	$(call BMFM_stage,scpredict-$*) $(BIN)/scpredict cells -v -M $(BMFM)/bmfm.model --head term --decode $* -@ $(THREADS) -o $@ $<
$(BMFM)/leaf.score.tsv $(BMFM)/greedy.score.tsv: $(BMFM)/%.score.tsv: $(BMFM)/%.pred
	$(call BMFM_stage,ctaprobe-$*) $(BIN)/ctaprobe score -v --label term --ontology $(BMFM_ONTOLOGY) -o $@ $<

$(BMFM)/report.txt: $(BMFM)/leaf.score.tsv $(BMFM)/greedy.score.tsv $(PIPELINES)/bmfm/report.py
	@$(table) bmfm/report $(BMFM) $(whole)

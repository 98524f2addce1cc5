# make moa: what a drug does, predicted from cells treated with drugs that the probe has not seen (BMFM-RNA, sections 2.7 and 4.5, figure 6)
#
#     make moa DATA=plate.h5ad LABEL=moa DRUG=product_name                 without a network
#     make moa DATA=plate.h5ad LABEL=moa DRUG=product_name MODEL=DIR       also the embedding of a trained model, as make embed gives it
#     make moa                                                             simulated cells: only tests the installation
#
# Every fold tests at least one whole drug of each mechanism: two folds, drawn five times, and logistic regression. AvgBio says how well mechanisms
# are apart (NMI and ARI of the best resolution, silhouette). The file has the cells to score and no others: the paper took the Sci-Plex A549 cells of
# doses of 10,000 nM with a viability below .85, no vehicle, and mechanisms of several drugs (39 drugs, 9 mechanisms). Cells without a LABEL are left out.
#
# DATA         AnnData or 10x file
# LABEL        obs column with the mechanism
# DRUG         obs column with the drug
# MOA_FOLDS    number of folds; every mechanism needs as many drugs
# MOA_REPEATS  draws of the folds
# MODEL        folder of a trained model, as of make embed
# POOL         which hidden states to keep (scembed --pool)
# HIDDEN_LAYER  the layer of the network (scembed --emb-layer)
# MAXLEN       maximum number of tokens per cell that MODEL reads; default: all that it has positions for
# MEDIANS      the model's vocabulary, if it has no vocab.tsv, or Geneformer's table of medians
# TOKEN_TABLE  Geneformer's table of tokens, if MEDIANS is its table
# GENE_NAMES   table of name and gene id, if DATA and the model name genes differently
# RANK_ARGS    more options of h5tok --rank

DRUG        ?= drug
own_moa_MAXLEN = $(if $(value MODEL),$(own_embed_MAXLEN))
MOA_FOLDS   ?= 2
MOA_REPEATS ?= $(call scale,2,5,5)
MOA_SETTINGS := DATA LABEL DRUG MOA_FOLDS MOA_REPEATS SEED $(if $(value DATA),,SCALE) \
	$(if $(value MODEL),MODEL $(foreach v,MEDIANS TOKEN_TABLE GENE_NAMES RANK_ARGS POOL HIDDEN_LAYER,$(if $(value $v),$v)) $(if $(embed_maxlen),MAXLEN))
$(eval $(call run_folder,MOA,moa,$(MOA_SETTINGS)))
MOA_METHODS := expression pca $(if $(value MODEL),model)

moa: ## predict mechanisms of action of drugs that the probe has not seen (DATA= LABEL= DRUG= MODEL=)
$(call check,moa,DATA MODEL MOA_FOLDS MOA_REPEATS)
$(eval $(call page,moa,$(MOA),$(MOA)/table.txt))
$(call stop,$(if $(filter moa,$(MAKECMDGOALS)),$(if $(value MODEL),$(if $(value DATA),,MODEL= without DATA=: which file has the cells?))))

ifeq ($(value DATA),)
$(MOA)/cells.counts: | $(MOA)/settings
	$(call MOA_stage,scsim) $(PIPELINES)/step.sh moa/simulate $@ $(call text,DRUG) $(call scale,200,1000,1000) $(SEED)
else
$(MOA)/cells.counts: | $(MOA)/settings
	@$(script)/with-files.sh $(call text,DATA) $(PIPELINES)/columns.sh $(call text,LABEL) $(call text,DRUG)
	$(call MOA_stage,h5tok) $(PIPELINES)/with-files.sh $(call text,DATA) $(BIN)/h5tok -v $(reading) -@ $(THREADS) -o $@
endif
$(MOA)/expression.emb $(MOA)/pca.emb: $(MOA)/%.emb: $(MOA)/cells.counts
	$(call MOA_stage,screduce-$*) $(BIN)/screduce $(baseline_$*) -v --train $< -@ $(THREADS) -o $@ $<
$(MOA)/model.emb: $(EMBED)/embedding.emb | $(MOA)/settings
	@ln -sfr $< $@
$(MOA_METHODS:%=$(MOA)/%.score.tsv): $(MOA)/%.score.tsv: $(MOA)/%.emb
	$(call MOA_stage,ctaprobe-$*) $(BIN)/ctaprobe cells -v --label $(call text,LABEL) --group $(call text,DRUG) --every-class --folds $(MOA_FOLDS) \
		--repeats $(MOA_REPEATS) --seed $(SEED) -@ $(THREADS) -o $@ $<
# Not of expression: a wide input has no silhouettes worth their time
$(MOA)/pca.bio.tsv $(MOA)/model.bio.tsv: $(MOA)/%.bio.tsv: $(MOA)/%.emb
	$(call MOA_stage,scmetric-$*) $(BIN)/scmetric integration -v --preset bmfm --label $(call text,LABEL) --seed $(SEED) -@ $(THREADS) -o $@ $<
$(MOA)/table.txt: $(MOA_METHODS:%=$(MOA)/%.score.tsv) $(patsubst %,$(MOA)/%.bio.tsv,$(filter-out expression,$(MOA_METHODS))) $(PIPELINES)/moa/report.py
	@$(table) moa/report $(MOA) $(call text,DATA) $(call text,LABEL) $(call text,DRUG) $(MOA_METHODS) $(whole)

# make combine, bmfm-objectives, bmfm-ontology, bmfm-learnability, bmfm-finetune: what objectives of pre-training, masking rates and labels of an
# ontology gain (BMFM-RNA, CorrMask, R2MAE).
#
#     make combine                                                            simulated cells, new ones for every seed
#     make combine DATA=marrow.h5ad GENES=2000 ONTOLOGY=cl-basic.obo          your file; donors are held out
#
# All arms have one network, one encoding (all genes of a cell, with their counts) and the same cells. An arm is OBJECTIVE[+r2mae][+LABELS][+tuned]:
#
#     mlm-random, mlm-corrmask   which gene is hidden at this position? Random masks, or CorrMask's
#     value                      which count is hidden at this position? value-zeros: as BMFM-RNA's, with zeros among the genes, read at the first token
#     wced                       all genes of the cell, from its first token; wced-zeros: genes that a file did not measure are zeros
#     wced-released              the same with zeros among the genes of four cells in five, as in BMFM-RNA's released configuration
#     +r2mae                     the masking rate of each batch is drawn from .1 to .5 (otherwise it is .15, for wced .2)
#     +hce                       also the cell type, by the loss of the ontology; +COLUMN-hce and +COLUMN-ce: of another column, or by cross-entropy
#     +COLUMN-reverse            also a column that the first token is to forget, such as the donor: by gradient reversal, with the paper's weight of .05
#                                (BMFM_LR=0.002 is too high for it)
#     +tuned                     then fine-tuned for the cell type
#
# The columns are term, the term of the label; moved, of which every second donor has the term above it; dropped, where these donors have none.
#
# Also those of cells.mk
# BMFM_ARMS    arms instead of those of the experiment; the others are compared with the first one
# BMFM_EPOCHS  passes over the training cells
# BMFM_LR      learning rate
# BMFM_BATCH   cells per batch
# BMFM_CONFIG  network: bmfm-tiny, bmfm-47m or a config.json
# ONTOLOGY     terms of the cell types (OBO, gzip accepted)
# LABELS       table of label and term: columns label, term and, for bmfm-zeroshot, coarse (types that all sets have)
# PROGRAMS     groups of genes for bmfm-learnability: table of gene and group; none: the modules of simulated cells
# MIN_EXPRESSED  bmfm-learnability: leave out genes with fewer expressed pairs in the test cells
# SEEDS        seeds of split, masks, order, initial weights and dropout (without DATA also of the cells); differences are paired by seed
# SETS         instead of DATA: table of several sets, columns set (a name), DATA, LABEL and other variables: each by itself, then all compared
# KEEP_MODELS  1 keeps the models; 0 removes a model after it is scored
# The embedding is what the objective trains: the mean of the genes for mlm and value, the first token for wced and value-zeros, and the second one with labels.
# Runs that experiments share are made once, in results/bmfm-inputs. pipelines/arm.sh makes one by hand. More arms or seeds add runs and keep
# those that are done.

BMFM_ARMS   ?=
BMFM_BATCH  ?= $(call scale,12,32,64)
BMFM_CONFIG ?= $(call scale,bmfm-tiny,bmfm-tiny,bmfm-47m)
ONTOLOGY    ?= $(BMFM_ONTOLOGY)
LABELS      ?= $(PIPELINES)/bmfm/cell-types.tsv
PROGRAMS    ?=
MIN_EXPRESSED ?= $(call scale,10,100,100)
OBJ_SEEDS   := $(or $(SEEDS),$(call scale,1 2,1 2 3,1 2 3 4 5))
OBJ_SIM     := --genes 300 --modules 30 --module-share 1 --depth 600 --activity 2 --noise 0.3 --types 8 --rarest 0.04

OBJ_SETTINGS := DATA LABEL GROUP CELLS SEED $(if $(filter-out 0,$(GENES)),GENES) $(if $(MIN_CLASS),MIN_CLASS) ONTOLOGY LABELS PROGRAMS BMFM_EPOCHS \
	BMFM_LR BMFM_BATCH BMFM_CONFIG MIN_EXPRESSED
$(eval $(call run_folder,OBJ,bmfm-inputs,$(OBJ_SETTINGS)))
obj_each = $(OBJ_SEEDS:%=$(OBJ)/split-%/$1)

# ---- the cells of a seed ----

ifeq ($(value DATA),)
$(call obj_each,cells.counts): $(OBJ)/split-%/cells.counts: | $(OBJ)/settings
	@mkdir -p $(@D)
	$(call OBJ_stage,scsim-$*) $(BIN)/scsim -v $(OBJ_SIM) --cells $(CELLS) --seed $* -@ $(job_threads) -o $@
$(call obj_each,group): $(OBJ)/split-%/group: $(OBJ)/split-%/cells.counts
	@$(script)/group.sh $(call text,GROUP) $(call text,LABEL) $< $(whole)
# The symbol of a simulated gene is MODULE.NUMBER
$(call obj_each,programs.tsv): $(OBJ)/split-%/programs.tsv: $(OBJ)/split-%/cells.counts
	@$(BIN)/scview -q --vocab $< | awk -F '\t' -v OFS='\t' 'BEGIN { print "gene", "label" } NR > 1 { sub(/\..*/, "", $$3); print $$2, $$3 }' $(whole)
obj_programs := $(if $(value PROGRAMS),,programs.tsv)
else
$(call obj_each,cells.counts): $(OBJ)/split-%/cells.counts: $(PREPARED)/cells.counts | $(OBJ)/settings
	@mkdir -p $(@D)
	@ln -sf $(abspath $<) $@
$(call obj_each,group): $(OBJ)/split-%/group: $(PREPARED)/group | $(OBJ)/settings
	@mkdir -p $(@D)
	@cp $< $@
endif
$(call obj_each,terms.counts): %/terms.counts: %/cells.counts %/group $(PIPELINES)/bmfm/terms.py
	$(call OBJ_stage,terms-$(notdir $*)) $(PIPELINES)/step.sh bmfm/terms $*/cells.counts $*/group $(call text,LABEL) $(call text,ONTOLOGY) \
		$(call text,LABELS) $@ -@ $(job_threads)
$(call obj_each,vocab.tsv): %/vocab.tsv: %/terms.counts
	$(call OBJ_stage,rankenc-fit-$(notdir $*)) $(BIN)/rankenc -v --fit --vocab-style bmfm -@ $(job_threads) -o $@ $<
define obj_part
$(call obj_each,$1.counts): $(OBJ)/split-%/$1.counts: $(OBJ)/split-%/terms.counts $(OBJ)/split-%/group
	$$(call OBJ_stage,scsample-$1-$$*) $$(PIPELINES)/split.sh $1 0.25 $$(@D)/group $$< $$@ $$*
$(call obj_each,$1.tok): %/$1.tok: %/$1.counts %/vocab.tsv
	$$(call OBJ_stage,rankenc-$1-$$(notdir $$*)) $$(BIN)/rankenc -v -m $$*/vocab.tsv --cls 2 -@ $$(job_threads) -o $$@ $$<
endef
$(foreach p,train test,$(eval $(call obj_part,$p)))
$(call obj_each,graph): %/graph: %/train.tok
	$(call OBJ_stage,depgraph-$(notdir $*)) $(PIPELINES)/graph.sh $< $@ -@ $(job_threads)

# ---- its runs ----

OBJ_BASELINES := expression pca naive-bayes untrained
OBJ_RUN = $(PIPELINES)/arm.sh bmfm --logs $(OBJ)/log --label $(call text,LABEL) --ontology $(call text,ONTOLOGY) $(if $(value PROGRAMS),--programs \
	$(call text,PROGRAMS)) --config $(call text,BMFM_CONFIG) --epochs $(BMFM_EPOCHS) --batch $(BMFM_BATCH) --lr $(BMFM_LR) \
	--min-expressed $(MIN_EXPRESSED) --threads $(job_threads) --keep-models $(KEEP_MODELS)
define obj_rule
$(OBJ_SEEDS:%=$(OBJ)/runs/$1-%/scores.tsv): $(OBJ)/runs/$1-%/scores.tsv: $(foreach f,train.counts test.counts train.tok test.tok graph \
		$(obj_programs),$(OBJ)/split-%/$f)
	@$$(job) BIN=$$(BIN) $$(OBJ_RUN) $(if $(obj_programs),--programs $(OBJ)/split-$$*/programs.tsv) --inputs $(OBJ)/split-$$* --arm $1 --seed $$* --out $$(@D)
endef
obj_runs = $(foreach k,$(OBJ_SEEDS),$(foreach a,$(OBJ_BASELINES) $1,$(OBJ)/runs/$a-$k/scores.tsv))

# ---- the experiments: arms and metrics ----

obj_both = $1 $(1:%=%+hce)
COMBINE_ARMS := $(foreach o,mlm-random mlm-corrmask value wced,$(call obj_both,$o $o+r2mae))
COMBINE_METRICS := macro_f1=macro F1,f1_rare=F1 of the rarest third,avg_bio_swept=AvgBio
OBJECTIVES_ARMS := $(call obj_both,value-zeros wced mlm-random)
OBJECTIVES_METRICS := macro_f1=macro F1,avg_bio_swept=AvgBio,avg_batch=AvgBatch
ONTO_ARMS := wced+moved-hce wced+moved-ce wced+dropped-ce wced+term-ce wced+hce
ONTO_METRICS := head_exact=exact term,head_finer=finer term,head_coarser=coarser term,head_hierarchical_f1=hierarchical F1,head_macro_f1=macro F1 of terms
LEARN_ARMS := wced wced+r2mae value value+r2mae
LEARN_METRICS := gated_spearman=zeros and error (gated),ungated_spearman=zeros and error (ungated),gated_winners=winners (gated),ungated_winners=winners \
	(ungated),gated_better_than_mean=better than the mean (gated),ungated_better_than_mean=better than the mean (ungated),ungated_genes=genes
TUNE_ARMS := wced wced+tuned untrained+tuned
TUNE_METRICS := macro_f1=macro F1,f1_rare=F1 of the rarest third,accuracy=accuracy,accuracy_low=accuracy: lower end over draws of tested donors (of cells if fewer than three donors are),accuracy_high=accuracy: upper end
OBJ_EXPERIMENTS := COMBINE:combine OBJECTIVES:bmfm-objectives ONTO:bmfm-ontology LEARN:bmfm-learnability TUNE:bmfm-finetune

# $1: prefix of its variables, $2: target
define obj_experiment
$(eval $(call run_folder,$1,$2,$(OBJ_SETTINGS)))
$1_GRID := $$(or $$(BMFM_ARMS),$$($1_ARMS))
$1_RUNS := $$(call obj_runs,$$($1_GRID))
$$(eval $$(call page,$2,$$($1),$$($1)/table.txt))
$$(eval $$(call grid,$($1),$$($1_GRID); $$(OBJ_SEEDS)))
$($1)/table.txt: $$($1_RUNS) $($1)/grid $$(PIPELINES)/bmfm/table.py
	@$$(table) bmfm/table $($1) $$(OBJ) $2 '$$($1_GRID)' '$$(OBJ_SEEDS)' $$(call text,DATA) $$(call text,LABEL) $$(call quote,$$($1_METRICS)) \
		$$(call quote,$$(obj_how)) $$(whole)
endef
obj_how = $(BMFM_CONFIG), $(call plural,$(BMFM_EPOCHS),epoch) of batches of $(BMFM_BATCH), learning rate $(BMFM_LR)
$(foreach x,$(OBJ_EXPERIMENTS),$(eval $(call obj_experiment,$(word 1,$(subst :, ,$x)),$(word 2,$(subst :, ,$x)))))
obj_all := $(sort $(OBJ_BASELINES) $(foreach x,$(OBJ_EXPERIMENTS),$($(word 1,$(subst :, ,$x))_GRID)))
$(foreach a,$(obj_all),$(eval $(call obj_rule,$a)))

# Not after hours of training
ifneq ($(filter bmfm-learnability,$(MAKECMDGOALS)),)
.PHONY: $(LEARN)/enough
$(LEARN)/enough: $(call obj_each,test.counts)
	@$(script)/step.sh bmfm/enough $(MIN_EXPRESSED) $^
$(LEARN_RUNS): | $(LEARN)/enough
endif

combine: ##@ objectives, masking rates and ontology labels combined: cell types and their separation (DATA= LABEL= SEEDS=)
bmfm-objectives: ##@ masked genes, masked values or whole cells, each with and without labels: cell types and batches
bmfm-ontology: ##@ labels of half of the donors are a term higher: does the loss of the ontology learn the finer types from them?
bmfm-learnability: ##@ which genes are predicted better than others with as many zeros? whole cells and masked values, with and without the gate
bmfm-finetune: ##@ a network of whole cells, frozen and fine-tuned, and one without pre-training, on held-out donors
obj_targets := $(foreach x,$(OBJ_EXPERIMENTS),$(lastword $(subst :, ,$x)))
$(call check,$(obj_targets),BMFM_ARMS DATA ONTOLOGY LABELS PROGRAMS BMFM_EPOCHS BMFM_BATCH MIN_EXPRESSED)
$(call check_arms,$(obj_targets),bmfm,BMFM_ARMS)
$(foreach x,$(OBJ_EXPERIMENTS),$(call with_jobs,$(lastword $(subst :, ,$x)),$(words $($(firstword $(subst :, ,$x))_RUNS))))

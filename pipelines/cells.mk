# The cells of demo, finetune, genes and table6, ready for training: read, sampled, split, encoded, with their graph; and their cell types as
# predicted without a network.
#
# DATA    AnnData or 10x file, or several; without it, cells are simulated
# LABEL   obs column with the cell type; reliance and genes need none; perturb: default STATE
# GROUP   obs column to split by; none: split by cell; auto: the first of donor_id, donor, patient_id, patient, individual, subject with 4 values, or else sample_id, sample (man corrmask)
# CELLS   cells to use; 0: all
# MAXLEN  maximum number of tokens per cell
# RANK_ARGS  more options of rankenc, such as '--ties group' (make ties says what it changes)
# MIN_CLASS  drop classes of LABEL with a smaller share of the cells
# CORPUS  AnnData or 10x files to pre-train on, without cells of DATA; none: the training cells of DATA
# MEDIANS  vocabulary, or Geneformer's table of medians; none: learned from the cells to pre-train on
# TOKEN_TABLE  Geneformer's table of tokens, if MEDIANS is its table
# GENE_NAMES  table of name and gene id, if DATA and MEDIANS name genes differently
# PROTOCOL  paper, as with SCALE=paper: annotation as in the CorrMask paper: MIN_CLASS 0.05; fine-tuning for 5 epochs without early stopping
# GENES  use only this many genes, those that vary most among all cells (scsample --hvg); 0: all
# SIM  options of scsim(1), without DATA
# The simulated cells are small, with strong modules; of the 300 genes a cell keeps the 64 of highest rank. scsim(1) compares them with real cells.
# Every stage is a file under $(PREPARED), so a second run does nothing and an interrupted run continues where it stopped.

LABEL  ?= cell_type
$(call stop,$(if $(value LABEL)$(OWN),,LABEL=: expected a column of obs))
# Of an experiment that also takes a file without this column, such as one of 10x
label_if_there = $(shell $(script)/with-files.sh $(call text,DATA) h5tok -q --list-obs 2>/dev/null | cut -f 1 | grep -x cell_type)
GROUP  ?= auto
CELLS  ?= $(call scale,300,3000,$(if $(value DATA),0,40000))
MAXLEN ?= $(call scale,64,$(if $(value DATA),256,64),$(if $(value DATA),2048,64))
GENES  ?= 0
SIM    ?= --genes 300 --modules 30 --module-share 1 --depth 20000 --activity 2 --noise 0.3 --rarest 0.02

RANK_ARGS ?=
PROTOCOL    ?= $(call scale,,,paper)
paper_protocol := $(filter paper,$(PROTOCOL))
MIN_CLASS   ?= $(if $(paper_protocol),0.05)
CORPUS      ?=
MEDIANS     ?=
TOKEN_TABLE ?=
GENE_NAMES  ?=

# Settings that are empty are left out, so what was made before they existed is found.
PREPARED_SETTINGS := DATA LABEL GROUP CELLS MAXLEN SEED $(if $(filter-out 0,$(GENES)),GENES) $(if $(value DATA),,SIM) $(if $(MIN_CLASS),MIN_CLASS) \
	$(foreach v,RANK_ARGS CORPUS MEDIANS $(if $(value MEDIANS),TOKEN_TABLE GENE_NAMES),$(if $(value $v),$v))
$(eval $(call run_folder,PREPARED,prepared,$(PREPARED_SETTINGS)))

$(PREPARED)/all.counts: | $(PREPARED)/settings
ifeq ($(value DATA),)
	@echo '  no DATA: simulated cells (scsim)$(call scale,,,; the cells of the paper are not simulated)'
	$(call PREPARED_stage,scsim) $(BIN)/scsim -v $(SIM) --cells $(CELLS) --seed $(SEED) -@ $(THREADS) -o $@
else
	@$(script)/with-files.sh $(call text,DATA) $(PIPELINES)/columns.sh $(call text,LABEL) $(call text,GROUP)
	$(call PREPARED_stage,h5tok) $(PIPELINES)/with-files.sh $(call text,DATA) $(BIN)/h5tok -v $(reading) -@ $(THREADS) -o $@
endif

$(PREPARED)/cells.counts: $(PREPARED)/all.counts
	$(call PREPARED_stage,scsample) $(BIN)/scsample -v $(if $(value DATA),$(if $(filter-out 0,$(CELLS)),-n $(CELLS))) \
		$(if $(and $(or $(MIN_CLASS),$(value DATA)),$(value LABEL)),--min-class $(call text,LABEL):$(or $(MIN_CLASS),1)) $(if $(filter-out 0,$(GENES)),--hvg $(GENES)) --seed $(SEED) -o $@ $<

$(PREPARED)/group: $(PREPARED)/cells.counts
	@$(script)/group.sh $(call text,GROUP) $(call text,LABEL) $< $(whole)

# All rules are static pattern rules, so make does not delete their files as intermediate.
$(PREPARED)/train.counts $(PREPARED)/test.counts: $(PREPARED)/%.counts: $(PREPARED)/cells.counts $(PREPARED)/group
	$(call PREPARED_stage,scsample-$*) $(PIPELINES)/split.sh $* 0.25 $(PREPARED)/group $< $@ $(SEED)

# The cells to pre-train on
ifeq ($(value CORPUS),)
$(PREPARED)/corpus.counts $(PREPARED)/corpus.tok: $(PREPARED)/corpus.%: $(PREPARED)/train.%
	@ln -sf train.$* $@
else
$(PREPARED)/corpus.counts: | $(PREPARED)/settings
	$(call PREPARED_stage,h5tok-corpus) $(PIPELINES)/with-files.sh $(call text,CORPUS) $(BIN)/h5tok -v $(reading_others) -@ $(THREADS) -o $@
endif

map_genes = $(if $(value GENE_NAMES),--map $(call text,GENE_NAMES))
ifeq ($(value MEDIANS),)
prepared_vocab = -m $(PREPARED)/vocab.tsv
$(PREPARED)/vocab.tsv: $(PREPARED)/corpus.counts
	$(call PREPARED_stage,rankenc-fit) $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
else
prepared_vocab = -m $(call text,MEDIANS) $(if $(value TOKEN_TABLE),-t $(call text,TOKEN_TABLE)) $(map_genes)
endif
PREPARED_TOK := $(PREPARED)/train.tok $(PREPARED)/test.tok $(if $(value CORPUS),$(PREPARED)/corpus.tok)
$(PREPARED_TOK): $(PREPARED)/%.tok: $(PREPARED)/%.counts $(if $(value MEDIANS),,$(PREPARED)/vocab.tsv)
	$(call PREPARED_stage,rankenc-$*) $(BIN)/rankenc -v $(prepared_vocab) --max-len $(MAXLEN) $(RANK_ARGS) -@ $(THREADS) -o $@ $<

$(PREPARED)/corpus.graph: $(PREPARED)/corpus.tok
	$(call PREPARED_stage,depgraph) $(PIPELINES)/graph.sh $< $@ --seed $(SEED) -@ $(THREADS)

# Without a network: logistic regression on log-normalised expression, and on 50 principal components, of all training cells; naive Bayes of their counts
BASELINES := expression pca
NO_NETWORK := $(BASELINES) naive-bayes
baseline_expression := expression
baseline_pca := pca -k 50
define baseline
$$(PREPARED)/$1.train.emb $$(PREPARED)/$1.test.emb: $$(PREPARED)/$1.%.emb: $$(PREPARED)/%.counts $$(PREPARED)/train.counts
	$$(call PREPARED_stage,screduce-$1-$$*) $$(BIN)/screduce $$(baseline_$1) -v --train $$(PREPARED)/train.counts -@ $$(job_threads) -o $$@ $$<
endef
$(foreach b,$(BASELINES),$(eval $(call baseline,$b)))
$(BASELINES:%=$(PREPARED)/%.score.tsv): $(PREPARED)/%.score.tsv: $(PREPARED)/%.train.emb $(PREPARED)/%.test.emb $(PREPARED)/group
	$(call PREPARED_stage,ctaprobe-$*) $(PIPELINES)/bootstrap.sh cells $(PREPARED)/group $(call text,LABEL) $(filter %.emb,$^) $@ -@ $(job_threads)
$(PREPARED)/naive-bayes.score.tsv: $(PREPARED)/train.counts $(PREPARED)/test.counts $(PREPARED)/group
	$(call PREPARED_stage,ctaprobe-naive-bayes) $(PIPELINES)/bootstrap.sh cells $(PREPARED)/group $(call text,LABEL) $(filter %.counts,$^) $@ --naive-bayes

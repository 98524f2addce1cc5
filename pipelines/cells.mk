# The cells of demo, finetune, genes and table6, ready for training: read, sampled, split, encoded, with their graph.
#
# DATA    AnnData or 10x file, or several; without it, cells are simulated
# LABEL   obs column with the cell type           GROUP  obs column to split by (donor); auto: find one; none: split by cell
# CELLS   cells to use, 0: all                    MAXLEN tokens of a cell                    SEED  of sample and split
# GENES   use only this many genes, those that vary most among all cells (scsample --hvg); 0: all
# SIM     options of scsim(1), without DATA. The default is small cells with strong modules; of the 300 genes a cell keeps the 64 of highest
#         rank. scsim(1) compares them with real cells.
# Every stage is a file under $(PREPARED), so a second run does nothing and an interrupted run continues where it stopped.

LABEL  ?= cell_type
GROUP  ?= auto
CELLS  ?= $(call scale,400,3000,$(if $(value DATA),0,40000))
MAXLEN ?= $(call scale,64,$(if $(value DATA),256,64),$(if $(value DATA),2048,64))
GENES  ?= 0
SIM    ?= --genes 300 --modules 30 --module-share 1 --depth 20000 --activity 2 --noise 0.3 --rarest 0.02

PREPARED_SETTINGS := DATA LABEL GROUP CELLS MAXLEN SEED $(if $(filter-out 0,$(GENES)),GENES) $(if $(value DATA),,SIM)
$(eval $(call run_folder,PREPARED,prepared,$(PREPARED_SETTINGS)))
PREPARED_TOOLS := $(addprefix $(BIN)/,h5tok rankenc depgraph scsample scsim scview)
prepared_stage = $(call stage_in,$(PREPARED),$1)

$(PREPARED)/all.counts: | $(PREPARED)/settings $(PREPARED_TOOLS)
ifeq ($(value DATA),)
	$(call prepared_stage,scsim) $(BIN)/scsim -v $(SIM) --cells $(CELLS) --seed $(SEED) -@ $(THREADS) -o $@
else
	@$(script)/with-files.sh $(call text,DATA) $(PIPELINES)/columns.sh $(call text,LABEL) $(call text,GROUP)
	$(call prepared_stage,h5tok) $(PIPELINES)/with-files.sh $(call text,DATA) $(BIN)/h5tok -v -@ $(THREADS) -o $@
endif

$(PREPARED)/cells.counts: $(PREPARED)/all.counts
	$(call prepared_stage,scsample) $(BIN)/scsample -v $(if $(value DATA),--where $(call text,LABEL)'!=NA' $(if $(filter-out 0,$(CELLS)),-n $(CELLS))) \
		$(if $(filter-out 0,$(GENES)),--hvg $(GENES)) --seed $(SEED) -o $@ $<

$(PREPARED)/group: $(PREPARED)/cells.counts
	@$(script)/group.sh $(call text,GROUP) $< > $@

# All rules are static pattern rules, so make does not delete their files as intermediate.
$(PREPARED)/train.counts $(PREPARED)/test.counts: $(PREPARED)/%.counts: $(PREPARED)/cells.counts $(PREPARED)/group
	$(call prepared_stage,scsample-$*) $(PIPELINES)/split.sh $* 0.25 $(PREPARED)/group $< $@ $(SEED)

$(PREPARED)/vocab.tsv: $(PREPARED)/train.counts
	$(call prepared_stage,rankenc-fit) $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
$(PREPARED)/train.tok $(PREPARED)/test.tok: $(PREPARED)/%.tok: $(PREPARED)/%.counts $(PREPARED)/vocab.tsv
	$(call prepared_stage,rankenc-$*) $(BIN)/rankenc -v -m $(PREPARED)/vocab.tsv --max-len $(MAXLEN) -@ $(THREADS) -o $@ $<

$(PREPARED)/train.graph: $(PREPARED)/train.tok
	$(call prepared_stage,depgraph) $(PIPELINES)/graph.sh $< $@ --seed $(SEED) -@ $(THREADS)

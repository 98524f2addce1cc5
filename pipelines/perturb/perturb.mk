# make perturb: which genes move cells from one state towards another when they are deleted in silico?
#
#     make perturb                                                        simulated cells, in which one gene drives a state
#     make perturb DATA=lung.h5ad STATE=disease FROM=sick TO=healthy MODEL=my.model
#
# Each gene of each test cell in the state FROM is deleted, and the shift of the cell's embedding towards TO is measured. Beside it: the same
# with random states (19 draws), and the difference of expression between the states, which needs no network. Without MODEL a
# network is trained on the other cells.
#
# Also those of cells.mk, pretrained.mk
# STATE    obs column of the states
# FROM     the state whose cells are perturbed
# TO       the state that shifts are measured towards
# MODEL    folder of a model, as for make embed; none: a network is trained here
# DELETE   genes: all, a list, or a file (scperturb apply --delete)
# TRUTH    file of genes that should be found, one per line; for simulated cells, the regulator and its targets
# PERTURBED  maximum number of cells to use of each state; ten are needed at least, among the cells for the test

own_perturb_SIM := --genes 200 --modules 10 --module-share 0.4 --types 3 --rarest 0.2 --separation 0.5 --depth 3000 --targets 12
own_perturb_LABEL = $(if $(value DATA),$(call given,STATE),cell_type)
$(eval $(call own,perturb,SIM LABEL))
STATE     ?= $(if $(value DATA),,state)
FROM      ?= $(if $(value DATA),,on)
TO        ?= $(if $(value DATA),,off)
MODEL     ?=
DELETE    ?= all
TRUTH     ?=
PERTURBED ?= $(call scale,30,150,2000)
PERTURB_SETTINGS := $(if $(value MODEL),$(PREPARED_SETTINGS) MODEL,$(PRETRAINED_SETTINGS)) STATE FROM TO DELETE $(if $(value TRUTH),TRUTH) PERTURBED
$(eval $(call run_folder,PERTURB,perturb,$(PERTURB_SETTINGS)))
perturb_model = $(if $(value MODEL),$(call found_model,$(PERTURB)),$(PRETRAINED)/random-$(SEED).model)
$(if $(value MODEL),$(eval $(call model,$(PERTURB),MODEL,MEDIANS,TOKEN_TABLE)))

perturb: ## which genes move cells from one state to another when they are deleted? (DATA= STATE= FROM= TO= MODEL=)
$(call check,perturb,DATA $(if $(value MODEL),MODEL MEDIANS TOKEN_TABLE) TRUTH PERTURBED)
$(if $(filter perturb,$(MAKECMDGOALS)),$(foreach v,STATE FROM TO,$(if $(call given,$v),,$(error perturb: $v= is needed with DATA=: the column of the states, and two of them))))
ifeq ($(OWN)$(if $(value DATA),,sim)$(wildcard $(PERTURB)/shift.tsv),perturb)
$(call stop,$(shell $(script)/perturb/check.sh $(foreach v,DATA STATE FROM TO DELETE PERTURBED LABEL GROUP,$(call text,$v)) '$(filter-out 0,$(CELLS))' \
	$(call text,MIN_CLASS) $(SEED) $(call one_file,MODEL) $(call one_file,MEDIANS) $(call one_file,TOKEN_TABLE) 2>&1))
endif
$(eval $(call page,perturb,$(PERTURB),$(PERTURB)/table.txt $(PERTURB)/perturb.svg))

$(PERTURB)/cells.counts: $(PREPARED)/test.counts | $(PERTURB)/settings
	$(call PERTURB_stage,scsample) $(BIN)/scsample -v --where $(call text,STATE)=$(call text,FROM) --where $(call text,STATE)=$(call text,TO) \
		--cap $(call text,STATE):$(PERTURBED) --seed $(SEED) -o $@ $<
$(PERTURB)/cells.tok: $(PERTURB)/cells.counts $(if $(value MODEL),$(PERTURB)/model.tsv,$(PREPARED)/vocab.tsv)
	$(call PERTURB_stage,rankenc) $(if $(value MODEL),$(PIPELINES)/tokens.sh $(PERTURB)/model.tsv $(MAXLEN) $< $@ $(map_genes),$(BIN)/rankenc -v \
		-m $(PREPARED)/vocab.tsv --max-len $(MAXLEN) -o $@ $<) $(RANK_ARGS) -@ $(THREADS)
$(PERTURB)/shift.tsv: $(PERTURB)/cells.tok $(PREPARED)/group $(if $(value MODEL),,$(PRETRAINED)/random-$(SEED).model/model.safetensors) \
		$(PIPELINES)/perturb/steps.sh
	$(call PERTURB_stage,shift) $(PIPELINES)/step.sh perturb/shifts $(PERTURB) $(perturb_model) $(call text,STATE) $(call text,FROM) $(call text,TO) \
		$(call text,DELETE) $(MAXLEN) $(PREPARED)/group -@ $(THREADS)
$(PERTURB)/expression.tsv: $(PERTURB)/cells.counts $(PIPELINES)/perturb/steps.sh
	@$(script)/step.sh perturb/expression $< $(call text,STATE) $(call text,FROM) $(call text,TO) $(whole)
$(PERTURB)/table.txt: $(PERTURB)/shift.tsv $(PERTURB)/expression.tsv $(PIPELINES)/perturb/table.py $(if $(value TRUTH),$(call given,TRUTH))
	@$(table) perturb/table $(PERTURB) $(call text,STATE) $(call text,FROM) $(call text,TO) $(call text,TRUTH) $(call text,DATA) \
		$(call quote,$(if $(value MODEL),$(call given,MODEL),trained here: $(pretrained_how))) $(whole)

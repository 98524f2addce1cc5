# make table3, table8: how often a masked gene's partners are masked too, and how far apart partners are in a cell (the CorrMask paper's
# Tables 3 and 8). make genesets: are the edges of the graph, which uses no annotation, pairs of genes of known complexes and pathways?
#
#     make table3 TOKENS=lung.tok                any tokens stream
#     make table3 DATA=lung.h5ad                 or AnnData; without either, simulated cells
#     make genesets DATA=lung.h5ad GENESETS="reactome.gmt go.gmt.gz"
#
# DATA         AnnData or 10x file, or several; without it, cells are simulated
# TOKENS       a tokens stream, instead of DATA
# MEDIANS      a vocabulary, or Geneformer's table of medians with TOKEN_TABLE; without it, the vocabulary is learned from DATA
# TOKEN_TABLE  Geneformer's table of tokens
# AUDIT_CELLS  cells to mask for the audit; 0: all. The graphs are computed from all cells; an edge needs a twentieth of them, 10 to 200
# RATE         share of the tokens to mask
# GENESETS     files of gene sets (.gmt, .gmt.gz)
# GENE_NAMES   a table of name and gene id, if the gene sets use other names than DATA
# GENE_SKIP    symbols to leave out, as a regular expression: '^RP[LS]' for ribosomal proteins
# SET_MAX      size of the largest gene set to use
# SET_K        numbers of strongest edges to test

TOKENS ?=
AUDIT_CELLS ?= 10000
RATE   ?= 0.15
GENESETS ?=
GENE_SKIP ?=
SET_MAX ?= 200
SET_K  ?= 100 300 1000 3000 10000

AUDIT_SETTINGS := $(if $(value TOKENS),TOKENS,DATA MEDIANS TOKEN_TABLE $(if $(value DATA),,SCALE)) SEED AUDIT_CELLS RATE
$(eval $(call run_folder,AUDIT,audit,$(AUDIT_SETTINGS)))
GENESETS_SETTINGS := $(AUDIT_SETTINGS) GENESETS GENE_NAMES GENE_SKIP SET_MAX SET_K
$(eval $(call run_folder,GS,genesets,$(GENESETS_SETTINGS)))
audit_of = $(call quote,$(or $(call given,TOKENS),$(call given,DATA),simulated cells (scsim)))

.PHONY: table3 table8
table3: $(AUDIT)/table3.txt ##@ masking audit: mean span and hit rate of every strategy, with the paper's values (TOKENS= or DATA=)
	@cat $<
table8: $(AUDIT)/table8.txt ##@ partners within 5-grams, with the paper's values (TOKENS= or DATA=)
	@cat $<
genesets: ##@ test whether edges are pairs of known gene sets (GENESETS=FILE.gmt TOKENS= or DATA=)

$(call check,table3 table8 genesets,DATA TOKENS MEDIANS TOKEN_TABLE)
$(call check,genesets,GENESETS GENE_NAMES)
$(eval $(call page,genesets,$(GS),$(GS)/genesets.txt $(GS)/genesets.svg))
$(eval $(call page_alone,table3 table8,$(AUDIT),$(foreach t,$(filter table3 table8,$(MAKECMDGOALS)),$(AUDIT)/$t.txt)))
ifneq ($(filter genesets,$(MAKECMDGOALS)),)
$(if $(value GENESETS),,$(error genesets: GENESETS=FILE.gmt is needed (several files and gzip are accepted). Reactome, GO and MSigDB offer such files))
endif

# A link to the tokens of the user, as make knows no file names with spaces
ifneq ($(value TOKENS),)
$(AUDIT)/all.tok: | $(AUDIT)/settings
	@ln -sf "$$(realpath $(call text,TOKENS))" $@
else
$(AUDIT)/all.counts: | $(AUDIT)/settings
ifeq ($(value DATA),)
	$(call AUDIT_stage,scsim) $(BIN)/scsim -v --cells $(call scale,800,3000,3000) --seed $(SEED) -@ $(THREADS) -o $@
else
	$(call AUDIT_stage,h5tok) $(PIPELINES)/with-files.sh $(call text,DATA) $(BIN)/h5tok -v $(reading) -@ $(THREADS) -o $@
endif
ifeq ($(value MEDIANS),)
$(AUDIT)/vocab.tsv: $(AUDIT)/all.counts
	$(call AUDIT_stage,rankenc-fit) $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
$(AUDIT)/all.tok: $(AUDIT)/vocab.tsv
endif
$(AUDIT)/all.tok: $(AUDIT)/all.counts
	$(call AUDIT_stage,rankenc) $(BIN)/rankenc -v -m $(if $(value MEDIANS),$(call text,MEDIANS),$(AUDIT)/vocab.tsv) \
		$(if $(value TOKEN_TABLE),-t $(call text,TOKEN_TABLE)) \
		-@ $(THREADS) -o $@ $<
endif
$(AUDIT)/sample.tok: $(AUDIT)/all.tok
	$(call AUDIT_stage,scsample) $(PIPELINES)/step.sh audit/sample $(AUDIT_CELLS) $< $@ $(SEED)

$(AUDIT)/corrmask.graph: $(AUDIT)/all.tok
	$(call AUDIT_stage,depgraph) $(PIPELINES)/graph.sh $< $@ --seed $(SEED) -@ $(THREADS)
# Table 3: of many readings, some with this graph are nearest to the paper's values (maskgen(1), Audit)
$(AUDIT)/corrmask-rho35.graph: $(AUDIT)/all.tok
	$(call AUDIT_stage,depgraph-rho35) $(PIPELINES)/graph.sh $< $@ --rho-min 0.35 --seed $(SEED) -@ $(THREADS)
$(AUDIT)/corrmask-all.graph: $(AUDIT)/all.tok
	$(call AUDIT_stage,depgraph-all) $(PIPELINES)/graph.sh $< $@ --top-genes 0 --seed $(SEED) -@ $(THREADS)
$(AUDIT)/pmi.graph: $(AUDIT)/all.tok
	$(call AUDIT_stage,depgraph-pmi) $(BIN)/depgraph -v --pmi --seed $(SEED) -@ $(THREADS) -o $@ $<

AUDITS := random bernoulli pmi pmi-rand corrmask corrmask-100
audit_bernoulli := --bernoulli
audit_pmi := --strategy pmi -g $(AUDIT)/pmi.graph
audit_pmi-rand := --strategy pmi-rand -g $(AUDIT)/pmi.graph
audit_corrmask := --strategy corrmask -g $(AUDIT)/corrmask.graph
audit_corrmask-100 := --strategy corrmask --lambda 1 -g $(AUDIT)/corrmask.graph
$(AUDITS:%=$(AUDIT)/audit.%.tsv): $(AUDIT)/audit.%.tsv: $(AUDIT)/sample.tok $(AUDIT)/corrmask.graph $(AUDIT)/pmi.graph
	$(call AUDIT_stage,audit-$*) $(BIN)/maskgen -v --audit $(AUDIT)/corrmask.graph --rate $(RATE) --seed $(SEED) -@ $(THREADS) \
		$(audit_$*) -o $@ $<
AUDITS_RHO35 := random-rho35 pmi-rho35 corrmask-rho35
audit_corrmask-rho35 := --strategy corrmask -g $(AUDIT)/corrmask-rho35.graph
$(AUDITS_RHO35:%=$(AUDIT)/audit.%.tsv): $(AUDIT)/audit.%.tsv: $(AUDIT)/sample.tok $(AUDIT)/corrmask-rho35.graph $(AUDIT)/pmi.graph
	$(call AUDIT_stage,audit-$*) $(BIN)/maskgen -v --audit $(AUDIT)/corrmask-rho35.graph --rate $(RATE) --seed $(SEED) -@ $(THREADS) \
		$(or $(audit_$*),$(audit_$(*:-rho35=))) -o $@ $<

$(AUDIT)/table3.txt: $(patsubst %,$(AUDIT)/audit.%.tsv,$(AUDITS) $(AUDITS_RHO35)) $(PIPELINES)/audit/report.py
	@$(table) audit/report table3 $(AUDIT) $(audit_of) $(whole)
$(AUDIT)/table8.txt: $(AUDIT)/audit.random.tsv $(PIPELINES)/audit/report.py
	@$(table) audit/report table8 $(AUDIT) $(audit_of) $(whole)

# The graphs against gene sets
GENESET_GRAPHS := corrmask corrmask-all pmi
$(GS)/genes.tsv: $(AUDIT)/all.tok | $(GS)/settings
	@$(BIN)/scview --vocab $< $(whole)
# Symbols of genes are in the counts, not in the tokens
$(GS)/names.tsv: $(if $(value TOKENS),$(AUDIT)/all.tok,$(AUDIT)/all.counts) | $(GS)/settings
	@$(BIN)/scview --vocab $< $(whole)
$(GS)/cells.tsv: $(AUDIT)/sample.tok $(PIPELINES)/audit/genesets.py | $(GS)/settings
	@$(table) audit/genesets cells $< $(whole)
$(GENESET_GRAPHS:%=$(GS)/%.edges.tsv): $(GS)/%.edges.tsv: $(AUDIT)/%.graph | $(GS)/settings
	@$(BIN)/depgraph -O tsv -q $< -o $@
$(GENESET_GRAPHS:%=$(GS)/genesets.%.tsv): $(GS)/genesets.%.tsv: $(GS)/%.edges.tsv $(GS)/cells.tsv $(GS)/genes.tsv $(GS)/names.tsv \
		$(PIPELINES)/audit/genesets.py
	$(call GS_stage,genesets-$*) $(PIPELINES)/with-files.sh $(call text,GENESETS) env $(table) audit/genesets graph $@ $< $(GS) \
		$(call text,GENE_NAMES) $(SET_MAX) '$(SET_K)' $(call text,GENE_SKIP)
$(GS)/genesets.txt: $(GENESET_GRAPHS:%=$(GS)/genesets.%.tsv) $(PIPELINES)/audit/report.py
	@$(table) audit/report genesets $(GS) $(audit_of) $(call text,GENESETS) $(call text,GENE_SKIP) $(whole)

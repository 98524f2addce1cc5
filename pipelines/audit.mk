# make table3, table8: how often a masked gene's partners are masked too, and how far apart partners are in a cell (the CorrMask paper's
# Tables 3 and 8). make genesets: are the edges of the graph, which uses no annotation, pairs of genes of known complexes and pathways?
#
#     make table3 TOKENS=lung.tok                any tokens stream
#     make table3 DATA=lung.h5ad                 or AnnData; without either, simulated cells
#     make genesets DATA=lung.h5ad GENESETS="reactome.gmt go.gmt.gz"
#
# MEDIANS, TOKEN_TABLE   Geneformer's two tables, or one vocabulary as MEDIANS; without them it is learnt from DATA
# AUDIT_CELLS            cells that are masked for the audit (0: all); the graphs are computed from all cells
# GENE_NAMES             a table of name and gene id, if the gene sets use other names than DATA
# GENE_SKIP              symbols to leave out, as a regular expression: '^RP[LS]' for ribosomal proteins
# SET_MAX, SET_K         size of the largest gene set that is used; numbers of strongest edges to test
# Every stage is a file under results/audit/NAME. With other settings all stages are made again.

DATA   ?=
TOKENS ?=
SEED   ?= 1
THREADS ?= $(shell nproc)
MEDIANS ?=
TOKEN_TABLE ?=
AUDIT_CELLS ?= 10000
RATE   ?= 0.15
GENESETS ?=
GENE_NAMES ?=
GENE_SKIP ?=
SET_MAX ?= 200
SET_K  ?= 100 300 1000 3000 10000

AUDIT := results/audit/$(if $(TOKENS),$(basename $(notdir $(TOKENS))),$(if $(DATA),$(basename $(notdir $(DATA))),sim))
AUDIT_TOK := $(or $(TOKENS),$(AUDIT)/all.tok)
AUDIT_KEY := $(TOKENS) $(DATA) $(SEED) $(MEDIANS) $(TOKEN_TABLE) $(AUDIT_CELLS) $(RATE)
AUDIT_TOOLS := $(addprefix $(BIN)/,h5tok rankenc depgraph maskgen scsample scsim scview)
AUDIT_OF := $(if $(TOKENS)$(DATA),$(TOKENS)$(if $(TOKENS),,$(DATA)),simulated cells (scsim))
audit_stage = $(call stage_in,$(AUDIT),$1)

.PHONY: table3 table8 genesets
table3: $(AUDIT)/table3.txt ## masking audit: mean span and hit rate of every strategy, with the paper's values (TOKENS= or DATA=)
	@cat $<
table8: $(AUDIT)/table8.txt ## correlated neighbours within 5-grams, with the paper's values (TOKENS= or DATA=)
	@cat $<
genesets: $(AUDIT)/genesets.txt $(AUDIT)/genesets.svg $(AUDIT)/genesets.png ## test whether edges are pairs of known gene sets (GENESETS=FILE.gmt TOKENS= or DATA=)
	@cat $<

$(AUDIT)/settings: FORCE
	@$(script)/settings.sh $@ '$(AUDIT_KEY)' $(AUDIT)

ifeq ($(TOKENS),)
$(AUDIT)/all.counts: $(AUDIT)/settings $(DATA) | $(AUDIT_TOOLS)
ifeq ($(DATA),)
	$(call audit_stage,scsim) $(BIN)/scsim -v --cells 3000 --seed $(SEED) -@ $(THREADS) -o $@
else
	$(call audit_stage,h5tok) $(BIN)/h5tok -v -@ $(THREADS) -o $@ $(DATA)
endif
ifeq ($(MEDIANS),)
$(AUDIT)/vocab.tsv: $(AUDIT)/all.counts
	$(call audit_stage,rankenc-fit) $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
$(AUDIT)/all.tok: $(AUDIT)/vocab.tsv
endif
$(AUDIT)/all.tok: $(AUDIT)/all.counts
	$(call audit_stage,rankenc) $(BIN)/rankenc -v -m $(or $(MEDIANS),$(AUDIT)/vocab.tsv) $(if $(TOKEN_TABLE),-t $(TOKEN_TABLE)) \
		-@ $(THREADS) -o $@ $<
$(AUDIT)/names.tsv: $(AUDIT)/all.counts
	@$(BIN)/scview --vocab $< > $@
else
$(AUDIT)/names.tsv: $(AUDIT_TOK) $(AUDIT)/settings
	@$(BIN)/scview --vocab $< > $@
endif
$(AUDIT)/sample.tok: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,scsample) $(PIPELINES)/audit-sample.sh $(AUDIT_CELLS) $< $@ $(SEED)

$(AUDIT)/corrmask.graph: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,depgraph) $(BIN)/depgraph -v --seed $(SEED) -@ $(THREADS) -o $@ $<
$(AUDIT)/corrmask-all.graph: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,depgraph-all) $(BIN)/depgraph -v --top-genes 0 --seed $(SEED) -@ $(THREADS) -o $@ $<
$(AUDIT)/pmi.graph: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,depgraph-pmi) $(BIN)/depgraph -v --pmi --seed $(SEED) -@ $(THREADS) -o $@ $<

AUDITS := random bernoulli pmi pmi-rand corrmask corrmask-100
audit_bernoulli := --bernoulli
audit_pmi := --strategy pmi -g $(AUDIT)/pmi.graph
audit_pmi-rand := --strategy pmi-rand -g $(AUDIT)/pmi.graph
audit_corrmask := --strategy corrmask -g $(AUDIT)/corrmask.graph
audit_corrmask-100 := --strategy corrmask --lambda 1 -g $(AUDIT)/corrmask.graph
$(AUDITS:%=$(AUDIT)/audit.%.tsv): $(AUDIT)/audit.%.tsv: $(AUDIT)/sample.tok $(AUDIT)/corrmask.graph $(AUDIT)/pmi.graph
	$(call audit_stage,audit-$*) $(BIN)/maskgen -v --audit $(AUDIT)/corrmask.graph --rate $(RATE) --seed $(SEED) -@ $(THREADS) \
		$(audit_$*) -o $@ $<

$(AUDIT)/table3.txt: $(AUDITS:%=$(AUDIT)/audit.%.tsv) $(PIPELINES)/audit-report.sh
	@$(script)/audit-report.sh table3 $(AUDIT) '$(AUDIT_OF)' > $@
$(AUDIT)/table8.txt: $(AUDIT)/audit.random.tsv $(PIPELINES)/audit-report.sh
	@$(script)/audit-report.sh table8 $(AUDIT) '$(AUDIT_OF)' > $@

# The graphs against gene sets
$(AUDIT)/genes.tsv: $(AUDIT_TOK) $(AUDIT)/settings
	@$(BIN)/scview --vocab $< > $@
ifneq ($(filter genesets,$(MAKECMDGOALS)),)
ifeq ($(GENESETS),)
$(error make genesets: GENESETS=FILE.gmt is needed (several files and gzip are accepted). Reactome, GO and MSigDB offer such files)
endif
endif
GENESET_GRAPHS := corrmask corrmask-all pmi
$(AUDIT)/cells.tsv: $(AUDIT)/sample.tok $(PIPELINES)/genesets-cells.sh
	@$(script)/genesets-cells.sh $< > $@
$(GENESET_GRAPHS:%=$(AUDIT)/%.edges.tsv): $(AUDIT)/%.edges.tsv: $(AUDIT)/%.graph
	@$(BIN)/depgraph --tsv -q $< -o $@
# If the gene sets, sizes or numbers of edges change, only these are made again.
$(AUDIT)/genesets.key: $(AUDIT)/settings FORCE
	@$(script)/settings.sh $@ '$(GENESETS) $(GENE_NAMES) $(GENE_SKIP) $(SET_MAX) $(SET_K)'
$(GENESET_GRAPHS:%=$(AUDIT)/genesets.%.tsv): $(AUDIT)/genesets.%.tsv: $(AUDIT)/%.edges.tsv $(AUDIT)/cells.tsv $(AUDIT)/genes.tsv \
		$(AUDIT)/names.tsv $(AUDIT)/genesets.key \
		$(GENESETS) $(GENE_NAMES) $(PIPELINES)/genesets.sh $(PIPELINES)/genesets.awk
	$(call audit_stage,genesets-$*) $(PIPELINES)/genesets.sh $< $(AUDIT) '$(GENE_NAMES)' $(SET_MAX) '$(SET_K)' '$(GENE_SKIP)' $@ $(GENESETS)
$(AUDIT)/genesets.txt: $(GENESET_GRAPHS:%=$(AUDIT)/genesets.%.tsv) $(PIPELINES)/audit-report.sh
	@$(script)/audit-report.sh genesets $(AUDIT) '$(AUDIT_OF)' '$(GENESETS)' '$(GENE_SKIP)' > $@
$(AUDIT)/genesets.svg $(AUDIT)/genesets.png: $(AUDIT)/genesets.%: $(GENESET_GRAPHS:%=$(AUDIT)/genesets.%.tsv) $(PIPELINES)/genesets.gp
	@$(PIPELINES)/plot.sh genesets $(AUDIT) $*

# make table3, table8: what masks do to the partners of a masked gene, and where partners stand in a cell (the CorrMask paper's
# Tables 3 and 8). make genesets: are the edges of the graph, made without any annotation, pairs of known complexes and pathways?
#
#     make table3 TOKENS=lung.tok                any tokens stream
#     make table3 DATA=lung.h5ad                 or AnnData; without either, simulated cells
#     make genesets DATA=lung.h5ad GENESETS="reactome.gmt go.gmt.gz"
#
# MEDIANS, TOKEN_TABLE   Geneformer's two tables, or one vocabulary as MEDIANS; without them it is learnt from DATA
# AUDIT_CELLS            cells whose masks are looked at (0: all); the graphs are of all cells
# GENE_NAMES             a table of name and gene id, for gene sets that name genes otherwise than DATA does
# GENE_SKIP              symbols to leave out, as a regular expression: '^RP[LS]' for ribosomal proteins
# SET_MAX, SET_K         largest gene set that counts; numbers of edges to look at
# Everything is a file under results/audit/NAME; other settings start afresh.

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
# $(call audit_stage,NAME): as the demo's stage
audit_stage = @echo '  $1'; mkdir -p $(AUDIT)/log; run() { "$$@" 2>$(AUDIT)/log/$1.log || { cat $(AUDIT)/log/$1.log >&2; return 1; }; };

.PHONY: table3 table8 genesets
table3: $(AUDIT)/table3.txt ## masking audit: mean span and hit rate of every strategy, beside the paper's (TOKENS= or DATA=)
	@cat $<
table8: $(AUDIT)/table8.txt ## correlated neighbours within 5-grams, beside the paper's (TOKENS= or DATA=)
	@cat $<
genesets: $(AUDIT)/genesets.txt $(AUDIT)/genesets.svg $(AUDIT)/genesets.png ## are edges pairs of known gene sets (GENESETS=FILE.gmt TOKENS= or DATA=)
	@cat $<

$(AUDIT)/settings: FORCE
	@echo '$(AUDIT_KEY)' | cmp -s - $@ || { rm -rf $(AUDIT); mkdir -p $(AUDIT); echo '$(AUDIT_KEY)' > $@; }

ifeq ($(TOKENS),)
$(AUDIT)/all.counts: $(AUDIT)/settings $(DATA) | $(AUDIT_TOOLS)
ifeq ($(DATA),)
	$(call audit_stage,scsim) run $(BIN)/scsim -v --cells 3000 --seed $(SEED) -@ $(THREADS) -o $@
else
	$(call audit_stage,h5tok) run $(BIN)/h5tok -v -@ $(THREADS) -o $@ $(DATA)
endif
ifeq ($(MEDIANS),)
$(AUDIT)/vocab.tsv: $(AUDIT)/all.counts
	$(call audit_stage,rankenc-fit) run $(BIN)/rankenc -v --fit -@ $(THREADS) -o $@ $<
$(AUDIT)/all.tok: $(AUDIT)/vocab.tsv
endif
$(AUDIT)/all.tok: $(AUDIT)/all.counts
	$(call audit_stage,rankenc) run $(BIN)/rankenc -v -m $(or $(MEDIANS),$(AUDIT)/vocab.tsv) $(if $(TOKEN_TABLE),-t $(TOKEN_TABLE)) -@ $(THREADS) -o $@ $<
$(AUDIT)/names.tsv: $(AUDIT)/all.counts
	@$(BIN)/scview --vocab $< > $@
else
$(AUDIT)/names.tsv: $(AUDIT_TOK) $(AUDIT)/settings
	@$(BIN)/scview --vocab $< > $@
endif
$(AUDIT)/sample.tok: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,scsample) cells=$$($(BIN)/scview -s $< | awk -F '\t' '$$2 == "rows" { print $$3; exit }'); \
		if [ $(AUDIT_CELLS) = 0 ] || [ $$cells -le $(AUDIT_CELLS) ]; then cp $< $@; else run $(BIN)/scsample -v -n $(AUDIT_CELLS) --seed $(SEED) -o $@ $<; fi

$(AUDIT)/corrmask.graph: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,depgraph) run $(BIN)/depgraph -v --seed $(SEED) -@ $(THREADS) -o $@ $<
$(AUDIT)/corrmask-all.graph: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,depgraph-all) run $(BIN)/depgraph -v --top-genes 0 --seed $(SEED) -@ $(THREADS) -o $@ $<
$(AUDIT)/pmi.graph: $(AUDIT_TOK) $(AUDIT)/settings | $(AUDIT_TOOLS)
	$(call audit_stage,depgraph-pmi) run $(BIN)/depgraph -v --pmi --seed $(SEED) -@ $(THREADS) -o $@ $<

AUDITS := random bernoulli pmi pmi-rand corrmask corrmask-100
audit_bernoulli := --bernoulli
audit_pmi := --strategy pmi -g $(AUDIT)/pmi.graph
audit_pmi-rand := --strategy pmi-rand -g $(AUDIT)/pmi.graph
audit_corrmask := --strategy corrmask -g $(AUDIT)/corrmask.graph
audit_corrmask-100 := --strategy corrmask --lambda 1 -g $(AUDIT)/corrmask.graph
$(AUDITS:%=$(AUDIT)/audit.%.tsv): $(AUDIT)/audit.%.tsv: $(AUDIT)/sample.tok $(AUDIT)/corrmask.graph $(AUDIT)/pmi.graph
	$(call audit_stage,audit-$*) run $(BIN)/maskgen -v --audit $(AUDIT)/corrmask.graph --rate $(RATE) --seed $(SEED) -@ $(THREADS) $(audit_$*) -o $@ $<

$(AUDIT)/table3.txt: $(AUDITS:%=$(AUDIT)/audit.%.tsv) $(PIPELINES)/audit-report.sh
	@$(PIPELINES)/audit-report.sh table3 $(AUDIT) '$(AUDIT_OF)' $(BIN)/depgraph > $@
$(AUDIT)/table8.txt: $(AUDIT)/audit.random.tsv $(PIPELINES)/audit-report.sh
	@$(PIPELINES)/audit-report.sh table8 $(AUDIT) '$(AUDIT_OF)' $(BIN)/depgraph > $@

# The graphs against gene sets
$(AUDIT)/genes.tsv: $(AUDIT_TOK) $(AUDIT)/settings
	@$(BIN)/scview --vocab $< > $@
ifneq ($(filter genesets,$(MAKECMDGOALS)),)
ifeq ($(GENESETS),)
$(error make genesets needs GENESETS=FILE.gmt (several, and gzipped ones, are fine): none comes with corrmask. Reactome, GO or MSigDB have them)
endif
endif
GENESET_GRAPHS := corrmask corrmask-all pmi
$(AUDIT)/cells.tsv: $(AUDIT)/sample.tok $(PIPELINES)/genesets-cells.awk
	@$(BIN)/scview -c token $< | awk -f $(PIPELINES)/genesets-cells.awk > $@
$(GENESET_GRAPHS:%=$(AUDIT)/%.edges.tsv): $(AUDIT)/%.edges.tsv: $(AUDIT)/%.graph
	@$(BIN)/depgraph --tsv -q $< -o $@
# Another choice of sets, sizes or numbers of edges makes these anew, and nothing else
$(AUDIT)/genesets.key: $(AUDIT)/settings FORCE
	@echo '$(GENESETS) $(GENE_NAMES) $(GENE_SKIP) $(SET_MAX) $(SET_K)' | cmp -s - $@ || echo '$(GENESETS) $(GENE_NAMES) $(GENE_SKIP) $(SET_MAX) $(SET_K)' > $@
$(GENESET_GRAPHS:%=$(AUDIT)/genesets.%.tsv): $(AUDIT)/genesets.%.tsv: $(AUDIT)/%.edges.tsv $(AUDIT)/cells.tsv $(AUDIT)/genes.tsv $(AUDIT)/names.tsv $(AUDIT)/genesets.key \
		$(GENESETS) $(GENE_NAMES) $(PIPELINES)/genesets.sh $(PIPELINES)/genesets.awk
	$(call audit_stage,genesets-$*) run $(PIPELINES)/genesets.sh $< $(AUDIT) '$(GENE_NAMES)' $(SET_MAX) '$(SET_K)' '$(GENE_SKIP)' $(GENESETS) > $@
$(AUDIT)/genesets.txt: $(GENESET_GRAPHS:%=$(AUDIT)/genesets.%.tsv) $(PIPELINES)/audit-report.sh
	@$(PIPELINES)/audit-report.sh genesets $(AUDIT) '$(AUDIT_OF)' $(BIN)/depgraph '$(GENESETS)' '$(GENE_SKIP)' > $@
$(AUDIT)/genesets.svg $(AUDIT)/genesets.png &: $(GENESET_GRAPHS:%=$(AUDIT)/genesets.%.tsv) $(PIPELINES)/genesets.gp
	@for t in svg png; do gnuplot -e "dir='$(AUDIT)'; terminal='$$t'" $(PIPELINES)/genesets.gp 2>$(AUDIT)/log/gnuplot.log || \
		{ cat $(AUDIT)/log/gnuplot.log >&2; exit 1; }; done

# The dependency graph at atlas scale, and the loader: make bench-depgraph [GRAPH_CELLS="10000 30000 100000"] [THREADS=2], make bench-maskgen
THREADS ?= $(shell nproc)
GRAPH_CELLS ?= 10000 30000 100000
BENCH_SHARED ?= ../shared/data
BENCH_GF := $(BENCH_SHARED)/geneformer
BENCH_DIR ?= $(BUILD)/bench-data
# Marrow (Seq-Well), lung cell lines (CEL-seq2, Drop-seq) and a CELLxGENE sample of 22 types (10x), at 3 : 2 : 2
BENCH_MARROW   := $(BENCH_SHARED)/scrna/aml_bonemarrow_vangalen2019.h5ad
BENCH_LINES    := $(BENCH_SHARED)/scrna/lung_adenocarcinoma_lines_tian2019.h5ad
BENCH_PLACENTA := $(BENCH_SHARED)/original/placenta_cellxgene_220cells_anndata0.8.h5ad
BENCH_SOURCES  := marrow marrow marrow lines lines placenta placenta

$(BENCH_DIR)/marrow.tok: $(BENCH_MARROW)
$(BENCH_DIR)/lines.tok: $(BENCH_LINES)
$(BENCH_DIR)/placenta.tok: $(BENCH_PLACENTA)
$(foreach s,marrow lines placenta,$(BENCH_DIR)/$s.tok): $(BENCH_DIR)/%.tok: | all
	@mkdir -p $(@D)
	$(BIN)/h5tok -q -u $(if $(filter placenta,$*),--map $(BENCH_GF)/gene_name_id_gc30M.tsv.gz) $< | \
		$(BIN)/rankenc -q -m $(BENCH_GF)/gene_median_gc30M.tsv.gz -t $(BENCH_GF)/token_dictionary_gc30M.tsv.gz -u -o $@

$(BENCH_DIR)/corpus-%.tok: $(foreach s,marrow lines placenta,$(BENCH_DIR)/$s.tok) $(B)/bench/bench_corpus
	$(B)/bench/bench_corpus $@ $* $(BENCH_SOURCES:%=$(BENCH_DIR)/%.tok)

bench-depgraph: $(GRAPH_CELLS:%=$(BENCH_DIR)/corpus-%.tok) ## depgraph on corpora of real frequencies and correlations: time, memory, phases
	@tests/bench/depgraph.sh $(BIN) $(THREADS) $^

bench-maskgen: $(BENCH_DIR)/corpus-10000.tok ## tokens a CPU second through maskgen (TORCH=python with transformers: and Hugging Face's collator)
	@TORCH=$(TORCH) tests/bench/maskgen.sh $(BIN) $< $(BENCH_DIR)
.PHONY: bench-depgraph bench-maskgen

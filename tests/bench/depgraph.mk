# The dependency graph at atlas scale, and the loader: make bench-depgraph [GRAPH_CELLS=100000] [THREADS=2], make bench-maskgen
THREADS ?= $(shell nproc)
GRAPH_CELLS ?= 100000
BENCH_H5AD ?= ../shared/data/scrna/aml_bonemarrow_vangalen2019.h5ad
BENCH_VOCAB ?= ../shared/data/geneformer
BENCH_DIR ?= $(BUILD)/bench-data

$(BENCH_DIR)/real.tok: $(BENCH_H5AD) | all
	@mkdir -p $(@D)
	$(BIN)/h5tok -q -u $< | $(BIN)/rankenc -q -m $(BENCH_VOCAB)/gene_median_gc30M.tsv.gz -t $(BENCH_VOCAB)/token_dictionary_gc30M.tsv.gz -u -o $@

$(BENCH_DIR)/corpus-%.tok: $(BENCH_DIR)/real.tok $(B)/bench/bench_corpus
	$(B)/bench/bench_corpus $< $@ $* cell_type

bench-depgraph: $(BENCH_DIR)/corpus-$(GRAPH_CELLS).tok ## depgraph on GRAPH_CELLS cells of real frequencies and correlations
	sh tests/bench/depgraph.sh $(BIN) $< $(THREADS)

bench-maskgen: $(BENCH_DIR)/corpus-10000.tok ## tokens a second through maskgen, and of a plain copy of the stream
	sh tests/bench/maskgen.sh $(BIN) $< $(BENCH_DIR)
.PHONY: bench-depgraph bench-maskgen

# Tokenising: cells a second, share of libdeflate's own time for the same chunks, peak memory.
BENCH_CELLS   ?= 49152
BENCH_THREADS ?= 2
TOKB := $(BUILD)/bench/tok-$(BENCH_CELLS).h5ad

$(TOKB): tests/bench/make_cells.py
	@mkdir -p $(@D)
	/usr/bin/python3 $< $@.part $(BENCH_CELLS)
	mv $@.part.vocab.tsv $@.vocab.tsv
	mv $@.part $@

.PHONY: bench-tok
bench-tok: $(TOKB) $(B)/bench/bench_inflate $(BIN)/h5tok $(BIN)/rankenc $(BIN)/scview ## speed of h5tok --rank and of h5tok | rankenc against libdeflate alone
	BIN=$(abspath $(BIN)) tests/bench/bench_tok.sh $(TOKB) $(B)/bench/bench_inflate $(BENCH_THREADS)

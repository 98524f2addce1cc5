# Many cells: make bench-scale [MILLIONS="0.3 3"] [SHARDS="1 8 64 512"]. A million cells need 200 MB in BENCH_DIR and 20 s of one core.
bench-scale: MILLIONS ?= 0.3 3
bench-scale: SHARDS ?= 1 8 64 512
bench-scale: all ## rates and memory by the number of cells, 100 million computed, shards
	@tests/bench/scale.sh $(BIN) $(BENCH_DIR) "$(MILLIONS)" "$(SHARDS)"
.PHONY: bench-scale

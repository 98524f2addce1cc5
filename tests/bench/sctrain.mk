THREADS ?= $(shell nproc)
bench-sctrain: $(B)/bench/bench_sctrain ## training speed against the machine's own matrix product
	$< $(THREADS)
.PHONY: bench-sctrain

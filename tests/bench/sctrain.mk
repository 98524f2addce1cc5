# Training speed: make bench-sctrain [THREADS=2] [STEPS=3] [ROUNDS=3] [SHAPES="LENGTH:BATCH ..."] [TORCH=a python with torch and transformers]
THREADS ?= $(shell nproc)
TORCH   ?= python3
bench-sctrain: STEPS ?= 3
bench-sctrain: ROUNDS ?= 3
bench-sctrain: SHAPES ?= 256:12 256:32 512:12 1024:4 2048:1 2048:2 2048:12
bench-sctrain: $(B)/bench/bench_sctrain ## training speed against the FMA peak, OpenBLAS and torch
	tests/bench/sctrain.sh $< $(THREADS) $(STEPS) $(ROUNDS) "$(TORCH)" $(SHAPES)
.PHONY: bench-sctrain

# Training speed: make bench-sctrain [THREADS=2] [STEPS=3] [SHAPES="LENGTH:BATCH ..."] [TORCH=a python with torch and transformers]
THREADS ?= $(shell nproc)
TORCH   ?= python3
bench-sctrain: STEPS ?= 3
bench-sctrain: SHAPES ?= 256:12 256:32 512:12 1024:4 2048:1 2048:2 2048:12
bench-sctrain: $(B)/bench/bench_sctrain ## training speed against the machine's own matrix product, and torch's
	tests/bench/sctrain.sh $< $(THREADS) $(STEPS) "$(TORCH)" $(SHAPES)
.PHONY: bench-sctrain

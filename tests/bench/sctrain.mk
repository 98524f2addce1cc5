# Training speed: make bench-sctrain [THREADS=2] [TORCH=python with torch and transformers, for the peer's rate]
THREADS ?= $(shell nproc)
bench-sctrain: $(B)/bench/bench_sctrain ## training speed against the machine's own matrix product, and torch's
	$< $(THREADS)
	-[ -z "$(TORCH)" ] || $(TORCH) tests/bench/sctrain_torch.py $(THREADS)
.PHONY: bench-sctrain

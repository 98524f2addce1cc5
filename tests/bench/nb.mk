# Training speed of the MLP-NB model: make bench-nb [THREADS=2] [STEPS=5] [ROUNDS=3] [SHAPE="GENES HIDDEN LATENT CELLS EXPRESSED"] [TORCH=a python with torch]
bench-nb: STEPS ?= 5
bench-nb: ROUNDS ?= 3
bench-nb: SHAPE ?= 5000 1024 512 400 500
bench-nb: $(B)/bench/bench_nb ## training speed of sctrain nb against the FMA peak, OpenBLAS and torch, in turns
	for i in $$(seq $(ROUNDS)); do \
		$< $(THREADS) $(STEPS) $(SHAPE); \
		$(TORCH) tests/bench/nb_torch.py $(THREADS) $(STEPS) $(SHAPE) || true; \
	done
.PHONY: bench-nb

# In-silico deletion beside transformers: make bench-perturb [H5AD=FILE] [MODELS="v1 v2"] [CELLS=2] [LENGTH=512] [THREADS=1] [ROUNDS=2] [TORCH=a python with torch and transformers]
bench-perturb: CELLS ?= 2
bench-perturb: LENGTH ?= 512
bench-perturb: ROUNDS ?= 2
bench-perturb: MODELS ?= v1
bench-perturb: H5AD ?= ../shared/data/scrna/aml_bonemarrow_vangalen2019.h5ad
bench-perturb: all ## deletion of every gene of cells: speed, memory and difference beside transformers
	@$(TORCH) tests/bench/perturb.py $(BIN) "$(H5AD)" $(CELLS) $(LENGTH) $(THREADS) $(ROUNDS) $(MODELS)
.PHONY: bench-perturb

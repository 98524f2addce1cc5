# Embedding speed beside transformers: make bench-embed [H5AD=FILE] [MODELS="v1 v2"] [CELLS=256] [THREADS=2] [ROUNDS=2] [TORCH=a python with torch and transformers]
bench-embed: CELLS ?= 256
bench-embed: ROUNDS ?= 2
bench-embed: MODELS ?= v1 v2
bench-embed: H5AD ?= ../shared/data/scrna/aml_bonemarrow_vangalen2019.h5ad
bench-embed: all ## embedding speed, memory and difference beside transformers, float32 and bf16, at the lengths of the cells of H5AD
	@$(TORCH) tests/bench/embed.py $(BIN) "$(H5AD)" $(CELLS) $(THREADS) $(ROUNDS) $(MODELS)
.PHONY: bench-embed

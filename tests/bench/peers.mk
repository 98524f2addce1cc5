# corrmask beside the newest Python libraries: make bench-peers [ROUNDS=3] [THREADS=1] [PEER_CELLS=8192]. The virtual environment lies in
# build/ (some GB; PIP_EXTRA_INDEX_URL can name an index of torch without CUDA); delete it to have newer versions.
PEER_CELLS ?= 8192
PEERS := $(BUILD)/peers

$(PEERS)/ready:
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q numpy xxhash zstandard torch transformers accelerate datasets pyarrow scikit-learn scanpy anndata pandas mudata snakemake scdataset
	@touch $@

peers: $(PEERS)/ready ## make the virtual environment with the newest Python libraries, for bench-peers and tests/python.bats
.PHONY: peers

bench-peers: ROUNDS ?= 3
bench-peers: THREADS = 1
bench-peers: $(PEERS)/ready $(B)/bench/bench_sctrain | all ## speed beside PyTorch, transformers, anndata, pandas: one table with versions
	@[ -e $(BUILD)/bench/tok-$(PEER_CELLS).h5ad ] || $(MAKE) --no-print-directory BENCH_CELLS=$(PEER_CELLS) $(BUILD)/bench/tok-$(PEER_CELLS).h5ad
	@mkdir -p $(BENCH_DIR)
	@$(PEERS)/bin/python tests/bench/peers.py run $(BIN) $(B)/bench/bench_sctrain $(BUILD)/bench/tok-$(PEER_CELLS).h5ad $(BENCH_DIR) $(THREADS) $(ROUNDS)
.PHONY: bench-peers

# From a file to PyTorch beside the newest Python libraries: make bench-loaders [ROUNDS=3] [LOADER_CELLS=49152]. The newest anndata, scanpy and
# annbatch need Python 3.12: PEER_BASE=python3.13 (Debian 13 has it as python3). Older ones get older libraries, and no annbatch. The virtual
# environments lie in build/ (7 GB; PIP_EXTRA_INDEX_URL can name an index of torch without CUDA); delete them to have newer versions. SLAF needs an
# older pandas, and its own folder. Its packages for clouds are left out, as pip found no versions of them that go together.
LOADER_CELLS ?= 49152
PEER_BASE    ?= $(shell for p in python3.14 python3.13 python3.12 python3; do $$p -c 0 2>/dev/null && echo $$p && break; done)
PEERS := $(BUILD)/peers
TAHOE := $(BUILD)/bench/tahoe-$(LOADER_CELLS).h5ad

$(PEERS)/ready:
	$(PEER_BASE) -m venv $(@D)
	$(@D)/bin/pip install -q numpy xxhash zstandard torch transformers accelerate datasets pyarrow scikit-learn scanpy anndata pandas mudata snakemake \
		scdataset bionemo-scdl "annbatch[zarrs]; python_version >= '3.12'"
	@touch $@

$(PEERS)-slaf/ready: $(PEERS)/ready
	$(PEER_BASE) -m venv $(@D)
	$(@D)/bin/pip install -q pylance polars numpy 'pandas<3' pyarrow 'scipy<1.17' loguru scanpy h5py rich tqdm lancedb smart-open boto3 \
		huggingface-hub requests typer lance-namespace-urllib3-client
	$(@D)/bin/pip install -q --no-deps slafdb
	$(@D)/bin/python -c 'import sysconfig as s; p = s.get_path("purelib"); open(p + "/zz-peers.pth", "w").write(p.replace("peers-slaf", "peers"))'
	@touch $@

peers: $(PEERS)/ready ## make the virtual environment with the newest Python libraries, for bench-loaders and tests/python.bats
.PHONY: peers

$(TAHOE): tests/bench/make_cells.py $(PEERS)/ready
	@mkdir -p $(@D)
	$(PEERS)/bin/python $< $@.part $(LOADER_CELLS) 3700
	mv $@.part.vocab.tsv $@.vocab.tsv
	$(PEERS)/bin/python -c 'import anndata, sys; anndata.read_h5ad(sys.argv[1]).write_h5ad(sys.argv[2], compression="gzip")' $@.part $@
	rm $@.part

bench-loaders: ROUNDS ?= 3
bench-loaders: $(TAHOE) $(PEERS)-slaf/ready | all ## from a file to PyTorch beside annbatch, SLAF, SCDL, scDataset: one table
	@mkdir -p $(BENCH_DIR)/loaders
	@$(PEERS)/bin/python tests/bench/loaders.py run $(BIN) $(TAHOE) $(BENCH_DIR)/loaders $(ROUNDS)
.PHONY: bench-loaders

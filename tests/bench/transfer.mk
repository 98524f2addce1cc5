# Label transfer beside CellTypist and scikit-learn: make bench-transfer SETS="NAME=FILE.h5ad:GROUP:CELLS ..." (CELLS 0: all). The virtual environments
# lie in build/; delete them to have newer versions. SCANVI=1: scANVI too, last (PyTorch, 6 GB, one to five CPU minutes a pair).
TRANSFER := $(BUILD)/transfer

$(TRANSFER)/ready:
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q celltypist 'scikit-learn<1.8' anndata singler scranpy zstandard xxhash # CellTypist gives multi_class, which later ones do not know
	@touch $@

$(TRANSFER)-scanvi/ready:
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q scvi-tools
	@touch $@

bench-transfer: $(TRANSFER)/ready | all ## cell types of held-out donors beside CellTypist and scikit-learn (SETS=)
	@[ -n "$(SETS)" ] || { echo 'bench-transfer: SETS="NAME=FILE.h5ad:GROUP:CELLS ..." is needed' >&2; exit 2; }
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(TRANSFER)/bin/python tests/bench/transfer.py run $(BIN) $(TRANSFER)/runs $(SETS)
	@$(TRANSFER)/bin/python tests/bench/transfer.py table $(TRANSFER)/runs/runs.tsv
bench-transfer-pairs: $(TRANSFER)/ready $(if $(SCANVI),$(TRANSFER)-scanvi/ready) | all ## cell types from a reference of another study, beside CellTypist, SingleR and scikit-learn (FOLDER= SCANVI=1)
	@[ -n "$(FOLDER)" ] || { echo 'bench-transfer-pairs: FOLDER= with the files of transfer_pairs.py is needed' >&2; exit 2; }
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(TRANSFER)/bin/python tests/bench/transfer_pairs.py run $(BIN) $(FOLDER) $(TRANSFER)/pairs \
		$(if $(SCANVI),$(TRANSFER)-scanvi/bin/python)
	@$(TRANSFER)/bin/python tests/bench/transfer_pairs.py pairs $(TRANSFER)/pairs/pairs.tsv
	@$(TRANSFER)/bin/python tests/bench/transfer_pairs.py means $(TRANSFER)/pairs/pairs.tsv

bench-transfer-unlike: $(TRANSFER)/ready | all ## are cells of a type that the reference lacks in the first clusters of ctaprobe transfer --unlike? (FOLDER=)
	@[ -n "$(FOLDER)" ] || { echo 'bench-transfer-unlike: FOLDER= with the files of transfer_pairs.py is needed' >&2; exit 2; }
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(TRANSFER)/bin/python tests/bench/transfer_unlike.py $(BIN) $(FOLDER)

bench-transfer-size: $(TRANSFER)/ready | all ## CPU time, memory and macro F1 beside CellTypist, by the number of reference cells (SIZES=, or ours of mixed real cells: MANY=FILE.h5ad CELLS=)
	@export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=python; $(TRANSFER)/bin/python tests/bench/transfer_size.py \
		$(if $(MANY),many $(BIN) $(TRANSFER)/many $(MANY) $(or $(CELLS),1000000),run $(BIN) $(TRANSFER)/size $(or $(SIZES),5000 50000 200000))
.PHONY: bench-transfer bench-transfer-pairs bench-transfer-unlike bench-transfer-size

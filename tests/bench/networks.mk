# Networks of genes by other programs, from the same cells: make bench-networks [NETWORKS_SETS="lung"] [TEST_DATA=folder of real files]
# [NETWORKS_PYTHON=a python with these packages]. An hour of one core, most of it GRNBoost2. Lists that are made stay in build/networks.
NETWORKS := $(BUILD)/networks
NETWORKS_PYTHON ?= $(NETWORKS)/peers/bin/python

$(NETWORKS)/peers/bin/python:
	python3 -m venv $(NETWORKS)/peers
	$@ -m pip install -q numpy pandas PyWGCNA==2.2.1 rustscenic==0.5.1 xxhash zstandard

bench-networks: $(NETWORKS_PYTHON) | all ## networks of genes by WGCNA, GRNBoost2 and ours, in other donors: docs/experiments/tables/genes-networks.tsv
	@$(NETWORKS_PYTHON) tests/bench/networks.py run $(BIN) "$(or $(TEST_DATA),../shared/data)" $(NETWORKS) docs/experiments/tables/genes-networks.tsv $(NETWORKS_SETS)
.PHONY: bench-networks

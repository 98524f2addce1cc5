# scmetric integration beside scib-metrics: make bench-integration [INTEGRATION_CELLS=20000] [THREADS=2] [ROUNDS=3]. Its virtual environment lies in build/.
INTEGRATION_CELLS ?= 20000
SCIB := $(BUILD)/scib

$(SCIB)/ready:
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q xxhash zstandard scib-metrics scanpy leidenalg
	@touch $@

bench-integration: ROUNDS ?= 3
bench-integration: THREADS ?= 2
bench-integration: $(SCIB)/ready | all ## speed of scmetric integration beside scib-metrics
	@mkdir -p $(BENCH_DIR)
	@$(SCIB)/bin/python tests/bench/integration.py run $(BIN)/scmetric $(INTEGRATION_CELLS) $(BENCH_DIR) $(THREADS) $(ROUNDS)
.PHONY: bench-integration

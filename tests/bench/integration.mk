# scmetric integration and scib-metrics: make bench-integration [INTEGRATION_CELLS=20000] [THREADS=2] [ROUNDS=1] [SCIB_PYTHON=python3.13]. scib-metrics 0.6.1
# needs Python 3.12 or newer; its virtual environment lies in build/.
INTEGRATION_CELLS ?= 20000
SCIB_PYTHON ?= $(firstword $(foreach v,14 13 12,$(shell command -v python3.$v)) python3)
SCIB := $(BUILD)/scib

$(SCIB)/ready:
	$(SCIB_PYTHON) -m venv $(@D)
	$(@D)/bin/pip install -q xxhash zstandard 'scib-metrics>=0.6.1' scanpy
	@touch $@

bench-integration: ROUNDS ?= 1
bench-integration: THREADS ?= 2
bench-integration: $(SCIB)/ready | all ## speed of scmetric integration and of scib-metrics
	@mkdir -p $(BENCH_DIR)
	@$(SCIB)/bin/python tests/bench/integration.py run $(BIN)/scmetric $(INTEGRATION_CELLS) $(BENCH_DIR) $(THREADS) $(ROUNDS)
.PHONY: bench-integration

# scmetric integration and scib-metrics: make bench-integration [INTEGRATION_CELLS=20000] [THREADS=2] [ROUNDS=1] [SCIB_PYTHON=python3.13]. scib-metrics 0.6.1
# needs Python 3.12 or newer; its virtual environment lies in build/. On Debian 12: pip install uv; uv python install 3.13; SCIB_PYTHON="$(uv python find 3.13)".
INTEGRATION_CELLS ?= 20000
SCIB_PYTHON ?= $(firstword $(foreach v,14 13 12,$(shell python3.$v -c 'print("python3.$v")' 2> /dev/null)) python3)
SCIB := $(BUILD)/scib

$(SCIB)/ready:
	@$(SCIB_PYTHON) -c 'import sys; sys.version_info >= (3, 12) or sys.exit("scib-metrics 0.6.1 needs Python 3.12 or newer: SCIB_PYTHON=PATH")'
	$(SCIB_PYTHON) -m venv $(@D)
	$(@D)/bin/pip install -q 'scib-metrics>=0.6.1'
	@touch $@

bench-integration: ROUNDS ?= 1
bench-integration: THREADS ?= 2
bench-integration: $(SCIB)/ready | all ## speed of scmetric integration and of scib-metrics
	@mkdir -p $(BENCH_DIR)
	@$(SCIB)/bin/python tests/bench/integration.py run $(BIN)/scmetric $(INTEGRATION_CELLS) $(BENCH_DIR) $(THREADS) $(ROUNDS)
.PHONY: bench-integration

# The jobs of README's picture and of the first table of docs/benchmarks.md, in one run of a quarter of an hour: make bench-all [WORKS="tokens graph"]
# [AGREEMENT_PYTHON=path of a python with the packages of agreement.mk]. CellTypist has an environment of its own (transfer.mk).
SPEED_CELLS := $(BUILD)/bench/tok-8192.h5ad

bench-all: $(AGREEMENT_PYTHON) $(BUILD)/transfer/ready $(B)/bench/bench_sctrain $(B)/bench/bench_inflate | all ## speed beside transformers, anndata, scib-metrics and others: docs/speed.tsv and its page (WORKS=)
	@[ -e $(SPEED_CELLS) ] || $(MAKE) --no-print-directory BENCH_CELLS=8192 $(SPEED_CELLS)
	@$(AGREEMENT_PYTHON) tests/bench/speed.py run $(BIN) $(B)/bench $(SPEED_CELLS) $(BUILD)/speed docs/speed.tsv $(BUILD)/transfer/bin/python $(WORKS)
	@python3 -B tests/bench/speed.py page docs/speed.tsv docs/benchmarks.md > $(BUILD)/speed/page.md && cp $(BUILD)/speed/page.md docs/benchmarks.md
	@$(MAKE) --no-print-directory docs-figures
.PHONY: bench-all

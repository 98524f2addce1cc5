# Do our results agree with those of the programs that they replace? make agreement [ONLY="probe umap"] [TEST_DATA=folder of real files]
# [AGREEMENT_PYTHON=a python with these packages]. scib-metrics 0.6.1 needs Python 3.12 or newer (integration.mk says whence). Half an hour of a busy
# machine, most of it compiling by JAX.
AGREEMENT := $(BUILD)/agreement
AGREEMENT_PYTHON ?= $(AGREEMENT)/peers/bin/python

$(AGREEMENT)/peers/bin/python:
	$(SCIB_PYTHON) -m venv $(AGREEMENT)/peers
	$@ -m pip install -q anndata==0.13.4 igraph==1.0.0 leidenalg==0.12.0 scanpy==1.11.5 scib-metrics==0.6.1 scikit-learn==1.9.1 scikit-misc==0.5.3 \
		torch==2.15.0 transformers==5.24.0 umap-learn==0.5.12 xxhash zstandard

agreement: $(AGREEMENT_PYTHON) | all ## compare with scanpy, scib-metrics, transformers and others: docs/agreement.tsv and its page
	@mkdir -p $(AGREEMENT)
	@$(AGREEMENT_PYTHON) tests/bench/agreement.py run $(BIN) "$(or $(TEST_DATA),../shared/data)" $(AGREEMENT)/files docs/agreement.tsv $(ONLY)
	@python3 -B tests/bench/agreement.py page docs/agreement.tsv docs/agreement.md > $(AGREEMENT)/page.md && cp $(AGREEMENT)/page.md docs/agreement.md
.PHONY: agreement

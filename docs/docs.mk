# The figures of docs/ from the tables beside them, and the web site.

.PHONY: docs-figures
docs-figures: ## draw the figures of docs/experiments from its tables
	pipelines/docs-figures.sh

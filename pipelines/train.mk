# make plot-train MODEL=DIR: DIR/train.svg, from DIR/train.tsv of a finished or a running training.
#
# MODEL  folder of the model
.PHONY: plot-train
plot-train: ## plot loss, validation metrics and learning rate of a training (MODEL=)
	@[ -n '$(MODEL)' ] || { echo 'plot-train: MODEL=DIR is needed' >&2; exit 2; }
	@[ -e '$(MODEL)/train.tsv' ] || { echo 'plot-train: $(MODEL)/train.tsv does not exist' >&2; exit 1; }
	@$(draw) train '$(MODEL)' > '$(MODEL)/train.svg.new' && mv '$(MODEL)/train.svg.new' '$(MODEL)/train.svg' || { rm -f '$(MODEL)/train.svg.new'; exit 1; }
	@echo '$(MODEL)/train.svg'

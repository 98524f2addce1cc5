# make plot-train MODEL=DIR: DIR/train.svg and DIR/train.png, from DIR/train.tsv of a finished or a running training.
#
# MODEL  folder of the model
.PHONY: plot-train
plot-train: ## plot loss, validation metrics and learning rate of a training (MODEL=)
	@[ -n '$(MODEL)' ] || { echo 'plot-train: MODEL=DIR is needed' >&2; exit 2; }
	@[ -e '$(MODEL)/train.tsv' ] || { echo 'plot-train: $(MODEL)/train.tsv does not exist' >&2; exit 1; }
	@$(PIPELINES)/plot-train.sh '$(MODEL)'

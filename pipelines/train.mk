# make plot-train MODEL=DIR: DIR/train.svg and DIR/train.png, from DIR/train.tsv of a finished or a running training.
.PHONY: plot-train
plot-train: ## plot a training's loss, held-out measures and learning rate (MODEL=)
	@[ -n '$(MODEL)' ] || { echo 'plot-train: MODEL=DIR says of which model' >&2; exit 2; }
	@[ -e '$(MODEL)/train.tsv' ] || { echo 'plot-train: no $(MODEL)/train.tsv' >&2; exit 1; }
	@for x in svg png; do gnuplot -e "file='$(MODEL)/train.tsv'; out='$(MODEL)/train.$$x'" $(PIPELINES)/train.gp || exit 1; echo '$(MODEL)/train.'$$x; done

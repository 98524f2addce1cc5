#!/usr/bin/env bats
# ctaprobe cells --roc, ctaprobe score --roc: the mean curve of the classes, as scikit-learn has it
load helper

setup_file() {
	need_tool ctaprobe scview scsim
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 400 --genes 200 --types 5 --depth 300 --seed 2 -o c.counts
	screduce pca -q -k 3 --train c.counts -o c.emb c.counts
}

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "--roc equals the mean of scikit-learn's curves at 100 points; score's is that of the same predictions" {
	ctaprobe cells -q -l cell_type --predictions p.pred --roc r.tsv -o m.tsv c.emb
	ctaprobe score -q -l cell_type --roc s.tsv -o n.tsv p.pred
	scview -q -O npy -c logit -o logit.npy p.pred
	scview -q -c cell_type p.pred | tail -n +2 > y
	scview -H p.pred > h.json
	run -0 $PYTHON -c 'if 1:
		import json, numpy as np
		from scipy.special import softmax
		from sklearn.metrics import roc_curve
		labels = json.load(open("h.json"))["labels"]
		p, y = softmax(np.load("logit.npy").astype(float), axis=1), np.array(open("y").read().split())
		grid, want = np.linspace(0, 1, 100), np.zeros(100)
		for k, c in enumerate(labels):
		    fpr, tpr, _ = roc_curve(y == c, p[:, k])
		    one = np.interp(grid, fpr, tpr); one[0] = 0
		    want += one / len(labels)
		assert 0.55 < want.mean() < 0.98, want.mean()
		for f in "r.tsv", "s.tsv":
		    rows = [l.split("\t") for l in open(f).read().splitlines()]
		    assert rows[0] == ["fpr", "tpr"]
		    got = np.array(rows[1:], float)
		    assert np.abs(got[:, 0] - grid).max() < 1e-8 and np.abs(got[:, 1] - want).max() < 2e-3, np.abs(got[:, 1] - want).max()
	'
}

@test "--roc: a class without cells has no part in the mean" {
	scsample -q --where cell_type!=type5 p.pred | ctaprobe score -q -l cell_type --roc s.tsv -o n.tsv -
	assert_equal "$(wc -l < s.tsv)" 101
	awk -F '\t' 'NR > 1 { if ($2 < 0 || $2 > 1 || $2 < last) exit 1; last = $2 }' s.tsv
}

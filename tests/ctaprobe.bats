load helper

ref() {
	$PYTHON "$BATS_TEST_DIRNAME/ref/probe.py" "$@"
}

donors() {              # donors COMMAND ARGUMENT...: embeddings of donors, and the answers of scikit-learn for them
	$PYTHON "$BATS_TEST_DIRNAME/ref/evaluation.py" "$@"
}

genes_ref() {
	$PYTHON "$BATS_TEST_DIRNAME/ref/genes.py" "$@"
}

setup_file() {
	need_tool ctaprobe scview
	cd "$BATS_FILE_TMPDIR"
	ref make tr.emb seed=1
	ref make te.emb seed=2 cells=211
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

value() {               # value KEY FILE
	awk -F'\t' -v k="$1" '$1 == k { print $2 }' "$2"
}

@test "ctaprobe: more cells than memory: a warning early, an end when it is sure, and a sample that fits" {
	cd "$BATS_TEST_TMPDIR"
	ref make many.emb cells=6000
	ref make some.emb cells=5000 what=unlabelled # 4,285 with a label
	export SLURM_MEM_PER_NODE=1 # megabyte: 4,639 cells of 24 values
	sample="GB of memory, and its Slurm job has 0.00105 GB: take a sample with scsample -n 3704 (--stratify keeps the share of each class)"
	run -1 ctaprobe cells -l cell_type many.emb
	names "warning: many.emb 6000 24 0.00136 $sample"
	assert_line --index 1 --regexp "^ctaprobe cells: many.emb: more than [0-9]+ cells of 24 values take "
	run -1 ctaprobe cells -l cell_type - <many.emb
	names "warning: standard input 6000 24 0.00136 $sample"
	run -1 ctaprobe cells -l cell_type - < <(cat many.emb) # which does not say how many come
	assert_line --index 0 --regexp "^ctaprobe cells: standard input: more than "
	run -0 ctaprobe cells -l cell_type some.emb
	names "warning: some.emb 5000 24 0.00113 $sample"
	scsample -q -n 3704 --stratify cell_type some.emb -o fits.emb
	run -0 ctaprobe cells -l cell_type fits.emb
	refute_output --partial "of memory"
	scsim -q --cells 3000 --genes 2000 --depth 200 -o few.counts
	export SLURM_MEM_PER_NODE=10 # their zeros take no memory
	run -0 ctaprobe transfer --reference few.counts -l cell_type -o few.pred few.counts
	refute_output --partial "of memory"
	unset SLURM_MEM_PER_NODE
	run -0 ctaprobe cells -l cell_type some.emb
	refute_output --partial "of memory"
}

# ---- scikit-learn ----

agree() {               # agree TRAIN TEST [OPTION for both sides ...]
	local theirs=() ours=()
	[[ " $* " = *" standardize=1 "* ]] || ours=(--no-standardize)
	for o in "${@:3}"; do
		[[ $o != C=* ]] || ours+=(-C "${o#C=}")
		theirs+=("$o")
	done
	ctaprobe cells -l cell_type --train "$1" --test "$2" --predictions p.s "${ours[@]}" -q -o m.tsv
	run ref compare "$1" "$2" p.s m.tsv "${theirs[@]}"
	assert_success
}

@test "ctaprobe: logits and scores are scikit-learn's" {
	agree tr.emb te.emb
}

@test "ctaprobe: with another C, and standardised" {
	agree tr.emb te.emb C=0.01
	agree tr.emb te.emb C=10 standardize=1
}

@test "ctaprobe: the scale of an embedding does not change its score, unless --no-standardize says so" {
	ref make small.emb what=small
	ref make small_te.emb what=small seed=2 cells=211
	ctaprobe cells -q -l cell_type --train tr.emb --test te.emb -o large.tsv
	ctaprobe cells -q -l cell_type --train small.emb --test small_te.emb -o small.tsv
	assert_equal "$(value macro_f1 small.tsv)" "$(value macro_f1 large.tsv)"
	ctaprobe cells -q -l cell_type --no-standardize --train small.emb --test small_te.emb -o as_is.tsv
	awk -v a="$(value macro_f1 small.tsv)" -v b="$(value macro_f1 as_is.tsv)" 'BEGIN { print a, b; exit !(a > 2 * b) }'
}

# bats test_tags=slow
@test "ctaprobe: two classes, a constant feature, unlabelled cells" {
	ref make two.emb what=twoclasses
	agree two.emb two.emb
	ref make constant.emb what=constant
	agree constant.emb te.emb standardize=1
	ref make some.emb what=unlabelled cells=300
	agree some.emb te.emb
	assert_equal "$(value unlabelled m.tsv)" 43
	agree tr.emb some.emb
}

@test "ctaprobe: classes that only one side has" {
	ref make more.emb classes=7 cells=200 seed=3    # types 6 and 7 are new; the names are shared
	ctaprobe cells -l cell_type --train tr.emb --test more.emb --predictions p.s -o m.tsv 2>err
	assert_equal "$(grep -c "is not in the training cells and is never predicted" err)" 2
	ref compare tr.emb more.emb p.s m.tsv standardize=1
	agree more.emb tr.emb
	assert_equal "$(value n:type7 m.tsv)" 0
}

@test "ctaprobe: scores of a cross-validation are sklearn.metrics' over all folds together" {
	ctaprobe cells -l cell_type tr.emb --predictions p.s -q -o m.tsv
	ref metrics p.s m.tsv
	ctaprobe cells -l cell_type tr.emb --folds 3 --predictions p.s -q -o m.tsv
	ref metrics p.s m.tsv
	# every labelled cell once, in the order of the input, with its columns
	scview -c cell,barcode,cell_type,donor p.s | cmp - <(scview -c cell,barcode,cell_type,donor tr.emb)
}

@test "ctaprobe: each fold is predicted by the probe of the others" {
	# with --group and as many folds as groups, a fold is a donor: train on the rest by hand
	ctaprobe cells -l cell_type --group donor --folds 6 tr.emb --predictions p.s -q -o m.tsv
	scsample -q --where donor=d2 tr.emb -o one.emb
	scsample -q --where donor!=d2 tr.emb -o rest.emb
	ctaprobe cells -l cell_type --train rest.emb --test one.emb --predictions q.s -q -o /dev/null
	scsample -q --where donor=d2 p.s -o p2.s
	scview -O npy -c logit p2.s >a.npy
	scview -O npy -c logit q.s >b.npy
	$PYTHON -c '
import numpy as np
a, b = np.load("a.npy"), np.load("b.npy")
assert len(a) > 20 and np.abs((a - a.mean(1, keepdims=True)) - (b - b.mean(1, keepdims=True))).max() < 1e-4'
	ref metrics p.s m.tsv
}

# ---- output ----

@test "ctaprobe: the same bytes for 1, 2 and 3 threads, from file, stdin and pipe" {
	for n in 1 2 3; do
		ctaprobe cells -l cell_type -@ $n tr.emb -o m$n --predictions p$n
		ctaprobe cells -l cell_type -@ $n --train tr.emb --test te.emb -o t$n
	done
	cmp m1 m2 && cmp m1 m3 && cmp p1 p2 && cmp p1 p3 && cmp t1 t2 && cmp t1 t3
	ctaprobe cells -l cell_type <tr.emb | cmp - m1
	cat tr.emb | ctaprobe cells -l cell_type --predictions p4 - | cmp - m1
	cmp p1 p4
	ctaprobe cells -l cell_type tr.emb --test te.emb | cmp - t1
	ctaprobe cells -l cell_type --test te.emb <tr.emb | cmp - t1
}

@test "ctaprobe: folds depend on the seed" {
	ctaprobe cells -l cell_type tr.emb --seed 2 -o s2
	ctaprobe cells -l cell_type tr.emb -o s1
	run cmp -s s1 s2
	assert_failure
}

# ---- score ----

@test "ctaprobe score: scores of predictions are sklearn.metrics'" {
	for what in plain unlabelled unknown nologits; do
		ref predict p.s what=$what seed=3
		ctaprobe score -q -l cell_type p.s -o m.tsv
		ref metrics p.s m.tsv
	done
	# what the probe predicts, scored again: a class that it was not trained on has logits of -inf
	ctaprobe cells -q -l cell_type tr.emb --predictions p.s -o m.tsv
	ctaprobe score -l cell_type p.s >n.tsv
	for m in accuracy balanced_accuracy macro_f1 weighted_f1 f1_rare f1:type3 confusion:type3:type5; do
		assert_equal "$(value $m m.tsv)" "$(value $m n.tsv)"
	done
	ref make more.emb classes=7 cells=200 seed=3
	ctaprobe cells -q -l cell_type --train tr.emb --test more.emb --predictions p.s -o m.tsv
	ctaprobe score -q -l cell_type p.s >n.tsv
	assert_equal "$(value macro_f1 m.tsv)" "$(value macro_f1 n.tsv)"
}

@test "ctaprobe score: the predictions of ctaprobe cells have its scores: tiny embeddings, ties, other rare classes in training" {
	# logits so near that float32 has ties, and classes whose frequencies differ in training and test
	PYTHONPATH=$BATS_TEST_DIRNAME/../src:$BATS_TEST_DIRNAME/../python $PYTHON - <<-'P'
		import numpy as np, corrmask.stream as scstream
		r = np.random.default_rng(0)
		def emb(path, counts):
		    y = np.repeat(np.arange(4), counts)
		    y = y[r.permutation(len(y))]
		    x = ((r.normal(size=(len(y), 8)) + y[:, None]) * 1e-4).astype(np.float32)
		    columns = [{"name": "cell", "type": "u64", "shape": "scalar"},
		               {"name": "t", "type": "categorical", "shape": "scalar", "categories": ["k0", "k1", "k2", "k3"]},
		               {"name": "x", "type": "f32", "shape": "fixed", "n": 8}]
		    block = {"cell": np.arange(len(y), dtype=np.uint64), "t": y.astype(np.int32), "x": x}
		    scstream.write(path, {"kind": "embedding", "columns": columns, "provenance": []}, [block])
		emb("tiny1.emb", [150, 150, 60, 40])
		emb("tiny2.emb", [40, 60, 150, 150])
	P
	same() {        # same OPTION...: the scores of cells and of score
		ctaprobe cells -q -l t --no-standardize "$@" --predictions p.s -o m.tsv
		ctaprobe score -q -l t p.s -o n.tsv
		diff <(grep -E '^(accuracy|balanced_accuracy|macro_f1|weighted_f1|f1_rare|cells|train_cells|classes|f1|n|train_n|rare|confusion)[[:space:]:]' m.tsv) \
			<(grep -vE '^(metric|unlabelled|unknown|unpredicted|ece|aurc)' n.tsv)
	}
	same --train tiny1.emb --test tiny1.emb -C 0.001
	same --train tiny1.emb --test tiny2.emb -C 0.001
	same --train tiny1.emb --test tiny2.emb --nearest 2
	same tiny1.emb
	assert_equal "$(value rare:k3 n.tsv)" 1
	assert_equal "$(scview -q -c predicted p.s | sort -u | tr '\n' ' ')" "k0 k1 predicted "
	# part of the cells: the counts still are those of the training
	scsample -q -n 50 p.s -o part.s
	ctaprobe score -q -l t part.s -o n.tsv
	assert_equal "$(value train_n:k3 n.tsv)" 40
	# predictions of two probes, joined: no counts of training are true for all
	ctaprobe cells -q -l t --train tiny2.emb --test tiny1.emb --predictions q.s -o m.tsv
	scsample -q p.s q.s -o both.s
	ctaprobe score -q -l t both.s -o n.tsv
	assert_equal "$(value train_cells n.tsv)" ""
	run -2 ctaprobe cells -l predicted tiny1.emb --predictions x.s
	names "--predictions predicted"
}

@test "ctaprobe score: rare classes are those of the training cells, where these are given" {
	ref predict p.s seed=3
	scsample -q --where cell_type=type0 p.s -o rare.s
	ctaprobe score -q -l cell_type --train rare.s p.s -o m.tsv
	ref metrics p.s m.tsv
	assert_equal "$(value train_n:type1 m.tsv)" 0
	assert_equal "$(value rare:type0 m.tsv)" 0
	assert_equal "$(value train_cells m.tsv)" "$(value n:type0 m.tsv)"
}

@test "ctaprobe score: what was left out is said" {
	ref predict p.s what=unknown seed=3
	run --separate-stderr ctaprobe score -l cell_type p.s
	assert_equal "$stderr" "ctaprobe score: warning: p.s: 46 cells of 2 classes that the model does not know ('other1', ...) are never predicted right"
	scsample -q --where cell_type=other1 -n 1 p.s -o one.s
	run --separate-stderr ctaprobe score -l cell_type one.s
	assert_equal "$stderr" "ctaprobe score: warning: one.s: 1 cell of 1 class that the model does not know ('other1') is never predicted right"
	ref predict p.s what=unlabelled
	run --separate-stderr ctaprobe score -l cell_type p.s
	names "note p.s 72 500 cell_type"
	ref predict p.s what=nologits
	run --separate-stderr ctaprobe score -l cell_type p.s
	assert_equal "$stderr" "ctaprobe score: warning: p.s: 50 cells have no logits and are left out"
}

@test "ctaprobe score: what cannot be scored" {
	ref predict p.s
	bad() {         # bad STATUS MESSAGE ARGUMENT...
		run ctaprobe score -o out.tsv "${@:3}" </dev/null
		assert_failure "$1"
		names "$2"
		assert_not_exist out.tsv
	}
	local expected="expected finite ones, and -inf for classes that are impossible"
	for what in nan:"a logit is NaN" infinite:"a logit is infinite" impossible:"all logits are -inf"; do
		ref predict odd.s what="${what%%:*}"
		bad 1 "odd.s: cell 7: ${what#*:}, $expected" -l cell_type odd.s
	done
	ref make none.emb what=nolabel cells=50
	bad 1 "none.emb cell_type" -l cell_type --train none.emb p.s
	ref predict none.s cells=0
	bad 1 "none.s 0 cell_type" -l cell_type none.s
	$PYTHON - <<-END
		import sys
		sys.path.insert(0, "$BATS_TEST_DIRNAME/../python")
		import corrmask.stream as scstream
		s = scstream.read("p.s")
		blocks = list(s)
		for name, labels in ("few.s", s.header["labels"][:-1]), ("twice.s", s.header["labels"][:-1] + s.header["labels"][:1]):
		    scstream.write(name, dict(s.header, labels=labels), blocks)
	END
	bad 1 "few.s 5 logits" -l cell_type few.s
	bad 1 "twice.s: two labels in the header are '$(scview -H twice.s | $PYTHON -c 'import json, sys; print(json.load(sys.stdin)["labels"][0])')'" -l cell_type twice.s
}

# ---- nearest neighbours ----

@test "ctaprobe cells --nearest: predictions, probabilities and scores are scikit-learn's, standardised or not, and in a cross-validation" {
	near() {        # near K TRAIN [--no-standardize]
		ctaprobe cells -q -l cell_type --nearest $1 $3 --train $2.emb --test te.emb --predictions p.s -o m.tsv
		ctaprobe cells -l cell_type --nearest $1 $3 --train $2.emb --test te.emb -@ 3 | cmp - m.tsv
		run ref nearest $2.emb te.emb p.s m.tsv k=$1 "standardize=$([ -n "$3" ]; echo $?)"
		assert_success
	}
	near 1 tr
	near 15 tr
	near 15 tr --no-standardize
	ref make constant.emb what=constant
	near 15 constant
	near 400 tr --no-standardize
	# each fold by the other cells, which alone give means and scales
	ctaprobe cells -q -l cell_type --nearest 5 tr.emb --predictions p.s -o m.tsv
	run ref nearest tr.emb tr.emb p.s m.tsv k=5 standardize=1
	assert_success
	ctaprobe cells -q -l cell_type --nearest 5 --no-standardize tr.emb --predictions p.s -o m.tsv
	run ref nearest tr.emb tr.emb p.s m.tsv k=5
	assert_success
	fails "--nearest 401 400" -l cell_type --nearest 401 --train tr.emb --test te.emb
	for o in "--target n_counts" "-l cell_type --search 3" "-l cell_type -C 2"; do
		run -2 ctaprobe cells --nearest 5 $o tr.emb
	done
}

# ---- naive Bayes ----

@test "ctaprobe cells --naive-bayes: logits, predictions and scores of counts are scikit-learn's, also of other genes and in a cross-validation" {
	scsim -q --cells 300 --genes 90 --modules 8 --types 4 --rarest .1 --depth 60 --donors 3 -o a.counts
	scsim -q --cells 100 --genes 60 --modules 8 --types 4 --rarest .1 --depth 30 --donors 3 --seed 2 -o b.counts # 60 of the genes
	bayes() { # bayes TRAIN TEST OPTION...
		ctaprobe cells -q -l cell_type --naive-bayes "${@:3}" --predictions p.s -o m.tsv
		run -0 ref bayes "$1" "$2" p.s m.tsv
	}
	bayes a.counts b.counts --train a.counts --test b.counts
	bayes b.counts a.counts --train b.counts --test a.counts
	bayes a.counts a.counts --group donor --folds 3 a.counts
	scsample -q --where 'cell_type!=type2' a.counts -o less.counts
	bayes less.counts b.counts --train less.counts --test b.counts
	ctaprobe cells -q -l cell_type --naive-bayes --protocol cz a.counts -o m.tsv
	assert_equal "$(value cells m.tsv)" 300
	fails "te.emb embedding counts" -l cell_type --naive-bayes te.emb
	fails "a.counts counts embedding" -l cell_type a.counts
	for o in "--target n_counts" "-l cell_type --search 3" "-l cell_type -C 2" "-l cell_type --nearest 2"; do
		run -2 ctaprobe cells --naive-bayes $o a.counts
	done
}

# ---- donors ----

@test "ctaprobe cells: the search of C by donors, AUROC of cells and donors are scikit-learn's" {
	donors make dtr.emb seed=1
	donors make dte.emb seed=2 donors=7 first=11
	search() {      # search LABEL [OPTION OF CTAPROBE, OPTION OF THE REFERENCE]
		ctaprobe cells -q -l "$1" --keep-unknown-labels --group donor dtr.emb --predictions folds.pred -o cv.tsv
		donors auroc folds.pred cv.tsv "$1"
		ctaprobe cells -q -l "$1" --keep-unknown-labels --group donor --train dtr.emb --test dte.emb --search 5 --predictions p.s -o m.tsv $2
		run donors classes dtr.emb dte.emb folds.pred p.s m.tsv "$1" $3
		assert_success
	}
	search cell_type "" standardize=1
	search disease --no-standardize # one is "none"
	# nested: the search sees the training cells of a fold only
	ctaprobe cells -q -l disease --keep-unknown-labels --group donor --folds 3 --search 3 dtr.emb >m.tsv
	assert_equal "$(grep -c '^inverse_penalty_fold:' m.tsv)" 3
}

@test "ctaprobe cells --target: ridge regression, its search, Spearman of cells and donors are scikit-learn's and scipy's" {
	donors make dtr.emb seed=1
	donors make dte.emb seed=2 donors=7 first=11
	donors make miss.emb seed=1 what=missing
	ridge() {       # ridge TRAIN OPTIONS OPTION OF THE REFERENCE...
		ctaprobe cells -q --target age --group donor "$1" --predictions folds.pred -o cv.tsv
		ctaprobe cells -q --target age --group donor --train "$1" --test dte.emb $2 --predictions p.s -o m.tsv
		run donors target "$1" dte.emb folds.pred p.s m.tsv "${@:3}"
		assert_success
	}
	ridge dtr.emb "--search 5 --no-standardize"
	ridge dtr.emb "--search 5" standardize=1
	ridge miss.emb --no-standardize alpha=1
	assert_equal "$(value unlabelled m.tsv)" "$(scview miss.emb --columns age | grep -c NA)"
	ctaprobe cells -q --target age --group donor -@ 2 miss.emb | cmp - cv.tsv
}

@test "ctaprobe score --target: numbers of any size; equal ones have no r2" {
	export BATS_TEST_DIRNAME
	run $PYTHON - "$BIN/ctaprobe" <<-'END'
		import os, subprocess, sys
		import numpy as np
		sys.path[:0] = [os.environ["BATS_TEST_DIRNAME"] + d for d in ("/../python", "/ref")]
		import results, corrmask.stream as scstream
		rng = np.random.default_rng(1)
		y = rng.normal(size=50)
		x = y + 0.3 * rng.normal(size=50)
		header = dict(scstream.read("tr.emb").header, kind="prediction")
		header["columns"] = [{"name": n, "type": t, "shape": "scalar"} for n, t in
		                     (("cell", "u64"), ("barcode", "str"), ("n_counts", "u64"), ("y", "f64"), ("predicted", "f64"))]
		def score(x, y):
		    scstream.write("n.pred", header, [{"cell": np.arange(50, dtype=np.uint64), "barcode": ["c%d" % i for i in range(50)],
		                                       "n_counts": np.ones(50, np.uint64), "y": y, "predicted": x}])
		    got = subprocess.run([sys.argv[1], "score", "-q", "--target", "y", "n.pred"], check=True, capture_output=True, text=True)
		    return results.load(got.stdout.splitlines())
		plain = score(x, y)
		assert abs(plain["r2"] - (1 - ((x - y) ** 2).mean() / y.var())) < 1e-12 and abs(plain["pearson"] - np.corrcoef(x, y)[0, 1]) < 1e-12
		for size in 1e160, 1e-200, 1e300:
		    got = score(x * size, y * size)
		    assert all(abs(got[k] - plain[k]) < 1e-12 for k in ("pearson", "spearman", "r2")), (size, got, plain)
		for same in 0.1, 1e9 + 0.1:
		    got = score(x, np.full(50, same))
		    assert got["r2"] is None and got["pearson"] is None and got["mse"] > 0, got
	END
	assert_success
}

@test "ctaprobe cells --target: constant features, however large, change nothing" {
	export BATS_TEST_DIRNAME
	run $PYTHON - "$BIN/ctaprobe" <<-'END'
		import os, subprocess, sys
		import numpy as np
		sys.path[:0] = [os.environ["BATS_TEST_DIRNAME"] + d for d in ("/../python", "/ref")]
		import results, corrmask.stream as scstream
		rng = np.random.default_rng(1)
		x = rng.normal(size=(100, 3))
		t = x @ [1, 2, 3] + 0.5 * rng.normal(size=100)
		header = scstream.read("tr.emb").header
		types = [("cell", "u64", {"shape": "scalar"}), ("barcode", "str", {"shape": "scalar"}), ("n_counts", "u64", {"shape": "scalar"}),
		         ("t", "f64", {"shape": "scalar"})]
		def write(name, x, rows):
		    of = types + [("x", "f32", {"shape": "fixed", "n": x.shape[1]})]
		    header["columns"] = [dict(shape, name=n, type=k) for n, k, shape in of]
		    n = len(x[rows])
		    scstream.write(name, header, [{"cell": np.arange(n, dtype=np.uint64), "barcode": ["c%d" % i for i in range(n)],
		                                   "n_counts": np.ones(n, np.uint64), "t": t[rows], "x": x[rows].astype(np.float32)}])
		def scores(x):
		    write("ctr.emb", x, slice(0, 60)), write("cte.emb", x, slice(60, 100))
		    c = [sys.argv[1], "cells", "-q", "--target", "t", "--train", "ctr.emb", "--test", "cte.emb"]
		    return [results.load(subprocess.run(c + o, check=True, capture_output=True, text=True).stdout.splitlines())["r2"]
		            for o in ([], ["--no-standardize"], ["--search", "3"])]
		without = scores(x)
		assert min(without) > 0.9, without
		for size in 1e6, 1e18, 1e24, 1e30:
		    constant = np.full((100, 30), 1) * (size * (1 + 0.37 * np.arange(30)))
		    got = scores(np.concatenate([x, constant], 1))
		    assert np.allclose(got, without, rtol=1e-9), (size, got, without)
	END
	assert_success
}

@test "ctaprobe cells: donors and numbers that cannot be used" {
	donors make dtr.emb seed=1
	donors make one.emb donors=1 first=20
	donors make same.emb what=constant
	donors make inf.emb what=infinite
	fails "one.emb 1 5 --group" --target age --group donor one.emb
	fails "one.emb training 1 5 --group" -l disease --keep-unknown-labels --group donor --search 5 --train one.emb --test dtr.emb
	fails "same.emb age 7 253" --target age same.emb
	fails "inf.emb 3 age" --target age inf.emb
	fails "dtr.emb donor categorical" --target donor dtr.emb
	# one class in all training cells of a fold
	scsample -q --where disease=mild dtr.emb -o mild.emb
	fails "mild.emb: all $(scview mild.emb --columns cell | sed 1d | wc -l) labelled cells are 'mild' in column 'disease'; a probe needs two classes" \
		-l disease mild.emb
	scsample -q --where donor=d00 dtr.emb -o d0.emb
	scsample -q --where donor=d01 dtr.emb -o d1.emb
	scsample -q d0.emb d1.emb -o two.emb
	run ctaprobe cells -q -l disease --keep-unknown-labels --group donor --folds 2 two.emb -o out.tsv
	assert_failure 1
	assert_output --regexp "^ctaprobe cells: two.emb: fold 1 of 2: the [0-9]+ training cells are all '(mild|none)' in column 'disease'; a probe needs two classes$"
	assert_not_exist out.tsv
	run --separate-stderr ctaprobe cells -l cell_type --group donor --train dtr.emb --test two.emb
	assert_success
	assert_equal "$stderr" "ctaprobe cells: warning: two.emb: 2 values of column 'donor' ('d00', ...) have cells in the training data too"
}

@test "ctaprobe: bootstrap by donors and by cells, the same for cells and score" {
	donors make dtr.emb seed=1
	donors make dte.emb seed=2 donors=9 first=11
	ctaprobe cells -q -l cell_type --group donor --train dtr.emb --test dte.emb --bootstrap 2000 --replicates r.tsv --predictions p.s -o m.tsv
	run donors bootstrap p.s m.tsv r.tsv group=1
	assert_success
	ctaprobe score -q -l cell_type --group donor --bootstrap 2000 --replicates r2.tsv p.s | grep _low >low.tsv
	cmp r.tsv r2.tsv
	cmp low.tsv <(grep _low m.tsv)
	ctaprobe score -q -l cell_type --bootstrap 2000 --replicates r.tsv p.s -o m.tsv
	run donors bootstrap p.s m.tsv r.tsv
	assert_success
	assert_equal "$(status_of cmp r.tsv r2.tsv)" 1
	ctaprobe score -q -l cell_type --group donor --bootstrap 2000 --seed 2 --replicates r.tsv p.s >/dev/null
	assert_equal "$(status_of cmp r.tsv r2.tsv)" 1
	scsample -q --where "donor=$(scview -c donor p.s | sed -n 2p)" p.s -o one.s
	# one donor, or two, tell nothing of others
	scsample -q --where "donor=$(scview -c donor p.s | sed 1d | sort -u | sed -n 2p)" p.s -o another.s
	scsample -q one.s another.s -o two.s
	for few in one two; do
		run -0 --separate-stderr ctaprobe score -l cell_type --group donor --bootstrap 10 --replicates r.tsv $few.s
		[[ $stderr == "ctaprobe score: warning: --bootstrap: no intervals: "* ]]
		assert_equal "$(grep -cE $'_(low|high)\tnan$' <<< "$output")" 6
		assert_equal "$(sed -n 2p r.tsv)" $'1\tnan\tnan\tnan'
	done
	run ctaprobe score -l cell_type --group donor p.s
	assert_failure 2
	assert_line -n 0 "ctaprobe score: --group needs --bootstrap"
	run ctaprobe cells -l cell_type --replicates r.tsv dtr.emb
	assert_failure 2
	assert_line -n 0 "ctaprobe cells: --replicates needs --bootstrap"
}

# ---- genes ----

@test "ctaprobe genes: AUC by token and gene, weights and curves are sklearn's and Geneformer's" {
	for i in 1 2 3 4 5; do          # folds of different sizes, one with genes that have no class
		genes_ref make f$i.pred seed=$i cells=$((i * 40)) what="$([ $i = 2 ] && echo all || echo heldout)"
	done
	ctaprobe genes -q f?.pred --gene-scores gs.tsv --roc roc.tsv -o m.tsv
	genes_ref compare m.tsv gs.tsv roc.tsv f?.pred
	assert_equal "$(value positive m.tsv)" insensitive
	ctaprobe genes -q --gene-scores gs.tsv --roc roc.tsv - <f2.pred >m.tsv
	genes_ref compare m.tsv gs.tsv roc.tsv f2.pred
	cat f3.pred | ctaprobe genes -q --gene-scores gs.tsv --roc roc.tsv f1.pred - f5.pred >m.tsv
	genes_ref compare m.tsv gs.tsv roc.tsv f1.pred f3.pred f5.pred
}

@test "ctaprobe genes: more than two classes, each against the rest" {
	for i in 1 2 3; do genes_ref make t$i.pred seed=$i classes=4; done
	ctaprobe genes t?.pred --gene-scores gs.tsv -o m.tsv
	genes_ref compare m.tsv gs.tsv - t?.pred
	ctaprobe genes t2.pred --gene-scores gs.tsv -o m.tsv
	genes_ref compare m.tsv gs.tsv - t2.pred
}

@test "ctaprobe genes: what scembed says is scored, and JSON says the same as the table" {
	need_tool scsim rankenc maskgen sctrain scembed
	mkdir small
	make_small small
	for i in 1 2; do
		$PYTHON "$BATS_TEST_DIRNAME/ref/head.py" make small/sim.model g$i.model genes yes no seed=$i
		scpredict genes -q -M g$i.model small/sim.tok -o g$i.pred
	done
	ctaprobe genes g1.pred g2.pred --gene-scores gs.tsv --roc roc.tsv -o m.tsv
	genes_ref compare m.tsv gs.tsv roc.tsv g1.pred g2.pred
}

@test "ctaprobe genes: what cannot be scored" {
	bad() {         # bad STATUS MESSAGE ARGUMENT...
		run ctaprobe genes -q -o out.tsv --gene-scores gs.out "${@:3}" </dev/null
		assert_failure "$1"
		names "$2"
		assert_not_exist out.tsv
		assert_not_exist gs.out
	}
	for what in heldout oneclass nan badlabel changed none; do genes_ref make $what.pred what=$what; done
	genes_ref make three.pred classes=3
	bad 1 "oneclass.pred: no token of a held-out gene of class 'insensitive' among $(ctaprobe genes oneclass.pred 2>&1 | sed 's/.*among //')" oneclass.pred
	bad 1 "none.pred sensitive 0 ROC AUC" heldout.pred none.pred
	run ctaprobe genes -q nan.pred
	assert_failure 1
	assert_output --regexp "^ctaprobe genes: nan.pred: logit.insensitive of token [0-9]+ is nan, expected a finite number$"
	run ctaprobe genes -q badlabel.pred
	assert_output --regexp "^ctaprobe genes: badlabel.pred: gene ENSG[0-9]+ has label 2, expected -1 to 1$"
	run ctaprobe genes -q changed.pred
	assert_output --regexp "^ctaprobe genes: changed.pred: gene ENSG[0-9]+ does not have the same label in all cells$"
	bad 1 "three.pred 3 heldout.pred 2" heldout.pred three.pred
	bad 1 "--roc three.pred 3" --roc r.out three.pred
	bad 1 "tr.emb prediction scpredict" tr.emb
	ref predict p.s
	bad 1 "p.s ctaprobe score" p.s
	run ctaprobe score -l cell_type heldout.pred
	names "heldout.pred ctaprobe genes"
	head -c 2000 heldout.pred >cut.pred
	bad 1 "cut.pred short" heldout.pred cut.pred
	run ctaprobe genes heldout.pred -o /dev/full
	assert_failure 1
}

# ---- misuse and faults ----

@test "ctaprobe: misuse is status 2 and one line" {
	for o in "" "cells" "nothing" "cells -l cell_type --target n_counts tr.emb" "cells --target n_counts -C 2 tr.emb" \
		"cells -l cell_type --search 5 -C 2 tr.emb" \
		"cells -l cell_type --folds 1" "cells -l cell_type tr.emb te.emb" "cells -l cell_type --train tr.emb" \
		"cells -l cell_type --train tr.emb --test te.emb tr.emb" "cells -l cell_type --test te.emb --folds 3 tr.emb" \
		"cells -l cell_type -C 0 tr.emb" \
		"--nope" "cells --nope"; do
		run ctaprobe $o </dev/null
		assert_failure 2
		assert_line -n 1 --partial "--help'."
	done
}

fails() {               # fails MESSAGE ARGUMENT...: status 1, one line, no output
	run ctaprobe cells -o out.tsv "${@:2}"
	assert_failure 1
	assert_equal "${#lines[@]}" 1
	names "$1"
	assert_not_exist out.tsv
}

@test "ctaprobe: labels that cannot be learnt" {
	ref make none.emb what=nolabel cells=50
	fails "none.emb cell_type 50" -l cell_type none.emb
	ref make empty.emb cells=0
	fails "empty.emb cell_type 0" -l cell_type empty.emb
	ref make few.emb cells=4 what=twoclasses
	fails "few.emb 4 5 folds" -l cell_type few.emb
}

@test "ctaprobe cells: cells without an embedding are left out and counted" {
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		for name in "tr", "te":
		    stream = scstream.read(name + ".emb")
		    some, blocks = [], list(stream)
		    for b in blocks:
		        keep = np.arange(b.rows) % 10 != 3
		        b["x"][~keep] = np.nan
		        some.append({k: scstream.Categorical(v.codes[keep], v.categories) if hasattr(v, "codes") else np.array(v)[keep]
		                     for k, v in b.items()})
		    scstream.write(name + ".nan.emb", stream.header, blocks)
		    scstream.write(name + ".some.emb", stream.header, some)
	END
	local empty=$(($(scview -c cell tr.emb | wc -l) - $(scview -c cell tr.some.emb | wc -l)))
	run -0 --separate-stderr ctaprobe cells -l cell_type --train tr.nan.emb --test te.nan.emb
	assert_equal "$output" "$(ctaprobe cells -q -l cell_type --train tr.some.emb --test te.some.emb)"
	assert_equal "${stderr_lines[0]}" "ctaprobe cells: warning: tr.nan.emb: $empty cells have no embedding, as they have no token, and are left out"
}

@test "ctaprobe: embeddings that cannot be used" {
	ref make nan.emb what=nan cells=50
	fails "nan.emb 25 x[3]" -l cell_type nan.emb
}

@test "ctaprobe: a fit that does not converge is said, and marked" {
	run --separate-stderr ctaprobe cells -l cell_type --train tr.emb --test te.emb --max-iter 3
	assert_success
	[[ $stderr == *"the probe did not converge in 3 iterations (largest gradient entry"* ]]
	assert_line "converged	0"
	# stopped before --max-iter: more iterations are no help
	ref make large.emb what=large
	run --separate-stderr ctaprobe cells -l cell_type --no-standardize --train large.emb --test large.emb
	assert_line "converged	0"
	assert_regex "$stderr" 'the probe stopped after [0-9]+ iterations: rounding hides whether a step is smaller \(.*\); leave out --no-standardize$'
	refute_regex "$stderr" max-iter
	run --separate-stderr ctaprobe cells -l cell_type --train large.emb --test large.emb
	assert_line "converged	1"
}

@test "ctaprobe: damaged and cut input, a folder, a full disk, a dead upstream" {
	head -c 9000 tr.emb >cut.emb
	for f in cut.emb /dev/null . nowhere; do
		run ctaprobe cells -l cell_type -o out.tsv --predictions out.s $f
		assert_failure 1
		assert_equal "${#lines[@]}" 1
		assert_not_exist out.tsv
		assert_not_exist out.s
	done
	run bash -c 'ctaprobe cells -l cell_type tr.emb >/dev/full'
	assert_failure 1
	assert_output --partial "No space left"
	run ctaprobe cells -l cell_type tr.emb -o /dev/full
	assert_failure 1
	run ctaprobe cells -l cell_type tr.emb --predictions /dev/full -o out.tsv
	assert_failure 1
	assert_not_exist out.tsv
	run bash -c 'head -c 9000 tr.emb | ctaprobe cells -l cell_type -'
	assert_failure 1
	assert_output --partial "cut short"
}

@test "ctaprobe: a column that --test or --calibration lacks is told before the other file is read" {
	scsim -q --cells 60 --genes 60 --modules 4 --types 2 --rarest 0.3 --donors 3 --seed 3 -o late.counts
	screduce expression -q late.counts -o late.emb
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'END'
		import corrmask.stream as scs
		for kind in ("emb", "counts"):
		    s = scs.read("late." + kind)
		    blocks = [dict(b) for b in s]
		    s.header["columns"] = [c for c in s.header["columns"] if c["name"] != "cell_type"]
		    for b in blocks:
		        del b["cell_type"]
		    scs.write("bare." + kind, s.header, blocks)
	END
	# the first file breaks off, which whoever reads it would say
	for kind in emb counts; do head -c $(($(stat -c %s late.$kind) - 40)) late.$kind >cut.$kind; done
	run -1 ctaprobe cells -l cell_type --train cut.emb --test bare.emb
	names "bare.emb cell_type"
	run -1 ctaprobe transfer --reference cut.counts -l cell_type --calibration bare.counts late.counts -o /dev/null
	names "bare.counts cell_type"
	run -1 ctaprobe transfer --reference cut.counts -l cell_type --calibration nothing.counts late.counts -o /dev/null
	names "nothing.counts"
	# and in order
	ctaprobe cells -q -l cell_type --train late.emb --test late.emb >/dev/null
}

#!/usr/bin/env bats
# ctaprobe transfer: classes, probabilities, sets and unknown cells by scikit-learn and plain loops; the promise holds on new donors
load helper

ref() {
	$PYTHON -B "$BATS_TEST_DIRNAME/ref/transfer.py" "$@"
}

setup_file() {
	need_tool ctaprobe scview scsim
	cd "$BATS_FILE_TMPDIR"
	ref make ref.emb
	ref make new.emb seed=2 cells=331
	ref make novel.emb seed=2 cells=331 what=novel
}

setup() { cd "$BATS_FILE_TMPDIR"; }

value() { awk -F'\t' -v k="$1" '$1 == k { print $2 }' "$2"; }

agree() { # [FROM=REFERENCE] agree "OPTIONS" [OPTION for scikit-learn ...]
	# shellcheck disable=SC2086
	ctaprobe transfer -q --reference "${FROM:-ref.emb}" -l cell_type --held-out held.s $1 new.emb -o new.s
	run ref compare "${FROM:-ref.emb}" new.emb held.s new.s "${@:2}"
	assert_success
}

@test "transfer: classes, probabilities, sets, unknown cells and thresholds are those of scikit-learn, scipy and plain loops" {
	agree "--group donor --coverage .88 --unknown .2" coverage=.88 unknown=.2
	# a class of one cell: the others of its fold are predicted without it
	ref make single.emb what=single
	FROM=single.emb agree "--nearest 7 --group donor --coverage .85 --unknown .2 --report report" nearest=7 coverage=.85 unknown=.2
	run -0 ref shift single.emb new.emb held.s new.s report
}

# bats test_tags=slow
@test "transfer: the same with other options, without groups, with cells of their own to calibrate with, and with cells without a class" {
	agree "-C .1 --no-standardize --folds 3 --unknown 0" C=.1 standardize=0 group= unknown=0
	agree "--nearest 12 --coverage .97 --unknown .05" nearest=12 group= coverage=.97
	ref make cal.emb seed=5 cells=300 what=novel
	run ctaprobe transfer --reference ref.emb -l cell_type --group donor --calibration cal.emb --unknown .05 --held-out held.s new.emb -o new.s
	names "warning: cal.emb 60 300 ref.emb"
	names "note: coverage donor 8 9"
	names "note: unknown mono 7 19"
	ref compare ref.emb new.emb held.s new.s calibration=cal.emb
	# cells of the reference without a class
	mv ref.emb whole.emb
	ref make ref.emb what=unlabelled
	agree "--group donor --coverage .8 --unknown .2" coverage=.8 unknown=.2
	mv whole.emb ref.emb
}

@test "transfer: what ctaprobe score says of probabilities, sets and unknown cells is numpy's and scikit-learn's" {
	ctaprobe transfer -q --reference ref.emb -l cell_type --group donor --nearest 9 novel.emb -o novel.s
	ctaprobe score -q -l cell_type --curves curves.tsv novel.s -o score.tsv
	ref score novel.s score.tsv curves.tsv
	awk -v a="$(value novel_auroc score.tsv)" 'BEGIN { print a; exit !(a > .8) }'
	# predictions of the probe have no sets
	ctaprobe cells -q -l cell_type --train ref.emb --test novel.emb --predictions plain.s -o plain.tsv
	ctaprobe score -q -l cell_type --curves curves.tsv plain.s -o score.tsv
	ref score plain.s score.tsv curves.tsv
	run grep -cE '^(coverage|set_size|known_called)' score.tsv
	assert_output 0
}

# bats test_tags=slow
@test "transfer: on new donors the sets have the true class, and known cells are called unknown, as often as promised" {
	for seed in {11..20}; do
		ref make many.emb seed=$seed cells=600 donors=24 shift=.6
		ref make other.emb seed="1$seed" cells=600 donors=24 shift=.6
		ctaprobe transfer -q --reference many.emb -l cell_type --group donor --coverage .8 --unknown .1 --nearest 9 other.emb |
			ctaprobe score -q -l cell_type | grep -E '^(coverage|known_called|accuracy|set_size)' | tr '\n' '\t'
		echo
	done > rates
	# with cells alone instead of donors, the coverage would be about .8 too, as there are many; the spread over donors makes the difference
	awk '{ for (i = 1; i < NF; i += 2) sum[$i] += $(i + 1) / 10 } END {
		for (k in sum) print k, sum[k]
		exit !(sum["coverage"] > .8 && sum["coverage"] < .9 && sum["known_called_unknown"] < .1 && sum["known_called_unknown"] > .02) }' rates
}

@test "transfer: the same bytes on any number of threads, from a file and a pipe, and in pieces; the order is kept" {
	for method in "" "--nearest 9"; do
		# shellcheck disable=SC2086
		for n in 1 2 3; do
			ctaprobe transfer -q -@ $n --reference ref.emb -l cell_type $method --held-out held$n new.emb -o new$n
		done
		cmp new1 new2 && cmp new1 new3 && cmp held1 held2
		# shellcheck disable=SC2086
		cat new.emb | ctaprobe transfer -q --reference ref.emb -l cell_type $method -o piped && cmp piped new1
	done
	cmp <(scview -c cell,barcode,cell_type,donor new1) <(scview -c cell,barcode,cell_type,donor new.emb)
	# cells are predicted 2048 at a time: a longer stream has the same rows
	scsample -q new.emb new.emb new.emb new.emb new.emb new.emb new.emb -o long.emb
	ctaprobe transfer -q --reference ref.emb -l cell_type --nearest 9 long.emb | scview -c label_set,likeness | sed 1d > long
	assert_equal "$(wc -l < long)" 2317
	cmp <(head -n 331 long) <(tail -n 331 long)
	cmp <(head -n 331 long) <(scview -c label_set,likeness new1 | sed 1d)
}

@test "transfer: cells without an embedding keep their row and get no class; no cells make no cells; own predictions are replaced" {
	ref make empty.emb seed=2 cells=331 what=empty
	run ctaprobe transfer --reference ref.emb -l cell_type --group donor --coverage .8 --unknown .2 empty.emb -o e.s
	names "warning: empty.emb 7 331"
	assert_equal "$(scview -c predicted,probability,likeness,assigned,label_set e.s | grep -c $'^NA\tNA\tNA\tNA\t$')" 7
	ctaprobe transfer -q --reference ref.emb -l cell_type new.emb | scview -c cell,label_set,probability > all
	scview -c cell,label_set,probability e.s | grep -c . | grep -qx 332
	ctaprobe score -q -l cell_type e.s | grep -qx $'cells\t324'
	# cells of the reference, with gaps, and others
	ref make own.emb what=empty
	scsample -q own.emb new.emb | ctaprobe transfer -q --reference ref.emb -l cell_type - | scview -c in_reference - | grep -cx 1 | grep -qx 392
	scsample -q --where cell=99999 new.emb -o none.emb || scsample -q --where donor=none new.emb -o none.emb
	ctaprobe transfer -q --reference ref.emb -l cell_type none.emb -o none.s
	scview --check none.s | grep -q "complete, prediction, 0 rows"
}

@test "transfer: what is wrong is one line, and leaves no output" {
	wrong() { # wrong MESSAGE ARGUMENT...
		rm -f out held
		run -1 ctaprobe transfer "${@:2}" -o out --held-out held
		assert_output --partial "ctaprobe transfer: $1"
		assert_equal "${#lines[@]}" 1
		assert_not_exist out
		assert_not_exist held
	}
	ref make wide.emb features=12 seed=2
	wrong "wide.emb: embeddings of 12 values, but ref.emb has 10" --reference ref.emb -l cell_type wide.emb
	ref make model.emb what=model seed=2
	wrong "model.emb: its embeddings were made by 'xxh3:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, layer -1, mean', and those of ref.emb by 'xxh3:aaaa" \
		--reference ref.emb -l cell_type model.emb
	ref make nan.emb what=nan seed=2
	wrong "nan.emb: cell 200: x[2] is nan, expected a finite number" --reference ref.emb -l cell_type nan.emb
	wrong "nan.emb: cell 200: x[2] is nan, expected a finite number" --reference nan.emb -l cell_type new.emb
	wrong "ref.emb: reference: --nearest 401, but there are 400 reference cells" --reference ref.emb -l cell_type --nearest 401 new.emb
	wrong "ref.emb: fold 1 of 5: --nearest 390, but there are 320 reference cells" --reference ref.emb -l cell_type --nearest 390 new.emb
	wrong "--calibration: ref.emb: 400 of its 400 cells have the embedding of a cell of ref.emb: expected other cells" \
		--reference ref.emb -l cell_type --calibration ref.emb new.emb
	wrong "ref.emb: no column 'type'" --reference ref.emb -l type new.emb
	wrong "ref.emb: no column 'sex'" --reference ref.emb -l cell_type --group sex new.emb
	$PYTHON -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import corrmask.stream as scstream, numpy as np; y = np.arange(60) % 3; scstream.write("alike.emb",
		{"kind": "embedding", "provenance": [], "columns": [{"name": n, "type": t, "shape": "scalar"} for n, t in (("cell", "u64"), ("cell_type", "u32"))]
		+ [{"name": "x", "type": "f32", "shape": "fixed", "n": 10}]}, [{"cell": np.arange(60), "cell_type": y, "x": np.ones((60, 10), "f4")}])' "$BATS_TEST_DIRNAME/../python"
	wrong "alike.emb: no class has cells both to learn from and to calibrate with: expected each in two groups, or files" --reference alike.emb -l cell_type --group cell_type new.emb
	wrong "ref.emb: 8 groups for 9 folds" --reference ref.emb -l cell_type --group donor --folds 9 new.emb
	ctaprobe cells -q -l cell_type --predictions p.s ref.emb -o p.tsv
	wrong "p.s: this is a prediction stream" --reference ref.emb -l cell_type p.s
	head -c 9000 new.emb > cut.emb
	wrong "cut.emb: " --reference ref.emb -l cell_type cut.emb
	run -2 ctaprobe transfer -l cell_type new.emb
	names "--reference FILE classes"
	run -2 ctaprobe transfer --reference ref.emb -l predicted new.emb
	names "--label predicted"
	run -2 ctaprobe transfer --reference ref.emb -l cell_type --nearest 3 -C 2 new.emb
	run -2 ctaprobe transfer --reference ref.emb -l cell_type --calibration new.emb --folds 3 new.emb
}

@test "transfer: components of one fit go together, of two fits they do not" {
	scsim -q --cells 300 --genes 120 --types 3 --donors 6 --seed 2 -o a.counts
	scsim -q --cells 200 --genes 120 --types 3 --donors 6 --seed 2 -o b.counts
	screduce pca -q -k 8 a.counts -o a.emb
	screduce pca -q -k 8 --train a.counts b.counts -o b.emb
	screduce pca -q -k 8 b.counts -o other.emb
	ctaprobe transfer -q --reference a.emb -l cell_type --group donor b.emb -o b.s
	run -1 ctaprobe transfer -q --reference a.emb -l cell_type other.emb -o out
	names "other.emb xxh3:"
	screduce expression -q a.counts -o a.emb
	run -1 ctaprobe transfer -q --reference a.emb -l cell_type b.emb -o out
	names "b.emb 8 a.emb 120"
}

@test "transfer: into an AnnData file as columns of obs, which scanpy colours a map by" {
	ref make some.emb seed=2 cells=200
	ctaprobe transfer -q --reference ref.emb -l cell_type new.emb -o new.s
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np, pandas as pd
		n = 331
		anndata.AnnData(np.ones((n, 2), "f4"), pd.DataFrame(index=["c2.%d" % i for i in range(n)][::-1])).write_h5ad("new.h5ad")
	P
	scview -q -O h5ad --into new.h5ad --key transfer new.s
	scview -c barcode,assigned,probability,label_set,likeness new.s > table
	$PYTHON -W ignore - <<-'P'
		import anndata, pandas as pd
		a = anndata.read_h5ad("new.h5ad")
		t = pd.read_csv("table", sep="\t", index_col=0, keep_default_na=False).loc[a.obs_names]
		assert a.obs["transfer_assigned"].astype(str).tolist() == t["assigned"].tolist()
		assert list(a.obs["transfer_assigned"].cat.categories) == ["B, cell", "NK", "T cell", "mono | DC", "unknown"]
		assert a.obs["transfer_label_set"].tolist() == t["label_set"].tolist()
		assert abs(a.obs["transfer_probability"] - t["probability"]).max() < 1e-6 and abs(a.obs["transfer_likeness"] - t["likeness"]).max() < 1e-12
		classes = ["B, cell", "NK", "T cell", "mono | DC"]
		for name in "transfer_in_set", "transfer_logit":
		    assert list(a.obsm[name].columns) == classes and a.obsm[name].shape == (331, 4)
		inside = [" | ".join(sorted(c for c in classes if r[c])) for _, r in a.obsm["transfer_in_set"].iterrows()]
		assert inside == [" | ".join(sorted(c for c in classes if c in s)) for s in a.obs["transfer_label_set"]]
		assert (a.obsm["transfer_logit"].idxmax(axis=1) == a.obs["transfer_predicted"].astype(str)).all()
		said = a.uns["corrmask"]["transfer"]
		assert said["method"] and said["reference"].startswith("xxh3:") and said["label"] == "cell_type" and said["coverage"] == .9
		assert said["promise:coverage"] == 0 and said["why:coverage"] and said["unit"] == "cell" and said["unknown"] == 0
		a.uns["corrmask"]["other"] = {"a": 1}
		a[1:].write_h5ad("fewer.h5ad")
		a.obsm.clear()
		a.write_h5ad("again.h5ad")
	P
	# others of uns stay, that of the key is replaced; a table is not overwritten unless asked to; cells without predictions have none
	ctaprobe transfer -q --reference ref.emb -l cell_type --group donor --coverage .8 some.emb -o some.s
	scview -q -O h5ad --into again.h5ad --key transfer --replace some.s
	run -1 scview -q -O h5ad --into fewer.h5ad --key transfer some.s
	names "transfer_ already --replace"
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		a = anndata.read_h5ad("again.h5ad")
		assert a.uns["corrmask"]["other"]["a"] == 1 and a.uns["corrmask"]["transfer"]["unit"] == "donor" and a.uns["corrmask"]["transfer"]["promise:coverage"] == 1
		none = a.obs["transfer_predicted"].isna().to_numpy()
		assert none.sum() == 131 and np.isnan(a.obsm["transfer_logit"][none]).all(axis=None) and (a.obsm["transfer_in_set"][none] == 0).all(axis=None)
		assert np.isfinite(a.obsm["transfer_logit"][~none]).all(axis=None) and (a.obsm["transfer_in_set"][~none].sum(axis=1) > 0).all()
	P
}

@test "transfer: killed while it works, and with a neighbour that fails before it, it leaves no output" {
	mkfifo slow
	for signal in KILL TERM; do
		ctaprobe transfer -q --reference ref.emb -l cell_type --held-out killed.held -o killed.out <slow 3>&- &
		{
			head -c 12000 new.emb
			sleep 1
			kill -$signal $!
			sleep 0.2
		} >slow
		wait $! && false
		run -2 ls killed.out killed.held
		run -1 compgen -G 'killed*'
	done
	# two at once into one file: one whole result
	ctaprobe transfer -q --reference ref.emb -l cell_type -o both new.emb &
	ctaprobe transfer -q --reference ref.emb -l cell_type --nearest 5 -o both new.emb
	wait $!
	scview --check both
	head -c 9000 ref.emb >cut.emb
	run bash -c 'set -o pipefail; cat cut.emb | ctaprobe transfer -q --reference ref.emb -l cell_type - | ctaprobe score -q -l cell_type'
	assert_failure
}

@test "transfer: counts: the mean of regression on the shared genes and of ranks is scikit-learn's and scipy's, in each fold too; cells like none of the reference are unknown" {
	scsim -q --cells 900 --genes 400 --types 5 --donors 12 --separation .5 --depth 1500 --seed 3 -o all.counts
	scsample -q --test-fraction .3 --group donor --part train all.counts | scsample -q --where cell_type!=type1 - -o ref.counts
	scsample -q --test-fraction .3 --group donor --part test all.counts | scsample -q --thin .7 - -o whole.counts
	for nth in 12 3; do
	scview --vocab whole.counts | awk 'NR > 1 && NR % '$nth' { print $2 }' >panel
	scsample -q --keep-genes panel whole.counts -o new.counts
	ctaprobe transfer -q --reference ref.counts -l cell_type --group donor --unknown .05 --held-out held.s --report report new.counts -o new.s
	PYTHONPATH=$BATS_TEST_DIRNAME/../python:$BATS_TEST_DIRNAME/ref $PYTHON -B -W ignore - <<-END
		import numpy as np, corrmask.stream as scstream
		from scipy.special import softmax
		from scipy.stats import rankdata
		from transfer import check_shift
		from sklearn.linear_model import LogisticRegression
		def cells(path, columns):
		    out = {c: [] for c in columns}
		    for b in scstream.read(path):
		        for c in columns:
		            v = b[c]
		            out[c].append(np.array(v.categories, object)[v.codes] if hasattr(v, "codes") else np.asarray(v))
		    return {c: np.concatenate(v) for c, v in out.items()}
		def expression(path, genes):
		    ids = scstream.read(path).header["vocab"]["id"]
		    at = np.array([genes.get(i, -1) for i in ids])
		    rows = []
		    for b in scstream.read(path):
		        (start, gene), (_, count) = b["gene"], b["count"]
		        x = np.zeros((b.rows, len(genes) + 1))
		        x[np.repeat(np.arange(b.rows), np.diff(start.astype(int))), at[gene]] = count
		        rows.append(x[:, :-1])
		    x = np.concatenate(rows)
		    return np.log1p(1e4 * x / x.sum(1, keepdims=True)), x.sum(1)
		ids, own = (set(scstream.read(name).header["vocab"]["id"]) for name in ("ref.counts", "new.counts"))
		def read_both(of):
		    genes = {g: k for k, g in enumerate(sorted(of))}
		    return np.array([g in own for g in sorted(of)]), expression("ref.counts", genes), expression("new.counts", genes)
		# all genes of the reference, or, where the new cells lack some that have many molecules, those that both have
		shared, (x, depth), (q, new_depth) = read_both(ids)
		share = (np.expm1(x) * depth[:, None])[:, shared].sum() / (np.expm1(x) * depth[:, None]).sum()
		assert (share >= .8) == ($nth == 12)
		depth_of_reference = share * np.median(depth)
		if share < .8:
		    share, (shared, (x, depth), (q, new_depth)) = 1, read_both(ids & own)
		q = np.log1p(share * np.expm1(q))
		ref, held, new = cells("ref.counts", ["cell", "cell_type", "donor"]), cells("held.s", ["cell", "fold", "predicted", "logit"]), cells("new.s", ["predicted", "logit", "assigned", "cell_type"])
		assert (ref["cell"] == held["cell"]).all()
		y = ref["cell_type"].astype(str)
		def ranks(rows, classes, test, there):
		    mean, var = (np.array([f(x[rows][y[rows] == c], 0) for c in classes]) * there for f in (np.mean, np.var))
		    markers = set()
		    for a in range(len(classes)):
		        for b in range(len(classes)):
		            d = (mean[a] - mean[b]) / np.sqrt((var[a] + var[b]) / 2 + 1e-6)
		            markers |= {g for g in np.argsort(-d)[:10] if d[g] > 0}
		    test, mean = (rankdata(v[:, sorted(markers)], axis=1) for v in (test, mean))
		    return softmax(np.corrcoef(test, mean)[:len(test), len(test):] / .03, axis=1)
		def close(rows, test, predicted, logit, there):
		    fit = LogisticRegression(C=1 / (3e-3 * len(rows)), tol=1e-8, max_iter=5000).fit(x[rows], y[rows])
		    by_ranks, logits = ranks(rows, fit.classes_, test, there), fit.decision_function(test)
		    lacked = np.array([x[rows][y[rows] == c][:, ~there].mean(0) for c in fit.classes_]) @ fit.coef_[:, ~there].T
		    z = logits + lacked.mean(0)
		    for _ in range(3 if lacked.size else 0):
		        z = logits + (softmax(z, 1) + by_ranks) / 2 @ lacked
		    p = softmax(z, 1) + by_ranks
		    z = np.log(p)
		    z, got = z - z.mean(1, keepdims=True), logit - logit.mean(1, keepdims=True)
		    got = got * (z * got).sum() / (got * got).sum()        # the temperature
		    right = (fit.classes_[p.argmax(1)] == predicted).mean()
		    print(right, np.abs(z - got).mean() / np.abs(z).mean())
		    assert right > .98 and np.abs(z - got).mean() < .05 * np.abs(z).mean()
		close(np.arange(len(y)), q, new["predicted"].astype(str), new["logit"], shared)
		for f in np.unique(held["fold"]):
		    out = held["fold"] == f
		    close(np.flatnonzero(~out), x[out], held["predicted"][out].astype(str), held["logit"][out], shared | True)
		check_shift("report", x, ref["donor"].astype(str), held["predicted"].astype(str), q, new["predicted"].astype(str), shared)
		said = dict(line.rstrip("\n").split("\t") for line in open("report"))
		want = {"genes:shared": len(own), "genes:fraction": len(own) / 400, "molecules:fraction": share, "depth:reference": depth_of_reference, "depth:new": np.median(new_depth), "thinned": 1}
		for c in {c for c in set(new["predicted"].astype(str)) if (held["predicted"].astype(str) == c).any()}:
		    want["depth_ratio:" + c] = np.exp(np.log(new_depth[new["predicted"] == c]).mean() - np.log(share * depth[held["predicted"] == c]).mean())
		for k, v in want.items():
		    assert abs(float(said[k]) - v) < 1e-6 * v, (k, said[k], v)
		novel, unknown = new["cell_type"].astype(str) == "type1", new["assigned"].astype(str) == "unknown"
		print("unknown", unknown[novel].mean(), unknown[~novel].mean())
		assert unknown[novel].mean() > unknown[~novel].mean() and unknown[~novel].mean() < .12
	END
	done
	# the same bytes on any number of threads and from a pipe; genes in another order
	ctaprobe transfer -q -@ 3 --reference ref.counts -l cell_type --group donor --unknown .05 --held-out held3.s - <new.counts -o again
	cmp again new.s
	cmp held.s held3.s
	cat ref.counts >other.counts
	run -1 ctaprobe transfer --reference ref.counts -l cell_type --calibration other.counts new.counts -o x
	names "embedding ref.counts"
	# a cell without shared genes keeps its row
	scsample -q --thin .004 new.counts -o shallow.counts
	run -0 ctaprobe transfer --reference ref.counts -l cell_type --report report shallow.counts -o shallow.s
	assert_output --partial "get no class"
	# a reference that is thinned so much loses cells too; cells of so few counts are not taken for each other
	run -1 grep -E '^depth_ratio.*(inf|nan)' report
	ctaprobe transfer -q --reference shallow.counts -l cell_type --report report shallow.counts -o x
	assert_equal "$(value in_reference report)" "$(scview -c gene shallow.counts | awk 'NR > 1 && NF >= 10 { n++ } END { print n }')"
	rm x
	scview --check -q shallow.s
	for bad in --nearest=5 -C=2 --no-standardize; do
		run -2 ctaprobe transfer --reference ref.counts -l cell_type ${bad/=/ } new.counts -o x
		assert_output --partial "the cells have counts"
		assert_not_exist x
	done
	run -1 ctaprobe transfer --reference ref.emb -l cell_type new.counts -o x
	names "ref.emb embedding counts"
	run -1 ctaprobe transfer --reference ref.counts -l cell_type new.emb -o x
	names "ref.counts embedding"
	scsim -q --cells 50 --genes 100 --seed 1 | scview -q -O h5ad -o own.h5ad -
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("own.h5ad"); a.var = a.var[[]]; a.var_names = ["mouse" + g for g in a.var_names]; a.write("own.h5ad")'
	h5tok -q own.h5ad -o own.counts
	run -1 ctaprobe transfer --reference ref.counts -l cell_type own.counts -o x
	names "ref.counts have 400 SIMG000001 mouseSIMG000001"
	assert_not_exist x
}

@test "transfer: cells whose genes are symbols get what they get by Ensembl ids, with the tools of make annotate; another species is refused" {
	scsim -q --cells 300 --genes 200 --types 3 --donors 6 --depth 1500 --seed 4 -o all.counts
	for part in train test; do
		scsample -q --test-fraction .3 --group donor --part "$part" all.counts | scview -q -O h5ad -o "$part.h5ad"
	done
	$PYTHON -W ignore - <<-'END'
	import anndata
	for part in "train", "test":
	    a = anndata.read_h5ad(part + ".h5ad")
	    if part == "test": # genes that the reference lacks, and others in another order
	        a = a[:, [*range(150, 30, -1), *range(180, 200)]].copy()
	    a.var_names, a.var["symbol"] = [i.replace("SIMG0", "ENSG000000") for i in a.var_names], ["S" + i[4:] for i in a.var_names]
	    a = a[:, :170].copy()
	    a.write_h5ad(part + "_ensembl.h5ad")
	    a.var_names = list(a.var["symbol"])
	    a.var = a.var[[]]
	    a.write_h5ad(part + "_symbols.h5ad")
	    a.var_names = [i if n % 40 == 0 else i.lower() for n, i in enumerate(a.var_names)]
	    a.write_h5ad(part + "_mouse.h5ad")
	END
	for f in {train,test}_{ensembl,symbols,mouse}; do
		h5tok -q "$f.h5ad" -o "$f.counts"
	done
	every() { # every REFERENCE NEW: what the tools make of them, without the names of the genes; and their notes
		ctaprobe transfer --reference "train_$1.counts" -l cell_type --group donor --report report "test_$2.counts" -o new.s 2>said
		screduce pca -k 5 --train "train_$1.counts" --shared-with "test_$2.counts" "test_$2.counts" -o pca.emb 2>>said
		scgenes markers -l cell_type --new "test_$2.counts" --assigned new.s "train_$1.counts" -o markers 2>>said
		ctaprobe cells -l cell_type --naive-bayes --train "train_$1.counts" --test "test_$2.counts" -o bayes 2>>said
		{ grep genes report; scview new.s; scview pca.emb; cut -f 1,2,5- markers; cat bayes; } | grep -v '^genes:by_symbol' >"$1_$2"
	}
	every ensembl ensembl
	run grep symbol said
	assert_output ""
	grep -x "genes:shared	120" ensembl_ensembl
	for pair in "ensembl symbols" "symbols ensembl"; do
		every "${pair% *}" "${pair#* }"
		cmp ensembl_ensembl "${pair/ /_}"
		assert_equal "$(grep symbol said | cut -d : -f 1,4-)" "ctaprobe transfer: genes that are found by symbol: 120
screduce pca: genes that are found by symbol: 120
scgenes markers: genes that are found by symbol: 120
ctaprobe cells: genes that are found by symbol: 120"
	done
	for reference in ensembl symbols; do # the second shares 4 names of 140
		run -1 ctaprobe transfer --reference "train_$reference.counts" -l cell_type test_mouse.counts -o x
		names "species 170"
		ctaprobe transfer -q --reference "train_$reference.counts" -l cell_type --save saved.ref
		cmp <(ctaprobe transfer -q --reference saved.ref test_symbols.counts | scview) <(ctaprobe transfer -q --reference saved.ref test_ensembl.counts | scview)
		run -1 ctaprobe transfer --reference saved.ref test_mouse.counts -o x
		names "species 170"
	done
}

@test "transfer: counts: of a large reference about 100,000 cells are learned from, with the weights of those they stand for" {
	scsim -q --cells 200000 --genes 60 --modules 10 --types 4 --donors 12 --separation .3 --rarest .05 --depth 100 --seed 3 -o all.counts
	scsample -q --test-fraction .1 --group donor --part train all.counts -o ref.counts
	scsample -q -n 90000 ref.counts -o fewer.counts
	scsample -q --test-fraction .1 --group donor --part test all.counts -o new.counts
	ctaprobe transfer -q --reference ref.counts -l cell_type --group donor --report r new.counts -o new.s
	awk '$1 == "reference_cells" || $1 == "learned_cells" || $1 == "calibration_cells" { print $2 }' r | tr '\n' ' ' | grep -E '^(1[78][0-9]{4}) 9[89][0-9]{3} \1 $'
	ctaprobe transfer -q --reference fewer.counts -l cell_type --group donor new.counts -o fewer.s
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		p, q = (np.concatenate([np.exp(b["logit"]) for b in scstream.read(f)]) for f in ("new.s", "fewer.s"))
		print(p.mean(0), q.mean(0), np.abs(p - q).mean())
		assert np.abs(p.mean(0) - q.mean(0)).max() < .01 and np.abs(p - q).mean() < .03
	END
}

@test "transfer: promises are rows of --report: none without donors, none for cells of other genes; a much deeper reference is thinned" {
	scsim -q --cells 900 --genes 300 --types 3 --donors 20 --depth 2000 --seed 4 -o all.counts
	scsample -q --test-fraction .3 --group donor --part train all.counts -o ref.counts
	scsample -q --test-fraction .3 --group donor --part test all.counts -o new.counts
	told() { ctaprobe transfer -q --reference ref.counts -l cell_type --report report "$@" -o new.s; }
	told --group donor new.counts
	assert_equal "$(value promise:coverage report) $(value promise:accuracy report) $(value unit report)" "1 1 donor"
	assert_equal "$(value promise:unknown report) $(value units_needed:unknown report) $(value units_needed:coverage report) $(value thinned report)" "0 19 9 1"
	assert_equal "$(value genes:shared report) $(value genes:fraction report)" "300 1"
	# the type that the fewest donors have, of those whose cells were held out
	few=$(ctaprobe transfer -q --reference ref.counts -l cell_type --group donor --held-out held.s -o few.s new.counts && scview -c predicted,donor held.s | sed 1d | sort -u |
		cut -f 1 | sort | uniq -c | sort -n | awk '{ print $2, $1; exit }')
	names_of() { grep '^why:unknown' report | tr -s "\t'" ' '; }
	for word in $few; do assert_regex "$(names_of)" " $word "; done
	# where no share of unknown cells is promised, none is called so, unless it is asked for
	called() { scview -c predicted,assigned new.s | awk -F'\t' 'NR > 1 { n += $2 == "unknown"; if ($2 != "unknown" && $1 != $2) exit 1 } END { print n + 0 }'; }
	assert_equal "$(value unknown:applied report) $(value unknown_cells report) $(called)" "0 0 0"
	assert_equal "$(awk -F'\t' '/^unlike:/ { n += $2 } /^new:/ { all += $2 } END { print n, all }' report)" "$(value unlike_cells report) $(value cells report)"
	told --group donor --unknown .05 new.counts
	assert_equal "$(value unknown:applied report) $(value promise:unknown report) $(called)" "1 0 $(value unlike_cells report)"
	assert [ "$(called)" -gt 0 ]
	told --group donor --unknown .2 new.counts
	assert_equal "$(value promise:unknown report) $(value units_needed:unknown report)" "1 4"
	scsim -q --cells 1500 --genes 100 --types 2 --donors 48 --depth 2000 --seed 6 -o forty.counts
	scsample -q --test-fraction .3 --group donor --part train forty.counts -o thirty.counts
	ctaprobe transfer -q --reference thirty.counts -l cell_type --report report --group donor -o new.s <(scsample -q --test-fraction .3 --group donor --part test forty.counts)
	assert_equal "$(value promise:unknown report) $(value unknown:applied report) $(value unknown_cells report)" "1 1 $(called)"
	assert_equal "$(scview -c promised new.s | sed 1d | sort -u)" 1
	assert_equal "$(value why:nothing report)" ""
	assert_equal "$(value unknown_cells report)" "$(value unlike_cells report)"
	# what a row says is promised: its set, or that it is called unknown
	ctaprobe transfer -q --reference ref.counts -l cell_type --group donor --unknown .05 --require-promise -o mixed.s new.counts
	scview -c assigned,promised mixed.s | awk -F'\t' 'NR > 1 { n[$2]++; if ($2 != ($1 != "unknown")) exit 1 } END { exit !(n[0] && n[1]) }'
	# nothing: all outputs are there, and the status says so
	run -1 ctaprobe transfer --reference ref.counts -l cell_type --report required --unlike list --require-promise -o required.s new.counts
	assert_line "ctaprobe transfer: nothing is promised for the new cells: $(value why:nothing required)"
	ctaprobe transfer -q --reference ref.counts -l cell_type -o free.s new.counts
	cmp <(scview -c probability,label_set,assigned required.s) <(scview -c probability,label_set,assigned free.s)
	assert_equal "$(scview -c promised required.s | sed 1d | sort -u) $(head -c 5 list)" "0 place"
	run -2 ctaprobe transfer --reference ref.counts -l cell_type --require-promise --save x.ref
	scsample -q -n 1 new.counts -o single.counts
	told --group donor single.counts
	assert_equal "$(value promise:coverage report) $(value promise:accuracy report)" "0 0"
	assert_regex "$(value shift report) $(value why:coverage report)" "nan .* new cells .* too few"
	told new.counts
	assert_equal "$(value promise:coverage report) $(value promise:accuracy report) $(value unit report)" "0 0 cell"
	scsample -q --where donor=donor1 ref.counts -o one.counts
	run ctaprobe transfer --reference one.counts -l cell_type --group donor --report report new.counts -o new.s
	assert_equal "$(value promise:coverage report)" 0
	# a donor a cell: nothing to compare
	told --group barcode new.counts
	assert_equal "$(value promise:coverage report) $(value shift:limit report)" "0 nan"
	assert_regex "$(value why:coverage report)" "too few cells each"
	scsample -q --thin .6 new.counts -o less.counts
	told --group donor less.counts
	assert_equal "$(value promise:coverage report) $(value thinned report)" "1 1"
	ctaprobe score -q -l cell_type new.s | awk -F'\t' '$1 == "coverage" { print; exit !($2 > .9) }'
	scsim -q --cells 300 --genes 300 --types 3 --donors 3 --depth 2000 --seed 5 -o other.counts
	told --group donor other.counts
	assert_equal "$(value promise:coverage report)" 0
	assert_regex "$(value why:coverage report)" "differ .* donor"
	# fewer donors than folds: a fold each
	ctaprobe transfer -q --reference other.counts -l cell_type --group donor --held-out held.s --report report -o few.s new.counts
	assert_equal "$(scview -c donor,fold held.s | sed 1d | sort -u | cut -f 2 | sort | tr '\n' ' ')" "1 2 3 "
	assert_regex "$(value shift:limit report)" "^2[.]91998" # Student's t of two degrees of freedom
	# of new cells in several blocks most are shallow
	scsample -q --thin .45 new.counts -o half.counts
	scsample -q half.counts half.counts half.counts half.counts new.counts -o mixed.counts
	told mixed.counts
	awk -F'\t' '$1 == "thinned" { print; exit $2 != .5 }' report
	scsample -q --thin .1 new.counts -o shallow.counts # few cells are of type3
	told --group donor shallow.counts
	awk -F'\t' '($1 == "thinned" && $2 != .125) || ($1 ~ /^depth_ratio:type[12]/ && !($2 > .7 && $2 < 1.42)) { print; exit 1 }' report
	# values that are no molecules, as their sums are equal, are not thinned
	for of in ref shallow; do
		scview -q -O h5ad -o $of.h5ad $of.counts
		$PYTHON -W ignore -c 'import anndata, numpy as np, sys
a = anndata.read_h5ad(sys.argv[1])
x = np.asarray(a.X.todense(), float)
a.X = np.rint(1e5 * x / x.sum(1, keepdims=True)).astype("f4")
a.write_h5ad("per_" + sys.argv[1])' $of.h5ad
		h5tok -q --layer X per_$of.h5ad -o per_$of.counts
	done
	run ctaprobe transfer --reference per_ref.counts -l cell_type --group donor --report of_values -o values.s shallow.counts
	names "warning: molecules thinned"
	assert_equal "$(value molecules of_values) $(value thinned of_values) $(value molecules report)" "0 1 1"
	run -0 ctaprobe transfer --reference per_ref.counts -l cell_type --group donor --report of_values -o values.s per_shallow.counts
	assert_equal "$(value molecules of_values) $(value thinned of_values)" "0 1"
	assert_equal "$(value promise:coverage report)" 1
	ctaprobe score -q -l cell_type new.s | awk -F'\t' -v n="$(value reference_cells report)" '{ v[$1] = $2 } END { print v["coverage"]; exit !(v["coverage"] > .85 && v["train_cells"] == n) }'
}

@test "transfer: cells of the reference are marked; types that say nothing and cells without a donor are set aside; a type of one donor is untested" {
	scsim -q --cells 300 --genes 200 --types 3 --donors 6 --depth 1500 --seed 4 -o all.counts
	scview -q -O h5ad all.counts -o all.h5ad
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		a = anndata.read_h5ad("all.h5ad")
		t, d = a.obs["cell_type"].astype(str).to_numpy().astype(object), a.obs["donor"].astype(str).to_numpy().astype(object)
		t[:20], d[20:30] = "Unknown", None
		last = np.flatnonzero(d == d[299])
		t[last[-8:]] = "rare"
		a.obs["cluster"] = a.obs["cell_type"].cat.codes.astype(str).astype("category")
		a.obs["mixed"] = a.obs["cluster"].cat.rename_categories({"0": "T"})
		a.obs["cell_type"], a.obs["donor"] = t, d
		a.write_h5ad("marked.h5ad")
	P
	h5tok -q marked.h5ad -o marked.counts
	run -0 ctaprobe transfer --reference marked.counts -l cell_type --group donor --report report all.counts -o new.s
	assert_equal "$(value set_aside:unknown_label report) $(value set_aside:no_group report)" "20 10"
	assert_equal "$(value in_reference report)" 270
	assert_equal "$(scview -c in_reference new.s | sed 1d | sort | uniq -c | tr -s ' ' | tr '\n' ';')" " 30 0; 270 1;"
	run -0 ctaprobe transfer --reference marked.counts -l cluster --group donor all.counts -o clusters.s
	names "warning: 'cluster' numbers"
	run -0 ctaprobe transfer --reference marked.counts -l mixed --group donor all.counts -o clusters.s
	refute_output --partial "'mixed'"
	run -0 ctaprobe transfer --reference ref.emb -l cell_type --group donor new.emb -o sets.s
	names "warning: 'mono | DC' label_set in_set"
	run -0 --separate-stderr ctaprobe score -l cell_type new.s
	assert_line --regexp '^cells	30$'
	assert_line --regexp '^in_reference	270$'
	assert_regex "$stderr" '270'
	scsample -q --where in_reference=1 new.s -o there.s
	run -1 ctaprobe score -l cell_type there.s -o x
	names "there.s 270 reference"
	assert_not_exist x
	# a class of one cell
	ref make single.emb what=single
	run -0 ctaprobe transfer --reference single.emb -l cell_type new.emb -o single.s
	names "note: single.emb 'mono | DC' 1"
	assert_equal "$(value untested:rare report)" "$(scview -c label_set new.s | grep -cw rare)"
	assert_equal "$(scview -c untested new.s | grep -c '^1$')" "$(value untested_cells report)"
}

@test "transfer --unlike: cells of a type that the reference lacks are in the first clusters; given clusters; any number of threads" {
	scsim -q --cells 900 --genes 300 --types 4 --rarest 0.1 --donors 6 --depth 1500 --seed 3 -o all.counts
	scsample -q --test-fraction 0.34 --group donor --part test -o new.counts all.counts
	scsample -q --test-fraction 0.34 --group donor --part train all.counts | scsample -q --where 'cell_type!=type2' -o ref.counts -
	for t in 1 2; do ctaprobe transfer -q -@ $t --reference ref.counts --label cell_type --group donor --unlike $t.tsv -o $t.pred new.counts; done
	cmp 1.tsv 2.tsv
	cmp 1.pred 2.pred
	# the column has the places of the table; the first half of type2's cells come before nine tenths of the others
	scview -q -c cell_type,unlike 1.pred | tail -n +2 > cells
	assert_equal "$(cut -f 2 cells | sort -n | uniq -c | awk '{ print $2, $1 }')" "$(tail -n +2 1.tsv | cut -f 1,3 | tr '\t' ' ')"
	sort -k 2,2n cells | awk '$1 == "type2" { mine[++n] = others } $1 != "type2" { others++ }
		END { exit !(n > 20 && mine[int(n / 2)] < others / 10) }'
	ctaprobe transfer -q --reference ref.counts --label cell_type --group donor --unlike own.tsv --clusters cell_type -o own.pred new.counts
	assert_equal "$(sed -n 2p own.tsv | cut -f 2)" type2
	run -1 ctaprobe transfer -q --reference ref.counts --label cell_type --unlike x.tsv --clusters nothing new.counts
	assert_output --partial "no column 'nothing'"
	run -1 ctaprobe transfer -q --reference ref.counts --label cell_type --unlike x.tsv --clusters barcode -o x.pred new.counts
	assert_output --regexp "new.counts: column 'barcode' has ([0-9]+) values in ([0-9]+) cells, expected clusters"
	assert_file_not_exist x.pred
	run -2 ctaprobe transfer -q --reference ref.counts --label cell_type --clusters cell_type new.counts
	assert_file_not_exist x.tsv
}

# What a saved reference and its counts say of new.counts must be the same bytes.
saved_is_fitted() { # OPTION-OF-THE-REFERENCE...
	ctaprobe transfer -q --reference ref.counts -l cell_type "$@" --unlike fitted.tsv --report fitted.report -o fitted.s new.counts
	ctaprobe transfer -q --reference ref.counts -l cell_type "$@" --save saved.ref
	ctaprobe transfer -q --reference saved.ref --unlike saved.tsv --report saved.report -o saved.s new.counts
	cmp fitted.s saved.s
	cmp fitted.tsv saved.tsv
	for of in fitted saved; do
		grep -vE '^(in_reference|set_aside|seconds|cpu_seconds|peak)' $of.report | sed 's/-nan/nan/' >$of
	done
	diff fitted saved
}

@test "transfer --save: a saved reference says of new cells what its counts say, to the byte: shallow cells, cells that lack genes, an ontology" {
	scsim -q --cells 900 --genes 300 --types 4 --donors 12 --depth 2500 --seed 7 -o all.counts
	scsample -q --test-fraction .3 --group donor --part train all.counts -o ref.counts
	scsample -q --test-fraction .3 --group donor --part test all.counts -o test.counts
	cp test.counts new.counts
	saved_is_fitted --group donor
	scview saved.ref | grep -qx $'units\t8'
	assert_equal "$(value in_reference saved.report) $(value in_reference fitted.report)" "nan 0"
	saved_is_fitted --folds 3 --coverage .8 --unknown .1 --seed 5 --keep-unknown-labels
	for thin in .3 .05; do
		scsample -q --thin $thin test.counts -o new.counts
		saved_is_fitted --group donor
	done
	assert_equal "$(value thinned saved.report)" 0.0625
	scview --vocab test.counts | awk 'NR > 1 && NR % 20 { print $2 }' >panel
	scsample -q --keep-genes panel test.counts -o new.counts
	saved_is_fitted --group donor
	cp test.counts new.counts
	printf '[Term]\nid: T:%s\nname: %s\n%s\n' 0 cell "" 1 type1 'is_a: T:5' 2 type2 'is_a: T:5' 3 type3 'is_a: T:0' 4 type4 'is_a: T:0' 5 both 'is_a: T:0' >types.obo
	saved_is_fitted --group donor --ontology types.obo
	scview saved.ref | grep -qx $'term:type2\tT:2'
	assert_equal "$(scview -c term saved.s | grep -c T:)" "$(scview -c term fitted.s | grep -c T:)"
	# any number of threads, the same file
	ctaprobe transfer -q --reference ref.counts -l cell_type --group donor --ontology types.obo -@ 3 --save other.ref
	cmp other.ref saved.ref
	# and with terms of its own
	scview -q -O h5ad ref.counts -o ref.h5ad
	$PYTHON -W ignore - <<-'P'
		import anndata
		a = anndata.read_h5ad("ref.h5ad")
		terms = a.obs["cell_type"].astype(str).map({"type1": "CL:0000236", "type2": "CL:0000084", "type3": "CL:0000623", "type4": "unknown"})
		terms.iloc[(a.obs["cell_type"] == "type3").argmax()] = "CL:0000625" # a type with two has none
		a.obs["cell_type_ontology_term_id"] = terms.astype("category")
		a.write_h5ad("terms.h5ad")
	P
	cp ref.counts plain.counts
	h5tok -q terms.h5ad -o ref.counts
	saved_is_fitted --group donor
	cp plain.counts ref.counts
	assert_equal "$(scview saved.ref | grep ^term)" $'term:type1\tCL:0000236\nterm:type2\tCL:0000084'
	assert_equal "$(scview -c assigned,cell_type_ontology_term_id saved.s | sed 1d | sort -u | tr '\t\n' '  ')" "type1 CL:0000236 type2 CL:0000084 type3 unknown type4 unknown "
	scview -q -O h5ad test.counts -o new.h5ad
	scview -q -O h5ad --into new.h5ad --key transfer saved.s
	h5tok -q --list-obs new.h5ad | grep -q ^cell_type_ontology_term_id
	scview -q -O h5ad --into terms.h5ad --key transfer <(ctaprobe transfer -q --reference saved.ref plain.counts)   # the file's own stay
	$PYTHON -W ignore -c 'import anndata
o = anndata.read_h5ad("terms.h5ad").obs
assert set(o.cell_type_ontology_term_id) == {"CL:0000236", "CL:0000084", "CL:0000623", "CL:0000625", "unknown"}
assert set(o.transfer_cell_type_ontology_term_id) == {"CL:0000236", "CL:0000084", "unknown"}'
	# texts of its maker; no donor's name
	ctaprobe transfer -q --reference ref.counts -l cell_type --group donor --about title='Blood "1"' --about licence=CC0 --save told.ref
	scview told.ref | grep -qx $'about:title\tBlood "1"'
	run -1 grep -c donor1 told.ref
	scview --check told.ref
}

@test "transfer --save: what is wrong with a saved reference is one line, and leaves no output" {
	scsim -q --cells 300 --genes 200 --types 3 --donors 5 --depth 900 --seed 7 -o ref.counts
	scsample -q -n 50 ref.counts -o new.counts
	ctaprobe transfer -q --reference ref.counts -l cell_type --save saved.ref
	refused() { # MESSAGE FILE OPTION...
		run ctaprobe transfer --reference "$2" "${@:3}" -o out --report report
		[ $status != 0 ]
		assert_output --partial "$1"
		assert_equal "$(grep -vc '^Try' <<<"$output")" 1
		run -2 ls out report
	}
	head -c 9000 saved.ref >cut.ref
	refused "cut.ref: not a safetensors file, or cut short" cut.ref new.counts
	head -c -9 saved.ref >cut.ref
	refused "cut.ref: the tensors take" cut.ref new.counts
	cp saved.ref flipped.ref
	printf x | dd of=flipped.ref bs=1 seek=$(($(wc -c <saved.ref) - 2000)) conv=notrunc status=none
	refused "flipped.ref: damaged" flipped.ref new.counts
	refused "--label belongs to the cells that a saved reference was learned from" saved.ref -l cell_type new.counts
	refused "saved.ref: was saved with --unknown 0.05, and not 0.2" saved.ref --unknown .2 new.counts
	screduce pca -q -k 5 -o new.emb new.counts
	refused "saved.ref: a saved reference of counts: expected counts, but new.emb has embeddings" saved.ref new.emb
	learned() { # MESSAGE OPTION...
		run ctaprobe transfer -l cell_type --save made.ref "${@:2}"
		[ $status != 0 ]
		assert_output --partial "$1"
		run -2 ls made.ref
	}
	learned "new.emb: this is an embedding stream, expected counts" --reference new.emb
	learned "--save takes no new cells" --reference ref.counts new.counts
	learned "--output belongs to new cells" --reference ref.counts -o out
	learned "--about title: expected KEY=VALUE" --reference ref.counts --about title
	learned "--label belongs to the cells" --reference saved.ref
	# told before the work: what cannot be written, clusters that are not there
	run -1 ctaprobe transfer -l cell_type --reference ref.counts --save no/x
	assert_output "ctaprobe transfer: no/x: No such file or directory"
	for of in ref.counts "saved.ref"; do
		[ $of = saved.ref ] && label= || label="-l cell_type"
		refused "no/list: No such file or directory" $of $label --unlike no/list new.counts
		refused "no column 'nosuch'" $of $label --unlike list --clusters nosuch new.counts
	done
	# few of the molecules
	scview --vocab new.counts | awk -F'\t' 'NR > 1 && NR % 2 { print $2 }' >panel
	scsample -q --keep-genes panel new.counts -o half.counts
	ctaprobe transfer -q --reference saved.ref --report report -o out half.counts
	assert_equal "$(value promise:coverage report) $(value promise:accuracy report)" "0 0"
	assert_regex "$(value why:coverage report)" "lack genes"
}

@test "transfer: one donor in two spellings is one, and cells of several people (pooled) are of no donor" {
	scsim --cells 400 --genes 100 --types 3 --donors 6 --depth 500 --seed 5 | scview -q -O h5ad -o one.h5ad -
	$PYTHON -W ignore - <<-'END'
	import anndata
	a = anndata.read_h5ad("one.h5ad")
	name = [str(d) for d in a.obs.donor]
	a.obs["spelt"] = [[d, d + " ", d.upper()][i % 3] for i, d in enumerate(name)]
	a.obs["pool"] = ["pooled" if d == "donor1" else d for d in name]
	a.write_h5ad("two.h5ad")
	END
	h5tok -q two.h5ad -o two.counts
	for group in donor spelt pool; do
		ctaprobe transfer --reference two.counts -l cell_type --group "$group" --report "$group.report" two.counts -o "$group.s" 2>"$group.said"
	done
	cmp <(scview donor.s) <(scview spelt.s)
	grep "column 'spelt': .* counts as" spelt.said
	grep "^nothing\|^why:nothing" spelt.report | diff - <(grep "^nothing\|^why:nothing" donor.report | sed 's/donor/spelt/')
	grep "cells have no group in column 'pool' and are left out: pooled" pool.said
}

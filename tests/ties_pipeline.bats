#!/usr/bin/env bats
# make ties: the table's arithmetic against scipy, and a small run

load helper

setup() {
	cd "$BATS_FILE_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
}

@test "ties/table.py: means, paired differences, intervals and Holm's rule equal scipy's; a missing run is left out" {
	rm -rf t && mkdir t
	$PYTHON - <<-'END'
		import os, random
		random.seed(12)
		for k in 1, 2, 3, 4, 5:
		    os.makedirs(f"t/split-{k}")
		    for e in "median", "group":
		        open(f"t/split-{k}/{e}.reference.tsv", "w").write(f"masks\tfrequency\tmedians\n{e}.hidden\t1\t1\n{e}.test\t{5 + k / 10}\t{len(e) - 2 + k / 10}\n")
		    own = random.gauss(0, .1)
		    for a, shift in ("pca", .3), ("median-random", 0), ("median-corrmask", .25), ("group-random", .05), ("group-corrmask", .08), ("value-random", .1):
		        if a == "group-corrmask" and k == 3:
		            continue
		        os.makedirs(f"t/runs/{a}-{k}")
		        with open(f"t/runs/{a}-{k}/scores.tsv", "w") as f:
		            f.write("metric\tvalue\n")
		            for m in ("loss", "visible", "hidden", "R", "macro_f1", "converged", "knn_macro_f1", "few_macro_f1")[0 if "-" in a else 4:]:
		                v = f"{int((a, k) != ('group-random', 4)) if m == 'converged' else .4 + own + shift + random.gauss(0, .02):.6f}"
		                f.write(f"{m}\t{'NA' if (a, k, m) == ('group-random', 2, 'R') else v}\n")
	END
	# runs of another seed whose references are not there yet
	mkdir t/runs/median-random-6
	cp t/runs/median-random-5/scores.tsv t/runs/median-random-6
	BIN=$BIN $P/page/table.py ties/table t "median-random median-corrmask group-random group-corrmask value-random" "1 2 3 4 5 6" "" type 5 "how it was" > t/table.txt
	run cat t/table.txt
	assert_line --regexp '^50 principal components +- +- .* 0\.[0-9]+ \(sd 0\.[0-9]+\) '
	assert_line --regexp '^group-corrmask .* \[4 seeds\]$'
	assert_line --regexp '^group-random .* \[5 seeds\]  \*$'
	assert_line --regexp '^median-random .* \(sd 0\.[0-9]+\)$'
	assert_line "* the probe from all labels was stopped before it had converged, in some seeds or all"
	cp t/differences.tsv independent.tsv
	cp -r t one
	BIN=$BIN $P/page/table.py ties/table one "median-random median-corrmask" 1 "" type 5 "how it was" | tail -n 1 | grep -qx "One seed: nothing can be said about other trainings."
	# graphs without edges, and networks that know less than the frequencies of the genes
	mkdir one/log
	printf 'program\tdepgraph\nedges\t0\n' | tee one/log/depgraph-split-1.report > one/log/depgraph-split-2.report
	BIN=$BIN $P/page/table.py ties/table one "median-random median-corrmask" "1 2" "" type 5 "how it was" | grep -q "^No comparison of CorrMask with random masks: the graph has no edges"
	BIN=$BIN $P/page/table.py ties/table one "median-random group-random" "1 2" "" type 5 "how it was" | grep "^No comparison" && fail "no CorrMask"
	sed -i 's/\t5\.[0-9]*\t/\t0.1\t/' one/split-*/*.reference.tsv
	BIN=$BIN $P/page/table.py ties/table one "median-random median-corrmask" "1 2" "" type 5 "how it was" > unlearned
	tail -n 1 unlearned | grep -q "^No comparison: a network has learned less than the gene frequencies (loss 0\.[0-9]*, not below 0.10). Train longer: EPOCHS=\.$"
	BIN=$BIN $P/page/table.py ties/table t "median-random median-corrmask group-random group-corrmask value-random" "1 2 3 4 5 6" x.h5ad type 5 "how it was" | grep -q "Nadeau and Bengio"
	run -0 $PYTHON - <<-'END'
		import numpy as np, re
		from scipy import stats
		def read(a, k):
		    try:
		        v = {m: float(x) for m, x in (l.split() for l in list(open(f"t/runs/{a}-{k}/scores.tsv"))[1:]) if x != "NA"}
		    except FileNotFoundError:
		        return {}
		    if "loss" in v:
		        v["gain"] = round(len(a.split("-")[0]) - 2 + k / 10 - v["loss"], 9) if a[0] != "v" else None
		    return {m: x for m, x in v.items() if x is not None}
		def table(name):
		    lines = [l.rstrip("\n").split("\t") for l in open(name)]
		    return [dict(zip(lines[0], l)) for l in lines[1:]]
		arms = ["median-random", "median-corrmask", "group-random", "group-corrmask", "value-random", "pca"]
		v = {(a, k): read(a, k) for a in arms for k in range(1, 6)}
		same = lambda r, keys, want: all(abs(float(r[k]) / w - 1) < 1e-6 for k, w in zip(keys, want)) or (r, want)
		seen = 0
		for r in table("t/summary.tsv"):
		    x = [v[r["arm"], k][r["metric"]] for k in range(1, 6) if r["metric"] in v.get((r["arm"], k), ())]
		    if r["metric"] in ("R", "macro_f1", "knn_macro_f1"):
		        n = len(x) + (r["arm"] == "median-random") # that of a seed without references
		        assert int(r["n"]) == n, (r, x)
		        assert n > len(x) or same(r, ("mean", "sd"), (np.mean(x), np.std(x, ddof=1))) is True
		        seen += 1
		assert seen == 6 + 6 + 5, seen
		for share, name in (0, "independent.tsv"), (1 / 3, "t/differences.tsv"):
		    rows = table(name)
		    for r in rows:
		        a, b, m = r["arm"], r["reference"], r["metric"]
		        k = [k for k in range(1, 6) if m in v[a, k] and m in v[b, k]]
		        d = np.array([v[a, i][m] - v[b, i][m] for i in k])
		        se = d.std(ddof=1) * (1 / len(k) + share) ** .5
		        half, p = stats.t.ppf(.975, len(k) - 1) * se, 2 * stats.t.sf(abs(d.mean() / se), len(k) - 1)
		        assert int(r["n"]) == len(k) == 5 - (a == "group-corrmask") - (m == "R" and "group-random" in (a, b)), r
		        assert same(r, ("difference", "sd", "low", "high", "t", "p"), (d.mean(), d.std(ddof=1), d.mean() - half, d.mean() + half, d.mean() / se, p)) is True, r
		        assert float(r["detectable"]) > half
		    # gain and R of values are no losses of tokens; methods without a network have only cell types
		    want = {(a, "median-random", m) for m in ("gain", "R", "macro_f1", "few_macro_f1", "knn_macro_f1") for a in arms[1:]
		        if not (m in ("gain", "R") and a in ("value-random", "pca"))} | {("group-corrmask", "group-random", m) for m in ("gain", "R", "macro_f1", "few_macro_f1", "knn_macro_f1")}
		    assert {(r["arm"], r["reference"], r["metric"]) for r in rows} == want and len(rows) == len(want)
		    most = 0
		    for i, r in enumerate(sorted(rows, key=lambda r: float(r["p"]))):
		        most = max(most, min(1, float(r["p"]) * (len(rows) - i)))
		        assert abs(float(r["p_corrected"]) - most) < 1e-12
		rows = table("independent.tsv")
		shown = {(r["arm"], r["reference"], r["metric"]) for r in rows if float(r["p_corrected"]) < .05}
		assert len(shown) > sum(float(r["p"]) * len(rows) < .05 for r in rows)
		text = open("t/table.txt").read()
		below = sum(float(r["p"]) < .05 for r in rows)
		assert f"{len(rows)} differences; without any effect {len(rows) * 0.05:.1f} of them would have p below .05 on average, and {below} have." in text, text
		listed = re.findall(r"^  (\S+) - (\S+), (\S+) ", text.split("(Holm):")[1], re.M)
		assert 0 < len(shown) < len(rows) and set(listed) == shown and len(listed) == len(shown), (listed, shown)
	END
	assert_output ""
}

ties() { pipelines -j2 THREADS=2 ties SCALE=tiny ARMS="median-random median-runs random-corrmask value-corrmask" "$@"; }

# bats test_tags=slow
@test "make ties: a table, a figure, a page; a run by hand; a second run makes nothing, a seed more is added" {
	run -0 ties SEEDS=1
	for a in median-random median-runs random-corrmask value-corrmask; do
		assert_line "  sctrain-$a-1"
		assert_line --regexp "^$a +[0-9.]+ +[0-9.]+ +[0-9.]+ +[-+][0-9.]+ +[0-9.]+ +[0-9.]+ +[-+][0-9.]+ +0\.[0-9]+ +0\.[0-9]+ +0\.[0-9]+"
	done
	for a in "log-normalised expression" "50 principal components" "naive Bayes of the counts" "untrained network"; do assert_line --regexp "^$a .* 0\.[0-9]+"; done
	assert_line --regexp '^No comparison: a network has learned less than the gene frequencies .*EPOCHS=, or leave out SCALE=tiny.$'
	assert_line "cells: split by donor"
	T=results/ties/$(readlink results/ties/latest)
	for f in ties.svg report.html; do assert_file_not_empty $T/$f; done
	assert_not_exist $T/runs/median-random-1/model
	# the run's files are those of the tools by hand
	s=$T/split-1 m=$T/runs/random-corrmask-1
	BIN=$BIN $P/arm.sh ties --inputs $s --arm random-corrmask --seed 1 --label cell_type --epochs 1 --keep-models 1 --out hand > /dev/null
	cmp hand/scores.tsv $m/scores.tsv
	maskgen -q --strategy corrmask --lambda 0.5 -g $s/graph --seed 1 $s/random.train.tok | sctrain mlm -q --config tiny --lr 0.003 --seed 1 -o mine
	cmp mine/model.safetensors hand/model/model.safetensors
	run -0 ties SEEDS=1
	refute_line --regexp '^  (sctrain|eval|rankenc)'
	run -0 ties SEEDS="1 2"
	assert_line "  sctrain-value-corrmask-2"
	refute_line --regexp '^  sctrain-.*-1$'
	assert_line --regexp '^No comparison: a network has learned less'
	run -2 ties ARMS="median-random median-pmi"
	assert_output --partial "ARMS: unknown arm 'median-pmi' (expected median-random, "
	run -2 ties DATA=no.h5ad
	assert_output --partial "DATA=no.h5ad: no such file"
}

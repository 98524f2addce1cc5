#!/usr/bin/env bats
# make ties: the table's arithmetic against scipy, and a small run

load helper

setup() {
	cd "$BATS_FILE_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
}

@test "ties-table.sh: means, paired differences, intervals and Holm's rule equal scipy's; a missing run is left out" {
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
	BIN=$BIN $P/ties-table.sh t "median-random median-corrmask group-random group-corrmask value-random" "1 2 3 4 5 6" "" type 5 "how it was" > t/table.txt
	run cat t/table.txt
	assert_line --regexp '^50 principal components +- +- .* 0\.[0-9]+ ± 0\.[0-9]+ '
	assert_line --regexp '^group-corrmask .* \[4 seeds\]$'
	assert_line --regexp '^group-random .* \[5 seeds\]  \*$'
	assert_line --regexp '^median-random .* ± 0\.[0-9]+$'
	assert_line "* the probe from all labels was stopped before it had converged, in some seeds or all"
	run -0 $PYTHON - <<-'END'
		import numpy as np, re
		from scipy import stats
		def read(a, k):
		    try:
		        v = {m: float(x) for m, x in (l.split() for l in list(open(f"t/runs/{a}-{k}/scores.tsv"))[1:]) if x != "NA"}
		    except FileNotFoundError:
		        return {}
		    return v if a[0] == "v" else dict(v, gain=len(a.split("-")[0]) - 2 + k / 10 - v["loss"])
		arms = ["median-random", "median-corrmask", "group-random", "group-corrmask", "value-random"]
		v = {(a, k): read(a, k) for a in arms for k in range(1, 6)}
		for line in open("t/summary.tsv"):
		    a, m, n, mean, sd = line.split("\t")
		    x = [v[a, k][m] for k in range(1, 6) if m in v.get((a, k), ())]
		    if a in arms[1:] and m in ("R", "macro_f1"):
		        assert int(n) == len(x) and np.allclose([float(mean), float(sd)], [np.mean(x), np.std(x, ddof=1)], rtol=1e-4), line
		seen = []
		for line in open("t/differences.tsv"):
		    a, b, m, n, mean, sd, low, high, t, p, power = line.split("\t")
		    k = [k for k in range(1, 6) if m in v[a, k] and m in v[b, k]]
		    x, y = [np.array([v[c, i][m] for i in k]) for c in (a, b)]
		    d = x - y
		    want = stats.ttest_rel(x, y)
		    half = stats.t.ppf(.975, len(k) - 1) * d.std(ddof=1) / len(k) ** .5
		    assert int(n) == len(k) == 5 - (a == "group-corrmask") - (m == "R" and "group-random" in (a, b))
		    assert np.allclose([float(mean), float(sd), float(low), float(high), float(t)], [d.mean(), d.std(ddof=1), d.mean() - half, d.mean() + half, want[0]], rtol=1e-4, atol=1e-6), line
		    assert abs(float(p) / want[1] - 1) < 0.051
		    assert float(power) > half
		    seen.append((want[1], a, b, m))
		# gain and R of values are no losses of tokens
		assert [s[1:3] for s in seen] == [(a, "median-random") for m in range(5) for a in arms[1:m < 2 and -1 or None]] + [("group-corrmask", "group-random")] * 5
		shown = []
		for i, s in enumerate(sorted(seen)):
		    if s[0] * (len(seen) - i) >= .05:
		        break
		    shown.append(s)
		assert len(shown) > sum(s[0] * len(seen) < .05 for s in seen)
		text = open("t/table.txt").read()
		below = sum(s[0] < .05 for s in seen)
		assert f"{len(seen)} differences; without any effect {len(seen) * 0.05:.1f} of them would have p below .05 on average, and {below} have." in text, text
		listed = re.findall(r"^  (\S+) - (\S+), (\S+) ", text.split("(Holm):")[1], re.M)
		assert 0 < len(shown) < len(seen) and listed == [s[1:] for s in shown], (listed, shown)
	END
	assert_output ""
}

ties() { pipelines -j2 THREADS=2 ties SCALE=tiny ARMS="median-random median-runs random-corrmask value-corrmask" "$@"; }

@test "make ties: a table, a figure, a page; a run by hand; a second run makes nothing, a seed more is added" {
	run -0 ties SEEDS=1
	for a in median-random median-runs random-corrmask value-corrmask; do
		assert_line "  sctrain-$a-1"
		assert_line --regexp "^$a +[0-9.]+ +[0-9.]+ +[0-9.]+ +[-+][0-9.]+ +[0-9.]+ +[0-9.]+ +[-+][0-9.]+ +0\.[0-9]+ +0\.[0-9]+ +0\.[0-9]+"
	done
	for a in "log-normalised expression" "50 principal components" "network, not trained"; do assert_line --regexp "^$a .* 0\.[0-9]+"; done
	assert_line "One seed: nothing can be said about other trainings."
	T=results/ties/$(readlink results/ties/latest)
	for f in ties.svg ties.png report.html; do assert_file_not_empty $T/$f; done
	assert_not_exist $T/runs/median-random-1/model
	# the run's files are those of the tools by hand
	s=$T/split-1 m=$T/runs/random-corrmask-1
	BIN=$BIN $P/ties-run.sh --split $s --arm random-corrmask --seed 1 --label cell_type --epochs 1 --keep-models 1 --out hand > /dev/null
	cmp hand/scores.tsv $m/scores.tsv
	maskgen -q --strategy corrmask --lambda 0.5 -g $s/graph --seed 1 $s/random.train.tok | sctrain mlm -q --config tiny --lr 0.003 --seed 1 -o mine
	cmp mine/model.safetensors hand/model/model.safetensors
	run -0 ties SEEDS=1
	refute_line --regexp '^  (sctrain|eval|rankenc)'
	run -0 ties SEEDS="1 2"
	assert_line "  sctrain-value-corrmask-2"
	refute_line --regexp '^  sctrain-.*-1$'
	assert_line --regexp '^[0-9]+ differences; without any effect '
	run -2 ties ARMS="median-random median-pmi"
	assert_output --partial "ties: ARMS: unknown arm 'median-pmi'"
	run -2 ties DATA=no.h5ad
	assert_output --partial "DATA=no.h5ad: no such file"
}

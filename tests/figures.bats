#!/usr/bin/env bats
# The pipelines of figures 3 and 4: their arithmetic against scikit-learn and scipy, and one small run of each

load helper

setup() {
	cd "$BATS_TEST_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
}

@test "fig3/recover.py: AUROC of pairs equals scikit-learn's" {
	scsim --kind b1 --genes 400 --modules 4 -n 30 -o c.tok
	scview -c token c.tok > cells
	depgraph --pmi --tau -1 --min-count 1 c.tok -u | depgraph -O tsv -o npmi
	PYTHONPATH=$P/page $PYTHON -B - <<-'END'
		import table
		import numpy as np
		from sklearn.metrics import roc_auc_score
		A, C, N = np.zeros((400, 400)), np.zeros((400, 400)), np.full((400, 400), -2.0)
		for l in list(open("cells"))[1:]:
		    t = [int(x) - 2 for x in l.split()]
		    for i, a in enumerate(t):
		        for b in t[i + 1:]:
		            C[a, b] += 1
		            C[b, a] += 1
		    for a, b in zip(t, t[1:]):
		        A[a, b] += 1
		        A[b, a] += 1
		within = edges = 0
		for l in list(open("npmi"))[1:]:
		    f = l.split("\t")
		    a, b = int(f[0]) - 2, int(f[3]) - 2
		    N[a, b] = N[b, a] = float(f[6])
		    edges += 1
		    within += a // 100 == b // 100
		u, v = np.triu_indices(400, 1)
		same = u // 100 == v // 100
		pairs = table.spec("fig3/recover").Pairs("c.tok")
		got = {"A": pairs.met(True), "C": pairs.met(False), "npmi": pairs.edges(open("npmi").read())}
		for name, M in (("A", A), ("C", C), ("npmi", N)):
		    want = roc_auc_score(same, M[u, v])
		    assert 0.5 < want < 1 and (name == "A" or (M[u, v] <= 0).sum() > 20), (name, want) # some pairs never meet
		    assert abs(pairs.auroc(got[name]) - want) < 1e-9, (name, want)
		assert len(got["npmi"]) == edges and sum(map(pairs.within, got["npmi"])) == within
		for name, M in (("A", A), ("C", C)):
		    squares = M.reshape(100, 4, 100, 4).sum((1, 3))
		    assert (np.array(pairs.matrix(got[name])) == squares).all(), name
	END
}

# bats test_tags=slow
@test "fig3: co-occurrence and Algorithm 1 recover the modules, adjacency in part" {
	$P/page/table.py fig3/recover 3 > a
	awk '{ print $1, ($2 > 0.99 ? "whole" : $2 > 0.6 && $2 < 0.9 ? "part" : "none"), ($4 > 0.999 ? "pure" : "") }' a > b
	run cat b
	assert_line "A part "
	assert_line "C whole "
	assert_line "npmi part "
	assert_line "graph part pure"
	assert_line "all whole pure"
	$P/page/table.py fig3/table a a | grep -q 'over 2 simulations'
	# the share of the edges is that of the run
	run -0 $P/page/table.py fig3/table a
	assert_line --partial " keeps $(awk -F '\t' '{ n[$1] = $3 } END { printf "%.0f", 100 * n["graph"] / n["all"] }' a) % "
}

@test "fig4/table.py: means, standard deviations and the paired t test equal scipy's" {
	printf 'class %s\n' 'scale 1 1 50 0.522 3.5 0.998 3.0 0.3 1' 'scale 1 2 50 0.610 3.4 0.971 3.1 0.34 0.9' 'scale 1 3 50 0.48 3.6 1.0 3.2 0.35 0.95' \
		'scale 0 1 50 0.34 3.5 0.33 3.5 0.31 0.97' 'scale 0 2 50 0.32 3.5 0.36 3.5 0.38 0.93' 'rate 1 1 50 0.5 3.5 0.8 3 0.33 0.77' | tr ' ' '\t' > trials
	$P/page/table.py fig4/table . trials > table
	run -0 $PYTHON - <<-'END'
		import numpy as np
		from scipy.stats import ttest_rel
		def read(name):
		    lines = [l.rstrip("\n").split("\t") for l in open(name)]
		    return [dict(zip(lines[0], l)) for l in lines[1:]]
		means = {(r["exp"], r["gamma"], r["value"], r["arm"]): r for r in read("summary.tsv")}
		gaps = {(r["exp"], r["gamma"]): r for r in read("differences.tsv")}
		rows = {tuple(r[:2]): r for r in (l.split() for l in open("table")) if r and r[0] in ("scale", "rate")}
		data = {}
		for l in open("trials"):
		    f = l.split()
		    data.setdefault((f[1], f[2]), []).append([float(f[i]) for i in (5, 7, 9, 10)])
		assert set(gaps) == set(data) == set(rows) and list(rows) == [("scale", "0"), ("scale", "1"), ("rate", "1")]
		for k, d in data.items():
		    r, c, untrained, nearest = 100 * np.array(d).T
		    assert rows[k][3:5] == [f"{nearest.mean():.1f}", f"{untrained.mean():.1f}"], rows[k]
		    g = gaps[k]
		    for arm, v in ("random", r), ("corrmask", c):
		        assert abs(float(means[*k, "accuracy", arm]["mean"]) - v.mean()) < 1e-9
		    assert abs(float(g["difference"]) - (c - r).mean()) < 1e-9
		    if len(d) > 1:
		        assert abs(float(means[*k, "accuracy", "corrmask"]["sd"]) - c.std(ddof=1)) < 1e-9 and abs(float(g["sd"]) - (c - r).std(ddof=1)) < 1e-9
		        t, p = ttest_rel(c, r)
		        assert abs(float(g["t"]) / t - 1) < 1e-9 and abs(float(g["p"]) / p - 1) < 1e-9, (g, t, p)
		        assert rows[k][5:11] == [f"{r.mean():.1f}", "(sd", f"{r.std(ddof=1):.1f})", f"{c.mean():.1f}", "(sd", f"{c.std(ddof=1):.1f})"], rows[k]
		        assert rows[k][11:17] == [f"{(c - r).mean():+.1f}", f"({float(g['low']):+.1f}", "to", f"{float(g['high']):+.1f})", f"{t:.2f}", f"{p:.2g}"], rows[k]
		    else:
		        assert g["t"] == "NA" and rows[k][11:15] == [f"{(c - r).mean():+.1f}", "NA", "NA", "NA"] and rows[k][7] == "-)", rows[k]
	END
	grep -q 'drawn once for each class' table
	sed -i s/class/sample/ trials
	$P/page/table.py fig4/table . trials | grep -q 'at most gamma + (1 - gamma) / 3'
}

@test "fig4: the accuracy of the nearest mean equals scikit-learn's NearestCentroid" {
	scsim --kind b2 --random-genes class --exp rate --gamma 0.5 --seed 3 -o all.tok
	scsample -q --where 'cell<60' all.tok | scview -c module,token > train
	scsample -q --where 'cell>=1000' all.tok | scview -c module,token > test
	$P/step.sh fig4/nearest_mean train test > got
	$PYTHON - <<-'END'
		import numpy as np
		from sklearn.neighbors import NearestCentroid
		def read(f):
		    rows = [l.rstrip("\n").split("\t") for l in list(open(f))[1:]]
		    return np.array([[float(x) for x in t.split()] for _, t in rows]), [m for m, _ in rows]
		want = NearestCentroid().fit(*read("train")).score(*read("test"))
		assert 0.6 < want < 0.99 and abs(float(open("got").read()) - want) < 1e-4, (open("got").read(), want)
	END
}

@test "fig4: a trial of two epochs gives both accuracies and falling losses" {
	$P/step.sh fig4/trial class-scale-1-5-2 > t.tsv
	run awk -F '\t' 'NF == 11 && $1 == "class" && $2 == "scale" && $3 == 1 && $4 == 5 && $5 == 2 && $6 > 0.2 && $6 < 1 && $7 > 3.8 && $7 < 4.13 &&
		$8 > 0.2 && $9 < 4.13 && $10 > 0.2 && $10 < 0.5 && $11 > 0.99 { print "good" }' t.tsv
	assert_output good
	run -1 $P/step.sh fig4/runs huge "" "" "" class
	assert_output --partial "SCALE=huge"
	run -0 $P/step.sh fig4/runs small "" "" "" class
	assert_equal ${#lines[@]} 65
	assert_line class-rate-0.25-5-50
	# a tool that fails leaves no trial behind
	run ! $P/step.sh fig4/trial class-scale-7-1-2
}

# bats test_tags=slow
@test "reports: long names of classes are whole and in columns; the demo says what differs and what does not" {
	mkdir -p p/log pre/log rel/log dir/log ft/log ft/a.model
	touch p/group ft/log/ctaprobe-a.report
	printf 'cells_out\t40\n' > p/log/scsample-train.report
	printf 'cells_out\t20\npeak_memory_mb\t12\nseconds\t1.5\npeak_memory_mb\t7\nseconds\t2.25\n' > p/log/scsample-test.report
	printf 'genes_with_neighbours\t3\nedges\t7\n' > p/log/depgraph.report
	long="central nervous system macrophage of the subventricular zone"
	printf 'masks\tfrequency\tmedians\nhidden\t6.5\t5.25\nvisible\t6.5\t5\n' > rel/reference.tsv
	# loss of 20 cells; the second number of a network is its R
	for network in random-1:0.40 random-2:0.44 corrmask-1:0.10 corrmask-2:0.12; do
		for part in visible:0 hidden:1; do
			awk -v r=${network#*:} -v h=${part#*:} -v odd="$(status_of test $network = corrmask-1:0.10)" 'BEGIN { OFS = "\t"; print "cell", "epoch", "masked", "loss", "correct"
				for (c = 1; c <= 20; c++) print c, 0, 1, 5 + c / 10 + h * (r + (c % 2 == odd ? 0.05 : -0.05)), 0 }' > rel/${network%:*}.${part%:*}.cells
		done
	done
	probe() { # NAME MACRO_F1
		printf 'macro_f1\t%s\nmacro_f1_low\t%s\nmacro_f1_high\t%s\nf1_rare\t0.25\naccuracy\t0.75\nconverged\t1\nbootstrap_units\t7\ncells\t20\n' \
			"$2" "$(awk -v x="$2" 'BEGIN { print x - 0.04 }')" "$(awk -v x="$2" 'BEGIN { print x + 0.04 }')" > dir/$1.probe.tsv
		awk -v x=$2 'BEGIN { OFS = "\t"; print "replicate", "accuracy", "balanced_accuracy", "macro_f1"
			for (i = 1; i <= 100; i++) print i, 0.5, 0.5, x + 0.01 * (i % 2 ? 1 : -1) * (x < 0.62 ? 1 : 2) }' > dir/$1.probe.replicates
		for c in "$long" µ; do printf 'f1:%s\t0.5\nn:%s\t%d\n' "$c" "$c" ${#c}; done >> dir/$1.probe.tsv
	}
	printf 'cells_out\t40\ncells_of_full_length\t31\n' > p/log/rankenc-train.report
	printf 'edges\t15\n' > dir/log/depgraph-all-genes.report
	printf 'token\tgene_id\tsymbol\tmedian\n0\t<pad>\t\tNA\n1\t<mask>\t\tNA\n2\tG2\t\t1\n3\tG3\t\t1\n4\tG4\t\t1\n' > p/vocab.tsv
	scsim -q --cells 20 --genes 40 --modules 4 | rankenc -q --fit --min-cells 1 -o vocab -
	scsim -q --cells 20 --genes 40 --modules 4 | rankenc -q -m vocab - | maskgen -q -o rel/hidden.masked -
	probe expression 0.9; probe pca 0.8; probe read 0.7; probe untrained-1 0.3; probe untrained-2 0.4
	cp dir/expression.probe.replicates p/expression.score.replicates
	probe random-1 0.60; probe random-2 0.64; probe corrmask-1 0.62; probe corrmask-2 0.61
	report() { $P/page/table.py demo/report dir p pre rel "1 2" x.h5ad y 0 256 "tiny, 3 epochs"; }
	run -0 report
	names x.h5ad y
	names cells: 40 train 20 test
	names graph: 3 7 edges
	names genes: 256 31 40 MAXLEN
	names note: 15 7 edges MAXLEN
	targets=$(scview -c target rel/hidden.masked | tail -n +2 | tr ' ' '\n' | grep . | sort -u | wc -l)
	names "R $targets 3 genes"
	assert_line --regexp '^expression, of the genes that networks read +0.7000 '
	assert_line "Expression of the genes that the networks read has a macro F1 of 0.700."
	assert_line --regexp '^scsample +2 +2.25 +12 MB$'
	assert_line --regexp '^network, random masks +6.050 +6.470 +\+0.420   \+0.400 \+0.440$'
	assert_line --regexp '^network, CorrMask masks +6.050 +6.160 +\+0.110   \+0.100 \+0.120$'
	assert_line --regexp '^table of gene frequencies, no network +6.500 +6.500 +\+0.000$'
	assert_line --regexp '^table of medians of neighbours, no network +5.000 +5.250 +\+0.250$'
	assert_line --regexp '^log-normalised expression, no network +0.9000 +0.2500 +0.7500   0.8600 - 0.9400$'
	assert_line --regexp '^untrained network +0.3500 '
	names bootstrap 7 groups
	# gaps .30 and .32: t 31, p .021; the cells' parts cancel in the second seed, and are .1 in the first: sd .05 / sqrt(19), t of 19
	assert_line "CorrMask has a lower partner reliance R than random masks:"
	names 0.110 and 0.420 -0.310 -0.437 -0.183 0.021 -0.334 -0.286
	# gaps +.02 (.01 more or less in each draw) and -.03 (.01 less or more): the draws cancel
	assert_line "We found no difference in macro F1 between CorrMask and random masks:"
	names 0.615 and 0.620 -0.005 -0.323 +0.313 0.87
	# .30 and .26; .28 and .29
	assert_line "Log-normalised expression has a higher macro F1 than random masks:"
	names 0.900 and 0.620 +0.280
	assert_line "Log-normalised expression has a higher macro F1 than CorrMask:"
	names 0.900 and 0.615 +0.285
	assert_line --regexp "^  class {58}cells +random +CorrMask$"
	assert_line --regexp "^  $long {6}60 +0.5000 +0.5000$"
	assert_line --regexp "^  µ {59} {7}1 +0.5000 +0.5000$"
	printf 'edges\t14\n' > dir/log/depgraph-all-genes.report # not most of them
	run -0 report
	refute_line --regexp "^note: .*MAXLEN"
	# a difference that rounds to 0 has no sign
	probe corrmask-1 0.60; probe corrmask-2 0.6396
	cp rel/random-1.hidden.cells rel/corrmask-1.hidden.cells
	cp rel/random-2.hidden.cells rel/corrmask-2.hidden.cells
	run -0 report
	refute_output --partial -- -0.000
	refute_output --partial "difference +0.000"
	refute_output --partial "+0.000 to +0.000"
	assert_line --regexp "0\.620 and 0\.620.* 0\.001 .* 0\.001 "
	assert_line --regexp "0\.420 and 0\.420.* 0\.001 "
	for k in 1:0.10 2:0.12; do
		awk -v r=${k#*:} -v odd="$(status_of test $k = 1:0.10)" 'BEGIN { OFS = "\t"; print "cell", "epoch", "masked", "loss", "correct"
			for (c = 1; c <= 20; c++) print c, 0, 1, 5 + c / 10 + (r + (c % 2 == odd ? 0.05 : -0.05)), 0 }' > rel/corrmask-${k%:*}.hidden.cells
	done
	# gaps +.04 and +.01: a higher F1 in both seeds, but the test does not show it
	probe corrmask-1 0.64; probe corrmask-2 0.65
	run -0 report
	assert_line "We found no difference in macro F1 between CorrMask and random masks:"
	names +0.025 -0.166 +0.216 0.34
	# of one seed nothing is said to differ
	run -0 $P/page/table.py demo/report dir p pre rel 1 x.h5ad y 0 256 "tiny, 3 epochs"
	assert_line "CorrMask and random masks, partner reliance R, not tested:"
	names 0.100 and 0.400 -0.300 1 no interval
	assert_line "CorrMask and random masks, macro F1, not tested:"
	names One seed
	# a higher F1 in both seeds, by nearly the same, is said to differ; a network that is better than the baselines, too
	probe corrmask-1 0.95; probe corrmask-2 0.991
	cp rel/random-1.hidden.cells rel/corrmask-1.hidden.cells
	run -0 report
	assert_line "CorrMask has a higher macro F1 than random masks:"
	names +0.350
	# -.05 and -.091: p .18
	assert_line "We found no difference in macro F1 between log-normalised expression and CorrMask:"
	assert_line "We found no difference in partner reliance R between CorrMask and random masks:"
	names 0.260 and 0.420 -0.160 -2.193 +1.873 0.5
	# the page has the tables and the sentences
	assert_equal "$(sed -n 2p dir/2-types.table)" $'\tmacro F1\trarest F1\taccuracy\t95 % interval'
	grep -q $'^network, CorrMask masks\t0.9705\t' dir/2-types.table
	grep -q $'^network, CorrMask masks\t6.050\t6.310\t+0.260\t' dir/1-partners.table
	grep -q '^CorrMask has a higher macro F1 than random masks:$' dir/findings.txt
	# all methods at 1
	probe expression 1; probe random-1 1; probe random-2 1; probe corrmask-1 1; probe corrmask-2 1
	cp dir/expression.probe.replicates p/expression.score.replicates
	run -0 report
	assert_equal "$(grep -cE '(We found no difference in macro F1 .*|, macro F1, not tested):$' <<< "$output")" 3
	# one of the two networks has learned less than the gene frequencies
	for part in hidden visible; do awk -F '\t' -v OFS='\t' 'NR > 1 { $4 += 2 } 1' rel/random-1.$part.cells > more; mv more rel/random-1.$part.cells; done
	run -0 report
	names No comparison 7.05 6.50
	refute_output --partial "we found"
	printf 'accuracy\t0.5\nunknown\t0\nf1:%s\t0.5\nn:%s\t7\ntrain_n:%s\t70\nf1:µ\t1\nn:µ\t8\ntrain_n:µ\t80\n' "$long" "$long" "$long" > ft/a.score.tsv
	printf 'step\teval_loss\n1\t2\n2\t1.5\n3\t10\n' > ft/a.model/train.tsv
	# a second start; the draws differ by -.02 to .379
	sed 's/^accuracy.*/accuracy\t0.625/' ft/a.score.tsv > ft/b.score.tsv
	awk 'BEGIN { OFS = "\t"; for (i = 0; i <= 400; i++) print i, 0, 0, i ? 0.5 : "macro_f1" > "ft/a.score.replicates"
		for (i = 0; i <= 400; i++) print i, 0, 0, i ? 0.48 + (i * 7 % 400) / 1000 : "macro_f1" > "ft/b.score.replicates" }'
	run -0 $P/page/table.py finetune/report ft x y a b
	assert_line --regexp '^a +0.5000 .* 2   - - -$'
	names b a -0.0100 +0.3690
	run -0 $P/page/table.py finetune/report ft x y a
	assert_line --regexp "^  class {58}train {4}test +a$"
	assert_line --regexp "^  µ {59} {6}80 {7}8 +1.0000$"
	assert_line --regexp "^  $long {6}70 {7}7 +0.5000$"
}

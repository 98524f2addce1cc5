#!/usr/bin/env bats
# make r2mae-cells and r2mae-mlm: the arithmetic against scipy, one small grid, and what the schedules of the masking ratio are

load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	r2mae > first.txt 2> first.err
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
	export BIN
}

r2mae() { pipelines THREADS=2 r2mae-cells SCALE=tiny METHODS="fixed-0.25 r2mae" SEEDS="1 2" TARGET=n_counts "$@"; }

@test "r2mae/table.py: means, standard deviations, paired gaps and p equal scipy's; score and rank" {
	$PYTHON - <<-'END'
		import os, random
		random.seed(4)
		os.makedirs("made/log"), os.makedirs("in")
		for f, text in ("label", "cell_type\ndisease"), ("target", "age"), ("about", "x.h5ad: 900 cells"):
		    open(f"in/{f}", "w").write(text + "\n")
		for m in "untrained", "fixed-0.25", "r2mae", "mdlm":
		    for k in 1, 2, 5:
		        if (m, k) == ("mdlm", 2):
		            continue
		        os.makedirs(f"made/runs/{m}-{k}")
		        with open(f"made/runs/{m}-{k}/scores.tsv", "w") as f:
		            for s in "balanced_accuracy", "macro_f1", "auroc", "f1:B":
		                f.write(f"label\t{s}\t{random.random()}\nlabel-2\t{s}\t{random.random()}\n")
		            for s in "spearman", "group_spearman", "mse":
		                f.write(f"target\t{s}\t{random.random()}\n")
		            f.write(f"label\tgroup_auroc\tnan\nrank\tentropy\t{random.random()}\n")
		            for r in .1, .2, .3, .5, .7:
		                f.write(f"valid-{r}\tpearson\t{random.random() - .5}\n")
		        for s in "label", "label-2":
		            with open(f"made/runs/{m}-{k}/{s}.replicates.tsv", "w") as f:
		                f.write("replicate\taccuracy\tbalanced_accuracy\tmacro_f1\n")
		                f.writelines(f"{i}\t{random.random()}\t{random.random()}\t{random.random()}\n" for i in range(1, 61))
		open("in/group", "w").write("donor\n")
		open("in/baselines.tsv", "w").write("pca\tlabel\tbalanced_accuracy\t0.5\n")
	END
	"$P/page/table.py" r2mae/table made in "fixed-0.25 r2mae mdlm" "1 2 5" "hidden layers of 9" > table
	$PYTHON - <<-'END'
		import os, re
		import numpy as np
		from scipy.stats import ttest_rel, rankdata
		methods, seeds = ["fixed-0.25", "r2mae", "mdlm"], [1, 2, 5]
		def score(m, k, stage, metric):
		    f = f"made/runs/{m}-{k}/scores.tsv"
		    if os.path.exists(f):
		        for l in open(f):
		            if l.split("\t")[:2] == [stage, metric]:
		                return float(l.split("\t")[2])
		    return np.nan
		def table(name):
		    lines = [l.rstrip("\n").split("\t") for l in open(name)]
		    return {(r["stage"], r["metric"], r["arm"]): r for r in (dict(zip(lines[0], l)) for l in lines[1:])}
		summary, differences = table("made/summary.tsv"), table("made/differences.tsv")
		assert ("label", "f1:B", "r2mae") not in summary and ("label", "group_auroc", "r2mae") not in summary
		assert len(summary) == 1 + 4 * 15 and len(differences) == 2 * 13
		close = lambda got, want: all(abs(float(g) - w) < 1e-10 * max(1, abs(w)) for g, w in zip(got, want))
		for (stage, metric, m), got in summary.items():
		    v, b = (np.array([score(x, k, stage, metric) for k in seeds]) for x in (m, "fixed-0.25"))
		    ok, both = ~np.isnan(v), ~np.isnan(v) & ~np.isnan(b)
		    if m == "pca":
		        assert (got["n"], got["mean"], got["sd"]) == ("1", "0.5", "NA") and (stage, metric, m) not in differences
		        continue
		    assert int(got["n"]) == ok.sum() and close([got["mean"], got["sd"]], [v[ok].mean(), v[ok].std(ddof=1)])
		    got = differences.get((stage, metric, m))
		    assert (got is None) == (m in ("untrained", "fixed-0.25") or stage == "rank" or metric == "mse"), (stage, metric, m)
		    if got:
		        d = (v - b)[both]
		        assert int(got["n"]) == len(d)
		        assert close([got[k] for k in ("difference", "sd", "p")], [d.mean(), d.std(ddof=1), ttest_rel(v[both], b[both])[1]]), got
		most = 0
		for i, r in enumerate(sorted(differences.values(), key=lambda r: float(r["p"]))):
		    most = max(most, min(1, float(r["p"]) * (26 - i)))
		    assert abs(float(r["p_corrected"]) - most) < 1e-12
		text = open("table").read()
		mean = lambda m, *s: np.nanmean([score(m, k, *s) for k in seeds])
		six = [(a, b) for a in ("label", "label-2") for b in ("balanced_accuracy", "macro_f1")] + [("target", "spearman"), ("target", "group_spearman")]
		names = ["untrained"] + methods
		means = np.array([[mean(m, *s) for s in six] for m in names])
		rank = np.mean([rankdata(-c, "min") for c in means.T], 0)
		block = text[text.index("Score (mean of the metrics)"):].split("\n\n")[0].split("\n")[1:]
		for line in block:
		    m, s, r = line.split()
		    assert abs(float(s) - means[names.index(m)].mean()) < 1e-4 and abs(float(r) - rank[names.index(m)]) < .006, line
		assert len(block) == 4
		draws = lambda s, m, k: np.loadtxt(f"made/runs/{m}-{k}/{s}.replicates.tsv", skiprows=1)[:, 2:]
		blocks = text.split("1,000 draws of the tested donors")[1:]
		assert len(blocks) == 2 and "Probe of disease" in blocks[0] and "Probe of age" in blocks[1]
		for s, block in zip(("label", "label-2"), blocks):
		    block = block.split("\n\n")[0].split("\n")[2:]
		    assert [x.split()[0] for x in block] == ["untrained", "r2mae", "mdlm"]
		    for line in block:
		        m, *got = line.replace(" to ", " ").split()
		        own = [k for k in seeds if os.path.exists(f"made/runs/{m}-{k}")]
		        gap = np.mean([draws(s, m, k) - draws(s, "fixed-0.25", k) for k in own], 0)
		        want = [np.quantile(gap[:, i], p) for i in (0, 1) for p in (.025, .975)]
		        assert np.allclose([float(x) for x in got], want, atol=6e-5), (line, want)
		lines = text[text.index("Masked genes"):].split("\n")
		assert lines[1].split() == ["0.1", "0.2", "0.3", "0.5", "0.7"]
		v = np.array([score("mdlm", k, "valid-0.7", "pearson") for k in (1, 5)])
		assert lines[5].startswith("mdlm ") and lines[5].endswith(f"{v.mean():.4f} (sd {v.std(ddof=1):.4f}) [2]"), lines[5]
	END
}

@test "make r2mae-cells: its tables follow from the scores, and a run is the tools by hand" {
	refute grep -i -e error -e "% masked" first.err
	R=$(realpath results/r2mae-cells/latest)
	inputs=$(realpath results/r2mae-cells-inputs/latest)
	assert_file_not_empty "$R/r2mae-cells.svg"
	run find results -name '*.safetensors' -o -name '*.emb'
	assert_output ""
	grep -q "^pca " first.txt
	# the cells: validation apart from training; whole donors held out; enough genes
	for f in pretrain valid learn test; do scview -c cell,donor,gene "$inputs/$f.counts" | tail -n +2 > $f.tsv; done
	[ -z "$(cut -f 1 pretrain.tsv valid.tsv | sort | uniq -d)" ]
	[ -z "$(for f in learn test; do cut -f 2 $f.tsv | sort -u; done | sort | uniq -d)" ]
	awk -F '\t' 'split($3, a, " ") < 20 { exit 1 }' pretrain.tsv test.tsv
	# one run
	maskgen --strategy columns --rate-uniform 0.1:0.5 --keep donor --batch 50 --epochs 3 --seed 2 "$inputs/pretrain.counts" -o hand.mcounts
	printf '{"model_type": "mlp_nb", "vocab_size": %s, "intermediate_size": 16, "hidden_size": 4}' \
		"$(scview --header-tsv hand.mcounts | awk '$1 == "vocab.rows" { print $2 }')" > small.json
	sctrain nb -q --batch-key donor --config small.json --lr 1e-3 --eval "$inputs/valid-0.3.mcounts" --best last --seed 2 -o hand hand.mcounts
	diff <(cut -f 1-3 hand/train.tsv) <(cut -f 1-3 "$R/runs/r2mae-2/train.tsv")
	scpredict expression -q -M hand --recalibrate "$inputs/calibrate.counts" "$inputs/valid-0.5.mcounts" | scmetric reconstruction -q -o recon
	diff recon "$R/runs/r2mae-2/valid-0.5.score.tsv"
	for f in learn test; do scembed -q -M hand --recalibrate "$inputs/calibrate.counts" "$inputs/$f.counts" -o $f.emb; done
	ctaprobe cells -q --label cell_type --search 2 --group donor --max-iter 500 --bootstrap 1000 --replicates draws --train learn.emb --test test.emb -o probe
	diff draws "$R/runs/r2mae-2/label.replicates.tsv"
	diff probe "$R/runs/r2mae-2/label.score.tsv"
	$PYTHON - "$R" <<-'END'
		import statistics, sys
		value = [next(float(l.split("\t")[1]) for l in open(f"{sys.argv[1]}/runs/r2mae-{k}/valid-0.5.score.tsv") if l.startswith("pearson\t")) for k in (1, 2)]
		text = open("first.txt").read()
		line = next(l for l in text[text.index("Masked genes"):].split("\n") if l.startswith("r2mae "))
		assert line.split()[10:13] == [f"{statistics.mean(value):.4f}", "(sd", f"{statistics.stdev(value):.4f})"], line
	END
}

# bats test_tags=slow
@test "make r2mae-cells: a second run makes nothing, more methods add runs, other settings leave everything in place" {
	run -0 r2mae
	R=$(realpath results/r2mae-cells/latest)
	refute_line --regexp '^  (cells|train|reconstruct|probe|pca|log)'
	run -0 r2mae METHODS="fixed-0.25 r2mae mdlm" SEEDS=1
	assert_line "  train-mdlm-1"
	refute_line --regexp '^  train-(r2mae|fixed|untrained)'
	cksum "$R"/runs/*/scores.tsv > before
	run -0 pipelines THREADS=2 r2mae-cells SCALE=tiny METHODS=fixed-0.25 SEEDS=1 TARGET=n_counts LATENT=3
	assert_line "  train-fixed-0.25-1"
	refute_line "  cells"
	cksum "$R"/runs/*/scores.tsv | diff - before
	[ "$(realpath results/r2mae-cells/latest)" != "$R" ]
}

@test "arm.sh r2mae and make: wrong arguments are told; a tool that fails leaves no scores" {
	run ! r2mae METHODS="fixed-0.25 cosine"
	assert_output --partial "METHODS: unknown arm 'cosine' (expected untrained, fixed-N, "
	inputs=$(realpath results/r2mae-cells-inputs/latest)
	run -2 "$P/arm.sh" r2mae --inputs "$inputs" --arm cosine --seed 1 --out x
	assert_output --partial "unknown arm 'cosine'"
	run -2 "$P/arm.sh" r2mae --inputs "$inputs" --seed 1 --out x
	mkdir broken
	for t in "$BIN"/*; do ln -s "$(realpath "$t")" broken/; done
	rm broken/ctaprobe
	printf '#!/bin/sh\ncat > /dev/null\nexit 1\n' > broken/ctaprobe
	chmod +x broken/ctaprobe
	BIN=$PWD/broken run -1 "$P/arm.sh" r2mae --inputs "$inputs" --arm mdlm --seed 1 --hidden 4 --latent 2 --epochs 1 --out x
	assert_not_exist x/scores.tsv
}

# the arguments of maskgen in the first stage of a run
masks() {
	mkdir -p told
	printf '#!/bin/sh\necho "$*" > told/args\nexit 1\n' > told/maskgen
	printf '#!/bin/sh\ncat > /dev/null\nexit 1\n' > told/sctrain
	chmod +x told/maskgen told/sctrain
	rm -f told/args
	BIN=$PWD/told run ! "$@" --seed 1 --out "told/$RANDOM"
	cat told/args
}

@test "the schedules: the methods of r2mae and the strategies of table6 with a rate" {
	inputs=$(realpath results/r2mae-cells-inputs/latest)
	while read -r method rate; do
		run masks "$P/arm.sh" r2mae --inputs "$inputs" --arm "$method"
		assert_output --regexp "^$rate --strategy columns --keep donor --batch "
	done <<-END
		fixed-0.10 --rate 0.10
		mdlm --rate-uniform 0:1
		dynamic --rate-linear 0.5:0.1
		r2mae --rate-uniform 0.1:0.5
		r2mae-dynamic --rate-uniform 0.1:0.5:0.1
		cl --rate 0.25
		r2mae-cl --rate-choice 0.1,0.1444,0.1889,0.2333,0.2778,0.3222,0.3667,0.4111,0.4556,0.5
	END
	mkdir -p t6
	echo 'LABEL = cell_type' | tee t6/settings > t6/label
	while read -r strategy rate; do
		run masks "$P/arm.sh" table6 --inputs t6 --size 1 --arm "$strategy"
		assert_output --regexp "^--strategy $rate --batch "
	done <<-END
		random random
		random+10 random --rate 0.1
		random+r2mae random --rate-uniform 0.1:0.5
		corrmask+mdlm corrmask --lambda 0.5 -g t6/corrmask-1.graph --rate-uniform 0:1
		corrmask-100+dyn corrmask --lambda 1 -g t6/corrmask-1.graph --rate-linear 0.5:0.1
		pmi-rand+50 pmi-rand -g t6/pmi-1.graph --rate 0.5
	END
	run pipelines -n r2mae-mlm SCALE=tiny SEEDS=1
	assert_success
	for s in random random+10 random+r2mae corrmask+dyn corrmask+mdlm; do assert_output --partial "--arm $s --size 1 --seed 1"; done
	run ! pipelines -n table6 STRATEGIES="random random+x"
	assert_output --partial "unknown part '+x' of arm 'random+x'"
}

@test "make r2mae-cells: one donor cannot be split" {
	scsim -q --cells 60 --genes 150 --modules 5 --donors 1 --depth 800 -o one.counts
	scview -q -O h5ad one.counts -o one.h5ad
	run ! pipelines r2mae-cells SCALE=tiny DATA=one.h5ad GROUP=donor METHODS=fixed-0.25 SEEDS=1
	assert_output --partial "scsample: --group: column 'donor' has 1 group in these cells; a split needs at least 2 (without --group, single cells are split)"
	refute_output --partial "Masked genes"
}

@test "make r2mae-cells: more labels are scored in the same run, of the cells that have one; a column that is not there is named" {
	scsim -q --cells 200 --genes 150 --modules 5 --donors 6 --depth 800 -o two.counts
	scview -q -c barcode,cell_type two.counts | awk -F '\t' -v OFS='\t' 'NR == 1 { print $1, "disease"; next } { print $1, NR % 5 ? (NR % 2 ? "ill" : "well") : "NA" }' > disease.tsv
	scview -q -O h5ad two.counts -o first.h5ad
	h5tok -q --obs-table disease.tsv first.h5ad -u | scview -q -O h5ad -o two.h5ad -
	two() { pipelines r2mae-cells SCALE=tiny NB_EPOCHS=1 DATA=two.h5ad GROUP=donor METHODS=fixed-0.25 SEEDS=1 KEEP_MODELS=1 RESULTS=two "$@"; }
	run ! two MORE_LABELS=disease,age
	assert_line --partial "no column age in obs; it has: "
	run -0 two MORE_LABELS=disease TARGET=n_counts
	assert_line --regexp "^Probe of disease "
	R=$(realpath two/r2mae-cells/latest)/runs/fixed-0.25-1
	inputs=$(realpath two/r2mae-cells-inputs/latest)
	for f in learn test; do scsample -q --where 'disease!=NA' -o $f.known "$R/$f.emb"; done
	[ "$(scview -c cell test.known | wc -l)" -lt "$(scview -c cell "$R/test.emb" | wc -l)" ]
	ctaprobe cells -q --label disease --group donor --max-iter 500 --search "$(cat "$inputs/folds")" --bootstrap 1000 --replicates draws --train learn.known --test test.known -o probe
	diff <(grep -v ^unlabelled probe) <(grep -v ^unlabelled "$R/label-2.score.tsv")
	assert_equal "$(awk '$1 == "unlabelled"' "$R/label-2.score.tsv")" "unlabelled	40"
	assert_equal "$(awk -F '\t' '$1 == "label-2" && $2 == "macro_f1" { print $3 }' "$R/scores.tsv")" "$(awk -F '\t' '$1 == "macro_f1" { print $2 }' probe)"
}

# bats test_tags=slow
@test "make r2mae-other: digits as counts, a text and a genome as tokens" {
	{ echo '>one'; for ((i = 0; i < 300; i++)); do echo ACGTTGCAACGGTTACGTAGCATCGATCGATTTACGACGTACGATCGATCGACTAGCTAGC; done; } > one.fa
	for ((i = 0; i < 800; i++)); do printf 'paragraph %d has words\n\n' "$i"; done > one.txt
	run pipelines r2mae-other SCALE=tiny SEEDS="1 2" TEXT=one.txt GENOME=one.fa
	assert_success
	assert_line --partial "loss of a table of frequencies, dna: 1.3"
	dir=results/r2mae-other/latest
	assert_equal "$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { n[$c["kind"]]++ } END { print n["digits-16"], n["digits-256"], n["text"], n["dna"] }' $dir/summary.tsv)" "6 6 12 12"
	# the images are learned, the repeats of the genome too
	assert [ "$(awk -F '\t' '$1 == "digits-256" && $2 == "0.3" && $3 == 1 { print ($5 < 0.3) }' $dir/points.tsv)" = 1 ]
	assert_exist $dir/other.svg
	# a test window was not in the training
	run -1 cmp -s $dir/dna/inputs/train.tok $dir/dna/inputs/test.tok
	assert_equal "$(comm -12 <(scview -c barcode $dir/dna/inputs/train.tok | sed 1d | sort) <(scview -c barcode $dir/dna/inputs/test.tok | sed 1d | sort))" ""
	echo short > short.txt
	run ! pipelines r2mae-other SCALE=tiny SEEDS=1 TEXT=short.txt
	assert_output --partial "expected at least 16384"
	run ! pipelines r2mae-other GENOME=none.fa
	assert_output --partial "none.fa"
}

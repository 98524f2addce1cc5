# make combine, the experiments on its runs, and make bmfm-zeroshot (pipelines/bmfm/objectives.mk, zeroshot.mk)
load helper

setup() {
	cd "$BATS_FILE_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
}

@test "bmfm/terms.py: terms of labels; half of the groups have the term above, or none" {
	mkdir -p terms && cd terms
	printf '[Term]\nid: X:1\nname: all\n\n[Term]\nid: X:2\nis_a: X:1 {is_inferred="true"} ! all\n\n[Term]\nid: X:3\nis_a: X:2 ! two\nis_a: X:1 ! all\n\n[Typedef]\nid: X:9\n' > o.obo
	printf 'label\tterm\tcoarse\nb\tX:3\tbig\nc\tX:1\t\nother\tX:8\tfar\nkind\tX:9\n' > labels.tsv
	printf 'barcode\tlabel\tdonor\n1\tb\td1\n2\tb\td2\n3\tc\td2\n4\tother\td1\n5\tnew\td2\n6\tkind\td3\n7\tb\td1\n' > cells.tsv
	terms() { "$P/page/table.py" bmfm/terms "$@"; }
	run -0 --separate-stderr terms columns o.obo labels.tsv kind cells.tsv
	assert_output "$(printf 'barcode\tterm\tmoved\tdropped\tcoarse\n1\tX:3\tX:3\tX:3\tbig\n2\tX:3\tX:2\tNA\tbig\n3\tX:1\tX:1\tNA\tX:1\n4\tNA\tNA\tNA\tfar\n5\tNA\tNA\tNA\tNA\n6\tNA\tNA\tNA\tNA\n7\tX:3\tX:3\tX:3\tbig')"
	run terms leaves o.obo <(printf 'X:1\nX:3\nX:3\nX:9\n')
	assert_output "$(printf 'X:3\nX:9')"
	run terms leaves o.obo <(printf 'X:2\nX:1\n')
	assert_output X:2
	cut -f 1,2 labels.tsv > plain.tsv
	run terms columns o.obo plain.tsv kind cells.tsv
	assert_line "$(printf '2\tX:3\tX:2\tNA\tX:3')"
	# without groups, every second cell
	cut -f 1,2 cells.tsv > alone.tsv
	run terms columns o.obo labels.tsv kind alone.tsv
	assert_line "$(printf '2\tX:3\tX:2\tNA\tbig')"
	assert_line "$(printf '7\tX:3\tX:3\tX:3\tbig')"
	run -0 --separate-stderr terms columns o.obo labels.tsv kind cells.tsv
	assert_equal "$stderr" "warning: 3 cells have no term, because labels.tsv or o.obo lacks it: 'other' (1), 'new' (1), 'kind' (1) in column kind"
	head -n 4 cells.tsv > known.tsv
	run -0 --separate-stderr terms columns o.obo labels.tsv kind known.tsv
	assert_equal "$stderr" ""
	# the terms of the labels of simulated cells are in the ontology that comes with the tools
	awk -F '\t' '$1 ~ /^type/ { print $2 }' "$P/bmfm/cell-types.tsv" | while read -r term; do grep -qx "id: $term" "$P/../data/blood-cells.obo"; done
	assert_equal "$(cut -f 1 "$P/bmfm/cell-types.tsv" | sort | uniq -d)" ""
	assert_equal "$(awk -F '\t' 'NF != 5' "$P/bmfm/cell-types.tsv")" ""
}

@test "arms.py: an arm has one name, and is what it says" {
	run -0 "$P/arms.py" check bmfm expression pca-shared untrained untrained+hce untrained+tuned wced wced-zeros+hce mlm-corrmask+r2mae+moved-ce+tuned wced+term-ce
	assert_output ""
	wrong() {
		run -0 "$P/arms.py" check bmfm wced "$1" wced+hce
		assert_output "$2"
	}
	for arm in wced+hce+moved-hce wced+hce+hce wced+r2mae+r2mae wced+hce+r2mae wced+tuned+hce; do
		wrong $arm "arm '$arm': expected wced[+rate][+labels][+tuned]"
	done
	wrong expression+hce "arm 'expression+hce': expected expression without parts"
	wrong pca+tuned "arm 'pca+tuned': expected pca without parts"
	run -0 "$P/arms.py" check bmfm wced+term-hce+tuned wced+hce wced+hce+tuned
	assert_output "arm 'wced+hce+tuned' is wced+term-hce+tuned"
	run -0 "$P/arms.py" check table6 random corrmask corrmask-50
	assert_output "arm 'corrmask-50' is corrmask"
	wrong untrained+r2mae "arm 'untrained+r2mae': expected untrained[+labels][+tuned]"
	wrong wced+ "unknown part '+' of arm 'wced+'"
	wrong wced+-hce "unknown part '+-hce' of arm 'wced+-hce'"
	wrong 'wced+a b-hce' "unknown part '+a b-hce' of arm 'wced+a b-hce'"
	run -0 "$P/arms.py" set bmfm wced+r2mae+moved-hce
	assert_output "$(printf '%s\n' 'task=wced cells=train.tok' 'graph_options=()' 'masks=(--objective cell --rate-uniform 0.1:0.5 --keep moved --count-kept)' \
		'plain_masks=(--objective cell)' 'learn=(--head moved:hce,position=1 --ontology "$ONTOLOGY")' 'embed=(--pool token:1)')"
	run -0 "$P/arms.py" set table6 corrmask-5+50
	assert_output "$(printf '%s\n' 'task=mlm cells=corpus-${SIZE:-}.tok' 'graph_options=()' 'masks=(--strategy corrmask --lambda 0.05 -g "$GRAPH" --rate 0.5)' \
		'plain_masks=(--strategy corrmask --lambda 0.05 -g "$GRAPH")' 'learn=()' 'embed=()')"
	run -0 "$P/arms.py" set ties median-corrmask+seeds0+rho30
	assert_output "$(printf '%s\n' 'task=mlm cells=median.train.tok' 'graph_options=(--rho-min 0.3)' 'masks=(--strategy corrmask --lambda 0.5 -g "$GRAPH" --seed-share 0)' \
		'plain_masks=(--strategy corrmask --lambda 0.5 -g "$GRAPH")' 'learn=()' 'embed=()')"
	run -0 "$P/arms.py" check ties median-corrmask median-corrmask+cells300 median-corrmask+cells30
	assert_output ""
	run -1 "$P/arms.py" set table6 corrmask-101
	assert_output --partial "unknown arm 'corrmask-101' (expected random, "
	run -2 "$P/arms.py" set table6 random corrmask
	assert_output --partial "arms.py set EXPERIMENT ARM"
	run -2 "$P/arm.sh" bmfm --inputs s --arm wced+hce+moved-hce --seed 1 --label l --out never
	assert_output "arm.sh: arm 'wced+hce+moved-hce': expected wced[+rate][+labels][+tuned]"
	assert_not_exist never
}

@test "SETS=: an experiment on several sets, and the differences of their means against scipy; a set that fails is told" {
	mkdir -p sets && cd sets
	cat > make <<-'END'
		#!/usr/bin/env python3
		import os, random, sys
		words = dict(w.split("=", 1) for w in sys.argv[2:])
		assert sys.argv[1] == "combine" and words["SETS"] == "" and words["LABEL"] == "cell type", sys.argv
		if words["DATA"] == "bad.h5ad":
		    sys.exit(2)
		run = "results/combine/" + words["DATA"]
		os.makedirs(run)
		random.seed(words["DATA"])
		open(run + "/settings", "w").write(f"DATA = {words['DATA']}\n")
		with open(run + "/points.tsv", "w") as f:
		    print("arm", "seed", "metric", "value", sep="\t", file=f)
		    for a, k, m in ((a, k, m) for a in ("wced", "value") for k in (1, 2, 3) for m in ("f1", "other")):
		        print(a, k, m, f"{random.random():.6f}" if (a, k, words["DATA"]) != ("wced", 3, "two.h5ad") else "NA", sep="\t", file=f)
		with open(run + "/differences.tsv", "w") as f:
		    print("metric arm reference n difference low high t p p_corrected detectable mean reference_mean".replace(" ", "\t"), file=f)
		    print("f1 wced value 3 0.1 0 0.2 1 0.2 0.2 0.3 0.5 0.4".replace(" ", "\t"), file=f)
		latest = "results/combine/latest"
		if os.path.lexists(latest):
		    os.remove(latest)
		os.symlink(words["DATA"], latest)
	END
	chmod +x make
	printf 'set\tDATA\tLABEL\none\tone.h5ad\tcell type\ntwo\ttwo.h5ad\tcell type\nthree\tbad.h5ad\tcell type\n' > sets.tsv
	run -1 --separate-stderr "$P/page/table.py" page/sets combine combine sets.tsv results ./make
	assert_line "corrmask combine: 2 sets"
	assert_line "failed, and left out: three"
	assert_equal "$(tail -n 1 <<< "$stderr")" "combine: failed: three"
	run -0 $PYTHON - <<-'END'
		import csv, glob
		import numpy as np
		from scipy import stats
		read = lambda f: list(csv.DictReader(open(f), delimiter="\t"))
		folder, = glob.glob("results/combine/sets-*")
		v = {(r["set"], r["arm"], r["seed"], r["metric"]): r["value"] for r in read(folder + "/points.tsv")}
		of = lambda a, k: np.mean([float(v[s, a, k, "f1"]) for s in ("one", "two")])
		d = np.array([of("wced", k) - of("value", k) for k in "12"])
		rows = read(folder + "/differences.tsv")
		assert [r["set"] for r in rows] == ["one", "two", "mean of the sets"], rows
		r = rows[-1]
		assert int(r["n"]) == 2 and abs(float(r["difference"]) - d.mean()) < 1e-8, (r, d)
		wide = stats.t.ppf(.975, 1) * d.std(ddof=1) * np.sqrt(1 / 2 + 1 / 3)
		assert abs(float(r["high"]) - d.mean() - wide) < 1e-6, (r, d, wide)
		assert ("mean of the sets", "wced", "3", "f1") not in v
	END
	wrong() {
		run -1 "$P/page/table.py" page/sets combine combine "$1" results ./make
		assert_output "SETS=$1: $2"
	}
	printf 'data\tDATA\nx\ty\n' > head.tsv
	wrong head.tsv "the first column is 'data': expected a table with the columns set, DATA, LABEL ..., and a row for each set"
	printf 'set\tdata\nx\ty\n' > name.tsv
	wrong name.tsv "column 'data' is no variable: expected a table with the columns set, DATA, LABEL ..., and a row for each set"
	printf 'set\tDATA\nx\ty\nx\tz\n' > twice.tsv
	wrong twice.tsv "line 3: expected 2 columns and a name of its own"
	wrong none.tsv "no such file"
	run -2 pipelines bmfm-objectives SETS=sets.tsv DATA=one.h5ad
	assert_output --partial "DATA= with SETS=: expected one of them"
	run -2 pipelines finetune SETS=sets.tsv
	assert_output --partial SETS
}

@test "bmfm-learnability: without a gene that has enough expressed pairs there is no table" {
	mkdir -p few/in/runs/wced-1 few/out && cd few
	printf 'metric\tvalue\nmacro_f1\t0.5\n' > in/runs/wced-1/scores.tsv
	printf 'MIN_EXPRESSED = 70\n' > in/settings
	run -1 "$P/page/table.py" bmfm/table out in bmfm-learnability wced 1 "" type "gated_genes=genes" how
	assert_output "bmfm-learnability: no network has two genes with 70 expressed pairs in the test cells: expected a lower MIN_EXPRESSED"
	scsim -q --cells 12 --genes 20 --modules 2 --types 2 --rarest 0.3 --seed 1 -o test.counts
	"$P/step.sh" bmfm/enough 120 test.counts
	run -1 "$P/step.sh" bmfm/enough 121 test.counts
	assert_output "MIN_EXPRESSED=121: no gene has so many expressed pairs in 12 test cells: at most ten with each"
}

@test "bmfm/table.py: means and paired differences are scipy's; a part over all arms with it; runs that are missing are left out" {
	rm -rf t && mkdir -p t/in/log t/out
	$PYTHON - <<-'END'
		import os, random
		random.seed(3)
		for k in 1, 2, 3:
		    own = random.gauss(0, .1)
		    for arm in "pca", "mlm-random", "mlm-random+hce", "wced", "wced+hce", "wced+r2mae+hce":
		        if (arm, k) == ("wced+hce", 3):
		            continue
		        os.makedirs(f"t/in/runs/{arm}-{k}")
		        with open(f"t/in/runs/{arm}-{k}/scores.tsv", "w") as f:
		            f.write("metric\tvalue\n")
		            f.write("avg_batch\tNA\n")
		            for m in "macro_f1", "other":
		                f.write(f"{m}\t{.4 + own + .2 * ('hce' in arm) + random.gauss(0, .02):.6f}\n")
	END
	BIN=$BIN "$P/page/table.py" bmfm/table t/out t/in combine "mlm-random mlm-random+hce wced wced+hce wced+r2mae+hce" "1 2 3" "" type "macro_f1=macro F1,avg_batch=AvgBatch" how > text
	run cat text
	assert_line --regexp '^objective +alone +\+hce +\+r2mae\+hce$'
	assert_line --regexp '^50 principal components +0\.[0-9]+ \[-?0\.[0-9]+, 0\.[0-9]+\] +- +-$'
	assert_line --regexp '^wced +0\.[0-9]+ \[.*\] +0\.[0-9]+ \[.*\] +0\.[0-9]+ \[.*\]$'
	assert_line --regexp '^wced +NA +NA +NA$' # not 0.000
	assert_line "macro F1 minus that of 50 principal components"
	assert_line --regexp '^wced +[-+]0\.[0-9]+ \[.*\] +[-+]0\.[0-9]+ \[.*\] +[-+]0\.[0-9]+ \[.*\]$'
	assert_line --regexp '^\+hce +macro F1 +5 +\+0\.[0-9]+ '
	assert_line --partial "What this cannot tell: with 3 seeds a difference of one arm is found in 80 % of cases only from this size on: macro F1 0."
	run grep -c other t/out/differences.tsv
	assert_output 0
	run -0 $PYTHON - <<-'END'
		import csv, glob
		import numpy as np
		from scipy import stats
		v = {}
		for f in glob.glob("t/in/runs/*/scores.tsv"):
		    arm, _, k = f.split("/")[3].rpartition("-")
		    v[arm, int(k)] = float(open(f).read().split("\n")[2].split("\t")[1])
		rows = [r for r in csv.DictReader(open("t/out/differences.tsv"), delimiter="\t") if r["metric"] == "macro_f1"]
		want = {(a, "mlm-random") for a in ("mlm-random+hce", "wced", "wced+hce", "wced+r2mae+hce")} | {
		    ("wced+hce", "wced"), ("wced+r2mae+hce", "wced+hce")} | {
		    (a, "pca") for a in ("mlm-random", "mlm-random+hce", "wced", "wced+hce", "wced+r2mae+hce")}
		assert {(r["arm"], r["reference"]) for r in rows} == want and len(rows) == len(want), rows
		for r in rows:
		    a, b = r["arm"], r["reference"]
		    d = np.array([v[a, k] - v[b, k] for k in (1, 2, 3) if (a, k) in v and (b, k) in v])
		    test = stats.ttest_1samp(d, 0)
		    assert int(r["n"]) == len(d)
		    assert abs(float(r["difference"]) - d.mean()) < 1e-12 and abs(float(r["p"]) - test.pvalue) < 1e-9, r
	END
	# an arm that is there anyway counts once
	BIN=$BIN "$P/page/table.py" bmfm/table t/out t/in combine "pca wced" "1 2 3" "" type "macro_f1=macro F1" how > /dev/null
	assert_equal "$(grep -c '^pca	.*	macro_f1	' t/out/points.tsv)" 3
	BIN=$BIN "$P/page/table.py" bmfm/table t/out t/in combine "mlm-random wced" 1 "" type "macro_f1=macro F1" how | grep -qx "One seed: nothing can be said about other trainings."
}

# bats test_tags=slow
@test "make combine and bmfm-learnability: matrix and page; shared runs are made once; a run by hand is the same" {
	run -0 pipelines -j2 THREADS=2 combine SCALE=tiny SEEDS=1 BMFM_ARMS="wced mlm-corrmask+r2mae+hce"
	assert_line "  sctrain-mlm-corrmask+r2mae+hce-1"
	assert_line --regexp '^mlm-corrmask +- +0\.[0-9]+ \[NA\]$'
	assert_line "cells: split by donor, a quarter for the test"
	assert_line "One seed: nothing can be said about other trainings."
	R=results/bmfm-inputs/$(readlink results/bmfm-inputs/latest)
	assert_file_not_empty results/combine/latest/report.html
	assert_not_exist "$R/runs/wced-1/model"
	grep -q '^avg_batch' "$R/runs/wced-1/scores.tsv"
	run -0 pipelines -j2 THREADS=2 bmfm-learnability SCALE=tiny SEEDS=1 BMFM_ARMS="wced value"
	assert_line "  sctrain-value-1"
	refute_line "  sctrain-wced-1"
	assert_line --regexp '^wced +-?0\.[0-9]+ \[NA\]$'
	BIN=$BIN "$P/arm.sh" bmfm --inputs "$R/split-1" --arm wced --seed 1 --label cell_type --out hand --epochs 1 --batch 12 --min-expressed 10 --programs "$R/split-1/programs.tsv" > /dev/null
	diff "$R/runs/wced-1/scores.tsv" hand/scores.tsv
	# a network without pre-training is fine-tuned as the others are
	BIN=$BIN "$P/arm.sh" bmfm --inputs "$R/split-1" --arm untrained+tuned --seed 2 --label cell_type --out hand3 --epochs 6 --batch 12 --lr 0.008 --keep-models 1 > /dev/null
	awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $c["lr"] > most { most = $c["lr"] } END { exit !(most > .007 && $c["step"] > 60) }' hand3/tuned/train.tsv
	# the rarest third of the classes is that of the training cells, in all arms alike
	scpredict cells -q -M hand3/tuned "$R/split-1/test.tok" | ctaprobe score -q -l cell_type --train "$R/split-1/train.tok" -o tuned.tsv
	awk -F '\t' '$1 == "f1_rare"' tuned.tsv | diff - <(grep '^f1_rare' hand3/scores.tsv)
	run -2 "$P/arm.sh" bmfm --inputs "$R/split-1" --arm bert --seed 1 --label cell_type --out hand2
	assert_output --partial "unknown arm 'bert'"
	run -2 "$P/arm.sh" bmfm --inputs "$R/split-1" --arm wced+r2ame --seed 1 --label cell_type --out hand2
	assert_output --partial "unknown part '+r2ame' of arm 'wced+r2ame'"
	grep -q '^p_bh:m1' "$R/runs/wced-1/ungated.learned.tsv"
	run -2 pipelines combine DATA=no.h5ad
	assert_output --partial "DATA=no.h5ad: no such file"
	pipelines -j2 THREADS=2 bmfm-ontology SCALE=tiny SEEDS=1 LABELS=none.tsv BMFM_ARMS=wced+hce && fail "no such table"
	printf 'label\tterm\nbad\tCL:0\n' > none.tsv
	run -2 pipelines bmfm-ontology SCALE=tiny SEEDS=1 LABELS=none.tsv BMFM_ARMS=wced+hce
	assert_output --partial "no label of column 'cell_type' has a term"
}

@test "bmfm/zeroshot.py: seeds are averaged before sets are compared; measured sets against zeros" {
	rm -rf z && mkdir -p z/log
	local k arm
	scsim -q --cells 12 --genes 20 --modules 2 --types 2 --rarest 0.3 --donors 2 --seed 1 -o z/sim.counts
	for k in 1 2; do
		scsample -q --where "donor=donor$k" -o "z/set$k.counts" z/sim.counts
		scview -q -O h5ad -o "z/set$k.h5ad" "z/set$k.counts"
	done
	h5tok -q --sample-column set -o z/all.counts z/set1.h5ad z/set2.h5ad
	for k in 1-1 1-2 2-1 2-2; do
		mkdir -p "z/without-$k"
		scsample -q --where "set=set${k%-*}" -o "z/without-$k/test.counts" z/all.counts
		for arm in pca wced+hce wced-zeros+hce; do
			mkdir -p "z/runs/$arm-$k"
			awk -v OFS='\t' -v k="${k/-/ }" -v arm=$arm 'BEGIN { split(k, v, " "); base = arm == "pca" ? .4 : arm == "wced+hce" ? .6 : .5
				print "metric", "value"; print "leafprobe_accuracy", base + v[1] / 10 + v[2] / 100
				if (arm != "pca") print "head_accuracy", base * v[1] + v[2] / 100
				print "left_avg_bio_swept", base + v[1] / 100; print "probe_left_avg_bio_swept", .45 + v[1] / 50
				print "avg_batch", v[1] == 2 && v[2] == 1 && arm == "pca" ? "NA" : base }' > "z/runs/$arm-$k/scores.tsv"
		done
	done
	BIN=$BIN "$P/page/table.py" bmfm/zeroshot z "wced+hce wced-zeros+hce" "pca" "1-1 1-2 2-1 2-2" "" how > z/text
	run cat z/text
	assert_line --regexp '^method +set1 +set2 +mean$'
	# 2 sets: mean 1.5/10 + .015 over .4, and 12.706 * .0707 / sqrt 2 to each side
	assert_line --regexp '^pca, probe of leaves +0\.515 +0\.615 +0\.565 \[-0\.070, 1\.200\]$'
	assert_line --regexp '^wced\+hce, likeliest leaf +0\.615 +1\.215 +0\.915 \['
	assert_line --regexp '^pca +0\.400 +NA +'
	assert_line --regexp '^  wced\+hce, likeliest leaf - wced-zeros\+hce, likeliest leaf, accuracy: \+0\.150 \(-0\.485 to 0\.785\), p '
	# AvgBio of the left-out cells alone: an embedding, and the logits of the probe of it
	assert_line --regexp '^AvgBio of the terms, left-out cells alone'
	assert_line --regexp '^pca +0\.410 +0\.420 +0\.415 \['
	assert_line --regexp '^pca, probe +0\.470 +0\.490 +0\.480 \['
	assert_line --regexp '^  wced\+hce - pca, probe, left_avg_bio_swept: \+0\.135 \(0\.071 to 0\.199\), p '
	assert_line --regexp '^  pca, probe - pca, left_avg_bio_swept: \+0\.065 '
	$PYTHON - <<-'END'
		import csv
		d = {(r["metric"], r["arm"], r["reference"]): r for r in csv.DictReader(open("z/differences.tsv"), delimiter="\t")}
		r = d["accuracy", "wced+hce, likeliest leaf", "pca, probe of leaves"]
		assert r["n"] == "2" and abs(float(r["difference"]) - .35) < 1e-9, r    # .1 and .6: two sets, not four runs
		assert ("avg_batch", "wced+hce", "wced-zeros+hce") in d and ("accuracy", "wced-zeros+hce, probe of leaves", "pca, probe of leaves") in d
	END
}

# bats test_tags=slow
@test "make bmfm-zeroshot: a set is left out, whose genes were not all measured; both decodings and the integration of sets" {
	run -0 pipelines -j2 THREADS=2 bmfm-zeroshot SCALE=tiny SEEDS=1 LEFT_OUT=3 GENES=200 BMFM_ARMS="wced+hce wced-zeros+hce wced+set-reverse"
	assert_line --regexp '^method +set3 +mean$'
	assert_line --regexp '^wced\+hce, from the top down +0\.[0-9]+'
	assert_line --regexp '^pca-shared +0\.[0-9]+'
	assert_line "One set was left out: nothing can be said about others."
	R=results/bmfm-zeroshot/latest
	assert_equal "$(scview -q -c set $R/without-3-1/train.counts | sort | uniq -c | awk '$2 != "set" { print $2, $1 }' | paste -sd ' ')" "set1 100 set2 100 set4 100"
	assert_equal "$(scview -q -c set $R/without-3-1/test.tok | sort -u | paste -sd ' ')" "set set3"
	# every set after the first lacks another quarter of the genes; those of all files are the last quarter
	assert_equal "$(h5tok -q $R/set3.h5ad | scview -q -s | awk '$2 == "vocabulary" { print $3 }')" 225
	assert_equal "$(scview -q -s $R/shared.counts | awk '$2 == "vocabulary" { print $3 }')" 75
	cmp <(scview -q --vocab $R/without-3-1/train.counts) <(scview -q --vocab $R/without-3-1/test.counts)
	# where a set did not measure genes, zeros are another training
	cmp -s $R/runs/wced+hce-3-1/train.tsv $R/runs/wced-zeros+hce-3-1/train.tsv && fail "panels change nothing"
	grep -q '^greedy_hierarchical_f1' $R/runs/wced+hce-3-1/scores.tsv
	# the left-out cells alone: embeddings, and the logits of probes and of the head
	assert_equal "$(grep -o '.*left_avg_bio' $R/runs/wced+hce-3-1/scores.tsv | paste -sd ' ')" "left_avg_bio probe_left_avg_bio leafprobe_left_avg_bio head_left_avg_bio"
	assert_equal "$(grep -o '.*left_avg_bio' $R/runs/expression-3-1/scores.tsv | paste -sd ' ')" "probe_left_avg_bio leafprobe_left_avg_bio"
	for k in train test; do screduce pca -q -k 50 --train $R/without-3-1/shared-train.counts -o $k.emb $R/without-3-1/shared-$k.counts; done
	ctaprobe cells -q -l term --train train.emb --test test.emb --predictions test.pred -o probe.tsv
	for k in emb: pred:probe_; do
		scmetric integration -q --preset bmfm -l term -o left.tsv "test.${k%:*}"
		assert_equal "$(grep "^${k#*:}left_avg_bio_swept" $R/runs/pca-shared-3-1/scores.tsv | cut -f 2)" "$(grep ^avg_bio_swept left.tsv | cut -f 2)"
	done
	# a reversed head is trained, and predicts no terms
	head -n 1 $R/runs/wced+set-reverse-3-1/train.tsv | grep -q 'loss[.]set'
	grep -q ^avg_batch $R/runs/wced+set-reverse-3-1/scores.tsv
	run ! grep ^head_ $R/runs/wced+set-reverse-3-1/scores.tsv
	assert_file_not_empty $R/report.html
	cp $R/set1.h5ad one.h5ad
	run -2 pipelines bmfm-zeroshot SCALE=tiny SEEDS=1 DATA=one.h5ad LEFT_OUT=1
	assert_output --partial "one set of cells: expected several files"
}

#!/usr/bin/env bats
# make table6: its arithmetic against scipy, small grids of it, and the same on a machine that has only the inputs

load helper

setup_file() {
	# one small grid: simulated cells
	cd "$BATS_FILE_TMPDIR"
	table6 > first.txt 2> first.err
	echo results/table6/"$(readlink results/table6/latest)" > run
	echo results/table6-inputs/"$(readlink results/table6-inputs/latest)" > inputs
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
	R=$(cat run)
	I=$(cat inputs)
}

table6() { pipelines THREADS=2 table6 SCALE=tiny STRATEGIES="random pmi-rand corrmask" SIZES="100 1" SEEDS="1 2" DEVICE=cpu "$@"; }

# hand_model NAME: NAME.model as that of the run corrmask-1-2
hand_model() {
	local overlap=$(($(cat $I/corpus-1.cells) / 20))          # of fewer than 200 cells it would be 10
	[ $overlap -gt 10 ]
	depgraph -q --min-overlap $overlap $I/corpus-1.tok -o "$1".graph
	maskgen --strategy corrmask --lambda 0.5 -g "$1".graph --rate 0.15 --seed 2 -u $I/corpus-1.tok |
		sctrain mlm -q --config tiny --lr 0.003 --seed 2 --device cpu -o "$1".model
}

@test "table6/table.py: means, standard deviations, paired gaps and p equal scipy's, with seeds and values missing" {
	$PYTHON - <<-'END'
		import os, random
		random.seed(5)
		os.makedirs("in"), os.makedirs("made/log")
		for z, n in ("50", 50), ("0.5", 400), ("1", 800):
		    open(f"in/corpus-{z}.cells", "w").write(f"{n}\n")
		open("in/about", "w").write("some.h5ad: 800 cells to train, 200 held out\n")
		own = random.Random(4)
		for b in "expression", "pca":           # what ctaprobe --bootstrap writes; F1 of the rarest has no interval
		    with open(f"in/{b}.tsv", "w") as f:
		        f.write("metric\tvalue\n")
		        for m in "accuracy", "macro_f1":
		            low, v, high = sorted(own.random() for _ in range(3))
		            f.write(f"{m}\t{v}\n{m}_low\t{low}\n{m}_high\t{high}\n")
		        f.write("f1_rare\t" + ("nan" if b == "pca" else repr(own.random())) + f"\nbootstrap_units\t6\ncells\t200\nconverged\t{int(b == 'pca')}\n")
		for k in 1, 2, 3, 7:
		    for s, z in [("scratch", "0")] + [(s, z) for s in ("random", "pmi-rand", "corrmask") for z in ("50", "0.5", "1")]:
		        if (s, z, k) in (("random", "0.5", 2), ("pmi-rand", "50", 1), ("corrmask", "1", 7)) or s == "pmi-rand" and z == "1" and k != 3:
		            continue                    # not run
		        os.makedirs(f"made/runs/{s}-{z}-{k}")
		        with open(f"made/runs/{s}-{z}-{k}/scores.tsv", "w") as f:
		            for stage in ("finetune", "probe"):
		                for m in "accuracy", "macro_f1", "f1_rare":
		                    v = "nan" if (s, z, k, m, stage) == ("corrmask", "0.5", 1, "f1_rare", "probe") else repr(random.random())
		                    f.write(f"{stage}\t{m}\t{v}\n")
		                for c, n, t in ("B cell: naive", 20, 70), ("T", 40, 300), ("gone", 0, 9), ("NK", 5, 70), ("pDC", 1, 4):
		                    f1 = "nan" if (s, z, c) == ("pmi-rand", "1", "NK") else random.random() if n else 0
		                    f.write(f"{stage}\tf1:{c}\t{f1}\n{stage}\tn:{c}\t{n}\n{stage}\ttrain_n:{c}\t{t}\n")
	END
	$P/page/table.py table6/table made in "random pmi-rand corrmask" "50 0.5 1" "1 2 3 7" "label cell_type; tiny, 3 epochs" > table
	grep -q '; in brackets the 95 % interval, bootstrap of 6 groups$' table
	run -0 $PYTHON -W ignore - <<-'END'
		import os, re
		import numpy as np
		from scipy.optimize import brentq
		from scipy.stats import nct, t, ttest_rel
		def detectable(n):              # in standard deviations
		    c = t.ppf(0.975, n - 1)
		    return brentq(lambda d: nct.sf(c, n - 1, d * n ** 0.5) + nct.sf(c, n - 1, -d * n ** 0.5) - 0.8, 0.01, 20)
		strategies, sizes, seeds = ["random", "pmi-rand", "corrmask"], {"50": 50, "0.5": 400, "1": 800}, [1, 2, 3, 7]
		def score(s, z, k, stage, metric):
		    f = f"made/runs/{s}-{z}-{k}/scores.tsv"
		    for l in open(f) if os.path.exists(f) else ():
		        a, m, v = l.rstrip("\n").split("\t")
		        if (a, m) == (stage, metric):
		            return float(v)
		    return np.nan
		def table(name):
		    lines = [l.rstrip("\n").split("\t") for l in open(name)]
		    return {(r["stage"], r["metric"], r["arm"], int(r["cells"])): r for r in (dict(zip(lines[0], l)) for l in lines[1:])}
		points, differences = table("made/summary.tsv"), table("made/differences.tsv")
		blocks = {b.split("\n")[0]: b.split("\n")[1:] for b in open("table").read().split("\n\n")}
		titles = {("finetune", "macro_f1"): "Macro F1 after fine-tuning (the paper's measure)", ("finetune", "accuracy"): "Accuracy after fine-tuning",
		          ("finetune", "f1_rare"): "F1 of the rarest third of the classes after fine-tuning",
		          ("probe", "macro_f1"): "Macro F1 of a linear probe, no fine-tuning", ("probe", "accuracy"): "Accuracy of the probe",
		          ("probe", "f1_rare"): "F1 of the rarest third of the classes, probe"}
		cell = r"-(?= |$)|[-+.\d]+(?: \((?:sd )?[-+.\d]+(?: to [-+.\d]+)?\))?(?: \[\d\])?"
		holm, most = {}, 0
		for i, k in enumerate(sorted((k for k in differences if differences[k]["p"] != "NA"), key=lambda k: float(differences[k]["p"]))):
		    holm[k] = most = max(most, min(1, float(differences[k]["p"]) * (sum(r["p"] != "NA" for r in differences.values()) - i)))
		seen = few = rows_own = 0
		def same(got, want, tolerance=1e-5):
		    assert (got == "NA") if np.isnan(want) else abs(float(got) - want) <= tolerance * max(1, abs(want)), (got, want)
		for (stage, metric), title in titles.items():
		    lines = blocks[title]
		    # rows without a network: above those of the probes, and nowhere else
		    own = [l for l in lines if l.split()[0] in ("expression", "pca")]
		    lines = [l for l in lines if l not in own]
		    want = []
		    for b, what in ("expression", "log-normalised expression, no network; did not converge"), ("pca", "50 principal components, no network"):
		        v = dict(l.rstrip("\n").split("\t") for l in open(f"in/{b}.tsv"))
		        if stage == "probe" and v[metric] != "nan":
		            low = f"{metric}_low" in v
		            want.append([b, f"{float(v[metric]):.3f}" + (f" ({float(v[metric + '_low']):.3f} to {float(v[metric + '_high']):.3f})" if low else ""), f"({what})"])
		    assert [re.split("  +", l) for l in own] == want, (own, want)
		    assert own == blocks[title][1:1 + len(own)]
		    rows_own += len(own)
		    assert re.findall(r"\d+ cells", lines[0]) == ["50 cells", "400 cells", "800 cells"]
		    cut = lines.index("  gap to random, 95 % interval")
		    means = {l.split()[0]: re.findall(cell, l[14:]) for l in lines[1:cut]}
		    middle = lines.index("  p; p, Holm")
		    p_lines = {l.split()[0]: l[14:] for l in lines[middle + 1:middle + len(strategies)]}
		    end = lines.index("  smallest gap that this many seeds find in 80 % of experiments")
		    gaps = {l.split()[0]: re.findall(cell, l[14:]) for l in lines[cut + 1:middle]}
		    found = {l.split()[0]: l[14:].split() for l in lines[end + 1:end + len(strategies)]}
		    assert list(gaps) == strategies[1:] and list(means) == ["scratch"] + strategies, (means, gaps)
		    for s, row in means.items():
		        for i, (z, n) in enumerate({"0": 0}.items() if s == "scratch" else sizes.items()):
		            v = np.array([score(s, z, k, stage, metric) for k in seeds])
		            b = np.array([score("random", z, k, stage, metric) for k in seeds])
		            there, both = v[~np.isnan(v)], ~np.isnan(v) & ~np.isnan(b)
		            got = points[stage, metric, s, n]
		            sd = there.std(ddof=1) if len(there) > 1 else np.nan
		            assert int(got["n"]) == len(there)
		            same(got["mean"], there.mean() if len(there) else np.nan), same(got["sd"], sd)
		            want = f"{there.mean():.3f} (sd " + ("-" if np.isnan(sd) else f"{sd:.3f}") + ")" + (f" [{len(there)}]" if len(there) < 4 else "")
		            assert row[i] == want, (s, z, row, want)
		            few += len(there) < 4
		            got = differences.get((stage, metric, s, n))
		            if s not in gaps:
		                assert got is None, (s, got)
		            else:
		                d, m = (v - b)[both], both.sum()
		                p = ttest_rel(v[both], b[both])[1] if m > 1 else np.nan
		                assert int(got["n"]) == m
		                same(got["difference"], d.mean() if m else np.nan), same(got["sd"], d.std(ddof=1) if m > 1 else np.nan)
		                same(got["p"], p)
		                want = detectable(m) * d.std(ddof=1) if m > 1 else np.nan
		                same(got["detectable"], want)
		                assert found[s][i] == ("-" if m < 2 else f"{want:.3f}"), (found, s, want)
		                if m > 1:
		                    same(got["p_corrected"], holm[stage, metric, s, n])
		                    half = t.ppf(0.975, m - 1) * d.std(ddof=1) / m ** 0.5
		                    assert gaps[s][i].startswith(f"{d.mean():+.3f} ({d.mean() - half:+.3f} to {d.mean() + half:+.3f})"), (gaps[s], d)
		                    assert p_lines[s][31 * i:31 * i + 31].split("; ") == [f"{p:.2g}".rjust(31 - 2 - len("%.2g" % float(got["p_corrected"]))), "%.2g" % float(got["p_corrected"])], p_lines
		                elif m:
		                    assert gaps[s][i].startswith(f"{d.mean():+.3f} ["), gaps[s]
		                assert gaps[s][i].endswith(f"[{m}]") == (0 < m < 4), (gaps[s][i], m)
		            seen += 1
		assert seen == 6 * (1 + 9) and few > 10 and rows_own == 5, (seen, few, rows_own)
		# figure 5: how many cells random needs for the same mean
		lines = blocks[titles["finetune", "macro_f1"]]
		at = next(i for i, l in enumerate(lines) if l.startswith("  times the cells"))
		n = np.array([50, 400, 800])
		base = np.array([float(points["finetune", "macro_f1", "random", k]["mean"]) for k in n])
		told = set()
		for line in lines[at + 1:]:
		    s, rest = line.split(maxsplit=1)
		    for k, got in zip(n, re.split("  +", rest.strip())):
		        want = float(points["finetune", "macro_f1", s, k]["mean"])
		        up = [(a, b) for a, b in zip(range(2), range(1, 3)) if base[a] <= want <= base[b]]
		        if up:
		            a, b = up[0]
		            x = np.exp(np.interp(want, base[[a, b]], np.log(n[[a, b]]))) / k
		            assert got == f"{x:.2f}", (line, x)
		        else:
		            x = f"> {800 / k:.2f}" if want > base.max() else f"< {50 / k:.2f}" if want < base.min() else "-"
		            assert got == x, (line, x)
		        told.add(x[0] if type(x) is str else "")
		assert told == {"", "<", ">", "-"}, lines
		# figure 6: cumulative means over the tested classes, the rarest in training first
		rare = [l.rstrip("\n").split("\t") for l in open("made/rare.tsv")]
		assert rare[0] == ["classes", "cells", "class", "random", "pmi-rand"]
		order = [("pDC", 4), ("B cell: naive", 70), ("NK", 70), ("T", 300)]
		assert [(r[2], int(r[1])) for r in rare[1:]] == order
		f1 = {s: np.array([np.nanmean([score(s, "1", k, "finetune", f"f1:{c}") for k in seeds]) for c, _ in order]) for s in strategies}
		for i, r in enumerate(rare[1:]):
		    assert int(r[0]) == i + 1
		    same(r[3], (f1["corrmask"] - f1["random"])[:i + 1].mean())
		    same(r[4], (f1["corrmask"] - f1["pmi-rand"])[:i + 1].mean())
	END
	assert_output ""
	# without corrmask, the last strategy is compared; as many draws as cells
	mkdir other
	sed 's/^bootstrap_units.*/bootstrap_units\t200/' in/pca.tsv > other/pca.tsv
	cp in/about in/*.cells other
	$P/page/table.py table6/table made other "random pmi-rand" "50 0.5 1" "1 2 3 7" "" | grep -q '; in brackets the 95 % interval, bootstrap of 200 cells$'
	assert_equal "$(head -1 made/rare.tsv | tr '\t' ' ')" "classes cells class random"
	# the inputs of an older version: the same table without these rows
	rm in/expression.tsv in/pca.tsv
	$P/page/table.py table6/table made in "random pmi-rand corrmask" "50 0.5 1" "1 2 3 7" "label cell_type; tiny, 3 epochs" > without
	diff <(grep -vE '^(expression|pca)' table) without
}

@test "make table6: every number of the table follows from the scores; corpora lie within each other; models are gone" {
	run cat first.err
	refute_output --partial rror
	grep -q '^  pretrain-corrmask-1-2$' first.txt
	$PYTHON - <<-'END'
		import re, statistics
		def score(s, z, k, stage):
		    return {l.split("\t")[0]: float(l.split("\t")[1]) for l in list(open(f"results/table6/latest/runs/{s}-{z}-{k}/{stage}.score.tsv"))[1:]}["macro_f1"]
		lines = open("first.txt").read()
		for stage, title in ("finetune", "Macro F1 after fine-tuning"), ("probe", "Macro F1 of a linear probe"):
		    block = lines[lines.index(title):].split("\n\n")[0]
		    for s in "random", "pmi-rand", "corrmask":
		        v = {z: [score(s, z, k, stage) for k in (1, 2)] for z in ("100", "1")}
		        want = [f"{statistics.mean(x):.3f} (sd {statistics.stdev(x):.3f})" for x in v.values()]
		        got = re.search(f"^{s} +(.*)$", block, re.M).group(1)
		        assert re.split("  +", got) == want, (got, want)
		        d = [statistics.mean(a - b for a, b in zip(v[z], [score("random", z, k, stage) for k in (1, 2)])) for z in v]
		        if s != "random":
		            assert [float(x.split()[0]) for x in re.split("  +", re.search(f"^  {s} +(.*)$", block, re.M).group(1))] == [round(x, 3) + 0 for x in d], (block, d)
	END
	for z in 100 1; do scview -c cell $I/corpus-$z.tok | tail -n +2 | sort > cells.$z; done
	run -0 wc -l < cells.100
	assert_output --partial 100
	run -0 comm -23 cells.100 cells.1
	assert_output ""
	[ "$(cat $I/corpus-1.cells)" = "$(wc -l < cells.1)" ]
	# nothing of the corpora is among the held-out cells
	scview -c cell $I/test.tok | tail -n +2 | sort > held
	run -0 comm -12 cells.1 held
	assert_output ""
	run find results/table6 -name '*.safetensors' -o -name '*.emb'
	assert_output ""
	assert_file_not_empty $R/table6.svg
}

@test "make table6: a run is maskgen, sctrain, scembed and ctaprobe as by hand" {
	hand_model hand
	diff <(cut -f 1-4 hand.model/train.tsv) <(cut -f 1-4 $R/runs/corrmask-1-2/pretrain.tsv)
	for part in learn test; do scembed -q -M hand.model --device cpu -o $part.emb $I/$part.tok; done
	ctaprobe cells -q -l cell_type --train learn.emb --test test.emb | diff - $R/runs/corrmask-1-2/probe.score.tsv
	maskgen --strategy none --keep cell_type --epochs 3 --seed 2 -u $I/train.tok |
		sctrain cells -q --label cell_type --init hand.model --lr 1e-3 --eval $I/valid.masked --patience 3 --seed 2 --device cpu -o hand.cells
	scpredict cells -q -M hand.cells --device cpu -u $I/test.tok | ctaprobe score -q -l cell_type --train $I/train.tok |
		diff - $R/runs/corrmask-1-2/finetune.score.tsv
	maskgen --strategy none --keep cell_type --epochs 3 --seed 1 -u $I/train.tok |
		sctrain cells -q --label cell_type --config tiny --lr 1e-3 --eval $I/valid.masked --patience 3 --seed 1 --device cpu -o hand.scratch
	diff <(cut -f 1-4 hand.scratch/train.tsv) <(cut -f 1-4 $R/runs/scratch-0-1/finetune.tsv)
	# without a network; the held-out cells are of few donors, so they are drawn one by one
	counts=results/prepared/latest
	embed_expression=(expression) embed_pca=(pca -k 50)
	for b in expression pca; do
		declare -n how=embed_$b
		for part in train test; do screduce "${how[@]}" -q --train $counts/train.counts -o hand.$part.emb $counts/$part.counts; done
		ctaprobe cells -q -l cell_type --bootstrap 1000 --train hand.train.emb --test hand.test.emb | diff - $I/$b.tsv
		line=$(awk -F '\t' '{ v[$1] = $2 } END { printf "%s +%.3f \\(%.3f to %.3f\\) ", b, v["macro_f1"], v["macro_f1_low"], v["macro_f1_high"] }' b=$b $I/$b.tsv)
		[ "$(grep -cE "^$line" first.txt)" = 1 ]
	done
	ctaprobe cells -q -l cell_type --naive-bayes --bootstrap 1000 --train $counts/train.counts --test $counts/test.counts | diff - $I/naive-bayes.tsv
	line=$(awk -F '\t' '{ v[$1] = $2 } END { printf "naive-bayes +%.3f \\(%.3f to %.3f\\) ", v["macro_f1"], v["macro_f1_low"], v["macro_f1_high"] }' $I/naive-bayes.tsv)
	[ "$(grep -cE "^$line" first.txt)" = 1 ]
	run ls $I
	refute_output --partial .emb
	# pmi-rand follows the other graph
	maskgen --strategy pmi-rand -g $I/pmi-100.graph --rate 0.15 --seed 1 -u $I/corpus-100.tok |
		sctrain mlm -q --config tiny --lr 0.003 --seed 1 --device cpu -o hand.pmi
	diff <(cut -f 1-4 hand.pmi/train.tsv) <(cut -f 1-4 $R/runs/pmi-rand-100-1/pretrain.tsv)
}

@test "bootstrap.sh: an interval over donors, over cells if there are few donors; nothing is left when a tool fails" {
	export BIN
	scsim -q --cells 300 --donors 30 --seed 4 -o all.counts
	for part in train test; do
		scsample -q --test-fraction 0.3 --group donor --part $part --seed 1 -o $part.counts all.counts
		screduce pca -q -k 50 --train train.counts -o base.$part.emb $part.counts
	done
	echo donor > by
	: > nothing
	mkdir base
	score() { $P/bootstrap.sh cells "$1" "$2" base.train.emb base.test.emb "base/$3.tsv"; }
	score by cell_type donors 2> log
	score nothing cell_type cells 2>> log
	donors=$(scview -c donor test.counts | tail -n +2 | sort -u | wc -l)
	[ "$donors" -ge 5 ]
	run grep -P "^bootstrap_units\t$donors$" base/donors.tsv
	assert_success
	run grep -P "^bootstrap_units\t$(scview test.counts -c cell | tail -n +2 | wc -l)$" base/cells.tsv
	assert_success
	# the intervals alone differ
	diff <(grep -vE '_(low|high)|units' base/donors.tsv) <(grep -vE '_(low|high)|units' base/cells.tsv)
	run ! cmp -s base/donors.tsv base/cells.tsv
	run ! score by no_such_column wrong
	assert_output --partial "no_such_column"
	run ls base
	assert_output $'cells.replicates\ncells.roc.tsv\ncells.tsv\ndonors.replicates\ndonors.roc.tsv\ndonors.tsv'
}

@test "arm.sh table6: a run by hand gives the scores of make; wrong arguments are refused; a tool that fails leaves no scores" {
	export BIN
	args=(--inputs "$I" --arm corrmask --size 1 --seed 2 --epochs 1 --ft-epochs 3 --device cpu)
	run -0 $P/arm.sh table6 "${args[@]}" --out byhand --threads 2
	assert_line "  finetune-corrmask-1-2"
	cmp byhand/scores.tsv $R/runs/corrmask-1-2/scores.tsv
	assert_not_exist byhand/model
	assert_file_not_empty byhand/log/pretrain-corrmask-1-2.log
	run -2 $P/arm.sh table6
	assert_output --partial "arm.sh EXPERIMENT --inputs FOLDER --arm ARM"
	run -2 $P/arm.sh genes --inputs x
	run -2 $P/arm.sh table6 "${args[@]}" --out byhand --rounds 3
	run -2 $P/arm.sh table6 "${args[@]}" --out
	run -2 $P/arm.sh table6 "${args[@]}" --arm mpi --out byhand
	assert_output --partial "unknown arm 'mpi'"
	# the left side of each pipe
	mkdir broken
	for t in maskgen sctrain scembed scpredict ctaprobe; do ln -s "$(realpath "$BIN/$t")" broken/; done
	for t in maskgen scpredict; do
		mv broken/$t broken/whole
		printf '#!/bin/sh\ncase "$*" in *" -u "*) "%s" "$@"; echo "%s: broken" >&2; exit 1 ;; esac\nexec "%s" "$@"\n' broken/whole $t broken/whole > broken/$t
		chmod +x broken/$t
		BIN=broken run -1 $P/arm.sh table6 "${args[@]}" --out broken/$t.out
		assert_output --partial "$t: broken"
		assert_not_exist broken/$t.out/scores.tsv
		rm broken/$t
		mv broken/whole broken/$t
	done
}

# bats test_tags=slow
@test "make table6: a second run makes nothing, a lost run is made again, more seeds are added, an interrupted run goes on" {
	tail -n +"$(grep -n '^corrmask table 6' first.txt | cut -d : -f 1)" first.txt > was
	run -0 table6
	assert_output "$(cat was)"
	# cells that are prepared again do not undo it
	rm results/prepared/latest/train.tok
	run -0 table6
	refute_line --regexp '^  (pretrain|finetune|depgraph)'
	cp $R/runs/random-100-1/finetune.score.tsv score
	rm -r $R/runs/random-100-1
	run -0 table6
	assert_line "  pretrain-random-100-1"
	refute_line "  pretrain-random-100-2"
	cmp score $R/runs/random-100-1/finetune.score.tsv
	# a pre-trained model without scores is taken as it is
	rm $R/runs/corrmask-1-2/scores.tsv
	hand_model taken
	cp -r taken.model $R/runs/corrmask-1-2/model
	cp $R/runs/corrmask-1-2/pretrain.tsv curve
	run -0 table6
	assert_line "  finetune-corrmask-1-2"
	run ! cmp -s curve $R/runs/corrmask-1-2/pretrain.tsv             # the seconds are those of taken.model
	run -0 table6 SEEDS="1 2 3" STRATEGIES=random
	assert_line "  pretrain-random-100-3"
	refute_line --regexp '^  pretrain-.*-[12]$'
	assert_line --regexp '^mean .* over seeds \(1 2 3\)'
	refute_line --regexp "^pmi-rand +[0-9.]+ \(sd [0-9.]+\) +[0-9.]+ \(sd [0-9.]+\)$"
}

@test "make table6: the control's graph has the genes with partners of CorrMask's in other places, and its network their masks" {
	genes() { scview -c token,neighbour $I/$1-1.graph | awk -F '\t' 'NR > 1 && $2 != "" { print $1 }'; }
	diff <(genes corrmask) <(genes shuffled)
	run ! cmp -s <(scview $I/corrmask-1.graph) <(scview $I/shuffled-1.graph)
	run -0 table6 STRATEGIES="random shuffled" SIZES=1 SEEDS=2
	assert_line "  pretrain-shuffled-1-2"
	maskgen --strategy corrmask --lambda 0.5 -g $I/shuffled-1.graph --rate 0.15 --seed 2 -u $I/corpus-1.tok |
		sctrain mlm -q --config tiny --lr 0.003 --seed 2 --device cpu -o shuffled.model
	diff <(cut -f1-3 shuffled.model/train.tsv) <(cut -f1-3 $R/runs/shuffled-1-2/pretrain.tsv)
}

@test "make table6: wrong sizes and strategies are told" {
	run ! table6 SIZES="100000 1"
	assert_output --regexp 'table6: 100000 cells requested, but there are only [0-9]+ training cells'
	run ! table6 STRATEGIES="random mpi"
	assert_output --partial "STRATEGIES: unknown arm 'mpi' (expected random, bernoulli, "
	[ -e $R/runs/random-1-1/scores.tsv ]
}

# G FOLDER...: gpu_experiments.sh with the grid's settings and its tools only
G() {
	mkdir -p few
	for t in maskgen sctrain scembed scpredict ctaprobe armstat; do ln -sf "$(realpath "$BIN/$t")" few/; done
	BIN=$PWD/few "$BATS_TEST_DIRNAME/bench/gpu_experiments.sh" "$@" SCALE=tiny STRATEGIES="random corrmask" SIZES="100 1" SEEDS="1 2" DEVICE=cpu
}

# bats test_tags=slow
@test "make fig7: the same runs with other lambdas; corrmask-N masks as maskgen --lambda N/100 does" {
	run -0 pipelines THREADS=2 fig7 SCALE=tiny SEEDS=1
	refute_line "  pretrain-random-1-1"
	assert_line "  pretrain-corrmask-25-1-1"
	assert_file_not_empty $R/fig7.svg
	maskgen -q --strategy corrmask --lambda 0.25 -g $I/corrmask-1.graph --rate 0.15 --batch 12 --epochs 1 --seed 1 -u $I/corpus-1.tok |
		sctrain mlm -q --config tiny --lr 0.003 --seed 1 -o lambda.model
	cmp <(cut -f 1-4 lambda.model/train.tsv) <(cut -f 1-4 $R/runs/corrmask-25-1-1/pretrain.tsv)
	run ! table6 STRATEGIES="random corrmask-101"
	assert_output --partial "unknown arm 'corrmask-101'"
}

# bats test_tags=slow
@test "make table7: the corpus is that of CORPUS, the vocabulary too; the paper's protocol" {
	run ! pipelines table7 SCALE=tiny
	assert_output --partial "table7: CORPUS=FILE is needed"
	run ! pipelines table7 CORPUS=none.h5ad
	assert_output --partial "CORPUS=none.h5ad: no such file or folder"
	scsim -q --cells 150 --seed 8 | scview -q -O h5ad - -o "other tissue.h5ad"
	run -0 pipelines THREADS=2 table7 SCALE=tiny SEEDS=1 PROTOCOL=paper FT_EPOCHS=2 CORPUS="other tissue.h5ad"
	assert_line "  h5tok-corpus"
	assert_line --regexp '^ +150 cells$'
	assert_line --partial "rate 1e-3, --best last"
	own=results/table6-inputs/$(readlink results/table6-inputs/latest)
	h5tok -q "other tissue.h5ad" | rankenc -q --fit -o corpus.vocab
	h5tok -q "other tissue.h5ad" | rankenc -q -m corpus.vocab --max-len 64 -o corpus.tok
	diff <(scview corpus.tok) <(scview $own/corpus-1.tok)
	diff <(scview --vocab corpus.tok) <(scview --vocab $own/learn.tok)
	run grep -E '^(CORPUS|MIN_CLASS) = ' $own/settings
	assert_line "MIN_CLASS = 0.05"
	assert_line --partial "/other tissue.h5ad ("
	# no class has less than a twentieth of the cells
	scview -s results/prepared/latest/cells.counts | awk -F '\t' '$1 == "cell_type" && $2 ~ /^=/ && $3 > 0 { print $3 < 0.05 * 300 }' | sort | uniq -c >kept
	run -0 awk '{ print $2 }' kept
	assert_output 0
	# Geneformer's tables are taken for all cells
	run -0 pipelines THREADS=2 table6-inputs SCALE=tiny SIZES=1 MEDIANS=corpus.vocab
	refute_line "  rankenc-fit"
	diff <(scview --vocab corpus.tok) <(scview --vocab results/table6-inputs/latest/learn.tok)
}

# bats test_tags=slow
@test "gpu_experiments.sh: two shares from the inputs alone, on a machine with few tools, come to the same scores" {
	here=$PWD
	for part in 0 1; do cp -r $I there$part; done
	run -0 G -s 0/2 -j 2 -o $here/out0 $here/there0
	assert_line "  pretrain-random-100-1"
	refute_line --regexp "^  .*-2$"
	assert_line --partial "5 of 10 runs done, 5 of them asked for now"
	assert_line --regexp '^== training: [0-9]+ s$'
	assert_line --regexp '^random .* \(sd -\) \[1\]'
	[ "$(tar -tzf out0/runs.tar.gz | grep -cE 'safetensors|\.emb$')" = 0 ]
	# another machine, which gets the first part's runs and does the rest
	run -0 G -j 2 -b $here/out0/runs.tar.gz -o $here/out1 $here/there1
	refute_line --regexp "^  (pretrain|finetune)-.*-1$"
	assert_line --partial "10 of 10 runs done"
	for run in random-100-1 corrmask-1-2 scratch-0-2; do
		cmp $R/runs/$run/scores.tsv there1/$R/runs/$run/scores.tsv
		tar -xOzf out1/runs.tar.gz "$(basename $R)"/runs/$run/scores.tsv | cmp - $R/runs/$run/scores.tsv
	done
	for f in table.txt points.tsv table6.svg; do assert_file_not_empty out1/$f; done
	# the baselines came with the inputs
	diff <(grep -E '^(expression|pca) ' first.txt) <(grep -E '^(expression|pca) ' out1/table.txt)
	[ "$(grep -cE '^(expression|pca) ' out1/table.txt)" = 6 ]
	# at home again: nothing is left to do
	mkdir -p home/table6
	tar -xzmf out1/runs.tar.gz -C home/table6
	run -0 pipelines THREADS=2 table6 RESULTS=home INPUTS=$I SCALE=tiny STRATEGIES="random corrmask" SIZES="100 1" SEEDS="1 2"
	refute_line --regexp '^  (pretrain|finetune)'
	diff <(grep "(sd" out1/table.txt) <(printf '%s\n' "$output" | grep "(sd")
	# time that is up at once, however many runs a fast machine ends by then
	for part in 2 3; do cp -r $I there$part; done
	run -0 G -t 1 -j 1 -o $here/out2 $here/there2
	assert_line --partial "time is up"
	assert_line --regexp "^gpu_experiments.sh: [0-9] of 10 runs done, 10 of them asked for now"
	# nothing to draw yet
	run -0 G -s 0/10 -o $here/out3 $here/there3
	assert_line --partial "1 of 10 runs done, 1 of them asked for now"
	run -2 G -o $here/out3 $here/nothing
	assert_output --partial "expected a folder that make table6-inputs made"
}

@test "make table6: other settings have a folder of their own; what was there stays" {
	was=$(find $R -type f | wc -l)
	run -0 table6 STRATEGIES=random SIZES=100 SEEDS=1 FT_EPOCHS=1
	assert_line "  pretrain-random-100-1"
	refute_line "  depgraph-100"
	other=results/table6/$(readlink results/table6/latest)
	run ls $other/runs
	assert_output $'random-100-1\nscratch-0-1'
	[ "$(wc -l < $other/runs/random-100-1/finetune.tsv)" -lt 15 ]
	[ "$other" != "$R" ]
	assert_equal "$(find $R -type f | wc -l)" "$was"
	run cat $other/settings
	assert_line "FT_EPOCHS = 1"
	assert_line "CELLS = 300"
}

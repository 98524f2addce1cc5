#!/usr/bin/env bash
# table6/table.sh DIR INPUTS STRATEGIES SIZES SEEDS HOW: the table of make table6 from the scores under DIR/runs; runs without scores are
# left out. HOW is a line on the trainings.
# The figure draws DIR/summary.tsv (means of the networks), DIR/baselines.tsv (the values without a network) and DIR/rare.tsv (the gaps among
# the rarest classes). DIR/points.tsv has the value of each network, DIR/differences.tsv the gaps to the first strategy (armstat compare).
. "$(dirname "$0")/../tables.sh"
dir=$1 inputs=$2 strategies=$3 sizes=$4 seeds=$5 how=$6
base=${strategies%% *}
tab=$(printf '\t')

# strategy, size, seed, stage, metric, value
collect "$dir/runs" "scratch-0 $(for z in $sizes; do for s in $strategies; do echo "$s-$z"; done; done)" "$seeds" | sed 's/-\([^-\t]*\)\t/\t\1\t/' > "$dir/scores.tsv"

# name, metric, value, its interval (NA: none), whether the regression converged
baseline_names='' drawn=''
for name in expression pca naive-bayes; do
	f=$inputs/$name.tsv
	[ -e "$f" ] || continue
	baseline_names+=${baseline_names:+, }$name
	drawn=$(awk -F '\t' '{ v[$1] = $2 } END { n = v["bootstrap_units"]; print n, n < v["cells"] ? "groups" : "cells" }' "$f")
	awk -F '\t' -v name="$name" '
		function known(key) { return key in v && v[key] ~ /^[0-9.]/ ? v[key] : "NA" }
		{ v[$1] = $2 }
		END {
			n = split("macro_f1 accuracy f1_rare", metric, " ")
			for (i = 1; i <= n; i++)
				print name "\t" metric[i] "\t" known(metric[i]) "\t" known(metric[i] "_low") "\t" known(metric[i] "_high") "\t" known("converged")
		}' "$f"
done > "$dir/baselines.tsv.new"
whole "$dir/baselines.tsv"

cells() { cat "$inputs/corpus-$1.cells"; }
for stage in finetune probe; do
	for metric in macro_f1 accuracy f1_rare; do
		for z in 0 $sizes; do
			n=0
			[ "$z" = 0 ] || n=$(cells "$z")
			awk -F '\t' -v OFS='\t' -v z="$z" -v n="$n" -v stage=$stage -v metric=$metric '$2 == z && $4 == stage && $5 == metric { print stage, metric, n, $1, $3, $6 }' "$dir/scores.tsv"
		done
	done
done | sed '1i stage\tmetric\tcells\tstrategy\tseed\tvalue' > "$dir/points.tsv"
means --arm strategy --within stage,metric,cells "$dir/points.tsv" > "$dir/summary.tsv"
those_in "$dir/points.tsv" 4
for s in $strategies; do pair "$s" "$base"; done
differences --arm strategy --pair seed --within stage,metric,cells "$dir/points.tsv" > "$dir/differences.tsv"

# Of the largest corpus, fine-tuned: classes so far (the rarest first), training cells, class, then the gap of the mean F1 over these
# classes, of CorrMask or else the last strategy to each of the others
ours=corrmask
case " $strategies " in *" $ours "*) ;; *) ours=${strategies##* } ;; esac
last=${sizes##* }
others=" $strategies "
others=${others/ $ours / }
awk -F '\t' -v OFS='\t' -v last="$last" -v others="$others" -v ours="$ours" '
	$4 == "finetune" && $2 == last && $5 ~ /^(f1|n|train_n):/ && $6 ~ /^[0-9.]/ {
		i = index($5, ":"); what = substr($5, 1, i - 1); class = substr($5, i + 1)
		if (what == "n" && $6 > 0) tested[class]
		if (what == "train_n") train[class] = $6
		if (what == "f1") { sum[class, $1] += $6; n[class, $1]++ }
	}
	function mean(arm) { return sum[class, arm] / n[class, arm] }
	END {
		k = split(others, other, " ")
		for (class in tested) {
			line = train[class] OFS class
			for (i = 1; i <= k; i++) line = line OFS (n[class, other[i]] && n[class, ours] ? mean(ours) - mean(other[i]) : "NA")
			print line
		}
	}' "$dir/scores.tsv" | LC_ALL=C sort -t "$tab" -k1,1n -k2,2 | awk -F '\t' -v others="$others" "$tables"'
	BEGIN { k = split(others, other, " ") }
	{
		put(NR, "cells", $1)
		put(NR, "class", $2)
		for (i = 1; i <= k; i++) { bad[i] += $(i + 2) == "NA"; sum[i] += $(i + 2); put(NR, other[i], bad[i] ? "NA" : sum[i] / NR) }
	}
	END { table("classes") }' > "$dir/rare.tsv"

sed '1s/^/corrmask table 6: /' "$inputs/about"
echo "$how"
echo "mean (sd: standard deviation) over seeds ($seeds); gaps to $base are paired by seed, with the 95 % interval and the two-sided p of a t test; p, Holm: p"
echo "after a correction over all $(awk -F '\t' "$by_name"'$c["p"] != "NA" { n++ } END { print n + 0 }' "$dir/differences.tsv") gaps of this table; [n]: only n seeds are done"
[ -z "$baseline_names" ] || echo "$baseline_names: classifiers without a network, from all training cells; in brackets the 95 % interval, bootstrap of $drawn"
seed_n=$(echo "$seeds" | wc -w)
print_metric() {
	echo
	echo "$3"
	awk -F '\t' -v stage="$1" -v metric="$2" -v strategies="$strategies" -v base="$base" -v want="$seed_n" "$tables"'
		function few() { return $c["n"] < want ? sprintf(" [%d]", $c["n"]) : "" }
		function block(what, head, from,    i, j, line) {
			if (head != "") print "  " head
			for (i = from; i <= strategy_n; i++) {
				if (!(strategy[i] in any) || head != "" && strategy[i] == base) continue
				line = sprintf("%-14s", (head == "" ? "" : "  ") strategy[i])
				if (!i) line = line sprintf("%31s", text["scratch", 0, what]) "   (random weights, no pre-training)"
				else for (j = 1; j <= size_n; j++) line = line sprintf("%31s", (strategy[i], size[j], what) in text ? text[strategy[i], size[j], what] : "-")
				print line
			}
		}
		BEGIN {
			strategy_n = split(strategies, strategy, " ")
			strategy[0] = "scratch"
			'"$baselines"'
		}
		FILENAME ~ /baselines\.tsv$/ {
			if (stage == "probe" && $2 == metric && $3 != "NA")
				lines = lines sprintf("%-14s%31s   (%s, no network%s)\n", $1, sprintf("%.3f", $3) ($4 == "NA" ? "" : sprintf(" (%.3f to %.3f)", $4, $5)), name[$1], \
					$6 == 0 ? "; did not converge" : "")
			next
		}
		'"$by_name"'
		$c["stage"] != stage || $c["metric"] != metric || $c["n"] < 1 { next }
		{ k = $c["arm"] SUBSEP $c["cells"] SUBSEP }
		!("reference" in c) {
			any[$c["arm"]]
			if ($c["cells"] && !seen[$c["cells"]]++) size[++size_n] = $c["cells"]
			text[k "mean"] = sprintf("%.3f (sd %s)%s", $c["mean"], num($c["sd"], "%.3f"), few())
			next
		}
		{
			text[k "gap"] = num($c["difference"], "%+.3f") ($c["low"] == "NA" ? "" : " (" span("%+.3f") ")") few()
			text[k "p"] = $c["p"] == "NA" ? "-" : sprintf("%.2g; %.2g", $c["p"], $c["p_corrected"])
			text[k "power"] = num($c["detectable"], "%.3f")
		}
		END {
			printf "%-14s", ""
			for (j = 1; j <= size_n; j++) printf "%31s", size[j] " cells"
			printf "\n%s", lines
			block("mean", "", 0)
			if (strategy_n < 2) exit
			block("gap", "gap to " base ", 95 % interval", 1)
			block("p", "p; p, Holm", 1)
			block("power", "smallest gap that this many seeds find in 80 % of experiments", 1)
		}' "$dir/baselines.tsv" "$dir/summary.tsv" "$dir/differences.tsv"
}
print_metric finetune macro_f1 "Macro F1 after fine-tuning (the paper's measure)"
# How much more data the first strategy needs (the paper's figure 5): log cells are interpolated between its corpora
multiplier() {
	awk -F '\t' -v strategies="$strategies" -v base="$base" "$by_name"'
		$c["stage"] == "finetune" && $c["metric"] == "macro_f1" && $c["cells"] > 0 && $c["n"] > 0 {
			f1[$c["arm"], $c["cells"]] = $c["mean"]
			if (!seen[$c["cells"]]++)
				size[++size_n] = $c["cells"]
		}
		function needed(want,   i, a, b, low, high) {
			low = high = f1[base, size[1]]
			for (i = 1; i <= size_n; i++) {
				b = f1[base, size[i]]
				if (b < low) low = b
				if (b > high) high = b
				if (i > 1 && a <= want && want <= b && a < b)
					return sprintf("%.2f", exp(log(size[i - 1]) + (want - a) / (b - a) * log(size[i] / size[i - 1])) / cells)
				a = b
			}
			return want > high ? sprintf("> %.2f", size[size_n] / cells) : want < low ? sprintf("< %.2f", size[1] / cells) : "-"
		}
		END {
			strategy_n = split(strategies, strategy, " ")
			if (size_n < 2 || strategy_n < 2)
				exit
			print "  times the cells with which " base " has the same mean (compare with the gaps and their p)"
			for (i = 1; i <= strategy_n; i++) {
				if (strategy[i] == base)
					continue
				line = sprintf("  %-12s", strategy[i])
				for (j = 1; j <= size_n; j++) {
					cells = size[j]
					line = line sprintf("%31s", (strategy[i], cells) in f1 ? needed(f1[strategy[i], cells]) : "-")
				}
				print line
			}
		}' "$dir/summary.tsv"
}
multiplier
cat <<'END'

the paper (other cells, many more of them, another network):
              30,000 cells      100,000 cells     300,000 cells     1,000,000 cells (kidney 814,000)
  lung
random        0.831 ± 0.005     0.845 ± 0.001     0.864 ± 0.008     0.883 ± 0.001
pmi           0.830 ± 0.004     0.846 ± 0.001     0.853 ± 0.005     0.870 ± 0.004
pmi-rand      0.829 ± 0.003     0.844 ± 0.004     0.850 ± 0.0007    0.875 ± 0.001
corrmask      0.833 ± 0.008     0.862 ± 0.010     0.875 ± 0.009     0.886 ± 0.007
  kidney
random        0.840 ± 0.028     0.858 ± 0.012     0.875 ± 0.009     0.886 ± 0.007
pmi           0.851 ± 0.010     0.863 ± 0.010     0.874 ± 0.008     0.887 ± 0.009
pmi-rand      0.850 ± 0.012     0.853 ± 0.004     0.876 ± 0.010     0.884 ± 0.005
corrmask      0.856 ± 0.008     0.870 ± 0.013     0.887 ± 0.010     0.894 ± 0.011
END
print_metric finetune accuracy "Accuracy after fine-tuning"
print_metric finetune f1_rare "F1 of the rarest third of the classes after fine-tuning"
print_metric probe macro_f1 "Macro F1 of a linear probe, no fine-tuning"
print_metric probe accuracy "Accuracy of the probe"
print_metric probe f1_rare "F1 of the rarest third of the classes, probe"
[ "$(wc -l < "$dir/rare.tsv")" -lt 2 ] || {
	echo
	echo "Macro F1 over the rarest classes, $ours - other, after fine-tuning, $(cells "$last") cells (the paper's figure 6)"
	sed '1s/^classes/rarest/; 1s/cells/training/; 1s/class\t/up to class\t/' "$dir/rare.tsv" | "$here/names.sh" 3 | awk -F '\t' "$tables"'
		NR == 1 { printf "%8s %9s  %s", $1, $2, $3; for (i = 4; i <= NF; i++) printf " %12s", $i; print "" }
		NR > 1 { printf "%8d %9d  %s", $1, $2, $3; for (i = 4; i <= NF; i++) printf " %12s", ($i == "NA" ? "NA" : num($i, "%+.3f")); print "" }'
}
echo
stage_times_text "$dir/log"

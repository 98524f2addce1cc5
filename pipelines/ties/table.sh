#!/usr/bin/env bash
# ties/table.sh TIES "ARM..." "SEED..." DATA LABEL FEW HOW [PREPARED]: the table of make ties from the scores under TIES; runs without scores are left out.
# HOW is a line on the trainings. The figure draws TIES/points.tsv and TIES/summary.tsv; TIES/differences.tsv has the differences (armstat compare).
. "$(dirname "$0")/../tables.sh"
[ $# = 7 ] || [ $# = 8 ] || usage
dir=$1 arms=$2 seeds=$3 data=$4 label=$5 few=$6 how=$7 prepared=${8:-}
base=${arms%% *}

# gain: how much lower the loss is than that of the table of neighbours' medians on the same masked genes
{
	printf 'arm\tseed\tmetric\tvalue\n'
	for k in $seeds; do
		for arm in expression pca naive-bayes untrained $arms; do
			scores=$dir/runs/$arm-$k/scores.tsv reference=$dir/split-$k/${arm%-*}.reference.tsv
			[ -e "$scores" ] || continue
			[ -e "$reference" ] || reference=/dev/null
			awk -F '\t' -v OFS='\t' -v OFMT=%.9g -v arm="$arm" -v k="$k" '
				FILENAME ~ /reference.tsv$/ { if ($1 ~ /test$/) { print arm, k, "frequency", $2; print arm, k, "medians", $3; medians = $3 } next }
				FNR > 1 { print arm, k, $1, $2 }
				$1 == "loss" && medians != "" { print arm, k, "gain", medians - $2 }' "$reference" "$scores"
		done
	done
} > "$dir/points.tsv"
means --within metric "$dir/points.tsv" > "$dir/summary.tsv"

# Every arm is compared with the first one, and CorrMask with random masks of the same encoding. The losses of values are other metrics than those of
# genes. Without DATA, every seed has other cells; with it, the splits of the cells overlap.
splits=()
[ -z "$data" ] || splits=(--splits 3:1)
those_in "$dir/points.tsv"
for arm in $arms expression pca naive-bayes; do pair "$arm" "$base"; done
for arm in $arms; do
	[ "${arm%-corrmask}-random" = "$base" ] || pair "$arm" "${arm%-corrmask}-random"
done
for metric in gain R macro_f1 few_macro_f1 knn_macro_f1; do
	awk -F '\t' -v OFS='\t' -v metric=$metric '$3 == metric { if (metric ~ /^(gain|R)$/ && $1 ~ /^value-/) $3 = $3 " of values"; print }' "$dir/points.tsv"
done | sed '1i arm\tseed\tmetric\tvalue' > "$dir/compared.tsv"
differences --pair seed --within metric "${splits[@]}" "$dir/compared.tsv" > "$dir/differences.tsv"
rm "$dir/compared.tsv"

echo "corrmask ties: ${data:-simulated cells (scsim)}, label $label"
echo "$how; seeds $seeds"
[ ! -e "$prepared/group" ] || echo "cells: $(split_by "$prepared")"
[ -z "$prepared" ] || split_note "$prepared" "$prepared/cells.counts"
echo
echo "An arm is an encoding and the masks of the training. median: genes of equal count are sorted by their medians; random: in random order, a new one"
echo "every epoch; group: they share a position; value: as group, and the value of a masked gene is predicted, not the gene (mean squared error)."
echo "Measured on the test cells, mean over seeds (sd: standard deviation). loss: of a masked token, random masks. lookup: loss of a table that knows only"
echo "the medians of the visible neighbours in the order (group: of the visible genes of equal count; value: the mean value of the gene). gain: lookup -"
echo "loss. R: loss with hidden partners - loss with visible partners (make reliance). Cell types: macro F1 of a linear probe from all labels and from"
echo "$few a class, and of the 15 nearest neighbours"
echo
awk -F '\t' -v arms="expression pca naive-bayes untrained $arms" "$tables$by_name"'
	{ mean[$c["arm"], $c["metric"]] = $c["mean"]; spread[$c["arm"], $c["metric"]] = $c["sd"] }
	$c["metric"] == "macro_f1" { n[$c["arm"]] = $c["n"] }
	function text(m, f) { return sprintf(" %7s", (a, m) in mean ? num(mean[a, m], f) : "-") }
	function both(m, f,    s) {
		s = (a, m) in mean ? num(mean[a, m], f) (spread[a, m] == "NA" ? "" : sprintf(" (sd %.3f)", spread[a, m])) : "-"
		return sprintf(" %17s", s)
	}
	BEGIN { '"$baselines"' }
	END {
		printf "%-26s %7s %7s %7s %7s %7s %7s %17s %17s %17s %17s\n", "", "loss", "lookup", "freq.", "gain", "visible", "hidden", "R", "macro F1", "few labels", "neighbours"
		arm_n = split(arms, arm, " ")
		for (i = 1; i <= arm_n; i++) if (n[arm[i]] > most) most = n[arm[i]]
		for (i = 1; i <= arm_n; i++) {
			a = arm[i]
			if (n[a] == "") continue
			# what an untrained network predicts is no result
			f = a == "untrained" ? "" : "%.3f"
			stopped += off = mean[a, "converged"] < 1
			print sprintf("%-26s", a in name ? name[a] : a) text("loss", f) text("medians", "%.3f") text("frequency", "%.3f") text("gain", "%+.3f") text("visible", f) \
				text("hidden", f) (f == "" ? sprintf("%18s", "") : both("R", "%+.3f")) both("macro_f1", "%.3f") both("few_macro_f1", "%.3f") both("knn_macro_f1", "%.3f") \
				(n[a] < most ? " [" n[a] (n[a] == 1 ? " seed]" : " seeds]") : "") (off ? "  *" : "")
		}
		if (stopped) print "* the probe from all labels was stopped before it had converged, in some seeds or all"
	}' "$dir/summary.tsv"
echo
echo "Differences, paired by seed: mean, 95 % interval, two-sided p of a t test, p after Holm's correction over all differences of this table, and the"
echo "true difference that as many seeds find in 80 % of experiments"
[ ${#splits[@]} = 0 ] || echo "The splits of the seeds share cells: intervals and tests are corrected for it (Nadeau and Bengio)."
for head in "- $base" "- random masks of the same encoding"; do
	awk -F '\t' -v head="$head" -v base="$base" "$tables$by_name"'
		BEGIN {
			'"$baselines"'
			title["gain"] = "gain over the lookup"
			title["R"] = "partner reliance R"
			title["macro_f1"] = "macro F1, all labels"
			title["few_macro_f1"] = "macro F1, few labels"
			title["knn_macro_f1"] = "macro F1, nearest neighbours"
			form = "%10s %20s %8s %10s %10s %8s\n"
		}
		($c["reference"] == base) == (head == "- " base) {
			metric = $c["metric"]
			values = sub(/ of values$/, "", metric) ? ", values" : ""
			if (!any++) printf "\n%s\n", head
			if ($c["metric"] != last) printf "  %-28s " form, title[metric] values, "mean", "95 % interval", "t", "p", "p, Holm", "80 %"
			last = $c["metric"]
			printf "    %-26s " form, ($c["arm"] in name ? name[$c["arm"]] : $c["arm"]), num($c["difference"], "%+.3f"), span("%+.3f"), num($c["t"], "%.1f"), \
				num($c["p"], "%.2g"), num($c["p_corrected"], "%.2g"), num($c["detectable"], "%.3f")
		}' "$dir/differences.tsv"
done
echo
# the mean loss of the arm that predicts genes worst, next to that of the gene frequencies on the same masked genes
read -r loss table <<< "$(awk -F '\t' "$by_name"'
	$c["arm"] !~ /-/ || $c["arm"] ~ /^value-/ || $c["n"] < 1 { next }
	{ mean[$c["metric"], $c["arm"]] = $c["mean"] }
	$c["metric"] == "loss" { arms[$c["arm"]] }
	END {
		for (a in arms) if (worst == "" || mean["loss", a] - mean["frequency", a] > mean["loss", worst] - mean["frequency", worst]) worst = a
		if (worst != "") print mean["loss", worst], mean["frequency", worst]
	}' "$dir/summary.tsv")" || true
edges=
for k in $seeds; do
	of=$(reported "$dir/log/depgraph-split-$k.report" edges)
	[ -z "$of" ] || edges=$((edges + of))
done
{
why=$(not_learned "$loss" "$table")
[ -z "$why" ] || { echo "$why"; exit; } # of this part only
case " $arms" in *-corrmask*) no_edges "$edges" | sed 's/No comparison:/No comparison of CorrMask with random masks:/' ;; esac
awk -F '\t' "$tables$by_name"'
	{ count_p() }
	shown() { list = list "\n  " $c["arm"] " - " $c["reference"] ", " $c["metric"] sprintf(" %+.3f", $c["difference"]) }
	END {
		if (!tests) print "One seed: nothing can be said about other trainings."
		else print counted() " Shown against all " tests " (Holm):" (list == "" ? " none" : list)
	}' "$dir/differences.tsv"
} | tee "$dir/findings.txt"

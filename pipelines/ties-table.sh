#!/usr/bin/env bash
# ties-table.sh TIES "ARM..." "SEED..." DATA LABEL FEW HOW: the table of make ties from the scores under TIES; runs without scores are left out.
# HOW is a line on the trainings. The figure draws TIES/points.tsv (arm, seed, metric, value) and TIES/differences.tsv.
. "$(dirname "$0")/common.sh"
[ $# = 7 ] || usage
dir=$1 arms=$2 seeds=$3 data=${4:-simulated cells (scsim)} label=$5 few=$6 how=$7
base=${arms%% *}
stats=$(cat "$here/stats.awk")

# arm, seed, metric, value. gain: how much lower the loss is than that of the table of neighbours' medians on the same masked genes
for k in $seeds; do
	for arm in expression pca untrained $arms; do
		[ ! -e "$dir/runs/$arm-$k/scores.tsv" ] || sed "1d; s/^/$arm\t$k\t/" "$dir/runs/$arm-$k/scores.tsv"
		reference=$dir/split-$k/${arm%-*}.reference.tsv
		[ ! -e "$dir/runs/$arm-$k/scores.tsv" ] || [ ! -e "$reference" ] ||
			awk -F '\t' -v OFS='\t' -v arm="$arm" -v k="$k" '$1 ~ /test$/ { print arm, k, "frequency", $2; print arm, k, "medians", $3 }' "$reference"
	done
done | awk -F '\t' -v OFS='\t' -v OFMT=%.9g '
	{ print }
	$3 == "loss" { loss = $4 }
	$3 == "medians" { print $1, $2, "gain", $4 - loss }' > "$dir/points.tsv"

# arm, metric, seeds, mean, sd
awk -F '\t' -v OFS='\t' "$stats"'
	$4 == "NA" { next }
	!(($1, $3) in n) { order[++rows] = $1 SUBSEP $3 }
	{ n[$1, $3]++; sum[$1, $3] += $4; square[$1, $3] += $4 * $4 }
	END {
		for (i = 1; i <= rows; i++) {
			k = order[i]
			split(k, part, SUBSEP)
			print part[1], part[2], n[k], sum[k] / n[k], (n[k] > 1 ? sd(n[k], sum[k], square[k]) : "NA")
		}
	}' "$dir/points.tsv" > "$dir/summary.tsv"

# arm, the arm that it is compared with, metric, paired seeds, mean and sd of the difference, its 95 % interval, t, p, the difference that as many
# seeds find in 80 % of experiments. Every arm is compared with the first one, and CorrMask with random masks of the same encoding. The losses of
# another objective are not compared.
awk -F '\t' -v OFS='\t' -v arms="$arms" -v seeds="$seeds" "$stats"'
	$4 != "NA" { value[$1, $2, $3] = $4 }
	function compare(a, b, metric,  i, k, m, d, s, q, t, h) {
		for (i = 1; i <= seed_n; i++) {
			k = seed[i]
			if (!((a, k, metric) in value) || !((b, k, metric) in value))
				continue
			d = value[a, k, metric] - value[b, k, metric]
			m++
			s += d
			q += d * d
		}
		if (!m)
			return
		t = paired_t(m, s, q)
		d = sd(m, s, q)
		h = half_interval(m, d)
		print a, b, metric, m, s / m, (m > 1 ? d : "NA"), (m > 1 ? s / m - h : "NA"), (m > 1 ? s / m + h : "NA"), t, paired_p(t, m), detectable(m, d)
	}
	END {
		arm_n = split(arms, arm, " ")
		seed_n = split(seeds, seed, " ")
		metric_n = split("gain R macro_f1 few_macro_f1 knn_macro_f1", metric, " ")
		for (j = 1; j <= metric_n; j++)
			for (i = 2; i <= arm_n; i++)
				if (j > 2 || (arm[i] ~ /^value/) == (arm[1] ~ /^value/))
					compare(arm[i], arm[1], metric[j])
		for (j = 1; j <= metric_n; j++)
			for (i = 2; i <= arm_n; i++) {
				other = arm[i]
				if (sub(/-corrmask$/, "-random", other) && other != arm[1])
					compare(arm[i], other, metric[j])
			}
	}' "$dir/points.tsv" > "$dir/differences.tsv"

echo "corrmask ties: $data, label $label"
echo "$how; seeds $seeds"
echo
echo "An arm is an encoding and the masks of the training. median: genes of equal count are sorted by their medians; random: in random order, a new one"
echo "every epoch; group: they share a position; value: as group, and the value of a masked gene is predicted, not the gene (mean squared error)."
echo "Measured on held-out cells, mean over seeds (± standard deviation). loss: of a masked token, random masks. lookup: loss of a table that knows only"
echo "the medians of the visible neighbours in the order (group: of the visible genes of equal count; value: the mean value of the gene). gain: lookup -"
echo "loss. R: loss with hidden partners - loss with visible partners (make reliance). Cell types: macro F1 of a linear probe from all labels and from"
echo "$few a class, and of the 15 nearest neighbours"
echo
awk -F '\t' -v arms="expression pca untrained $arms" "$stats"'
	$2 == "macro_f1" { n[$1] = $3 }
	{ mean[$1, $2] = $4; spread[$1, $2] = $5 }
	function text(a, m, f) { return (a, m) in mean ? sprintf(f, near(mean[a, m])) : "-" }
	# printf counts bytes in some awks, and ± has two
	function both(a, m, f,  s) {
		s = text(a, m, f)
		if ((a, m) in mean && spread[a, m] != "NA") s = s sprintf(" ± %.3f", spread[a, m])
		while (length(s) + (s ~ /±/ && length("±") > 1 ? -1 : 0) < 15) s = " " s
		return s
	}
	function heading(s) { return sprintf("%15s", s) }
	BEGIN { '"$baselines"' }
	END {
		printf "%-26s %7s %7s %7s %7s %7s %7s %s %s %s %s\n", "", "loss", "lookup", "freq.", "gain", "visible", "hidden", heading("R"), \
			heading("macro F1"), heading("few labels"), heading("neighbours")
		arm_n = split(arms, arm, " ")
		most = 0
		for (i = 1; i <= arm_n; i++)
			if (arm[i] in n && n[arm[i]] > most) most = n[arm[i]]
		for (i = 1; i <= arm_n; i++) {
			a = arm[i]
			if (!(a in n)) continue
			# what an untrained network predicts is no result
			f = a == "untrained" ? "" : "%.3f"
			printf "%-26s %7s %7s %7s %7s %7s %7s %s %s %s %s%s\n", (a in name ? name[a] : a), text(a, "loss", f), text(a, "medians", "%.3f"), \
				text(a, "frequency", "%.3f"), text(a, "gain", "%+.3f"), text(a, "visible", f), text(a, "hidden", f), \
				(a == "untrained" ? heading("") : both(a, "R", "%+.3f")), both(a, "macro_f1", "%.3f"), both(a, "few_macro_f1", "%.3f"), \
				both(a, "knn_macro_f1", "%.3f"), (n[a] < most ? " [" n[a] (n[a] == 1 ? " seed]" : " seeds]") : "") (mean[a, "converged"] < 1 ? "  *" : "")
			stopped = stopped || mean[a, "converged"] < 1
		}
		if (stopped) print "* the probe from all labels was stopped before it had converged, in some seeds or all"
	}' "$dir/summary.tsv"
echo
echo "Differences, paired by seed: mean, 95 % interval, two-sided p of a t test, and the difference that as many seeds find in 80 % of experiments"
awk -F '\t' -v base="$base" "$stats"'
	BEGIN {
		title["gain"] = "gain over the lookup"
		title["R"] = "partner reliance R"
		title["macro_f1"] = "macro F1, all labels"
		title["few_macro_f1"] = "macro F1, few labels"
		title["knn_macro_f1"] = "macro F1, nearest neighbours"
	}
	function text(x, f) { return x == "NA" ? "-" : sprintf(f, x) }
	{
		head = $2 == base ? "- " base : "- random masks of the same encoding"
		if (head != last_head) printf "\n%s\n", head
		if ($3 != last || head != last_head) printf "  %-28s %10s %20s %8s %10s %8s\n", title[$3], "mean", "95 % interval", "t", "p", "80 %"
		last = $3
		last_head = head
		printf "    %-26s %+10.3f %20s %8s %10s %8s\n", $1, near($5), ($7 == "NA" ? "-" : sprintf("%+.3f to %+.3f", near($7), near($8))), text($9, "%.1f"), ($10 == "NA" ? "-" : $10), text($11, "%.3f")
	}' "$dir/differences.tsv"
echo
# Holm: the smallest p is compared with 0.05 / n, the next one with 0.05 / (n - 1), ... until one is larger.
awk -F '\t' '$10 != "NA" { print $10 + 0 "\t" $1 "\t" $2 "\t" $3 "\t" $5 }' "$dir/differences.tsv" | sort -g | awk -F '\t' '
	{ p[NR] = $1; what[NR] = $2 " - " $3 ", " $4 sprintf(" %+.3f", $5) }
	END {
		if (!NR) { print "One seed: nothing can be said about other trainings."; exit }
		for (i = 1; i <= NR; i++) below += p[i] < 0.05
		printf "%d differences; without any effect %.1f of them would have p below .05 on average, and %d have. Shown against all %d (Holm):", NR, NR * 0.05, below, NR
		for (i = 1; i <= NR && p[i] * (NR - i + 1) < 0.05; i++) printf "\n  %s", what[i]
		print i == 1 ? " none" : ""
	}'

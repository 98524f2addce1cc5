#!/usr/bin/env bash
# The tables of make r2mae-cells from the scores under FOLDER/runs; runs without scores are left out. FOLDER/points.tsv has the values, summary.tsv
# their means, differences.tsv the gaps to the first method, draws.tsv those of the probe over draws of the tested cells (armstat compare).
#     r2mae/table.sh FOLDER INPUTS "METHOD..." "SEED..." NETWORK
. "$(dirname "$0")/../tables.sh"
[ $# = 5 ] || usage
dir=$1 inputs=$2 methods=$3 seeds=$4 network=$5
base=${methods%% *} baselines='expression pca naive-bayes'
others=${methods#"$base"}
mapfile -t labels < "$inputs/label"
stages=(label)
for ((i = 2; i <= ${#labels[@]}; i++)); do stages+=("label-$i"); done

# the baselines have seed 0
{
	printf 'method\tseed\tstage\tmetric\tvalue\n'
	collect "$dir/runs" "untrained $methods" "$seeds"
	[ ! -e "$inputs/baselines.tsv" ] || sed 's/\t/\t0\t/' "$inputs/baselines.tsv"
} | awk -F '\t' 'NR == 1 || $5 ~ /^-?[0-9.]/ && $4 !~ /:/' > "$dir/points.tsv"
means --arm method --within stage,metric "$dir/points.tsv" > "$dir/summary.tsv"
those_in "$dir/points.tsv"
for m in $others; do pair "$m" "$base"; done
awk -F '\t' 'NR == 1 || $3 ~ /^valid-/ && $4 == "pearson" || $3 ~ /^label/ && $4 ~ /^(balanced_accuracy|macro_f1|auroc)$/ || $3 == "target" && $4 ~ /spearman$/' \
	"$dir/points.tsv" > "$dir/compared.tsv"
differences --arm method --pair seed --within stage,metric "$dir/compared.tsv" > "$dir/differences.tsv"
rm "$dir/compared.tsv"

# A draw of the tested cells is the same for all methods; a baseline is paired with each seed.
{
	printf 'method\tseed\tstage\tdraw\taccuracy\tbalanced_accuracy\tmacro_f1\n'
	for m in $base $baselines untrained $others; do
		for k in $seeds; do
			for s in "${stages[@]}"; do
				f=$dir/runs/$m-$k/$s.replicates.tsv
				[[ " $baselines " != *" $m "* ]] || f=$inputs/$m/$s.replicates.tsv
				[ ! -e "$f" ] || [ ! -e "$dir/runs/$base-$k/$s.replicates.tsv" ] || sed "1d; s/^/$m\t$k\t$s\t/" "$f"
			done
		done
	done
} > "$dir/draws.in"
those_in "$dir/draws.in"
pairs=()
for m in $baselines untrained $others; do pair "$m" "$base"; done
differences --arm method --pair seed --within stage --draws draw --metrics balanced_accuracy,macro_f1 "$dir/draws.in" > "$dir/draws.tsv"
rm "$dir/draws.in"

# table TITLE METHODS STAGE/METRIC=COLUMN...: one line for each method
table() {
	echo
	echo "$1"
	awk -F '\t' -v methods="$2" -v columns="$3" -v want="$want" "$tables$by_name"'
		$c["n"] > 0 {
			text[$c["stage"] "/" $c["metric"], $c["arm"]] = sprintf("%.4f", $c["mean"]) ($c["sd"] == "NA" ? "" : sprintf(" (sd %.4f)", $c["sd"])) \
				($c["n"] < want && $c["arm"] !~ /^(expression|pca|naive-bayes)$/ ? " [" $c["n"] "]" : "")
		}
		END {
			method_n = split(methods, method, " ")
			column_n = split(columns, of, " ")
			printf "%-16s", ""
			for (i = 1; i <= column_n; i++) {
				split(of[i], part, "=")
				printf "%24s", part[2]
				for (j = 1; j <= method_n; j++) text[i, j] = (part[1], method[j]) in text ? text[part[1], method[j]] : "-"
			}
			print ""
			for (j = 1; j <= method_n; j++) for (i = 1; i <= column_n; i++) if (text[i, j] != "-") { for (i = 1; i <= column_n; i++) put(method[j], i, text[i, j]) }
			lay("%-16s", "%24s")
		}' "$dir/summary.tsv"
}
# gaps METHODS STAGE/METRIC=COLUMN...: one line for each column and method
gaps() {
	echo
	awk -F '\t' -v base="$base" -v methods="$1" -v columns="$2" -v want="$want" "$tables$by_name"'
		BEGIN { form = "%10s%24s%10s%10s%s"; printf "  %-24s" form "\n", "gap to " base, "mean", "95 % interval", "p", "p, Holm", "" }
		$c["n"] > 0 {
			line[$c["stage"] "/" $c["metric"], $c["arm"]] = sprintf(form, num($c["difference"], "%+.4f"), span("%+.4f"), num($c["p"], "%.2g"), num($c["p_corrected"], "%.2g"), \
				$c["n"] < want ? " [" $c["n"] "]" : "")
		}
		END {
			column_n = split(columns, of, " ")
			method_n = split(methods, method, " ")
			for (i = 1; i <= column_n; i++) {
				split(of[i], part, "=")
				for (j = 1; j <= method_n; j++) if ((part[1], method[j]) in line) printf "  %-8s%-16s%s\n", part[2], method[j], line[part[1], method[j]]
			}
		}' "$dir/differences.tsv"
}
want=$(echo "$seeds" | wc -w)
# The metric of every rate, and those of the probe
rates() { for r in 0.1 0.2 0.3 0.5 0.7; do printf 'valid-%s/%s=%s ' "$r" "$1" "$r"; done; }
# of_label STAGE
of_label() { echo "$1/balanced_accuracy=BAcc $1/macro_f1=F1 $1/auroc=AUROC"; }
target=$(cat "$inputs/target") of_target='target/spearman=Spearman target/group_spearman=by-group'

sed '1s/^/corrmask r2mae-cells: /' "$inputs/about"
echo "$network"
echo "mean (sd: standard deviation) over seeds ($seeds); gaps to $base are paired by seed: mean (95 % interval); two-sided p of a t test; p after Holm's"
echo "correction over all gaps of this table; [n]: only n seeds are done"
table "Masked genes of validation cells: Pearson correlation in a cell, by the share of genes that are masked" "untrained $methods" "$(rates pearson)"
gaps "$others" "$(rates pearson)"
table "The same, Spearman correlation" "untrained $methods" "$(rates spearman)"
group=$(cat "$inputs/group")
for i in "${!labels[@]}"; do
	s=${stages[i]}
	table "Probe of ${labels[i]} in cells of other donors" "$baselines untrained $methods" "$(of_label "$s")"
	[ "$i" != 0 ] || echo "no network: log-normalised expression, its 50 principal components (pca), naive Bayes of the counts; untrained: random weights"
	gaps "$others" "$(of_label "$s")"
	echo
	echo "  gap to $base, mean over seeds: 95 % interval over 1,000 draws of the tested ${group:-cell}s"
	awk -F '\t' -v s="$s" "$tables$by_name"'
		!n++ { printf "%-16s%30s%30s\n", "", "BAcc", "F1" }
		$c["stage"] == s { put($c["arm"], $c["value"], span("%+.4f")) }
		END { lay("%-16s", "%30s") }' "$dir/draws.tsv"
done
if [ -n "$target" ]; then
	table "Probe of $target in cells of other donors" "expression pca untrained $methods" "$of_target"
	gaps "$others" "$of_target"
fi

table "Effective rank of the embeddings of validation cells" "untrained $methods" "rank/entropy=entropy rank/effective_rank=exp(entropy)"

# Score and mean rank of the methods, by their mean metrics [R2MAE, table 6]
metrics=$(printf '%s/balanced_accuracy+' "${stages[@]}"; printf '%s/macro_f1+' "${stages[@]}")
[ -z "$target" ] || metrics+=target/spearman+target/group_spearman+
mkdir -p "$dir/means"
ranked=()
for m in $baselines untrained $methods; do
	awk -F '\t' -v m="$m" -v metrics="+$metrics" '
		BEGIN { print "metric\tvalue" }
		'"$by_name"'
		$c["arm"] == m && index(metrics, "+" $c["stage"] "/" $c["metric"] "+") { print $c["stage"] "/" $c["metric"] "\t" $c["mean"] }' "$dir/summary.tsv" > "$dir/means/$m"
	[ "$(wc -l < "$dir/means/$m")" -le "$(tr -cd + <<< "$metrics" | wc -c)" ] || ranked+=("$dir/means/$m")
done
[ ${#ranked[@]} -lt 2 ] || {
	echo
	echo "Score (mean of the metrics) and mean rank, by balanced accuracy and macro F1 of $(paste -sd , "$inputs/label" | sed 's/,/, /g')${target:+ and both Spearman correlations of $target}"
	armstat leaderboard -q -m "${metrics%+}" "${ranked[@]}" | awk -F '\t' 'NR == 1 { next } { sub(/.*\//, "", $1); printf "%-16s%20.4f%20.2f\n", $1, $2, $3 }'
}
echo
cat "$here/r2mae/paper.txt"
echo
stage_times_text "$dir/log"

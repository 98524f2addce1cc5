#!/usr/bin/env bash
# finetune/report.sh DIR DATA LABEL START...: the table of make finetune, from the scores and logs under DIR.
. "$(dirname "$0")/../common.sh"
dir=$1 data=${2:-simulated cells (scsim)} label=$3
shift 3
get() { awk -F '\t' -v k="$2" '$1 == k && $2 != "nan" { printf "%.4f", $2; found = 1 } END { if (!found) printf "-" }' "$1"; }
# the step whose weights were kept: smallest validation loss
best() { awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_loss") c = i } NR > 1 && c && $c != "" && $c != "NA" && (!n || $c < least) { n = $1; least = $c } END { print n ? n : "-" }' "$1"; }

echo "corrmask fine-tuning: $data, label $label"
for part in train valid test; do
	r=$dir/log/scsample-$part.report
	[ ! -e "$r" ] || echo "$part: $(reported "$r" cells_out) of $(reported "$r" cells_in) cells"
done
r=$dir/log/ctaprobe-$1.report
[ ! -e "$r" ] || echo "test: $(reported "$r" cells) cells scored, $(reported "$r" classes) classes, $(reported "$r" model_classes) of them the model's"
[ ! -e "$r" ] || awk -F '\t' '$1 == "warning" { print $2 }' "$r"
echo
drawn=$(awk -F '\t' '{ v[$1] = $2 } END { n = v["bootstrap_units"]; print n, n < v["cells"] ? "groups" : "cells" }' "$dir/$1.score.tsv")
{
	printf '%s\t' start accuracy "balanced accuracy" "macro F1" "rarest F1" unknown step
	echo "95 % interval of macro F1: bootstrap of $drawn"
	for m in "$@" expression pca naive-bayes; do
		s=$dir/$m.score.tsv
		[ -e "$s" ] || continue
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s - %s\n' "$m" "$(get "$s" accuracy)" "$(get "$s" balanced_accuracy)" "$(get "$s" macro_f1)" \
			"$(get "$s" f1_rare)" "$(get "$s" unknown | sed 's/\..*//')" "$([ ! -e "$dir/$m.model/train.tsv" ] || best "$dir/$m.model/train.tsv")" \
			"$(get "$s" macro_f1_low)" "$(get "$s" macro_f1_high)"
	done
} | as_table "$dir/starts.table" "Cell types of the test cells, by what the network started from"
echo "expression, pca: logistic regression on log-normalised expression, and on 50 principal components; naive-bayes: of the counts; no network"
for m in "${@:2}"; do
	{
		printf 'start\tdraw\taccuracy\tbalanced_accuracy\tmacro_f1\n'
		for s in "$1" "$m"; do sed "1d; s/^/$s\t/" "$dir/$s.score.replicates"; done
	} | armstat compare -q --arm start --draws draw --metrics macro_f1 | awk -F '\t' "$by_name"'
		$c["n"] > 0 { printf "macro F1, %s - %s: 95 %% interval %+.4f to %+.4f over the same draws; one seed, so other trainings can differ more\n", $c["arm"], $c["reference"], $c["low"], $c["high"] }'
done
echo
echo "per class (cells in training, cells scored, F1)"
for m; do
	awk -F '\t' -v m="$m" '{ i = index($1, ":"); k = substr($1, 1, i - 1); c = substr($1, i + 1) }
		k == "f1" || k == "n" || k == "train_n" { print c "\t" k "\t" m "\t" $2 }' "$dir/$m.score.tsv"
done | awk -F '\t' -v starts="$*" 'BEGIN { n = split(starts, s, " ") }
	{ v[$1, $2, $3] = $4; seen[$1] = 1 }
	END {
		head = sprintf("class\t%7s\t%7s\t", "train", "test")
		for (i = 1; i <= n; i++) head = head sprintf(" %10s", s[i])
		print head
		fflush()
		for (c in seen) {
			line = c "\t" sprintf("%7d\t%7d\t", v[c, "train_n", s[1]], v[c, "n", s[1]])
			for (i = 1; i <= n; i++) line = line sprintf(" %10.4f", v[c, "f1", s[i]])
			print line | "sort -t \"\t\" -k2,2nr"
		}
	}' | "$here/names.sh" 1 | sed 's/^/  /; s/\t/ /; s/\t/ /; s/\t//'
echo
stage_times_text "$dir/log"

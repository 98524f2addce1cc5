#!/usr/bin/env bash
# moa/report.sh DIR DATA LABEL DRUG METHOD...: the table of make moa, from the scores in DIR.
. "$(dirname "$0")/../common.sh"
[ $# -ge 5 ] || usage
dir=$1 data=${2:-simulated cells (scsim)} label=$3 drug=$4
shift 4
get() { [ ! -e "$1" ] || awk -F '\t' -v k="$2" '$1 == k && $2 !~ /^(nan|NA)$/ { printf "%.4f", $2 }' "$1"; }
echo "corrmask moa: $data, mechanism $label, drug $drug"
echo "$(get "$dir/$1.score.tsv" cells | sed 's/[.].*//') cells, $(get "$dir/$1.score.tsv" classes | sed 's/[.].*//') mechanisms, $(scview -q -c "$label,$drug" "$dir/cells.counts" |
	awk -F '\t' 'NR > 1 && $1 != "NA" && $1 != "" { print $2 }' | sort -u | wc -l) drugs; no drug is in both the training and the test cells of a fold"
echo
{
	printf 'method\tAUC\trecall\tmacro F1\tsd over draws\tAvgBio\n'
	for m; do
		s=$dir/$m.score.tsv
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$m" "$(get "$s" auroc)" "$(get "$s" balanced_accuracy)" "$(get "$s" macro_f1)" \
			"$(get "$s" macro_f1_repeat_sd)" "$(get "$dir/$m.bio.tsv" avg_bio_swept)"
	done
} | as_table "$dir/methods.table" "Mechanisms of drugs that the probe has not seen; recall is the mean over mechanisms"
cat <<'END'
expression, pca: log-normalised expression, and its 50 principal components; no network
The paper (Sci-Plex, A549, 39 drugs, 9 mechanisms): AUC .881 (Geneformer 316M), .871 (WCED, two tokens), .865 (WCED), .812 (MLM); AvgBio .339, .355, .318, .265
END
echo
stage_times_text "$dir/log"

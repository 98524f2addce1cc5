#!/usr/bin/env bash
# genes/report.sh DIR DATA CROSS LABELS START...: the table of make genes, from the scores under DIR.
. "$(dirname "$0")/../common.sh"
dir=$1 data=${2:-simulated cells (scsim)} cross=$3 labels=${4:-genes of odd or even modules}
first=$5
shift 4
get() { awk -F '\t' -v k="$2" '$1 == k { printf "%.4f", $2; found = 1 } END { if (!found) printf "-" }' "$1"; }
whole() { awk -F '\t' -v k="$2" '$1 == k { print $2 }' "$1"; }

s=$dir/$first.score.tsv
echo "corrmask classes of genes: $data, $labels"
echo "$(whole "$s" genes) genes scored in $(whole "$s" folds) folds, $(whole "$s" tokens) tokens$(awk -F '\t' '$1 == "positive" { print ", positive: " $2 }' "$s")"
[ -z "$cross" ] || echo "across tissues: the same models on the cells of $cross, $(whole "$dir/$first.cross.score.tsv" tokens) tokens"
awk -F '\t' '$1 == "warning" { print $2 }' "$dir/log/sctrain-$first-0.report"
echo
# table SUFFIX CAPTION START...: the scores of START.SUFFIX
table() {
	local suffix=$1 caption=$2 m s
	shift 2
	{
		printf '%s\t' start "AUC by token" "Geneformer's" "AUC by gene"
		echo "macro F1"
		for m; do
			s=$dir/$m.$suffix
			printf '%s\t%s ± %s\t%s ± %s\t%s ± %s\t%s\n' "$m" "$(get "$s" auc_fold_mean)" "$(get "$s" auc_fold_sd)" "$(get "$s" auc_weighted)" \
				"$(get "$s" auc_weighted_sd)" "$(get "$s" gene_auc_fold_mean)" "$(get "$s" gene_auc_fold_sd)" "$(get "$s" macro_f1)"
		done
	} | as_table "$dir/${suffix%.tsv}.table" "$caption"
	echo
}
table score.tsv "${cross:+Within the tissue: test cells of $data. }Mean and standard deviation over folds" "$@"
[ -z "$cross" ] || table cross.score.tsv "Across tissues: cells of $cross" "$@"
echo "mean and standard deviation over folds; Geneformer's are weighted by the points of the ROC curves (ctaprobe(1))"
echo "each gene's probabilities: $dir/START.genes.tsv; curves: $dir/START.roc.tsv"

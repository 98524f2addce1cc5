#!/usr/bin/env bash
# genes-report.sh DIR DATA CROSS LABELS START...: the table of make genes, from the scores under DIR.
. "$(dirname "$0")/common.sh"
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
# table SUFFIX START...: the scores of START.SUFFIX
table() {
	local suffix=$1 m s
	shift
	printf '%-12s %16s %16s %16s %10s\n' start "AUC by token" "Geneformer's" "AUC by gene" "macro F1"
	for m; do
		s=$dir/$m.$suffix
		printf '%-12s %8s ± %s %8s ± %s %8s ± %s %10s\n' "$m" "$(get "$s" auc_fold_mean)" "$(get "$s" auc_fold_sd)" "$(get "$s" auc_weighted)" \
			"$(get "$s" auc_weighted_sd)" "$(get "$s" gene_auc_fold_mean)" "$(get "$s" gene_auc_fold_sd)" "$(get "$s" macro_f1)"
	done
	echo
}
[ -z "$cross" ] || echo "within the tissue: test cells of $data"
table score.tsv "$@"
if [ -n "$cross" ]; then
	echo "across tissues: cells of $cross"
	table cross.score.tsv "$@"
fi
echo "mean and standard deviation over folds; Geneformer's are weighted by the points of the ROC curves (ctaprobe(1))"
echo "each gene's probabilities: $dir/START.genes.tsv; curves: $dir/START.roc.tsv"

#!/usr/bin/env bash
# pretrain/report.sh PRETRAIN DATA LABEL STRATEGY: what came of make pretrain, from the files under PRETRAIN.
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
run=$1 data=$2 label=$3 strategy=$4
get() { awk -F '\t' -v k="$2" '$1 == k { print $2 }' "$1"; }
# the table of gene frequencies and that of medians
read -r frequency medians < <(awk -F '\t' "$by_name"'{ print $c["frequency"], $c["medians"] }' "$run/losses.tsv")
loss=$(get "$run/model.loss.tsv" loss)
steps=$(awk 'END { print NR - 1 }' "$run/model/train.tsv")
planned=$(awk -F '\t' -v batch="$(sed -n 's/^BATCH = //p' "$run/settings")" '{ v[$1] = $2 } END { print int((v["train"] + batch - 1) / batch) * v["epochs"] }' "$run/plan.tsv")
best=$(awk -F '\t' "$by_name"'$c["eval_loss"] != "NA" && (!n || $c["eval_loss"] < least) { n = $c["step"]; least = $c["eval_loss"] } END { print n }' "$run/model/train.tsv")
seconds=$(awk -F '\t' 'END { printf "%.1f", $6 }' "$run/model/train.tsv")

{
	awk -v loss="$loss" -v table="$frequency" -v ended="$([ "$steps" = "$planned" ] || echo early)" 'BEGIN {
		if (loss + 0 < table + 0) printf "The network predicts masked genes of held-out cells better than the gene frequencies do: loss %.3f, not %.3f.\n", loss, table
		else printf "The network has learned less than the gene frequencies (loss %.3f, not below %.3f): train %s.\n", loss, table, ended == "" ? "longer (EPOCHS=), or on more cells" : "on more cells, or with another rate (LR=) or more patience (PATIENCE=)"
	}'
	echo "It trained for $steps of $planned steps$([ "$steps" = "$planned" ] || echo ', as the validation loss no longer fell'), in $seconds s; the weights are those after step $best, with the smallest validation loss. Held-out cells chose them, so their loss is slightly optimistic."
	awk -v loss="$loss" -v medians="$medians" 'BEGIN { if (medians + 0 < loss + 0)
		printf "A table of the medians of the two neighbours is better still (loss %.3f): the order of the genes gives masked ones away (RANK_ARGS='"'--ties random'"' changes that).\n", medians }'
	[ "$best" != "$steps" ] || [ "$steps" != "$planned" ] || echo "The validation loss was lowest at the last step: a longer training (EPOCHS=) may be better."
} > "$run/findings.txt.new"
whole "$run/findings.txt"

echo "corrmask pretrain: ${data:-simulated cells}, masks $strategy"
sed '/^progress\|^again/d' "$run/plan.txt"
echo
cat "$run/findings.txt"
echo
{
	printf '\tloss\taccuracy\n'
	for row in "model:network" "untrained:network before the training"; do
		printf '%s\t%.3f\t%.3f\n' "${row#*:}" "$(get "$run/${row%%:*}.loss.tsv" loss)" "$(get "$run/${row%%:*}.loss.tsv" accuracy)"
	done
	printf '%s\t%.3f\t-\n' "table of gene frequencies, no network" "$frequency" "table of medians of neighbours, no network" "$medians"
} | as_table "$run/1-loss.table" "Masked genes of held-out cells, random masks: the loss is the mean negative logarithm of the probability given to the right gene (lower is better); accuracy is the share of right first guesses"
if [ -n "$label" ]; then
	echo
	{
		printf '\tmacro F1\taccuracy\t95 %% interval of macro F1\n'
		for m in expression pca untrained model; do
			awk -F '\t' -v m="$m" 'BEGIN { '"$baselines"'; name["model"] = "network" } { v[$1] = $2 }
				END { printf "%s\t%.4f\t%.4f\t%s\n", name[m], v["macro_f1"], v["accuracy"], v["macro_f1_low"] == "" ? "-" : sprintf("%.4f - %.4f", v["macro_f1_low"], v["macro_f1_high"]) }' "$run/$m.probe.tsv"
		done
	} | as_table "$run/2-types.table" "Linear probe of $label, trained on cells for training, scored on held-out cells"
fi
echo
echo "model: $run/model      use it: $run_by embed DATA=new.h5ad MODEL=$run/model"
echo
stage_times_text "$run/log"

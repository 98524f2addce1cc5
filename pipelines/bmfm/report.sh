#!/usr/bin/env bash
# bmfm/report.sh DIR: the tables of make demo-bmfm, from the training, predictions and scores under DIR.
. "$(dirname "$0")/../common.sh"
[ $# = 1 ] || usage
dir=$1

echo "corrmask demo of BMFM-RNA: simulated cells (scsim), labels of data/blood-cells.obo (Cell Ontology, CC BY 4.0)"
part() { reported "$dir/log/scsample-$1.report" cells_out; }
echo "cells: $(part train) to train, $(part test) to test; a third of them has a label above its type"
echo

# ---- losses ----
# The first and the last step; and the validation of the test cells that was best
awk -F '\t' -v OFS='\t' "$by_name"'
	FNR == 1 { split($0, head); n = NF; next }
	{
		if (!m++) split($0, first)
		split($0, last)
		if ($c["eval_loss"] + 0 == $c["eval_loss"] && (best == "" || $c["eval_loss"] < best)) {
			best = $c["eval_loss"]
			split($0, at)
		}
	}
	function line(name, column, eval) {
		printf "%s\t%.3f\t%.3f\t%s\n", name, first[c[column]], last[c[column]], (eval in c ? sprintf("%.3f", at[c[eval]]) : "-")
	}
	END {
		print "\tfirst step\tlast step\ttest cells"
		line("whole cell: is a gene 0? (cross-entropy)", "loss.wced.is_zero", "eval_is_zero.wced")
		line("whole cell: expression of the others (squared error)", "loss.wced.value", "eval_mse.wced")
		line("cell type, of the ontology (hierarchical cross-entropy)", "loss.term", "eval_loss.term")
		line("all, by their weights", "loss", "eval_loss")
	}' "$dir/bmfm.model/train.tsv" | as_table "$dir/1-losses.table" "Loss of each head"

# ---- cell types ----
echo
{
	printf 'decoding\texact\tfiner\tcoarser\twrong\thierarchical F1\tmacro F1\n'
	for how in leaf greedy; do
		awk -F '\t' -v how="$how" '{ v[$1] = $2 }
			END { printf "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", how, v["exact"], v["finer"], v["coarser"], v["wrong"], v["hierarchical_f1"], v["macro_f1"] }' \
			"$dir/$how.score.tsv"
	done
} | as_table "$dir/2-types.table" "Cell types of the test cells. finer: a type below the label. Predictions end at a leaf, so coarse labels can only be met by finer ones"

# ---- lineages ----
ontology=$(dirname "$0")/../../data/blood-cells.obo
scview --header-tsv "$dir/greedy.pred" | sed -n 's/^labels[.]//p' | sort -n | cut -f 2 > "$dir/leaves"
scview -q -c term,predicted,logit "$dir/greedy.pred" | awk -f "$here/bmfm/lineages.awk" part=1 "$ontology" part=2 "$dir/leaves" part=3 - > "$dir/lineages.tsv"
rm "$dir/leaves"
echo
echo "Predicted lineages of five test cells, from the top down, with probabilities:"
scview -q -c barcode,term,lineage "$dir/greedy.pred" | awk -F '\t' 'NR == FNR { if (/^id: /) id = substr($0, 5); if (/^name: /) name[id] = substr($0, 7); next }
	FNR > 1 && FNR < 7 { printf "  %s (%s)\n    %s\n", $1, name[$2], $3 }' "$ontology" -
echo
stage_times_text "$dir/log"

#!/usr/bin/env bash
# annotate/report.sh DIR DATA REFERENCE LABEL COVERAGE: the report of make annotate from the predictions and scores under DIR
. "$(dirname "$0")/../common.sh"
[ $# = 5 ] || usage
dir=$1 data=${2:-simulated cells} reference=${3:-simulated cells of other donors} label=$4 coverage=$5
group=$(cat "$dir/group")
units=${group:+${group}s}
units=${units:-cells}
rm -f "$dir/new.score.tsv" "$dir/new.curves.tsv"
if scview -q --header-tsv "$dir/new.pred" | grep -xF "column"$'\t'"$label" > /dev/null &&
	scview -q -c "$label" "$dir/new.pred" | awk 'NR > 1 && $0 != "NA" && $0 != "" { found = 1 } END { exit !found }'; then
	ctaprobe score -q --label "$label" --curves "$dir/new.curves.tsv" -o "$dir/new.score.tsv" "$dir/new.pred" 2> /dev/null
	# types of other names than the reference's cannot be compared
	grep -qx "coverage"$'\t'"nan" "$dir/new.score.tsv" && rm "$dir/new.score.tsv" "$dir/new.curves.tsv"
fi
get() { awk -F '\t' -v k="$2" '$1 == k { printf "%.3f", $2; found = 1 } END { if (!found) printf "-" }' "$1"; }
r=$dir/log/ctaprobe-transfer.report
held=$dir/held-out.score.tsv

echo "corrmask annotate: $data"
echo "reference: $reference, label $label, $(reported "$r" reference_cells) cells, $(reported "$r" classes) types; held out: $units"
rare=$(reported "$dir/log/scsample-reference.report" 'dropped:min-class')
{
	[ -n "$group" ] || echo "Nothing is promised: no column names the donors of the reference, and cells of a donor are alike. Those of another one are told less well than what follows says."
	[ "${rare:-0}" = 0 ] || echo "$rare cells of the reference were left out, of types with fewer cells than MIN_CELLS: new cells of these types get a wrong one."
	echo "$(reported "$r" unknown_cells) of $(reported "$r" cells) cells are unlike the reference: transfer_assigned is unknown."
	echo "On $units of the reference that were held out, $(get "$held" accuracy) of the types are right (macro F1 $(get "$held" macro_f1))."
	echo "A probability of a type is off by $(get "$held" ece) in the mean (expected calibration error)."
	if [ -z "$group" ]; then
		echo "Label sets were asked to have the true type for a share $coverage of the cells that were held out."
	elif [ "$(reported "$r" coverage_promised)" = 1 ]; then
		echo "A label set has the true type for a share $coverage of the cells of types of the reference, if new $units are like those of the reference."
	else
		echo "$(reported "$r" calibration_groups) $units are too few to promise a coverage of $coverage: it is that of the cells that were held out."
	fi
	[ ! -e "$dir/new.score.tsv" ] ||
		echo "The new cells have types too: $(get "$dir/new.score.tsv" accuracy) of the predicted ones are right; of the cells of known types, a share $(get "$dir/new.score.tsv" coverage) has the true one in its set and $(get "$dir/new.score.tsv" known_called_unknown) are called unknown; of the others $(get "$dir/new.score.tsv" novel_called_unknown)."
} > "$dir/findings.txt.new"
whole "$dir/findings.txt"
cat "$dir/findings.txt"
awk -F '\t' '$1 == "warning" { print "warning: " $2 }' "$r"
echo
scview -q -c assigned,probability,label_set "$dir/new.pred" | awk -F '\t' -v held="$held" '
	BEGIN {
		while ((getline line < held) > 0) {
			split(line, f, "\t")
			i = index(f[1], ":")
			if (i) v[substr(f[1], 1, i - 1), substr(f[1], i + 1)] = f[2]
			if (substr(f[1], 1, 8) == "train_n:") name[++k] = substr(f[1], 9)
		}
		OFS = "\t"
		print "type", "reference cells", "F1, held out", "new cells", "of them sure", "mean probability"
	}
	NR > 1 { n[$1]++; p[$1] += $2; one[$1] += index($3, " | ") == 0 }
	END {
		name[++k] = "unknown"
		for (i = 1; i <= k; i++) {
			c = name[i]
			known = c != "unknown"
			print c, (known ? v["train_n", c] : "-"), (known && v["n", c] + 0 ? sprintf("%.3f", v["f1", c]) : "-"), n[c] + 0,
				(n[c] && known ? sprintf("%d %%", 100 * one[c] / n[c]) : "-"), (n[c] && known ? sprintf("%.3f", p[c] / n[c]) : "-")
		}
	}' | as_table "$dir/types.table" "Types of the new cells; sure: its label set is this type alone"
echo
stage_times_text "$dir/log"

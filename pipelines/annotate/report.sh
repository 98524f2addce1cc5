#!/usr/bin/env bash
# annotate/report.sh DIR DATA REFERENCE LABEL COVERAGE: the report of make annotate from the predictions and scores under DIR. Its sentences
# are those of sentences.awk; DIR/sentences.tsv has them with their ids.
. "$(dirname "$0")/../common.sh"
[ $# = 5 ] || usage
dir=$1 data=${2:-simulated cells} reference=${3:-simulated cells of other donors} label=$4 coverage=$5
rm -f "$dir/new.score.tsv" "$dir/new.curves.tsv"
transfer=$dir/log/ctaprobe-transfer.report held=$dir/held-out.score.tsv own=$dir/new.score.tsv
coarse=$(reported "$transfer" labels:coarse)
# a prediction can be finer than a coarse label
if [ "${coarse:-0}" = 0 ] && scview -q --header-tsv "$dir/new.pred" | grep -xF "column"$'\t'"$label" > /dev/null &&
	scview -q -c "in_reference,$label" "$dir/new.pred" | awk 'NR > 1 && /^0/ && !/^0\t(NA)?$/ { found = 1 } END { exit !found }'; then
	# cells without a prediction, or with types of other names than the reference's, cannot be compared
	if ! ctaprobe score -q --label "$label" --curves "$dir/new.curves.tsv" -o "$dir/new.score.tsv" "$dir/new.pred" 2> /dev/null ||
		grep -qx "coverage"$'\t'"nan" "$dir/new.score.tsv"; then
		rm -f "$dir/new.score.tsv" "$dir/new.curves.tsv"
	fi
fi
[ -e "$own" ] || own=/dev/null

# The types, the most frequent first: of the reference, of the cells that were held out, and of the new ones
scview -q -c assigned,probability,in_set "$dir/new.pred" | awk -F '\t' -v held="$held" -v own="$own" -v transfer="$transfer" '
	function split_name(name) { i = index(name, ":"); return substr(name, 1, i - 1) }
	BEGIN {
		OFS = "\t"
		while ((getline < held) > 0) {
			v[split_name($1), substr($1, i + 1)] = $2
			if (split_name($1) == "train_n") name[++k] = substr($1, i + 1)
		}
		while ((getline < transfer) > 0)
			if (split_name($1) == "held_out_coverage" || split_name($1) == "unlike") v[split_name($1), substr($1, i + 1)] = $2
			else if ($1 == "unknown:applied") applied = $2
		while ((getline < own) > 0) { v["own_" split_name($1), substr($1, i + 1)] = $2; scored = 1 }
		print "type", "ref", "F1", "cover", "new", "unlike", (scored ? "F1 new" OFS : "") "set", "prob"
		fflush()
	}
	NR > 1 { n[$1]++; p[$1] += $2; size[$1] += gsub(/1/, "", $3) }
	function real(x, digits) { return x == "" || x ~ /nan/ ? "-" : sprintf("%." digits "f", x) }
	END {
		if (applied) name[++k] = "unknown"
		for (i = 1; i <= k; i++) {
			c = name[i]
			known = c != "unknown"
			print c, (known ? v["train_n", c] : "-"), (known && v["n", c] + 0 ? real(v["f1", c], 2) : "-"), real(v["held_out_coverage", c], 2), n[c] + 0, (known ? v["unlike", c] + 0 : "-"),
				(scored ? (known && v["own_n", c] + 0 ? real(v["own_f1", c], 2) : "-") OFS : "") (n[c] ? real(size[c] / n[c], 1) : "-"), (n[c] && known ? real(p[c] / n[c], 2) : "-") | "sort -t \"\t\" -s -k2,2nr"
		}
	}' > "$dir/types"

# The types of ten new cells or more, most of whose markers have a higher mean in the new cells of another such type. Genes that hardly a cell of the type
# has in the reference say nothing.
elsewhere() {
	awk -F '\t' "$by_name"'
		$c["class"] == $c["marker_of"] && $c["share"] < 0.1 { rare[$c["marker_of"], $c["rank"]] = 1 }
		$c["new_cells"] < 10 || $c["class"] == "unknown" { next }
		{ k = $c["marker_of"] SUBSEP $c["rank"]; if (!(k in most) || $c["new_mean"] > most[k]) { most[k] = $c["new_mean"]; at[k] = $c["class"] } cells[$c["class"]] = 1 }
		END {
			for (k in most) if (!(k in rare)) { split(k, f, SUBSEP); n[f[1]]++; if (at[k] != f[1]) { other[f[1]]++; where[f[1]] = at[k] } }
			for (t in n) if (t in cells && 2 * other[t] > n[t]) list = list (list ? ", " : "") t " (in " where[t] ")"
			print list
		}' "$dir/markers.tsv"
}
{
	printf 'label\t%s\ngroup\t%s\ncoverage\t%s\n' "$label" "$(cat "$dir/group")" "$coverage"
	printf 'map\t%s\n' "$(cat "$dir/map" 2> /dev/null || echo X_umap_transfer)"
	printf 'elsewhere\t%s\n' "$(elsewhere)"
	printf 'no_type\t%s\n' "$(reported "$dir/log/scsample-reference.report" set_aside:no_label)"
	printf 'unknown_label\t%s\n' "$(reported "$dir/log/scsample-reference.report" set_aside:unknown_label)"
	printf 'rare\t%s\n' "$(reported "$dir/log/scsample-reference.report" 'dropped:min-class')"
	scview -q -c in_set "$dir/new.pred" | awk 'NR > 1 && (size = gsub(/1/, "")) { n++; sum += size; one += size == 1 } END { if (n) printf "set_size\t%f\nsingle\t%f\n", sum / n, one / n }'
} > "$dir/values"
{
	printf 'id\tsentence\n'
	awk -f "$here/annotate/sentences.awk" of=transfer "$transfer" of=held "$held" of=new "$own" of=run "$dir/values"
} > "$dir/sentences.tsv.new"
whole "$dir/sentences.tsv"
rm "$dir/values"
cut -f 2 "$dir/sentences.tsv" | tail -n +2 > "$dir/findings.txt.new"
whole "$dir/findings.txt"

# The first line is the promise
as_lines() { fold -s -w 78 | sed -e '2,$s/^/  /' -e 's/ *$//'; }
{
	while IFS= read -r sentence; do as_lines <<< "$sentence"; done < "$dir/findings.txt"
	echo
	echo "corrmask annotate: $data" | as_lines
	echo "reference: $reference, label $label, $(reported "$transfer" reference_cells) cells, $(reported "$transfer" classes) types" | as_lines
	echo
	as_table "$dir/types.table" "Types: cells of the reference (ref), F1 and coverage of those that were held out; new cells, those unlike the reference, mean size of the label sets and mean probability" 80 < "$dir/types"
	rm "$dir/types"
	echo
	stage_times_text "$dir/log"
}

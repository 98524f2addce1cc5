#!/usr/bin/env bash
# The table of terms.awk for CELLS, a table of barcode, label and, maybe, group. LABEL is the column's name, for messages. ONTOLOGY may be gzipped.
# Labels without a term are named in a warning, which the report shows.
#     bmfm/terms-of.sh ONTOLOGY LABELS LABEL CELLS OUT
. "$(dirname "$0")/../common.sh"
[ $# = 5 ] || usage
ontology=$1 labels=$2 label=$3 cells=$4 out=$5
case $ontology in *.gz) gzip -dc "$ontology" ;; *) cat "$ontology" ;; esac > "$out.obo"
awk -f "$here/bmfm/terms.awk" "$out.obo" "$labels" "$cells" > "$out"
rm "$out.obo"
awk -F '\t' 'NR > 1 && $2 != "NA" { n++ } END { exit !n }' "$out" || {
	echo "bmfm/terms-of.sh: no label of column '$label' has a term: LABELS=$labels needs lines of label and term of $ontology" >&2
	exit 1
}
awk -F '\t' -v label="$label" -v labels="$(basename "$labels")" -v ontology="$(basename "$ontology")" '
	FNR == 1 { next }
	NR == FNR { none[FNR] = $2 == "NA"; next }
	none[FNR] && $2 != "" { cells++; if (!n[$2]++) name[++k] = $2 }
	END {
		for (i = 1; i <= k && i <= 5; i++) list = list (i > 1 ? ", " : "") sprintf("\x27%s\x27 (%d)", name[i], n[name[i]])
		if (cells) printf "warning: %d cells have no term, because %s or %s lacks it: %s%s in column %s\n", cells, labels, ontology, list, (k > 5 ? ", ..." : ""), label
	}' "$out" "$cells" >&2

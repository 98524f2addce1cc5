#!/usr/bin/env bash
# The table of terms.awk for CELLS, a table of barcode, label and, maybe, group. LABEL is the column's name, for messages. ONTOLOGY may be gzipped.
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

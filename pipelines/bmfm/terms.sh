#!/usr/bin/env bash
# The cells of COUNTS with columns of terms (terms.awk): a copy of the stream. GROUP is the file of group.sh.
#     bmfm/terms.sh COUNTS GROUP LABEL ONTOLOGY LABELS OUT [OPTION-OF-H5TOK...]
. "$(dirname "$0")/../common.sh"
[ $# -ge 6 ] || usage
counts=$1 group=$(cat "$2") label=$3 ontology=$4 labels=$5 out=$6
shift 6
name=$(basename "${out%.counts}")
tmp=$(dirname "$out")/$name.tmp
mkdir -p "$tmp"
scview -q -c "barcode,$label${group:+,$group}" "$counts" > "$tmp/cells.tsv"
"$here/bmfm/terms-of.sh" "$ontology" "$labels" "$label" "$tmp/cells.tsv" "$tmp/terms.tsv"
scview -q -O h5ad -o "$tmp/cells.h5ad" "$counts"
h5tok -v --obs-table "$tmp/terms.tsv" -o "$out" "$@" "$tmp/cells.h5ad"
rm -r "$tmp"

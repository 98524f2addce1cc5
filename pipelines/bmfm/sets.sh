#!/usr/bin/env bash
# The cells of several files, each a set (column set, the name of the file), with the columns of terms.awk: FOLDER/cells.counts with the genes of all
# files, of which the stream says which file measured which; FOLDER/shared.counts with the genes that all of them measured.
#     bmfm/sets.sh FOLDER LABEL ONTOLOGY LABELS 'OPTION-OF-H5TOK...' FILE...
. "$(dirname "$0")/../common.sh"
[ $# -ge 7 ] || { [ $# -lt 6 ] && usage; echo "one set of cells: expected several files, of which each is left out in turn" >&2; exit 1; }
dir=$1 label=$2 ontology=$3 labels=$4
read -ra reading <<< "$5"
shift 5
h5tok -q --sample-column set --obs "$label" "${reading[@]}" -u "$@" | scview -q -c "barcode,$label" > "$dir/labels.tsv"
"$here/bmfm/terms-of.sh" "$ontology" "$labels" "$label" "$dir/labels.tsv" "$dir/terms.tsv"
case $ontology in *.gz) gzip -dc "$ontology" ;; *) cat "$ontology" ;; esac > "$dir/ontology.obo"
h5tok -v --sample-column set --obs "$label,term,coarse" --obs-table "$dir/terms.tsv" "${reading[@]}" -o "$dir/cells.counts" "$@"
for file; do
	h5tok -q --obs none "${reading[@]}" -o "$dir/one.counts" "$file"
	scview -q --vocab "$dir/one.counts" | cut -f 2 | sed 1d | sort -u
done | awk -v files=$# '++n[$1] == files' > "$dir/shared.txt"
[ "$(wc -l < "$dir/shared.txt")" -gt 1 ] || {
	echo "$*: no two genes are in all files" >&2
	exit 1
}
# through a file of AnnData, which has no column n_counts: it becomes the sum over these genes
scsample -v --keep-genes "$dir/shared.txt" -o "$dir/one.counts" "$dir/cells.counts"
scview -q -O h5ad -o "$dir/shared.h5ad" "$dir/one.counts"
h5tok -v -o "$dir/shared.counts" "$dir/shared.h5ad"
rm "$dir"/{labels.tsv,one.counts,shared.txt,shared.h5ad}

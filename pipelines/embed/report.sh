#!/usr/bin/env bash
# embed/report.sh DIR DATA MODEL LABEL: the report of make embed from the streams and the logs under DIR
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
dir=$1 data=${2:-simulated cells (scsim)} model=$3 label=$4
log() { [ ! -e "$dir/log/$1.report" ] || awk -F '\t' -v name="$2" '$1 == name { v = $2; any = 1 } END { if (any) print v }' "$dir/log/$1.report"; }
first() { local v; v=$(log h5tok "$1"); echo "${v:-$(log rankenc "$1")}"; }
width=$(scview -q -n 1 -c x "$dir/embedding.emb" | tail -n 1 | wc -w)
cells=$(rows "$dir/embedding.emb")
mapped=$(rows "$dir/embedding.map")
share=$(first percent_of_counts)
dropped=$(first dropped:no_gene)
{
	echo "$cells cells, $width numbers each, in obsm/X_corrmask of embedded.h5ad; a map of $([ "$mapped" = "$cells" ] && echo them || echo "$mapped of them") in obsm/X_umap."
	awk -v p="$share" 'BEGIN { printf "%.1f %% of the counts are of genes that the model knows; %.1f %% are lost.\n", p, 100 - p }'
	[ "${dropped:-0}" = 0 ] || echo "$dropped cells have no gene that the model knows: they have no embedding (NaN)."
	replaced=$(awk '/^scview: note: .*: obsm / && !seen++ { while (match($0, /X_[a-z]+ \(replaced\)/)) { list = list (list ? " and " : "") "obsm/" substr($0, RSTART, RLENGTH - 11); $0 = substr($0, RSTART + RLENGTH) } }
		END { print list }' "$dir/log/scview-into.log")
	[ -z "$replaced" ] || echo "Replaced in embedded.h5ad: $replaced of your file, which is itself unchanged."
} > "$dir/findings.txt.new"
whole "$dir/findings.txt"

echo "corrmask embed: $data"
echo "model: $model"
cat "$dir/findings.txt"
find "$dir/log" -name '*.report' -exec cat {} + | awk -F '\t' '$1 == "warning" { print "warning: " $2 }' | sort -u
scview -q --header-tsv "$dir/embedding.emb" | grep -xF "column"$'\t'"$label" > /dev/null ||
	echo "The cells have no column $label: the map has one colour. LABEL= names another column."
echo
stage_times_text "$dir/log"

#!/usr/bin/env bash
# What is wrong with the states and genes of make perturb, before any count is read: the cells of the test are chosen from the columns of DATA alone, as
# cells.mk chooses them. Prints one line, or nothing.
#     perturb/check.sh DATA STATE FROM TO DELETE PERTURBED LABEL GROUP CELLS MIN_CLASS SEED MODEL MEDIANS TOKEN_TABLE
. "$(dirname "$0")/../common.sh"
[ $# = 14 ] || usage
state=$2 from=$3 to=$4 genes=$5 most=$6 label=$7 group=$8 cells=$9 min_class=${10} seed=${11} model=${12} medians=${13} tokens=${14}
least=10 # of a state: scperturb shift
files "$1"
stop() { echo "perturb: $*"; exit 0; }
trap 'echo "perturb: check.sh: line $LINENO failed"; exit 0' ERR
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

[ "$most" -ge "$least" ] || stop "PERTURBED=$most: expected $least or more cells of each state"
[ "$from" != "$to" ] || stop "FROM=$from and TO=$to: expected two states"
"$here/columns.sh" "$state" none "${files[@]}" > /dev/null 2> "$dir/said" || stop "$(sed '$!d; s/^LABEL=/STATE=/' "$dir/said")"
"$here/columns.sh" "$label" "$group" "${files[@]}" > /dev/null 2> "$dir/said" || stop "$(tail -n 1 "$dir/said")"
h5tok -q --no-counts "${files[@]}" -o "$dir/all.counts" 2> "$dir/said" || stop "$(tail -n 1 "$dir/said")"
# count STREAM: the cells of each state, the most first
count() { scview -q -c "$state" "$1" | sed 1d | sort | uniq -c | sort -k 1,1nr | sed 's/^ *\([0-9]*\) \(.*\)/\1\t\2/'; }
count "$dir/all.counts" > "$dir/all.tsv"
for word in "FROM=$from" "TO=$to"; do
	cut -f 2 "$dir/all.tsv" | grep -qxF -- "${word#*=}" ||
		stop "$word: no cell has this $state; it has: $(awk -F '\t' 'NR <= 12 { printf "%s%s (%d)", (NR > 1 ? ", " : ""), $2, $1 } NR == 13 { printf ", ..." }' "$dir/all.tsv")"
done
scsample -q --where "$label!=NA" ${cells:+-n "$cells"} ${min_class:+--min-class "$label:$min_class"} --seed "$seed" -o "$dir/cells.counts" "$dir/all.counts" 2> "$dir/said" ||
	stop "$(tail -n 1 "$dir/said")"
"$here/group.sh" "$group" "$label" "$dir/cells.counts" > "$dir/group"
"$here/split.sh" test 0.25 "$dir/group" "$dir/cells.counts" "$dir/test.counts" "$seed" 2> "$dir/said" || stop "$(tail -n 1 "$dir/said")"
count "$dir/test.counts" > "$dir/test.tsv"
for word in "FROM=$from" "TO=$to"; do
	n=$(awk -F '\t' -v word="${word#*=}" '$2 "" == word "" { n = $1 } END { print n + 0 }' "$dir/test.tsv")
	[ "$n" -ge "$least" ] || stop "$word: $n of the cells for the test have this $state ($(awk -F '\t' -v word="${word#*=}" '$2 "" == word "" { print $1 }' "$dir/all.tsv") in DATA):" \
		"expected $least or more$([ -s "$dir/group" ] && echo "; whole groups of $(cat "$dir/group") are held out, and GROUP=none holds out cells")$([ "${cells:-$(rows "$dir/all.counts")}" -ge "$(rows "$dir/all.counts")" ] || echo "; CELLS=0 takes all cells, not $cells")"
done

# The genes, if they are named and the vocabulary is there
if [ "$genes" = all ] || [ -z "$model" ]; then exit 0; fi
"$here/model.sh" MODEL=,MEDIANS=,TOKEN_TABLE= "$model" "$medians" "$tokens" "$dir" > /dev/null 2> "$dir/said" || stop "$(sed -n '$s/^scstream: //p' "$dir/said")"
case $genes in *.gmt | *.gmt.gz) zcat -f -- "$genes" | cut -f 3- ;; *) if [ -f "$genes" ]; then zcat -f -- "$genes"; else echo "$genes"; fi ;; esac | tr ',+\t' '[\n*]' | sed '/^$/d' |
	awk -F '\t' 'NR == FNR { known[toupper($2)]; known[toupper($3)]; symbols += FNR > 1 && $3 != "" && $3 != $2 && $2 !~ /^[<[]/; n = split($5, a, "|"); while (n) known[a[n--]]; next }
		{ w = toupper($0); v = w; sub(/[.][0-9]+$/, "", v); all++; if (!(w in known) && !(v in known)) { lost++; if (first == "") first = $0 } }
		END { if (!all) print "no gene is named"; else if (lost == all) print (all == 1 ? "" : "none of its " all " genes, such as ") first (all == 1 ? " is not" : ", is") " in the vocabulary" (symbols ? "" : ", which has no symbols (no gene_name_id_dict beside its tokens): name genes by their ids") }' \
		"$(reported "$dir/model.tsv" vocab)" - > "$dir/said"
[ ! -s "$dir/said" ] || stop "DELETE=$genes: $(cat "$dir/said")"

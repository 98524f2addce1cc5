#!/usr/bin/env bash
# group.sh GROUP LABEL COUNTS: the obs column to split by, or nothing to split by cell. auto: the first column of donors with at least 4 values, in
# any case of letters. Without one, a column of samples, if a sample has more than ten cells in the mean, and most samples have several classes of
# LABEL, if there is one: cells that were sorted into a sample a class could not be split by it.
. "$(dirname "$0")/common.sh"
[ $# = 3 ] || usage
group=$1 label=$2 counts=$3
[ "$group" = none ] && exit 0
if [ "$group" != auto ]; then
	echo "$group"
	exit 0
fi
columns=$(scview -q --header-tsv "$counts" | sed -n 's/^column\t//p')
for name in donor_id donor patient_id patient individual subject sample_id sample; do
	while IFS= read -r column; do
		[ "${column,,}" = "$name" ] || continue
		both=$column
		[[ $name != sample* ]] || both=$column${label:+,$label}
		scview -q --columns "$both" "$counts" | awk -F '\t' -v sample="$([[ $name != sample* ]] || echo 1)" -v label="$label" '
			NR == 1 || $1 == "" || $1 == "NA" { next }
			{ cells++ }
			!seen[$1]++ { n++ }
			sample && !pair[$1, $2]++ && ++classes[$1] == 2 { several++ }
			END { exit !(n >= 4 && (!sample || n < cells / 10 && (label == "" || several > n / 2))) }' || continue
		echo "$column"
		exit 0
	done <<< "$columns"
done

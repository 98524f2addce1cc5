#!/usr/bin/env bash
# Are LABEL, if given, and GROUP columns of the files' obs, with classes in them? GROUP may be WITHIN=COLUMN,... or CLUSTERS=COLUMN, the columns of that variable.
#     columns.sh LABEL GROUP FILE...
. "$(dirname "$0")/common.sh"
[ $# -ge 3 ] || usage
label=$1 group=$2
shift 2
columns=$(h5tok -q --list-obs "$@" | tail -n +2)
settings=("GROUP=$group")
case $group in
WITHIN=*) mapfile -t -d , settings <<< "${group#*=}"; settings=("${settings[@]%$'\n'}"); settings=("${settings[@]/#/WITHIN=}"); group=none ;;
CLUSTERS=*) settings=("$group") group=none ;;
esac
for setting in "LABEL=$label" "${settings[@]}"; do
	case $setting in *=auto | GROUP=none | LABEL=) continue ;; esac
	type=$(awk -F '\t' -v column="${setting#*=}" '$1 == column { print $2 }' <<< "$columns")
	case $type in
	'')
		[ -z "$(awk -F '\t' -v column="obs_${setting#*=}" '$1 == column' <<< "$columns")" ] || continue # h5tok says it
		near=$(cut -f 1 <<< "$columns" | awk -v name="${setting#*=}" '
			function letters(s) { s = tolower(s); gsub(/[^a-z0-9]/, "", s); return s }
			BEGIN { a = letters(name) }
			{ b = letters($0) }
			a == b && a != "" { same = $0; exit }
			like == "" && length(a) > 3 && length(b) > 3 && (index(a, b) || index(b, a)) { like = $0 }
			END { if (same like != "") printf " (did you mean %s?)", same != "" ? same : like }')
		echo "$setting: no such column in obs$near; it has: $(cut -f 1 <<< "$columns" | paste -sd , | sed 's/,/, /g; s/^$/none, as in 10x files/')" >&2
		exit 1
		;;
	f32 | f64)
		echo "$setting: this column of obs holds $type numbers, expected classes (ids: .astype(\"Int64\").astype(str))" >&2
		exit 1
		;;
	esac
done
# The values, now, not after hours: numbers and ids are no classes
case $group in auto | none) group= ;; esac
exec h5tok -q --list-obs ${label:+--label "$label"} ${group:+--group "$group"} "$@" > /dev/null

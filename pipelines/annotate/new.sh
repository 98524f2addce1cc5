#!/usr/bin/env bash
# Read the new cells. Where one of the two files names genes by Ensembl ids and the other by symbols, genes of the new cells get the names that
# the reference has for the same symbol.
#     new.sh REFERENCE.counts OUT.counts FILE OPTION-OF-H5TOK...
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
reference=$1 out=$2 first=$2.first map=$2.map
shift 2
trap 'rm -f "$first" "$map"' EXIT
h5tok -o "$first" "$@"
# A gene without a symbol has its name for one. Another species shares few. The table has all genes of the file, as h5tok --map refuses one that has few.
renamed=$(awk -F '\t' -v map="$map" 'FNR == 1 { file++; next }
	{ symbol = $3 == "" ? $2 : $3; genes[file]++ }
	file == 1 { is[$2] = 1; name[symbol] = seen[symbol]++ ? "" : $2 }
	file == 2 { id[++n] = $2; of[n] = symbol; same += $2 in is; times[symbol]++ }
	END {
		for (i = 1; i <= n; i++) {
			other = id[i] in is || times[of[i]] > 1 ? "" : name[of[i]]
			renamed += other != ""
			print id[i] "\t" (other == "" ? id[i] : other) > map
		}
		few = genes[1] < genes[2] ? genes[1] : genes[2]
		print (renamed > same && renamed > few / 5) * renamed
	}' <(scview --vocab "$reference") <(scview --vocab "$first"))
if [ "$renamed" -gt 0 ]; then
	echo "  $renamed genes of the new cells are found in the reference by symbol"
	h5tok --map "$map" -o "$out" "$@"
else
	mv "$first" "$out"
fi

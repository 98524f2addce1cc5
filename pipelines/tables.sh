# shellcheck shell=bash disable=SC2034,SC2016 # the scripts that print tables source this file after their arguments; awk's dollars
# Tables of an experiment: the scores of its runs, what armstat compare says of them, and the parts of awk programs that print it.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# collect RUNS "ARM..." "SEED...": arm, seed and the lines of RUNS/ARM-SEED/scores.tsv without a first line of names; runs without scores are left out
collect() {
	local arm seed
	for seed in $3; do
		for arm in $2; do
			[ ! -e "$1/$arm-$seed/scores.tsv" ] || sed "/^metric\tvalue$/d; s/^/$arm\t$seed\t/" "$1/$arm-$seed/scores.tsv"
		done
	done
}
# means OPTION... TABLE: of armstat compare
means() { armstat compare -q --means "$@"; }
# pair ARM REFERENCE: add them to the array pairs, options of armstat compare, if both are among the words of $there, which have values
there='' pairs=()
pair() { [[ $1 = "$2" || " $there " != *" $1 "* || " $there " != *" $2 "* ]] || pairs+=(--compare "$1:$2"); }
# differences OPTION... TABLE: armstat compare of the pairs; without any, nothing
differences() { [ ${#pairs[@]} = 0 ] || armstat compare -q "${pairs[@]}" "$@"; }

# those_in TABLE [COLUMN]: the arms that have values, for pair
those_in() { there=$(cut -f "${2:-1}" "$1" | sort -u | tr '\n' ' '); }

# Functions of awk. num: a number, without a sign if it prints as 0, and - if there is none. span: the interval of a line of armstat compare.
tables='
function num(x, f,    s) {
	if (x == "NA" || x == "") return "-"
	s = sprintf(f, x)
	return s + 0 == 0 ? sprintf(f, 0) : s
}
function span(f) { return $c["low"] == "NA" ? "-" : num($c["low"], f) " to " num($c["high"], f) }
function put(r, k, s) {
	if (!(r in row_seen)) { row_seen[r]; row[++rows] = r }
	if (!(k in column_seen)) { column_seen[k]; column[++columns] = k }
	cell[r, k] = s
}
# all that was put, a line a row: its name in this format, then its cells; - where there is none
function lay(first, other,    i, j, line) {
	for (i = 1; i <= rows; i++) {
		line = sprintf(first, row[i] in name ? name[row[i]] : row[i])
		for (j = 1; j <= columns; j++) line = line sprintf(other, (row[i], column[j]) in cell ? cell[row[i], column[j]] : "-")
		print line
	}
}
# the same as a table for as_table, below the names of the columns
function table(head,    j) {
	for (j = 1; j <= columns; j++) head = head "\t" column[j]
	print head
	lay("%s", "\t%s")
}
# counts of the lines of armstat compare: what is below .05, before the correction
function count_p() { if ($c["p"] != "NA") { tests++; below += $c["p"] < .05 } }
function counted(where) {
	return sprintf("%d differences%s; without any effect %.1f of them would have p below .05 on average, and %d have.", tests, where, tests * .05, below)
}
function shown() { return $c["p_corrected"] != "NA" && $c["p_corrected"] < .05 }
function after_holm(list) {
	return list == "" ? "None has p below .05 after Holm\047s correction.\n" : "Those with p below .05 after Holm\047s correction:\n" list
}
function median(d, n,    i, j, t) {
	for (i = 2; i <= n; i++) for (j = i; j > 1 && d[j - 1] > d[j]; j--) { t = d[j]; d[j] = d[j - 1]; d[j - 1] = t }
	return d[int((n + 1) / 2)]
}
'

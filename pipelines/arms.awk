# What arms of an experiment are, from arms.tsv. An arm is the name of a row, and parts that are rows too, as wced+r2mae+hce.
#     awk -v of=bmfm -v arms='wced wced+hce' -f arms.awk arms.tsv
# Prints task, cells, options of maskgen, those of the first row alone, options of sctrain and of scembed (or the command of screduce), a line each; with check=1 nothing.
# What is wrong is one line, with exit status 1.
#
# In a name, N is a number, N% a percentage and COL a column, and stands for itself in the row. <NAME>: the same column of another row.
# of: the experiments that have the row; parts: kinds of parts that may follow, in this order, one of each; of a part its own kind.

BEGIN { FS = "\t" }
FNR == 1 { next }
{
	rows++
	for (i = 1; i <= NF; i++) field[rows, i] = $i == "-" ? "" : $i
	if (index("," $2 ",", "," of ",") && $1 !~ /^[+]/) all = all (all == "" ? "" : ", ") $1
}

# value: what N, N% or COL of row i is in this word; whether the word is its name
function fits(i, word,    name, before, after) {
	name = field[i, 1]
	if (!match(name, /N%|N|COL/)) return word == name
	before = substr(name, 1, RSTART - 1)
	after = substr(name, RSTART + RLENGTH)
	kind = substr(name, RSTART, RLENGTH)
	value = substr(word, length(before) + 1, length(word) - length(before) - length(after))
	if (before value after != word || value == "") return 0
	if (kind == "COL") return 1
	if (value !~ (kind == "N" ? "^[0-9]*[.]?[0-9]+$" : "^[0-9][0-9]?[0-9]?$") || kind == "N%" && value + 0 > 100) return 0
	if (kind == "N%") value /= 100
	return 1
}
# anywhere: of other experiments too
function find(word, anywhere,    i) {
	for (i = 1; i <= rows; i++) if ((anywhere || index("," field[i, 2] ",", "," of ",")) && fits(i, word)) return i
}
function text(word, column, anywhere,    i, s, name) {
	i = find(word, anywhere)
	s = field[i, column]
	if (match(field[i, 1], /N%|N|COL/)) gsub(kind, value, s)
	while (match(s, /<[^>]*>/)) {
		name = substr(s, RSTART + 1, RLENGTH - 2)
		s = substr(s, 1, RSTART - 1) "\001" substr(s, RSTART + RLENGTH)
		sub("\001", text(name, column, 1), s)
	}
	return s
}
function add(a, b) { return a == "" ? b : b == "" ? a : a " " b }
function wrong(what) { print what; bad = 1; exit 1 }

END {
	if (bad) exit 1
	n = split(arms, arm, " ")
	for (a = 1; a <= n; a++) {
		k = split(arm[a], word, "+")
		if (!(i = find(word[1]))) wrong("unknown arm '" arm[a] "' (expected " all ")")
		left = "," field[i, 3] ","
		for (c = 4; c <= 8; c++) of_arm[c] = text(word[1], c)
		alone = of_arm[6]
		for (p = 2; p <= k; p++) {
			part = "+" word[p]
			if (!(j = find(part))) wrong("unknown part '" part "' of arm '" arm[a] "'")
			if (!(at = index(left, "," field[j, 3] ","))) {
				kinds = field[i, 3]
				gsub(/,/, "][+", kinds)
				wrong("arm '" arm[a] "': expected " word[1] (kinds == "" ? " without parts" : "[+" kinds "]"))
			}
			left = substr(left, at + length(field[j, 3]) + 1)
			of_arm[6] = add(of_arm[6], text(part, 6))
			of_arm[7] = add(of_arm[7], text(part, 7))
			if (field[j, 8] != "") of_arm[8] = text(part, 8)
		}
		line = of_arm[4] "\n" of_arm[5] "\n" of_arm[6] "\n" alone "\n" of_arm[7] "\n" of_arm[8]
		tuned = part == "+tuned" && k > 1
		if ((line, tuned) in seen) wrong("arm '" arm[a] "' is " seen[line, tuned])
		seen[line, tuned] = arm[a]
	}
	if (!check) print line "\n." # not an empty line at the end, which $() drops
}

# shellcheck shell=bash
# Functions that the scripts of the pipelines source. BIN: folder of the tools (default: those on PATH).
set -euo pipefail
# Absolute, as scripts work in other folders
[[ ${BIN:-/} = /* ]] || BIN=$PWD/$BIN
PATH=${BIN:+$BIN:}$PATH
# decimal points in every locale
[ -z "${LC_ALL:-}" ] || export LANG="$LC_ALL"
unset LC_ALL
export LC_NUMERIC=C
# find_python MODULE...: python becomes a python3 that has them: that of PYTHON, of PATH, or Debian's
find_python() {
	for python in "${PYTHON:-python3}" /usr/bin/python3; do
		! "$python" -c "import $(tr ' ' , <<< "$*")" 2> /dev/null || return 0
	done
	echo "$(basename "$0" .sh): python3 has not all of $* (Debian packages python3-NAME); PYTHON= names another python3" >&2
	exit 1
}
# shellcheck disable=SC2034 # the scripts'
# find_scstream: scstream becomes the command, of PATH, of the sources or of make install; it finds its Python
find_scstream() {
	scstream=(scstream)
	! command -v scstream > /dev/null || return 0
	scstream=("$here/../python/scstream")
	[ -x "${scstream[0]}" ] || scstream=("$here/../../../bin/scstream")
}
# The terminal, if there is one: corrmask reads standard error, to take make's own lines out of it
terminal=${CORRMASK_TERMINAL:-2}
# shellcheck disable=SC2034 # the scripts'
# What a user has called, for lines that say what to call next
run_by=${CORRMASK_TERMINAL:+corrmask}
run_by=${run_by:-make}
# shellcheck disable=SC2034 # the scripts'
# The folder of this file; an experiment has its own below it: $here/ties/table.sh
here=${BASH_SOURCE[0]%/*}

# awk, but the value after -v is taken as it is, for names may have backslashes. Only OFS='\t' is an escape.
awk() {
	local arguments=() last='' a
	for a; do
		[[ $last != -v || $a = OFS=* ]] || a=${a//\\/\\\\}
		arguments+=("$a")
		last=$a
	done
	command awk "${arguments[@]}"
}

# What networks are compared with: statements of awk that fill the array name
# shellcheck disable=SC2034 # the scripts'
baselines='name["expression"] = "log-normalised expression"; name["pca"] = "50 principal components"; name["naive-bayes"] = "naive Bayes of the counts"; name["untrained"] = "untrained network"'

# awk statements: c["NAME"] is the number of the column NAME of a table that begins with the names of its columns
# shellcheck disable=SC2034,SC2016 # the scripts'; awk's dollars
by_name='FNR == 1 { split("", c); for (i = 1; i <= NF; i++) c[$i] = i; next }'

# no_edges EDGES, not_learned LOSS FREQUENCIES: why networks cannot be compared, if they cannot. LOSS is the highest loss of these networks, FREQUENCIES
# the loss of the table of gene frequencies on the same masked genes (- or nothing: unknown).
no_edges() {
	[ "$1" != 0 ] || echo "No comparison: the graph has no edges, so CorrMask's masks were random masks. Raise MAXLEN or CELLS."
}
not_learned() {
	awk -v loss="$1" -v table="$2" -v small="$([ "${SCALE:-}" != tiny ] || echo ', or leave out SCALE=tiny')" 'BEGIN {
		if (loss ~ /[0-9]/ && table ~ /[0-9]/ && loss + 0 >= table + 0)
			printf "No comparison: a network has learned less than the gene frequencies (loss %.2f, not below %.2f). Train longer: EPOCHS=%s.\n", loss, table, small
	}'
}
# highest_visible POINTS REFERENCE STRATEGY...: the highest mean loss of these strategies with visible partners, and that of the gene frequencies
highest_visible() {
	awk -F '\t' -v strategies=" ${*:3} " "$by_name"'
		FILENAME == ARGV[2] { if ($c["masks"] == "visible") table = $c["frequency"]; next }
		index(strategies, " " $c["strategy"] " ") { sum[$c["strategy"]] += $c["visible"]; n[$c["strategy"]]++ }
		END { for (s in n) if (most == "" || sum[s] / n[s] > most) most = sum[s] / n[s]; if (most != "") print most, table }' "$1" "$2"
}

# split_by FOLDER: "split by donor" or "split by cell". The FOLDER of prepared cells has `group` (group.sh) and `settings`.
split_by() {
	local by
	by=$(cat "$1/group")
	echo "split by ${by:-cell}"
}
# split_note FOLDER STREAM: if GROUP=auto found no column, say it, and which columns STREAM has
split_note() {
	[ -e "$1/group" ] && [ ! -s "$1/group" ] && grep -qsx 'GROUP = auto' "$1/settings" || return 0
	echo "note: split by cell: no column such as donor, patient or sample was found. Cells of one donor may then be in both parts." \
		"GROUP=COLUMN names one$(scview -q --header-tsv "$2" | awk -F '\t' -v label="$(sed -n 's/^LABEL = //p' "$1/settings")" '
			sub(/^categories:/, "", $1) && $1 != label && $2 > 1 && n < 5 { list = list (n++ ? ", " : "") $1 } END { if (n) print " (such as: " list ")" }
		'); GROUP=none says that cells are right"
}

# arm EXPERIMENT ARM: sets task, cells, and the options masks, plain_masks, learn and embed (arms.py), by the variables GRAPH, PMI, SHUFFLED, ONTOLOGY and SIZE
arm() {
	local row
	row=$(python3 -B "$here/arms.py" set "$1" "$2") || { echo "$(basename "$0"): $row" >&2; exit 2; }
	eval "$row"
}

# usage: print the script's synopsis and example, which are its comment lines that are indented by five spaces
usage() {
	sed -n 's/^#     //p' "$0" >&2
	exit 2
}

# options 'REQUIRED...' 'OPTION...' ARGUMENT...: --NAME VALUE sets the variable NAME, with _ for -; without a required one: usage
options() {
	local required=$1 known=" $1 $2 " name
	shift 2
	while [ $# -gt 1 ]; do
		name=${1#--}
		[[ $1 = --* && $known = *" $name "* ]] || usage
		printf -v "${name//-/_}" %s "$2"
		shift 2
	done
	[ $# = 0 ] || usage
	for name in $required; do [ -n "${!name}" ] || usage; done
}

# stage NAME COMMAND...: print NAME, run COMMAND with its messages in $logs/NAME.log. Show its errors and warnings if it fails; otherwise only its
# warnings, once. $logs/NAME.report gets what its tools measured (--report), and the time of the stage.
stage() {
	# shellcheck disable=SC2154 # the script says where
	local name=$1 log=$logs/$1.log report=$logs/$1.report begin=$EPOCHREALTIME watch='' failed=0 spent
	shift
	mkdir -p "$logs"
	rm -f "$report"
	if [ -t "$terminal" ]; then
		printf '\r\033[K' >&"$terminal"
		watch "$name" "$logs/$name.progress" &
		watch=$!
	fi
	echo "  $name"
	CORRMASK_REPORT=$report CORRMASK_PROGRESS=${watch:+$logs/$name.progress} "$@" 2> "$log" || failed=$?
	if [ -n "$watch" ]; then
		kill "$watch" 2> /dev/null || true
		wait "$watch" 2> /dev/null || true
		printf '\r\033[K' >&"$terminal"
		rm -f "$logs/$name.progress"
	fi
	if [ "$failed" != 0 ]; then
		grep -v -e ': note: ' -e '; [0-9.]* s, peak memory [0-9]* MB$' "$log" | in_variables >&2 ||
			echo "$name: failed, and its messages are not in $log: is the disk full ($(free_space "$logs") free)?" >&2
		return 1
	fi
	spent=$((${EPOCHREALTIME/[.,]/} - ${begin/[.,]/}))
	printf 'program\tstage\nseconds\t%d.%06d\n' $((spent / 1000000)) $((spent % 1000000)) >> "$report"
	cut_cells "$report" | sed 's/^/    /'
	awk -F '\t' '$1 == "program" { p = $2 } $1 == "warning" { print p ": warning: " $2 }' "$report" | new_warnings >&2
}

# in_variables: messages of tools, with the variables of make in place of the options that these set
in_variables() { sed 's/--layer\b/LAYER=/g; s/--round\b/ROUND=1/g; s/--unlog\b/UNLOG=1/g; s/--all-features\b/ALL_FEATURES=1/g; s/--map\b/GENE_NAMES=/g; s/=\( \|=\)\(FILE\|NAME\)/=\2/g'; }

# cut_cells REPORT: a sentence if a tool of a stage has cut cells to a maximum number of tokens
cut_cells() {
	awk -F '\t' '$1 == "program" { cells = cut = 0 } $1 == "cells_in" || $1 == "cells" { cells = $2 } $1 == "cells_cut" { cut = $2 } $1 == "cut_to" { to = $2 }
		$1 == "percent_of_tokens_cut" { printf "%d of %d cells are cut to %d tokens (MAXLEN): those of the lowest rank, %.1f %% of all, are not read.\n", cut, cells, to, $2 }' "$1"
}

# new_warnings: the lines that no stage of this make has said of another file. make names the file $CORRMASK_WARNED, which run.sh lock empties.
new_warnings() {
	local line about
	while IFS= read -r line; do
		# shellcheck disable=SC2001 # a regular expression
		about=$(sed 's|: warning: [^ ]*/[^ ]*:  *|: warning: |' <<< "$line")
		if [ -n "${CORRMASK_WARNED:-}" ] && [ -w "${CORRMASK_WARNED%/*}" ]; then
			grep -qxF -- "$about" "$CORRMASK_WARNED" 2> /dev/null && continue
			echo "$about" >> "$CORRMASK_WARNED"
		fi
		echo "$line"
	done
}

# free_space FOLDER: of its disk, such as 12M
free_space() { df -h --output=avail -- "$1" 2> /dev/null | tail -n 1 | tr -d ' '; }

# watch NAME FILE: after ten seconds, a line on the terminal with the time that a stage has taken, and the progress in FILE
watch() {
	local begin=$SECONDS parent=$$ text
	sleep 10
	while kill -0 "$parent" 2> /dev/null; do
		text=$(tail -n 1 "$2" 2> /dev/null) || text=
		printf '\r\033[K  %s: %d:%02d%s' "$1" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)) "${text:+, $text}" >&"$terminal"
		sleep 2
	done
}

# reported FILE NAME: the last value of NAME in a report, or nothing
reported() { [ ! -e "$1" ] || awk -F '\t' -v name="$2" '$1 == name { v = $2 } END { print v }' "$1"; }

# stage_times FOLDER...: the stages in these folders of logs, in the order of the run: name, seconds, the largest peak memory of a tool in MB
stage_times() {
	local report
	find "$@" -name '*.report' -printf '%T@ %p\n' 2> /dev/null | sort -n | cut -d ' ' -f 2- | while read -r report; do
		awk -F '\t' -v stage="$(basename "$report" .report)" '$1 == "seconds" { s = $2 } $1 == "peak_memory_mb" && $2 > m { m = $2 }
			END { printf "%s\t%.2f\t%d\n", stage, s, m }' "$report"
	done
}
# the same as text, for the end of a report: one line for the stages whose names begin with the same word; each is in the page of the run
stage_times_text() {
	printf '%-16s %5s %10s %12s\n' stages runs seconds "peak memory"
	stage_times "$@" | awk -F '\t' '{ k = $1; sub(/-.*/, "", k) }
		!(k in n) { name[++kinds] = k }
		{ n[k]++; t[k] += $2; if ($3 > m[k]) m[k] = $3 }
		END { for (i = 1; i <= kinds; i++) { k = name[i]; printf "%-16s %5d %10.2f %12s\n", k, n[k], t[k], m[k] + 0 " MB" } }'
}

# whole FILE: FILE.new, which is complete, becomes FILE; its data is on disk first, so that a power cut leaves no part of it
whole() {
	sync "$1.new"
	mv "$1.new" "$1"
	sync "$(dirname "$1")"
}

# rows STREAM: its number of rows
rows() { scview -s "$1" | awk -F '\t' '$2 == "rows" && n == "" { n = $3 } END { print n }'; }

# files TEXT: the array files has the one file of this name or, if there is none, the words of TEXT, which may be in quotes (xargs reads them)
# shellcheck disable=SC2034 # the caller's
files() {
	files=("$1")
	[ ! -e "$1" ] || return 0
	local words
	mapfile -d '' -t words < <(xargs -r printf '%s\0' <<< "$1" 2>/dev/null)
	# not the words of one name that is misspelled
	for word in "${words[@]}"; do
		[ ! -e "$word" ] || { files=("${words[@]}"); return 0; }
	done
}

# as_table FILE.table CAPTION [WIDTH]: the tab-separated table on standard input, whose first line has the names, becomes a table of the page's summary
# (page/page.py), and is printed as text: names to the left, numbers to the right; the names of the first column are cut where a line would have more
# than WIDTH characters
as_table() {
	{
		printf '# %s\n' "$2"
		cat
	} > "$1"
	fold -s -w "${3:-1000}" <<< "$2" | sed 's/ *$//'
	awk -F '\t' -v width="${3:-0}" 'NR == 1 { next }
		{ rows++; for (i = 1; i <= NF; i++) { cell[rows, i] = $i; if (length($i) > wide[i]) wide[i] = length($i); if (rows > 1 && $i !~ /^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$|^NA$|^-?$/) text[i] = 1 }
			if (NF > most) most = NF }
		END {
			for (i = 1; i <= most; i++) all += wide[i] + 3 * (i > 1)
			if (width && all > width && (keep = wide[1] - all + width) > 2) {
				for (r = 1; r <= rows; r++) if (length(cell[r, 1]) > keep) cell[r, 1] = substr(cell[r, 1], 1, keep - 2) ".."
				wide[1] = keep
			}
			for (r = 1; r <= rows; r++) {
			line = ""
			for (i = 1; i <= most; i++)
				line = line (i > 1 ? "   " : "") sprintf(text[i] && i == most ? "%s" : "%" (text[i] ? "-" : "") wide[i] "s", cell[r, i])
			sub(/ +$/, "", line)
			print line
		} }' "$1"
}

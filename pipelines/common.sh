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
run_by=${CORRMASK_BY:-make}
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

# takes_more REPORT: can scview --into add to the file that h5tok has read, by its report?
takes_more() { [ "$(reported "$1" input:1:format)" = 'AnnData in HDF5' ]; }

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

# shellcheck shell=bash
# Functions that the scripts of the pipelines source. BIN: folder of the tools (default: those on PATH).
set -euo pipefail
PATH=${BIN:+$BIN:}$PATH
# decimal points in every locale
[ -z "${LC_ALL:-}" ] || export LANG="$LC_ALL"
unset LC_ALL
export LC_NUMERIC=C
# shellcheck disable=SC2034 # the scripts' own: their folder
here=$(dirname "$0")

# What networks are compared with: statements of awk that fill the array name
# shellcheck disable=SC2034 # the scripts'
baselines='name["expression"] = "log-normalised expression"; name["pca"] = "50 principal components"; name["untrained"] = "network, not trained"'

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

# stage NAME COMMAND...: print NAME, run COMMAND with its messages in $logs/NAME.log, and show them if it fails; otherwise show only warnings
stage() {
	# shellcheck disable=SC2154 # the script says where
	local log=$logs/$1.log
	echo "  $1"
	shift
	mkdir -p "$logs"
	"$@" 2> "$log" || {
		cat "$log" >&2
		return 1
	}
	sed -n '/: warning: /p' "$log" >&2
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

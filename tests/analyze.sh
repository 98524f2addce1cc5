#!/usr/bin/env bash
# Static analysis of lib and src:   tests/analyze.sh clang|gcc [FILE.c]...
#
# Fails on a finding that tests/analyze.txt does not list. `make analyze` runs both analysers; JOBS= files at a time, FLAGS= of the compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$1
shift
[ $# -gt 0 ] || set -- lib/*/*.c src/*.c
export tool FLAGS=${FLAGS:-}
one() {
	local define=-DANALYZE
	[ "$1" != lib/base/error.c ] || define= # it defines what ANALYZE makes macros
	# shellcheck disable=SC2086 # FLAGS and define are lists of words
	case $tool in
	clang) clang --analyze -Xclang -analyzer-output=text $FLAGS $define "$1" -o /dev/null ;;
	gcc) gcc -fanalyzer -O0 $FLAGS $define -c "$1" -o /dev/null ;;
	esac 2>&1 || true
}
export -f one
found=$(printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -I {} bash -c 'one {}' |
	sed -nE 's/^((lib|src)[^:]*):[0-9]+:[0-9]+: (warning|error): (.*\[.*(Wanalyzer[^]]*|[a-z]+\.[^]]*)\]|.* error.*|.*not found.*)$/\1: \4/p' |
	sed 's/ \[CWE-[0-9]*\]//' | sort -u)
new=$(grep -vxFf <(grep -v '^#' tests/analyze.txt | grep .) <<< "$found" || true)
echo "$tool: $# files, $(grep -c . <<< "$found" || true) findings, $(grep -c . <<< "$new" || true) not in tests/analyze.txt"
[ -z "$new" ] || { echo "$new"; exit 1; }

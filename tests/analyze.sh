#!/usr/bin/env bash
# Static analysis of lib and src:   tests/analyze.sh clang|gcc [FILE.c]...
#
# Fails on a finding that tests/analyze.txt does not list, and, without FILE, on a listed one that is gone. `make analyze` runs both analysers; JOBS= files at a time, FLAGS= of the compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$1
shift
all=0
[ $# -gt 0 ] || { all=1; set -- lib/*/*.c src/*.c src/*/*.c; }
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
case $tool in
clang) listed=$(grep -E '^(lib|src)/' tests/analyze.txt | grep -v Wanalyzer || true) ;;
gcc) listed=$(grep -E '^(lib|src)/.*Wanalyzer' tests/analyze.txt || true) ;;
esac
without() { grep -vxFf <(echo "${1:-none}") <<< "$2" | grep . || true; } # the lines of $2 that are not in $1
new=$(without "$listed" "$found")
gone=$([ $all = 0 ] || without "$found" "$listed")
count() { grep -c . <<< "$1" || true; }
echo "$tool: $# files, $(count "$found") findings, $(($(count "$found") - $(count "$new"))) of them explained in tests/analyze.txt"
[ -z "$new" ] || printf 'Not explained:\n%s\n' "$new"
[ -z "$gone" ] || printf 'Explained, but not found any more:\n%s\n' "$gone"
[ -z "$new$gone" ]

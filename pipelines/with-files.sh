#!/usr/bin/env bash
# Run COMMAND with FILES as further arguments: one file, or several as words, which may be in quotes.
#     with-files.sh "FILES" COMMAND...
. "$(dirname "$0")/common.sh"
[ $# -ge 2 ] || usage
files "$1"
shift
exec "$@" "${files[@]}"

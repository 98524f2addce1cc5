#!/usr/bin/env bash
# How many files DATA names, and what tells them from others.
#     files.sh DATA
. "$(dirname "$0")/../common.sh"
[ $# = 1 ] || usage
list=$(mktemp)
trap 'rm -f "$list"' EXIT
"$here/corpus/corpus.sh" "$list" --threads 1 --paths "$1" --until files 2> /dev/null

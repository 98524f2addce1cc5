#!/usr/bin/env bash
# Write TEXT to FILE if FILE has another content, so that make remakes what depends on it. FOLDER, if given, has results of the old
# settings and is then removed.
#     settings.sh FILE TEXT [FOLDER]
. "$(dirname "$0")/common.sh"
[ $# -ge 2 ] || usage
printf '%s\n' "$2" | cmp -s - "$1" && exit
[ $# = 2 ] || rm -rf "$3"
mkdir -p "$(dirname "$1")"
printf '%s\n' "$2" > "$1"

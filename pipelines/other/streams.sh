#!/usr/bin/env bash
# The options of streams.py, with a python3 that has what it needs.
. "$(dirname "$0")/../common.sh"
needs=(numpy xxhash zstandard)
[ "$1" != digits ] || needs+=(sklearn)
find_python "${needs[@]}"
"$python" -B "$here/other/streams.py" "$@"

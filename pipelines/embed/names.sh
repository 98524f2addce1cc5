#!/usr/bin/env bash
# The result goes into a copy of DATA by the names of the cells, so these must differ. It is better to know before the network has run.
#     embed/names.sh TOKENS DATA
. "$(dirname "$0")/../common.sh"
[ $# = 2 ] || usage
twice=$(scview -q -c barcode "$1" | sed 1d | LC_ALL=C sort | uniq -d | sed -n 1p)
[ -z "$twice" ] || {
	echo "DATA=$2: cell '$twice' occurs twice: the embedding goes into a copy of the file by the names of the cells;" \
		"make them differ, such as with obs_names_make_unique() of anndata" >&2
	exit 1
}

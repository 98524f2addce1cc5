#!/usr/bin/env bash
# The cells of make table6 are copies of the demo's files, made again only if the content differs. So other targets that remake the
# demo's files do not invalidate a long grid of runs.
#     table6-ready.sh DEMO INPUTS LABEL LABELLED SEED
. "$(dirname "$0")/common.sh"
[ $# = 5 ] || usage
demo=$1 inputs=$2 label=$3
mkdir -p "$inputs"
{
	echo "$label $4 $5"
	cat "$demo/train.tok" "$demo/test.tok" "$demo/group" | cksum
} > "$inputs/ready.new"
if cmp -s "$inputs/ready.new" "$inputs/ready"; then
	rm "$inputs/ready.new"
	exit
fi
cp "$demo/train.tok" "$inputs/learn.tok"
cp "$demo/test.tok" "$demo/group" "$inputs"
echo "$label" > "$inputs/label"
mv "$inputs/ready.new" "$inputs/ready"
touch "$inputs/learn.tok" "$inputs/group" # newer than ready, for make

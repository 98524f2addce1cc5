#!/bin/sh
# ptxas.sh NAME.ptxas...: what ptxas reports of each kernel, as a table (docs/cuda-resources.tsv): registers a thread, static shared
# memory, stack frame and spills in bytes, by architecture. Kernels of the float mode are left out.
set -e
for f; do
	sed -n "s/.*entry function '\(.*\)' for '\(.*\)'/K \1 \2/p; s/.* \([0-9]*\) bytes stack frame, \([0-9]*\) bytes spill stores, \([0-9]*\) .*/S \1 \2 \3/p
		s/.*Used \([0-9]*\) registers.* \([0-9]*\) bytes smem.*/R \1 \2/p; t; s/.*Used \([0-9]*\) registers.*/R \1 0/p" "$f" |
		sed "s|^K|K $(basename "$f" .ptxas)|"
done | c++filt -p | sed 's/void //; s/, /,/g; s/(\([a-z]*\))\([0-9]\)/\2/g; s/(bool)//g' |
	awk 'BEGIN { OFS = "\t"; print "file", "kernel", "arch", "registers", "static_shared", "stack", "spill_stores", "spill_loads" }
	$1 == "K" { file = $2; name = $3; arch = $4; stack = stores = loads = 0 }
	$1 == "S" { stack = $2; stores = $3; loads = $4 }
	$1 == "R" && (name !~ /<float/ || name ~ /gemm/) { print file, name, arch, $2, $3, stack, stores, loads }' |
	{ IFS= read -r head; printf '%s\n' "$head"; LC_ALL=C sort; }

#!/bin/sh
# ptxas.sh NAME.ptxas...: what ptxas says of each kernel, as the table of docs/cuda.md: registers by architecture, static shared memory,
# and below it every spill. Kernels of the float mode are left out.
set -e
for f; do
	sed -n "s/.*entry function '\(.*\)' for '\(.*\)'/K \1 \2/p; s/.* \([0-9]*\) bytes stack frame, \([0-9]*\) bytes spill stores, \([0-9]*\) .*/S \1 \2 \3/p
		s/.*Used \([0-9]*\) registers.* \([0-9]*\) bytes smem.*/R \1 \2/p; t; s/.*Used \([0-9]*\) registers.*/R \1 0/p" "$f" |
		sed "s|^K|K $(basename "$f" .ptxas)|"
done | c++filt -p | sed 's/void //; s/, /,/g; s/(\([a-z]*\))\([0-9]\)/\2/g; s/(bool)//g' |
	awk '$1 == "K" { file = $2; name = $3; arch = $4; if (!(arch in seen)) { seen[arch]; archs[++n] = arch } next }
	$1 == "S" { if ($2 + $3 + $4) spill = spill sprintf("\n- %s: `%s` on %s: %d bytes of stack, %d stored, %d loaded", file, name, arch, $2, $3, $4); next }
	$1 == "R" { key = file " | `" name "`"; if (!(key in shared)) order[++m] = key; regs[key, arch] = $2; shared[key] = $3 }
	END { printf "| file | kernel |"; for (i = 1; i <= n; i++) printf " %s |", archs[i]; print " static shared |"
		printf "|---|---|"; for (i = 1; i <= n; i++) printf "---|"; print "---|"
		for (k = 1; k <= m; k++) { if (order[k] ~ /<float/ && order[k] !~ /gemm/) continue; printf "| %s |", order[k]
			for (i = 1; i <= n; i++) printf " %s |", regs[order[k], archs[i]]; printf " %d |\n", shared[order[k]] }
		print spill ? "\nSpills or stack frames:\n" spill : "\nNo spills, no stack frames." }'

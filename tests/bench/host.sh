#!/bin/sh
# host.sh BIN NULL CORPUS DIR: how many tokens a second the host can feed a GPU with, when the GPU takes no time (null_device.c, in NULL):
# sctrain of a masked file and of a pipe from maskgen, and scembed. Best of three.
set -e
bin=$1 null=$2 corpus=$3 dir=$4
mkdir -p "$dir/null"
cp "$bin/sctrain" "$bin/scembed" "$null"/*.so* "$dir/null"
export LD_LIBRARY_PATH="$null"
"$bin/maskgen" -q -u --batch 12 -o "$dir/host.masked" "$corpus"
tokens=$("$bin/scview" -s "$corpus" | awk -F '\t' '$1 == "token[]" && $2 == "items" { print $3 }')
train() { "$dir/null/sctrain" mlm -q --force --device cuda --save-every 1000000 -o "$dir/null/model" "$@"; }
rate() { # NAME COMMAND...
	name=$1
	shift
	for _ in 1 2 3; do
		a=$(date +%s.%N)
		"$@"
		b=$(date +%s.%N)
		echo "$a $b"
	done | awk -v n="$name" -v t="$tokens" '{ x = t / ($2 - $1) / 1e6; if (x > best) best = x } END { printf "%s\t%.1f million tokens/s\n", n, best }'
}
from_file() { train "$dir/host.masked"; }
from_pipe() { "$bin/maskgen" -q -u --batch 12 "$corpus" | train; }
embed() { "$dir/null/scembed" -q -u -M "$dir/null/model" --device cuda "$corpus" >/dev/null; }
rate "sctrain mlm, a file" from_file
rate "maskgen -u | sctrain mlm" from_pipe
rate "scembed" embed

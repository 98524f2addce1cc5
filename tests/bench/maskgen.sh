#!/usr/bin/env bash
# maskgen.sh BIN CORPUS DIR: million tokens a CPU second (user + system, all threads), best of three. TORCH: a python with torch and
# transformers, to time their collator on the same cells.
set -e
bin=$1 corpus=$2 dir=$3
[ "$dir/bench.graph" -nt "$corpus" ] || "$bin/depgraph" -q "$corpus" -o "$dir/bench.graph"
[ "$dir/bench.pmi" -nt "$corpus" ] || "$bin/depgraph" -q --pmi "$corpus" -o "$dir/bench.pmi"
tokens=$("$bin/scview" -s "$corpus" | awk -F '\t' '$1 == "token[]" && $2 == "items" { print $3 }')
echo "tokens	$tokens"
/usr/bin/python3 - "$bin" "$corpus" "$dir" "$tokens" <<'END' | tee "$dir/maskgen.tsv"
import os, resource, subprocess, sys
bin, corpus, dir, tokens = sys.argv[1:]
def cpu(*command):
    best = 1e9
    for _ in range(3):
        a = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        b = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime)
    return best
maskgen = [os.path.join(bin, "maskgen"), "-u", "--epochs", "3", corpus]
graph, pmi = os.path.join(dir, "bench.graph"), os.path.join(dir, "bench.pmi")
for name, args in (("none", ["--strategy", "none"]), ("random", []), ("bernoulli", ["--bernoulli"]),
                   ("corrmask", ["--strategy", "corrmask", "-g", graph]),
                   ("corrmask_lambda_1", ["--strategy", "corrmask", "-g", graph, "--lambda", "1"]),
                   ("pmi", ["--strategy", "pmi", "-g", pmi])):
    print(f"{name}_mtokens_per_s\t{3 * int(tokens) / cpu(*maskgen, *args) / 1e6:.1f}", flush=True)
END
[ -n "$TORCH" ] || { echo "hf_collator	not measured: TORCH= names no python with torch and transformers"; exit 0; }
"$bin/scview" -n 2000 -c token "$corpus" | tail -n +2 >"$dir/bench.txt"
OMP_NUM_THREADS=1 "$TORCH" tests/bench/maskgen_torch.py "$dir/bench.txt" "$(sed -n 's/^bernoulli_mtokens_per_s.//p' "$dir/maskgen.tsv")"

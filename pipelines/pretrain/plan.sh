#!/usr/bin/env bash
# What the training will take, by some of its first steps on this machine: PRETRAIN/plan.txt. COMMAND runs them, on $FEW or few.tok.
#     plan.sh PRETRAIN RANKS BATCH -- COMMAND...
. "$(dirname "$0")/../common.sh"
[ $# -gt 4 ] || usage
run=$1 ranks=$2 batch=$3
shift 4
plan() { reported "$run/plan.tsv" "$1"; }
logs=$run/log
first() { stage sctrain-first "$@"; }
# six steps tell enough of a large network, of a small one all of few.tok
CORRMASK_REPORT='' scsample -q -n $((6 * batch)) -o "$run/fewer.tok" "$run/few.tok"
begin=$EPOCHREALTIME
FEW=$run/fewer.tok first "$@"
awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a < 5) }' && first "$@"
rm "$run/fewer.tok"
report=$logs/sctrain-first.report
rate=$(awk -F '\t' 'NR > 1 { v[NR - 1] = $5 } END { n = NR - 1; for (i = int(n / 2) + 1; i <= n; i++) { s += 1 / v[i]; k++ } print k / s }' "$run/untrained/train.tsv")
rm "$run/untrained/train.tsv"
parameters=$(reported "$report" parameters)
memory=$(awk -F '\t' '$1 == "peak_memory_mb" { s += $2 } END { print s }' "$report")
cells=$(awk -F '\t' '$1 == "cells" { n = $2 } END { print n }' "$report") tokens=$(reported "$report" tokens)
per_cell=$(awk -v all="$(plan tokens_per_cell)" -v few="$tokens" -v cells="$cells" 'BEGIN { print all ? all : few / cells }')
valid=$(reported "$logs/cells-valid.masked.report" cells)
free=$(df --output=avail -B 1M -- "$run" | tail -n 1)
available=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
awk -F '\t' -v OFS='\t' -v rate="$rate" -v per_cell="$per_cell" -v valid="${valid:-0}" -v batch="$batch" -v parameters="$parameters" -v memory="$memory" -v free="$free" \
	-v by="$run_by" -v available="$available" -v ranks="$ranks" -v run="$run" '
	{ v[$1] = $2; why[$1] = $3 }
	function sep(x,    s) { s = sprintf("%.0f", x); while (s ~ /[0-9][0-9][0-9][0-9]/) sub(/[0-9][0-9][0-9]($|,)/, ",&", s); return s }
	function size(mb) { return mb >= 1000 ? sprintf("%.1f GB", mb / 1000) : sprintf("%.0f MB", mb < 1 ? 1 : mb) }
	function span(s) { return s >= 172800 ? sprintf("%.1f days", s / 86400) : s >= 5400 ? sprintf("%.1f hours", s / 3600) : s >= 90 ? sprintf("%.0f minutes", s / 60) : sprintf("%.0f seconds", s) }
	function line(name, text) { printf "%-11s %s\n", name, text }
	END {
		steps = int((v["train"] + batch - 1) / batch) * v["epochs"]
		seconds = v["train"] * per_cell * v["epochs"] / rate + 10 * valid * per_cell / (3 * rate)
		disk = parameters * 32 / 1e6 # two checkpoints with both moments, the best weights, the model
		line("cells", sep(v["train"]) " for training, " sep(v["held"]) " held out, " ("donors" in v ? v["donors_held"] " of " v["donors"] " donors" : "each by itself, so cells of one donor are in both parts") \
			"; validation on " sep(valid) " of them")
		line("tokens", sep(v["train"] * per_cell) " an epoch, " sprintf("%.0f", per_cell) " a cell" (v["max_len"] ? ", at most " v["max_len"] " (MAXLEN, " why["max_len"] ")" : ""))
		line("network", (v["config"] ? v["config"] : "INIT") ", " sep(parameters) " weights (CONFIG, " why["config"] ")")
		line("training", sep(steps) " steps of " batch " cells, " v["epochs"] (v["epochs"] == 1 ? " epoch" : " epochs") " (EPOCHS, " why["epochs"] "), rate " v["lr"] " (LR, " why["lr"] ")")
		line("time", "the whole training about " span(seconds) " on this machine: " sep(rate) " tokens a second in the first steps" (ranks > 1 ? " of " ranks " ranks" : ""))
		line("memory", size(memory) (ranks > 1 ? " for all ranks" : "") ", of " size(available) " that are available here")
		line("disk", size(disk) " for checkpoints and model, of " size(free) " that are free")
		line("progress", by " plot-train MODEL=" run "/model draws the loss, " run "/log/sctrain.log has a line a minute")
		line("again", "the same command goes on after a kill")
		every = int(60 * rate / (batch * per_cell)); if (every > 1000) every = 1000; if (every < 10) every = 10
		print every > (run "/save_every") # a checkpoint every minute
		if (disk > free) { print "the training needs " size(disk) " on the disk, and " size(free) " are free" > "/dev/stderr"; exit 1 }
	}' "$run/plan.tsv" > "$run/plan.txt.new"
whole "$run/plan.txt"

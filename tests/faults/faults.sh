#!/usr/bin/env bash
# Does every tool survive the failure of any one call?   tests/faults/faults.sh [-n MOST] [-j JOBS] [-k FOLDER] [CASE]...
#
# Runs each tool on small input once to count its calls, then again and again: with the n-th call of a group failing, alone ("once") or with
# all that follow ("on"); tests/faults/shim.c does it. Allowed is: the right output, or a refusal (status 1 or 2, one or two lines on standard
# error, nothing at the destination, no temporary file). Prints a table of what was tried, and each run that did anything else, with the
# command that repeats it; ends with status 1 if there was one.
# -n  runs of a group at most, spread over its calls (default 40; 0: all)      -k  keep the folder of the inputs      BIN  the tools (bin)
set -u
here=$(cd "$(dirname "$0")" && pwd)
bin=$(realpath "${BIN:-bin}") most=40 jobs=$(nproc) keep=''
while getopts n:j:k: o; do
	case $o in n) most=$OPTARG ;; j) jobs=$OPTARG ;; k) keep=$OPTARG ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
work=${keep:-$(mktemp -d)}
mkdir -p "$work/in" "$work/run"
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
export PATH=$bin:$PATH OMP_NUM_THREADS=2
"${CC:-cc}" -O1 -shared -fPIC -o "$work/shim.so" "$here/shim.c" || exit 1

inputs() {
	cd "$work/in" || return
	[ -e complete ] && return
	scsim -q --cells 120 --genes 160 --types 3 --rarest 0.2 --depth 200 --donors 3 --seed 3 -o counts &&
		scview -q -O h5ad counts -o in.h5ad && rankenc -q --fit counts -o vocab && rankenc -q -m vocab counts -o tok &&
		depgraph -q tok -o graph && depgraph -q --pmi --tau 0.1 tok -o pmi.graph &&
		maskgen -q -g graph --strategy corrmask --batch 20 tok -o masked && maskgen -q --strategy none --keep cell_type --batch 20 tok -o none &&
		sctrain mlm -q --config tiny masked -o model &&
		sctrain cells -q --label cell_type --init model none -o cells.model 2> /dev/null &&
		awk -F'\t' 'BEGIN { print "gene\tlabel" } NR > 1 && $2 !~ /^</ { print $2 "\t" (++n % 2 ? "odd" : "even") }' vocab > genes.tsv &&
		rankenc -q -m vocab --ties group --value counts -o values.tok && maskgen -q --objective value --batch 20 values.tok -o values &&
		maskgen -q --strategy columns --batch 20 counts -o masked.counts && sctrain nb -q --config mlp-nb-tiny masked.counts -o nb.model &&
		scembed -q -M model tok -o emb && scembed -q -M cells.model --predict tok -o pred && touch complete
}

# name, command. The command runs in an empty folder; $I is the folder of the inputs.
cases() {
	cat <<- 'X'
		h5tok	h5tok -q -@ 2 $I/in.h5ad -o out
		h5tok-rank	h5tok -q -@ 2 --rank $I/vocab --value $I/in.h5ad -o out
		rankenc-fit	rankenc -q --fit $I/counts -o out
		rankenc	rankenc -q -m $I/vocab $I/counts -o out
		depgraph	depgraph -q --modules 1 $I/tok -o out
		depgraph-pmi	depgraph -q --pmi --tau 0.1 $I/tok -o out
		depgraph-tsv	depgraph -q --tsv $I/graph -o out
		maskgen	maskgen -q -g $I/graph --strategy corrmask --batch 20 $I/tok -o out
		maskgen-audit	maskgen -q -g $I/graph --strategy corrmask --audit $I/graph $I/tok -o out
		maskgen-probe	maskgen -q -g $I/graph --strategy probe --partners visible --batch 20 $I/tok -o out
		scsample	scsample -q -n 50 --stratify cell_type $I/tok -o out
		scsample-cat	scsample -q $I/tok $I/tok -o out
		scsim	scsim -q --cells 50 --genes 120 --types 2 --rarest 0.3 --depth 100 --seed 3 -o out
		scview-tsv	scview -q $I/tok -o out
		scview-h5ad	scview -q -O h5ad $I/counts -o out.h5ad
		scview-into	scview -q -O h5ad --into $I/in.h5ad $I/emb -o out.h5ad
		scview-npy	scview -q -O npy $I/emb -o out
		sctrain-mlm	sctrain mlm -q --config tiny $I/masked -o out
		sctrain-cells	sctrain cells -q --label cell_type --init $I/model $I/none -o out
		sctrain-eval	sctrain eval -q -M $I/model $I/masked -o out
		maskgen-columns	maskgen -q --strategy columns --batch 20 $I/counts -o out
		maskrisk	maskrisk data -q --genes 40 $I/counts -o out
		scsample-hvg	scsample -q --hvg 40 $I/counts -o out
		maskgen-value	maskgen -q --objective value --batch 20 $I/values.tok -o out
		sctrain-value	sctrain value -q --config tiny $I/values -o out
		sctrain-nb	sctrain nb -q --config mlp-nb-tiny $I/masked.counts -o out
		sctrain-nb-curriculum	sctrain nb -q --config mlp-nb-tiny --curriculum easy $I/masked.counts -o out
		sctrain-eval-nb	sctrain eval -q -M $I/nb.model $I/masked.counts -o out
		scembed	scembed -q -M $I/model $I/tok -o out
		scembed-predict	scembed -q -M $I/cells.model --predict $I/tok -o out
		scembed-nb	scembed -q -M $I/nb.model $I/counts -o out
		scembed-pca	scembed -q --pca 5 $I/counts -o out
		ctaprobe-cells	ctaprobe cells -q --label cell_type --folds 3 $I/emb -o out
		ctaprobe-score	ctaprobe score -q --label cell_type $I/pred -o out
		ctaprobe-map	ctaprobe map -q $I/emb -o out
		depgraph-layout	depgraph -q --layout $I/graph -o out
	X
}

# What is in folder $1, as one digest, without times and HDF5's own dates.
content() {
	(cd "$1" && find . -type f ! -name log | sort | while read -r f; do
		echo "$f"
		case $f in
		*/train.tsv) cut -f1-4,7- "$f" ;;
		*/trainer_state.json) sed 's/"seconds":[[:space:]]*[0-9.e+-]*//' "$f" ;;
		./out.h5ad) h5tok -q "$f" -o - ;; # HDF5 writes the time into its objects
		*) cat "$f" ;;
		esac
	done) | sha256sum
}

# What a refusal must not leave in folder $1. A training that fails keeps its checkpoints and curve, but no model.
left() {
	find "$1" -type f ! -path '*/checkpoint-*/*' ! -name train.tsv ! -name config.json ! -name vocab.tsv
}

# HDF5 1.10 ends the process itself, or crashes, when some of its allocations fail; so does the DrL layout of igraph 0.10.2, in C++ without a
# handler. The tools can only take care that nothing is left.
library_dies() {
	case $1:${2%%:*}:$3 in
	scview-h5ad:alloc:255 | scview-h5ad:alloc:139 | scview-into:alloc:255 | scview-into:alloc:139 | ctaprobe-map:alloc:134 | ctaprobe-map:alloc:139) ;;
	*) return 1 ;;
	esac
}

# One run: NAME GROUP:N[:on][:HOW]. Prints NAME GROUP right|refused|wrong and why.
one() {
	local name=$1 fault=$2 dir status why='' lines
	dir=$work/run/$name-${fault//:/-}
	local command
	command=$(cases | awk -F'\t' -v n="$name" '$1 == n { print $2 }')
	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$dir" && eval "FAULT=$fault LD_PRELOAD=$work/shim.so timeout 60 $command") > "$work/run/$name-${fault//:/-}.out" 2> "$work/run/$name-${fault//:/-}.log" < /dev/null
	status=$?
	local log=$work/run/$name-${fault//:/-}.log
	# HDF5 prints by itself when it cannot even start
	lines=$(grep -cvE "^$|warning|note|^HDF5-DIAG|^  #[0-9]+: |^    (major|minor): " "$log")
	if [ "$status" = 0 ]; then
		what=right
		[ "$(content "$dir")" = "$(cat "$work/run/$name.right")" ] || what=wrong why="status 0, another output"
	elif [ "$status" -gt 2 ]; then
		what=wrong why="status $status: $(tail -n 1 "$log")"
		library_dies "$name" "$fault" "$status" && [ -z "$(ls -A "$dir")" ] && what=library
	elif [ -n "$(left "$dir")" ]; then
		what=wrong why="status $status, leaves $(left "$dir" | head -3 | tr '\n' ' ')"
	elif [ "$lines" = 0 ] || [ "$lines" -gt 2 ]; then
		what=wrong why="status $status, $lines lines: $(tail -n 1 "$log")"
	else
		what=refused
	fi
	rm -rf "$dir"
	[ "$what" = wrong ] || rm -f "$log" "$work/run/$name-${fault//:/-}.out"
	printf '%s\t%s\t%s\t%s\t%s\n' "$name" "${fault%%:*}" "$what" "$fault" "$why"
}
export -f one content cases left library_dies
export work I=$work/in

plan() {
	local name=$1
	local dir=$work/run/$name.clean command
	command=$(cases | awk -F'\t' -v n="$name" '$1 == n { print $2 }')
	rm -rf "$dir" && mkdir -p "$dir" && rm -f "$work/run/$name.count"
	(cd "$dir" && eval "FAULT_COUNT=$work/run/$name.count LD_PRELOAD=$work/shim.so $command") > /dev/null 2> "$work/run/$name.log" < /dev/null ||
		{ cat "$work/run/$name.log" >&2; echo "faults.sh: $name fails without a fault" >&2; return 1; }
	content "$dir" > "$work/run/$name.right"
	awk -v name="$name" -v most="$most" '
	{
		split($1 == "read" ? "EIO short EINTR" : $1 == "write" ? "ENOSPC EIO short EINTR" : $1 == "open" ? "EMFILE EIO" : $1 == "alloc" ? "ENOMEM" : \
			$1 == "mmap" ? "ENOMEM" : $1 == "thread" ? "EAGAIN" : "EIO", how, " ")
		for (h in how)
			for (on = 0; on < 2; on++) {
				if (on && (how[h] == "EINTR" || how[h] == "short"))
					continue
				step = most && $2 > most ? $2 / most : 1
				for (n = 1; n < $2 + 1; n += step)
					print name, $1 ":" int(n) (on ? ":on" : "") ":" how[h]
			}
	}' "$work/run/$name.count" | sort -u
}

inputs > "$work/inputs.log" 2>&1 || { cat "$work/inputs.log" >&2; echo "faults.sh: the inputs cannot be made" >&2; exit 1; }
failed=0
[ $# -gt 0 ] || mapfile -t all < <(cases | cut -f1)
for name in "${@:-${all[@]}}"; do plan "$name" || failed=1; done > "$work/plan"
# shellcheck disable=SC2016
xargs -P "$jobs" -L 1 bash -c 'one "$1" "$2"' _ < "$work/plan" > "$work/results"
awk -F'\t' '
	{ n[$1 FS $2 FS $3]++; if (!seen[$1 FS $2]++) { row[++rows] = $1 FS $2 } }
	END {
		printf "%-16s %-8s %7s %7s %7s %7s %7s\n", "tool", "call", "tried", "right", "refused", "library", "wrong"
		for (i = 1; i <= rows; i++) {
			split(row[i], part, FS)
			r = n[row[i] FS "right"]; f = n[row[i] FS "refused"]; w = n[row[i] FS "wrong"]; l = n[row[i] FS "library"]
			printf "%-16s %-8s %7d %7d %7d %7d %7d\n", part[1], part[2], r + f + l + w, r, f, l, w
		}
	}' "$work/results"
awk -F'\t' '$3 == "wrong" { print "wrong: " $1 " FAULT=" $4 ": " $5; bad = 1 } END { exit bad }' "$work/results" || failed=1
exit $failed

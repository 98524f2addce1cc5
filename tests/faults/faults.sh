#!/usr/bin/env bash
# Does every tool survive the failure of any one call?   tests/faults/faults.sh [-n MOST] [-j JOBS] [-k FOLDER] [CASE]...
#
# Runs each tool on small input once to list its calls, then again and again: with the n-th call of a group failing, alone ("once") or with
# all that follow ("on"); tests/faults/shim.c does it. Allowed is: the right output, or a refusal (status 1 or 2, one or two lines on standard
# error, nothing at the destination, no temporary file). Prints a table of what was tried, and each run that did anything else, with the
# command that repeats it; ends with status 1 if there was one.
# Of the calls that the same functions led to (the same stack), only the first and the last fail.
# -n  calls of a group at most, spread over these (default 40; 0: all)      -k  keep the folder of the inputs      BIN  the tools (bin)
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

# shellcheck source=tests/faults/cases.sh
. "$here/cases.sh"

# What is in folder $1, as one digest, without times and HDF5's own dates.
content() {
	(cd "$1" && find . -type f ! -name log | sort | while read -r f; do
		echo "$f"
		case $f in
		*/train.tsv) cut -f1-4,7- "$f" ;;
		*/trainer_state.json) sed 's/"seconds":[[:space:]]*[0-9.e+-]*//; /\t"digest":/d' "$f" ;;
		./out.h5ad) h5tok -q "$f" -o - ;; # HDF5 writes the time into its objects
		*) cat "$f" ;;
		esac
	done) | sha256sum
}

# What a refusal must not leave in folder $1. A training that fails keeps its checkpoints, tables and curve, but no model.
left() {
	find "$1" -type f ! -path '*/checkpoint-*/*' ! -name train.tsv ! -name config.json ! -name vocab.tsv ! -name genes.tsv
}

# Open MPI 4.1 crashes in MPI_Abort without memory, and waits for ever (124) when libnbc, its part for running sums, cannot allocate one or
# its next round. If its start fails, it ends the rank itself (_exit) after many lines of its own; that of a failing eventfd it prints for
# as long as it lasts. Where all writes fail, the rank cannot say anything. The tools can only take care that nothing is left.
library_dies() { # NAME FAULT STATUS LOG
	case $1:$2:$3 in
	sctrain-mpi-*:alloc:*:139) ;;
	sctrain-mpi-*:alloc:*:124) grep -qE '^Error in NBC_Start_round|mca_coll_libnbc' "$4" ;;
	sctrain-mpi-start-*:write:*:on:*:1) grep -q '^mpirun detected' "$4" ;;
	sctrain-mpi-*:124 | sctrain-mpi-*:137) grep -q '^mpirun detected' "$4" ;; # mpirun waits for itself after the ranks have ended
	sctrain-mpi-start-*:write:*:139) grep -q '^mpirun detected' "$4" ;; # mpirun crashes after the ranks have ended
	sctrain-mpi-start-*:1) grep -qE '\*\*\* An error occurred in MPI_Init_thread|^It looks like MPI_INIT failed|^\[warn\] Error reading from eventfd|pmix_ptl_base: send_msg' "$4" ;;
	*) return 1 ;;
	esac
}

# with_shim VARIABLE COMMAND: run it with this variable of the shim. Of several ranks, one has the shim.
with_shim() {
	export FAULTS="$1 LD_PRELOAD=$work/shim.so"
	case $2 in
	*AT=start*'; ranks '*) export FAULTS="$FAULTS FAULT_MPI=start FAULT_TRACE=1" && eval "$2" ;;
	*'; ranks '*) export FAULTS="$FAULTS FAULT_MPI=run FAULT_TRACE=1" && eval "$2" ;;
	*) eval "timeout 60 env $FAULTS $2" ;;
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
	(cd "$dir" && with_shim "FAULT=$fault" "$command") > "$work/run/$name-${fault//:/-}.out" 2> "$work/run/$name-${fault//:/-}.log" < /dev/null
	status=$?
	local log=$work/run/$name-${fault//:/-}.log
	# mpirun tells of a job that was ended, in many lines
	cp "$log" "$log.all"
	[[ $name != *-mpi-* ]] || grep '^sctrain[ :]' "$log.all" > "$log"
	# HDF5 prints by itself when it cannot even start, and C++ when igraph does not catch an exception
	lines=$(grep -cvE "^$|warning|note|^HDF5-DIAG|^  #[0-9]+: |^    (major|minor): |^terminate called |^  what\(\): " "$log")
	if [ "$status" = 0 ]; then
		what=right
		[ "$(content "$dir")" = "$(cat "$work/run/$name.right")" ] || what=wrong why="status 0, another output"
	elif [ "$status" -gt 2 ]; then
		what=wrong why="status $status: $(tail -n 1 "$log")"
		library_dies "$name" "$fault" "$status" "$log.all" && [ -z "$(left "$dir")" ] && what=library
	elif [ -n "$(left "$dir")" ]; then
		what=wrong why="status $status, leaves $(left "$dir" | head -3 | tr '\n' ' ')"
	elif [ "$lines" = 0 ] || [ "$lines" -gt 2 ]; then
		what=wrong why="status $status, $lines lines: $(tail -n 1 "$log")"
		[ "$lines" = 0 ] && library_dies "$name" "$fault" "$status" "$log.all" && what=library
	else
		what=refused
	fi
	rm -rf "$dir"
	[ "$what" = wrong ] || rm -f "$log" "$log.all" "$work/run/$name-${fault//:/-}.out"
	printf '%s\t%s\t%s\t%s\t%s\n' "$name" "${fault%%:*}" "$what" "$fault" "$why"
}
export -f one with_shim ranks content cases left library_dies
export work I=$work/in

plan() {
	local name=$1 most=$most
	# a quarter, and none of fewer than eight: after most failing writes MPI waits until CORRMASK_MPI_SECONDS
	if [[ $name = *-mpi-start-* ]]; then
		[ "$most" = 0 ] || [ "$most" -ge 8 ] || return 0
		most=$(((most + 3) / 4))
	fi
	local dir=$work/run/$name.clean command
	command=$(cases | awk -F'\t' -v n="$name" '$1 == n { print $2 }')
	rm -rf "$dir" && mkdir -p "$dir" && rm -f "$work/run/$name.places"
	(cd "$dir" && with_shim "FAULT_PLACES=$work/run/$name.places" "$command") > /dev/null 2> "$work/run/$name.log" < /dev/null ||
		{ cat "$work/run/$name.log" >&2; echo "faults.sh: $name fails without a fault" >&2; return 1; }
	content "$dir" > "$work/run/$name.right"
	# of every stack, the first and the last call; then the runs
	awk '
	{
		place = $1 FS $3
		if (!(place in first))
			first[place] = $2
		else
			last[place] = $2
	}
	END {
		for (place in first) {
			split(place, part, FS)
			print part[1], first[place]
			if (place in last)
				print part[1], last[place]
		}
	}' "$work/run/$name.places" | sort -u -k 1,1 -k 2,2n | awk -v name="$name" -v most="$most" '
	function runs(k,  how, h, on, i, step) {
		split(HOW[group], how, " ")
		step = most && k > most ? k / most : 1
		for (h in how)
			for (on = 0; on < 2; on++)
				for (i = 1; i < k + 1; i += step)
					if (!on || (how[h] != "EINTR" && how[h] != "short"))
						print name, group ":" call[int(i)] (on ? ":on" : "") ":" how[h]
	}
	BEGIN {
		HOW["alloc"] = HOW["mmap"] = "ENOMEM"
		HOW["thread"] = "EAGAIN"
		HOW["read"] = "EIO short EINTR"
		HOW["write"] = "ENOSPC EIO short EINTR"
		HOW["open"] = "EMFILE EIO"
		HOW["close"] = HOW["fsync"] = HOW["rename"] = "EIO"
	}
	$1 != group {
		runs(k)
		group = $1
		k = 0
	}
	{ call[++k] = $2 }
	END { runs(k) }'
}

inputs > "$work/inputs.log" 2>&1 || { cat "$work/inputs.log" >&2; echo "faults.sh: the inputs cannot be made" >&2; exit 1; }
failed=0
[ $# -gt 0 ] || mapfile -t all < <(cases | cut -f1)
for name in "${@:-${all[@]}}"; do plan "$name" || failed=1; done > "$work/plan"
# shellcheck disable=SC2016
xargs -r -P "$jobs" -L 1 bash -c 'one "$1" "$2"' _ < "$work/plan" > "$work/results"
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

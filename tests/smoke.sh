#!/usr/bin/env bash
# The parts of make smoke (tests/smoke.mk).
#     smoke.sh inputs FOLDER                            make the files that some experiments need
#     smoke.sh run FOLDER NAME GOAL VARIABLE=VALUE...   make GOAL of the pipelines; print NAME, its seconds and its processor time, or what went wrong
#     smoke.sh summary FOLDER NAME...                   what ran, what did not
set -euo pipefail
what=$1 dir=$2
shift 2
case $what in
inputs)
	PATH=$BIN:$PATH
	# cells of another tissue, with the genes of the simulated ones
	scsim -q --cells 250 --genes 300 --modules 30 --module-share 1 --depth 20000 --activity 2 --noise 0.3 --rarest 0.02 --seed 9 -o "$dir/corpus.counts"
	scview -q -O h5ad -o "$dir/corpus.h5ad" "$dir/corpus.counts"
	# gene sets: the modules of the cells that the audit simulates
	scsim -q --cells 1 -o "$dir/one.counts" # no pipe: scview --vocab does not read to the end
	scview -q --vocab "$dir/one.counts" | awk -F '\t' 'NR > 1 { m = $3; sub(/\..*/, "", m); if (m != "bg") set[m] = set[m] "\t" $2 }
		END { for (m in set) print m "\t-" set[m] }' > "$dir/sets.gmt"
	{
		printf 'name\turl\tsum\tbytes\tlicence\tlabel\tdonor\tdescription\n'
		printf 'small\tfile://%s\t%s\t%s\tnone\tcell_type\tdonor\tsimulated\n' "$(realpath "$dir/corpus.h5ad")" \
			"$(sha256sum < "$dir/corpus.h5ad" | cut -d ' ' -f 1)" "$(stat -c %s "$dir/corpus.h5ad")"
	} > "$dir/catalog.tsv"
	;;
run)
	name=$1
	shift
	printf '  %-18s' "$name"
	TIMEFORMAT='%R %U %S'
	if took=$( { time env -u MAKEFLAGS -u MAKELEVEL make -s -j"$JOBS" --output-sync=target -C "$dir" -f "$PWD/pipelines/Makefile" BIN="$BIN" SCALE=tiny "$@" \
		> "$dir/$name.log" 2>&1; } 2>&1); then
		awk '{ printf "%6.1f s, %.1f of processor time\n", $1, $2 + $3 }' <<< "$took"
		echo "$took" > "$dir/$name.seconds"
	else
		echo "   FAILED: $dir/$name.log ends with"
		tail -n 15 "$dir/$name.log" | sed 's/^/    /'
		exit 1
	fi
	;;
summary)
	done=() failed=()
	for name; do
		if [ -e "$dir/$name.seconds" ]; then done+=("$dir/$name.seconds"); else failed+=("$name"); fi
	done
	echo "smoke: ${#done[@]} of $# experiments ran, $([ ${#done[@]} = 0 ] || awk '{ s += $1; p += $2 + $3 } END { printf "%.0f s, %.0f of processor time", s, p }' \
		"${done[@]}")$([ ${#failed[@]} = 0 ] || echo "; failed: ${failed[*]}")"
	[ ${#failed[@]} = 0 ]
	;;
esac

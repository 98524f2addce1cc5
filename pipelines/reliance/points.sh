#!/usr/bin/env bash
# Partner reliance from the losses of make reliance.
#     reliance/points.sh RELIANCE "STRATEGY..." "SEED..." OUT
# OUT/points.tsv       each network: mean loss with visible and with hidden partners, R, and its 95 % interval over the cells
# OUT/summary.tsv      each strategy: the means of these over the seeds
# OUT/differences.tsv  R of each strategy minus that of the first one, paired by seed
# OUT/cells.tsv        the same differences, with the interval that comes from the choice of the cells
# All are tables of armstat compare. They are empty if there was no target.
. "$(dirname "$0")/../tables.sh"
[ $# = 4 ] || usage
dir=$1 strategies=$2 seeds=$3 out=$4
for f in points summary differences cells; do : > "$out/$f.tsv"; done
for s in $strategies; do
	for k in $seeds; do
		# the rows of both streams are the same cells and targets in the same order
		paste "$dir/$s-$k.hidden.cells" "$dir/$s-$k.visible.cells" | sed "1d; s/^/$s\t$k\t/"
	done
done | awk -F '\t' -v OFS='\t' -v OFMT=%.17g '
	$3 != $8 || $4 != $9 || $5 != $10 { print "reliance: " $1 "-" $2 ": rows of hidden and visible partners differ" > "/dev/stderr"; exit 1 }
	NR == 1 { print "strategy", "seed", "cell", "epoch", "visible", "hidden", "R" }
	$5 > 0 { print $1, $2, $3, $4, $11, $6, $6 - $11 }' > "$out/rows.in"
if [ "$(wc -l < "$out/rows.in")" -gt 1 ]; then
	means --arm seed --within strategy --metrics visible,hidden,R --cluster cell "$out/rows.in" | awk -F '\t' -v OFS='\t' "$by_name"'
		$c["value"] != "R" { mean[$c["value"], $c["strategy"], $c["arm"]] = $c["mean"]; next }
		!any++ { print "strategy", "seed", "visible", "hidden", "R", "low", "high" }
		{ k = $c["strategy"] SUBSEP $c["arm"]; print $c["strategy"], $c["arm"], mean["visible", k], mean["hidden", k], $c["mean"], $c["low"], $c["high"] }' \
		> "$out/points.tsv"
	means --arm strategy --metrics visible,hidden,R "$out/points.tsv" > "$out/summary.tsv"
	there=$strategies
	for s in $strategies; do pair "$s" "${strategies%% *}"; done
	differences --arm strategy --metrics R --pair seed "$out/points.tsv" > "$out/differences.tsv"
	differences --arm strategy --metrics R --pair seed,cell,epoch --cluster cell "$out/rows.in" > "$out/cells.tsv"
fi
rm "$out/rows.in"

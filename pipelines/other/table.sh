#!/usr/bin/env bash
# other/table.sh FOLDER "KIND..." "ARM..." "SEED...": the table of make r2mae-other. FOLDER gets points.tsv, summary.tsv (means) and differences.tsv (to the
# first arm and of r2mae to every other).
. "$(dirname "$0")/../tables.sh"
[ $# = 4 ] || usage
dir=$1 kinds=$2 arms=$3 seeds=$4
{
	printf 'kind\tarm\tseed\tmetric\tvalue\n'
	for kind in $kinds; do collect "$dir/$kind" "$arms" "$seeds" | sed "s/^/$kind\t/"; done
} > "$dir/points.tsv"
means --within kind,metric "$dir/points.tsv" > "$dir/summary.tsv"
those_in "$dir/points.tsv" 2
for arm in $arms; do pair r2mae "$arm"; done
differences --pair seed --within kind,metric "$dir/points.tsv" > "$dir/differences.tsv"
echo "corrmask r2mae-other: test error of a probe of the digit (digits), loss of masked tokens at three rates (text, dna); seeds $seeds"
for kind in text dna; do [ ! -e "$dir/$kind/inputs/frequency" ] || printf 'loss of a table of frequencies, %s: %.3f\n' $kind "$(cat "$dir/$kind/inputs/frequency")"; done
echo
for metric in error loss; do
	awk -F '\t' -v metric=$metric "$tables$by_name"'
		index($c["metric"], metric) { put($c["kind"] " " $c["metric"], $c["arm"], num($c["mean"], "%.3f") ($c["sd"] == "NA" ? "" : " (sd " num($c["sd"], "%.3f") ")")) }
		END { table("masking rate in training") }' "$dir/summary.tsv" | as_table "$dir/1-$metric.table" "Mean $metric over seeds"
	echo
done
awk -F '\t' "$tables$by_name"'
	{ count_p() }
	BEGIN { print "kind\tmetric\tminus\tdifference\t95 %\tp\tp (Holm)\tfound in 80 %" }
	{ print $c["kind"] "\t" $c["metric"] "\t" $c["reference"] "\t" num($c["difference"], "%+.4f") "\t" span("%+.4f") "\t" num($c["p"], "%.2g") "\t" \
		num($c["p_corrected"], "%.2g") "\t" num($c["detectable"], "%.4f") }' "$dir/differences.tsv" | as_table "$dir/2-differences.table" "r2mae minus a fixed rate, paired by seed"

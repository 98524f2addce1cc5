#!/usr/bin/env bash
# fig4/table.sh DIR FILE...: means over the trials in these files (fig4/trial.sh). The figure draws DIR/points.tsv (accuracies of each trial, in percent),
# DIR/summary.tsv (their means) and DIR/differences.tsv (CorrMask - random, paired by trial).
. "$(dirname "$0")/../tables.sh"
dir=$1
shift
cat "$@" | sort -t "$(printf '\t')" -k2,2r -k3,3n -k4,4n | awk -F '\t' -v OFS='\t' '
	BEGIN { print "exp", "gamma", "trial", "arm", "accuracy", "loss" }
	{ print $2, $3, $4, "random", 100 * $6, $7; print $2, $3, $4, "corrmask", 100 * $8, $9; print $2, $3, $4, "untrained", 100 * $10, "NA"; print $2, $3, $4, "nearest", 100 * $11, "NA" }' \
	> "$dir/points.tsv"
means --within exp,gamma --metrics accuracy,loss "$dir/points.tsv" > "$dir/summary.tsv"
armstat compare -q --within exp,gamma --pair trial --metrics accuracy --compare corrmask:random "$dir/points.tsv" > "$dir/differences.tsv"
echo "Modularity sweep (CorrMask paper, figure 4, appendix B.2): 60 genes in 3 modules, $(cut -f 5 "$@" | sort -u) epochs"
echo "Test accuracy of logistic regression on frozen [CLS], in percent, mean (sd: standard deviation); the gap, CorrMask - random, is paired by trial, with its"
echo "95 % interval, the two-sided p of a t test, and p after Holm's correction over the rows of this table"
echo
awk -F '\t' "$tables$by_name"'
	BEGIN { printf "%-6s %5s %6s %8s %9s  %-16s %-16s %-22s %7s %8s %8s   %-11s %s\n", "Exp", "gamma", "trials", "nearest", "untrained", "random", "CorrMask", "gap", "t", "p", "p, Holm", "paper'"'"'s gap", "loss: random CorrMask" }
	function text(x, f) { return x == "NA" ? x : sprintf(f, x) }
	function both(k) { return sprintf("%.1f (sd %s)", mean["accuracy", k], sd["accuracy", k] == "NA" ? "-" : sprintf("%.1f", sd["accuracy", k])) }
	{ at = $c["exp"] SUBSEP $c["gamma"] }
	FILENAME ~ /summary\.tsv$/ { mean[$c["value"], at, $c["arm"]] = $c["mean"]; sd[$c["value"], at, $c["arm"]] = $c["sd"]; next }
	{
		g = $c["gamma"]
		printf "%-6s %5s %6d %8.1f %9.1f  %-16s %-16s %-22s %7s %8s %8s   %-11s      %.3f %.3f\n", $c["exp"], g, $c["n"], mean["accuracy", at, "nearest"], mean["accuracy", at, "untrained"], \
			both(at SUBSEP "random"), both(at SUBSEP "corrmask"), sprintf("%+.1f", $c["difference"]) ($c["low"] == "NA" ? "" : sprintf(" (%+.1f to %+.1f)", $c["low"], $c["high"])), \
			text($c["t"], "%.2f"), text($c["p"], "%.2g"), text($c["p_corrected"], "%.2g"), (g < 0.25 ? "level" : g == 1 ? "about 10" : "-"), \
			mean["loss", at, "random"], mean["loss", at, "corrmask"]
	}' "$dir/summary.tsv" "$dir/differences.tsv"
echo
echo "nearest: the class whose mean rank vector is nearest; no network. untrained: the network with its initial weights. Chance is 33.3."
case $(head -qn 1 "$@" | cut -f 1 | sort -u) in
class) echo "Samples that are not coherent have their signal in random genes, which are drawn once for each class (scsim --random-genes class)." ;;
sample) echo "Samples that are not coherent have their signal in random genes of their own, which tell nothing about the class: at most gamma + (1 - gamma) / 3." ;;
esac

#!/usr/bin/env bash
# Panel F of figure 1 from accuracies of models that were trained with different masking rates, such as BERT's.
#     r2mae/accuracy.sh accuracy.tsv > panel-f.tsv
# Lines of the table: curve, masking rate, accuracy (0 to 1), with tabs between. The curves are made comparable as in the paper's appendix C.2: the
# error 1 - accuracy is shifted so that the line through its two lowest ratios starts at 0, and scaled so that it rises by 1 for each unit of the
# ratio between 0.4 and 0.8. So a curve needs ratios up to 0.4 and from 0.8 on.
. "$(dirname "$0")/../common.sh"
[ $# = 1 ] || usage
[ -r "$1" ] || { echo "r2mae-accuracy: $1: cannot read it" >&2; exit 1; }
sort -s -t "$(printf '\t')" -k2,2g "$1" | awk -F '\t' -v file="$1" '
	function stop(why) { print "r2mae-accuracy: " file ": " why > "/dev/stderr"; bad = 1; exit 1 }
	# by a line between the ratios beside r
	function at(c, r,  i) {
		for (i = 2; i < n[c] && x[c, i] < r; i++)
			;
		return y[c, i - 1] + (y[c, i] - y[c, i - 1]) * (r - x[c, i - 1]) / (x[c, i] - x[c, i - 1])
	}
	{
		if (NF != 3 || $1 == "" || $2 !~ /^[0-9.]+$/ || $3 !~ /^[0-9.eE-]+$/ || $2 <= 0 || $2 >= 1 || $3 < 0 || $3 > 1)
			stop("\"" $0 "\": expected a curve, a ratio between 0 and 1, and an accuracy from 0 to 1")
		if (n[$1] && x[$1, n[$1]] == $2)
			stop("curve " $1 " has two accuracies at ratio " $2)
		if (!n[$1]++)
			curve[++curves] = $1
		x[$1, n[$1]] = $2 + 0
		y[$1, n[$1]] = 1 - $3
	}
	END {
		if (bad)
			exit 1
		if (!curves)
			stop("no accuracies")
		for (k = 1; k <= curves; k++) {
			c = curve[k]
			if (n[c] < 3 || x[c, 1] > 0.4 || x[c, n[c]] < 0.8)
				stop("curve " c ": expected at least three ratios, up to 0.4 and from 0.8 on")
			start = y[c, 1] - (y[c, 2] - y[c, 1]) * x[c, 1] / (x[c, 2] - x[c, 1])
			slope = (at(c, 0.8) - at(c, 0.4)) / 0.4
			if (!(slope > 0))
				stop("curve " c ": its error does not rise from ratio 0.4 to 0.8, so it cannot be scaled")
			if (k > 1)
				print "\n"
			print c
			for (i = 1; i <= n[c]; i++)
				printf "%.9g\t%.9g\n", x[c, i], (y[c, i] - start) / slope
		}
	}'

# Left: accuracy by modularity. Right: the gap, with the paper's statement (none below 0.25, about 10 points at 1).
size = "1100,500"; load axes
set multiplot layout 1,2
set xlabel "modularity gamma"
set xrange [-0.05:1.05]
set key below
set bmargin at screen 0.24
# the means of one reading of Exp(0.1): exp, gamma, accuracy, arm, n, dropped, mean, sd
rows(e, arm) = "< awk -F '\t' '$1 == \"".e."\" && $3 == \"accuracy\" && $4 == \"".arm."\" { if ($8 == \"NA\") $8 = 0; print $2 \"\t\" $7 \"\t\" $8 }' ".dir."/summary.tsv"
# and the gaps, with their 95 % intervals
gaps(e) = "< awk -F '\t' -v e=".e." 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $1 == e { d = $c[\"difference\"]; l = $c[\"low\"]; h = $c[\"high\"];" \
	." print $2 \"\t\" d \"\t\" (l == \"NA\" ? d : l) \"\t\" (h == \"NA\" ? d : h) }' ".dir."/differences.tsv"
readings = system("tail -n +2 ".dir."/summary.tsv | cut -f 1 | sort -ru | tr '\n' ' '")
dash(e) = e eq "scale" ? 1 : 3

set title "Test accuracy of logistic regression on [CLS]"
set ylabel "accuracy, %"
set yrange [25:105]
plot for [e in readings] rows(e, "nearest") using 1:2 with lines lw 2 dt dash(e) lc rgb "#4060a0" title "nearest class mean (".e.")", \
     for [e in readings] rows(e, "random") using 1:2:3 with yerrorlines pt 7 lw 2 dt dash(e) lc rgb "#888888" title "random (".e.")", \
     for [e in readings] rows(e, "corrmask") using 1:2:3 with yerrorlines pt 7 lw 2 dt dash(e) lc rgb "#c04020" title "CorrMask (".e.")"

set title "CorrMask - random, paired, with 95 % intervals"
set ylabel "points"
set yrange [*:*]
$paper << END
0	0
0.25	0
1	10
END
plot $paper using 1:2 with linespoints pt 6 dt 2 lc rgb "#4060a0" title "the paper's words", \
     for [e in readings] gaps(e) using 1:2:3:4 with yerrorlines pt 7 lw 2 dt dash(e) lc rgb "#c04020" title "here (".e.")"
unset multiplot

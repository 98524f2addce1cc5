# Left and middle: macro F1 by number of pre-training cells (the paper's figure 5). Right: its gap among the rarest classes (figure 6).
points = dir."/points.tsv"
sizes = system("awk -F '\t' '$4 { print $4 }' ".points." | sort -nu | tr '\n' ' '")
if (!words(sizes)) exit              # nothing but the start without pre-training so far
if (terminal eq "svg") { set terminal svg size 1500,460 font "sans,13" background "white" } else { set terminal pngcairo size 1500,460 font "sans,10" }
set output dir."/table6.".terminal
set datafile separator "\t"
set multiplot layout 1,3
set border 3
set tics nomirror
set grid ytics lc rgb "#dddddd"
colour(s) = s eq "random" ? 0x888888 : s eq "bernoulli" ? 0xbbbbbb : s eq "pmi" ? 0x4060a0 : s eq "pmi-rand" ? 0x70b0d0 : s eq "corrmask" ? 0xc04020 : 0xe0a030
# shifted sideways, so that error bars do not overlap
aside(i) = 1 + 0.02 * (i - (words(strategies) + 1) / 2.0)
rows(stage, s) = "< awk -F '\t' '$1 == \"".stage."\" && $2 == \"macro_f1\" && $3 == \"".s."\"' ".points
# no error bar for a single seed
sd(x) = x eq "NA" ? 0 : real(x)
scratch(stage) = system("awk -F '\t' '$1 == \"".stage."\" && $2 == \"macro_f1\" && $3 == \"scratch\" { print $6 }' ".points)

set xlabel "cells pre-trained on"
set ylabel "macro F1"
set logscale x
set xtics ("0" 0)
do for [x in sizes] { set xtics add (x int(x)) }
set xrange [0.75 * word(sizes, 1) : 1.33 * word(sizes, words(sizes))]
set key bottom right
do for [stage in "finetune probe"] {
	set title stage eq "probe" ? "Cell types, linear probe" : "Cell types, fine-tuned"
	if (stage eq "probe") { unset key }
	none = scratch(stage)
	plot for [i = 1:words(strategies)] rows(stage, word(strategies, i)) using ($4 * aside(i)):6:(sd(strcol(7))) with yerrorlines pt 7 ps 0.7 lw 2 \
		lc rgb colour(word(strategies, i)) title word(strategies, i), strlen(none) ? real(none) : NaN with lines dt 2 lc rgb "#000000" title "not pre-trained"
}

unset logscale x
set xtics auto
set xrange [0:*]
set xlabel "rarest classes"
ours = strstrt(" ".strategies." ", " corrmask ") ? "corrmask" : word(strategies, words(strategies))
set ylabel ours." - other, macro F1"
set title "The rarest classes, fine-tuned, largest corpus"
set key top right
rare = dir."/rare.tsv"
head = system("head -n 1 ".rare." | cut -f 4- | tr '\t' ' '")
set datafile missing "NA"
if (int(system("cut -f 4- ".rare." | grep -c [0-9]"))) {
	plot 0 with lines lc rgb "#000000" notitle, for [i = 1:words(head)] rare skip 1 using 1:(column(i + 3)) with linespoints pt 7 ps 0.6 lw 2 \
		lc rgb colour(word(head, i)) title "to ".word(head, i)
}
unset multiplot

# Left: the losses with visible and with hidden partners, one line a network, and of two tables without a network. Right: their difference R.
points = dir."/points.tsv"
size = "1000,440"; load axes
strategies = system("tail -n +2 '".points."' | cut -f 1 | uniq | tr '\n' ' '")
seeds = system("tail -n +2 '".points."' | cut -f 2 | sort -nu | tr '\n' ' '")
name(s) = s eq "random" ? "random" : s eq "corrmask" ? "CorrMask" : "CorrMask,\nshuffled graph"
colour(s) = s eq "random" ? 0x888888 : s eq "corrmask" ? 0xc04020 : 0xe0a030
rows(s) = "< awk -F '\t' '$1 == \"".s."\"' ".points
line(s, k) = "< awk -F '\t' '$1 == \"".s."\" && $2 == \"".k."\" { print \"0\t\" $3; print \"1\t\" $4 }' ".points
table(c, masks) = real(system("awk -F '\t' '$1 == \"".masks."\" { print $".c." }' '".dir."/reference.tsv'"))
set multiplot layout 1,2
set title "Loss of a masked gene of a test cell"
set ylabel "loss (nats)"
set xrange [-0.25:1.25]
set xtics ("partners visible" 0, "partners hidden" 1)
set tmargin at screen 0.90
set bmargin at screen 0.27
set key at screen 0.26, screen 0.1 center center horizontal maxrows 3
plot for [i = 1:words(strategies)] for [k in seeds] line(word(strategies, i), k) using 1:2 with linespoints pt 7 ps 0.6 lw 1.5 \
	lc rgb colour(word(strategies, i)) title (k eq word(seeds, 1) ? (word(strategies, i) eq "shuffled" ? "CorrMask, shuffled graph" : name(word(strategies, i))) : ""), \
	"< printf '0\t%s\n1\t%s\n' ".sprintf("%g %g", table(2, "visible"), table(2, "hidden")) using 1:2 with lines dt 2 lw 1.5 lc rgb "#000000" title "table of gene frequencies", \
	"< printf '0\t%s\n1\t%s\n' ".sprintf("%g %g", table(3, "visible"), table(3, "hidden")) using 1:2 with lines dt 3 lw 1.5 lc rgb "#4060a0" title "table of neighbours' medians"
unset key
set bmargin at screen 0.15
set title "Partner reliance R (hidden - visible), one point per seed"
set ylabel "R (nats)"
set yrange [*<0:*]
set xrange [0.4:words(strategies) + 0.6]
unset xtics
set xtics nomirror
do for [i = 1:words(strategies)] { set xtics add (name(word(strategies, i)) i) }
set xtics scale 0
# Points side by side, in the order of the seeds; bars are 95 % intervals over the cells
aside(j, n) = 0.3 * (j - (n - 1) / 2.0) / (n > 1 ? n - 1 : 1)
mean(s) = system("awk -F '\t' '$1 == \"".s."\" { n++; x += $5 } END { print x / n }' ".points)
set style fill solid 0.25 noborder
plot 0 with lines lc rgb "#000000" notitle, \
	for [i = 1:words(strategies)] "< echo ".mean(word(strategies, i)) using (i):1:(0.6) with boxes lc rgb colour(word(strategies, i)) notitle, \
	for [i = 1:words(strategies)] rows(word(strategies, i)) using (i + aside($0, words(seeds))):5:(strcol(6) eq "NA" ? $5 : $6):(strcol(7) eq "NA" ? $5 : $7) with yerrorbars pt 7 ps 0.7 lw 1.5 lc rgb colour(word(strategies, i)) notitle
unset multiplot

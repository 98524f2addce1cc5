# Left: loss of a masked gene with its partners visible and hidden, one line a network. Right: macro F1 of probes of cell types.
size = "1050,420"; load axes
points = dir."/points.tsv"
seeds = system("tail -n +2 '".points."' | cut -f 2 | sort -nu | tr '\n' ' '")
line(s, k) = "< awk -F '\t' '$1 == \"".s."\" && $2 == \"".k."\" { print \"0\t\" $3; print \"1\t\" $4 }' ".points
measured = int(system("wc -l < '".points."'")) > 0
table(c, p) = real(system("awk -F '\t' '$1 == \"".p."\" { print $".c." }' '".dir."/reference.tsv'"))
set multiplot
set tmargin at screen 0.90
set lmargin at screen 0.075
set rmargin at screen 0.44
set bmargin at screen 0.27
scored = measured ? word(system("cat '".dir."/scored.tsv'"), 1)." genes with partners" : "no gene with partners"
set title "Copying from partners: loss of a masked gene (".scored.")"
set ylabel "loss (nats)"
set xrange [-0.2:1.2]
set xtics ("partners visible" 0, "partners hidden" 1)
set key at screen 0.075, screen 0.175 left top vertical Left reverse samplen 2.5
if (measured) {
plot for [k in seeds] line("random", k) using 1:2 with linespoints pt 7 ps 0.6 lw 2 lc rgb "#888888" title (k eq word(seeds, 1) ? "random masks" : ""), \
	for [k in seeds] line("corrmask", k) using 1:2 with linespoints pt 7 ps 0.6 lw 2 lc rgb "#c04020" title (k eq word(seeds, 1) ? "CorrMask" : ""), \
	"< printf '0\t%s\n1\t%s\n' ".sprintf("%g %g", table(2, "visible"), table(2, "hidden")) using 1:2 with lines dt 2 lw 1.5 lc rgb "#000000" title "gene frequencies, no network"
}
set title "Cell types of test cells: linear probe"
set lmargin at screen 0.66
set rmargin at screen 0.97
set bmargin at screen 0.13
unset key
unset ylabel
set xlabel "macro F1 (95 % interval)"
set xrange [0:1]
set xtics 0, 0.2, 1
set yrange [5.6:-0.6]
unset grid
set grid xtics lc rgb "#dddddd"
set ytics ("log-normalised expression" 0, "50 principal components" 1, "expression of the genes read" 2, "untrained network" 3, \
	"network, random masks" 4, "network, CorrMask" 5) scale 0
set style fill solid 0.9 noborder
# the colours of the page (page/page.css)
colour(i) = i == 0 ? 0x4060a0 : i == 1 ? 0x7fa6d6 : i == 2 ? 0x2a9080 : i == 3 ? 0xb8b8b8 : i == 4 ? 0x888888 : 0xc04020
plot dir."/macro_f1.tsv" using ($2 / 2):0:($2 / 2):(0.3):(colour($0)) with boxxyerror lc rgb variable, \
	"" using 2:0:3:4 with xerrorbars pt 0 lw 4.5 lc rgb "#ffffff", \
	"" using 2:0:3:4 with xerrorbars pt 0 lw 1.5 lc rgb "#000000"
unset multiplot

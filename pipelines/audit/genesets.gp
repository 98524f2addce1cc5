# Precision of the k strongest edges (full lines) and of random pairs of equally frequent genes (dashed).
size = "800,520"; load axes
set logscale x
set xlabel "k strongest edges"
set ylabel "share of edges within a gene set"
set xrange [70:*]
set yrange [0:*]
set key below
name(g) = g eq "corrmask" ? "CorrMask, 2,000 genes" : g eq "corrmask-all" ? "CorrMask, all genes" : "PMI"
colour(g) = g eq "corrmask" ? 0xc04020 : g eq "corrmask-all" ? 0xe0a030 : 0x4060a0
file(g) = dir."/genesets.".g.".tsv"
set style fill transparent solid 0.15 noborder
# graphs with edges between genes of sets
graphs = ""
do for [g in "corrmask corrmask-all pmi"] { if (int(system("wc -l < '".file(g)."'")) > 1) { graphs = graphs." ".g } }
if (graphs eq "") { set title "no edge joins two genes of sets"; set xrange [70:1000]; set yrange [0:1] }
plot for [g in graphs] file(g) skip 1 using 1:2:(1.96 * $5) with yerrorlines lw 2 pt 7 ps 0.6 lc rgb colour(g) title name(g), \
     for [g in graphs] file(g) skip 1 using 1:3 with lines dt 2 lw 1.5 lc rgb colour(g) notitle, \
     NaN with lines dt 2 lw 1.5 lc rgb "#000000" title "random pairs of equally frequent genes"

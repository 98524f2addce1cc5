# Cells along the lineage (figure 3 of the BMFM-RNA paper): flows from labels to predictions, and the probabilities along the lineages of a label that
# is above a type. lineages.tsv is that of lineages.awk.
size = "1150,480"; load axes
f = dir."/lineages.tsv"
stats f index 6 using 1 nooutput name "rows"
array kind[4] = ["exact", "finer", "coarser", "wrong"]
array colour[4] = ["#2060a0", "#208050", "#c09020", "#c04020"]
set multiplot layout 1,2
unset border
unset tics
unset grid
# texts stand beside the flows and bars, inside the ranges: gnuplot leaves out those that are not
set lmargin at screen 0.01
set rmargin at screen 0.62
set xrange [-1.1:2.1]
set yrange [1.62:-0.02]
set key below horizontal
set title "test cells: label, and predicted term" noenhanced
set style fill transparent solid 0.55 noborder
plot for [i = 1:4] f index i - 1 using 1:2 with filledcurves closed lc rgb colour[i] title kind[i], \
     f index 4 using 1:2:3 with labels right noenhanced notitle, f index 5 using 1:2:3 with labels left noenhanced notitle
set bmargin 3
set lmargin at screen 0.64
set rmargin at screen 0.98
set xrange [-1.3:1.02]
set yrange [rows_max + 0.7:0.3]
unset key
set title "mean probability of the terms, cells of one label" noenhanced
set style fill solid 0.8 noborder
set for [i = 0:2] arrow from 0.5 * i, graph 0 to 0.5 * i, graph 1 nohead lc rgb "#dddddd" back
set for [i = 0:2] label sprintf("%g", 0.5 * i) at 0.5 * i, graph -0.04 center
plot f index 6 using (0):1:(0):2:($1 - 0.35):($1 + 0.35) with boxxyerror lc rgb colour[2], \
     f index 6 using (-0.03):1:3 with labels right noenhanced
unset multiplot

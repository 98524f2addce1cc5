# Three panels as in the paper: the truth, adjacency, co-occurrence. A point is a square of 4 x 4 genes.
if (terminal eq "svg") { set terminal svg size 1200,430 font "sans,13" background "white" } else { set terminal pngcairo size 1200,430 font "sans,10" }
# Only few squares exceed the colour scale. (stats obeys ranges, so it comes before them.)
stats dir."/matrix-A.txt" matrix nooutput name "A"
stats dir."/matrix-C.txt" matrix nooutput name "C"
set multiplot layout 1,3
set size square
# equal panels, with or without a scale
set tmargin at screen 0.88
set bmargin at screen 0.17
side(i) = sprintf("set lmargin at screen %.2f; set rmargin at screen %.2f", 0.07 + 0.32 * (i - 1), 0.29 + 0.32 * (i - 1))
set yrange [249.5:-0.5]
set xrange [-0.5:249.5]
set xtics ("0" 0, "200" 50, "400" 100, "600" 150, "800" 200, "1000" 249.5) out nomirror
set ytics ("0" 0, "200" 50, "400" 100, "600" 150, "800" 200, "1000" 249.5) out nomirror
set xlabel "gene"
set ylabel "gene"
set palette defined (0 "white", 0.5 "#e8a080", 1 "#a02010")
set format cb "%g"
unset key
# a matrix of 0 and 1 needs no scale
unset colorbox
eval side(1)
set title "Ground truth: genes of one module"
plot dir."/matrix-truth.txt" matrix with image
set colorbox
unset ylabel
eval side(2)
set title "Adjacency A"
set cblabel "how often two genes are adjacent"
set cbrange [0:A_mean + 3 * A_stddev]
plot dir."/matrix-A.txt" matrix with image
eval side(3)
set title "Co-occurrence C"
set cblabel "how often two genes are in one cell"
set cbrange [0:C_mean + 3 * C_stddev]
plot dir."/matrix-C.txt" matrix with image
unset multiplot

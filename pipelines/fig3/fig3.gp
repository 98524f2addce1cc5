# Three panels as in the paper, one below the other: the truth, adjacency, co-occurrence. A point is a square of 4 x 4 genes.
if (terminal eq "svg") { set terminal svg size 500,1420 font "sans,14" background "white" } else { set terminal pngcairo size 500,1420 font "sans,10" }
# Only few squares exceed the colour scale. (stats obeys ranges, so it comes before them.)
stats dir."/matrix-A.txt" matrix nooutput name "A"
stats dir."/matrix-C.txt" matrix nooutput name "C"
set multiplot
set size square
set lmargin at screen 0.14
set rmargin at screen 0.90
row(i) = sprintf("set tmargin at screen %.4f; set bmargin at screen %.4f", 1 - (480 * i - 440) / 1420.0, 1 - (480 * i - 60) / 1420.0)
set yrange [249.5:-0.5]
set xrange [-0.5:249.5]
set xtics ("0" 0, "200" 50, "400" 100, "600" 150, "800" 200, "1000" 249.5) out nomirror
set ytics ("0" 0, "200" 50, "400" 100, "600" 150, "800" 200, "1000" 249.5) out nomirror
set palette defined (0 "white", 0.5 "#e8a080", 1 "#a02010")
unset key
unset colorbox
eval row(1)
set title "Truth: two genes are of one module"
plot dir."/matrix-truth.txt" matrix with image
eval row(2)
set title "Adjacency A: how often two genes are adjacent"
set cbrange [0:A_mean + 3 * A_stddev]
plot dir."/matrix-A.txt" matrix with image
eval row(3)
set title "Co-occurrence C: how often two genes are in one cell"
set cbrange [0:C_mean + 3 * C_stddev]
plot dir."/matrix-C.txt" matrix with image
unset multiplot

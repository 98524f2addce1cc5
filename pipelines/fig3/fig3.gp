# Three panels as in the paper: the truth, adjacency, co-occurrence. A point is a square of 4 x 4 genes.
if (terminal eq "svg") { set terminal svg size 1200,430 font "sans,13" background "white" } else { set terminal pngcairo size 1200,430 font "sans,10" }
# Only few squares exceed the colour scale. (stats obeys ranges, so it comes before them.)
stats dir."/matrix-A.txt" matrix nooutput name "A"
stats dir."/matrix-C.txt" matrix nooutput name "C"
set multiplot layout 1,3
set size square
set yrange [249.5:-0.5]
set xrange [-0.5:249.5]
set xtics ("0" 0, "200" 50, "400" 100, "600" 150, "800" 200, "1000" 249.5) out nomirror
set ytics ("0" 0, "200" 50, "400" 100, "600" 150, "800" 200, "1000" 249.5) out nomirror
set xlabel "gene"
set palette defined (0 "white", 0.5 "#e8a080", 1 "#a02010")
set cblabel ""
set format cb "%g"
unset key
set title "Ground truth"
plot dir."/matrix-truth.txt" matrix with image
set title "Adjacency A: counts side by side"
set cbrange [0:A_mean + 3 * A_stddev]
plot dir."/matrix-A.txt" matrix with image
set title "Co-occurrence C: counts in a cell"
set cbrange [0:C_mean + 3 * C_stddev]
plot dir."/matrix-C.txt" matrix with image
unset multiplot

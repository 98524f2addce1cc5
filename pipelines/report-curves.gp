# Curves as SVG. file: blocks of x and y, each after a line with its name, two empty lines between. kind: loss, roc or f1 (points).
array Colour[8] = [0x0072b2, 0xe69f00, 0x009e73, 0xd55e00, 0x56b4e9, 0xcc79a7, 0x8a8a8a, 0xa89a00]
rows = (curves + 1) / 2
set terminal svg size 460,(320 + 18 * rows) font "sans-serif,12"
set datafile separator "\t"
set border 3
set tics nomirror
set grid xtics ytics lc rgb "#dddddd"
set key bmargin left Left reverse vertical maxrows rows noenhanced samplen 2
set xlabel x_name noenhanced
set ylabel y_name noenhanced
if (kind eq "roc") { set xrange [0:1]; set yrange [0:1]; set size ratio 1 }
if (kind eq "f1") { set logscale x; set yrange [-0.03:1.03]; set xrange [*:*]; set offsets graph 0.03, graph 0.03, 0, 0 }
s = 0
n_ = 0
# a running mean over about 20 steps
mean(x) = (s = n_ == 0 ? x : 0.95 * s + 0.05 * x, n_ = n_ + 1, s)
shown(y) = kind eq "loss" ? mean(y) : y
array Mark[8] = [7, 5, 9, 11, 13, 6, 4, 8]
if (kind eq "f1") {
	plot for [i = 1:curves] file index i - 1 using 1:2 with points pt Mark[(i - 1) % 8 + 1] ps 0.7 lc rgb Colour[(i - 1) % 8 + 1] title columnheader(1)
} else {
	plot for [i = 1:curves] file index i - 1 using (column(0) == 0 ? (n_ = 0, $1) : $1):(shown($2)) with lines lw 1.8 \
		dt 1 + (i - 1) / 8 lc rgb Colour[(i - 1) % 8 + 1] title columnheader(1)
}

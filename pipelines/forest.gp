# Values with 95 % intervals in panels side by side, for the pages of docs/experiments (pipelines/docs-figures.sh).
# `table` is a TSV without a header: panel, row, value, low, high, other. Rows are drawn from top to bottom and panels from left to right, in the
# order of the table. NA: no interval, or no other value, which is a diamond. `values` and `others` say what the marks are. Writes `out`.
set datafile separator "\t"
# the distinct entries of column c in order, quoted for word()
distinct(c) = system("awk -F '\t' -v c=".c." '!seen[$c]++ { printf \"\\\"%s\\\" \", $c }' '".table."'")
panels = distinct(1)
rows = distinct(2)
n = words(rows)
np = words(panels)
left = 0.012 + 0.0074 * system("awk -F '\t' 'length($2) > n { n = length($2) } END { print n }' '".table."'")
width = (0.995 - left) / np
set terminal svg size 1000,(110 + 40 * n) font "sans,13" background "white"
set output out
set multiplot
set border 1
set tics nomirror
set ytics scale 0
set yrange [n + 0.6:0.4]
set grid xtics lc rgb "#cccccc"
set tmargin at screen 1 - 70.0 / (110 + 40 * n)
set bmargin at screen 30.0 / (110 + 40 * n)
unset key
# "low high step" of panel p: tics at about four round numbers
range(p) = system("awk -F '\t' -v p='".p."' '$1 == p { for (i = 3; i <= 6; i++) if ($i != \"NA\") { x = $i + 0; if (!k++) low = high = x; if (x < low) low = x; if (x > high) high = x } } END { r = high - low; s = 10 ^ int(log(r / 4) / log(10) + 100) / 1e100; s *= r / 4 / s > 5 ? 10 : r / 4 / s > 2 ? 5 : r / 4 / s > 1 ? 2 : 1; print low - r / 20, high + r / 20, s }' '".table."'")
set label 1 "● ".values at screen 0.01, screen 1 - 14.0 / (110 + 40 * n) tc rgb "#c04020"
set label 2 others eq "" ? "" : "◇ ".others at screen 0.99, screen 1 - 14.0 / (110 + 40 * n) right tc rgb "#4060a0"
set ytics ("" 0)
do for [i = 1:n] { set ytics add (word(rows, i) i) }
do for [p = 1:np] {
	if (p == 2) { unset ytics; unset label 1; unset label 2 }
	set lmargin at screen left + width * (p - 1) + 0.012
	set rmargin at screen left + width * p - 0.012
	set title word(panels, p)
	set xrange [real(word(range(word(panels, p)), 1)):real(word(range(word(panels, p)), 2))]
	set xtics real(word(range(word(panels, p)), 3))
	set format x real(word(range(word(panels, p)), 1)) < 0 ? "%+g" : "%g"
	unset arrow
	if (real(word(range(word(panels, p)), 1)) < 0 && real(word(range(word(panels, p)), 2)) > 0) { set arrow from first 0, graph 0 to first 0, graph 1 nohead lc rgb "#000000" back }
	part(c) = "< awk -F '\t' -v p='".word(panels, p)."' 'NR == FNR { if (!seen[$2]++) at[$2] = ++n; next } $1 == p { print at[$2] \"\t\" $3 \"\t\" ($4 == \"NA\" ? $3 : $4) \"\t\" ($5 == \"NA\" ? $3 : $5) \"\t\" $6 }' '".table."' '".table."'"
	plot part(0) using 2:1:3:4 with xerrorbars pt 7 ps 0.8 lw 2 lc rgb "#c04020", \
		others eq "" ? "+" : part(0) using (others eq "" ? NaN : column(5)):1 with points pt 12 ps 1.1 lw 2 lc rgb "#4060a0"
}
unset multiplot

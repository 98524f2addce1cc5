# Values with 95 % intervals in panels side by side, for the pages of docs/experiments (pipelines/docs-figures.sh).
# `table` is a TSV without a header: panel, row, value, low, high, other. Rows are drawn from top to bottom and panels from left to right, in the
# order of the table. NA: no interval, or no other value, which is a diamond. `values` and `others` say what the marks are. The axes show `include`, numbers that
# are not in the table; at the last one is a line, else at 0 if the axis has it. Writes `out`.
set datafile separator "\t"
# the distinct entries of column c in order, quoted for word()
distinct(c) = system("awk -F '\t' -v c=".c." '!seen[$c]++ { printf \"\\\"%s\\\" \", $c }' '".table."'")
panels = distinct(1)
rows = distinct(2)
n = words(rows)
np = words(panels)
left = 0.012 + 0.0074 * system("awk -F '\t' 'length($2) > n { n = length($2) } END { print n }' '".table."'")
width = (0.995 - left) / np
directed = strstrt(distinct(1).values, "reliance R") > 0
below = directed ? 52 : 30
tall = 80 + below + 40 * n
set terminal svg size 1000,tall font "sans,13" background "white"
set output out
set multiplot
set border 1
set tics nomirror
set ytics scale 0
set yrange [n + 0.6:0.4]
set grid xtics lc rgb "#cccccc"
set tmargin at screen 1 - 70.0 / tall
set bmargin at screen 1.0 * below / tall
unset key
# red is CorrMask, grey random masks, blue without a network, as in the figures of the experiments
other = others eq "random masks" ? "#707070" : "#4060a0"
# "low high step" of panel p: tics at about four round numbers
range(p) = system("awk -F '\t' -v p='".p."' -v more='".include."' 'BEGIN { for (i = split(more, v, \" \"); i; i--) { x = v[i] + 0; if (!k++) low = high = x; if (x < low) low = x; if (x > high) high = x } } $1 == p { for (i = 3; i <= 6; i++) if ($i != \"NA\") { x = $i + 0; if (!k++) low = high = x; if (x < low) low = x; if (x > high) high = x } } END { r = high - low; s = 10 ^ int(log(r / 4) / log(10) + 100) / 1e100; s *= r / 4 / s > 5 ? 10 : r / 4 / s > 2 ? 5 : r / 4 / s > 1 ? 2 : 1; print (low == 0 ? 0 : low - r / 20), high + r / 20, s }' '".table."'")
set label 1 "● ".values at screen 0.01, screen 1 - 14.0 / tall tc rgb "#c04020"
set label 2 others eq "" ? "" : "◇ ".others at screen 0.99, screen 1 - 14.0 / tall right tc rgb other
set ytics ("" 0)
do for [i = 1:n] { set ytics add (word(rows, i) i) }
do for [p = 1:np] {
	if (p == 2) { unset ytics; unset label 1; unset label 2 }
	set lmargin at screen left + width * (p - 1) + 0.012
	set rmargin at screen left + width * p - 0.012
	set title word(panels, p)
	set xrange [real(word(range(word(panels, p)), 1)):real(word(range(word(panels, p)), 2))]
	low = real(word(range(word(panels, p)), 1))
	high = real(word(range(word(panels, p)), 2))
	step = real(word(range(word(panels, p)), 3))
	set xtics ("" low - 1)
	do for [i = ceil(low / step - 1e-9):floor(high / step + 1e-9)] { set xtics add (sprintf(i == 0 ? "%g" : low < 0 ? "%+g" : "%g", i * step) i * step) }
	unset arrow
	line = include eq "" ? 0 : real(word(include, words(include)))
	if (low < line && high > line) { set arrow from first line, graph 0 to first line, graph 1 nohead lc rgb "#000000" back }
	unset label 3
	unset label 4
	if (strstrt(word(panels, p).values, "reliance R")) {
		set label 3 "← copies less" at graph 0, graph 0 offset 0, -2.3 tc rgb "#505050"
		set label 4 "copies more →" at graph 1, graph 0 offset 0, -2.3 right tc rgb "#505050"
	}
	part(c) = "< awk -F '\t' -v p='".word(panels, p)."' 'NR == FNR { if (!seen[$2]++) at[$2] = ++n; next } $1 == p { print at[$2] \"\t\" $3 \"\t\" ($4 == \"NA\" ? $3 : $4) \"\t\" ($5 == \"NA\" ? $3 : $5) \"\t\" $6 }' '".table."' '".table."'"
	plot part(0) using 2:1:3:4 with xerrorbars pt 7 ps 0.8 lw 2 lc rgb "#c04020", \
		others eq "" ? "+" : part(0) using (others eq "" ? NaN : column(5)):1 with points pt 12 ps 1.1 lw 2 lc rgb other
}
unset multiplot

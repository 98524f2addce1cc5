# Values with 95 % intervals in panels one below the other, narrow enough for a phone, for the pages of docs/experiments (pipelines/docs-figures.sh).
# `table` is a TSV without a header: panel, row, value, low, high, other. Rows and panels are drawn from top to bottom, in the order of the table.
# NA: no interval, or no other value, which is a diamond. `values` and `others` say what the marks are; " / " breaks a line. The axes show `include`,
# numbers that are not in the table; at the last one is a line, else at 0 if the axis has it. Writes `out`.
set datafile separator "\t"
# the distinct entries of column c in order, quoted for word()
distinct(c) = system("awk -F '\t' -v c=".c." '!seen[$c]++ { printf \"\\\"%s\\\" \", $c }' '".table."'")
lines(s) = strstrt(s, " / ") ? s[:strstrt(s, " / ") - 1]."\n".s[strstrt(s, " / ") + 3:] : s
panels = distinct(1)
rows = distinct(2)
n = words(rows)
np = words(panels)
longest = system("awk -F '\t' 'length($2) > n { n = length($2) } END { print n }' '".table."'")
# long names stand above their marks, short ones to the left
above = longest > 32
row = above ? 44 : 26
legend = 12 + 18 * (1 + (strstrt(values, " / ") > 0)) + (others eq "" ? 0 : 20)
foot(p) = strstrt(word(panels, p).values, "reliance R") ? 58 : 36
panel(p) = 30 + row * n + foot(p)
tall = legend
do for [p = 1:np] { tall = tall + panel(p) }
wide = 500
set terminal svg size wide,tall font "sans,14" background "white"
set output out
set multiplot
set border 1
set tics nomirror
set ytics scale 0
set yrange [n + 0.5:0.5]
set grid xtics lc rgb "#cccccc"
set lmargin at screen (above ? 12 : 22 + 8.2 * longest) / wide
set rmargin at screen (wide - 24.0) / wide
unset key
# red is CorrMask, grey random masks, blue without a network, as in the figures of the experiments
other = others eq "random masks" ? "#707070" : "#4060a0"
# "low high step" of panel p: tics at about four round numbers
range(p) = system("awk -F '\t' -v p='".p."' -v more='".include."' 'BEGIN { for (i = split(more, v, \" \"); i; i--) { x = v[i] + 0; if (!k++) low = high = x; if (x < low) low = x; if (x > high) high = x } } $1 == p { for (i = 3; i <= 6; i++) if ($i != \"NA\") { x = $i + 0; if (!k++) low = high = x; if (x < low) low = x; if (x > high) high = x } } END { r = high - low; s = 10 ^ int(log(r / 4) / log(10) + 100) / 1e100; s *= r / 4 / s > 5 ? 10 : r / 4 / s > 2 ? 5 : r / 4 / s > 1 ? 2 : 1; print (low == 0 ? 0 : low - r / 20), high + r / 20, s }' '".table."'")
set label 1 "● ".lines(values) at screen 12.0 / wide, screen 1 - 16.0 / tall tc rgb "#c04020"
set label 2 others eq "" ? "" : "◇ ".others at screen 12.0 / wide, screen 1 - (legend - 14.0) / tall tc rgb other
set ytics ("" 0)
do for [i = 1:n] {
	if (above) { set label 10 + i word(rows, i) at graph 0, first i - 0.28 front } else { set ytics add (word(rows, i) i) }
}
y = legend
do for [p = 1:np] {
	if (p == 2) { unset label 1; unset label 2 }
	set tmargin at screen 1 - (y + 30.0) / tall
	set bmargin at screen 1 - (y + panel(p) - foot(p) * 1.0) / tall
	y = y + panel(p)
	set label 5 word(panels, p) at screen 12.0 / wide, graph 1 offset 0, 0.7 font "sans Bold,14"
	low = real(word(range(word(panels, p)), 1))
	high = real(word(range(word(panels, p)), 2))
	step = real(word(range(word(panels, p)), 3))
	set xrange [low:high]
	set xtics ("" low - 1)
	do for [i = ceil(low / step - 1e-9):floor(high / step + 1e-9)] { set xtics add (sprintf(i == 0 ? "%g" : low < 0 ? "%+g" : "%g", i * step) i * step) }
	unset arrow
	line = include eq "" ? 0 : real(word(include, words(include)))
	if (low < line && high > line) { set arrow from first line, graph 0 to first line, graph 1 nohead lc rgb "#000000" back }
	unset label 3
	unset label 4
	if (strstrt(word(panels, p).values, "reliance R")) {
		set label 3 "← copies less" at graph 0, graph 0 offset 0, -2.2 tc rgb "#505050"
		set label 4 "copies more →" at graph 1, graph 0 offset 0, -2.2 right tc rgb "#505050"
	}
	part(c) = "< awk -F '\t' -v p='".word(panels, p)."' 'NR == FNR { if (!seen[$2]++) at[$2] = ++n + ".(above ? "0.18" : "0")."; next } $1 == p { print at[$2] \"\t\" $3 \"\t\" ($4 == \"NA\" ? $3 : $4) \"\t\" ($5 == \"NA\" ? $3 : $5) \"\t\" $6 }' '".table."' '".table."'"
	plot part(0) using 2:1:3:4 with xerrorbars pt 7 ps 0.8 lw 2 lc rgb "#c04020", \
		others eq "" ? "+" : part(0) using (others eq "" ? NaN : column(5)):1 with points pt 12 ps 1.1 lw 2 lc rgb other
}
unset multiplot

# Above: the loss of a masked token beside the lookup, and the partner reliance. Below: cell types. A point is a seed, a bar the mean.
points = dir."/points.tsv"
size = "1250,820"; load axes
arms = system("cut -f 1 '".points."' | uniq | awk '/-/ && !seen[$0]++' | tr '\n' ' '")
genes = system("cut -f 1 '".points."' | uniq | awk '/-/ && !/^value/ && !seen[$0]++' | tr '\n' ' '")
all = "expression pca naive-bayes untrained ".arms
rows(a, m) = "< awk -F '\t' '$1 == \"".a."\" && $3 == \"".m."\" && $4 != \"NA\" { print $4 }' '".points."'"
mean(a, m) = "< awk -F '\t' '$2 == \"".a."\" && $1 == \"".m."\" { print $5 }' '".dir."/summary.tsv'"
number(a, m) = int(system("awk -F '\t' '$1 == \"".a."\" && $3 == \"".m."\" { n++ } END { print n + 0 }' '".points."'"))
ends(a, s) = strlen(a) > strlen(s) && a[strlen(a) - strlen(s) + 1:] eq s
colour(a) = a eq "expression" ? 0x4060a0 : a eq "pca" ? 0x7fa6d6 : a eq "naive-bayes" ? 0x30a0a0 : a eq "untrained" ? 0xb8b8b8 : ends(a, "-random") ? 0x888888 : ends(a, "-corrmask") ? 0xc04020 : 0x308040
# order and masks, as "shared, CorrMask"
order(a) = a eq "group" ? "shared" : a eq "value" ? "values" : a
masks(a) = a eq "corrmask" ? "CorrMask" : a
name(a) = a eq "expression" ? "expression" : a eq "pca" ? "50 components" : a eq "naive-bayes" ? "naive Bayes" : a eq "untrained" ? "untrained" : \
	order(a[1:strstrt(a, "-") - 1]).", ".masks(a[strstrt(a, "-") + 1:])
aside(j, n) = n > 1 ? 0.44 * (j - (n - 1) / 2.0) / (n - 1) : 0
set multiplot
set xtics rotate by 40 right scale 0
set style fill solid 0.25 noborder
unset key
set tmargin at screen 0.955
set bmargin at screen 0.64
set lmargin at screen 0.06
set rmargin at screen 0.46
set key at screen 0.47, screen 0.94 left top Left reverse samplen 2
set title "Loss under random masks at test (nats)"
set offsets 0, 0, graph 0.06, graph 0.03
set xrange [0.4:words(genes) + 0.6]
do for [i = 1:words(genes)] { set xtics add (name(word(genes, i)) i) }
plot for [i = 1:words(genes)] rows(word(genes, i), "loss") using (i + aside($0, number(word(genes, i), "loss"))):1 with points pt 7 ps 0.5 lc rgb colour(word(genes, i)) notitle, \
	for [i = 1:words(genes)] mean(word(genes, i), "frequency") using (i - 0.35):1:(0.7):(0) with vectors nohead dt 3 lw 2 lc rgb "#000000" title (i == 1 ? "gene frequencies" : ""), \
	for [i = 1:words(genes)] mean(word(genes, i), "medians") using (i - 0.35):1:(0.7):(0) with vectors nohead lw 2 lc rgb "#4060a0" title (i == 1 ? "lookup" : ""), \
	for [i = 1:words(genes)] mean(word(genes, i), "loss") using (i - 0.35):1:(0.7):(0) with vectors nohead lw 2 lc rgb colour(word(genes, i)) notitle, \
	keyentry with lines lw 2 lc rgb 0xc04020 title "CorrMask", \
	keyentry with lines lw 2 lc rgb 0x888888 title "random masks"
unset key
unset offsets
set lmargin at screen 0.655
set rmargin at screen 0.985
set title "Partner reliance R (nats)"
plot 0 with lines lc rgb "#000000" notitle, \
	for [i = 1:words(genes)] mean(word(genes, i), "R") using (i):1:(0.6) with boxes lc rgb colour(word(genes, i)) notitle, \
	for [i = 1:words(genes)] rows(word(genes, i), "R") using (i + aside($0, number(word(genes, i), "R"))):1 with points pt 7 ps 0.5 lc rgb colour(word(genes, i)) notitle
unset xtics
set xtics nomirror rotate by 40 right scale 0
set xrange [0.4:words(all) + 0.6]
set yrange [0:*]
do for [i = 1:words(all)] { set xtics add (name(word(all, i)) i) }
set tmargin at screen 0.47
set bmargin at screen 0.155
do for [p = 1:3] {
	m = word("macro_f1 few_macro_f1 knn_macro_f1", p)
	set lmargin at screen 0.06 + 0.325 * (p - 1)
	set rmargin at screen 0.06 + 0.325 * (p - 1) + 0.275
	set title p == 1 ? "Macro F1, probe, all labels" : p == 2 ? "Macro F1, probe, few labels" : "Macro F1, 15 nearest neighbours"
	plot for [i = 1:words(all)] mean(word(all, i), m) using (i):1:(0.6) with boxes lc rgb colour(word(all, i)) notitle, \
		for [i = 1:words(all)] rows(word(all, i), m) using (i + aside($0, number(word(all, i), m))):1 with points pt 7 ps 0.4 lc rgb colour(word(all, i)) notitle
}
unset multiplot

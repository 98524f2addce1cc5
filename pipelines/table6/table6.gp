# Left and middle: macro F1 by number of pre-training cells (the paper's figure 5). Right: its gap among the rarest classes (figure 6).
summary = dir."/summary.tsv" # stage, metric, cells, strategy, n, dropped, mean, sd
sizes = system("awk -F '\t' '$3 + 0 > 0 { print $3 }' ".summary." | sort -nu | tr '\n' ' '")
if (!words(sizes)) exit              # nothing but the start without pre-training so far
# The legend is at the right of the panels, and the figure grows with it.
n = words(strategies)
longest = 0
do for [s in strategies." not_pre-trained"] { if (strlen(s) > longest) { longest = strlen(s) } }
names = 70 + 8.0 * longest                                  # pixels
wide = 1500 + names
tall = 460.0 > 130 + 20.0 * n ? 460.0 : 130 + 20.0 * n
size = sprintf("%g,%g", wide, tall); load axes
set multiplot
edge(panel, x) = (500 * panel + x) / wide                   # of a panel, as a share of the width
left(panel) = edge(panel, 75)
right(panel) = edge(panel, 480)
set tmargin at screen 1 - 45 / tall
set bmargin at screen 55 / tall
# A strategy has a colour; those with a suffix for the rate (r2mae_mlm.mk) have another sign too.
plain(s) = strstrt(s, "+") ? s[:strstrt(s, "+") - 1] : s
colour(s) = plain(s) eq "random" ? 0x888888 : plain(s) eq "bernoulli" ? 0xbbbbbb : plain(s) eq "pmi" ? 0x4060a0 : plain(s) eq "pmi-rand" ? 0x70b0d0 : \
	plain(s) eq "corrmask" ? 0xc04020 : 0xe0a030
suffixes = "+10 +25 +50 +r2mae +dyn +mdlm"
place(word, list) = (place_ = 0, sum [i = 1:words(list)] (word(list, i) eq word ? place_ = i : 0), place_)
sign(s) = plain(s) eq s ? 7 : word("7 9 11 13 5 1 2", 1 + place(s[strlen(plain(s)) + 1:], suffixes)) + 0
# shifted sideways, so that error bars do not overlap
aside(i) = 1 + (n > 6 ? 0.12 / n : 0.02) * (i - (n + 1) / 2.0)
rows(stage, s) = "< awk -F '\t' '$1 == \"".stage."\" && $2 == \"macro_f1\" && $4 == \"".s."\"' ".summary
# no error bar for a single seed
sd(x) = x eq "NA" ? 0 : real(x)
# The lines without a network, in the panel of the probes
baselines = dir."/baselines.tsv"
bases = system("awk -F '\t' '$2 == \"macro_f1\" && $3 != \"NA\" { print $1 }' ".baselines." | tr '\n' ' '")
base(name) = system("awk -F '\t' '$1 == \"".name."\" && $2 == \"macro_f1\" { print $3 }' ".baselines)
base_dash(name) = name eq "pca" ? 4 : name eq "naive-bayes" ? 5 : 3
base_name(name) = name eq "pca" ? "50 components" : name eq "naive-bayes" ? "naive Bayes" : "expression"
scratch(stage) = system("awk -F '\t' '$1 == \"".stage."\" && $2 == \"macro_f1\" && $4 == \"scratch\" { print $7 }' ".summary)

set xlabel "cells pre-trained on"
set ylabel "macro F1"
set logscale x
set xtics ("0" 0)
do for [x in sizes] { set xtics add (x int(x)) }
set xrange [0.75 * word(sizes, 1) : 1.33 * word(sizes, words(sizes))]
unset key
do for [stage in "finetune probe"] {
	set title stage eq "probe" ? "Cell types, linear probe" : "Cell types, fine-tuned"
	panel = stage eq "probe"
	set lmargin at screen left(panel)
	set rmargin at screen right(panel)
	none = scratch(stage)
	plot for [i = 1:words(strategies)] rows(stage, word(strategies, i)) using ($3 * aside(i)):7:(sd(strcol(8))) with yerrorlines \
		pt sign(word(strategies, i)) ps 0.7 lw 2 lc rgb colour(word(strategies, i)), strlen(none) ? real(none) : NaN with lines dt 2 lc rgb "#000000", \
		for [i = 1:(panel ? words(bases) : 0)] real(base(word(bases, i))) with lines dt base_dash(word(bases, i)) lw 2 lc rgb "#208040"
}

unset logscale x
set xtics auto
set xrange [0:*]
set xlabel "rarest classes"
ours = strstrt(" ".strategies." ", " corrmask ") ? "corrmask" : word(strategies, words(strategies))
set ylabel ours." - other, macro F1"
set title "The rarest classes, fine-tuned, largest corpus"
set lmargin at screen left(2)
set rmargin at screen right(2)
rare = dir."/rare.tsv"
head = system("head -n 1 ".rare." | cut -f 4- | tr '\t' ' '")
set datafile missing "NA"
if (int(system("cut -f 4- ".rare." | grep -c [0-9]"))) {
	plot 0 with lines lc rgb "#000000", for [i = 1:words(head)] rare skip 1 using 1:(column(i + 3)) with linespoints \
		pt sign(word(head, i)) ps 0.6 lw 2 lc rgb colour(word(head, i))
}

# The legend: a plot without axes
set tmargin at screen 1
set bmargin at screen 0
set lmargin at screen edge(3, 0)
set rmargin at screen 1
unset title
unset xlabel
unset ylabel
unset tics
unset border
unset grid
set xrange [0:1]
set yrange [0:1]
set key at screen edge(3, 10), screen 1 - 45 / tall left top Left reverse noenhanced maxrows n + 1 + words(bases)
plot for [i = 1:n] NaN with linespoints pt sign(word(strategies, i)) ps 0.7 lw 2 lc rgb colour(word(strategies, i)) title word(strategies, i), \
	NaN with lines dt 2 lc rgb "#000000" title "not pre-trained", \
	for [i = 1:words(bases)] NaN with lines dt base_dash(word(bases, i)) lw 2 lc rgb "#208040" title base_name(word(bases, i))
unset multiplot

# Left: correlation of masked genes by the share that is masked (the paper's tables 7 and 8). Middle: probe of the label, with the baselines (tables
# 4 and 6). Right: loss of validation cells during training, of the first seed.
summary = dir."/summary.tsv" # stage, metric, method, n, dropped, mean, sd
# The legend is at the right of the panels.
size = "1700,480"; load axes
set datafile missing "NA"
set multiplot
left(panel) = (500 * panel + 75) / 1700.0                   # of a panel, as a share of the width
right(panel) = (500 * panel + 480) / 1700.0
set tmargin at screen 1 - 45 / 480.0
set bmargin at screen 115 / 480.0
set lmargin at screen left(0)
set rmargin at screen right(0)
colour(m) = m eq "fixed-0.10" ? 0xbbbbbb : m eq "fixed-0.25" ? 0x888888 : m eq "fixed-0.50" ? 0x444444 : m eq "mdlm" ? 0x4060a0 : \
	m eq "dynamic" ? 0x70b0d0 : m eq "r2mae" ? 0xc04020 : m eq "r2mae-dynamic" ? 0xe0a030 : m eq "cl" ? 0x409050 : m eq "r2mae-cl" ? 0x8050a0 : \
	strstrt("expression pca naive-bayes untrained", m) ? 0x609060 : 0xa07850
done = ""
do for [m in methods] { if (int(system("awk -F '\t' '$3 == \"".m."\"' ".summary." | wc -l"))) { done = done." ".m } }
if (!words(done)) exit
rates(m) = "< awk -F '\t' '$1 ~ /^valid-/ && $2 == \"pearson\" && $3 == \"".m."\" { sub(\"valid-\", \"\", $1); print $1 \"\t\" $6 \"\t\" $7 + 0 }' ".summary
set title "Masked genes"
set xlabel "share of masked genes"
set ylabel "Pearson correlation in a cell"
set xrange [0.05:0.75]
unset key # the right panel has it
plot for [i = 1:words(done)] rates(word(done, i)) using ($1 + 0.004 * (i - words(done) / 2.0)):2:3 with yerrorlines pt 7 ps 0.7 lw 2 lc rgb colour(word(done, i))

set lmargin at screen left(1)
set rmargin at screen right(1)
set title "Probe, cells of other donors"
unset xlabel
set ylabel "balanced accuracy"
all = ""
do for [m in "expression pca naive-bayes untrained ".methods] { if (int(system("awk -F '\t' '$1 == \"label\" && $3 == \"".m."\"' ".summary." | wc -l"))) { all = all." ".m } }
set xrange [0:words(all) + 1]
set xtics rotate by 40 right ()
do for [i = 1:words(all)] { set xtics add (word(all, i) i) }
bars(m, i) = "< awk -F '\t' '$1 == \"label\" && $2 == \"balanced_accuracy\" && $3 == \"".m."\" { print ".i." \"\t\" $6 \"\t\" $7 + 0 }' ".summary
plot for [i = 1:words(all)] bars(word(all, i), i) using 1:2:3 with yerrorbars pt 7 lw 2 \
	lc rgb colour(word(all, i)) notitle

set lmargin at screen left(2)
set rmargin at screen right(2)
set title "Validation cells, 30 % of the genes masked"
set xtics norotate auto
set xlabel "step"
set ylabel "negative log-likelihood"
set xrange [0:*]
set key at screen right(2) + 20 / 1700.0, screen 1 - 45 / 480.0 left top Left reverse noenhanced maxrows 30
curve(m) = dir."/runs/".m."-".first_seed."/train.tsv"
there(m) = int(system("cut -f 7 '".curve(m)."' 2>/dev/null | grep -c '^[0-9]'"))
plot for [i = 1:words(done)] there(word(done, i)) ? curve(word(done, i)) : "/dev/null" using "step":"eval_loss" with lines lw 2 lc rgb colour(word(done, i)) \
	title word(done, i)
unset multiplot

# Left: training loss, running mean. Right: F1 of every class, the most frequent first. The figure grows with the classes and their names.
file = dir."/f1.tsv"
n = int(system("wc -l < '".file."'"))
longest = int(system("cut -f 1 '".file."' | wc -L"))
big = 480.0 > 110 + 17.0 * n ? 480.0 : 110 + 17.0 * n          # pixels
names = 20 + 7.0 * longest
wide = 1000 + names
if (terminal eq "svg") { set terminal svg size wide,big font "sans,13" background "white" } else { set terminal pngcairo size wide,big font "sans,10" }
set output dir."/demo.".terminal
set datafile separator "\t"
set multiplot
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
top = 1 - 70 / big
set key at screen 1 - 20 / wide, screen 1 - 6 / big right horizontal

# the loss, in a panel that stays as high as it is for few classes
set lmargin at screen 70 / wide
set rmargin at screen 500 / wide
set tmargin at screen top
set bmargin at screen 1 - 430 / big
set title "Training loss (each model under its own masks)"
set xlabel "step"
set ylabel "masked-token loss"
mean(x) = (s = 0.95 * s + 0.05 * x, n_ = n_ + 1, s / (1 - 0.95 ** n_))
plot n_=0 s=0 dir."/random.model/train.tsv" skip 1 using 1:(mean($2)) with lines lw 2 lc rgb "#888888" notitle, \
     n_=0 s=0 dir."/corrmask.model/train.tsv" skip 1 using 1:(mean($2)) with lines lw 2 lc rgb "#c04020" notitle

set lmargin at screen (540 + names) / wide
set rmargin at screen 1 - 30 / wide
set bmargin at screen 50 / big
set title "Cell types of held-out cells (probe)"
unset ylabel
set xlabel "F1"
set xrange [0:1]
set yrange [n - 0.4:-0.6]
unset grid
set grid xtics lc rgb "#dddddd"
set ytics noenhanced
set style fill solid 0.9 noborder
plot file using ($2 / 2):($0 - 0.18):($2 / 2):(0.17):ytic(1) with boxxyerror lc rgb "#888888" title "random", \
     file using ($3 / 2):($0 + 0.18):($3 / 2):(0.17) with boxxyerror lc rgb "#c04020" title "CorrMask"
unset multiplot

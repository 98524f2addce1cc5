# Left: training loss, running mean. Right: F1 of every class, the most frequent first.
if (terminal eq "svg") { set terminal svg size 1200,480 font "sans,13" background "white" } else { set terminal pngcairo size 1200,480 font "sans,10" }
set output dir."/demo.".terminal
set datafile separator "\t"
set multiplot layout 1,2
set key top right
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror

set title "Training loss (each model under its own masks)"
set xlabel "step"
set ylabel "masked-token loss"
mean(x) = (s = n == 0 ? x : 0.95 * s + 0.05 * x, n = n + 1, s)
plot n=0 s=0 dir."/random.model/train.tsv" skip 1 using 1:(mean($2)) with lines lw 2 lc rgb "#888888" title "random", \
     n=0 s=0 dir."/corrmask.model/train.tsv" skip 1 using 1:(mean($2)) with lines lw 2 lc rgb "#c04020" title "CorrMask"

set title "Cell types of held-out cells (probe)"
set xlabel ""
set ylabel "F1"
set yrange [0:1]
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set xtics rotate by -35 noenhanced
set key top right horizontal
plot dir."/f1.tsv" using 2:xtic(1) lc rgb "#888888" title "random", "" using 3 lc rgb "#c04020" title "CorrMask"
unset multiplot

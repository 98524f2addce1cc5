# gnuplot -e 'file="MODEL/train.tsv"; terminal="svg"' train.gp: loss, validation metrics and learning rate of a training.
# terminal is svg or png. Columns of train.tsv are found by name; those of --eval are optional.
if (terminal eq "svg") { set terminal svg size 1000,900 font "sans,13" background "white" } else { set terminal pngcairo size 1000,900 font "sans,11" }
set datafile separator "\t"
set datafile missing "NA"
columns = system(sprintf("head -n 1 '%s' | tr '\\t' ' '", file))
has(name) = strstrt(" ".columns." ", " ".name." ") > 0
held = has("eval_loss")
set multiplot layout 3,1
set key tmargin right horizontal noenhanced
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set lmargin 13

# A running mean over about 20 steps, of the first steps over those that there are. A step without a loss (NA) changes nothing.
mean(x) = (s = 0.95 * s + 0.05 * x, n = n + 1, s / (1 - 0.95 ** n))
n = 0
s = 0
set xrange [0:*]
set title file noenhanced
set ylabel "loss"
if (held) {
	plot file using "step":"loss" with points pt 7 ps 0.3 lc rgb "#cccccc" notitle, \
	     file using "step":(mean(column("loss"))) with lines lw 2 lc rgb "#888888" title "training, running mean", \
	     file using "step":"eval_loss" with linespoints pt 7 ps 0.5 lw 2 lc rgb "#c04020" title "validation"
} else {
	plot file using "step":"loss" with points pt 7 ps 0.3 lc rgb "#cccccc" notitle, \
	     file using "step":(mean(column("loss"))) with lines lw 2 lc rgb "#888888" title "training, running mean"
}
unset title
if (held) {
	set ylabel "share"
	accuracy = "file using 'step':'eval_accuracy' with linespoints pt 7 ps 0.5 lw 2 lc rgb '#c04020' title 'validation accuracy'"
	f1 = ", file using 'step':'eval_macro_f1' with linespoints pt 6 ps 0.5 lw 2 lc rgb '#4060a0' title 'validation macro F1'"
	eval "plot ".accuracy.(has("eval_macro_f1") ? f1 : "")
} else {
	set ylabel "gradient norm"
	set logscale y
	plot file using "step":"grad_norm" with points pt 7 ps 0.3 lc rgb "#888888" notitle
	unset logscale y
}
set ylabel "learning rate"
set xlabel "step"
set format y "%.1e"
set yrange [0:*]
plot file using "step":"lr" with lines lw 2 lc rgb "#4060a0" notitle
unset multiplot

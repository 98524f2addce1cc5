# Lines are theory, points are means of simulations with their standard deviations. Panel F shows accuracies of trained models (panel-f.tsv
# of r2mae/accuracy.sh).
size = "1000,1750"; load axes
set datafile missing "inf"
set multiplot layout 5,2
set xrange [0:1]
set xlabel "masking rate\n" offset 0, 0.4
# below the panel, where no curve is
set key below reverse Left samplen 1.5
set bars 0.4
array colour[6] = ["#2060a0", "#c04020", "#208050", "#804090", "#c09020", "#606060"]
theory(name) = dir."/".name.".theory.tsv"
trial(name) = dir."/".name.".simulate.tsv"
# the number of simulations, to make standard deviations from standard errors
sd(se) = se * sqrt(runs)

set title "A  isotropic: p / n = 2 and 0.5 (pole at 0.5)"
set ylabel "risk"
set logscale y
set yrange [0.5:50]
plot theory("over") using 1:5 with lines lc rgb colour[1] title "p / n = 2", \
     trial("over") using 1:3:(sd($4)) with yerrorbars pt 7 ps 0.4 lc rgb colour[1] notitle, \
     theory("under") using 1:5 with lines lc rgb colour[2] title "p / n = 0.5", \
     trial("under") using 1:3:($3 < 100 ? sd($4) : 0) with yerrorbars pt 7 ps 0.4 lc rgb colour[2] notitle
unset logscale y

set title "B  spiked, aligned: strength c of the spike"
set yrange [0:8]
spikes = "0 1 2 5"
plot for [i = 1:4] theory("spike-".word(spikes, i)) using 1:5 with lines lc rgb colour[i] title "c = ".word(spikes, i), \
     for [i = 1:4] trial("spike-".word(spikes, i)) using 1:3:(sd($4)) with yerrorbars pt 7 ps 0.4 lc rgb colour[i] notitle

set title "C  spiked, c = 5: alignment of the coefficients"
set yrange [0:9]
aligned = "align-0 align-0.25 align-0.5 align-0.75 spike-5"
angles = "0 0.25 0.5 0.75 1"
plot for [i = 1:5] theory(word(aligned, i)) using 1:5 with lines lc rgb colour[i] title "alignment ".word(angles, i), \
     for [i = 1:5] trial(word(aligned, i)) using 1:3:(sd($4)) with yerrorbars pt 7 ps 0.4 lc rgb colour[i] notitle

set title "D  magnitude of predictions, c = 5"
set ylabel "mean squared prediction"
set yrange [0:14]
pair = "spike-5 align-0"
words = "aligned orthogonal"
plot for [i = 1:2] theory(word(pair, i)) using 1:6 with lines lc rgb colour[i] title word(words, i), \
     for [i = 1:2] trial(word(pair, i)) using 1:5:(sd($6)) with yerrorbars pt 7 ps 0.4 lc rgb colour[i] notitle

set ylabel "risk / risk of predicting 0"
set yrange [0:2]
models = "uniform beta latent"
names = "'uniform eigenvalues' 'Beta(1, 10) eigenvalues' 'latent space, I + W W^T'"
quantiles = "0.5 0.75 0.9 1"
do for [m = 1:3] {
	set title "E  ".word(names, m).": quantile of the eigenvector" noenhanced
	plot 1 with lines dt 2 lc rgb "#888888" notitle, \
	     for [i = 1:4] theory(word(models, m)."-".word(quantiles, i)) using 1:5 with lines lc rgb colour[i] title "quantile ".word(quantiles, i), \
	     for [i = 1:4] trial(word(models, m)."-".word(quantiles, i)) using 1:3:(sd($4)) with yerrorbars pt 7 ps 0.4 lc rgb colour[i] notitle
}

set title "F  trained models: errors with a common start and slope" noenhanced
set ylabel "scaled error"
set yrange [*:*]
stats dir."/panel-f.tsv" using 1:2 name "F" nooutput
plot for [i = 1:F_blocks] dir."/panel-f.tsv" index i - 1 using 1:2 with linespoints pt 7 ps 0.5 lc rgb colour[1 + (i - 1) % 6] title columnheader(1)
set ylabel "risk / risk of predicting 0"

set title "G  latent space with equal factors: rows drawn once"
set yrange [0:1.6]
plot theory("linear") using 1:5 with lines lc rgb colour[1] title "n = 50, p = 1000, 20 factors", \
     trial("linear") using 1:3 with points pt 7 ps 0.4 lc rgb colour[1] notitle, \
     theory("sample-1") using 1:5 with lines lc rgb colour[2] title "n = 20, p = 300, 5 factors", \
     for [i = 1:6] trial("sample-".i) using 1:3 with linespoints pt 7 ps 0.3 lw 0.6 dt 3 lc rgb colour[2] title (i == 1 ? "its samples (six, not selected)" : "")
unset multiplot

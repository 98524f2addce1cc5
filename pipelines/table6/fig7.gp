# Macro F1 by lambda, the share of the masks that follow the graph, on the largest corpus (the paper's figure 7), with standard deviations over seeds. Left: fine-tuned; right: a probe.
summary = dir."/summary.tsv" # stage, metric, cells, strategy, n, dropped, mean, sd
size = "900,400"; load axes
set multiplot layout 1,2
set xlabel "lambda (0: random masks)"
set ylabel "macro F1"
set xrange [-0.1:1.1]
set xtics 0.25
set offsets 0, 0, graph 0.1, graph 0.1
unset key
# lambda of random is 0, of corrmask 0.5, of corrmask-N N percent
rows(stage) = "< awk -F '\t' '$3 + 0 > n { n = $3 } { line[NR] = $0 } END { for (i = 1; i <= NR; i++) { split(line[i], f, FS); s = f[4];" \
	." l = s == \"random\" ? 0 : s == \"corrmask\" ? 0.5 : s ~ /^corrmask-[0-9]+$/ ? substr(s, 10) / 100 : -1;" \
	." if (f[1] == \"".stage."\" && f[2] == \"macro_f1\" && f[3] == n && l >= 0) print l FS f[7] FS (f[8] == \"NA\" ? 0 : f[8]) } }' ".summary." | sort -n"
do for [stage in "finetune probe"] {
	set title stage eq "probe" ? "Cell types, linear probe" : "Cell types, fine-tuned"
	plot rows(stage) using 1:2 with lines lc rgb "#c04020" lw 1, rows(stage) using 1:2:3 with yerrorbars pt 7 lw 2 lc rgb "#c04020"
}
unset multiplot

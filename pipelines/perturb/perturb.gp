# A volcano plot: the shift of each gene's deletion and its significance; genes of the truth in red, the outermost ones with names.
size = "700,480"; load axes
points = dir."/points.tsv"
some(k) = "< awk -F '\t' '$4 == ".k."' ".points
top = "< sort -t '\t' -k 2,2gr ".points." | head -n 8"
set grid xtics ytics lc rgb "#dddddd"
set xlabel "shift towards the goal when the gene is deleted"
set ylabel "-log10 q"
set key outside top center horizontal
set offsets graph 0.05, graph 0.15, graph 0.05, 0
truth = int(system("awk -F '\t' '$4 == 1' ".points." | wc -l"))
set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb "#888888"
plot some(0) using 2:3 with points pt 7 ps 0.5 lc rgb "#888888" title "genes", \
	(truth ? some(1) : "< echo") using 2:3 with points pt 7 ps 0.7 lc rgb "#c04020" title (truth ? "genes that should be found" : ""), \
	top using 2:3:1 with labels left offset 0.6, 0 noenhanced notitle

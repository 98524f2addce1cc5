# Above: error of a probe of the digit by masking rate, for two widths; lines are R2MAE's. Below: loss of masked tokens by the rate at which they
# are masked, a line for each rate of the training.
summary = dir."/summary.tsv"
there(kind) = int(system("grep -c '^".kind."' ".summary." || true")) > 0
size = there("dna") ? "500,1080" : "500,720"; load axes
set multiplot layout there("dna") ? 3 : 2,1
set bmargin 7
rows(kind, awk) = "< awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $c[\"kind\"] == \"".kind."\" && ".awk."' ".summary
fixed(kind) = rows(kind, "$c[\"arm\"] != \"r2mae\" { print $c[\"arm\"] \"\t\" $c[\"mean\"] \"\t\" $c[\"sd\"] + 0 }")
random(kind) = rows(kind, "$c[\"arm\"] == \"r2mae\" { print \"0\t\" $c[\"mean\"]; print \"1\t\" $c[\"mean\"] }")
loss(kind, arm) = rows(kind, "$c[\"arm\"] == \"".arm."\" { r = $c[\"metric\"]; sub(/loss-/, \"\", r); print r \"\t\" $c[\"mean\"] \"\t\" $c[\"sd\"] + 0 }")
set key below reverse Left samplen 1.5
set title "Digits: error of the probe"
set xlabel "masking rate in training"
set xrange [0:1]
set yrange [0:*]
plot fixed("digits-16") with yerrorlines pt 7 ps 0.6 lc rgb "#2060a0" title "width 16", random("digits-16") with lines dt 2 lc rgb "#2060a0" title "width 16, R2MAE", \
     fixed("digits-256") with yerrorlines pt 7 ps 0.6 lc rgb "#c04020" title "width 256", random("digits-256") with lines dt 2 lc rgb "#c04020" title "width 256, R2MAE"
set xlabel "masking rate in the test"
set xrange [0.1:0.55]
set yrange [*:*]
do for [kind in there("dna") ? "text dna" : "text"] {
	set title kind eq "text" ? "Text: loss of masked characters" : "Genome: loss of masked bases"
	plot for [i = 1:4] loss(kind, word("0.15 0.3 0.5 r2mae", i)) with yerrorlines pt 7 ps 0.6 \
		lc rgb word("#bbbbbb #888888 #444444 #c04020", i) title word("0.15 0.3 0.5 R2MAE", i)
}
unset multiplot

# What figures share: plot.sh gives its name as `axes`; `size` is in pixels.
eval sprintf("set terminal %s size %s font 'sans,%d' background 'white'", terminal eq "svg" ? "svg" : "pngcairo", size, terminal eq "svg" ? 13 : 10)
set datafile separator "\t"
set border 3
set tics nomirror
set grid ytics lc rgb "#dddddd"

# From `scview -c token` the number of cells with each token: token <TAB> cells
NR > 1 { n = split($0, t, " "); for (i = 1; i <= n; i++) cells[t[i]]++ }
END { for (g in cells) print g "\t" cells[g] }

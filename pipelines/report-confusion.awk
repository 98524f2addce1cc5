# A confusion matrix as SVG. Input: tables of metric and value, whose cells are summed (the seeds of one model). Rows are true classes, the
# most frequent first; the colour is the share of the row's cells.
BEGIN { FS = "\t" }
substr($1, 1, 2) == "n:" { c = substr($1, 3); if (!(c in cells)) class[++n] = c; cells[c] += $2 }
substr($1, 1, 10) == "confusion:" { count[substr($1, 11)] += $2 }
END {
	for (i = 2; i <= n; i++) {
		c = class[i]
		for (j = i - 1; j && cells[class[j]] < cells[c]; j--) class[j + 1] = class[j]
		class[j + 1] = c
	}
	# classes that have cells, or that cells are taken for
	for (i = 1; i <= n; i++) {
		used = cells[class[i]] > 0
		for (j = 1; j <= n && !used; j++) used = (class[j] ":" class[i]) in count
		if (used) class[++m] = class[i]
	}
	n = m
	for (i = 1; i <= n; i++) if (length(class[i]) > longest) longest = length(class[i])
	if (longest > 42) longest = 42
	side = n <= 12 ? 26 : n <= 30 ? 16 : 10
	left = 34 + 6.6 * longest
	top = 34
	svg_start(left + n * side + 8, top + n * side + 26, title, "Confusion matrix of " n " classes. The page has its numbers as a table.")
	print "<g text-anchor=\"middle\" fill=\"black\" font-size=\"" (side > 14 ? 11 : 8) "\">"
	print "<text x=\"" left + n * side / 2 "\" y=\"12\" font-size=\"12\">predicted class</text>"
	for (i = 1; i <= n; i++)
		if (side > 14 || i % 5 == 0 || i == 1)
			printf "<text x=\"%.1f\" y=\"%.1f\">%d</text>\n", left + (i - 0.5) * side, top - 4, i
	print "</g><g text-anchor=\"end\" fill=\"black\" font-size=\"" (side > 12 ? 11 : 9) "\">"
	for (i = 1; i <= n; i++) {
		name = class[i]
		if (length(name) > 42) name = substr(name, 1, 41) "…"
		printf "<text x=\"%.1f\" y=\"%.1f\">%s  %d</text>\n", left - 5, top + (i - 0.5) * side + 4, html(name), i
	}
	print "</g>"
	for (i = 1; i <= n; i++)
		for (j = 1; j <= n; j++) {
			k = class[i] ":" class[j]
			if (!count[k]) continue
			share = cells[class[i]] ? count[k] / cells[class[i]] : 0
			printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"#0072b2\" fill-opacity=\"%.3f\"><title>%s, predicted %s: %d of %d cells</title></rect>\n", \
				left + (j - 1) * side, top + (i - 1) * side, side - 1, side - 1, 0.06 + 0.94 * share, html(class[i]), html(class[j]), count[k], cells[class[i]]
			if (side > 20)
				printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"10\" fill=\"%s\" pointer-events=\"none\">%d</text>\n", \
					left + (j - 0.5) * side - 0.5, top + (i - 0.5) * side + 3.5, (share > 0.45 ? "#ffffff" : "black"), 100 * share + 0.5
		}
	printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"black\" stroke-opacity=\"0.4\"/>\n", left - 1, top - 1, n * side + 1, n * side + 1
	printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"black\" font-size=\"11\">%% of the cells of the true class</text>\n", \
		left + n * side / 2, top + n * side + 18
	print "</svg>"
}

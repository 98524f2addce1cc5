# bars.awk: docs/speed.svg from docs/speed.tsv (job, result, our seconds, the other program, its seconds): a pair of bars for each job, with a scale of
# its own. It is 390 wide, as a phone is, and knows the dark scheme.
function bar(class, name, value,	width) {
	width = 160 * value / most
	printf "<text x=\"112\" y=\"%d\" text-anchor=\"end\">%s</text>", y + 12, name
	printf "<rect class=\"%s\" x=\"118\" y=\"%d\" width=\"%.1f\" height=\"15\"/>", class, y, width
	printf "<text x=\"%.0f\" y=\"%d\">%s</text>\n", 124 + width, y + 12, value
	y += 19
}
BEGIN { FS = "\t" }
NR > 1 { line[++n] = $0 }
END {
	height = 24 + 68 * n
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 390 %d\" width=\"390\" height=\"%d\" role=\"img\">", height, height
	print "<title>CPU seconds of the same job</title><style>text { font: 13px system-ui, sans-serif; fill: #222 } .job { font-weight: 600 } .back { fill: #fff }"
	print ".other { fill: #9aa5b1 } .ours { fill: #0b6fb8 } @media (prefers-color-scheme: dark) {"
	printf "text { fill: #eee } .back { fill: #16191d } .other { fill: #6b7682 } .ours { fill: #4fb0f5 } }</style>"
	printf "<rect class=\"back\" width=\"390\" height=\"%d\"/>\n", height
	print "<text class=\"job\" x=\"8\" y=\"18\">CPU seconds, one thread</text>"
	y = 32
	for (i = 1; i <= n; i++) {
		split(line[i], f, "\t")
		most = f[3] + 0 > f[5] + 0 ? f[3] + 0 : f[5] + 0
		printf "<text x=\"8\" y=\"%d\"><tspan class=\"job\">%s:</tspan> %s</text>\n", y + 12, f[1], f[2]
		y += 19
		bar("ours", "corrmask", f[3])
		bar("other", f[4], f[5])
		y += 11
	}
	print "</svg>"
}

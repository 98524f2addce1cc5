# A tab-separated table with a line of names as a table of HTML, at most `most` rows. caption: its heading.
BEGIN { FS = "\t" }
NR == 1 { n = NF; for (i = 1; i <= n; i++) name[i] = $i; table_start(caption, name, n); next }
NR - 1 <= most {
	line = "<tr>"
	for (i = 1; i <= n; i++)
		line = line cell($i)
	print line "</tr>"
}
END {
	if (!NR)
		exit
	table_end()
	if (NR - 1 > most)
		print "<p>The first " most " of " NR - 1 " rows.</p>"
}

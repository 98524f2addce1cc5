# gpu.sh: bench.log -> ops by shape: of six shapes at most, those of `most` first
BEGIN {
	most = ";corrmask-paper 2048 12;corrmask-paper real 48;corrmask-paper 2048 48;v2-104m 2048 12;v2-104m 2048 48;embed geneformer-v1-10m 2048 48;"
}
$1 == "config" { at = $2 " " $4 " " $6; next }
$1 == "embed_config" { at = "embed " $2 " " $4 " " $6; next }
/^  / && $1 != "op" {
	if (!(at in measured)) { measured[at] = 1; found[++nfound] = at }
	if (!($1 in seen) && $1 != "all") { seen[$1] = 1; op[++n] = $1 }
	x[at, $1] = $1 == "all" ? sprintf("%.2f (%s)", $2, $5) : sprintf("%.2f (%s)", $3, $6)
	if ($1 != "all") { ms[$1] += $3 }
}
END {
	for (turn = 1; turn >= 0; turn--)
		for (i = 1; i <= nfound; i++)
			if ((index(most, ";" found[i] ";") > 0) == turn && m < 6) shape[++m] = found[i]
	for (i = 1; i <= n; i++)
		for (j = i + 1; j <= n; j++)
			if (ms[op[j]] > ms[op[i]]) { t = op[i]; op[i] = op[j]; op[j] = t }
	op[++n] = "all"
	line = "| op |"
	rule = "|---|"
	for (j = 1; j <= m; j++) { line = line " " shape[j] " |"; rule = rule "---|" }
	print line "\n" rule
	for (i = 1; i <= n; i++) {
		line = "| " op[i] " |"
		for (j = 1; j <= m; j++) line = line " " x[shape[j], op[i]] " |"
		print line
	}
}

# The network of a dependency graph as SVG: genes by module, with the strongest edges. First input: depgraph --layout --modules, then
# the edges, the strongest first: depgraph --tsv. As a table (what = table): its modules with the genes that have most neighbours.
BEGIN { FS = "\t"; W = 460; H = 460; MARGIN = 14; MOST = 2500; HUBS = 8 }
FNR == 1 { file++; for (i = 1; i <= NF; i++) at[file, $i] = i; next }
file == 1 {
	t = $at[1, "token"]
	token[++n] = t
	name[t] = $at[1, "symbol"] != "" ? $at[1, "symbol"] : $at[1, "gene"]
	degree[t] = $at[1, "degree"]
	module[t] = $at[1, "module"]
	x[t] = $at[1, "x"] + 0
	y[t] = $at[1, "y"] + 0
	genes[module[t]]++
	if (module[t] + 1 > modules) modules = module[t] + 1
	if (n == 1 || x[t] < left) left = x[t]
	if (n == 1 || x[t] > right) right = x[t]
	if (n == 1 || y[t] < low) low = y[t]
	if (n == 1 || y[t] > high) high = y[t]
	next
}
{
	edges++
	a = module[$at[2, "token_a"]]
	if (a == module[$at[2, "token_b"]]) inner[a]++
	if (edges <= MOST) { from[edges] = $at[2, "token_a"]; to[edges] = $at[2, "token_b"] }
}
# the genes of module m with most neighbours, in text; the first one is hub[m]
function hubs(m, most,  i, k, best, text, done) {
	for (k = 0; k < most; k++) {
		best = ""
		for (i = 1; i <= n; i++)
			if (module[token[i]] == m && !(token[i] in done) && (best == "" || degree[token[i]] + 0 > degree[best] + 0)) best = token[i]
		if (best == "") break
		done[best] = 1
		if (!k) hub[m] = best
		text = text (k ? ", " : "") name[best]
	}
	return text
}
END {
	if (what == "table") {
		split("module,genes,edges in it,genes with most neighbours", head, ",")
		table_start(caption, head, 4)
		for (m = 0; m < modules && m < 200; m++)
			print "<tr>" cell(m) cell(genes[m]) cell(inner[m] + 0) cell(hubs(m, HUBS)) "</tr>"
		table_end()
		exit
	}
	scale_x = (W - 2 * MARGIN) / (right > left ? right - left : 1)
	scale_y = (H - 2 * MARGIN) / (high > low ? high - low : 1)
	svg_start(W, H + 4, title, n " genes in " modules (modules == 1 ? " module" : " modules") ", with the " (edges < MOST ? edges + 0 : MOST) " strongest of " edges + 0 " edges. The page has the modules as a table.")
	for (i = 1; i <= n; i++) {
		t = token[i]
		px[t] = int(MARGIN + (x[t] - left) * scale_x + 0.5)
		py[t] = int(MARGIN + (high - y[t]) * scale_y + 0.5)
	}
	path = ""
	for (i = 1; i <= edges && i <= MOST; i++)
		path = path "M" px[from[i]] " " py[from[i]] "L" px[to[i]] " " py[to[i]]
	print "<path fill=\"none\" stroke=\"#999999\" stroke-width=\"0.5\" stroke-opacity=\"0.35\" d=\"" path "\"/>"
	for (m = 0; m < modules; m++) {
		path = ""
		for (i = 1; i <= n; i++)
			if (module[token[i]] == m) path = path "M" px[token[i]] " " py[token[i]] "h0"
		print "<path fill=\"none\" stroke=\"" colour(m + 1) "\" stroke-width=\"" (n > 500 ? 4 : 7) "\" stroke-linecap=\"round\" d=\"" path "\"><title>module " m ", " genes[m] " genes</title></path>"
	}
	print "<g text-anchor=\"middle\" font-size=\"11\" fill=\"black\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\" stroke-linejoin=\"round\">"
	for (m = (modules < 24 ? modules : 24) - 1; m >= 0; m--) {
		if (genes[m] < 3) continue
		hubs(m, 1)
		printf "<text x=\"%d\" y=\"%d\">%d %s</text>\n", (px[hub[m]] < 30 ? 30 : W - px[hub[m]] < 30 ? W - 30 : px[hub[m]]), py[hub[m]] + 4, m, html(name[hub[m]])
	}
	print "</g></svg>"
}

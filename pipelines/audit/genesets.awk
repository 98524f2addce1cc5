# How many of the k strongest edges join two genes of one gene set, compared with random pairs of equally frequent genes. The input has
# these lines:
#   name ALIAS ID   gene TOKEN ID SYMBOL   symbol ID SYMBOL   set NAME DESCRIPTION GENE...   cells TOKEN N (rising N)
#   edge TOKEN ID TOKEN ID (|weight| falling)
# Only genes that are in a set of at most `most` genes are counted: nothing is known about the others. `skip`: symbols to leave out. In a
# random pair each gene of the edge is replaced by one of the 2 WIDTH + 1 genes around it in the order of frequency; DRAWS pairs per edge.
BEGIN { FS = OFS = "\t"; WIDTH = 25; DRAWS = 20; seed = 1; nk = split(ks, at, " "); next_k = 1
	print "k", "precision", "random", "ratio", "se", "genes" }

# Park and Miller's generator: exact in doubles, so the same in every awk
function below(n) { seed = seed * 16807 % 2147483647; return int(seed / 2147483647 * n) }
function near(r,  from, to) {
	from = r > WIDTH ? r - WIDTH : 1
	to = r + WIDTH < universe ? r + WIDTH : universe
	return order[from + below(to - from + 1)]
}
function share(u, v,  n, i, s) {
	n = split(sets[u], s, " ")
	for (i = 1; i <= n; i++)
		if ((v, s[i]) in member)
			return 1
	return 0
}
function report(  p, q) {
	p = hits / edges; q = random / draws
	printf "%d\t%.4f\t%.4f\t%.2f\t%.4f\t%d\n", edges, p, q, q ? p / q : 0, sqrt(p * (1 - p) / edges), genes
}

$1 == "name" { if (!($2 in alias)) alias[$2] = $3; next }
$1 == "gene" && $3 in token { next }
$1 == "gene" { token[$3] = $2 }
$1 == "gene" || $1 == "symbol" {
	id = $1 == "gene" ? $3 : $2
	if ($NF == "")
		next
	if (!($NF in symbol))
		symbol[$NF] = id
	if (skip != "" && $NF ~ skip)
		skipped[token[id]] = 1
	next
}
$1 == "set" {
	if (NF - 3 > most || NF < 5)
		next
	used++
	for (i = 4; i <= NF; i++) {
		g = $i in token ? $i : $i in symbol && symbol[$i] in token ? symbol[$i] : $i in alias ? alias[$i] : ""
		if (!(g in token))
			continue
		t = token[g]
		if (!((t, used) in member)) {
			member[t, used] = 1
			sets[t] = sets[t] " " used
		}
	}
	next
}
$1 == "cells" { if ($2 in sets && !($2 in skipped)) { order[++universe] = $2; place[$2] = universe } next }
$1 == "edge" {
	if (universe < 2) {
		print "genesets: no gene of the cells is in a gene set of at most " most " genes: name a table of names and ids as GENE_NAMES" > "/dev/stderr"
		failed = 1
		exit 1
	}
	if (!($2 in place) || !($4 in place))
		next
	edges++
	hits += share($2, $4)
	for (i = 0; i < DRAWS; i++) {
		do { u = near(place[$2]); v = near(place[$4]) } while (u == v)
		random += share(u, v)
		draws++
	}
	if (!seen[$2]++) genes++
	if (!seen[$4]++) genes++
	if (next_k <= nk && edges == at[next_k]) {
		report()
		next_k++
		last = edges
	}
}
END {
	if (failed)
		exit 1
	if (edges && edges != last)
		report()
}

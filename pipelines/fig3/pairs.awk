# fig3/pairs.awk: how well a score of gene pairs separates pairs within a module from pairs between modules.
# First file: scview --vocab, where the symbol m2.345 means module 2. Second file, by `what`: A or C counts pairs in lists of tokens
# (A: adjacent, C: anywhere in the cell); npmi, graph and all read the edges of depgraph --tsv (a pair without an edge scores
# lowest). Prints what<TAB>AUROC, ties counting half; for graphs also the number of edges and the share within modules.
FNR == NR {
	if (FNR > 1 && split($3, s, ".") == 2) {
		if (!n)
			first = $1      # genes follow the special tokens
		module[n++] = s[1]
	}
	next
}
FNR == 1 { next }
what == "A" || what == "C" {
	k = split($1, t, " ")
	for (i = 1; i < k; i++)
		for (j = i + 1; j <= (what == "A" ? i + 1 : k); j++)
			add(t[i] - first, t[j] - first, 1)
	next
}
{
	# NPMI from -1 to 1, and 0 where pairs never met; an edge of the others is one, whatever its weight
	add($1 - first, $4 - first, what == "npmi" ? $7 + 2 : 1)
	edges++
	within += module[$1 - first] == module[$4 - first]
}
function add(a, b, x) { score[a < b ? a * n + b : b * n + a] += x }
END {
	for (p in score) {
		b = p % n
		x = score[p]
		if (module[(p - b) / n] == module[b])
			same[x]++
		else
			other[x]++
		seen[x] = 1
		met[module[(p - b) / n] == module[b]]++
	}
	for (a = 0; a < n; a++)
		size[module[a]]++
	for (m in size)
		nsame += size[m] * (size[m] - 1) / 2
	nother = n * (n - 1) / 2 - nsame
	# (share of pairs (within, between) in the right order) + half the ties, from the lowest score up
	same[0] = nsame - met[1]
	other[0] = nother - met[0]
	seen[0] = 1
	for (x in seen)
		value[++nvalue] = x + 0
	sort(value, nvalue)
	for (i = 1; i <= nvalue; i++) {
		x = value[i]
		area += same[x] * (below + other[x] / 2)
		below += other[x]
	}
	printf "%s\t%.6f", what, area / nsame / nother
	if (edges)
		printf "\t%d\t%.6f", edges, within / edges
	print ""
	if (dir != "")
		matrices()
}
# Shell sort
function sort(v, m,   gap, i, j, x) {
	for (gap = int(m / 2); gap > 0; gap = int(gap / 2))
		for (i = gap + 1; i <= m; i++) {
			x = v[i]
			for (j = i; j > gap && v[j - gap] > x; j -= gap)
				v[j] = v[j - gap]
			v[j] = x
		}
}
function matrices(   p, a, b, i, j, sum, side) {
	side = int((n + 3) / 4)
	for (p in score) {
		b = int(p % n / 4)
		a = int(int(p / n) / 4)
		sum[a, b] += score[p]
		if (a != b)
			sum[b, a] += score[p]
		else
			sum[a, b] += score[p]
	}
	for (i = 0; i < side; i++)
		for (j = 0; j < side; j++) {
			printf "%d%s", sum[i, j], j + 1 < side ? " " : "\n" > (dir "/matrix-" what ".txt")
			if (what == "C")
				printf "%d%s", module[4 * i] == module[4 * j], j + 1 < side ? " " : "\n" > (dir "/matrix-truth.txt")
		}
}

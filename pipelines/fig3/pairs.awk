# fig3/pairs.awk: how well a score of gene pairs separates pairs within a module from pairs between modules.
# First file: scview --vocab, where the symbol m2.345 means module 2. Second file, by `what`: A or C counts pairs in lists of tokens
# (A: adjacent, C: anywhere in the cell); npmi, graph and all read the edges of depgraph -O tsv (a pair without an edge scores
# lowest). Prints score, pairs within, pairs between; the last line, without a score, has the number of edges and of those within modules.
BEGIN { OFMT = "%.17g" }
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
	for (a = 0; a < n; a++)
		size[module[a]]++
	for (m in size)
		nsame += size[m] * (size[m] - 1) / 2
	nother = n * (n - 1) / 2 - nsame
	for (p in score) {
		b = p % n
		same = module[(p - b) / n] == module[b]
		print score[p], same + 0, 1 - same
		nsame -= same
		nother -= 1 - same
	}
	print 0, nsame, nother
	print "edges", edges + 0, within + 0
	if (dir != "")
		matrices()
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

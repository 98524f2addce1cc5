# Classify the cells of TEST by the nearest mean of the classes of TRAIN: a baseline without a network. A line is a class, a tab and numbers with
# spaces between; the first line of each file is a heading. Prints the share of the cells that are classified correctly.
#     awk -F '\t' -f fig4/nearest-mean.awk TRAIN TEST
FNR == 1 { part++; next }
{ n = split($2, x, " ") }
part == 1 {
	cells[$1]++
	for (i = 1; i <= n; i++) sum[$1, i] += x[i]
	next
}
{
	best = ""
	for (class in cells) {
		far = 0
		for (i = 1; i <= n; i++) far += (x[i] - sum[class, i] / cells[class]) ^ 2
		if (best == "" || far < least || far == least && class < best) { best = class; least = far }
	}
	right += best == $1
	tested++
}
END { printf "%.4f", right / tested }

# Figure 3 of the BMFM-RNA paper as a table: kind, label or text, predicted term, number.
#     awk -f lineages.awk part=1 ONTOLOGY.obo part=2 CLASSES part=3 PREDICTIONS
# CLASSES: the leaves that the head predicts, a term a line, in the order of its logits. PREDICTIONS: a line of names, then label, predicted term and
# logits of each cell. Prints cells whose prediction is exact, finer, coarser or wrong (their number); of the label above a type with most cells, the mean
# probability of each term of its lineages from the top down, without those above it that are certain (lineage); and that label with its cells (label).

BEGIN { FS = "\t"; OFS = "\t"; split("exact finer coarser wrong", kinds, " ") }
part == 1 && /^id: / { id = substr($0, 5) }
part == 1 && /^name: / { name[id] = substr($0, 7) }
part == 1 && /^is_a: / { split($0, w, " "); up[id] = up[id] " " w[2] }
part == 1 { next }
part == 2 { leaf[++leaves] = $1; next }
FNR == 1 || $1 == "NA" || $1 == "" { next }
{
	flow[$1, $2]++
	if (!from[$1]++) label[++labels] = $1
	if (!to[$2]++) predicted[++predictions] = $2
	n = split($3, z, " ")
	most = z[1]
	for (i = 2; i <= n; i++) if (z[i] > most) most = z[i]
	for (sum = i = 0; ++i <= n; sum += z[i]) z[i] = exp(z[i] - most)
	for (i = 1; i <= n; i++) mass[$1, i] += z[i] / sum
}

# is a the term b, or above it?
function above(a, b,    w, i, n) {
	if (a == b) return 1
	n = split(up[b], w, " ")
	for (i = 1; i <= n; i++) if (above(a, w[i])) return 1
	return 0
}
function kind(a, b) { return kinds[a == b ? 1 : above(a, b) ? 2 : above(b, a) ? 3 : 4] }
# the longest way from the top
function depth(a,    w, i, n, d, most) {
	if (a in deep) return deep[a]
	n = split(up[a], w, " ")
	for (i = 1; i <= n; i++) if ((d = depth(w[i]) + 1) > most) most = d
	return deep[a] = most + 0
}
# most cells first
function order(list, n, count,    i, j, x) {
	for (i = 2; i <= n; i++) {
		x = list[i]
		for (j = i - 1; j && count[list[j]] < count[x]; j--) list[j + 1] = list[j]
		list[j + 1] = x
	}
}
function title(a) { return a in name ? name[a] : a }

END {
	order(label, labels, from)
	order(predicted, predictions, to)
	print "kind", "label", "predicted", "number"
	for (i = 1; i <= labels; i++) for (j = 1; j <= predictions; j++) {
		a = label[i]
		b = predicted[j]
		if ((a, b) in flow) print kind(a, b), title(a), title(b), flow[a, b]
	}
	# the first label, by number of cells, that is above a leaf
	for (i = 1; i <= labels && !of; i++) for (j = 1; j <= leaves; j++) if (label[i] != leaf[j] && above(label[i], leaf[j])) of = label[i]
	if (!of) of = label[1]
	for (term in name) {
		p = 0
		for (j = 1; j <= leaves; j++) if (above(term, leaf[j])) p += mass[of, j] / from[of]
		if (p >= 0.02 && (above(of, term) || above(term, of) && p < 0.9995)) { chosen[++rows] = term; probability[term] = p; rank[term] = p - 2 * depth(term) }
	}
	order(chosen, rows, rank)
	for (i = 1; i <= rows; i++) print "lineage", title(chosen[i]) (chosen[i] == of ? " (the label)" : ""), "", sprintf("%.4f", probability[chosen[i]])
	print "label", title(of), "", from[of]
}

# Losses of two tables that know no biology, on masked genes: what a network must beat.
#
#     awk -F '\t' -f reference.awk VOCABULARY TRAIN TRAIN NAME=hidden TEST [NAME=visible TEST ...]
#     VOCABULARY  as of scview --vocab      TRAIN  the tokens of a cell a line, after a line of names      TEST  as of scview -c input,position,target
#     TRAIN and TEST can have one more column, rank, of streams where genes of equal count share a position (rankenc --ties group).
#
# frequency  a gene's share among the tokens of TRAIN.
# medians    the same, given the medians of the nearest visible genes before and after the masked one. Genes of equal count are sorted by their
#            medians, so these two enclose the median of the masked gene: the rank value encoding tells it without any biology.
#            With ranks: given the rank, and of the medians of the visible genes of this rank the middle one.
#            The medians are cut into 4, 16 and 64 classes of equally many tokens. With n_c the tokens of TRAIN in context c (a pair of
#            classes), the estimate is (n_c(g) + A p(g)) / (n_c + A), where p is that of the coarser classes, and first the frequency. A tenth
#            of the cells of TRAIN is kept to choose A for each of the three, so a context that tells nothing costs little.
# Prints name, frequency, medians: mean of -log p (natural logarithm) over the masked genes of TEST.
BEGIN { OFS = "\t"; levels = split("4 16 64", classes, " "); tries = split("1 3 10 30 100 300 1000 3000 10000 100000 1e9", try, " ") }
FNR == 1 {
	file++
	if (file == 3)
		cut()
	if (file == 4)
		choose()
	if (file >= 5)
		result()
	shown = NAME
	next
}
file == 1 { special[$1] = $2 ~ /^</; median[$1] = $4; genes += !special[$1]; next }
{ tokens = split($1, token, " ") }
file >= 3 { ranked = split($(file == 3 ? 2 : 4), rank, " ") > 0 }
file == 2 {
	for (i = 1; i <= tokens; i++)
		if (!special[token[i]]) {
			count[token[i]]++
			seen++
		}
	next
}
file == 3 {
	delete hidden
	if (ranked)
		share_ranks()
	for (i = 1; i <= tokens; i++)
		if (!special[token[i]])
			learn(before(i), after(i), token[i], FNR % 10 == 0)
	next
}
{
	masked = split($2, position, " ")
	split($3, target, " ")
	delete hidden
	for (i = 1; i <= masked; i++)
		hidden[position[i] + 1] = 1
	if (ranked)
		share_ranks()
	for (i = 1; i <= masked; i++)
		score(before(position[i] + 1), after(position[i] + 1), target[i])
}
END { result() }

# What is seen of a masked gene: medians of the nearest visible genes, or the middle median of its rank and the rank
function before(i) {
	if (ranked)
		return middle(i)
	for (i--; i >= 1 && (i in hidden || special[token[i]]); i--)
		;
	return i >= 1 ? median[token[i]] : ""
}
function after(i) {
	if (ranked)
		return rank[i]
	for (i++; i <= tokens && (i in hidden || special[token[i]]); i++)
		;
	return i <= tokens ? median[token[i]] : ""
}
# The visible genes of each rank, which are in the order of their medians
function share_ranks(  i, r) {
	delete members
	delete member
	delete place
	for (i = 1; i <= tokens; i++)
		if (!(i in hidden) && !special[token[i]]) {
			r = rank[i]
			member[r, place[i] = ++members[r]] = median[token[i]]
		}
}
# The middle median of the rank of token i, without i itself
function middle(i,  r, others, m) {
	r = rank[i]
	others = members[r] - (i in place)
	m = int((others + 1) / 2)
	return others > 0 ? member[r, m + (i in place && m >= place[i])] : ""
}

# Classes of medians: the genes in the order of their medians, cut where their tokens fill a class
function cut(  g, k, order, sum, i, l) {
	for (g in count)
		order[++k] = g
	sort_by_median(order, k)
	for (i = 1; i <= k; i++) {
		for (l = 1; l <= levels; l++)
			if (!((l, median[order[i]]) in class))
				class[l, median[order[i]]] = 1 + int(classes[l] * sum / seen)
		sum += count[order[i]]
	}
}
# Shell sort: not every awk has asort
function sort_by_median(x, k,  gap, i, j, t) {
	for (gap = int(k / 2); gap; gap = int(gap / 2))
		for (i = gap + 1; i <= k; i++) {
			t = x[i]
			for (j = i; j > gap && median[x[j - gap]] + 0 > median[t] + 0; j -= gap)
				x[j] = x[j - gap]
			x[j] = t
		}
}
# At the ends of a cell the class is 0, as it is for a gene that is not in TRAIN.
function class_of(l, x) { return x != "" && (l, x) in class ? class[l, x] : 0 }
function rank_class(l, r) { return r + 0 < classes[l] + 0 ? r : classes[l] }
function context(l, b, a) { return l ":" class_of(l, b) ":" (ranked ? rank_class(l, a) : class_of(l, a)) }
# keep: the token is for the choice of A
function learn(b, a, g, keep,  l, c) {
	if (keep) {
		kept_before[++kept] = b
		kept_after[kept] = a
		kept_gene[kept] = g
		return
	}
	for (l = 1; l <= levels; l++) {
		c = context(l, b, a)
		of[c]++
		of[c, g]++
	}
}
# One count more for every gene, so that none is impossible
function share(g) { return (count[g] + 1) / (seen + genes) }
function choose(  l, i, c, p, q, t, loss, best) {
	for (i = 1; i <= kept; i++)
		p[i] = share(kept_gene[i])
	for (l = 1; l <= levels; l++) {
		for (t = 1; t <= tries; t++)
			loss[t] = 0
		for (i = 1; i <= kept; i++) {
			c = context(l, kept_before[i], kept_after[i])
			for (t = 1; t <= tries; t++)
				loss[t] -= log((of[c, kept_gene[i]] + try[t] * p[i]) / (of[c] + try[t]))
		}
		best = tries
		for (t = 1; t <= tries; t++)
			if (loss[t] < loss[best])
				best = t
		A[l] = try[best]
		for (i = 1; i <= kept; i++) {
			c = context(l, kept_before[i], kept_after[i])
			p[i] = (of[c, kept_gene[i]] + A[l] * p[i]) / (of[c] + A[l])
		}
	}
}
function score(b, a, g,  p, l, c) {
	p = share(g)
	frequency -= log(p)
	for (l = 1; l <= levels; l++) {
		c = context(l, b, a)
		p = (of[c, g] + A[l] * p) / (of[c] + A[l])
	}
	medians -= log(p)
	n++
}
function result() {
	if (n)
		print shown, frequency / n, medians / n
	n = frequency = medians = 0
}

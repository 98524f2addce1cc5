# A map of cells as SVG. Gaps between groups are shortened, as their width means nothing. Input: "X Y" <TAB> class, after a line of names. The most frequent class is number 1. numbers = 1: each class has its
# number at its cell that is nearest to the medians of its positions.
BEGIN { FS = "\t"; W = 460; H = 400; MARGIN = 10; BINS = 1000; GAP = 20 }
NR == 1 { next }
{
	split($1, p, " ")
	x[++n] = p[1] + 0
	y[n] = p[2] + 0
	of[n] = $2
	if (!($2 in cells)) class[++classes] = $2
	cells[$2]++
	if (n == 1 || x[n] < left) left = x[n]
	if (n == 1 || x[n] > right) right = x[n]
	if (n == 1 || y[n] < low) low = y[n]
	if (n == 1 || y[n] > high) high = y[n]
}
# place[axis, bin] of BINS bins from the least value: the bins before it, of which at most GAP stand for a run of empty ones. Returns the last.
function shorten(axis, used,  i, empty, at) {
	for (i = 0; i <= BINS; i++) {
		empty = (axis, i) in used ? 0 : empty + 1
		at += empty <= GAP
		place[axis, i] = at
	}
	return at
}
# the median of positions 0 ... size, from how many cells of class c have each
function median(c, h, size,  i, sum) {
	for (i = 0; i <= size; i++) {
		sum += h[c, i]
		if (2 * sum >= cells[c]) return i
	}
	return size
}
END {
	for (i = 2; i <= classes; i++) {
		c = class[i]
		for (j = i - 1; j && (cells[class[j]] < cells[c] || cells[class[j]] == cells[c] && class[j] > c); j--) class[j + 1] = class[j]
		class[j + 1] = c
	}
	for (i = 1; i <= classes; i++) if (length(class[i]) > longest) longest = length(class[i])
	if (longest > 60) longest = 60
	wide = 52 + 6.4 * (longest + 7)
	columns = int(W / wide)
	if (columns < 1) columns = 1
	rows = int((classes + columns - 1) / columns)
	for (i = 1; i <= n; i++) {
		bin_x[i] = right > left ? int((x[i] - left) / (right - left) * BINS) : 0
		bin_y[i] = high > low ? int((high - y[i]) / (high - low) * BINS) : 0
		used["x", bin_x[i]] = used["y", bin_y[i]] = 1
	}
	scale_x = (W - 2 * MARGIN) / shorten("x", used)
	scale_y = (H - 2 * MARGIN) / shorten("y", used)
	dot = n > 6000 ? 2 : n > 1500 ? 3 : n > 500 ? 4 : 5
	svg_start(W, H + 18 + 16 * rows, title, "Map of " n " cells in " classes (classes == 1 ? " class" : " classes") ": near cells have similar embeddings. The most frequent class is " class[1] ".")
	for (i = 1; i <= n; i++) {
		a = int(MARGIN + place["x", bin_x[i]] * scale_x + 0.5)
		b = int(MARGIN + place["y", bin_y[i]] * scale_y + 0.5)
		at_x[of[i], a]++
		at_y[of[i], b]++
		at_a[i] = a
		at_b[i] = b
		points[of[i]] = points[of[i]] sprintf("M%d %d@", a, b)
	}
	for (i = 1; i <= classes; i++) number[class[i]] = i
	for (i = 1; i <= classes; i++) {
		c = class[i]
		gsub(/@/, shape(i), points[c])
		print "<path fill=\"none\" stroke=\"" colour(i) "\" " style(i, dot) " stroke-opacity=\"0.75\" d=\"" points[c] "\"><title>" html(c) ", " cells[c] " cells</title></path>"
	}
	if (numbers) {
		print "<g text-anchor=\"middle\" font-size=\"11\" font-weight=\"bold\" fill=\"black\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\" stroke-linejoin=\"round\">"
		for (i = 1; i <= classes; i++) {
			middle_x[class[i]] = median(class[i], at_x, W)
			middle_y[class[i]] = median(class[i], at_y, H)
		}
		# the cell that is nearest to the medians of its class
		for (i = 1; i <= n; i++) {
			d = (at_a[i] - middle_x[of[i]]) ^ 2 + (at_b[i] - middle_y[of[i]]) ^ 2
			if (!(of[i] in near) || d < least[of[i]]) { near[of[i]] = i; least[of[i]] = d }
		}
		for (i = classes; i; i--)
			printf "<text x=\"%d\" y=\"%d\">%d</text>\n", at_a[near[class[i]]], at_b[near[class[i]]] + 4, i
		print "</g>"
	}
	print "<g font-size=\"11\" fill=\"black\">"
	for (i = 1; i <= classes; i++) {
		a = 8 + int((i - 1) / rows) * wide
		b = H + 18 + 16 * ((i - 1) % rows)
		name = class[i]
		if (length(name) > 60) name = substr(name, 1, 59) "…"
		printf "<path fill=\"none\" stroke=\"%s\" %s d=\"M%d %d%s\"/>", colour(i), style(i, 7), a + 4, b - 4, shape(i)
		printf "<text x=\"%d\" y=\"%d\">%s%s (%d)</text>\n", a + 14, b, numbers ? i " " : "", html(name), cells[class[i]]
	}
	print "</g></svg>"
}
# The first eight classes are discs, the next eight squares, the next eight crosses, and so on.
function shape(i) { return int((i - 1) / colours) % 3 == 2 ? "m-2 0h4m-2-2v4" : "h0" }
function style(i, dot,  s) {
	s = int((i - 1) / colours) % 3
	return s == 2 ? "stroke-width=\"1.3\"" : "stroke-width=\"" dot - (s == 1) * 0.5 "\" stroke-linecap=\"" (s ? "square" : "round") "\""
}

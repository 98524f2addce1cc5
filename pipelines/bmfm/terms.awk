# awk -f terms.awk ONTOLOGY.obo LABELS.tsv CELLS -> a table of barcode and three columns of terms. CELLS has barcode, label and, maybe, group.
#     term     the term of the label in LABELS (columns label, term); NA: it has none, or the ontology does not have it
#     moved    the same for every second group (without groups, every second cell); for the others the first term above it
#     dropped  the same for every second group, NA for the others
# A term at the top stays where it is.
BEGIN {
	FS = OFS = "\t"
	print "barcode", "term", "moved", "dropped"
}
FNR == 1 { file++ }
file == 1 && /^\[/ { inside = /^\[Term\]/; id = "" }
file == 1 && inside && /^id: / { id = substr($0, 5); known[id] = 1 }
file == 1 && /^is_a: / && id != "" && !(id in above) { above[id] = substr($0, 7); sub(/[ {].*/, "", above[id]) }
file == 2 && FNR > 1 { term[$1] = $2 }
file == 3 && FNR > 1 {
	t = $2 in term && term[$2] in known ? term[$2] : "NA"
	key = NF > 2 ? $3 : FNR
	if (!(key in half)) half[key] = groups++ % 2
	up = t in above && above[t] in known ? above[t] : t
	print $1, t, half[key] ? up : t, half[key] ? "NA" : t
}

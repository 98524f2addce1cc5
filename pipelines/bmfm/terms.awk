# awk -f terms.awk ONTOLOGY.obo LABELS.tsv CELLS -> a table of barcode, three columns of terms, and coarse. CELLS has barcode, label and, maybe, group.
#     term     the term of the label in LABELS (columns label, term); NA: it has none, or the ontology does not have it
#     moved    the same for every second group (without groups, every second cell); for the others the first term above it
#     dropped  the same for every second group, NA for the others
#     coarse  the column coarse of LABELS, coarse types that data sets share; the term if there is none
# A term at the top stays where it is.
BEGIN {
	FS = OFS = "\t"
	print "barcode", "term", "moved", "dropped", "coarse"
}
FNR == 1 { file++ }
file == 1 && /^\[/ { inside = /^\[Term\]/; id = "" }
file == 1 && inside && /^id: / { id = substr($0, 5); known[id] = 1 }
file == 1 && /^is_a: / && id != "" && !(id in above) { above[id] = substr($0, 7); sub(/[ {].*/, "", above[id]) }
file == 2 && FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "coarse") from = i }
file == 2 && FNR > 1 { term[$1] = $2; if (from) coarse[$1] = $from }
file == 3 && FNR > 1 {
	t = $2 in term && term[$2] in known ? term[$2] : "NA"
	key = NF > 2 ? $3 : FNR
	if (!(key in half)) half[key] = groups++ % 2
	up = t in above && above[t] in known ? above[t] : t
	print $1, t, half[key] ? up : t, half[key] ? "NA" : t, $2 in coarse && coarse[$2] != "" ? coarse[$2] : t
}

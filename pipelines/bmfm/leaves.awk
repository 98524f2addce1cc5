# awk -f leaves.awk ONTOLOGY.obo TERMS -> those of TERMS, one a line, that have none of the others below them
/^\[/ { inside = /^\[Term\]/; id = "" }
FNR == NR && inside && /^id: / { id = substr($0, 5) }
FNR == NR && /^is_a: / && id != "" { sub(/^is_a: /, ""); sub(/[ {].*/, ""); above[id] = above[id] " " $0 }
FNR != NR && !($0 in term) { term[$0]; order[++n] = $0 }
function rise(id,    i, k, up) {
	k = split(above[id], up, " ")
	for (i = 1; i <= k; i++) if (!(up[i] in inner)) { inner[up[i]]; rise(up[i]) }
}
END {
	for (i = 1; i <= n; i++) rise(order[i])
	for (i = 1; i <= n; i++) if (!(order[i] in inner)) print order[i]
}

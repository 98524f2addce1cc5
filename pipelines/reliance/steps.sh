# shellcheck shell=bash
# losses MODEL PROBES.masked OUT.tsv [OPTION-OF-SCTRAIN...]: losses of a network on probes of partner reliance: OUT as of sctrain eval, and the losses of rows in OUT
# with .cells for .tsv. Without any target, as with a graph without edges, both have their first line only.
losses() {
	if scview -q -c target "$2" | awk 'NR > 1 && NF { found = 1 } END { exit !found }'; then
		sctrain eval -v -M "$1" --cell-scores "${3%.tsv}.cells" -o "$3" "${@:4}" "$2"
	else
		printf 'cell\tepoch\tmasked\tloss\tcorrect\n' > "${3%.tsv}.cells"
		printf 'metric\tvalue\n' > "$3"
	fi
}

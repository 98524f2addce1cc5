#!/usr/bin/env bash
# The cells of DATA as tokens of MODEL. MEDIANS, TOKEN_TABLE, GENE_NAMES and MAXLEN may be empty. A released BMFM-RNA is converted to the folder model
# beside OUT first.
#     tokens.sh MODEL MEDIANS TOKEN_TABLE GENE_NAMES MAXLEN DATA OUT OPTION-OF-H5TOK...
. "$(dirname "$0")/../common.sh"
[ $# -ge 7 ] || usage
model=$1 medians=$2 tokens=$3 names=$4 most=$5 data=$6 out=$7
shift 7
config() { awk -v key="\"$1\"" -F '[:,]' '{ for (i = 1; i < NF; i++) if (index($i, key)) { gsub(/[^0-9]/, "", $(i + 1)); print $(i + 1); exit } }' "$model/config.json"; }
scstream=(scstream)
# in the tree of the sources; the system's Python may have the numpy that the first one lacks
if ! command -v scstream > /dev/null; then
	python3=python3
	python3 -c 'import numpy' 2> /dev/null || python3=/usr/bin/python3
	scstream=("$python3" -B "$here/../python/scstream")
fi
vocab=$(dirname "$out")/vocab.tsv
if compgen -G "$model/*.ckpt" > /dev/null || grep -qs '"model_type": *"scllama"' "$model/config.json"; then
	made=$(dirname "$out")/model
	[ -e "$made" ] || "${scstream[@]}" from-bmfm "$model" "$made"
	model=$made
fi
# pickled TOKENS MEDIANS: their vocabulary, with symbols if the table of names stands beside them
pickled() {
	local symbols=${1/token_dictionary/gene_name_id_dict}
	if [ "$symbols" = "$1" ] || [ ! -e "$symbols" ]; then symbols=; fi
	"${scstream[@]}" from-geneformer "$1" "$2" ${symbols:+--names "$symbols"} -o "$vocab"
}
is_pickle() { [ "$(head -c 1 "$1" | od -An -tx1)" = " 80" ]; }

if [ -n "$medians" ]; then
	[ -n "$tokens" ] || ! is_pickle "$medians" || { echo "MEDIANS=$medians: a dictionary of Geneformer, which also needs TOKEN_TABLE=" >&2; exit 1; }
	if is_pickle "$medians"; then
		pickled "$tokens" "$medians"
		medians=$vocab tokens=
	fi
elif [ -e "$model/vocab.tsv" ]; then
	medians=$model/vocab.tsv tokens=
else
	# Geneformer's repository: the dictionaries that have as many tokens as the model
	size=$(config vocab_size)
	while IFS= read -r t; do
		pickled "$t" "${t/token_dictionary/gene_median_dictionary}"
		[ $(($(wc -l < "$vocab") - 1)) != "$size" ] || { medians=$vocab; break; }
	done < <(find "$model/geneformer" "$model/../geneformer" -name 'token_dictionary*.pkl' 2> /dev/null | sort)
	[ -n "$medians" ] || {
		echo "MODEL=$model: no vocab.tsv in it, and no dictionaries of ${size:-its} tokens in the folder geneformer next to it:" \
			"name its vocabulary, or Geneformer's two tables or pickles, by MEDIANS= and TOKEN_TABLE=" >&2
		exit 1
	}
fi
[ -n "$most" ] || most=$(config max_position_embeddings)
cls=$(config cls_tokens)
[ -z "$cls" ] || most= # its values are shares of whole cells: scembed cuts them
h5tok -v --rank "$medians" ${tokens:+-t "$tokens"} ${names:+--map "$names"} ${most:+--max-len "$most"} ${cls:+--cls "$cls"} -o "$out" "$@" "$data"

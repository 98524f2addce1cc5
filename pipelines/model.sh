#!/usr/bin/env bash
# Which model is it, and which vocabulary does it read? python/corrmask/model.py says so, for all experiments. RUN/model.tsv gets what was found (name and
# value); RUN/model is the folder for the tools, if MODEL has no vocab.tsv. MODEL, or VOCAB (and TOKENS: man scstream), may be empty. NAMES are
# what messages call MODEL, VOCAB and TOKENS, such as MODEL=,MEDIANS=,TOKEN_TABLE=. Without RUN nothing is made: what is wrong with the model is printed on standard output, and else nothing.
#     model.sh NAMES MODEL VOCAB TOKENS [RUN]
. "$(dirname "$0")/common.sh"
[ $# = 4 ] || [ $# = 5 ] || usage
find_scstream
arguments=(model --names "$1" ${3:+--vocab "$3"} ${4:+--tokens "$4"})
if [ $# = 4 ]; then
	said=$("${scstream[@]}" "${arguments[@]}" "$2" '' 2>&1 > /dev/null) || tail -n 1 <<< "${said#scstream: }"
	exit 0
fi
mkdir -p "$5"
said=$("${scstream[@]}" "${arguments[@]}" --found "$5/model.tsv" "$2" "$5/model" 2>&1 > /dev/null) || { echo "$said" >&2; exit 1; }
echo "  ${said//$'\n'/$'\n'  }"

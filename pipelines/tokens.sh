#!/usr/bin/env bash
# Cells as tokens of the model that model.sh found: of a counts stream (FILE.counts) by rankenc, of other files by h5tok. MAXLEN: most tokens of a cell;
# empty: as many as the model has positions for.
#     tokens.sh MODEL.tsv MAXLEN FILE OUT OPTION-OF-RANKENC...
. "$(dirname "$0")/common.sh"
[ $# -ge 4 ] || usage
found=$1 most=$2 file=$3 out=$4
shift 4
[ -n "$most" ] || most=$(reported "$found" max_len)
cls=$(reported "$found" cls)
[ -z "$cls" ] || most= # its values are shares of whole cells: they are cut by what reads them
options=(${most:+--max-len "$most"} ${cls:+--cls "$cls"} -o "$out" "$@" "$file")
case $file in
*.counts) rankenc -v -m "$(reported "$found" vocab)" "${options[@]}" ;;
*) h5tok -v --rank "$(reported "$found" vocab)" "${options[@]}" ;;
esac

#!/usr/bin/env bash
# Score the cell types of the test cells, with intervals by a bootstrap of their groups, or of single cells if there are fewer than three groups.
# The file GROUP holds what group.sh prints: an obs column, or nothing. The scores of the draws are in OUT with .replicates for .tsv: the same
# draws for all models of the same cells, so differences can be computed draw by draw.
#     bootstrap.sh cells GROUP LABEL TRAIN.emb TEST.emb OUT.tsv [OPTION-OF-CTAPROBE...]      a linear probe of embeddings
#     bootstrap.sh score GROUP LABEL TRAIN TEST.pred OUT.tsv [OPTION-OF-CTAPROBE...]         predictions of a fine-tuned network
. "$(dirname "$0")/common.sh"
[ $# -ge 6 ] || usage
what=$1 group=$(cat "$2") label=$3 train=$4 test=$5 out=$6
shift 6
[ -z "$group" ] || [ "$(scview -q --columns "$group" "$test" | tail -n +2 | sort -u | wc -l)" -ge 3 ] || group=
common=(-v --roc "${out%.tsv}.roc.tsv" --label "$label" ${group:+--group "$group"} --bootstrap 1000 --replicates "${out%.tsv}.replicates" -o "$out")
case $what in
cells) ctaprobe cells "${common[@]}" --train "$train" --test "$test" "$@" ;;
score) ctaprobe score "${common[@]}" --train "$train" "$@" "$test" ;;
*) usage ;;
esac

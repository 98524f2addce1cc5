#!/usr/bin/env bash
# The inputs of make r2mae-cells: cells with their highly variable genes, for training, for validation with its masks, and for the probe.
#     r2mae/cells.sh PREPARED FOLDER DATA LABEL MORE-LABELS TARGET GENES FLAVOR PER-GROUP "RATE..." BATCH SEED
# PREPARED has cells.counts and group. FOLDER gets genes.counts, pretrain.counts, calibrate.counts, valid.counts, valid-RATE.mcounts, learn.counts, test.counts, label,
# target, group, folds and, last, about. MORE-LABELS: a list with commas; label has the names of all, a line each.
. "$(dirname "$0")/../common.sh"
[ $# = 12 ] || usage
prepared=$1 dir=$2 data=$3 label=$4 more=$5 target=$6 genes=$7 flavor=$8 per_group=$9 rates=${10} batch=${11} seed=${12}
[ -z "$more" ] || label+=$'\n'${more//,/$'\n'}
column=$(cat "$prepared/group")
# not after hours of training
scview -q --header-tsv "$prepared/cells.counts" | sed -n 's/^column\t//p' > "$dir/columns"
wrong=$(printf '%s\n' "$label" ${target:+"$target"} | grep -vxFf "$dir/columns" || true)
[ -z "$wrong" ] || { echo "no column ${wrong//$'\n'/, } in obs; it has: $(paste -sd , "$dir/columns")" >&2; exit 1; }
rm "$dir/columns"
by=()
[ -z "$column" ] || by=(--group "$column")
scsample -v -u --hvg "$genes" --flavor "$flavor" "$prepared/cells.counts" | scsample -v --min-genes 20 -o "$dir/genes.counts" -
left=$(rows "$dir/genes.counts")
[ "$left" -ge 40 ] || { echo "HVG=$genes: cells with 20 of these genes: $left, expected 40 or more; choose more genes" >&2; exit 1; }

tenth() { scsample -v --test-fraction 0.1 --part "$1" --seed "$seed" -o "$dir/$2" "$dir/genes.counts"; }
tenth train pretrain.counts
tenth test valid.counts
scsample -v -n 2000 --seed "$seed" -o "$dir/calibrate.counts" "$dir/pretrain.counts"
keep=()
[ -z "$column" ] || keep=(--keep "$column")
for rate in $rates; do
	maskgen -v --strategy columns --rate "$rate" "${keep[@]}" --batch "$batch" --seed "$seed" -o "$dir/valid-$rate.mcounts" "$dir/valid.counts"
done

capped=()
[ -z "$column" ] || capped=(--cap "$column:$per_group")
half() { scsample -v --test-fraction 0.5 "${by[@]}" --part "$1" "${capped[@]}" --seed "$seed" -o "$dir/$2" "$dir/genes.counts"; }
half train learn.counts
half test test.counts

folds=5
[ -z "$column" ] ||
	folds=$(scview -s "$dir/learn.counts" | awk -F '\t' -v c="$column" '$1 == c && $2 ~ /^=/ && $3 > 0 { n++ } END { print n < 5 ? n : 5 }')
echo "$label" > "$dir/label"
echo "$target" > "$dir/target"
echo "$column" > "$dir/group"
echo "$folds" > "$dir/folds"
{
	echo "${data:-simulated cells (scsim)}: $(rows "$dir/genes.counts") cells with $(scview --vocab "$dir/genes.counts" | tail -n +2 | wc -l) genes:" \
		"$(rows "$dir/pretrain.counts") to train, $(rows "$dir/valid.counts") for validation"
	echo "probe: $(rows "$dir/learn.counts") cells to learn, $(rows "$dir/test.counts") to test, split by ${column:-cell}; penalty by $folds folds"
} > "$dir/about.new"
whole "$dir/about"

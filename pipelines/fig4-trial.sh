#!/usr/bin/env bash
# fig4-trial.sh EXP-gamma-trial-epochs: one trial of appendix B.2 with random masks and with the paper's module masks, on the same
# cells, batches and initial weights. Prints exp, gamma, trial, epochs, then for random and for CorrMask: test accuracy, and the
# training loss over the last epoch.
. "$(dirname "$0")/common.sh"
config=$(dirname "$0")/fig4.json
IFS=- read -r exp gamma trial epochs <<< "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
# 1,500 samples, 800 of them for training and 500 for the test
scsim --model b2 --exp "$exp" --gamma "$gamma" --seed "$trial" -o "$work/all.tok"
scsample --where 'cell<800' -o "$work/train.tok" "$work/all.tok"
scsample --where 'cell>=1000' -o "$work/test.tok" "$work/all.tok"
printf '%s\t%s\t%s\t%s' "$exp" "$gamma" "$trial" "$epochs"
module_masks=(--strategy corrmask --groups token_module --partners-max 8 --seed-share 0.5 --lambda 1)
for how in random corrmask; do
	masks=(--strategy random)
	[ $how = random ] || masks=("${module_masks[@]}")
	# plain Adam at a constant rate
	maskgen "${masks[@]}" --rate 0.25 --batch 64 --epochs "$epochs" --seed "$trial" -u "$work/train.tok" |
		sctrain mlm -q --force --device cpu --config "$config" --lr 0.001 --warmup 0 --schedule constant --weight-decay 0 --clip 0 \
			--seed "$trial" -o "$work/model"
	for part in train test; do
		scembed -q --device cpu -M "$work/model" --layer 0 --pool cls -o "$work/$part.emb" "$work/$part.tok"
	done
	ctaprobe cells -q --label module --max-iter 2000 --train "$work/train.emb" --test "$work/test.emb" -o "$work/probe"
	awk -F '\t' -v epochs="$epochs" '
		FNR == NR { if ($1 == "accuracy") accuracy = $2; next }
		FNR > 1 { loss[++n] = $2 }
		END {
			for (i = n - n / epochs + 1; i <= n; i++)
				sum += loss[i]
			printf "\t%.4f\t%.4f", accuracy, sum / (n / epochs)
		}' "$work/probe" "$work/model/train.tsv"
done
echo

#!/usr/bin/env bash
# fig4/trial.sh GENES-EXP-gamma-trial-epochs: one trial of appendix B.2 with random masks and with the paper's module masks, on the same
# cells, batches and initial weights. GENES is --random-genes of scsim(1). Prints these five, then the test accuracy and the training loss
# of the last epoch for random and for CorrMask. Last come the accuracy of the network with its initial weights, and that of the nearest class
# mean of the ranks, without a network.
. "$(dirname "$0")/../common.sh"
config=$here/fig4/fig4.json
IFS=- read -r genes exp gamma trial epochs <<< "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
# 1,500 samples, 800 of them for training and 500 for the test
scsim --kind b2 --random-genes "$genes" --exp "$exp" --gamma "$gamma" --seed "$trial" -o "$work/all.tok"
scsample --where 'cell<800' -o "$work/train.tok" "$work/all.tok"
scsample --where 'cell>=1000' -o "$work/test.tok" "$work/all.tok"
printf '%s\t%s\t%s\t%s\t%s' "$genes" "$exp" "$gamma" "$trial" "$epochs"

# train RATE MASKGEN-OPTION...: plain Adam at a constant rate
train() {
	local rate=$1
	shift
	maskgen "$@" --rate 0.25 --batch 64 --seed "$trial" -u "$work/train.tok" |
		sctrain mlm -q --force --device cpu --config "$config" --lr "$rate" --warmup 0 --schedule constant --weight-decay 0 --clip 0 \
			--seed "$trial" -o "$work/model"
}
# accuracy: of logistic regression on the frozen embeddings of <cls>
accuracy() {
	for part in train test; do
		scembed -q --device cpu -M "$work/model" --emb-layer 0 --pool cls -o "$work/$part.emb" "$work/$part.tok"
	done
	ctaprobe cells -q --no-standardize --label module --max-iter 2000 --train "$work/train.emb" --test "$work/test.emb" -o "$work/probe"
	awk -F '\t' '$1 == "accuracy" { printf "\t%.4f", $2 }' "$work/probe"
}

for how in random corrmask; do
	masks=(--strategy random)
	[ $how = random ] || masks=(--strategy corrmask --module token_module --partners-max 8 --seed-share 0.5 --lambda 1)
	train 0.001 "${masks[@]}" --epochs "$epochs"
	accuracy
	awk -F '\t' -v epochs="$epochs" '
		FNR > 1 { loss[++n] = $2 }
		END {
			for (i = n - n / epochs + 1; i <= n; i++)
				sum += loss[i]
			printf "\t%.4f", sum / (n / epochs)
		}' "$work/model/train.tsv"
done
train 0 --strategy random --epochs 1
accuracy
for part in train test; do scview -q -c module,token "$work/$part.tok" > "$work/$part.tsv"; done
printf '\t%s\n' "$(awk -F '\t' -f "$here/fig4/nearest-mean.awk" "$work/train.tsv" "$work/test.tsv")"

# shellcheck shell=bash disable=SC2154
# runs SCALE EXP GAMMAS TRIALS GENES: names GENES-EXP-gamma-trial-epochs of all trials; trial 1 comes first, so that an interrupted run has all conditions. small has
# the paper's five trials, and most of the condition that is nearest to the paper's claim: gamma 1, Exp(0.1) of mean 10.
runs() {
	readings='scale rate' gammas='0 0.25 0.5 0.75 1' epochs=50
	case $1 in
	tiny) readings=scale gammas='0 1' trials=2 most=2 epochs=5 ;;
	small) trials=5 most=20 ;;
	paper) trials=20 most=20 ;;
	*) echo "fig4: SCALE=$1: expected tiny, small or paper" >&2; exit 1 ;;
	esac
	for t in $(seq 1 "${4:-$most}"); do
		for x in ${2:-$readings}; do
			for g in ${3:-$gammas}; do
				[ "$t" -gt "${4:-$trials}" ] && [ "$x-$g" != rate-1 ] || echo "${5:-class}-$x-$g-$t-$epochs"
			done
		done
	done
}

# trial GENES-EXP-gamma-trial-epochs: one trial of appendix B.2 with random masks and with the paper's module masks, on the same cells, batches and initial
# weights. GENES is --random-genes of scsim(1). Prints these five, then the test accuracy and the training loss of the last epoch for random and for CorrMask.
# Last come the accuracy of the network with its initial weights, and that of the nearest class mean of the ranks, without a network.
trial() {
	IFS=- read -r genes exp gamma trial epochs <<< "$1"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' INT TERM HUP
	# 1,500 samples, 800 of them for training and 500 for the test
	scsim --kind b2 --random-genes "$genes" --exp "$exp" --gamma "$gamma" --seed "$trial" -o "$work/all.tok"
	scsample --where 'cell<800' -o "$work/train.tok" "$work/all.tok"
	scsample --where 'cell>=1000' -o "$work/test.tok" "$work/all.tok"
	printf '%s\t%s\t%s\t%s\t%s' "$genes" "$exp" "$gamma" "$trial" "$epochs"
	for how in random corrmask; do
		masks=(--strategy random)
		[ $how = random ] || masks=(--strategy corrmask --module token_module --partners-max 8 --seed-share 0.5 --lambda 1)
		train_trial 0.001 "${masks[@]}" --epochs "$epochs"
		accuracy
		awk -F '\t' -v epochs="$epochs" 'FNR > 1 { loss[++n] = $2 }
			END { for (i = n - n / epochs + 1; i <= n; i++) sum += loss[i]; printf "\t%.4f", sum / (n / epochs) }' "$work/model/train.tsv"
	done
	train_trial 0 --strategy random --epochs 1
	accuracy
	for part in train test; do scview -q -c module,token "$work/$part.tok" > "$work/$part.tsv"; done
	nearest_mean "$work/train.tsv" "$work/test.tsv"
}
# train_trial RATE MASKGEN-OPTION...: plain Adam at a constant rate
train_trial() {
	maskgen "${@:2}" --rate 0.25 --batch 64 --seed "$trial" -u "$work/train.tok" |
		sctrain mlm -q --force --device cpu --config "$here/fig4/fig4.json" --lr "$1" --warmup 0 --schedule constant --weight-decay 0 --clip 0 --seed "$trial" \
			-o "$work/model"
}
# accuracy: of logistic regression on the frozen embeddings of <cls>
accuracy() {
	for part in train test; do scembed -q --device cpu -M "$work/model" --emb-layer 0 --pool cls -o "$work/$part.emb" "$work/$part.tok"; done
	ctaprobe cells -q --no-standardize --label module --max-iter 2000 --train "$work/train.emb" --test "$work/test.emb" -o "$work/probe"
	awk -F '\t' '$1 == "accuracy" { printf "\t%.4f", $2 }' "$work/probe"
}
# nearest_mean TRAIN TEST: tables of class and numbers: the share of the cells of TEST whose class has the nearest mean
nearest_mean() {
	awk -F '\t' '
		FNR == 1 { part++; next }
		{ n = split($2, x, " ") }
		part == 1 { cells[$1]++; for (i = 1; i <= n; i++) sum[$1, i] += x[i]; next }
		{
			best = ""
			for (class in cells) {
				far = 0
				for (i = 1; i <= n; i++) far += (x[i] - sum[class, i] / cells[class]) ^ 2
				if (best == "" || far < least || far == least && class < best) { best = class; least = far }
			}
			right += best == $1
			tested++
		}
		END { printf "\t%.4f\n", right / tested }' "$@"
}

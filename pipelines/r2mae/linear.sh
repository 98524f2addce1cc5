#!/usr/bin/env bash
# One curve of figure 1, or one row of table 5 or 9: risk.py with the options that its name stands for.
#     r2mae/linear.sh NAME.theory|NAME.simulate SCALE [nothing|masks]
#     r2mae/linear.sh curves|rows
# SCALE tiny has a fifth of the rows and features and few simulations.
. "$(dirname "$0")/../common.sh"
[ $# -ge 1 ] || usage

quantiles='0.5 0.75 0.9 1' samples='1 2 3 4 5 6' seeds='2 12 22 32 42'
case $1 in
curves)
	echo over under spike-{0,1,2,5} align-{0,0.25,0.5,0.75} linear
	for m in uniform beta latent; do for q in $quantiles; do echo $m-"$q"; done; done
	for s in $samples; do echo sample-"$s"; done
	exit ;;
rows)
	for m in beta latent; do for s in $seeds; do echo $m-"$s"; done; done
	exit ;;
esac
[ $# -ge 2 ] || usage
name=${1%.*} command=${1##*.} scale=$2 same=${3:-nothing}
part=${name##*-} runs=100
find_python numpy

# size ROWS FEATURES [SPIKES]: the last is how many eigenvalues are not 1
size() {
	local by=1
	case $scale in
	tiny)	by=5 runs=5 ;;
	small|paper) ;;
	*)	echo "r2mae: SCALE=$scale: expected tiny, small or paper" >&2; exit 1 ;;
	esac
	rows=$(($1 / by)) features=$(($2 / by)) top=$((${3:-0} / by))
	options="--rows $rows"
	[ $# = 3 ] || options+=" --features $features"
}

# spectrum LARGE: top eigenvalues are LARGE, the others 1
spectrum() {
	options+=" --model eigen --eigenvalues $1:$top,1:$((features - top)) --top $top --same rows --normalise"
}

rates=0.05:0.9:0.05 fine=0.01:0.97:0.01 form=
case $name in
over)	size 300 600; options+=' --noise 1' form=closed ;;
under)	size 600 300; options+=' --noise 1' form=closed ;;
spike-*)	size 200 1000; options+=" --model spiked --spike $part" form=closed ;;
align-*)	size 200 1000; options+=" --model spiked --spike 5 --alignment $part" form=closed ;;
uniform-*|beta-*|latent-*)
	size 400 600; options+=" --model ${name%-*} --quantile $part --normalise" fine=0.02:0.96:0.02 ;;
linear)	size 50 1000 20; spectrum 21; options+=" --seed 1" fine=0.05:0.9:0.05 runs=40 ;;
sample-*)	size 20 300 5; spectrum 101; options+=" --noise 0.1 --seed $part" fine=0.05:0.9:0.05 runs=12 ;;
table5-*|table9-*)
	model=${name#table?-} model=${model%-*} range=0.5:0.6 quantile=1 rates=0.3:0.7:0.01 fine=0.3:0.7:0.05
	case $name in table9-beta*) range=0.4:0.5 quantile=0.95 ;; table9-latent*) range=0.4:0.5 quantile=0.9 ;; esac
	size 100 500
	options+=" --model $model --quantile $quantile --ranges $range --seed $part --normalise"
	[ "$runs" -lt 50 ] || runs=50
	[ "$command" = theory ] || options+=" --retention random --same $same" ;;
*)	echo "r2mae: no curve or row '$name'" >&2; exit 1 ;;
esac

# shellcheck disable=SC2086 # options are words
case $command in
theory)	"$python" "$here/r2mae/risk.py" theory $options ${form:+--form $form} --rates $fine ;;
simulate)	"$python" "$here/r2mae/risk.py" simulate $options --rates $rates --runs $runs ;;
*)	usage ;;
esac

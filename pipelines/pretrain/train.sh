#!/usr/bin/env bash
# The training of make pretrain: maskgen | sctrain, in one process or in several. It goes on from its last checkpoint.
#     train.sh PRETRAIN first|whole --strategy S --graph FILE --rate R --mask-args ARGS --batch N --patience N --pt-args ARGS --precision P --device D --seed N --threads N
# first: some steps on few.tok, at a learning rate of 0, to PRETRAIN/untrained. $RANKS processes; $CLUSTER is slurm or empty.
. "$(dirname "$0")/../common.sh"
[ $# -gt 2 ] || usage
all=("$@")
run=$1 what=$2
shift 2
graph='' rate='' mask_args='' pt_args='' precision='' device='' patience=''
options 'strategy batch seed threads' 'patience graph rate mask-args pt-args precision device' "$@"
ranks=${RANKS:-1}
plan() { reported "$run/plan.tsv" "$1"; }
if [ "$ranks" -gt 1 ] && [ -z "${CORRMASK_RANK:-}" ]; then
	launch=(mpirun -n "$ranks" --bind-to none --mca odls_base_sigkill_timeout 20)
	# shellcheck disable=SC2154 # options sets it
	[ "${CLUSTER:-}" != slurm ] || launch=(srun --quiet --mpi=pmix --kill-on-bad-exit=1 --job-name=pretrain --ntasks="$ranks" --cpus-per-task="$threads" --mem-per-cpu=$((${CLUSTER_MEMORY%G} * 1024 / threads)))
	CORRMASK_RANK=1 exec "${launch[@]}" "$0" "${all[@]}"
fi
masks=(--strategy "$strategy" ${graph:+-g "$graph"} --batch $((batch / ranks)) --seed "$seed")
case $rate in '') ;; *:*) masks+=(--rate-uniform "$rate") ;; *) masks+=(--rate "$rate") ;; esac
read -ra more <<< "$mask_args"
masks+=("${more[@]}")
learn=(--seed "$seed" -@ "$threads")
[ -z "$precision" ] || learn+=(--precision "$precision")
[ -z "$device" ] || learn+=(--device "$device")
init=$(plan init)
if [ -n "$init" ]; then learn+=(--init "$init"); else learn+=(--config "$(plan config)"); fi
read -ra more <<< "$pt_args"
learn+=("${more[@]}")
if [ "$ranks" -gt 1 ]; then
	trap '' TERM
	masks+=(--shard auto --balance-lengths)
	learn+=(--mpi)
fi
if [ "$what" = first ]; then
	maskgen -q "${masks[@]}" -u "${FEW:-$run/few.tok}" | sctrain mlm -v "${learn[@]}" --lr 0 --force -o "$run/untrained"
else
	steps=$(((($(plan train) + batch - 1) / batch) * $(plan epochs)))
	[ "$patience" = 0 ] || learn+=(--patience "$patience")
	maskgen --progress never "${masks[@]}" --epochs "$(plan epochs)" --resume "$run/model" -u "@$run/train.txt" |
		sctrain mlm -v "${learn[@]}" --lr "$(plan lr)" --eval "$run/valid.masked" --eval-every $((steps < 200 ? 20 : steps / 10)) --save-every "$(cat "$run/save_every")" --resume -o "$run/model"
fi

#!/bin/bash
# Train on several machines with Slurm: sbatch slurm-train.sh
# It goes on by itself after a time limit, a preemption and the loss of a machine. Give --max time, nodes and account of your site.
#SBATCH --job-name=corrmask
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=16G
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=corrmask-%j.log

cells=${CELLS:-cells.tok}   # a stream of tokens, or @corpus.txt of make corpus
model=${MODEL:-my.model}
# GRAPH: a graph of depgraph, for CorrMask's masks; none: random masks. EVAL: masks of held-out cells, on which the loss is measured after each epoch
export cells model masks=${GRAPH:+-g $GRAPH --strategy corrmask} learn=${EVAL:+--eval $EVAL --patience 3}${INIT:+ --init $INIT}

# One rank for each task; the loader has one core, the training the others. The shell and the loader ignore SIGTERM: sctrain ends them.
# The same kernels on all machines, so that a training that goes on elsewhere gives the same bytes (sctrain(1), CORRMASK_CPU).
export CORRMASK_CPU=portable
said=$(mktemp)
trap 'rm -f "$said"' EXIT
curve() { stat -c '%y %s' "$model/train.tsv" 2> /dev/null; }
before=$(curve)
# shellcheck disable=SC2016 # for the ranks
srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" bash -c 'trap "" TERM
	set -o pipefail
	# shellcheck disable=SC2086 # words
	maskgen --shard auto --balance-lengths -b "${BATCH:-12}" --epochs "${EPOCHS:-3}" $masks --resume "$model" -u "$cells" |
	sctrain mlm --mpi --resume --same-kernels -@ $((SLURM_CPUS_PER_TASK > 1 ? SLURM_CPUS_PER_TASK - 1 : 1)) --config "${CONFIG:-corrmask-paper}" \
		--lr "${LR:-0.001}" $learn --save-every "${SAVE_EVERY:-500}" -o "$model" -' 2>&1 | tee "$said"
status=${PIPESTATUS[0]}
# errors: what the tools gave as a reason, if they ran
errors() { grep -E '^(maskgen|sctrain mlm(\[[0-9]+\])?): ' "$said" | grep -v -e ': note: ' -e ': warning: ' -e ': rank [0-9]* has stopped'; }
# A step that did not start ends with 0, 1, 137 or others: only a model says that the training is finished, and only a step of the training, or the
# error of a tool, that it ran. Try again, but not for ever.
restarts=${SLURM_RESTART_COUNT:-0}
done=0
[ ! -e "$model/model.safetensors" ] || [ "$status" != 0 ] || done=1
if [ "$status" != 143 ] && [ $done = 0 ] && [ "$(curve)" = "$before" ] && [ -z "$(errors)" ]; then
	echo "slurm-train.sh: the training did not start (status $status), after $restarts restarts" >&2
	status=1
	[ "$restarts" -ge "${MAX_RESTARTS:-20}" ] || status=143
fi
# 143: stopped by SIGTERM, with a checkpoint. Slurm takes a job that ends in its grace time for ended, so it requeues itself.
if [ "$status" = 143 ]; then
	scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"

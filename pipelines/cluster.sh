#!/usr/bin/env bash
# Run COMMAND, which may begin with VARIABLE=VALUE, as a job, and wait for it: its output and its exit status are those of the job.
#     cluster.sh slurm "" THREADS MEMORY COMMAND...
#     cluster.sh "" "bsub -K -n 8" THREADS MEMORY COMMAND...
. "$(dirname "$0")/common.sh"
[ $# -ge 5 ] || usage
cluster=$1 before=$2 threads=$3 memory=$4
shift 4
case $cluster in
slurm)
	[ -z "$before" ] || { echo "CLUSTER and CLUSTER_RUN exclude each other" >&2; exit 1; }
	command -v srun > /dev/null || { echo "CLUSTER=slurm: no srun on this machine: run make where jobs are submitted" >&2; exit 1; }
	# in a job that runs make, srun would start a step inside it; what chooses partition and account stays
	if [ -n "${SLURM_JOB_ID:-}" ]; then
		for name in "${!SLURM_@}"; do
			case $name in SLURM_CONF | SLURM_ACCOUNT | SLURM_PARTITION | SLURM_QOS | SLURM_CLUSTERS) ;; *) unset "$name" ;; esac
		done
	fi
	name=corrmask
	for word; do [[ $word != */*.sh ]] || { name=$(basename "$word" .sh); break; }; done
	exec srun --quiet --job-name="$name" --nodes=1 --ntasks=1 --cpus-per-task="$threads" --mem="$memory" --input=none env "$@"
	;;
'')
	read -ra run <<< "$before"
	exec "${run[@]}" env "$@"
	;;
*)
	echo "CLUSTER=$cluster: expected slurm; for other systems CLUSTER_RUN='...' has the words before a command" >&2
	exit 1
	;;
esac

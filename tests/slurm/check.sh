#!/usr/bin/env bash
# make check-slurm: the examples and pipelines on a Slurm of three virtual machines (cluster.sh). Every model must have the bytes of the undisturbed one.
#     check.sh BIN [CASE...]
set -euo pipefail
here=$(dirname "$(realpath "$0")")
top=$here/../..
bin=$(realpath "$1")
shift
cases=("${@:-}")
[ -n "${cases[0]}" ] || cases=(two_machines shard array table6 preempted network_cut machine_lost)

skip() { echo "check-slurm: skipped: $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root"
for tool in slurmctld slurmd srun munged ip nsenter unshare; do
	command -v $tool > /dev/null || skip "no $tool: apt-get install slurm-wlm munge iproute2"
done
case $("$bin/sctrain" --version) in *"without MPI"*) skip "sctrain is built without MPI" ;; esac
ip netns add cmtest 2> /dev/null || skip "network namespaces are not allowed here"
ip netns del cmtest

folder=$(mktemp -d /tmp/corrmask-slurm.XXXXXX)
nodes=3
cluster() { "$here/cluster.sh" "$1" "$folder" "${@:2}"; }
trap 'cluster stop $nodes; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
export PATH=$bin:$PATH
cd "$folder"
scsim -q --cells 2000 --genes 150 --depth 1500 --seed 1 -o cells.counts
rankenc -q --fit cells.counts -o vocab.tsv
rankenc -q -m vocab.tsv cells.counts -o cells.tok
cluster start $nodes || skip "Slurm does not start here: $(tail -qn 1 "$folder"/*.log | tail -n 1)"

# at COMMAND...: where jobs are submitted
at() { cluster on ctl "$@"; }
# submit MODEL SBATCH-OPTION...: the training of the example; prints the number of the job
submit() {
	MODEL=$folder/$1 CELLS=$folder/cells.tok CONFIG=tiny EPOCHS=6 SAVE_EVERY=40 CORRMASK_STALL_SECONDS=4 OMPI_MCA_btl_tcp_if_include=eth0 \
		at sbatch --parsable -o "$folder/$1.log" --nodes=2 --cpus-per-task=1 --mem=900 --time=9 --signal=TERM@30 "${@:2}" "$top/examples/slurm-train.sh"
}
until_step() { for ((i = 0; i < 1200; i++)); do [ "$(wc -l 2> /dev/null < "$folder/$1/train.tsv" || echo 0)" -le "$2" ] || return 0; sleep 0.1; done; fail "$1: no step $2"; }
state() { at scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
# until_state JOB STATE: another state in which a job ends is a failure at once
until_state() {
	local now=
	for ((i = 0; i < 1500; i++)); do
		now=$(state "$1")
		case $now in "$2") return 0 ;; BOOT_FAIL | CANCELLED | COMPLETED | DEADLINE | FAILED | NODE_FAIL | OUT_OF_MEMORY | TIMEOUT) break ;; esac
		sleep 0.2
	done
	fail "job $1 is $now, expected $2"
}
fail() { tail -n 12 "$folder"/*.log >&2; echo "check-slurm: $*" >&2; exit 1; }
same() {
	[ -e "$folder/$1/model.safetensors" ] || fail "$1: no model"
	cmp "$folder/whole/model.safetensors" "$folder/$1/model.safetensors" || fail "$1: other weights than the undisturbed training"
}
# A requeued job waits two minutes by itself
start_now() { until_state "$1" PENDING; at scontrol update JobId="$1" StartTime=now; }

two_machines() {
	job=$(submit whole)
	until_state "$job" COMPLETED
	[ -e whole/model.safetensors ] || fail "no model"
}

# in a batch script without srun nothing is parallel
shard() {
	printf '#!/bin/sh\nmaskgen --shard auto %s -o %s/part.masked\n' "$folder/cells.tok" "$folder" > shard.sh
	at sbatch --wait -o "$folder/shard.log" --ntasks=3 shard.sh > /dev/null && fail "shard: the job did not fail"
	grep -q "^maskgen: --shard auto: .*SLURM_NTASKS" shard.log || fail "shard: $(tail -n 1 shard.log)"
	at srun -n 3 --mem=100 sh -c "maskgen -q --shard auto '$folder/cells.tok' -o '$folder'/part\$SLURM_PROCID"
	for r in 0 1 2; do cmp part$r <(maskgen -q --shard $r/3 cells.tok) || fail "shard $r"; done
}

settings=(SCALE=tiny SEEDS=1 SIZES=1 STRATEGIES='random corrmask' THREADS=1)
make_it() { make -s -f "$top/pipelines/Makefile" BIN="$bin" "$@"; }
table6() {
	at make_in_folder table6 "${settings[@]}" CLUSTER=slurm MEMORY=500M > table6.log 2>&1 || fail "table6"
	grep -Eq '^finetune +3 ' table6.log || fail "table6: no table"
	[ "$(grep -c 'JobId=.*WEXITSTATUS 0' slurmctld.log)" -ge 10 ] || fail "table6: $(grep -c 'JobId=.*WEXITSTATUS 0' slurmctld.log) jobs, expected 10 at least"
}
array() {
	at make_in_folder table6-commands "${settings[@]}" RESULTS=by-array 2> array.log | grep arm.sh > commands
	[ "$(wc -l < commands)" = 3 ] || fail "table6-commands: $(wc -l < commands) runs, expected 3"
	# shellcheck disable=SC2016 # for the job
	at sbatch --wait --chdir="$folder" -o "$folder/array-%a.log" --array=1-3 --time=5 --cpus-per-task=1 --mem=500 --wrap 'eval "$(sed -n ${SLURM_ARRAY_TASK_ID}p commands)"' > /dev/null || fail "array"
	[ "$(find by-array/table6 -name scores.tsv | wc -l)" = 3 ] || fail "array: not all runs have scores"
}
# make needs a program that enter can start
printf '#!/bin/sh\ncd %s && exec make -s -f %s/pipelines/Makefile BIN=%s "$@"\n' "$folder" "$top" "$bin" > make_in_folder
chmod +x make_in_folder
PATH=$folder:$PATH

preempted() {
	job=$(submit preempted --exclude=n3)
	until_step preempted 30
	at srun -p high --exclusive --nodelist=n1,n2 sleep 1
	start_now "$job"
	until_state "$job" COMPLETED
	grep -q "interrupted after step" preempted.log || fail "preempted: no checkpoint"
	same preempted
}

network_cut() {
	job=$(submit cut --exclude=n3)
	until_step cut 30
	cluster link n2 down
	for ((i = 0; i < 100; i++)); do ! grep -q "waiting for rank 1" cut.log || break; sleep 0.2; done
	cluster link n2 up
	grep -q "waiting for rank 1" cut.log || fail "network_cut: no word about the rank"
	until_state "$job" COMPLETED
	same cut
}

machine_lost() {
	job=$(submit lost --exclude=n3)
	until_step lost 60
	cluster link n2 down
	until_state "$job" PENDING
	at scontrol update JobId="$job" ExcNodeList=n2 StartTime=now
	until_state "$job" COMPLETED
	cluster link n2 up
	same lost
}

[[ " ${cases[*]} " = *" two_machines "* ]] || cases=(two_machines "${cases[@]}")
for c in "${cases[@]}"; do
	begin=$SECONDS
	$c
	echo "ok $c ($((SECONDS - begin)) s)"
done

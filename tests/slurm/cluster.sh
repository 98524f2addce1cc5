#!/usr/bin/env bash
# Debian's Slurm with virtual machines on this one, each with a network, a host name and a /tmp of its own; MPI between them goes over TCP.
#     cluster.sh start FOLDER NODES      needs root; FOLDER gets slurm.conf, the logs and the state
#     cluster.sh on FOLDER NODE COMMAND...      on n1, n2, ... or on ctl, where jobs are submitted
#     cluster.sh link FOLDER NODE up|down       the network of a machine
#     cluster.sh stop FOLDER NODES
set -euo pipefail
what=$1 folder=$(realpath -m "$2") top=$(realpath "$(dirname "$0")/../..")
net=cm$(printf '%s' "$folder" | cksum | cut -c 1-4) # two tests side by side have their own

# enter NODE COMMAND...: in its network, with its name; not `ip netns exec`, which mounts another /sys, where slurmd finds no cgroup
enter() {
	local node=$1
	shift
	# shellcheck disable=SC2016 # for the bash there
	nsenter --net="/run/netns/$net-$node" unshare -m -u bash -c '
		mount --bind "$1/hosts" /etc/hosts
		hostname "$2"
		for f in "$1" "$3"; do # what lies in this /tmp, the checkout perhaps, lies in theirs too
			[[ $f != /tmp/* ]] || { mkdir -p "$1/tmp-$2/${f#/tmp/}" && mount --bind "$f" "$1/tmp-$2/${f#/tmp/}"; }
		done
		mount --rbind "$1/tmp-$2" /tmp
		export SLURM_CONF=$1/slurm.conf TMPDIR=/tmp
		cd "$1"
		shift 3
		exec "$@"' bash "$folder" "$node" "$top" "$@"
}

machine() {
	local name=$1 address=$2
	ip netns add "$net-$name"
	ip link add "$net$name" type veth peer name eth0 netns "$net-$name"
	ip link set "$net$name" netns "$net-switch"
	ip -n "$net-switch" link set "$net$name" master bridge up
	ip -n "$net-$name" addr add "10.88.0.$address/24" dev eth0
	ip -n "$net-$name" link set eth0 up
	ip -n "$net-$name" link set lo up
	mkdir -p "$folder/tmp-$name"
	echo "10.88.0.$address $name" >> "$folder/hosts"
}

start() {
	local nodes=$1 i
	mkdir -p "$folder"/{state,munge}
	echo "127.0.0.1 localhost" > "$folder/hosts"
	ip netns add "$net-switch"
	ip -n "$net-switch" link add bridge type bridge
	ip -n "$net-switch" link set bridge up
	machine ctl 100
	for ((i = 1; i <= nodes; i++)); do machine "n$i" "$i"; done
	cat > "$folder/slurm.conf" <<-END
		ClusterName=corrmask
		SlurmctldHost=ctl
		SlurmUser=root
		AuthType=auth/munge
		AuthInfo=socket=$folder/munge/socket
		StateSaveLocation=$folder/state
		SlurmdSpoolDir=$folder/spool-%n
		SlurmctldPidFile=$folder/slurmctld.pid
		SlurmdPidFile=$folder/slurmd-%n.pid
		SlurmctldLogFile=$folder/slurmctld.log
		SlurmdLogFile=$folder/slurmd-%n.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU_Memory
		SlurmdParameters=config_overrides
		SchedulerParameters=bf_interval=2,sched_interval=2
		PreemptType=preempt/partition_prio
		PreemptMode=REQUEUE
		ReturnToService=2
		SlurmdTimeout=15
		KillWait=15
		NodeName=n[1-$nodes] CPUs=4 RealMemory=4000
		PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=15 MaxTime=10
		PartitionName=high Nodes=ALL PriorityTier=100 MaxTime=10
	END
	dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
	chmod 700 "$folder/munge"
	chmod 400 "$folder/munge/key"
	munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
		--log-file="$folder/munge/log" --seed-file="$folder/munge/seed" 2> /dev/null
	chmod 755 "$folder/munge"
	enter ctl slurmctld
	for ((i = 1; i <= nodes; i++)); do enter "n$i" slurmd -N "n$i"; done
	for ((i = 0; i < 100; i++)); do
		[ "$(enter ctl sinfo -h -N -p low -t idle | wc -l)" != "$nodes" ] || return 0
		sleep 0.2
	done
	echo "the machines did not become idle" >&2
	tail -n 5 "$folder"/*.log >&2
	return 1
}

stop() {
	local pid
	for pid in "$folder"/slurmctld.pid "$folder"/slurmd-*.pid "$folder"/munge/pid; do
		[ ! -s "$pid" ] || kill "$(cat "$pid")" 2> /dev/null || true
	done
	sleep 0.5
	for name in switch ctl $(seq -f n%g "$1"); do
		ip netns pids "$net-$name" 2> /dev/null | xargs -r kill -9 2> /dev/null || true
		ip netns del "$net-$name" 2> /dev/null || true
	done
}

shift 2
case $what in
start) start "$1" ;;
on) enter "$@" ;;
link) ip -n "$net-switch" link set "$net$1" "$2" ;;
stop) stop "$1" ;;
esac

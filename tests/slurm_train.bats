# examples/slurm-train.sh: when it tries again. srun and scontrol are stubs here; make check-slurm has the real ones.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir stubs
	# what srun prints and does, and its status
	cat >stubs/srun <<-'X'
		#!/bin/bash
		eval "$DO"
		exit "$STATUS"
	X
	printf '#!/bin/sh\necho "$@" >>requeued\n' >stubs/scontrol
	chmod +x stubs/*
	export PATH=$PWD/stubs:$PATH SLURM_JOB_ID=7 MODEL=m DO='' STATUS=0
}

# ends STATUS REQUEUED: the script, as a job
ends() {
	rm -f requeued
	run -"$1" bash "$BATS_TEST_DIRNAME/../examples/slurm-train.sh"
	assert_equal "$([ -e requeued ] && cat requeued)" "$2"
}
again="requeue 7"

@test "slurm-train.sh: a step that did not start is tried again, whatever its status, but not for ever" {
	for STATUS in 0 1 137 7; do ends 143 "$again"; done
	# one task was launched and the other not: none has made a step
	mkdir m
	echo step >m/train.tsv
	DO='echo "srun: error: task 0 launch failed: Unspecified error"; echo "sctrain mlm[1]: note: device"; echo "sctrain mlm[1]: rank 0 has stopped; there is no checkpoint yet"'
	STATUS=137 ends 143 "$again"
	assert_output --partial "task 0 launch failed"
	SLURM_RESTART_COUNT=20 STATUS=137 ends 1 ""
	MAX_RESTARTS=3 SLURM_RESTART_COUNT=3 STATUS=0 ends 1 ""
}

@test "slurm-train.sh: the error of a tool, and a training that was killed, are not tried again; a stopped one is" {
	for DO in 'echo "maskgen: cells.tok: No such file or directory"' 'echo "sctrain mlm[0]: --resume: m holds a finished model of another training"' \
		'echo "sctrain mlm: out of memory" >&2'; do
		STATUS=1 ends 1 ""
	done
	mkdir -p m
	DO='echo "1 2.5" >>m/train.tsv'
	STATUS=137 ends 137 ""
	STATUS=143 ends 143 "$again"
}

@test "slurm-train.sh: a model is the end" {
	DO='mkdir -p m; touch m/model.safetensors'
	STATUS=0 ends 0 ""
	DO=''
	STATUS=0 ends 0 "" # --resume: nothing to do
	STATUS=137 ends 143 "$again" # whether it is this model was not asked
	DO='echo "sctrain mlm[0]: --resume: m holds a finished model of another training"'
	STATUS=1 ends 1 ""
}

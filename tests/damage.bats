# Models and checkpoints with flipped bits, and weights that another program has written
load helper

setup_file() {
	need_tool scsim rankenc maskgen scview sctrain scembed
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 60 --genes 60 --modules 4 --types 2 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o tok sim.counts
	maskgen -q --epochs 3 --batch 10 --seed 4 -o masked tok
	maskgen -q --batch 10 --seed 5 -o eval.masked tok
	sctrain mlm -q --config tiny --save-every 7 --eval eval.masked -o model masked
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	cp -r model whole
}

teardown() {
	rm -rf "$BATS_FILE_TMPDIR/whole" "$BATS_FILE_TMPDIR/made"
}

# flip FILE N: flip the N-th of some random bits
flip() {
	$PYTHON -c '
import random, sys
x, n = bytearray(open(sys.argv[1], "rb").read()), int(sys.argv[2])
bit = [random.Random(n).randrange(8 * len(x)) for _ in range(n + 1)][n]
x[bit // 8] ^= 1 << bit % 8
open(sys.argv[1], "wb").write(x)' "$@"
}

@test "a flipped bit of model.safetensors is refused by every tool that reads it" {
	for i in $(seq 20); do
		cp model/model.safetensors whole
		flip whole/model.safetensors "$i"
		run -1 scembed -q -M whole tok -o made
		assert_output --partial whole/model.safetensors
	done
	run -1 sctrain eval -q -M whole eval.masked -o made
	run -1 sctrain mlm -q --init whole -o made masked
	run -1 scview --check whole
	assert_file_not_exists made/model.safetensors
	cp model/model.safetensors whole
	scembed -q -M whole tok -o made
}

@test "a flipped bit of a checkpoint is refused by --resume" {
	rm whole/model.safetensors
	mv whole/checkpoint-14 kept
	for file in model.safetensors optimizer.safetensors best.safetensors trainer_state.json; do
		for i in 1 2 3; do
			rm -rf whole/checkpoint-*
			cp -r kept whole/checkpoint-14
			flip whole/checkpoint-14/$file "$i"
			run -1 sctrain mlm --config tiny --save-every 7 --eval eval.masked --resume -o whole masked
			assert_output --partial "whole/checkpoint-14/"
			run -1 scview --check whole/checkpoint-14
		done
	done
	rm -rf whole/checkpoint-*
	cp -r kept whole/checkpoint-14
	run -0 scview --check whole/checkpoint-14
	sctrain mlm -q --config tiny --save-every 7 --eval eval.masked --resume -o whole masked
	cmp model/model.safetensors whole/model.safetensors
}

@test "a checkpoint that is damaged is set aside, and the one before goes on to the same bytes; maskgen --resume begins early enough" {
	sctrain mlm -q --config tiny --save-every 4 -o two.whole masked
	for file in model.safetensors optimizer.safetensors trainer_state.json vocab.tsv cut missing; do
		rm -rf two
		cp -r two.whole two
		rm two/model.safetensors
		newest=$(ls -d two/checkpoint-* | sort -V | tail -n 1)
		case $file in
		cut) truncate -s -9 "$newest/model.safetensors" ;;
		missing) rm "$newest/optimizer.safetensors" ;;
		*) flip "$newest/$file" 5 ;;
		esac
		before=$(ls -d two/checkpoint-* | sort -V | head -n 1)
		run -0 bash -o pipefail -c "maskgen -q --epochs 3 --batch 10 --seed 4 --resume two tok | sctrain mlm --config tiny --save-every 4 --resume -o two -"
		assert_line --partial "sctrain mlm: warning: $newest/"
		assert_line --partial "${before#*/} "
		cmp two/model.safetensors two.whole/model.safetensors
		assert_exist "$newest.damaged"
		assert_exist "$newest/model.safetensors"
	done
	rm -r two/checkpoint-*.damaged two/model.safetensors
	for c in two/checkpoint-*; do flip "$c/model.safetensors" 3; done
	run -1 sctrain mlm --config tiny --save-every 4 --resume -o two masked
	assert_output --partial "--force"
	assert_equal "$(ls -d two/*.damaged 2>/dev/null)" ""
}

@test "scview --check: models whole and damaged, next to streams" {
	run -0 scview --check model tok model/checkpoint-14
	assert_line --regexp '^model: complete, model, [0-9]+ tensors$'
	assert_line --partial "tok: complete, tokens, 60 rows"
	for file in config.json vocab.tsv model.safetensors; do
		for i in $(seq 10); do
			cp model/$file whole
			flip whole/$file "$i"
			run -1 scview --check tok whole
			assert_equal "${#lines[@]}" 2
		done
		cp model/$file whole
	done
	run -0 scview --check whole
	rm whole/vocab.tsv
	run -1 scview --check whole
	run -1 scview --check "$BATS_FILE_TMPDIR" nosuch
	assert_equal "${#lines[@]}" 2
}

@test "weights that another program has changed and written load; it leaves our digests away" {
	$PYTHON - <<-'END'
		import json, struct
		raw = open("model/model.safetensors", "rb").read()
		n = struct.unpack("<Q", raw[:8])[0]
		head, data = json.loads(raw[8:8 + n]), bytearray(raw[8 + n:])
		assert set(head["__metadata__"]) == {"corrmask_digest", "config.json", "vocab.tsv", "format"}
		head["__metadata__"] = {"format": "pt"}
		at = head["bert.embeddings.word_embeddings.weight"]["data_offsets"][0]
		data[at:at + 4] = struct.pack("<f", 0.5)
		text = json.dumps(head, separators=(",", ":")).encode()
		text += b" " * (-len(text) % 8)
		open("whole/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
	END
	scembed -q -M whole tok -o made
	run -0 scview --check whole
	assert_line --regexp '^whole: complete, model, [0-9]+ tensors, no digest$'
	run -0 scview --check "$BATS_TEST_DIRNAME/golden/v1/model" "$BATS_TEST_DIRNAME/golden/v1/checkpoint/checkpoint-10"
}

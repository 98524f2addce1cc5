#!/usr/bin/env bats
# Files of format version 1 (tests/golden/README.md): every later version reads them, and goes on from them, as version 0.1.0 did

load helper

setup() {
	command -v zstd > /dev/null || skip "no zstd command"
	V1=$BATS_TEST_DIRNAME/golden/v1
	S=$V1/streams
	cd "$BATS_TEST_TMPDIR"
}

golden() { $PYTHON "$BATS_TEST_DIRNAME/golden/golden.py" "$@"; }

@test "golden v1: every stream is whole, and Python finds the values that were written" {
	run scview --check "$S"/*.scs
	assert_success
	assert_line "$S/types.scs: complete, counts, 12 rows in 3 blocks"
	assert_line "$S/empty.scs: complete, counts, 0 rows in 0 blocks"
	assert_equal "${#lines[@]}" 24
	for f in "$S"/*.scs; do
		golden dump "$f" > dump
		diff dump "${f%.scs}.txt"
	done
}

@test "golden v1: scview prints every value and header key" {
	$PYTHON "$BATS_TEST_DIRNAME/ref/scstream_cases.py" table "$S"/*.scs
	scview -H "$S/types.scs" | $PYTHON -c '
import json, sys
h = json.load(sys.stdin)
assert h["of_tomorrow"] == {"nested": [1, None, True, "µ"], "number": 0.1} and h["Zeta"] is None
assert h["provenance"] == [{"program": "golden.py", "version": "1", "options": "", "more": [1]}]'
}

@test "golden v1: a filter passes everything on, unknown lists and header keys too" {
	for kind in types counts tokens embedding prediction gene_prediction obs probe_prediction nb_embedding ties ranks value_embedding; do
		scsample -q -o out "$S/$kind.scs"
		golden same "$S/$kind.scs" out
		scsample -q -u "$S/$kind.scs" | scsample -q -o out -
		golden same "$S/$kind.scs" out
	done
}

@test "golden v1: the tools take every kind as input" {
	rankenc -q --fit "$S/counts.scs" -o vocab
	diff vocab "$V1/model/vocab.tsv"
	rankenc -q --value -m vocab "$S/counts.scs" | golden close "$S/tokens.scs" - 1e-6
	depgraph -q -O stats "$S/graph.scs" -o stats
	assert_equal "$(awk '$1 == "edges" { print $2 }' stats)" 49
	maskgen -q --strategy corrmask -g "$S/graph.scs" --rate 0.3 --batch 4 --epochs 2 --seed 3 --keep cell_type -o masked "$S/tokens.scs"
	golden same "$S/masked.scs" masked
	ctaprobe cells -q --no-standardize -l cell_type --folds 2 "$S/embedding.scs" -o probe
	ctaprobe score -q -l cell_type "$S/prediction.scs" -o score
	ctaprobe genes -q "$S/gene_prediction.scs" -o auc
	for f in probe score auc; do assert_file_not_empty $f; done
}

@test "golden v1: the tools write PMI graphs, probes, masked counts, predictions and types of obs as they did, and take them" {
	golden obs obs.h5ad
	h5tok -q obs.h5ad | golden same "$S/obs.scs" -
	depgraph -q --pmi --tau 0.3 --min-count 2 "$S/tokens.scs" | golden close "$S/pmi.scs" - 1e-6
	maskgen -q --strategy pmi -g "$S/pmi.scs" "$S/tokens.scs" -o out
	maskgen -q --strategy probe --partners hidden -g "$S/graph.scs" --batch 4 --shard 1/2 --balance-lengths --seed 3 "$S/tokens.scs" | golden same "$S/probe.scs" -
	maskgen -q --strategy none --keep cell_type,donor --batch 8 "$S/tokens.scs" | golden same "$S/supervised.scs" -
	maskgen -q --strategy columns --rate-choice 0.2,0.5 --batch 10 --epochs 4 --balance-lengths --seed 3 --keep donor "$S/counts.scs" |
		golden same "$S/masked_counts.scs" -
	maskgen -q --strategy columns --batch 20 --seed 4 --keep donor "$S/counts.scs" | golden same "$S/validation.scs" -
	ctaprobe cells -q --no-standardize -l cell_type --folds 2 --predictions prediction -o out "$S/embedding.scs"
	golden close "$S/probe_prediction.scs" prediction 1e-3
	ctaprobe score -q -l cell_type "$S/probe_prediction.scs" -o score
	scmetric reconstruction -q "$S/reconstruction.scs" -o reconstruction
	for f in score reconstruction; do assert_file_not_empty $f; done
}

@test "golden v1: a model of counts embeds and reconstructs as it did, and its training goes on, as that of a classifier" {
	scembed -q -M "$V1/nb_model" --device cpu "$S/counts.scs" | golden close "$S/nb_embedding.scs" - 1e-5
	scpredict expression -q -M "$V1/nb_model" --device cpu "$S/validation.scs" | golden close "$S/reconstruction.scs" - 1e-5
	mkdir nb cells
	cp -r "$V1/nb_checkpoint/checkpoint-8" nb/
	sctrain nb -q --config "$V1/nb_model/config.json" --batch-key donor --eval "$S/validation.scs" --eval-every 4 --save-every 8 \
		--keep-checkpoints 9 --seed 5 --device cpu --resume -o nb "$S/masked_counts.scs"
	cp -r "$V1/cells_checkpoint/checkpoint-2" cells/
	sctrain cells -q --label cell_type --init "$V1/model" --lr 1e-2 --save-every 2 --keep-checkpoints 9 --seed 5 --device cpu --resume \
		-o cells "$S/supervised.scs"
	for task in nb cells; do
		first=$(sed -n 2p $task/train.tsv | cut -f 1)
		assert_equal "$first" "$([ $task = nb ] && echo 9 || echo 3)"
		awk -v first="$first" 'NR == 1 || $1 >= first' "$V1/${task}_checkpoint/losses.tsv" > rest
		golden losses $task/train.tsv rest 1e-4
	done
}

@test "golden v1: ties, ranks, orders, runs and values are as they were; a model of values goes on, and embeds as it did" {
	rankenc -q --ties random -m "$V1/model/vocab.tsv" "$S/counts.scs" | golden same "$S/ties.scs" -
	maskgen -q --rate 0.3 --batch 8 --epochs 2 --seed 3 "$S/ties.scs" | golden same "$S/drawn.scs" -
	maskgen -q --strategy runs --rate 0.3 --batch 8 --seed 3 "$S/ties.scs" | golden same "$S/runs.scs" -
	rankenc -q --ties group --value -m "$V1/model/vocab.tsv" "$S/counts.scs" | golden close "$S/ranks.scs" - 1e-6
	maskgen -q --objective value --rate 0.3 --batch 8 --epochs 2 --seed 3 "$S/ranks.scs" | golden same "$S/values.scs" -
	scembed -q -M "$V1/value_model" --device cpu "$S/ranks.scs" | golden close "$S/value_embedding.scs" - 1e-5
	mkdir model
	cp -r "$V1/value_checkpoint/checkpoint-4" model/
	sctrain value -q --config "$V1/value_model/config.json" --lr 1e-2 --save-every 4 --keep-checkpoints 9 --seed 5 --device cpu --resume \
		-o model "$S/values.scs"
	assert_equal "$(sed -n 2p model/train.tsv | cut -f 1)" 5
	awk 'NR == 1 || $1 >= 5' "$V1/value_checkpoint/losses.tsv" > rest
	golden losses model/train.tsv rest 1e-4
}

@test "golden v1: models embed and predict as they did" {
	scembed -q -M "$V1/model" --device cpu "$S/tokens.scs" | golden close "$S/embedding.scs" - 1e-5
	scpredict cells -q -M "$V1/cells_model" --device cpu --probabilities "$S/tokens.scs" | golden close "$S/prediction.scs" - 1e-5
	scpredict genes -q -M "$V1/genes_model" --device cpu "$S/tokens.scs" | golden close "$S/gene_prediction.scs" - 1e-5
}

@test "golden v1: training goes on from a checkpoint with the same losses" {
	cp -r "$V1/checkpoint" model
	sctrain mlm -q --config "$V1/checkpoint/checkpoint-10/config.json" --lr 1e-2 --save-every 10 --keep-checkpoints 9 --seed 5 --device cpu \
		--resume -o model "$S/masked.scs"
	assert_equal "$(sed -n 2p model/train.tsv | cut -f 1)" 11
	tail -n +12 "$V1/checkpoint/losses.tsv" | cat <(head -n 1 "$V1/checkpoint/losses.tsv") - > rest
	assert_equal "$(wc -l < rest)" 11
	golden losses model/train.tsv rest 1e-5
	$PYTHON - model/model.safetensors "$V1/model/model.safetensors" <<-'END'
		import json, struct, sys
		import numpy as np
		def tensors(path):
		    raw = open(path, "rb").read()
		    n = struct.unpack("<Q", raw[:8])[0]
		    return {k: np.frombuffer(raw[8 + n:][slice(*v["data_offsets"])], "<f4") for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}
		a, b = map(tensors, sys.argv[1:])
		assert list(a) == list(b)
		for k in b:
		    assert np.abs(a[k] - b[k]).max() < 1e-5, (k, np.abs(a[k] - b[k]).max())
	END
	# and maskgen begins where the checkpoint stands
	cp -r "$V1/checkpoint" late
	maskgen -q --strategy corrmask -g "$S/graph.scs" --rate 0.3 --batch 4 --epochs 2 --seed 3 --keep cell_type --resume late -o rest.masked "$S/tokens.scs"
	scview -c step rest.masked > steps
	assert_equal "$(sed -n 2p steps)" 10
}

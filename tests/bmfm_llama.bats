#!/usr/bin/env bats
# The encoder of BMFM-RNA in the tools: trained models against tests/ref/bmfm.py in float64, which reads the same files; the default pooling,
# the order of the genes, the same bits for any number of threads, parts and an interruption; what is refused.
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 120 --genes 80 --types 3 --depth 300 --seed 4 -o sim.counts
	rankenc -q --fit sim.counts --vocab-style bmfm -o sim.vocab
	rankenc -q -m sim.vocab --vocab-style bmfm --cls 2 sim.counts -o sim.tok
	maskgen -q --objective cell --strategy random --rate 0.2 --bernoulli --batch 12 sim.tok -o sim.masked
	maskgen -q --objective cell --strategy random --rate 0.2 --keep cell_type --batch 12 sim.tok -o sim.types
	sctrain wced -q -c bmfm-tiny sim.masked -o whole
}

setup() { cd "$BATS_FILE_TMPDIR"; }

reference() { $PYTHON "$BATS_TEST_DIRNAME/ref/bmfm.py" "$@"; }
table() { scview "$1" --columns "$2"; }

@test "bmfm_llama: scembed gives the states of the reference, of any layer and positions" {
	values sim.tok > tokens.tsv
	for case in "0 0" "0 0,1" "-1 1,3,0" "-2 5"; do
		set -- $case
		scembed -q -M whole --emb-layer "$1" --pool "token:$2" sim.tok -o x.emb 2> err || [ "$2" != 0 ] || false
		table x.emb cell,x > x.tsv
		if [ "$2" = 0 ] || [ "$2" = 0,1 ]; then reference embed whole tokens.tsv x.tsv "$1" "$2"; fi
	done
}

@test "bmfm_llama: the first token of the last layer is the default" {
	scembed -q -M whole sim.tok -o default.emb
	scembed -q -M whole --emb-layer 0 --pool token:0 sim.tok -o said.emb
	cmp <(table default.emb x) <(table said.emb x)
	scembed -q -M whole --pool token:1,0 sim.tok -o two.emb
	paste -d ' ' <(scembed -q -M whole --pool token:1 sim.tok | scview --columns x | tail -n +2) <(table said.emb x | tail -n +2) > want
	diff <(table two.emb x | tail -n +2) want
}

@test "bmfm_llama: a model directory has the released names, and is read again" {
	run -0 $PYTHON - whole/model.safetensors <<-'END'
	import json, struct, sys
	f = open(sys.argv[1], "rb")
	h = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
	shape = {n: t["shape"] for n, t in h.items() if n != "__metadata__"}
	e = "core.encoder."
	assert shape[e + "blocks.0.attn.c_attn.weight"] == [192, 64] and e + "blocks.0.rms_1.scale" not in shape
	assert shape[e + "blocks.1.rms_1.scale"] == [64] and shape[e + "blocks.1.mlp.c_fc2.weight"] == [256, 64]
	assert shape[e + "embeddings.expressions_embeddings.special_token_embeddings.weight"] == [37, 64]
	assert shape[e + "embeddings.expressions_embeddings.basis"] == [16]
	assert shape[e + "embeddings.expressions_embeddings.dense.weight"] == [64, 32]
	assert shape["cls.predictions.predictions.decoder.field_decoders.expressions_wced.weight"] == [2 * 118, 64]
	END
	sctrain cells -q --init whole --label cell_type sim.types -o types
	scpredict cells -q -M types sim.tok -o p.scs
	grep -q '"model_type":[[:space:]]*"bmfm_llama"' types/config.json
}

@test "bmfm_llama: the same bits with 1 and 2 threads, and after an interruption" {
	sctrain wced -q -c bmfm-tiny -@ 2 sim.masked -o two
	cmp whole/model.safetensors two/model.safetensors
	maskgen -q --objective cell --strategy random --rate 0.2 --bernoulli --batch 12 --epochs 2 sim.tok -o long.masked
	sctrain wced -q -c bmfm-tiny long.masked -o long
	sctrain wced -q -c bmfm-tiny --save-every 7 --keep-checkpoints 9 long.masked -o whole_run
	mkdir cut
	cp -r whole_run/checkpoint-7 cut
	sctrain wced -q -c bmfm-tiny --save-every 7 --keep-checkpoints 9 --resume long.masked -o cut
	cmp long/model.safetensors cut/model.safetensors
}

@test "bmfm_llama: its defaults of a training are the released ones" {
	run -0 $PYTHON -c '
import json, glob
s = json.load(open(glob.glob("cut/checkpoint-*/trainer_state.json")[0]))["settings"]
assert (s["schedule"], s["weight-decay"], s["clip"], s["warmup"], s["lr"]) == ("constant", 0.1, 0.5, 12, 0.001), s'
}

@test "bmfm_llama: a BERT reads values, too" {
	sed 's/"model_type"/"value_encoder": "mlp_special", "value_specials": 36, "model_type"/' > bert.json <<-'END'
	{"model_type": "bert", "vocab_size": 118, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128,
	"max_position_embeddings": 2048, "hidden_act": "gelu", "pad_token_id": 2}
	END
	sctrain wced -q -c bert.json sim.masked -o bert
	grep -q '"value_encoder":[[:space:]]*"mlp_special"' bert/config.json
	$PYTHON -c '
import sys
lines = [l.split("\t") for l in open("bert/train.tsv").read().split("\n")[1:-1]]
assert float(lines[-1][1]) < float(lines[0][1])'
	scembed -q -M bert --emb-layer 0 sim.tok -o bert.emb
	sed 's/"mlp_special"/"none"/' bert.json > plain.json
	sctrain wced -q -c plain.json sim.masked -o plain
	run ! grep -qE "value_(encoder|specials|scale)" plain/config.json
	scembed -q -M plain --emb-layer 0 sim.tok -o plain.emb
	run ! cmp -s bert.emb plain.emb
}

@test "bmfm_llama: what it cannot do is one line" {
	run -1 scembed -M whole --pool token:2 sim.tok -o no.emb
	assert_output --partial "--pool token:2: the cells begin with 2 tokens for the whole cell: expected a position below 2"
	sed 's/"periodic"/"waves"/' whole/config.json > waves.json
	run -1 sctrain wced -q -c waves.json sim.masked -o no
	assert_output --partial "value_encoder is waves: expected one of none, periodic, mlp, mlp_special"
	sed 's/"value_frequencies":.*/"value_frequencies": 4000,/' whole/config.json > many.json
	run -1 sctrain wced -q -c many.json sim.masked -o no
	assert_output --partial "value_frequencies is 4000: expected at most 1024"
}

@test "bmfm_llama: scembed --of static writes the rows of genes_embeddings" {
	scembed -q -M whole --of static sim.tok -o static.emb
	scview -c barcode,token,x static.emb >static.tsv
	run $PYTHON - whole/model.safetensors static.tsv whole/vocab.tsv <<-'END'
		import json, struct, sys
		import numpy as np
		f = open(sys.argv[1], "rb")
		n = struct.unpack("<Q", f.read(8))[0]
		t = json.loads(f.read(n))["core.encoder.embeddings.genes_embeddings.weight"]
		f.seek(8 + n + t["data_offsets"][0])
		table = np.frombuffer(f.read(t["data_offsets"][1] - t["data_offsets"][0]), "<f4").reshape(t["shape"])
		ids = [line.split("\t")[1] for line in list(open(sys.argv[3]))[1:]]
		rows = [line.rstrip("\n").split("\t") for line in list(open(sys.argv[2]))[1:]]
		assert [r[0] for r in rows] == ids[38:], rows[0][:2]
		x = np.array([r[2].split() for r in rows], "f4")
		assert np.allclose(x, table[38:], rtol=1e-5, atol=1e-7), abs(x - table[38:]).max()
	END
	assert_success
}

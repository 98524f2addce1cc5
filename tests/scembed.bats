load helper

setup_file() {
	need_tool scsim rankenc maskgen scview sctrain
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 120 --genes 60 --modules 4 --types 3 --depth 60 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	# version 2: <cls> and <eos> after <pad> and <mask>
	awk -F'\t' -v OFS='\t' '$1 >= 2 && !done && NR > 1 { print 2, "<cls>", "", "NA"; print 3, "<eos>", "", "NA"; done = 1 }
		NR > 1 && $1 >= 2 { $1 += 2 } { print }' vocab.tsv >vocab2.tsv
	for v in '' 2; do
		rankenc -q -m vocab$v.tsv -o cells$v.tok sim.counts
		maskgen -q -u --epochs 4 cells$v.tok | sctrain mlm -q --config tiny -o model$v
		scview -c token cells$v.tok >tokens$v.tsv
	done
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive
	export OPENBLAS_NUM_THREADS=1
}

@test "scembed: help, version and misuse" {
	run --separate-stderr scembed --help
	assert_success
	assert_line --partial "--pool mean|cls|first"
	run scembed --version
	assert_success
	for o in "" "-M model --by cell_type" "-M model --similarity mean --pool cls"; do
		run -2 scembed $o cells.tok
		assert_line -n 0 --regexp "^scembed: (-M DIR is needed|--.* does not go with --.*|--.* needs --.*)$"
	done
	run scembed -M model --emb-layer 1 cells.tok
	assert_failure 2
	run scembed -M model --emb-layer -3 cells.tok
	assert_failure 1
	assert_output --partial "the model has 2 layers: expected -2 to 0"
	run scembed -M model --pool cls cells.tok
	assert_failure 1
	assert_output --partial "no <cls>"
}

@test "scembed: every layer and pooling within 1e-5 of a float64 reading of the same file" {
	for layer in 0 -1 -2; do
		for pool in mean first; do
			scembed -q -M model --emb-layer $layer --pool $pool cells.tok -o x.emb
			scview -O npy x.emb >x.npy
			$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed model tokens.tsv $layer $pool x.npy
		done
		for pool in mean cls; do
			scembed -q -M model2 --emb-layer $layer --pool $pool cells2.tok -o x.emb
			scview -O npy x.emb >x.npy
			$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed model2 tokens2.tsv $layer $pool x.npy 2 3
		done
	done
}

@test "scembed: defaults are layer -1 and the mean; order and columns of the input are kept" {
	scembed -q -M model -o a.emb cells.tok
	scembed -q -M model --emb-layer -1 --pool mean -o b.emb cells.tok
	cmp a.emb b.emb # its header says which layer and pool were taken
	scview -c cell,barcode,n_counts,cell_type,donor cells.tok >want
	scview -c cell,barcode,n_counts,cell_type,donor a.emb >got
	cmp want got
	scview --check a.emb
	scview -H a.emb | $PYTHON -c '
import json, sys
h = json.load(sys.stdin)
assert h["kind"] == "embedding" and h["vocab"]["rows"] == len(open("vocab.tsv").readlines()) - 1
assert [p["program"] for p in h["provenance"]] == ["scsim", "rankenc", "scembed"]
assert "--model xxh3:" in h["provenance"][-1]["options"]
assert "token" not in [c["name"] for c in h["columns"]]'
}

@test "scembed: the same bytes on 1, 2 and 3 threads, from file and pipe" {
	scembed -q -M model -o one.emb cells.tok
	scembed -q -M model -@ 2 -o two.emb - <cells.tok
	cat cells.tok | scembed -q -M model -@ 3 >three.emb
	cmp one.emb two.emb
	cmp one.emb three.emb
	scview -O npy one.emb >x.npy
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed model tokens.tsv -1 mean x.npy
}

@test "scembed: a cell without tokens gets NaN, with a warning that counts them" {
	emptied cells.tok few.tok
	maskgen -q -u --rate 0.5 --seed 2 few.tok | sctrain mlm -q --config tiny -o few.model
	scview -c token few.tok >few.tsv2
	empty=$(tail -n +2 few.tsv2 | grep -c '^$')
	assert [ "$empty" -gt 0 ]
	run scembed -M few.model few.tok -o few.emb
	assert_success
	assert_output "scembed: warning: $empty of 120 cells have no token to embed: their vectors are NaN"
	scview -O npy few.emb >x.npy
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed few.model few.tsv2 -1 mean x.npy
	$PYTHON "$BATS_TEST_DIRNAME/ref/head.py" make few.model few.cells cells x y
	run scpredict cells -M few.cells --probabilities few.tok -o few.pred
	assert_success
	assert_output "scpredict cells: warning: $empty of 120 cells have no token: their logits are NaN"
	$PYTHON "$BATS_TEST_DIRNAME/ref/head.py" cells few.cells few.tsv2 few.pred
}

@test "scembed: cells longer than the positions are an error, or cut with --max-len" {
	mkdir -p short
	$PYTHON - <<-'END'
		import json, struct
		c = json.load(open("model2/config.json"))
		c["max_position_embeddings"] = 12
		json.dump(c, open("short/config.json", "w"))
		raw = open("model2/model.safetensors", "rb").read()
		n = struct.unpack("<Q", raw[:8])[0]
		head, data = json.loads(raw[8:8 + n]), raw[8 + n:]
		del head["__metadata__"]
		out, at = b"", 0
		for name in sorted(head):
		    t = head[name]
		    part = data[t["data_offsets"][0]:t["data_offsets"][1]]
		    if name.endswith("position_embeddings.weight"):
		        t["shape"][0], part = 12, part[:12 * 64 * 4]
		    t["data_offsets"] = [at, at + len(part)]
		    at, out = at + len(part), out + part
		text = json.dumps(head).encode()
		open("short/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + out)
	END
	cp vocab2.tsv short/vocab.tsv
	run scembed -M short cells2.tok -o long.emb
	assert_failure 1
	assert_output --regexp "^scembed: cells2.tok: cell [0-9]+ has [0-9]+ tokens, but the model has 12 positions$"
	assert_not_exist long.emb
	scembed -q -M short --max-len 12 cells2.tok -o cut.emb
	scembed -q -M model2 --max-len 12 cells2.tok | scview -c x - | cmp - <(scview -c x cut.emb)
	run -1 scembed -M short --max-len 13 cells2.tok -o long.emb
	assert_output "scembed: --max-len 13: the model in short has 12 positions"
	scview -O npy cut.emb >x.npy
	# the first 12 tokens, with <eos> last where the cell had it
	awk 'NR > 1 && NF > 12 { $12 = $NF == 3 ? 3 : $12; NF = 12 } { print }' tokens2.tsv >cut.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed short cut.tsv -1 mean x.npy 2 3
}

@test "scembed: another vocabulary is an error, other medians a warning, a model of transformers is taken by size" {
	run scembed -M model cells2.tok -o bad.emb
	assert_failure 1
	assert_output --partial "vocab_size"
	awk -F'\t' -v OFS='\t' 'NR > 5 { $4 = $4 * 2 } { print }' vocab.tsv >medians.tsv
	rankenc -q -m medians.tsv -o medians.tok sim.counts
	run scembed -M model medians.tok -o medians.emb
	assert_success
	assert_output --partial "warning: medians.tok: the gene medians differ"
	sed '5s/\t[^\t]*\t/\tENSG0\t/' vocab.tsv >renamed.tsv
	rankenc -q -m renamed.tsv -o renamed.tok sim.counts
	run scembed -M model renamed.tok -o bad.emb
	assert_failure 1
	assert_output --partial "renamed.tok: not the vocabulary of model: token 3 is ENSG0 here"
	mkdir -p hf
	cp model/config.json model/model.safetensors hf
	run scembed -M hf cells.tok -o hf.emb
	assert_success
	assert_output --partial "hf has no vocab.tsv"
	cmp <(scview hf.emb) <(scembed -q -M model cells.tok | scview)
}

@test "scembed, sctrain: weights in several files with an index, as transformers writes large models" {
	split_model() { # split_model MODEL DIR: into three files
		rm -rf "$2"
		mkdir "$2"
		cp "$1"/config.json "$1"/vocab.tsv "$2"
		$PYTHON - "$1" "$2" <<-'END'
			import json, struct, sys
			raw = open(sys.argv[1] + "/model.safetensors", "rb").read()
			n = struct.unpack("<Q", raw[:8])[0]
			head, data = json.loads(raw[8:8 + n]), raw[8 + n:]
			del head["__metadata__"]
			names, where = sorted(head), {}
			for k in range(3):
			    part, out = {"__metadata__": {"format": "pt"}}, b""
			    file = "model-%05d-of-00003.safetensors" % (k + 1)
			    for name in names[k::3]:
			        t = dict(head[name])
			        piece = data[t["data_offsets"][0]:t["data_offsets"][1]]
			        t["data_offsets"] = [len(out), len(out) + len(piece)]
			        part[name], out, where[name] = t, out + piece, file
			    text = json.dumps(part).encode()
			    open(sys.argv[2] + "/" + file, "wb").write(struct.pack("<Q", len(text)) + text + out)
			json.dump({"metadata": {"total_size": len(data)}, "weight_map": where}, open(sys.argv[2] + "/model.safetensors.index.json", "w"))
		END
	}
	split_model model shards
	scembed -q -M shards cells.tok -o shards.emb
	scembed -q -M model cells.tok -o whole.emb
	cmp <(scview shards.emb) <(scview whole.emb)
	run -0 scview -H shards.emb
	assert_output --partial "--model xxh3:"
	maskgen -q cells.tok -o shards.masked
	sctrain mlm -q --init shards --config shards/config.json -o from.shards shards.masked
	sctrain mlm -q --init model --config model/config.json -o from.whole shards.masked
	cmp from.shards/model.safetensors from.whole/model.safetensors
	index=shards/model.safetensors.index.json
	refused() {
		run -1 scembed -M shards cells.tok -o bad.emb
		assert_output --partial "$1"
		assert_not_exist bad.emb
		split_model model shards
	}
	rm shards/model-00002-of-00003.safetensors
	refused "shards/model-00002-of-00003.safetensors: No such file"
	sed -i 's/00003-of-00003/00001-of-00003/' $index
	refused "is here, but $index has it in"
	sed -i 's/"weight_map": {/"weight_map": {"more": "model-00001-of-00003.safetensors", /' $index
	refused "but its files hold"
	sed -i 's/model-00001-of/..\/model-00001-of/' $index
	refused "expected the name of a file in the same folder"
	echo '{}' >$index
	refused "$index: expected a JSON object with a weight_map"
	head -c 3000 model/model.safetensors >shards/model-00003-of-00003.safetensors
	refused "shards/model-00003-of-00003.safetensors: "
}

@test "scembed: bad input, a full disk and a killed upstream end with one line and no file" {
	run scembed -M nowhere cells.tok -o bad.emb
	assert_failure 1
	run scembed -M model sim.counts -o bad.emb
	assert_failure 1
	assert_output "scembed: sim.counts: this is a counts stream, expected tokens: run rankenc first"
	head -c $(($(stat -c %s cells.tok) - 20)) cells.tok >half.tok
	run scembed -M model half.tok -o bad.emb
	assert_failure 1
	assert_output --partial "half.tok"
	run scembed -M model -o bad.emb </dev/null
	assert_failure 1
	run scembed -M model cells.tok -o /dev/full
	assert_failure 1
	mkdir -p broken
	cp model/config.json model/vocab.tsv broken
	head -c 5000 model/model.safetensors >broken/model.safetensors
	run scembed -M broken cells.tok -o bad.emb
	assert_failure 1
	assert_output --partial "broken/model.safetensors: "
	run scembed -M model --device cuda:99 cells.tok -o bad.emb
	assert_failure 1
	assert_output --partial "--device cuda:99: "
	assert_not_exist bad.emb
}

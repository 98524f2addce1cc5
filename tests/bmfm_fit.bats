# Models of BMFM-RNA and cells that do not fit them: other CLS tokens, names that pruning would change.
load helper

setup_file() {
	need_tool scsim rankenc maskgen scview sctrain scembed
	cd "$BATS_FILE_TMPDIR"
	scsim -q -n 60 --genes 80 --modules 5 --types 4 --donors 3 -o s.counts
	rankenc -q --fit --vocab-style bmfm -o v.tsv s.counts
	for k in 1 3; do
		rankenc -q -m v.tsv --cls $k -o c$k.tok s.counts
		maskgen -q --objective cell -b 20 --keep cell_type,donor --count-kept -o c$k.masked c$k.tok
	done
	{
		printf '[Term]\nid: X:1\nname: cell\n'
		printf '\n[Term]\nid: X:1%s\nname: type%s\nis_a: X:1\n' 1 1 2 2 3 3 4 4
	} >t.obo
	sctrain wced -q --config tiny --head cell_type:hce,position=2 --ontology t.obo -o m3 c3.masked
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

@test "scpredict cells --node: a name means what it means in the whole ontology, also if its other terms were pruned" {
	printf '\n[Term]\nid: Z:9\nname: abc\nis_a: X:1\n' | cat t.obo - | sed '/^name: type1$/a synonym: "abc" EXACT []\nsynonym: "kind" EXACT []' |
		sed '/^name: abc$/a synonym: "Kind" EXACT []' >names.obo
	sctrain wced -q --config tiny --head cell_type:hce --ontology names.obo -o named c1.masked
	local name
	for name in abc kInD; do # the name of Z:9, which no cell has; a synonym of both
		run -1 scpredict cells -M named --node $name -o never.pred c1.tok
		assert_output "scpredict cells: --node: '$name' is not a term that the head can predict: expected ids, names or exact synonyms of named/ontology.obo"
	done
	scpredict cells -q -M named --node type1,cell -o node.pred c1.tok
	run scview -H node.pred
	assert_output --partial '"node.X:11"'
	refute_output --partial '"node.Z:9"'
}

@test "--head position=K: cells with fewer CLS tokens are refused by predictions, validations and sctrain eval" {
	local short="c1.masked: head cell_type: position 2: a cell begins with 1 CLS token: expected at most 0"
	sed -i '/"cls_tokens"/d' m3/config.json # as a model that does not say how many it reads
	scpredict cells -q -M m3 -o c3.pred c3.tok
	run -1 scpredict cells -M m3 -o c1.pred c1.tok
	assert_output "scpredict cells: ${short/masked/tok}"
	run -1 scpredict attribution -M m3 --head cell_type -o c1.pred c1.tok
	assert_output "scpredict attribution: ${short/masked/tok}"
	assert_not_exists c1.pred
	scembed -q -M m3 -o c1.emb c1.tok # embeddings read no head
	run -1 sctrain wced --config tiny --head cell_type:ce,position=2 --eval c1.masked -o never c3.masked
	assert_output "sctrain wced: $short"
	assert_not_exists never/model.safetensors
	run -1 sctrain eval -M m3 c1.masked
	assert_output "sctrain eval: $short"
	cp -r m3 moved
	sed -i '0,/"weight":/s//"position": 1, &/' moved/config.json # of the whole-cell head
	sctrain eval -M moved c3.masked >moved.tsv
	run -1 sctrain eval -M moved c1.masked
	assert_output "sctrain eval: c1.masked: head wced: position 1: a cell begins with 1 CLS token: expected at most 0"
}

@test "sctrain --head: a column named as the training's own head; two ontologies from one pipe; cells without a label" {
	mkdir names && cd names
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import corrmask.stream as scstream
		stream, blocks = scstream.read("../c1.tok"), []
		for b in stream:
		    b["cell_type"].codes[::3] = -1
		    blocks.append(b)
		names = {"cell_type": "wced", "donor": "expression"}
		blocks = [{names.get(c["name"], c["name"]): b[c["name"]] for c in stream.header["columns"]} for b in blocks]
		for c in stream.header["columns"]:
		    c["name"] = names.get(c["name"], c["name"])
		scstream.write("named.tok", stream.header, blocks)
	END
	maskgen -q --objective cell -b 20 --keep wced,expression --count-kept -o named.masked named.tok
	maskgen -q --objective value -b 20 --keep wced,expression --count-kept -o named.values named.tok
	run -0 sctrain wced --config tiny --head wced:ce --head expression:ce -o cell named.masked
	assert_line --partial "20 of 60 cells have no label in column 'wced'"
	run -0 head -1 cell/train.tsv
	assert_output --partial "loss.wced.value_other	loss.column.wced	loss.expression"
	scpredict cells -q -M cell --head column.wced -o cell.pred named.tok
	sctrain eval -M cell named.masked >eval.tsv
	sctrain value -q --config tiny --init cell --head wced:ce --head expression:ce -o value named.values
	scpredict cells -q -M value --head column.expression -o value.pred named.tok
	scpredict cells -q -M value --head wced -o value.pred named.tok
	run -2 sctrain wced --head wced:ce --head wced:mse -o never named.masked
	assert_line --index 0 "sctrain wced: column 'wced' is to be predicted twice"
	cat >>both.obo ../t.obo <(printf '\n[Term]\nid: Y:1\nname: donor1\n\n[Term]\nid: Y:2\nname: donor2\n\n[Term]\nid: Y:3\nname: donor3\n')
	sctrain wced -q --config tiny --head cell_type:hce --head donor:hce --ontology <(cat both.obo) -o piped ../c1.masked
	sctrain wced -q --config tiny --head cell_type:hce --head donor:hce --ontology both.obo -o file ../c1.masked
	diff -x train.tsv -r piped file
}

@test "sctrain --head from=STEP: the pooler stays as it is until a head reads it" {
	local head from changes
	local run=(sctrain wced -q --config bmfm-tiny --lr 0.01 --warmup 0 --weight-decay 1 --dropout 0 --save-every 1 --keep-checkpoints 9)
	mkdir pooler && cd pooler
	maskgen -q --objective cell -b 12 --keep cell_type,donor --count-kept -o five.masked ../c1.tok
	"${run[@]}" --head cell_type:ce,from=2 --head donor:ce,from=3 -o late five.masked
	"${run[@]}" --head cell_type:ce,from=3 --head donor:ce,from=2 -o other five.masked
	"${run[@]}" --head cell_type:ce,from=3 --head donor:ce -o first five.masked
	for head in "late 2" "other 2" "first 0"; do
		run $PYTHON - $head <<-'END'
			import json, struct, sys
			import numpy as np
			def pooler(step):
			    f = open(f"{sys.argv[1]}/checkpoint-{step}/model.safetensors", "rb")
			    n = struct.unpack("<Q", f.read(8))[0]
			    h = json.loads(f.read(n))
			    def read(name):
			        f.seek(8 + n + h[name]["data_offsets"][0])
			        return np.frombuffer(f.read(h[name]["data_offsets"][1] - h[name]["data_offsets"][0]), "<f4").copy()
			    return [read("core.pooler.dense." + part) for part in ("weight", "bias")]
			start = int(sys.argv[2])
			steps = [pooler(k) for k in range(1, 5)] # after k updates
			for k in range(1, 4):
			    moved = [bool((a != b).any()) for a, b in zip(steps[k - 1], steps[k])]
			    assert moved == [k >= start] * 2, (k, moved)
		END
		assert_success
	done
}

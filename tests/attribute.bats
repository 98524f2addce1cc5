#!/usr/bin/env bats
# scpredict attribution: integrated gradients of both encoders against a float64 integral of another form (tests/ref/attribute.py), their sum, the
# same values for any batch and number of threads, and what is refused.
load helper

setup_file() {
	need_tool scsim rankenc maskgen sctrain scembed scview
	cd "$BATS_FILE_TMPDIR"
	export BATS_TEST_DIRNAME
	scsim -q --cells 150 --genes 40 --modules 4 --types 3 --depth 300 --donors 3 --seed 3 -o sim.counts
	rankenc -q --fit sim.counts -o vocab.tsv
	rankenc -q -m vocab.tsv sim.counts -o plain.tok
	$PYTHON - <<-'END'
		import os, sys
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream, blocks = scstream.read("plain.tok"), []
		for b in stream:
		    b["size"] = b["n_counts"] / 100
		    blocks.append(b)
		stream.header["columns"].append({"name": "size", "type": "f64", "shape": "scalar"})
		scstream.write("all.tok", stream.header, blocks)
	END
	maskgen -q --strategy none --keep cell_type,donor,size -b 25 --epochs 3 -o train.masked all.tok
	sctrain cells -q -c tiny --lr 0.002 --head cell_type:ce --head size:mse --head donor:focal,reverse=1 train.masked -o bert
	rankenc -q --fit sim.counts --vocab-style bmfm -o bmfm.vocab
	rankenc -q -m bmfm.vocab --vocab-style bmfm --cls 2 sim.counts -o bmfm.tok
	maskgen -q --objective cell --strategy random --rate 0.2 --keep cell_type,donor --batch 12 bmfm.tok -o bmfm.masked
	sctrain cells -q -c bmfm-tiny --head cell_type:focal --head donor:ce,position=1 bmfm.masked -o llama
	scsample -q -n 2 all.tok -o few.tok
	scsample -q -n 2 bmfm.tok -o fewb.tok
	scsample -q -n 10 bmfm.tok -o some.tok
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# attribute MODEL HEAD TOKENS [COLUMNS]: the table of the reference
attribute() {
	scpredict attribution -q -M "$1" --head "$2" -o x.att "$3" && scview x.att -c "${4:-cell,attributed,output,baseline,token,attribution}"
}

reference() { $PYTHON "$BATS_TEST_DIRNAME/ref/attribute.py" "$@"; }

@test "scpredict attribution: BERT, a class, a number, a reversed head: as the integral in float64" {
	scview few.tok -c cell,token > few.tsv
	attribute bert cell_type few.tok > a.tsv
	reference bert few.tsv a.tsv cell_type 2 0.01 # measured 2e-3: ReLU makes corners
	attribute bert donor few.tok > a.tsv
	reference bert few.tsv a.tsv donor 2 0.01
	scpredict attribution -q -M bert --head size few.tok | scview - -c cell,output,baseline,token,attribution | sed 's/\t/\t-\t/' > a.tsv
	reference bert few.tsv a.tsv size 2 0.01
	paste <(cut -f 3 a.tsv | tail -n +2) <(scpredict cells -q -M bert --head size few.tok | scview - -c predicted | tail -n +2) |
		awk '($1 - $2) ^ 2 > 1e-8 { exit 1 }'
}

# bats test_tags=slow
@test "scpredict attribution: bmfm_llama with values, whose first norm makes the baseline a cliff" {
	values fewb.tok > few.tsv
	for head in cell_type donor; do
		attribute llama $head fewb.tok > a.tsv
		reference llama few.tsv a.tsv $head 38 0.002 # measured 3e-4
	done
}

@test "scpredict attribution: the sum is output - baseline within 1 %, and the columns say so" {
	local model
	for model in bert llama; do
		local tok=all.tok && [ $model = bert ] || tok=some.tok
		attribute $model cell_type $tok output,baseline,completeness,steps,attribution,token > a.tsv
		awk -F '\t' 'NR > 1 { n = split($5, a, " "); sum = 0; for (i in a) sum += a[i]; d = $1 - $2; bad += n != split($6, t, " ") || $4 < 16
			bad += (sum - d) ^ 2 > (0.0101 * d) ^ 2 || (sum / d - $3) ^ 2 > 1e-6 || n < 10; rows++ } END { exit bad || rows < 10 }' a.tsv
	done
	scpredict attribution -M llama --head donor --report report.tsv some.tok -o some.att
	grep -q "^cells_incomplete	0$" report.tsv
	awk '$1 == "completeness_error" { exit !($2 > 0 && $2 <= 0.01) }' report.tsv
}

@test "scpredict attribution: a step too few to add up is said" {
	$PYTHON - <<-'END'
		import json, os, shutil
		import numpy as np
		shutil.copytree("bert", "steep", dirs_exist_ok=True)
		raw = bytearray(open("bert/model.safetensors", "rb").read())
		n = int.from_bytes(raw[:8], "little")
		for name, t in json.loads(raw[8:8 + n]).items(): # attention that switches at once
		    if ".self.query." in name or ".self.key." in name:
		        a, b = (8 + n + x for x in t["data_offsets"])
		        raw[a:b] = (np.frombuffer(raw[a:b], "<f4") * 300).astype("<f4").tobytes()
		open("steep/model.safetensors", "wb").write(raw)
	END
	undigest steep/model.safetensors
	run -0 scpredict attribution -M steep --head size few.tok -o steep.att
	assert_output --regexp "warning: [12] of 2 cells: their attributions do not add up to output - baseline within 1 %, or still change, after 256 steps"
	[ "$(scview steep.att -c steps | sort -n | tail -n 1)" = 256 ]
}

@test "scpredict attribution: batches and threads change only rounding, or nothing" {
	scpredict attribution -q -M llama --head cell_type some.tok -o one.att
	scpredict attribution -q -M llama --head cell_type -@ 2 some.tok -o two.att
	cmp <(scview one.att) <(scview two.att)
}

@test "scpredict attribution: cells without genes keep their row" {
	$PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream, blocks = scstream.read("fewb.tok"), []
		for b in stream:
		    for name in ("token", "count"): # of the first cell only the two tokens for the whole cell
		        at, x = b[name]
		        b[name] = scstream.Ragged(np.concatenate([at[:1], at[1:] - at[1] + 2]), np.concatenate([x[:2], x[at[1]:]]))
		    blocks.append(b)
		scstream.write("bare.tok", stream.header, blocks)
	END
	run -0 scpredict attribution -M llama --head donor bare.tok -o bare.att
	assert_output --partial "1 of 2 cells have no gene: they have no attributions"
	run -0 scview bare.att -c output,steps,attribution
	assert_line --regexp "^(NA|NaN|nan)?	0	$"
}

@test "scpredict attribution: what it cannot do is one line" {
	run -1 scpredict attribution -M bert --head nothing all.tok -o no.att
	assert_output "scpredict attribution: --head: the model in bert has no 'nothing': expected cell_type, size, donor"
	scview few.tok -c cell >/dev/null
	scpredict attribution -q -M bert --head size few.tok -o once.att
	assert_file_not_exist no.att
}

# README.md, the model card that sctrain writes into a finished model.
load helper

setup_file() {
	need_tool scsim rankenc maskgen sctrain scsample depgraph
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 80 --genes 40 --modules 4 --types 3 --rarest 0.2 --depth 300 --seed 1 -o sim.counts
	rankenc -q --fit -o v.tsv sim.counts
	rankenc -q -m v.tsv --max-len 30 -o all.tok sim.counts
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
	depgraph -q --top-genes 0 --min-cells 5 -o g.graph train.tok
	maskgen -q -g g.graph --strategy corrmask --rate 0.2 --epochs 2 --batch 8 --seed 7 -o train.masked train.tok
	maskgen -q --seed 9 -o test.masked test.tok
	sctrain mlm -q "${MLM[@]}" -o mlm train.masked
}

MLM=(--config tiny --lr 0.003 --seed 5 --save-every 4 --eval test.masked --eval-every 5)

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

# card MODEL: its front matter is YAML of the hub's keys; the keys and values below are printed
card() {
	$PYTHON - "$1/README.md" <<-'P'
		import sys
		text = open(sys.argv[1], encoding="utf-8").read()
		empty, front, body = text.split("---\n", 2)
		assert empty == "" and front.isascii() and "\t" not in front
		print("library_name", front.split("library_name: ")[1].split("\n")[0])
		try:
		    import yaml
		    y = yaml.safe_load(front)
		    assert list(y) == [k for k in ("license", "library_name", "pipeline_tag", "datasets", "tags") if k in y], y
		    assert y["license"] == "unknown" and y["datasets"] == [] and all(isinstance(t, str) for t in y["tags"]) and "corrmask" in y["tags"]
		except ImportError:  # it has no text of users all the same, see below
		    pass
		for line in body.split("\n"):
		    if line.startswith("    "):
		        print(line[4:])
		    else:
		        assert line.isascii() and "<" not in line and "|" not in line, line
	P
}

@test "card: what it says is what the stream, the settings and train.tsv say" {
	run -0 card mlm
	printf '%s\n' "$output" >said
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'P'
		import csv, json
		import corrmask.stream as scs
		said = {}
		for line in open("said"):
		    name, _, value = line.rstrip("\n").partition(" ")
		    said.setdefault(name, []).append(value)
		h = scs.read("train.masked").header
		loader, v = h["loader"], h["vocab"]
		assert said["library_name"] == ["transformers"]
		assert said["cells"] == [str(loader["rows"])] == ["60"] and said["genes"] == [str(len(v["id"]) - v["special"])]
		assert said["vocabulary"] == [v["digest"]] and json.loads(said["files"][0]) == loader["files"]
		for key in ("graph", "strategy", "rate", "lambda", "epochs", "batch", "steps"):
		    assert said[key][0] == str(loader[key]), key
		assert said["seed"] == ["7", "5"] and said["lr"][0] == "0.003"
		for p in h["provenance"]:
		    shorter = " ".join(repr(float(w)) if len(w) > 17 and w.replace(".", "").isdigit() else w for w in p["options"].split(" "))
		    assert p["version"] + " " + shorter in said[p["program"]], p
		assert "--rarest 0.2 " in said["scsim"][0] and said["mlm"] == [""]
		assert "-m MODEL/vocab.tsv --max-len 30 cells.counts -o cells.tok" in said["rankenc"]
		rows = list(csv.DictReader(open("mlm/train.tsv"), delimiter="\t"))
		best = min((r for r in rows if r["eval_loss"] != "NA"), key=lambda r: float(r["eval_loss"]))
		for key in ("loss", "eval_loss", "eval_accuracy", "eval_perplexity"):
		    assert said[key] == [best[key]], key
		assert said["step"] == [best["step"]]
		assert not {"seconds", "tokens_per_s", "kernels"} & set(said)
	P
}

@test "card: the same bytes from another folder, with threads, and after a stop; a resumed one has it at the end alone" {
	sctrain mlm -q "${MLM[@]}" -@ 2 -o elsewhere train.masked
	cmp mlm/README.md elsewhere/README.md
	head -c $(($(stat -c %s train.masked) / 2)) train.masked >half
	run -1 sctrain mlm -q "${MLM[@]}" -o cut half
	assert_not_exist cut/README.md
	assert_not_exist cut/checkpoint-*/README.md
	sctrain mlm -q "${MLM[@]}" --resume -o cut train.masked
	cmp mlm/README.md cut/README.md
}

@test "card: one that was filled in stays, without its line with --force too; then the next one is written" {
	cp -r mlm mine
	sed -i 's/^license: .*/license: mit/' mine/README.md
	sctrain mlm -q "${MLM[@]}" --resume -o mine train.masked
	grep -q '^license: mit' mine/README.md
	sed -i '/^# sctrain overwrites this card/d' mine/README.md
	sctrain mlm "${MLM[@]}" --force -o mine train.masked
	grep -q '^license: mit' mine/README.md
	rm mine/README.md
	sctrain mlm -q "${MLM[@]}" --force -o mine train.masked
	cmp mlm/README.md mine/README.md
}

@test "card: columns, labels and options of any text leave it valid" {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'P'

		import corrmask.stream as scs
		s = scs.read("train.tok")
		odd = ["--- # : {x}", "<script>|`````", "- a: [1, 'b'\"", "é\u2028\u0085漢"]
		h = s.header
		column = next(c for c in h["columns"] if c["name"] == "cell_type")
		column["categories"] = odd[:len(column["categories"])]
		blocks = [dict(b) for b in s]
		column["name"] = "a: b # |---|"
		h["provenance"].append({"program": "---\nx: y", "version": "1\n---", "options": "--where 'a\n---\nb: [' \t\u001b[0m é"})
		for b in blocks:
		    b[column["name"]] = b.pop("cell_type")
		scs.write("odd.tok", h, blocks)
	P
	maskgen -q --strategy none --keep "a: b # |---|" --batch 10 --epochs 2 -o odd.masked odd.tok
	sctrain cells -q --config tiny --label "a: b # |---|" -o odd odd.masked
	run -0 card odd
	assert_line --partial "a: b # |---| cells, 3 classes"
	assert_line --partial "<script>"
	LC_ALL=C grep -q '[[:cntrl:]]' odd/README.md && fail "control characters"
	sctrain cells -q --config tiny --head "a: b # |---|:ce,position=0" -o odd2 odd.masked
	run -0 card odd2
	front() { sed -n '2,/^---$/p' "$1/README.md"; }
	maskgen -q --strategy none --keep cell_type --batch 10 -o plain.masked train.tok
	sctrain cells -q --config tiny --label cell_type -o plain plain.masked
	cmp <(front odd) <(front plain)
}

@test "card: of every task; transformers is named where it has a class" {
	maskgen -q --strategy columns -b 20 --keep donor -o c.masked sim.counts
	sctrain nb -q --config mlp-nb-tiny -o nb c.masked
	awk -F'\t' 'NR > 1 { print $2 "\t" (NR % 2 ? "odd" : "even") }' v.tsv >labels.tsv
	maskgen -q --strategy none --keep n_counts,cell_type -o l.masked train.tok
	sctrain genes -q --config tiny --gene-labels labels.tsv -o genes l.masked
	sctrain cells -q --config tiny --head n_counts:mse -o number l.masked
	rankenc -q --fit --vocab-style bmfm -o b.tsv sim.counts
	rankenc -q -m b.tsv -o b.tok sim.counts
	maskgen -q --objective cell -o w.masked b.tok
	sctrain wced -q --config bmfm-tiny -o wced w.masked
	for pair in nb:corrmask wced:corrmask genes:transformers number:transformers mlm:transformers; do
		run -0 card "${pair%:*}"
		assert_line "library_name ${pair#*:}"
	done
	grep -q 'BertForTokenClassification.from_pretrained' genes/README.md
	run ! grep -q from_pretrained nb/README.md
}

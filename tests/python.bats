#!/usr/bin/env bats
# In and out of the Python world: datasets of Hugging Face, Geneformer's pickles, PyTorch and transformers, pip.
# PEER_PYTHON is a Python with pyarrow, datasets, torch, transformers and accelerate (make peers); a test skips if a module is not there.
load helper

PEER_PYTHON=${PEER_PYTHON:-$BATS_TEST_DIRNAME/../build/peers/bin/python}
SRC=$BATS_TEST_DIRNAME/../python

setup_file() {
	need_tool scsim rankenc h5tok scview
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 700 --genes 150 --types 3 --rarest .2 --donors 2 --seed 2 -o sim.counts
	rankenc -q --fit sim.counts -o vocab.tsv
	rankenc -q -m vocab.tsv sim.counts -o sim.tok
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 HF_DATASETS_CACHE=$BATS_FILE_TMPDIR/cache HF_HOME=$BATS_FILE_TMPDIR/cache
}

# peer MODULE...: skip unless PEER_PYTHON has them
peer() {
	local m
	for m; do
		"$PEER_PYTHON" -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$m'))" 2>/dev/null ||
			skip "no $m in PEER_PYTHON=$PEER_PYTHON"
	done
}

scstream() { "$PEER_PYTHON" "$SRC/scstream" "$@"; }

# rows STREAM: its rows without running numbers, by name
rows() {
	scview -c "$(scview -n 0 "$1" | tr '\t' '\n' | grep -vx cell | sort | paste -sd,)" "$1"
}

# bats test_tags=data
@test "from-geneformer: the pickles give the vocabulary that rankenc makes of the tables; to-geneformer gives them back" {
	T=$SHARED/geneformer
	need geneformer/token_dictionary_gc30M.tsv.gz
	for v in gc30M gc104M; do
		# as Geneformer's are: numbers of V1 are numpy's int16, medians numpy's float64
		$PYTHON - "$T" $v <<-'END'
		import csv, gzip, pickle, numpy as np, sys
		def table(name):
		    with gzip.open("%s/%s_%s.tsv.gz" % (sys.argv[1], name, sys.argv[2]), "rt") as f:
		        return [r[:2] for r in csv.reader(f, delimiter="\t")][1:]
		number = np.int16 if sys.argv[2] == "gc30M" else int
		for name, pairs, kind in (("token", table("token_dictionary"), lambda x: number(x) if int(x) > 1 else int(x)),
		                          ("median", table("gene_median"), np.float64), ("names", table("gene_name_id"), str)):
		    with open("%s_%s.pkl" % (name, sys.argv[2]), "wb") as f:
		        pickle.dump({k: kind(x) for k, x in pairs}, f)
		END
		$PYTHON "$SRC/scstream" from-geneformer token_$v.pkl median_$v.pkl --names names_$v.pkl -o $v.tsv
		scsim -q --cells 30 --genes 2000 -o some.counts
		scview --vocab some.counts | awk -F'\t' 'NR > 1 { print $2 }' | paste - <(awk -F'\t' '$2 ~ /^ENSG/ { print $2 }' $v.tsv | head -2000) >map.tsv
		rankenc -q --map map.tsv -m $v.tsv some.counts -o one.tok
		rankenc -q --map map.tsv -t "$T/token_dictionary_$v.tsv.gz" -m "$T/gene_median_$v.tsv.gz" some.counts -o two.tok
		cmp <(scview one.tok) <(scview two.tok)
		cmp <(scview --vocab one.tok | cut -f1,2,4) <(scview --vocab two.tok | cut -f1,2,4)
		assert [ "$(awk -F'\t' '$3 != ""' $v.tsv | wc -l)" -gt 15000 ]
		assert_equal "$(grep -P '\tENSG00000139618\t' $v.tsv | cut -f3)" BRCA2
		$PYTHON "$SRC/scstream" to-geneformer $v.tsv back_token.pkl back_median.pkl
		$PYTHON - $v <<-'END'
		import pickle, sys
		load = lambda f: pickle.load(open(f, "rb"))
		token, median = load("token_%s.pkl" % sys.argv[1]), load("median_%s.pkl" % sys.argv[1])
		assert load("back_token.pkl") == token and all(type(x) is int for x in load("back_token.pkl").values())
		assert load("back_median.pkl") == {g: median[g] for g in token if g[0] != "<"}
		END
	done
}

@test "from-geneformer: pickles that are something else are refused, and none of their code runs" {
	no() { # no MESSAGE TOKENS MEDIANS
		run -1 $PYTHON "$SRC/scstream" from-geneformer "$2" "$3" -o no.tsv
		assert_output --partial "scstream: $1"
		assert_equal "${#lines[@]}" 1
		assert_not_exist no.tsv
	}
	$PYTHON -c '
import os, pickle
class Evil:
    def __reduce__(self):
        return os.system, ("touch ran",)
save = lambda name, x: pickle.dump(x, open(name, "wb"))
save("evil.pkl", {"<pad>": Evil()})
save("list.pkl", [1, 2])
save("token.pkl", {"<pad>": 0, "<mask>": 1, "ENSG1": 2, "ENSG2": 3})
save("gap.pkl", {"<pad>": 0, "ENSG1": 2})
save("median.pkl", {"ENSG1": 1.5})
save("negative.pkl", {"ENSG1": 1.5, "ENSG2": -1.0})'
	no "evil.pkl: not a pickle of names and numbers: it calls posix.system" evil.pkl median.pkl
	assert_not_exist ran
	no "list.pkl: expected a pickled dictionary of names" list.pkl median.pkl
	no "gap.pkl: expected the numbers from 0 to 1, each once" gap.pkl median.pkl
	no "median.pkl: no median for gene ENSG2 of token.pkl" token.pkl median.pkl
	no "negative.pkl: median -1.0 of gene ENSG2, expected a number above 0" token.pkl negative.pkl
	no "vocab.tsv: expected a pickled dictionary" vocab.tsv median.pkl
	no "[Errno 2] No such file or directory: 'nowhere.pkl'" nowhere.pkl median.pkl
}

@test "datasets: what to-dataset writes, the library datasets loads; every column and missing value" {
	peer pyarrow datasets
	$PYTHON - "$SRC" <<-'END'
	import sys, numpy as np
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	s = scstream.read("sim.tok")
	more = [{"name": "age", "type": "i64", "shape": "scalar"}, {"name": "age.missing", "type": "u8", "shape": "scalar"},
	        {"name": "score", "type": "f64", "shape": "scalar"}, {"name": "note", "type": "str", "shape": "scalar"},
	        {"name": "flag", "type": "categorical", "shape": "scalar", "categories": ["False", "True"], "dtype": "boolean"}]
	h = dict(s.header, columns=s.header["columns"] + more)
	def blocks():
	    for b in s:
	        n = np.arange(b.rows)
	        yield {**b, "age": n * 3, "age.missing": (n % 5 == 0).astype("u1"), "score": np.where(n % 4, n / 3, np.nan), "note": ["note %d" % i for i in n],
	               "flag": (n % 3 - 1).astype("i4")}
	scstream.write("typed.tok", h, blocks())
	END
	rm -rf typed.dataset
	scstream to-dataset typed.tok typed.dataset --lengths lengths.pkl
	"$PEER_PYTHON" - "$SRC" <<-'END'
	import sys, datasets, numpy as np, pickle
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	d, n = datasets.load_from_disk("typed.dataset"), 0
	assert d.column_names == ["input_ids", "length", "barcode", "n_counts", "cell_type", "donor", "age", "score", "note", "flag"], d.column_names
	for block in scstream.read("typed.tok"):
	    o, t = block["token"]
	    for i in range(block.rows):
	        r = d[n]
	        assert r["input_ids"] == t[o[i]:o[i + 1]].tolist() and r["length"] == o[i + 1] - o[i]
	        assert (r["barcode"], r["n_counts"], r["note"]) == (block["barcode"][i], block["n_counts"][i], block["note"][i])
	        assert r["cell_type"] == block["cell_type"].categories[block["cell_type"].codes[i]]
	        assert r["age"] == (None if block["age.missing"][i] else block["age"][i])
	        assert r["score"] == block["score"][i] or (np.isnan(r["score"]) and np.isnan(block["score"][i]))
	        assert r["flag"] is [None, False, True][block["flag"].codes[i] + 1]
	        n += 1
	assert len(d) == n == 700 and pickle.load(open("lengths.pkl", "rb")) == d["length"][:]
	assert d.features["input_ids"].feature.dtype == "int32"
	d.shuffle(seed=1).train_test_split(.2)
	END
	# and back
	scstream from-dataset typed.dataset -m vocab.tsv -o typed.back
	cmp <(rows typed.tok) <(rows typed.back)
	scview --check typed.back
}

@test "datasets: a dataset of the library, in several files and of several types, becomes a stream that the tools read" {
	peer pyarrow datasets
	need_tool depgraph maskgen
	rm -rf made.dataset
	"$PEER_PYTHON" - "$SRC" <<-'END'
	import sys, datasets, numpy as np
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	rows = {"input_ids": [], "length": [], "cell_type": [], "disease": [], "organ": [], "age": [], "ok": [], "cell": [], "vector": []}
	for b in scstream.read("sim.tok"):
	    o, t = b["token"]
	    for i in range(b.rows):
	        n = len(rows["length"])
	        rows["input_ids"].append(t[o[i]:o[i + 1]].astype("i2").tolist())
	        rows["length"].append(int(o[i + 1] - o[i]))
	        rows["cell_type"].append(b["cell_type"].categories[b["cell_type"].codes[i]])
	        rows["disease"].append(n % 3)
	        rows["organ"].append(None if n % 7 == 0 else "organ %d" % (n % 4))
	        rows["age"].append(n / 2)
	        rows["ok"].append(n % 2 == 0)
	        rows["cell"].append(1000 + n)
	        rows["vector"].append([1.5, n])
	f = datasets.Features({"input_ids": datasets.LargeList(datasets.Value("int16")), "length": datasets.Value("int64"), "cell_type": datasets.Value("string"),
	    "disease": datasets.ClassLabel(names=["healthy", "dcm", "hcm"]), "organ": datasets.Value("large_string"), "age": datasets.Value("float32"),
	    "ok": datasets.Value("bool"), "cell": datasets.Value("int32"), "vector": datasets.List(datasets.Value("float64"))})
	d = datasets.Dataset.from_dict(rows, features=f)
	d.save_to_disk("made.dataset", num_shards=3)
	d.shuffle(seed=3).save_to_disk("shuffled.dataset")
	datasets.DatasetDict({"train": d, "test": d}).save_to_disk("both.dataset")
	d.rename_column("input_ids", "tokens").save_to_disk("other.dataset")
	END
	run -0 --separate-stderr scstream from-dataset made.dataset -m vocab.tsv -o made.tok
	assert_equal "$stderr" "scstream: note: column vector of made.dataset is neither numbers nor texts and is left out"
	cmp <(scview -c token,cell_type made.tok) <(scview -c token,cell_type sim.tok)
	scview -c cell,barcode,obs_cell,disease,organ,age,ok made.tok | awk -F'\t' 'BEGIN { split("healthy dcm hcm", d, " ") } NR > 1 {
		n = NR - 2
		want = n FS n FS (1000 + n) FS d[n % 3 + 1] FS (n % 7 ? "organ " n % 4 : "NA") FS n / 2 FS (n % 2 ? "False" : "True")
		if ($0 != want) { print "row " n ": " $0 " is not " want; exit 1 } } END { if (NR != 701) exit 1 }'
	depgraph -q --min-cells 5 --min-overlap 10 made.tok -o made.graph || depgraph -q made.tok -o made.graph
	maskgen -q -g made.graph --strategy corrmask made.tok -o made.masked
	scview --check made.masked
	scstream from-dataset shuffled.dataset -m vocab.tsv -o shuffled.tok 2>/dev/null
	cmp <(scview -c token,age shuffled.tok | sort) <(scview -c token,age made.tok | sort)
	no() { # no MESSAGE DATASET [VOCAB]
		run -1 scstream from-dataset "$2" -m "${3:-vocab.tsv}" -o no.tok
		assert_output --partial "scstream: $1"
		assert_not_exist no.tok
	}
	no "both.dataset: several datasets: name one of both.dataset/train, both.dataset/test" both.dataset
	no "other.dataset: no column input_ids (it has: tokens, length" other.dataset
	no "nowhere: no state.json in it" nowhere
	head -20 vocab.tsv >short.tsv
	no "made.dataset: row 0 or one after it has token" made.dataset short.tsv
	last=$(ls made.dataset/*.arrow | tail -1)
	truncate -s -8 "$last"
	no "$last: cut short: it has no end mark" made.dataset
	truncate -s -3000 "$last"
	no "$last: " made.dataset
	: >"$last"
	no "$last: " made.dataset
}

@test "from-dataset: tokens of another vocabulary are refused, whatever their numbers" {
	peer pyarrow
	rankenc -q --fit --vocab-style v2 sim.counts -o v2.tsv
	rankenc -q -m v2.tsv --max-len 50 sim.counts -o v2.tok
	rankenc -q -m v2.tsv --vocab-style v1 sim.counts -o bare.tok
	for t in sim v2 bare; do scstream to-dataset $t.tok $t.ends; done
	{ cat vocab.tsv; printf '%d\tMORE%d\t\t1\n' 152 1 153 2; } > larger.tsv
	run -1 scstream from-dataset v2.ends -m larger.tsv -o no.tok
	names "v2.ends 2 3 larger.tsv --no-special-tokens"
	for d in sim bare; do
		run -1 scstream from-dataset $d.ends -m v2.tsv -o no.tok
		names "$d.ends 700 v2.tsv --no-special-tokens"
	done
	assert_not_exist no.tok
	scstream from-dataset sim.ends -m vocab.tsv -o sim.again
	scstream from-dataset v2.ends -m v2.tsv -o v2.again
	scstream from-dataset bare.ends -m v2.tsv --no-special-tokens -o bare.again
	for t in sim v2 bare; do cmp <(scview -c token $t.tok) <(scview -c token $t.again); done
}

@test "datasets: ranks of tokens are position_ids" {
	peer pyarrow datasets
	rankenc -q -m vocab.tsv --ties group sim.counts -o group.tok
	rm -rf group.dataset
	scstream to-dataset group.tok group.dataset
	"$PEER_PYTHON" - "$SRC" <<-'END'
	import sys, datasets
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	d, n = datasets.load_from_disk("group.dataset"), 0
	assert d.column_names[:3] == ["input_ids", "position_ids", "length"], d.column_names
	for block in scstream.read("group.tok"):
	    (o, t), (_, r) = block["token"], block["rank"]
	    for i in range(block.rows):
	        row, n = d[n], n + 1
	        assert row["input_ids"] == t[o[i]:o[i + 1]].tolist() and row["position_ids"] == r[o[i]:o[i + 1]].tolist()
	        assert row["length"] == len(row["position_ids"])
	assert n == len(d) > 0
	END
}

@test "datasets: to-dataset leaves no folder after a failure, and overwrites none" {
	peer pyarrow
	mkdir -p there
	run -1 scstream to-dataset sim.tok there
	assert_output "scstream: there: exists already"
	head -c $(($(stat -c %s sim.tok) / 2)) sim.tok >cut.tok
	run -1 scstream to-dataset cut.tok cut.dataset
	assert_output --partial "cut.tok: the stream is cut short"
	run -1 scstream to-dataset sim.counts counts.dataset
	assert_output "scstream: sim.counts: this is a counts stream, expected tokens, made by rankenc"
	assert_equal "$(ls -d cut.dataset* counts.dataset* 2>/dev/null)" ""
	run -1 env PYTHONPATH="$BATS_TEST_DIRNAME" "$PEER_PYTHON" -c "
import sys
sys.modules['pyarrow'] = None
sys.path.insert(0, '$SRC')
import corrmask.stream as scstream
import corrmask.command; sys.exit(corrmask.command.main(['scstream', 'to-dataset', 'sim.tok', 'never']))"
	assert_output "scstream: datasets are read and written with pyarrow, which this Python lacks: pip install pyarrow"
}

# bats test_tags=slow
@test "scstream.Dataset: rows and blocks in a DataLoader with 0, 1 and 3 workers and in shards; every item once; a cut stream is an error" {
	peer torch
	maskgen -q --epochs 2 --batch 16 sim.tok -o sim.masked
	head -c $(($(stat -c %s sim.masked) / 2)) sim.masked >cut.masked
	cat >loader.py <<-'END'
	import sys, torch
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	from torch.utils.data import DataLoader
	plain = lambda rows: [(r["barcode"], r["cell_type"], r["n_counts"], r["token"].tolist()) for r in rows]
	def main():
	    want = []
	    for b in scstream.read("sim.tok"):
	        o, t = b["token"]
	        want += [(b["barcode"][i], int(b["cell_type"].codes[i]), int(b["n_counts"][i]), t[o[i]:o[i + 1]].tolist()) for i in range(b.rows)]
	    cells = scstream.Dataset("sim.tok")
	    assert len(cells) == 700 and len(scstream.Dataset("sim.tok", shard=2, shards=3)) == 233
	    assert cells.header["kind"] == "tokens"
	    first = next(iter(cells))
	    assert first["token"].dtype == torch.int64 and type(first["n_counts"]) is int and type(first["barcode"]) is str
	    for workers, context in (0, None), (1, "fork"), (3, "fork"), (2, "spawn"):
	        for _ in range(2):
	            got = plain(DataLoader(cells, batch_size=None, num_workers=workers, multiprocessing_context=context))
	            assert got == want, (workers, len(got))
	    got = [r for batch in DataLoader(cells, batch_size=7, num_workers=3, collate_fn=plain) for r in batch]
	    assert len(got) == len(want) and sorted(map(str, got)) == sorted(map(str, want))
	    parts = [plain(DataLoader(scstream.Dataset("sim.tok", shard=s, shards=3), batch_size=None, num_workers=2)) for s in range(3)]
	    assert [parts[i % 3][i // 3] for i in range(len(want))] == want and len(parts[0]) - len(parts[2]) < 2
	    steps = [int(b["step"][0]) for b in scstream.read("sim.masked")]
	    got = [int(b["step"][0]) for b in DataLoader(scstream.Dataset("sim.masked", blocks=True), batch_size=None, num_workers=3)]
	    assert got == steps and len(steps) == 88, (got, steps)
	    for shard, start in (0, 0), (1, 7), (2, 28), (0, 99):
	        rest = scstream.Dataset("sim.masked", blocks=True, shard=shard, shards=3, start=start)
	        got = [int(b["step"][0]) for b in DataLoader(rest, batch_size=None, num_workers=start % 3)]
	        assert got == steps[shard::3][start:] and len(rest) == len(got), (shard, start, got)
	    for b, batch in zip(scstream.read("sim.masked"), DataLoader(scstream.Dataset("sim.masked", blocks=True), batch_size=None, collate_fn=scstream.padded)):
	        (o, x), (p, at), (_, want) = b["input"], b["position"], b["target"]
	        assert {t.dtype for t in batch.values()} == {torch.int64} and len({t.shape for t in batch.values()}) == 1 and len(batch) == 3
	        assert len(batch["labels"]) == b.rows and batch["input_ids"].shape[1] == max(o[1:] - o[:-1])
	        for i in range(b.rows):
	            n, masked = o[i + 1] - o[i], at[p[i]:p[i + 1]].tolist()
	            assert batch["input_ids"][i, :n].tolist() == x[o[i]:o[i + 1]].tolist() and not batch["input_ids"][i, n:].any()
	            assert batch["attention_mask"][i].sum() == n == batch["attention_mask"][i, :n].sum()
	            assert (batch["labels"][i] != -100).nonzero()[:, 0].tolist() == masked
	            assert batch["labels"][i, masked].tolist() == want[p[i]:p[i + 1]].tolist()
	    try:
	        scstream.padded(next(iter(scstream.read("sim.tok"))))
	        raise SystemExit("tokens without masks were padded")
	    except scstream.Error as error:
	        assert "masked" in str(error) and "n_counts" in str(error)
	    for workers in 0, 2:
	        try:
	            list(DataLoader(scstream.Dataset("cut.masked", blocks=True), batch_size=None, num_workers=workers))
	            raise SystemExit("a cut stream was read")
	        except scstream.Error as error:
	            assert "cut short" in str(error)
	if __name__ == "__main__":
	    main()
	END
	"$PEER_PYTHON" -W ignore loader.py "$SRC"
	cat >pipe.py <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	from torch.utils.data import DataLoader
	cells = scstream.Dataset(sys.argv[3])
	print(len(list(DataLoader(cells, batch_size=None, num_workers=int(sys.argv[2])))))
	END
	run -0 "$PEER_PYTHON" -W ignore pipe.py "$SRC" 0 - <sim.tok
	assert_output 700
	run -0 "$PEER_PYTHON" -W ignore pipe.py "$SRC" 1 <(cat sim.tok)
	assert_output 700
	run -1 "$PEER_PYTHON" -W ignore pipe.py "$SRC" 2 - <sim.tok
	assert_output --partial "a pipe can have one reader"
}

@test "scstream.Dataset: without PyTorch the message says so, and the rest of the module works" {
	$PYTHON -c 'import torch' 2>/dev/null && skip "torch is installed"
	run -1 $PYTHON -c "import sys; sys.path.insert(0, '$SRC'); import corrmask.stream as scstream; scstream.read('sim.tok'); scstream.Dataset('sim.tok')"
	assert_output --partial "ImportError: stream.Dataset needs PyTorch"
}

@test "transformers: with the ranks as position_ids a model of shared positions says what sctrain eval says" {
	peer torch transformers
	need_tool maskgen sctrain
	rankenc -q -m vocab.tsv --max-len 64 --ties group sim.counts -o group.tok
	maskgen -q --batch 16 group.tok | sctrain mlm -q --config tiny -o group.model
	maskgen -q --batch 16 --seed 9 group.tok -o group.masked
	sctrain eval -q -M group.model group.masked >group.tsv
	PYTHONPATH=$SRC:$BATS_TEST_DIRNAME/../examples "$PEER_PYTHON" -W ignore - <<-'END'
	import hf_trainer, corrmask.stream as scstream, torch, transformers
	model = transformers.BertForMaskedLM.from_pretrained("group.model").eval()
	loss = count = 0
	for cells in torch.utils.data.DataLoader(scstream.Dataset("group.masked", blocks=True), batch_size=1, collate_fn=hf_trainer.collate):
	    with torch.no_grad():
	        n = int((cells["labels"] != -100).sum())
	        loss, count = loss + model(**cells).loss.item() * n, count + n
	ours = dict(l.split("\t") for l in open("group.tsv").read().split("\n")[1:-1])
	print(loss / count, ours)
	assert count == int(ours["masked"]) and abs(loss / count - float(ours["loss"])) < 1e-5
	END
}

# bats test_tags=slow
@test "examples/hf_trainer.py: Hugging Face's Trainer learns from maskgen's masks, and the tools use its model" {
	peer torch transformers accelerate
	need_tool depgraph maskgen sctrain scembed
	scsim -q --cells 300 --genes 80 --modules 4 --types 2 --module-share 0.8 --depth 600 --seed 5 -o few.counts
	rankenc -q --fit few.counts | rankenc -q -m /dev/stdin few.counts -o few.tok
	depgraph -q few.tok -o few.graph
	maskgen -q -g few.graph --strategy corrmask --epochs 8 --batch 16 few.tok -o train.masked
	maskgen -q --batch 16 --seed 9 few.tok -o held.masked
	sed -e 's/hidden_size=64/hidden_size=32/; s/num_hidden_layers=2/num_hidden_layers=1/; s/intermediate_size=128/intermediate_size=64/; s/1e-3/1e-2/' \
		"$BATS_TEST_DIRNAME/../examples/hf_trainer.py" >small.py
	run -1 env PYTHONPATH="$SRC" "$PEER_PYTHON" -W ignore small.py train.masked
	assert_output "usage: hf_trainer.py INPUT.masked OUTPUT.model [tiny|geneformer]"
	run -0 env PYTHONPATH="$SRC" OMP_NUM_THREADS=1 "$PEER_PYTHON" -W ignore small.py train.masked hf.model
	sctrain eval -q -M hf.model held.masked >hf.tsv
	cat hf.tsv
	loss=$(awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") c = i } NR == 2 { print $c }' hf.tsv)
	# an even guess among the genes costs log(80) = 4.38
	assert [ "$(awk "BEGIN { print ($loss < 4.3) }")" = 1 ]
	scembed -q -M hf.model few.tok -o hf.emb
	assert_equal "$(scview hf.emb | wc -l)" 301
}

@test "pip installs the package from the sources, with the command scstream" {
	for python in "$PYTHON" python3 "$PEER_PYTHON" none; do
		[ "$python" != none ] || skip "no Python with pip, setuptools and wheel (or a setuptools that has it)"
		"$python" -c 'import importlib.util as u, sys
sys.exit(not all(map(u.find_spec, ("numpy", "pip", "setuptools"))) or not (u.find_spec("wheel") or u.find_spec("setuptools.command.bdist_wheel")))' \
			2>/dev/null && break
	done
	mkdir -p "$BATS_TEST_TMPDIR/sources/docs" # setuptools writes beside the sources
	(cd "$BATS_TEST_DIRNAME/.." && cp -r pyproject.toml LICENSE python "$BATS_TEST_TMPDIR/sources" && cp docs/python.md "$BATS_TEST_TMPDIR/sources/docs")
	"$python" -m pip wheel -q --no-index --no-deps --no-build-isolation -w "$BATS_TEST_TMPDIR/wheel" "$BATS_TEST_TMPDIR/sources"
	"$python" -m pip install -q --no-index --no-deps --target site "$BATS_TEST_TMPDIR"/wheel/*.whl
	run -0 env PYTHONPATH=site "$python" site/bin/scstream --version
	assert_output "scstream $(sed -n 's/^VERSION := //p' "$BATS_TEST_DIRNAME/../Makefile") (scstream 1.0)"
	run -0 env PYTHONPATH=site "$python" site/bin/scstream sim.tok
	assert_output --partial '"kind": "tokens"'
	run -0 env PYTHONPATH=site "$python" site/bin/scstream to-geneformer vocab.tsv t.pkl m.pkl
	run -2 env PYTHONPATH=site "$python" site/bin/scstream
	assert_output --partial "Usage: scstream FILE"
}

@test "scstream: every command has help, and docs/python.md names the options that there are" {
	for c in from-dataset to-dataset from-geneformer to-geneformer from-bmfm; do
		run -0 $PYTHON "$SRC/scstream" $c --help
		assert_output --partial "usage: scstream $c"
		run -2 $PYTHON "$SRC/scstream" $c
		for o in $(grep -o "scstream $c [^\`]*" "$BATS_TEST_DIRNAME/../docs/python.md" | grep -oE -- ' --?[a-z]+'); do
			$PYTHON "$SRC/scstream" $c --help | grep -qE -- " $o( |,)" || fail "$c has no $o"
		done
	done
	run -0 $PYTHON "$SRC/scstream" --help
	assert_output --partial "from-dataset"
}

@test "stream: the types and kinds of Python's reader are those of the C" {
	run -0 $PYTHON - "$BATS_TEST_DIRNAME/../lib/stream/header.c" "$SRC" <<-'P'
		import re, sys
		sys.path.insert(0, sys.argv[2])
		from corrmask import stream
		text = open(sys.argv[1]).read()
		row = dict(re.findall(r'\[[A-Z0-9]+\] = \{"(\w+)", \d, \w+, "[<|](\w+)"', text))
		assert len(row) > 8 and row == {name: dtype[1:] for name, dtype in stream.DTYPES.items()}, (row, stream.DTYPES)
		kinds = re.findall(r'\[STREAM_\w+\] = \{"([\w-]+)"', text)
		assert len(kinds) > 5 and kinds == list(stream.KINDS), (kinds, stream.KINDS)
	P
}

#!/usr/bin/env bats
# scperturb screen and scperturb apply --delete screened: the estimates beside the shifts of exact deletions, the K best of a cell, what is refused.
load helper

setup_file() {
	need_tool scsim rankenc maskgen sctrain scembed scperturb scsample scview
	cd "$BATS_FILE_TMPDIR"
	export BATS_TEST_DIRNAME
	scsim -q --cells 300 --genes 150 --modules 6 --types 2 --depth 600 --seed 1 -o sim.counts
	rankenc -q --fit sim.counts -o vocab.tsv
	rankenc -q -m vocab.tsv sim.counts -o sim.tok
	maskgen -q -b 24 --epochs 2 sim.tok -o sim.masked
	sctrain mlm -q -c tiny --lr 0.002 sim.masked -o model
	scsample -q --where cell_type=type2 sim.tok -o to.tok
	scembed -q -M model to.tok -o to.emb
	scsample -q --where cell_type=type1 -n 4 sim.tok -o from.tok
	scperturb screen -q -M model --top 1000 --towards to.emb from.tok -o all.screen
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# compare SCREEN EMBEDDINGS STATE: correlation of expected and exact shifts, and the share of the ten best deletions among the expected 25
compare() {
	$PYTHON - "$@" <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		names = [l.split("\t")[1] for l in open("model/vocab.tsv").read().split("\n")[1:-1]]
		state = np.concatenate([b["x"] for b in scstream.read(sys.argv[3])]).astype(float).mean(0)
		cosine = lambda x: x @ state / np.linalg.norm(x) / np.linalg.norm(state)
		expected, exact = {}, {}
		for b in scstream.read(sys.argv[1]):
		    for i in range(b.rows):
		        ids, shifts = (b[n][1][b[n][0][i]:b[n][0][i + 1]] for n in ("gene", "expected"))
		        assert (np.diff(shifts) <= 0).all()
		        expected[b["cell"][i]] = dict(zip([names[k] for k in ids], shifts))
		for b in scstream.read(sys.argv[2]):
		    for i in range(b.rows):
		        if b["perturbed"][i]:
		            exact[b["cell"][i], b["perturbed"][i]] = cosine(b["x"][i].astype(float)) - before
		        else:
		            before = cosine(b["x"][i].astype(float))
		found, r = [], []
		for cell, shift in expected.items():
		    genes = list(shift)
		    want, got = (np.array([d[g] for g in genes]) for d in ({g: exact[cell, g] for g in genes}, shift))
		    r.append(np.corrcoef(want, got)[0, 1])
		    found.append(np.isin(np.argsort(-want)[:10], np.argsort(-got)[:25]).mean())
		print(f"correlations {np.round(r, 3)}, found {found}")
		assert len(r) == 4 and np.mean(r) > 0.8 and np.mean(found) >= 0.85
	END
}

@test "scperturb screen: what it expects is what exact deletions do" {
	scperturb apply -q -u --delete all from.tok | scembed -q -u -M model -o all.emb
	compare all.screen all.emb to.emb
}

@test "scperturb screen K: the K best, the tokens as they were, the same for any batch and number of threads" {
	scperturb screen -q -M model --top 5 --towards to.emb from.tok -o five.screen
	diff <(scview five.screen -c cell,cell_type,token) <(scview from.tok -c cell,cell_type,token)
	diff <(scview five.screen -c gene) <(scview all.screen -c gene | cut -d ' ' -f 1-5)
	scperturb screen -q -M model --top 5 --towards to.emb -@ 2 from.tok | cmp <(scview five.screen) <(scview -)
}

@test "scperturb apply --delete screened: the rows of these genes, the best first" {
	scperturb screen -q -u -M model --top 3 --towards to.emb from.tok | scperturb apply -q --delete screened -o some.pert
	scperturb apply -q --delete all from.tok -o all.pert
	scview some.pert -c cell,perturbation,perturbed,gene,token | tail -n +2 | sort > some.tsv
	scview all.pert -c cell,perturbation,perturbed,gene,token | tail -n +2 | sort > all.tsv
	[ "$(wc -l < some.tsv)" = 16 ]
	[ -z "$(comm -23 some.tsv all.tsv)" ]
	diff <(scview some.pert -c gene | tail -n +2 | tr '\n' ' ' | xargs) <(scperturb screen -q -M model --top 3 --towards to.emb from.tok | scview - -c gene | tail -n +2 | xargs)
}

@test "scperturb screen: the state is means of the genes of cells, by this model and layer; all else is refused" {
	refused() {
		run -1 scperturb screen -M model --top 5 --towards "$@" from.tok -o no.tok
		assert_output --partial "scperturb screen: --towards: $1 was embedded by another model, or another way: '"
	}
	scembed -q -M model --emb-layer 0 to.tok -o l0.emb
	scembed -q -M model --pool first to.tok -o first.emb
	scembed -q -M model --of genes to.tok -o genes.emb
	screduce pca -q -k 64 sim.counts -o pca64.emb
	scembed -q -M model --of cells --max-len 2048 --emb-layer -1 --pool mean to.tok | scsample -q --where cell_type=type2 - -o same.emb
	cp -r model other
	$PYTHON - <<-'END'
		raw = bytearray(open("other/model.safetensors", "rb").read())
		raw[-2] ^= 1
		open("other/model.safetensors", "wb").write(raw)
	END
	undigest other/model.safetensors
	scembed -q -M other to.tok -o other.emb
	for f in l0 first genes pca64 other; do refused $f.emb; done
	scperturb screen -q -M model --top 1000 --towards same.emb from.tok | cmp <(scview all.screen) <(scview -)
	assert_not_exist no.tok
}

@test "scperturb screen, scperturb: a column of obs that is called rank or tie is one like others" {
	for c in rank tie; do
		$PYTHON -B -c 'import sys; sys.path.insert(0, sys.argv[1] + "/../python"); import corrmask.stream as scstream
r = scstream.read("from.tok"); blocks = list(r)
for c in r.header["columns"]:
    if c["name"] == "n_counts": c["name"] = sys.argv[2]
for b in blocks: b[sys.argv[2]] = b.pop("n_counts")
scstream.write(sys.argv[2] + ".tok", r.header, blocks)' "$BATS_TEST_DIRNAME" $c
		scperturb screen -q -M model --top 5 --towards to.emb $c.tok | scview -q -c gene - | cmp - <(scperturb screen -q -M model --top 5 --towards to.emb from.tok | scview -q -c gene -)
		scperturb apply -q --delete all $c.tok | scview -q -c perturbed - | cmp - <(scperturb apply -q --delete all from.tok | scview -q -c perturbed -)
	done
}

# make perturb, on simulated cells and on a file.
load helper

setup_file() {
	need_tool scsim sctrain scperturb scembed
}

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# bats test_tags=slow
@test "make perturb: simulated cells; a file with its own states, model and truth; what is missing is one line" {
	run -0 pipelines perturb SCALE=tiny CELLS=400 EPOCHS=2 RESULTS=r THREADS=2
	assert_line --regexp '^deletion, network: towards off +[01]\.[0-9]+ +[01]\.[0-9]+ to [01]\.[0-9]+ +[-+][01]\.[0-9]+ \([-+0-9.]+ to [-+0-9.]+\) +[0-9]+ of [0-9]+$'
	assert_line --regexp '^expression, no network +[01]\.[0-9]+'
	assert_line --regexp '; with random states, 19 draws: at most 0\.[0-9]+ in size, p = [01]'
	dir=r/perturb/latest
	run -1 grep -v '^[A-Z].*\.$' "$dir/findings.txt"   # sentences alone
	for f in findings.txt 1-genes.table 2-truth.table table.txt perturb.svg perturb.png report.html shift.tsv random.tsv; do assert_file_not_empty "$dir/$f"; done
	assert_not_exist "$dir/perturbed.emb"
	[ "$(wc -l <"$dir/truth.txt")" = 13 ]
	# the AUROC of the table is scikit-learn's
	$PYTHON - "$dir" <<-'END'
		import csv, sys
		from sklearn.metrics import roc_auc_score
		d = sys.argv[1]
		truth = set(open(d + "/truth.txt").read().split())
		rows = list(csv.DictReader(open(d + "/scores.tsv"), delimiter="\t"))
		known = {r["gene"] for r in rows if r["method"] == "shift"}
		said = {l.split("   ")[0]: float(l.split("   ", 1)[1].split()[0]) for l in open(d + "/table.txt") if l.startswith(("deletion,", "expression,"))}
		for method, name in (("shift", "deletion, network: towards off"), ("shift-both", "deletion, network: towards off - towards on"),
		                     ("expression", "expression, no network")):
		    of = [r for r in rows if r["method"] == method and r["gene"] in known]
		    want = roc_auc_score([r["gene"] in truth for r in of], [float(r["score"]) for r in of])
		    assert abs(want - said[name]) < 0.0006, (name, want, said)
	# and the difference is that of DeLong et al. (1988), from all pairs
	import re, numpy as np
	score = {m: {r["gene"]: float(r["score"]) for r in rows if r["method"] == m} for m in ("shift-both", "expression")}
	def above(m):
	    x, y = (np.array([score[m][g] for g in sorted(known) if (g in truth) == t]) for t in (True, False))
	    return (x[:, None] > y) + 0.5 * (x[:, None] == y)
	d = above("shift-both") - above("expression")
	half = 1.96 * np.sqrt(d.mean(1).var(ddof=1) / d.shape[0] + d.mean(0).var(ddof=1) / d.shape[1])
	line = next(l for l in open(sys.argv[1] + "/table.txt") if " - towards on" in l)
	got = [float(v) for v in re.search(r"(\S+) \((\S+) to (\S+)\)", line).groups()]
	assert np.allclose(got, [d.mean(), max(-1, d.mean() - half), min(1, d.mean() + half)], atol=0.0006), (got, d.mean(), half)
	END
	# a file, with the model of the first run
	scsim -q --cells 300 --genes 200 --modules 10 --types 2 --rarest 0.4 --targets 6 --depth 2000 --seed 2 -o s.counts
	scview -q -O h5ad s.counts -o s.h5ad
	model=$PWD/r/pretrained/latest/random-1.model
	scview --vocab s.counts | awk -F'\t' '$3 ~ /^(target|regulator)/ { print $2 }' >truth.txt
	run -0 pipelines perturb SCALE=tiny DATA=s.h5ad STATE=state FROM=on TO=off MODEL="$model" TRUTH=truth.txt DELETE=truth.txt MAXLEN=64 RESULTS=r
	assert_line "model: $model"
	assert_line --regexp '^[3-7] genes deleted, each in at most'
	run -2 pipelines perturb DATA=s.h5ad RESULTS=r
	assert_output --partial "perturb: STATE= is needed with DATA="
	# states of too few cells are refused before the random ones are drawn
	run -2 --separate-stderr pipelines perturb SCALE=tiny DATA=s.h5ad STATE=state FROM=on TO=off MODEL="$model" PERTURBED=5 MAXLEN=64 RESULTS=r
	assert_equal "$(grep -vc "^make" <<< "$stderr")" 1
	assert_line --partial shift
}

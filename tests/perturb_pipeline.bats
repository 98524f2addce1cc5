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
	for f in findings.txt 1-genes.table 2-truth.table table.txt perturb.svg report.html shift.tsv random.tsv; do assert_file_not_empty "$dir/$f"; done
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
	run -0 pipelines perturb SCALE=tiny DATA=s.h5ad STATE=state FROM=on TO=off MODEL="$model" DELETE="$(head -n 1 truth.txt)" MAXLEN=64 RESULTS=r
	assert_line --regexp '^1 gene deleted, each in at most'
	run -2 pipelines perturb DATA=s.h5ad RESULTS=r
	assert_output --partial "perturb: STATE= is needed with DATA="
	# what cannot work is said before anything is made
	scsim -q --cells 200 --genes 200 --modules 10 --types 3 --rarest 0.1 --donors 8 --depth 500 --seed 2 | scview -q -O h5ad -o few.h5ad -
	read -r rare in_file < <(h5tok -q --no-counts few.h5ad | scview -c cell_type - | sed 1d | sort | uniq -c | sort -n | awk 'NR == 1 { print $2, $1 }')
	told() {
		run -2 pipelines perturb SCALE=tiny DATA="$1" MODEL="$model" MAXLEN=64 RESULTS=never "${@:3}"
		names "$2"
		assert_not_exist never
	}
	told s.h5ad "PERTURBED=5 10" STATE=state FROM=on TO=off PERTURBED=5
	told s.h5ad "STATE=stat state" STATE=stat FROM=on TO=off
	told s.h5ad "FROM=of on off" STATE=state FROM=of TO=off
	told s.h5ad "TO=healthy on off" STATE=state FROM=on TO=healthy
	told s.h5ad "FROM=on TO=on" STATE=state FROM=on TO=on
	told s.h5ad "GROUP=clinic" STATE=state FROM=on TO=off GROUP=clinic
	told s.h5ad "LABEL=kind" STATE=state FROM=on TO=off LABEL=kind
	told s.h5ad "DELETE=NONE NONE" STATE=state FROM=on TO=off DELETE=NONE
	refute_output --partial "gene_name_id_dict"
	cp -r "$model" ids
	awk -F '\t' -v OFS='\t' 'NR > 1 { $3 = "" } 1' "$model/vocab.tsv" > ids/vocab.tsv
	told s.h5ad "DELETE=LYZ LYZ gene_name_id_dict ids" STATE=state FROM=on TO=off DELETE=LYZ MODEL="$PWD/ids"
	told s.h5ad "DELETE=NONE,NO+ONE 3 NONE" STATE=state FROM=on TO=off DELETE=NONE,NO+ONE
	told few.h5ad "FROM=$rare 10 $in_file GROUP=none" STATE=cell_type FROM="$rare" TO=type1
	told few.h5ad "FROM=$rare 10 CELLS=0 100" STATE=cell_type FROM="$rare" TO=type1 CELLS=100
	run -0 pipelines help OF=perturb
	names "PERTURBED=150 ten"
}

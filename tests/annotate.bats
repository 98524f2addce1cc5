#!/usr/bin/env bats
# make annotate: one command from two files to an annotated file and a report
load helper

setup_file() {
	need_tool ctaprobe screduce scview scsim h5tok scsample
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 500 --genes 200 --types 4 --donors 10 --rarest .1 --depth 3000 --seed 5 -o all.counts
	scsample -q --test-fraction .3 --group donor --part train all.counts | scsample -q --where cell_type!=type3 - -o ref.counts
	scsample -q --test-fraction .3 --group donor --part test all.counts -o new.counts
	scview -q -O h5ad ref.counts -o ref.h5ad
	scview -q -O h5ad new.counts -o typed.h5ad
	# the new file has half of the genes, in another order, and no types
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		a = anndata.read_h5ad("typed.h5ad")
		b = a[:, np.random.default_rng(1).permutation(a.n_vars)[: a.n_vars * 3 // 4]].copy()
		del b.obs["cell_type"]
		b.write_h5ad("new.h5ad")
	P
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# The ids of the sentences of the newest report, in one line
sentences() { tail -n +2 results/annotate/latest/sentences.tsv | cut -f 1 | tr '\n' ' '; }

@test "annotate: without files, blood cells: those of the type that the reference lacks are near the top of the list" {
	run -0 pipelines annotate THREADS=1 RESULTS=blood
	assert_line --regexp '^ +[12] +[0-9]+ +CD4 T cells [0-9]+ +CD3D .*CD79A'
	# what the report counts is in obs; types of other names are not compared
	$PYTHON -W ignore -c 'import anndata
a = anndata.read_h5ad("blood/annotate/latest/annotated.h5ad")
print(int(a.obs["transfer_is_unlike"].sum()), "of", a.n_obs)
a.obs = a.obs[["author_type"]].rename(columns={"author_type": "cell_type"})
a.write_h5ad("other.h5ad")' > unlike
	assert_output --partial "$(cat unlike) new cells are less like the reference"
	run -0 pipelines annotate REFERENCE="$BATS_TEST_DIRNAME/../data/pbmc3k_sample.h5ad" DATA=other.h5ad THREADS=1 RESULTS=blood
	assert_output --partial "in cell_type (B, MNP, NK, ...), none"
	# a column that is not there is told before anything is read
	run -2 pipelines annotate REFERENCE="$BATS_TEST_DIRNAME/../data/pbmc3k_sample.h5ad" DATA=other.h5ad CLUSTERS=celltype THREADS=1 RESULTS=blood
	assert_line 'CLUSTERS=celltype: no such column in obs (did you mean cell_type?); it has: cell_type'
	refute_output --partial h5tok-reference
}

@test "annotate: a reference that make reference saved says what its cells say, in the shell and in Python" {
	run -0 pipelines reference REFERENCE=ref.h5ad THREADS=1 RESULTS=saved
	assert_line --regexp '^units	7$'
	cp saved/annotate/latest/reference.ref kept.ref
	run -0 pipelines annotate REFERENCE=kept.ref DATA=typed.h5ad THREADS=1 RESULTS=of_saved
	assert_output --partial "reference: kept.ref, label cell_type, "
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=typed.h5ad THREADS=1 RESULTS=of_cells
	for column in predicted,probability,label_set,likeness,assigned unlike; do
		cmp <(scview -c $column of_saved/annotate/latest/new.pred) <(scview -c $column of_cells/annotate/latest/new.pred)
	done
	PATH=$(realpath "$BIN"):$PATH PYTHONPATH=$BATS_TEST_DIRNAME/../python PYTHONDONTWRITEBYTECODE=1 run -0 $PYTHON -W ignore - <<-'P'
		import anndata, corrmask
		a = corrmask.annotate(anndata.read_h5ad("typed.h5ad"), "kept.ref", copy=True, progress=False)
		b = corrmask.annotate(anndata.read_h5ad("typed.h5ad"), "ref.h5ad", label="cell_type", copy=True, progress=False)
		for name in a.obs:
		    assert a.obs[name].astype(str).tolist() == b.obs[name].astype(str).tolist(), name
		assert (a.obsm["transfer_logit"] == b.obsm["transfer_logit"]).all(axis=None) and a.uns["corrmask"] == b.uns["corrmask"]
		for reference, label in ("kept.ref", "cell_type"), ("ref.h5ad", None):
		    try:
		        corrmask.annotate(a, reference, label=label)
		    except corrmask.Error as e:
		        print(e)
	P
	assert_output "label='cell_type': a saved reference has its own
label= is needed: which column of the reference has its types?"
	# donors that two files share are one each
	for part in train test; do scsample -q --test-fraction .5 --part $part ref.counts | scview -q -O h5ad -o $part.h5ad -; done
	run -0 pipelines reference REFERENCE="train.h5ad test.h5ad" THREADS=1 RESULTS=two
	assert_line --regexp '^note: 7 values of donor, such as donor[0-9]+, are in several files of REFERENCE: each counts as one donor$'
	run -2 pipelines reference THREADS=1
	assert_output --partial "REFERENCE= which file has known cell types?"
	run -2 pipelines reference REFERENCE=kept.ref THREADS=1
	assert_output --partial "REFERENCE= is saved already"
}

@test "annotate: types of new cells in a copy of the file, and a report; nothing is made twice" {
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=new.h5ad THREADS=1
	assert_line --regexp "^type1 +[0-9]+ "
	assert_output --partial "annotated.h5ad"
	R=results/annotate/latest
	refute_output --partial "warning: "   # what is not promised is said by the report alone
	assert [ ! $R/map -nt $R/annotated.h5ad ]   # a make that is killed after the file knows what it holds
	run -1 grep -E '.{81}' results/annotate/latest/report.txt
	run -0 sentences
	assert_regex "$output" '^no-promise(-coverage no-promise-unknown)? right(-there)? calibration .*unlike (unlike-types )?set-size columns scanpy $'
	$PYTHON -W ignore - <<-'P'
		import anndata, types
		old, new, typed = (anndata.read_h5ad(f) for f in ("new.h5ad", "results/annotate/latest/annotated.h5ad", "typed.h5ad"))
		assert (old.X != new.X).nnz == 0 and old.obs_names.equals(new.obs_names)
		assert list(new.obs["transfer_assigned"].cat.categories) == ["type1", "type2", "type4", "unknown"]
		truth = typed.obs["cell_type"].astype(str)
		known = (truth != "type3").to_numpy()
		right = (new.obs["transfer_predicted"].astype(str) == truth)[known].mean()
		inside = [t in s.split(" | ") for t, s in zip(truth[known], new.obs["transfer_label_set"][known])]
		like = new.obs["transfer_likeness"].to_numpy()
		print(right, sum(inside) / len(inside), like[known].mean(), like[~known].mean())
		assert right > .8 and sum(inside) / len(inside) > .85 and like[~known].mean() < like[known].mean()
		# so few donors promise no share of unknown cells
		assert (new.obs["transfer_assigned"].astype(str) == new.obs["transfer_predicted"].astype(str)).all()
		assert "X_umap" in new.obsm and not [k for k in new.obsm if k not in ("X_umap", "transfer_in_set", "transfer_logit")]
		last = open("results/annotate/latest/sentences.tsv").read().splitlines()[-1].split("\t")
		# the line of the report, with a scanpy that only looks at its arguments
		def umap(adata, color): drawn.append(color in adata.obs and "X_umap" in adata.obsm)
		drawn = []
		exec(last[1], {"adata": new, "sc": types.SimpleNamespace(pl=types.SimpleNamespace(umap=umap))})
		assert drawn == [True]
	P
	for text in 'Map of the new cells' 'The clusters most unlike the reference' 'Marker genes in the reference' 'Marker genes in the new cells' 'Reliability of the probabilities' 'Errors among the most confident cells' 'Confusion matrix'; do grep -qF "$text" $R/report.html; done
	assert_not_exist $R/new.score.tsv
	# all markers of type1 are stronger in type2, one of type2 is in type1; type4 has few cells
	cp -r "$(realpath $R)" moved
	awk -F '\t' -v OFS='\t' '{ k = $1 " " $6 } k ~ /^(type1 type2|type4 type1)$/ || (k == "type2 type1" && $2 == 1) { $11 = 99 } $6 == "type4" { $10 = 9; $11 = 50 } 1' $R/markers.tsv > moved/markers.tsv
	pipelines/page/table.py annotate/report moved new.h5ad ref.h5ad cell_type .9 > report
	grep -q $'^markers-elsewhere\t.*: type1 (in type2)\.$' moved/sentences.tsv
	# coverage by type: with all sets, as ctaprobe score has it of all cells
	awk -F '\t' 'FNR == 1 { file++ } file == 1 && $1 == "coverage" { want = $2 } file == 2 && FNR > 2 && $1 != "unknown" { n += $2; hit += $2 * $4 }
		END { exit !(n && hit / n - want < .01 && want - hit / n < .01) }' $R/held-out.score.tsv $R/types.table
	before=$(stat -c %Y.%s $R/new.pred $R/annotated.h5ad)
	assert_regex "$(tr -s ' \n' ' ' < $R/report.txt)" "^$(sed -n 2p $R/sentences.tsv | cut -f 2)"
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=new.h5ad THREADS=1
	refute_line --regexp '^  (screduce|ctaprobe)-[a-z]*$'
	assert_equal "$(stat -c %Y.%s $R/new.pred $R/annotated.h5ad)" "$before"
}

# bats test_tags=slow
@test "annotate: new cells that have types are scored; by cells nothing is promised" {
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=typed.h5ad GROUP=none UNKNOWN=0.1 THREADS=1
	run -0 sentences
	assert_regex "$output" '^no-promise .*right-there .*own-types own-new '
	assert_exist results/annotate/latest/new.score.tsv
	grep -q '^novel_auroc' results/annotate/latest/new.score.tsv
	# a file whose cells of the type that the reference lacks are called NA has no other types
	$PYTHON -W ignore -c 'import anndata
a = anndata.read_h5ad("typed.h5ad")
a.obs["cell_type"] = a.obs["cell_type"].cat.rename_categories({"type3": "NA"})
a.write_h5ad("na.h5ad")'
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=na.h5ad GROUP=none UNKNOWN=0.1 THREADS=1
	run -0 sentences
	assert_regex "$output" ' own-types columns '
	most=$(scview -q -c cell_type ref.counts | sort | uniq -c | sort -nr | awk 'NR == 2 { print $1 }')
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=typed.h5ad MIN_CELLS="$most" THREADS=1
	run -0 sentences
	assert_regex "$output" ' rare '
	# cells of the reference get types and no scores
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=ref.h5ad THREADS=1
	run -0 sentences
	assert_regex "$output" ' in-reference '
	assert_not_exist results/annotate/latest/new.score.tsv
}

# bats test_tags=slow
@test "annotate: with an ontology each cell has the finest term that holds" {
	printf '[Term]\nid: X:1\nname: cell\n[Term]\nid: X:2\nname: common\nis_a: X:1\n' > types.obo
	for t in type1 type3 type4; do printf '[Term]\nid: %s\nis_a: X:2\n' $t; done >> types.obo
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA=new.h5ad ONTOLOGY=types.obo THREADS=1
	run -0 sentences
	assert_regex "$output" ' no-term .* terms '
	assert_exist results/annotate/latest/held-out.score.tsv
	$PYTHON -W ignore -c 'import anndata; o = anndata.read_h5ad("results/annotate/latest/annotated.h5ad").obs
assert set(o.transfer_term_name) & {"type1", "common", "cell"} and (o.transfer_term_classes >= 1).all(), o.describe(include="all")'
}

# said ID VALUES: does a report of these values, words OF:NAME=VALUE with + for a space in a value, have the sentence ID? 2: one is odd
said() {
	PYTHONPATH=$BATS_TEST_DIRNAME/../pipelines/page /usr/bin/python3 -B - run:coverage=0.9 run:map=X_umap held:accuracy=.9 held:macro_f1=.8 "${@:2}" > said.tsv <<-'P'
		import sys, table
		of = {name: {} for name in ("transfer", "held", "new", "run")}
		for word in sys.argv[1:]:
		    name, value = word.replace("+", " ").split("=", 1)
		    of[name.split(":")[0]][name.split(":", 1)[1]] = value
		print(*map("\t".join, table.spec("annotate/report").Sentences(**of)), sep="\n")
	P
	awk -F '\t' 'NF != 2 || $2 ~ /  |NA|nan/ || $2 !~ /[.:?)]$/ { print "odd: " $0; exit 1 }' said.tsv || return 2
	echo "$1" >> tested
	cut -f 1 said.tsv | grep -qx "$1"
}

@test "annotate: each sentence is there where its condition holds, and nowhere else" {
	local donors='transfer:unknown:share=.05 transfer:unknown:applied=1 transfer:unit=donor transfer:units=25 transfer:units_needed:coverage=9 transfer:units_needed:unknown=19 transfer:cells=5 transfer:unknown_cells=1'
	local all='transfer:expected:accuracy=.91 transfer:promise:coverage=1 transfer:promise:unknown=1 transfer:promise:accuracy=1'
	local no='transfer:promise:coverage=0 transfer:promise:unknown=0 transfer:promise:accuracy=0 transfer:why:coverage=a transfer:why:unknown=b transfer:why:accuracy=c transfer:why:nothing=a;+b;+c'
	yes() { said "$@" || fail "$1 is not there: ${*:2}"; }
	not() {
		local r=0
		said "$@" || r=$?
		[ $r = 1 ] || fail "$1 is there, or odd: ${*:2}"
	}
	only() { not "$1" $donors $all; yes "$1" $donors $all "${@:2}"; }   # with the values alone
	yes promise $donors $all
	[ "$(head -n 1 said.tsv | cut -f 1)" = promise ]
	not promise $donors $no
	yes no-promise $donors $no
	grep -q '^no-promise.Nothing is promised: a; b; c\.$' <(head -n 1 said.tsv)
	for id in no-promise-coverage no-promise-unknown; do yes $id $donors $no transfer:promise:accuracy=1; done
	not no-promise $donors $no transfer:promise:accuracy=1
	not no-promise $donors $all
	yes no-promise $donors transfer:unit=cell $no
	yes promise $donors $all transfer:promise:coverage=0 transfer:why:coverage=a
	yes no-promise-coverage $donors $all transfer:promise:coverage=0 transfer:why:coverage=a
	yes no-promise-unknown $donors $all transfer:promise:unknown=0 transfer:why:unknown=a
	not no-promise-unknown $donors $all transfer:promise:unknown=0 transfer:why:unknown=a transfer:unknown:share=0
	not no-promise-unknown $donors $no
	not no-promise $donors $all transfer:promise:unknown=0 transfer:why:unknown=a
	not no-promise-coverage $donors $no
	yes no-promise-coverage $donors $all transfer:promise:coverage=0 transfer:why:coverage=a transfer:unknown:share=0
	not no-promise-unknown $donors $no transfer:promise:accuracy=1 transfer:unknown:share=0
	for id in no-promise-coverage no-promise-unknown needs; do not $id $donors $all; done
	not needs $donors $no transfer:units=8       # the reason says it
	not needs transfer:unit=cell $no
	yes needs $donors transfer:unit=cell $no
	local few="only 1 values of column 'study_id' have cells, 2 values of column 'study_id' are too few"
	yes no-promise-coverage $donors $no transfer:promise:accuracy=1 transfer:unit=study_id "transfer:why:coverage=${few// /+}"
	grep -q ': only 1 study has cells, 2 studies are too few\.$' said.tsv
	yes promise $donors transfer:unit=batch_id $all
	grep -q ' 25 batches ' said.tsv
	yes right $donors $all
	not right-there $donors $all
	yes right-there $donors $no
	not right $donors $no
	not expect $donors $all
	not expect $donors $no transfer:expected:accuracy=.8
	yes expect $donors $all transfer:expected:accuracy=.87
	run -0 grep -c 'expect' said.tsv
	assert_output 1
	only calibration held:ece=.01
	only shift transfer:shift=3 transfer:shift:limit=2
	not shift $donors $all transfer:shift=1 transfer:shift:limit=2
	only no-shift transfer:shift=1 transfer:shift:limit=2 transfer:shift:unseen=2.34
	grep -q '^no-shift.* 25 donors.* 2.3 times' said.tsv
	not no-shift $donors $all transfer:shift=3 transfer:shift:limit=2
	only shift-unknown transfer:unit=cell transfer:shift=-nan transfer:shift:limit=nan
	for id in shift no-shift; do not $id $donors $all transfer:shift=nan transfer:shift:limit=2; done
	not shift $donors $all transfer:shift=3 transfer:shift:limit=nan
	only shift-types transfer:shift=1 transfer:shift:limit=2 transfer:shift:B+cells=4 transfer:shift:T=1
	grep -q 'B cells (4)\.$' said.tsv
	not shift-types $donors $all transfer:shift=1 transfer:shift:limit=2 transfer:shift:B+cells=nan
	only depth transfer:depth:new=99 transfer:depth:reference=200
	only depth transfer:depth:new=401 transfer:depth:reference=200
	only depth transfer:depth:new=200 transfer:depth:reference=200 transfer:thinned=.5
	yes depth $donors $all transfer:depth:new=99 transfer:depth:reference=200 transfer:molecules=0
	grep -q '^depth.* not molecules .* not thinned\.$' said.tsv
	for new in 100 400; do not depth $donors $all transfer:depth:new=$new transfer:depth:reference=200 transfer:thinned=1; done
	only depth-types transfer:depth_ratio:B=.3
	not depth-types $donors $all transfer:depth_ratio:B=.6
	only genes transfer:genes:shared=10 transfer:genes:fraction=.5
	not genes $donors $all transfer:genes:shared=10 transfer:genes:fraction=1
	only set-aside transfer:set_aside:unknown_label=3
	only set-aside run:no_type=4
	only rare run:rare=2
	only in-reference transfer:in_reference=1
	only untested transfer:untested_cells=2 transfer:untested:B=2
	not unknown $donors $all transfer:unknown:share=0
	not unknown $donors $all transfer:cells=0 transfer:unknown_cells=0
	not unknown $donors $no transfer:unknown:applied=0
	not unlike $donors $all transfer:unlike_cells=3
	not unlike $donors $no transfer:unlike_cells=3 transfer:unknown:share=0 transfer:unknown:applied=0
	yes unlike $donors $no transfer:unlike_cells=3 transfer:unknown:applied=0
	grep -q '^unlike.3 of 5 new cells .* 95 %' said.tsv
	only unlike-types transfer:new:B+cell=20 transfer:unlike:B+cell=9 transfer:new:T=99 transfer:unlike:T=9
	grep -q ': 9 of 20 B cell\.$' said.tsv
	not unlike-types $donors $all transfer:new:B=4 transfer:unlike:B=4
	yes unknown $donors $all
	run -1 grep -q '^unknown.*not promised' said.tsv
	yes unknown $donors $no
	grep -q '^unknown.*not promised' said.tsv
	only set-size run:set_size=1.2 run:single=.9
	only set-size run:set_size=1 run:single=1
	grep -q 'All label sets have one type\.$' said.tsv
	yes set-size $donors $no run:set_size=1 run:single=1
	grep -q 'All label sets have one type; .* not promised\.$' said.tsv
	only terms transfer:term_classes=1.5
	only coarse transfer:labels:coarse=1 transfer:labels:coarse_cells=9 transfer:units:fine=12
	not coarse $donors $all transfer:labels:coarse=0
	only no-term transfer:labels:no_term=2
	not no-term $donors $all transfer:labels:no_term=0
	only markers-elsewhere run:elsewhere=B
	only own-types new:cells=100 new:unknown=20 new:accuracy=.4 new:coverage=.9 new:known_called_unknown=.1
	grep -q ' 80 cells .* 50 %.* 90 %.* 10 %' said.tsv   # 40 of the 80 cells whose types the reference has are right
	yes own-types $donors $no transfer:unknown:applied=0 new:cells=100 new:unknown=20 new:accuracy=.4 new:coverage=.9 new:known_called_unknown=0
	run -1 grep -q 'own-types.*called unknown' said.tsv
	only own-new new:cells=100 new:unknown=20 new:novel_called_unknown=.4
	only own-names run:names=B,+MNP run:label=kind
	not own-types $donors $all new:cells=20 new:unknown=20
	not own-new $donors $all new:cells=20 new:unknown=0 new:novel_called_unknown=nan
	yes columns $donors $all
	yes scanpy $donors $all
	diff <(sed -n 's/.*yield "\([a-z-]*\)".*/\1/p' "$BATS_TEST_DIRNAME/../pipelines/annotate/report.py" | sort -u) <(sort -u tested)   # no sentence is forgotten
}

@test "annotate: each sentence has the numbers that it speaks of" {
	local all='run:coverage=.85 transfer:unknown:share=.07 transfer:unknown:applied=1 transfer:unit=donor transfer:units=25 transfer:units_needed:coverage=9 transfer:units_needed:unknown=19
		transfer:promise:coverage=1 transfer:promise:unknown=1 transfer:promise:accuracy=1 transfer:expected:accuracy=.876 held:accuracy=.912 held:macro_f1=.834 held:ece=.0123
		transfer:shift=3.25 transfer:shift:limit=1.75 transfer:shift:false_alarm=5 transfer:shift:A=4 transfer:shift:B=2.5 transfer:shift:C=6 transfer:shift:D=9
		transfer:depth:new=101 transfer:depth:reference=202 transfer:thinned=.5 transfer:depth_ratio:A=.3 transfer:depth_ratio:B=.2 transfer:depth_ratio:C=.6
		transfer:genes:shared=1234 transfer:genes:fraction=.567 transfer:set_aside:no_label=3 run:no_type=6 transfer:set_aside:unknown_label=4
		transfer:set_aside:no_group=5 run:rare=7 transfer:in_reference=8 transfer:labels:coarse=2 transfer:labels:coarse_cells=77 transfer:units:fine=12
		transfer:labels:no_term=11 transfer:untested_cells=13 transfer:untested:X=13 transfer:cells=500 transfer:unknown_cells=41 run:set_size=1.23
		run:single=.876 transfer:term_classes=2.34 new:cells=300 new:unknown=100 new:accuracy=.5 new:coverage=.66 new:known_called_unknown=.055
		new:novel_called_unknown=.44'
	local no='transfer:promise:coverage=0 transfer:promise:unknown=0 transfer:why:coverage=this transfer:why:unknown=that transfer:why:nothing=this'
	# numbers ID...: of these sentences, all for none, in their order
	numbers() {
		while IFS=$'\t' read -r id sentence; do
			[[ " ${*:-$id} " = *" $id "* ]] && echo "$id $(grep -oE '[0-9]+(\.[0-9]+)?' <<< "${sentence//F1/}" | paste -sd ' ')" | sed 's/ $//'
		done < said.tsv
	}
	said promise $all
	run numbers
	assert_output - <<-'END'
		promise 25 85 7
		right 91.2 0.83
		expect 87.6
		calibration 0.012
		shift 3.25 1.75
		shift-types 9 6 4
		depth 101 202 50
		depth-types 0.2 0.3
		genes 1234 56.7
		set-aside 9 4 5
		rare 7
		in-reference 8
		coarse 77 12
		no-term 11
		untested 13
		unknown 41 500
		set-size 1.23 87.6
		terms 85 2.34
		own-types 200 75 66 5.5
		own-new 100 44
		columns 5
		scanpy
	END
	grep -q ' donors .*(shift' said.tsv
	said columns $all run:map=X_umap_other
	grep -q '^columns.* X_umap_other\.' said.tsv
	grep -q $'^scanpy\tsc.pl.embedding(adata, "X_umap_other"' said.tsv
	said scanpy $all
	grep -q $'^scanpy\tsc.pl.umap(adata' said.tsv
	said no-promise $all $no transfer:promise:accuracy=0 transfer:unit=cell
	grep -q '^no-promise.* this\.' said.tsv
	assert_equal "$(numbers needs)" "needs 85 9 7 19"
	said no-promise-coverage $all $no transfer:promise:unknown=1
	grep -q '^no-promise-coverage.* this\.' said.tsv
	assert_equal "$(numbers promise)" "promise 25 7"
	said needs $all $no transfer:promise:accuracy=0 transfer:promise:unknown=1 transfer:unit=cell
	assert_equal "$(numbers needs)" "needs 85 9"
	said shift-types $all transfer:shift=1
	assert_equal "$(numbers shift-types)" "shift-types 1.75 9 6 4"
	said no-promise-unknown $all $no transfer:promise:coverage=1
	grep -q '^no-promise-unknown.* that\.' said.tsv
	assert_equal "$(numbers promise)" "promise 25 85"
	for cells in '1 500 is' '0 1 is' '0 2 are'; do
		set -- $cells
		said unknown $all transfer:unknown_cells=$1 transfer:cells=$2
		grep -q "^unknown.$1 of $2 new cells\? $3 " said.tsv
	done
	said right-there $all transfer:promise:accuracy=0
	assert_equal "$(numbers right-there)" "right-there 91.2 0.83"
}

@test "annotate: a map that the file has already stays; the report names the other one" {
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		a = anndata.read_h5ad("new.h5ad")
		a.obsm["X_umap"] = np.zeros((a.n_obs, 2))
		a.X[:50] = 0
		a.X.data = np.random.default_rng(1).binomial(a.X.data.astype(int), .03).astype("f4")
		a.write_h5ad("mapped.h5ad")
		a = anndata.read_h5ad("ref.h5ad")
		a.obs["cell_type"] = a.obs["cell_type"].cat.rename_categories({"type1": "ty\u2028pe"})
		a.write_h5ad("odd.h5ad")
	P
	run -0 pipelines annotate REFERENCE=odd.h5ad DATA=mapped.h5ad COVERAGE=0.99 THREADS=1
	grep -q 'ty.pe' results/annotate/latest/report.html
	$PYTHON -W ignore - <<-'P'
		import anndata
		a = anndata.read_h5ad("results/annotate/latest/annotated.h5ad")
		assert (a.obsm["X_umap"] == 0).all() and (a.obsm["X_umap_transfer"] != 0).any()
		# a cell without a count has no set
		size = a.obsm["transfer_in_set"].sum(1)
		assert a.obs["transfer_predicted"].isna().tolist() == [True] * 50 + [False] * (a.n_obs - 50)
		told = dict(line.rstrip("\n").split("\t")[:2] for line in open("results/annotate/latest/log/ctaprobe-transfer.report"))
		for row in [line.split("\t") for line in open("results/annotate/latest/types.table").read().split("\n")[2:-1]]:
		    assert row[0] != "unknown"
		    own, known = (a.obs["transfer_assigned"] == row[0]).to_numpy(), row[0] != "unknown"
		    want = ["%.2f" % float(told["held_out_coverage:" + row[0]]) if known else "-", str(own.sum()), "%.0f" % float(told["unlike:" + row[0]]) if known else "-", "%.1f" % size[own].mean(), "%.2f" % a.obs["transfer_probability"][own].mean() if known else "-"]
		    assert row[3:] == want, (row, want)
		said = dict(line.rstrip("\n").split("\t") for line in open("results/annotate/latest/sentences.tsv"))["set-size"]
		assert f" {size[50:].mean():.2f} types on average; {100 * (size[50:] == 1).mean():.3g} %" in said, (said, size[50:])
	P
	grep -q $'^scanpy\t.*X_umap_transfer' results/annotate/latest/sentences.tsv
}

@test "annotate: many samples in one call: each has the answer that it has alone, one that fails does not stop the others" {
	mkdir -p one two
	cp typed.h5ad one/matrix.h5ad
	# before 0.7, obs was one dataset
	$PYTHON - <<-'P'
		import h5py, numpy as np
		with h5py.File("typed.h5ad") as typed, h5py.File("old.h5ad", "w") as f:
		    for name in "X", "var":
		        typed.copy(name, f)
		    names = typed["obs"][typed["obs"].attrs["_index"]][:]
		    f["obs"] = np.array([(name, 1) for name in names], dtype=[("index", "S20"), ("score", "f4")])
	P
	scsample -q -n 40 new.counts | scview -q -O h5ad -o "two/matrix.h5ad" -
	scsample -q --thin .2 new.counts | scview -q -O h5ad -o "shallow one.h5ad" -
	# one cell has no components of its own
	scsample -q -n 1 new.counts | scview -q -O h5ad -o cell.h5ad -
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA="cell.h5ad two/matrix.h5ad old.h5ad" THREADS=1 RESULTS=cell
	assert_line --regexp "^3 of 3 samples have types"
	echo text > bad.h5ad
	run -2 --separate-stderr pipelines annotate REFERENCE=ref.h5ad DATA="one/matrix.h5ad bad.h5ad two/matrix.h5ad 'shallow one.h5ad'" THREADS=1 RESULTS=many
	assert_equal "$(grep -c 'bad.h5ad: this is text' <<< "$stderr") $(grep -c '^failed: bad (of 4 samples)$' <<< "$stderr")" "1 1"
	assert_line --regexp "^3 of 4 samples have types"
	local here=many/annotate/latest
	assert_equal "$(basename "$(realpath $here)" | cut -d - -f 1)" matrix+3
	# named by what differs in their paths, as two are called matrix
	assert_equal "$(cut -f 1,2 $here/samples.tsv | tr '\t\n' '  ')" "sample status one done bad failed two done shallow one done "
	pipelines reference REFERENCE=ref.h5ad THREADS=1 RESULTS=once > /dev/null
	pipelines annotate REFERENCE=once/annotate/latest/reference.ref DATA="two/matrix.h5ad" THREADS=1 RESULTS=alone > /dev/null
	$PYTHON - <<-'P'
		import csv, pathlib, subprocess
		table = list(csv.DictReader(open("many/annotate/latest/samples.tsv"), delimiter="\t"))
		alone, = csv.DictReader(open("alone/annotate/latest/samples.tsv"), delimiter="\t")
		different = {k for k in alone if alone[k] != table[2][k]}
		assert different == {"sample", "folder"}, different
		shown = pathlib.Path("many/annotate/latest/report.html").read_text()
		for row in table:
		    share = [float(v) for k, v in row.items() if k.startswith("share:") and v != "NA"]
		    assert len(share) == (row["status"] == "done") * 3 and (not share or abs(sum(share) - 1) < .001)
		    page = "../%s/report.html" % row["folder"]
		    assert (page in shown) == (row["status"] == "done") == pathlib.Path("many/annotate/latest", page).exists()
		assert "this is text" in table[1]["why_not"] and table[1]["promised"] == "no" and "bad.h5ad" in shown
		assert table[2]["cells"] == "40" and float(table[3]["depth"]) < .3 * float(table[0]["depth"]) and table[0]["unlike_cluster"]
	P
	cmp <(scview -c probability,label_set,unlike alone/annotate/latest/new.pred) <(scview -c probability,label_set,unlike "many/annotate/$(awk -F '\t' 'NR == 3 { print $3 }' $here/samples.runs)/new.pred")
	# a second call makes what was missing alone
	cp typed.h5ad bad.h5ad
	before=$(stat -c %Y.%s many/annotate/matrix-*/new.pred)
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA="one/matrix.h5ad bad.h5ad two/matrix.h5ad 'shallow one.h5ad'" THREADS=1 RESULTS=many
	assert_line --regexp "^4 of 4 samples have types"
	grep -qv $'\t2\t' $here/samples.runs
	run -0 pipelines annotate REFERENCE=ref.h5ad DATA="one/matrix.h5ad bad.h5ad two/matrix.h5ad 'shallow one.h5ad'" THREADS=1 RESULTS=many
	refute_line --regexp '^  (h5tok|screduce|ctaprobe)-'
	# a run without donors promises nothing: all is made, and the status says so
	run -2 --separate-stderr pipelines annotate REFERENCE=ref.h5ad GROUP=none DATA="one/matrix.h5ad two/matrix.h5ad" THREADS=1 RESULTS=kept REQUIRE_PROMISE=1
	assert_equal "$(grep -c '^nothing is promised for ' <<< "$stderr") $(awk -F '\t' '$7 == "no"' kept/annotate/latest/samples.tsv | wc -l)" "2 2"
	run -2 pipelines annotate REFERENCE=ref.h5ad GROUP=none DATA=typed.h5ad THREADS=1 RESULTS=kept REQUIRE_PROMISE=1
	assert_line --regexp '^nothing is promised for typed: cells of the reference'
	assert_exist kept/annotate/latest/annotated.h5ad
	run -0 pipelines annotate REFERENCE=ref.h5ad GROUP=none DATA=typed.h5ad THREADS=1 RESULTS=kept
}

@test "annotate: what is missing or wrong is said before anything is made" {
	mkdir none
	cd none
	told() {
		run -2 pipelines annotate "${@:2}"
		assert_output --partial "$1"
	}
	told "DATA= without REFERENCE=: which file has known cell types?" DATA=../new.h5ad
	told "REFERENCE= without DATA=: which file has the new cells?" REFERENCE=../ref.h5ad
	told "REFERENCE=no.h5ad: no such file" REFERENCE=no.h5ad DATA=../new.h5ad
	told "LABEL=type: no such column in obs" REFERENCE=../ref.h5ad DATA=../new.h5ad LABEL=type
	told "COVERAGE=90: " REFERENCE=../ref.h5ad DATA=../new.h5ad COVERAGE=90
	told "UNKNOWN=5%: " REFERENCE=../ref.h5ad DATA=../new.h5ad UNKNOWN=5%
	told "MIN_CELLS=0: " REFERENCE=../ref.h5ad DATA=../new.h5ad MIN_CELLS=0
	told "ONTOLOGY=no.obo: no such file" REFERENCE=../ref.h5ad DATA=../new.h5ad ONTOLOGY=no.obo
	scsample -q --min-genes 9999 ../new.counts | scview -q -O h5ad -o empty.h5ad -
	told "empty.h5ad: no cells" REFERENCE=../ref.h5ad DATA=empty.h5ad
	echo text > text.h5ad
	told "text.h5ad: this is text" REFERENCE=../ref.h5ad DATA=text.h5ad
	told "annotate has no variable REFERNCE (did you mean REFERENCE?)" REFERNCE=../ref.h5ad
	told "annotate has no variable REFERNCE (did you mean REFERENCE?)" REFERNCE=../ref.h5ad DATA=../new.h5ad
	run find . -name '*.counts'
	assert_output ""
}

@test "annotate: normalised counts, other species, one type and measured numbers as types are one line each" {
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		ref, new = anndata.read_h5ad("ref.h5ad"), anndata.read_h5ad("new.h5ad")
		for log in 0, 1:
		    a = new.copy()
		    a.X = (a.X.multiply(1e4 / a.X.sum(1))).tocsr()
		    a.X = a.X.log1p() if log else a.X
		    a.write_h5ad("normalised%d.h5ad" % log)
		new.var["symbol"] = ["mouse" * (i > 4) + s for i, s in enumerate(new.var.symbol)]
		new.var_names = "Mouse" + new.var_names
		new.write_h5ad("mouse.h5ad")
		ref[ref.obs["cell_type"] == "type1"].write_h5ad("one.h5ad")
		ref.obs["cell_type"] = ref.obs["cell_type"].cat.codes.astype("f8").to_numpy()
		ref.write_h5ad("numbers.h5ad")
	P
	told() { # told WORDS REFERENCE DATA
		run -2 pipelines annotate REFERENCE="$2.h5ad" DATA="$3.h5ad" THREADS=1
		assert_equal "$(grep -cv '^  [a-z]\|^make' <<< "$output")" 1
		names "$1"
		assert_not_exist results/annotate/latest/report.txt
		assert_not_exist results/annotate/latest/annotated.h5ad
	}
	told "normalised0.h5ad counts normalised" ref normalised0
	told "normalised1.h5ad counts log" ref normalised1
	told "SIMG000001 MouseSIMG species" ref mouse
	told "type1 cell_type two" one new
	told "LABEL=cell_type f64 numbers" numbers new
}

@test "annotate: Ensembl ids in one file and symbols in the other are the same genes, whichever file has which" {
	$PYTHON -W ignore - <<-'P'
		import anndata
		for name in "ref", "new":
		    a = anndata.read_h5ad(name + ".h5ad")
		    ids, a.var = [i.replace("SIMG000", "ENSG00000000") for i in a.var_names], a.var[[]]
		    a.var_names = ["G%d" % int(i[-6:]) for i in ids]
		    if name == "new": # two genes of one symbol: one if nothing else names them, or not matched; and two cells of one name
		        a.var_names = [a.var_names[0], a.var_names[0], *a.var_names[2:]]
		        a.obs_names = [a.obs_names[-1], *a.obs_names[1:]]
		    a.write_h5ad(name + "_symbols.h5ad")
		    a.var["feature_name"], a.var_names = list(a.var_names), ids
		    a.write_h5ad(name + "_ensembl.h5ad")
	P
	for pair in "ensembl symbols" "symbols ensembl" "ensembl ensembl"; do
		read -r ref new <<< "$pair"
		run -0 pipelines annotate REFERENCE="ref_$ref.h5ad" DATA="new_$new.h5ad" THREADS=1
		grep $'^genes\t' results/annotate/latest/sentences.tsv >> genes
		# where a type is, its first marker is in the new cells too
		assert_equal "$(awk -F '\t' 'NR > 1 && $2 == 1 && $1 == $6 { print ($12 > 0) }' results/annotate/latest/markers.tsv | paste -sd ' ')" "1 1 1"
	done
	assert_equal "$(cut -f 2 genes)" "Your file has 149 genes of the reference (74.5 %), all found by symbol; only these are used.
Your file has 148 genes of the reference (74 %), all found by symbol; only these are used.
Your file has 150 genes of the reference (75 %); only these are used."
	scview -c probability results/annotate/latest/new.pred > probabilities
	PATH=$(realpath "$BIN"):$PATH PYTHONPATH=$BATS_TEST_DIRNAME/../python PYTHONDONTWRITEBYTECODE=1 run -0 $PYTHON -W ignore - <<-'P'
		import anndata, corrmask
		a = anndata.read_h5ad("new_symbols.h5ad")
		corrmask.annotate(a, "ref_ensembl.h5ad", label="cell_type", progress=False)
		made = anndata.read_h5ad("results/annotate/latest/annotated.h5ad")
		assert [*map("%.4f".__mod__, made.obs["transfer_probability"])] == [*map("%.4f".__mod__, map(float, open("probabilities").read().split()[1:]))]
		print((a.obs["transfer_predicted"].astype(str).to_numpy() == anndata.read_h5ad("typed.h5ad").obs["cell_type"].astype(str).to_numpy()).mean() > .7)
	P
	assert_output True
}

# bats test_tags=slow
@test "annotate: LAYER, REFERENCE_LAYER, UNLOG and ROUND read the counts that the plain files have; other values of them are refused" {
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np, scipy.sparse as sp
		for name in "ref", "new":
		    a = anndata.read_h5ad(name + ".h5ad")
		    x = sp.csr_matrix(a.X)
		    a.layers["mine"], a.X = x, sp.csr_matrix(x * .5)
		    a.write_h5ad("layered_%s.h5ad" % name)
		    del a.layers["mine"]
		    a.X = sp.csr_matrix(np.log1p(x.toarray() / x.sum(1).A * 1e4)).astype("f4")
		    a.write_h5ad("logged_%s.h5ad" % name)
	P
	pipelines annotate REFERENCE=ref.h5ad DATA=new.h5ad THREADS=1 RESULTS=plain > /dev/null
	pipelines annotate REFERENCE=layered_ref.h5ad DATA=layered_new.h5ad REFERENCE_LAYER=mine LAYER=mine THREADS=1 RESULTS=layers > /dev/null
	pipelines annotate REFERENCE=logged_ref.h5ad DATA=logged_new.h5ad UNLOG=1 THREADS=1 RESULTS=logs > /dev/null
	for r in layers logs; do
		for part in known new; do
			scview -c barcode,n_counts,gene,count $r/annotate/latest/$part.counts | cmp - <(scview -c barcode,n_counts,gene,count plain/annotate/latest/$part.counts)
		done
		grep -q -- "$(test $r = logs && echo UNLOG || echo LAYER) = " $r/annotate/latest/settings
	done
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("ref.h5ad"); a.obs["cell_type"] = a.obs["cell_type"].astype(str).replace("type2", "Unknown"); a.write_h5ad("words.h5ad")'
	pipelines annotate REFERENCE=words.h5ad DATA=new.h5ad KEEP_UNKNOWN_LABELS=1 THREADS=1 RESULTS=words > /dev/null
	scview -q -c predicted words/annotate/latest/new.pred | grep -qx Unknown
	run -2 pipelines annotate REFERENCE=logged_ref.h5ad DATA=logged_new.h5ad THREADS=1 RESULTS=no
	names "log-transformed UNLOG=1"
	for bad in ROUND=yes UNLOG=0 "LAYER=a b"; do
		run -2 pipelines annotate REFERENCE=ref.h5ad DATA=new.h5ad "$bad" RESULTS=no
		names "${bad%%=*} expected"
	done
	run -2 pipelines annotate UNLOG=1 RESULTS=no
	names "UNLOG= DATA="
}

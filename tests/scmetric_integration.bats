#!/usr/bin/env bats
# scmetric integration: against scikit-learn, scipy and numpy in float64; and scib, scanpy, scib-metrics, if PEER_PYTHON has them (make bench-integration installs them)
load helper

PEER_PYTHON=${PEER_PYTHON:-$BATS_TEST_DIRNAME/../build/scib/bin/python}

setup_file() {
	need_tool scmetric scsample scview
}

setup() { cd "$BATS_FILE_TMPDIR"; }

ref() { PYTHONDONTWRITEBYTECODE=1 run -0 $PYTHON "$BATS_TEST_DIRNAME/ref/integration.py" "$@"; }

# value SCORES METRIC: of the table
value() { awk -F '\t' -v m="$2" '$1 == m { print $2 }' "$1"; }

# bats test_tags=slow
@test "scmetric integration: all scores of given clusters, by definition, for even and odd data" {
	for case in "seed=1" "cells=97 seed=4" "cells=600 types=9 batches=2 seed=3" "what=uneven" "what=twins" "what=far" "what=tiny" "what=huge" \
		"what=empty" "what=unlabelled" "cells=60" "cells=20 types=2" "what=equal" "features=1" "batches=1"; do
		ref make a.emb $case
		scmetric integration -q -l cell_type --batch batch --clusters cluster a.emb -o a.tsv
		ref compare a.emb a.tsv
	done
}

@test "scmetric integration: Leiden finds the types of separate clusters; the swept scores are named so, and their range is told" {
	ref make a.emb cells=500 types=4 seed=2 features=30
	scmetric integration -q -l cell_type --batch batch a.emb -o a.tsv
	assert [ "$(awk "BEGIN { print ($(value a.tsv nmi_swept) > .9) }")" = 1 ]
	assert_equal "$(value a.tsv runs)" 3
	awk -F '\t' '{ v[$1] = $2 } END { exit !(v["nmi_swept_min"] <= v["nmi_swept"] && v["nmi_swept"] <= v["nmi_swept_max"] &&
		v["ari_swept_min"] <= v["ari_swept"] && v["resolution_min"] >= .2 && v["resolution_max"] <= 2 &&
		v["nmi_swept"] >= v["nmi_resolution_1"] - 1e-12 &&
		(v["avg_bio_swept"] - (v["nmi_swept"] + v["ari_swept"] + v["asw_label"]) / 3) ^ 2 < 1e-24 &&
		(v["score_swept"] - .6 * v["avg_bio_swept"] - .4 * v["avg_batch"]) ^ 2 < 1e-24) }' a.tsv
	run ! grep -qE '^(nmi|ari|avg_bio|score)	' a.tsv
	# one run is the first of several: the same seed
	scmetric integration -q -l cell_type --batch batch --runs 1 a.emb -o one.tsv
	assert_equal "$(value one.tsv modularity_resolution_1)" "$(value a.tsv modularity_resolution_1)"
	assert_equal "$(value one.tsv nmi_swept_min)" "$(value one.tsv nmi_swept_max)"
}

@test "scmetric integration: the same bytes on any number of threads, and from a pipe" {
	ref make a.emb cells=700 what=uneven
	scmetric integration -q -l cell_type --batch batch a.emb -o a.tsv
	for threads in 2 5; do
		scmetric integration -q -l cell_type --batch batch -@ $threads a.emb -o b.tsv
		cmp a.tsv b.tsv
	done
	scmetric integration -q -l cell_type --batch batch < a.emb | cmp - a.tsv
	assert_equal "$(value a.tsv asw_batch_class:type4)" nan
}

@test "scmetric integration: the order of cells, the scale and the place of the embedding change nothing" {
	ref make a.emb cells=300 seed=6
	scmetric integration -q -l cell_type --batch batch --clusters cluster a.emb -o a.tsv
	ref others a.emb
	for other in mixed scaled mirror; do
		scmetric integration -q -l cell_type --batch batch --clusters cluster $other.emb -o b.tsv
		paste a.tsv b.tsv | awk -F '\t' 'NR > 1 && $2 != $4 && (($2 - $4) ^ 2 > 1e-24 || $1 != $3) { print; bad = 1 } END { exit bad }'
	done
}

@test "scmetric integration: one batch, or none, has no scores of batches; few cells have no LISI: named, empty, and said once" {
	ref make a.emb batches=1
	run -0 --separate-stderr scmetric integration -l cell_type --batch batch --clusters cluster a.emb
	assert_line "avg_batch	nan"
	assert_line "score_clusters	nan"
	assert_line "ilisi	nan"
	[ "${#stderr_lines[@]}" = 1 ]
	assert_equal "$stderr" "scmetric integration: warning: a.emb: all 400 cells are 'b0' in column 'batch': there are no scores of batches"
	scmetric integration -q -l cell_type --clusters cluster a.emb -o b.tsv
	diff <(echo "$output" | grep -v '^batches') <(grep -v '^batches' b.tsv)
	ref make a.emb what=drugs
	run -0 --separate-stderr scmetric integration -l cell_type --batch batch --clusters cluster a.emb
	assert_line "avg_batch	nan"
	assert_equal "$stderr" "scmetric integration: warning: a.emb: no cell type has two batches and more cells than batches in column 'batch': asw_batch, avg_batch and score are not known"
	ref make a.emb cells=40
	run -0 --separate-stderr scmetric integration -l cell_type --batch batch --clusters cluster a.emb
	assert_line "kbet	nan"
	assert_line "clisi	nan"
	[ "${#stderr_lines[@]}" = 1 ]
}

@test "scmetric integration: what cannot be scored is one line" {
	refused() {
		ref make a.emb ${1:+$1} ${2:+$2}
		run --separate-stderr scmetric integration -l cell_type --batch batch -o out.tsv a.emb
		assert_failure 1
		[ "${#stderr_lines[@]}" = 1 ]
		names "$3"
		assert_not_exists out.tsv
	}
	refused what=onelabel "" "a.emb 400 type1 cell_type"
	refused what=ownlabel "" "a.emb 400 cell_type"
	$PYTHON -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import scstream, numpy as np; y = np.arange(60) % 3; scstream.write("alike.emb",
		{"kind": "embedding", "provenance": [], "columns": [{"name": n, "type": t, "shape": "scalar"} for n, t in (("cell", "u64"), ("cell_type", "u32"))]
		+ [{"name": "x", "type": "f32", "shape": "fixed", "n": 10}]}, [{"cell": np.arange(60), "cell_type": y, "x": np.ones((60, 10), "f4")}])' "$BATS_TEST_DIRNAME/../python"
	run -1 timeout 60 scmetric integration -l cell_type alike.emb
	names "alike.emb embeddings 60"
	ref make a.emb
	run scmetric integration -l cell_type -b barcode a.emb -o out
	assert_failure 1
	names "a.emb 400 barcode"
	refused cells=1 types=1 "a.emb 1 15 14"
	refused cells=14 "" "a.emb 14 15"
	refused what=nan "" "a.emb 200 x[1] nan"
	refused what=infinite "" "a.emb 200 x[1] inf"
	refused what=nobatch "" "a.emb 200 batch scsample --where batch!=NA"
	refused cells=0 "" "a.emb cell_type 0"
	run --separate-stderr scmetric integration -l nothing a.emb
	assert_failure 1
	run scmetric integration a.emb
	assert_failure 2
	run scmetric integration -l cell_type --clusters cluster --runs 2 a.emb
	assert_failure 2
	names "--clusters --runs"
}

@test "scmetric integration: a best resolution at the edge is said" {
	ref make a.emb cells=300 types=2 seed=8 features=3
	run -0 --separate-stderr scmetric integration -l cell_type a.emb
	[[ $stderr == *"warning: the best resolution is at the edge of 0.2 to 2.0 in 3 of 3 runs (0.2): a lower one may be better"* ]]
}

@test "scmetric integration: scib, scanpy and scib-metrics agree" {
	"$PEER_PYTHON" -c "import scib, scanpy, scib_metrics, leidenalg" 2>/dev/null || skip "no scib, scib-metrics, leidenalg in PEER_PYTHON=$PEER_PYTHON"
	for case in "cells=700 features=20" "cells=2000 features=60 types=8 seed=3"; do
		ref make a.emb $case
		for clusters in "" "--clusters cluster"; do
			scmetric integration -q -l cell_type --batch batch $clusters a.emb -o a.tsv
			PYTHONDONTWRITEBYTECODE=1 run -0 "$PEER_PYTHON" "$BATS_TEST_DIRNAME/ref/integration.py" peers a.emb a.tsv
		done
	done
}

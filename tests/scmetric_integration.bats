#!/usr/bin/env bats
# scmetric integration: against scikit-learn, scipy and numpy in float64; and scib-metrics, if PEER_PYTHON has it (make bench-integration installs it)
load helper

PEER_PYTHON=${PEER_PYTHON:-$BATS_TEST_DIRNAME/../build/scib/bin/python}

setup_file() {
	need_tool scmetric scsample scview
}

setup() { cd "$BATS_FILE_TMPDIR"; }

ref() { PYTHONDONTWRITEBYTECODE=1 run -0 $PYTHON "$BATS_TEST_DIRNAME/ref/integration.py" "$@"; }

# value TABLE METRIC [COLUMN]
value() { awk -F '\t' -v m="$2" -v c="${3:-2}" '$1 == m { print $c }' "$1"; }

integration() { scmetric integration -q -l cell_type "$@"; }

# bats test_tags=slow
@test "scmetric integration: all metrics of all presets, by definition, for even and odd data" {
	names=()
	for case in "seed=1" "cells=97 seed=4" "cells=600 types=9 batches=2 seed=3" "what=uneven" "what=twins" "what=far" "what=tiny" "what=huge" \
		"what=empty" "what=unlabelled" "what=drugs" "cells=60" "cells=20 types=2" "features=1" "batches=1"; do
		name=case${#names[@]} names+=(case${#names[@]})
		ref make $name.emb $case
		for preset in scib-metrics scib; do integration --preset $preset --batch-key batch $name.emb -o a.tsv --report $name.$preset.report; done
	done
	ref compare "${names[@]}"
}

@test "scmetric integration: the table of each preset, its means, and its best clusters" {
	ref make a.emb cells=500 types=4 seed=2 features=30
	for preset in scib-metrics scib bmfm; do
		integration --preset $preset --batch-key batch a.emb -o $preset.tsv --report $preset.report
		assert_equal "$(head -n 1 $preset.tsv)" $'metric\ta\trange\tbetter\tnote'
	done
	assert_equal "$(cut -f 1 scib-metrics.tsv | paste -sd ' ')" "metric isolated_labels kmeans_nmi kmeans_ari silhouette_label clisi bras ilisi kbet_per_label graph_connectivity pcr_comparison bio_conservation batch_correction total silhouette_batch sbee kbet pcr"
	assert_equal "$(cut -f 1 bmfm.tsv | paste -sd ' ')" "metric leiden_nmi leiden_ari silhouette_label silhouette_batch graph_connectivity avg_bio_swept avg_batch score_swept"
	for metric in $(cut -f 1 scib-metrics.tsv bmfm.tsv | sort -u); do
		[ "$metric" = metric ] || grep -qw "$metric" "$BATS_TEST_DIRNAME/../man/scmetric.1.in" || fail "the manual has no word on $metric"
	done
	awk -F '\t' '{ v[$1] = $2 } END { bio = (v["leiden_nmi"] + v["leiden_ari"] + v["silhouette_label"]) / 3
		batch = (v["silhouette_batch"] + v["graph_connectivity"]) / 2
		exit !(v["leiden_nmi"] > .9 && (v["avg_bio_swept"] - bio) ^ 2 < 1e-11 && (v["avg_batch"] - batch) ^ 2 < 1e-11 &&
		(v["score_swept"] - .6 * bio - .4 * batch) ^ 2 < 1e-11) }' bmfm.tsv
	awk -F '\t' '{ v[$1] = $2 } END { exit !(v["kmeans_nmi"] > .9 && v["kmeans_ari"] > .9 && v["total"] == "NA") }' scib-metrics.tsv
	[ "$(awk -F '\t' '/^a:bras:/' scib-metrics.report | wc -l)" -eq 4 ]
}

@test "scmetric integration: the same bytes on any number of threads, and from a pipe" {
	ref make x.emb cells=700 what=uneven
	for preset in scib-metrics scib; do
		integration --preset $preset --batch-key batch x.emb -o a.tsv
		for threads in 2 5; do
			integration --preset $preset --batch-key batch -@ $threads x.emb -o b.tsv
			cmp a.tsv b.tsv
		done
		integration --preset $preset --batch-key batch < x.emb | cmp - a.tsv
	done
}

@test "scmetric integration: the order of cells, the scale and the mirror image of the embedding change nothing but k-means" {
	ref make a.emb cells=300 seed=6
	integration --batch-key batch a.emb -o a.tsv
	ref others a.emb
	for other in mixed scaled mirror; do
		integration --batch-key batch $other.emb -o b.tsv
		diff <(grep -vE 'kmeans|metric|bio_' a.tsv) <(grep -vE 'kmeans|metric|bio_' b.tsv)
	done
}

@test "scmetric integration: several streams of the same cells" {
	ref make a.emb cells=300 seed=6
	ref others a.emb
	integration --batch-key batch a.emb scaled.emb -o both.tsv
	assert_equal "$(head -n 1 both.tsv)" $'metric\ta\tscaled\trange\tbetter\tnote'
	integration --batch-key batch a.emb -o one.tsv
	diff <(cut -f 1,2 one.tsv | grep -vE 'NA|pcr_c') <(cut -f 1,2 both.tsv | grep -vE 'pcr_c|^(batch_correction|total)')
	for column in 2 3; do assert_equal "$(value both.tsv pcr_comparison $column)" 0.000000; done
	awk -F '\t' 'NR > 1 { v[NR] = $3; bad += $5 != ($1 == "pcr" ? "lower" : "higher") || $4 != ($1 ~ /_ari$/ ? -.5 : $1 == "bio_conservation" ? -.1 : $1 == "total" ? -.06 : 0) " to 1" }
		END { for (i = 2; i < 7; i++) bio += v[i] / 5; for (i = 7; i < 12; i++) batch += v[i] / 5
		exit !(!bad && (v[12] - bio) ^ 2 < 1e-11 && (v[13] - batch) ^ 2 < 1e-11 && (v[14] - .6 * bio - .4 * batch) ^ 2 < 1e-11) }' both.tsv
	mkdir -p b && cp a.emb b/a.emb
	integration a.emb b/a.emb -o two.tsv
	assert_equal "$(head -n 1 two.tsv)" $'metric\ta.emb\tb/a.emb\trange\tbetter\tnote'
	run ! scmetric integration -q -l cell_type a.emb mixed.emb
	assert_output --partial "mixed.emb: its labelled cells are not those of a.emb"
}

@test "scmetric integration: the logits of predictions are an embedding, without those of classes that no cell was trained on" {
	ref make a.emb cells=300 seed=6
	scsample -q --where cell_type!=type1 --where cell_type!=type2 a.emb -o train.emb
	ctaprobe cells -q -l cell_type --train train.emb --test a.emb --predictions a.pred -o a.tsv
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		s = scstream.read("a.pred")
		header = dict(s.header, kind="embedding", columns=[dict(c, name="x", n=c["n"] - 2) if c["name"] == "logit" else c for c in s.header["columns"]])
		blocks = [{name: b[name] for name in b if name != "logit"} | {"x": b["logit"][:, np.isfinite(b["logit"][0])]} for b in s]
		assert blocks[0]["x"].shape[1] + 2 == len(header["labels"])
		scstream.write("logits.emb", header, blocks)
	END
	for preset in bmfm scib-metrics; do
		integration --preset $preset --batch-key batch logits.emb -o want.tsv
		integration --preset $preset --batch-key batch a.pred | cmp - <(sed '1s/logits/a.pred/' want.tsv)
	done
	ctaprobe cells -q --target cell --train train.emb --test a.emb --predictions number.pred -o a.tsv
	run -1 integration number.pred
	assert_output --partial "number.pred: no column 'logit'"
}

@test "scmetric integration: arrays of .h5ad and .zarr are those of a stream; a key or a column that is not there is named with those that are" {
	ref make a.emb cells=200 seed=6 what=unlabelled
	scview -O h5ad a.emb -o a.h5ad
	$PYTHON -c 'import anndata; a = anndata.read_h5ad("a.h5ad"); a.obsm["x"] = a.X; a.obsm["X_two"] = a.X[:, :2].astype("f8"); a.write_h5ad("two.h5ad")'
	! $PYTHON -c 'import zarr' 2>/dev/null || $PYTHON -c 'import anndata; anndata.read_h5ad("two.h5ad").write_zarr("two.zarr")'
	integration --batch-key batch a.emb -o a.tsv
	for file in two.h5ad $(ls -d two.zarr 2>/dev/null); do
		integration --batch-key batch --embedding x $file | cmp - <(sed '1s/\ta\t/\tx\t/' a.tsv)
		integration --batch-key batch --embedding x,X_two $file -o both.tsv
		[ "$(value both.tsv bras)" = "$(value a.tsv bras)" ] && [ "$(value both.tsv bras 3)" != "$(value a.tsv bras)" ]
		missing() { # BATCH KEYS MESSAGE
			run --separate-stderr integration --batch-key "$1" --embedding "$2" $file -o out
			assert_failure 1
			[[ ${#stderr_lines[@]} = 1 && $stderr = *"$file: $3"* ]]
			assert_not_exist out
		}
		missing batch x,X_none "obsm has no 'X_none': it has X_two, x"
		missing batch x, "obsm has no '': it has X_two, x"
		missing none x "obs has no 'none': it has"
		run integration --batch-key batch $file
		assert_failure 2
	done
}

@test "scmetric integration: --centred is each embedding minus the mean of its batch; no comparison with a first embedding whose batches have equal means" {
	ref make a.emb cells=300 seed=6
	scview -O h5ad a.emb -o a.h5ad
	$PYTHON -W ignore -c 'if 1:
		import anndata, numpy as np
		a = anndata.read_h5ad("a.h5ad")
		x, b = np.array(a.X, "f8"), a.obs.batch.astype(str).to_numpy()
		c = x.copy()
		for of in set(b):
			c[b == of] -= x[b == of].mean(0)
		a.obsm["x"], a.obsm["y"] = a.X, c.astype("f4")
		a.obsm["even"] = np.repeat(a.X[:100], 3, axis=0)
		a.obs["third"] = ["pqr"[i % 3] for i in range(300)]
		a.write_h5ad("b.h5ad")'
	integration --batch-key batch --embedding x,y b.h5ad -o want.tsv
	integration --batch-key batch --embedding x --centred b.h5ad -o got.tsv
	assert_equal "$(head -n 1 got.tsv)" $'metric\tx\tx_centred\trange\tbetter\tnote'
	[ "$(value got.tsv bras 2)" != "$(value got.tsv bras 3)" ]
	paste want.tsv got.tsv | awk -F '\t' 'NR > 1 { for (i = 2; i < 4; i++) if (($i - $(i + 6)) ^ 2 > 1e-10) bad = 1; n++ } END { exit bad || n != 17 }'
	integration --batch-key third --embedding even,x b.h5ad -o even.tsv
	assert_equal "$(value even.tsv pcr_comparison 3)" NA
	run -2 integration --embedding x --centred b.h5ad
}

@test "scmetric integration: one batch, or none, has no scores of batches; few cells have no LISI: NA with the reason" {
	reason() { assert_equal "$(awk -F '\t' -v m="$2" '$1 == m { print $2, $NF }' "$1")" "NA $3"; }
	ref make a.emb batches=1
	integration --batch-key batch a.emb -o a.tsv
	integration a.emb -o b.tsv
	for metric in isolated_labels bras ilisi kbet_per_label silhouette_batch sbee kbet pcr pcr_comparison; do
		reason a.tsv $metric "one batch"
		reason b.tsv $metric "no --batch-key"
	done
	reason a.tsv batch_correction "a metric is NA"
	reason a.tsv total "one of the means is NA"
	for f in a b; do # the mean of those that are there, and a note of the other
		assert_regex "$(grep ^bio_conservation $f.tsv)" "isolated_labels"
		assert_equal "$(awk -F '\t' '/^(kmeans_nmi|kmeans_ari|silhouette_label|clisi)\t/ { s += $2; n++ } END { printf "%d %.5f", n, s / n }' $f.tsv)" \
			"4 $(awk -F '\t' '$1 == "bio_conservation" { printf "%.5f", $2 }' $f.tsv)"
	done
	ref make a.emb what=drugs
	integration --batch-key batch a.emb -o a.tsv
	reason a.tsv bras "no type has two batches and more cells than batches"
	ref make a.emb cells=40
	integration --batch-key batch a.emb -o a.tsv
	reason a.tsv clisi "fewer than 90 cells"
	reason a.tsv kbet_per_label "fewer than 50 cells"
}

@test "scmetric integration: more cells than --exact-cells: nearly the same values, and what they are of" {
	ref make a.emb cells=2500 seed=3
	integration --batch-key batch a.emb -o exact.tsv
	integration --batch-key batch --exact-cells 1500 a.emb -o near.tsv --report near.report
	integration --batch-key batch --exact-cells 1500 -@ 3 a.emb | cmp - near.tsv
	cut -f 1,2 exact.tsv | paste - near.tsv | awk -F '\t' '$1 != $3 { bad = 1 }
		$1 ~ /bras|^pcr$/ && ($2 != $4 || $7 != "") { bad = 1 }
		$1 ~ /kmeans/ && (($2 - $4) ^ 2 > .05 ^ 2 || $7 != "") { bad = 1 }
		$1 ~ /silhouette|isolated|sbee/ && (($2 - $4) ^ 2 > .02 ^ 2 || $7 !~ /^of [0-9]+ cells/) { bad = 1 }
		$1 ~ /lisi|connectivity|kbet/ && (($2 - $4) ^ 2 > .005 ^ 2 || $7 !~ /^[0-9.]+ %/) { bad = 1 } { n++ } END { exit bad || n < 18 }'
	awk -F '\t' '$1 == "a:recall" { exit !($2 >= .99 && $2 <= 1) }' near.report
	for n in 1 20 60; do integration --batch-key batch --exact-cells $n a.emb -o out; done
}

@test "scmetric integration: on a terminal, no line has more than 80 characters, and nothing is lost" {
	need_pty
	ref make a.emb cells=60
	for name in first_of_five second third_one fourth fifth_embedding; do cp a.emb $name.emb; done
	integration --batch-key batch {first_of_five,second,third_one,fourth,fifth_embedding}.emb -o wide.tsv
	script -qec "scmetric integration -q -l cell_type --batch-key batch first_of_five.emb second.emb third_one.emb fourth.emb fifth_embedding.emb" /dev/null |
		tr -d '\r' > screen
	awk 'length > 80 { bad = 1 } END { exit bad || !NR }' screen
	diff <(tr '\t' '\n' < wide.tsv | tr -s ' ' '\n' | grep . | sort -u) <(tr -s ' ' '\n' < screen | grep . | sort -u)
}

@test "scmetric integration: what cannot be scored is one line" {
	refused() {
		ref make a.emb ${1:+$1} ${2:+$2}
		run --separate-stderr scmetric integration -l cell_type --batch-key batch -o out.tsv a.emb
		assert_failure 1
		[ "${#stderr_lines[@]}" = 1 ]
		names "$3"
		assert_not_exists out.tsv
	}
	refused what=onelabel "" "a.emb 400 type1 cell_type"
	refused what=ownlabel "" "a.emb 400 cell_type"
	$PYTHON -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import corrmask.stream as scstream, numpy as np; y = np.arange(60) % 3; scstream.write("alike.emb",
		{"kind": "embedding", "provenance": [], "columns": [{"name": n, "type": t, "shape": "scalar"} for n, t in (("cell", "u64"), ("cell_type", "u32"))]
		+ [{"name": "x", "type": "f32", "shape": "fixed", "n": 10}]}, [{"cell": np.arange(60), "cell_type": y, "x": np.ones((60, 10), "f4")}])' "$BATS_TEST_DIRNAME/../python"
	run -1 timeout 60 scmetric integration -l cell_type alike.emb
	names "alike embeddings 60"
	ref make a.emb
	refused cells=1 types=1 "a.emb 1 15 14"
	refused cells=14 "" "a.emb 14 15"
	refused what=nan "" "a.emb 200 x[1] nan"
	refused what=infinite "" "a.emb 200 x[1] inf"
	ref make a.emb what=nobatch
	run -0 scmetric integration -q -l cell_type -b batch --report report -o out.tsv a.emb
	assert_equal "$(awk '$1 == "set_aside:no_group" || $1 == "cells"' report | tr '\t\n' '  ')" "cells 399 set_aside:no_group 1 "
	rm out.tsv
	refused cells=0 "" "a.emb cell_type 0"
	$PYTHON -W ignore -c 'if 1:
		import anndata, numpy as np, pandas as pd
		obs = pd.DataFrame({"l": ["a\tb", "x\ny", "c"] * 20, "b": ["p", "q"] * 30}, index=["c%d" % i for i in range(60)])
		anndata.AnnData(obs=obs, obsm={"X": np.random.default_rng(1).normal(size=(60, 4))}).write_h5ad("odd.h5ad")'
	scmetric integration -q -l l -b b --embedding X odd.h5ad -o odd.tsv --report odd.report
	awk -F '\t' 'NF != 2 { exit 1 }' odd.report
	run -1 scmetric integration -q -l l --embedding X,X odd.h5ad -o out.tsv
	assert_not_exists out.tsv
}

@test "scmetric integration: a best resolution at the edge is said" {
	ref make a.emb cells=300 types=2 seed=8 features=3
	integration --preset bmfm a.emb -o a.tsv
	assert_equal "$(value a.tsv leiden_nmi 5)" "the lowest resolution, 0.2"
}

# bats test_tags=slow
@test "scmetric integration: scib-metrics agrees on 200 random embeddings" {
	"$PEER_PYTHON" -c "import scib_metrics.metrics._sbee" 2>/dev/null || skip "no scib-metrics 0.6.1 in PEER_PYTHON=$PEER_PYTHON: make bench-integration installs it"
	PYTHONDONTWRITEBYTECODE=1 run -0 "$PEER_PYTHON" "$BATS_TEST_DIRNAME/ref/integration_peer.py" random "$(command -v scmetric)" 20
}

#!/usr/bin/env bats
# Experiments on cells that are not simulated, each without a variable that may be left out.
load helper

setup_file() {
	CELLS=scrna/pbmc_kang2018_9015genes_labelled.h5ad
	export WHY_NOT
	WHY_NOT=$(lacking $CELLS)
	[ -z "$WHY_NOT" ] || return 0
	cd "$BATS_FILE_TMPDIR" || return
	h5tok -q "$SHARED/$CELLS" | scsample -q -n 300 - | scview -q -O h5ad -o cells.h5ad -
	h5tok -q --obs condition,donor cells.h5ad | scview -q -O h5ad -o unlabelled.h5ad -
}

setup() {
	skip_if "$WHY_NOT"
	cd "$BATS_FILE_TMPDIR" || return
}

# tiny GOAL VARIABLE...: with one folder of results for all tests
tiny() { pipelines "$@" SCALE=tiny RESULTS=r THREADS=2; }

# bats test_tags=slow,data
@test "perturb without TRUTH, LABEL, GROUP and MODEL" {
	run -0 tiny perturb DATA=cells.h5ad STATE=cell_type FROM="CD14+ Monocytes" TO="CD4 T cells"
	assert_file_not_empty r/perturb/latest/perturb.svg
	assert_file_not_empty r/perturb/latest/report.html
	run -0 awk -F '\t' '$4 != 0 { exit 1 } END { print (NR > 20) }' r/perturb/latest/points.tsv
	assert_output 1
	run -0 grep -x 'LABEL = cell_type' r/prepared/latest/settings
	# a truth that has none of the genes
	echo nothing > truth
	run -0 tiny perturb DATA=cells.h5ad STATE=cell_type FROM="CD14+ Monocytes" TO="CD4 T cells" TRUTH=truth
	assert_line --partial "None of the genes"
}

# bats test_tags=slow,data
@test "reliance and genes without a column of cell types, with and without GROUP" {
	run -0 tiny reliance DATA=unlabelled.h5ad SEEDS=1
	assert_line --regexp '^cells: split by donor'
	run -0 grep -x 'LABEL = ' r/reliance/latest/settings
	h5tok -q cells.h5ad | scview -q --vocab - | awk -F '\t' -v OFS='\t' 'BEGIN { print "gene", "label" } NR > 6 { print $2, NR % 2 ? "odd" : "even" }' > labels.tsv
	run -0 tiny genes DATA=unlabelled.h5ad GENE_LABELS=labels.tsv FOLDS=2 STARTS=scratch GROUP=none
	assert_line --regexp '^scratch +0\.'
	run -2 tiny demo DATA=unlabelled.h5ad
	assert_line --index 0 --partial "LABEL=cell_type: no such column in obs"
}

# bats test_tags=slow,data
@test "genesets without an edge between genes of sets, without GENE_NAMES and GENE_SKIP" {
	h5tok -q cells.h5ad | scview -q --vocab - | awk -F '\t' 'NR > 100 && NR < 110 { printf "%s%s", (NR == 101 ? "set\t-\t" : "\t"), $2 }' > sets.gmt
	run -0 tiny genesets DATA=cells.h5ad GENESETS=sets.gmt
	assert_line --partial "(no edges)"
	assert_file_not_empty r/genesets/latest/genesets.svg
}

# bats test_tags=data
@test "genes-map and embed name one thing that is missing; tables of no run say so" {
	run -2 --separate-stderr tiny genes-map DATA=cells.h5ad
	assert_equal "$(grep -c 'which model' <<< "$stderr")$(grep -c GENESETS <<< "$stderr")" 10
	for goal in ties-now table6-now r2mae-cells-now; do
		run -2 --separate-stderr tiny $goal DATA=cells.h5ad RESULTS=none
		assert_equal "${stderr_lines[0]%%:*}" $goal
		assert_equal "${#stderr_lines[@]}" 2
	done
	run -2 tiny r2mae-cells DATA=cells.h5ad HVG=30 SEEDS=1 METHODS=r2mae
	assert_line --regexp '^HVG=30: '
}

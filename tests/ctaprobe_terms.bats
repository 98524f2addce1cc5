#!/usr/bin/env bats
# ctaprobe transfer --ontology: labels of unequal detail, by plain loops and scipy
load helper

ref() {
	$PYTHON -B "$BATS_TEST_DIRNAME/ref/terms.py" "$@"
}

setup_file() {
	need_tool ctaprobe scview scsim scsample
	cd "$BATS_FILE_TMPDIR"
	# a term above two classes that lie far from each other: the terms of a cell are no chain
	sed '/^id: CL:0000\(624\|860\)$/a is_a: X:1' "$BATS_TEST_DIRNAME/../data/blood-cells.obo" > cl.obo
	printf '\n[Term]\nid: X:1\nname: X\n' >> cl.obo
	scsim -q --cells 1200 --genes 150 --types 6 --donors 16 --depth 40 --seed 3 -o all.counts
	scsample -q --test-fraction .25 --group donor --part train all.counts -o sim.counts
	scsample -q --test-fraction .25 --group donor --part test all.counts -o new.counts
	# a label that is an id, a synonym, a term above one other alone (monocyte), none; coarse ones in some donors, in few cells of another
	TYPES="type1=CL:0000624,T_cell type2=CL:0000625,T_cell type3=B-cell,lymphocyte type4=classical_monocyte,leukocyte type5=monocyte,leukocyte type6=cell_X"
	ref make ref.counts sim.counts "$TYPES" donor1=1 donor3=1 donor5=.5 donor6=.12 donor7=.1 donor9=.1 donor10=.2 donor11=.1 donor8=1
	ref make fine.counts sim.counts "$TYPES"
	ref make named.counts sim.counts "${TYPES/B-cell,lymphocyte/NK_cell,natural_killer_cell}" donor1=1
	# of T cells and of classical monocytes only one donor has fine labels, and coarse ones too: a fold has coarse labels without a class and lacks classes, and no donor
	# counts whole
	ref make lone.counts sim.counts "$(sed 's/B-cell,lymphocyte/B-cell,B-cell/; s/monocyte,leukocyte type6/monocyte,monocyte type6/' <<< "$TYPES")" donor2=.3 donor{1,3,4,5,6,7,8,9}=1 donor1{0,1,2,4,5,6}=1
	# three levels, of which the upper one is above two classes and one of the finest labels; monocytes by their id in some donors
	TYPES=${TYPES/classical_monocyte,leukocyte/classical_monocyte,myeloid_leukocyte}
	ref make chain.counts sim.counts "${TYPES/monocyte,leukocyte/monocyte,CL:0000576}" donor1=1 donor3=1 donor5=.5
}

setup() { cd "$BATS_FILE_TMPDIR"; }

value() { awk -F'\t' -v k="$1" '$1 == k { print $2 }' "$2"; }

transfer() { ctaprobe transfer -q -l cell_type --group donor --ontology cl.obo --held-out held.s --report report -o new.s "$@" new.counts; }

@test "terms: answers and threshold are those of plain loops, the regression of each fold is scipy's" {
	transfer --reference ref.counts --coverage .7
	run ref compare cl.obo ref.counts held.s new.s .7
	assert_success
	assert_output --partial "donors count"
	run ref fit cl.obo ref.counts held.s
	assert_success
	assert_equal "$(value labels:no_term report) $(value labels:coarse report)" "1 3"
	# a coverage that so few donors cannot promise is said; the same bytes on three threads
	cp new.s one.s
	transfer --reference ref.counts --coverage .7 -@ 3
	cmp one.s new.s
	transfer --reference ref.counts --coverage .97
	assert_equal "$(value promise:coverage report)" 0
	run ref compare cl.obo ref.counts held.s new.s .97
	assert_success
	# of several names of a type that of its term
	transfer --reference named.counts
	scview -q -c predicted new.s | grep -qx 'natural killer cell'
	run -1 grep -x 'NK cell' <(scview -q -c predicted new.s)
	transfer --reference chain.counts --coverage .7
	run ref compare cl.obo chain.counts held.s new.s .7
	assert_success
	assert_equal "$(value labels:coarse report)" 3
	transfer --reference lone.counts --coverage .7
	run ref compare cl.obo lone.counts held.s new.s .7
	assert_success
	assert_equal "$(value promise:coverage report) $(value units:fine report)" "0 0"
	run ref fit cl.obo lone.counts held.s 1 # without that donor
	assert_success
}

@test "terms: labels of one detail alone give the classes, probabilities and sets that they give without an ontology" {
	transfer --reference fine.counts
	scview -q -c predicted,probability,label_set,likeness,assigned,untested new.s > with
	assert_equal "$(value labels:coarse report) $(value units:fine report)" "0 $(value units report)"
	ctaprobe transfer -q -l cell_type --group donor --reference fine.counts -o plain.s new.counts
	scview -q -c predicted,probability,label_set,likeness,assigned,untested plain.s | cmp - with
	scview -q -c term,term_name,term_classes new.s | awk -F'\t' 'NR > 1 && $3 == 1 { n++ } END { print n; exit !n }'
	# cells without counts have no term and no classes
	scsample -q --thin .05 new.counts | ctaprobe transfer -q -l cell_type --group donor --ontology cl.obo --report report --reference fine.counts -o thin.s
	scview -q -c assigned,term_classes thin.s | awk -F'\t' -v told="$(value term_classes report)" 'NR > 1 { sum += $2; n += $1 != "NA" } END { d = sum / n - told; exit !(n < NR - 1 && d < 1e-6 && d > -1e-6) }'
}

@test "terms: what is wrong is one line, and leaves no output" {
	wrong() { # wrong WORDS ARGUMENT...
		rm -f out held
		run -1 ctaprobe transfer -q -l cell_type --reference ref.counts "${@:2}" new.counts -o out --held-out held
		# shellcheck disable=SC2086
		names $1
		assert_equal "${#lines[@]}" 1
		assert_not_exist out
		assert_not_exist held
	}
	sed '/^id: CL:0000542$/,/^$/s/^is_a: .*/is_a: CL:0000084/' cl.obo > cycle.obo
	wrong "cycle.obo is_a" --ontology cycle.obo
	printf 'format-version: 1.2\n\n[Term]\nid: X:1\nname: other\n' > other.obo
	wrong "ref.counts cell_type other.obo" --ontology other.obo
	wrong "sim.counts" --ontology sim.counts
	# an obsolete term is none
	sed '/^id: CL:0000625$/a is_obsolete: true' cl.obo | sed '/^id: CL:0000625$/,/^$/{/^is_a/d}' > obsolete.obo
	run -0 ctaprobe transfer -l cell_type --reference fine.counts --ontology obsolete.obo -o out new.counts
	names "warning: fine.counts CL:0000625 2 obsolete.obo obsolete"
	run -2 ctaprobe transfer -l cell_type --reference ref.counts --ontology cl.obo --calibration ref.counts -o x new.counts
	names "--ontology --calibration"
	run -2 ctaprobe transfer -l term --reference ref.counts --ontology cl.obo -o x new.counts
	names "--label term"
}

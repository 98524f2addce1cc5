# Perturbed cells from tokens to the table: scembed --similarity and --pool rest, scperturb shift.
load helper

setup_file() {
	need_tool scsim rankenc scview scperturb scembed ctaprobe sctrain
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 160 --genes 60 --modules 6 --types 4 --rarest 0.15 --depth 200 --donors 4 --seed 1 -o sim.counts
	rankenc -q --fit sim.counts -o v.tsv
	rankenc -q -m v.tsv sim.counts -o cells.tok
	maskgen -q -u --epochs 2 cells.tok | sctrain mlm -q --config tiny -o model
	scsample -q -n 4 cells.tok -o few.tok
	scperturb apply -q --delete all few.tok -o all.tok
	# overexpressed genes that a cell lacks push out others
	scperturb apply -q --overexpress "SIMG000010+SIMG000020$(awk 'NR > 5 && NR % 4 == 0 { printf ",%s", $2 }' v.tsv)" --max-len "$(scview -c token few.tok | awk 'NR > 1 && NF > n { n = NF } END { print n }')" few.tok -o over.tok
	scperturb apply -q --delete SIMG000010,SIMG000020+SIMG000030,SIMG000040,SIMG000050 --inhibit SIMG000010,SIMG000011 --controls 2 cells.tok -o some.tok
	scembed -q -M model some.tok -o some.emb
	scembed -q -M model --similarity mean some.tok -o some.similarity
	scembed -q -M model --similarity mean all.tok -o all.similarity
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

ref() {
	$PYTHON "$BATS_TEST_DIRNAME/ref/perturb.py" "$@"
}

# same FILE COLUMNS "OPTIONS" SETTING...: scperturb shift is what scipy makes of the same numbers
same() {
	local file=$1 columns=$2 options=$3
	shift 3
	scview -c "cell,perturbation,perturbed,cell_type,donor,$columns" "$file" >values.tsv
	# shellcheck disable=SC2086
	scperturb shift -q $options "$file" -o table.tsv
	ref shift values.tsv table.tsv "$@"
}

refused() {
	local message=$1
	shift
	run --separate-stderr "$@" -o out
	assert_failure 1
	assert_equal "$stderr" "$message"
	assert_not_exist out
}

@test "scembed --similarity and --pool rest: within 1e-6 of a float64 reading of the same model" {
	for f in all over; do
		scview -c perturbation,gene,token $f.tok >p.tsv
		for layer in 0 -1; do
			scembed -q -M model --emb-layer $layer --similarity genes $f.tok -o x.emb
			scview -c similarity,token,cosine x.emb >o.tsv
			ref similarity model p.tsv o.tsv 2 $layer
			scembed -q -M model --emb-layer $layer --pool rest $f.tok | scview -c x,x_original - >o.tsv
			ref rest model p.tsv o.tsv 2 $layer
		done
	done
	grep -q truncated p.tsv
	# the same bytes with other threads
	scembed -q -@ 2 -M model --emb-layer -1 --similarity genes over.tok -o again
	cmp x.emb again
	# a cell of one gene: nothing is left to compare
	printf 'cells without a token'
	scsample -q -n 1 cells.tok -o one.tok
	gene=$(scview -c token one.tok | awk 'NR == 2 { print $1 }')
	scperturb apply -q --delete "$(awk -F'\t' -v g="$gene" '$1 == g { print $2 }' v.tsv)" --max-len 2048 one.tok -o p.tok
	scembed -q -M model p.tok -o plain.emb
	scembed -q -M model --pool mean p.tok -o mean.emb
	cmp <(scview -c x plain.emb) <(scview -c x mean.emb)
}

@test "scperturb shift: similarities, shifts, donors, controls as scipy" {
	same some.emb x,control ""
	same some.similarity similarity,control "--group donor" group=donor
	same all.similarity similarity ""
	same some.emb x,control "--state cell_type --from type1 --to type2" state=cell_type,type1,type2
	same some.emb x,control "--state cell_type --from type1 --to type2 --other type3,type4 --group donor" state=cell_type,type1,type2,type3,type4 group=donor
	scperturb apply -q --delete SIMG000010,SIMG000020+SIMG000030,SIMG000040,SIMG000050 cells.tok | scembed -q -M model --pool rest -o rest.emb
	same rest.emb x,x_original "" # x against x_original, not against the unperturbed row
	same rest.emb x,x_original "--state cell_type --from type1 --to type2" state=cell_type,type1,type2
	scembed -q -M model over.tok -o over.emb
	same over.emb x ""            # truncated rows are what overexpressed cells are compared with
	scembed -q -M model cells.tok -o cells.emb
	scperturb apply -q --delete SIMG000010,SIMG000040,SIMG000050 cells.tok | scembed -q -M model -o plain.emb
	same plain.emb x "--state cell_type --from type1 --to type2 --group donor" state=cell_type,type1,type2 group=donor # donors without controls
	scperturb shift -q --state cell_type --from type1 --to type2 --group donor --states cells.emb plain.emb -o b.tsv
	near table.tsv b.tsv
}

@test "scperturb shift: a note says when few groups cannot give a q_group below 0.05, or only many perturbations together" {
	run -0 --separate-stderr scperturb shift --group donor some.similarity
	assert_equal "$stderr" "scperturb shift: note: 4 groups: p_group is at least 0.12, so no q_group is below 0.05"
	scsample -q -n 8 cells.tok | scperturb apply -q --delete all | scembed -q -M model --similarity mean -o eight.similarity
	run -0 --separate-stderr scperturb shift --group cell eight.similarity
	local n
	n=$(($(wc -l <<< "$output") - 1))
	assert [ "$n" -gt 20 ]
	assert_equal "$stderr" "scperturb shift: note: 8 groups: p_group is at least 0.0078, so no q_group is below 0.05 unless $(((n * 10000 / 64 + 999) / 1000)) of $n perturbations have it"
	run -0 --separate-stderr scperturb shift --group cell some.similarity
	assert_equal "$stderr" ""
	run -0 --separate-stderr scperturb shift some.similarity
	assert_equal "$stderr" ""
}

@test "scperturb shift: perturbations of one cell are last, whatever their shift" {
	scperturb shift -q all.similarity -o table.tsv
	run -0 awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["q"] < .05 { next }
		{ one = $at["cells"] < 2; if (one < was || (one == was && NR > 2 && $at["mean"] < mean)) { print "line " NR ": " $0; exit 1 } was = one; mean = $at["mean"]; n[one]++ }
		END { print (n[0] > 5), (n[1] > 5) }' table.tsv
	assert_output "1 1"
}

@test "scperturb shift and scembed: wrong input is one line" {
	S="--state cell_type --from type1 --to type2"
	# shellcheck disable=SC2086
	{
		scsample -q -n 8 cells.tok -o eight.tok
		scperturb apply -q --delete SIMG000010 eight.tok | scembed -q -M model -o eight.emb
		run scperturb shift $S eight.emb
		assert_failure 1
		assert_output --partial "has 1 cell, expected at least 10"
		scembed -q -M model --emb-layer 0 cells.tok -o other.emb
		run scperturb shift $S --states other.emb some.emb
		assert_failure 1
		assert_output --regexp "^scperturb shift: --states: other.emb was embedded by another model, or another way, than some.emb: '--emb-layer 0 --pool mean --model xxh3:"
	}
}

@test "perturbed copies do not count as cells: each tool that makes numbers of cells refuses them, and takes the cells beside them" {
	local message="a perturbed copy of scperturb, which would count as a cell: leave copies out with scsample --where perturbation=original"
	scembed -q -M model cells.tok -o cells.emb
	maskgen -q -u --strategy none --keep cell_type cells.tok | sctrain cells -q --label cell_type --config tiny -o types.model
	scpredict cells -q -M types.model some.tok -o some.pred
	for kind in tok emb pred; do scsample -q --where perturbation=original some.$kind -o only.$kind; done
	while read -r kind tool; do
		run --separate-stderr $tool -o out <some.$kind
		assert_failure 1
		assert_equal "$(grep -cE "^[a-z]+( [a-z-]+)?: (--towards: )?.*: cell [0-9]+: $message$" <<<"$stderr")" 1
		[ "$(wc -l <<<"$stderr")" -eq 1 ]
		assert_not_exist out
		$tool <only.$kind >of.cells 2>/dev/null
		[ -s of.cells ]
	done <<-END
		emb ctaprobe cells -l cell_type
		emb ctaprobe cells --target n_counts
		emb ctaprobe cells -l cell_type --train cells.emb --test -
		emb scmetric integration -l cell_type -b donor
		emb scmetric effective-rank
		emb ctaprobe transfer --reference cells.emb -l cell_type
		emb ctaprobe transfer -l cell_type cells.emb --reference -
		pred ctaprobe score -l cell_type
		tok scembed -M model --of genes
		tok depgraph --min-cells 5 --min-overlap 5
	END
	# a map may show both, and what was done to real cells is no copy
	screduce map -q some.emb -o map.emb
	[ "$(scview -c cell map.emb | wc -l)" -eq "$(scview -c cell some.emb | wc -l)" ]
	run --separate-stderr scperturb screen -q -M model --top 5 --towards some.emb cells.tok -o out
	assert_failure 1
	assert_not_exist out
	assert_equal "$(grep -c "^scperturb screen: --towards: some.emb: cell [0-9]*: $message$" <<<"$stderr")" 1
}

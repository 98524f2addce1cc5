load helper

setup_file() {
	need_tool scsim rankenc scview scperturb scsample
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 40 --genes 150 --types 4 --rarest 0.15 --depth 600 --donors 4 --seed 1 -o sim.counts
	rankenc -q --fit sim.counts -o v.tsv
	# version 2: <cls> and <eos> after <pad> and <mask>
	awk -F'\t' -v OFS='\t' '$1 >= 2 && !done && NR > 1 { print 2, "<cls>", "", "NA"; print 3, "<eos>", "", "NA"; done = 1 }
		NR > 1 && $1 >= 2 { $1 += 2 } { print }' v.tsv >v2.tsv
	scsample -q -n 10 sim.counts -o few.counts
	rankenc -q -m v.tsv few.counts -o cells.tok
	rankenc -q -m v2.tsv --max-len 40 few.counts -o cells2.tok
	for v in '' 2; do scview -c cell,token cells$v.tok >tokens$v.tsv; done
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

ref() {
	$PYTHON "$BATS_TEST_DIRNAME/ref/perturb.py" "$@"
}

# refused MESSAGE ARGUMENT...: exit 1, one line, no output
refused() {
	local message=$1
	shift
	run --separate-stderr scperturb apply -q "$@" -o out
	assert_failure 1
	names "$message"
	assert_equal "${#stderr_lines[@]}" 1
	assert_not_exist out
}

@test "scperturb: each kind, all genes and listed sets, as an independent program makes them" {
	for v in '' 2; do
		most=2048 special=2
		[ -z "$v" ] || most=40 special=4                # cells of version 2 are full: overexpression pushes genes out
		list=$(awk -F'\t' 'NR == 20 { a = $2 } NR == 30 { b = $3 } NR == 40 { c = $2 } NR == 60 { d = $2 }
			END { print a "," b "+" c "," d "+" c "+" a }' v$v.tsv)
		numbers=$(awk -F'\t' 'NR == 20 { a = $1 } NR == 30 { b = $1 } NR == 40 { c = $1 } NR == 60 { d = $1 }
			END { print a "," b "+" c "," d "+" c "+" a }' v$v.tsv)
		for kind in delete overexpress activate inhibit; do
			for genes in all "$list"; do
				scperturb apply -q --"$kind" "$genes" --max-len $most cells$v.tok -o p.tok
				scview --check p.tok
				scview -c cell,perturbation,gene,token p.tok >p.tsv
				[ "$genes" = all ] || genes=$numbers
				ref rows tokens$v.tsv p.tsv "$kind" "$genes" max=$most special=$special
			done
		done
	done
}

@test "scperturb: columns, labels, other cells; a pipe and a file alike" {
	scperturb apply -q --delete SIMG000081,SIMG000077+SIMG000006 --where donor=donor2 cells.tok -o p.tok
	scperturb apply -q --delete SIMG000081,SIMG000077+SIMG000006 --where donor=donor2 - <cells.tok -o again
	cmp p.tok again
	scview -c cell,barcode,n_counts,cell_type,donor cells.tok >want
	scview -c cell,barcode,n_counts,cell_type,donor,perturbation p.tok | grep -P '\toriginal$|^cell' | cut -f 1-5 >got
	cmp want got
	run scview -c donor,perturbed p.tok
	assert_line $'donor2\tSIMG000081'
	assert_line $'donor2\tSIMG000077+SIMG000006'
	refute_line --regexp $'donor[134]\tSIMG'
}

@test "scperturb: a gene list from a file, and gene sets" {
	printf 'SIMG000081\nSIMG000077+SIMG000006\n\n' >list.txt
	scperturb apply -q --delete list.txt cells.tok -o a.tok
	scperturb apply -q --delete SIMG000081,SIMG000077+SIMG000006 cells.tok -o b.tok
	cmp a.tok b.tok
	printf 'SET 1\thttp://x\tSIMG000077\tNOSUCH\tSIMG000006\nB\t\tSIMG000081\n' | gzip >sets.gmt.gz
	run scperturb apply --delete sets.gmt.gz cells.tok -o a.tok
	assert_success
	names "sets.gmt.gz vocabulary 1"
	diff <(scview -c cell,gene,token a.tok | sort) <(scview -c cell,gene,token b.tok | sort)
	run scview -c perturbed a.tok
	assert_line "SET 1"
}

@test "scperturb: controls are other genes of like rank, a function of seed and cell" {
	scperturb apply -q --delete all --controls 2 cells.tok -o p.tok
	scview -c cell,perturbation,control,gene,token p.tok >p.tsv
	ref controls tokens.tsv p.tsv
	scperturb apply -q --overexpress SIMG000010,SIMG000020+SIMG000030 --controls 9 cells.tok -o p.tok
	scview -c cell,perturbation,control,gene,token p.tok >p.tsv
	ref controls tokens.tsv p.tsv
	scview -q cells.tok >all.tsv
	scperturb apply -q --delete SIMG000081 --controls 3 cells.tok -o a.tok
	scsample -q --where cell="$(tail -n 1 tokens.tsv | cut -f 1)" cells.tok -o last.tok
	scperturb apply -q --delete SIMG000081 --controls 3 last.tok -o b.tok
	diff <(scview -c cell,gene,token b.tok | tail -n +2) <(scview -c cell,gene,token a.tok | tail -n "$(scview -c cell b.tok | tail -n +2 | wc -l)")
	scperturb apply -q --delete SIMG000081 --controls 3 --seed 2 cells.tok -o b.tok
	run ! cmp <(scview -c gene a.tok) <(scview -c gene b.tok)
}

@test "scperturb: wrong input is one line" {
	# the order of overexpressed genes is that of the tokens, and sets of a file have names
	scperturb apply -q --overexpress SIMG000010+SIMG000020,SIMG000020+SIMG000010 cells.tok -o two.tok
	printf 'A\t\tSIMG000081\tSIMG000077\nB\t\tSIMG000077\tSIMG000081\n' >alike.gmt
	scperturb apply -q --delete alike.gmt cells.tok -o two.tok
	# a gene of the vocabulary that no cell has
	awk 'BEGIN { FS = OFS = "\t" } { print } END { print NR - 1, "ABSENT", "", 1 }' v.tsv >more.tsv
	rankenc -q -m more.tsv few.counts -o more.tok
	refused "more.tok 10 ABSENT" --delete ABSENT more.tok
	run scperturb apply --delete ABSENT,SIMG000081 more.tok -o out
	assert_success
	names "warning: 1 2 ABSENT"
}

@test "scperturb: memory does not grow with the perturbations" {
	scperturb apply -q --delete all --report few.tsv cells.tok -o /dev/null
	scperturb apply -q --delete all --controls 40 --report many.tsv cells.tok -o /dev/null
	mb() { awk -F'\t' '$1 == "peak_memory_mb" { print $2 }' "$1"; }
	rows() { awk -F'\t' '$1 == "rows_out" { print $2 }' "$1"; }
	[ "$(rows many.tsv)" -gt $((30 * $(rows few.tsv))) ]
	[ "$(mb many.tsv)" -le $(($(mb few.tsv) + 16)) ]
}

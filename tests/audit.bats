#!/usr/bin/env bats
# make table3, table8, genesets: on simulated cells, whose modules are the gene sets

load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	export PATH=$BIN:$PATH
	scsim -n 1500 --genes 800 --seed 3 -o s.counts
	rankenc -q --fit s.counts -o v.tsv
	rankenc -q -m v.tsv s.counts -o s.tok
	# one set a module, gene ids; and one of all genes, which is too large to count
	scview --vocab s.tok | awk -F '\t' 'NR > 1 && $2 !~ /^</ { m = $3; sub(/\..*/, "", m); all = all "\t" $2; if (m != "bg") set[m] = set[m] "\t" $2 }
		END { for (m in set) print m "\t-" set[m]; print "all\t-" all }' | sort | gzip > sets.gmt.gz
	scview -c token s.tok | awk 'NR > 1 { for (i = 1; i <= NF; i++) n[$i]++ } END { for (g in n) print n[g], g }' | sort -n |
		awk 'NR == FNR { gene[$1] = $2; next } { band[int(k / 20)] = band[int(k / 20)] "\t" gene[$2]; all = all "\t" gene[$2]; k++ }
		END { for (b in band) print "band" b "\t-" band[b]; print "all\t-" all }' <(scview --vocab s.tok) - | gzip > bands.gmt.gz
	scview --vocab s.tok | awk -F '\t' '{ print "x" $3 "\t" $2 }' > names.tsv
	zcat sets.gmt.gz | awk -F '\t' 'NR == FNR { s[$2] = $1; next } { for (i = 3; i <= NF; i++) $i = s[$i]; print }' OFS='\t' names.tsv - > renamed.gmt
}

setup() { cd "$BATS_FILE_TMPDIR"; }

audit() { pipelines THREADS=1 "$@"; }

# bats test_tags=slow
@test "make table3 and table8: maskgen's numbers beside the paper's, from tokens; a second run makes nothing" {
	run audit table3 TOKENS=s.tok
	assert_success
	assert_line --regexp '^random +1\.0[78] +1\.1[5678] .* 1\.08 +1\.93 %$'
	assert_line --regexp '^CorrMask +1\.[1-9].* 1\.65 +9\.32 %$'
	assert_line --regexp '^1500 cells, .* genes with partners, .* \(--min-overlap 75\)$'
	rates=$(maskgen -q --audit results/audit/latest/corrmask.graph --strategy corrmask -g results/audit/latest/corrmask.graph s.tok |
		awk '/^masking_rate_/ { printf " +%.2f %%", 100 * $2 }')
	assert_line --regexp "^CorrMask .*$rates +1\.65"
	h=$(maskgen --audit results/audit/latest/corrmask.graph --strategy corrmask -g results/audit/latest/corrmask.graph s.tok | awk '$1 == "hit_rate" { printf "%.2f", 100 * $2 }')
	assert_line --regexp "^CorrMask .* $h %"
	# the nearest readings: every number from maskgen --audit by hand
	A=results/audit/latest
	depgraph -q --rho-min 0.35 --min-overlap 75 s.tok | diff <(scview $A/corrmask-rho35.graph) <(scview -)
	value() { maskgen -q --audit $A/"$1".graph "${@:3}" s.tok | awk -v k="$2" '$1 == k { print $2 }'; }
	span=() share=() present=()
	for masks in random "pmi -g $A/pmi.graph" corrmask; do
		read -ra how <<< "--strategy $masks"
		rho35=("${how[@]}") plain=("${how[@]}")
		[ "$masks" != corrmask ] || { rho35+=(-g "$A"/corrmask-rho35.graph); plain+=(-g "$A"/corrmask.graph); }
		span+=("$(value corrmask-rho35 pair_span "${rho35[@]}")")
		present+=("$(value corrmask-rho35 hit_rate_present "${rho35[@]}")")
		share+=("$(value corrmask hit_tokens "${plain[@]}")")
	done
	line() { awk -v x="$*" 'BEGIN { n = split(x, v, " "); for (i = 1; i <= n; i++) printf " +%.2f", v[i] }'; }
	assert_line --regexp "^span: masked genes of a pair in the cell, rho_min 0.35$(line "${span[@]}")$"
	assert_line --regexp "^ratio to random: .*, rho_min 0.35$(awk -v x="${present[*]}" 'BEGIN { split(x, v, " "); for (i = 1; i <= 3; i++) printf " +%.2f", v[i] / v[1] }')$"
	assert_line --regexp "^hit rate: share of all tokens .* partner$(awk -v x="${share[*]}" 'BEGIN { split(x, v, " "); for (i = 1; i <= 3; i++) printf " +%.2f %%", 100 * v[i] }')$"
	run audit table8 TOKENS=s.tok
	assert_success
	assert_line --partial "pan-cancer 23.01 %"
	near=$(awk '$1 == "neighbour_within_5" { printf "%.2f %%", 100 * $2 }' results/audit/latest/audit.random.tsv)
	assert_line --partial "$near"
	run audit table3 TOKENS=s.tok
	refute_line --partial depgraph
	run audit table3 TOKENS=s.tok SEED=2
	assert_line "  depgraph"
}

# by_hand SETS.gmt.gz: precision and random of results/genesets/latest/genesets.corrmask.tsv against Python; prints those of the first row
by_hand() {
	$PYTHON - "$1" <<-'END'
		import csv, gzip, sys
		from collections import Counter
		import numpy as np
		sets = [l.rstrip("\n").split("\t") for l in gzip.open(sys.argv[1], "rt")]
		of = {}
		for s in sets:
		    if len(s) - 2 <= 200:
		        for g in s[2:]:
		            of.setdefault(g, set()).add(s[0])
		assert max(len(s) - 2 for s in sets) > 200      # the set of all genes does not count
		vocab = [l.rstrip("\n").split("\t") for l in open("v.tsv")][1:]
		cells = Counter(int(t) for l in list(open("s.txt"))[1:] for t in l.split())
		known = sorted((int(t) for t, g, *_ in vocab if g in of and cells[int(t)]), key=lambda t: (cells[t], t))
		where = {t: i for i, t in enumerate(known)}
		gene = {int(t): g for t, g, *_ in vocab}
		edges = [r for r in csv.DictReader(open("results/genesets/latest/corrmask.edges.tsv"), delimiter="\t") if r["gene_a"] in of and r["gene_b"] in of]
		edges.sort(key=lambda r: (-abs(float(r["rho"])), int(r["token_a"]), int(r["token_b"])))
		share = lambda a, b: bool(of[a] & of[b])
		rows = [l.split("\t") for l in list(open("results/genesets/latest/genesets.corrmask.tsv"))[1:]]
		assert [int(r[0]) for r in rows] == [50, 200, len(edges)], rows
		# what the random pairs come to on average: all pairs of places within 25 of the two ends
		def expected(r):
		    a, b = (known[max(0, where[int(r[k])] - 25):where[int(r[k])] + 26] for k in ("token_a", "token_b"))
		    return np.mean([share(gene[x], gene[y]) for x in a for y in b if x != y])
		for k, p, q, ratio, se, genes in rows:
		    top = edges[:int(k)]
		    want = np.mean([share(r["gene_a"], r["gene_b"]) for r in top])
		    assert abs(float(p) - want) < 1e-4 and int(genes) == len({r[x] for r in top for x in ("gene_a", "gene_b")})
		    e = np.mean([expected(r) for r in top])
		    assert abs(float(q) - e) < 5 * (e * (1 - e) / 20 / len(top)) ** .5 + 1e-4, (k, q, e)
		print(rows[0][1], rows[0][2])
	END
}

# bats test_tags=slow
@test "make genesets: precision equals a count by hand, random pairs are as frequent; other sets, names, skipped genes" {
	run audit genesets TOKENS=s.tok
	assert_failure
	assert_output --partial "genesets: GENESETS=FILE.gmt is needed"
	run audit genesets TOKENS=s.tok GENESETS=sets.gmt.gz SET_K="50 200"
	assert_success
	assert_exist results/genesets/latest/genesets.svg
	scview -c token s.tok > s.txt
	run by_hand sets.gmt.gz
	assert_success
	awk '{ exit !($1 > 0.5 && $1 / $2 > 3) }' <<< "$output"         # the simulated modules are found
	cp results/genesets/latest/genesets.corrmask.tsv first.tsv
	first=$(readlink results/genesets/latest)
	# sets of genes of like frequency: only like frequent random pairs share one as often
	run audit genesets TOKENS=s.tok GENESETS=bands.gmt.gz SET_K="50 200"
	assert_success
	run by_hand bands.gmt.gz
	assert_success
	run audit genesets TOKENS=s.tok GENESETS=renamed.gmt GENE_NAMES=names.tsv SET_K="50 200"
	assert_success
	refute_line --partial depgraph
	cmp first.tsv results/genesets/latest/genesets.corrmask.tsv
	run audit genesets TOKENS=s.tok GENESETS=renamed.gmt
	assert_failure
	assert_output --partial "name a table of names and ids as GENE_NAMES"
	module=$(zcat sets.gmt.gz | cut -f 1 | grep -v all | head -1)
	run audit genesets TOKENS=s.tok GENESETS=sets.gmt.gz GENE_SKIP="^$module\\."
	assert_success
	assert_line --partial "without genes ^$module"
	run ! cmp -s first.tsv results/genesets/latest/genesets.corrmask.tsv
}

# shellcheck shell=bash disable=SC2154
# enough MIN_EXPRESSED TEST.counts...: stop if no gene can have so many expressed pairs in the test cells. A gene has at most ten with a cell, which measure.sh
# masks ten times at most.
enough() {
	for test in "${@:2}"; do
		cells=$(rows "$test")
		[ "$1" -le $((10 * cells)) ] || {
			echo "MIN_EXPRESSED=$1: no gene has so many expressed pairs in $cells test cells: at most ten with each" >&2
			exit 1
		}
	done
}

# of_terms WHAT ARGUMENT... (bmfm/terms.py)
of_terms() { python3 -B "$here/page/table.py" bmfm/terms "$@"; }

# terms COUNTS GROUP LABEL ONTOLOGY LABELS OUT [OPTION-OF-H5TOK...]: the cells with columns of terms, a copy of the stream. GROUP is the file of group.sh.
terms() {
	group=$(cat "$2") tmp=${6%.counts}.tmp
	mkdir -p "$tmp"
	scview -q -c "barcode,$3${group:+,$group}" "$1" > "$tmp/cells.tsv"
	of_terms columns "$4" "$5" "$3" "$tmp/cells.tsv" > "$tmp/terms.tsv"
	scview -q -O h5ad -o "$tmp/cells.h5ad" "$1"
	h5tok -v --obs-table "$tmp/terms.tsv" -o "$6" "${@:7}" "$tmp/cells.h5ad"
	rm -r "$tmp"
}

# sets FOLDER LABEL ONTOLOGY LABELS 'OPTION-OF-H5TOK...' FILE...: the cells of several files, each a set (column set, the name of the file), with columns of terms:
# FOLDER/cells.counts with the genes of all files, of which the stream says which file measured which; FOLDER/shared.counts with the genes that all of them measured
sets() {
	[ $# -ge 7 ] || { echo "one set of cells: expected several files, of which each is left out in turn" >&2; exit 1; }
	dir=$1 label=$2 files=("${@:6}")
	read -ra reading <<< "$5"
	h5tok -q --sample-column set --obs "$label" "${reading[@]}" -u "${files[@]}" | scview -q -c "barcode,$label" > "$dir/labels.tsv"
	of_terms columns "$3" "$4" "$label" "$dir/labels.tsv" > "$dir/terms.tsv"
	zcat -f -- "$3" > "$dir/ontology.obo"
	h5tok -v --sample-column set --obs "$label,term,coarse" --obs-table "$dir/terms.tsv" "${reading[@]}" -o "$dir/cells.counts" "${files[@]}"
	for file in "${files[@]}"; do
		h5tok -q --obs none "${reading[@]}" -o "$dir/one.counts" "$file"
		scview -q --vocab "$dir/one.counts" | cut -f 2 | sed 1d | sort -u
	done | awk -v files=${#files[@]} '++n[$1] == files' > "$dir/shared.txt"
	[ "$(wc -l < "$dir/shared.txt")" -gt 1 ] || { echo "${files[*]}: no two genes are in all files" >&2; exit 1; }
	# through a file of AnnData, which has no column n_counts: it becomes the sum over these genes
	scsample -v --keep-genes "$dir/shared.txt" -o "$dir/one.counts" "$dir/cells.counts"
	scview -q -O h5ad -o "$dir/shared.h5ad" "$dir/one.counts"
	h5tok -v -o "$dir/shared.counts" "$dir/shared.h5ad"
	rm "$dir"/{labels.tsv,one.counts,shared.txt,shared.h5ad}
}

# sim-sets FOLDER CELLS-OF-A-SET SEED [OPTION-OF-SCSIM...]: simulated sets of cells that measured different genes: FOLDER/set1.h5ad has all genes, set2 to set4
# have no every fourth one, each another fourth
sim-sets() {
	scsim -v "${@:4}" --cells $((4 * $2)) --donors 4 --seed "$3" -o "$1/sim.counts"
	for k in 1 2 3 4; do
		scview -q --vocab "$1/sim.counts" | awk -v k=$k 'NR == 1 || k == 1 || NR % 4 != k - 2' > "$1/genes.tsv"
		scsample -q --where "donor=donor$k" --keep-genes "$1/genes.tsv" -o "$1/one.counts" "$1/sim.counts"
		scview -q -O h5ad -o "$1/set$k.h5ad" "$1/one.counts"
	done
	rm "$1"/{sim,one}.counts "$1/genes.tsv"
}

# leave-out FOLDER N SEED SET-CELLS GENES OUT: leave set number N out of the cells of sets: OUT/{train,test}.{counts,tok}, vocab.tsv,
# shared-{train,test}.counts, leaves (terms of training cells without finer ones among them) and group, which is written last. Genes are chosen by the training
# cells. Of each set SET-CELLS cells are drawn (0: all).
leave-out() {
	dir=$1 seed=$3 out=$6 of_set=() chosen=()
	set=$(scview -q -c set "$dir/cells.counts" | awk -v n="$2" 'NR > 1 && !seen[$0]++ && ++sets == n { set = $0 } END { print set }')
	[ -n "$set" ] || { echo "there is no set number $2 to leave out" >&2; exit 1; }
	mkdir -p "$out"
	[ "$4" = 0 ] || of_set=(--cap "set:$4")
	[ "$5" = 0 ] || chosen=(--hvg "$5" --batch-key set)
	part() { scsample -v --where "$3" --where 'term!=NA' --seed "$seed" "${of_set[@]}" "${@:4}" -o "$1" "$2"; } # OUT IN CONDITION [OPTION...]
	for kind in '' shared-; do
		all=$dir/${kind:-cells-}
		all=${all%-}.counts
		part "$out/${kind}train.counts" "$all" "set!=$set" "${chosen[@]}"
		scview -q --vocab "$out/${kind}train.counts" > "$out/genes.tsv"
		part "$out/${kind}test.counts" "$all" "set=$set" --keep-genes "$out/genes.tsv"
	done
	rm "$out/genes.tsv"
	rankenc -v --fit --vocab-style bmfm -o "$out/vocab.tsv" "$out/train.counts"
	for one in train test; do rankenc -v -m "$out/vocab.tsv" --cls 2 -o "$out/$one.tok" "$out/$one.counts"; done
	scview -q -c term "$out/train.counts" | sed 1d | of_terms leaves "$dir/ontology.obo" /dev/stdin > "$out/leaves"
	echo set > "$out/group.new"
	whole "$out/group"
}

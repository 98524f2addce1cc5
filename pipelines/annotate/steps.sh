# shellcheck shell=bash disable=SC2154
# transfer REFERENCE.counts NEW.counts GROUP HELD-OUT.pred NEW.pred OPTION-OF-CTAPROBE...: the file GROUP holds what group.sh prints: an obs column, or
# nothing to hold out cells
transfer() {
	group=$(cat "$3")
	ctaprobe transfer -v --reference "$1" ${group:+--group "$group"} --held-out "$4" -o "$5" "${@:6}" "$2"
}

# donors FILES GROUP: say which donors are in several of the files, as they count once
donors() {
	group=$(cat "$2")
	files "$1"
	[ -n "$group" ] && [ ${#files[@]} -gt 1 ] || return 0
	for file in "${files[@]}"; do # a file may lack the column
		{ h5tok -q -u --no-counts --obs "$group" "$file" | scview -q -c "$group" -; } 2> /dev/null | sed '1d; /^\(NA\)\?$/d' | sort -u || true
	done | sort | uniq -d | awk -v group="$group" 'NR == 1 { first = $0 }
		END { if (NR) print "note: " NR " values of " group ", such as " first ", are in several files of REFERENCE: each counts as one donor" }' >&2
}

# learn REFERENCE.counts GROUP OUT.ref ABOUT OPTION-OF-CTAPROBE...: ABOUT has words KEY=VALUE, in quotes if they have blanks
learn() {
	group=$(cat "$2") about=()
	while IFS= read -r -d '' word; do about+=(--about "$word"); done < <(xargs -r printf '%s\0' <<< "$4")
	ctaprobe transfer -v --reference "$1" ${group:+--group "$group"} --save "$3" "${about[@]}" "${@:5}"
}

# into DATA NEW.pred NEW.map NEW.counts OUT.h5ad: a copy of the file DATA with the predictions and the map in it, and the file `map` next to it, which says what
# the map is called in obsm. What is no AnnData file (10x; before 0.7; simulated cells, DATA "") is written as one first.
into() {
	from=$1 map=$3 out=$5 plain=$5.plain both=$5.both
	trap 'rm -f "$plain" "$both" "$both.messages"' EXIT
	takes_more "${out%/*}/log/h5tok-new.report" || { from=$plain; scview -q -O h5ad -o "$plain" "$4"; }
	scview -O h5ad --into "$from" --key transfer --replace -o "$both" "$2"
	# scanpy looks for X_umap; one that the file has already stays. `map` is there before the file, which make takes for the end of this.
	echo X_umap > "${out%/*}/map"
	if scview -O h5ad --columns X_umap --into "$both" -o "$out" "$map" 2> "$both.messages"; then
		cat "$both.messages" >&2
	else
		echo X_umap_transfer > "${out%/*}/map"
		scview -O h5ad --columns X_umap --into "$both" --key transfer --replace -o "$out" "$map"
	fi
}

# samples OUT DATA MAKE...: run MAKE with DATA= for each file of DATA, and write a line for each: file, status, folder of its run, what went wrong. One that
# fails does not stop the others. The link to the newest run is that of OUT again in the end.
samples() {
	out=$1 folder=${1%/*} i=0
	latest=${folder%/*}/latest
	mkdir -p "$folder/log"
	: > "$out.new"
	files "$2"
	shift 2
	for file in "${files[@]}"; do
		echo "  sample $((++i)) of ${#files[@]}: $file"
		rm -f "$latest"
		status=0 log=$folder/log/sample-$i.messages
		"$@" DATA="$file" > /dev/null 2> "$log" || status=$?
		grep -v '^make' "$log" >&2 || true
		why=$(grep -v -e '^make' -e ': warning: ' -e ': note: ' "$log" | head -n 1 | tr '\t' ' ') || why=''
		printf '%s\t%s\t%s\t%s\n' "$file" "$status" "$(readlink "$latest" || true)" "$([ "$status" = 0 ] || echo "${why:-failed}")" >> "$out.new"
	done
	ln -sfn -- "${folder##*/}" "$latest"
	if cmp -s "$out.new" "$out"; then rm "$out.new"; else mv "$out.new" "$out"; fi
}

# settle SAMPLES.tsv [1]: fail if a sample has failed, or with 1 if nothing is promised for one
settle() {
	awk -F '\t' -v require="${2:-}" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ n++ }
		$at["status"] != "done" { failed = failed ", " $at["sample"]; next }
		require == 1 && $at["promised"] != "yes" { print "nothing is promised for " $at["sample"] ": " $at["why_not"] > "/dev/stderr"; bad = 1 }
		END {
			if (failed != "") print "failed: " substr(failed, 3) " (of " n " samples)" > "/dev/stderr"
			exit bad || failed != ""
		}' "$1"
}

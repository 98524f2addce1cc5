#!/usr/bin/env bash
# One page on a run, FOLDER/report.html, from whatever its folder holds: texts, figures, tables, embeddings, trainings, logs. The page needs
# no other file and no network. Figures that it adds are kept in FOLDER/report.
#     report.sh FOLDER
#     report.sh results/demo/latest
. "$(dirname "$0")/common.sh"
export LC_ALL=C # bytes: some awks cut names in the middle of a character otherwise
[ $# = 1 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
[ -e "$1/settings" ] || { echo "report.sh: $1: no file 'settings' in it: expected the folder of a run (make list-runs)" >&2; exit 1; }
dir=$(cd -P "$1" && pwd)
run=$(basename "$dir") experiment=$(basename "$(dirname "$dir")") results=$(dirname "$(dirname "$dir")")
own=$dir/report
mkdir -p "$own"
MOST_ROWS=1000 MOST_CELLS=2000

has() { command -v "$1" > /dev/null; }
page() { awk -f "$here/report-html.awk" -f "$here/report-$1.awk" "${@:2}"; }
text() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g; s/'\''/\&#39;/g'; }
line() { printf '%s' "$1" | tr '\n' ' ' | text; }
setting() { sed -n "s/^$1 = //p" "$dir/settings"; }
# in_run NAME...: the run's files, but for those of the page, with names such as '*.svg', in order
in_run() {
	local also=() name
	for name; do also+=(-o -name "$name"); done
	find "$dir" -path "$own" -prune -o -type f \( -false "${also[@]}" \) ! -path '*/checkpoint-*' -print | sort -V
}

# The folders of other runs whose settings are all among this one's: what it was made from, such as its prepared cells
made_from() {
	local s
	for s in "$results"/*/*/settings; do
		if [ ! -e "$s" ] || [ -L "$(dirname "$s")" ] || [ "$(dirname "$s")" -ef "$dir" ] || ! grep -qE '^(DATA|TOKENS) = ' "$s"; then continue; fi
		grep -v '^name = ' "$s" | grep -qvxFf "$dir/settings" || dirname "$s"
	done
}
mapfile -t parts < <(made_from)

# ---- figures for the page ----

# A file of metrics, NAME.KIND.tsv or runs/NAME/KIND.tsv, as NAME <TAB> KIND <TAB> FILE. Such a table has the columns metric and value.
metric_files() {
	in_run '*.tsv' | while read -r f; do
		head -n 1 "$f" | grep -qx $'metric\tvalue' || continue
		local name=${f#"$dir"/} kind
		kind=$(basename "$f" .tsv)
		case $name in
		*/*) name=$(basename "$(dirname "$f")") ;;
		*.*.tsv) name=${kind%%.*} kind=${kind#*.} ;;
		*) name=$kind kind=metrics ;;
		esac
		printf '%s\t%s\t%s\n' "$name" "$kind" "$f"
	done
}
metric_files > "$own/metrics.list"

# curves NAME KIND X-NAME Y-NAME TITLE: the curves on standard input, each as `= name` and lines of x and y, in figures of at most eight
curves() {
	local file=$own/curves.tmp n k all title=$5
	awk '/^= / { if (n % 8 == 0) { if (n) close(f); f = file "." ++k } else printf "\n\n" > f
			n++; print substr($0, 3) > f; next } { print > f }
		END { print k + 0 > file }' file="$file"
	all=$(cat "$file")
	for ((k = 1; k <= all; k++)); do
		n=$(awk '/^$/ { e++ } END { print e / 2 + 1 }' "$file.$k")
		gnuplot -e "file='$file.$k'; curves=$n; kind='$2'; x_name='$3'; y_name='$4'" "$here/report-curves.gp" 2> "$own/gnuplot.log" |
			cat > "$own/$1-$k.svg" || { # cat fails if the disk is full; gnuplot does not
			cat "$own/gnuplot.log" >&2
			exit 1
		}
		[ "$all" = 1 ] || title="$5 ($k of $all)"
		figure "$1-$k" "$title"
		rm "$file.$k"
	done
}
# figure NAME TITLE: enter $own/NAME.svg into the page
figure() { printf '%s\t%s\n' "$own/$1.svg" "$2" >> "$own/figures.list"; }

losses() { # losses NAME: of the tables NAME.tsv
	in_run "$1.tsv" | while read -r f; do
		local name=${f#"$dir"/}
		name=${name%/*} name=${name%.model} name=${name#runs/}
		echo "= $name"
		awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } at["loss"] && $at["loss"] ~ /^[0-9.]/ { v[++n] = $at["step"] "\t" $at["loss"] }
			END { every = int(n / 400) + 1; for (i = 1; i <= n; i += every) print v[i] }' "$f"
	done
}
# At most 24 trainings; of a larger grid, those of the first seeds
some() { awk '/^= / { n++ } n <= 24'; }

f1_by_frequency() {
	# of runs that differ in the seed the first one, if there are many
	awk -F '\t' -v kind="$1" '$2 == kind { name[++n] = $1; file[n] = $3 }
		END { for (i = 1; i <= n; i++) { k = name[i]; if (n > 8) sub(/-[0-9]+$/, "", k); if (!seen[k]++) print name[i] "\t" file[i] } }' "$own/metrics.list" | while IFS=$'\t' read -r name f; do
		awk -F '\t' -v name="$name" '{ i = index($1, ":"); k = substr($1, 1, i - 1); c = substr($1, i + 1) }
			k == "f1" { f1[c] = $2; class[++n] = c } k == "n" { cells[c] = $2 } k == "train_n" { train[c] = $2; trained = 1 }
			END { for (i = 1; i <= n; i++) { c = class[i]; x = trained ? train[c] : cells[c]
				if (cells[c] > 0 && x > 0 && f1[c] ~ /^[0-9.]/) { if (!m++) print "= " name; print x "\t" f1[c] } } }' "$f"
	done
}

rocs() {
	in_run '*.tsv' | while read -r f; do
		head -n 1 "$f" | grep -q $'fpr.*\ttpr\|tpr.*\tfpr' || continue
		echo "= $(basename "$f" .tsv)"
		awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["fpr"] "\t" $at["tpr"] }' "$f"
	done
}

confusions() {
	local kind name group n=0 f
	cut -f 2 "$own/metrics.list" | sort -u | while read -r kind; do
		awk -F '\t' -v kind="$kind" '$2 == kind' "$own/metrics.list" > "$own/kind.list"
		# runs that differ in the seed, NAME-1, NAME-2 ..., are one group if there are many of them
		[ "$(wc -l < "$own/kind.list")" -le 8 ] || sed -i 's/^\([^\t]*\)-[0-9][0-9]*\t/\1\t/' "$own/kind.list"
		while IFS=$'\t' read -r name _ f; do
			if grep -q '^confusion:' "$f"; then printf '%s\t%s\n' "$name" "$f"; fi
		done < "$own/kind.list" | sort -s -t $'\t' -k1,1 > "$own/groups.list"
		while read -r group; do
			local title="Confusion matrix, $kind: $group"
			mapfile -t files < <(group=$group awk -F '\t' '$1 == ENVIRON["group"] { print $2 }' "$own/groups.list")
			[ ${#files[@]} = 1 ] || title+=" (${#files[@]} seeds)"
			n=$((n + 1))
			title=$title page confusion -v title="$(escaped "$title")" "${files[@]}" > "$own/confusion-$kind-$n.svg"
			figure "confusion-$kind-$n" "$title"
		done < <(cut -f 1 "$own/groups.list" | uniq)
	done
}
# awk -v reads backslashes
escaped() { printf '%s' "${1//\\/\\\\}"; }

maps() {
	local label group columns f name column seed numbers
	label=$(setting LABEL)
	group=$(for p in "${parts[@]}" "$dir"; do [ ! -e "$p/group" ] || cat "$p/group"; done | head -n 1)
	seed=$(setting SEED)
	# of runs that differ in the seed, NAME-1, NAME-2 ..., the first one
	find "$dir" -maxdepth 1 -name '*.emb' ! -name '*.train.emb' | sort -V |
		awk '{ k = $0; sub(/-[0-9]+(\.test)?\.emb$/, "", k) } !seen[k]++' | while read -r f; do
		name=$(basename "$f" .emb)
		if [ ! "$own/$name.map" -nt "$f" ]; then
			if [ "$(rows "$f")" -gt $MOST_CELLS ]; then scsample -q -n $MOST_CELLS --seed "${seed:-1}" "$f"; else cat "$f"; fi |
				ctaprobe map -q --seed "${seed:-1}" -o "$own/$name.map" -
		fi
		columns=$(scview -H "$own/$name.map" | sed -n 's/^\t*"name":\t"\(.*\)",$/\1/p')
		for column in "$label" "$group"; do
			# one donor makes no map
			if [ -z "$column" ] || ! grep -qxF -- "$column" <<< "$columns"; then continue; fi
			[ "$(scview -q --columns "$column" "$own/$name.map" | sed 1d | sort -u | wc -l)" -gt 1 ] || continue
			local title="Map of cells by $column: $name" which=type numbers=1
			[ "$column" = "$label" ] || which=group numbers=0
			scview -q --columns "X_draw_graph_drl,$column" "$own/$name.map" |
				page map -v title="$(escaped "$title")" -v numbers=$numbers > "$own/map-$name-$which.svg"
			figure "map-$name-$which" "$title"
		done
	done
}

modules() {
	local g name
	for g in "${parts[@]}" "$dir"; do find "$g" -maxdepth 1 -name '*.graph'; done | sort -V | while read -r g; do
		[ "$(depgraph -q --stats "$g" | awk -F '\t' '$1 == "edges" { print $2 }')" -gt 0 ] || continue
		name=$(basename "$g" .graph)
		if [ ! "$own/$name.layout.txt" -nt "$g" ]; then
			depgraph -q --layout --modules 1 -o "$own/$name.layout.txt" "$g"
			depgraph -q --tsv "$g" > "$own/edges.tmp"
			{
				head -n 1 "$own/edges.tmp"
				awk -F '\t' 'NR > 1 { print ($7 < 0 ? -$7 : $7) "\t" $0 }' "$own/edges.tmp" | sort -t $'\t' -k1,1gr -k2,2n -k5,5n | cut -f 2-
			} > "$own/$name.edges.txt"
		fi
		page modules -v title="Modules of the dependency graph: $name" "$own/$name.layout.txt" "$own/$name.edges.txt" > "$own/modules-$name.svg"
		page modules -v what=table -v caption="Modules of $name" "$own/$name.layout.txt" "$own/$name.edges.txt" > "$own/modules-$name.html"
		figure "modules-$name" "Modules of the dependency graph: $name"
	done
}

# A machine that only trains has not all tools; its page has what they are not needed for.
rm -f "$own/figures.list"
in_run '*.svg' | while read -r f; do printf '%s\t%s\n' "$f" "$(basename "$f" .svg)" >> "$own/figures.list"; done
touch "$own/figures.list"
if has gnuplot; then
	cut -f 2 "$own/metrics.list" | sort -u | while read -r kind; do
		f1_by_frequency "$kind" | some | curves "f1-$kind" f1 'cells of the class in training' F1 "F1 of every class by its frequency, $kind"
	done
	losses train | some | curves loss loss step 'loss (running mean)' 'Training loss'
	losses pretrain | some | curves pretrain loss step 'loss (running mean)' 'Training loss, pre-training'
	losses finetune | some | curves finetune loss step 'loss (running mean)' 'Training loss, fine-tuning'
	rocs | curves roc roc 'false positive rate' 'true positive rate' 'ROC curves'
fi
if has ctaprobe && has scview && has scsample; then maps; fi
confusions
if has depgraph; then modules; fi

# ---- the page ----

figures() {
	local f title n=0 class
	while IFS=$'\t' read -r f title; do
		n=$((n + 1)) class=
		[ "$(sed -n '/<svg/,/>/s/.*[ "]width="\([0-9]*\)".*/\1/p' "$f" | head -n 1)" -le 620 ] || class=' class="wide"'
		printf '<figure%s><figcaption>%s</figcaption>\n' "$class" "$(line "$title")"
		page inline -v prefix="f$n-" -v title="$(escaped "$title")" "$f"
		echo '</figure>'
	done < "$own/figures.list"
}

# The metrics of all files of one kind side by side
metrics() {
	local kind name f what
	cut -f 2 "$own/metrics.list" | sort -u | while read -r kind; do
		awk -F '\t' -v kind="$kind" '$2 == kind' "$own/metrics.list" | while IFS=$'\t' read -r name _ f; do
			name=$name awk 'FNR > 1 { print ENVIRON["name"] "\t" $0 }' "$f"
		done > "$own/all.tmp"
		page metrics -v what=metrics -v caption="$kind" "$own/all.tmp"
		for what in classes confusion; do
			page metrics -v what=$what -v caption="$kind, $what" "$own/all.tmp" > "$own/table.tmp"
			[ ! -s "$own/table.tmp" ] || details "$kind: $what" "$own/table.tmp"
		done
	done
}
details() { printf '<details><summary>%s</summary>\n' "$(line "$1")"; cat "$2"; echo '</details>'; }

other_tables() {
	local f name
	in_run '*.tsv' | while read -r f; do
		name=${f#"$dir"/}
		if cut -f 3 "$own/metrics.list" | grep -qxF -- "$f"; then continue; fi
		case $name in */train.tsv | */vocab.tsv | runs/*) continue ;; esac
		page table -v caption="$(escaped "$name")" -v most=$MOST_ROWS "$f" > "$own/table.tmp"
		[ ! -s "$own/table.tmp" ] || details "$name" "$own/table.tmp"
	done
	for f in "$own"/modules-*.html; do
		[ ! -e "$f" ] || details "Modules: $(basename "$f" .html | sed 's/^modules-//')" "$f"
	done
}

table_of() { page table -v caption="$1" -v most=100000; }

# stage, seconds, memory, in the order of the run
stages() {
	printf 'stage\tseconds\tpeak memory (MB)\n'
	for p in "${parts[@]}" "$dir"; do [ ! -d "$p/log" ] || find "$p/log" -name '*.log' -printf '%T@ %p\n'; done | sort -n | cut -d ' ' -f 2- |
		while read -r log; do
			sed -n 's/.*; \([0-9.]*\) s, peak memory \([0-9]*\) MB$/\1\t\2/p' "$log" | tail -n 1 | sed "s|^|$(basename "$log" .log)\t|"
		done
}

# Which commands made each stream, with the options that change its content, as the stream itself says
commands() {
	printf 'file\tprogram\tversion\toptions\n'
	has scview || return 0
	for p in "${parts[@]}" "$dir"; do
		find "$p" -maxdepth 1 \( -name '*.counts' -o -name '*.tok' -o -name '*.graph' -o -name '*.emb' -o -name '*.pred' -o -name '*.masked' \) | sort -V | while read -r f; do
			scview -H "$f" | f=${f#"$results"/} awk '/^\t"provenance":/ { on = 1 }
				on && /"(program|version|options)":/ { k = $1; gsub(/[":]/, "", k); s = $0; sub(/^[^:]*:\t"/, "", s); sub(/",?$/, "", s); v[k] = s }
				on && /"options":/ { print ENVIRON["f"] "\t" v["program"] "\t" v["version"] "\t" v["options"] }'
		done
	done
}
digests() {
	printf 'file\tbytes\tSHA-256\n'
	for p in "${parts[@]}" "$dir"; do
		find "$p" -path "$own" -prune -o -type f \( -name '*.counts' -o -name '*.tok' -o -name '*.graph' -o -name '*.emb' -o -name '*.pred' -o -name '*.tsv' \
			-o -name model.safetensors \) ! -path '*/checkpoint-*' ! -path '*/runs/*' -print | sort -V | while read -r f; do
			printf '%s\t%s\t%s\n' "${f#"$results"/}" "$(stat -c %s "$f")" "$(sha256sum < "$f" | cut -d ' ' -f 1)"
		done
	done
}
settings_table() { echo $'setting\tvalue'; sed 's/ = /\t/' "$dir/settings"; }
versions() { echo $'program\tversion'; for t in h5tok rankenc depgraph maskgen sctrain scembed ctaprobe; do command -v $t > /dev/null && printf '%s\t%s\n' $t "$($t --version | tr '\n' ' ')"; done; }

write() {
	local title="corrmask $experiment: $run" f any=
	cat <<-END
		<!DOCTYPE html>
		<html lang="en">
		<head>
		<meta charset="utf-8">
		<meta name="viewport" content="width=device-width, initial-scale=1">
		<title>$(line "$title")</title>
		<style>
		$(cat "$here/report.css")
		</style>
		</head>
		<body>
		<header>
		<h1>$(line "$title")</h1>
		<p>$(grep -v '^name = ' "$dir/settings" | sed 's/ ([0-9]* bytes, [^)]*)$//; s/ = \(.\)/=\1/; / = $/d' | paste -sd ' ' | text)</p>
		<nav aria-label="parts of the page"><a href="#summary">Summary</a> <a href="#figures">Figures</a> <a href="#tables">Tables</a> <a href="#provenance">Provenance</a></nav>
		</header>
		<main>
		<section id="summary">
		<h2>Summary</h2>
	END
	for f in "$dir"/*.txt; do
		[ -e "$f" ] || continue
		any=1
		printf '<div class="scroll" tabindex="0" role="region" aria-label="%s"><pre>' "$(line "$(basename "$f")")"
		text < "$f"
		echo '</pre></div>'
	done
	[ -n "$any" ] || echo '<p>This run has no table of results yet.</p>'
	echo '</section><section id="figures"><h2>Figures</h2><div class="figures">'
	figures
	echo '</div></section><section id="tables"><h2>Tables</h2><p>A click on a heading sorts. Numbers are shown with four digits; the files have all of them.</p>'
	metrics
	other_tables
	echo '</section><section id="provenance"><h2>Provenance</h2>'
	settings_table | table_of Settings
	stages | table_of 'Time and memory'
	for f in commands digests versions; do
		$f > "$own/table.tsv"
		table_of "$f" < "$own/table.tsv" > "$own/table.tmp"
		case $f in
		commands) details 'Commands, with versions and seeds' "$own/table.tmp" ;;
		digests) details 'Digests of files' "$own/table.tmp" ;;
		versions) details 'Programs' "$own/table.tmp" ;;
		esac
	done
	echo '</section></main><script>'
	cat "$here/report.js"
	echo '</script></body></html>'
}
write > "$own/report.html"
sync "$own/report.html"
mv "$own/report.html" "$dir/report.html"
sync "$dir"
rm -f "$own"/*.tmp "$own"/*.list "$own/table.tsv" "$own/gnuplot.log"

#!/usr/bin/env bash
# Many files to one corpus of tokens; corpus.mk explains what it makes. RUN is its folder.
#     corpus.sh RUN --dir DIR | --paths FILES [--where CONDITIONS] [--obs COLUMNS] [--refused stop|skip] [--medians FILE] [--token-table FILE]
#         [--map FILE] [--max-len N] [--h5tok-args ARGS] [--rank-args ARGS] --threads N
#         [--held-out COLUMN|cells --share F --seed N [--label COLUMN --sample N] [--until cells]]
#
# In RUN: corpus.txt (the list), corpus.tsv (the table), vocab.tsv, and for each file NAME: tok/NAME.tok, log/NAME.log, done/NAME (its row of the
# table), warned/NAME (the warnings of its tools), shared/NAME, sums/NAME.1, ... (what each pass has counted for the medians), rows/NAME (a digest of its rows,
# if it may be a copy), and where it is not used refused/NAME, none/NAME or copy/NAME. inputs.tsv has the names: the file's own, and a digest of its
# path; others.tsv other names of the same files.
#
# The script calls itself for each file:
#     corpus.sh --pass N NAME      cells to sums
#     corpus.sh --tokens NAME      cells to tokens
# With --held-out, some cells are held out, and the medians are those of the others; held_out.sh has these functions. --until cells ends when it is
# known how many there are.
#     corpus.sh --cells NAME       cells to their numbers
#     corpus.sh --part NAME        tokens to those of the two parts
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/held_out.sh"

# ---- one file ----

# killed STATUS: a signal from outside, not a crash, nor the end of the next tool in the pipe
killed() { [ "$1" -gt 128 ] && [[ " 132 134 135 136 139 141 " != *" $1 "* ]]; }
# ended STATUS...: the status of a pipe, whose tools have ended with these. A tool that was killed comes first.
ended() {
	local s worst=0
	for s; do
		! killed "$s" || return "$s"
		[ "$s" = 0 ] || worst=$s
	done
	return "$worst"
}

# cells FILE [NAME]: the counts of the cells that are wanted, with NAME without its donors that are held out. Tokens stay tokens.
cells() {
	local conditions=() c=$where read mine read_columns=$columns
	mine=$(label_of "$1")
	[ -z "$mine" ] || read_columns+=,$mine
	read_columns=${read_columns#none,}
	# shellcheck disable=SC2206 # words
	read=(h5tok -u --obs "$read_columns" $h5tok_args "$1")
	[[ $1 != *.tok ]] || read=(scsample -u "$1")
	while [ -n "$c" ]; do
		conditions+=(--where "$(sed 's/^ *//; s/ *$//' <<< "${c%%;*}")")
		[[ $c = *\;* ]] || break
		c=${c#*;}
	done
	[ $# = 1 ] || [ ! -e "held/$2" ] || while IFS= read -r c; do conditions+=(--where "$held_out!=$c"); done < "held/$2"
	if [ ${#conditions[@]} = 0 ]; then
		"${read[@]}"
	else
		"${read[@]}" | scsample -u "${conditions[@]}"
		ended "${PIPESTATUS[@]}"
	fi
}

# file_of NAME, stamp_of NAME: the path, and what tells whether it is the same file
file_of() { awk -F '\t' -v name="$1" '$1 == name { print $2 }' inputs.tsv; }
stamp_of() { awk -F '\t' -v name="$1" '$1 == name { print $3 }' inputs.tsv; }

# attempt NAME COMMAND...: its messages go to log/NAME.log, what its tools measured to log/NAME.report. If it fails, refused/NAME says why, or
# none/NAME that WHERE leaves no cell. Where the file is not to blame, the script ends.
attempt() {
	local name=$1 status=0 message
	shift
	rm -f "log/$name.report" "refused/$name" "none/$name"
	echo "# $*" >> "log/$name.log"
	CORRMASK_REPORT=log/$name.report CORRMASK_LOG_SECONDS=0 "$@" 2> "log/$name.now" || status=$?
	cat "log/$name.now" >> "log/$name.log"
	# a value that WHERE names may well be in other files only
	[ "$1" != tokens ] || { grep -F ': warning: ' "log/$name.now" || true; } | sed "/ has no category '/d; s/^[^:]*: warning: //" > "warned/$name"
	if [ "$status" != 0 ]; then
		message=$(cause "log/$name.now" | in_variables) || message='a tool has failed without a message'
		! killed "$status" || message="a tool was killed (status $status): no memory?"
		case "$status $message" in
		*' scsample: '*"column '"*"' has no category '"*) grep -o "column '.*' has no category '.*" <<< "$message" > "none/$name" ;;
		*' h5tok: '*': no cells') echo "${message#h5tok: }" > "none/$name" ;;
		'2 '* | *' rankenc: --'* | *' a tool '* | *': cannot write: '* | *'was killed from outside'*) echo "$name: $message" >&2; exit 1 ;;
		*'out of memory'*) [ "$(ulimit -v)" = unlimited ] || { echo "$name: $message (ulimit -v)" >&2; exit 1; }
			echo "$message" > "refused/$name" ;;
		*) echo "$message" > "refused/$name" ;;
		esac
	fi
	rm -f "log/$name.now"
}

# cause LOG: the message of the tool that failed first, if it has one. Those after it in the pipe only say that their input is cut short.
cause() {
	grep -v "^Try '"'\|^[^ ]*corpus.sh: line [0-9]*: *[0-9]* \|: warning: \|: note: \|standard input: the stream is cut short\|standard input: empty\|standard input: the header is cut' "$1" | tail -n 1 | grep .
}

pass() {
	local after=()
	[ "$1" = 1 ] || after=(--after "sums/all.$(($1 - 1))")
	cells "$(file_of "$2")" "$2" | rankenc --fit --sums "${after[@]}" -o "sums/$2.$1"
	ended "${PIPESTATUS[@]}" || return
	# files with equal sums may be copies; those without a count are none
	if [ "$1" = 1 ] && scview -q -c bin "sums/$2.1" | grep -q '[0-9]'; then
		{ scview -q --vocab "sums/$2.1"; scview -q -c bin,sum "sums/$2.1"; } | sha256sum | cut -d ' ' -f 1 > "sums/$2.same"
	fi
}
one_pass() {
	attempt "$2" pass "$1" "$2"
}

tokens() {
	local vocab=(-m "${medians:-vocab.tsv}")
	[ -z "$token_table" ] || vocab+=(-t "$token_table")
	[ -z "$map" ] || vocab+=(--map "$map")
	# shellcheck disable=SC2206 # words
	vocab+=($rank_args)
	if [[ $(file_of "$1") = *.tok ]]; then
		cells "$(file_of "$1")" > "work/$1" && mv "work/$1" "tok/$1.tok"
	elif [ -z "$label" ]; then
		cells "$(file_of "$1")" | rankenc "${vocab[@]}" ${max_len:+--max-len "$max_len"} -o "tok/$1.tok"
		ended "${PIPESTATUS[@]}"
	else # the file is read once
		cells "$(file_of "$1")" > "work/$1" && rankenc "${vocab[@]}" ${max_len:+--max-len "$max_len"} -o "tok/$1.tok" "work/$1" && sampled "$1" &&
			rm -f "work/$1" "work/$1.values"
	fi
}
one_tokens() {
	rm -f "done/$1" # it speaks of the tokens of before
	attempt "$1" tokens "$1"
	[ -e "refused/$1" ] || [ -e "none/$1" ] || {
		# program, then name and value; the programs are in the order in which they ended
		awk -F '\t' -v stamp="$(stamp_of "$1") $state" 'BEGIN { OFS = "\t" } $1 == "program" { p = $2 } { v[p, $1] = $2 }
			END {
				if (!(("h5tok", "cells_in") in v)) { v["h5tok", "cells_in"] = v["scsample", "cells_in"]; v["rankenc", "cells_out"] = v["scsample", "cells_out"] } # tokens
				all = v["h5tok", "cells_in"]
				kept = ("scsample", "cells_out") in v ? v["scsample", "cells_out"] : all
				print stamp, all, all - kept, kept - v["rankenc", "cells_out"], v["rankenc", "cells_out"], v["rankenc", "tokens"]
			}' "log/$1.report" > "done/$1.new"
		whole "done/$1"
	}
}

case ${1:-} in
--pass) one_pass "$2" "$3"; exit ;;
--tokens) one_tokens "$2"; exit ;;
--cells) one_cells "$2"; exit ;;
--part) one_part "$2"; exit ;;
esac

# ---- all of them ----

[ $# -ge 2 ] || usage
run=$1
shift
threads='' obs='' dir='' where='' paths='' h5tok_args='' rank_args=''
held_out='' share=0.1 seed=1 label='' sample=0 until='' max_len=''
options 'threads' 'max-len dir paths where obs refused medians token-table map h5tok-args rank-args held-out share seed label sample until' "$@"
# shellcheck disable=SC2154 # options sets it
case ${refused:=stop} in stop | skip) ;; *) echo "REFUSED=$refused: expected stop or skip" >&2; exit 1 ;; esac

[ "$held_out" != none ] || held_out=

# list_files: the inputs, sorted, with NUL between
list_files() {
	if [ -n "$dir" ]; then
		# with -L a link is one that leads nowhere
		find -L "$dir" ! -name '.*' \( -type d -name '*.zarr' -prune -o -type f -name '*.h5ad' -o -type l \( -name '*.h5ad' -o -name '*.zarr' \) \) -print0
	elif [ "${paths:0:1}" = @ ]; then
		sed 's/\r$//; /^#/d; /^$/d; /^[^\/]/s|^|'"$(dirname "${paths#@}" | sed 's/[&|\]/\\&/g')"'/|' "${paths#@}" | tr '\n' '\0'
	else
		files "$paths"
		printf '%s\0' "${files[@]}"
	fi | sort -zu
}

# stamp PATH: tells a changed file, or zarr store, from an unchanged one
stamp() {
	if [ ! -e "$1" ]; then
		echo missing
	elif [ -d "$1" ]; then
		find -H "$1" -type f -printf '%P %s %T@ %C@\n' | sort | sha256sum | cut -c 1-16
	else
		stat -L -c '%s %.Y %.Z' -- "$1"
	fi
}

# Absolute names, as the work is done in the folder of the run
absolute() { [ -z "$1" ] || realpath -m -- "$1"; }
self=$(realpath "$0")
medians=$(absolute "${medians:-}") token_table=$(absolute "${token_table:-}") map=$(absolute "${map:-}")
[ -n "$dir$paths" ] || { echo "corpus: no files: give DIR=FOLDER or FILES='...'" >&2; exit 1; }
[ -z "$dir" ] || [ -z "$paths" ] || { echo "corpus: DIR and FILES exclude each other" >&2; exit 1; }
# one folder or list among FILES; a folder that is itself a file of cells is one
case $paths in *.zarr | *.zarr/) ;; *.txt) [ ! -f "$paths" ] || paths=@$paths ;; *) if [ -d "$paths" ] && ! compgen -G "$paths/*matrix.mtx*" > /dev/null; then dir=$paths paths=; fi ;; esac
[ -z "$dir" ] || [ -d "$dir" ] || { echo "DIR=$dir: no such folder" >&2; exit 1; }
# --until files: only how many there are, and what tells them from others
if [ "$until" = files ]; then
	[[ $paths != @* ]] || [ -r "${paths#@}" ] || { echo "$paths: no such file" >&2; exit 1; }
	list_files | while IFS= read -r -d '' path; do
		[ -e "$path" ] || [ -L "$path" ] || { echo "$path: no such file or folder" >&2; exit 1; }
		printf '%s\t%s\n' "$path" "$(stamp "$path")"
	done > "$run" || exit 1
	[ -s "$run" ] || { echo "$dir$paths: no .h5ad file and no .zarr store" >&2; exit 1; }
	echo "$(wc -l < "$run" | tr -d ' ') files $(sha256sum < "$run" | cut -c 1-16)"
	exit
fi
# One at a time works in the folder. What a killed make has left running holds descriptor 9 too, so this one waits until that has ended.
exec 9>> "$run/.lock"
flock -n 9 || { echo "$run: waiting for another make corpus in this folder, or for what a killed one has left running" >&2; flock 9; }
list_files > "$run/inputs.new" || exit 1
[ -s "$run/inputs.new" ] || { echo "${dir:+DIR=$dir}${paths:+FILES=$paths}: no .h5ad file and no .zarr store" >&2; exit 1; }
while IFS= read -r -d '' path; do
	[[ $path != *[$'\t\n']* ]] || { echo "'$path': a name with a tab or a line break" >&2; exit 1; }
	stamp=$(stamp "$path") || exit 1
	place=$path
	if [ "$stamp" = missing ]; then
		path=$(realpath -ms -- "$path") # the link, not what it leads to
	else
		place=$(stat -L -c %d:%i -- "$path") && path=$(realpath -- "$path") || exit 1
	fi
	name=$(basename -- "$path")
	name=${name%.*}
	name=${name:0:60}
	printf '%s-%s\t%s\t%s\t%s\n' "${name//[^a-zA-Z0-9._-]/_}" "$(sha256sum <<< "$path" | cut -c 1-8)" "$path" "$stamp" "$place"
done < "$run/inputs.new" | awk -F '\t' -v OFS='\t' -v others="$run/others.tsv" '
	BEGIN { printf "" > others }
	!($4 in first) { first[$4] = $2; print $1, $2, $3; next }
	$2 != first[$4] { print $2, "same", "", "", "", "", "", "the same file as " first[$4] > others }' > "$run/inputs.tsv.new"
rm "$run/inputs.new"
cd "$run"
whole inputs.tsv
mkdir -p tok log sums 'done'
rm -rf refused none copy
mkdir -p refused none copy warned rows
while IFS=$'\t' read -r name path stamp; do
	[ "$stamp" != missing ] || echo "no such file$(readlink -- "$path" | sed '1s/^/: a link to /')" > "refused/$name"
done < inputs.tsv
# what WHERE compares must be read; OBS adds to it
columns=$(tr ';' '\n' <<< "$where" | sed 's/^ *//; s/ *[!<>=].*//; /^$/d' | cat - <(tr ',' '\n' <<< "$obs" | sed '/^$/d') <(! whole_donors || echo "$held_out") | awk -v label="$label" '$0 "" != label' | sort -u | paste -sd ,)
columns=${columns:-none}
export where columns h5tok_args rank_args medians token_table map max_len held_out share seed label sample

# of OPTION...: this script with OPTION... for each name on standard input, side by side
side_by_side() {
	tr '\n' '\0' | xargs -0 -r -P "$threads" -n 1 "$self" "$@" ||
		{ echo "corpus: stopped, not because of a file ($(free_space .) free on the disk): the next make corpus goes on" >&2; exit 1; }
}
# accepted: the names of the files that are read
accepted() { cut -f 1 inputs.tsv | while read -r name; do [ -e "refused/$name" ] || [ -e "none/$name" ] || [ -e "copy/$name" ] || echo "$name"; done; }
# for_medians: those of them that have cells for training
for_medians() { accepted | while read -r name; do [ -e "held/$name.all" ] || echo "$name"; done; }
names_in() { find "$@" -type f -printf '%f\n' | sort; }
count() { wc -l | tr -d ' '; }
to_read() { awk 'END { print NR (NR == 1 ? " file" : " files") " to read" }' todo; }

# all_sums PASS: the sums of all files. shared/NAME says that a file has too few genes of the others.
all_sums() {
	local name
	for_medians | sed "s|.*|sums/&.$1|" > sums/list.new
	mv sums/list.new list.sums
	CORRMASK_REPORT='' rankenc -q --fit --sums --report "sums/all.$1.report" -o "sums/all.$1" @list.sums
	rm list.sums
	[ "$1" = 1 ] || return 0
	rm -rf shared
	mkdir shared
	for_medians | while read -r name; do sed -n "s|^warning\t[^\t]*sums/$name\.1: ||p" sums/all.1.report > "shared/$name"; done
}

# rows_of NAME: a digest of the rows of its cells, in any order
rows_of() {
	local file show=n_counts,gene,count now
	file=$(file_of "$1")
	now="$(stamp_of "$1")"
	[[ $file != *.tok ]] || show=token
	[ "$(sed -n 1p "rows/$1" 2> /dev/null)" = "$now" ] || {
		{ echo "$now" && cells "$file" 2>> "log/$1.log" | scview -q --gene-names id -c $show - | tail -n +2 | LC_ALL=C sort | sha256sum | cut -d ' ' -f 1; } > "rows/$1.new" &&
			whole "rows/$1"
	} && sed -n 2p "rows/$1"
}
# find_copies: of the lines "NAME KEY" on standard input, in the order of the corpus, those with one key may be copies. They are, if they have the
# same rows. copy/NAME has the path of the first one.
find_copies() {
	local name key rows
	awk '{ name[NR] = $1; key[NR] = $2; n[$2]++ } END { for (i = 1; i <= NR; i++) if (n[key[i]] > 1) print name[i], key[i] }' | while read -r name key; do
		rows=$(rows_of "$name") || exit
		echo "$name $key$rows"
	done | awk '$2 in first { print $1, first[$2]; next } { first[$2] = $1 }' | while read -r name key; do
		file_of "$key" > "copy/$name"
	done || { echo "corpus: a file that may be a copy could not be read again (see log): the next make corpus goes on" >&2; exit 1; }
}
# keys FOLDER: the lines of find_copies, from FOLDER/NAME.same
keys() { accepted | while read -r name; do [ ! -s "$1/$name.same" ] || echo "$name $(cat "$1/$name.same")"; done; }

# table: corpus.tsv of what is known
table() {
	local name path stamp status reason
	{
		printf 'file\tstatus\tcells\tdropped_where\tdropped_without_genes\tcells_used\ttokens\treason\n'
		while IFS=$'\t' read -r name path stamp; do
			for status in refused none copy; do
				[ -e "$status/$name" ] || continue
				reason=$(tr '\t\n' '  ' < "$status/$name")
				[ $status != copy ] || reason="the same cells as $reason"
				printf '%s\t%s\t\t\t\t\t\t%s\n' "$path" "${status/none/empty}" "${reason% }"
				continue 2
			done
			if [ -e "done/$name" ]; then
				awk -F '\t' -v path="$path" -v warned="$(cat "shared/$name" "warned/$name" 2> /dev/null | paste -sd ';' | tr '\t' ' ')" 'BEGIN { OFS = "\t" }
					{ print path, ($5 > 0 ? "used" : "empty"), $2, $3, $4, $5, $6, (warned == "" ? "" : "warning: " warned) }' "done/$name"
			else
				printf '%s\tread\t\t\t\t\t\t\n' "$path"
			fi
		done < inputs.tsv
		cat others.tsv
	} > corpus.tsv.new
	whole corpus.tsv
}

# verdict: the files that are not used or that a tool has warned of, by their paths. With REFUSED=stop the script ends if some are refused, or copies.
verdict() {
	local bad
	table
	awk -F '\t' 'NR == 1 { next }
		$2 == "refused" || $2 == "copy" || $8 ~ /^warning: / { if (++n <= 20) print "  " ($2 == "refused" || $2 == "copy" ? $2 ": " : "") $1 ": " $8 }
		END { if (n > 20) print "  and " n - 20 " more: see corpus.tsv" }' corpus.tsv >&2
	bad=$(names_in refused copy | count)
	[ "$bad" != 0 ] && [ "$refused" = stop ] || return 0
	rm -f corpus.txt corpus.txt.new
	echo "corpus: no list was made, as $bad of the files cannot be read or are copies of others ($run/corpus.tsv): repair or remove them, correct the setting that a message names, or leave them out with REFUSED=skip" >&2
	exit 1
}
# after_first_pass KEYS: copies, and the end before the other passes
after_first_pass() {
	keys "$1" | find_copies
	[ "$refused" != stop ] || [ -z "$(names_in refused copy)" ] || verdict
}

# no_cells: end, and say why
no_cells() {
	echo "corpus: no cells are left$(find refused none -type f -exec cat {} + | sed -n '1s/.*/: &/p')" >&2
	exit 1
}

if [ -n "$held_out" ]; then
	all_cells
	[ -n "$(accepted)" ] || no_cells
	[ "$until" != cells ] || exit 0
fi
of_tokens=$(awk -F '\t' '$2 ~ /\.tok$/ { print 1; exit }' inputs.tsv) # tokens have a vocabulary
if [ -z "$medians$of_tokens" ]; then
	# sums of a file that has changed, and, when any file has, those of the later passes
	while IFS=$'\t' read -r name path stamp; do
		[ ! -e "held/$name" ] || stamp="$stamp $(sha256sum < "held/$name" | cut -c 1-16)"
		[ "$(cat "sums/$name.stamp" 2> /dev/null)" = "$stamp" ] || rm -f "sums/$name".*
		echo "$stamp" > "sums/$name.stamp"
	done < inputs.tsv
	for ((n = 1; ; n++)); do
		for_medians | while read -r name; do [ -e "sums/$name.$n" ] || echo "$name"; done > todo
		echo "  medians, pass $n: $(to_read)"
		side_by_side --pass "$n" < todo
		if [ "$n" = 1 ]; then
			after_first_pass sums
			[ -n "$(accepted)" ] || break
			now=$(for_medians | while read -r name; do echo "$name $(cat "sums/$name.stamp")"; done | sha256sum)
			[ "$(cat sums/of 2> /dev/null)" = "$now" ] || {
				find sums -name 'all.*' -delete -o -name '*.[2-9]' -delete -o -name '*.[1-9][0-9]' -delete
				rm -f vocab.tsv
			}
			echo "$now" > sums/of
		elif [ -n "$(comm -12 <(names_in refused none) <(names_in sums | sed -n 's/\.1$//p' | sort))" ]; then
			# a file that pass 1 has read: its sums cannot be left out any more
			grep -r . refused none | head -n 5 >&2
			echo "corpus: pass $n has failed; the next make corpus goes on" >&2
			exit 1
		fi
		if [ ! -e "sums/all.$n" ] || [ ! -s "sums/all.$n.report" ]; then all_sums "$n"; fi
		[ "$(reported "sums/all.$n.report" genes_left)" != 0 ] || break
	done
	rm -f todo
	if [ -n "$(accepted)" ] && [ "$(reported sums/all.1.report cells_in)" = 0 ]; then
		echo "corpus: no cells are left: WHERE drops them all, or the files have none" >&2
		exit 1
	fi
	if [ -n "$(accepted)" ] && [ ! -e vocab.tsv ]; then
		# shellcheck disable=SC2046 # words
		rankenc -q --fit $(grep -oE -- '--vocab-style[= ]+[^ ]+' <<< "$rank_args") "sums/all.$n" -o vocab.tsv.new
		whole vocab.tsv
	fi
fi

state=
[ -z "$(accepted)" ] || [ -n "$of_tokens" ] || state=$(sha256sum < "${medians:-vocab.tsv}" | cut -c 1-16)
[ -z "$held_out" ] || state=$state-$max_len-$label-$sample
export state
if [ -n "$(accepted)" ]; then
	accepted | while read -r name; do
		[ -e "tok/$name.tok" ] && [ "$(cut -f 1 "done/$name" 2> /dev/null)" = "$(stamp_of "$name") $state" ] && ! old_sample "$name" || echo "$name"
	done > todo
	echo "  tokens: $(to_read)"
	[ ! -s todo ] || rm -f corpus.txt # some of its tokens become others
	side_by_side --tokens < todo
	rm todo
	accepted | while read -r name; do
		awk -F '\t' -v name="$name" '$6 > 0 { print name, $2 "/" $5 "/" $6 }' "done/$name"
	done | find_copies
	[ -z "$held_out" ] || all_parts
fi

# ---- the table and the list ----

table
{
	echo "# tokens of $run: maskgen @corpus.txt"
	listed train
} > corpus.txt.new
rm -f corpus.txt
awk -F '\t' 'NR > 1 { n[$2]++; all += $3; where += $4; genes += $5; used += $6; tokens += $7; warned += $8 ~ /^warning: / }
	END {
		printf "%d files: %d used, %d empty, %d refused", NR - 1, n["used"], n["empty"], n["refused"]
		if (n["copy"]) printf ", %d copies", n["copy"]
		if (n["same"]) printf ", %d other names of one of them", n["same"]
		if (warned) printf "; warnings of %d", warned
		printf "\n%d cells read: %d dropped by WHERE, %d without genes of the vocabulary, %d used; %d tokens\n", all, where, genes, used, tokens
	}' corpus.tsv
verdict
if ! grep -q '^[a-z]' corpus.txt.new; then
	rm -f corpus.txt.new
	no_cells
fi
# do they make one corpus? Tokens that are damaged have no right to their row any more, so they are made again.
mv corpus.txt.new corpus.txt
if [ -n "$held_out" ]; then
	{
		echo "# tokens of $run that are held out"
		listed held
	} > held-out.txt.new
	whole held-out.txt
	[ -z "$label" ] || for part in train held; do
		samples "$part" > "sample.$part.txt.new"
		whole "sample.$part.txt"
	done
fi
scview -n 0 @corpus.txt > joined || {
	sed -n '/^[a-z]/p' corpus.txt | while read -r tokens; do
		scview -n 0 "$tokens" > joined 2> /dev/null && continue
		rm -f "done/$(basename "${tokens%.train.tok}" .tok)"
		echo "corpus: $run/$tokens is damaged: the next make corpus makes it again" >&2
	done
	rm -f corpus.txt joined
	exit 1
}
rm joined
sync corpus.txt
echo "$run/corpus.txt: the list for maskgen @$run/corpus.txt; $run/corpus.tsv: the table"

# shellcheck shell=bash disable=SC2154 # a part of corpus.sh, whose variables it reads
# The cells of a corpus that are held out: whole donors (--held-out COLUMN) or single cells (--held-out cells). In RUN:
#     cells/NAME.same   the number and the sums of its cells, which copies share
#     cells.tsv         donor, label and number of cells of all files
#     cells/NAME        what tells whether it is the same file; then donor, label and number of cells, with tabs between; a value that is missing is empty
#     held-out.tsv      donor, cells, part (training or held out)
#     held/NAME         the donors of the file that are held out; held/NAME.all, if no other cell is left
#     part/NAME.train.tok, part/NAME.held.tok      the tokens of a file that has both
#     sample/NAME.train.tok, sample/NAME.held.tok  with --label: at most --sample cells that have a label, with all their genes and values; sample/NAME.of
#                       says which donors were held out; sample.train.txt, sample.held.txt are lists of those of the files that are used
#     held-out.txt      the list of the cells that are held out; corpus.txt has the others

# whole_donors: donors are held out, not single cells
whole_donors() { [ -n "$held_out" ] && [ "$held_out" != cells ]; }
# label_of FILE: LABEL, if the file has this column
label_of() { [ -z "$label" ] || [[ $1 = *.tok ]] || h5tok -q --list-obs "$1" | cut -f 1 | grep -xF -- "$label" || true; }

number_cells() {
	local file show=cell mine total
	file=$(file_of "$1")
	[[ $file = *.tok ]] && total='' || total=n_counts
	mine=$(label_of "$file")
	! whole_donors || show=$held_out
	cells "$file" | scview -q -c "$show${mine:+,$mine}${total:+,$total}" - | awk -F '\t' -v OFS='\t' -v stamp="$(stamp_of "$1")" -v donors="$(! whole_donors || echo 1)" \
		-v labels="${mine:+1}" -v total="$total" -v same="cells/$1.same" '
		NR > 1 {
			n[(donors && $1 != "NA" ? $1 : "") OFS (labels && $2 != "NA" ? $2 : "")]++
			if (total != "") { sum += $NF; square = (square + $NF % 94906249 * ($NF % 94906249)) % 94906249 }
		}
		END { print stamp; for (k in n) print k, n[k]; if (sum) print NR "/" sum "/" square > same }' > "cells/$1.new"
	ended "${PIPESTATUS[@]}"
}
one_cells() {
	rm -f "cells/$1" "cells/$1.same"
	attempt "$1" number_cells "$1"
	[ -e "refused/$1" ] || [ -e "none/$1" ] || whole "cells/$1"
}

# choose_donors: held-out.tsv. As scsample --group chooses: donors come in an order that depends on the seed and their names alone, so most stay where they
# are when files are added; one is held out if this brings the number of these cells nearer to the share.
choose_donors() {
	local donor n
	awk -F '\t' -v OFS='\t' '{ n[$1] += $3 } END { for (d in n) if (d != "") print d, n[d] }' cells.tsv |
		while IFS=$'\t' read -r donor n; do printf '%s\t%s\t%s\n' "$(sha256sum <<< "$seed $donor")" "$donor" "$n"; done | sort |
		awk -F '\t' -v share="$share" '
			function far(x) { return x < share * all ? share * all - x : x - share * all }
			{ donor[NR] = $2; n[NR] = $3; all += $3 }
			END {
				for (i = 1; i <= NR; i++) if (groups + 1 < NR && far(taken + n[i]) < far(taken)) { held[i]; taken += n[i]; groups++ }
				if (!groups) { for (i = 1; i <= NR; i++) if (!least || n[i] < n[least]) least = i; held[least] }
				print "donor\tcells\tpart"
				for (i = 1; i <= NR; i++) print donor[i] "\t" n[i] "\t" (i in held ? "held out" : "training")
			}' > held-out.tsv.new
	[ "$(wc -l < held-out.tsv.new)" -ge 3 ] || {
		echo "HELD_OUT=$held_out: $(sed -n "2s/\t.*//p" held-out.tsv.new | sed 's/.*/all cells are of "&"/; t; s/^$/no cell has a value/'): a donor for training and one to hold out are needed" \
			"(without HELD_OUT=, single cells are held out)" >&2
		exit 1
	}
	awk -F '\t' '$1 == "" { n += $3 } END { if (n) print "note: " n " cells have no '"$held_out"': they are among the cells for training" }' cells.tsv
	whole held-out.tsv
}
# donors_of_files: held/NAME
donors_of_files() {
	rm -rf held
	mkdir held
	accepted | while read -r name; do
		awk -F '\t' -v name="$name" 'FILENAME != ARGV[1] && FNR == 1 { next } FILENAME == ARGV[1] { if ($3 == "held out") held[$1]; next }
			$1 in held { if (!seen[$1]++) print $1 > ("held/" name); next }
			{ others++ }
			END { if (length(seen) && !others) print "" > ("held/" name ".all") }' held-out.tsv "cells/$name"
	done
}

# all_cells: which cells there are, and which of them are held out
all_cells() {
	mkdir -p cells part sample work
	rm -f work/*
	accepted | while read -r name; do [ "$(sed -n 1p "cells/$name" 2> /dev/null)" = "$(stamp_of "$name")" ] || echo "$name"; done > todo
	[ ! -s todo ] || echo "  cells: $(to_read)"
	side_by_side --cells < todo
	rm todo
	after_first_pass cells
	[ -n "$(accepted)" ] || return 0
	accepted | while read -r name; do sed 1d "cells/$name"; done > cells.tsv.new
	whole cells.tsv
	! whole_donors || { choose_donors; donors_of_files; }
}
# held_of NAME: what tells which donors of the file are held out
held_of() { [ ! -e "held/$1" ] || sha256sum < "held/$1" | cut -c 1-16; }
# old_sample NAME: the sample is one of other donors
old_sample() { [ -n "$label" ] && [ "$(cat "sample/$1.of" 2> /dev/null)" != "$(held_of "$1")" ]; }

# of_part PART NAME: the options of scsample for one part of a file that has both
of_part() {
	local donor
	if ! whole_donors; then
		part_options=(--test-fraction "$share" --seed "$seed" --part "$([ "$1" = train ] && echo train || echo test)")
		return
	fi
	part_options=()
	while IFS= read -r donor; do part_options+=(--where "$held_out$([ "$1" = train ] && echo '!=' || echo '=')$donor"); done < "held/$2"
}
# parts_of NAME: the parts that the file has
parts_of() {
	if [ -e "held/$1.all" ]; then
		echo held
	elif whole_donors && [ ! -e "held/$1" ]; then
		echo train
	else
		echo train held
	fi
}
state_of() { echo "$(cut -f 1 "done/$1") $(held_of "$1")"; }
one_part() {
	local part
	rm -f "part/$1.state" "part/$1.report"
	for part in $(parts_of "$1"); do
		of_part "$part" "$1"
		CORRMASK_REPORT=part/$1.report scsample "${part_options[@]}" -o "part/$1.$part.tok" "tok/$1.tok" 2>> "log/$1.log" || { tail -n 1 "log/$1.log" >&2; exit 1; }
	done
	state_of "$1" > "part/$1.state.new"
	whole "part/$1.state"
}
all_parts() {
	accepted | while read -r name; do
		[[ $(parts_of "$name") != *\ * ]] || [ "$(cut -f 5 "done/$name")" = 0 ] || [ "$(cat "part/$name.state" 2> /dev/null)" = "$(state_of "$name")" ] || echo "$name"
	done > todo
	side_by_side --part < todo
	rm todo
}
# listed PART: the files of tokens of one part
listed() {
	local row=1
	[ "$1" = train ] || row=2
	accepted | while read -r name; do
		[ "$(cut -f 5 "done/$name")" != 0 ] || continue
		[ -n "$held_out" ] || { echo "tok/$name.tok"; continue; }
		case $(parts_of "$name") in
		"$1") echo "tok/$name.tok" ;;
		*\ *) [ "$(awk -F '\t' -v row=$row '$1 == "cells_out" && ++n == row { print $2 }' "part/$name.report")" = 0 ] || echo "part/$name.$1.tok" ;;
		esac
	done
}

# samples PART: the files of samples of one part
samples() {
	accepted | while read -r name; do
		[ "$(cut -f 5 "done/$name")" = 0 ] || [ ! -e "sample/$name.$1.tok" ] || echo "sample/$name.$1.tok"
	done
}
# sampled NAME: some of the cells of work/NAME that have a label, of each part, encoded with the options in vocab and with their values
sampled() {
	local part
	rm -f "sample/$1".*
	held_of "$1" > "sample/$1.of"
	awk -F '\t' 'NR > 1 && $2 != "" { found = 1 } END { exit !found }' "cells/$1" || return 0
	CORRMASK_REPORT='' rankenc -q "${vocab[@]}" --max-len 16777216 --value -o "work/$1.values" "work/$1" || return
	for part in $(parts_of "$1"); do
		part_options=()
		[[ $(parts_of "$1") != *\ * ]] || of_part "$part" "$1"
		CORRMASK_REPORT='' scsample -q -u "${part_options[@]}" "work/$1.values" |
			CORRMASK_REPORT='' scsample -q --where "$label!=NA" -n "$sample" --seed "$seed" -o "sample/$1.$part.tok"
		ended "${PIPESTATUS[@]}" || return
	done
}

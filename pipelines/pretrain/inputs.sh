#!/usr/bin/env bash
# From files to the corpus of make pretrain: lists of tokens for training and held out, and the settings that depend on how many cells there are.
#     inputs.sh PRETRAIN CORPUS --data DATA --batch N --share F --sample N --seed N --threads N [--NAME VALUE...]
# In PRETRAIN: train.txt and held-out.txt, lists for maskgen, which change only if their tokens do; group, the column of donors; plan.tsv: name, value, why.
. "$(dirname "$0")/../common.sh"
run=$1 corpus=$2
shift 2
where='' held_out='' label='' refused='' vocab='' token_table='' map='' init='' config='' max_len='' epochs='' lr='' positions='' h5tok_args='' rank_args=''
options 'data share batch sample seed threads' 'where held-out label refused vocab token-table map init config max-len epochs lr h5tok-args rank-args' "$@"
[ "$held_out" != none ] || held_out=
# shellcheck disable=SC2154 # options sets them
make_corpus() {
	CORRMASK_REPORT='' "$here/corpus/corpus.sh" "$corpus" --threads "$threads" --paths "$data" --where "$where" --refused "${refused:-stop}" --held-out "${held_out:-cells}" --share "$share" \
		--label "$label" --sample "$sample" --seed "$seed" --medians "$vocab" --token-table "$token_table" --map "$map" --h5tok-args "$h5tok_args" --rank-args "$rank_args" "$@"
}
# what the model and the vocabulary are
if [ -n "$init$vocab" ]; then
	"$here/model.sh" INIT=,VOCAB=,TOKEN_TABLE= "$init" "$vocab" "$token_table" "$run/init"
	vocab=$(reported "$run/init/model.tsv" vocab) token_table=
	init=$(reported "$run/init/model.tsv" model)
	[ -z "$init" ] || [ -n "$max_len" ] || positions=$(reported "$run/init/model.tsv" max_len)
fi

make_corpus --until cells
cp "$corpus/cells.tsv" "$run/cells.new"
[ -z "$held_out" ] || {
	awk -F '\t' 'FNR == NR { part[$1] = $3; next } { print ($1 in part ? part[$1] : "training") "\t" $2 "\t" $3 }' "$corpus/held-out.tsv" "$run/cells.new" > "$run/cells.part"
	mv "$run/cells.part" "$run/cells.new"
}
# cells_of PART
cells_of() { awk -F '\t' -v part="$1" -v share="$share" '{ all += $3; if ($1 == part) n += $3 } END { held = int(share * all + .5); print '"$([ -n "$held_out" ] && echo 'n + 0' || echo '(part == "training" ? all - held : held)')"' }' "$run/cells.new"; }
train=$(cells_of training) held=$(cells_of 'held out')
if [ -n "$label" ]; then
	classes=$(awk -F '\t' '$2 != "" && $1 != "held out" && !seen[$2]++ { n++ } END { print n + 0 }' "$run/cells.new")
	known=$(awk -F '\t' -v by="$held_out" '$2 != "" && ($1 == "held out" || by == "") { n += $3 } END { print n + 0 }' "$run/cells.new")
	[ "$classes" -ge 2 ] || { echo "LABEL=$label: $classes class$([ "$classes" = 1 ] || echo es) among the cells for training, expected at least 2" >&2; exit 1; }
	[ "$classes" -le 500 ] || { echo "LABEL=$label: $classes values among the cells for training: expected cell types" >&2; exit 1; }
	[ "$known" -ge 1 ] || { echo "LABEL=$label: no held-out cell has one" >&2; exit 1; }
fi
least=100
[ "$train" -ge "$least" ] || { echo "DATA=$data: $train cells for training${where:+ with WHERE=$where}, expected at least $least" >&2; exit 1; }
[ "$held" -ge 1 ] || { echo "HELD_OUT_SHARE=$share: no cell is held out, of $((train + held))" >&2; exit 1; }
rm "$run/cells.new"

# What depends on the number of cells. The paper's smallest corpus has 30,000.
few=$((train < 30000))
by="$([ $few = 1 ] && echo fewer || echo not fewer) than 30,000 cells"
# decide NAME "GIVEN" "WHY" VALUE "WHY NOT GIVEN"
decide() { printf '%s\t%s\t%s\n' "$1" "${2:-$3}" "$([ -n "$2" ] && echo given || echo "$4")"; }
small() { if [ $few = 1 ]; then echo "$1"; else echo "$2"; fi; }
{
	if [ -n "$init" ]; then decide config '' '' "that of INIT"; else decide config "$config" "$(small tiny corrmask-paper)" "$by"; fi
	decide max_len "$max_len" "${positions:-$(small 256 '')}" "$([ -n "$positions" ] && echo "the positions of INIT" || echo "$by")"
	decide epochs "$epochs" "$(small 6 3)" "$by"
	network=/dev/null
	[ ! -f "$config" ] || network=$config
	[ -z "$init" ] || network=$init/config.json
	width=$(awk -v named="${config:-$(small tiny corrmask-paper)}" '/"hidden_size"/ { gsub(/[^0-9]/, ""); width = $0 } END { print width ? width : named == "tiny" ? 64 : 256 }' \
		"$network")
	rate=$([ "$width" -lt 128 ] && echo 0.003 || echo 0.001)
	[ -z "$init" ] || rate=${rate/0./0.0}
	decide lr "$lr" "$rate" "a network of width $width$([ -z "$init" ] || echo ', and a tenth as it goes on from INIT')"
	printf '%s\t%s\t\n' init "$init" train "$train" held "$held"
	[ -z "$held_out" ] || awk -F '\t' 'NR > 1 { n[$3]++ } END { print "donors\t" n["training"] + n["held out"] "\t"; print "donors_held\t" n["held out"] "\t" }' "$corpus/held-out.tsv"
} > "$run/plan.tsv.new"
plan() { reported "$run/plan.tsv.new" "$1"; }

make_corpus --max-len "$(plan max_len)"
awk -F '\t' '$2 == "used" { cells += $6; tokens += $7; files++ } END { print "tokens_per_cell\t" (cells && tokens ? tokens / cells : "") "\t"; print "files\t" files "\t" }' "$corpus/corpus.tsv" >> "$run/plan.tsv.new"
whole "$run/plan.tsv"
echo "$held_out" > "$run/group"
[ -z "$label" ] || for part in train held; do (cd "$corpus" && xargs -d '\n' -r realpath < "sample.$part.txt") > "$run/sample.$part.txt"; done
for list in train:corpus held-out:held-out; do
	{
		echo "# tokens of make pretrain; $(sha256sum < <(cat "$corpus/inputs.tsv" "$corpus/corpus.tsv" "$corpus/held-out.tsv" "$corpus/vocab.tsv" 2> /dev/null) | cut -c 1-16)"
		(cd "$corpus" && sed '/^#/d' "${list#*:}.txt" | tr '\n' '\0' | xargs -0 realpath)
	} > "$run/${list%:*}.txt.new"
	if cmp -s "$run/${list%:*}.txt.new" "$run/${list%:*}.txt"; then rm "$run/${list%:*}.txt.new"; else whole "$run/${list%:*}.txt"; fi
done

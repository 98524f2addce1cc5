#!/usr/bin/env bash
# List the corpora of a catalogue, or download one. OUT.part holds what has arrived, and a later call goes on there. It becomes OUT if its sum is
# that of the catalogue.
#     fetch.sh CATALOG [NAME OUT]
. "$(dirname "$0")/common.sh"
[ $# = 1 ] || [ $# = 3 ] || usage
catalog=$1
stop() {
	echo "fetch.sh: $1" >&2
	exit 1
}
[ -f "$catalog" ] || stop "$catalog: no such file"
expected="name url sum bytes licence label donor description"
[ "$(head -n 1 "$catalog" | tr '\t' ' ')" = "$expected" ] || stop "$catalog: line 1: expected the columns $expected, with tabs between"
if [ $# = 1 ]; then
	# twice over the file: first how wide the names are
	awk -F '\t' '
		function wrapped(text,    n, word, i, line) {
			n = split(text, word, " ")
			for (i = 1; i <= n; i++) {
				if (line != "" && length(line) + length(word[i]) > 75) { print "    " line; line = "" }
				line = line (line == "" ? "" : " ") word[i]
			}
			print "    " line
		}
		FNR == 1 { next }
		NR == FNR { if (length($1) > wide) wide = length($1); next }
		{
			if (name == "") name = $1
			printf "%-" wide "s %8s  %s %s  (%s)\n", $1, sprintf($4 < 1e9 ? "%.1f MB" : "%.1f GB", $4 / ($4 < 1e9 ? 1e6 : 1e9)),
				$6 == "NA" ? "no labels" : "LABEL=" $6, "GROUP=" ($7 == "NA" ? "none" : $7), $5
			wrapped($8)
		}
		END {
			print "\nTo use one, give an experiment DATA=data/NAME.h5ad and the LABEL and GROUP of it."
			print "This downloads one, in the folder of the sources with make instead of corrmask:"
			print "    corrmask data/" (name == "" ? "NAME" : name) ".h5ad"
		}' "$catalog" "$catalog"
	exit
fi
name=$2 out=$3
line=$(awk -F '\t' -v name="$name" 'NR > 1 && $1 == name { print NR; exit }' "$catalog")
[ -n "$line" ] || stop "$catalog: no line for '$name' (names: $(tail -n +2 "$catalog" | cut -f 1 | paste -sd ' '))"
IFS=$'\t' read -r _ url sum bytes _ < <(sed -n "${line}p" "$catalog")
kind=sha256 digits=${sum#sha256:}
[[ $sum != md5:* ]] || kind=md5 digits=${sum#md5:}
[[ $kind:$digits =~ ^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})$ ]] ||
	stop "$catalog: line $line: '$sum' is not a checksum (expected 64 digits 0-9a-f of sha256, or md5: and 32 digits)"
[[ $bytes =~ ^[0-9]+$ ]] || stop "$catalog: line $line: '$bytes' is not a number of bytes"

mkdir -p "$(dirname "$out")"
part=$out.part
size() { stat -c %s "$part" 2>/dev/null || echo 0; }
arrive() { curl -fsSL --retry 3 -C - -o "$part" -- "$url" 2>&1; }
# refuse WHAT: it is not the file of the catalogue
refuse() {
	rm -f "$part"
	stop "$url: $1 (line $line of $catalog); what arrived is removed, and the next call fetches it anew: if it is the same again, the file there has changed"
}
echo "  $out ($bytes bytes) from $url"
if [ "$(size)" -lt "$bytes" ]; then
	code=0
	why=$(arrive) || code=$?
	# a server that sends whole files alone
	[ $code != 33 ] || { rm "$part"; code=0; why=$(arrive) || code=$?; }
	[ $code = 0 ] || stop "$url: ${why##*$'\n'}; $(size) of $bytes bytes are here, and the next call goes on from them"
fi
[ "$(size)" -eq "$bytes" ] || refuse "$(size) bytes, expected $bytes"
got=$("${kind}sum" < "$part" | cut -d ' ' -f 1)
[ "$got" = "$digits" ] || refuse "$kind is $got, expected $digits"
sync "$part"
mv "$part" "$out"
sync "$(dirname "$out")"

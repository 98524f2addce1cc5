#!/usr/bin/env bash
# List the corpora of a catalogue, or download one. OUT.part holds what has arrived, and a later call goes on there. It becomes OUT if its sha256 is
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
expected="name url sha256 bytes licence label donor description"
[ "$(head -n 1 "$catalog" | tr '\t' ' ')" = "$expected" ] || stop "$catalog: line 1: expected the columns $expected, with tabs between"
if [ $# = 1 ]; then
	awk -F '\t' 'NR == 1 { printf "%-24s %10s  %-20s %-14s %s\n", "name", "MB", "LABEL", "GROUP", "description"; next }
		{ printf "%-24s %10.1f  %-20s %-14s %s (%s)\n", $1, $4 / 1e6, $6, $7, $8, $5 }' "$catalog"
	exit
fi
name=$2 out=$3
line=$(awk -F '\t' -v name="$name" 'NR > 1 && $1 == name { print NR; exit }' "$catalog")
[ -n "$line" ] || stop "$catalog: no line for '$name' (names: $(tail -n +2 "$catalog" | cut -f 1 | paste -sd ' '))"
IFS=$'\t' read -r _ url sum bytes _ < <(sed -n "${line}p" "$catalog")
[[ $sum =~ ^[0-9a-f]{64}$ ]] || stop "$catalog: line $line: '$sum' is no sha256 (expected 64 digits 0-9a-f)"
[[ $bytes =~ ^[0-9]+$ ]] || stop "$catalog: line $line: '$bytes' is no number of bytes"

mkdir -p "$(dirname "$out")"
part=$out.part
size() { stat -c %s "$part" 2>/dev/null || echo 0; }
arrive() { curl -fsSL --retry 3 -C - -o "$part" -- "$url" 2>&1; }
echo "  $out ($bytes bytes) from $url"
if [ "$(size)" -lt "$bytes" ]; then
	code=0
	why=$(arrive) || code=$?
	# a server that sends whole files alone
	[ $code != 33 ] || { rm "$part"; code=0; why=$(arrive) || code=$?; }
	[ $code = 0 ] || stop "$url: ${why##*$'\n'}; $(size) of $bytes bytes are here, and the next call goes on from them"
fi
if [ "$(size)" -ne "$bytes" ]; then
	had=$(size)
	rm -f "$part"
	stop "$url: $had bytes, expected $bytes (line $line of $catalog)"
fi
got=$(sha256sum "$part" | cut -d ' ' -f 1)
if [ "$got" != "$sum" ]; then
	rm -f "$part"
	stop "$url: sha256 is $got, expected $sum (line $line of $catalog)"
fi
mv "$part" "$out"

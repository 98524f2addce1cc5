#!/usr/bin/env bats
# make catalog and make data/NAME.h5ad: downloads of public corpora, here of file:// addresses

load helper

setup() {
	cd "$BATS_TEST_TMPDIR"
	export BIN
	scsim -q --cells 300 --seed 3 | scview -q -O h5ad - -o "the cells.h5ad"
	{
		printf 'name\turl\tsum\tbytes\tlicence\tlabel\tdonor\tdescription\n'
		entry good "$(sha256sum < "the cells.h5ad" | cut -c 1-64)" "$(stat -c %s "the cells.h5ad")"
		entry changed "$(printf x | sha256sum | cut -c 1-64)" "$(stat -c %s "the cells.h5ad")"
		entry short "$(sha256sum < "the cells.h5ad" | cut -c 1-64)" 1000
	} > mine.tsv
}

# entry NAME SUM BYTES [FILE]
entry() { printf '%s\tfile://%s\t%s\t%s\tCC0\tcell_type\tdonor\tsimulated cells\n' "$1" "${4:-$PWD/the%20cells.h5ad}" "$2" "$3"; }
get() { pipelines "$1" CATALOG=mine.tsv; }

@test "make data/NAME.h5ad: the file of the catalogue, once; its columns are those to give" {
	run -0 get data/good.h5ad
	assert_line --partial "  data/good.h5ad ($(stat -c %s "the cells.h5ad") bytes) from file://"
	cmp data/good.h5ad "the cells.h5ad"
	run -0 get data/good.h5ad
	assert_output ""
	run ls data
	assert_output good.h5ad
	run -0 get catalog
	assert_line --regexp '^good +[0-9.]+ MB  LABEL=cell_type GROUP=donor  \(CC0\)$'
	h5tok --list-obs data/good.h5ad | grep -q '^cell_type'
	run -0 corrmask data/good.h5ad CATALOG=mine.tsv
	assert_output "make: 'data/good.h5ad' is up to date."
	rm data/good.h5ad
	run -0 corrmask data/good.h5ad CATALOG=mine.tsv
	cmp data/good.h5ad "the cells.h5ad"
}

@test "make data/NAME.h5ad: a sum is a sha256, with or without its name, or an md5" {
	bytes=$(stat -c %s "the cells.h5ad") md5=$(md5sum < "the cells.h5ad" | cut -c 1-32) sha=$(sha256sum < "the cells.h5ad" | cut -c 1-64)
	other=$(printf x | md5sum | cut -c 1-32)
	{
		entry named "sha256:$sha" "$bytes"
		entry md5 "md5:$md5" "$bytes"
		entry other "md5:$other" "$bytes"
		entry bare "$md5" "$bytes"
		entry long "md5:$sha" "$bytes"
	} >> mine.tsv
	run -0 get data/named.h5ad
	cmp data/named.h5ad "the cells.h5ad"
	run -0 get data/md5.h5ad
	cmp data/md5.h5ad "the cells.h5ad"
	run ! get data/other.h5ad
	assert_line --partial ": md5 is $md5, expected $other (line 7 of mine.tsv); what arrived is removed"
	run ! get data/bare.h5ad
	assert_line "fetch.sh: mine.tsv: line 8: '$md5' is not a checksum (expected 64 digits 0-9a-f of sha256, or md5: and 32 digits)"
	run ! get data/long.h5ad
	assert_line --partial "line 9: 'md5:$sha' is not a checksum"
	run ls data
	assert_output $'md5.h5ad\nnamed.h5ad'
}

@test "make catalog: long names stay in their column, long descriptions are wrapped, NA says what to give" {
	{
		printf 'a-name-that-is-longer-than-all-others\thttps://host.invalid\tx\t19773999714\tCC BY 4.0\tNA\tNA\t'
		printf 'word%.0s ' {1..40}
		printf 'end\n'
	} >> mine.tsv
	run -0 --separate-stderr get catalog
	assert_equal "$stderr" ""
	assert_line "$(printf '%-37s %8s  no labels GROUP=none  (CC BY 4.0)' a-name-that-is-longer-than-all-others "19.8 GB")"
	assert_line --regexp "^good {33} +[0-9.]+ MB  LABEL=cell_type"
	assert_line --regexp '^    word( word)* end$'
	run -0 awk "length > 85" <<< "$output"
	assert_output ""
	# a catalogue of no corpora
	sed -i 1q mine.tsv
	run -0 get catalog
}

@test "make data/NAME.h5ad: a download that stopped goes on from what is there" {
	mkdir data
	head -c 5000 "the cells.h5ad" > data/good.h5ad.part
	run -0 get data/good.h5ad
	cmp data/good.h5ad "the cells.h5ad"
	rm data/good.h5ad
	# bytes that are there are not fetched again: these are wrong, so the sum tells
	head -c 5000 /dev/zero > data/good.h5ad.part
	run ! get data/good.h5ad
	assert_output --partial "sha256 is"
	# all of it was there
	cp "the cells.h5ad" data/good.h5ad.part
	mv "the cells.h5ad" elsewhere
	run -0 get data/good.h5ad
	cmp data/good.h5ad elsewhere
}

@test "make data/NAME.h5ad: a server that sends whole files alone is asked for the whole file" {
	# Python's server knows no ranges
	$PYTHON -u -m http.server --bind 127.0.0.1 0 > served 2>&1 3>&- &
	server=$!
	for _ in $(seq 100); do ! grep -q port served || break; sleep 0.1; done
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' served)
	sed -i "s|file://[^\t]*/|http://127.0.0.1:$port/|" mine.tsv
	mkdir data
	head -c 5000 "the cells.h5ad" > data/good.h5ad.part
	no_proxy=127.0.0.1 run get data/good.h5ad
	kill $server
	assert_success
	assert_line --partial "from http://127.0.0.1:$port/the%20cells.h5ad"
	cmp data/good.h5ad "the cells.h5ad"
}

@test "make data/NAME.h5ad: other bytes than the catalogue's are one line, and no file" {
	run ! get data/changed.h5ad
	assert_line --regexp "^fetch.sh: file://.*: sha256 is $(sha256sum < "the cells.h5ad" | cut -c 1-64), expected $(printf x | sha256sum | cut -c 1-64) \(line 3 of mine.tsv\); what arrived is removed, and the next call fetches it anew: "
	[ "$(grep -c '^fetch' <<< "$output")" = 1 ]
	run ! get data/short.h5ad
	assert_line --regexp "^fetch.sh: file://.*: $(stat -c %s "the cells.h5ad") bytes, expected 1000 \(line 4 of mine.tsv\); what arrived is removed"
	run ls data
	assert_output ""
}

@test "make data/NAME.h5ad: unknown names, files that are gone and wrong catalogues are told" {
	run ! get data/none.h5ad
	assert_line "fetch.sh: mine.tsv: no line for 'none' (names: good changed short)"
	entry gone "$(printf x | sha256sum | cut -c 1-64)" 9 "$PWD/gone" >> mine.tsv
	run ! get data/gone.h5ad
	assert_line --regexp "^fetch.sh: file://.*/gone: curl: .*; 0 of 9 bytes are here"
	assert_not_exist data/gone.h5ad
	entry odd xyz 9 >> mine.tsv
	run ! get data/odd.h5ad
	assert_line --partial "line 6: 'xyz' is not a checksum"
	entry many "$(printf x | sha256sum | cut -c 1-64)" many >> mine.tsv
	run ! get data/many.h5ad
	assert_line --partial "line 7: 'many' is not a number of bytes"
	sed -i '1s/sum/md5/' mine.tsv
	run ! get data/good.h5ad
	assert_line --partial "mine.tsv: line 1: expected the columns name url sum bytes"
	run ! pipelines catalog CATALOG=nothing.tsv
	assert_line "fetch.sh: nothing.tsv: no such file"
}

@test "data/catalog.tsv: every line has a name of its own, an address, a sum, a licence, and says who has read the file" {
	run -0 awk -F '\t' '
		NR > 1 && !(NF == 8 && !seen[$1]++ && $1 ~ /^[a-z0-9_-]+$/ && $2 ~ /^https:/ && $4 > 0 && $5 != "" && $6 != "" && $7 != "" &&
			(($3 ~ /^[0-9a-f]+$/ && length($3) == 64) || ($3 ~ /^md5:[0-9a-f]+$/ && length($3) == 36)) &&
			$8 ~ ($1 == "placenta" ? "; a copy was read by us, the address was not tried$" : "; not downloaded by us, sum: [^ ]"))' "$BATS_TEST_DIRNAME/../data/catalog.tsv"
	assert_output ""
	run -0 pipelines catalog CATALOG="$BATS_TEST_DIRNAME/../data/catalog.tsv"
	assert_line --partial "placenta"
}

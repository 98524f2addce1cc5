#!/usr/bin/env bats
# make catalog and make data/NAME.h5ad: downloads of public corpora, here of file:// addresses

load helper

setup() {
	cd "$BATS_TEST_TMPDIR"
	export BIN
	scsim -q --cells 300 --seed 3 | scview -q -O h5ad - -o "the cells.h5ad"
	{
		printf 'name\turl\tsha256\tbytes\tlicence\tlabel\tdonor\tdescription\n'
		entry good "$(sha256sum < "the cells.h5ad" | cut -c 1-64)" "$(stat -c %s "the cells.h5ad")"
		entry changed "$(printf x | sha256sum | cut -c 1-64)" "$(stat -c %s "the cells.h5ad")"
		entry short "$(sha256sum < "the cells.h5ad" | cut -c 1-64)" 1000
	} > mine.tsv
}

# entry NAME SHA256 BYTES [FILE]
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
	assert_line --regexp '^name +MB +LABEL +GROUP +description$'
	assert_line --regexp '^good +[0-9.]+ +cell_type +donor +simulated cells \(CC0\)$'
	h5tok --list-obs data/good.h5ad | grep -q '^cell_type'
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
	assert_line --regexp "^fetch.sh: file://.*: sha256 is $(sha256sum < "the cells.h5ad" | cut -c 1-64), expected $(printf x | sha256sum | cut -c 1-64) \(line 3 of mine.tsv\)$"
	[ "$(grep -c '^fetch' <<< "$output")" = 1 ]
	run ! get data/short.h5ad
	assert_line --regexp "^fetch.sh: file://.*: $(stat -c %s "the cells.h5ad") bytes, expected 1000 \(line 4 of mine.tsv\)$"
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
	assert_line --partial "line 6: 'xyz' is no sha256"
	entry many "$(printf x | sha256sum | cut -c 1-64)" many >> mine.tsv
	run ! get data/many.h5ad
	assert_line --partial "line 7: 'many' is no number of bytes"
	sed -i '1s/sha256/md5/' mine.tsv
	run ! get data/good.h5ad
	assert_line --partial "mine.tsv: line 1: expected the columns name url sha256 bytes"
	run ! pipelines catalog CATALOG=nothing.tsv
	assert_line "fetch.sh: nothing.tsv: no such file"
}

@test "data/catalog.tsv: every line has a name of its own, an address, a sum and a licence" {
	run -0 awk -F '\t' 'NR > 1 && !(NF == 8 && !seen[$1]++ && $1 ~ /^[a-z0-9_-]+$/ && $2 ~ /^https:/ && $3 ~ /^[0-9a-f]+$/ && length($3) == 64 && $4 > 0 && $5 != "" && $6 != "" && $7 != "" && $8 != "")' \
		"$BATS_TEST_DIRNAME/../data/catalog.tsv"
	assert_output ""
	run -0 pipelines catalog CATALOG="$BATS_TEST_DIRNAME/../data/catalog.tsv"
	assert_line --partial "placenta"
}

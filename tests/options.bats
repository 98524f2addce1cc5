# What the option tables promise for all tools: kinds of files, words of choices, modes.
load helper

setup_file() {
	export SMALL=$BATS_FILE_TMPDIR/small
	mkdir "$SMALL"
	make_small "$SMALL"
}

setup() {
	cd "$SMALL"
}

# IN: the input that the output must not replace. A command needs no other file to be refused.
inputs() {
	cat <<-'END'
	h5tok IN
	h5tok --rank IN sim.h5ad
	h5tok --map IN sim.h5ad
	h5tok --obs-table IN sim.h5ad
	h5tok --rank sim.vocab --tokens IN sim.h5ad
	rankenc --fit IN
	rankenc -m IN sim.counts
	rankenc -m sim.vocab --map IN sim.counts
	rankenc --fit --sums --after IN sim.counts
	depgraph sim.tok IN
	maskgen -g IN --strategy corrmask sim.tok
	maskgen -g sim.tok --strategy corrmask --audit IN sim.tok
	sctrain mlm --config IN sim.masked
	sctrain mlm --eval IN sim.masked
	sctrain cells --head a:hce --ontology IN sim.masked
	sctrain genes --gene-labels IN sim.masked
	sctrain eval -M sim.model IN
	scperturb apply --delete IN sim.tok
	scperturb apply --overexpress IN sim.tok
	scperturb apply --activate IN sim.tok
	scperturb apply --inhibit IN sim.tok
	scembed -M sim.model IN
	scperturb screen -M sim.model --top 3 --towards IN sim.tok
	screduce pca -k 3 --train IN sim.counts
	screduce pca -k 3 --shared-with IN sim.counts
	scsample --keep-genes IN sim.counts
	scview -O h5ad --into IN sim.emb
	ctaprobe cells --label a --train IN --test sim.emb
	ctaprobe cells --label a --test IN sim.emb
	ctaprobe genes --gene-labels IN sim.emb
	scgenes genesets --sets IN sim.tok
	scgenes markers -l a --new IN --assigned sim.pred sim.counts
	scgenes markers -l a --new sim.counts --assigned IN sim.counts
	armstat leaderboard --metrics accuracy,accuracy sim.tok,IN
	scmetric learnability --groups IN sim.tok
	scmetric reference --train IN sim.tok
	ctaprobe score --label a --train IN sim.emb
	ctaprobe score --label a --ontology IN sim.emb
	scperturb shift --state cell_type --from type1 --to type2 --states IN sim.emb
	ctaprobe transfer --reference IN --label a sim.emb
	ctaprobe transfer --reference sim.emb --label a --calibration IN sim.emb
	END
}

@test "options: no output replaces an input, by any of its names" {
	mkdir names
	echo "SIMG000010" >names/file
	ln -s file names/link
	ln names/file names/hard
	while read -r command; do
		[ -x "$BIN/${command%% *}" ] || continue
		for name in names/file ./names/../names/file names/link names/hard; do
			# shellcheck disable=SC2086
			run -2 --separate-stderr ${command//IN/names/file} -o $name
			assert_regex "$stderr" "${command%% *}.*: --output and .* name the same file: $name"
		done
		for report in names/file names/hard; do
			# shellcheck disable=SC2086
			run -2 --separate-stderr ${command//IN/names/link} -o new --report $report
			assert_regex "$stderr" "--report and .* name the same file: $report"
		done
		assert_equal "$command: $(cat names/file)" "$command: SIMG000010"
	done < <(inputs)
	assert_not_exist new
}

@test "options: no output replaces the file that is standard input, and none is added to the file that is read" {
	need_tool scsim scsample scview
	scsim -q --cells 20 --genes 20 --modules 2 -o kept
	cp kept file
	while read -r command; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr $command <file
		assert_regex "$stderr" "name the same file"
		cmp kept file
	done <<-'END'
		scview -o file
		scview -o ./file -
		scsample kept - -o file
		scsample -n 5 --report file -o new
		scsample --keep-genes - -o file kept
	END
	run -2 --separate-stderr sh -c "scsample file >>file"
	cmp kept file
	run -2 --separate-stderr sh -c "scsample -o - - <file >>file"
	cmp kept file
	# standard output may be a file as any other
	scsample -o - - <file >same
	scsample file >>new
	cmp same new
}

@test "options: no output replaces a file of a folder that is read, or lies in a store; a new file may lie in another folder" {
	need_tool h5tok
	zstd -qdc "$BATS_TEST_DIRNAME/../data/zarr.tar.zst" | tar x
	cp -r "$(find . -name 'v2_*.zarr' ! -name '*lzma*' | sort | head -n 1)" sim.zarr
	find sim.zarr -type f -exec sha256sum {} + | sort >before
	ln -s sim.zarr/X elsewhere
	for out in sim.zarr/X/.zattrs sim.zarr/new elsewhere/new; do
		run -2 --separate-stderr h5tok -q sim.zarr -o $out
		assert_regex "$stderr" "h5tok: --output "
	done
	find sim.zarr -type f -exec sha256sum {} + | sort | cmp before -
	h5tok -q sim.zarr -o sim.zarr.counts
	(cd sim.model && scembed -q -M . ../sim.tok -o new.emb && run -2 scembed -q -M . ../sim.tok -o vocab.tsv && scview -q --check new.emb)
	# a word is no file
	scperturb apply -q --delete all sim.tok -o all
}

# bats test_tags=slow
@test "options: every option, added to a working command in every mode, makes another output or is refused by its name" {
	need_tool h5tok depgraph sctrain scembed
	BIN=$BIN $PYTHON "$BATS_TEST_DIRNAME/options.py" "$BATS_TEST_TMPDIR/every"
}

#!/usr/bin/env bats
# h5tok on zarr stores and MuData: the same as from the .h5ad of the same object; what is damaged or unknown is one line.
# PEER_PYTHON is a Python with anndata 0.12 and zarr 3 (make peers, or make deps where Debian has no anndata) for stores at random.
load helper
PEER_PYTHON=${PEER_PYTHON:-$PYTHON}

setup_file() {
	need_tool h5tok scview
	cd "$BATS_FILE_TMPDIR"
	zstd -qdc "$BATS_TEST_DIRNAME/../data/zarr.tar.zst" | tar x
	"$BIN/h5tok" -q same.h5ad -o same.counts
}

setup() {
	mkdir "$BATS_TEST_TMPDIR/here"
	cd "$BATS_TEST_TMPDIR/here"
	S=$BATS_FILE_TMPDIR
}

# fails MESSAGE COMMAND...: exit status 1, one line, and no output file
fails() {
	run "${@:2}" -q -o never.counts
	assert_failure 1
	names "$1"
	assert_equal "${#lines[@]}" 1
	assert_file_not_exist never.counts
}

# stores: those with the cells of same.h5ad, of compressions that h5tok has
stores() {
	find "$S" -maxdepth 1 -name 'v[23]_*.zarr' ! -name '*lzma*'
}

@test "zarr: every version, compression and sharding gives the bytes of the .h5ad" {
	for layer in X columns dense; do
		h5tok -q --layer $layer "$S/same.h5ad" -o want.counts
		for z in $(stores); do
			h5tok -q --layer $layer $z -o a.counts
			cmp a.counts want.counts
		done
		h5tok -q -@3 --layer $layer $z/ -o b.counts
		cmp b.counts want.counts
	done
	h5tok -q --list-obs $z >columns.tsv
	h5tok -q --list-obs "$S/same.h5ad" | cmp - columns.tsv
	assert [ "$(stores | wc -l)" -eq 10 ]
	h5tok -q --sample-column sample "$S/v2_zlib.zarr" | scview -q -c sample - >sample.tsv
	assert_equal "$(sed -n 2p sample.tsv)" v2_zlib
	for path in . ./ ../v2_zlib.zarr/. layers/..; do
		(cd "$S/v2_zlib.zarr" && h5tok -q --sample-column sample $path) | scview -q -c sample - >sample.tsv
		assert_equal "$(sed -n 2p sample.tsv)" v2_zlib
	done
}

@test "zarr: a chunk that is not there is the fill value; of names it is an error, of indices it is noticed" {
	cp -r "$S/v3_gzip_crc.zarr" z
	rm z/layers/dense/c/0/0
	h5tok -q --layer dense z | scview -q --gene-names id - >a.tsv
	h5tok -q --layer dense "$S/same.h5ad" | scview -q --gene-names id - >b.tsv
	$PYTHON - <<-'END'
		a, b = ([l.rstrip("\n").split("\t") for l in open(f)] for f in ("a.tsv", "b.tsv"))
		gene, count = a[0].index("gene"), a[0].index("count")
		for i, (x, y) in enumerate(zip(a[1:], b[1:])):
		    pairs = zip(y[gene].split(), y[count].split())
		    want = [(g, c) for g, c in pairs if g and not (i < 16 and int(g[4:]) < 7)]
		    got = [(g, c) for g, c in zip(x[gene].split(), x[count].split()) if g]
		    assert got == want, (i, got, want)
		assert any(x != y for x, y in zip(a, b))
	END
	rm z/X/data/c/1
	run --separate-stderr h5tok --layer X z -o a.counts
	assert_success
	[[ $stderr == *"z: X/data: chunks are missing from the store, and zarr reads them as 0: was the whole store copied?"* ]]
	rm z/X/indices/c/1
	run -1 h5tok -q -o never.counts --layer X z
	assert_output --regexp "^h5tok: z: X/indices: a chunk is not in the store, and the fill value would give cell [0-9]+ the index 0 twice$"
	rm z/layers/columns/indices/c/3
	run -1 h5tok -q -o never.counts --layer columns z
	assert_output --regexp "^h5tok: z: layers/columns/indices: a chunk is not in the store, and the fill value would give gene [0-9]+ the index 0 twice$"
	rm z/obs/batch/c/2 # texts: empty
	h5tok -q --layer dense z | scview -q -c batch - >batch.tsv
	assert_equal "$(sed -n '33p;34p;41p' batch.tsv | tr '\n' ,)" "b31,,,"
	cp -r z few # categories differ, so one at most is the fill value: that of obs/none is not in any store
	rm few/obs/type/categories/c/0
	fails "few obs/type/categories chunk 0" h5tok --layer dense few
	sed -i 's/^    3$/    16777216/; s/^        16$/        1/' few/obs/type/categories/zarr.json
	grep -q 16777216 few/obs/type/categories/zarr.json
	fails "few obs/type/categories chunk 1" h5tok --layer dense few
	rm z/obs/_index/c/2
	fails "obs/_index chunk 32" h5tok --layer dense z
}

@test "zarr: short chunks, wrong checksums, unknown codecs, metadata that is damaged or lies: one line" {
	local z
	# damage STORE FILE PYTHON: b is what the file holds
	damage() {
		rm -rf z
		cp -r "$S/$1" z
		$PYTHON -c "import json,sys
f = 'z/' + sys.argv[1]
b = bytearray(open(f, 'rb').read())
$3
open(f, 'wb').write(b)" "$2"
	}
	edit='j = json.loads(b); %s; b = json.dumps(j).encode()'
	meta() { damage "$1" "$2" "$(printf "$edit" "$3")"; }
	damage v3_zstd.zarr X/data/c/2 'b = b[:-3]'
	fails "X/data 32 decompress" h5tok --layer X z
	damage v3_zstd.zarr X/data/c/2 'b = b""'
	fails "X/data 32 0" h5tok --layer X z
	damage v2_plain.zarr X/data/2 'b = b[:-3]'
	fails "X/data 32 length" h5tok --layer X z
	damage v3_gzip_crc.zarr X/data/c/2 'b[-1] ^= 1'
	fails "X/data 32 crc32c" h5tok --layer X z
	damage v3_gzip_crc.zarr obs/batch/c/0 'b[20] ^= 1'
	fails "obs/batch 0 crc32c" h5tok --layer X z
	damage v3_zstd_sharded.zarr obs/n/c/0 'b[-1] ^= 1'
	fails "obs/n 0 index crc32c" h5tok --layer X z
	damage v3_zstd_sharded.zarr obs/n/c/0 'b = b[60:]'
	fails "obs/n 16 shorter" h5tok --layer X z
	damage v3_zstd_sharded.zarr obs/n/c/0 'b = b[:5]'
	fails "obs/n 0 short" h5tok --layer X z
	damage v2_plain.zarr obs/batch/0 'b[4] = 255'
	fails "obs/batch 0 texts" h5tok --layer X z
	damage v2_plain.zarr X/data/.zarray 'b = b[:40]'
	fails "X/data .zarray JSON" h5tok --layer X z
	damage v3_zstd.zarr obs/n/zarr.json 'b = b[:40]'
	fails "obs/n zarr.json JSON" h5tok --layer X z
	fails "$S/v3_lzma.zarr obs/_index numcodecs.lzma" \
		h5tok --layer X "$S/v3_lzma.zarr"
	meta v2_plain.zarr X/data/.zarray 'j["filters"] = [{"id": "delta"}]'
	fails "X/data 'delta'" h5tok --layer X z
	meta v2_plain.zarr X/data/.zarray 'j["chunks"] = [1 << 40]'
	run -1 h5tok -q -o never.counts --layer X z
	names "X/data 1099511627776 1 GiB"
	meta v2_plain.zarr X/data/.zarray 'j["dtype"] = "<c8"'
	fails "X/data integers 64" h5tok --layer X z
	meta v2_plain.zarr X/.zattrs 'j["shape"] = [40, -1]'
	fails "X attribute numbers" h5tok --layer X z
	meta v2_plain.zarr obs/.zattrs 'j["_index"] = "../../../etc/passwd"'
	run -1 h5tok -q -o never.counts --layer X z
	names "obs/../../../etc/passwd missing"
	meta v2_plain.zarr obs/.zattrs 'j["column-order"] = ["n"] * 200000'
	run -1 timeout 20 h5tok -q -o never.counts --layer X z
	names "'n' twice column-order"
	rm -rf z
	mkdir z
	cp "$S/v3_zstd.zarr/zarr.json" z
	fails "z obs AnnData" h5tok z
}

@test "zarr: float16 gives the bytes of the .h5ad, of counts and of obs" {
	cp "$S/same.h5ad" half.h5ad
	cp -r "$S/v2_plain.zarr" v2.zarr
	cp -r "$S/v3_gzip_crc.zarr" v3.zarr
	$PYTHON - <<-'END'
		import glob, gzip, h5py, json, numpy as np, os
		x = np.array([np.nan, np.inf, -np.inf, -0.0, 6e-8, -6.1e-5, 65504, 0.1] * 4 + [1] * 8, "f2")  # the last 8: a chunk that is the fill value
		with h5py.File("half.h5ad", "r+") as f:
		    for name, v in ("layers/dense", f["layers/dense"][:].astype("f2")), ("obs/n", x):
		        attributes = dict(f[name].attrs)
		        del f[name]
		        f[name] = v
		        f[name].attrs.update(attributes)
		def chunks(pattern, order, unpack):
		    for path in glob.glob(pattern):
		        v = np.frombuffer(unpack(open(path, "rb").read()), "<f4" if "dense" in path else "<i8")
		        v = v if "dense" in path else np.append(x, np.ones(8))[v[0] : v[0] + 16]
		        open(path, "wb").write(v.astype(order + "f2").tobytes())
		def edit(path, **keys):
		    text = json.dumps({**json.load(open(path)), **keys})
		    open(path, "w").write(text)
		chunks("v2.zarr/layers/dense/[0-9]*", "<", bytes)
		chunks("v2.zarr/obs/n/[0-9]*", ">", bytes)
		edit("v2.zarr/layers/dense/.zarray", dtype="<f2")
		edit("v2.zarr/obs/n/.zarray", dtype=">f2")
		chunks("v3.zarr/layers/dense/c/*/*", "<", lambda b: gzip.decompress(b[:-4]))
		chunks("v3.zarr/obs/n/c/*", ">", lambda b: gzip.decompress(b[:-4]))
		for name, endian in ("layers/dense", "little"), ("obs/n", "big"):
		    edit(f"v3.zarr/{name}/zarr.json", data_type="float16", fill_value="0x3c00",
		         codecs=[{"name": "bytes", "configuration": {"endian": endian}}])
		os.remove("v3.zarr/obs/n/c/2")
	END
	h5tok -q --layer dense half.h5ad -o want.counts
	assert_equal "$(scview -q -c n want.counts | sed -n '2p;5,7p' | xargs)" "NA -0 5.9604644775390625e-08 -6.097555160522461e-05"
	for z in v2 v3; do h5tok -q --layer dense $z.zarr -o again; cmp again want.counts; done
}

@test "MuData: rna is read, or the modality that is named; HDF5 and zarr" {
	h5tok -q "$S/rna.h5ad" -o want.counts
	for f in both.h5mu both.zarr; do
		h5tok -q "$S/$f" -o a.counts
		cmp a.counts want.counts
		h5tok -q --modality rna "$S/$f" -u | scview -q - >a.tsv
		scview -q want.counts | cmp - a.tsv
		h5tok --modality prot "$S/$f" -o prot.counts
		assert_equal "$(scview -q --header-tsv prot.counts | grep -c CD4)" 0
		scview -q --gene-names id -n 1 prot.counts >prot.tsv
		grep -q CD4 prot.tsv
		fails "$S/$f RNA prot rna" h5tok --modality RNA "$S/$f"
	done
	fails "$S/no_rna.h5mu MuData --modality" h5tok "$S/no_rna.h5mu"
	fails "$S/rna.h5ad --modality MuData" h5tok --modality rna "$S/rna.h5ad"
	gzip -nc <"$S/rna.h5ad" >rna.h5ad.gz
	run -1 h5tok rna.h5ad.gz
	assert_output --partial "rna.h5ad.gz: this is a gzip file"
	assert_output --partial "unpack it with gunzip"
}

@test "zarr: make corpus takes stores, and reads one again when a chunk of it has changed" {
	mkdir in
	cp -r "$S/v3_zstd_sharded.zarr" in/s.zarr
	pipelines -C "$PWD" corpus DIR=in >log
	grep -q "tokens: 1 file to read" log
	assert_equal "$(cut -f 2,3 results/corpus/latest/corpus.tsv | tail -n 1)" $'used\t40'
	pipelines -C "$PWD" corpus DIR=in >log
	grep -q "tokens: 0 files to read" log
	touch other
	ln -s ../../other in/s.zarr # which no reader follows
	pipelines -C "$PWD" corpus DIR=in >log
	touch -d yesterday other
	pipelines -C "$PWD" corpus DIR=in >log
	grep -q "tokens: 0 files to read" log
	touch in/s.zarr/X/data/c/0
	pipelines -C "$PWD" corpus DIR=in >log
	grep -q "tokens: 1 file to read" log
}

# bats test_tags=slow
@test "zarr: 200 random objects, as .h5ad and as a store of any layout, give the same stream and the same messages" {
	for m in anndata zarr; do
		"$PEER_PYTHON" -c "import $m; assert int($m.__version__.replace('0.', '').split('.')[0]) > 2" 2>/dev/null ||
			skip "no newer $m in PEER_PYTHON=$PEER_PYTHON (make peers)"
	done
	"$PEER_PYTHON" "$BATS_TEST_DIRNAME/ref/zarr_stores.py" . "${STORES:-200}" "${SEED:-1}"
	for i in $(seq 0 $((${STORES:-200} - 1))); do
		for z in h5ad zarr; do
			mv $i.$z same
			a=$(status_of h5tok same -o $z.counts)
			h5tok same -o $z.counts 2>$z.txt || true
			echo "$a" >>$z.txt
			rm -r same
		done
		cmp h5ad.txt zarr.txt && { cmp h5ad.counts zarr.counts || [ "$a" = 1 ]; } || { echo "object $i"; return 1; }
		rm -f ./*.counts
	done
}

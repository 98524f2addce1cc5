#!/usr/bin/env bats
# h5tok: what is said of a file belongs to its format, and what is odd about a file is said.
load helper

setup_file() {
	need_tool h5tok scview scmetric
	cd "$BATS_FILE_TMPDIR"
	$PYTHON -W ignore "$BATS_TEST_DIRNAME/../data/make_layouts.py" .
	zstd -qdc "$BATS_TEST_DIRNAME/../data/zarr.tar.zst" | tar x
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

# edit FROM TO STATEMENTS: TO is FROM after these statements of Python, which know it as f
edit() {
	cp "$1" "$2"
	$PYTHON -W ignore -c "
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'r+') as f:
$(sed 's/^/    /' <<<"$3")" "$2"
}

# fails WORDS COMMAND...: exit status 1, one line that has these words, no output file
fails() {
	run "${@:2}" -q -o never.counts
	assert_failure 1
	names "$1"
	assert_equal "${#lines[@]}" 1
	assert_file_not_exist never.counts
}

@test "HDF5 of a version that the library does not know is called newer, with the library's version; other damage is not" {
	$PYTHON - <<-'END'
		b = bytearray(open("csr_gzip.h5ad", "rb").read())
		b[8] = 9 # version of the superblock
		open("newer.h5ad", "wb").write(b)
		open("cut.h5ad", "wb").write(b[:8] + b"\0" + b[9:5000])
	END
	fails "newer.h5ad newer HDF5 libver" h5tok newer.h5ad
	assert_output --regexp ' [0-9]+\.[0-9]+\.[0-9]+ '
	fails "cut.h5ad truncated" h5tok cut.h5ad
	refute_output --partial newer
}

@test "a raw that is an empty dataset, as anndata's write_elem makes it, is none" {
	edit csr_gzip.h5ad empty_raw.h5ad 'f["raw"] = h5py.Empty("f4")'
	run -0 h5tok -q empty_raw.h5ad -o a.counts
	h5tok -q csr_gzip.h5ad | cmp - a.counts
}

@test "obsm as a data frame or as a sparse matrix: the message says what it is" {
	edit csr_gzip.h5ad obsm.h5ad '
n = f["obs/donor/codes"].shape[0]
for name, kind in ("frame", "dataframe"), ("rows", "csr_matrix"), ("columns", "csc_matrix"), ("odd", "awkward-array"):
    f.create_group("obsm/" + name).attrs["encoding-type"] = kind'
	for k in "frame data frame array to_numpy" "rows sparse array toarray" "columns sparse array toarray" "odd group array"; do
		read -ra word <<<"$k"
		run -1 scmetric integration -q --label cell_type --embedding "${word[0]}" obsm.h5ad
		names "obsm.h5ad obsm/$k"
	done
}

@test "MuData: columns that only the obs of all modalities has are named, with the way to copy them" {
	edit both.h5mu global.h5mu 'n = len(f["mod/rna/obs/_index"])
f["obs/global_type"] = np.repeat([b"a", b"b"], [3, n - 3])
f["obs"].attrs["column-order"] = ["global_type"]'
	fails "global_type push_obs" h5tok --obs global_type global.h5mu
	fails "nowhere" h5tok --obs nowhere global.h5mu
	refute_output --partial push_obs
	run -0 h5tok global.h5mu -o a.counts
	names "warning global.h5mu mod/rna global_type push_obs"
	run -0 h5tok both.h5mu -o a.counts
	refute_output --partial push_obs
	run -1 scmetric integration -q --label global_type --embedding X global.h5mu
	names "global_type push_obs"
}

@test "whole numbers beside categories to which nothing refers: a warning" {
	edit csr_gzip.h5ad lost.h5ad '
codes, names = f["obs/donor/codes"][:], f["obs/donor/categories"][:]
del f["obs/donor"]
f["obs/donor"], f["obs/__categories/donor"] = codes, names'
	run -0 h5tok lost.h5ad -o a.counts
	names "warning lost.h5ad obs/donor __categories/donor"
	run -0 h5tok --list-obs lost.h5ad
	names "warning obs/donor"
	run -0 h5tok csr_gzip.h5ad -o a.counts
	refute_output --partial warning
	edit lost.h5ad found.h5ad 'f["obs/donor"].attrs["categories"] = f["obs/__categories/donor"].ref'
	run -0 h5tok found.h5ad -o b.counts
	refute_output --partial warning
	assert_equal "$(scview -c donor b.counts)" "$(scview -c donor a.counts)"
}

@test "--list-obs needs no counts and no genes; cells without genes are refused" {
	h5tok -q --list-obs csr_gzip.h5ad >want.tsv
	edit csr_gzip.h5ad bare.h5ad 'del f["X"], f["var"]'
	h5tok -q --list-obs bare.h5ad | cmp - want.tsv
	edit csr_gzip.h5ad logs.h5ad 'f["X/data"][:] = np.log1p(f["X/data"][:])'
	h5tok -q --list-obs logs.h5ad | cmp - want.tsv
	fails "bare.h5ad X" h5tok bare.h5ad
	$PYTHON -W ignore -c 'import anndata, numpy as np
anndata.AnnData(np.zeros((6, 0), "f4")).write_h5ad("genes0.h5ad")'
	fails "genes0.h5ad 6 0 genes" h5tok genes0.h5ad
}

@test "zarr: chunks of dense counts and of labels that are not there are noted" {
	for path in layers/dense/c/0/0 obs/type/codes/c/1; do
		rm -rf few.zarr
		cp -r v3_zstd.zarr few.zarr
		rm few.zarr/$path
		run -0 h5tok --layer dense few.zarr -o a.counts
		names "note ${path%/c/*} chunks"
	done
	run -0 h5tok --layer dense v3_zstd.zarr -o a.counts
	refute_output --partial chunks
}

# The rights that a tool gives up, and the files that it must not touch.
load helper

setup_file() {
	need_tool scsim h5tok scview
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 60 --genes 120 --types 2 --rarest 0.3 --depth 100 --seed 3 -o sim.counts
	scview -q -O h5ad sim.counts -o sim.h5ad
	cat > deny.c <<- 'X'
		/* Runs a program under a filter in which one system call fails, as in some containers: deny seccomp|landlock ERRNO PROGRAM... */
		#include <seccomp.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
			int call = strcmp(argv[1], "seccomp") ? SCMP_SYS(landlock_create_ruleset) : SCMP_SYS(seccomp);
			if (seccomp_rule_add(f, SCMP_ACT_ERRNO(atoi(argv[2])), call, 0))
				return 99;
			if (call == SCMP_SYS(seccomp) && seccomp_rule_add(f, SCMP_ACT_ERRNO(atoi(argv[2])), SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, 22)))
				return 99;
			if (seccomp_load(f))
				return 98;
			execvp(argv[3], argv + 3);
			return 97;
		}
	X
	"${CC:-cc}" -o deny deny.c -lseccomp || true
}

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "sandbox: without seccomp h5tok stops and says how to go on; without Landlock it goes on" {
	[ -e deny ] || skip "no compiler, or no header of libseccomp"
	for number in 1 22 38; do        # EPERM, EINVAL, ENOSYS
		rm -f out
		run -1 ./deny seccomp $number h5tok -q sim.h5ad -o out
		assert_output --regexp "^h5tok: cannot sandbox the process that reads files \(seccomp: [A-Z].*\)\. CORRMASK_SANDBOX=no reads without it: only files that you trust\$"
		assert_not_exist out
		run -0 env CORRMASK_SANDBOX=no ./deny seccomp $number h5tok -q sim.h5ad -o out
		rm -f out
		run -0 ./deny landlock $number h5tok -v sim.h5ad -o out
		refute_output --partial Landlock
		assert_output --partial seccomp
	done
}

@test "sandbox: scview -O h5ad writes no other file, with planted links in TMPDIR or a swapped temporary file" {
	cat > swap.c <<- 'X'
		/* Preloaded: before HDF5 makes its file, somebody who may write to the folder puts a link in the place of the temporary file. */
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		long H5Fcreate(const char *path, unsigned flags, long create, long access)
		{
			long (*next)(const char *, unsigned, long, long) = (long (*)(const char *, unsigned, long, long))dlsym(RTLD_NEXT, "H5Fcreate");
			char name[4096];
			long n = readlink(path, name, sizeof name - 1);
			if (n < 0)
				strcpy(name, path);
			else
				name[n] = 0;
			unlink(name);
			if (symlink(getenv("PRECIOUS"), name))
				abort();
			return next(path, flags, create, access);
		}
	X
	mkdir -p t
	echo precious > precious
	# the name that was used once, as a link into a folder that is not there
	run -0 bash -c 'ln -s nowhere/x "t/scview-$$.h5ad"; TMPDIR=t exec scview -q -O h5ad sim.counts > piped.h5ad'
	run -0 h5tok -q piped.h5ad -o out
	assert_equal "$(find t -type f | wc -l)" 0
	"${CC:-cc}" -shared -fPIC -o swap.so swap.c || skip "no compiler"
	for to in "-o swapped.h5ad" "-o /dev/stdout"; do
		# shellcheck disable=SC2086
		run env TMPDIR="$PWD/t" PRECIOUS="$PWD/precious" LD_PRELOAD="$PWD/swap.so" scview -q -O h5ad sim.counts $to
		assert_equal "$(cat precious)" precious
	done
}

# What a folder from elsewhere may lead to: nothing. secret has as many bytes as leak has cells, and as many lines as tenx has.
folders() {
	printf 'SECRET-KEY-01234567890\nSECRET-KEY-12345\n' > secret
	[ ! -e v2 ] || return 0
	zstd -qdc "$BATS_TEST_DIRNAME/../data/zarr.tar.zst" | tar x ./v2_plain.zarr ./v3_zstd.zarr ./both.zarr
	mv v2_plain.zarr v2 && mv v3_zstd.zarr v3 && mv both.zarr mu
	mkdir -p v2/obs/leak v3/obs/leak/c
	printf %040d 7 | tee v2/obs/leak/0 > v3/obs/leak/c/0
	$PYTHON - <<- 'X'
		import json
		def edit(path, change):
		    j = json.load(open(path))
		    change(j)
		    json.dump(j, open(path, "w"))
		edit("v2/obs/.zattrs", lambda j: j["column-order"].append("leak"))
		edit("v3/obs/zarr.json", lambda j: j["attributes"]["column-order"].append("leak"))
		json.dump(dict(zarr_format=2, shape=[40], chunks=[40], dtype="|u1", fill_value=0, order="C", filters=None, compressor=None),
		          open("v2/obs/leak/.zarray", "w"))
		json.dump(dict(zarr_format=3, node_type="array", shape=[40], data_type="uint8", fill_value=0, attributes={},
		               chunk_grid=dict(name="regular", configuration=dict(chunk_shape=[40])),
		               chunk_key_encoding=dict(name="default", configuration=dict(separator="/")), codecs=[dict(name="bytes")]),
		          open("v3/obs/leak/zarr.json", "w"))
	X
	mkdir tenx
	printf '%%%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 1 4\n3 1 1\n2 2 5\n' > tenx/matrix.mtx
	printf 'ENSG%011d\tG%d\tGene Expression\n' 1 1 2 2 3 3 | gzip > tenx/features.tsv.gz
	printf 'AAA-1\nCCC-1\n' > tenx/barcodes.tsv
}

# modes COMMAND...: with all that this kernel has, without Landlock, and without a child. Same status and output, which are left.
modes() {
	local first=
	for mode in "env" "./deny landlock 38" "env CORRMASK_SANDBOX=no"; do
		[ "$mode" = "./deny landlock 38" ] && [ ! -e deny ] && continue
		rm -f out
		run timeout 20 $mode "$@" -o out
		[ -z "$first" ] || assert_equal "$status $output" "$first"
		first="$status $output"
	done
}

# refused WHERE HOW COMMAND...: one line that names WHERE and says HOW
refused() {
	modes "${@:3}"
	assert_equal "$status ${#lines[@]}" "1 1"
	assert_output --partial "$1 is $2"
	assert_not_exist out
}

@test "sandbox: nothing in a zarr store leads out of it, with Landlock and without" {
	folders
	for store in v2 v3 mu; do
		modes h5tok -q --layer X $store
		assert_success
	done
	# spoil STORE PATH TARGET: a copy in which PATH is a link
	spoil() {
		rm -rf bad
		cp -r "$1" bad
		rm -rf "bad/$2"
		ln -s "$3" "bad/$2"
	}
	cp -r v2 away
	for at in "v2 obs/leak/0 ../../../secret" "v2 obs/leak/0 $PWD/secret" "v2 obs/leak/.zarray ../../../away/obs/leak/.zarray" "v2 obs/leak ../../away/obs/leak" \
		"v2 obs ../away/obs" "v2 X/.zattrs ../../away/X/.zattrs" "v2 X/data/1 0" "v2 obs/leak/0 /proc/self/fd/0" "v2 X/data/1 nowhere" \
		"v3 obs/leak/c/0 ../../../../secret" "v3 obs/leak/c ../../../v3/obs/leak/c" "v3 obs/leak/zarr.json ../../../v3/obs/leak/zarr.json" \
		"mu mod/rna ../../mu/mod/rna" "mu mod ../mu/mod" "mu mod/rna/X ../../../mu/mod/rna/X"; do
		# shellcheck disable=SC2086
		set -- $at
		spoil "$@"
		refused "$2" "a symbolic link" h5tok -q --layer X bad
		assert_output --partial "$3"
		ln -s / bad/zz # with which Landlock let the first one through; nor is it searched for sizes
		refused "$2" "a symbolic link" h5tok -q --layer X bad
	done
	ln -sfn v2 named # the user's own link
	modes h5tok -q --layer X named
	assert_success
}

@test "sandbox: a pipe or a folder in the place of a file is refused, not waited for" {
	folders
	for at in v2/obs/leak/0 v2/obs/leak/.zarray v2/obs/.zattrs v2/X/.zgroup v3/obs/leak/c/0 v3/obs/zarr.json tenx/barcodes.tsv tenx/matrix.mtx; do
		rm -rf bad
		cp -r "${at%%/*}" bad
		rm "bad/${at#*/}"
		mkfifo "bad/${at#*/}"
		refused "${at#*/}" "a pipe" h5tok -q bad
		rm "bad/${at#*/}"
		mkdir "bad/${at#*/}"
		refused "${at#*/}" "a folder" h5tok -q bad
	done
	need_tool rankenc maskgen sctrain scembed
	rankenc -q --fit sim.counts -o vocab.tsv
	rankenc -q -m vocab.tsv sim.counts -o sim.tok
	maskgen -q sim.tok -o sim.masked
	mkdir model
	echo '{"model_type": "bert"}' > model/config.json
	for f in config.json model.safetensors vocab.tsv groups.tsv; do
		[ "$f" = config.json ] || mkfifo model/$f
		[ "$f" != config.json ] || { mv model/config.json kept && mkfifo model/config.json; }
		for command in "scembed -M model sim.tok -o out" "sctrain mlm --init model sim.masked -o out"; do
			run -1 timeout 20 $command
			assert_output --partial "model/$f: not a regular file"
		done
		rm model/$f
		[ -e model/config.json ] || mv kept model/config.json
	done
}

@test "sandbox: links in a 10x folder lead to files that are called as in 10x, as workflow managers make them, and to no others" {
	folders
	h5tok -q tenx -o want
	mkdir work deep
	cp tenx/barcodes.tsv work/s1_barcodes.tsv
	ln -s ../work/s1_barcodes.tsv deep/barcodes.tsv
	mkdir staged
	ln -s "$PWD/tenx/matrix.mtx" "$PWD/tenx/features.tsv.gz" staged
	ln -s ../deep/barcodes.tsv staged
	ln -s staged/ given
	for x in staged given staged/matrix.mtx; do
		modes h5tok -q $x
		assert_success
		cmp <(scview out) <(scview want)
	done
	for f in barcodes.tsv features.tsv.gz matrix.mtx; do
		for to in "$PWD/secret" ../secret ../chain; do
			rm -rf bad chain
			cp -r tenx bad
			ln -s secret chain
			ln -sf $to bad/$f
			refused "bad/$f" "a symbolic link to $PWD/secret" h5tok -q bad
		done
	done
	cp -r tenx loose
	ln -sf nowhere/barcodes.tsv loose/barcodes.tsv
	modes h5tok -q loose
	assert_failure 1
	assert_output --partial "loose/barcodes.tsv: No such file"
	# a matrix that the user names may be called anything behind its link; what lies beside it may not
	mv tenx/matrix.mtx m
	ln -s ../m tenx/matrix.mtx
	modes h5tok -q tenx/matrix.mtx
	assert_success
	refused tenx/matrix.mtx "a symbolic link to $PWD/m" h5tok -q tenx
}

@test "sandbox: scmetric integration reads an AnnData file without rights, and as without the sandbox; a stream it reads as ever" {
	$PYTHON -c 'import anndata; a = anndata.read_h5ad("sim.h5ad"); a.obsm["x"] = a.X.toarray()[:, :20].astype("f4"); a.write_h5ad("x.h5ad")'
	score() { scmetric integration -l cell_type --embedding x x.h5ad "$@"; }
	run -0 score -v -o yes.tsv --report yes.report
	assert_output --partial seccomp
	CORRMASK_SANDBOX=no run -0 score -v -o no.tsv --report no.report
	refute_output --partial seccomp
	cmp yes.tsv no.tsv
	diff <(grep -vE 'seconds|memory' yes.report) <(grep -vE 'seconds|memory' no.report)
	score -q | cmp - yes.tsv
	rm -f out
	[ ! -e deny ] || run -1 ./deny seccomp 1 scmetric integration -l cell_type --embedding x x.h5ad -o out
	assert_not_exist out
}

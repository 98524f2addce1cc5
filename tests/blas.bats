load helper

# A library between the program and OpenBLAS stands for a processor that OpenBLAS does not know: the kernels are called Prescott, always or
# until OPENBLAS_CORETYPE is there. It writes a line for every start of the program, with the variable.
setup_file() {
	grep -qw avx2 /proc/cpuinfo || return 0 # setup skips
	cd "$BATS_FILE_TMPDIR"
	cat >shim.c <<-'E'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		static const char *core(void) { const char *c = getenv("OPENBLAS_CORETYPE"); return c ? c : "none"; }
		__attribute__((constructor)) static void start(void)
		{
			FILE *f = fopen(getenv("STARTS"), "a");
			fprintf(f, "%s\n", core());
			fclose(f);
		}
		char *openblas_get_corename(void)
		{
			if (getenv("DEAF") || !getenv("OPENBLAS_CORETYPE"))
				return "Prescott";
			return ((char *(*)(void))dlsym(RTLD_NEXT, "openblas_get_corename"))();
		}
		int openblas_get_parallel(void) { return !getenv("SERIAL"); }
	E
	if command -v "${CC:-gcc}" >/dev/null; then
		"${CC:-gcc}" -w -D_GNU_SOURCE -shared -fPIC -o shim.so shim.c -ldl
	fi
	scsim -q --cells 20 --genes 60 --modules 4 --types 3 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o cells.tok sim.counts
	maskgen -q --seed 4 -o masked cells.tok
}

setup() {
	grep -qw avx2 /proc/cpuinfo || skip "no processor with AVX2"
	cd "$BATS_TEST_TMPDIR"
	export OMP_WAIT_POLICY=passive STARTS=$BATS_TEST_TMPDIR/starts # no restart for OpenMP
	unset OPENBLAS_CORETYPE
}

# train OPTION...: its messages
train() {
	run sctrain mlm -v --config tiny "$@" -o model "$BATS_FILE_TMPDIR/masked"
	assert_success
}

# with_shim: the next program starts with it
with_shim() {
	[ -e "$BATS_FILE_TMPDIR/shim.so" ] || skip "no compiler"
	export LD_PRELOAD=$BATS_FILE_TMPDIR/shim.so
}

@test "-v and --version name OpenBLAS and its kernels" {
	train
	assert_line --regexp '^sctrain mlm: note: device: cpu, 1 thread, OpenBLAS [0-9.]+ [A-Za-z]+, [a-z0-9]+( \(no CUDA.*)?$'
	run sctrain --version
	assert_output --regexp 'OpenBLAS [0-9.]+ [A-Za-z]+, [a-z0-9]+(, bf16)?\)$'
	run scembed --version
	assert_output --regexp 'OpenBLAS [0-9.]+ [A-Za-z]+, [a-z0-9]+(, bf16)?\)$'
	run scview --version
	refute_output --partial OpenBLAS
}

@test "the user's OPENBLAS_CORETYPE is kept, and slow kernels are named as such" {
	export OPENBLAS_CORETYPE=Prescott
	train
	assert_line --regexp '^sctrain mlm: note: device: cpu, 1 thread, OpenBLAS [0-9.]+ Prescott \(slower than (Haswell|Zen|SkylakeX|Cooperlake)\)'
	with_shim
	train --force
	unset LD_PRELOAD
	assert_equal "$(cat starts)" Prescott
}

@test "kernels below the processor: one restart with better ones" {
	with_shim
	train
	unset LD_PRELOAD
	refute_output --partial Prescott
	refute_output --partial slower
	run cat starts
	assert_line --index 0 none
	assert_line --index 1 --regexp '^(Haswell|Zen|SkylakeX|Cooperlake)$'
	assert_equal "${#lines[@]}" 2
}

@test "a library that keeps its kernels: one restart, no more, and it is said" {
	export DEAF=1
	with_shim
	train
	unset LD_PRELOAD
	assert_output --partial 'Prescott (slower than'
	assert_equal "$(wc -l <starts)" 2
}

@test "one restart serves OpenMP and OpenBLAS; arguments and standard input are those of before" {
	unset OMP_WAIT_POLICY
	with_shim
	run sctrain mlm -v --config tiny -@ 2 -o 'a model' <"$BATS_FILE_TMPDIR/masked"
	unset LD_PRELOAD
	assert_success
	assert_line --partial 'device: cpu, 2 threads'
	assert_file_exist 'a model/model.safetensors'
	assert_equal "$(wc -l <starts)" 2
}

@test "an OpenBLAS without locks is not called by several threads" {
	export SERIAL=1 OPENBLAS_CORETYPE=Haswell
	with_shim
	train
	run -1 sctrain mlm --config tiny -@ 2 -o other "$BATS_FILE_TMPDIR/masked"
	assert_output --regexp '^sctrain mlm: this OpenBLAS was built for one thread: '
	run -1 screduce pca -q -k 3 -@ 2 "$BATS_FILE_TMPDIR/sim.counts" -o other
	assert_output --regexp '^screduce pca: this OpenBLAS '
	unset LD_PRELOAD
	assert_not_exist other
}

@test "CORRMASK_CPU chooses the vectors; one that is not there is refused" {
	export CORRMASK_CPU=avx2
	train
	assert_line --partial ', avx2'
	run -1 env CORRMASK_CPU=sse9 sctrain mlm --config tiny -o other "$BATS_FILE_TMPDIR/masked"
	assert_output --regexp '^sctrain mlm: CORRMASK_CPU=sse9: expected .*avx2.* on this processor$'
	assert_not_exist other
	if ! grep -qw avx512vl /proc/cpuinfo; then
		run -1 env CORRMASK_CPU=avx512 scview "$BATS_FILE_TMPDIR/masked"
		assert_output --partial 'CORRMASK_CPU=avx512: expected'
	fi
}

@test "CORRMASK_CPU=portable: the bytes of AVX2 and Haswell, on every processor that has AVX2; in a pipe and with threads too" {
	train --force
	cp model/model.safetensors widest
	CORRMASK_CPU=avx2 OPENBLAS_CORETYPE=Haswell train --force
	cp model/model.safetensors fixed
	for o in "-@ 1" "-@ 2"; do
		# shellcheck disable=SC2086
		CORRMASK_CPU=portable train --force $o
		assert_line --regexp 'OpenBLAS [0-9.]+ Haswell, avx2'
		cmp model/model.safetensors fixed
	done
	cat "$BATS_FILE_TMPDIR/masked" | CORRMASK_CPU=portable sctrain mlm -q --config tiny --force -o model
	cmp model/model.safetensors fixed
	if grep -qw avx512vl /proc/cpuinfo; then
		run ! cmp -s widest fixed
	fi
	# the kernels that the user names must be those
	run -1 env CORRMASK_CPU=portable OPENBLAS_CORETYPE=SkylakeX sctrain mlm --config tiny -o other "$BATS_FILE_TMPDIR/masked"
	assert_output "sctrain mlm: CORRMASK_CPU=portable is OPENBLAS_CORETYPE=Haswell, but it is SkylakeX here: unset it"
	assert_not_exist other
	CORRMASK_CPU=portable OPENBLAS_CORETYPE=Haswell train --force
	# a library that keeps its kernels
	with_shim
	run -1 env DEAF=1 CORRMASK_CPU=portable sctrain mlm --config tiny -o other "$BATS_FILE_TMPDIR/masked"
	unset LD_PRELOAD
	assert_output "sctrain mlm: CORRMASK_CPU=portable: OpenBLAS has the kernels Prescott, and cannot take those for Haswell"
}

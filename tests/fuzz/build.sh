#!/usr/bin/env bash
# The fuzz targets as OSS-Fuzz and ClusterFuzzLite build them:   OUT=FOLDER tests/fuzz/build.sh
#
# They set CC, CXX, CFLAGS (with the sanitizer), LIB_FUZZING_ENGINE, OUT and WORK; without them it is clang with libFuzzer,
# AddressSanitizer and UndefinedBehaviorSanitizer. OUT gets each target with its options and its seeds (TARGET_seed_corpus.zip), and in
# lib/ the shared libraries that the targets are linked to, because the image that runs them has none. `make deps` installs the libraries.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=$(realpath "${OUT:?tests/fuzz/build.sh: set OUT to the folder for the targets}")
sanitizers=fuzzer-no-link,address,undefined
targets=(tests/fuzz/fuzz_*.c)
targets=("${targets[@]#tests/fuzz/}")
targets=("${targets[@]%.c}")
build=${WORK:-build}

# the folder of this build beside those of the Makefile: VARIANT=ossfuzz adds no flags of its own
programs=("${targets[@]/#/$build/ossfuzz/fuzz/}")
make -j"$(nproc)" CUDA=0 MPI=0 VARIANT=ossfuzz BUILD="$build" CC="${CC:-clang}" FUZZ_LINKER="${CXX:-clang++}" \
	CFLAGS="${CFLAGS--O1 -g -fno-omit-frame-pointer -fsanitize=$sanitizers -fno-sanitize-recover=undefined} -Wno-pass-failed" \
	FUZZ_ENGINE="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" LDFLAGS="-Wl,-rpath,'\$\$ORIGIN/lib'" "${programs[@]}"

mkdir -p "$OUT/lib"
for target in "${targets[@]}"; do
	cp "$build/ossfuzz/fuzz/$target" "$OUT/"
	printf '[libfuzzer]\ntimeout = 10\nrss_limit_mb = 2048\n' > "$OUT/$target.options"
	folders=(tests/fuzz/seeds/"$target")
	[ "$target" != fuzz_kinds ] || folders+=(tests/fuzz/seeds/fuzz_stream)
	rm -f "$OUT/${target}_seed_corpus.zip"
	python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" "${folders[@]/%//.}"
	# the C library and the loader are the system's
	ldd "$build/ossfuzz/fuzz/$target" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv)\.so' |
		xargs -r cp -Lnt "$OUT/lib"
done

# shellcheck shell=bash
# What the scripts for a machine with a GPU share; bash, sourced from the root of the sources.
#
# A bare machine has a driver, CUDA's compiler and libraries and Python, but not what `make CUDA=1 all` needs: headers and libraries of
# HDF5, igraph, libdeflate, LZF, zstd, xxHash, cJSON, OpenBLAS, L-BFGS and Random123, and cmocka for the tests; it may lack make. So it gets
# a pack, which needs nothing of a checkout: programs (bin) with all libraries (lib) that they need but libc, libstdc++, libgcc and CUDA's
# own, and the sources with these scripts (src). The programs run where glibc is no older than here. corrmask_cuda.so alone can be built
# there, by nvcc: it wants Random123's headers (include).

# gpu_build BIN BUILD PROGRAM... [-- VAR=VALUE...]: programs by name; test_cuda and bench_cuda too
gpu_build() {
	local bin=$1 build=$2 targets=() p
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		case $1 in
		*_emulated) targets+=("$build/release/unit/$1") ;;
		*_cuda) targets+=("$build/release/cuda/$1") ;;
		*) targets+=("$bin/$1") ;;
		esac
		shift
	done
	[ $# = 0 ] || shift
	command -v make > /dev/null || { echo "no make on this machine: it takes a pack (-p)" >&2; return 1; }
	mkdir -p "$bin" && make -j"$(nproc)" MPI=0 CUDA="${cuda:-1}" BIN="$bin" BUILD="$build" "$@" "${targets[@]}" || return
	for p in "${targets[@]}"; do [ "${p%/*}" = "$bin" ] || cp "$p" "$bin/" || return; done
}

# gpu_backend SO ARCH INCLUDE: corrmask_cuda.so from the sources by nvcc alone, as cuda.mk builds it
gpu_backend() {
	local so=$1 arch=$2 include=$3 nvcc build
	nvcc=$(command -v nvcc || find /usr/local/cuda*/bin -name nvcc 2> /dev/null | tail -n 1)
	[ -n "$nvcc" ] || { echo "no nvcc on this machine" >&2; return 1; }
	build=$(mktemp -d) || return
	# shellcheck disable=SC2016
	printf '%s\n' cuda/*.cu | xargs -P "$(nproc)" -I{} sh -c '"$1" -std=c++20 -O3 -gencode "arch=compute_${2#sm_},code=$2" \
		-Xcompiler -fPIC,-fvisibility=hidden -DCODE_SM90A=1 -DCORRMASK_VERSION="\"$3\"" -Ilib -Icuda "-I$4" -c "$6" -o "$5/$(basename "$6" .cu).o"' \
		sh "$nvcc" "$arch" "$(sed -n 's/^VERSION := //p' Makefile)" "$include" "$build" {} &&
		"$nvcc" -shared -cudart static -gencode "arch=compute_${arch#sm_},code=$arch" "$build"/*.o -o "$so" -lcublasLt \
			-Xlinker -rpath -Xlinker "$(realpath "$(dirname "$(realpath "$nvcc")")/../lib64")"
	set -- $?
	rm -rf "$build"
	return "$1"
}

# gpu_pack PACK PROGRAM...: the programs' names, with corrmask_cuda.so
gpu_pack() {
	local pack=$1 p
	shift
	gpu_build "$pack/bin" build/pack "$@" -- CUDA_ARCH="${CUDA_ARCH:-sm_90a}" LDFLAGS="-Wl,--disable-new-dtags '-Wl,-rpath,\$\$ORIGIN/../lib'" ||
		return
	rm -rf "${pack:?}/src"
	mkdir -p "$pack/lib" "$pack/src"
	git describe --always --dirty > "$pack/commit" 2> /dev/null
	tar -c Makefile cuda lib src pipelines tests/tests.mk tests/cuda tests/bench | tar -x -C "$pack/src" || return
	for p in "$@"; do
		case $p in *.so) continue ;; *_emulated) ;; *) strip "$pack/bin/$p" ;; esac # the emulation reads its own symbols
		ldd "$pack/bin/$p"
	done > "$pack/needs"
	if grep -E 'not found|libhdf5|libmpi' "$pack/needs"; then
		echo "gpu_pack: this library is missing here, or should not be needed on a bare machine" >&2
		return 1
	fi
	awk '/=> \// && $1 !~ /^lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so/ { print $3 }' "$pack/needs" | sort -u | grep -v "^$(realpath "$pack")/" |
		xargs -r -I{} cp -L {} "$pack/lib"
	[ ! -d /usr/include/Random123 ] || { mkdir -p "$pack/include" && cp -r /usr/include/Random123 "$pack/include/"; } # to build corrmask_cuda.so there
}

# Where a library is that the loader does not find by itself: into LD_LIBRARY_PATH. The driver's, and cuBLASLt as the backend was linked.
gpu_libraries() {
	local so=$1 name found
	for name in libcuda.so.1 $(ldd "$so" | awk '/not found/ { print $1 }'); do
		case $name in libcuda.so.1) ldconfig -p | grep -q "$name" && continue ;; esac
		found=$(find /usr/local /opt /usr/lib /usr/lib64 -name "$name" ! -path '*/stubs/*' ! -path '*/compat/*' 2> /dev/null | head -n 1)
		[ -n "$found" ] || { echo "warning: no $name on this machine" >&2; continue; }
		export LD_LIBRARY_PATH="${found%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	done
}

# gpu_summary OUT...: what these folders of results have, as Markdown
gpu_summary() {
	local found=() bench
	# files NAME: those of the folders that are there
	files() { local d; found=(); for d in "${outs[@]}"; do [ ! -s "$d/$1" ] || found+=("$d/$1"); done; [ ${#found[@]} -gt 0 ]; }
	local outs=("$@")
	files rest.log || { echo "gpu_summary: no results in $*" >&2; return 1; }
	sed -n 's/^card /### /p' "${found[@]}" | sort -u
	echo
	sed -n 's/^machine /- /p' "${found[@]}" | sort -u
	if files bench.log; then
		echo
		sed -n 's/^gemm_tflops \([^ ]*\) copy_gb_s \([^ ]*\)/Ceilings measured: product \1 TFLOP\/s, copy \2 GB\/s./p' "${found[@]}" | head -n 1
		bench=("${found[@]}")
		files torch.log && sed -n 's/^torch \([0-9][^ ]*\) transformers \([^ ]*\) .*/PyTorch \1, transformers \2./p' "${found[@]}" | head -n 1
		echo
		echo "Training, thousands of real tokens a second; \`geneformer-v1-10m\` is of the shape of \`corrmask-paper\`; \`grouped\` batches cells of like length:"
		echo
		cat "${found[@]}" "${bench[@]}" | awk -f tests/bench/gpu_table.awk
		echo
		echo "Time by op, ms (share of the floor), largest first:"
		echo
		cat "${bench[@]}" | awk -f tests/bench/gpu_ops.awk
	fi
	if files tiles.log; then
		echo
		echo "Tiles of the loss:"
		echo
		awk '$1 == "tile" { t = $2 } $1 == "config" { print "- " t ": " $0 }' "${found[@]}"
	fi
	if files end.log; then
		echo
		echo "End to end, \`maskgen -u | sctrain\`, real lengths (batch, wall s, sctrain's report):"
		echo
		awk -F'\t' '$1 == "scembed" { print "- scembed: " $2; next }
			{ rate = $4; sub(/.*\(/, "", rate); sub(/ tokens.*/, "", rate)
			printf "- %s: %s s; %s; a million cells of 2,048 tokens, 3 epochs: %s\n", $2, $3, $4, (rate > 0 ? sprintf("%.1f min", 3e6 * 2048 / rate / 60) : "?") }' "${found[@]}"
	fi
	if files ncu.txt; then
		echo
		echo "Kernels of one step of corrmask-paper, 12 x 2,048, by ncu:"
		echo
		sed '/^$/,$d' "${found[@]}"
	fi
	if files curves.tsv; then
		echo
		echo "Loss, means over 50 steps:"
		echo
		awk '{ gsub("\t", " | "); print "| " $0 " |" } NR == 1 { print "|---|---|---|---|" }' "${found[@]}"
	fi
	echo
	files check.log && grep -hE 'PASSED|FAILED' "${found[@]}" | tail -n 12 | sed 's/^/- /'
	files rest.log
	grep -hE '^gpu.sh: (sanitize|triage):' "${found[@]}" | sed 's/^gpu.sh: /- /'
	awk '$1 == "part" { printf "%s%s %d s%s", n++ ? ", " : "Parts: ", $2, $3, ($5 > 0 ? sprintf(" (%.1f GB at most)", $5 * 1.048576 / 1000) : "") } END { if (n) print "." }' "${found[@]}"
	grep -hE '^gpu.sh: FAILED:' "${found[@]}" | sed 's/^gpu.sh: /- /'
	return 0
}

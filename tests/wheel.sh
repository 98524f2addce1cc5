#!/usr/bin/env bash
# Does the wheel work on a bare Debian 12 and 13 that have python3-venv alone?   tests/wheel.sh WHEEL [SUITE]...
# It is installed by pip, its tools, pipelines and package run. Needs root; WORK=DIR keeps the systems and logs, and uses systems that are there.
set -euo pipefail
wheel=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
# shellcheck source=tests/debian_base.sh
. tests/debian_base.sh
# On an index its page has links to nothing but addresses
python3 -c 'import re, sys, zipfile as z
w = z.ZipFile(sys.argv[1])
dead = re.findall(r"\]\((?!https?:).*?\)", w.read(next(n for n in w.namelist() if n.endswith(".dist-info/METADATA"))).decode())
sys.exit(f"wheel: links that lead nowhere: {dead}" if dead else 0)' "$wheel"
need_new_systems wheel
work_folder

# What runs in the new system, line by line; a line that fails ends it
steps() {
	cat <<- 'END'
		pip install /root/WHEEL
		corrmask --version
		h5tok --version
		scsim -q --cells 400 --genes 200 --types 3 --rarest .2 --depth 2000 --donors 8 -o a.counts
		scsample -q --test-fraction .25 --group donor --part train a.counts | scview -q -O h5ad -o atlas.h5ad -
		scsample -q --test-fraction .25 --group donor --part test a.counts | scview -q -O h5ad -o new.h5ad -
		h5tok -q atlas.h5ad | rankenc -q --fit -o vocab.tsv -
		h5tok -q -u --rank vocab.tsv atlas.h5ad | maskgen -q -u - | sctrain mlm -q --config tiny -o small.model -
		h5tok -q --rank vocab.tsv new.h5ad | scembed -q -M small.model - | ctaprobe cells -q --label cell_type -
		h5tok -q new.h5ad | screduce pca -q -k 10 - | scmetric integration -q --label cell_type --batch-key donor -
		h5tok -q --rank vocab.tsv atlas.h5ad | depgraph -q --leiden 1 --min-overlap 20 - | scview - | head -n 3
		corrmask annotate REFERENCE=atlas.h5ad LABEL=cell_type DATA=new.h5ad
		h5tok -q --list-obs results/annotate/latest/annotated.h5ad | grep transfer_assigned
		corrmask demo SCALE=tiny SEEDS=1
		[ -s results/demo/latest/report.txt ] && [ -s results/demo/latest/report.html ] && grep -q CorrMask results/demo/latest/demo.svg
		scstream a.counts | grep counts
		[ -e "$VIRTUAL_ENV/share/man/man1/h5tok.1" ]
		pip install anndata
		python -W ignore adata.py
	END
}

[ $# -gt 0 ] || set -- bookworm trixie
for suite; do
	root=$WORK/$suite log=$WORK/$suite.log start=$SECONDS
	[ -d "$root" ] || make_base "$root" python3-venv,ca-certificates "$suite"
	cp "$wheel" "$root/root"
	cp tests/ref/adata.py "$root/root"
	{ echo 'set -ex; rm -rf v results small.model; python3 -m venv v; . v/bin/activate'; steps | sed "s|WHEEL|${wheel##*/}|"; } > "$root/root/steps"
	inside "$root" HOME=/root LC_ALL=C.UTF-8 bash -c 'cd && bash -o pipefail steps' < /dev/null > "$log" 2>&1 ||
		{ tail -n 40 "$log"; echo "wheel: $suite: failed after $((SECONDS - start)) s" >&2; exit 1; }
	! inside "$root" sh -c 'command -v make curl gcc' || { echo "wheel: $suite is not bare" >&2; exit 1; }
	echo "wheel: $suite: every step passes, $((SECONDS - start)) s"
done

#!/usr/bin/env bash
# Does the image of packaging/Containerfile work?   tests/container.sh BIN [ARGUMENT=VALUE...]
#
# It is built (ARGUMENT: BASE, MPI, SLURM), and as an ordinary user a pipeline runs in it on a mounted folder; its streams are compared byte
# by byte with those of the tools in BIN, and two ranks train under mpirun. BUILDER=podman|docker|buildah; default: the first that is there. As
# root with mmdebstrap, the base is a new Debian from where this machine takes its packages, and no registry is needed. KEEP=1
# keeps the image, corrmask-check.
set -euo pipefail
bin=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
# shellcheck source=tests/debian_base.sh
. tests/debian_base.sh
skip() { echo "check-container: skipped: $1"; exit 0; }
builder=${BUILDER:-$(command -v podman docker buildah | sed 's|.*/||' | head -n 1)}
[ -n "$builder" ] || skip "no podman, docker or buildah"
work=$(mktemp -d)
image=corrmask-check container=
tidy() {
	[ -z "$container" ] || buildah rm "$container" > /dev/null
	[ "${KEEP:-}" ] || "$builder" rmi -f "$image" "$image-base" > /dev/null 2>&1 || :
	rm -rf --one-file-system "$work"
}
trap tidy EXIT
trap 'exit 1' INT TERM

arguments=() mpi=1 slurm=0
for word; do
	arguments+=(--build-arg "$word")
	[ "$word" != MPI=0 ] || mpi=0
	[ "$word" != SLURM=1 ] || slurm=1
done
case " $* " in
*" BASE="*) ;;
*) if [ "$(id -u)" = 0 ] && command -v mmdebstrap > /dev/null; then
	make_base "$work/base" ca-certificates > "$work/log" 2>&1 || { tail "$work/log" >&2; exit 1; }
	tar -C "$work/base" -cf "$work/base.tar" .
	rm -rf --one-file-system "$work/base"
	if [ "$builder" = buildah ]; then
		container=$(buildah from scratch)
		buildah add -q "$container" "$work/base.tar" / > /dev/null
		buildah commit -q --rm "$container" "$image-base" > /dev/null
		container=
	else
		"$builder" import -q "$work/base.tar" "$image-base" > /dev/null
	fi
	rm "$work/base.tar"
	arguments+=(--build-arg "BASE=localhost/$image-base")
	[ "$builder" != docker ] || arguments[-1]=BASE=$image-base
fi ;;
esac

start=$SECONDS
# where namespaces are refused, a builder works in a chroot
[ "$(id -u)" != 0 ] || export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
"$builder" build "${arguments[@]}" -f packaging/Containerfile -t "$image" . > "$work/log" 2>&1 || { tail -n 25 "$work/log" >&2; exit 1; }
echo "check-container: built with $builder in $((SECONDS - start)) s"
# podman may build but not run: buildah shares its images
if [ "$builder" = podman ] && command -v buildah > /dev/null && ! podman run --rm "$image" true 2> /dev/null; then builder=buildah; fi

# inside USER COMMAND...: in a container, with $work/data as its folder
mkdir -m 777 "$work/data"
if [ "$builder" = buildah ]; then container=$(buildah from "$image"); fi
inside() {
	local user=$1
	shift
	if [ "$builder" = buildah ]; then
		buildah run --user "$user" -v "$work/data:/work" "$container" -- "$@"
	else
		"$builder" run --rm --user "$user" -v "$work/data:/work" "$image" "$@"
	fi
}
cat > "$work/data/pipeline.sh" <<'END'
set -eu
scsim -q --cells 300 --genes 150 --types 3 --rarest .2 -u | scview -q -O h5ad -o sim.h5ad -
h5tok -q sim.h5ad -o sim.counts
rankenc -q --fit sim.counts -o vocab.tsv
rankenc -q -m vocab.tsv sim.counts -o sim.tok
maskgen -q --epochs 2 sim.tok -o sim.masked
END
cat > "$work/data/train.sh" <<'END'
set -eu
[ "$(id -u)" != 0 ]
for t in h5tok rankenc depgraph maskgen sctrain scembed scpredict screduce ctaprobe scmetric scgenes armstat scsample scperturb scsim scview corrmask scstream; do
	$t --version > /dev/null
done
sctrain mlm -q --config tiny sim.masked -o one.model
scembed -q -M one.model sim.tok -o sim.emb
ctaprobe cells -q --label cell_type sim.emb > report.tsv
corrmask list papers > list.txt
scstream sim.tok > header.json
END
# shellcheck disable=SC2016 # for the ranks
echo 'mpirun -n 2 sh -c "maskgen -q --shard auto --epochs 2 -b 6 -u sim.tok | sctrain mlm -q --mpi --config tiny -o two.model -"' > "$work/data/ranks.sh"
fail() { echo "check-container: $*" >&2; exit 1; }

inside 1000:1000 sh pipeline.sh || fail "the pipeline"
mkdir "$work/here"
(cd "$work/here" && PATH=$bin:$PATH sh ../data/pipeline.sh)
for f in sim.counts vocab.tsv sim.tok sim.masked; do cmp "$work/here/$f" "$work/data/$f" || fail "other bytes than from $bin"; done
inside 1000:1000 sh train.sh || fail "training"
grep -q 'table6' "$work/data/list.txt" || fail "corrmask list"
[ -s "$work/data/report.tsv" ] || fail "no report"
inside 12345:12345 scview --check sim.tok > /dev/null || fail "a user without a name"
if [ $mpi = 1 ]; then
	inside 1000:1000 sh ranks.sh || fail "two ranks"
	[ "$(wc -l < "$work/data/two.model/train.tsv")" = "$(wc -l < "$work/data/one.model/train.tsv")" ] || fail "two ranks: other steps than one"
else
	inside 1000:1000 sctrain --version | grep -q 'without MPI' || fail "MPI=0"
fi
printf 'ClusterName=none\nSlurmctldHost=none\n' > "$work/data/slurm.conf" # without one, even --version fails
[ $slurm = 0 ] || inside 1000:1000 sh -c 'export SLURM_CONF=/work/slurm.conf; srun --version && sbatch --version' > /dev/null || fail "SLURM=1"
echo "check-container: the tools run as an ordinary user; streams have the bytes of $bin$([ $mpi = 0 ] || echo '; two ranks trained')"

#!/bin/sh
# Everything about the CUDA backend in one call of under ten minutes, on a machine with a GPU: build, check, measure, compare.
#     tests/bench/gpu.sh [OUT]        OUT: a folder for full logs (default: a new one under $TMPDIR)
# The short tables come last. Nothing of the card's settings is touched.
set -u
out=${1:-$(mktemp -d)}
mkdir -p "$out"
jobs=$(nproc)
shapes="corrmask-paper 512 48 corrmask-paper 2048 12 corrmask-paper 2048 48 corrmask-paper 2048 144 corrmask-paper 4096 12
	geneformer-v1-10m 2048 12 geneformer-v1-10m 2048 144 v2-104m 512 48 v2-104m 2048 12 v2-104m 4096 12"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
[ "$arch" = sm_90 ] && arch=sm_90a
make -j"$jobs" CUDA=1 CUDA_ARCH="$arch" all build/release/cuda/test_cuda build/release/cuda/bench_cuda >"$out/build.log" 2>&1 ||
	{ tail -30 "$out/build.log"; echo "gpu.sh: the build fails"; exit 1; }
failed=0
OPENBLAS_NUM_THREADS=1 timeout 150 build/release/cuda/test_cuda >"$out/check.log" 2>&1 || failed=1
if command -v compute-sanitizer >/dev/null && [ "${SANITIZE:-0}" = 1 ]; then
	for tool in memcheck racecheck; do
		timeout 120 compute-sanitizer --tool $tool build/release/cuda/test_cuda >"$out/$tool.log" 2>&1 || failed=1
		tail -3 "$out/$tool.log"
	done
fi
timeout 150 build/release/cuda/bench_cuda cuda 7 $shapes >"$out/bench.log" 2>&1 || failed=1
timeout 180 python3 tests/bench/gpu_torch.py corrmask-paper 2048 12 corrmask-paper 2048 48 v2-104m 2048 12 >"$out/torch.log" 2>&1 || true
# 200 steps of a small model on both: the curves must lie on each other
if bin/scsim -q --model b1 -n 2400 -o "$out/sim.tok"; then
	for d in cpu cuda; do
		bin/maskgen -q --batch 12 "$out/sim.tok" | OPENBLAS_NUM_THREADS=1 timeout 100 bin/sctrain mlm -q --config tiny --device $d -@ "$jobs" \
			-o "$out/model.$d" >"$out/sctrain.$d.log" 2>&1 || { cat "$out/sctrain.$d.log"; failed=1; }
	done
	[ -e "$out/model.cpu/train.tsv" ] && [ -e "$out/model.cuda/train.tsv" ] &&
		paste "$out/model.cpu/train.tsv" "$out/model.cuda/train.tsv" | awk 'NR == 1 || NR % 20 == 0' >"$out/curves.tsv"
fi
echo '== check'
grep -E 'OK|FAILED|ERROR|closest|skipped' "$out/check.log" | tail -60
[ -e "$out/curves.tsv" ] && { echo '== loss, cpu | cuda'; tail -10 "$out/curves.tsv"; }
echo '== torch'
cat "$out/torch.log"
echo '== corrmask'
cat "$out/bench.log"
[ $failed = 0 ] && echo "gpu.sh: all passed; logs in $out" || echo "gpu.sh: FAILED; logs in $out"
exit $failed

#!/usr/bin/env bash
# How the second part of tests/golden/v1 was made, from the first:   tests/golden/make_v1_more.sh BIN DIR
#
# It needs the tools of that version (0.1.0) in BIN. Files of a released version are never rewritten (README.md), so DIR is a new folder.
# python3 with numpy and h5py, or PYTHON=.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 BIN DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
old=$here/v1
PATH=$(realpath "$1"):$PATH
golden() { "${PYTHON:-python3}" "$here/golden.py" "$@"; }
mkdir "$2" "$2/streams"
cd "$2"
s=streams

# types of obs: what h5tok makes of an AnnData file with integers of all widths, booleans, categories and values that are missing
golden obs obs.h5ad
h5tok -q -o $s/obs.scs obs.h5ad
# a PMI graph; masks of a probe, for one of two balanced shards; batches without masks, with the classes of a label
depgraph -q --pmi --tau 0.3 --min-count 2 -o $s/pmi.scs "$old/streams/tokens.scs"
maskgen -q --strategy probe --partners hidden -g "$old/streams/graph.scs" --batch 4 --shard 1/2 --balance-lengths --seed 3 -o $s/probe.scs "$old/streams/tokens.scs"
maskgen -q --strategy none --keep cell_type,donor --batch 8 -u -o $s/supervised.scs "$old/streams/tokens.scs"
# predictions of a probe, with folds
ctaprobe cells -q -l cell_type --folds 2 --predictions $s/probe_prediction.scs -o /dev/null "$old/streams/embedding.scs"
# masked counts of two rates; a model of counts with groups, its checkpoint with the best weights of a validation
maskgen -q --strategy columns --rate-choice 0.2,0.5 --batch 10 --epochs 4 --balance-lengths --seed 3 --keep donor -o $s/masked_counts.scs "$old/streams/counts.scs"
maskgen -q --strategy columns --batch 20 --seed 4 --keep donor -o $s/validation.scs "$old/streams/counts.scs"
genes=$(scview --header-tsv $s/masked_counts.scs | awk '$1 == "vocab.rows" { print $2 }')
sctrain nb -q --config <(printf '{"model_type": "mlp_nb", "vocab_size": %s, "intermediate_size": 6, "hidden_size": 4}' "$genes") --batch-key donor --eval $s/validation.scs --eval-every 4 \
	--save-every 8 --keep-checkpoints 9 --seed 5 --device cpu -o nb_model $s/masked_counts.scs
mkdir nb_checkpoint
mv nb_model/checkpoint-8 nb_checkpoint/
rm -rf nb_model/checkpoint-*
cut -f 1-4 nb_model/train.tsv > nb_checkpoint/losses.tsv
# the checkpoint of a classifier of cells
sctrain cells -q --label cell_type --init "$old/model" --lr 1e-2 --save-every 2 --keep-checkpoints 9 --seed 5 --device cpu -o cells_checkpoint $s/supervised.scs
cut -f 1-4 cells_checkpoint/train.tsv > cells_checkpoint/losses.tsv
find cells_checkpoint -mindepth 1 -maxdepth 1 ! -name checkpoint-2 ! -name losses.tsv -exec rm -r {} +
rm nb_model/train.tsv obs.h5ad
# embedding and reconstruction of the model of counts
scembed -q -M nb_model --device cpu -o $s/nb_embedding.scs "$old/streams/counts.scs"
scpredict expression -q -M nb_model --device cpu -o $s/reconstruction.scs $s/validation.scs
for f in "$s"/*.scs; do golden dump "$f" > "${f%.scs}.txt"; done

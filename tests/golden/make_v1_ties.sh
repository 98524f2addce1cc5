#!/usr/bin/env bash
# How the third part of tests/golden/v1 was made, from the first:   tests/golden/make_v1_ties.sh BIN DIR
#
# It needs the tools of that version (0.1.0) in BIN. Files of a released version are never rewritten (README.md), so DIR is a new folder.
# python3 with numpy, or PYTHON=.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 BIN DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
old=$here/v1
PATH=$(realpath "$1"):$PATH
golden() { "${PYTHON:-python3}" "$here/golden.py" "$@"; }
mkdir "$2" "$2/streams"
cd "$2"
s=streams

# numbers of equal counts, and the order drawn from them; runs of them; ranks and values
rankenc -q --ties random -m "$old/model/vocab.tsv" -o $s/ties.scs "$old/streams/counts.scs"
maskgen -q --rate 0.3 --batch 8 --epochs 2 --seed 3 -o $s/drawn.scs $s/ties.scs
maskgen -q --strategy runs --rate 0.3 --batch 8 --seed 3 -o $s/runs.scs $s/ties.scs
rankenc -q --ties group --value -m "$old/model/vocab.tsv" -o $s/ranks.scs "$old/streams/counts.scs"
maskgen -q --objective value --rate 0.3 --batch 8 --epochs 2 --seed 3 -o $s/values.scs $s/ranks.scs
# a model of values, whose tokens share positions
cat > config.json <<'END'
{"model_type": "bert", "vocab_size": 26, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24,
"max_position_embeddings": 32, "hidden_act": "relu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
END
sctrain value -q --config config.json --lr 1e-2 --save-every 4 --keep-checkpoints 9 --seed 5 --device cpu -o value_model $s/values.scs
mkdir value_checkpoint
mv value_model/checkpoint-4 value_checkpoint/
rm -rf value_model/checkpoint-* config.json
cut -f 1-4 value_model/train.tsv > value_checkpoint/losses.tsv
rm value_model/train.tsv
scembed -q -M value_model --device cpu -o $s/value_embedding.scs $s/ranks.scs
for f in "$s"/*.scs; do golden dump "$f" > "${f%.scs}.txt"; done

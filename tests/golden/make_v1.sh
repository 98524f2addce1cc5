#!/usr/bin/env bash
# How tests/golden/v1 was made:   tests/golden/make_v1.sh BIN DIR
#
# It needs the tools of that version (0.1.0) in BIN. Files of a released version are never rewritten (README.md), so DIR is a new folder.
# python3 with numpy, or PYTHON=.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 BIN DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
PATH=$(realpath "$1"):$PATH
golden() { "${PYTHON:-python3}" "$here/golden.py" "$@"; }
mkdir "$2" "$2/streams"
cd "$2"
s=streams

golden types > $s/types.scs # by Python: the other ones are by the tools
scsim -q --cells 40 --genes 24 --modules 4 --types 3 --rarest 0.2 --depth 60 --donors 2 --seed 7 -o $s/counts.scs
scsample -q --where 'n_counts<0' -o $s/empty.scs $s/types.scs
rankenc -q --fit $s/counts.scs -o vocab.tsv
rankenc -q --value -m vocab.tsv -u $s/counts.scs -o $s/tokens.scs # the one of stored blocks
depgraph -q --min-cells 5 --min-overlap 5 --candidates 4 --leiden 1 -o $s/graph.scs $s/tokens.scs
maskgen -q --strategy corrmask -g $s/graph.scs --rate 0.3 --batch 4 --epochs 2 --seed 3 --keep cell_type -o $s/masked.scs $s/tokens.scs

cat > config.json <<'END'
{"model_type": "bert", "vocab_size": 26, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24,
"max_position_embeddings": 32, "hidden_act": "relu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
END
# the checkpoint of step 10, and what the steps after it came to without an interruption
sctrain mlm -q --config config.json --lr 1e-2 --save-every 10 --keep-checkpoints 9 --seed 5 -o model $s/masked.scs
mkdir checkpoint
mv model/checkpoint-10 checkpoint/
rm -rf model/checkpoint-*
cut -f 1-4 model/train.tsv > checkpoint/losses.tsv
rm model/train.tsv
maskgen -q --strategy none --keep cell_type --batch 8 --epochs 4 -o none $s/tokens.scs
sctrain cells -q --label cell_type --init model --lr 1e-2 -o cells_model none
awk -F '\t' 'BEGIN { print "gene\tlabel" } NR > 1 && $2 !~ /^</ { print $2 "\t" (++n % 2 ? "odd" : "even") }' vocab.tsv > genes.tsv
sctrain genes -q --gene-labels genes.tsv --fold 0/3 --init model --lr 1e-2 -o genes_model none
rm -rf none genes.tsv config.json vocab.tsv {cells,genes}_model/{train.tsv,checkpoint-*}

scembed -q -M model -o $s/embedding.scs $s/tokens.scs
scpredict cells -q -M cells_model --probabilities -o $s/prediction.scs $s/tokens.scs
scpredict genes -q -M genes_model -o $s/gene_prediction.scs $s/tokens.scs
for f in "$s"/*.scs; do golden dump "$f" > "${f%.scs}.txt"; done

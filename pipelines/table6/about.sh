#!/usr/bin/env bash
# Describe the cells and graphs of make table6.
#     table6/about.sh INPUTS DATA "SIZE..."
. "$(dirname "$0")/../common.sh"
[ $# = 3 ] || usage
in=$1 data=$2 sizes=$3
edges() { depgraph -q -O stats "$1" | awk -F '\t' '$1 == "edges" { print $2 }'; }
learn=$(rows "$in/learn.tok") test=$(rows "$in/test.tok") train=$(rows "$in/train.tok") valid=$(rows "$in/valid.tok")
echo "${data:-simulated cells (scsim)}: $learn cells to train, $test to test, $(split_by "$in")"
split_note "$in" "$in/test.tok"
echo "fine-tuning uses $train labelled cells for training and $valid for validation"
for size in $sizes; do
	corrmask=$(edges "$in/corrmask-$size.graph")
	pmi=$(edges "$in/pmi-$size.graph")
	echo "graphs of $(cat "$in/corpus-$size.cells") cells: $corrmask edges, PMI $pmi"
	no_edges "$corrmask" | sed "s/No comparison:/No comparison of corrmask with random at this size:/"
done

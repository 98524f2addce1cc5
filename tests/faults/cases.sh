#!/usr/bin/env bash
# Every tool on small input, for faults.sh and powercut.py. Source it with $work set; or run it: "cases.sh inputs" makes the inputs in $work/in,
# "cases.sh cases" prints the cases.

inputs() {
	cd "${work:?}/in" || return
	[ -e complete ] && return
	scsim -q --cells 120 --genes 160 --types 3 --rarest 0.2 --depth 200 --donors 3 --seed 3 -o counts &&
		scview -q -O h5ad counts -o in.h5ad && rankenc -q --fit counts -o vocab && rankenc -q -m vocab counts -o tok &&
		depgraph -q --min-overlap 6 --min-cells 10 --leiden 1 tok -o modules.graph && depgraph -q tok -o graph && depgraph -q --pmi --tau 0.1 tok -o pmi.graph &&
		maskgen -q -g graph --strategy corrmask --batch 20 tok -o masked && maskgen -q --strategy none --keep cell_type --batch 20 tok -o none &&
		sctrain mlm -q --config tiny masked -o model &&
		sctrain cells -q --label cell_type --init model none -o cells.model 2> /dev/null &&
		awk -F'\t' 'BEGIN { print "gene\tlabel" } NR > 1 && $2 !~ /^</ { print $2 "\t" (++n % 2 ? "odd" : "even") }' vocab > genes.tsv &&
		awk -F'\t' 'NR > 1 { set[$2] = set[$2] "\t" $1 } END { for (s in set) print s "\t-" set[s] }' genes.tsv > sets.gmt &&
		rankenc -q -m vocab --ties group --value counts -o values.tok && maskgen -q --objective value --batch 20 values.tok -o values &&
		maskgen -q --strategy columns --batch 20 counts -o masked.counts && sctrain nb -q --config mlp-nb-tiny masked.counts -o nb.model &&
		for r in 0 1; do maskgen -q --shard $r/2 --batch 10 tok -o $r.masked || return; done &&
		scembed -q -M model tok -o emb && scembed -q --of genes -M model tok -o genes.emb && scpredict cells -q -M cells.model tok -o pred &&
		sctrain genes -q --gene-labels genes.tsv --fold 1/3 --init model none -o genes.model 2> /dev/null &&
		scpredict genes -q -M genes.model tok -o genes.pred && scpredict expression -q -M nb.model masked.counts -o rec &&
		scsample -q -n 40 tok -o some && scperturb apply -q --delete SIMG000010,SIMG000020 --controls 1 some -o perturbed &&
		scembed -q -M model perturbed -o perturbed.emb &&
		ctaprobe score -q --label cell_type pred -o one.score &&
		printf '%s\t%s\t%s\n' label fold hidden a 1 3 a 1 4 b 1 5 b 1 7 a 2 1 a 2 2 b 2 4 b 2 3 > rows.tsv && touch complete
}

# ranks N SCRIPT: run it on N ranks, with $R the rank
ranks() {
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 CORRMASK_MPI_SECONDS=15 \
		timeout -k 5 60 mpirun --oversubscribe --bind-to none -n "$1" bash -c "R=\$OMPI_COMM_WORLD_RANK; $2"
}

# name, command. The command runs in an empty folder; $I is the folder of the inputs. Of the
# ranks, number $FAULTY has the variables of $FAULTS (see faults.sh).
cases() {
	cat <<- 'X'
		h5tok	h5tok -q -@ 2 $I/in.h5ad -o out
		h5tok-rank	h5tok -q -@ 2 --rank $I/vocab --value $I/in.h5ad -o out
		rankenc-fit	rankenc -q --fit $I/counts -o out
		rankenc	rankenc -q -m $I/vocab $I/counts -o out
		depgraph	depgraph -q --leiden 1 $I/tok -o out
		depgraph-pmi	depgraph -q --pmi --tau 0.1 $I/tok -o out
		depgraph-shuffle	depgraph -q --shuffle $I/graph -o out
		depgraph-stats	depgraph -q -O stats $I/graph -o out
		depgraph-tsv	depgraph -q -O tsv $I/graph -o out
		maskgen	maskgen -q -g $I/graph --strategy corrmask --batch 20 $I/tok -o out
		maskgen-audit	maskgen -q -g $I/graph --strategy corrmask --audit $I/graph $I/tok -o out
		maskgen-probe	maskgen -q -g $I/graph --strategy probe --partners visible --batch 20 $I/tok -o out
		scsample	scsample -q -n 50 --stratify cell_type $I/tok -o out
		scsample-cat	scsample -q $I/tok $I/tok -o out
		scsim	scsim -q --cells 50 --genes 120 --types 2 --rarest 0.3 --depth 100 --seed 3 -o out
		scview-tsv	scview -q $I/tok -o out
		scview-h5ad	scview -q -O h5ad $I/counts -o out.h5ad
		scview-into	scview -q -O h5ad --into $I/in.h5ad $I/emb -o out.h5ad
		scview-npy	scview -q -O npy $I/emb -o out
		sctrain-mlm	sctrain mlm -q --config tiny $I/masked -o out
		sctrain-cells	sctrain cells -q --label cell_type --init $I/model $I/none -o out
		sctrain-genes	sctrain genes -q --gene-labels $I/genes.tsv --init $I/model $I/none -o out
		sctrain-eval	sctrain eval -q -M $I/model $I/masked -o out
		maskgen-columns	maskgen -q --strategy columns --batch 20 $I/counts -o out
		scsample-hvg	scsample -q --hvg 40 $I/counts -o out
		maskgen-value	maskgen -q --objective value --batch 20 $I/values.tok -o out
		sctrain-value	sctrain value -q --config tiny $I/values -o out
		sctrain-nb	sctrain nb -q --config mlp-nb-tiny $I/masked.counts -o out
		sctrain-nb-curriculum	sctrain nb -q --config mlp-nb-tiny --curriculum easy $I/masked.counts -o out
		sctrain-eval-nb	sctrain eval -q -M $I/nb.model $I/masked.counts -o out
		scperturb	scperturb apply -q --delete all --controls 1 $I/tok -o out
		scembed	scembed -q -M $I/model $I/tok -o out
		scembed-similarity	scembed -q -M $I/model --similarity genes $I/perturbed -o out
		scpredict-cells	scpredict cells -q -M $I/cells.model $I/tok -o out
		scembed-nb	scembed -q -M $I/nb.model $I/counts -o out
		scpredict-genes	scpredict genes -q -M $I/genes.model $I/tok -o out
		scpredict-expression	scpredict expression -q -M $I/nb.model $I/masked.counts -o out
		screduce-expression	screduce expression -q $I/counts -o out
		screduce-pca	screduce pca -q -k 5 $I/counts -o out
		ctaprobe-cells	ctaprobe cells -q --label cell_type --folds 3 $I/emb -o out
		ctaprobe-score	ctaprobe score -q --label cell_type $I/pred -o out
		ctaprobe-target	ctaprobe cells -q --target n_counts --folds 3 $I/emb -o out
		ctaprobe-nearest	ctaprobe cells -q --label cell_type --nearest 3 --folds 3 $I/emb -o out
		scembed-of-genes	scembed -q --of genes --by cell_type -M $I/model $I/tok -o out
		scgenes-network	scgenes network -q -k 5 $I/genes.emb -o out
		ctaprobe-genes-probe	ctaprobe genes -q --gene-labels $I/genes.tsv --folds 3 $I/genes.emb -o out
		scgenes-genesets	scgenes genesets -q --sets $I/sets.gmt $I/graph $I/modules.graph -o out
		scgenes-modules	scgenes genesets -q --sets $I/sets.gmt --module module $I/modules.graph -o out
		scgenes-markers	scgenes markers -q -l cell_type $I/counts -o out
		ctaprobe-transfer	ctaprobe transfer -q --reference $I/emb --label cell_type --group donor $I/emb -o out
		ctaprobe-transfer-nearest	ctaprobe transfer -q --reference $I/emb --label cell_type --nearest 3 $I/emb -o out
		ctaprobe-transfer-counts	ctaprobe transfer -q --reference $I/counts --label cell_type --group donor $I/counts -o out
		ctaprobe-genes	ctaprobe genes -q $I/genes.pred -o out
		scmetric-reconstruction	scmetric reconstruction $I/rec -o out
		scmetric-effective-rank	scmetric effective-rank -q $I/emb -o out
		armstat-leaderboard	armstat leaderboard -m macro_f1 $I/one.score -o out
		armstat-compare	armstat compare -q --arm label --metrics hidden $I/rows.tsv -o out
		scmetric-reference	scmetric reference -q --train $I/tok $I/masked -o out
		scmetric-integration	scmetric integration -q -@ 2 -l cell_type -b donor $I/emb -o out
		scmetric-leiden	scmetric integration -q --preset scib -l cell_type -b donor $I/emb -o out
		ctaprobe-repeats	ctaprobe cells -q --protocol cz --repeats 2 -l cell_type $I/emb -o out
		scperturb-shift	scperturb shift -q --state cell_type --from type1 --to type2 --group donor $I/perturbed.emb -o out
		screduce-map	screduce map -q $I/emb -o out
		depgraph-layout	depgraph -q -O layout $I/graph -o out
	X
	[[ $(sctrain --version) != *"without MPI"* ]] && command -v mpirun > /dev/null || return 0
	cat <<- 'X'
		sctrain-mpi-rank0	export FAULTY=0; ranks 2 'exec env $([ $R != $FAULTY ] || echo $FAULTS) sctrain mlm -q --mpi --config tiny --save-every 4 -o out $I/$R.masked'
		sctrain-mpi-rank1	export FAULTY=1; ranks 2 'exec env $([ $R != $FAULTY ] || echo $FAULTS) sctrain mlm -q --mpi --config tiny --save-every 4 -o out $I/$R.masked'
		sctrain-mpi-start-rank0	export FAULTY=0 AT=start; ranks 2 'exec env $([ $R != $FAULTY ] || echo $FAULTS) sctrain mlm -q --mpi --config tiny -o out $I/$R.masked'
		sctrain-mpi-start-rank1	export FAULTY=1 AT=start; ranks 2 'exec env $([ $R != $FAULTY ] || echo $FAULTS) sctrain mlm -q --mpi --config tiny -o out $I/$R.masked'
	X
}

[ "${BASH_SOURCE[0]}" != "$0" ] || "$@"

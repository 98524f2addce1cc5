# sctrain TASK --resume on a model directory of another training, finished or not: refused with what differs; on that of the same: nothing to do.
load helper

TASKS="mlm value wced cells genes nb"

setup_file() {
	need_tool scsim rankenc maskgen sctrain scsample
	cd "$BATS_FILE_TMPDIR"
	for seed in 1 2; do
		scsim -q --cells 60 --genes 40 --modules 4 --types 3 --rarest 0.2 --depth 300 --seed $seed -o $seed.counts
		[ -e v.tsv ] || rankenc -q --fit -o v.tsv 1.counts
		[ -e b.tsv ] || rankenc -q --fit --vocab-style bmfm -o b.tsv 1.counts
		rankenc -q -m v.tsv -o $seed.tok $seed.counts
		rankenc -q -m v.tsv --ties group --value -o $seed.values $seed.counts
		rankenc -q -m b.tsv -o $seed.bmfm $seed.counts
		streams $seed $seed --seed 4
	done
	scsample -q -n 40 1.tok -o few.tok
	awk -F'\t' 'NR > 1 && NR % 3 { print $2 "\t" (NR % 2 ? "odd" : "even") }' v.tsv >labels.tsv
	awk '{ $2 = NR % 4 < 2 ? "odd" : "even" } 1' OFS='\t' labels.tsv >labels2.tsv
	terms "" >cl.obo
	terms "is_a: T:1 ! type1" >cl2.obo
	sctrain nb -q --config mlp-nb-tiny --batch-key donor -o nb.from 2.nb
	sctrain wced -q --config bmfm-tiny -o wced.from 2.wced
	for task in mlm value; do sctrain $task -q --config tiny -o $task.from 2.$task; done
	sctrain mlm -q --config tiny --seed 2 -o mlm.from2 2.mlm
	for task in $TASKS; do
		read -ra base <<<"$(base $task)"
		sctrain $task -q "${base[@]}" --save-every 4 -o $task.model 1.$task
	done
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

# streams CELLS NAME OPTION...: the masked stream of every task
streams() {
	local in=$1 out=$2 columns=(--count-kept --keep "cell_type,donor,n_counts")
	shift 2
	set -- --batch 10 --epochs 2 "$@"
	maskgen -q "${columns[@]}" "$@" -o $out.mlm $in.tok
	maskgen -q "${columns[@]}" --objective value "$@" -o $out.value $in.values
	maskgen -q "${columns[@]}" --objective cell "$@" -o $out.wced $in.bmfm
	maskgen -q "${columns[@]}" --strategy none "$@" -o $out.cells $in.tok
	ln -f $out.cells $out.genes
	maskgen -q --keep cell_type,donor --strategy columns --rate-choice 0.2,0.4 "$@" -o $out.nb $in.counts
}

# terms LINE: an ontology of the cell types, with this line in type2
terms() {
	printf 'format-version: 1.2\n'
	for i in 0 1 2 3; do
		printf '\n[Term]\nid: T:%d\nname: type%d\n' $i $i
		[ $i = 0 ] || echo "is_a: T:0 ! type0"
		[ $i != 2 ] || [ -z "$1" ] || echo "$1"
	done
}

# base TASK: the options of its model
base() {
	local own
	case $1 in
	nb) own="--config mlp-nb-tiny --batch-key donor --curriculum easy --best loss" ;;
	cells) own="--config tiny --label donor --class-weight none --head cell_type:hce --ontology cl.obo --init mlm.from --best loss" ;;
	genes) own="--config tiny --gene-labels labels.tsv --fold 0/3 --init mlm.from --best loss" ;;
	wced) own="--config bmfm-tiny --head donor:ce --best loss" ;;
	*) own="--config tiny --head donor:ce --best loss" ;;
	esac
	echo "$own --lr 0.002 --eval 2.$1 --eval-every 3 --resume"
}

# other TASK OPTION: "VALUE", another one than that of base, or "= VALUE" if it changes no model, or "-" if it is none of these
other() {
	case $2 in
	output | force | help | version | resume) echo - ;;
	mpi) echo - ;; # another number of ranks is another stream, see mpi.bats
	save-every | keep-checkpoints) echo "= 3" ;;
	same-kernels | quiet | verbose) echo "=" ;;
	device) echo "= cpu" ;;
	threads) echo "= 2" ;;
	report) echo "= report.tsv" ;;
	progress) echo "= never" ;;
	config) case $1 in nb) echo mlp-nb ;; wced) echo tiny ;; *) echo geneformer-v1-10m ;; esac ;;
	init) case $1 in cells | genes) echo mlm.from2 ;; *) echo $1.from ;; esac ;;
	dropout) echo 0.3 ;;
	head) [ $1 = cells ] && echo cell_type:hce,mean=known || echo donor:focal ;;
	ontology) echo cl2.obo ;;
	lr) echo 0.003 ;;
	warmup) echo 3 ;;
	schedule) echo cosine ;;
	weight-decay) echo 0.3 ;;
	clip) echo 0.7 ;;
	accum) echo 2 ;;
	freeze) echo 1 ;;
	eval) echo 1.$1 ;;
	eval-every) echo 4 ;;
	best) echo last ;;
	patience) echo 2 ;;
	seed) echo 9 ;;
	precision) echo bf16 ;;
	label) echo cell_type ;;
	class-weight) echo balanced ;;
	gene-labels) echo labels2.tsv ;;
	fold) echo 1/3 ;;
	batch-key) echo cell_type ;;
	curriculum) echo easy-to-hard ;;
	keep-unknown-labels) echo ;;
	*) fail "sctrain $1 --$2 is not in this table: does it change the model, and does --resume notice?" ;;
	esac
}

# changed TASK OPTION [VALUE]: the options of base, with this one
changed() {
	local out=() word skip=0 words
	read -ra words <<<"$(base $1)"
	for word in "${words[@]}"; do
		if [ $skip = 1 ]; then
			skip=0
		elif [ "$word" = "--$2" ] || [[ $2$word = label--@(head|ontology) ]]; then # which predict that column
			skip=1
		else
			out+=("$word")
		fi
	done
	echo "${out[*]} --$2 ${3:-}"
}

options() { sctrain "$1" --help | sed -n 's/^ *\(-[^ -], \)\{0,1\}--\([a-z-]*\).*/\2/p'; }
sums() { find "$1" -type f -exec md5sum {} + | sort; }

@test "resume: a finished model of the same training leaves nothing to do, and its bytes are untouched" {
	for task in $TASKS; do
		sums $task.model >before
		read -ra words <<<"$(base $task)"
		run -0 sctrain $task "${words[@]}" -o $task.model 1.$task
		names "$task.model finished"
		run -0 sctrain $task -q "${words[@]}" -o $task.model 1.$task
		assert_output ""
		sums $task.model | cmp before
	done
}

@test "resume: a finished model with a file that is damaged, cut, empty or gone is refused by its name, and made again without its weights" {
	for task in mlm genes; do
		read -ra words <<<"$(base $task)"
		for file in model.safetensors vocab.tsv config.json trainer_state.json $([ $task = mlm ] || echo genes.tsv); do
			for fault in changed cut empty gone; do
				[ "$file $fault" != "trainer_state.json gone" ] || continue # that of an earlier version
				rm -rf hurt
				cp -r $task.model hurt
				case $fault in
				changed) printf 'XXXX' | dd of=hurt/$file bs=1 seek=$(($(stat -c %s hurt/$file) / 2)) conv=notrunc status=none ;;
				cut) truncate -s -9 hurt/$file ;;
				empty) : >hurt/$file ;;
				gone) rm hurt/$file ;;
				esac
				if [ "$file $fault" = "model.safetensors gone" ]; then
					sctrain $task -q "${words[@]}" -o hurt 1.$task
				else
					sums hurt >before
					run -1 sctrain $task "${words[@]}" -o hurt 1.$task
					assert_equal "${#lines[@]}" 1
					names "hurt $file --force"
					sums hurt | cmp before
					[ $file != trainer_state.json ] || continue
					rm -f hurt/model.safetensors
					sctrain $task -q "${words[@]}" -o hurt 1.$task
				fi
				cmp hurt/model.safetensors $task.model/model.safetensors
			done
		done
	done
}

@test "a folder with files of the names that a training writes, and no training: refused without --force, and left as it is" {
	read -ra words <<<"$(base mlm)"
	for file in config.json vocab.tsv train.tsv trainer_state.json genes.tsv groups.tsv ontology.obo; do
		for how in --resume --quiet; do
			rm -rf theirs
			mkdir theirs
			echo '{"model_type": "mine"}' >theirs/$file
			sums theirs >before
			run -1 sctrain mlm "${words[@]/--resume/$how}" -o theirs 1.mlm
			assert_equal "${#lines[@]}" 1
			names "theirs/$file --force"
			sums theirs | cmp before
		done
		sctrain mlm -q "${words[@]/--resume/--force}" -o theirs 1.mlm
		cmp theirs/model.safetensors mlm.model/model.safetensors
	done
	# files of other names stay, and an own training that was killed before its first checkpoint goes on
	rm -rf theirs
	mkdir theirs
	echo "my notes" | tee theirs/README.md theirs/notes.txt >theirs/training.log
	head -n 4 mlm.model/train.tsv >theirs/train.tsv
	sctrain mlm -q "${words[@]}" -o theirs 1.mlm
	cmp theirs/model.safetensors mlm.model/model.safetensors
	# what a power cut leaves of its curve: nothing, a part, zeros
	for left in 0 3 46; do
		rm theirs/*.safetensors theirs/*.json theirs/*.tsv
		rm -rf theirs/checkpoint-*
		if [ $left = 46 ]; then head -c 46 /dev/zero; else head -c $left mlm.model/train.tsv; fi >theirs/train.tsv
		sctrain mlm -q "${words[@]}" -o theirs 1.mlm
		cmp theirs/model.safetensors mlm.model/model.safetensors
	done
	[ "$(sort -u theirs/{README.md,notes.txt,training.log})" = "my notes" ]
	# and so does one that was killed before its weights were written
	rm theirs/model.safetensors
	sctrain mlm -q "${words[@]}" -o theirs 1.mlm
	cmp theirs/model.safetensors mlm.model/model.safetensors
}

@test "resume: every option of every task is one that changes the model, and is refused by name, or one that does not" {
	for task in $TASKS; do
		sums $task.model >before
		n=0
		for option in $(options $task); do
			value=$(other $task $option) || fail "$value"
			case $task-$option in nb-dropout | nb-head | nb-ontology | nb-freeze | [mvgw]*-ontology) continue ;; esac # none, or not alone
			case $value in
			-) continue ;;
			=*) want=0 ;;
			*) want=1 ;;
			esac
			read -ra words <<<"$(changed $task $option "${value#=}")"
			echo "sctrain $task ${words[*]}"
			run -$want sctrain $task "${words[@]}" -o $task.model 1.$task
			if [ $want = 1 ]; then
				names "--resume: $task.model before now"
				case $option in config | dropout | ontology | head | precision | gene-labels | label | batch-key | eval) ;; *) names "$option" ;; esac
			fi
			n=$((n + 1))
		done
		assert [ $n -gt 20 ]
		sums $task.model | cmp before
	done
}

@test "resume: another stream is refused: other cells, as many or fewer, epochs, seed, masks, vocabulary" {
	streams 2 cells --seed 4
	streams 1 seed --seed 5
	for task in $TASKS; do
		read -ra words <<<"$(base $task)"
		for name in cells seed; do
			run -1 sctrain $task "${words[@]}" -o $task.model $name.$task
			names "--resume: $task.model masked stream before now"
		done
	done
	maskgen -q --count-kept --keep cell_type,donor,n_counts --batch 10 --epochs 3 --seed 4 1.tok -o epochs.mlm
	maskgen -q --count-kept --keep cell_type,donor,n_counts --batch 10 --epochs 2 --seed 4 --rate 0.3 1.tok -o rate.mlm
	maskgen -q --count-kept --keep cell_type,donor,n_counts --batch 10 --epochs 2 --seed 4 few.tok -o rows.mlm
	read -ra words <<<"$(base mlm)"
	for name in epochs rate rows; do
		run -1 sctrain mlm "${words[@]}" -o mlm.model $name.mlm
		names "--resume: mlm.model $name before now --init"
	done
	scsim -q --cells 60 --genes 30 --modules 4 --types 3 --seed 1 | rankenc -q --fit -o v30.tsv
	scsim -q --cells 60 --genes 30 --modules 4 --types 3 --seed 1 | rankenc -q -m v30.tsv |
		maskgen -q --count-kept --keep cell_type,donor,n_counts --batch 10 --epochs 2 --seed 4 -o v30.mlm
	run -1 sctrain mlm --config tiny --resume -o mlm.model v30.mlm
	names "--resume: mlm.model vocabulary"
}

@test "resume: an unfinished training refuses the same, among it another --init and other cells to validate on" {
	mkdir -p part
	for task in cells genes; do
		cp -r $task.model part/$task
		rm part/$task/{model.safetensors,config.json,trainer_state.json}
		for option in init eval label gene-labels; do
			case $task-$option in cells-gene-labels | genes-label) continue ;; esac
			read -ra words <<<"$(changed $task $option "$(other $task $option)")"
			run -1 sctrain $task "${words[@]}" -o part/$task 1.$task
			names "--resume: part/$task/checkpoint-8 before now"
		done
		read -ra words <<<"$(base $task)"
		sctrain $task -q "${words[@]}" -o part/$task 1.$task
		cmp $task.model/model.safetensors part/$task/model.safetensors
		cmp $task.model/trainer_state.json part/$task/trainer_state.json
	done
}

@test "resume: through a pipe all programs end well, from a whole stream and from maskgen --resume, which refuses another one" {
	maskgen -q --batch 10 1.tok | sctrain mlm -q --config tiny -o piped
	run -0 bash -o pipefail -c 'maskgen -q --batch 10 --resume piped 1.tok | sctrain mlm --config tiny --resume -o piped'
	names "piped finished"
	run -0 bash -o pipefail -c 'maskgen -q --batch 10 1.tok | sctrain mlm --config tiny --resume -o piped'
	run -1 maskgen -q --batch 10 --seed 3 --resume piped -o x.masked 1.tok
	names "--resume: piped seed: 1 3"
	run -1 maskgen -q --batch 10 --resume piped -o x.masked 2.tok
	names "--resume: piped files digest"
	assert_not_exist x.masked
	maskgen -q --batch 10 --resume piped -o x.masked 1.tok
	assert_equal "$(scview -c cell x.masked | wc -l)" 1
}

@test "resume: the finished model of an earlier version: compared by its checkpoint, refused without one" {
	cp -r mlm.model old
	rm old/trainer_state.json
	$PYTHON - old/checkpoint-*/trainer_state.json <<-'P'
		import json, sys
		for path in sys.argv[1:]:
		    s = json.load(open(path))
		    for key in ("stream", "digest"):
		        del s[key]
		    del s["settings"]["eval-cells"]
		    json.dump(s, open(path, "w"))
	P
	read -ra words <<<"$(base mlm)"
	sctrain mlm -q "${words[@]}" -o old 1.mlm
	run -1 sctrain mlm "${words[@]}" -o old seed.mlm
	names "--resume: old digest"
	run -1 sctrain mlm "${words[@]}" --seed 3 -o old 1.mlm
	names "--resume: old seed: 1 3"
	rm -r old/checkpoint-*
	run -1 sctrain mlm "${words[@]}" -o old 1.mlm
	names "--resume: old trainer_state.json --force"
	run -1 sctrain mlm "${words[@]/--resume/--quiet}" -o old 1.mlm
	sctrain mlm "${words[@]/--resume/--quiet}" --force -o old 1.mlm
	cmp old/trainer_state.json mlm.model/trainer_state.json
	# a state that was edited or cut is none
	sed -i 's/"seed":\t1/"seed":\t2/' old/trainer_state.json
	run -1 sctrain mlm "${words[@]}" --seed 2 -o old 1.mlm
	names "--resume: old/trainer_state.json damaged"
}

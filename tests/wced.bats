# Whole cells: rankenc --vocab-style bmfm, maskgen --objective cell and value of tokens with counts, sctrain wced and value, scpredict expression.
load helper

# 240 cells of two files, one of which lacks the last 30 of 120 genes. Genes are in the order of their ids.
setup_file() {
	need_tool scsim rankenc maskgen scview scsample scembed sctrain depgraph
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 160 --genes 120 --modules 6 --types 4 --rarest 0.15 --depth 300 --seed 3 -o a.counts
	scsim -q --cells 80 --genes 90 --modules 6 --types 4 --rarest 0.15 --depth 300 --seed 4 -o b.counts
	rankenc -q --fit --vocab-style bmfm -o vocab.tsv a.counts
	rankenc -q -m vocab.tsv --cls 2 -o a.tok a.counts
	rankenc -q -m vocab.tsv --cls 2 -o b.tok b.counts
	scsample -q -o all.tok a.tok b.tok a.tok
	scsample -q -n 240 --seed 1 -o train.tok all.tok
	depgraph -q -o a.graph a.tok
	maskgen -q --objective cell --rate 0.3 --epochs 4 --batch 20 --seed 4 -o train.masked train.tok
	maskgen -q --objective cell --rate 0.3 --batch 30 --seed 5 -o test.masked all.tok
	maskgen -q --objective value --zeros batch --max-len 60 --epochs 4 --batch 20 --seed 4 -o train.values train.tok
	maskgen -q --objective value --zeros batch --max-len 60 --batch 30 --seed 5 -o test.values all.tok
	sctrain wced -q -@ 2 $TINY --eval test.masked --save-every 13 -o model train.masked
	sctrain value -q -@ 2 $TINY --eval test.values --save-every 13 -o values train.values
}

TINY="--config tiny --lr 0.003"

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

ref() { # ref COMMAND ARGUMENT...
	$PYTHON "$BATS_TEST_DIRNAME/ref/wced.py" "$@"
}

panels() {
	scview -H "$1" | tr -d '\n\t ' | grep -o '"panels":\[[^]]*\]' | cut -d: -f2
}

same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

# edited IN OUT CODE: the stream with CODE run on its header h and on every block b (python/scstream)
edited() {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - "$1" "$2" "$3" <<-'END'
		import sys, numpy, corrmask.stream as scstream
		stream = scstream.read(sys.argv[1])
		h, blocks = dict(stream.header), list(stream)
		def at(name, row):
		    offset, values = b[name]
		    return values[offset[row]:offset[row + 1]]
		for b in blocks or [None]:
		    exec(sys.argv[3])
		with scstream.Writer(sys.argv[2], h) as out:
		    for b in blocks:
		        out.write(b)
	END
}

# --- tokens ---

# genes ROW FILE: the numbers of the genes that panel ROW of a stream has
measured_genes() {
	panels "$2" | $PYTHON -c 'import json, sys; b = bytes.fromhex(json.load(sys.stdin)[int(sys.argv[1])])
print([g for g in range(8 * len(b)) if b[g // 8] >> g % 8 & 1])' "$1"
}

@test "files of different genes in one run of h5tok: a gene that a cell's file lacks is not measured, in counts and in tokens" {
	mkdir -p one_run && cd one_run
	scview -q -O h5ad -o a.h5ad ../a.counts
	scview -q -O h5ad -o b.h5ad ../b.counts
	h5tok -q -o ab.counts a.h5ad b.h5ad
	rankenc -q -m ../vocab.tsv --cls 2 -o ab.tok ab.counts
	assert_equal "$(panels ab.tok)" "$(panels ../all.tok)"
	h5tok -q --rank ../vocab.tsv --cls 2 -o direct.tok a.h5ad b.h5ad
	cmp direct.tok ab.tok
	scsample -q -o joined.tok ../a.tok ../b.tok
	cmp <(scview -c panel,token,count ab.tok) <(scview -c panel,token,count joined.tok)
	maskgen -q --objective cell --strategy none -o ab.masked ab.tok
	maskgen -q --objective cell --strategy none -o joined.masked joined.tok
	cmp <(scview -c panel,target,value ab.masked) <(scview -c panel,target,value joined.masked)
	# files of the same genes, in whatever order, have no panels; nor have tokens of ranks
	h5tok -q -o aa.counts a.h5ad a.h5ad
	run scview -H aa.counts
	refute_output --partial '"panel'
	rankenc -q --fit -o ranks.tsv ab.counts
	rankenc -q -m ranks.tsv -o ranks.tok ab.counts
	run scview -H ranks.tok
	refute_output --partial '"panel'
	scview -q -O h5ad -o back.h5ad ab.counts
	h5tok --list-obs back.h5ad >obs
	run ! grep -w panel obs
}

@test "panels of counts: joined with counts of all genes, narrowed by --hvg, and checked" {
	mkdir -p panels && cd panels
	scview -q -O h5ad -o a.h5ad ../a.counts
	scview -q -O h5ad -o b.h5ad ../b.counts
	h5tok -q -o ba.counts b.h5ad a.h5ad
	scsample -q -o two.counts ba.counts ../a.counts
	rankenc -q -m ../vocab.tsv -o two.tok two.counts
	rankenc -q -m ../vocab.tsv -o ba.tok ba.counts
	assert_equal "$(panels two.tok)" "$(panels ba.tok)"
	assert_equal "$(scview -c panel two.tok | tail -n +2 | uniq -c | tr -s ' \n' ' ')" ' 80 0 320 1 '
	scsample -q --hvg 50 -o few.counts ba.counts
	rankenc -q -m ../vocab.tsv --min-matched 0 -o few.tok few.counts
	$PYTHON - "$(scview -H few.tok)" "$(measured_genes 0 few.tok)" "$(measured_genes 1 few.tok)" "$(measured_genes 0 ba.tok)" <<-'END'
		import json, sys
		few, all_of_few, of_b = map(json.loads, sys.argv[2:])
		assert len(all_of_few) == 50 and few == [g for g in all_of_few if g in of_b] and len(few) < 50
	END
	edited ba.counts bad.counts 'b["panel"] = b["panel"] + 1'
	run rankenc -m ../vocab.tsv -o bad.tok bad.counts
	assert_failure 1
	assert_output --partial 'panel 2, but the header has 2'
	edited ba.counts bad.counts 'h["panels"] = ["ff"]'
	for tool in "rankenc -m ../vocab.tsv" scsample; do
		run $tool -o bad.out bad.counts
		assert_failure 1
		assert_output --partial "panel 0: expected $((2 * 15)) hex digits"
		assert_not_exists bad.out
	done
}

@test "rankenc --vocab-style bmfm: all genes by count, their counts and values, the special tokens in front" {
	scview -c cell,gene,count a.counts >counts.tsv
	for k in 1 5 32; do
		rankenc -q -m vocab.tsv --cls $k --value a.counts | scview -c cell,panel,token,count,value >tokens.tsv
		ref tokens $k counts.tsv vocab.tsv tokens.tsv kept
	done
	# a vocabulary of half of the genes: n_counts counts the others too
	sed -n '1,39p;40,$ { n; p }' vocab.tsv | awk 'BEGIN { FS = OFS = "\t" } NR > 1 { $1 = NR - 2 } 1' >half.tsv
	rankenc -q -m half.tsv --value a.counts | scview -c cell,panel,token,count,value >tokens.tsv
	ref tokens 1 counts.tsv half.tsv tokens.tsv kept
	# threads, and medians that are missing, change nothing
	awk 'BEGIN { FS = OFS = "\t" } NR > 1 { $4 = "NA" } 1' vocab.tsv >na.tsv
	cmp <(scview -c cell,token,count a.tok) <(rankenc -q -@ 3 -m na.tsv --cls 2 a.counts | scview -c cell,token,count)
}

@test "scsample: joins which genes were measured; equal panels of two files are one" {
	run scview -c panel all.tok
	assert_equal "$(scview -c panel all.tok | sort | uniq -c | awk '{ print $1, $2 }' | sort)" "$(printf '1 panel\n320 0\n80 1')"
	assert_equal "$(panels all.tok)" "[$(panels a.tok | tr -d '[]'),$(panels b.tok | tr -d '[]')]"
	# of b.tok alone the panel is number 0; joined first, it stays so
	scsample -q -o ba.tok b.tok a.tok
	assert_equal "$(scview -c panel ba.tok | sort | uniq -c | awk '{ print $1, $2 }' | sort)" "$(printf '1 panel\n160 1\n80 0')"
	rankenc -q -m vocab.tsv --cls 1 -o one.tok b.counts
	for tool in scsample "maskgen --objective cell"; do
		run -1 $tool a.tok one.tok -o never
		assert_output --partial "one.tok: it is of rankenc --cls 1, and a.tok of --cls 2"
		assert_not_exists never
	done
	edited a.tok bad.tok "b['panel'][:] = 7"
	run -1 scsample bad.tok b.tok -o never
	assert_output --partial "bad.tok: cell 0: panel 7, but the header has 1"
	edited a.tok none.tok "h.pop('panels', None)"
	run -1 scsample none.tok b.tok -o never
	names "header none.tok"
}

# --- inputs ---

# bats test_tags=slow
@test "maskgen --objective cell: left-out genes, values of what is left, the whole cell as target" {
	scview -c cell,n_counts,panel,token,count all.tok >tokens.tsv
	checked() { # OPTIONS_OF_THE_TEST OPTION...
		local json=$1
		shift
		maskgen -q --objective cell --epochs 2 --seed 7 "$@" all.tok | scview -c cell,epoch,input,input_value,target,value >masked.tsv
		ref cell vocab.tsv tokens.tsv masked.tsv kept "$json"
	}
	share() { # WANT GOT OFF
		awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN { exit !(a - b < d && b - a < d) }'
	}
	read -r left zeros _ <<<"$(checked '{}')"
	share 0.19 "$left" 0.01 # 0.2 of the genes of a cell, rounded down
	share 0 "$zeros" 1e-9
	read -r left _ <<<"$(checked '{}' --rate 0.5 --bernoulli)"
	share 0.5 "$left" 0.02
	read -r left _ <<<"$(checked '{}' --rate-uniform 0.1:0.9)"
	share 0.5 "$left" 0.06
	checked '{}' --strategy corrmask -g a.graph --rate 0.4
	read -r left _ <<<"$(checked '{}' --strategy none)"
	share 0 "$left" 1e-9
	checked '{"max_len": 30}' --max-len 30 --strategy none
	# zeros: genes that were measured, up to the length, nine genes to a zero; a fifth of the cells has none
	p=$(panels all.tok)
	read -r _ zeros without <<<"$(checked "{\"max_len\": 100, \"zeros\": \"random\", \"panels\": $p}" --max-len 100 --zeros random)"
	share 0.2 "$without" 0.05
	read -r _ zeros without <<<"$(checked "{\"max_len\": 90, \"zeros\": \"batch\", \"panels\": $p}" --max-len 90 --zeros batch)"
	share 0.2 "$without" 0.05
	# --unmeasured zero: no panel, all genes are targets
	run -1 grep panel <(maskgen -q --objective cell --unmeasured zero all.tok | scview -H)
}

@test "maskgen --objective cell: threads, shards and a later start give the same cells; zeros of the batch are those of the shard" {
	maskgen -q --objective cell --rate 0.3 -@ 3 --epochs 4 --batch 20 --seed 4 train.tok | cmp - train.masked
	one() {
		maskgen -q --objective cell --rate 0.3 --zeros random --max-len 80 --epochs 2 --seed 4 "$@" train.tok | scview -c cell,epoch,panel,input,input_value,target,value | tail -n +2
	}
	cmp <(one --batch 20 | sort) <({ one --batch 10 --shard 0/2; one --batch 10 --shard 1/2; } | sort)
	cmp <(one --batch 20 | sort) <({ one --batch 10 --shard 0/2 --balance-lengths; one --batch 10 --shard 1/2 --balance-lengths; } | sort)
	# a batch of one cell has no genes of other cells: its zeros are drawn from all
	maskgen -q --objective cell --zeros batch --max-len 60 --batch 1 --seed 4 train.tok | scview -c input,input_value | cksum >alone
	maskgen -q --objective cell --zeros batch --max-len 60 --batch 40 --seed 4 train.tok | scview -c input,input_value | cksum >many
	run -1 cmp alone many
	# in a batch of many cells the genes that no cell has come last: such a zero stands in no input while others are left
	maskgen -q --objective cell --strategy none --zeros batch --max-len 24 --batch 480 b.tok |
		scview -c target,input,input_value | $PYTHON -c '
import sys
rows = [[f.split() for f in line.rstrip("\n").split("\t")] for line in sys.stdin.read().split("\n")[1:-1]]
have = {g for target, _, _ in rows for g in target}
zeros = [i for _, ids, values in rows for i, v in zip(ids, values) if float(v) == 0]
assert zeros and set(zeros) <= have, set(zeros) - have
'
}

# bats test_tags=slow
@test "maskgen --objective value: the value, the gene or both are hidden, 95 % of the chosen ones" {
	scview -c cell,n_counts,panel,token,count all.tok >tokens.tsv
	p=$(panels all.tok)
	for field in value gene both; do
		columns=cell,epoch,input,input_value,position,target$([ $field = gene ] || echo ,value)
		maskgen -q --objective value --field $field --epochs 3 --seed 7 all.tok | scview -c $columns >masked.tsv
		read -r chosen hidden <<<"$(ref value vocab.tsv tokens.tsv masked.tsv kept "{\"field\": \"$field\"}")"
		awk -v c="$chosen" -v h="$hidden" 'BEGIN { exit !(c > 0.13 && c < 0.16 && h > 0.94 && h < 0.96) }'
		maskgen -q --objective value --field $field --hidden 0.5 --zeros batch --max-len 70 --seed 7 all.tok | scview -c $columns >masked.tsv
		read -r chosen hidden <<<"$(ref value vocab.tsv tokens.tsv masked.tsv kept "{\"field\": \"$field\", \"max_len\": 70, \"zeros\": \"batch\", \"panels\": $p}")"
		awk -v h="$hidden" 'BEGIN { exit !(h > 0.46 && h < 0.54) }'
	done
}

@test "maskgen: values as input, what does not go together, and bad cells" {
	refused() { # STATUS MESSAGE OPTION...
		local status=$1 message=$2
		shift 2
		rm -f never
		run -"$status" maskgen "$@" -o never
		assert_output --partial "$message"
		assert_equal "$(grep -c . <<<"$output")" "$([ "$status" = 2 ] && echo 2 || echo 1)"
		assert_file_not_exist never
	}
	edited a.tok bad.tok "b['panel'][3] = 1"
	refused 1 "cell 3: panel 1, but the header has 1" --objective cell bad.tok
	edited a.tok bad.tok "at('token', 3)[5] = at('token', 3)[6]"
	refused 1 "cell 3: position 6: gene" --objective cell bad.tok
	edited a.tok bad.tok "at('token', 3)[5] = 4"
	refused 1 "cell 3: position 5: a special token (4) between genes" --objective cell bad.tok
	edited a.tok bad.tok "h['panels'] = ['00']"
	refused 1 "header: panel 0: expected 40 hex digits" --objective cell bad.tok
	edited a.tok bad.tok "h['panels'] = 'ff'"
	refused 1 "header: panels: expected a list of texts" --objective cell bad.tok
}

# --- training ---

@test "sctrain wced: all six losses of other cells are those of numpy on the saved model, and it learns" {
	sctrain eval -q -M model test.masked >eval.tsv
	scview -c cell,panel,input,input_value,target,value test.masked >masked.tsv
	ref eval model vocab.tsv masked.tsv eval.tsv "$(panels test.masked)"
	# those of the validation, the last of which is not always the best
	best=$(awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i } NR > 1 && $c["eval_loss"] != "NA" && (m == "" || $c["eval_loss"] < m) { m = $c["eval_loss"] } END { print m }' model/train.tsv)
	assert_equal "$(awk '$1 == "loss" { print $2 }' eval.tsv)" "$best"
	awk -F'\t' 'NR == 2 { first = $2 } END { exit !($2 < 0.8 * first) }' model/train.tsv
	# a loss of weight 0 is measured, and the loss of a step is the mean of the trained ones
	awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i } NR > 1 { d = $2 - ($c["loss.is_zero"] + $c["loss.value"]) / 2; if (d > 1e-6 || d < -1e-6 || $c["loss.value_other"] == "NA") exit 1 }' model/train.tsv
	# without panels all genes are measured
	maskgen -q --objective cell --rate 0.3 --unmeasured zero --batch 30 --seed 5 all.tok -o zero.masked
	sctrain eval -q -M model zero.masked >eval.tsv
	scview -c cell,step,input,input_value,target,value zero.masked | awk 'BEGIN { FS = OFS = "\t" } { $2 = "" } 1' >masked.tsv
	ref eval model vocab.tsv masked.tsv eval.tsv
	# rows 2 g and 2 g + 1 of the released name, and no head without a list in config.json
	$PYTHON - <<-'END'
		import json, struct
		raw = open("model/model.safetensors", "rb").read()
		t = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
		assert t["cls.predictions.predictions.decoder.field_decoders.expressions_wced.weight"]["shape"] == [2 * 158, 64]
		assert t["cls.predictions.predictions.transform.dense.weight"]["shape"] == [64, 64]
		c = json.load(open("model/config.json"))
		assert c["corrmask_heads"][0]["losses"]["is_zero"] == 1 and c["architectures"] == ["BertForWholeCell"], c
	END
}

@test "sctrain wced, value: classes are those of the cells, not the categories of the column" {
	mkdir -p classes && cd classes
	scsample -q --where cell_type=type1 --where cell_type=type2 -o two.tok ../train.tok
	scsample -q --where cell_type=type1 -o one.tok ../train.tok
	for objective in cell value; do
		maskgen -q --objective $objective --keep cell_type -o two.masked two.tok
		maskgen -q --objective $objective --keep cell_type -o one.masked one.tok
		[ $objective = cell ] && task=wced || task=value
		sctrain $task -q --config tiny --head cell_type:ce --force -o m two.masked
		assert_equal "$(grep -o '"type[0-9]"' m/config.json | sort -u | tr -d '\n')" '"type1""type2"'
		run -1 sctrain $task --config tiny --head cell_type:ce -o never one.masked
		names "'cell_type' 'type1'"
		assert_not_exists never
	done
}

@test "maskgen: an input has a gene, and at most --max-len tokens" {
	mkdir -p inputs && cd inputs
	rankenc -q -m ../vocab.tsv --cls 3 -o three.tok ../a.counts
	for objective in cell value; do
		for most in 3 4; do
			run -1 maskgen --objective $objective --max-len $most three.tok -o never
			names "4 special $most --max-len"
			assert_not_exists never
		done
		maskgen -q --objective $objective --max-len 5 -o five.masked three.tok
		assert_equal "$(scview -c input five.masked | awk 'NR > 1 { print NF }' | sort -u)" 5
	done
	# of a cell whose genes are all chosen one stays
	maskgen -q --objective cell --rate 1 -o all.masked three.tok
	assert_equal "$(scview -c input all.masked | awk 'NR > 1 { print NF }' | sort -u)" 5
	scview -c input,target all.masked | awk -F'\t' 'NR > 1 { split($1, t, " "); if ((" " $2 " ") !~ (" " t[4] " ")) exit 1 }'
	assert [ "$(scview -c input all.masked | cut -d' ' -f4 | sort -u | wc -l)" -gt 10 ]
	# a cell without tokens gets no zeros: it has no [CLS] to stand before them
	emptied ../a.tok few.tok
	maskgen -q --objective cell --zeros random --max-len 20 -o few.masked few.tok
	assert [ "$(scview -c token few.tok | grep -c '^$')" -gt 0 ]
	assert_equal "$(scview -c input few.masked | grep -c '^$')" "$(scview -c token few.tok | grep -c '^$')"
	assert_equal "$(scview -c input few.masked | tail -n +2 | grep . | cut -d' ' -f1 | sort -u)" 3
}

@test "scembed: a gene twice, or a special token between genes" {
	mkdir -p twice && cd twice
	edited ../b.tok twice.tok 't = at("token", 3); t[5] = t[9]'
	edited ../b.tok between.tok 't = at("token", 3); t[5] = 4'
	local what="position 9: gene "
	for f in twice between; do
		for how in scembed "scpredict expression"; do
			run -1 $how -M ../model -o never $f.tok
			assert_output --partial "$f.tok: cell 3, $what"
			assert_not_exists never
		done
		what="position 5: a special token (4) between genes"
	done
}

@test "maskgen --resume: a stream with means of numbers, after a stop" {
	mkdir -p numbers && cd numbers
	maskgen -q --objective cell --keep n_counts --epochs 2 --batch 30 -o all.masked ../train.tok
	sctrain wced -q --config tiny --head n_counts:mse -o whole all.masked
	head -c $(($(stat -c %s all.masked) / 2)) all.masked >cut.masked
	run -1 sctrain wced -q --config tiny --head n_counts:mse --save-every 2 -o m - <cut.masked
	assert_exist m/checkpoint-*/model.safetensors
	maskgen -q --objective cell --keep n_counts --epochs 2 --batch 30 --resume m -o rest.masked ../train.tok
	assert [ "$(scview -c step rest.masked | sed -n 2p)" -gt 1 ]
	sctrain wced -q --config tiny --head n_counts:mse --resume -o m rest.masked
	cmp m/model.safetensors whole/model.safetensors
}

@test "sctrain: a network without a value encoder warns that it does not read the values of its input" {
	local says="this network reads no values, so it sees only which genes a cell has"
	run sctrain wced --config tiny -o unread test.masked
	assert_success
	assert_line --partial "sctrain wced: warning: test.masked: $says, at positions that mean nothing (their order is random): expected a configuration with value_encoder, such as --config bmfm-tiny"
	maskgen -q --objective cell --batch 30 a.tok >ordered.masked
	run sctrain wced --config bmfm-tiny -o reads ordered.masked
	assert_success
	refute_output --partial "reads no values"
}

@test "sctrain eval: losses of whole cells in the order of train.tsv; other heads are named" {
	run --separate-stderr sctrain eval -M model test.masked
	assert_success
	assert_equal "$(cut -f1 <<<"$output" | tr '\n' ' ')" \
		"metric loss is_zero zero_accuracy mse is_zero_input mse_input is_zero_other mse_other masked tokens cells "
	refute_regex "$stderr" "not evaluated"
	maskgen -q --objective cell --count-kept --keep cell_type --batch 30 train.tok >kept.masked
	sctrain wced -q $TINY --head cell_type:ce -o two-heads kept.masked
	run sctrain eval -M two-heads test.masked
	assert_success
	assert_line --partial "note: head cell_type is not evaluated here"
	# with its column in the stream it is, and the rest is the same
	maskgen -q --objective cell --keep cell_type -o kept-test.masked train.tok
	maskgen -q --objective cell -o own-test.masked train.tok
	run --separate-stderr sctrain eval -M two-heads kept-test.masked
	assert_equal "$stderr" ""
	assert_equal "$(grep -v cell_type <<<"$output")" "$(sctrain eval -q -M two-heads own-test.masked)"
	assert_equal "$(grep cell_type <<<"$output" | cut -f1 | tr '\n' ' ')" "loss.cell_type accuracy.cell_type macro_f1.cell_type cells.cell_type "
	maskgen -q --strategy none --keep cell_type train.tok >plain.masked
	run -1 sctrain cells --init two-heads --config bmfm-tiny --label cell_type -o refused plain.masked
	names "maskgen --objective cell --strategy none rankenc --vocab-style bmfm"
}

@test "sctrain value: both losses at masked positions are those of numpy, and it learns" {
	sctrain eval -q -M values test.values >eval.tsv
	scview -c input,input_value,position,value test.values >masked.tsv
	ref expression values masked.tsv eval.tsv
	awk -F'\t' 'NR == 2 { first = $2 } END { exit !($2 < 0.8 * first) }' values/train.tsv
	# hidden genes are for sctrain mlm, or for both
	maskgen -q --objective value --field gene --batch 20 -o gene.masked train.tok
	maskgen -q --objective value --field both --batch 20 -o both.masked train.tok
	sctrain mlm -q $TINY -o gene gene.masked
	sctrain mlm -q $TINY -o both.mlm both.masked
	sctrain value -q $TINY -o both both.masked
	run -1 sctrain value $TINY -o never gene.masked
	assert_output --partial "no list 'value' next to the targets"
	run -1 sctrain mlm $TINY -o never train.values
	names "sctrain value"
}

@test "sctrain eval --gene-scores: errors of each gene are those of numpy and scikit-learn, for whole cells and for masked values" {
	$PYTHON -c 'import sklearn' || skip "no scikit-learn"
	sctrain eval -q -M model --gene-scores genes.tsv -o eval.tsv test.masked
	cmp eval.tsv <(sctrain eval -q -M model test.masked)
	scview -c cell,panel,input,input_value,target,value test.masked >masked.tsv
	ref eval model vocab.tsv masked.tsv eval.tsv "$(panels test.masked)" genes.tsv
	# the table does not depend on threads, nor on how many cells are computed at a time
	sctrain eval -q -@ 3 -M model --gene-scores threads.tsv -o /dev/null test.masked
	cmp genes.tsv threads.tsv
	sctrain eval -q -M values --gene-scores genes.tsv -o eval.tsv test.values
	scview -c input,input_value,position,value test.values >masked.tsv
	ref expression values masked.tsv eval.tsv vocab.tsv genes.tsv
	# one number for ranks as input: it has no logit, so nothing is gated
	rankenc -q --fit a.counts -o v1.tsv
	rankenc -q -m v1.tsv --ties group --value -o ranks.tok a.counts
	maskgen -q --objective value --batch 20 -o ranks.masked ranks.tok
	sctrain value -q $TINY -o ranks.model ranks.masked
	sctrain eval -q -M ranks.model --gene-scores genes.tsv --cell-scores cells.tsv -o eval.tsv ranks.masked
	sctrain eval -q -M ranks.model --gene-scores only.tsv ranks.masked
	cmp <(cut -f1-4 genes.tsv) <(cut -f1-4 only.tsv)
	awk -F'\t' 'NR > 1 && $3 { n += $3; if ($6 != "NA" || $11 != $12) exit 1 } END { print n }' genes.tsv >n
	assert_equal "$(cat n)" "$(awk '$1 == "masked" { print $2 }' eval.tsv)"
	# others do not predict expression
	maskgen -q --batch 20 -o tokens.masked ranks.tok
	sctrain mlm -q $TINY -o tokens.model tokens.masked
	run -2 sctrain eval -M tokens.model --gene-scores never tokens.masked
	names "--gene-scores: tokens.masked sctrain mlm wced value"
	assert_not_exist never
}

# bats test_tags=slow
@test "sctrain wced, value: threads, a resumed training and parts of a batch" {
	for task in wced:masked:model value:values:values; do
		IFS=: read -r name stream model <<<"$task"
		sctrain "$name" -q -@ 1 $TINY --eval "test.$stream" --save-every 13 -o one "train.$stream"
		same_training "$model" one
		head -c $(($(stat -c %s "train.$stream") / 2)) "train.$stream" >cut.masked
		run -1 sctrain "$name" -q $TINY --eval "test.$stream" --save-every 13 -o resumed - <cut.masked
		assert_exist resumed/checkpoint-*/model.safetensors
		sctrain "$name" -q $TINY --eval "test.$stream" --save-every 13 --resume -o resumed "train.$stream"
		same_training "$model" resumed
		sctrain "$name" -q $TINY --accum 3 -o parts "train.$stream"
		sctrain "$name" -q $TINY -o whole "train.$stream"
		join -j 1 <(cut -f1,2 parts/train.tsv | tail -n +2 | sort) <(cut -f1,2 whole/train.tsv | tail -n +2 | sort) |
			awk '{ d = $2 - $3; if (d > 1e-4 * $3 || d < -1e-4 * $3) bad = 1 } END { exit bad || NR < 40 }'
		rm -r one resumed parts whole
	done
}

@test "sctrain wced: two ranks are one with their batches" {
	command -v mpirun >/dev/null || skip "no mpirun on this machine"
	sctrain --version | grep -q 'without MPI' && skip "built without MPI"
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	mpirun --oversubscribe --bind-to none -n 2 bash -c "set -o pipefail; maskgen -q -u --objective cell --rate 0.3 --shard auto --epochs 2 --batch 10 --seed 4 train.tok | sctrain wced -q --mpi $TINY -o ranks.two"
	maskgen -q --objective cell --rate 0.3 --epochs 2 --batch 20 --seed 4 train.tok | sctrain wced -q $TINY -o ranks.one
	join -j 1 <(cut -f1,2,7-12 ranks.two/train.tsv | tail -n +2 | sort) <(cut -f1,2,7-12 ranks.one/train.tsv | tail -n +2 | sort) |
		awk '{ for (i = 2; i <= 8; i++) { d = $i - $(i + 7); if (d > 1e-4 * $i || d < -1e-4 * $i) bad = 1 } } END { exit bad || NR < 24 }'
}

@test "sctrain: streams and models of whole cells where others are expected, and bad cells" {
	refused() { # MESSAGE COMMAND...
		local message=$1
		shift
		rm -rf never
		run -1 "$@" -o never
		assert_output --partial "$message"
		assert_equal "$(grep -c . <<<"$output")" 1
		assert [ ! -e never/model.safetensors ]
	}
	bad() { # MESSAGE CODE
		edited train.masked bad.masked "$2"
		refused "$1" sctrain wced -q $TINY bad.masked
	}
	bad "is not a gene of the vocabulary, or out of order" "at('target', 2)[0] = 5"
	bad "has the value nan, expected a number from 0" "at('value', 2)[0] = numpy.nan"
	bad "has the value -1, expected a number from 0" "at('value', 2)[0] = -1"
	bad "input value nan, expected a number from 0, or of a special token" "at('input_value', 2)[4] = numpy.nan"
	bad "input value -0.5" "at('input_value', 2)[4] = -.5"
	bad "input value -39" "at('input_value', 2)[4] = -39"
	bad "was not measured" "h['panels'] = ['00' * 20] * 2"
	bad "panel 9, but the header has 2" "b['panel'][1] = 9"
	run -2 sctrain eval -M model --cell-scores rows.tsv test.masked
	names "--cell-scores loss wced"
	run -1 sctrain eval -M values test.masked
	run -1 sctrain eval -M model test.values
}

# bats test_tags=slow
@test "sctrain wced: a model of values and LLaMA-style layers learns, resumes, and gives its encoder to a model of labels" {
	sctrain wced -q -@ 2 --config bmfm-tiny --save-every 9 -o llama train.masked
	awk -F'\t' 'NR == 2 { first = $2 } END { exit !($2 < 0.9 * first) }' llama/train.tsv
	maskgen -q --objective cell --strategy none --keep cell_type --batch 20 train.tok -o labels.masked
	sctrain cells -q --label cell_type --init llama -o labels labels.masked
	scpredict cells -q -M labels a.tok -o a.pred
	scembed -q -M llama a.tok -o a.emb
	scembed -q -M llama --emb-layer 0 --pool token:0 a.tok -o said.emb
	cmp said.emb a.emb
	scembed -q -M llama --emb-layer -1 --pool mean a.tok -o mean.emb
	run -1 ctaprobe transfer -q --reference mean.emb -l cell_type a.emb -o none # neither says it of the other's layer
	assert_output --regexp "made by 'xxh3:[0-9a-f]+, layer 0, token:0', and those of mean.emb by 'xxh3:[0-9a-f]+, layer -1, mean'"
	# the order of the genes changes rounding alone
	for seed in 1 2; do sctrain eval -q -M llama <(maskgen -q --objective cell --strategy none --seed $seed all.tok) >order$seed.tsv; done
	paste order1.tsv order2.tsv | awk 'NR > 1 { d = $2 - $4; if (d > 1e-5 * $2 || d < -1e-5 * $2) exit 1 }'
}

@test "scpredict expression: values, probabilities and the gated prediction are those of numpy" {
	scpredict expression -q -M model a.tok | scview -c gene,value,expressed,gated >all.tsv
	scview -c token,count a.tok >tokens.tsv
	ref reconstruct model tokens.tsv all.tsv
	# threads
	cmp <(scpredict expression -q -M model -@ 2 a.tok | scview -c gene,value,expressed,gated) all.tsv
	run -1 scpredict expression -M values a.tok
	names "expression sctrain wced"
}

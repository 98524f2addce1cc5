#!/usr/bin/env bats
# A Geneformer as it lies on the hub: which model and vocabulary it is (scstream model), its table of old ids and symbols, and its tokens.
load helper

setup_file() {
	need_tool h5tok scembed scsim sctrain
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 60 --genes 40 --modules 4 --types 2 --depth 300 --seed 3 -o s.counts
	rankenc -q --fit --vocab-style v2 s.counts -o v.tsv
	rankenc -q -m v.tsv s.counts | maskgen -q --batch 20 - | sctrain mlm -q --config tiny -o trained
	mkdir -p hub/Geneformer-V2 hub/fine_tuned_models/mine hub/geneformer/gene_dictionaries_30m
	undigest trained/model.safetensors
	cp trained/config.json trained/model.safetensors hub/Geneformer-V2
	cp trained/config.json trained/model.safetensors hub/fine_tuned_models/mine
	dictionaries hub/geneformer gc104M v.tsv
	head -n 30 v.tsv > short.tsv
	dictionaries hub/geneformer/gene_dictionaries_30m gc30M short.tsv
}

setup() { cd "$BATS_FILE_TMPDIR"; }

scstream() { $PYTHON -B "$BATS_TEST_DIRNAME/../python/scstream" "$@"; }
# dictionaries FOLDER NAME VOCAB: Geneformer's four. The mapping has the ids, symbols, and old ids; some are of genes that the vocabulary lacks.
dictionaries() {
	scstream to-geneformer "$3" "$1/token_dictionary_$2.pkl" "$1/gene_median_dictionary_$2.pkl"
	$PYTHON - "$1" "$2" "$3" <<-'P'
		import pickle, sys
		rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[3])][1:]
		genes = [r[1] for r in rows if r[0].isdigit() and r[1][0] != "<"]
		mapping = {**{g: g for g in genes}, **{"OLD" + g: g for g in genes}, **{"NAME %d" % i: g for i, g in enumerate(genes)}, "GONE": "ENSG99999999999"}
		pickle.dump(mapping, open("%s/ensembl_mapping_dict_%s.pkl" % tuple(sys.argv[1:3]), "wb"))
		pickle.dump({r[2]: r[1] for r in rows if r[1] in genes}, open("%s/gene_name_id_dict_%s.pkl" % tuple(sys.argv[1:3]), "wb"))
	P
}
# value NAME FILE: what scstream model found
value() { awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$2"; }

@test "scstream model: dictionaries in the repository, above a fine-tuned model, in the folder, above it; a model of ours stays as it is" {
	cp -r hub/Geneformer-V2 alone
	mkdir -p parent
	cp -r hub/Geneformer-V2 parent/model
	cp hub/geneformer/*.pkl alone
	cp hub/geneformer/*.pkl parent
	ln -s hub/Geneformer-V2 link
	for m in hub/Geneformer-V2 hub/fine_tuned_models/mine alone parent/model link; do
		rm -rf made
		run -0 --separate-stderr scstream model $m made --found found.tsv
		assert_output made
		assert_equal "$(value kind found.tsv) $(value tokens found.tsv) $(value aliases found.tsv) $(value max_len found.tsv)" "Geneformer 44 80 2048"
		cmp <(cut -f 1,2,4 made/vocab.tsv) <(cut -f 1,2,4 v.tsv)
		assert_equal "$(awk -F '\t' 'NR == 6 { print $3, $5 }' made/vocab.tsv)" "$(awk -F '\t' 'NR == 6 { print $3 " OLD" $2 }' v.tsv)|NAME 0"
		cmp made/model.safetensors trained/model.safetensors
		[[ $stderr = *ensembl_mapping_dict_gc104M.pkl* && $stderr = *token_dictionary_gc104M.pkl* ]]
	done
	rm -rf made
	run -0 --separate-stderr scstream model hub/Geneformer-V2 ''
	assert_not_exist made
	run -0 --separate-stderr scstream model trained made --found found.tsv
	assert_output trained
	assert_not_exist made
	assert_equal "$(value kind found.tsv) $(value vocab found.tsv)" "corrmask trained/vocab.tsv"
	# a vocabulary alone: of a folder of dictionaries, of the repository's model, of a table
	run -0 --separate-stderr scstream model '' made --vocab hub/geneformer --found found.tsv
	assert_output made/vocab.tsv
	assert_equal "$(value tokens found.tsv)" 44
	run -0 --separate-stderr scstream model '' made --vocab hub/geneformer/gene_dictionaries_30m
	assert_equal "$(wc -l < made/vocab.tsv)" 30
	run -0 --separate-stderr scstream model '' made --vocab v.tsv
	assert_output v.tsv
	# tables in place of pickles, as a folder and by their names
	mkdir tables
	awk -F '\t' -v OFS='\t' 'NR == 1 { print "gene", "token"; next } { print $2, $1 }' v.tsv | gzip > tables/token_dictionary_x.tsv.gz
	awk -F '\t' -v OFS='\t' 'NR == 1 { print "gene", "median"; next } $4 != "NA" { print $2, $4 }' v.tsv | gzip > tables/gene_median_x.tsv.gz
	scstream model '' made --vocab tables/gene_median_x.tsv.gz --tokens tables/token_dictionary_x.tsv.gz
	mv made/vocab.tsv named.tsv
	scstream model '' made --vocab tables
	cmp named.tsv made/vocab.tsv
	cmp <(cut -f 1,2,4 named.tsv) <(cut -f 1,2,4 v.tsv)
	scstream model hub/Geneformer-V2 made --vocab tables
	cmp named.tsv made/vocab.tsv
	# no module but the standard library's
	run -0 python3 -I -S -B -c 'import sys; sys.path.insert(0, sys.argv[1]); from corrmask import model; model.main(["hub/Geneformer-V2", ""])' \
		"$BATS_TEST_DIRNAME/../python"
}

@test "scstream model: what is missing, does not fit or could be two things is one line that names what decides" {
	told() {
		run -1 scstream model "${@:2}"
		names "$1"
		assert_equal "${#lines[@]}" 1
		refute_output --partial "="
		# make's names
		run -1 scstream model --names INIT=,VOCAB=,TOKEN_TABLE= "${@:2}"
		words=${1//--vocab/VOCAB=}
		names "${words//--tokens/TOKEN_TABLE=}"
		refute_output --partial -- " --"
	}
	weights() { $PYTHON - "$@" <<-'P'
		import json, struct, sys
		out, cut, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		head = json.dumps({"bert.embeddings.word_embeddings.weight": {"dtype": "F32", "shape": [rows, 2], "data_offsets": [0, 8 * rows]}}).encode()
		open(out, "wb").write((struct.pack("<Q", len(head)) + head + bytes(8 * rows))[:-cut or None])
	P
	}
	told "Geneformer/nowhere huggingface.co/ctheodoris/Geneformer" Geneformer/nowhere made
	mkdir -p empty broken two pointer pickled lost other
	told "empty model.safetensors" empty made
	touch pickled/pytorch_model.bin
	told "pickled pytorch_model.bin transformers" pickled made
	cp hub/Geneformer-V2/model.safetensors broken
	told "broken config.json" broken made
	cp hub/Geneformer-V2/* lost
	mv lost/config.json .
	sed 's/"vocab_size":\s*44/"vocab_size": 43/' config.json > lost/config.json
	told "lost 43 44 model.safetensors config.json" lost made
	weights lost/model.safetensors 0 43
	told "lost token_dictionary --vocab --tokens" lost made
	told "lost 44 43 v.tsv" lost made --vocab v.tsv
	told "nothing.tsv no such file" hub/Geneformer-V2 made --vocab nothing.tsv
	# more rows than tokens, in the configuration or in the weights alone; weights cut short, or a part missing
	mkdir padded cut parts
	cp hub/geneformer/*gc104M.pkl padded
	for m in padded cut; do sed 's/"vocab_size":\s*44/"vocab_size": 64/' config.json > $m/config.json; done
	weights padded/model.safetensors 0 64
	told "padded 64 44 --vocab --tokens resize_token_embeddings(44)" padded made
	told "padded 64 44 --vocab" '' made --vocab padded
	cp config.json padded
	told "padded 64 44 model.safetensors" padded made
	for n in 1 500 700; do
		weights cut/model.safetensors $n 64
		told "cut/model.safetensors" cut made
	done
	: > cut/model.safetensors
	told "cut/model.safetensors" cut made
	cp config.json hub/geneformer/*gc104M.pkl parts
	weights parts/model-00001-of-00002.safetensors 0 44
	printf '{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}' > parts/model.safetensors.index.json
	told "parts model-00002-of-00002.safetensors" parts made
	told "hub/geneformer/gene_median_dictionary_gc104M.pkl --tokens" hub/Geneformer-V2 made --vocab hub/geneformer/gene_median_dictionary_gc104M.pkl
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' | tee pointer/model.safetensors > pointer.pkl
	cp config.json pointer
	told "pointer/model.safetensors git-lfs" pointer made
	cp config.json hub/Geneformer-V2/model.safetensors two
	cp hub/geneformer/*gc104M.pkl two
	awk -F '\t' -v OFS='\t' 'NR > 6 { $4 = sprintf("%.17g", 2 * $4) } 1' v.tsv > double.tsv
	dictionaries two gc95M double.tsv
	told "two token_dictionary_gc104M.pkl token_dictionary_gc95M.pkl --vocab --tokens" two made
	run -0 scstream model two made --vocab two/gene_median_dictionary_gc95M.pkl --tokens two/token_dictionary_gc95M.pkl
	cmp <(cut -f 4 made/vocab.tsv) <(cut -f 4 double.tsv)
	cp pointer.pkl two/token_dictionary_gc95M.pkl
	told "two/token_dictionary_gc95M.pkl git-lfs" two made
	cp config.json hub/Geneformer-V2/model.safetensors hub/geneformer/*gc104M.pkl other
	rm other/gene_median*
	told "other/token_dictionary_gc104M.pkl gene_median_dictionary_gc104M.pkl" other made
	cp hub/geneformer/gene_median*gc104M.pkl other
	save() { $PYTHON -c "import os, pickle; pickle.dump($1, open('other/ensembl_mapping_dict_gc104M.pkl', 'wb'))"; }
	save '{"A": "ENSG1"}'
	told "other/ensembl_mapping_dict_gc104M.pkl vocabulary" other made
	save "{'A|B': '$(awk -F '\t' 'NR == 9 { print $2 }' v.tsv)'}"
	told "other/ensembl_mapping_dict_gc104M.pkl A|B" other made
	$PYTHON -c '
import os, pickle
class E:
    def __reduce__(self):
        return os.system, ("touch ran",)
pickle.dump({"A": E()}, open("other/ensembl_mapping_dict_gc104M.pkl", "wb"))'
	told "other/ensembl_mapping_dict_gc104M.pkl system" other made
	assert_not_exist ran
}

@test "aliases: genes are found by them in any case and added up; they stay in streams and in models that are trained on these" {
	run -0 scstream from-geneformer hub/geneformer/token_dictionary_gc104M.pkl hub/geneformer/gene_median_dictionary_gc104M.pkl -o a.tsv
	names "80 ensembl_mapping_dict_gc104M.pkl"
	scstream from-geneformer hub/geneformer/token_dictionary_gc104M.pkl hub/geneformer/gene_median_dictionary_gc104M.pkl --mapping none -o without.tsv
	cmp <(cut -f 1-4 a.tsv) without.tsv
	# genes with old ids, symbols in lower case, and one gene twice
	scview -q -O h5ad s.counts -o s.h5ad
	$PYTHON -W ignore - <<-'P'
		import anndata, scipy.sparse as sp
		a = anndata.read_h5ad("s.h5ad")
		x = sp.csr_matrix(a.X)
		names = ["OLD" + g if i % 2 else "name %d" % i for i, g in enumerate(sorted(a.var_names))]
		new = anndata.AnnData(sp.hstack([x, 3 * x[:, :1]], format="csr"), obs=a.obs)
		of = dict(zip(sorted(a.var_names), names))
		new.var_names = [of[g] for g in a.var_names] + [a.var_names[0]]
		new.write_h5ad("old.h5ad")
		x = x.tolil()
		x[:, 0] = 4 * x[:, 0]
		b = anndata.AnnData(x.tocsr(), obs=a.obs, var=a.var)
		b.write_h5ad("want.h5ad")
	P
	run -0 h5tok -v --rank a.tsv old.h5ad -o old.tok
	h5tok -q --rank without.tsv want.h5ad -o want.tok
	cmp <(scview -c token old.tok) <(scview -c token want.tok)
	cmp <(h5tok -q -u old.h5ad | rankenc -q -m a.tsv | scview -c token -) <(scview -c token old.tok)
	run -1 h5tok -q --rank without.tsv old.h5ad -o no.tok
	without_medians() { cut -f 1-3,5 "$@"; } # scview writes them shorter
	cmp <(scview --vocab old.tok | without_medians) <(without_medians a.tsv)
	maskgen -q old.tok | sctrain mlm -q --config tiny -o new.model
	cmp new.model/vocab.tsv a.tsv
	scembed -q -M new.model old.tok | scview --vocab - | without_medians | cmp - <(without_medians a.tsv)
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON -c '
from corrmask import stream
s = stream.read("old.tok")
assert s.header["vocab"]["aliases"][4].endswith("NAME 0")
stream.write("again.tok", s.header, list(s))'
	cmp <(scview --vocab again.tok | without_medians) <(without_medians a.tsv)
	# what cannot be right
	awk -F '\t' -v OFS='\t' 'NR > 6 { $5 = "SAME" } 1' a.tsv > twice.tsv
	run -1 rankenc -m twice.tsv s.counts -o no.tok
	names "twice.tsv SAME"
	awk -F '\t' -v OFS='\t' 'NR == 8 { NF = 4 } 1' a.tsv > ragged.tsv
	run -1 rankenc -m ragged.tsv s.counts -o no.tok
	names "ragged.tsv line 8 5"
}

@test "a cut to MAXLEN is said: how many cells and which share of the tokens, by the tools, on the terminal and on the page; help has the values of the call" {
	scview -q -O h5ad s.counts -o cut.h5ad
	# <cls>, 28 genes and <eos> are left
	want=$(scview -c gene s.counts | awk 'NR > 1 { n++; all += NF + 2; if (NF > 28) { cut++; lost += NF - 28 } } END { printf "%d %d %.1f", cut, n, 100 * lost / all }')
	read -r cut cells percent <<< "$want"
	[ "$cut" -gt 5 ] && [ "$cut" -lt "$cells" ]
	run -0 rankenc -v --report report.tsv -m v.tsv --max-len 30 s.counts -o cut.tok
	names "$cut of $cells 30 $percent"
	assert_equal "$(value cells_cut report.tsv) $(value cut_to report.tsv)" "$cut 30"
	rankenc -q -m v.tsv s.counts -o uncut.tok
	run -0 scembed -v --max-len 30 -M trained uncut.tok -o cut.emb
	names "$cut of $cells 30 $percent"
	run -0 rankenc -v -m v.tsv s.counts -o uncut.tok
	refute_output --partial "left out"
	run -0 pipelines embed DATA=cut.h5ad MODEL=hub/Geneformer-V2 MAXLEN=30 THREADS=1
	names "$cut of $cells 30 MAXLEN $percent"
	names "Geneformer hub/Geneformer-V2 hub/geneformer/token_dictionary_gc104M.pkl 80 hub/geneformer/ensembl_mapping_dict_gc104M.pkl"
	refute_output --partial "warning"
	grep -qF "$cut of $cells cells are cut to 30 tokens" results/embed/latest/report.html
	for call in "embed MAXLEN=2048 MODEL=hub/Geneformer-V2" "embed MAXLEN=64" "genes-map MAXLEN=2048 MODEL=hub/Geneformer-V2" "finetune MAXLEN=256 DATA=cut.h5ad" \
		"finetune FT_LR=1e-3 INIT=hub/Geneformer-V2" "finetune MAXLEN=2048 DATA=cut.h5ad SCALE=paper" "embed MAXLEN=77 MODEL=hub/Geneformer-V2 MAXLEN=77"; do
		read -r goal line arguments <<< "$call"
		# shellcheck disable=SC2086 # words
		run -0 pipelines help OF=$goal $arguments
		assert_line --regexp "^    $line( |\$)"
	done
}

# bats test_tags=data
@test "tokens of V2 on five real files, every token of 300 cells, are those of Geneformer's rule: map ids and symbols, add up, rank" {
	need scrna geneformer
	$PYTHON "$BATS_TEST_DIRNAME/ref/hub.py" "$SHARED/geneformer" Geneformer Geneformer-V2-104M
	scstream model Geneformer/Geneformer-V2-104M gf
	D=Geneformer/geneformer
	for f in pbmc3k_10x pbmc4k_10x_soupx pbmc_kang2018_9015genes_labelled pbmc_facs_zheng2017 pbmc_hao2021_1000cells_unlabelled; do
		h5tok -q --rank gf/vocab.tsv "$SHARED/scrna/$f.h5ad" | scsample -q -n 300 | scview -c cell,token - |
			$PYTHON -W ignore "$BATS_TEST_DIRNAME/ref/tokens.py" "$SHARED/scrna/$f.h5ad" $D/token_dictionary_gc104M.pkl \
				$D/gene_median_dictionary_gc104M.pkl $D/ensembl_mapping_dict_gc104M.pkl v2 300 > said
		assert_regex "$(cat said)" '^cells 300 tokens [0-9]+ swaps 0$'
	done
}

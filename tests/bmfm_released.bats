#!/usr/bin/env bats
# Released models of BMFM-RNA: scstream from-bmfm of files with their names, shapes and configuration and random weights, against the forward pass of
# tests/ref/bmfm_released.py, which reads these files and not what was made of them; what is refused; make embed.
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 120 --genes 80 --types 3 --depth 300 --seed 4 -o sim.counts
	scview --vocab sim.counts | cut -f2 | sed 1d > genes.txt
	for kind in wced mlm; do
		reference make $kind $kind small genes.txt
		from_bmfm $kind/hub $kind.model --ontology $kind/some.obo
		rankenc -q -m $kind.model/vocab.tsv --cls "$([ $kind = wced ] && echo 5 || echo 1)" sim.counts | scsample -q -n 30 -o $kind.tok
		values $kind.tok > $kind.tsv
	done
}

setup() { cd "$BATS_FILE_TMPDIR"; }

reference() { $PYTHON "$BATS_TEST_DIRNAME/ref/bmfm_released.py" "$@"; }
from_bmfm() { $PYTHON -B "$BATS_TEST_DIRNAME/../python/scstream" from-bmfm "$@"; }

# bats test_tags=slow
@test "released BMFM: states, logits of every label and decoded expression are those of the released files in float64" {
	for kind in wced mlm; do
		scembed -q -M $kind.model --pool token:0 $kind.tok | scview -c cell,x - > x.tsv
		reference states $kind $kind $kind.tsv x.tsv 0
		for h in cell_type_ontology_term_id tissue tissue_general donor_id $([ $kind = wced ] && echo sex); do
			scpredict cells -q -M $kind.model --head $h $kind.tok | scview -c cell,logit - > h.tsv
			reference head $kind $kind $h $kind.tsv h.tsv
		done
	done
	scembed -q -M wced.model --pool token:1,2 wced.tok | scview -c cell,x - > x.tsv
	reference states wced wced wced.tsv x.tsv 1,2
	scembed -q -M mlm.model --pool pooler mlm.tok | scview -c cell,x - > x.tsv
	reference pooler mlm mlm.tsv x.tsv
	run -1 scembed -M wced.model --pool pooler wced.tok -o no.emb
	assert_output "scembed: --pool pooler: no head of the model in wced.model uses a pooler"
	scpredict expression -q -M wced.model wced.tok | scview -c gene,value,expressed,gated - > r.tsv
	reference reconstruct wced wced.tsv r.tsv
	maskgen -q --objective value --zeros batch --max-len 60 mlm.tok -o mlm.masked
	scview -c input,input_value,position,value mlm.masked > m.tsv
	sctrain eval -q -M mlm.model mlm.masked > e.tsv
	reference masked mlm m.tsv e.tsv
	run -0 scpredict cells -q -M wced.model --head cell_type_ontology_term_id --decode greedy --node CL:0000001 wced.tok -o p.scs
}

@test "released BMFM: a folder, the folder of a checkpoint and the checkpoint give the same model; sctrain --init reads it" {
	for kind in wced mlm; do
		for from in lightning lightning/biomed.rna.ckpt; do
			rm -rf again
			from_bmfm $kind/$from again --ontology $kind/some.obo
			diff -r $kind.model again
		done
	done
	maskgen -q --objective cell --strategy none --keep cell_type --batch 10 wced.tok | sctrain cells -q --init wced.model --label cell_type -o fine -
	grep -q '"cls_tokens":[[:space:]]*5' fine/config.json
	# without a label_dict the classes have numbers
	cp -r wced/hub bare
	rm bare/checkpoint_metadata.json
	run -0 from_bmfm bare bare.model
	assert_line "scstream: note: no label_dict for sex: its classes are called LABEL_0 to LABEL_1"
	cmp wced.model/model.safetensors bare.model/model.safetensors
	# without an ontology the classes are terms without names
	from_bmfm wced/hub plain.model
	predicted() { scpredict cells -q -M $1 --head cell_type_ontology_term_id wced.tok | scview -c logit,predicted,probability -; }
	diff <(predicted wced.model) <(predicted plain.model)
	run -1 scpredict cells -M plain.model --head cell_type_ontology_term_id --decode greedy wced.tok -o no.scs
	assert_output --partial "plain.model/ontology.obo"
	assert_equal "${#lines[@]}" 1
}

# bats test_tags=slow
@test "released BMFM: the released sizes, 12 layers of 384 and 19,321 tokens" {
	for kind in wced mlm; do
		run -0 reference make large.$kind $kind released genes.txt
		assert [ "$output" -gt "$([ $kind = wced ] && echo 43500000 || echo 28500000)" ]
		from_bmfm large.$kind/lightning large.$kind.model
		rankenc -q -m large.$kind.model/vocab.tsv --cls "$([ $kind = wced ] && echo 5 || echo 1)" sim.counts | scsample -q -n 5 -o few.tok
		values few.tok > few.tsv
		scembed -q -M large.$kind.model few.tok | scview -c cell,x - > x.tsv
		reference states large.$kind $kind few.tsv x.tsv 0
		scpredict cells -q -M large.$kind.model --head tissue few.tok | scview -c cell,logit - > h.tsv
		reference head large.$kind $kind tissue few.tsv h.tsv
		[ $kind = mlm ] || scpredict expression -q -M large.$kind.model few.tok | scview -c gene,value,expressed,gated - > r.tsv
		[ $kind = mlm ] || reference reconstruct large.$kind few.tsv r.tsv
		# the documented command, on a folder of the released name
		name=biomed.rna.llama.$([ $kind = wced ] && echo 47m.wced || echo 32m.mlm).multitask.v1
		rm -rf large.$kind.model $name
		mv large.$kind/lightning $name
		scsample -q -n 5 sim.counts -u | scview -q -O h5ad -o few.h5ad -
		pool=()
		[ $kind = mlm ] || pool=(POOL=token:1)
		run -0 pipelines embed DATA=few.h5ad MODEL=$name RESULTS=large THREADS=1 "${pool[@]}"
		values large/embed/latest/cells.tok > few.tsv
		scview -c cell,x large/embed/latest/embedding.emb > x.tsv
		reference states large.$kind $kind few.tsv x.tsv "$([ $kind = wced ] && echo 1 || echo 0)"
		rm -rf large $name large.$kind
	done
}

@test "released BMFM: a tensor that is missing, extra, doubled or of another shape is named" {
	cat > edit.py <<-'END'
	import json, shutil, sys
	shutil.copytree("wced/hub", "bad")
	f = open("wced/hub/model.safetensors", "rb")
	n = int.from_bytes(f.read(8), "little")
	h, data = json.loads(f.read(n)), f.read()
	exec(sys.argv[1])
	text = json.dumps(h).encode() if not sys.argv[2:] else json.dumps(h).replace(*sys.argv[2:]).encode()
	open("bad/model.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data)
	END
	bad() { # bad MESSAGE PYTHON [OLD NEW]
		rm -rf bad
		$PYTHON edit.py "${@:2}"
		run -1 from_bmfm bad no
		assert_output --partial "scstream: bad/model.safetensors: $1"
		assert_equal "${#lines[@]}" 1
		assert_not_exist no
	}
	label=cls.label_predictions.predictions.label_decoders
	bad "no tensor '$label.sex.decoder.bias' (expected shape [2])" "del h['model.$label.sex.decoder.bias']"
	bad "no tensor 'core.encoder.blocks.1.rms_1.scale' (expected shape [64])" "del h['model.core.encoder.blocks.1.rms_1.scale']"
	bad "tensor 'model.$label.age.decoder.bias' has no place in a model of this configuration" \
		"h['model.$label.age.decoder.bias'] = h['model.$label.sex.decoder.bias']"
	bad "tensor 'core.pooler.dense.bias' occurs twice, with and without 'model.'" "h['core.pooler.dense.bias'] = h['model.core.pooler.dense.bias']"
	bad "'model.core.pooler.dense.bias' occurs twice" "h['x'] = h['model.core.pooler.dense.bias']" '"x"' '"model.core.pooler.dense.bias"'
	bad "tensor 'model.$label.sex.decoder.bias' is F32 [2, 1], the configuration asks for numbers [2]" "h['model.$label.sex.decoder.bias']['shape'] = [2, 1]"
	bad "the bytes of tensor 'model.core.pooler.dense.bias' are not in the file" "h['model.core.pooler.dense.bias']['data_offsets'][1] = 1 << 60"
	bad "not a safetensors file" "h['model.core.pooler.dense.bias']['data_offsets'] = 'ab'"
	bad "the bytes of tensor" "data = data[:len(data) // 2]"
	bad "tensor 'core.pooler.dense.bias' has 252 bytes, expected 256" "h['model.core.pooler.dense.bias']['data_offsets'][1] -= 4"
	bad "tensor 'model.core.pooler.dense.bias' is I64 [64], the configuration asks for numbers [64]" "h['model.core.pooler.dense.bias']['dtype'] = 'I64'"
}

@test "released BMFM: a config of another version, another vocabulary, what is no checkpoint: one line that names it" {
	no() { # no MESSAGE SOURCE [OPTION...]
		run -1 from_bmfm "$2" no "${@:3}"
		assert_output --partial "scstream: $1"
		assert_equal "${#lines[@]}" 1
		assert_not_exist no
	}
	config() { # config PYTHON: change wced's config
		rm -rf other
		cp -r wced/hub other
		$PYTHON -c 'import json, sys; c = json.load(open("wced/hub/config.json")); f, l = c["fields"], c["label_columns"]; exec(sys.argv[1]); json.dump(c, open("other/config.json", "w"))' "$1"
	}
	config 'c["num_memory_tokens"] = 2'
	no "other/config.json: num_memory_tokens is 2: only 0 is supported" other
	config 'c["model_type"] = "scbert"'
	no 'other/config.json: model_type is "scbert": only "scllama" is supported' other
	config 'c["classifier_pooling"] = "mean"'
	no 'other/config.json: classifier_pooling is "mean": only "cls" is supported' other
	config 'c["position_embedding_type"] = "absolute"'
	no 'other/config.json: position_embedding_type is "absolute": only null is supported' other
	config 'f[1]["encoder_kwargs"]["n_cos_basis"] = 3'
	no "other/config.json: field expressions: encoder_kwargs: unknown key 'n_cos_basis': the version differs" other
	config 'f[0]["panel"] = 1'
	no "other/config.json: field genes: unknown key 'panel': the version differs" other
	config 'l[4]["is_ordered"] = True'
	no "other/config.json: label column sex: unknown key 'is_ordered': the version differs" other
	config 'f[1]["decode_modes"]["wced"]["logit_outputs"] = ["is_zero_bce", "mse"]'
	no "other/config.json: field expressions: decode_modes" other
	config 'l[4]["n_unique_values"] = 3'
	no "other/config.json: label column sex: sex has 3 classes, but label_dict does not have the numbers from 0 to 2, each once" other
	config 'c["num_attention_heads"] = "two"'
	no 'other/config.json: num_attention_heads is "two": expected a whole number from 0' other
	config 'del c["fields"]'
	no "other/config.json: fields are missing: expected genes, expressions" other
	config 'c["num_hidden_layers"] = 10**9'
	no "other/config.json: num_hidden_layers is 1000000000: expected at most 1000" other
	config 'f.append(f[1])'
	no "other/config.json: field expressions occurs twice" other
	config 'l.append(l[4])'
	no "other/config.json: label column sex occurs twice" other
	config 'c["gate"] = "new"'
	run -0 from_bmfm other noted
	assert_output "scstream: note: other/config.json: key gate is unknown and is left out"
	head -n 60 genes.txt > short.txt
	reference make short wced small short.txt
	no "short/hub/tokenizers/genes/tokenizer.json: 98 tokens, but wced/hub/config.json says vocab_size 118: the vocabulary is another one" wced/hub \
		--tokenizer short/hub/tokenizers/genes/tokenizer.json
	echo '{"model": {"vocab": {"<pad>": 0}}}' > t.json
	no "t.json: not a vocabulary of genes of BMFM-RNA: it begins with '<pad>', expected [UNK]" wced/hub --tokenizer t.json
	mkdir empty
	no "empty: no model in it: expected one .ckpt, or config.json and model.safetensors" empty
	echo x > x.ckpt
	no "x.ckpt: not a PyTorch checkpoint: File is not a zip file" x.ckpt
	head -c 5000 wced/lightning/biomed.rna.ckpt > cut.ckpt
	no "cut.ckpt: not a PyTorch checkpoint" cut.ckpt
	$PYTHON -c '
import os, pickle, zipfile
class Evil:
    def __reduce__(self):
        return os.system, ("touch ran",)
zipfile.ZipFile("evil.ckpt", "w").writestr("a/data.pkl", pickle.dumps({"state_dict": Evil()}))'
	no "evil.ckpt: no state_dict in it: expected a PyTorch Lightning checkpoint" evil.ckpt
	assert_not_exist ran
	# lists that are shared, or contain themselves; what is compressed; names that occur twice among very many
	$PYTHON - <<-'END'
		import os, pickle, struct, zipfile
		def save(name, config, how=zipfile.ZIP_STORED):
		    with zipfile.ZipFile(name, "w", how) as z: z.writestr("a/data.pkl", pickle.dumps({"state_dict": {}, "hyper_parameters": {"model_config": config}}, 2))
		x, y = [], []
		for _ in range(40): x = [x, x]
		y.append(y)
		save("shared.ckpt", {"x": x}); save("endless.ckpt", {"x": y}); save("zipped.ckpt", "\0" * 1000000, zipfile.ZIP_DEFLATED)
		os.mkdir("many")
		text = b"{" + b",".join(b'"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % (i % 99999) for i in range(100000)) + b"}"
		open("many/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text)
		open("many/config.json", "w").write("{}")
	END
	no() { run -1 timeout 60 "$PYTHON" "$BATS_TEST_DIRNAME/../python/scstream" from-bmfm "$2" new.model; assert_output --partial "$1"; assert_not_exist new.model; }
	no "shared.ckpt: " shared.ckpt
	no "endless.ckpt: " endless.ckpt
	no "zipped.ckpt: " zipped.ckpt
	no "'t0'" many
	run -1 from_bmfm wced/hub wced.model
	assert_output "scstream: wced.model: exists already"
	run -1 scembed -M wced/hub wced.tok -o no.emb
	assert_output 'scembed: wced/hub/config.json: model_type is "scllama": scstream from-bmfm makes a model of it'
}

@test "released BMFM: the number of CLS tokens is part of a model and compared; unknown keys of config.json are refused" {
	run -1 scembed -M wced.model mlm.tok -o no.emb
	assert_output "scembed: mlm.tok: tokens of rankenc --cls 1, but the model in wced.model reads those of --cls 5"
	rankenc -q -m wced.model/vocab.tsv --cls 2 sim.counts -o two.tok
	maskgen -q --objective cell --rate 0.2 --bernoulli --batch 30 two.tok -o two.masked
	sctrain wced -q -c bmfm-tiny two.masked -o two
	scembed -q -M two two.tok -o two.emb
	run -1 scembed -M two mlm.tok -o no.emb
	assert_output --partial "tokens of rankenc --cls 1, but the model in two reads those of --cls 2"
	run -1 sctrain wced -c bmfm-tiny --init wced.model two.masked -o no
	assert_output --partial "tokens of rankenc --cls 2, but the model in wced.model reads those of --cls 5"
	# a model of an earlier version does not say
	sed -i '/cls_tokens/d' two/config.json
	scembed -q -M two mlm.tok -o old.emb
	sed -i 's/"first_norm"/"num_memory_tokens": 2, "first_norm"/; s/"hidden_act"/"num_memory_tokens": 2, "hidden_act"/' two/config.json
	run -1 scembed -M two two.tok -o no.emb
	assert_output "scembed: two/config.json: unknown key 'num_memory_tokens'"
}

@test "released BMFM: scembed --max-len keeps the genes of the highest values, as shares of the whole cell" {
	scembed -q -M wced.model --max-len 20 --pool token:0,1 wced.tok | scview -c cell,x - > cut.x
	# the first 19 tokens of a cell and [SEP], with their values
	awk -F '\t' -v OFS='\t' 'NR == 1 { print; next } { n = split($2, t, " "); split($3, v, " "); a = b = ""
		for (i = 1; i <= n; i++) if (n <= 20 || i < 20 || i == n) { a = a (a ? " " : "") t[i]; b = b (b ? " " : "") v[i] }
		cut += n > 20; print $1, a, b } END { exit !cut }' wced.tsv > cut.tsv
	reference states wced wced cut.tsv cut.x 0,1
	awk -F '\t' 'NR > 1 { n = split($3, v, " "); for (i = 7; i < n; i++) if (v[i] + 0 > v[i - 1] + 0) exit 1 }' wced.tsv
	scpredict cells -q -M wced.model --head sex --max-len 20 wced.tok | scview -c cell,logit - > cut.h
	reference head wced wced sex cut.tsv cut.h
	run -2 scembed -M wced.model --max-len 2 wced.tok -o no.emb
}

@test "released BMFM: a deleted gene gives the embedding of the cell whose count of it is 0; other perturbations are refused" {
	rankenc -q -m wced.model/vocab.tsv --cls 5 sim.counts -o whole.tok
	gene=$(scview --vocab sim.counts | awk -F '\t' 'NR == 30 { print $2 }')
	scperturb apply -q --delete "$gene" whole.tok -o deleted.tok
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - "$gene" <<-'P'
		import sys
		import numpy as np
		from corrmask import stream
		s = stream.read("sim.counts")
		gene, blocks = s.header["vocab"]["id"].index(sys.argv[1]), []
		for b in s:
		    offset, genes = b["gene"]
		    keep = np.asarray(genes) != gene
		    at = np.concatenate([[0], np.cumsum(np.add.reduceat(keep, offset[:-1].astype(int)))]).astype("u8")
		    blocks.append({**{c["name"]: b[c["name"]] for c in s.header["columns"]}, "gene": (at, genes[keep]), "count": (at, np.asarray(b["count"][1])[keep])})
		stream.write("without.counts", s.header, blocks)
	P
	rankenc -q -m wced.model/vocab.tsv --cls 5 without.counts | scembed -q -M wced.model | scview -c cell,x - > want
	scembed -q -M wced.model deleted.tok | scview -c perturbation,cell,x - | awk -F '\t' -v OFS='\t' '$1 == "delete" { print $2, $3 }' > got
	[ "$(wc -l < got)" -gt 20 ]
	# a value is that of the same products, but in batches of other sizes, for which a processor may have other kernels
	awk -F '\t' 'NR == FNR { want[$1] = $2; next }
		{ n = split(want[$1], a, " "); if (split($2, b, " ") != n || !n) exit 1
		  for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d > 1e-5 || d < -1e-5) { print $1, a[i], b[i]; exit 1 } } }' want got
	run -1 scperturb apply --overexpress "$gene" whole.tok -o no.tok
	names "whole.tok deleted"
}

# bats test_tags=slow
@test "make perturb, make finetune: a released BMFM-RNA as it lies on the hub" {
	scview -q -O h5ad sim.counts -o sim.h5ad
	run -0 pipelines finetune DATA=sim.h5ad INIT=wced/hub FT_EPOCHS=1 MAXLEN=30 THREADS=1 RESULTS=tuned
	assert_line --regexp '^init +[01]\.[0-9]+'
	assert_line --partial "cells are cut to 30 tokens"
	scsim -q --cells 160 --genes 80 --types 2 --rarest .4 --depth 300 --seed 4 | scview -q -O h5ad -o two.h5ad -
	run -0 pipelines perturb DATA=two.h5ad STATE=cell_type FROM=type1 TO=type2 MODEL=wced/lightning SCALE=tiny GROUP=none THREADS=1 RESULTS=tuned
	assert_line "model: wced/lightning"
}

# bats test_tags=slow
@test "make embed: a released BMFM-RNA is converted and gets its CLS tokens" {
	scview -q -O h5ad sim.counts -o sim.h5ad
	rankenc -q -m wced.model/vocab.tsv --cls 5 sim.counts | scembed -q -M wced.model --pool token:1 | scview -c x - > want
	for from in hub lightning; do
		run -0 pipelines embed DATA=sim.h5ad MODEL=wced/$from POOL=token:1 RESULTS=$from THREADS=1
		cmp want <(scview -c x $from/embed/latest/embedding.emb)
		assert_exist $from/embed/latest/embedded.h5ad
	done
	rankenc -q -m wced.model/vocab.tsv --cls 5 sim.counts | scembed -q -M wced.model --max-len 20 | scview -c x - > want
	run -0 pipelines embed DATA=sim.h5ad MODEL=wced/hub MAXLEN=20 RESULTS=cut THREADS=1
	cmp want <(scview -c x cut/embed/latest/embedding.emb)
}

# make corpus: hundreds of files become one corpus: a stream of tokens a file, and a list of them that maskgen reads. No joined copy, no counts on disk.
#
#     make corpus DIR=atlas WHERE='is_primary_data=True; organism=Homo sapiens; tissue=lung'
#     make corpus FILES='plate1.h5ad plate2.h5ad' MEDIANS=medians.tsv
#     maskgen @results/corpus/latest/corpus.txt | sctrain mlm --config corrmask-paper - -o model
#
# DIR    folder of .h5ad files and .zarr stores, with its subfolders; names that begin with a dot are skipped
# FILES  the files, or @LIST: those that the file LIST names, one per line
# WHERE  conditions on the cells (scsample --where), with ; between; only columns of obs that all files have
# OBS    more columns of obs to keep, with commas between; default: those in WHERE
# HELD_OUT  obs column, such as donor: whole donors are held out, in a list of their own, held-out.txt, and the medians are those of the others (held-out.tsv names them)
# HELD_OUT_SHARE  share of the cells to hold out
# REFUSED  skip: leave out files that cannot be read, and copies of other files; stop: make no list if there are any, and end after the first pass
# MEDIANS  vocabulary, or Geneformer's table of medians; none: learned from all cells that WHERE keeps, in two to four passes over the files
# TOKEN_TABLE  Geneformer's table of tokens, if MEDIANS is its table
# GENE_NAMES  table of name and gene id, if the files and MEDIANS name genes differently
# MAXLEN  maximum number of tokens per cell; default here: that of rankenc
# H5TOK_ARGS  more options of h5tok, such as '--layer counts'
# RANK_ARGS  more options of rankenc, such as '--ties group'
# THREADS files are read side by side. A file that is done is not read again, unless it or a setting has changed, so an interrupted run goes on, and
# new files are added to the corpus. (New files change the medians, and with them all tokens, unless MEDIANS is given.) A hard or symbolic link to a file of the
# corpus is that file, once. corpus.tsv says of each file how many cells were read, kept and dropped, why it was refused, of which file it is a copy,
# and what the tools warned of; log/FILE.log has all messages. A tool, or the process in which it reads, that is killed is no reason to leave its file out.

DIR     ?=
FILES   ?=
WHERE   ?=
OBS     ?=
REFUSED ?= stop
H5TOK_ARGS ?=
HELD_OUT ?=
HELD_OUT_SHARE ?= 0.1
corpus_maxlen = $(if $(filter command environment,$(origin MAXLEN)),MAXLEN)
CORPUS_SETTINGS := DIR FILES WHERE OBS H5TOK_ARGS $(if $(value MEDIANS),MEDIANS) $(if $(value MEDIANS),TOKEN_TABLE GENE_NAMES) $(corpus_maxlen) RANK_ARGS \
	$(if $(value HELD_OUT),HELD_OUT HELD_OUT_SHARE SEED)
ifneq ($(filter corpus,$(MAKECMDGOALS)),)
$(if $(value DIR)$(value FILES),,$(error corpus: give DIR=FOLDER, a folder of .h5ad files or .zarr stores, or FILES='...'))
endif
$(eval $(call run_folder,CORPUS_RUN,corpus,$(CORPUS_SETTINGS)))

.PHONY: corpus
corpus: | $(CORPUS_RUN)/settings ## make one corpus from many files: tokens, and a list for maskgen (DIR= or FILES=, WHERE=)
	@$(job) BIN=$(abspath $(BIN)) $(PIPELINES)/corpus/corpus.sh $(CORPUS_RUN) --dir $(call text,DIR) --paths $(call text,FILES) --where $(call text,WHERE) \
		--obs $(call text,OBS) --refused $(call text,REFUSED) --medians $(call text,MEDIANS) --token-table $(call text,TOKEN_TABLE) \
		--map $(call text,GENE_NAMES) --max-len $(if $(corpus_maxlen),$(call text,MAXLEN),'') --h5tok-args $(reading_word) --rank-args $(call text,RANK_ARGS) \
		--held-out $(call text,HELD_OUT) --share $(call text,HELD_OUT_SHARE) --seed $(SEED) --threads $(THREADS)

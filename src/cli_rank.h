/*
 * From counts to a tokens stream, with the options and messages of rankenc: for rankenc itself and for h5tok --rank.
 *
 *     struct ranking *r = ranking_new(&cli, vocab);
 *     ranking_start(r, header, name, NULL, cells);
 *     for each block of counts
 *             ranking_add(r, &block);
 *     char *summary = ranking_commit(r);
 */
#pragma once

#include "cli_stream.h"

#include "base/option.h"
#include "encode/encoder.h"

/* Modes of rankenc and h5tok: these write tokens; rankenc --fit. */
enum { RANKS = 2, FITS = 4 };

/* The options of the encoding, for cli.shared, and what they set. */
extern struct option_def rank_options[];
extern struct rank_given {
	const char *tokens; /* -t, or NULL */
	struct encoder_options encode;
	double min_matched; /* percent; below 0: not given */
} rank_given;

struct ranking;

/* Load the vocabulary, -m of rankenc, or die. */
struct ranking *ranking_new(const struct cli *c, const char *vocab);

/* Look up the genes and create the output, for counts with this header, called `name` in messages. map: --map of rankenc, or NULL. Dies if
 * too few genes are in the vocabulary. */
void ranking_start(struct ranking *r, const struct header *counts, const char *name, const char *map, uint64_t cells);

/* Encode a block. Other threads work on it while the caller reads the next one, so it must stay as it is until the next call of ranking_add
 * or ranking_commit: the caller fills two blocks in turns. */
void ranking_add(struct ranking *r, const struct block *counts);

/* Finish the output, or die: if too few counts belong to genes of the vocabulary, or writing fails. Returns what there is to say of it, for
 * cli_report (malloced). */
char *ranking_commit(struct ranking *r);

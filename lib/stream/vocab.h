/*
 * Gene vocabulary: what token (or gene) number i means. Row i holds the gene id (Ensembl id, or the name of a special
 * token such as <pad>), the symbol ("" if unknown) and the non-zero median of the gene's normalised counts (NaN if unknown).
 * Special tokens come first. As a file it is one TSV, gzip accepted:
 *     token <TAB> gene_id <TAB> symbol <TAB> median [<TAB> aliases]      (median NA for special tokens)
 * Aliases are old ids, symbols and synonyms in upper case, with '|' between, by which the genes of a file are found too, as Geneformer finds them by
 * its table ensembl_mapping_dict. No two genes have the same one.
 */
#pragma once

#include "base/error.h"
#include "base/strmap.h"

#define VOCAB_MAX (1u << 24)

struct vocab {
	size_t n; /* rows, special tokens included */
	size_t nspecial; /* leading rows that are special tokens */
	char **id, **symbol; /* [n], owned */
	char **alias; /* [n], owned, "" for a gene without; NULL: no gene has any */
	double *median; /* [n] */
	size_t cap;
	uint32_t *sorted; /* [n] rows in order of id; NULL until vocab_index */
	struct strmap aliases; /* alias -> row; empty until vocab_index */
};

void vocab_release(struct vocab *v); /* accepts a zeroed struct */
void vocab_copy(struct vocab *to, const struct vocab *from); /* `to` zeroed or released before */

/* Append a row; symbol may be NULL. A row with an id <...> is special if all rows before it are special; in a vocabulary that begins with
 * [UNK], as those of BMFM do, a row with an id [...] too. */
void vocab_push(struct vocab *v, const char *id, const char *symbol, double median);
void vocab_alias(struct vocab *v, const char *alias); /* aliases of the last row, which has none yet */

/* The special tokens that programs look for: <pad>, <mask>, <cls> and <eos>, in BMFM's vocabularies [PAD], [MASK], [CLS] and [SEP]. */
enum token { TOKEN_PAD, TOKEN_MASK, TOKEN_CLS, TOKEN_EOS };
int64_t vocab_token(const struct vocab *v, enum token which); /* its row, -1: there is none; needs vocab_index */
const char *vocab_token_name(const struct vocab *v, enum token which); /* what it is, or would be, called there */

#define CLS_MAX 32 /* [CLS] and [CLS_0] .. [CLS_30] */
int vocab_is_bmfm(const struct vocab *v); /* does it begin with [UNK]? */
void vocab_push_bmfm(struct vocab *v); /* the 38 special tokens of BMFM, in the order of its released vocabulary */
/* Row of the k-th token for the whole cell, [CLS] if k is 0, [CLS_0] if it is 1; -1: there is none. */
int64_t vocab_cls(const struct vocab *v, unsigned k);

/* The first control character of s (below 0x20, or 0x7f), 0 if there is none. Ids and symbols have none: they are fields of tables. */
unsigned char vocab_control(const char *s);

/* Prepare vocab_find. -1 with e set when two rows share an id or an alias, or a name has a control character. `name` is the file, for the message. */
int vocab_index(struct vocab *v, const char *name, struct error *e);

/* Row of an id, or -1. Needs vocab_index after the last push. */
int64_t vocab_find(const struct vocab *v, const char *id);
/* Row of the gene that has this name [n], in upper case, among its aliases, or -1. Needs vocab_index too. */
int64_t vocab_find_alias(const struct vocab *v, const char *name, size_t n);

/* Read or write the TSV above. Load checks: token numbers run 0, 1, ...; ids unique and not empty; medians > 0 or NA.
 * `v` is zeroed or released before and holds nothing on failure. Load leaves it indexed. */
int vocab_load(struct vocab *v, const char *path, struct error *e);

/* Geneformer's two tables instead: tokens (token, id) gives names and numbers, medians (ensembl_id, nonzero_median) may name more
 * genes than there are tokens. Both TSV with a line of column names, gzip accepted; tokens in any order, without gaps. */
int vocab_load_geneformer(struct vocab *v, const char *tokens, const char *medians, struct error *e);

int vocab_save(const struct vocab *v, FILE *f); /* 0, or -1 on a write error */

/* XXH3-128 as 32 hex digits: over the ids (each with its NUL), and over the medians (little-endian doubles). */
void vocab_digest(const struct vocab *v, char hex[33]);
int vocab_equal(const struct vocab *a, const struct vocab *b); /* have they the same digest? */
void vocab_median_digest(const struct vocab *v, char hex[33]);

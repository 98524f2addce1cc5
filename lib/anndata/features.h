/*
 * Which rows of a file are genes? 10x files and AnnData can also have antibodies, CRISPR guides and control probes. A column of types says it:
 *     a type means genes          (Gene Expression, in any spelling; gex, rna, gene)   those rows alone are read
 *     none does                   types that are known to be none are left out (Antibody Capture, ...); other words, such as biotypes, are kept
 * Beside it, or without it, a column such as is_control, or a name such as NegControlProbe_00042, says that a row is a control.
 */
#pragma once

#include "base/texts.h"

struct features {
	size_t left_out;
	char *kinds; /* of what was left out: "30 Antibody Capture, 5 control (name)"; NULL: nothing */
	char *unknown; /* types that are no known word, and were kept; NULL: none */
};
void features_release(struct features *f); /* accepts a zeroed struct */

/* What to look at: each NULL or of n texts. */
struct feature_words {
	const struct texts *type;
	const struct texts *control; /* of a column of controls: true, yes or 1 */
	const struct texts *name[2]; /* ids and symbols */
};

/* Fill f, and *drop [n], malloced: != 0: no gene; NULL: all are genes. -1 with e set: none is left; where: of the message. */
int features_choose(struct features *f, uint8_t **drop, const struct feature_words *w, size_t n, const char *where, struct error *e);

/* Is this the name of a column of types, or of controls? */
int features_is_type(const char *column);
int features_is_control(const char *column);

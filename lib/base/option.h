/*
 * One table describes a tool's options; parsing, --help and provenance all come from it.
 * Numbers are strict: the whole argument, in range, or an error that says what was expected.
 */
#pragma once

#include "base/error.h"

/* Strings that name a file: OPT_INPUT is read (a file, a folder, or a word that stands for something else), OPT_OUTPUT a file that is written,
 * OPT_FOLDER a folder that is written. OPT_GROUP is no option: --help prints its name as a heading of those that follow. */
enum opt_kind { OPT_FLAG, OPT_INT, OPT_REAL, OPT_STRING, OPT_INPUT, OPT_OUTPUT, OPT_FOLDER, OPT_CHOICE, OPT_LIST, OPT_GROUP };

struct opt_values { /* OPT_LIST: an option that may be repeated; the values in order */
	size_t n;
	const char **item;
};

/* A row of a table gives the fields in this order, the last ones by name if at all:
 *     {'b', "batch", OPT_INT, &batch, "N", "number of cells per batch (default 12)", 1, 1e6, .changes = 1} */
struct option_def {
	char letter; /* short form, 0 for none */
	const char *name; /* long form, or the heading of a group; NULL ends the table */
	enum opt_kind kind;
	void *to; /* int (FLAG), long long (INT), double (REAL), const char * (STRING, INPUT, OUTPUT, FOLDER), int index (CHOICE),
				 * struct opt_values (LIST) */
	const char *arg; /* what --help calls the argument; CHOICE: NULL, see OPT_WORDS */
	const char *help; /* one line; begins lower case, ends without a full stop, names the default */
	double min, max; /* INT, REAL: inclusive range */
	int changes; /* it changes the output, so provenance records it (never a path) */
	const char *also; /* another long name that is accepted, NULL for none */
	/* What it goes together with. The mode of a tool is what it does: one bit, or several properties of what it does. */
	unsigned mode; /* this option chooses this mode; CHOICE: the first word does, and the others the bits above it */
	unsigned modes; /* it belongs to the modes that have one of these bits; 0: to all, or to the mode that it chooses */
	const char *needs; /* one of these is given: "fit", "number fraction", "zeros=random zeros=batch" (this word of a choice) */
	const char *excludes; /* none of these is */
	const void *words; /* OPT_WORDS */
	size_t nwords, word_size;
	int seen; /* out: given on the command line */
};

/*
 * In place of the argument of a CHOICE: an array that the code indexes by the same numbers. Its elements are words, or structs that begin with
 * one. NULL is no word.
 *     {0, "order", OPT_CHOICE, &order, OPT_WORDS(order_words), "order of the genes (default random)"}
 */
#define OPT_WORDS(array) .words = (array), .nwords = sizeof(array) / sizeof *(array), .word_size = sizeof *(array), .arg = NULL
/* The same, outside a function, for words that nothing but the table needs: OPT_ENUM([TSV] = "tsv", [NPY] = "npy"). */
#define OPT_ENUM(...) OPT_WORDS(((const char *const[]){__VA_ARGS__}))

/* Parse argv (argv[0] is skipped) by the tables (NULL-terminated list of tables). Operands are gathered at the front of argv from
 * index 1 on, *noperand of them; "--" ends the options. -1 with e set: "--rate: '2' is not a number from 0 to 1", and for a second value of
 * an option that is no list. A misspelled name or word of a choice gets the closest known one: "unknown option --epoch (did you mean
 * --epochs?)". */
int opt_parse(struct option_def *const *tables, int argc, char **argv, int *noperand, struct error *e);

/* Do the options that were given go together? -1 with e set: "--after needs --sums". usual: the mode if no option chooses one. */
int opt_check(struct option_def *const *tables, unsigned usual, struct error *e);

/* The same for a mode that the tool has found out. why: "in.graph is a graph already", "--strategy none masks nothing". */
int opt_check_mode(struct option_def *const *tables, unsigned mode, const char *why, struct error *e);

/* The help lines of the tables (malloced), two columns under headings. Options before the first heading are under "Options:". */
char *opt_help(struct option_def *const *tables);

/* The same for the completion of a shell (malloced): a line "--name", tab, argument, tab, help for each option. With usual (opt_check) also what
 * the manual says: letter, heading, "min max", needs, excludes, and "with" the terms that choose its modes, or "not" those that choose others. */
char *opt_words(struct option_def *const *tables, unsigned usual);

/* "--rate 0.15 --seed 1": the options marked `changes` that were given, in table order, values as parsed, with all their digits (malloced).
 * Digests of streams depend on this text; decimal_shorten makes one to read. */
char *opt_provenance(struct option_def *const *tables);

/* The value of an option that sets a string, NULL: none. */
const char *opt_text(const struct option_def *o);

/* Split "a,b,c" at commas: a malloced array of malloced strings, *n of them (0 for NULL or ""). */
char **opt_list(const char *s, size_t *n);

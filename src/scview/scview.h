/*
 * The parts of scview: scview.c (options, vocabulary, check), header.c, reference.c, table.c, stats.c, export.c (npy, h5ad), and text.c, which writes all
 * text.
 */
#pragma once

#include "cli_stream.h"

enum view_genes { NUMBER, ID, SYMBOL };

extern struct view {
	const char *columns; /* --columns, NULL: not given */
	long long limit; /* most rows, -1: all */
	int genes; /* enum view_genes: how rows of the vocabulary are shown */
	const char *output; /* -o, NULL: standard output */
	const char *into; /* --into: the file to add to, NULL: none */
	const char *key; /* --key, NULL: not given */
	int replace; /* --replace */
	const char *file; /* the operand, NULL: standard input */
	struct outfile out; /* the output */
} view_set;

/* Show a stream in one way, or die. */
void view_header(struct stream *in);
void view_header_tsv(struct stream *in); /* of a column: its type and shape, and how many categories it has */
void view_table(struct stream *in);
void view_statistics(struct stream *in);
void view_npy(struct stream *in);
void view_h5ad(struct stream *in);
void view_into(struct stream *in);

void view_reference(const char *path); /* a saved reference */

/* Write text to view_set.out, through a buffer. */
void text_open(void);
void text_put(const char *s, size_t n);
void text_puts(const char *s);
void text_putf(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* cut after 511 bytes */
void text_uint(uint64_t v);
void text_int(int64_t v);
void text_flush(void);
void text_commit(void);

/* Write a field of a table. Tabs and line breaks are written as \t \n \r, a backslash as \\. */
void text_field(const char *s, size_t n);

/* Write the shortest decimal that is read as the same double, or as the same float (single). NaN is NA. */
void text_real(double v, int single);

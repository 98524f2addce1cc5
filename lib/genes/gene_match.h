/* Which gene of one table each gene of another is (gene_join.h), and whether they share enough. */
#pragma once

#include "genes/gene_join.h"

struct gene_matched {
	size_t n; /* rows of `from` that are genes of `to` */
	size_t by_symbol; /* of those: by the symbol */
	size_t by_alias; /* rows of `from` whose name is an alias of `to` */
	size_t ambiguous; /* genes of `from` left out, as several genes have their name */
	size_t repeated; /* rows of `from` whose gene an earlier row is */
	size_t renamed; /* genes whose symbols differ, if nine of ten do */
	size_t shared, from, to; /* different genes: in both, in each */
	const char *from_like, *to_like; /* the first id of each, for messages. Borrowed */
};

/*
 * row [from->n] out: the gene of `to`, which is indexed, or GENE_NONE. With `ids` (or NULL), first by the id that this table gives it, if
 * `to` has that; then by an alias of `to` (stream/vocab.h). once: of several rows of `from` that are one gene only the first is it. The
 * names are for messages. -1 with e set, as gene_join_finish.
 */
struct gene_tables {
	const struct vocab *from, *to;
	const char *from_name, *to_name;
	const struct idmap *ids;
	int once;
};
int gene_match(uint32_t *row, const struct gene_tables *t, struct gene_matched *m, struct error *e);

/*
 * Do two tables of a and b genes share enough? Tables of two species share some by name (C3, F2), and files whose genes have one name share one.
 *     GENES_OTHER   fewer than one in 20 of the smaller table: they name other things
 *     GENES_FEW     fewer than one in four, or a handful of many: what is computed from them must be doubted
 */
enum gene_share { GENES_ENOUGH, GENES_FEW, GENES_OTHER };
enum gene_share gene_share(size_t shared, size_t a, size_t b);

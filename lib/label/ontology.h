/*
 * An ontology, such as the Cell Ontology: terms, which of them is a kind of which (is_a), and the names by which a label can mean a term.
 *
 * It is read from OBO 1.2 or 1.4 text, plain or gzip [OBO Flat File Format, https://owlcollab.github.io/oboformat/doc/obo-syntax.html]. Of a
 * [Term] the tags id, name, is_a, alt_id, synonym (EXACT ones), is_obsolete and replaced_by are used. Other tags and stanzas are passed over.
 * Obsolete terms are no terms here. If replaced_by leads from one, also through others, to a single term, its id means this term.
 *
 * An ontology is a graph without cycles: a term can have several parents, and there can be several terms without one.
 */
#pragma once

#include "base/error.h"

#define TERM_NONE UINT32_MAX

/* Lists of terms, one a term: those of term i are to[at[i]] .. to[at[i + 1]], ascending, each once. */
struct term_lists {
	uint32_t *at, *to;
};

struct ontology {
	size_t n; /* terms */
	char **id, **name; /* [n] ids ascending in byte order; a term without a name has its id */
	struct term_lists parent, child;
	uint32_t *order; /* [n] all terms, each behind its parents */
	char *source; /* "cl/cl-basic, cl/releases/2022-12-15/cl-basic.owl": what the file says that it is, or "" */

	/* private: what a label can be, sorted; a text with several terms has each of them */
	struct alias {
		char *text; /* its first byte is the kind */
		uint32_t term;
	} * alias;
	size_t naliases, alias_cap;
};

/* -1 with e set: not an OBO file, an id that occurs twice, a parent that is missing or obsolete, a cycle. */
int ontology_load(struct ontology *o, const char *path, struct error *e);
void ontology_release(struct ontology *o); /* accepts a zeroed struct */

/*
 * The term that a label of n bytes means, or TERM_NONE. It is the first of these that there is: an id, also of an older version (alt_id,
 * replaced_by); the name of a term; its exact synonym; the last two without regard to the case of ASCII letters. A text that would mean
 * several terms means none.
 */
uint32_t ontology_find(const struct ontology *o, const char *label, size_t n);

/*
 * Choose all terms that have an id or a name (also of an older version, a synonym, in another case) in common with a chosen one. So a label that
 * means a chosen term, or none because it could mean several, does so in an ontology of the chosen terms alone. chosen [n].
 */
void ontology_add_namesakes(const struct ontology *o, uint8_t *chosen);

/* The text of an OBO file with the chosen terms (malloced); chosen [n]. They keep the parents, ids of older versions and synonyms. */
char *ontology_print(const struct ontology *o, const uint8_t *chosen);

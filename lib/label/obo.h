/* The stanzas of an OBO file, as they stand there; ontology.h makes a graph of them. */
#pragma once

#include "base/error.h"

enum obo_tag { OBO_IS_A, OBO_ALT_ID, OBO_REPLACED_BY, OBO_SYNONYM };

struct obo {
	char *path;
	char *source; /* ontology and data-version of its first lines, or "" */
	size_t n, cap;
	struct obo_term {
		char *id, *name; /* name NULL: it has none */
		int obsolete;
		size_t line; /* of its stanza */
	} * term; /* [n] */
	size_t ntags, tag_cap;
	struct obo_line {
		enum obo_tag tag;
		uint32_t term;
		char *text; /* an id, or an exact synonym */
		size_t line;
	} * tag; /* [ntags] in the order of the file */
};

/* -1 with e set, which names the line; obo_release then too. Zero o before. */
int obo_read(struct obo *o, const char *path, struct error *e);
void obo_release(struct obo *o);

/*
 * Panels: which genes were measured. A gene that a cell's list lacks had no count, or was not in the file at all; the header key "panels" and
 * the cells' column `panel` (u32, its number in that list) tell which. A panel is a text of hex digits, two a byte: bit g % 8 of byte g / 8
 * says that row g of the vocabulary was measured.
 */
#pragma once

#include "stream/header.h"

#define PANEL_COLUMN "panel"

struct panels {
	size_t n; /* 0: the header has none, all genes are taken as measured */
	size_t words; /* of a panel */
	uint32_t *bits; /* [n, words] bit g % 32 of word g / 32; special tokens: 0 */
};

static inline size_t panel_words(size_t vocab)
{
	return (vocab + 31) / 32;
}

static inline int panel_has(const uint32_t *panel, uint32_t gene)
{
	return panel[gene / 32] >> gene % 32 & 1;
}

/* Those of a header. -1 with e set if they are not such texts; `name` is the stream, for messages. */
int panels_read(struct panels *p, const struct header *h, const char *name, struct error *e);
void panels_release(struct panels *p); /* accepts a zeroed struct */

/* The number of this panel [panel_words(h->vocab.n)] in the header, to which it is added if it is not there. */
uint32_t panels_add(struct header *h, const uint32_t *panel);
/* map[i]: number in `to`, to which missing ones are added, of panel i < *n of `from`, or of one panel of all genes if that has none (malloced). */
uint32_t *panels_join(struct header *to, const struct header *from, size_t *n);
/* h has another vocabulary now: gene g < genes of the panels p that h had is number[g] there, or left out (UINT32_MAX). Panels keep their numbers. */
void panels_renumber(struct header *h, const struct panels *p, size_t genes, const uint32_t *number);
int panels_there(const struct header *h); /* has the header the key? */
void panels_drop(struct header *h);

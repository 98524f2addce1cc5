/*
 * What a pass has counted, as a stream of kind "medians": one row a gene of the vocabulary, in its order. So the passes of medians.h can
 * read the parts of a corpus in different processes. The sums of the parts are added; the medians are the same as in one process.
 */
#pragma once

#include "encode/medians.h"
#include "stream/stream.h"

/* The columns and the vocabulary of h become those of the sums of these genes. pass: from 1. */
void medians_header(struct header *h, const struct vocab *genes, uint64_t pass, uint64_t cells);
int medians_write(const struct medians *m, struct stream *out, struct error *e);

/* Read the sums of a whole stream; m is zeroed or released before. -1 with e set. */
int medians_read(struct medians *m, struct stream *in, uint64_t *pass, uint64_t *cells, struct error *e);

/* Add the sums of another part of the corpus. Gene i of `from` is gene to[i] here; in later passes than the first one all genes
 * are the same (to NULL). -1 with e set, by the name of the part, when they are of another pass. */
int medians_merge(struct medians *m, const struct medians *from, const uint32_t *to, const char *name, struct error *e);

/* Are these the sums of all the cells of the passes before? medians_next relies on it. -1 with e set. */
int medians_check(const struct medians *m, const char *name, struct error *e);

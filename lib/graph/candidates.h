/*
 * The best partners of each gene, as a pass over all pairs finds them, in the memory of a few a gene. Of each pair bounds of its score are
 * offered; a pair is dropped only when it cannot be among the best of either gene. Who was offered when does not matter.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct candidates {
	uint32_t genes, most; /* wanted of each gene */
	struct candidate_list *list; /* [genes] */
};

struct gene_pair {
	uint32_t u, v; /* u < v */
};

/* least: pairs of a lower score are not wanted */
void candidates_init(struct candidates *c, uint32_t genes, uint32_t most, float least);
/* The pair (u, v) has a score from low to high. Any thread may call it. */
void candidates_offer(struct candidates *c, uint32_t u, uint32_t v, float low, float high);
/* The pairs that may be among the `most` best of one of their genes, in order of (u, v), malloced; *n of them. Ends c. */
struct gene_pair *candidates_pairs(struct candidates *c, size_t *n);

/* Of these n pairs with their scores: is it among the `most` best of one of its genes? Equal ones go by token [genes]. [n], malloced. */
uint8_t *candidates_best(const struct gene_pair *pair, const double *score, size_t n, const uint32_t *token, uint32_t genes, uint32_t most);

/*
 * Perturbed cells: what rank value encoding makes of a cell whose genes are taken away, or whose expression rises or falls
 * [Theodoris et al. 2023, Methods, in silico perturbation].
 *
 *     delete       the tokens of the set are removed, and later tokens move up.
 *     overexpress  the tokens of the set come first, in the order of the set, also those that the cell lacks. What no longer fits into
 *                  max_len tokens is lost at the end.
 *     activate     the genes of the cell are cut into four quarters by rank, and each token of the set moves up by one, to the
 *                  middle of the quarter or, above the first, to the front. inhibit: down, or to the end.
 *
 * Special tokens at the start and at the end of a cell keep their places. A cell has each of its genes once.
 *
 * A perturbed cell is compared with `base`: the cell itself, or, if genes that it lacked have pushed out others, the cell without these.
 * So the two hold the same genes but for the set.
 */
#pragma once

#include "base/error.h"
#include "base/rng.h"

enum perturb_kind { PERTURB_DELETE, PERTURB_OVEREXPRESS, PERTURB_ACTIVATE, PERTURB_INHIBIT, PERTURB_KINDS };
extern const char *const perturb_name[]; /* "delete" ... */

struct perturb {
	uint32_t *token, n; /* [n] the cell, a copy */
	uint32_t first, genes; /* its genes are token[first .. first + genes) */

	/* out, of perturb_make */
	uint32_t *out, nout; /* [nout] the perturbed cell */
	const uint32_t *base; /* [nbase] the cell to compare it with: token, or an own list */
	uint32_t nbase, lost; /* lost: genes of the cell that base lacks */

	/* private */
	size_t vocab, special, max_len;
	uint32_t *place; /* [vocab] rank of a gene in the cell, 0 the first; PERTURB_ABSENT */
	uint32_t *member, stamp; /* [vocab] stamp of the set that it was last in */
	uint32_t *cut; /* base, if it is not the cell */
	struct perturb_move *move;
	size_t token_cap, out_cap, cut_cap, move_cap;
};

#define PERTURB_ABSENT UINT32_MAX

/* For cells of a vocabulary with `special` special tokens, and a model that reads max_len tokens. */
void perturb_init(struct perturb *p, size_t vocab, size_t special, size_t max_len);

/* Take up a cell: fill p->token [n] through perturb_room, ids below vocab, then call perturb_cell. -1 with e set: it has more than max_len
 * tokens, a special token among its genes, or a gene twice. */
uint32_t *perturb_room(struct perturb *p, size_t n);
int perturb_cell(struct perturb *p, size_t n, struct error *e);

/* Rank of a gene in the cell, or PERTURB_ABSENT. */
static inline uint32_t perturb_place(const struct perturb *p, uint32_t gene)
{
	return p->place[gene];
}

/* Perturb the genes of a set [n], distinct, not special. Fills the fields marked "out".
 * Returns 0 and fills nothing if there is nothing to do: the cell has no gene of the set and the kind is not overexpress, or a set that is
 * overexpressed is longer than the cell may be. */
int perturb_make(struct perturb *p, enum perturb_kind kind, const uint32_t *set, size_t n);

/* Is the perturbed cell the cell itself? */
int perturb_same(const struct perturb *p);

/*
 * A random set to compare with: gene [n] out, distinct and none of them in the set. In place of a gene at rank r it has one of the ranks
 * r - w .. r + w, w = max(5, genes / 40), drawn uniformly; if all of these are taken, w doubles. In place of a gene that the cell lacks:
 * one of the vocabulary that it lacks. Returns 0 if less than twice as many genes as are replaced are there to choose from.
 */
int perturb_control(struct perturb *p, struct rng *r, const uint32_t *set, size_t n, uint32_t *gene);

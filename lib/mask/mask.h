/*
 * Which tokens of a cell are masked. L is the number of its tokens without the special ones, p the masking rate. The budget, and the
 * part of it that follows the graph, are
 *     B = floor(L p + 1e-9),  B_struct = floor(B lambda + 1e-9)
 *
 * random    B positions, drawn uniformly. bernoulli: each position is masked with probability p, independently of the others, and a
 *           random replacement can be a special token, as in Hugging Face's DataCollatorForLanguageModeling.
 * corrmask  CorrMask, Algorithm 2. The seeds are the tokens that have neighbours, in random order. Each seed is masked together with up
 *           to K_max of its neighbours in the cell, until B_struct positions are masked. A neighbour that is masked already counts as one
 *           of the K_max. The remaining part of B is uniform. Variants: the partners are the tokens of the seed's module, not its
 *           neighbours, and the seed itself can stay visible. [appendix B.2]
 * pmi       Whole spans are masked, in random order; a span that is longer than the remaining part of B_struct is skipped. The
 *           remaining part of B is uniform. A span is a run of tokens in which every adjacent pair is an edge of the PMI graph.
 *           [CorrMask, appendix A.2]
 * runs      Tokens of equal count that stand side by side in the order of their medians: a token is drawn uniformly among the visible
 *           ones and masked together with the visible ones after it, up to the end of its run of equal ties or of the budget. So the
 *           neighbours of a masked gene in the order of medians are masked, too.
 * probe     A measurement, not a training: how much does a model need the partners of a gene? One target per cell, see mask_probe.
 * columns   Of counts, not tokens: one set of genes is masked in all cells of a global batch (mask_columns). [Dong et al. 2025]
 *           With a graph, genes and their neighbours are masked together as in corrmask, until B_struct genes are.
 *
 * 80 % of the masked positions show <mask>, 10 % a random gene, and 10 % keep their token; in a probe all show <mask>. All draws are
 * Philox(seed, cell, epoch), so the masks of a cell depend on nothing else but the rate and lambda.
 */
#pragma once

#include "graph/graph.h"

#define MASK_ROW_MAX 65536 /* tokens a cell: positions are u16 */

enum mask_strategy { MASK_NONE, MASK_RANDOM, MASK_CORRMASK, MASK_PMI, MASK_COLUMNS, MASK_PROBE, MASK_RUNS };

struct mask_plan {
	enum mask_strategy strategy;
	int bernoulli; /* random only */
	int weighted; /* partners drawn in proportion to |weight|, not uniformly */
	int modular; /* corrmask: partners are the tokens of the seed's module, not its neighbours */
	double seed_stays; /* corrmask: probability that the seed itself stays visible */
	uint32_t partners; /* K_max */
	int hidden; /* probe: the partners are masked; else they stay visible, and unrelated tokens are masked */
	uint32_t seed;
	uint32_t vocab, nspecial; /* ids below nspecial are special */
	uint32_t mask_id;
	const uint32_t *column; /* columns: [ncolumn] the genes to mask, ascending; NULL: random ones */
	uint32_t ncolumn;
	const struct graph *graph; /* corrmask, pmi, probe, also columns; over the same vocabulary. NULL: mask_cell is given modules */
};

struct masker;
struct masker *masker_new(const struct mask_plan *plan); /* plan is copied, its graph borrowed */
void masker_free(struct masker *m); /* NULL is fine */

struct mask_tokens { /* a cell, borrowed */
	uint32_t n; /* <= MASK_ROW_MAX */
	const uint32_t *token;
	const int32_t *module; /* [n] module of each token, < 0: none; for a modular plan. NULL: the graph's */
	const uint16_t *tie; /* [n] equal for tokens of equal count; for runs, else NULL */
};

/*
 * Choose the masks of one cell of n tokens. Returns how many; position [n] out, ascending, and input [n] out: the input at each masked
 * position.
 * *structural (may be NULL): how many of the positions the graph chose.
 */
uint32_t mask_cell(struct masker *m, double rate, double lambda, uint64_t cell, uint32_t epoch, const struct mask_tokens *t,
	uint16_t *position, uint32_t *input, uint32_t *structural);

/*
 * Mask one cell for a probe of partner reliance: a target, and with it either all its neighbours in the cell (plan.hidden) or as many
 * unrelated tokens of the cell, drawn uniformly from those that are not neighbours of the target. The target is drawn uniformly from the
 * tokens that have a neighbour in the cell and at least as many unrelated tokens as neighbours. The draw of the target is the same with
 * and without plan.hidden, so that the losses of both can be compared target by target.
 * Returns how many positions are masked, at most n; position [n] out, ascending. *target: index in `position` of the one to predict.
 * 0: no token can be a target. n <= MASK_ROW_MAX; the plan has a graph.
 */
uint32_t mask_probe(
	struct masker *m, uint64_t cell, uint32_t epoch, const uint32_t *token, uint32_t n, uint16_t *position, uint32_t *target);

/*
 * Choose the genes that are masked in every cell of a global batch: round(rate G) of the G >= 2 genes that are not special, but at least
 * one, and not all. Without a graph all sets of this size are equally likely; the draw is Philox(seed, batch, epoch). gene [G] out, ascending.
 * lambda: the share that follows the graph. Returns how many.
 */
uint32_t mask_columns(const struct mask_plan *p, double rate, double lambda, uint64_t batch, uint32_t epoch, uint32_t *gene);

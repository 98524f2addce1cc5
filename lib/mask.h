/*
 * Which tokens of a cell are masked. L counts the maskable tokens (all but special ones), and the budget is
 *     B = floor(L p + 1e-9),  B_struct = floor(B lambda + 1e-9)
 *
 * random    B positions, uniform. bernoulli: each position by itself with probability p, as Hugging Face's
 *           DataCollatorForLanguageModeling, special tokens included among the random replacements.
 * corrmask  CorrMask, Algorithm 2: seeds in random order among the tokens that have neighbours; the seed, then up to K_max of its
 *           neighbours present in the cell (masked already or not), until B_struct positions are masked; the rest of B uniform.
 *           The partners can be the tokens of the seed's module instead, and the seed itself can stay visible. [appendix B.2]
 * pmi       whole spans, in random order, as long as they fit into B_struct; the rest of B uniform. A span is a run of tokens of which
 *           each stands in the (PMI) graph beside the next one. [CorrMask, appendix A.2]
 *
 * Of the masked positions 80 % show <mask>, 10 % a random gene, 10 % stay. All draws are Philox(seed, cell, epoch): the masks of a
 * cell depend on nothing else but the rate and lambda.
 */
#ifndef MASK_H
#define MASK_H

#include "graph.h"

#define MASK_ROW_MAX 65536      /* tokens a cell: positions are u16 */

enum mask_strategy { MASK_NONE, MASK_RANDOM, MASK_CORRMASK, MASK_PMI };

struct mask_plan {
	enum mask_strategy strategy;
	int bernoulli;                  /* random only */
	int weighted;                   /* partners drawn in proportion to |weight|, not uniformly */
	int modular;                    /* corrmask: partners are the tokens of the seed's module, not its neighbours */
	double seed_stays;              /* corrmask: probability that the seed itself stays visible */
	uint32_t partners;              /* K_max */
	uint32_t seed;
	uint32_t vocab, nspecial;       /* ids below nspecial are special */
	uint32_t mask_id;
	const struct graph *graph;      /* corrmask, pmi; over the same vocabulary. NULL: mask_cell is given modules */
};

struct masker;
struct masker *masker_new(const struct mask_plan *plan);        /* plan is copied, its graph borrowed */
void masker_free(struct masker *m);                             /* NULL is fine */

/*
 * Choose the masks of one cell of n <= MASK_ROW_MAX tokens. Returns how many; position [n] out, ascending, and input [n]
 * out: what each masked position shows. module [n] (NULL: the graph's): the module of each token, < 0 for none; for a modular plan.
 * *structural (may be NULL): how many of them the structural stage took.
 */
uint32_t mask_cell(struct masker *m, double rate, double lambda, uint64_t cell, uint32_t epoch, const uint32_t *token,
		   const int32_t *module, uint32_t n, uint16_t *position, uint32_t *input, uint32_t *structural);

#endif

/* The parts of depgraph. */
#pragma once

#include "cli.h"

#include "graph/graph.h"
#include "graph/within.h"

extern struct cli depgraph_cli;

struct within_options {
	const char *columns; /* of --within: the first names the donors */
	const char *states; /* column of the donors' states, or NULL */
	long long clusters, min_cells, candidates, halves, strongest;
};

/* Read cells of counts, and return their edges with all values of "score" in order of (u, v), malloced: *n of them. genes, cells: that count. */
struct edge *within_edges(struct stream *in, const struct within_options *o, uint32_t *genes, uint32_t *cells, size_t *n);
/* Instead: print how far the strongest edges of random halves of the donors are the same. */
void within_halves(struct stream *in, const struct within_options *o, FILE *f);
/* Or: print how the edges, or the strongest ones, differ between two states of the donors. */
void within_states(struct stream *in, const struct within_options *o, FILE *f);

enum { DONORS_STATE = 3 }; /* the least of a state */
struct donor_states {
	uint8_t *of; /* [donors] 0 or 1 */
	char *name[2];
};
void compare_states(const struct within *x, const struct gene_pair *pair, const struct within_score *score, size_t n,
	const struct donor_states *s, const struct vocab *v, FILE *f);

/* Print the edges that g and the graph of another file share: all, by module of g if it was read, and the strongest of both in equal number, which
 * g then keeps. v, name: of g's stream. */
void compare_graphs(struct graph *g, const struct vocab *v, const char *name, const char *path, FILE *f);

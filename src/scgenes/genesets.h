/* The data of scgenes genesets. */
#pragma once

#include "scgenes.h"
#include "base/tsv.h"
#include "eval/paired.h"
#include "graph/graph.h"
#include "label/gene_sets.h"

struct genesets {
	int ngraph;
	struct graph *graph; /* [ngraph] */
	char **name; /* [ngraph] */
	struct vocab vocab; /* of all graphs */
	struct gene_sets sets;
	size_t n; /* genes */
	int32_t *place; /* [vocab.n] their numbers, -1: another gene */
	uint64_t *pair; /* [pairs] of genes u < v that share a set: u << 32 | v, ascending */
	size_t pairs;
	uint8_t *together; /* [n, n] bits: do these two share a set? */
};

/* An edge between two of the genes. */
struct scored {
	float weight;
	uint32_t u, v;
	int shared; /* they share a set */
};

struct scores {
	double auroc, fold, shared; /* shared: edges within a set */
};

/* A test of a module and a set. */
struct rich {
	size_t module, set;
	uint64_t both;
	double p, q;
};

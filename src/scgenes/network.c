/* scgenes network: the genes that are nearest to each other in their embeddings (scembed --of genes), as the graph stream that depgraph writes. */
#include "scgenes.h"
#include "cli.h"

#include "base/option.h"
#include "base/sort.h"
#include "cli_embeddings.h"

#include "eval/neighbours.h"
#include "graph/graph.h"

static long long nearest = 10;

static struct option_def options[] = {
	{'k', "nearest", OPT_INT, &nearest, "K", "join each gene to the K nearest ones (default 10)", 1, 10000, .changes = 1},
	{0},
};
struct cli network_cli = {.name = "scgenes network",
	.operands = "[FILE]",
	.options = options,
	.common = CLI_STREAM_OUT | CLI_THREADS,
	.summary = "Join the genes with the nearest embeddings into a graph, as depgraph writes it."};

/* Cosines are of vectors of length 1. */
static void normalise(struct gene_vectors *g, const struct header *h, const char *name)
{
	for (size_t i = 0; i < g->n; i++) {
		float *x = g->x + i * g->d;
		double length = 0;
		for (size_t j = 0; j < g->d; j++)
			length += (double)x[j] * (double)x[j];
		if (!(length > 0))
			die("%s: the vector of gene %s is 0, so it has no cosine similarity", name, h->vocab.id[g->token[i]]);
		for (size_t j = 0; j < g->d; j++)
			x[j] = (float)((double)x[j] / sqrt(length));
	}
}

COMPARE(by_genes, struct edge, ORDER(a->u, b->u) ?: ORDER(a->v, b->v))

/* An edge for each gene and its k nearest; those that both ends have are there once. Unit vectors: cosine = 1 - distance^2 / 2. */
static struct edge *network_join(const struct gene_vectors *g, size_t *n)
{
	size_t k = (size_t)nearest, m = 0;
	FREED uint32_t *neighbour = xmalloc(g->n * k * sizeof *neighbour);
	FREED double *distance = xmalloc(g->n * k * sizeof *distance);
	struct edge *edge = xmalloc((g->n * k + 1) * sizeof *edge);
	nearest_neighbours(g->x, g->n, g->d, k, (int)network_cli.threads, neighbour, distance);
	for (size_t i = 0; i < g->n * k; i++) {
		size_t a = i / k, b = neighbour[i];
		uint64_t cells = g->cells[a] < g->cells[b] ? g->cells[a] : g->cells[b];
		float cosine = (float)fmax(-1, 1 - distance[i] * distance[i] / 2); /* rounding takes no pair beyond the ends of the range */
		edge[m++] = (struct edge){g->token[a] < g->token[b] ? g->token[a] : g->token[b],
			g->token[a] < g->token[b] ? g->token[b] : g->token[a], cosine, cells < UINT32_MAX ? (uint32_t)cells : UINT32_MAX};
	}
	qsort(edge, m, sizeof *edge, by_genes);
	*n = 0;
	for (size_t i = 0; i < m; i++)
		if (!*n || by_genes(&edge[*n - 1], &edge[i]))
			edge[(*n)++] = edge[i];
	return edge;
}

int scgenes_network(int argc, char **argv)
{
	static struct gene_vectors g;
	RELEASED(graph_release) struct graph graph;
	RELEASED(header_release) struct header h = {0};
	size_t edges;
	cli_init(&network_cli, argc, argv);
	cli_blas(&network_cli);
	RELEASED(stream_free_at) struct stream *in = cli_open(&network_cli, 0);
	gene_vectors_read(&g, in);
	normalise(&g, stream_header(in), stream_name(in));
	if ((uint64_t)nearest >= g.n)
		die("%s: --nearest %lld, but there are %zu genes", stream_name(in), nearest, g.n);
	FREED struct edge *edge = network_join(&g, &edges);
	graph_build(&graph, (uint32_t)stream_header(in)->vocab.n, edge, edges, 0);
	header_init(&h, STREAM_GRAPH);
	vocab_copy(&h.vocab, &stream_header(in)->vocab);
	cJSON_Delete(h.provenance);
	h.provenance = cJSON_Duplicate(stream_header(in)->provenance, 1);
	graph_columns(&h, &graph, &graph_weights[GRAPH_RHO], NULL, 0);
	cli_provenance(&network_cli, &h, "");
	struct stream *out = cli_create(&network_cli, &h, ROWS_UNKNOWN);
	must(graph_write(&graph, NULL, 0, out, &failure));
	must_commit(out);
	cli_measured_all({"genes", (double)g.n}, {"edges", (double)edges});
	cli_report(&network_cli, "%zu genes, %zu edges", g.n, edges);
	return 0;
}

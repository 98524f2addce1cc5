#include "graph/graph.h"

#include "base/digest.h"
#include "base/rng.h"
#include "base/sort.h"

const struct graph_weight graph_weights[] = {
	[GRAPH_RHO] = {"rho", "overlap", "expected a graph of depgraph without --pmi and --within", {{"pooled", 0}}},
	[GRAPH_SCORE] = {"score", "overlap", "expected a graph of depgraph --within",
		{{"r", 0}, {"donors", 1}, {"agree", 1}, {"se", 0}, {"q", 0}}},
	[GRAPH_NPMI] = {"npmi", "count", "pmi needs a graph of depgraph --pmi"},
};
EVERY_ROW(graph_weights, GRAPH_WEIGHTS);

void graph_release(struct graph *g)
{
	free_each((void *const *)g->value, GRAPH_VALUES);
	free_all(g->offset, g->neighbour, g->weight, g->overlap, g->module);
	*g = (struct graph){0};
}

void graph_build(struct graph *g, uint32_t n, const struct edge *edge, size_t m, int values)
{
	*g = (struct graph){.n = n,
		.offset = xcalloc((size_t)n + 2, sizeof *g->offset),
		.neighbour = xcalloc(2 * m, 4),
		.weight = xcalloc(2 * m, 4),
		.overlap = xcalloc(2 * m, 4)};
	for (int i = 0; i < values; i++)
		g->value[i] = xcalloc(2 * m, sizeof *g->value[i]);
	uint64_t *at = g->offset + 1; /* at[u]: next free index of row u; at the end the end of row u */
	for (size_t i = 0; i < m; i++) {
		at[edge[i].u + 1]++;
		at[edge[i].v + 1]++;
	}
	for (uint32_t u = 0; u < n; u++)
		at[u + 1] += at[u];
	/* row w gets its smaller neighbours (edges (u, w), in order of u) before its larger ones (edges (w, v)) */
	for (int larger = 0; larger < 2; larger++)
		for (size_t i = 0; i < m; i++) {
			uint64_t k = at[larger ? edge[i].u : edge[i].v]++;
			g->neighbour[k] = larger ? edge[i].v : edge[i].u;
			g->weight[k] = edge[i].weight;
			g->overlap[k] = edge[i].overlap;
			for (int j = 0; j < values; j++)
				g->value[j][k] = edge[i].value[j];
		}
}

COMPARE(by_genes, struct edge, ORDER(a->u, b->u) ?: ORDER(a->v, b->v))

/* The edges of g in order, as gene u becomes to[u] of n (NULL: none changes), malloced: *m of them with so many values. g is released. */
static struct edge *graph_edges(struct graph *g, const uint32_t *to, uint32_t n, size_t *m, int *values)
{
	struct edge *edge = xcalloc(g->offset[g->n] / 2 + 1, sizeof *edge);
	*m = 0;
	for (*values = 0; *values < GRAPH_VALUES && g->value[*values];)
		++*values;
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t k = g->offset[u]; k < g->offset[u + 1]; k++) {
			uint32_t v = g->neighbour[k], a = to ? to[u] : u, b = to ? to[v] : v;
			if (u > v || a >= n || b >= n)
				continue;
			edge[*m] = (struct edge){a < b ? a : b, a < b ? b : a, g->weight[k], g->overlap[k]};
			for (int j = 0; j < *values; j++)
				edge[*m].value[j] = g->value[j][k];
			++*m;
		}
	graph_release(g);
	return edge;
}

void graph_renumber(struct graph *g, const uint32_t *to, uint32_t n)
{
	size_t m;
	int values;
	FREED struct edge *edge = graph_edges(g, to, n, &m, &values);
	if (m)
		qsort(edge, m, sizeof *edge, by_genes);
	graph_build(g, n, edge, m, values);
}

COMPARE(by_strength, struct edge, ORDER(fabsf(b->weight), fabsf(a->weight)) ?: ORDER(a->u, b->u) ?: ORDER(a->v, b->v))

void graph_strongest(struct graph *g, size_t n)
{
	size_t m;
	int values;
	uint32_t genes = g->n;
	FREED struct edge *edge = graph_edges(g, NULL, genes, &m, &values);
	qsort(edge, m, sizeof *edge, by_strength);
	n = n < m ? n : m;
	qsort(edge, n, sizeof *edge, by_genes);
	graph_build(g, genes, edge, n, values);
}

void graph_shuffle(struct graph *g, uint32_t seed)
{
	struct rng r = rng_at(seed, RNG_EXCHANGE, 0, 0);
	uint32_t *linked = xcalloc(g->n, 4), *to = xcalloc(g->n, 4), n = 0;
	for (uint32_t u = 0; u < g->n; u++)
		if (g->offset[u + 1] > g->offset[u])
			linked[n++] = u;
	uint32_t *order = xcalloc(n, 4);
	rng_order(&r, order, n);
	for (uint32_t i = 0; i < n; i++)
		to[linked[i]] = linked[order[i]];
	graph_renumber(g, to, g->n);
	free_all(order, to, linked);
}

const struct graph_weight *graph_weight(const struct header *h)
{
	const struct graph_weight *w = &graph_weights[GRAPH_WEIGHTS - 1];
	while (w > graph_weights && header_find(h, w->name) < 0)
		w--;
	return w;
}

void graph_columns(struct header *h, const struct graph *g, const struct graph_weight *weight, char *const *name, size_t nmodule)
{
	header_add(h, "token", U32);
	header_add_ragged(h, "neighbour", id_type(h->vocab.n), "neighbour");
	header_add_ragged(h, weight->name, F32, "neighbour");
	header_add_ragged(h, weight->overlap, U32, "neighbour");
	for (int i = 0; i < GRAPH_VALUES && g->value[i]; i++)
		header_add_ragged(h, weight->value[i].name, F32, "neighbour");
	for (size_t i = 0; i < nmodule; i++)
		header_add(h, name[i], I32);
}

int graph_write(const struct graph *g, int32_t *const *module, size_t nmodule, struct stream *out, struct error *e)
{
	RELEASED(block_release) struct block b = {0};
	int bad = 0;
	block_reset(&b, stream_header(out));
	for (uint32_t u = 0; u < g->n && !bad; u++) {
		size_t had = b.rows ? block_items(&b, 0) : 0, m = g->offset[u + 1] - g->offset[u];
		block_set_rows(&b, b.rows + 1);
		block_set_items(&b, 0, had + m);
		((uint32_t *)b.col[0].data)[b.rows - 1] = u;
		for (size_t i = 0; i < m; i++)
			block_set_id(&b, 1, had + i, g->neighbour[g->offset[u] + i]);
		memcpy((float *)b.col[2].data + had, g->weight + g->offset[u], m * 4);
		memcpy((uint32_t *)b.col[3].data + had, g->overlap + g->offset[u], m * 4);
		size_t column = 4;
		for (int i = 0; i < GRAPH_VALUES && g->value[i]; i++)
			memcpy((float *)b.col[column++].data + had, g->value[i] + g->offset[u], m * 4);
		b.group[0].offset[b.rows] = had + m;
		for (size_t i = 0; i < nmodule; i++)
			((int32_t *)b.col[column + i].data)[b.rows - 1] = module[i][u];
		if (block_full(&b) || u + 1 == g->n) {
			bad = stream_write(out, &b, e);
			block_reset(&b, stream_header(out));
		}
	}
	return bad;
}

static int take_row(struct graph *g, uint32_t u, const uint32_t *v, size_t n, uint32_t nspecial, const char *name, struct error *e)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == u || v[i] < nspecial || (i && v[i] <= v[i - 1]))
			return error_set(e, "%s: token %u: neighbour %u is itself, a special token or out of order", name, u, v[i]);
	g->offset[u + 1] = g->offset[u] + n;
	return 0;
}

static int take_block(struct graph *g, const struct block *b, const int *col, struct stream *in, struct error *e)
{
	const struct header *h = stream_header(in);
	int group = h->col[col[1]].group;
	const uint64_t *o = b->group[group].offset;
	size_t had = g->offset[g->n], items = block_items(b, group);
	g->neighbour = xrealloc(g->neighbour, had + items + 1, sizeof *g->neighbour);
	g->weight = xrealloc(g->weight, had + items + 1, sizeof *g->weight);
	g->overlap = xrealloc(g->overlap, had + items + 1, sizeof *g->overlap);
	for (size_t i = 0; i < items; i++)
		g->neighbour[had + i] = block_id(b, col[1], i);
	memcpy(g->weight + had, b->col[col[2]].data, items * sizeof *g->weight);
	memcpy(g->overlap + had, b->col[col[3]].data, items * sizeof *g->overlap);
	int unknown = 0; /* may numbers be NaN? */
	for (int j = 0; j < GRAPH_VALUES && col[5 + j] >= 0; j++) {
		g->value[j] = xrealloc(g->value[j], had + items + 1, sizeof *g->value[j]);
		memcpy(g->value[j] + had, b->col[col[5 + j]].data, items * sizeof *g->value[j]);
		unknown = j > 0;
	}
	for (size_t i = 0; i < items; i++)
		if (!isfinite(g->weight[had + i]) || (g->value[0] && !unknown && !isfinite(g->value[0][had + i])))
			return error_set(e, "%s: a weight of neighbour %u is not finite", stream_name(in), g->neighbour[had + i]);
	for (size_t r = 0; r < b->rows; r++, g->n++) {
		if (g->n == h->vocab.n || ((const uint32_t *)b->col[col[0]].data)[r] != g->n)
			return error_set(e, "%s: row %u is not the vocabulary's next entry", stream_name(in), g->n);
		if (take_row(g, g->n, g->neighbour + had + o[r], o[r + 1] - o[r], (uint32_t)h->vocab.nspecial, stream_name(in), e))
			return -1;
		if (g->module)
			g->module[g->n] = ((const int32_t *)b->col[col[4]].data)[r];
	}
	return 0;
}

/* Is every edge in both rows, with the same numbers? graph_shuffle and igraph take it from one of them. */
static int check_both_rows(const struct graph *g, const char *name, struct error *e)
{
	for (uint32_t u = 0; u < g->n; u++)
		for (uint64_t k = g->offset[u]; k < g->offset[u + 1]; k++) {
			int64_t back = graph_find(g, g->neighbour[k], u);
			int same = back >= 0 && !memcmp(g->weight + k, g->weight + back, sizeof *g->weight) &&
				g->overlap[k] == g->overlap[back];
			for (int j = 0; same && j < GRAPH_VALUES && g->value[j]; j++)
				same = !memcmp(g->value[j] + k, g->value[j] + back, sizeof *g->value[j]);
			if (!same)
				return error_set(e, "%s: token %u has neighbour %u, but not the other way round with the same numbers",
					name, u, g->neighbour[k]);
		}
	return 0;
}

int graph_read(struct graph *g, struct stream *in, const struct graph_weight *weight, const char *module, struct error *e)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	int col[5 + GRAPH_VALUES] = {0};
	if (header_kind(h, STREAM_GRAPH, name, e) || (col[0] = header_need(h, "token", U32, SCALAR, name, e)) < 0 ||
		(col[1] = header_need(h, "neighbour", U32, RAGGED, name, e)) < 0 ||
		(col[2] = header_need(h, weight->name, F32, RAGGED, name, e)) < 0 ||
		(col[3] = header_need(h, weight->overlap, U32, RAGGED, name, e)) < 0 ||
		(module && (col[4] = header_need(h, module, I32, SCALAR, name, e)) < 0))
		return -1;
	if (h->col[col[1]].group != h->col[col[2]].group || h->col[col[1]].group != h->col[col[3]].group)
		return error_set(e, "%s: columns neighbour, %s and %s are not one list", name, weight->name, weight->overlap);
	for (int i = 0; i < GRAPH_VALUES; i++) {
		const char *value = weight->value[i].name;
		if ((col[5 + i] = value ? header_beside(h, value, F32, col[1], name, e) : -1) == -2)
			return -1;
	}
	*g = (struct graph){.offset = xcalloc(h->vocab.n + 1, sizeof *g->offset), .module = module ? xcalloc(h->vocab.n, 4) : NULL};
	struct block b = {0};
	int got;
	while ((got = stream_read(in, &b, e)) > 0 && (got = take_block(g, &b, col, in, e)) == 0)
		;
	block_release(&b);
	if (got == 0 && g->n != h->vocab.n)
		got = error_set(e, "%s: %u rows, but the vocabulary has %zu", name, g->n, h->vocab.n);
	if (got == 0)
		got = check_both_rows(g, name, e);
	if (got < 0)
		graph_release(g);
	return got < 0 ? -1 : 0;
}

void graph_digest(const struct graph *g, char hex[33])
{
	XXH3_state_t *s = xchecked(XXH3_createState());
	XXH3_128bits_reset(s);
	XXH3_128bits_update(s, g->offset, (g->n + 1) * sizeof *g->offset);
	XXH3_128bits_update(s, g->neighbour, g->offset[g->n] * sizeof *g->neighbour);
	XXH3_128bits_update(s, g->weight, g->offset[g->n] * sizeof *g->weight);
	if (g->module)
		XXH3_128bits_update(s, g->module, g->n * sizeof *g->module);
	XXH128_hash_t d = XXH3_128bits_digest(s);
	XXH3_freeState(s);
	digest_hex(d, hex);
}

int64_t graph_find(const struct graph *g, uint32_t u, uint32_t v)
{
	const uint32_t *row = g->neighbour + g->offset[u];
	size_t n = g->offset[u + 1] - g->offset[u], at = LEADING(n, i, row[i] < v);
	return at < n && row[at] == v ? (int64_t)(g->offset[u] + at) : -1;
}

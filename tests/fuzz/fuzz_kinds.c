/*
 * Streams as the tools use them, kind by kind: what a sound stream holds can still be wrong for its kind. The code behind the reader must
 * refuse it with a message or use it, and keep its own promises.
 *     all            conditions, labels and concatenation, for every column that can have them
 *     counts         encoding to tokens, medians, variable genes, packing, loading in batches with masked columns, .h5ad
 *     tokens         sampling, PMI edges, packing, loading in batches with masks of every strategy
 *     masked         packing; masked-counts too
 *     graph          reading, digest, exchange of the genes, statistics and modules
 *     embedding, prediction    .h5ad
 *     medians        reading, adding, the next pass
 */
#include "anndata/export.h"
#include "anndata/h5.h"
#include "encode/encoder.h"
#include "graph/graph_stats.h"
#include "cells/hvg.h"
#include "mask/masking.h"
#include "encode/medians_sums.h"
#include "graph/pmi.h"
#include "mutate_stream.h"
#include "stream/concat.h"
#include "label/label.h"
#include "cells/where.h"
#include "train/batch.h"

#include <math.h>

static const char *path;
static struct error e;

/* Call use(block, arg) for each block; whether the stream is whole. */
static int each_block(int (*use)(const struct block *b, void *arg), void *arg)
{
	struct block b = {0};
	struct stream *s = stream_open(path, &e);
	int got = -1;
	while (s && (got = stream_read(s, &b, &e)) > 0)
		if (use && use(&b, arg))
			break;
	block_release(&b);
	stream_free(s);
	return got == 0;
}

/* ---- any kind ---- */

struct common {
	struct concat join;
	struct labels *label;
	struct where *where;
	struct classes classes;
	struct block out;
};

static int use_common(const struct block *b, void *arg)
{
	struct common *c = arg;
	uint8_t *keep = xmalloc(b->rows + 1);
	for (size_t i = 0; i < b->header->ncol; i++) {
		memset(keep, 1, b->rows);
		if (c->where[i].n)
			where_rows(&c->where[i], b, keep);
		for (size_t r = 0; r < b->rows && c->label[i].classes; r++) {
			uint32_t k = labels_at(&c->label[i], b, r);
			assert(k < c->classes.n || k == MISSING_CODE);
		}
	}
	free(keep);
	if (c->join.n)
		for (size_t i = 0; i < 2; i++) {
			if (!concat_block(&c->join, i, b, &c->out, &e))
				assert(c->out.rows == b->rows);
		}
	return 0;
}

static void check_common(const struct header *h)
{
	struct common c = {.label = xcalloc(h->ncol, sizeof *c.label), .where = xcalloc(h->ncol, sizeof *c.where)};
	const char *const name[] = {"a", "b"};
	char *warning = NULL;
	for (size_t i = 0; i < h->ncol; i++) {
		char *condition = xasprintf("%s%s1", h->col[i].name, i % 2 ? "<" : "=");
		if (labels_init(&c.label[i], h, h->col[i].name, &c.classes, LABEL_WORDS_ASIDE, "fuzz", &e))
			c.label[i] = (struct labels){0};
		if (where_add(&c.where[i], condition, &e) || where_bind(&c.where[i], h, "fuzz", &e)) {
			where_release(&c.where[i]);
			c.where[i] = (struct where){0};
		}
		free(condition);
	}
	if (concat_init(&c.join, (const struct header *const[]){h, h}, name, 2, &warning, &e)) {
		concat_release(&c.join);
		c.join = (struct concat){0};
	}
	each_block(use_common, &c);
	for (size_t i = 0; i < h->ncol; i++) {
		labels_release(&c.label[i]);
		where_release(&c.where[i]);
	}
	concat_release(&c.join);
	classes_release(&c.classes);
	block_release(&c.out);
	free(c.label);
	free(c.where);
	free(warning);
}

/* ---- loading and masking ---- */

static void mask_all(const struct masking_columns *c, struct mask_plan *plan, int balance)
{
	struct header want = {0}, out = {0};
	struct stream *s = stream_open(path, &e);
	struct loader loader = {
		.in = s, .want = &want, .seed = 1, .epochs = 2, .batch = 3, .shards = 2, .shard = 1, .window = 2, .balance = NULL};
	struct panels panels = {0};
	struct input_plan input = {.cell = c->cell,
		.fields = c->fields,
		.hidden = 0.5,
		.zeros = balance ? ZEROS_BATCH : ZEROS_RANDOM,
		.max_len = 24,
		.panels = &panels};
	const int counted = masking_counted(stream_header(s), c);
	if (balance)
		loader.balance = c->counts ? "gene" : "token";
	int bad = counted && (panels_read(&panels, stream_header(s), "fuzz", &e));
	if (!bad && !masking_headers(&want, &out, stream_header(s), c, "fuzz", &e) && !loader_init(&loader, &e)) {
		struct masking m = {.plan = plan,
			.rate = {.kind = MASK_SCHEDULE_UNIFORM, .from = 0, .to = 1},
			.lambda = {.from = 0.5},
			.loader = &loader,
			.header = &out,
			.audit = plan->strategy == MASK_CORRMASK ? plan->graph : NULL,
			.plan_input = counted ? &input : NULL,
			.threads = 1};
		const struct masked_batch *b;
		int got;
		masking_init(&m);
		while ((got = masking_next(&m, &b, &e)) > 0)
			assert(b->masked <= b->tokens && b->block.rows <= 3);
		masking_release(&m);
	}
	panels_release(&panels);
	loader_release(&loader);
	header_release(&want);
	header_release(&out);
	stream_free(s);
}

/* A ring of the genes. */
static void make_ring(struct graph *g, const struct vocab *v)
{
	size_t n = v->n - v->nspecial, m = 0;
	struct edge *edge = xcalloc(v->n, sizeof *edge);
	for (size_t i = 0; i < n && n > 2; i++) {
		uint32_t a = (uint32_t)(v->nspecial + i), b = (uint32_t)(v->nspecial + (i + 1) % n);
		if (i + 1 == n) { /* the edge that closes it comes in order of its smaller end */
			memmove(edge + 2, edge + 1, (m - 1) * sizeof *edge);
			edge[1] = (struct edge){b, a, 0.5f, 1};
			m++;
		} else {
			edge[m++] = (struct edge){a, b, 0.5f, 1};
		}
	}
	graph_build(g, (uint32_t)v->n, edge, m, 0);
	free(edge);
}

/* ---- counts ---- */

struct counting {
	struct counts_columns col;
	struct medians medians;
	struct hvg hvg;
	struct encoder encoder;
	struct masked_columns packing;
	struct packed packed;
	struct block out;
	uint32_t *identity, *wide;
	size_t wide_cap;
	int packs, encodes;
};

static int use_medians(const struct block *b, void *arg)
{
	struct counting *c = arg;
	uint64_t sum;
	for (size_t r = 0; r < b->rows; r++)
		if (counts_wrong(&c->col, b, r, &sum))
			return 1;
	const uint32_t *gene = counts_genes(&c->col, b, 0, block_items(b, c->col.group), &c->wide, &c->wide_cap);
	medians_add(&c->medians, b->rows, b->group[c->col.group].offset, gene, b->col[c->col.count].data, b->col[c->col.total].data,
		c->identity, 1);
	return 0;
}

static int use_counts(const struct block *b, void *arg)
{
	struct counting *c = arg;
	if (c->packs)
		batch_counts(&c->packed, &c->packing, b, 0, b->rows, "fuzz", &e);
	if (c->encodes) {
		encoder_start(&c->encoder, b);
		if (encoder_finish(&c->encoder, &c->out, &e))
			c->encodes = 0;
	}
	const uint64_t *o = b->group[c->col.group].offset;
	const uint32_t *gene = counts_genes(&c->col, b, 0, block_items(b, c->col.group), &c->wide, &c->wide_cap);
	for (size_t r = 0; r < b->rows && block_items(b, c->col.group); r++) /* as scsample --hvg does */
		hvg_add(&c->hvg, 0, gene + o[r], (uint32_t *)b->col[c->col.count].data + o[r], o[r + 1] - o[r]);
	return 0;
}

static void check_counts(const struct header *h)
{
	struct counting c = {0};
	struct encoder_options o = {.style = STYLE_AUTO, .value = 1, .threads = 1};
	struct vocab v = {0};
	struct header tokens = {0};
	if (counts_find(&c.col, h, "fuzz", &e))
		return;
	c.packs = counts_columns(&c.packing, h, 1, "fuzz", &e) == 0;
	for (size_t i = 0; i < h->vocab.n; i++)
		vocab_push(&v, h->vocab.id[i], "", i < h->vocab.nspecial ? NAN : isnan(h->vocab.median[i]) ? 1 : h->vocab.median[i]);
	assert(vocab_index(&v, "fuzz", &e) == 0);
	c.encodes = encoder_init(&c.encoder, &o, &v, "fuzz", &e) == 0 && encoder_header(&c.encoder, &tokens, h, "fuzz", &v, &e) == 0;
	struct gene_matched matched = {0};
	c.encodes =
		c.encodes && encoder_match(&c.encoder, &(struct gene_tables){&h->vocab, &v, "fuzz", "fuzz", NULL, 0}, &matched, &e) == 0;
	if (c.encodes)
		block_reset(&c.out, &tokens);
	c.identity = xmalloc(h->vocab.n * sizeof *c.identity);
	for (size_t i = 0; i < h->vocab.n; i++)
		c.identity[i] = (uint32_t)i;
	medians_init(&c.medians, h->vocab.n);
	hvg_init(&c.hvg, HVG_SEURAT, h->vocab.n, 3);
	size_t bad;
	uint8_t *take = xcalloc(h->vocab.n, 1);
	int passes = 0;
	while (each_block(use_medians, &c) && medians_next(&c.medians))
		assert(++passes < 64);
	if (each_block(use_counts, &c)) {
		if (hvg_again(&c.hvg, &bad, &e) == 0)
			assert(hvg_choose(&c.hvg, take) <= 3);
	}
	free(take);
	struct mask_plan plan = {
		.strategy = MASK_COLUMNS, .seed = 1, .vocab = (uint32_t)h->vocab.n, .nspecial = (uint32_t)h->vocab.nspecial};
	if (h->vocab.n - h->vocab.nspecial >= 2)
		mask_all(&(struct masking_columns){.counts = 1}, &plan, 0);
	medians_release(&c.medians);
	hvg_release(&c.hvg);
	encoder_release(&c.encoder);
	header_release(&tokens);
	vocab_release(&v);
	block_release(&c.out);
	packed_release(&c.packed);
	free(c.identity);
	free(c.wide);
}

/* ---- tokens, masked ---- */

struct packing {
	struct masked_columns col;
	struct packed packed;
	struct corpus corpus;
	int cell, token;
};

static int use_tokens(const struct block *b, void *arg)
{
	struct packing *p = arg;
	if (batch_tokens(&p->packed, &p->col, b, 0, b->rows, 4, 1, 1, "fuzz", &e)) /* a gene twice, or a special token among genes */
		return -1;
	return corpus_add(&p->corpus, b, p->cell, p->token, &e);
}

static void check_tokens(const struct header *h, size_t size)
{
	struct packing p = {
		.corpus = {.seed = 1, .nspecial = (uint32_t)h->vocab.nspecial, .max_len = 8, .size = 3, .wide = h->vocab.n > 65535}};
	if (tokens_columns(&p.col, h, "fuzz", &e) || h->vocab.n == h->vocab.nspecial) /* depgraph and maskgen refuse both */
		return;
	p.cell = p.col.cell;
	p.token = p.col.input;
	size_t m;
	if (each_block(use_tokens, &p)) {
		corpus_sort(&p.corpus);
		free(pmi_edges(&p.corpus, (uint32_t)h->vocab.n, &(struct pmi_params){.tau = 0.1, .min_count = 1, .threads = 1}, &m));
	}
	corpus_release(&p.corpus);
	packed_release(&p.packed);
	struct graph ring;
	make_ring(&ring, &h->vocab);
	for (int k = 0; k < 2; k++) { /* two strategies an input */
		enum mask_strategy strategy =
			(enum mask_strategy[]){MASK_NONE, MASK_RANDOM, MASK_CORRMASK, MASK_PMI, MASK_PROBE}[(size + (size_t)k) % 5];
		struct mask_plan plan = {.strategy = strategy,
			.weighted = 1,
			.partners = 2,
			.hidden = 1,
			.seed = 1,
			.vocab = (uint32_t)h->vocab.n,
			.nspecial = (uint32_t)h->vocab.nspecial,
			.graph = strategy > MASK_RANDOM ? &ring : NULL};
		mask_all(&(struct masking_columns){.balance = k}, &plan, k);
		if (strategy != MASK_PROBE)
			mask_all(&(struct masking_columns){.balance = k, .cell = 1}, &plan, k);
		if (strategy != MASK_PROBE && strategy != MASK_NONE)
			mask_all(&(struct masking_columns){.balance = k, .value = 1, .fields = FIELD_VALUE | FIELD_GENE}, &plan, k);
	}
	graph_release(&ring);
}

static int use_masked(const struct block *b, void *arg)
{
	struct packing *p = arg;
	int counts = p->col.count >= 0;
	int bad = counts ? batch_counts(&p->packed, &p->col, b, 0, b->rows, "fuzz", &e)
			 : batch_masked(&p->packed, &p->col, b, 0, b->rows, 64, 0, 1, "fuzz", &e);
	const struct batch *x = &p->packed.b;
	const struct goal *g = &p->packed.masked;
	int cells = !counts && p->col.position < 0;
	for (size_t i = 0; !bad && cells && i < b->rows * b->header->vocab.n; i++)
		assert(isnan(g->value[i]) || (g->value[i] >= 0 && isfinite(g->value[i])));
	for (size_t i = 0; !bad && !counts && !cells && i < g->n; i++)
		assert(g->row[i] < x->offset[x->ncell] && g->target[i] < b->header->vocab.n);
	return bad;
}

static void check_masked(const struct header *h, int counts)
{
	struct packing p = {0};
	if (counts ? counts_columns(&p.col, h, 0, "fuzz", &e) : masked_columns(&p.col, h, "fuzz", &e)) {
		masked_columns_release(&p.col);
		return;
	}
	each_block(use_masked, &p);
	packed_release(&p.packed);
	masked_columns_release(&p.col);
}

/* ---- graph, .h5ad ---- */

static void check_graph(const struct header *h)
{
	struct graph g = {0};
	struct graph_stats stats;
	struct stream *s = stream_open(path, &e);
	char hex[33];
	if (graph_read(&g, s, graph_weight(h), NULL, &e) == 0) {
		assert(g.n == h->vocab.n);
		for (uint32_t u = 0; u < g.n; u++)
			for (uint64_t k = g.offset[u]; k < g.offset[u + 1]; k++)
				assert(g.neighbour[k] < g.n && graph_find(&g, g.neighbour[k], u) >= 0);
		graph_digest(&g, hex);
		uint64_t edges = g.offset[g.n];
		assert(graph_stats(&g, &stats, &e) || stats.edges * 2 == edges);
		int32_t *module = xcalloc(g.n + 1, sizeof *module);
		graph_modules(&g, 1, 1, module, &e);
		free(module);
		graph_shuffle(&g, 1);
		assert(g.offset[g.n] == edges);
		graph_release(&g);
	}
	stream_free(s);
}

/* Sums that are checked let every gene find its median, or another interval to look at. */
static void check_medians(void)
{
	struct medians m = {0}, again = {0};
	uint64_t pass, cells;
	struct stream *s = stream_open(path, &e), *t = stream_open(path, &e);
	int bad = !s || !t || medians_read(&m, s, &pass, &cells, &e) || medians_read(&again, t, &pass, &cells, &e);
	if (!bad && medians_check(&m, "once", &e) == 0 && medians_next(&m))
		for (size_t i = 0; i < m.ngene; i++)
			assert(m.gene[i].mode != MEDIANS_COARSE && m.gene[i].slot < m.ngene);
	medians_release(&m);
	stream_free(s);
	s = stream_open(path, &e);
	if (!bad && medians_read(&m, s, &pass, &cells, &e) == 0 && medians_merge(&m, &again, NULL, "twice", &e) == 0 &&
		medians_check(&m, "twice", &e) == 0)
		medians_next(&m);
	medians_release(&m);
	medians_release(&again);
	stream_free(s);
	stream_free(t);
}

static int use_export(const struct block *b, void *w)
{
	return h5ad_writer_add(w, b, b->rows, &e);
}

static void check_export(const struct header *h)
{
	char file[64];
	h5_setup();
	snprintf(file, sizeof file, "%s/fuzz_kinds.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	struct h5ad_writer *w = h5ad_writer_new(file, file, h, NULL, 0, "fuzz", &e);
	if (w && each_block(use_export, w))
		h5ad_writer_finish(w, &e);
	h5ad_writer_free(w);
	unlink(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	path = put_input(data, size);
	struct header h = {0};
	struct stream *s = stream_open(path, &e);
	if (!s)
		return 0;
	header_copy(&h, stream_header(s));
	stream_free(s);
	if (each_block(NULL, NULL)) {
		check_common(&h);
		if (h.kind == STREAM_COUNTS)
			check_counts(&h);
		else if (h.kind == STREAM_TOKENS)
			check_tokens(&h, size);
		else if (h.kind == STREAM_MASKED || h.kind == STREAM_MASKED_COUNTS)
			check_masked(&h, h.kind == STREAM_MASKED_COUNTS);
		else if (h.kind == STREAM_GRAPH)
			check_graph(&h);
		else if (h.kind == STREAM_MEDIANS)
			check_medians();
		if (size % 8 == 0) /* HDF5 is slow */
			check_export(&h);
	}
	header_release(&h);
	return 0;
}

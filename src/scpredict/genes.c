/* scpredict genes: logits of tokens by a fine-tuned head [transformers BertForTokenClassification]: of held-out genes, or of all if none is known. */
#include "scpredict.h"
#include "cli.h"

#include "label/gene_labels.h"

#include <unistd.h>

struct cli genes_cli = {.name = "scpredict genes",
	.operands = "[FILE...]",
	.summary = "Classes of the genes of each cell, by a fine-tuned head.",
	.options = head_options,
	.shared = inference_options,
	.common = CLI_STREAM_OUT | CLI_DEVICE | CLI_THREADS};

struct genes {
	struct chosen chosen;
	struct gene_labels known; /* label NULL: the model has no genes.tsv */
	int all; /* predict all tokens: no gene is known to be held out */
	int token, label, logit; /* columns, -1: none; logit is the first of several */
	float *h; /* [tokens of the batch, labels] */
	size_t h_cap;
	uint64_t predicted;
};

static int predict_genes_fit(const struct head_spec *s)
{
	return s->kind->rows == ROWS_TOKEN && s->kind->target == TARGET_CLASS;
}

/* The genes of genes.tsv, and which were held out. */
static void read_genes(struct genes *g, const struct header *h)
{
	const struct head_spec *s = chosen(&g->chosen);
	FREED char *genes = xasprintf("%s/genes.tsv", asked.model);
	if (access(genes, F_OK) == 0)
		must(gene_labels_read(&g->known, genes, &h->vocab, s->label, s->nlabel, &failure));
	g->all = !g->known.test;
	if (g->all)
		info("no gene is known to be held out (%s): all are predicted", genes);
}

static void predict_genes_make_header(const struct inference *r, struct header *h)
{
	static const char *const made[] = {"token", "label", NULL};
	struct genes *g = r->of;
	const struct head_spec *s = chosen(&g->chosen);
	prediction_header(h, r, made);
	cJSON_AddItemToObject(h->extra, "labels", cJSON_CreateStringArray((const char *const *)s->label, (int)s->nlabel));
	if (h->ncol + s->nlabel + 3 > COLUMNS_MAX)
		die("the model has %u classes: too many for one column each", s->nlabel);
	g->token = header_add_ragged(h, "token", id_type(h->vocab.n), "token");
	g->label = !g->all ? header_add_ragged(h, "label", I32, "token") : -1;
	for (size_t k = 0; k < s->nlabel; k++) {
		char *column = xasprintf("logit.%s", s->label[k]);
		prediction_free_name(h, column, r->name);
		int at = header_add_ragged(h, column, F32, "token");
		g->logit = k ? g->logit : at;
		free(column);
	}
}

static int predict_genes_wanted(const struct genes *g, const struct vocab *v, uint32_t id)
{
	return g->all ? id >= v->nspecial : g->known.held_out[id];
}

/* Remove cells without a token to predict from the batch. *n cells remain; keep[i] is the new index of cell i. */
static size_t drop_cells(struct inference *r, size_t n)
{
	const struct vocab *v = &r->out.header->vocab;
	uint32_t *offset = r->packed.offset, *id = r->packed.id, at = 0;
	size_t kept = 0;
	for (size_t i = 0, from = 0, to; i < n; i++, from = to) {
		to = offset[i + 1];
		size_t t = from;
		while (t < to && !predict_genes_wanted(r->of, v, id[t]))
			t++;
		if (t == to)
			continue;
		memmove(id + at, id + from, (to - from) * sizeof *id);
		at += (uint32_t)(to - from);
		r->row[kept] = (uint32_t)i;
		offset[++kept] = at;
	}
	r->packed.b.ncell = kept;
	return kept;
}

static void predict_genes_rows(struct inference *r, size_t first, size_t n)
{
	struct genes *g = r->of;
	const struct vocab *v = &r->out.header->vocab;
	const struct batch *p = &r->packed.b;
	size_t K = chosen(&g->chosen)->nlabel, kept = drop_cells(r, n), T = p->offset[kept];
	grow(g->h, g->h_cap, T * K);
	if (T)
		must(model_logits(r->model, p, g->chosen.head, g->h, &failure));
	struct block *b = &r->out;
	int list = b->header->col[g->token].group;
	uint64_t *offset = b->group[list].offset, at = offset[first];
	block_set_items(b, list, at + T);
	for (size_t i = 0, c = 0; i < n; i++) {
		int has = c < kept && r->row[c] == i;
		for (size_t t = has ? p->offset[c] : 0; has && t < p->offset[c + 1]; t++) {
			uint32_t id = p->id[t];
			if (!predict_genes_wanted(g, v, id))
				continue;
			block_set_id(b, g->token, at, id);
			if (g->label >= 0)
				((int32_t *)b->col[g->label].data)[at] = g->known.label[id];
			for (size_t k = 0; k < K; k++)
				((float *)b->col[(size_t)g->logit + k].data)[at] = g->h[t * K + k];
			at++;
		}
		c += (size_t)has;
		r->empty += !has;
		offset[first + i + 1] = at;
	}
	g->predicted += at - offset[first];
}

static void report(const struct inference *r)
{
	const struct genes *g = r->of;
	unsigned long long cells = r->cells, tokens = r->tokens, predicted = g->predicted, empty = r->empty;
	if (!predicted)
		warn("no cell has a token of the %zu held-out genes of the vocabulary", g->known.test);
	cli_measured_all({"cells", (double)cells}, {"tokens", (double)tokens}, {"tokens_predicted", (double)predicted},
		{"cells_without_tokens", (double)empty});
	cli_report(r->cli, "%llu cells, %llu tokens, %llu of them predicted, %llu cells without any", cells, tokens, predicted, empty);
}

int scpredict_genes(int argc, char **argv)
{
	static struct genes g;
	static struct inference r = {.of = &g};
	struct header h = {0};
	cli_init(&genes_cli, argc, argv);
	inference_open(&r, &genes_cli, INFERENCE_TOKENS);
	choose_head(&g.chosen, head, predict_genes_fit, "classes of genes", "genes");
	read_genes(&g, stream_header(r.in));
	inference_load(&r, &g.chosen.heads);
	predict_genes_make_header(&r, &h);
	inference_run(&r, &h, predict_genes_rows, NULL);
	report(&r);
	return 0;
}

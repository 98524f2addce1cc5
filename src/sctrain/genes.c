/*
 * sctrain genes: predict one label for each gene, from every position at which a cell has it [Geneformer's gene classification:
 * BertForTokenClassification]. Folds are over genes: the tokens of held-out genes have no label in training, and --eval measures
 * these tokens alone.
 */
#include "sctrain.h"

#include "base/digest.h"
#include "label/gene_labels.h"

#include <stdlib.h>
#include <string.h>

static const char *path, *fold_text;
static long long fold_seed = 1;

static struct option_def options[] = {
	{0, "Classes", OPT_GROUP},
	{0, "gene-labels", OPT_STRING, &path, "FILE", "table of genes (id or symbol) and their labels (required)"},
	{0, "fold", OPT_STRING, &fold_text, "K/N", "split the genes into N folds and hold out fold K, from 0 (default: learn from all)",
		.changes = 1},
	{0, "fold-seed", OPT_INT, &fold_seed, "N", "seed of the folds (default 1)", 0, 4294967295.0, .changes = 1},
	{0},
};

static struct gene_labels genes;
static size_t nfold, held_out; /* 0 folds: learn from all genes; the fold that is held out */
static uint32_t *label;
static size_t label_cap;

static void check(void)
{
	if (!path)
		usage_error("no genes: --gene-labels FILE");
	if (!fold_text)
		return;
	char *end;
	unsigned long k = strtoul(fold_text, &end, 10), n = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
	if (*end || strspn(fold_text, "0123456789/") != strlen(fold_text) || n < 2 || n > 1000 || k >= n)
		usage_error("--fold: '%s' is not K/N with N from 2 to 1000 and K from 0, below N", fold_text);
	held_out = k;
	nfold = n;
}

static void open_genes(struct train *t)
{
	struct error e;
	const struct vocab *v = &t->header->vocab;
	if (gene_labels_load(&genes, path, v, &e))
		die("--gene-labels: %s", e.msg);
	if (genes.nclass == 1)
		die("--gene-labels: %s: all genes of the vocabulary have the label '%s': there is nothing to tell apart", path,
			genes.name[0]);
	if (genes.absent)
		warn("%zu of the %zu genes of %s are not in the vocabulary (%s, for one)", genes.absent, genes.listed, path, genes.missing);
	if (nfold && gene_labels_folds(&genes, v, nfold, held_out, (uint32_t)fold_seed, &e))
		die("--fold %s: %s", fold_text, e.msg);
	if (nfold)
		info("fold %s: %zu genes to learn from, %zu held out", fold_text, genes.found - genes.test, genes.test);
	t->genes = gene_labels_print(&genes, v);
	t->head.nlabel = (uint32_t)genes.nclass;
	t->head.label = genes.name;
}

static void settings(const struct train *t, cJSON *j)
{
	char hex[DIGEST_SIZE];
	digest_bytes(t->genes, strlen(t->genes), hex);
	cJSON_AddStringToObject(j, "genes", hex); /* labels, folds and what is held out */
}

static size_t label_tokens(const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	size_t n = p->offset[to - from];
	int test = s->validation && nfold;
	grow(label, label_cap, n);
	for (size_t i = 0; i < n; i++)
		label[i] = genes.held_out[p->id[i]] != test ? ROW_NONE : (uint32_t)genes.label[p->id[i]];
	p->b.goal[0] = (struct goal){.target = label};
	return n;
}

static const struct train_task task = {
	.head = &head_genes,
	.name = "sctrain genes",
	.summary = "Fine-tune a model to classify genes by a label.",
	.options = options,
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(5e-5),
	.warmup = 500,
	.best = BEST_LAST,
	.counted = "labels",
	.check = check,
	.open = open_genes,
	.settings = settings,
	.label = label_tokens,
};

int genes_main(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}

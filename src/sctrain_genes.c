/*
 * sctrain genes: one label a gene, from each place it has in a cell [Geneformer's gene classification: BertForTokenClassification].
 * Folds are over genes: the tokens of held-out genes have no label in training, and are all that --eval measures.
 */
#include "sctrain.h"

#include "genesplit.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char *path, *fold_text;
static long long fold_seed = 1;

static struct option_def options[] = {
	{.name = "gene-labels", .kind = OPT_STRING, .to = &path, .arg = "FILE", .help = "TSV of genes (id or symbol) and their labels (required)"},
	{.name = "fold", .kind = OPT_STRING, .to = &fold_text, .arg = "K/N", .changes = 1,
	 .help = "cut the genes into N folds and hold out fold K, from 0 (default: learn from all)"},
	{.name = "fold-seed", .kind = OPT_INT, .to = &fold_seed, .arg = "N", .max = 4294967295.0, .changes = 1, .help = "seed of the folds (default 1)"},
	{0},
};

static struct genesplit genes;
static int32_t held_out = -1;   /* the fold */
static size_t nfold;
static int32_t *label;
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
	held_out = (int32_t)k;
	nfold = n;
}

static void open_genes(struct train *t, struct model_config *c)
{
	struct error e;
	const struct vocab *v = &t->header->vocab;
	if (genesplit_load(&genes, path, v, &e))
		die("--gene-labels: %s", e.msg);
	if (genes.nclass == 1)
		die("--gene-labels: %s: all genes of the vocabulary have the label '%s': there is nothing to tell apart", path, genes.name[0]);
	if (genes.absent)
		warn("%zu of the %zu genes of %s are not in the vocabulary (%s, for one)", genes.absent, genes.listed, path, genes.missing);
	if (nfold && genesplit_folds(&genes, v, nfold, (uint32_t)fold_seed, &e))
		die("--fold %s: %s", fold_text, e.msg);
	size_t test = 0;
	for (size_t i = 0; i < v->n; i++)
		test += nfold && genes.fold[i] == held_out;
	if (nfold)
		info("fold %s: %zu genes to learn from, %zu held out", fold_text, genes.found - test, test);
	t->genes = genesplit_print(&genes, v, held_out);
	c->num_labels = (uint32_t)genes.nclass;
	c->label = genes.name;
}

static void settings(const struct train *t, cJSON *j)
{
	XXH128_hash_t d = XXH3_128bits(t->genes, strlen(t->genes));
	char *hex = xasprintf("%016llx%016llx", (unsigned long long)d.high64, (unsigned long long)d.low64);
	cJSON_AddStringToObject(j, "genes", hex);       /* labels, folds and what is held out */
	free(hex);
}

static void label_tokens(struct train *t, int held, struct packed *p, const struct block *b, size_t from, size_t to)
{
	size_t n = p->offset[to - from];
	int test = held && nfold;
	grow(label, label_cap, n);
	for (size_t i = 0; i < n; i++)
		label[i] = nfold && (genes.fold[p->id[i]] == held_out) != test ? -1 : genes.label[p->id[i]];
	p->b.label = label;
}

static const struct train_task task = {
	.task = TASK_GENES, .name = "sctrain genes", .summary = "Fine-tune a model to tell genes apart by a label.", .options = options,
	.lr = 5e-5, .warmup = 500, .check = check, .open = open_genes, .settings = settings, .label = label_tokens,
};

int genes_main(int argc, char **argv)
{
	return train_main(&task, argc, argv);
}

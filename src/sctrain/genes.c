/*
 * sctrain genes: predict one label for each gene, from every position at which a cell has it [Geneformer's gene classification:
 * BertForTokenClassification]. Folds are over genes: the tokens of held-out genes have no label in training, and --eval measures
 * these tokens alone.
 */
#include "sctrain.h"
#include "cli_genes.h"

#include "base/option.h"
#include "label/gene_labels.h"

static const char *path, *fold_text;

static struct option_def options[] = {
	{0, "Classes", OPT_GROUP},
	{0, "gene-labels", OPT_INPUT, &path, "FILE", "table of genes (id or symbol) and their labels (required)"},
	{0, "fold", OPT_STRING, &fold_text, "K/N", "hold out fold K (from 0) of N folds of the genes (default: learn from all)",
		.changes = 1},
	{0},
};

struct genes {
	struct gene_labels labels;
	size_t nfold, held_out; /* 0 folds: learn from all genes; the fold that is held out */
	const char *text; /* of genes.tsv */
	uint32_t *of; /* [tokens of the batch] */
	size_t of_cap;
};

static void read_fold(struct genes *x)
{
	if (!fold_text)
		return;
	char *end;
	unsigned long k = strtoul(fold_text, &end, 10), n = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
	if (*end || strspn(fold_text, "0123456789/") != strlen(fold_text) || n < 2 || n > 1000 || k >= n)
		usage_error("--fold: '%s' is not K/N with N from 2 to 1000 and K from 0, below N", fold_text);
	x->held_out = k;
	x->nfold = n;
}

static void open_genes(struct objective *o, struct train *t)
{
	struct genes *x = o->state;
	struct gene_labels *g = &x->labels;
	const struct vocab *v = &t->header->vocab;
	if (gene_labels_load(g, path, v, &failure))
		die("--gene-labels: %s", failure.msg);
	if (g->nclass == 1)
		die("--gene-labels: %s: all genes of the vocabulary have the label '%s': there is nothing to tell apart", path, g->name[0]);
	say_ambiguous(path, g->ambiguous);
	if (g->absent)
		warn("%zu of the %zu genes of %s are not in the vocabulary (%s, for one)", g->absent, g->listed, path, g->missing);
	if (x->nfold && gene_labels_folds(g, v, x->nfold, x->held_out, 1, &failure))
		die("--fold %s: %s", fold_text, failure.msg);
	if (x->nfold)
		info("fold %s: %zu genes to learn from, %zu held out", fold_text, g->found - g->test, g->test);
	x->text = train_add_file(t, o, gene_labels_print(g, v));
	o->head.nlabel = (uint32_t)g->nclass;
	o->head.label = g->name;
}

static void gene_classes_settings(const struct objective *o, cJSON *j)
{
	const char *text = ((const struct genes *)o->state)->text;
	char hex[DIGEST_SIZE];
	digest_bytes(text, strlen(text), hex);
	cJSON_AddStringToObject(j, "genes", hex); /* labels, folds and what is held out */
}

static void label_tokens(
	struct objective *o, const struct masked_source *s, struct packed *p, const struct block *b, size_t from, size_t to)
{
	struct genes *x = o->state;
	const struct gene_labels *g = &x->labels;
	size_t n = p->offset[to - from];
	int test = s->validation && x->nfold;
	grow(x->of, x->of_cap, n);
	for (size_t i = 0; i < n; i++)
		x->of[i] = g->held_out[p->id[i]] != test ? ROW_NONE : (uint32_t)g->label[p->id[i]];
	p->b.goal[o->index] = (struct goal){.target = x->of};
}

const struct objective_kind genes_objective = {
	.name = "genes",
	.head = &head_genes,
	.input = INPUT_TOKENS,
	.counted = "labels",
	.file = "genes.tsv",
	.size = sizeof(struct genes),
	.open = open_genes,
	.settings = gene_classes_settings,
	.label = label_tokens,
};

static void objectives(struct objectives *list)
{
	if (!path)
		usage_error("no genes: --gene-labels FILE");
	read_fold(objective_add(list, &genes_objective, NULL)->state);
}

const struct train_task genes_task = {
	.name = "sctrain genes",
	.summary = "Fine-tune a model to classify genes by a label.",
	.options = options,
	.config = "corrmask-paper",
	.optim = OPTIM_TRANSFORMER(5e-5),
	.warmup = 500,
	.best = BEST_LAST,
	.objectives = objectives,
};

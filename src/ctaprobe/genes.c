/*
 * ctaprobe genes: how well does a model classify genes that were not in its training? One stream of predictions for each fold. ROC AUC is
 * computed over tokens (a gene counts in every cell that has it), as Geneformer does [evaluation_utils.py], and over genes. Only one fold's
 * scores are in memory at a time.
 */
#include "genes.h"
#include "cli.h"

#include "base/json.h"
#include "base/option.h"
#include "base/softmax.h"

static const char *scores_path, *roc_path;

static struct option_def options[] = {
	{0, "Gene vectors", OPT_GROUP},
	{0, "gene-labels", OPT_INPUT, &genes_probe.labels, "FILE",
		"table of genes and labels: score a probe of gene vectors (scembed --of genes) instead"},
	{0, "folds", OPT_INT, &genes_probe.folds, "K", "number of folds over the genes (default 5)", 2, 1000, .needs = "gene-labels"},
	{'C', "inverse-penalty", OPT_REAL, &genes_probe.inverse_penalty, "X", "inverse strength of the L2 penalty (default 1)", 1e-10, 1e10,
		.needs = "gene-labels"},
	{0, "no-standardize", OPT_FLAG, &genes_probe.as_given, NULL, "leave the features as they are", .needs = "gene-labels"},
	{0, "max-iter", OPT_INT, &genes_probe.max_iter, "N", "stop after N iterations, with a warning (default 5000)", 1, 1e9,
		.needs = "gene-labels"},
	{0, "Scores", OPT_GROUP},
	{0, "gene-scores", OPT_OUTPUT, &scores_path, "FILE", "also write a table of all genes with their mean probability"},
	{0, "roc", OPT_OUTPUT, &roc_path, "FILE", "for two classes: also write a table of the ROC curves"},
	{0},
};
struct cli genes_cli = {.name = "ctaprobe genes",
	.operands = "[FILE...]",
	.options = options,
	.common = CLI_OUT | CLI_THREADS,
	.summary = "Score predictions of genes, one stream per fold, or a probe of gene vectors, by ROC AUC."};

/* The columns of one stream. */
struct source {
	struct stream *s;
	int token, label;
	int *logit; /* [K] */
	size_t group;
};

/* ---- reading ---- */

/* Read the classes of the first stream; the other streams must have the same. */
static void take_labels(struct study *t, const struct header *h, const char *name)
{
	const cJSON *list = json_get(h->extra, "labels"), *l;
	size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0, k = 0;
	if (n < 2)
		die("%s: the header has no list of at least two labels", name);
	cJSON_ArrayForEach(l, list) if (!cJSON_IsString(l)) die("%s: a label in the header is not text", name);
	if (!t->name) {
		t->first = xstrdup(name);
		t->name = xcalloc(n, sizeof *t->name);
		t->K = n;
		cJSON_ArrayForEach(l, list) t->name[k++] = xstrdup(l->valuestring);
		return;
	}
	if (n != t->K)
		die("%s: %zu classes, but %s has %zu", name, n, t->first, t->K);
	cJSON_ArrayForEach(l, list)
	{
		if (strcmp(l->valuestring, t->name[k]))
			die("%s: class %zu is '%s', but in %s it is '%s'", name, k, l->valuestring, t->first, t->name[k]);
		k++;
	}
}

static void genes_find_columns(struct source *in, const struct study *t)
{
	const struct header *h = stream_header(in->s);
	const char *name = stream_name(in->s);
	in->token = must_column(in->s, "token", U32, RAGGED);
	in->label = must_column(in->s, "label", I32, RAGGED);
	in->logit = xmalloc(t->K * sizeof *in->logit);
	in->group = (size_t)h->col[in->token].group;
	for (size_t k = 0; k < t->K; k++) {
		FREED char *column = xasprintf("logit.%s", t->name[k]);
		in->logit[k] = must_column(in->s, column, F32, RAGGED);
		if (h->col[in->logit[k]].group != (int)in->group)
			die("%s: columns token and %s are not in one group", name, column);
	}
	if (h->col[in->label].group != (int)in->group)
		die("%s: columns token and label are not in one group", name);
}

static void open_source(struct source *in, struct study *t, int i)
{
	in->s = cli_open(&genes_cli, i);
	const struct header *h = stream_header(in->s);
	const char *name = stream_name(in->s);
	must_kind(in->s, STREAM_PREDICTION);
	if (header_find(h, "token") < 0 && header_find(h, "logit") >= 0)
		die("%s: these are predictions of cells: use ctaprobe score", name);
	take_labels(t, h, name);
	genes_find_columns(in, t);
}

/* Softmax of the logits of item i into p [K]. Returns the class of the largest (ties: the first). */
static uint32_t probabilities(const struct source *in, const struct study *t, const struct block *b, size_t i, double *p)
{
	for (size_t k = 0; k < t->K; k++) {
		p[k] = (double)((const float *)b->col[in->logit[k]].data)[i];
		if (!isfinite(p[k]))
			die("%s: %s of token %u is %g, expected a finite number", stream_name(in->s), b->header->col[in->logit[k]].name,
				block_id(b, in->token, i), p[k]);
	}
	size_t best = softmax_argmax(p, t->K);
	softmax(p, t->K);
	return (uint32_t)best;
}

/* Add token i of a block to its gene's sums. If its gene has a class, the token is scored: returns 1. */
static int take_token(struct study *t, struct source *in, const struct block *b, size_t i)
{
	uint32_t id = block_id(b, in->token, i);
	int32_t label = ((const int32_t *)b->col[in->label].data)[i];
	const char *gene = b->header->vocab.id[id];
	if (label < -1 || label >= (int32_t)t->K)
		die("%s: gene %s has label %d, expected -1 to %zu", stream_name(in->s), gene, label, t->K - 1);
	if (t->count[id]++ == 0)
		t->gene_label[id] = label;
	else if (t->gene_label[id] != label)
		die("%s: gene %s does not have the same label in all cells", stream_name(in->s), gene);
	double *p = study_next(t);
	uint32_t guess = probabilities(in, t, b, i, p);
	for (size_t k = 0; k < t->K; k++)
		t->sum[id * t->K + k] += p[k];
	t->unlabelled += label < 0;
	if (label < 0)
		return 0;
	study_take(t, (uint32_t)label, guess);
	return 1;
}

static void read_fold(struct study *t, struct source *in, struct fold *f)
{
	RELEASED(block_release) struct block b = {0};
	while (must_read(in->s, &b)) {
		const uint64_t *offset = b.group[in->group].offset;
		for (size_t row = 0; row < b.rows; row++) {
			int any = 0;
			for (uint64_t i = offset[row]; i < offset[row + 1]; i++)
				any |= take_token(t, in, &b, i);
			f->cells += (uint64_t)any;
		}
		progress("%s: %zu tokens", stream_name(in->s), t->n);
	}
}

/* Stream i is fold i. */
static void do_fold(struct study *t, struct source *in, int i)
{
	const struct vocab *v = &stream_header(in->s)->vocab;
	study_begin(t, v);
	read_fold(t, in, &t->fold[i]);
	study_end(t, (size_t)i, v, stream_name(in->s));
}

/* ---- output ---- */

/* Geneformer's mean over folds, weighted by the points of their curves, and its standard deviation. */
static void weighted_auc(const struct study *t, double *mean, double *sd)
{
	double points = 0, squares = 0;
	*mean = 0;
	for (size_t i = 0; i < t->nfold; i++)
		points += (double)t->fold[i].points;
	for (size_t i = 0; i < t->nfold; i++)
		*mean += (double)t->fold[i].points / points * t->fold[i].auc;
	for (size_t i = 0; i < t->nfold; i++)
		squares += (double)t->fold[i].points / points * (t->fold[i].auc - *mean) * (t->fold[i].auc - *mean);
	*sd = sqrt(squares);
}

static void add_folds(struct results *to, const char *key, const struct study *t, size_t member)
{
	for (size_t i = 0; i < t->nfold; i++)
		results_fold(to, key, *(const double *)((const char *)&t->fold[i] + member));
}

/* Mean over folds of one class. */
static void add_class_means(struct results *to, const char *key, const struct study *t, int genes)
{
	FREED double *mean = xcalloc(t->K, sizeof *mean);
	for (size_t k = 0; k < t->K; k++)
		for (size_t i = 0; i < t->nfold; i++)
			mean[k] += (genes ? t->fold[i].class_gene_auc : t->fold[i].class_auc)[k] / (double)t->nfold;
	results_list(to, key, mean);
}

static void print_metrics(struct study *t)
{
	struct results *to = results_new();
	double mean, sd, cells = 0, tokens = 0, genes = 0;
	for (size_t i = 0; i < t->nfold; i++) {
		cells += (double)t->fold[i].cells;
		tokens += (double)t->fold[i].tokens;
		genes += (double)t->fold[i].genes;
	}
	metrics_score(&t->all);
	if (t->K == 2) {
		weighted_auc(t, &mean, &sd);
		results_add_all(to, {"auc_weighted", mean}, {"auc_weighted_sd", sd});
	}
	add_folds(to, "auc_fold", t, offsetof(struct fold, auc));
	add_folds(to, "gene_auc_fold", t, offsetof(struct fold, gene_auc));
	add_folds(to, "accuracy_fold", t, offsetof(struct fold, accuracy));
	add_folds(to, "macro_f1_fold", t, offsetof(struct fold, macro_f1));
	results_add_all(to, {"accuracy", t->all.accuracy}, {"macro_f1", t->all.macro_f1}, {"folds", (double)t->nfold}, {"cells", cells},
		{"tokens", tokens}, {"genes", genes}, {"unlabelled", (double)t->unlabelled});
	if (t->K == 2)
		results_text(to, "positive", t->name[1]);
	results_classes(to, t->name, t->K);
	if (t->K > 2) {
		add_class_means(to, "auc", t, 0);
		add_class_means(to, "gene_auc", t, 1);
	}
	results_list(to, "f1", t->all.f1);
	results_counts(to, "n", t->all.support);
	results_pairs(to, "confusion", t->all.confusion);
	cli_write_results(&genes_cli, to);
}

static void write_roc(const struct study *t)
{
	char *text = NULL;
	double points = 0;
	FILE *f = xmemopen(&text, &(size_t){0});
	fputs("fpr\tmean", f);
	for (size_t i = 0; i < t->nfold; i++) {
		fprintf(f, "\tfold%zu", i + 1);
		points += (double)t->fold[i].points;
	}
	for (int g = 0; g < ROC_GRID; g++) {
		double mean = 0;
		for (size_t i = 0; i < t->nfold; i++)
			mean += (double)t->fold[i].points / points * t->fold[i].tpr[g];
		fprintf(f, "\n%.9g\t%.9g", g / (ROC_GRID - 1.0), g < ROC_GRID - 1 ? mean : 1);
		for (size_t i = 0; i < t->nfold; i++)
			fprintf(f, "\t%.9g", t->fold[i].tpr[g]);
	}
	fputc('\n', f);
	xmemclose(f, &text);
	cli_write(roc_path, text);
}

static void genes_start(struct study *t, char **text, size_t *size)
{
	if (t->K > 2 && roc_path)
		die("--roc needs two classes, but %s has %zu", t->first, t->K);
	metrics_init(&t->all, t->K);
	if (!scores_path)
		return;
	t->scores = xmemopen(text, size);
	fputs("fold\tgene_id\tsymbol\tlabel\ttokens", t->scores);
	for (size_t k = 0; k < t->K; k++)
		fprintf(t->scores, "\tprobability.%s", t->name[k]);
	fputc('\n', t->scores);
}

/* Predictions, one stream for each fold. */
static void score_streams(struct study *t, char **scores, size_t *size)
{
	t->nfold = genes_cli.noperand ? (size_t)genes_cli.noperand : 1;
	t->fold = xcalloc(t->nfold, sizeof *t->fold);
	for (int i = 0; i < (int)t->nfold; i++) {
		struct source in;
		open_source(&in, t, i);
		if (!i)
			genes_start(t, scores, size);
		do_fold(t, &in, i);
		stream_free(in.s);
		free(in.logit);
	}
}

int ctaprobe_genes(int argc, char **argv)
{
	static struct study t;
	static char *scores;
	size_t size = 0;
	cli_init(&genes_cli, argc, argv);
	if (genes_probe.labels && genes_cli.noperand > 1)
		usage_error("--gene-labels: one stream of vectors at a time");
	if (genes_probe.labels) {
		genes_probe_read(&t);
		genes_start(&t, &scores, &size);
		genes_probe_folds(&t);
	} else {
		score_streams(&t, &scores, &size);
	}
	if (t.unlabelled)
		info("%llu %s of held-out genes without a class %s left out", (unsigned long long)t.unlabelled,
			t.unlabelled == 1 ? "token" : "tokens", t.unlabelled == 1 ? "is" : "are");
	if (t.scores) {
		xmemclose(t.scores, &scores);
		cli_write(scores_path, scores);
	}
	if (roc_path)
		write_roc(&t);
	print_metrics(&t);
	cli_measured_all({"folds", (double)t.nfold}, {"classes", (double)t.K}, {"tokens", (double)t.all.n});
	cli_report(&genes_cli, "%zu folds, %zu classes, %llu tokens", t.nfold, t.K, (unsigned long long)t.all.n);
	return 0;
}

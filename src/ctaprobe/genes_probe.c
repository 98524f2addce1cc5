/*
 * ctaprobe genes --gene-labels: classes of genes from their vectors, without fine-tuning. The genes are cut into the folds of `sctrain genes
 * --fold`, and a logistic regression that has learned from the other folds predicts those of one. Each gene is one prediction.
 */
#include "genes.h"
#include "cli.h"
#include "cli_genes.h"

#include "base/softmax.h"
#include "eval/probe.h"
#include "label/gene_labels.h"

struct genes_probe genes_probe = {.folds = 5, .max_iter = 5000, .inverse_penalty = 1};
static struct stream *in;
static struct gene_vectors vectors;
static struct gene_labels labels;

void genes_probe_read(struct study *t)
{
	cli_blas(&genes_cli);
	in = cli_open(&genes_cli, 0);
	const struct vocab *v = &stream_header(in)->vocab;
	size_t without = 0;
	if (header_kind(stream_header(in), STREAM_PREDICTION, stream_name(in), &failure) == 0)
		die("%s: these are predictions already: leave out --gene-labels", stream_name(in));
	gene_vectors_read(&vectors, in);
	must(gene_labels_load(&labels, genes_probe.labels, v, &failure));
	if (labels.nclass < 2)
		die("%s: all its genes have one label, '%s': expected two or more", genes_probe.labels, labels.name[0]);
	if (gene_labels_folds(&labels, v, (size_t)genes_probe.folds, 0, 1, &failure))
		die("%s: %s", genes_probe.labels, failure.msg);
	FREED uint8_t *there = xcalloc(v->n, 1);
	for (size_t i = 0; i < vectors.n; i++)
		there[vectors.token[i]] = 1;
	for (size_t g = 0; g < v->n; g++)
		without += labels.label[g] >= 0 && !there[g];
	say_ambiguous(genes_probe.labels, labels.ambiguous);
	if (labels.absent || without)
		info("%zu genes of %s are not in the vocabulary (such as '%s'), and %zu have no vector: they are left out", labels.absent,
			genes_probe.labels, labels.missing, without);
	t->K = labels.nclass;
	t->name = xstrdup_list(labels.name, t->K);
	t->first = xstrdup(genes_probe.labels);
	t->nfold = (size_t)genes_probe.folds;
	t->fold = xcalloc(t->nfold, sizeof *t->fold);
	cli_measured("genes_without_vector", (double)without);
}

/* Learn from all labelled genes that are not of fold f. y [n] classes of the vectors, -1: none. */
static void genes_probe_fit(struct probe *p, const struct study *t, size_t f)
{
	uint32_t *row = xmalloc(vectors.n * sizeof *row), *y = xcalloc(vectors.n, sizeof *y);
	size_t n = 0, *seen = xcalloc(t->K, sizeof *seen);
	for (size_t i = 0; i < vectors.n; i++) {
		uint32_t gene = vectors.token[i];
		if (labels.label[gene] < 0 || labels.fold[gene] == (int32_t)f)
			continue;
		y[i] = (uint32_t)labels.label[gene];
		seen[y[i]]++;
		row[n++] = (uint32_t)i;
	}
	for (size_t k = 0; k < t->K; k++)
		if (!seen[k])
			die("%s: fold %zu: no gene of class '%s' to learn from has a vector", stream_name(in), f + 1, t->name[k]);
	struct probe_options o = {.c = genes_probe.inverse_penalty,
		.tol = PROBE_TOL,
		.max_iter = (int)genes_probe.max_iter,
		.standardize = !genes_probe.as_given,
		.threads = (int)genes_cli.threads};
	if (probe_fit(p, vectors.x, vectors.d, row, n, y, t->K, &o, &failure))
		die("%s: fold %zu: %s", stream_name(in), f + 1, failure.msg);
	if (!p->converged)
		warn("fold %zu: the probe did not converge in %d iterations (largest entry of the gradient %.2g)", f + 1, p->iterations,
			p->gradient);
	free_all(row, y, seen);
}

static void predict(struct study *t, const struct probe *p, size_t f)
{
	for (size_t i = 0; i < vectors.n; i++) {
		uint32_t gene = vectors.token[i];
		int32_t label = labels.label[gene];
		if (label < 0 || labels.fold[gene] != (int32_t)f)
			continue;
		double *score = study_next(t);
		probe_logits(p, vectors.x + i * vectors.d, score);
		uint32_t guess = (uint32_t)softmax_argmax(score, t->K);
		softmax(score, t->K);
		memcpy(t->sum + gene * t->K, score, t->K * sizeof *score);
		t->count[gene] = 1;
		t->gene_label[gene] = label;
		study_take(t, (uint32_t)label, guess);
	}
}

void genes_probe_folds(struct study *t)
{
	const struct vocab *v = &stream_header(in)->vocab;
	for (size_t f = 0; f < t->nfold; f++) {
		struct probe p = {0};
		study_begin(t, v);
		genes_probe_fit(&p, t, f);
		predict(t, &p, f);
		study_end(t, f, v, stream_name(in));
		probe_release(&p);
	}
}

/* ctaprobe genes: the scores of one fold. */
#include "genes.h"

/* AUC of each class against all others over n items, score [n, K]. Returns their mean, or with two classes that of the positive one. */
static double auc_of(struct study *t, const double *score, const uint32_t *y, size_t n, double *class_auc, struct roc *positive)
{
	double sum = 0;
	grow(t->item, t->item_cap, n);
	for (size_t k = 0; k < t->K; k++) {
		struct roc r;
		if (t->K == 2 && k != 1)
			continue;
		for (size_t i = 0; i < n; i++)
			t->item[i] = (struct roc_item){score[i * t->K + k], y[i] == k};
		roc_curve(&r, t->item, n);
		class_auc[k] = r.auc;
		sum += r.auc;
		if (k == 1)
			*positive = r;
	}
	return t->K == 2 ? class_auc[1] : sum / (double)t->K;
}

static void check_classes(const struct study *t, const char *name)
{
	for (size_t k = 0; k < t->K; k++) {
		size_t i = 0;
		while (i < t->n && t->y[i] != k)
			i++;
		if (i == t->n)
			die("%s: no token of a held-out gene of class '%s' among %zu: ROC AUC needs every class in every fold", name,
				t->name[k], t->n);
	}
}

/* Score the genes by the mean over their tokens. */
static void score_genes(struct study *t, struct fold *f, const struct vocab *v, size_t number)
{
	FREED double *score = xmalloc(v->n * t->K * sizeof *score);
	FREED uint32_t *y = xmalloc(v->n * sizeof *y);
	struct roc r;
	for (size_t id = 0; id < v->n; id++) {
		if (!t->count[id])
			continue;
		double *mean = score + f->genes * t->K; /* kept only if the gene is scored */
		for (size_t k = 0; k < t->K; k++)
			mean[k] = t->sum[id * t->K + k] / (double)t->count[id];
		int32_t label = t->gene_label[id];
		if (t->scores) {
			fprintf(t->scores, "%zu\t%s\t%s\t%s\t%llu", number, v->id[id], v->symbol[id], label < 0 ? "NA" : t->name[label],
				(unsigned long long)t->count[id]);
			for (size_t k = 0; k < t->K; k++)
				fprintf(t->scores, "\t%.9g", mean[k]);
			fputc('\n', t->scores);
		}
		if (label >= 0)
			y[f->genes++] = (uint32_t)label;
	}
	f->gene_auc = auc_of(t, score, y, f->genes, f->class_gene_auc, &r);
}

void study_begin(struct study *t, const struct vocab *v)
{
	t->n = 0;
	t->sum = xcalloc(v->n * t->K, sizeof *t->sum);
	t->count = xcalloc(v->n, sizeof *t->count);
	t->gene_label = xcalloc(v->n, sizeof *t->gene_label);
	metrics_init(&t->one, t->K);
}

double *study_next(struct study *t)
{
	grow(t->p, t->p_cap, (t->n + 1) * t->K);
	return t->p + t->n * t->K;
}

void study_take(struct study *t, uint32_t y, uint32_t guess)
{
	grow(t->y, t->y_cap, t->n + 1);
	t->y[t->n++] = y;
	metrics_add(&t->one, &y, &guess, 1);
}

void study_end(struct study *t, size_t i, const struct vocab *v, const char *name)
{
	struct fold *f = &t->fold[i];
	struct roc r = {0};
	f->class_auc = xcalloc(t->K, sizeof *f->class_auc);
	f->class_gene_auc = xcalloc(t->K, sizeof *f->class_gene_auc);
	f->tokens = t->n;
	check_classes(t, name);
	f->auc = auc_of(t, t->p, t->y, t->n, f->class_auc, &r);
	f->points = r.points;
	memcpy(f->tpr, r.tpr, sizeof f->tpr);
	score_genes(t, f, v, i + 1);
	metrics_score(&t->one);
	f->accuracy = t->one.accuracy;
	f->macro_f1 = t->one.macro_f1;
	for (size_t k = 0; k < t->K * t->K; k++)
		t->all.confusion[k] += t->one.confusion[k];
	t->all.n += t->one.n;
	metrics_release(&t->one);
	free_all(t->sum, t->count, t->gene_label);
}

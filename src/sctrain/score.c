/* How well a model predicts the targets of its objectives: for --eval, and for sctrain eval. */
#include "sctrain.h"

#include "base/softmax.h"

static int of_classes(const struct objective *o)
{
	return head_classifies(o->head.kind);
}

void score_reset(struct score *y, struct objectives *list, const struct model *m)
{
	y->list = list;
	for (const struct objective *o = list->one; o < list->one + list->n; o++) {
		metrics_release(&y->of[o->index].classes);
		if (o->head.kind->target == TARGET_CLASS)
			metrics_init(&y->of[o->index].classes, model_head(m, o->index)->nlabel);
		memset(y->of[o->index].sum, 0, sizeof y->of[o->index].sum);
	}
	by_gene_reset(y, m);
	y->cells = y->tokens = 0;
}

/* ---- sums ---- */

/* Of the heads without classes the model's loss is the metric. */
static int add_losses(struct score *y, struct model *m, struct error *e)
{
	struct loss loss[LOSSES_MAX];
	struct batch b = y->packed.b;
	size_t n = 0;
	for (const struct objective *o = y->list->one; o < y->list->one + y->list->n; o++) {
		n += !of_classes(o);
		if (of_classes(o))
			b.goal[o->index] = (struct goal){0};
	}
	if (n && model_forward(m, &b, &(struct forward){0}, loss, e))
		return -1;
	for (const struct objective *o = y->list->one; n && o < y->list->one + y->list->n; o++) {
		struct loss *sum = y->of[o->index].sum, *x = &loss[model_first_loss(m, o->index)];
		for (size_t k = 0; k < head_parts(o->head.kind) && !of_classes(o); k++, sum++, x++) {
			sum->sum += x->sum;
			sum->count += x->count;
			sum->measure += x->measure;
			sum->target += x->target;
			sum->square += x->square;
		}
		if (y->by_gene && loss[model_first_loss(m, o->index)].count > 0)
			by_gene_forward(y, m, o);
	}
	return 0;
}

/* Cross-entropy and class of one row of logits. */
static void score_row(struct score *y, size_t head, const real *logit, size_t classes, uint32_t label)
{
	double *z = y->row;
	struct loss *sum = y->of[head].sum;
	for (size_t k = 0; k < classes; k++)
		z[k] = logit[k];
	uint32_t top = (uint32_t)softmax_argmax(z, classes);
	sum->sum += softmax(z, classes) - logit[label];
	sum->count++;
	sum->measure += top == label;
	metrics_add(&y->of[head].classes, &label, &top, 1);
}

/* The same where a label is a set of classes. */
static void score_set(struct score *y, size_t head, const real *logit, size_t classes, const uint32_t *set)
{
	double *z = y->row;
	struct loss *sum = y->of[head].sum;
	for (size_t k = 0; k < classes; k++)
		z[k] = logit[k];
	size_t top = softmax_argmax(z, classes);
	sum->sum += softmax_log_sum(z, classes, NULL) - softmax_log_sum(z, classes, set);
	sum->count++;
	sum->measure += set[top / 32] >> top % 32 & 1;
}

/* Of the heads of classes, from their logits. */
static int add_classes(struct score *y, struct model *m, struct error *e)
{
	const struct batch *b = &y->packed.b;
	real *logit[HEADS_MAX] = {0};
	size_t rows[HEADS_MAX] = {0}, n = 0;
	for (const struct objective *o = y->list->one; o < y->list->one + y->list->n; o++) {
		size_t i = o->index, K = model_head(m, i)->nlabel;
		if (!of_classes(o) || !b->offset[b->ncell])
			continue;
		rows[i] = o->head.kind->rows == ROWS_CELL ? b->ncell : b->offset[b->ncell];
		grow(y->of[i].logit, y->of[i].logit_cap, rows[i] * K);
		grow(y->row, y->row_cap, K);
		logit[i] = y->of[i].logit;
		n++;
	}
	if (n && model_logits_of(m, b, logit, e))
		return -1;
	for (size_t h = 0; h < HEADS_MAX; h++) {
		const struct head_spec *spec = model_head(m, h);
		for (size_t i = 0, K = rows[h] ? spec->nlabel : 0; i < rows[h]; i++) {
			uint32_t label = b->goal[h].target[i];
			if (label == ROW_NONE)
				continue;
			if (spec->set)
				score_set(y, h, logit[h] + i * K, K, spec->set + label * nb_words(K));
			else
				score_row(y, h, logit[h] + i * K, K, label);
		}
	}
	return 0;
}

void score_block(struct score *y, struct model *m, const struct masked_source *s, const struct block *b, size_t tokens_max)
{
	const uint64_t *offset = b->group[s->col.input_group].offset;
	for (size_t from = 0, to; from < b->rows; from = to) {
		for (to = from + 1; to < b->rows && offset[to + 1] - offset[from] <= tokens_max; to++)
			;
		must(objectives_pack(&y->packed, y->list, s, b, from, to, model_positions(model_config(m)), &failure));
		if (add_classes(y, m, &failure) || add_losses(y, m, &failure))
			die("%s: %s", s->name, failure.msg);
	}
	y->cells += b->rows;
	y->tokens += block_items(b, s->col.input_group);
}

double score_count(const struct score *y)
{
	double n = 0;
	for (size_t i = 0; i < HEADS_MAX; i++)
		n += y->of[i].sum->count;
	return n;
}

/* ---- metrics ---- */

size_t metric_count(const struct head_kind *k)
{
	size_t n = 1;
	while (k->metric[n - 1].name)
		n++;
	return n;
}

const char *metric_name(const struct head_kind *k, size_t i)
{
	return i ? k->metric[i - 1].name : "loss";
}

int metric_better(const struct head_kind *k, size_t i, double a, double b)
{
	return i && k->metric[i - 1].higher ? a > b : a < b;
}

/* What the sum of a loss is divided by: as in training, the cells without a target count where the head is over all. */
static double mean_over(const struct score *y, const struct loss *l, const struct head_spec *s)
{
	return s->over_all && l->count > 0 ? (double)y->cells : l->count;
}

/* The mean over its losses with targets. */
static double head_loss(const struct score *y, const struct loss *l, const struct head_spec *s)
{
	double sum = 0, weights = 0;
	if (!s->kind->part)
		return l->sum / mean_over(y, l, s);
	for (size_t k = 0; k < head_parts(s->kind); k++) {
		double w = l[k].count > 0 ? head_part_weight(s, k) : 0;
		sum += w > 0 ? w * l[k].sum / l[k].count : 0;
		weights += w;
	}
	return sum / weights;
}

static void head_metrics(struct score *y, const struct objective *o, double value[METRICS_MAX])
{
	const struct head_metric *metric = o->head.kind->metric;
	const struct loss *sum = y->of[o->index].sum;
	value[0] = head_loss(y, sum, &o->head);
	for (size_t i = 0; metric[i].name; i++) {
		if (metric[i].of) {
			value[i + 1] = metric[i].of(sum + metric[i].part, &o->head);
		} else {
			metrics_score(&y->of[o->index].classes);
			value[i + 1] = y->of[o->index].classes.macro_f1;
		}
		if (!(sum->count > 0))
			value[i + 1] = NAN;
	}
}

void score_metrics(struct score *y, const struct model *m, struct scores *x)
{
	double sum[LOSSES_MAX] = {0}, count[LOSSES_MAX] = {0};
	for (const struct objective *o = y->list->one; o < y->list->one + y->list->n; o++) {
		head_metrics(y, o, x->value[o->index]);
		size_t first = model_first_loss(m, o->index);
		for (size_t k = 0; k < head_parts(o->head.kind); k++) {
			sum[first + k] = y->of[o->index].sum[k].sum;
			count[first + k] = mean_over(y, &y->of[o->index].sum[k], &o->head);
		}
	}
	x->loss = model_mean_loss(m, sum, count);
}

/* Batches with their labels, and how well a model predicts them: for --eval, and for sctrain eval. */
#include "sctrain.h"

#include "base/softmax.h"

#include <stdlib.h>
#include <string.h>

int source_init(struct masked_source *s, const struct train_task *task, struct stream *in, struct error *e)
{
	*s = (struct masked_source){.in = in, .name = stream_name(in), .shards = 1};
	if (task->head->counts ? counts_columns(&s->col, stream_header(in), 0, s->name, e)
			       : masked_columns(&s->col, stream_header(in), s->name, e))
		return -1;
	if (task->head->width && s->col.value < 0)
		return error_set(
			e, "%s: no list 'value' beside the targets: %s needs a stream of maskgen --objective value", s->name, task->name);
	if (!task->head->width && s->col.value >= 0)
		return error_set(
			e, "%s: a stream of maskgen --objective value, whose masked genes are visible: it is for sctrain value", s->name);
	return 0;
}

int example_pack(struct example *x, const struct train_task *task, const struct masked_source *s, const struct block *b, size_t from,
	size_t to, size_t limit, struct error *e)
{
	struct packed *p = &x->packed;
	int bad = task->head->counts ? batch_counts(p, &s->col, b, from, to, s->name, e)
				     : batch_masked(p, &s->col, b, from, to, limit, s->shard, s->shards, s->name, e);
	if (bad)
		return -1;
	x->rows = task->label ? task->label(s, p, b, from, to) : p->b.goal[0].n;
	return 0;
}

/* ---- sums ---- */

void score_reset(struct score *y, const struct train_task *task, const struct model *m)
{
	metrics_release(&y->classes);
	if (task->head->classes)
		metrics_init(&y->classes, model_head(m, 0)->nlabel);
	y->task = task;
	y->sum = (struct loss){0};
	y->cells = y->tokens = 0;
}

void score_release(struct score *y)
{
	metrics_release(&y->classes);
	packed_release(&y->example.packed);
	free(y->logit);
	free(y->row);
	*y = (struct score){0};
}

/* The model's loss is the metric. */
static int add_loss(struct score *y, struct model *m, struct error *e)
{
	struct loss loss[HEADS_MAX];
	if (model_forward(m, &y->example.packed.b, &(struct forward){0}, loss, e))
		return -1;
	y->sum.sum += loss[0].sum;
	y->sum.count += loss[0].count;
	y->sum.correct += loss[0].correct;
	y->sum.target += loss[0].target;
	y->sum.square += loss[0].square;
	return 0;
}

/* Cross-entropy and class of one row of logits. */
static void score_row(struct score *y, const real *logit, size_t classes, uint32_t label)
{
	double *z = y->row;
	for (size_t k = 0; k < classes; k++)
		z[k] = logit[k];
	uint32_t top = (uint32_t)softmax_argmax(z, classes);
	y->sum.sum += softmax(z, classes) - logit[label];
	y->sum.count++;
	y->sum.correct += top == label;
	metrics_add(&y->classes, &label, &top, 1);
}

/* From the logits of classes. */
static int add_classes(struct score *y, struct model *m, struct error *e)
{
	const struct batch *b = &y->example.packed.b;
	const uint32_t *label = b->goal[0].target;
	size_t classes = model_head(m, 0)->nlabel, n = y->example.rows;
	if (!b->offset[b->ncell])
		return 0;
	grow(y->logit, y->logit_cap, n * classes);
	grow(y->row, y->row_cap, classes);
	if (model_logits(m, b, 0, y->logit, e))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (label[i] != ROW_NONE)
			score_row(y, y->logit + i * classes, classes, label[i]);
	return 0;
}

void score_block(struct score *y, struct model *m, const struct masked_source *s, const struct block *b, size_t tokens_max)
{
	struct error e;
	const uint64_t *offset = b->group[s->col.input_group].offset;
	for (size_t from = 0, to; from < b->rows; from = to) {
		for (to = from + 1; to < b->rows && offset[to + 1] - offset[from] <= tokens_max; to++)
			;
		if (example_pack(&y->example, y->task, s, b, from, to, model_config(m)->max_position_embeddings, &e))
			die("%s", e.msg);
		if (y->task->head->classes ? add_classes(y, m, &e) : add_loss(y, m, &e))
			die("%s: %s", s->name, e.msg);
	}
	y->cells += b->rows;
	y->tokens += block_items(b, s->col.input_group);
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

void score_metrics(struct score *y, double value[METRICS_MAX])
{
	const struct head_metric *metric = y->task->head->metric;
	value[0] = y->sum.sum / y->sum.count;
	for (size_t i = 0; metric[i].name; i++) {
		if (metric[i].of) {
			value[i + 1] = metric[i].of(&y->sum);
		} else {
			metrics_score(&y->classes);
			value[i + 1] = y->classes.macro_f1;
		}
	}
}

/* What a model makes of cells it does not learn from: for --eval, and for sctrain eval. */
#include "sctrain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void score_reset(struct score *y, const struct model *m)
{
	metrics_release(&y->metrics);
	if (model_task(m) != TASK_MLM)
		metrics_init(&y->metrics, model_config(m)->num_labels);
	y->sum = (struct loss){0};
	y->cells = y->tokens = 0;
}

void score_release(struct score *y)
{
	metrics_release(&y->metrics);
	packed_release(&y->packed);
	free(y->logit);
	*y = (struct score){0};
}

/* Plain cross-entropy and the class of each labelled row, from the logits. */
static void score_classes(struct score *y, struct model *m, const char *name)
{
	struct error e;
	const struct batch *b = &y->packed.b;
	size_t K = model_config(m)->num_labels, n = model_task(m) == TASK_CELLS ? b->ncell : b->offset[b->ncell];
	if (!b->offset[b->ncell])
		return;
	grow(y->logit, y->logit_cap, n * K);
	if (model_logits(m, b, y->logit, &e))
		die("%s: %s", name, e.msg);
	for (size_t i = 0; i < n; i++) {
		const real *z = y->logit + i * K;
		double total = 0;
		uint32_t top = 0, label = (uint32_t)b->label[i];
		if (b->label[i] < 0)
			continue;
		for (uint32_t k = 1; k < K; k++)
			top = z[k] > z[top] ? k : top;
		for (size_t k = 0; k < K; k++)
			total += exp((double)z[k] - z[top]);
		y->sum.sum += log(total) + (double)z[top] - z[label];
		y->sum.count++;
		y->sum.correct += top == label;
		metrics_add(&y->metrics, &label, &top, 1);
	}
}

void score_block(struct score *y, struct model *m, const struct masked_columns *col, const struct block *b, size_t tokens_max,
		 struct train *t, const char *name)
{
	struct error e;
	struct loss loss;
	const uint64_t *offset = b->group[col->input_group].offset;
	for (size_t from = 0, to; from < b->rows; from = to) {
		for (to = from + 1; to < b->rows && offset[to + 1] - offset[from] <= tokens_max; to++)
			;
		if (batch_masked(&y->packed, col, b, from, to, model_config(m)->max_position_embeddings, 0, 1, name, &e))
			die("%s", e.msg);
		if (model_task(m) != TASK_MLM) {
			t->task->label(t, 1, &y->packed, b, from, to);
			score_classes(y, m, name);
			continue;
		}
		if (model_forward(m, &y->packed.b, &(struct forward){0}, &loss, &e))
			die("%s: %s", name, e.msg);
		y->sum.sum += loss.sum;
		y->sum.count += loss.count;
		y->sum.correct += loss.correct;
	}
	y->cells += b->rows;
	y->tokens += block_items(b, col->input_group);
}

/* ---- --eval ---- */

void held_open(struct held *h, const char *path, const struct header *training)
{
	struct error e;
	char a[33], b[33];
	h->in = stream_open(path, &e);
	if (!h->in)
		die("--eval: %s", e.msg);
	const struct header *header = stream_header(h->in);
	if (masked_columns(&h->col, header, stream_name(h->in), &e))
		die("--eval: %s", e.msg);
	vocab_digest(&header->vocab, a);
	vocab_digest(&training->vocab, b);
	if (strcmp(a, b))
		die("--eval: %s has another vocabulary than the cells to train on", stream_name(h->in));
	if (stream_index(h->in, &e))
		die("--eval: %s", e.msg);
}

void held_measure(struct held *h, struct train *t)
{
	struct error e;
	score_reset(&h->score, t->model);
	for (size_t k = 0; k < stream_blocks(h->in); k++) {
		if (stream_read_at(h->in, k, &h->block, &e))
			die("--eval: %s", e.msg);
		score_block(&h->score, t->model, &h->col, &h->block, HELD_TOKENS, t, stream_name(h->in));
		progress("step %llu: held-out cells, %.0f %%", (unsigned long long)t->state.step,
			 100 * (double)(k + 1) / (double)stream_blocks(h->in));
	}
	if (!(h->score.sum.count > 0))
		die("--eval: %s: nothing in it to predict", stream_name(h->in));
	h->loss = h->score.sum.sum / h->score.sum.count;
	h->accuracy = h->score.sum.correct / h->score.sum.count;
	if (model_task(t->model) != TASK_MLM)
		metrics_score(&h->score.metrics);
	h->macro_f1 = h->score.metrics.macro_f1;
}

void held_release(struct held *h)
{
	score_release(&h->score);
	block_release(&h->block);
	stream_free(h->in);
	*h = (struct held){0};
}

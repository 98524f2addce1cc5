/* --eval: scores on cells that are not for training. --best: keep the weights with the best score. */
#include "sctrain.h"

void validation_open(struct train *t)
{
	struct validation *v = &t->validation;
	struct stream *in = stream_open(t->options->eval, &failure);
	if (!in || source_init(&v->source, &t->objectives, t->task->name, in, &failure))
		die("--eval: %s", failure.msg);
	v->source.validation = 1;
	if (!vocab_equal(&stream_header(in)->vocab, &t->header->vocab))
		die("--eval: %s: its vocabulary is not that of the training cells", v->source.name);
	if (stream_index(in, &failure))
		die("--eval: %s", failure.msg);
}

/* Is there a target of a loss that counts, and one of the first head if --best measures this head? */
static int is_enough(const struct train *t, const double *count)
{
	double scale[LOSSES_MAX];
	enum best by = (enum best)t->options->best;
	int loss = best_metric(t->objectives.one[0].head.kind, by) == 0;
	return model_weigh(t->model, count, scale) > 0 && (loss || count[model_nloss(t->model)] > 0);
}

void validation_check(struct train *t)
{
	struct validation *v = &t->validation;
	struct packed *p = &v->score.packed;
	double sum[2 * LOSSES_MAX] = {0}, count[2 * LOSSES_MAX];
	size_t limit = model_positions(model_config(t->model)), n = 2 * model_nloss(t->model);
	for (size_t k = 0; v->source.in && !is_enough(t, sum); k++) {
		if (k == stream_blocks(v->source.in))
			die("--eval: %s: it has nothing to predict", v->source.name);
		if (stream_read_at(v->source.in, k, &v->block, &failure) ||
			objectives_pack(p, &t->objectives, &v->source, &v->block, 0, v->block.rows, limit, &failure) ||
			model_count(t->model, &p->b, UINT64_MAX, count, &failure))
			die("--eval: %s", failure.msg);
		for (size_t i = 0; i < n; i++)
			sum[i] += count[i];
	}
}

int validation_due(const struct train *t, uint64_t step)
{
	return t->validation.source.in && (step % t->eval_every == 0 || step == t->info.steps);
}

/* Score the whole stream with the metrics of all objectives. */
static void measure(struct validation *v, struct train *t)
{
	struct stream *in = v->source.in;
	size_t blocks = stream_blocks(in);
	score_reset(&v->score, &t->objectives, t->model);
	for (size_t k = 0; k < blocks; k++) {
		if (stream_read_at(in, k, &v->block, &failure))
			die("--eval: %s", failure.msg);
		score_block(&v->score, t->model, &v->source, &v->block, input_tokens_max(&t->objectives));
		progress("step %llu: validation, %.0f %%", (unsigned long long)t->state.step, 100 * (double)(k + 1) / (double)blocks);
	}
	if (!(score_count(&v->score) > 0))
		die("--eval: %s: it has nothing to predict", v->source.name);
	score_metrics(&v->score, t->model, &v->last);
}

/* Rank 0 validates. All ranks get the values, because all must stop by --patience. */
void validation_run(struct train *t)
{
	struct validation *v = &t->validation;
	struct train_state *s = &t->state;
	enum best by = (enum best)t->options->best;
	if (!t->ranks.rank)
		measure(v, t);
	must(ranks_share(&t->ranks, &v->last, sizeof v->last, &failure));
	if (by == BEST_LAST)
		return;
	const struct head_kind *first = t->objectives.one[0].head.kind;
	size_t metric = (size_t)best_metric(first, by);
	double value = metric ? v->last.value[0][metric] : v->last.loss;
	if (s->best_step && !metric_better(first, metric, value, s->best)) {
		s->stale++;
		return;
	}
	s->best_step = s->step;
	s->best = value;
	s->stale = 0;
	if (t->ranks.rank)
		return;
	t->best = t->best ? t->best : xcalloc(model_size(t->model, PARAM), sizeof *t->best);
	model_read_all(t->model, PARAM, t->best);
}

#include "train/step.h"

/* Training ends. own: this rank's fault, which e describes (FAULT_NONE: e has no message); all: the worst of all ranks. */
static int fail(struct step_queue *q, enum fault own, enum fault all)
{
	q->own = own;
	q->status.fault = (int)all;
	return -1;
}

static int lose(struct step_queue *q)
{
	q->lost = 1;
	return fail(q, FAULT_STEP, FAULT_STEP);
}

/* All ranks fail alike: one message will do. */
static int fail_alike(struct step_queue *q)
{
	return fail(q, q->ranks->rank ? FAULT_NONE : FAULT_STEP, FAULT_STEP);
}

/* After the ranks have exchanged their status: 0, or -1 if one of them has a fault. */
static int agree(struct step_queue *q, enum fault own)
{
	q->status = q->ranks->status;
	q->own = own;
	return q->status.fault ? -1 : 0;
}

/* Is a step only queued? Its losses are collected one step later. */
static int runs_ahead(const struct step_queue *q)
{
	return !q->ranks->comm || q->ranks->group;
}

/* The pass over the parts of one batch. */
struct pass {
	uint64_t step;
	struct totals own;
	const struct batch *only; /* the only part, if it is packed already */
	int counted; /* the targets of the whole batch were counted first: */
	uint8_t none[LOSSES_MAX]; /* 1: the loss has no target in it */
	double scale[LOSSES_MAX], divisor; /* of the gradients of the losses, and of their sum: see model_weigh */
};

/* How many targets each loss has in the batch, over all ranks. A fault is found again by the forward pass. */
static int weigh(struct step_queue *q, struct pass *x, int batch, struct error *e)
{
	double count[2 * LOSSES_MAX] = {0}, of_part[2 * LOSSES_MAX];
	size_t losses = model_nloss(q->model);
	struct error found_again;
	for (size_t part = 0; batch && part < q->parts; part++) {
		const struct batch *b;
		if (q->pack(q->arg, part, q->parts, &b, &found_again) <= 0 || model_count(q->model, b, x->step, of_part, &found_again))
			continue;
		x->only = q->parts == 1 ? b : NULL;
		for (size_t i = 0; i < 2 * losses; i++)
			count[i] += of_part[i];
	}
	if (ranks_sum(q->ranks, count, 2 * losses, e))
		return -1;
	x->counted = 1;
	for (size_t i = 0; i < losses; i++)
		x->none[i] = !(count[losses + i] > 0);
	x->divisor = model_weigh(q->model, count, x->scale);
	return 0;
}

/* Forward pass of one part: 1; 0 if the part is empty; -1. */
static int step_forward(struct step_queue *q, struct pass *x, size_t part, struct error *e)
{
	const struct batch *b = x->only;
	struct loss loss[LOSSES_MAX];
	int learns = !x->counted || x->divisor > 0; /* else no update will follow that the losses could wait for */
	struct forward f = {.train = 1, .step = x->step, .later = learns && runs_ahead(q), .scale = x->scale};
	int got = b ? 1 : q->pack(q->arg, part, q->parts, &b, e);
	if (got <= 0)
		return got;
	if (model_forward(q->model, b, &f, loss, e))
		return -1;
	for (size_t i = 0; i < model_nloss(q->model); i++) {
		x->own.loss[i] += loss[i].sum;
		x->own.count[i] += x->none[i] ? 0 : loss[i].count;
	}
	x->own.tokens += b->offset[b->ncell];
	x->own.cells += (double)b->ncell;
	return 1;
}

/* The gradient of the batch, over all ranks. */
static int gradient(struct step_queue *q, struct pass *x, int batch, struct error *e)
{
	enum fault fault = batch ? FAULT_NONE : FAULT_STREAM;
	model_zero_grad(q->model);
	if (model_counts_first(q->model) && weigh(q, x, batch, e))
		return lose(q);
	for (size_t part = 0; part < q->parts; part++) {
		int got = fault ? 0 : step_forward(q, x, part, e);
		if (got < 0) {
			error_prefix(e, "step %llu", (unsigned long long)x->step + 1);
			fault = FAULT_STEP;
		}
		if (part + 1 == q->parts && ranks_begin(q->ranks, q->model, &x->own, fault, *q->stop, e))
			return lose(q);
		if (got > 0 && model_backward(q->model, e)) {
			error_prefix(e, "step %llu", (unsigned long long)x->step + 1);
			return lose(q);
		}
	}
	return ranks_end(q->ranks, e) ? lose(q) : agree(q, fault);
}

/* The loss of the model, when the sums of all heads are known. */
static void step_finish(const struct step_queue *q, struct step_result *r)
{
	r->loss = model_mean_loss(q->model, r->totals.loss, r->totals.count);
}

int step_run(struct step_queue *q, uint64_t step, int batch, struct step_result *r, struct error *e)
{
	struct pass x = {.step = step, .scale = {1}};
	if (gradient(q, &x, batch, e))
		return -1;
	struct step_result now = {.step = step, .totals = q->ranks->totals, .norm = NAN};
	double divisor = x.counted ? x.divisor : now.totals.count[0];
	int learns = divisor > 0, ahead = runs_ahead(q);
	if (learns && ahead) {
		model_step_later(q->model, q->optim, step, divisor);
	} else if (learns && model_step(q->model, q->optim, step, divisor, &now.norm, e)) {
		error_prefix(e, "step %llu", (unsigned long long)step + 1);
		if (isfinite(now.norm)) /* it is the device of this rank alone */
			return lose(q);
		return fail_alike(q);
	}
	int before = step_drain(q, r, e);
	if (before < 0)
		return -1;
	q->last = now;
	q->waiting = 1;
	q->asked = learns && ahead;
	return q->queued && ahead ? before : step_drain(q, r, e);
}

int step_drain(struct step_queue *q, struct step_result *r, struct error *e)
{
	struct loss loss[LOSSES_MAX];
	if (!q->waiting)
		return 0;
	q->waiting = 0;
	*r = q->last;
	if (!q->asked) {
		step_finish(q, r);
		return 1;
	}
	if (model_collect(q->model, loss, &r->norm, e)) {
		error_prefix(e, "step %llu", (unsigned long long)r->step + 1);
		return lose(q);
	}
	for (size_t i = 0; i < model_nloss(q->model); i++)
		r->totals.loss[i] = loss[i].sum;
	if (ranks_sum(q->ranks, r->totals.loss, model_nloss(q->model), e))
		return lose(q);
	if (model_check_step(q->model, r->totals.loss, r->norm, r->step, e)) {
		error_prefix(e, "step %llu", (unsigned long long)r->step + 1);
		return fail_alike(q);
	}
	step_finish(q, r);
	return 1;
}

int step_signal(struct step_queue *q)
{
	if (!q->ranks->comm)
		q->status.signal = *q->stop;
	return q->status.signal;
}

int step_close(struct step_queue *q, int broken, struct error *e)
{
	enum fault fault = broken ? FAULT_STREAM : FAULT_NONE;
	if (ranks_begin(q->ranks, NULL, &(struct totals){0}, fault, broken ? *q->stop : 0, e) || ranks_end(q->ranks, e))
		return lose(q);
	return agree(q, fault);
}

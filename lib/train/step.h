/*
 * Training steps: each turns one batch into one update of the weights. The batch can be worked through in parts, and all ranks
 * add up their gradients before the update.
 *
 * A device can run behind the host. Then a step is only queued: step_run returns while the device works on it, and gives the result
 * of the step before, so the device never waits for the host. At most one step is in the queue; step_drain waits for it.
 *
 *     while there is a batch:
 *             got = step_run(&q, step, 1, &result, e);
 *             got > 0: report result;   got < 0: stop, see q.status and q.own
 *             before the weights are read:  got = step_drain(&q, &result, e), then report or stop in the same way
 *     step_close(&q, broken, e);
 *
 * The loss of a model with several losses needs the targets of the whole batch, all parts on all ranks, before the first gradient. So its
 * parts are packed once more before them, only to count.
 */
#pragma once

#include "train/ranks.h"

#include <signal.h>

/* Make part `part` of `parts` of the batch: 1 and *b, which lives until the next call; 0: this part is empty; -1 with e set. */
typedef int step_pack(void *arg, size_t part, size_t parts, const struct batch **b, struct error *e);

/* The result of a step. */
struct step_result {
	uint64_t step; /* from 0 */
	struct totals totals; /* of all ranks */
	double loss; /* of the model (model_mean_loss); NAN: the batch had no target and changed nothing */
	double norm; /* of the gradient, before clipping; NAN: the same */
};

struct step_queue {
	/* set by the caller */
	struct model *model;
	const struct optim *optim;
	struct ranks *ranks;
	size_t parts; /* >= 1 */
	const volatile sig_atomic_t *stop; /* the signal that asks to stop, 0: none */
	step_pack *pack;
	void *arg; /* of pack */
	int queued; /* the device runs behind the host (ops.queued) */

	/* out, after a failure */
	struct status status; /* of all ranks */
	enum fault own; /* the fault that e describes; FAULT_NONE: another rank has the message */
	int lost; /* the device or the other ranks are lost: exit at once */

	/* private: the step that was run last, if it is not finished */
	int waiting, asked; /* asked: model_collect has its loss and norm */
	struct step_result last;
};

/*
 * Run a step. All ranks run the same steps; a rank whose stream gave no batch (batch 0) runs it too, so that all fail together.
 * 1: *r is the result of a step that has finished, this one or the one before; 0: no step has finished; -1: training must end. Even then
 * a step may still be in the queue.
 */
int step_run(struct step_queue *q, uint64_t step, int batch, struct step_result *r, struct error *e);
/* Wait for the step in the queue: 1 with its result in r, 0 if there is none, -1 with e set. */
int step_drain(struct step_queue *q, struct step_result *r, struct error *e);
/* The signal that asks all ranks to stop after this step, or 0; it is put into q->status. */
int step_signal(struct step_queue *q);
/* After the last step: have all ranks read a complete stream? broken: this rank has not. -1: a rank has not, or the ranks are lost. */
int step_close(struct step_queue *q, int broken, struct error *e);

/*
 * Several ranks train one model. Rank r reads shard r of the masked stream. Gradients, losses and counts are summed over all
 * ranks, so every rank takes the same step from the same sums, and N ranks of batch b do what one rank of batch N b does.
 *
 * Buffers of a model (the running averages of batch normalisation) become their mean over the ranks after every step. Each rank normalises
 * by its own cells, as PyTorch does without SyncBatchNorm: there N ranks of batch b are not one rank of batch N b.
 *
 * A fault that one rank meets alone (a stream that is cut short, a loss that is not finite), and a signal, are sent with the sums
 * of the step: all ranks learn of them in the same step and stop together.
 *
 * Where the devices of all ranks can add up their gradients themselves (ops.h: a group), these do not pass through the hosts. All else
 * does.
 *
 * Without MPI there is one rank, comm is NULL, and everything here is immediate. All ranks call the collective functions (all that
 * take an error) in the same order. Their failures are those of MPI: the other ranks are lost, and the caller must exit.
 */
#pragma once

#include "nn/model.h"
#include "train/comm.h"

/* Of two faults the larger counts. */
enum fault {
	FAULT_NONE,
	FAULT_STREAM, /* the stream gave no batch: the model is that of the finished steps */
	FAULT_STEP, /* a step failed: the model is not to be saved */
};

/* Sums over the batch of a step, or over several steps. Doubles only: they are reduced as an array. */
struct totals {
	double loss[LOSSES_MAX], count[LOSSES_MAX]; /* sum and count of each loss of the model */
	double tokens, cells;
};

/* How the ranks are. Ints only: they are reduced as an array. */
struct status {
	int fault; /* enum fault, the worst */
	int rank; /* the first that has a fault */
	int signal; /* that asked a rank to stop, or 0 */
};

struct ranks {
	int rank, size;
	struct comm *comm; /* NULL: one rank */
	struct totals totals; /* of all ranks, after ranks_end */
	struct status status; /* the same */
	double waited; /* seconds in ranks_end */
	int group; /* the devices add up the gradients: in a step, the host need not wait for its own */

	/* private */
	struct model *model; /* of the step under way */
	float *mine, *sum; /* [model_size] gradients and buffers: this rank's, all ranks' */
	float *buffers; /* of the last finished step */
	int sent, failed; /* gradients: were sent during the backward pass; could not be sent, see error */
	struct error error;
	struct totals own_totals;
	struct status own_status;
};

/* Take part in what comm joins; NULL: one rank. */
void ranks_init(struct ranks *r, struct comm *comm);
void ranks_release(struct ranks *r); /* closes comm; r is one rank then */

int ranks_share(struct ranks *r, void *data, size_t n, struct error *e); /* rank 0's bytes, to all */
int ranks_share_text(struct ranks *r, int from, char *text, size_t n, struct error *e); /* a few bytes of rank `from`, to all */
/* The same for the parameters and, where asked, the moments. Makes room for gradients, which the steps need. */
int ranks_share_model(struct ranks *r, struct model *m, int moments, struct error *e);
/*
 * Let the devices add up the gradients. 1: they will, and `what` says by which library. 0: they cannot, and `what` says why;
 * "" for CPUs and for one rank. -1.
 */
int ranks_join_devices(struct ranks *r, struct ops *o, struct error *what, struct error *e);
/* 1: all ranks have the same; 0: not; -1. */
int ranks_same(struct ranks *r, const char *text, struct error *e);
int ranks_same_weights(struct ranks *r, struct model *m, struct error *e);

/* Before a step: replace x[n] by its sum over all ranks, and wait for it. */
int ranks_sum(struct ranks *r, double *x, size_t n, struct error *e);

/*
 * A step: ranks_begin after the last forward pass and before its backward pass, which then sends each part of the gradient when it
 * is finished; ranks_end after it. Then the model's GRAD, r->totals and r->status are those of all ranks. All ranks call both,
 * whatever happened to them. m NULL: the ranks tell their status only.
 */
int ranks_begin(struct ranks *r, struct model *m, const struct totals *own, enum fault fault, int signal, struct error *e);
int ranks_end(struct ranks *r, struct error *e);

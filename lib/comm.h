/*
 * The ranks of one training: what sctrain asks of MPI, and the only file that knows it. Built without MPI, or never opened, a
 * struct comm pointer is NULL, which every function here takes for the only rank of one.
 *
 * comm_start_sum sets a sum over all ranks going and returns; a thread of this file's keeps it moving while the caller computes
 * (MPI itself moves nothing between calls). All ranks call the collective functions in the same order with the same lengths.
 *
 * Sums are MPI_SUM's: every rank gets the same bits, and the same bits again with the same number of ranks, lengths, MPI library
 * and its settings; with another number of ranks they differ by rounding.
 *
 * A rank that gives up alone calls comm_abort, which ends all of them. A rank that is killed is noticed by the launcher.
 */
#ifndef COMM_H
#define COMM_H

#include "error.h"

#include <stddef.h>

struct comm;

/* Join the others: MPI_Init. NULL with e set, also where this program was built without MPI. */
struct comm *comm_open(struct error *e);
/* Leave: MPI_Finalize, which waits for all ranks. */
void comm_close(struct comm *c);
/* End all ranks, this one with status. Does nothing for one rank alone. */
void comm_abort(struct comm *c, int status);

int comm_rank(const struct comm *c);    /* 0 .. size - 1 */
int comm_size(const struct comm *c);
int comm_local(const struct comm *c);   /* this rank's number among those of its machine */
const char *comm_version(void);         /* "Open MPI v4.1.4", or NULL when built without */

/* Collective and finished on return. Failures are the library's: a lost connection, no memory. */
int comm_copy(struct comm *c, void *data, size_t bytes, struct error *e);               /* rank 0's, to all */
int comm_same(struct comm *c, const char *text, struct error *e);       /* 0 when all ranks have the same text, 1 when not */
int comm_barrier(struct comm *c, struct error *e);

/* Start sum[i] = total of x[i] over all ranks (max: the largest). Both arrays belong to the call until comm_wait, and do not overlap. */
int comm_start_sum(struct comm *c, float *sum, const float *x, size_t n, struct error *e);
int comm_start_total(struct comm *c, double *sum, const double *x, size_t n, struct error *e);
int comm_start_max(struct comm *c, int *max, const int *x, size_t n, struct error *e);
/* Wait for all that was started. */
int comm_wait(struct comm *c, struct error *e);

#endif

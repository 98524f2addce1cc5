/*
 * Communication between the ranks of one training. comm.c is the only file that calls MPI. Every function takes a NULL pointer for
 * one rank alone; so it is in a program built without MPI, and in one that never calls comm_open.
 *
 * comm_start_sum starts a sum over all ranks and returns. MPI makes progress during its calls only, so a thread of comm.c calls it
 * while the caller computes. All ranks call the collective functions in the same order with the same lengths.
 *
 * Every rank gets the same bits of a sum. A second run gets them too if the number of ranks, the lengths, the MPI library and its
 * settings are the same. With another number of ranks the sums differ by rounding.
 *
 * A rank that gives up alone calls comm_abort, which ends all ranks. If a rank is killed, the launcher ends the others.
 */
#pragma once

#include "base/error.h"

struct comm;

/* Join the other ranks (MPI_Init). NULL with e set; a program built without MPI always fails. */
struct comm *comm_open(struct error *e);
/* Leave (MPI_Finalize). It waits for all ranks. */
void comm_close(struct comm *c);
/* End all ranks, this one with status. Does nothing for one rank alone. */
void comm_abort(struct comm *c, int status);

int comm_rank(const struct comm *c); /* 0 .. size - 1 */
int comm_size(const struct comm *c);
int comm_local(const struct comm *c); /* this rank's number among those of its machine */
const char *comm_version(void); /* "Open MPI v4.1.4", or NULL when built without */

/* Collective, and finished on return. They fail if MPI does: a connection is lost, or memory is out. */
int comm_copy(struct comm *c, void *data, size_t bytes, struct error *e); /* rank 0's, to all */
int comm_same(struct comm *c, const char *text, struct error *e); /* 0 when all ranks have the same text, 1 when not */
int comm_barrier(struct comm *c, struct error *e);

/* Start sum[i] = total of x[i] over all ranks (max: the largest). The arrays do not overlap, and stay untouched until comm_wait. */
int comm_start_sum(struct comm *c, float *sum, const float *x, size_t n, struct error *e);
int comm_start_total(struct comm *c, double *sum, const double *x, size_t n, struct error *e);
int comm_start_max(struct comm *c, int *max, const int *x, size_t n, struct error *e);
/* While comm_wait waits, it calls stalled(arg, seconds, ranks) about once a second, from the first second on. `ranks` names those that have
 * not come to this wait, such as "rank 3" or "ranks 3, 5"; rank 0 learns them after `after` seconds, before and elsewhere it is "". If
 * `stalled` returns nonzero, comm_wait fails. */
void comm_watch(struct comm *c, double after, int (*stalled)(void *arg, double seconds, const char *ranks), void *arg);
/* Wait for all that was started. */
int comm_wait(struct comm *c, struct error *e);

/*
 * Several ranks train one model. Rank r reads shard r of the masked stream; gradients, losses and counts are summed over all
 * ranks, so that every rank takes the same step from the same sums, and N ranks of batch b do what one of batch N b does.
 * Rank 0 alone reads and writes the model directory.
 *
 * Whatever a rank meets on its own, a stream that breaks off, a loss that is no number, a signal, travels with the sums of the
 * step: all ranks learn of it in the same step and stop together. What cannot wait for that ends the rank, and with it all.
 */
#include "sctrain.h"

#include "comm.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static struct comm *joined;     /* until ranks_leave */

/* An exit that the other ranks do not know of would leave them waiting. */
static void abort_ranks(void)
{
	comm_abort(joined, 1);
}

static void must(int bad, const struct error *e)
{
	if (bad)
		die("%s", e->msg);
}

/* mpirun binds a rank to one core unless it is told otherwise. */
static void check_cores(const struct cli *cli)
{
	cpu_set_t set;
	long all = sysconf(_SC_NPROCESSORS_ONLN);
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < cli->threads && CPU_COUNT(&set) < all)
		warn("%lld threads are bound to %d of %ld cores: mpirun --bind-to none, or srun --cpus-per-task", cli->threads,
		     CPU_COUNT(&set), all);
}

/* The GPU of a rank, where --device names none: its number on this machine, among those that are visible. */
static const char *device_of_rank(const char *spec, int local)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *comma = strchr(spec, ',');
	int n = 1, head = (int)(comma ? comma - spec : (ptrdiff_t)strlen(spec));
	if (strncmp(spec, "cpu", 3) == 0 || strchr(spec, ':'))
		return spec;
	for (const char *p = visible; p && *p; p++)
		n += *p == ',';
	return xasprintf("%.*s:%d%s", head, spec, visible && *visible ? local % n : local, comma ? comma : "");
}

void ranks_join(struct ranks *r, struct cli *cli)
{
	struct error e;
	r->comm = comm_open(&e);
	if (!r->comm)
		die("--mpi: %s", e.msg);
	r->rank = comm_rank(r->comm);
	r->size = comm_size(r->comm);
	joined = r->comm;
	atexit(abort_ranks);
	if (r->size == 1)
		return;
	cli_rank(cli, r->rank);
	cli->device = device_of_rank(cli->device, comm_local(r->comm));
	check_cores(cli);
}

void ranks_check_shard(const struct ranks *r, const struct loader *l, const char *name)
{
	unsigned long long shard = l->shard, shards = l->shards;
	if (!r->comm && shards > 1)
		die("%s: shard %llu of %llu: several shards are trained on by as many ranks, with --mpi", name, shard, shards);
	if (r->comm && r->size == 1 && shards > 1)
		die("%s: shard %llu of %llu, but MPI knows of this rank only: was it started by mpirun, or by srun --mpi=pmix?", name, shard,
		    shards);
	if (r->comm && (shard != (unsigned)r->rank || shards != (unsigned)r->size))
		die("%s: shard %llu of %llu, but this is rank %d of %d: maskgen --shard auto, beside it under the same mpirun or srun", name,
		    shard, shards, r->rank, r->size);
}

void ranks_share(struct ranks *r, void *data, size_t n)
{
	struct error e;
	must(comm_copy(r->comm, data, n, &e), &e);
}

void ranks_share_model(struct ranks *r, struct model *m, int moments)
{
	struct error e;
	if (!r->comm)
		return;
	size_t n = model_size(m);
	r->mine = xcalloc(n, sizeof *r->mine);
	r->sum = xcalloc(n, sizeof *r->sum);
	for (int w = 0; w < 4; w++) {
		if (w == GRAD || (w != PARAM && !moments))
			continue;
		model_read_all(m, (enum which)w, r->mine);
		must(comm_copy(r->comm, r->mine, n * sizeof *r->mine, &e), &e);
		model_write_all(m, (enum which)w, r->mine);
	}
}

int ranks_same(struct ranks *r, const char *text)
{
	struct error e;
	int differ = comm_same(r->comm, text, &e);
	must(differ < 0, &e);
	return !differ;
}

int ranks_same_weights(struct ranks *r, struct model *m)
{
	char hex[33];
	if (!r->comm)
		return 1;
	model_read_all(m, PARAM, r->mine);
	XXH128_hash_t d = XXH3_128bits(r->mine, model_size(m) * sizeof *r->mine);
	snprintf(hex, sizeof hex, "%016llx%016llx", (unsigned long long)d.high64, (unsigned long long)d.low64);
	return ranks_same(r, hex);
}

/* ---- a step ---- */

static void send_part(void *arg, size_t from, size_t to)
{
	struct ranks *r = arg;
	struct error e;
	model_read_part(r->model, GRAD, from, to, r->mine + from);
	must(comm_start_sum(r->comm, r->sum + from, r->mine + from, to - from, &e), &e);
	r->sent = 1;
}

void ranks_begin(struct ranks *r, struct model *m, const struct tally *here, enum fault fault, int signal)
{
	struct error e;
	r->here = *here;
	r->total = *here;
	r->news = (struct news){.fault = (int)fault, .signal = signal};
	if (!r->comm)
		return;
	r->model = m;
	r->sent = 0;
	r->told = (struct news){.fault = (int)fault, .who = fault ? r->size - r->rank : 0, .signal = signal};
	must(comm_start_total(r->comm, (double *)&r->total, (const double *)&r->here, sizeof r->here / sizeof(double), &e) ||
	     comm_start_max(r->comm, (int *)&r->news, (const int *)&r->told, sizeof r->told / sizeof(int), &e), &e);
	if (m)
		model_on_grad(m, send_part, r);
}

void ranks_end(struct ranks *r)
{
	struct error e;
	if (!r->comm)
		return;
	if (r->model && !r->sent) {
		model_on_grad(r->model, NULL, NULL);
		model_grad_parts(r->model, send_part, r);
	}
	double start = omp_get_wtime();
	must(comm_wait(r->comm, &e), &e);
	r->waited += omp_get_wtime() - start;
	if (r->model)
		model_write_all(r->model, GRAD, r->sum);
	r->news.who = r->size - r->news.who;
}

void ranks_leave(struct ranks *r)
{
	struct error e;
	must(comm_barrier(r->comm, &e), &e);
	joined = NULL;
	comm_close(r->comm);
	free(r->mine);
	free(r->sum);
	*r = (struct ranks){.size = 1};
}

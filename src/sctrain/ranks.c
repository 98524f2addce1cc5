/*
 * --mpi: sctrain as one of several ranks (train/ranks.h). Rank 0 alone reads and writes the model directory. A fault that cannot
 * wait until the end of a step ends this rank and all others.
 */
#include "sctrain.h"
#include "cli.h"

#include "base/json.h"

#include <sched.h>
#include <unistd.h>

/* What a rank does while it waits for others. */
struct ranks_watch {
	double seconds; /* after which it says so; it gives up a sixth of these after a signal */
	const volatile sig_atomic_t *stop; /* the signal, or 0 */
};

static struct comm *joined; /* until train_leave */

/* Without this the other ranks would wait for a rank that has exited. */
static void abort_ranks(void)
{
	comm_abort(joined, 1);
}

/* By default mpirun binds a rank to one core. */
static void check_cores(const struct cli *cli)
{
	cpu_set_t set;
	long all = sysconf(_SC_NPROCESSORS_ONLN);
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < cli->threads && CPU_COUNT(&set) < all)
		warn("%lld threads are bound to %d of %ld cores: use mpirun --bind-to none, or srun --cpus-per-task", cli->threads,
			CPU_COUNT(&set), all);
}

/* The GPU of a rank if --device has no number: the rank's number on this machine, modulo the number of
 * GPUs in CUDA_VISIBLE_DEVICES if that is set. */
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

static char *late; /* what to say when MPI has not started in time */

static void start_late(int signal)
{
	(void)signal;
	if (write(STDERR_FILENO, late, strlen(late)) < 0)
		_exit(1); /* nobody reads it */
	_exit(1);
}

/* MPI waits for ever in its start if a message between it and the launcher was lost. */
static struct comm *start_mpi(const char *program, struct error *e)
{
	const char *text = getenv("CORRMASK_MPI_SECONDS");
	int seconds = text ? atoi(text) : 300;
	late = xasprintf("%s: --mpi: MPI did not start within %d seconds (CORRMASK_MPI_SECONDS)\n", program, seconds);
	signal(SIGALRM, start_late);
	alarm(seconds > 0 ? (unsigned)seconds : 0);
	/* Open MPI prints a page and exits; this is the line below it */
	const int slurm = getenv("SLURM_STEP_ID") && !getenv("PMIX_RANK") && !getenv("OMPI_COMM_WORLD_RANK");
	cli_library(slurm ? "--mpi: MPI ended the program at startup: Debian's Open MPI needs srun --mpi=pmix, or mpirun"
			  : "--mpi: MPI ended the program at startup");
	struct comm *c = comm_open(e);
	cli_library(NULL);
	alarm(0);
	signal(SIGALRM, SIG_DFL);
	free(late);
	return c;
}

void train_join(struct ranks *r, struct cli *cli)
{
	joined = start_mpi(cli->name, &failure);
	if (!joined)
		die("--mpi: %s", failure.msg);
	ranks_init(r, joined);
	atexit(abort_ranks);
	if (r->size == 1)
		return;
	cli_rank(cli, r->rank);
	cli->device = device_of_rank(cli->device, comm_local(joined));
	check_cores(cli);
}

/* A step waits for others. */
static int waits(void *arg, double seconds, const char *ranks)
{
	static double said, stopped; /* at these seconds of this wait; 0: not yet */
	const struct ranks_watch *w = arg;
	if (seconds < said || seconds < stopped)
		said = stopped = 0;
	if (seconds - said >= w->seconds) {
		warn("waiting for %s for %.0f s: are they alive, and is the network?", *ranks ? ranks : "the other ranks", seconds);
		said = seconds;
	}
	if (*w->stop && !(stopped > 0))
		stopped = seconds;
	return stopped > 0 && seconds - stopped >= w->seconds / 6;
}

void train_watch(struct ranks *r, const volatile sig_atomic_t *stop)
{
	static struct ranks_watch w;
	const char *text = getenv("CORRMASK_STALL_SECONDS");
	double seconds = text ? atof(text) : 60;
	w = (struct ranks_watch){.seconds = seconds > 0 ? seconds : 60, .stop = stop};
	comm_watch(r->comm, w.seconds, waits, &w);
}

void train_leave(struct ranks *r)
{
	must(comm_barrier(r->comm, &failure));
	joined = NULL;
	ranks_release(r);
}

static cJSON *value_of(const char *text)
{
	cJSON *j = cJSON_Parse(text);
	return j ? j : cJSON_CreateString(text);
}

static void describe_difference(const char *mine, const char *theirs, int rank, char *text, size_t n)
{
	RELEASED(json_free_at) cJSON *x = value_of(theirs), *y = value_of(mine);
	FREED char *here = xasprintf("on rank %d", rank), *found = json_differences(x, y, "on rank 0", here, 1);
	snprintf(text, n, "%s", found ? found : "");
}

void train_check_same(struct ranks *r, const char *what, const char *text)
{
	char message[384] = "";
	int same = ranks_same(r, text, &failure), first = 0;
	size_t n = strlen(text) + 1;
	must(same < 0);
	if (same)
		return;
	must(ranks_share(r, &n, sizeof n, &failure));
	char *theirs = xcalloc(n, 1); /* those of rank 0 */
	double *differs = xcalloc((size_t)r->size, sizeof *differs);
	if (!r->rank)
		memcpy(theirs, text, n);
	must(ranks_share(r, theirs, n, &failure));
	differs[r->rank] = strcmp(text, theirs) != 0;
	if (differs[r->rank] > 0)
		describe_difference(text, theirs, r->rank, message, sizeof message);
	must(ranks_sum(r, differs, (size_t)r->size, &failure));
	while (first + 1 < r->size && !(differs[first] > 0))
		first++;
	must(ranks_share_text(r, first, message, sizeof message, &failure));
	die("--mpi: the ranks differ in %s: %s", what, message);
}

void train_check_shard(const struct ranks *r, const struct masked_info *m, const char *name)
{
	unsigned long long shard = m->shard, shards = m->shards;
	if (!r->comm && shards > 1)
		die("%s: shard %llu of %llu: training on several shards needs --mpi, and one rank for each", name, shard, shards);
	if (r->comm && r->size == 1 && shards > 1)
		die("%s: shard %llu of %llu, but MPI knows of this rank only: was it started by mpirun, or by srun --mpi=pmix?", name,
			shard, shards);
	if (r->comm && (shard != (unsigned)r->rank || shards != (unsigned)r->size))
		die("%s: shard %llu of %llu, but this is rank %d of %d: run maskgen --shard auto and sctrain under the same mpirun or srun",
			name, shard, shards, r->rank, r->size);
}

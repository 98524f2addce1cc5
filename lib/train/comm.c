#include "train/comm.h"

#include "base/clock.h"

#ifdef WITH_MPI

#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <xxhash.h>

#define PIECE ((size_t)1 << 20) /* elements of one reduction: the pieces of a large sum move through the ranks one after another */
#define NAP 50000 /* ns between two tests of the running requests */
#define ABORT_SECONDS 5
#define EAGER 2000 /* tests without a nap at the start of a wait */

/* All calls of MPI are made with the lock held, so MPI_THREAD_SERIALIZED is enough. */
struct comm {
	int rank, size, local;
	pthread_t mover;
	pthread_mutex_t lock;
	pthread_cond_t work;
	int moving, quit; /* the mover's orders */
	MPI_Request *request; /* [n] running */
	size_t n, cap;

	/* comm_watch: a wait that takes long */
	double after; /* seconds; 0: nobody watches */
	int (*stalled)(void *arg, double seconds, const char *ranks);
	void *arg;
	int wait; /* number of this wait, the same in all ranks */
	int note; /* the message that tells rank 0 of a wait, and which wait it was */
	int *came; /* rank 0: [size] the last wait of each rank that it was told of */
};

static int failed(struct error *e, const char *what, int code)
{
	char text[MPI_MAX_ERROR_STRING];
	int n = 0;
	if (MPI_Error_string(code, text, &n))
		n = 0;
	return error_set(e, "%s: %.*s", what, n, text);
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
}

/* Errors are left to comm_wait, which sees the same request. */
static void *mover(void *arg)
{
	struct comm *c = arg;
	pthread_mutex_lock(&c->lock);
	while (!c->quit) {
		if (!c->moving) {
			pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
		int done = 0;
		if (MPI_Testall((int)c->n, c->request, &done, MPI_STATUSES_IGNORE) || done)
			c->moving = 0;
		pthread_mutex_unlock(&c->lock);
		nap();
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct comm *comm_open(struct error *e)
{
	int level, bad;
	MPI_Comm near;
	/* the ring: 41 MB on 2, 3, 4 ranks of one machine took 0.69, 0.62, 0.44 of the time of what Open MPI 4.1 chooses by itself */
	setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "1", 0);
	if ((bad = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level))) {
		failed(e, "MPI_Init_thread", bad);
		return NULL;
	}
	if (level < MPI_THREAD_SERIALIZED) {
		error_set(e, "this MPI library cannot be called from threads (MPI_THREAD_SERIALIZED)");
		return NULL;
	}
	struct comm *c = xcalloc(1, sizeof *c);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &c->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &c->size);
	if ((bad = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &near))) {
		failed(e, "MPI_Comm_split_type", bad);
		free(c);
		return NULL;
	}
	MPI_Comm_rank(near, &c->local);
	MPI_Comm_free(&near);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	if (pthread_create(&c->mover, NULL, mover, c)) {
		error_set(e, "cannot start a thread");
		free(c);
		return NULL;
	}
	return c;
}

void comm_close(struct comm *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->quit = 1;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->mover, NULL);
	MPI_Finalize();
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free_all(c->request, c->came, c);
}

static int abort_status;

static void give_up(int signal)
{
	(void)signal;
	_exit(abort_status);
}

void comm_abort(struct comm *c, int status)
{
	if (!c || c->size == 1)
		return;
	/* MPI_Abort waits for ever if it cannot reach mpirun, which ends the job as well when this process ends */
	abort_status = status;
	signal(SIGALRM, give_up);
	alarm(ABORT_SECONDS);
	/* MPI itself may be what exits, on the thread that holds the lock */
	struct timespec limit;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec++;
	if (pthread_mutex_timedlock(&c->lock, &limit))
		_exit(status);
	MPI_Abort(MPI_COMM_WORLD, status);
}

int comm_rank(const struct comm *c)
{
	return c ? c->rank : 0;
}

int comm_size(const struct comm *c)
{
	return c ? c->size : 1;
}

int comm_local(const struct comm *c)
{
	return c ? c->local : 0;
}

const char *comm_version(void)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int n = 0;
	if (MPI_Get_library_version(text, &n))
		return "MPI";
	text[strcspn(text, ",")] = '\0'; /* "Open MPI v4.1.4, package: ..." */
	return text;
}

/* ---- waiting ---- */

enum { HERE = 1 }; /* tag of the messages to rank 0: this rank is in wait N */

void comm_watch(struct comm *c, double after, int (*stalled)(void *arg, double seconds, const char *ranks), void *arg)
{
	if (!c)
		return;
	c->after = after;
	c->stalled = stalled;
	c->arg = arg;
	c->came = xcalloc((size_t)c->size, sizeof *c->came);
}

/* In a long wait each rank tells rank 0 that it is there. No message is sent otherwise. */
static void tell_and_hear(struct comm *c, double seconds)
{
	if (c->rank && seconds > c->after / 2 && c->note != c->wait) {
		MPI_Request sent;
		c->note = c->wait;
		if (MPI_Isend(&c->note, 1, MPI_INT, 0, HERE, MPI_COMM_WORLD, &sent) == 0)
			MPI_Request_free(&sent); /* four bytes leave at once; if they do not, rank 0 is right to miss this rank */
	}
	for (int there = 1; !c->rank && there;) {
		MPI_Status s;
		int wait;
		if (MPI_Iprobe(MPI_ANY_SOURCE, HERE, MPI_COMM_WORLD, &there, &s) || !there)
			return;
		if (MPI_Recv(&wait, 1, MPI_INT, s.MPI_SOURCE, HERE, MPI_COMM_WORLD, &s))
			return;
		c->came[s.MPI_SOURCE] = wait;
	}
}

/* "rank 3", "ranks 3, 5 and 9 more": those that rank 0 has not heard of in this wait. */
static void name_missing(const struct comm *c, char *text, size_t size)
{
	enum { MOST = 8 };
	size_t n = 0, at = 0;
	for (int r = 1; r < c->size; r++)
		n += c->came[r] != c->wait;
	at += (size_t)snprintf(text, size, n == 1 ? "rank" : "ranks");
	for (int r = 1, named = 0; r < c->size && named < MOST; r++)
		if (c->came[r] != c->wait)
			at += (size_t)snprintf(text + at, size - at, "%s %d", named++ ? "," : "", r);
	if (n > MOST)
		snprintf(text + at, size - at, " and %zu more", n - MOST);
	if (!n)
		*text = 0;
}

/* A wait has lasted for these seconds: is it to be given up? */
static int give_up_wait(struct comm *c, double seconds)
{
	char ranks[160] = "";
	tell_and_hear(c, seconds);
	if (!c->rank && seconds >= c->after)
		name_missing(c, ranks, sizeof ranks);
	return c->stalled(c->arg, seconds, ranks);
}

/* Waits with naps: another rank may be minutes behind, and other threads can use this core. */
int comm_wait(struct comm *c, struct error *e)
{
	int bad = 0, done = 0, over = 0;
	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	c->moving = 0;
	c->wait = (c->wait + 1) & INT_MAX;
	double start = 0, look_again = 1;
	for (unsigned look = 0; !bad && !done && !over; look++) {
		bad = MPI_Testall((int)c->n, c->request, &done, MPI_STATUSES_IGNORE);
		if (done || look < EAGER)
			continue;
		if (look == EAGER)
			start = clock_seconds();
		double seconds = clock_seconds() - start;
		if (c->stalled && seconds >= look_again) {
			over = give_up_wait(c, seconds);
			look_again = seconds + 1;
		}
		nap();
	}
	c->n = over ? c->n : 0;
	pthread_mutex_unlock(&c->lock);
	if (over)
		return error_set(e, "gave up waiting for the other ranks");
	return bad ? failed(e, "lost the other ranks", bad) : 0;
}

/* Room for one more request, under the lock. */
static MPI_Request *next_request(struct comm *c)
{
	grow(c->request, c->cap, c->n + 1);
	return &c->request[c->n++];
}

static int comm_begin(struct comm *c, void *to, const void *from, size_t n, size_t size, MPI_Datatype type, MPI_Op op, struct error *e)
{
	int bad = 0;
	if (!c) {
		memcpy(to, from, n * size);
		return 0;
	}
	pthread_mutex_lock(&c->lock);
	for (size_t at = 0; at < n && !bad; at += PIECE) {
		size_t k = n - at < PIECE ? n - at : PIECE;
		bad = MPI_Iallreduce(
			(const char *)from + at * size, (char *)to + at * size, (int)k, type, op, MPI_COMM_WORLD, next_request(c));
	}
	c->moving = 1;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
	return bad ? failed(e, "MPI_Iallreduce", bad) : 0;
}

int comm_start_sum(struct comm *c, float *sum, const float *x, size_t n, struct error *e)
{
	return comm_begin(c, sum, x, n, sizeof *x, MPI_FLOAT, MPI_SUM, e);
}

int comm_start_total(struct comm *c, double *sum, const double *x, size_t n, struct error *e)
{
	return comm_begin(c, sum, x, n, sizeof *x, MPI_DOUBLE, MPI_SUM, e);
}

int comm_start_max(struct comm *c, int *max, const int *x, size_t n, struct error *e)
{
	return comm_begin(c, max, x, n, sizeof *x, MPI_INT, MPI_MAX, e);
}

int comm_copy(struct comm *c, void *data, size_t bytes, struct error *e)
{
	int bad = 0;
	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	for (size_t at = 0; at < bytes && !bad; at += 4 * PIECE) {
		size_t k = bytes - at < 4 * PIECE ? bytes - at : 4 * PIECE;
		bad = MPI_Ibcast((char *)data + at, (int)k, MPI_BYTE, 0, MPI_COMM_WORLD, next_request(c));
	}
	pthread_mutex_unlock(&c->lock);
	return bad ? failed(e, "MPI_Ibcast", bad) : comm_wait(c, e);
}

int comm_same(struct comm *c, const char *text, struct error *e)
{
	uint32_t h = XXH32(text, strlen(text), 0);
	int mine[4] = {(int)(h >> 16), -(int)(h >> 16), (int)(h & 0xffff), -(int)(h & 0xffff)}, max[4];
	if (comm_start_max(c, max, mine, 4, e) || comm_wait(c, e))
		return -1;
	return max[0] != -max[1] || max[2] != -max[3];
}

int comm_barrier(struct comm *c, struct error *e)
{
	int bad;
	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	bad = MPI_Ibarrier(MPI_COMM_WORLD, next_request(c));
	pthread_mutex_unlock(&c->lock);
	return bad ? failed(e, "MPI_Ibarrier", bad) : comm_wait(c, e);
}

#else

struct comm *comm_open(struct error *e)
{
	error_set(e, "this program was built without MPI (make MPI=1)");
	return NULL;
}

void comm_close(struct comm *c)
{
}

void comm_abort(struct comm *c, int status)
{
}

void comm_watch(struct comm *c, double after, int (*stalled)(void *arg, double seconds, const char *ranks), void *arg)
{
}

int comm_rank(const struct comm *c)
{
	return 0;
}

int comm_size(const struct comm *c)
{
	return 1;
}

int comm_local(const struct comm *c)
{
	return 0;
}

const char *comm_version(void)
{
	return NULL;
}

int comm_copy(struct comm *c, void *data, size_t bytes, struct error *e)
{
	return 0;
}

int comm_same(struct comm *c, const char *text, struct error *e)
{
	return 0;
}

int comm_barrier(struct comm *c, struct error *e)
{
	return 0;
}

int comm_start_sum(struct comm *c, float *sum, const float *x, size_t n, struct error *e)
{
	memcpy(sum, x, n * sizeof *x);
	return 0;
}

int comm_start_total(struct comm *c, double *sum, const double *x, size_t n, struct error *e)
{
	memcpy(sum, x, n * sizeof *x);
	return 0;
}

int comm_start_max(struct comm *c, int *max, const int *x, size_t n, struct error *e)
{
	memcpy(max, x, n * sizeof *x);
	return 0;
}

int comm_wait(struct comm *c, struct error *e)
{
	return 0;
}

#endif

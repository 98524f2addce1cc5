#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	int threads;         /* started, without the caller's */
	int wanted;          /* how many of them may join this loop */
	int joined, working; /* how many have joined it; how many are still working */
	size_t n;
	atomic_size_t next;
	void (*work)(void *, size_t, int);
	void *arg;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .start = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void run(int thread)
{
	size_t i;
	while ((i = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed)) < pool.n)
		pool.work(pool.arg, i, thread);
}

static void *worker(void *unused)
{
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		while (pool.joined == pool.wanted)
			pthread_cond_wait(&pool.start, &pool.lock);
		int thread = ++pool.joined;
		pool.working++;
		pthread_mutex_unlock(&pool.lock);
		run(thread);
		pthread_mutex_lock(&pool.lock);
		if (--pool.working == 0)
			pthread_cond_signal(&pool.done);
	}
	return unused;
}

void pool_for(int threads, size_t n, void (*work)(void *arg, size_t i, int thread), void *arg)
{
	int helpers = n < (size_t)threads ? (int)n - 1 : threads - 1;
	if (helpers <= 0) {
		for (size_t i = 0; i < n; i++)
			work(arg, i, 0);
		return;
	}
	pthread_mutex_lock(&pool.lock);
	while (pool.threads < helpers) {
		pthread_t t;
		/* not an error: the other threads do the work */
		if (pthread_create(&t, NULL, worker, NULL))
			break;
		pthread_detach(t);
		pool.threads++;
	}
	pool.work = work;
	pool.arg = arg;
	pool.n = n;
	atomic_store(&pool.next, 0);
	pool.joined = 0;
	pool.wanted = helpers < pool.threads ? helpers : pool.threads;
	pthread_cond_broadcast(&pool.start);
	pthread_mutex_unlock(&pool.lock);
	run(0);
	pthread_mutex_lock(&pool.lock);
	pool.joined = pool.wanted; /* threads that have not joined yet need not */
	while (pool.working)
		pthread_cond_wait(&pool.done, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

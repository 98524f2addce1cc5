/* Training steps: those that run ahead are the same steps; what a fault leaves behind. */
#include "train/step.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CELLS = 5, LENGTH = 6, STEPS = 6, NO_MASK = 3 /* this step has no masked position */, NO_LABEL = 1 /* and this one no class */ };

/*
 * Ranks without MPI: comm.h for rank 0 of two. The other rank has the same gradients and sums, and the status that the test gives it.
 */
struct comm {
	int fault, signal, lost;
};

int comm_rank(const struct comm *c)
{
	return 0;
}

int comm_size(const struct comm *c)
{
	return c ? 2 : 1;
}

void comm_close(struct comm *c)
{
}

int comm_copy(struct comm *c, void *data, size_t bytes, struct error *e)
{
	return 0;
}

int comm_same(struct comm *c, const char *text, struct error *e)
{
	return 0;
}

int comm_start_sum(struct comm *c, float *sum, const float *x, size_t n, struct error *e)
{
	for (size_t i = 0; i < n; i++)
		sum[i] = 2 * x[i];
	return 0;
}

int comm_start_total(struct comm *c, double *sum, const double *x, size_t n, struct error *e)
{
	for (size_t i = 0; i < n; i++)
		sum[i] = 2 * x[i];
	return 0;
}

int comm_start_max(struct comm *c, int *max, const int *x, size_t n, struct error *e)
{
	const int other[] = {c->fault, c->fault ? 1 : 0, c->signal}; /* struct status, its rank counted from the last */
	for (size_t i = 0; i < n; i++)
		max[i] = x[i] > other[i] ? x[i] : other[i];
	return 0;
}

int comm_wait(struct comm *c, struct error *e)
{
	return c->lost ? error_set(e, "the other rank is lost") : 0;
}

static struct ops *cpu;
static volatile sig_atomic_t stop;

/* What a model predicts: masked tokens; these and classes of cells; these and sets of classes; sets alone. The mean of sets is over all cells. */
enum heads { MLM = 1, MLM_CLASS = 2, MLM_SET, SET };
static const uint32_t sets[] = {1 | 2, 2, 4};

static struct model *make(enum heads heads)
{
	static const struct head_spec head[] = {{.kind = &head_mlm}, {.kind = &head_cells, .name = "type", .weight = 0.3, .nlabel = 3},
		{.kind = &head_mlm},
		{.kind = &head_hce, .name = "type", .weight = 0.3, .nlabel = 3, .nset = 3, .set = sets, .over_all = 1}};
	struct error e;
	struct model_config c;
	model_preset(&c, "tiny", &e);
	c.vocab_size = 50;
	c.hidden_size = 8;
	c.intermediate_size = 12;
	c.max_position_embeddings = LENGTH;
	return model_new(&c,
		head +
			(heads == SET                      ? 3
					: heads == MLM_SET ? 2
							   : 0),
		heads == SET               ? 1
			: heads == MLM_SET ? 2
					   : heads,
		cpu, 1, &e);
}

/* One training. The batch of a step follows from its number. */
struct fixture {
	enum heads heads;
	struct model *m;
	struct optim optim;
	struct ranks ranks;
	struct step_queue q;
	uint64_t step;
	int broken; /* pack fails */
	int calls; /* of pack */
	uint32_t offset[CELLS + 1], id[CELLS * LENGTH], mask[CELLS], target[CELLS], label[CELLS], key[CELLS];
	struct batch b;
};

static int pack(void *arg, size_t part, size_t parts, const struct batch **b, struct error *e)
{
	struct fixture *f = arg;
	size_t from = CELLS * part / parts, to = CELLS * (part + 1) / parts, n = to - from;
	f->calls++;
	if (f->broken)
		return error_set(e, "no batch");
	for (size_t i = 0; i < n; i++) {
		uint32_t cell = (uint32_t)(from + i), k = cell * 7 + (uint32_t)f->step * 11;
		f->offset[i + 1] = (uint32_t)(i + 1) * LENGTH;
		for (uint32_t t = 0; t < LENGTH; t++)
			f->id[i * LENGTH + t] = (k + t * t) % 50;
		f->mask[i] = (uint32_t)i * LENGTH + k % LENGTH;
		f->target[i] = k % 50;
		int known = f->heads > MLM_CLASS ? cell % 4 == 0 : cell != 1; /* of sets two alone: most parts have none */
		f->label[i] = !known || f->step == NO_LABEL ? ROW_NONE : cell % 3;
		f->key[i] = cell;
	}
	f->b = (struct batch){.ncell = n,
		.offset = f->offset,
		.id = f->id,
		.key = f->key,
		.goal = {{.n = f->step == NO_MASK ? 0 : n, .row = f->mask, .target = f->target}, {.target = f->label}}};
	if (f->heads == SET)
		f->b.goal[0] = f->b.goal[1];
	*b = &f->b;
	return n != 0;
}

static void setup_heads(struct fixture *f, int queued, size_t parts, enum heads heads)
{
	*f = (struct fixture){.heads = heads, .m = make(heads)};
	optim_init(&f->optim);
	f->optim.schedule = SCHEDULE_CONSTANT;
	ranks_init(&f->ranks, NULL);
	stop = 0;
	f->q = (struct step_queue){.model = f->m,
		.optim = &f->optim,
		.ranks = &f->ranks,
		.parts = parts,
		.stop = &stop,
		.pack = pack,
		.arg = f,
		.queued = queued};
}

static void setup(struct fixture *f, int queued, size_t parts)
{
	setup_heads(f, queued, parts, 1);
}

static void teardown(struct fixture *f)
{
	ranks_release(&f->ranks);
	model_free(f->m);
}

static int run(struct fixture *f, uint64_t step, struct step_result *r, struct error *e)
{
	f->step = step;
	return step_run(&f->q, step, 1, r, e);
}

/* All steps; their results by number. */
static void train(struct fixture *f, struct step_result *all)
{
	struct error e;
	for (uint64_t step = 0; step < STEPS; step++) {
		struct step_result r;
		int got = run(f, step, &r, &e), late = f->q.queued;
		assert_int_equal(got, !late || step);
		if (got) {
			assert_int_equal(r.step, step - (uint64_t)late);
			all[r.step] = r;
		}
	}
	assert_int_equal(step_drain(&f->q, &all[STEPS - 1], &e), f->q.queued);
	assert_int_equal(step_drain(&f->q, &all[STEPS - 1], &e), 0);
	assert_int_equal(step_close(&f->q, 0, &e), 0);
}

static real *weights(struct model *m)
{
	real *w = xcalloc(model_size(m, PARAM), sizeof *w);
	model_read_all(m, PARAM, w);
	return w;
}

static void ahead(void **state)
{
	struct fixture a, b;
	struct step_result x[STEPS], y[STEPS];
	setup(&a, 0, 1);
	setup(&b, 1, 1);
	train(&a, x);
	train(&b, y);
	for (size_t i = 0; i < STEPS; i++) {
		assert_memory_equal(&x[i].totals, &y[i].totals, sizeof x[i].totals);
		assert_true(x[i].totals.cells == CELLS && x[i].totals.tokens == CELLS * LENGTH);
		if (i == NO_MASK)
			assert_true(isnan(x[i].norm) && isnan(y[i].norm) && x[i].totals.count[0] == 0);
		else
			assert_true(x[i].norm > 0 && x[i].norm == y[i].norm && x[i].totals.count[0] == CELLS && x[i].totals.loss[0] > 0);
	}
	real *v = weights(a.m), *w = weights(b.m);
	assert_memory_equal(v, w, model_size(a.m, PARAM) * sizeof *v);
	free(v);
	free(w);
	teardown(&a);
	teardown(&b);
}

/* More parts than cells: some are empty. */
static void parts(void **state)
{
	struct fixture a, b;
	struct step_result x[STEPS], y[STEPS];
	setup(&a, 0, 1);
	setup(&b, 1, 7);
	train(&a, x);
	train(&b, y);
	for (size_t i = 0; i < STEPS; i++) {
		assert_true(x[i].totals.cells == y[i].totals.cells && x[i].totals.count[0] == y[i].totals.count[0]);
		assert_true(fabs(x[i].totals.loss[0] - y[i].totals.loss[0]) <= 1e-5 * x[i].totals.loss[0]);
	}
	teardown(&a);
	teardown(&b);
}

static void no_label(void **state)
{
	struct error e;
	struct fixture f;
	struct step_result r;
	setup(&f, 0, 1);
	real *v = weights(f.m);
	assert_int_equal(run(&f, NO_MASK, &r, &e), 1);
	real *w = weights(f.m);
	assert_memory_equal(v, w, model_size(f.m, PARAM) * sizeof *v);
	free(v);
	free(w);
	teardown(&f);
}

/* The step before is still in the queue when a fault ends the training. */
static void faults(void **state)
{
	struct error e;
	struct step_result r;
	for (int broken = 0; broken < 2; broken++) {
		struct fixture f;
		setup(&f, 1, 2);
		assert_int_equal(run(&f, 0, &r, &e), 0);
		f.broken = broken;
		f.calls = 0;
		assert_int_equal(step_run(&f.q, 1, broken, &r, &e), -1);
		assert_int_equal(f.q.own, broken ? FAULT_STEP : FAULT_STREAM);
		assert_int_equal(f.q.status.fault, f.q.own);
		assert_false(f.q.lost);
		assert_int_equal(f.calls, broken); /* the second part is not tried, and nothing without a batch */
		if (broken)
			assert_string_equal(e.msg, "step 2: no batch");
		assert_int_equal(step_drain(&f.q, &r, &e), 1);
		assert_true(r.step == 0 && r.totals.loss[0] > 0);
		teardown(&f);
	}
	struct fixture f;
	setup(&f, 0, 1);
	assert_int_equal(run(&f, 0, &r, &e), 1);
	assert_int_equal(step_close(&f.q, 1, &e), -1);
	assert_true(f.q.own == FAULT_STREAM && f.q.status.fault == FAULT_STREAM);
	teardown(&f);
}

/* A loss that is not finite is seen a step later, and names its own step. */
static void not_finite(void **state)
{
	struct error e;
	struct fixture f;
	struct step_result r;
	setup(&f, 1, 1);
	assert_int_equal(run(&f, 0, &r, &e), 0);
	real *w = weights(f.m);
	for (size_t i = 0; i < model_size(f.m, PARAM); i++)
		w[i] = NAN;
	model_write_all(f.m, PARAM, w);
	free(w);
	assert_int_equal(run(&f, 1, &r, &e), 1);
	assert_int_equal(r.step, 0);
	assert_int_equal(run(&f, 2, &r, &e), -1);
	assert_true(strncmp(e.msg, "step 2: the loss is ", 20) == 0);
	assert_true(f.q.own == FAULT_STEP && f.q.status.fault == FAULT_STEP);
	assert_int_equal(step_drain(&f.q, &r, &e), 0);
	teardown(&f);
}

static void signals(void **state)
{
	struct error e;
	struct fixture f;
	struct step_result r;
	setup(&f, 0, 1);
	assert_int_equal(run(&f, 0, &r, &e), 1);
	assert_int_equal(step_signal(&f.q), 0);
	stop = SIGTERM;
	assert_int_equal(step_signal(&f.q), SIGTERM);
	assert_int_equal(f.q.status.signal, SIGTERM);
	assert_int_equal(step_run(&f.q, 1, 0, &r, &e), -1);
	assert_true(f.q.status.fault == FAULT_STREAM && f.q.status.signal == SIGTERM);
	teardown(&f);
}

/* Two ranks with equal batches take the steps of one: twice the gradient, over twice the labels. */
static void two_ranks(void **state)
{
	struct error e;
	struct comm other = {0};
	struct fixture a, b;
	struct step_result x[STEPS], y[STEPS];
	setup(&a, 0, 1);
	setup(&b, 0, 1);
	ranks_init(&b.ranks, &other);
	assert_int_equal(ranks_share_model(&b.ranks, b.m, 0, &e), 0);
	train(&a, x);
	train(&b, y);
	for (size_t i = 0; i < STEPS; i++) {
		assert_true(y[i].totals.count[0] == 2 * x[i].totals.count[0] && fabs(y[i].totals.loss[0] - 2 * x[i].totals.loss[0]) < 1e-5);
		assert_true(i == NO_MASK || fabs(y[i].norm - x[i].norm) < 1e-5 * x[i].norm);
	}
	real *v = weights(a.m), *w = weights(b.m);
	for (size_t i = 0; i < model_size(a.m, PARAM); i++)
		assert_true(fabs((double)v[i] - w[i]) < 1e-6);
	free(v);
	free(w);
	teardown(&a);
	teardown(&b);
}

/*
 * Two heads: the loss is the mean of the heads that have targets, by their weights, each over the whole batch. It is the same in any number of
 * parts, of which some have no class, on a queued device, and on two ranks.
 */
static void several_heads(void **state)
{
	struct error e;
	struct comm other = {0};
	struct fixture f[5];
	struct step_result x[5][STEPS];
	const size_t parts[] = {1, 1, 2, 7, 2};
	for (size_t i = 0; i < 5; i++) {
		setup_heads(&f[i], i == 1, parts[i], MLM_CLASS);
		if (i == 4) {
			ranks_init(&f[i].ranks, &other);
			assert_int_equal(ranks_share_model(&f[i].ranks, f[i].m, 0, &e), 0);
		}
		train(&f[i], x[i]);
	}
	for (size_t s = 0; s < STEPS; s++) {
		const struct totals *t = &x[0][s].totals;
		double mlm = t->loss[0] / t->count[0], class = t->loss[1] / t->count[1];
		double want = s == NO_MASK ? class : s == NO_LABEL ? mlm : (mlm + 0.3 * class) / 1.3;
		assert_true(t->count[0] == (s == NO_MASK ? 0 : CELLS) && t->count[1] == (s == NO_LABEL ? 0 : CELLS - 1));
		assert_true(fabs(x[0][s].loss - want) < 1e-6 * want);
		for (size_t i = 1; i < 5; i++) {
			double ranks = i == 4 ? 2 : 1;
			assert_true(x[i][s].totals.count[0] == ranks * t->count[0] && x[i][s].totals.count[1] == ranks * t->count[1]);
			assert_true(fabs(x[i][s].loss - want) < 1e-5 * want);
			assert_true(fabs(x[i][s].norm - x[0][s].norm) < 1e-4 * x[0][s].norm);
		}
	}
	real *v = weights(f[0].m);
	for (size_t i = 1; i < 5; i++) {
		real *w = weights(f[i].m);
		for (size_t k = 0; k < model_size(f[0].m, PARAM); k++)
			assert_true(fabs((double)v[k] - w[k]) <= (i == 1 ? 0 : 1e-5));
		free(w);
	}
	free(v);
	for (size_t i = 0; i < 5; i++)
		teardown(&f[i]);
}

/*
 * A mean over all cells, of which some have no target: parts and ranks without any target count their cells too. A batch without a target
 * leaves the head out.
 */
static void mean_over_all(void **state)
{
	struct error e;
	struct comm other = {0};
	for (enum heads heads = MLM_SET; heads <= SET; heads++) {
		struct fixture f[5];
		struct step_result x[5][STEPS];
		const size_t parts[] = {1, 1, 2, 7, 5};
		size_t h = heads == SET ? 0 : 1;
		for (size_t i = 0; i < 5; i++) {
			setup_heads(&f[i], i == 1, parts[i], heads);
			if (i == 4) {
				ranks_init(&f[i].ranks, &other);
				assert_int_equal(ranks_share_model(&f[i].ranks, f[i].m, 0, &e), 0);
			}
			train(&f[i], x[i]);
		}
		for (size_t s = 0; s < STEPS; s++) {
			const struct totals *t = &x[0][s].totals;
			double mlm = t->loss[0] / t->count[0], set = t->loss[h] / CELLS;
			double want = h == 0 ? set : s == NO_MASK ? set : s == NO_LABEL ? mlm : (mlm + 0.3 * set) / 1.3;
			assert_true(t->count[h] == (s == NO_LABEL ? 0 : CELLS));
			assert_true(s == NO_LABEL && h == 0 ? isnan(x[0][s].loss) && isnan(x[0][s].norm)
							    : fabs(x[0][s].loss - want) < 1e-6 * want);
			for (size_t i = 1; i < 5; i++) {
				assert_true(x[i][s].totals.count[h] == (i == 4 ? 2 : 1) * t->count[h]);
				assert_true(isnan(x[0][s].loss) ? isnan(x[i][s].loss) : fabs(x[i][s].loss - want) < 1e-5 * want);
				assert_true(isnan(x[0][s].norm) || fabs(x[i][s].norm - x[0][s].norm) < 1e-4 * x[0][s].norm);
			}
		}
		real *v = weights(f[0].m);
		for (size_t i = 1; i < 5; i++) {
			real *w = weights(f[i].m);
			for (size_t k = 0; k < model_size(f[0].m, PARAM); k++)
				assert_true(fabs((double)v[k] - w[k]) <= (i == 1 ? 0 : 1e-5));
			free(w);
		}
		free(v);
		for (size_t i = 0; i < 5; i++)
			teardown(&f[i]);
	}
}

/* What the other rank met ends this one in the same step, without a message of its own. */
static void other_rank(void **state)
{
	struct error e;
	struct comm other = {0};
	struct fixture f;
	struct step_result r;
	setup(&f, 0, 1);
	ranks_init(&f.ranks, &other);
	assert_int_equal(ranks_share_model(&f.ranks, f.m, 0, &e), 0);
	assert_int_equal(run(&f, 0, &r, &e), 1);
	stop = SIGTERM; /* unknown to the other rank before the next step */
	assert_int_equal(step_signal(&f.q), 0);
	stop = 0;
	other.signal = SIGINT;
	assert_int_equal(run(&f, 1, &r, &e), 1);
	assert_int_equal(step_signal(&f.q), SIGINT);
	other.fault = FAULT_STREAM;
	assert_int_equal(run(&f, 2, &r, &e), -1);
	assert_true(f.q.own == FAULT_NONE && f.q.status.fault == FAULT_STREAM && f.q.status.rank == 1 && !f.q.lost);
	f.broken = 1; /* the worse fault, and the first rank, count */
	assert_int_equal(run(&f, 2, &r, &e), -1);
	assert_true(f.q.own == FAULT_STEP && f.q.status.fault == FAULT_STEP && f.q.status.rank == 0);
	assert_int_equal(step_close(&f.q, 0, &e), -1);
	assert_true(f.q.own == FAULT_NONE && f.q.status.rank == 1);
	f.broken = other.fault = 0;
	other.lost = 1;
	assert_int_equal(run(&f, 2, &r, &e), -1);
	assert_true(f.q.lost);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ahead),
		cmocka_unit_test(parts),
		cmocka_unit_test(no_label),
		cmocka_unit_test(faults),
		cmocka_unit_test(not_finite),
		cmocka_unit_test(signals),
		cmocka_unit_test(two_ranks),
		cmocka_unit_test(several_heads),
		cmocka_unit_test(mean_over_all),
		cmocka_unit_test(other_rank),
	};
	cpu = ops_cpu_new(1);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	cpu->destroy(cpu);
	return failed;
}

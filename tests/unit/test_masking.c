/* Masked batches: the same for any number of threads, any shards and any start; schedules of the rate and of lambda. */
#include "base/rng.h"
#include "mask/masking.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 230, GENES = 90, SPECIAL = 2, MASK_ID = 1, EPOCHS = 2, BATCH = 4, STEPS = EPOCHS * ((ROWS + BATCH - 1) / BATCH) };

static char path[] = "/tmp/corrmask-masking-XXXXXX";
static struct header header;
static struct graph graph;

/* One cell: tokens, and numbers beside them, that its number decides. */
static void push_cell(struct block *b, uint64_t cell, uint32_t n)
{
	size_t r = b->rows, at = r ? block_items(b, 0) : 0;
	uint32_t order[GENES];
	struct rng draw = rng_at(5, RNG_TEST, cell, 0);
	block_set_rows(b, r + 1);
	block_set_items(b, 0, at + n);
	((uint64_t *)b->col[0].data)[r] = cell;
	((uint32_t *)b->col[1].data)[r] = (uint32_t)cell % 3;
	for (uint32_t i = 0; i < GENES; i++)
		order[i] = SPECIAL + i;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i % GENES + rng_below(&draw, GENES - i % GENES), t = order[k];
		order[k] = order[i % GENES];
		order[i % GENES] = t;
		block_set_id(b, 2, at + i, t);
		((int32_t *)b->col[3].data)[at + i] = (int32_t)(t % 7);
	}
	b->group[0].offset[r + 1] = at + n;
}

static int write_cells(uint64_t rows, uint32_t longest)
{
	struct error e;
	struct stream *s = stream_create(path, &header, 1, &e);
	struct block b = {0};
	for (uint64_t i = 0; i < rows;) {
		block_reset(&b, stream_header(s));
		for (uint64_t k = i % 11 + 1; k && i < rows; k--, i++)
			push_cell(&b, i, i % 37 == 36 ? longest : (uint32_t)(i * 13 % GENES));
		if (stream_write(s, &b, &e))
			return -1;
	}
	int bad = stream_commit(s, &e);
	stream_free(s);
	block_release(&b);
	return bad;
}

static int setup(void **state)
{
	static struct edge edge[GENES];
	close(mkstemp(path));
	header_init(&header, STREAM_TOKENS);
	vocab_push(&header.vocab, "<pad>", NULL, NAN);
	vocab_push(&header.vocab, "<mask>", NULL, NAN);
	for (int g = 0; g < GENES; g++) {
		char id[16];
		snprintf(id, sizeof id, "G%d", g);
		vocab_push(&header.vocab, id, NULL, 1);
	}
	header_add(&header, "cell", U64);
	header_add(&header, "donor", U32);
	header_add_ragged(&header, "token", U16, "token");
	header_add_ragged(&header, "module", I32, "token");
	for (uint32_t i = 0; i + 1 < GENES; i++) /* a chain */
		edge[i] = (struct edge){SPECIAL + i, SPECIAL + i + 1, 0.5f, 200};
	graph_build(&graph, SPECIAL + GENES, edge, GENES - 1, 0);
	return write_cells(ROWS, GENES);
}

static int teardown(void **state)
{
	header_release(&header);
	graph_release(&graph);
	return unlink(path);
}

/* How to mask; zero is random masking at rate 0.3 on one thread and one shard. */
struct how {
	enum mask_strategy strategy;
	int groups, audit, balance, threads;
	struct mask_schedule rate, lambda;
	uint64_t shards, shard, from;
};

/* What came out: a digest of each masked cell of each step, and what is known of the steps. */
struct result {
	uint64_t steps, cells, tokens, masked;
	uint64_t cell[STEPS][ROWS]; /* 0: not in this batch */
	double rate[STEPS], lambda[STEPS];
	uint64_t masked_of[STEPS], budget_of[STEPS];
	struct audit audit;
};

/* What one row shows, without its place: all input tokens, positions and targets. */
static uint64_t row_digest(const struct block *b, size_t r)
{
	const struct header *h = b->header;
	int input = header_find(h, "input"), position = header_find(h, "position"), target = header_find(h, "target");
	const uint64_t *o = b->group[h->col[input].group].offset, *p = b->group[h->col[position].group].offset;
	uint64_t d = 1 + ((uint32_t *)b->col[header_find(h, "epoch")].data)[r];
	for (uint64_t i = o[r]; i < o[r + 1]; i++)
		d = d * 1099511628211u + block_id(b, input, i);
	for (uint64_t i = p[r]; i < p[r + 1]; i++)
		d = (d * 1099511628211u + ((uint16_t *)b->col[position].data)[i]) * 1099511628211u + block_id(b, target, i);
	return d | 1;
}

static void take_batch(struct result *out, const struct masked_batch *m)
{
	const struct block *b = &m->block;
	const struct header *h = b->header;
	const uint64_t *o = b->group[h->col[header_find(h, "input")].group].offset, step = m->step;
	const uint64_t *p = b->group[h->col[header_find(h, "position")].group].offset;
	for (size_t r = 0; r < b->rows; r++) {
		uint64_t cell = ((uint64_t *)b->col[header_find(h, "cell")].data)[r];
		assert_int_equal(((uint32_t *)b->col[header_find(h, "step")].data)[r], step);
		assert_int_equal(((uint32_t *)b->col[header_find(h, "epoch")].data)[r], m->epoch);
		assert_int_equal(((uint32_t *)b->col[header_find(h, "donor")].data)[r], cell % 3);
		assert_int_equal(o[r + 1] - o[r], cell % 37 == 36 ? GENES : cell * 13 % GENES);
		assert_int_equal(out->cell[step][cell], 0);
		out->cell[step][cell] = row_digest(b, r);
		out->budget_of[step] += (uint64_t)((double)(o[r + 1] - o[r]) * m->rate + 1e-9);
		out->masked_of[step] += p[r + 1] - p[r];
	}
	assert_int_equal(m->masked, block_items(b, h->col[header_find(h, "position")].group));
	out->rate[step] = m->rate;
	out->lambda[step] = m->lambda;
	out->cells += b->rows;
	out->tokens += m->tokens;
	out->masked += m->masked;
	audit_add(&out->audit, &m->audit);
}

/* Add the masks of one run to `out`. 0, or -1 with e set. */
static int run(struct result *out, struct how how, struct error *e)
{
	static char donor[] = "donor", *const keep[] = {donor};
	struct masking_columns columns = {.keep = keep, .nkeep = 1, .groups = how.groups ? "module" : NULL, .balance = how.balance};
	struct stream *in = stream_open(path, e);
	struct header want = {0}, masked = {0};
	assert_int_equal(masking_headers(&want, &masked, stream_header(in), &columns, path, e), 0);
	struct loader l = {.in = in,
		.want = &want,
		.seed = 9,
		.epochs = EPOCHS,
		.batch = BATCH / (how.shards ? how.shards : 1),
		.shards = how.shards ? how.shards : 1,
		.shard = how.shard,
		.window = 5,
		.balance = how.balance ? "token" : NULL};
	assert_int_equal(loader_init(&l, e), 0);
	loader_seek(&l, how.from);
	struct mask_plan plan = {.strategy = how.strategy ? how.strategy : MASK_RANDOM,
		.modular = how.groups,
		.partners = 3,
		.seed = 9,
		.vocab = SPECIAL + GENES,
		.nspecial = SPECIAL,
		.mask_id = MASK_ID,
		.graph = how.strategy == MASK_CORRMASK && !how.groups ? &graph : NULL};
	struct masking m = {.plan = &plan,
		.rate = how.rate.to > 0 ? how.rate : (struct mask_schedule){MASK_SCHEDULE_FIXED, .from = 0.3, .to = 0.3},
		.lambda = how.lambda,
		.loader = &l,
		.header = &masked,
		.groups = columns.groups,
		.audit = how.audit ? &graph : NULL,
		.threads = how.threads ? how.threads : 1};
	masking_init(&m);
	const struct masked_batch *b;
	int got;
	uint64_t step = how.from;
	for (; (got = masking_next(&m, &b, e)) > 0; step++) {
		assert_int_equal(b->step, step);
		take_batch(out, b);
	}
	if (!got) {
		assert_int_equal(step, l.steps);
		assert_int_equal(masking_next(&m, &b, e), 0);
	}
	out->steps = step;
	masking_release(&m);
	loader_release(&l);
	header_release(&want);
	header_release(&masked);
	stream_free(in);
	return got;
}

static struct result one, other;

static const struct result *result_of(struct result *r, struct how how)
{
	struct error e;
	memset(r, 0, sizeof *r);
	assert_int_equal(run(r, how, &e), 0);
	return r;
}

static const struct how hows[] = {
	{.strategy = MASK_RANDOM, .rate = {MASK_SCHEDULE_UNIFORM, .from = 0.1, .to = 0.9}},
	{.strategy = MASK_RANDOM, .balance = 1},
	{.strategy = MASK_CORRMASK,
		.audit = 1,
		.rate = {MASK_SCHEDULE_LINEAR, .from = 0, .to = 1},
		.lambda = {MASK_SCHEDULE_UNIFORM, .from = 0, .to = 1}},
	{.strategy = MASK_CORRMASK, .groups = 1, .lambda = {MASK_SCHEDULE_FIXED, .from = 1, .to = 1}},
};
enum { HOWS = sizeof hows / sizeof *hows };

static void any_threads(void **state)
{
	for (int i = 0; i < HOWS; i++) {
		result_of(&one, hows[i]);
		assert_int_equal(one.steps, STEPS);
		assert_int_equal(one.cells, EPOCHS * ROWS);
		assert_true(one.masked > 0 && one.masked < one.tokens);
		assert_true(!hows[i].audit == !one.audit.cells);
		for (int threads = 2; threads <= 5; threads += 3) {
			struct how how = hows[i];
			how.threads = threads;
			assert_memory_equal(&one, result_of(&other, how), sizeof one);
		}
	}
}

static void any_shards(void **state)
{
	for (int i = 0; i < HOWS; i++) {
		result_of(&one, hows[i]);
		for (uint64_t shards = 2; shards <= 4; shards += 2) {
			struct error e;
			memset(&other, 0, sizeof other);
			for (uint64_t shard = 0; shard < shards; shard++) {
				struct how how = hows[i];
				how.shards = shards;
				how.shard = shard;
				how.threads = 2;
				assert_int_equal(run(&other, how, &e), 0);
			}
			assert_memory_equal(&one, &other, sizeof one);
		}
	}
}

static void any_start(void **state)
{
	enum { FROM = 61 };
	result_of(&one, hows[2]);
	struct how how = hows[2];
	how.from = FROM;
	how.threads = 2;
	result_of(&other, how);
	assert_memory_equal(one.cell[FROM], other.cell[FROM], (STEPS - FROM) * sizeof *one.cell);
	assert_memory_equal(one.rate + FROM, other.rate + FROM, (STEPS - FROM) * sizeof *one.rate);
	for (uint64_t cell = 0; cell < ROWS; cell++)
		assert_int_equal(other.cell[FROM - 1][cell], 0);
}

/* The values of a schedule, and that the masks follow them: every cell has floor(L p) masks. */
static void schedules(void **state)
{
	result_of(&one, (struct how){.rate = {MASK_SCHEDULE_LINEAR, .from = 0.8, .to = 0.2}});
	for (int k = 0; k < STEPS; k++) {
		assert_true(fabs(one.rate[k] - (0.8 - 0.6 * k / (STEPS - 1))) < 1e-12);
		assert_int_equal(one.masked_of[k], one.budget_of[k]);
	}
	double least = 1, most = 0;
	result_of(&one, (struct how){.rate = {MASK_SCHEDULE_UNIFORM, .from = 0.2, .to = 0.6}});
	for (int k = 0; k < STEPS; k++) {
		assert_true(one.rate[k] >= 0.2 && one.rate[k] < 0.6 && one.lambda[k] == 0);
		assert_int_equal(one.masked_of[k], one.budget_of[k]);
		least = fmin(least, one.rate[k]);
		most = fmax(most, one.rate[k]);
		for (int j = 0; j < k; j++) /* another draw in each epoch too */
			assert_true(one.rate[k] != one.rate[j]);
	}
	assert_true(least < 0.23 && most > 0.57);
	result_of(&one, (struct how){.rate = {MASK_SCHEDULE_FIXED, .from = 1, .to = 1}});
	assert_int_equal(one.masked, one.tokens);
}

static void schedule_text(void **state)
{
	static const char *const bad[] = {"", ":", "0.1", "0.1:", ":0.1", "0.1:0.2:0.3", "0.1:1.5", "-0.1:0.5", "0.1:0.5x", "nan:0.5"};
	struct mask_schedule s;
	assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_LINEAR, "0.25:1"), 0);
	assert_true(s.kind == MASK_SCHEDULE_LINEAR && s.from == 0.25 && s.to == 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (strcmp(bad[i], "0.1:0.2:0.3"))
			assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_UNIFORM, bad[i]), -1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_LINEAR, bad[i]), -1);
	assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_UNIFORM, "0.1:0.5:0.2"), 0);
	assert_true(s.kind == MASK_SCHEDULE_SHRINK && s.from == 0.1 && s.to == 0.5 && s.last == 0.2);
	static const char *const bad_shrink[] = {"0.2:0.1:0.5", "0.2:0.5:0.1", "0.1:0.5:", "0.1:0.5:0.4:0.3", "0.1:0.5:2"};
	for (size_t i = 0; i < sizeof bad_shrink / sizeof *bad_shrink; i++)
		assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_UNIFORM, bad_shrink[i]), -1);
}

static void choice_text(void **state)
{
	static const char *const bad[] = {"", ",", "0.1,", "0.2,0.1", "0.1,0.1", "0.1:0.2", "0.1,2", "x", "0.1 ,0.2", "0.1,nan"};
	struct mask_schedule s;
	assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_CHOICE, "0,0.25,1"), 0);
	assert_true(s.kind == MASK_SCHEDULE_CHOICE && s.nchoice == 3 && s.choice[0] == 0 && s.choice[1] == 0.25 && s.choice[2] == 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_CHOICE, bad[i]), -1);
	char many[8 * (MASK_CHOICES_MAX + 1)], *p = many;
	for (int i = 1; i <= MASK_CHOICES_MAX + 1; i++)
		p += sprintf(p, "%s0.%03d", i > 1 ? "," : "", i);
	assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_CHOICE, many), -1);
	*strrchr(many, ',') = 0;
	assert_int_equal(mask_schedule_parse(&s, MASK_SCHEDULE_CHOICE, many), 0);
}

static void columns_are_checked(void **state)
{
	static const struct {
		const char *keep, *groups, *message;
	} bad[] = {
		{"cell", NULL, "column 'cell' cannot be kept"},
		{"target", NULL, "no column 'target'"},
		{"token", NULL, "column 'token' is ragged"},
		{"donor", "token", "column 'token' is ragged u16, expected ragged i32"},
		{"donor", "tissue", "no column 'tissue'"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error e;
		struct header want, out;
		char *keep = xstrdup(bad[i].keep);
		struct masking_columns c = {.keep = &keep, .nkeep = 1, .groups = bad[i].groups};
		assert_int_equal(masking_headers(&want, &out, &header, &c, "x.tok", &e), -1);
		assert_non_null(strstr(e.msg, bad[i].message));
		header_release(&want);
		header_release(&out);
		free(keep);
	}
}

/* Positions are u16: the cells before a longer one are given out, then there is an error. */
static void too_long(void **state)
{
	struct error e;
	assert_int_equal(write_cells(40, MASK_ROW_MAX + 1), 0);
	static struct result r;
	struct how how = {.threads = 2, .rate = {MASK_SCHEDULE_FIXED, .from = 0.1, .to = 0.1}};
	assert_int_equal(run(&r, how, &e), -1);
	assert_non_null(strstr(e.msg, "cell 36: 65537 tokens, expected at most 65536"));
	uint64_t given = 0;
	for (uint64_t k = 0; k < STEPS; k++)
		for (uint64_t cell = 0; cell < ROWS; cell++)
			given += r.cell[k][cell] != 0;
	assert_int_equal(given, r.cells);
	for (uint64_t k = 0; k < STEPS; k++)
		assert_int_equal(r.cell[k][36], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_threads),
		cmocka_unit_test(any_shards),
		cmocka_unit_test(any_start),
		cmocka_unit_test(schedules),
		cmocka_unit_test(schedule_text),
		cmocka_unit_test(choice_text),
		cmocka_unit_test(columns_are_checked),
		cmocka_unit_test(too_long),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

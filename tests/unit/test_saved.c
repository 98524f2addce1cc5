/* A reference that is saved: what is read predicts as what was learned, to the bit; damage is refused; nothing of a cell is there. */
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "transfer/promise.h"
#include "transfer/saved.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { CELLS = 330, GENES = 60, TYPES = 3, DONORS = 6, NEW = 40 };

static struct error e;
static char path[] = "build/test_saved.XXXXXX";
static struct embeddings d = {.n = CELLS, .d = GENES, .sparse.d = GENES}, new = {.n = NEW, .d = GENES, .sparse.d = GENES};
static uint32_t y[CELLS], group[CELLS], all[CELLS];
static uint64_t depth[CELLS], new_depth[NEW];
static struct saved s = {.label = (char[]){"type"},
	.unit = (char[]){"donor"},
	.source = (char[]){"xxh3:0"},
	.options = (char[]){"--seed 1"},
	.depth = 400,
	.coverage = 0.8,
	.unknown = 0.1,
	.seed = 1,
	.molecules = 1,
	.rungs = 1};
static struct learned l;
static struct held_out held;
static const struct method_options options = {.threads = 1, .seed = 1, .label = "type", .components = 1};

/* A cell of a type: each type has ten genes of its own. Gene 59 has no count. */
static uint64_t add_cell(struct sparse *to, uint32_t type, uint64_t seed)
{
	uint32_t column[GENES];
	uint64_t count[GENES], total = 0;
	size_t n = 0;
	struct rng r = rng_at((uint32_t)seed, RNG_ROWS, seed, 0);
	for (uint32_t j = 0; j + 1 < GENES; j++) {
		uint64_t k = rng_below(&r, j / 10 == type ? 9 : 4);
		if (!k)
			continue;
		column[n] = j;
		count[n++] = k;
		total += k;
	}
	sparse_pack(to, column, count, n, 0);
	return total;
}

static int learn(void **state)
{
	uint32_t fold[CELLS];
	(void)state;
	for (uint32_t i = 0; i < CELLS; i++) {
		all[i] = i;
		group[i] = i % DONORS;
		fold[i] = group[i] % 3;
		y[i] = i / DONORS % TYPES;
		depth[i] = add_cell(&d.sparse, y[i], i);
	}
	for (uint32_t i = 0; i < NEW; i++)
		new_depth[i] = add_cell(&new.sparse, i % TYPES, 10000 + i);
	d.y = y;
	d.group = group;
	d.depth = depth;
	new.depth = new_depth;
	s.share = embeddings_shares(&d);
	for (uint32_t j = 0; j < GENES; j++) {
		char id[16];
		snprintf(id, sizeof id, "ENSG%u", j);
		vocab_push(&s.genes, id, j ? id + 3 : NULL, NAN);
	}
	for (const char *const *name = (const char *const[]){"B", "NK \"x\"", "T\ncell", NULL}; *name; name++)
		classes_add(&s.classes, *name, strlen(*name));
	s.detail.labels = TYPES;
	s.about = cJSON_CreateObject();
	cJSON_AddStringToObject(s.about, "title", "three \"types\"");
	l = (struct learned){.share = 1, .cells = CELLS, .of = xcalloc(TYPES, sizeof *l.of), .untested = xcalloc(TYPES, 1)};
	l.untested[1] = 1;
	for (size_t i = 0; i < CELLS; i++)
		l.of[y[i]]++;
	return method_fit(&l.method, &d, all, CELLS, &s.classes, &options, NULL, &e) || hold_out(&held, &d, &l.method, fold, 3, &e) ||
		transfer_calibrate(&l.calibrated, &held, NULL, DONORS, s.coverage, s.unknown, &e) || close(mkstemp(path)) ||
		saved_write(path, &s, &l, &e);
}

/* What is said of the new cells, as text. */
static char *predict(struct learned *of, char *const *name)
{
	double logit[NEW * TYPES], far[NEW], p[TYPES];
	uint8_t in_set[TYPES];
	struct decision got = {.p = p, .in_set = in_set};
	struct promises promised;
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	struct calibrated *c = &of->calibrated;
	method_score(&of->method, &new, NULL, NEW, logit, far);
	for (size_t i = 0; i < NEW; i++) {
		transfer_decide(&c->rule, logit + i * TYPES, far[i], &got);
		fprintf(f, "%u %a %a %d %d%d%d\n", got.class, got.probability, got.likeness, got.unlike, in_set[0], in_set[1], in_set[2]);
		calibrated_add(c, &got, &new, i);
	}
	calibrated_mix(c, logit, NEW);
	promises_make(&promised, c, "donor", name, NULL);
	for (int i = 0; i < PROMISES; i++)
		fprintf(f, "%s\n", promised.why[i] ? promised.why[i] : "promised");
	fprintf(f, "%a %a %a %zu\n", shift_of(&c->shift, TYPES), c->expected_covered, c->expected_right, c->groups);
	promises_release(&promised);
	struct unlike u;
	FREED uint32_t *class = xcalloc(NEW, sizeof *class);
	unlike_list(&u, &of->method.ranks, &of->method.components, &new.sparse, class, NULL, 0, 1, 1);
	for (size_t i = 0; i < u.n; i++)
		fprintf(f, "%zu %a %a %a\n", u.of[i].cells, u.of[i].distance, u.of[i].level, u.of[i].outside);
	unlike_release(&u);
	xmemclose(f, &text);
	return text;
}

static void test_round_trip(void **state)
{
	struct saved got;
	struct learned read;
	uint8_t keep[GENES];
	(void)state;
	for (int lacking = 0; lacking < 2; lacking++) {
		assert_int_equal(saved_open(&got, path, &e), 0);
		assert_int_equal(saved_read(&got, 0, &read, &options, &e), 0);
		assert_string_equal(got.unit, "donor");
		assert_string_equal(got.classes.name[2], "T\ncell");
		assert_string_equal(got.genes.symbol[3], "G3");
		assert_string_equal(json_text(got.about, "title"), "three \"types\"");
		assert_int_equal(read.untested[1], 1);
		for (size_t j = 0; j < GENES; j++)
			keep[j] = j % 7 != 0;
		struct learned *both[] = {&l, &read};
		for (int i = 0; i < 2 && lacking; i++) {
			method_keep(&both[i]->method, keep);
			shift_keep(&both[i]->calibrated.shift, keep, 0.9);
		}
		struct calibrated *c = &l.calibrated;
		FREED char *one = predict(&l, s.classes.name), *two = predict(&read, got.classes.name);
		assert_string_equal(one, two);
		/* what was added of new cells goes */
		memset(c->shift.new.x, 0, TYPES * GENES * sizeof *c->shift.new.x);
		memset(c->shift.new.of, 0, TYPES * sizeof *c->shift.new.of);
		for (size_t k = 0; k < TYPES; k++)
			c->of[k].cells = c->of[k].unlike = 0;
		learned_release(&read);
		saved_release(&got);
	}
	assert_int_equal(saved_open(&got, "tests/unit/test_saved.c", &e), -1);
}

static uint8_t *read_all(size_t *n)
{
	FILE *f = fopen(path, "rb");
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	uint8_t *bytes = xmalloc(*n);
	assert_int_equal(fread(bytes, 1, *n, f), *n);
	fclose(f);
	return bytes;
}

/* Is a file of these bytes refused, with one line? */
static void is_refused(const uint8_t *bytes, size_t n)
{
	char other[] = "build/test_saved.XXXXXX";
	struct saved got;
	int fd = mkstemp(other);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	*e.msg = 0;
	if (saved_open(&got, other, &e) != -1 || !*e.msg || strchr(e.msg, '\n'))
		fail_msg("%zu bytes: '%s'", n, e.msg);
	saved_release(&got);
	unlink(other);
}

static void test_damage(void **state)
{
	size_t n;
	FREED uint8_t *bytes = read_all(&n);
	(void)state;
	for (size_t i = 0; i < n; i += i < 300 || i + 300 > n ? 1 : 97)
		is_refused(bytes, i);
	for (size_t i = 0; i < n; i += i < 300 ? 1 : 89) {
		bytes[i] ^= 0x10;
		is_refused(bytes, n);
		bytes[i] ^= 0x10;
	}
}

/* The bytes get the digest that belongs to them. */
static void redigest(uint8_t *bytes, size_t n)
{
	static const char key[] = "\"corrmask_digest\":\"xxh3:";
	char hex[DIGEST_SIZE], *digest = memmem(bytes, n, key, strlen(key));
	memset(digest + strlen(key), '0', DIGEST_SIZE - 1);
	digest_bytes(bytes, n, hex);
	memcpy(digest + strlen(key), hex, DIGEST_SIZE - 1);
}

static int open_bytes(struct saved *got, const uint8_t *bytes, size_t n)
{
	char other[] = "build/test_saved.XXXXXX";
	int fd = mkstemp(other);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	int bad = saved_open(got, other, &e);
	unlink(other);
	return bad;
}

static void test_newer(void **state)
{
	struct saved got;
	size_t n;
	FREED uint8_t *bytes = read_all(&n);
	(void)state;
	char *version = memmem(bytes, n, "\\\"version\\\":1", 13);
	assert_non_null(version);
	version[12] = '2';
	redigest(bytes, n);
	assert_int_equal(open_bytes(&got, bytes, n), -1);
	assert_non_null(strstr(e.msg, "of version 2, from a newer corrmask"));
}

/* Whoever writes a file with a digest cannot make the reader fail but by an error: numbers and names of the text are others. */
static void test_hostile(void **state)
{
	static const char *const to[] = {"0", "9", "-", "e9", "]", ",", "\\\"", "n"};
	size_t n, header, refused = 0, tried = 0;
	FREED uint8_t *bytes = read_all(&n), *other = xmalloc(n);
	(void)state;
	header = (size_t)((uint8_t *)memmem(bytes, n, "\"format\"", 8) - bytes);
	for (size_t i = 100; i + 4 < header; i += 23, tried++) {
		struct saved got;
		struct learned read;
		const char *with = to[i % (sizeof to / sizeof *to)];
		memcpy(other, bytes, n);
		memcpy(other + i, with, strlen(with));
		redigest(other, n);
		int bad = open_bytes(&got, other, n) || saved_read(&got, 0, &read, &options, &e);
		refused += bad != 0;
		if (!bad)
			learned_release(&read);
		saved_release(&got);
	}
	assert_true(refused > tried / 4);
}

/* No tensor and no list is as long as the cells are many, and no tensor has the counts of a cell. */
static void test_no_cell(void **state)
{
	struct safetensors f;
	RELEASED(sparse_row_release) struct sparse_row r = {0};
	(void)state;
	assert_int_equal(safetensors_open(&f, path, &e), 0);
	RELEASED(json_free_at) cJSON *j = cJSON_Parse(json_text(f.metadata, "corrmask_reference"));
	assert_null(strstr(json_text(f.metadata, "corrmask_reference"), "donor1"));
	const cJSON *learned = cJSON_GetArrayItem(json_get(j, "learned"), 0), *x;
	cJSON_ArrayForEach(x, learned) assert_true(cJSON_GetArraySize(x) < CELLS);
	cJSON_ArrayForEach(x, json_get(learned, "far")) assert_true(cJSON_GetArraySize(x) <= 201);
	assert_true(f.n > 8);
	for (size_t t = 0; t < f.n; t++) {
		const struct safetensor *of = &f.tensor[t];
		for (int i = 0; i < of->ndim; i++)
			assert_int_not_equal(of->shape[i], CELLS);
		FREED float *value = xmalloc((of->n + 1) * sizeof *value);
		assert_int_equal(safetensors_read(&f, of, value, &e), 0);
		for (size_t i = 0; i < CELLS; i++) {
			float count[GENES] = {0}, level[GENES] = {0};
			sparse_counts(&d.sparse, i, &r);
			for (size_t g = 0; g < r.n; g++)
				count[r.column[g]] = (float)r.count[g];
			sparse_row(&d.sparse, i, &r);
			for (size_t g = 0; g < r.n; g++)
				level[r.column[g]] = r.value[g];
			for (size_t at = 0; at + GENES - 1 <= of->n; at++)
				assert_true(memcmp(value + at, count, (GENES - 1) * sizeof *count) &&
					memcmp(value + at, level, (GENES - 1) * sizeof *level));
		}
	}
	safetensors_close(&f);
}

static int release(void **state)
{
	(void)state;
	unlink(path);
	held_out_release(&held);
	learned_release(&l);
	classes_release(&s.classes);
	vocab_release(&s.genes);
	cJSON_Delete(s.about);
	free(s.share);
	sparse_release(&d.sparse);
	sparse_release(&new.sparse);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_newer),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_no_cell),
	};
	return cmocka_run_group_tests(tests, learn, release);
}

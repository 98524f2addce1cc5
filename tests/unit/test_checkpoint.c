/* Model directories and checkpoints: sizes and logits against transformers, what resume reads, what is refused. */
#include "train/checkpoint.h"
#include "base/json.h"
#include "mask/masked.h"
#include "train/config.h"
#include "base/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define GOLDEN "tests/golden/v1/hf_"

static char dir[] = "/tmp/corrmask-test-XXXXXX";

static struct model_config small(void)
{
	struct model_config c;
	struct error e;
	model_preset(&c, "tiny", &e);
	c.vocab_size = 50;
	c.hidden_size = 8;
	c.intermediate_size = 12;
	c.max_position_embeddings = 10;
	return c;
}

static struct ops *cpu; /* of all models here */

static struct model *make(const struct head_kind *kind, uint64_t seed)
{
	struct error e;
	struct model_config c = small();
	return model_new(&c, &(struct head_spec){.kind = kind, .nlabel = 2}, 1, cpu, seed, &e);
}

static float *values(struct model *m, enum which w)
{
	float *x = xcalloc(model_size(m, w), sizeof *x);
	model_read_all(m, w, x);
	return x;
}

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

/* The file of the golden folder was written by sctrain; the logits are transformers'. */
static void check_logits(const char *golden, const struct head_kind *kind)
{
	struct error e;
	struct vocab v;
	struct weights_report r;
	struct config_heads heads;
	char *config = xasprintf("%s/config.json", golden);
	if (config_heads_load(&heads, config, &e))
		fail_msg("%s", e.msg);
	assert_true(heads.n == 1 && heads.head[0].kind == kind);
	struct model *m = model_dir_load(golden, heads.head, heads.n, cpu, 1, &v, &r, &e);
	if (!m)
		fail_msg("%s", e.msg);
	free(config);
	assert_int_equal(v.n, model_config(m)->vocab_size);
	assert_int_equal(r.fresh + r.ignored, 0);
	char *path = xasprintf("%s/logits.txt", golden);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	free(path);
	char *line = NULL;
	size_t cap = 0, cells, V;
	double worst = 0, top = 0;
	assert_int_equal(fscanf(f, "%zu %zu\n", &cells, &V), 2);
	for (size_t i = 0; i < cells; i++) {
		uint32_t id[64], mask[64], offset[2] = {0};
		assert_true(getline(&line, &cap, f) > 0);
		for (char *p = line, *q; offset[1] < 64; p = q, offset[1]++) {
			id[offset[1]] = (uint32_t)strtoul(p, &q, 10);
			mask[offset[1]] = offset[1];
			if (p == q)
				break;
		}
		struct batch b = {.ncell = 1, .offset = offset, .id = id, .goal = {{.n = offset[1], .row = mask}}};
		size_t n = (kind == &head_cells ? 1 : offset[1]) * V;
		float *z = xcalloc(n, sizeof *z);
		assert_int_equal(model_logits(m, &b, 0, z, &e), 0);
		for (size_t k = 0; k < n; k++) {
			double want;
			assert_int_equal(fscanf(f, "%lf", &want), 1);
			worst = fmax(worst, fabs(z[k] - want));
			top = fmax(top, fabs(want));
		}
		assert_int_equal(fscanf(f, "\n"), 0);
		free(z);
	}
	print_message("  largest difference %.1e of logits up to %.1f\n", worst, top);
	assert_true(top > 1 && worst < 1e-5 * top);
	free(line);
	fclose(f);
	vocab_release(&v);
	model_free(m);
	config_heads_release(&heads);
}

static void hugging_face(void **state)
{
	check_logits(GOLDEN "mlm", &head_mlm);
	check_logits(GOLDEN "cells", &head_cells);
	check_logits(GOLDEN "genes", &head_genes);
	check_logits(GOLDEN "value", &head_value);
}

/* A file of Geneformer V1's shape has the size of the reference library's, to the byte, and the digest: 58 bytes, of which 2 were spaces. */
static void exact_size(void **state)
{
	struct error e;
	struct model_config c;
	struct stat st;
	model_preset(&c, "geneformer-v1-10m", &e);
	c.vocab_size = 25426;
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_mlm}, 1, cpu, 1, &e);
	char *path = in_dir("v1.safetensors");
	assert_int_equal(weights_save(m, path, NULL, 0, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 41167056 + 56);
	unlink(path);
	free(path);
	model_free(m);
}

/* A tensor list as transformers or a converter might save it: names, and values from a model of ours. */
struct extra {
	const char *name;
	uint64_t shape[2];
	int ndim;
	float value;
};

struct source {
	struct model *m;
	const struct extra *extra;
};

static void get(const struct safetensor_out *o, float *x, void *arg)
{
	struct source *s = arg;
	if (o->from)
		model_read(s->m, PARAM, o->from, x);
	else
		for (uint64_t i = 0; i < o->shape[0] * (o->ndim > 1 ? o->shape[1] : 1); i++)
			x[i] = s->extra[o->which].value;
}

/* m's tensors, without those whose name contains `leave`, with "bert." taken off if bare, and n others. */
static char *variant(struct model *m, const char *leave, int bare, const struct extra *extra, size_t n)
{
	struct error e;
	struct source s = {m, extra};
	char *path = in_dir("variant.safetensors");
	struct safetensor_out out[128];
	size_t k = 0;
	for (size_t i = 0; i < model_ntensor(m); i++) {
		const struct tensor *t = model_tensor(m, i);
		if (leave && strstr(t->name, leave))
			continue;
		out[k++] = (struct safetensor_out){.name = t->name + (bare && !strncmp(t->name, "bert.", 5) ? 5 : 0),
			.ndim = t->ndim,
			.shape = {t->shape[0], t->shape[1]},
			.from = t};
	}
	for (size_t i = 0; i < n; i++)
		out[k++] = (struct safetensor_out){
			.name = extra[i].name, .ndim = extra[i].ndim, .shape = {extra[i].shape[0], extra[i].shape[1]}, .which = (int)i};
	assert_int_equal(safetensors_write(path, out, k, get, &s, NULL, 0, &e), 0);
	return path;
}

static void variants(void **state)
{
	struct error e;
	struct weights_report r;
	struct model *from = make(&head_mlm, 1), *to = make(&head_mlm, 2), *cells = make(&head_cells, 3);
	float *want = values(from, PARAM), *got;

	/* position_ids and a decoder bias that is the bias; the pooler of another head */
	const struct extra more[] = {{"bert.embeddings.position_ids", {1, 10}, 2, 0}, {"cls.predictions.decoder.bias", {50}, 1, 0},
		{"bert.pooler.dense.bias", {8}, 1, 0}};
	char *path = variant(from, NULL, 0, more, 3);
	if (weights_load(to, path, &r, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(r.ignored, 3);
	got = values(to, PARAM);
	assert_memory_equal(got, want, model_size(to, PARAM) * sizeof *got);
	free(got);
	free(path);

	/* a decoder of its own */
	const struct extra untied[] = {{"cls.predictions.decoder.weight", {50, 8}, 2, 1}};
	path = variant(from, NULL, 0, untied, 1);
	assert_int_equal(weights_load(to, path, &r, &e), -1);
	assert_non_null(strstr(e.msg, "'cls.predictions.decoder.weight' differs"));
	free(path);

	/* no head: it stays as it was; a bare BertModel's names */
	path = variant(from, "cls.", 1, NULL, 0);
	assert_int_equal(weights_load(to, path, &r, &e), 0);
	assert_int_equal(r.fresh, 5);
	assert_string_equal(r.first_fresh, "cls.predictions.bias");
	free(path);

	/* a classifier takes encoder weights from a masked-token model */
	path = variant(from, NULL, 0, NULL, 0);
	assert_int_equal(weights_load(cells, path, &r, &e), 0);
	assert_int_equal(r.fresh, 4);
	assert_int_equal(r.ignored, 5);
	free(path);

	path = variant(from, "layer.1.output.dense.weight", 0, NULL, 0);
	assert_int_equal(weights_load(to, path, &r, &e), -1);
	assert_non_null(strstr(e.msg, "no tensor 'bert.encoder.layer.1.output.dense.weight' (expected shape [8, 12])"));
	free(path);
	const struct extra shape[] = {{"bert.encoder.layer.1.output.dense.weight", {12, 8}, 2, 0}};
	path = variant(from, "layer.1.output.dense.weight", 0, shape, 1);
	assert_int_equal(weights_load(to, path, &r, &e), -1);
	assert_non_null(strstr(e.msg, "'bert.encoder.layer.1.output.dense.weight' has shape [12, 8], the configuration asks for [8, 12]"));
	free(path);
	const struct extra layer[] = {{"bert.encoder.layer.2.output.dense.bias", {8}, 1, 0}};
	path = variant(from, NULL, 0, layer, 1);
	assert_int_equal(weights_load(to, path, &r, &e), -1);
	assert_non_null(strstr(e.msg, "'bert.encoder.layer.2.output.dense.bias' has no place"));
	unlink(path);
	free(path);
	free(want);
	model_free(from);
	model_free(to);
	model_free(cells);
}

static void sample_vocab(struct vocab *v)
{
	char id[16];
	struct error e;
	*v = (struct vocab){0};
	vocab_push(v, "<pad>", NULL, NAN);
	for (int i = 1; i < 50; i++) {
		snprintf(id, sizeof id, "ENSG%d", i);
		vocab_push(v, id, id, i / 3.0);
	}
	assert_int_equal(vocab_index(v, "test", &e), 0);
}

static int there(const char *name)
{
	char *path = in_dir(name);
	int yes = access(path, F_OK) == 0;
	free(path);
	return yes;
}

#define COLUMNS "step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds\n"

static void checkpoints(void **state)
{
	struct error e;
	struct vocab v, back;
	struct weights_report r;
	struct train_state s = {.steps = 90,
				   .epoch = 0.5,
				   .seconds = 3,
				   .digest = "0123456789abcdef0123456789abcdef",
				   .settings = cJSON_CreateObject()},
			   t;
	struct model *m = make(&head_mlm, 1), *to = make(&head_mlm, 2);
	cJSON_AddNumberToObject(s.settings, "lr", 0.1);
	s.stream = cJSON_Parse("{\"loader\":{\"rows\":90},\"vocabulary\":\"x\"}");
	sample_vocab(&v);
	char genes[] = "gene_id\tsymbol\tlabel\tfold\tsplit\n";
	const char *const side[] = {"config.json", "vocab.tsv", TRAIN_STATE, CHECKPOINT_TRAIN, "genes.tsv", NULL};
	struct model_files files = {.vocab = &v, .file = &(struct text_file){side[4], genes}, .nfile = 1};
	float *best = NULL;
	char *model = in_dir("model"), *damaged = NULL;
	assert_int_equal(checkpoint_progress(&t, model, &damaged, &e), TRAIN_NEW);
	assert_true(checkpoint_lock(model, &e) >= 0);
	assert_int_equal(checkpoint_lock(model, &e), -1);
	assert_non_null(strstr(e.msg, "another trainer"));
	float *x = xcalloc(model_size(m, PARAM), sizeof *x);
	for (s.step = 8; s.step <= 11; s.step++) {
		for (int w = PARAM; w <= MOMENT2; w++) {
			for (size_t i = 0; i < model_ntensor(m); i++)
				for (size_t k = 0; k < model_tensor(m, i)->n; k++)
					x[model_tensor(m, i)->at + k] = (float)(s.step + (size_t)w * 100 + k) / 7;
			model_write_all(m, (enum which)w, x);
		}
		if (s.step == 9) {
			s.best_step = 9;
			s.best = 1.0 / 3;
			files.best = best = values(m, PARAM);
		} else {
			s.stale = s.best_step ? 17 : 0;
		}
		assert_int_equal(checkpoint_save(model, m, &s, &files, 2, &e), 0);
	}
	/* 8 and 9 are gone; what is half written, or only looks like one, does not count */
	assert_false(there("model/checkpoint-8") || there("model/checkpoint-9") || there("model/checkpoint-11.tmp"));
	static const char *const others[] = {"model/checkpoint-99.tmp", "model/checkpoint-", "model/checkpoint-1x", "model/checkpoint-012"};
	for (int i = 0; i < 4; i++) {
		char *path = in_dir(others[i]);
		mkdir(path, 0777);
		free(path);
	}
	assert_int_equal(checkpoint_progress(&t, model, &damaged, &e), TRAIN_UNFINISHED);
	assert_int_equal(t.step, 11);
	train_state_release(&t);
	float *had = best;
	assert_int_equal(checkpoint_load(&t, to, &best, model, 11, &e), 0);
	assert_true(t.best_step == 9 && t.best == 1.0 / 3 && t.stale == 17);
	assert_memory_equal(best, had, model_size(m, PARAM) * sizeof *had);
	free(best);
	files.best = had;
	assert_true(there("model/checkpoint-11/genes.tsv"));
	assert_true(t.step == 11 && t.steps == 90 && t.epoch == 0.5 && t.seconds == 3 && strcmp(t.digest, s.digest) == 0);
	assert_true(cJSON_Compare(t.settings, s.settings, 1));
	for (int w = PARAM; w <= MOMENT2; w++) {
		if (w == GRAD)
			continue;
		float *a = values(m, (enum which)w), *b = values(to, (enum which)w);
		assert_memory_equal(a, b, model_size(m, PARAM) * sizeof *a);
		free(a);
		free(b);
	}
	train_state_release(&t);

	/* a renamed checkpoint, and one of another network */
	char *a = in_dir("model/checkpoint-10"), *b = in_dir("model/checkpoint-12");
	assert_int_equal(rename(a, b), 0);
	assert_int_equal(checkpoint_state(&t, model, 12, &e), -1);
	assert_non_null(strstr(e.msg, "says step 10"));
	assert_int_equal(rename(b, a), 0);
	struct model_config c = small();
	c.num_hidden_layers++;
	struct model *other = model_new(&c, &(struct head_spec){.kind = &head_mlm}, 1, cpu, 1, &e);
	assert_int_equal(checkpoint_load(&t, other, &best, model, 11, &e), -1);
	assert_non_null(strstr(e.msg, "no tensor"));
	assert_null(best);
	model_free(other);

	/* finished: model.safetensors is there, and reads back with its vocabulary */
	assert_false(checkpoint_finished(model));
	assert_int_equal(checkpoint_finish(model, m, &s, &files, &e), 0);
	assert_true(checkpoint_finished(model));
	assert_int_equal(checkpoint_progress(&t, model, &damaged, &e), TRAIN_FINISHED);
	assert_true(t.step == s.step && t.seconds == 0 && cJSON_Compare(t.settings, s.settings, 1) && cJSON_Compare(t.stream, s.stream, 1));
	train_state_release(&t);
	other = model_dir_load(model, &(struct head_spec){.kind = &head_mlm}, 1, cpu, 5, &back, &r, &e);
	assert_non_null(other);
	float *p = values(m, PARAM), *q = values(other, PARAM);
	assert_memory_equal(p, q, model_size(m, PARAM) * sizeof *p);
	struct header h;
	header_init(&h, STREAM_TOKENS);
	vocab_copy(&h.vocab, &v);
	assert_int_equal(vocab_same(&back, model_config(other), model, &h, "x.tok", &e), 0);
	h.vocab.median[3] *= 2;
	assert_int_equal(vocab_same(&back, model_config(other), model, &h, "x.tok", &e), 1);
	assert_non_null(strstr(e.msg, "medians differ"));
	free(h.vocab.id[4]);
	h.vocab.id[4] = xstrdup("ENSGx");
	assert_int_equal(vocab_same(&back, model_config(other), model, &h, "x.tok", &e), -1);
	assert_non_null(strstr(e.msg, "token 4 is ENSGx here and ENSG4 in the model"));
	vocab_push(&h.vocab, "ENSGy", "", 1);
	assert_int_equal(vocab_same(&back, model_config(other), model, &h, "x.tok", &e), -1);
	assert_non_null(strstr(e.msg, "51 tokens"));
	header_release(&h);
	vocab_release(&back);

	/* clear: first the temporaries, then everything of ours and nothing else */
	assert_int_equal(checkpoint_clear(model, NULL, &e), 0);
	assert_false(there("model/checkpoint-99.tmp"));
	assert_true(there("model/checkpoint-11") && there("model/model.safetensors"));
	assert_int_equal(checkpoint_clear(model, side, &e), 0);
	assert_false(
		there("model/checkpoint-11") || there("model/model.safetensors") || there("model/vocab.tsv") || there("model/genes.tsv"));
	assert_true(there("model/checkpoint-1x"));
	free(p);
	free(q);
	free(a);
	free(b);
	free(x);
	free(had);
	free(model);
	train_state_release(&s);
	vocab_release(&v);
	model_free(m);
	model_free(to);
	model_free(other);
}

static void train_log(void **state)
{
	struct error e;
	char text[512];
	char *path = in_dir("train.tsv");
	FILE *f = checkpoint_log(dir, CHECKPOINT_TRAIN, 0, COLUMNS, &e);
	for (int i = 1; i <= 12; i++)
		fprintf(f, "%d\tx\n", i);
	fputs("13\tcut sh", f);
	fclose(f);
	f = checkpoint_log(dir, CHECKPOINT_TRAIN, 10, COLUMNS, &e);
	fputs("11\ty\n", f);
	fclose(f);
	f = fopen(path, "r");
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	assert_string_equal(text,
		"step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds\n1\tx\n2\tx\n3\tx\n4\tx\n5\tx\n6\tx\n7\tx\n8\tx\n9\tx\n10\tx\n11\ty\n");
	unlink(path);
	free(path);
	assert_null(checkpoint_log("/nonexistent", CHECKPOINT_TRAIN, 0, COLUMNS, &e));
}

static void masked_streams(void **state)
{
	struct error e;
	struct masked_info l;
	struct header h;
	char a[33], b[33];
	header_init(&h, STREAM_MASKED);
	sample_vocab(&h.vocab);
	header_provenance(&h, "maskgen", "--seed 1");
	assert_int_equal(masked_info_parse(&l, &h, "x", &e), -1);
	assert_non_null(strstr(e.msg, "no loader.steps"));
	cJSON *o = cJSON_AddObjectToObject(h.extra, "loader");
	cJSON_AddNumberToObject(o, "steps", 30);
	cJSON_AddNumberToObject(o, "shard", 0);
	cJSON_AddNumberToObject(o, "first_step", 0);
	assert_int_equal(masked_info_parse(&l, &h, "x", &e), 0);
	assert_true(l.steps == 30 && l.shards == 1 && l.first_step == 0);
	masked_digest(&h, a);
	cJSON_SetNumberValue(cJSON_GetObjectItem(o, "first_step"), 12);
	cJSON_SetNumberValue(cJSON_GetObjectItem(o, "shard"), 3);
	masked_digest(&h, b);
	assert_string_equal(a, b);
	assert_int_equal(cJSON_GetObjectItem(o, "first_step")->valueint, 12);
	assert_int_equal(masked_info_parse(&l, &h, "x", &e), -1);
	cJSON_SetNumberValue(cJSON_GetObjectItem(o, "steps"), 31);
	masked_digest(&h, b);
	assert_string_not_equal(a, b);
	cJSON_SetNumberValue(cJSON_GetObjectItem(o, "steps"), 30);
	header_provenance(&h, "maskgen", "--seed 2");
	masked_digest(&h, b);
	assert_string_not_equal(a, b);
	header_release(&h);
}

/* The header that maskgen writes and the one that sctrain reads have the same digest, whatever its numbers. */
static void read_digest(void **state)
{
	(void)state;
	static const double mean[] = {2, 0.1, 0.1 + 0.2, 2.0 / 3, 100.0 / 7, 5e-324, 1e300, 123456789012345678.0, -0.0};
	for (size_t i = 0; i < sizeof mean / sizeof *mean; i++) {
		struct error e;
		struct header h, read;
		char a[33], b[33];
		header_init(&h, STREAM_MASKED);
		header_add(&h, "cell", U64);
		sample_vocab(&h.vocab);
		cJSON *o = cJSON_AddObjectToObject(cJSON_AddObjectToObject(h.extra, "loader"), "numbers");
		json_add_real(o, "mean", mean[i]);
		masked_digest(&h, a);
		char *text = header_print(&h);
		if (header_parse(&read, text, strlen(text), "x", &e))
			fail_msg("%s", e.msg);
		masked_digest(&read, b);
		assert_string_equal(a, b);
		free(text);
		header_release(&h);
		header_release(&read);
	}
}

static int cleanup(void **state)
{
	char *command = xasprintf("rm -rf %s", dir);
	int r = system(command);
	free(command);
	return r;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hugging_face),
		cmocka_unit_test(exact_size),
		cmocka_unit_test(variants),
		cmocka_unit_test(checkpoints),
		cmocka_unit_test(train_log),
		cmocka_unit_test(masked_streams),
		cmocka_unit_test(read_digest),
	};
	if (!mkdtemp(dir))
		return 1;
	cpu = ops_cpu_new(1);
	int failed = cmocka_run_group_tests(tests, NULL, cleanup);
	cpu->destroy(cpu);
	return failed;
}

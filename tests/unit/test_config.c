/* config.json: Hugging Face's defaults, what is refused, and what comes back. */
#include "train/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct head_spec MLM[] = {{.kind = &head_mlm}};

static struct model_config parse(const char *json)
{
	struct model_config c;
	struct error e;
	if (config_parse(&c, json, strlen(json), "test", &e))
		fail_msg("%s", e.msg);
	return c;
}

static void refused(const char *json, const char *why)
{
	struct model_config c;
	struct error e;
	if (config_parse(&c, json, strlen(json), "test", &e) == 0)
		fail_msg("accepted: %s", json);
	if (!strstr(e.msg, why) || strncmp(e.msg, "test: ", 6))
		fail_msg("%s\n  gives: %s\n  expected: %s", json, e.msg, why);
}

/* What transformers' BertConfig() has. */
static void defaults(void **state)
{
	struct model_config c = parse("{}");
	assert_int_equal(c.vocab_size, 30522);
	assert_int_equal(c.hidden_size, 768);
	assert_int_equal(c.num_hidden_layers, 12);
	assert_int_equal(c.num_attention_heads, 12);
	assert_int_equal(c.intermediate_size, 3072);
	assert_int_equal(c.max_position_embeddings, 512);
	assert_int_equal(c.type_vocab_size, 2);
	assert_int_equal(c.hidden_act, ACT_GELU);
	assert_true(c.hidden_dropout_prob == 0.1 && c.attention_probs_dropout_prob == 0.1 && c.classifier_dropout < 0);
	assert_true(c.layer_norm_eps == 1e-12 && c.initializer_range == 0.02);
}

/* Geneformer-V1-10M's file, and a classifier's. */
static void geneformer(void **state)
{
	struct model_config c = parse(
		"{\"architectures\": [\"BertForMaskedLM\"], \"attention_probs_dropout_prob\": 0.02, \"gradient_checkpointing\": false,"
		"\"hidden_act\": \"relu\", \"hidden_dropout_prob\": 0.02, \"hidden_size\": 256, \"initializer_range\": 0.02, \"intermediate_size\": 512,"
		"\"layer_norm_eps\": 1e-12, \"max_position_embeddings\": 2048, \"model_type\": \"bert\", \"num_attention_heads\": 4,"
		"\"num_hidden_layers\": 6, \"pad_token_id\": 0, \"position_embedding_type\": \"absolute\", \"transformers_version\": \"4.6.0\","
		"\"type_vocab_size\": 2, \"use_cache\": true, \"vocab_size\": 25426}");
	struct model_config p;
	struct error e;
	assert_int_equal(config_get(&p, "geneformer-v1-10m", &e), 0);
	assert_int_equal(p.vocab_size, 0);
	p.vocab_size = 25426;
	char *a = config_print(&c, MLM, 1), *b = config_print(&p, MLM, 1);
	assert_string_equal(a, b);
	free(a);
	free(b);
	c = parse("{\"id2label\": {\"0\": \"B\", \"1\": \"T\", \"2\": \"NK\"}, \"classifier_dropout\": 0.3}");
	assert_true(c.classifier_dropout == 0.3);
}

static void comes_back(void **state)
{
	struct model_config c =
		parse("{\"hidden_dropout_prob\": 0.123456789012345678, \"layer_norm_eps\": 1e-05, \"hidden_act\": \"relu\"}");
	static char t[] = "T", b[] = "B", nk[] = "NK", *const name[] = {t, b, nk};
	const struct head_spec head[] = {{.kind = &head_mlm}, {.kind = &head_cells, .nlabel = 3, .label = name},
		{.kind = &head_genes, .nlabel = 3}, {.kind = &head_value}};
	for (size_t i = 0; i <= 4; i++) { /* the last: no head */
		char *text = config_print(&c, &head[i], i < 4);
		struct config_heads h;
		struct error e;
		struct model_config d = parse(text);
		assert_true(d.hidden_dropout_prob == c.hidden_dropout_prob && d.layer_norm_eps == c.layer_norm_eps);
		assert_int_equal(d.hidden_act, ACT_RELU);
		assert_int_equal(config_heads_parse(&h, text, strlen(text), "test", &e), 0);
		assert_int_equal(h.n, i < 4);
		assert_true(i == 4 || h.head[0].kind == head[i].kind);
		assert_int_equal(h.head[0].nlabel, i == 1 || i == 2 ? 3 : 0);
		if (i == 1)
			assert_string_equal(h.head[0].label[2], "NK");
		if (i == 3) { /* transformers counts the labels by their names */
			assert_non_null(strstr(text, "\"problem_type\":\t\"regression\""));
			assert_non_null(strstr(text, "\"id2label\":\t{\n\t\t\"0\":\t\"LABEL_0\"\n\t}"));
		}
		config_heads_release(&h);
		free(text);
	}
}

static void no_head(const char *json, const char *why)
{
	struct config_heads h;
	struct error e;
	if (config_heads_parse(&h, json, strlen(json), "test", &e) == 0)
		fail_msg("accepted: %s", json);
	if (!strstr(e.msg, why) || strncmp(e.msg, "test: ", 6))
		fail_msg("%s\n  gives: %s\n  expected: %s", json, e.msg, why);
	assert_true(h.n == 0 && !h.own[0].label);
}

#define CELLS "\"architectures\": [\"BertForSequenceClassification\"]"
#define GENES "\"architectures\": [\"BertForTokenClassification\"]"

/* Names in the order of the classes, whatever the order in the file; transformers leaves two default names out. */
static void heads(void **state)
{
	struct config_heads h;
	struct error e;
	const char *json = "{" CELLS ", \"id2label\": {\"2\": \"NK\", \"0\": \"T\", \"1\": \"B cell, naive\"}}";
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_true(h.n == 1 && h.head[0].kind == &head_cells);
	assert_int_equal(h.head[0].nlabel, 3);
	assert_string_equal(h.head[0].label[0], "T");
	assert_string_equal(h.head[0].label[1], "B cell, naive");
	assert_string_equal(h.head[0].label[2], "NK");
	config_heads_release(&h);
	json = "{" GENES "}";
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_true(h.n == 1 && h.head[0].kind == &head_genes);
	assert_int_equal(h.head[0].nlabel, 2);
	assert_string_equal(h.head[0].label[1], "LABEL_1");
	config_heads_release(&h);
	/* one class, two heads */
	json = "{" GENES ", \"problem_type\": \"regression\"}";
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_true(h.n == 1 && h.head[0].kind == &head_value && h.head[0].nlabel == 0);
	config_heads_release(&h);
	json = "{" GENES ", \"problem_type\": \"single_label_classification\"}";
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_true(h.n == 1 && h.head[0].kind == &head_genes);
	config_heads_release(&h);
	json = "{" CELLS ", \"problem_type\": \"regression\", \"num_labels\": 1}";
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_true(h.n == 1 && h.head[0].kind == &head_number);
	config_heads_release(&h);
	json = "{\"architectures\": [\"BertForMaskedLM\"], \"id2label\": {\"0\": \"a\"}}";
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_true(h.n == 1 && h.head[0].kind == &head_mlm);
	assert_int_equal(h.head[0].nlabel, 0);
	config_heads_release(&h);
	json = "{" GENES ", \"num_labels\": 4}";
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_int_equal(h.head[0].nlabel, 4);
	config_heads_release(&h);
	no_head("{" GENES ", \"num_labels\": 3, \"id2label\": {\"0\": \"T\", \"1\": \"B\"}}", "num_labels is 3, but id2label has 2 names");
	no_head("{" CELLS ", \"problem_type\": \"regression\", \"id2label\": {\"0\": \"T\", \"1\": \"B\"}}", "a regression of 2 numbers");
	no_head("[]", "not a JSON object");
	no_head("{}", "architectures names none of");
	no_head("{\"architectures\": [\"BertForQuestionAnswering\"]}", "architectures names none of");
	no_head("{" CELLS ", \"id2label\": {\"0\": \"T\", \"2\": \"B\"}}", "\"2\" is not the number of one of its 2 classes");
	no_head("{" CELLS ", \"id2label\": {\"0\": \"T\", \"00\": \"B\"}}", "\"00\" is not the number");
	no_head("{" CELLS ", \"id2label\": {\"0\": \"T\", \"0\": \"B\"}}", "key '0' occurs twice");
	no_head("{" CELLS "} {}", "something follows the JSON object, at byte 53");
	no_head("{" CELLS ", \"problem_type\": \"multi_label_classification\"}", "problem_type \"multi_label_classification\"");
	json = "{" CELLS ", \"id2label\": {\"0\": \"LABEL_0\"}}"; /* transformers: one class is a number */
	assert_int_equal(config_heads_parse(&h, json, strlen(json), "test", &e), 0);
	assert_int_equal(h.head[0].kind->target, TARGET_VALUE);
	config_heads_release(&h);
	no_head("{" CELLS ", \"id2label\": {\"0\": \"T\", \"1\": 1}}", "\"1\" is not the number");
	no_head("{" CELLS ", \"id2label\": {\"0\": \"T\", \"1\": \"T\"}}", "two classes are named 'T'");
	no_head("{" CELLS ", \"id2label\": {\"0\": \"T\", \"1\": \"\"}}", "class 1 is empty");
	no_head("{" GENES ", \"id2label\": {\"0\": \"T\", \"1\": \"a\\tb\"}}", "tab or line break");
}

/* Several heads are listed with their weights, and come back: heads without names, as older versions wrote them. */
static void several(void **state)
{
	struct model_config c = parse("{}");
	static char t[] = "T", b[] = "B", *const name[] = {t, b};
	const struct head_spec head[] = {
		{.kind = &head_mlm, .weight = 0.5}, {.kind = &head_cells, .weight = 2, .nlabel = 2, .label = name}};
	struct config_heads h;
	struct error e;
	char *text = config_print(&c, head, 2), *again;
	assert_int_equal(config_heads_parse(&h, text, strlen(text), "test", &e), 0);
	assert_true(h.n == 2 && h.head[0].kind == &head_mlm && h.head[1].kind == &head_cells);
	assert_true(h.head[0].weight == 0.5 && h.head[1].weight == 2 && h.head[1].nlabel == 2 && h.head[0].nlabel == 0);
	again = config_print(&c, h.head, h.n);
	assert_string_equal(text, again);
	free(text);
	free(again);
	config_heads_release(&h);
#define LIST(x) "{\"corrmask_heads\": " x "}"
#define HEAD(x) "{\"kind\": \"cells\", \"weight\": 1, " x "}"
#define TWO "\"id2label\": {\"0\": \"a\", \"1\": \"b\"}"
	no_head(LIST("[]"), "expected a list of heads");
	no_head(LIST("{}"), "expected a list of heads");
	no_head(LIST("[{\"kind\": \"mlm\"}]"), "head mlm: weight");
	no_head(LIST("[{\"kind\": \"tail\", \"weight\": 1}]"), "head 0 is of an unknown kind");
	no_head(LIST("[3]"), "head 0 is of an unknown kind");
	no_head(LIST("[{\"kind\": \"mlm\", \"weight\": 1}, {\"kind\": \"mlm\", \"weight\": 1}]"), "mlm occurs twice");
	no_head(LIST("[" HEAD("\"name\": \"x\", " TWO) ", " HEAD("\"name\": \"x\", " TWO) "]"), "x occurs twice");
	no_head(LIST("[" HEAD("\"name\": \"x\", " TWO) ", {\"kind\": \"mlm\", \"weight\": 1, \"name\": \"x\"}]"), "x occurs twice");
	no_head(LIST("[" HEAD("\"name\": \"\"") "]"), "name: expected 1 to 40 bytes");
	no_head(LIST("[" HEAD("\"name\": \"a\\tb\"") "]"), "name: expected 1 to 40 bytes");
	no_head(LIST("[" HEAD("\"name\": \"12345678901234567890123456789012345678901\"") "]"), "name: expected 1 to 40 bytes");
	no_head(LIST("[" HEAD("\"name\": 3") "]"), "name: expected 1 to 40 bytes");
	no_head(LIST("[" HEAD("\"prefix\": {}") "]"), "prefix: expected 1 to 64 bytes");
	no_head(LIST("[" HEAD("\"position\": 70000") "]"), "position 70000");
	no_head(LIST("[" HEAD("\"from\": -1") "]"), "from is -1");
	no_head(LIST("[" HEAD("\"scale\": -2") "]"), "scale -2");
	no_head(LIST("[" HEAD("\"name\": \"x\", \"id2label\": {\"0\": \"a\", \"1\": \"a\"}") "]"), "two classes are named 'a'");
	no_head(LIST("[" HEAD("\"name\": \"x\", \"id2label\": {\"1\": \"a\"}") "]"), "\"1\" is not the number of one of its 1 classes");
	char *many = xstrdup("");
	for (int i = 0; i < 17; i++) {
		char *more = xasprintf("%s%s{\"kind\": \"mlm\", \"weight\": 1, \"name\": \"h%d\"}", many, i ? ", " : "", i);
		free(many);
		many = more;
	}
	char *list = xasprintf(LIST("[%s]"), many);
	no_head(list, "more than 16 heads");
	free(list);
	free(many);
}

/* Two heads of one kind, each with its own classes, and a number: all comes back, and transformers finds the first. */
static void named(void **state)
{
	struct model_config c = parse("{}");
	static char t[] = "T", b[] = "B", d1[] = "d1", d2[] = "d2", d3[] = "d3", *const type[] = {t, b}, *const donor[] = {d1, d2, d3};
	const struct head_spec head[] = {{.kind = &head_cells, .name = "cell_type", .column = "cell_type", .nlabel = 2, .label = type},
		{.kind = &head_cells,
			.name = "donor",
			.column = "donor id",
			.prefix = "heads.donor.",
			.weight = 0.25,
			.from = 100,
			.position = 1,
			.nlabel = 3,
			.label = donor},
		{.kind = &head_number, .name = "age", .column = "age", .prefix = "heads.age.", .mean = 41.3, .scale = 12.7}};
	struct config_heads h;
	struct error e;
	char *text = config_print(&c, head, 3);
	assert_int_equal(config_heads_parse(&h, text, strlen(text), "test", &e), 0);
	assert_int_equal(h.n, 3);
	assert_non_null(strstr(text, "BertForSequenceClassification"));
	assert_non_null(strstr(text, "\"problem_type\":\t\"single_label_classification\""));
	assert_true(!h.head[0].prefix && h.head[0].nlabel == 2 && h.head[1].nlabel == 3 && h.head[2].nlabel == 0);
	assert_string_equal(h.head[1].name, "donor");
	assert_string_equal(h.head[1].column, "donor id");
	assert_string_equal(h.head[1].prefix, "heads.donor.");
	assert_string_equal(h.head[1].label[2], "d3");
	assert_string_equal(h.head[0].label[1], "B");
	assert_true(h.head[1].weight == 0.25 && h.head[1].from == 100 && h.head[1].position == 1);
	assert_true(h.head[2].mean == 41.3 && h.head[2].scale == 12.7);
	char *again = config_print(&c, h.head, h.n);
	assert_string_equal(text, again);
	assert_true(head_same(&head[1], &h.head[1]) && !head_same(&head[0], &h.head[1]));
	free(text);
	free(again);
	config_heads_release(&h);
}

static void wrong(void **state)
{
	refused("[]", "not a JSON object");
	refused("{\"hidden_size\": ", "not a JSON object");
	refused("{\"layer_norm_eps\": 1e-12, \"layer_norm_eps\": 0.1}", "key 'layer_norm_eps' occurs twice");
	refused("{\"model_type\": \"bmfm_llama\", \"num_memory_tokens\": 2}", "unknown key 'num_memory_tokens'");
	refused("{\"model_type\": \"mlp_nb\", \"vlaue_shift\": 2}", "unknown key 'vlaue_shift'");
	refused("{\"model_type\": \"scllama\"}", "model_type is \"scllama\": scstream from-bmfm makes a model of it");
	refused("{\"hidden_size\": \"256\"}", "hidden_size: expected a number");
	refused("{\"hidden_size\": 25.5}", "hidden_size is 25.5");
	refused("{\"hidden_size\": -1}", "hidden_size is -1");
	refused("{\"hidden_size\": 100}", "not a multiple of num_attention_heads");
	refused("{\"hidden_act\": \"silu\"}", "hidden_act is silu: expected relu or gelu");
	refused("{\"model_type\": \"gpt2\"}", "model_type is \"gpt2\": only \"bert\"");
	refused("{\"position_embedding_type\": \"relative_key\"}", "only \"absolute\"");
	refused("{\"is_decoder\": true}", "is_decoder: only false");
	refused("{\"tie_word_embeddings\": false}", "tie_word_embeddings: only true");
	refused("{\"hidden_dropout_prob\": 1}", "hidden_dropout_prob is 1");
	refused("{\"pad_token_id\": 40000}", "pad_token_id");
	struct model_config c;
	struct error e;
	assert_int_equal(config_get(&c, "no-such-thing", &e), -1);
	assert_non_null(strstr(e.msg, "no-such-thing: no such preset"));
	assert_int_equal(config_get(&c, "/tmp", &e), -1);
	assert_non_null(strstr(e.msg, "/tmp: no config.json in it"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(geneformer),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(heads),
		cmocka_unit_test(several),
		cmocka_unit_test(named),
		cmocka_unit_test(wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

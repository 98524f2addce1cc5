/* Ontologies: OBO files, labels, pruning, sets of leaves, decoding. */
#include "label/leaves.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/test_ontology.XXXXXX";

static int setup(void **unused)
{
	int fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int teardown(void **unused)
{
	return unlink(path);
}

static int load(struct ontology *o, const char *text, struct error *e)
{
	FILE *f = fopen(path, "w");
	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
	return ontology_load(o, path, e);
}

static void must_load(struct ontology *o, const char *text)
{
	struct error e;
	if (load(o, text, &e))
		fail_msg("%s", e.msg);
}

/* The id of the term that a label means; "": none. */
static const char *means(const struct ontology *o, const char *label)
{
	uint32_t t = ontology_find(o, label, strlen(label));
	return t == TERM_NONE ? "" : o->id[t];
}

static const char labels[] = "format-version: 1.2\nontology: test\ndata-version: 7 ! newest\n\n"
			     "[Term]\nid: X:2\nname: T cell \\{fast\\} {source=\"a\"} ! a comment\nalt_id: X:20\nalt_id: X:21\n"
			     "synonym: \"a \\\"T\\\" cell\" EXACT abbreviation [DOI:1]\nsynonym: \"lymphocyte\" BROAD []\n"
			     "synonym: \"shared\" EXACT []\nis_a: X:1 {is_inferred=\"true\"} ! cell\nrelationship: part_of X:9\n\r\n"
			     "! a line of comment\n"
			     "[Term]\r\nid: X:1\r\nname: cell\r\nalt_id: X:21\r\nsynonym: \"shared\" EXACT []\r\n"
			     "def: \"a long \\\ntext without a tag\"\n"
			     "[Term]\nid: X:3\nis_a: X:2\nis_a: X:1\nis_a: X:2\nsynonym: \"cell\" EXACT []\nalt_id: X:7\n"
			     "[Term]\nid: X:4\nname: old\nis_obsolete: true\nreplaced_by: X:5\n"
			     "[Term]\nid: X:5\nis_obsolete: true\nreplaced_by: X:20\nreplaced_by: X:20\nis_a: X:4\n"
			     "[Term]\nid: X:6\nis_obsolete: true\nreplaced_by: X:1\nreplaced_by: X:2\n"
			     "[Term]\nid: X:7\nis_obsolete: true\nreplaced_by: X:1\n"
			     "[Term]\nid: X:8\nis_obsolete: true\nreplaced_by: X:9\n"
			     "[Term]\nid: X:9\nis_obsolete: true\nreplaced_by: X:8\n"
			     "[Term]\nid: X:A\nis_obsolete: true\nreplaced_by: OTHER:1\n"
			     "[Term]\nid: X:B\nis_obsolete: true\nreplaced_by: NONE:1\n"
			     "[Term]\nid: OTHER:1\nname: CELL\n"
			     "[Typedef]\nid: part_of\nname: part of\nis_a: nothing\n";

static void what_a_label_means(void **unused)
{
	struct ontology o;
	static const char *const want[][2] = {
		{"X:1", "X:1"},
		{"X:20", "X:2"},
		{"X:21", ""}, /* two terms claim it */
		{"T cell {fast}", "X:2"},
		{"t CELL {Fast}", "X:2"},
		{"a \"T\" cell", "X:2"},
		{"A \"t\" CELL", "X:2"},
		{"lymphocyte", ""}, /* not EXACT */
		{"shared", ""}, /* of two terms */
		{"cell", "X:1"}, /* a name, before a synonym of another term */
		{"CELL", "OTHER:1"}, /* as it is written, before others */
		{"Cell", ""}, /* two names */
		{"X:3", "X:3"}, /* also its name */
		{"X:4", "X:2"}, /* X:4 -> X:5 -> X:20, an alt_id of X:2 */
		{"X:5", "X:2"},
		{"X:6", ""}, /* replaced by two */
		{"X:7", "X:3"}, /* an alt_id of a term, though obsolete itself */
		{"X:8", ""}, /* a circle */
		{"X:9", ""},
		{"X:A", "OTHER:1"},
		{"X:B", ""},
		{"old", ""},
		{"part_of", ""},
		{"", ""},
		{"X:", ""},
	};
	must_load(&o, labels);
	assert_int_equal(o.n, 4);
	assert_string_equal(o.source, "test, 7");
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		if (strcmp(means(&o, want[i][0]), want[i][1]))
			fail_msg("%s means '%s', not '%s'", want[i][0], means(&o, want[i][0]), want[i][1]);
	assert_int_equal(ontology_find(&o, "X:1 and more", 3), ontology_find(&o, "X:1", 3));
	assert_int_equal(o.parent.at[4] - o.parent.at[3], 2); /* X:3: each parent once */
	assert_string_equal(o.name[3], "X:3");
	/* all of it is printed so that it reads the same again */
	uint8_t all[] = {1, 1, 1, 1}, some[] = {0, 1, 0, 1};
	char *text = ontology_print(&o, all), *part = ontology_print(&o, some), *again;
	ontology_release(&o);
	must_load(&o, text);
	assert_int_equal(o.n, 4);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		assert_string_equal(means(&o, want[i][0]), want[i][1]);
	assert_string_equal(again = ontology_print(&o, all), text);
	ontology_release(&o);
	free(again);
	must_load(&o, part);
	assert_int_equal(o.n, 2);
	assert_string_equal(means(&o, "shared"), "X:1");
	assert_int_equal(o.parent.at[2], 1); /* X:3 is_a X:1; X:2 is gone */
	ontology_release(&o);
	free(text);
	free(part);
}

static void refused(void **unused)
{
	static const char *const bad[][2] = {
		{"", "no [Term] in it: expected an OBO file"},
		{"id,name\nX:1,cell\n", "line 1: expected TAG: VALUE, as in an OBO file"},
		{"[Term]\nname: cell\n", "line 1: a term without an id"},
		{"[Term]\nname: cell\n\n[Term]\nid: X:1\n", "line 1: a term without an id"},
		{"[Term]\nid: ! none\n", "line 2: id: expected the id of a term"},
		{"[Term]\nid: X:1\nid: X:2\n", "line 3: a second id in one stanza"},
		{"[Term]\nid: X:1\n[Term]\nid: X:1\n", "line 3: the term X:1 occurs twice"},
		{"[Term]\nid: X:1\nis_a:\n", "line 3: is_a: expected the id of a term"},
		{"[Term]\nid: X:1\nis_a: X:2 ! other\n", "line 3: X:1 is_a X:2, which the file does not have"},
		{"[Term]\nid: X:1\nis_a: X:2\n[Term]\nid: X:2\nis_obsolete: true\n", "line 3: X:1 is_a X:2, which is obsolete"},
		{"[Term]\nid: X:1\nis_obsolete: yes\n", "line 3: is_obsolete: expected true or false"},
		{"[Term]\nid: X:1\nsynonym: cell EXACT\n", "line 3: synonym: expected a text in quotes"},
		{"[Term]\nid: X:1\nis_obsolete: true\n", "all its terms are obsolete"},
		{"[Term]\nid: X:1\nis_a: X:1\n", "X:1 (X:1) is a kind of itself: its is_a lines lead back to it"},
		{"[Term]\nid: X:0\nname: low\nis_a: X:1\n[Term]\nid: X:1\nname: one\nis_a: X:2\nis_a: X:3\n[Term]\nid: X:2\n"
		 "[Term]\nid: X:3\nis_a: X:1\n",
			"X:1 (one) is a kind of itself"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ontology o;
		struct error e = {""};
		assert_int_equal(load(&o, bad[i][0], &e), -1);
		if (!strstr(e.msg, bad[i][1]) || !strstr(e.msg, path))
			fail_msg("'%s', not '%s'", e.msg, bad[i][1]);
		assert_null(o.id);
	}
}

/* The shape of facts/bmfm.md section 12: root -> {A, B, direct}, A -> {leaf1, shared}, B -> {shared, C}, C -> {leaf2}. */
#define DAG \
	"[Term]\nid: root\n[Term]\nid: A\nis_a: root\n[Term]\nid: B\nis_a: root\n[Term]\nid: direct\nis_a: root\n" \
	"[Term]\nid: leaf1\nis_a: A\n[Term]\nid: shared\nis_a: A\nis_a: B\n[Term]\nid: C\nis_a: B\n[Term]\nid: leaf2\nis_a: C\n"

static uint32_t at(const struct ontology *o, const char *id)
{
	uint32_t t = ontology_find(o, id, strlen(id));
	assert_true(t != TERM_NONE);
	return t;
}

static uint32_t set_of(const struct leaves *l, const char *id)
{
	return *leaves_under(l, at(l->o, id));
}

static void leaf_sets(void **unused)
{
	static const char *const leaf[] = {"direct", "leaf1", "leaf2", "shared"};
	static const double z[] = {0.5, -1, 2, 0.1};
	struct ontology o;
	struct leaves l;
	must_load(&o, DAG "[Term]\nid: unseen\nis_a: C\n[Term]\nid: under-unseen\nis_a: unseen\n[Term]\nid: alone\n");
	uint8_t *seen = xcalloc(o.n, 1);
	for (int i = 0; i < 4; i++)
		seen[at(&o, leaf[i])] = 1;
	seen[at(&o, "A")] = 1; /* an observed term above leaves changes nothing */
	leaves_init(&l, &o, seen);
	assert_int_equal(l.n, 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(o.id[l.term[i]], leaf[i]);
	assert_true(set_of(&l, "root") == 15 && set_of(&l, "A") == (2 | 8) && set_of(&l, "B") == (4 | 8) && set_of(&l, "C") == 4);
	assert_true(set_of(&l, "shared") == 8 && !set_of(&l, "unseen") && !set_of(&l, "alone") && !l.kept[at(&o, "alone")]);
	double p[4], total = 0, *sum = xcalloc(o.n, sizeof *sum);
	for (int i = 0; i < 4; i++)
		total += p[i] = exp(z[i]);
	for (int i = 0; i < 4; i++)
		p[i] /= total;
	leaves_sum(&l, p, sum);
	assert_true(fabs(sum[at(&o, "root")] - 1) < 1e-12 && fabs(sum[at(&o, "B")] - 0.808140637) < 1e-9);
	assert_true(fabs(sum[at(&o, "A")] - 0.140145990) < 1e-9 && sum[at(&o, "unseen")] == 0);
	uint32_t *way = xcalloc(o.n, sizeof *way);
	assert_int_equal(leaves_descend(&l, sum, TERM_NONE, way), 4);
	assert_true(way[0] == at(&o, "root") && way[1] == at(&o, "B") && way[2] == at(&o, "C") && way[3] == at(&o, "leaf2"));
	assert_int_equal(leaves_descend(&l, sum, at(&o, "shared"), way), 3); /* through B, which is likelier than A */
	assert_true(way[1] == at(&o, "B") && way[2] == at(&o, "shared"));
	assert_int_equal(leaves_descend(&l, sum, at(&o, "leaf1"), way), 3);
	assert_true(way[1] == at(&o, "A") && way[2] == at(&o, "leaf1"));
	leaves_release(&l);
	/* an observed term without observed terms below is a leaf; several roots: the likeliest first */
	memset(seen, 0, o.n);
	seen[at(&o, "C")] = seen[at(&o, "alone")] = 1;
	leaves_init(&l, &o, seen);
	assert_int_equal(l.n, 2);
	assert_string_equal(o.id[l.term[0]], "C");
	leaves_sum(&l, (double[]){.5, .5}, sum);
	assert_int_equal(leaves_descend(&l, sum, TERM_NONE, way), 1); /* equal: the lower id, alone */
	leaves_sum(&l, (double[]){.6, .4}, sum);
	assert_int_equal(leaves_descend(&l, sum, TERM_NONE, way), 3);
	assert_true(way[0] == at(&o, "root") && way[1] == at(&o, "B") && way[2] == at(&o, "C"));
	leaves_release(&l);
	ontology_release(&o);
	free(seen);
	free(sum);
	free(way);
}

/* More leaves than a word has bits: every set against a walk through the children. */
static int under(const struct ontology *o, uint32_t v, uint32_t leaf)
{
	int found = v == leaf;
	for (uint32_t k = o->child.at[v]; !found && k < o->child.at[v + 1]; k++)
		found = under(o, o->child.to[k], leaf);
	return found;
}

static void many_leaves(void **unused)
{
	enum { TERMS = 150 };
	struct ontology o;
	struct leaves l;
	uint32_t x = 1;
	char *text = xstrdup("");
	for (int i = 0; i < TERMS; i++) {
		char *more = xasprintf("%s[Term]\nid: %03d\n", text, (i * 77) % TERMS); /* in no order */
		for (int k = 0; i && k < 2; k++) {
			x = x * 1664525u + 1013904223u;
			char *line = xasprintf("%sis_a: %03d\n", more, ((int)(x >> 16) % i * 77) % TERMS);
			free(more);
			more = line;
		}
		free(text);
		text = more;
	}
	must_load(&o, text);
	assert_int_equal(o.n, TERMS);
	for (uint32_t i = 0, *place = xcalloc(o.n, sizeof *place); i < o.n; i++) {
		place[o.order[i]] = i + 1;
		for (uint32_t k = o.parent.at[o.order[i]]; k < o.parent.at[o.order[i] + 1]; k++)
			assert_true(place[o.parent.to[k]]);
		if (i + 1 == o.n)
			free(place);
	}
	uint8_t *seen = xmalloc(o.n);
	for (uint32_t i = 0; i < o.n; i++)
		seen[i] = i % 3 > 0;
	leaves_init(&l, &o, seen);
	assert_true(l.n > 32 && l.n < TERMS);
	for (uint32_t v = 0; v < o.n; v++)
		for (size_t k = 0; k < l.n; k++)
			assert_int_equal(leaves_under(&l, v)[k / 32] >> k % 32 & 1, under(&o, v, l.term[k]));
	leaves_release(&l);
	ontology_release(&o);
	free(seen);
	free(text);
}

/* A part of an ontology, with its namesakes: a text means a chosen term in the part exactly if it does in the whole. */
static void namesakes(void **unused)
{
	static const char *const word[] = {"a", "A", "b", "B", "c", "X:1", "x:2", "X:3", "X:11", "X:12"};
	enum { TERMS = 6, WORDS = sizeof word / sizeof *word };
	uint32_t r = 1;
	size_t added = 0;
	for (int round = 0; round < 400; round++) {
		struct ontology o, part;
		uint8_t chosen[TERMS] = {0}, some[TERMS];
		char text[4096] = "";
		for (int i = 0; i < TERMS; i++) {
			size_t n = strlen(text), w[3];
			for (int k = 0; k < 3; k++)
				w[k] = (r = r * 1664525 + 1013904223) >> 16 & 15;
			snprintf(text + n, sizeof text - n, "[Term]\nid: X:%d\nname: %s\nsynonym: \"%s\" EXACT []\n%s%s\n", i,
				word[w[0] % WORDS], word[w[1] % WORDS], w[2] < WORDS ? "alt_id: " : "", w[2] < WORDS ? word[w[2]] : "");
		}
		must_load(&o, text);
		for (int i = 0; i < TERMS; i++)
			chosen[i] = some[i] = (r = r * 1664525 + 1013904223) >> 20 & 1;
		chosen[round % TERMS] = some[round % TERMS] = 1;
		ontology_add_namesakes(&o, some);
		char *printed = ontology_print(&o, some);
		must_load(&part, printed);
		added += part.n;
		for (int i = 0; i < TERMS; i++)
			added -= chosen[i];
		for (size_t k = 0; k < WORDS; k++) {
			uint32_t whole = ontology_find(&o, word[k], strlen(word[k]));
			const char *is = means(&part, word[k]), *expected = whole != TERM_NONE && chosen[whole] ? o.id[whole] : "";
			assert_string_equal(*is && chosen[*(strchr(is, ':') + 1) - '0'] ? is : "", expected);
		}
		free(printed);
		ontology_release(&o);
		ontology_release(&part);
	}
	assert_true(added > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_label_means),
		cmocka_unit_test(refused),
		cmocka_unit_test(leaf_sets),
		cmocka_unit_test(many_leaves),
		cmocka_unit_test(namesakes),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

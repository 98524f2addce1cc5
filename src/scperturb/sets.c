/* Which genes are perturbed together: the arguments of --delete and the options like it. */
#include "scperturb.h"

#include "cli_genes.h"
#include "base/closest.h"
#include "base/option.h"
#include "base/sort.h"
#include "base/tsv.h"

#include <strings.h>
#include <unistd.h>

char *set_label(const uint32_t *gene, size_t n, const struct vocab *v)
{
	size_t length = 1, at = 0;
	for (size_t i = 0; i < n; i++)
		length += strlen(v->id[gene[i]]) + 1;
	char *label = xmalloc(length);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(label + at, length - at, "%s%s", i ? "+" : "", v->id[gene[i]]);
	label[at] = 0;
	return label;
}

static int has(const uint32_t *gene, size_t n, uint32_t g)
{
	for (size_t i = 0; i < n; i++)
		if (gene[i] == g)
			return 1;
	return 0;
}

/* Append a set, which takes over gene [n] and label; a NULL label is made of the ids. */
static void sets_add(struct sets *s, uint32_t *gene, size_t n, char *label, const struct vocab *v)
{
	grow(s->set, s->cap, s->n + 1);
	s->set[s->n++] = (struct set){gene, n, label ? label : set_label(gene, n, v), 0};
}

/* "A+B" as a set. Returns NULL, or (malloced) the first name that is no gene, or a symbol of several. */
static char *add_word(struct sets *s, const char *word, size_t n, const struct gene_find *genes)
{
	uint32_t *gene = NULL;
	size_t count = 0, cap = 0;
	for (const char *p = word, *end = word + n; p <= end;) {
		const char *plus = memchr(p, '+', (size_t)(end - p));
		size_t length = (size_t)((plus ? plus : end) - p);
		int64_t g = gene_find(genes, p, length);
		if (g < 0) {
			free(gene);
			return xstrndup(p, length);
		}
		grow(gene, cap, count + 1);
		if (!has(gene, count, (uint32_t)g))
			gene[count++] = (uint32_t)g;
		p += length + 1;
	}
	sets_add(s, gene, count, NULL, genes->v);
	return NULL;
}

/* "A,B+C". The same return value. */
static char *add_list(struct sets *s, const char *text, const struct gene_find *genes)
{
	size_t n;
	char **word = opt_list(text, &n), *unknown = NULL;
	for (size_t i = 0; i < n && !unknown; i++)
		unknown = add_word(s, word[i], strlen(word[i]), genes);
	free_list(word, n);
	return unknown;
}

/* The line of a .gmt file: name, description, genes. Genes that the vocabulary lacks are counted. */
static int add_gene_set(struct sets *s, const struct tsv *t, const struct gene_find *genes)
{
	uint32_t *gene = NULL;
	size_t n = 0, cap = 0;
	if (t->n < 3)
		return tsv_error(t, &failure, "%zu fields, expected a name, a description and genes", t->n);
	for (size_t i = 2; i < t->n; i++) {
		int64_t g = gene_find(genes, t->field[i], strlen(t->field[i]));
		s->unknown += g == GENE_UNKNOWN && t->field[i][0];
		s->ambiguous += g == GENE_AMBIGUOUS;
		if (g < 0 || has(gene, n, (uint32_t)g))
			continue;
		grow(gene, cap, n + 1);
		gene[n++] = (uint32_t)g;
	}
	if (n)
		sets_add(s, gene, n, xstrdup(t->field[0]), genes->v);
	else
		free(gene);
	return 0;
}

static int ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n >= m && strcasecmp(s + n - m, end) == 0;
}

static void add_file(struct sets *s, const char *path, const struct gene_find *genes)
{
	RELEASED(tsv_close) struct tsv t;
	int gmt = ends_with(path, ".gmt") || ends_with(path, ".gmt.gz"), got;
	must(tsv_open(&t, path, &failure));
	while ((got = tsv_next(&t, &failure)) > 0) {
		if (t.n == 1 && !t.field[0][0])
			continue;
		if (!gmt && t.n != 1)
			got = tsv_error(&t, &failure,
				"%zu fields, expected one: a gene, or genes with + between (or a file of gene sets, .gmt)", t.n);
		char *unknown = gmt || got < 0 ? NULL : add_word(s, t.field[0], strlen(t.field[0]), genes);
		if (unknown && gene_find(genes, unknown, strlen(unknown)) == GENE_AMBIGUOUS)
			got = tsv_error(&t, &failure, "%s", gene_ambiguous(genes, unknown, strlen(unknown)));
		else if (unknown)
			got = tsv_error(&t, &failure, "no gene '%.80s' in the vocabulary", unknown);
		free(unknown);
		if (got < 0 || (gmt && (got = add_gene_set(s, &t, genes)) < 0))
			break;
	}
	must(got < 0);
	if (!s->n)
		die(s->unknown + s->ambiguous ? "%s: none of its %zu genes is in the vocabulary" : "%s: no genes in it", path,
			s->unknown + s->ambiguous);
}

static _Noreturn void no_gene(const struct sets *s, const char *name, const struct gene_find *genes)
{
	const struct vocab *v = genes->v;
	if (gene_find(genes, name, strlen(name)) == GENE_AMBIGUOUS)
		die("--%s: %s", perturb_name[s->kind], gene_ambiguous(genes, name, strlen(name)));
	struct closest c = closest_to(name, strlen(name));
	for (size_t i = v->nspecial; i < v->n; i++) {
		closest_try(&c, v->symbol[i], strlen(v->symbol[i]));
		closest_try(&c, v->id[i], strlen(v->id[i]));
	}
	char *question = closest_question(&c, "");
	die("--%s %s: no gene '%.80s' in the vocabulary, and no file of this name%s", perturb_name[s->kind], s->option, name, question);
}

struct keyed {
	char *key;
	const char *label;
};

/* What two equal perturbations share (malloced): the name of a gene set, or the genes, whose order tells only overexpressed ones apart. */
static char *key_of(const struct set *set, enum perturb_kind kind, const struct vocab *v)
{
	char *genes = set_label(set->gene, set->n, v);
	if (kind == PERTURB_OVEREXPRESS || strcmp(genes, set->label)) {
		free(genes);
		return xstrdup(set->label);
	}
	free(genes);
	FREED uint32_t *sorted = xmalloc(set->n * sizeof *sorted);
	memcpy(sorted, set->gene, set->n * sizeof *sorted);
	qsort(sorted, set->n, sizeof *sorted, compare_u32);
	return set_label(sorted, set->n, v);
}

/* Each perturbation is named once, and labels tell them apart. */
static void check_labels(const struct sets *s, const struct vocab *v)
{
	FREED struct keyed *k = xmalloc(s->n * sizeof *k);
	for (size_t i = 0; i < s->n; i++)
		k[i] = (struct keyed){key_of(&s->set[i], s->kind, v), s->set[i].label};
	qsort(k, s->n, sizeof *k, compare_text);
	for (size_t i = 1; i < s->n; i++) {
		if (strcmp(k[i - 1].key, k[i].key))
			continue;
		if (strcmp(k[i - 1].label, k[i].label) == 0)
			die("--%s: '%.200s' is given twice", perturb_name[s->kind], k[i].label);
		die("--%s: '%.200s' and '%.200s' are the same genes: give them once", perturb_name[s->kind], k[i - 1].label, k[i].label);
	}
	for (size_t i = 0; i < s->n; i++)
		free(k[i].key);
}

void sets_read(struct sets *s, const struct gene_find *genes)
{
	s->all = strcmp(s->option, "all") == 0;
	s->screened = strcmp(s->option, "screened") == 0;
	if (s->all || s->screened)
		return;
	FREED char *unknown = add_list(s, s->option, genes);
	if (unknown && access(s->option, F_OK) == 0) {
		sets_release(s);
		add_file(s, s->option, genes);
	} else if (unknown) {
		no_gene(s, unknown, genes);
	}
	check_labels(s, genes->v);
}

void sets_release(struct sets *s)
{
	for (size_t i = 0; i < s->n; i++)
		free_all(s->set[i].gene, s->set[i].label);
	free(s->set);
	s->set = NULL;
	s->n = s->cap = 0;
}

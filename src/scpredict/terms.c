/*
 * scpredict cells of a head whose classes are the leaves of an ontology: the way from the top to the predicted leaf, and probabilities of
 * terms. The probability of a term is that of all leaves under it (label/leaves.h).
 */
#include "scpredict.h"

#include "label/leaves.h"

struct terms {
	struct ontology ontology;
	struct leaves leaves;
	uint32_t *leaf; /* [ontology.n] number of the leaf of a term */
	size_t nnode;
	uint32_t *node; /* [nnode] terms of --node, and their columns */
	int *column, lineage, named;
	double *sum; /* [ontology.n] */
	uint32_t *way;
};

static void open_leaves(struct terms *t, const struct head_spec *s, const char *path)
{
	if (leaves_of(&t->leaves, &t->ontology, s->label, s->nlabel, &failure))
		die("%s: %s of the head '%s'", path, failure.msg, head_name(s));
	t->leaf = xcalloc(t->ontology.n, sizeof *t->leaf);
	for (size_t k = 0; k < t->leaves.n; k++)
		t->leaf[t->leaves.term[k]] = (uint32_t)k;
}

/* Add the term of a name; 0: there is none. */
static int add_node(struct terms *t, const char *name)
{
	uint32_t term = ontology_find(&t->ontology, name, strlen(name));
	if (term == TERM_NONE || !t->leaves.kept[term])
		return 0;
	for (size_t k = 0; k < t->nnode; k++)
		if (t->node[k] == term)
			die("--node: %s is given twice", t->ontology.id[term]);
	t->node[t->nnode++] = term;
	return 1;
}

/* A value of --node is one name, which may have commas, or several between commas. */
static void find_nodes(struct terms *t, const struct opt_values *given, const char *path)
{
	t->node = xcalloc(t->ontology.n, sizeof *t->node);
	for (size_t i = 0; i < given->n; i++) {
		size_t n = 0;
		char **name = add_node(t, given->item[i]) ? NULL : opt_list(given->item[i], &n);
		for (size_t k = 0; k < n; k++)
			if (!add_node(t, name[k]))
				die("--node: '%s' is not a term that the head can predict: expected ids, names or exact synonyms of %s",
					name[k], path);
		free_list(name, n);
	}
	t->column = xcalloc(t->nnode, sizeof *t->column);
}

struct terms *terms_new(const struct head_spec *s, const struct opt_values *node)
{
	FREED char *path = xasprintf("%s/ontology.obo", asked.model);
	struct terms *t = xcalloc(1, sizeof *t);
	must(ontology_load(&t->ontology, path, &failure));
	open_leaves(t, s, path);
	find_nodes(t, node, path);
	t->sum = xcalloc(t->ontology.n, sizeof *t->sum);
	t->way = xcalloc(t->ontology.n, sizeof *t->way);
	return t;
}

/* The names of the classes, whose ids are the column `predicted`. Two terms of one name keep their ids. */
static void add_names(struct terms *t, struct header *h)
{
	size_t n = t->leaves.n;
	FREED char **class = xmalloc((n + 1) * sizeof *class);
	for (size_t k = 0; k < n; k++) {
		size_t alike = 0;
		for (size_t i = 0; i < n; i++)
			alike += !strcmp(t->ontology.name[t->leaves.term[i]], t->ontology.name[t->leaves.term[k]]);
		class[k] = (alike > 1 ? t->ontology.id : t->ontology.name)[t->leaves.term[k]];
	}
	t->named = header_add_categorical(h, "predicted_name", class, n);
}

void terms_header(struct terms *t, struct header *h, const char *name)
{
	prediction_free_name(h, "lineage", name);
	prediction_free_name(h, "predicted_name", name);
	add_names(t, h);
	t->lineage = header_add(h, "lineage", STR);
	for (size_t i = 0; i < t->nnode; i++) {
		char *column = xasprintf("node.%s", t->ontology.id[t->node[i]]);
		prediction_free_name(h, column, name);
		if (h->ncol == COLUMNS_MAX)
			die("--node: more than %d columns", COLUMNS_MAX);
		t->column[i] = header_add(h, column, F32);
		free(column);
	}
}

static void push_lineage(const struct terms *t, struct block *out, size_t n)
{
	FREED char *text = xstrdup("");
	for (size_t i = 0; i < n; i++)
		xappend(&text, "%s%s (%.3f)", i ? " > " : "", t->ontology.name[t->way[i]], t->sum[t->way[i]]);
	block_push_str(out, t->lineage, text, strlen(text));
}

uint32_t terms_decode(struct terms *t, struct block *out, size_t row, uint32_t best, const double *p, int greedy)
{
	leaves_sum(&t->leaves, p, t->sum);
	size_t n = leaves_descend(&t->leaves, t->sum, greedy ? TERM_NONE : t->leaves.term[best], t->way);
	push_lineage(t, out, n);
	for (size_t i = 0; i < t->nnode; i++)
		((float *)out->col[t->column[i]].data)[row] = (float)t->sum[t->node[i]];
	return ((uint32_t *)out->col[t->named].data)[row] = t->leaf[t->way[n - 1]];
}

void terms_missing(struct terms *t, struct block *out, size_t row)
{
	block_push_str(out, t->lineage, "", 0);
	((uint32_t *)out->col[t->named].data)[row] = MISSING_CODE;
	for (size_t i = 0; i < t->nnode; i++)
		((float *)out->col[t->column[i]].data)[row] = NAN;
}

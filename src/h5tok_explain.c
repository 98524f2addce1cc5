#include "cli_sandbox.h"
#include "cli.h"
#include "h5tok_explain.h"

#include "anndata/obs.h"
#include "base/tsv.h"
#include "label/label.h"

enum { EXPLAIN_ROWS = 1 << 16 }; /* of obs, read at once */

void explain_joined(cJSON *file, const struct gene_table *t, int several, const char *map)
{
	if (t->repeated)
		explain_say(file, "repeated", "%zu genes share an id with another gene, to which their counts are added", t->repeated);
	if (map)
		explain_say(file, "mapped", "%zu of %zu genes are in %s", t->mapped, t->rows, map);
	if (several)
		explain_say(file, "shared_genes", "%zu of %zu are in another file, %zu of them found by symbol", t->shared, t->genes,
			t->by_symbol);
	if (several && t->ambiguous)
		explain_say(file, "ambiguous", "%zu genes stay apart, as their name is that of several", t->ambiguous);
}

/* Call `row` for each property of a file; a list of texts is a row a text. */
static void each_row(const cJSON *file, void (*row)(void *to, const char *property, const char *value), void *to)
{
	const cJSON *p, *text;
	cJSON_ArrayForEach(p, file)
	{
		if (cJSON_IsString(p))
			row(to, p->string, p->valuestring);
		else
			cJSON_ArrayForEach(text, p) row(to, p->string, text->valuestring);
	}
}

static void explain_add_row(void *number, const char *property, const char *value)
{
	FREED char *name = xasprintf("input:%d:%s", *(int *)number, property), *text = tsv_escaped(value);
	cli_stated(name, text);
}

void explain_report(const struct cli *c, const cJSON *files)
{
	const cJSON *file;
	int number = 0;
	cJSON_ArrayForEach(file, files)
	{
		const char *path = number < c->noperand ? c->operand[number] : "all files";
		number++;
		explain_add_row(&number, "file", path);
		each_row(file, explain_add_row, &number);
	}
}

void explain_provenance(cJSON *provenance, const cJSON *files)
{
	cJSON *decided = cJSON_Duplicate(files, 1), *file;
	cJSON_ArrayForEach(file, decided)
	{
		for (cJSON *p = file->child, *next; p; p = next) {
			next = p->next;
			if (explain_is_storage(p->string))
				cJSON_Delete(cJSON_DetachItemViaPointer(file, p));
		}
	}
	cJSON_AddItemToObject(cJSON_GetArrayItem(provenance, cJSON_GetArraySize(provenance) - 1), "files", decided);
}

/* ---- h5tok --explain ---- */

struct table {
	struct outfile f;
	char *file; /* of the row */
};

static void print_row(void *to, const char *property, const char *value)
{
	struct table *t = to;
	FREED char *text = tsv_escaped(value), *line = xasprintf("%s\t%s\t%s\n", t->file, property, text);
	must(outfile_write(&t->f, line, strlen(line), &failure));
}

static void print_table(const struct cli *c, const cJSON *files)
{
	static const char head[] = "file\tproperty\tvalue\n";
	struct table t;
	const cJSON *file;
	int i = 0;
	cli_output(c, &t.f);
	must(outfile_write(&t.f, head, strlen(head), &failure));
	cJSON_ArrayForEach(file, files)
	{
		t.file = tsv_escaped(i < c->noperand ? c->operand[i] : "all files");
		each_row(file, print_row, &t);
		free(t.file);
		i++;
	}
	must(outfile_commit(&t.f, &failure));
}

/* Which cells have no label in this column of words, if it is taken for labels. */
static int state_no_label(cJSON *file, struct dataframe_column *c, uint64_t ncell, struct error *e)
{
	RELEASED(classes_release) struct classes classes = {0};
	RELEASED(labels_release) struct labels l = {.classes = &classes, .rule = LABEL_WORDS_ASIDE};
	RELEASED(dataframe_values_release) struct dataframe_values v = {0};
	FREED uint64_t *cells = xcalloc(c->ncategory + 1, sizeof *cells); /* of each category */
	uint64_t missing = 0;
	for (uint64_t row = 0; row < ncell; row += v.n) {
		if (dataframe_read(c, row, ncell - row < EXPLAIN_ROWS ? (size_t)(ncell - row) : EXPLAIN_ROWS, &v, 1, e))
			return -1;
		for (size_t i = 0; i < v.n; i++) {
			const char *s;
			char buf[32];
			int none = c->kind == DATAFRAME_CATEGORICAL && v.code[i] == MISSING_CODE;
			if (c->kind == DATAFRAME_CATEGORICAL && !none) {
				cells[v.code[i]]++;
				continue;
			}
			size_t n = dataframe_text(c, &v, i, buf, &s, &none);
			if (none)
				missing++;
			else if (label_is_none(s, n))
				labels_name(&l, s, n, 1);
		}
	}
	for (size_t k = 0; k < c->ncategory; k++)
		if (cells[k])
			labels_name(&l, c->category[k], strlen(c->category[k]), cells[k]);
	labels_name(&l, "", 0, missing);
	if (l.aside + l.empty) {
		FREED char *aside = labels_aside(&l);
		explain_say(file, "no_label", "%s: %s", c->name, aside);
	}
	return 0;
}

/* Of the columns that are read. */
static int state_no_labels(cJSON *file, struct h5ad *h, struct obs *obs, struct error *e)
{
	obs_file(obs, h);
	for (size_t i = 0; i < obs->ncol; i++) {
		struct dataframe_column *c = obs->col[i].from;
		if (c && (c->kind == DATAFRAME_CATEGORICAL || c->kind == DATAFRAME_STR) && state_no_label(file, c, h->ncell, e))
			return -1;
	}
	return 0;
}

/* Look at one file; *table: its number in the join, or -1 after an error. */
static cJSON *look(const char *path, const struct asked *asked, struct gene_join *genes, struct obs *obs, int *table)
{
	struct h5ad h;
	uint64_t found;
	sandbox_reading(path);
	int bad = h5ad_try(&h, path, asked->options, &failure) ||
		(asked->annotation && obstable_join(asked->annotation, &h, NULL, &found, &failure)) ||
		obs_add(obs, &h, asked->all, asked->obs, asked->nobs, &failure) ||
		gene_join_texts(genes, path, &h.genes.id, &h.genes.symbol, h.drop, &failure);
	cJSON *file = h5ad_explain(&h);
	bad = bad || state_no_labels(file, &h, obs, &failure);
	*table = bad ? -1 : (int)genes->ntable - 1;
	if (obs->skipped)
		cJSON_AddItemToArray(cJSON_GetObjectItem(file, "warning"), cJSON_CreateString(obs->skipped));
	free(obs->skipped);
	obs->skipped = NULL;
	size_t n = strlen(path);
	if (bad)
		explain_say(file, "error", "%s",
			printable(
				!strncmp(failure.msg, path, n) && !strncmp(failure.msg + n, ": ", 2) ? failure.msg + n + 2 : failure.msg));
	h5ad_release(&h);
	return file;
}

/* What only all files together show. -1 with e set. */
static int look_at_all(const struct asked *asked, struct gene_join *genes, struct obs *obs, struct error *e)
{
	RELEASED(header_release) struct header h;
	header_init(&h, STREAM_COUNTS);
	return obs_header(obs, &h, asked->obs, asked->nobs, e) || gene_join_finish(genes, e) ? -1 : 0;
}

int explain_files(const struct cli *c, const struct asked *asked, struct gene_join *genes)
{
	RELEASED(obs_release) struct obs obs = {0};
	int bad = 0, *table = xmalloc((size_t)c->noperand * sizeof *table);
	cJSON *files = cJSON_CreateArray(), *file;
	for (int i = 0; i < c->noperand; i++) {
		cJSON_AddItemToArray(files, look(c->operand[i], asked, genes, &obs, table + i));
		bad += table[i] < 0;
	}
	if (!bad && look_at_all(asked, genes, &obs, &failure)) {
		file = cJSON_CreateObject();
		explain_say(file, "error", "%s", printable(failure.msg));
		cJSON_AddItemToArray(files, file);
		bad++;
	} else if (!bad) {
		for (int i = 0; i < c->noperand; i++)
			explain_joined(cJSON_GetArrayItem(files, i), genes->table + table[i], c->noperand > 1, asked->map);
	}
	explain_report(c, files);
	print_table(c, files);
	return bad;
}

void explain_decisions(const struct h5ad *h)
{
	const struct features *f = &h->features;
	const struct values *v = &h->values;
	if (f->left_out)
		info("%s: %zu %s left out: %s (--all-features keeps them)", h->path, f->left_out,
			f->left_out == 1 ? "row that is no gene is" : "rows that are no genes are", f->kinds);
	if (f->unknown)
		info("%s: rows of types that are no known words are kept: %s", h->path, f->unknown);
	switch (v->kind) {
	case VALUES_COUNTS:
	case VALUES_WRONG:
		break;
	case VALUES_FRACTIONS:
		(v->whole || v->largest >= 20 ? info : warn)("%s: %s is rounded: %s", h->path, h->matrix, v->what);
		break;
	case VALUES_NORMALISED:
		info("%s: the counts are taken back from %s: %s", h->path, h->matrix, v->what);
		break;
	case VALUES_DOUBTFUL:
		if (h->ncell && h->ngene)
			warn("%s: %s: %s", h->path, h->matrix, v->what);
		break;
	case VALUES_DISGUISED:
		warn("%s: %s: these are no counts: %s", h->path, h->matrix, v->what);
		break;
	}
}

void explain_distance(const struct h5ad *h)
{
	const struct countmat *m = &h->mat;
	if (m->unlog)
		info("%s: the counts of all %" PRIu64
		     " cells came back, at most %.2g from whole numbers; those with a common factor were divided by it",
			h->path, h->ncell, m->off);
	else if (m->off > 0 && !m->round)
		info("%s: %s: whole numbers but for noise of up to %.2g", h->path, h->matrix, m->off);
}

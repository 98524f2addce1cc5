/* Embeddings of the same cells: streams, or arrays of one AnnData file. */
#include "integration.h"
#include "cli.h"
#include "cli_embeddings.h"
#include "cli_labels.h"
#include "cli_sandbox.h"

#include "anndata/h5ad.h"
#include "anndata/zarr.h"
#include "base/option.h"

#include <sys/stat.h>

struct integration_set *integration_new_set(struct integration_sets *s, char *name)
{
	grow(s->set, s->set_cap, s->n + 1);
	s->set[s->n] = (struct integration_set){.name = name};
	return &s->set[s->n++];
}

/* ---- streams ---- */

/* "pca" of "runs/pca.emb"; "x" of standard input */
static char *short_name(const char *path)
{
	return strcmp(path, "-") ? file_stem(path, ".emb") : xstrdup("x");
}

/* The name of operand i: its path if another one has the same short name. */
static char *sets_name_of(const struct cli *c, int i)
{
	char *name = short_name(c->noperand ? c->operand[i] : "-");
	int same = 0;
	for (int other = 0; other < c->noperand; other++) {
		FREED char *its = short_name(c->operand[other]);
		same |= other != i && !strcmp(its, name);
	}
	if (!same)
		return name;
	free(name);
	return xstrdup(c->operand[i]);
}

static void same_cells(const struct embeddings *d, const uint64_t *cell, size_t n, const char *first)
{
	for (size_t i = 0; i < d->n || i < n; i++)
		if (i >= d->n || i >= n || d->cell[i] != cell[i])
			die("%s: its labelled cells are not those of %s: row %zu differs", stream_name(d->s), first, i + 1);
}

void integration_streams(struct integration_sets *s, const struct cli *c, const char *label, const char *batch)
{
	FREED uint64_t *cell = NULL;
	FREED char *first = NULL;
	for (int i = 0; i < (c->noperand ? c->noperand : 1); i++) {
		struct embeddings d;
		RELEASED(classes_release) struct classes types = {0}, batches = {0};
		embeddings_read(&d, cli_open(c, i),
			&(struct wanted){.label = label,
				.group = batch,
				.classes = i ? &types : &s->types,
				.groups = i ? &batches : &s->batches,
				.logits = 1},
			0);
		struct integration_set *set = integration_new_set(s, sets_name_of(c, i));
		set->x = d.x;
		set->d = d.d;
		d.x = NULL;
		if (i) {
			same_cells(&d, cell, s->cells, first);
		} else {
			first = xstrdup(stream_name(d.s));
			s->cells = d.n;
			s->unlabelled = d.unlabelled;
			s->y = d.y;
			s->batch = d.group;
			cell = d.cell;
			d.y = d.group = NULL;
			d.cell = NULL;
		}
		embeddings_release(&d);
	}
}

/* ---- AnnData ---- */

static char *columns(const struct dataframe *f)
{
	char *all = xstrdup("");
	for (size_t i = 0; i < f->ncol; i++)
		xappend(&all, "%s%s", i ? ", " : "", f->col[i].name);
	return all;
}

/* The classes of a column of obs, [ncell]; MISSING_CODE: none. */
static uint32_t *read_classes(struct h5ad *h, const char *name, struct labels *l, struct classes *to)
{
	struct dataframe_column *c = dataframe_find(&h->obs, name);
	uint32_t *code = xmalloc((h->ncell + 1) * sizeof *code);
	RELEASED(dataframe_values_release) struct dataframe_values v = {0};
	char *elsewhere = c ? NULL : h5ad_elsewhere(h, name);
	*l = (struct labels){.classes = to, .rule = label_rule()};
	if (!c)
		die("%s: obs has no '%s': it has %s%s%s", h->path, name, columns(&h->obs), elsewhere ? "; " : "",
			elsewhere ? elsewhere : "");
	if (c->note)
		warn("%s", c->note);
	if (c->kind == DATAFRAME_F64 || c->kind == DATAFRAME_OTHER)
		die("%s: obs/%s is %s, expected names of classes%s", h->path, name, c->kind == DATAFRAME_F64 ? "of real numbers" : c->why,
			c->kind == DATAFRAME_F64 ? "; " LABEL_IDS : "");
	must(dataframe_read(c, 0, h->ncell, &v, 1, &failure));
	for (size_t i = 0; i < h->ncell; i++) {
		char buf[32];
		const char *text;
		int missing;
		size_t n = dataframe_text(c, &v, i, buf, &text, &missing);
		code[i] = labels_name(l, text, missing ? 0 : n, 1);
	}
	return code;
}

/* Rows with a label and a batch move to the front of x [n, d]. */
static void keep_labelled(float *x, size_t d, const uint32_t *y, uint64_t n, const char *name)
{
	for (size_t i = 0, to = 0; i < n; i++) {
		if (y[i] == MISSING_CODE)
			continue;
		embedding_check(x + i * d, d, i, name);
		memmove(x + to++ * d, x + i * d, d * sizeof *x);
	}
}

void integration_anndata(struct integration_sets *s, const char *path, const char *keys, const char *label, const char *batch, int threads)
{
	static struct h5ad h;
	size_t nkey, to = 0;
	char **key = opt_list(keys, &nkey);
	sandbox_reading(path);
	must(h5ad_open(&h, path, &(struct h5ad_options){.annotation = 1}, &failure));
	struct labels of, of_batch;
	uint32_t *y = read_classes(&h, label, &of, &s->types), *b = batch ? read_classes(&h, batch, &of_batch, &s->batches) : NULL;
	labels_read(&of, label, path, "are left out");
	if (batch)
		groups_read(&of_batch, batch, path, "are left out");
	for (uint64_t i = 0; i < h.ncell; i++) {
		s->unlabelled += y[i] == MISSING_CODE;
		y[i] = b && b[i] == MISSING_CODE ? MISSING_CODE : y[i];
	}
	for (size_t k = 0; k < nkey; k++) {
		for (size_t other = 0; other < k; other++)
			if (!strcmp(key[other], key[k]))
				die("--embedding: '%s' is named twice", key[k]);
		struct integration_set *set = integration_new_set(s, xstrdup(key[k]));
		FREED char *name = xasprintf("%s: obsm/%s", path, key[k]);
		sandbox_reading(path);
		must(h5ad_obsm(&h, key[k], &set->x, &set->d, threads, &failure));
		keep_labelled(set->x, set->d, y, h.ncell, name);
	}
	for (uint64_t i = 0; i < h.ncell; i++) {
		if (y[i] == MISSING_CODE)
			continue;
		if (b)
			b[to] = b[i];
		y[to++] = y[i];
	}
	if (!to)
		die("%s: no cell with a value in column '%s' has one in column '%s'", path, label, batch);
	s->cells = to;
	s->y = y;
	s->batch = b;
	sandbox_finished();
}

int integration_is_anndata(const char *path)
{
	unsigned char head[4] = {0};
	struct stat st;
	if (stat(path, &st) || S_ISDIR(st.st_mode))
		return zarr_is_store(path);
	FILE *f = S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
	int is = f && fread(head, 1, sizeof head, f) == sizeof head && !memcmp(head, "\x89HDF", sizeof head);
	if (f)
		fclose(f);
	return is;
}

/*
 * 10x Genomics output. HDF5 of Cell Ranger 3 and later: /matrix with features; of Cell Ranger 2: one group a genome.
 * Both store genes x cells as sparse columns, which is cells x genes as sparse rows. Matrix directories: matrix.mtx,
 * features.tsv or genes.tsv, and barcodes.tsv, each plain or gzipped. In GEO these names have a prefix, as in
 * GSM123_sample_matrix.mtx.gz, and a directory can hold the files of several samples. Of several feature types, only genes are kept (features.h).
 */
#include "anndata/reader.h"

#include "base/file.h"
#include "base/tsv.h"

#include <errno.h>
#include <sys/stat.h>

#define LOOK_ENTRIES 1000000 /* of a text matrix that is not ordered by cell */

/* Ids and symbols of the features, and which are genes. type: NULL or of as many. */
static int take_features(struct h5ad *h, struct gene_columns *c, const struct texts *id, const struct texts *symbol,
	const struct texts *type, const struct h5ad_options *opt, struct error *e)
{
	const struct feature_words words = {.type = type, .name = {id, symbol}};
	if (!opt->all_features && features_choose(&h->features, &h->drop, &words, id->n, h->path, e))
		return -1;
	c->drop = h->drop;
	return gene_texts_read(&h->genes, c, id, symbol, e);
}

/* The strings of the features, in this array. */
static int strings(struct h5ad *h, const char *name, struct texts *t, struct error *e)
{
	FREED char *path = xasprintf("%s/%s", h->part, name);
	RELEASED(dataframe_column_release) struct dataframe_column c = {0};
	uint64_t rows = 0;
	if (dataframe_strings(&c, &h->store, path, &rows, e))
		return -1;
	if (rows != h->ngene)
		return error_set(e, "%s: %" PRIu64 " rows, expected %zu", c.where, rows, h->ngene);
	return dataframe_texts(&c, 0, rows, t, e);
}

static int open_barcodes(struct h5ad *h, struct error *e)
{
	FREED char *path = xasprintf("%s/barcodes", h->part);
	int r = dataframe_strings(&h->obs.index, &h->store, path, &h->obs.nrow, e);
	h->obs.where = xasprintf("%s: %s", h->path, path);
	return r;
}

static int open_counts(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	RELEASED(h5array_release) struct h5array shape = {0};
	int64_t dim[2];
	FREED char *path = xasprintf("%s/shape", h->part);
	h->matrix = xstrdup(h->part);
	if (h5array_open(&shape, &h->store, path, e))
		return -1;
	if (shape.ndim != 1 || shape.dim[0] != 2)
		return error_set(e, "%s: expected two numbers", shape.where);
	if (h5array_i64(&shape, 0, 2, dim, 1, e))
		return -1;
	if (dim[0] < 1 || dim[0] > GENES_MAX || dim[1] < 0)
		return error_set(e, "%s: %" PRId64 " x %" PRId64 ", expected genes x cells", shape.where, dim[0], dim[1]);
	if (countmat_open_rows(&h->mat, &h->store, h->part, (uint64_t)dim[1], (uint64_t)dim[0], e) ||
		values_of_matrix(&h->values, &h->mat, e))
		return -1;
	return values_take(&h->mat, &h->values, opt->round, opt->unlog, NAMED_ALONE, e);
}

static int read_names(struct h5ad *h, const char *ids, const char *symbols, const char *types, const char *genome,
	const struct h5ad_options *opt, struct error *e)
{
	RELEASED(texts_release) struct texts id = {0}, symbol = {0}, type = {0};
	FREED char *source = xasprintf("%s/%s", h->part, ids), *path = xasprintf("%s/%s", h->part, types);
	struct gene_columns c = {.where = h->path, .table = h->part, .index = source, .genome = genome};
	int typed = store_has(&h->store, path);
	if (strings(h, ids, &id, e) || strings(h, symbols, &symbol, e) || (typed && strings(h, types, &type, e)))
		return -1;
	return take_features(h, &c, &id, &symbol, typed ? &type : NULL, opt, e);
}

static int open_features(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	return read_names(h, "features/id", "features/name", "features/feature_type", opt->modality, opt, e);
}

static int open_genes(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	return read_names(h, "genes", "gene_names", "feature_type", NULL, opt, e);
}

static int open_matrix_group(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	h->part = xstrdup("matrix");
	return 0;
}

#define NAMES 256 /* bytes of the list of names in a message */

/* Append a name of n bytes. A list that is too long ends with dots. */
static void add_name(char names[NAMES], const char *name, size_t n)
{
	size_t at = strlen(names), room = NAMES - at;
	if ((size_t)snprintf(names + at, room, "%s%.*s", at ? ", " : "", (int)n, name) >= room)
		memcpy(names + NAMES - 4, "...", 4);
}

/* Cell Ranger 2: the groups that have genes. */
static void find_genomes(struct h5ad *h, struct texts *genomes)
{
	RELEASED(texts_release) struct texts names = {0};
	store_names(&h->store, "", &names);
	texts_clear(genomes);
	for (size_t i = 0; i < names.n; i++) {
		FREED char *name = texts_dup(&names, i), *genes = xasprintf("%s/genes", name);
		if (store_type(&h->store, name) == STORE_GROUP && store_type(&h->store, genes) != STORE_NONE)
			texts_push(genomes, name, strlen(name));
	}
}

static int choose_genome(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	RELEASED(texts_release) struct texts genomes = {0};
	find_genomes(h, &genomes);
	int r = 0;
	size_t pick = genomes.n;
	char names[NAMES] = "";
	for (size_t i = 0; i < genomes.n; i++) {
		add_name(names, genomes.bytes + genomes.offset[i], genomes.offset[i + 1] - genomes.offset[i]);
		if (!opt->modality || texts_is(&genomes, i, opt->modality))
			pick = i;
	}
	if (opt->modality && pick == genomes.n)
		r = error_set(e, "%s: no genome %s; there are: %s", h->path, opt->modality, names);
	else if (!opt->modality && genomes.n > 1)
		r = error_set(e, "%s: %zu genomes (%s); choose one with --modality", h->path, genomes.n, names);
	else
		h->part = texts_dup(&genomes, pick);
	return r;
}

/* Does `path` end with this name, with .gz or without? Then *prefix is the length of what is before it. */
static int ends(const char *path, const char *name, size_t *prefix)
{
	size_t n = strlen(path), end = strlen(name);
	n -= n > 3 && !strcmp(path + n - 3, ".gz") ? 3 : 0;
	*prefix = n - end;
	return n >= end && !memcmp(path + n - end, name, end);
}

int h5ad_matrix_name(const char *path, size_t *prefix)
{
	return ends(path, "matrix.mtx", prefix);
}

char *tenx_file(const char *path, struct error *e)
{
	static const char *const names[] = {"matrix.mtx", "features.tsv", "genes.tsv", "barcodes.tsv"};
	struct stat st;
	size_t prefix;
	char *to = realpath(path, NULL);
	*e->msg = 0;
	if (!to && lstat(path, &st) == 0)
		error_set(e, "%s: %s", path, strerror(errno));
	for (size_t i = 0; to && i < sizeof names / sizeof *names; i++)
		if (ends(to, names[i], &prefix))
			return to;
	if (to)
		error_set(e, "%s is a symbolic link to %s, which has no name of a 10x file: if you trust it, copy with cp -rL", path, to);
	free(to);
	return NULL;
}

/* What the names of the matrix in folder h->path begin with: h->stem. Without a plain matrix.mtx there must be one with a prefix. */
static int find_stem(struct h5ad *h, struct error *e)
{
	DIR *dir = opendir(h->path);
	char names[NAMES] = "";
	size_t prefix = 1, found = 0;
	if (!dir)
		return error_set(e, "%s: %s", h->path, strerror(errno));
	for (struct dirent *d; prefix && (d = readdir(dir));) {
		if (!h5ad_matrix_name(d->d_name, &prefix)) {
			prefix = 1;
			continue;
		}
		found = prefix ? found + 1 : 1;
		free(h->stem);
		h->stem = xasprintf("%s/%.*s", h->path, (int)prefix, d->d_name);
		add_name(names, d->d_name, strlen(d->d_name));
	}
	closedir(dir);
	if (found > 1)
		return error_set(e, "%s: %zu matrices in this directory: name those to read (%s)", h->path, found, names);
	return found ? 0 : error_set(e, "%s: no matrix.mtx or matrix.mtx.gz in this directory", h->path);
}

/* Open what tenx_file says, or any file if the user has named it. 1; 0: it is not there; -1. */
static int open_file(struct tsv *t, const char *path, int named, struct error *e)
{
	struct beneath b;
	uint64_t bytes;
	int fd, r = -1;
	char *to = named ? file_target(path) : tenx_file(path, e), *folder = to ? file_folder(to) : NULL;
	if (!to)
		return named ? error_set(e, "%s: %s", path, strerror(errno)) : *e->msg ? -1 : 0;
	if (beneath_init(&b, folder, e) == 0 && (r = beneath_open(&b, file_name(to), &fd, &bytes, e)) < 0)
		error_prefix(e, "%s", folder);
	if (r > 0 && tsv_open_fd(t, fd, path, e))
		r = -1;
	beneath_release(&b);
	free_all(to, folder);
	return r;
}

/* Open the first of `names` that exists behind h->stem, as it is or with .gz. */
static int open_text(struct tsv *t, const struct h5ad *h, const char *const *names, struct error *e)
{
	for (const char *const *n = names; *n; n++) {
		for (int gz = 0; gz < 2; gz++) {
			FREED char *path = xasprintf("%s%s%s", h->stem, *n, gz ? ".gz" : "");
			int r = open_file(t, path, 0, e);
			if (r)
				return r < 0 ? -1 : 0;
		}
	}
	const char *prefix = file_name(h->stem);
	return error_set(e, "%s: no %s%s or %s%s.gz in this directory", h->path, prefix, names[0], prefix, names[0]);
}

/* The next line of a table of features or cells. Fields may be in quotes; empty lines at the end are none. */
static int next_row(struct tsv *t, struct error *e)
{
	int got = t->line ? tsv_next(t, e) : tsv_first(t, e), empty = 0;
	for (; got > 0 && t->n == 1 && !*t->field[0]; got = tsv_next(t, e))
		empty = 1;
	return got > 0 && empty ? tsv_error(t, e, "a line after an empty one") : got;
}

/* If there is one line more than the matrix has `what`, the first one holds names of columns: leave it out. */
static void drop_header(struct h5ad *h, const char *path, struct texts *const *t, size_t n, uint64_t expected, const char *what)
{
	if (!expected || t[0]->n != expected + 1)
		return;
	h5ad_note(h, "%s: the first line is taken for names of columns ('%.*s'), as the matrix has %" PRIu64 " %s", path,
		(int)t[0]->offset[1], t[0]->bytes, expected, what);
	for (size_t i = 0; i < n; i++)
		memmove(t[i]->offset, t[i]->offset + 1, t[i]->n-- * sizeof *t[i]->offset);
}

static int read_features(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	static const char *const names[] = {"features.tsv", "genes.tsv", NULL};
	RELEASED(tsv_close) struct tsv t = {0};
	RELEASED(texts_release) struct texts type = {0}, id = {0}, name = {0};
	if (open_text(&t, h, names, e))
		return -1;
	int got, typed = 0;
	while ((got = next_row(&t, e)) > 0) {
		const char *symbol = t.n > 1 ? t.field[1] : "", *of = t.n > 2 ? t.field[2] : "";
		if (!*t.field[0])
			return tsv_error(&t, e, "no gene id");
		texts_push(&id, t.field[0], strlen(t.field[0]));
		texts_push(&name, symbol, strlen(symbol));
		texts_push(&type, of, strlen(of));
		typed |= *of != 0;
	}
	drop_header(h, t.path, (struct texts *[]){&id, &name, &type}, 3, h->ngene, "genes");
	if (got == 0 && id.n == h->mat.nrow && h->ncell == h->mat.ncol && id.n != h->ncell)
		got = error_set(e, "%s: %" PRIu64 " x %" PRIu64 ", cells x genes: expected genes x cells; transpose it", h->mat.where,
			h->mat.ncol, h->mat.nrow);
	size_t prefix;
	const char *file = ends(t.path, names[0], &prefix) ? names[0] : names[1]; /* the same with .gz */
	struct gene_columns c = {.where = t.path, .table = file, .index = file, .genome = opt->modality};
	if (got == 0)
		got = take_features(h, &c, &id, &name, typed ? &type : NULL, opt, e);
	return got;
}

static int read_barcodes(struct h5ad *h, struct error *e)
{
	static const char *const names[] = {"barcodes.tsv", NULL};
	RELEASED(tsv_close) struct tsv t = {0};
	if (open_text(&t, h, names, e))
		return -1;
	int got;
	h->obs.where = xstrdup(t.path);
	dataframe_held(&h->obs.index, "_index", t.path);
	while ((got = next_row(&t, e)) > 0)
		texts_push(&h->obs.index.held, t.field[0], strlen(t.field[0]));
	drop_header(h, t.path, (struct texts *[]){&h->obs.index.held}, 1, h->mat.nrow, "cells");
	h->obs.nrow = h->obs.index.held.n;
	if (got == 0 && !h->obs.nrow)
		got = error_set(e, "%s: no barcodes", t.path);
	return got;
}

/* An unsigned decimal number up to max; moves *p behind it. -1: not one. */
static int64_t tenx_number(char **p, int64_t max)
{
	while (**p == ' ' || **p == '\t')
		(*p)++;
	int64_t v = 0;
	char *s = *p;
	while (*s >= '0' && *s <= '9' && v <= max)
		v = v * 10 + (*s++ - '0');
	if (s == *p || v > max || (*s && *s != ' ' && *s != '\t' && *s != '.'))
		return -1;
	if (*s == '.') { /* "3.0" and "3." are whole */
		while (*++s == '0')
			;
		if (*s && *s != ' ' && *s != '\t')
			return -1;
	}
	*p = s;
	return v;
}

static int is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Open the matrix up to its first entry. shape: genes, cells, entries. */
static int open_matrix(struct tsv *t, const struct h5ad *h, int64_t shape[3], struct error *e)
{
	static const char *const names[] = {"matrix.mtx", NULL};
	static const int64_t most[3] = {GENES_MAX, UINT32_MAX - 1, INT64_MAX / 16};
	if (is_folder(h->path) ? open_text(t, h, names, e) : open_file(t, h->path, 1, e) <= 0)
		return -1;
	int got = tsv_next_whole(t, e), r = 0;
	if (got == 0 ||
		(got > 0 &&
			(strncasecmp(t->field[0], "%%MatrixMarket matrix coordinate", 32) || strcasestr(t->field[0], "pattern") ||
				strcasestr(t->field[0], "symmetric"))))
		r = error_set(e, "%s: line 1: expected '%%%%MatrixMarket matrix coordinate integer general'", t->path);
	while (r == 0 && got > 0 && (got = tsv_next_whole(t, e)) > 0 && (t->field[0][0] == '%' || !t->field[0][strspn(t->field[0], " \t")]))
		;
	char *p = r || got <= 0 ? NULL : t->field[0];
	for (int i = 0; i < 3 && p && r == 0; i++)
		if ((shape[i] = tenx_number(&p, most[i])) < 0)
			r = tsv_error(t, e, "expected three numbers: genes, cells, entries");
	if (r == 0 && got == 0)
		r = error_set(e, "%s: ends before its shape", t->path);
	return r || got < 0 ? -1 : 0;
}

/* Find the files, and what the matrix says of their lengths. */
static int open_directory(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	RELEASED(tsv_close) struct tsv t = {0};
	int64_t shape[3];
	size_t prefix = 0;
	if (is_folder(h->path) && find_stem(h, e))
		return -1;
	if (!h->stem) {
		h5ad_matrix_name(h->path, &prefix);
		h->stem = xstrndup(h->path, prefix);
	}
	if (open_matrix(&t, h, shape, e))
		return -1;
	h->mat = (struct countmat){.where = xstrdup(t.path), .nrow = (uint64_t)shape[1], .ncol = (uint64_t)shape[0]};
	h->matrix = xstrdup("matrix.mtx");
	return 0;
}

/* Read an entry: gene and cell from 0, and the value as it stands there. */
static int next_entry(struct tsv *t, const int64_t shape[3], int64_t i, uint32_t *gene, uint32_t *cell, double *v, struct error *e)
{
	int got = tsv_next_whole(t, e);
	if (got <= 0)
		return got ? -1 : error_set(e, "%s: ends after %" PRId64 " entries, expected %" PRId64, t->path, i, shape[2]);
	char *p = t->field[0], *end;
	int64_t g = tenx_number(&p, shape[0]), c = tenx_number(&p, shape[1]), whole;
	if (g < 1 || c < 1)
		return tsv_error(t, e, "'%.60s', expected a gene from 1 to %" PRId64 ", a cell from 1 to %" PRId64 " and a count",
			t->field[0], shape[0], shape[1]);
	*gene = (uint32_t)(g - 1);
	*cell = (uint32_t)(c - 1);
	end = p;
	whole = tenx_number(&end, INT32_MAX);
	char *after = p + strspn(p, " \t0123456789+-.eE"); /* strtod also takes 0x10, inf and nan */
	*v = whole >= 0 && !*end ? (double)whole : strtod(p, &end);
	end += strspn(end, " \t");
	return end == p || *end || *after ? tsv_error(t, e, "'%.60s', expected a count after gene and cell", t->field[0]) : 0;
}

/* What are the values? Entries that are ordered by cell need be read for the first cells alone; of others, all of those cells if there is a fraction. */
static int look_at_entries(struct values *values, struct tsv *t, const int64_t shape[3], struct error *e)
{
	RELEASED(sample_release) struct sample s = {0};
	uint32_t gene, cell = 0, before = 0;
	int by_cell = 1, r = 0;
	int64_t i = 0;
	double v;
	for (; i < shape[2] && r == 0; i++) {
		r = next_entry(t, shape, i, &gene, &cell, &v, e);
		by_cell &= cell >= before;
		before = cell;
		if (r || (by_cell && cell >= VALUES_CELLS) || (!by_cell && i > LOOK_ENTRIES && !s.fraction))
			break;
		sample_add(&s, cell, v);
	}
	if (!by_cell && i < shape[2]) /* these are parts of cells */
		memset(s.n, 0, sizeof s.n);
	values_judge(values, &s);
	return r;
}

static int open_entries(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	RELEASED(tsv_close) struct tsv t = {0};
	int64_t shape[3];
	if (h->mat.nrow != h->ncell) /* an error, once the genes are known too */
		return 0;
	if (open_matrix(&t, h, shape, e))
		return -1;
	countmat_release(&h->mat);
	countmat_entries(&h->mat, t.path, (uint64_t)shape[1], (uint64_t)shape[0], (uint64_t)shape[2]);
	return look_at_entries(&h->values, &t, shape, e) ? -1 : values_take(&h->mat, &h->values, opt->round, opt->unlog, NAMED_ALONE, e);
}

static int read_entries(struct h5ad *h, struct tsv *t, const int64_t shape[3], struct error *e)
{
	struct countmat *m = &h->mat;
	for (int64_t i = 0; i < shape[2]; i++) {
		uint32_t gene, cell, count;
		double v;
		if (next_entry(t, shape, i, &gene, &cell, &v, e))
			return -1;
		if (countmat_spill_values(m, NUMBER_F64, &v, 1, &count) < 1)
			return tsv_error(t, e, "'%.60s' holds %s, expected a count from 0 to %d%s", t->field[0], number_fault(v), INT32_MAX,
				number_is_fraction(v) ? "; " NEED_ROUND : "");
		if (count && spill_add(&m->spill, cell, gene, count, e))
			return -1;
	}
	int got = tsv_next_whole(t, e);
	if (got > 0 && t->field[0][0])
		return tsv_error(t, e, "more than the %" PRId64 " entries that line 2 or 3 promises", shape[2]);
	return got < 0 ? -1 : 0;
}

static int tenx_start(struct h5ad *h, struct error *e)
{
	RELEASED(tsv_close) struct tsv t = {0};
	int64_t shape[3];
	if (open_matrix(&t, h, shape, e))
		return -1;
	return (uint64_t)shape[0] != h->mat.ncol || (uint64_t)shape[1] != h->mat.nrow
		? error_set(e, "%s: has changed since it was opened", t.path)
		: read_entries(h, &t, shape, e);
}

#define ONE_MATRIX "it has one matrix"
#define ONE_COLUMN "it has one column of gene ids"

const struct reader reader_tenx3 = {
	.name = "10x HDF5",
	.in = IN_HDF5,
	.sign = "matrix",
	.ending = {".h5"},
	.why_not = {[OPTION_LAYER] = ONE_MATRIX, [OPTION_GENE_COLUMN] = ONE_COLUMN, [OPTION_ROUND] = FOLLOWED},
	.open = open_matrix_group,
	.obs = open_barcodes,
	.counts = open_counts,
	.features = open_features,
};

const struct reader reader_tenx2 = {
	.name = "10x HDF5 of Cell Ranger 2",
	.in = IN_HDF5,
	.sign = "*/genes",
	.ending = {".h5"},
	.why_not =
		{[OPTION_LAYER] = ONE_MATRIX, [OPTION_GENE_COLUMN] = ONE_COLUMN, [OPTION_MODALITY] = FOLLOWED, [OPTION_ROUND] = FOLLOWED},
	.open = choose_genome,
	.obs = open_barcodes,
	.counts = open_counts,
	.features = open_genes,
};

const struct reader reader_tenx_text = {
	.name = "10x matrix directory",
	.in = IN_TEXT,
	.why_not = {[OPTION_LAYER] = ONE_MATRIX, [OPTION_GENE_COLUMN] = ONE_COLUMN, [OPTION_ROUND] = FOLLOWED},
	.open = open_directory,
	.obs = read_barcodes,
	.counts = open_entries,
	.features = read_features,
	.start = tenx_start,
};

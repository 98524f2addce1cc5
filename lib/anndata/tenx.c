/*
 * 10x Genomics output. HDF5 of Cell Ranger 3 and later: /matrix with features; of Cell Ranger 2: one group a genome.
 * Both store genes x cells as sparse columns, which is cells x genes as sparse rows. Matrix directories: matrix.mtx,
 * features.tsv or genes.tsv, and barcodes.tsv, each plain or gzipped. In GEO these names have a prefix, as in
 * GSM123_sample_matrix.mtx.gz, and a directory can hold the files of several samples. Of several feature types, only genes are kept.
 */
#include "anndata/h5.h"
#include "anndata/h5ad.h"
#include "anndata/scale.h"

#include "base/beneath.h"
#include "base/file.h"
#include "base/tsv.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GENE_TYPE "Gene Expression"

/* Mark the features that are not genes. */
static int keep_genes(struct h5ad *h, const struct texts *type, struct error *e)
{
	size_t genes = 0;
	h->drop = xcalloc(h->ngene, 1);
	for (size_t i = 0; i < h->ngene; i++) {
		h->drop[i] = !texts_is(type, i, GENE_TYPE);
		genes += !h->drop[i];
	}
	if (!genes)
		return error_set(e, "%s: none of the %zu features is of type '" GENE_TYPE "'", h->path, h->ngene);
	return 0;
}

static int no_empty_ids(const struct h5ad *h, struct error *e)
{
	for (size_t i = 0; i < h->ngene; i++)
		if (h->id.offset[i] == h->id.offset[i + 1])
			return error_set(e, "%s: feature %zu has no id", h->path, i);
	return 0;
}

/* The strings of `group/name`, which must be n of them (n = 0: any number). */
static int strings(struct h5ad *h, const char *group, const char *name, uint64_t n, struct texts *t, struct error *e)
{
	char *path = xasprintf("%s/%s", group, name);
	struct dataframe_column c = {0};
	uint64_t rows = 0;
	int r = dataframe_strings(&c, &h->store, path, &rows, e);
	if (r == 0 && n && rows != n)
		r = error_set(e, "%s: %" PRIu64 " rows, expected %" PRIu64, c.where, rows, n);
	if (r == 0)
		r = dataframe_texts(&c, rows, t, e);
	dataframe_column_release(&c);
	free(path);
	return r;
}

static int not_counts(const char *where, const char *scale, struct error *e)
{
	return error_set(e, "%s: %s: no raw counts; --round is for counts with fractions, such as those of SoupX", where, scale);
}

static int read_matrix(struct h5ad *h, const char *group, const char *ids, const char *symbols, const char *types, struct error *e)
{
	struct h5array shape = {0};
	struct texts type = {0};
	int64_t dim[2];
	uint64_t cells = 0;
	char *path = xasprintf("%s/shape", group), *barcodes = xasprintf("%s/barcodes", group);
	int r = h5array_open(&shape, &h->store, path, e);
	if (r == 0 && (shape.ndim != 1 || shape.dim[0] != 2))
		r = error_set(e, "%s: expected two numbers", shape.where);
	if (r == 0)
		r = h5array_i64(&shape, 0, 2, dim, 1, e);
	if (r == 0 && (dim[0] < 1 || dim[0] > GENES_MAX || dim[1] < 0))
		r = error_set(e, "%s: %" PRId64 " x %" PRId64 ", expected genes x cells", shape.where, dim[0], dim[1]);
	if (r == 0)
		r = countmat_open_rows(&h->mat, &h->store, group, (uint64_t)dim[1], (uint64_t)dim[0], e);
	char *scale = NULL;
	double wrong;
	h->mat.round = h->round;
	if (r == 0 && h->round) /* a wrong value gets its message when it is read */
		r = countmat_probe(&h->mat, &wrong, e) < 0 || scale_of_matrix(&h->mat, &scale, e) ? -1 : 0;
	if (scale)
		r = not_counts(h->mat.where, scale, e);
	free(scale);
	if (r == 0) {
		h->ncell = (uint64_t)dim[1];
		h->ngene = (size_t)dim[0];
		r = dataframe_strings(&h->cell, &h->store, barcodes, &cells, e);
	}
	if (r == 0 && cells != h->ncell)
		r = error_set(e, "%s: %" PRIu64 " barcodes, expected %" PRIu64, h->cell.where, cells, h->ncell);
	if (r == 0)
		r = strings(h, group, ids, h->ngene, &h->id, e) || strings(h, group, symbols, h->ngene, &h->symbol, e) || no_empty_ids(h, e)
			? -1
			: 0;
	if (r == 0 && types) {
		char *p = xasprintf("%s/%s", group, types);
		if (store_type(&h->store, p) != STORE_NONE)
			r = strings(h, group, types, h->ngene, &type, e) || keep_genes(h, &type, e) ? -1 : 0;
		free(p);
	}
	h5array_release(&shape);
	texts_release(&type);
	free(path);
	free(barcodes);
	h->matrix = xstrdup(group);
	h->gene_source = xasprintf("%s/%s", group, ids);
	return r;
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
	struct texts names = {0};
	store_names(&h->store, "", &names);
	texts_clear(genomes);
	for (size_t i = 0; i < names.n; i++) {
		char *name = texts_dup(&names, i), *genes = xasprintf("%s/genes", name);
		if (store_type(&h->store, name) == STORE_GROUP && store_type(&h->store, genes) != STORE_NONE)
			texts_push(genomes, name, strlen(name));
		free(genes);
		free(name);
	}
	texts_release(&names);
}

int tenx_open_h5(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	if (store_type(&h->store, "matrix") != STORE_NONE)
		return read_matrix(h, "matrix", "features/id", "features/name", "features/feature_type", e);
	struct texts genomes = {0};
	find_genomes(h, &genomes);
	int r = 0, pick = -1;
	char names[NAMES] = "";
	for (size_t i = 0; i < genomes.n; i++) {
		add_name(names, genomes.bytes + genomes.offset[i], genomes.offset[i + 1] - genomes.offset[i]);
		if (opt->modality && texts_is(&genomes, i, opt->modality))
			pick = (int)i;
	}
	if (!genomes.n)
		r = error_set(e, "%s: neither AnnData (no obs) nor 10x (no matrix, no group with genes)", h->path);
	else if (opt->modality && pick < 0)
		r = error_set(e, "%s: no genome %s; there are: %s", h->path, opt->modality, names);
	else if (!opt->modality && genomes.n > 1)
		r = error_set(e, "%s: %zu genomes (%s); choose one with --modality", h->path, genomes.n, names);
	if (r == 0) {
		size_t i = pick < 0 ? 0 : (size_t)pick;
		char *group = xasprintf("%.*s", (int)(genomes.offset[i + 1] - genomes.offset[i]), genomes.bytes + genomes.offset[i]);
		r = read_matrix(h, group, "genes", "gene_names", NULL, e);
		free(group);
	}
	texts_release(&genomes);
	return r;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
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
	if (beneath_init(&b, folder, e) == 0 && (r = beneath_open(&b, base_name(to), &fd, &bytes, e)) < 0)
		error_prefix(e, "%s", folder);
	if (r > 0 && tsv_open_fd(t, fd, path, e))
		r = -1;
	beneath_release(&b);
	free(to);
	free(folder);
	return r;
}

/* Open the first of `names` that exists behind h->stem, as it is or with .gz. */
static int open_text(struct tsv *t, const struct h5ad *h, const char *const *names, struct error *e)
{
	for (const char *const *n = names; *n; n++) {
		for (int gz = 0; gz < 2; gz++) {
			char *path = xasprintf("%s%s%s", h->stem, *n, gz ? ".gz" : "");
			int r = open_file(t, path, 0, e);
			free(path);
			if (r)
				return r < 0 ? -1 : 0;
		}
	}
	const char *prefix = base_name(h->stem);
	return error_set(e, "%s: no %s%s or %s%s.gz in this directory", h->path, prefix, names[0], prefix, names[0]);
}

static int read_features(struct h5ad *h, struct error *e)
{
	static const char *const names[] = {"features.tsv", "genes.tsv", NULL};
	struct tsv t;
	struct texts type = {0};
	if (open_text(&t, h, names, e))
		return -1;
	int got, typed = 0;
	while ((got = tsv_next(&t, e)) > 0) {
		const char *symbol = t.n > 1 ? t.field[1] : "", *of = t.n > 2 ? t.field[2] : "";
		if (!*t.field[0]) {
			got = tsv_error(&t, e, "no gene id");
			break;
		}
		texts_push(&h->id, t.field[0], strlen(t.field[0]));
		texts_push(&h->symbol, symbol, strlen(symbol));
		texts_push(&type, of, strlen(of));
		typed |= *of != 0;
	}
	h->ngene = h->id.n;
	if (got == 0 && !h->ngene)
		got = error_set(e, "%s: no features", t.path);
	if (got == 0 && h->ngene > GENES_MAX)
		got = error_set(e, "%s: %zu features, expected at most %u", t.path, h->ngene, GENES_MAX);
	if (got == 0 && typed)
		got = keep_genes(h, &type, e);
	h->gene_source = xstrdup(base_name(t.path));
	texts_release(&type);
	tsv_close(&t);
	return got;
}

static int read_barcodes(struct h5ad *h, struct error *e)
{
	static const char *const names[] = {"barcodes.tsv", NULL};
	struct tsv t;
	if (open_text(&t, h, names, e))
		return -1;
	int got;
	while ((got = tsv_next(&t, e)) > 0)
		texts_push(&h->cell_text, t.field[0], strlen(t.field[0]));
	if (got == 0 && !h->cell_text.n)
		got = error_set(e, "%s: no barcodes", t.path);
	h->ncell = h->cell_text.n;
	tsv_close(&t);
	return got;
}

/* An unsigned decimal number up to max; moves *p behind it. -1: not one. */
static int64_t number(char **p, int64_t max)
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

/* The count at p, which ends the line; it can be a fraction with h->round. -1: not one. */
static int64_t count_at(const struct h5ad *h, char *p)
{
	char *end = p;
	if (!h->round) {
		int64_t v = number(&end, INT32_MAX);
		return *end ? -1 : v;
	}
	double v = strtod(p, &end);
	return end == p || *end || !(v >= 0 && v <= INT32_MAX) ? -1 : (int64_t)rint(v);
}

static int read_entries(struct h5ad *h, struct tsv *t, struct scale *scale, struct error *e)
{
	int got = tsv_next_whole(t, e);
	if (got == 0 ||
		(got > 0 &&
			(strncmp(t->field[0], "%%MatrixMarket matrix coordinate", 32) || strstr(t->field[0], "pattern") ||
				strstr(t->field[0], "symmetric"))))
		return error_set(e, "%s: line 1: expected '%%%%MatrixMarket matrix coordinate integer general'", t->path);
	while (got > 0 && (got = tsv_next_whole(t, e)) > 0 && t->field[0][0] == '%')
		;
	if (got < 0)
		return -1;
	char *p = t->field[0];
	int64_t genes = number(&p, GENES_MAX), cells = number(&p, UINT32_MAX - 1), n = number(&p, INT64_MAX / 16);
	if (genes < 0 || cells < 0 || n < 0)
		return tsv_error(t, e, "expected three numbers: genes, cells, entries");
	if ((size_t)genes != h->ngene || (uint64_t)cells != h->ncell)
		return error_set(e,
			"%s: %" PRId64 " x %" PRId64 ", expected %zu genes x %" PRIu64 " cells as in the feature and barcode files",
			t->path, genes, cells, h->ngene, h->ncell);
	countmat_entries(&h->mat, t->path, h->ncell, h->ngene, (uint64_t)n);
	for (int64_t i = 0; i < n; i++) {
		got = tsv_next_whole(t, e);
		if (got <= 0)
			return got ? -1 : error_set(e, "%s: ends after %" PRId64 " entries, expected %" PRId64, t->path, i, n);
		p = t->field[0];
		int64_t g = number(&p, genes), c = number(&p, cells);
		if (g < 1 || c < 1)
			return tsv_error(t, e, "'%.60s', expected a gene from 1 to %" PRId64 ", a cell from 1 to %" PRId64 " and a count",
				t->field[0], genes, cells);
		int64_t v = count_at(h, p);
		if (v < 0)
			return tsv_error(t, e, "'%.60s', expected a count from 0 to %d after gene and cell", t->field[0], INT32_MAX);
		if (h->round)
			scale_add(scale, (uint64_t)(c - 1), strtod(p, NULL));
		if (v && spill_add(&h->mat.spill, (uint32_t)(c - 1), (uint32_t)(g - 1), (uint32_t)v, e))
			return -1;
	}
	got = tsv_next_whole(t, e);
	if (got > 0 && t->field[0][0])
		return tsv_error(t, e, "more than the %" PRId64 " entries that line 2 or 3 promises", n);
	return got < 0 ? -1 : 0;
}

static int is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int open_matrix(struct tsv *t, const struct h5ad *h, struct error *e)
{
	static const char *const names[] = {"matrix.mtx", NULL};
	return is_folder(h->path) ? open_text(t, h, names, e) : open_file(t, h->path, 1, e) > 0 ? 0 : -1;
}

int tenx_open_directory(struct h5ad *h, struct error *e)
{
	struct tsv t;
	if (!is_folder(h->path)) {
		size_t prefix = 0;
		h5ad_matrix_name(h->path, &prefix);
		h->stem = xstrndup(h->path, prefix);
	} else if (find_stem(h, e)) {
		return -1;
	}
	if (open_matrix(&t, h, e))
		return -1;
	h->matrix = xstrdup(base_name(t.path));
	tsv_close(&t);
	if (read_features(h, e) || read_barcodes(h, e))
		return -1;
	if (h->ncell >= UINT32_MAX)
		return error_set(e, "%s: %" PRIu64 " barcodes, expected fewer than 2^32", h->path, h->ncell);
	return 0;
}

int tenx_read_directory(struct h5ad *h, struct error *e)
{
	struct tsv t;
	if (open_matrix(&t, h, e))
		return -1;
	struct scale scale = {0};
	int r = read_entries(h, &t, &scale, e);
	char *text = r ? NULL : scale_of(&scale);
	if (text)
		r = not_counts(t.path, text, e);
	free(text);
	scale_release(&scale);
	tsv_close(&t);
	return r;
}

#include "anndata/h5ad.h"
#include "anndata/h5.h"
#include "anndata/scale.h"

#include "base/idmap.h"
#include "base/magic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static int exists(hid_t file, const char *path)
{
	char *copy = xstrdup(path);
	int there = 1;
	/* HDF5 may be asked about a path only if the part before its last name exists */
	for (char *p = copy; there && (p = strchr(p + 1, '/'));) {
		*p = 0;
		there = H5Lexists(file, copy, H5P_DEFAULT) > 0;
		*p = '/';
	}
	there = there && H5Lexists(file, copy, H5P_DEFAULT) > 0;
	free(copy);
	return there;
}

/* anndata writes a missing X as a dataset without elements, or not at all. */
static int has_matrix(hid_t file, const char *path)
{
	if (!exists(file, path))
		return 0;
	hid_t d = H5Oopen(file, path, H5P_DEFAULT);
	int there = d >= 0;
	if (there && H5Iget_type(d) == H5I_DATASET) {
		hid_t space = H5Dget_space(d);
		there = space >= 0 && H5Sget_simple_extent_type(space) == H5S_SIMPLE;
		if (space >= 0)
			H5Sclose(space);
	}
	if (d >= 0)
		H5Oclose(d);
	return there;
}

static herr_t add_name(hid_t g, const char *name, const H5L_info_t *info, void *text)
{
	char *list = text;
	size_t n = strlen(list);
	if (n + strlen(name) + 3 < 256)
		snprintf(list + n, 256 - n, "%s%s", n ? ", " : "", name);
	return 0;
}

static void list_layers(hid_t file, char list[256])
{
	hid_t g = exists(file, "layers") ? H5Gopen2(file, "layers", H5P_DEFAULT) : -1;
	if (g < 0)
		return;
	H5Literate(g, H5_INDEX_NAME, H5_ITER_INC, NULL, add_name, list);
	H5Gclose(g);
}

/* Why the values cannot be counts (malloced), or NULL, and what to do about it. -1 with e set if the matrix cannot be read. */
static int look_for_fault(struct countmat *m, char **fault, const char **hint, struct error *e)
{
	double wrong = 0;
	int counts = countmat_probe(m, &wrong, e);
	if (counts < 0)
		return -1;
	if ((counts ? m->round : number_is_fraction(wrong)) && scale_of_matrix(m, fault, e))
		return -1;
	if (*fault) {
		*hint = "; keep raw counts in .raw or in layers['counts'] when you normalise";
	} else if (!counts) {
		*fault = xasprintf("holds %.6g, %s", wrong, number_fault(wrong));
		if (number_is_fraction(wrong) && !**hint)
			*hint = "; counts with fractions, such as those of SoupX, need --round";
	}
	return 0;
}

/*
 * Find the matrix that holds counts. Fills h->mat, h->matrix and *var, the path of its data frame of genes. It is the first whose values could
 * be counts; but one that shows nothing above 1 (no counts at all, or only whether a gene is expressed) gives way to one that shows more.
 */
static int find_counts(struct h5ad *h, const struct h5ad_options *opt, const char **var, struct error *e)
{
	const char *raw = exists(h->file, "raw.X") ? "raw.X" : "raw/X";
	const char *raw_var = exists(h->file, "raw.var") ? "raw.var" : "raw/var";
	char *layer = opt->layer ? xasprintf("layers/%s", opt->layer) : NULL;
	struct {
		const char *path, *var;
		int optional;
	} try[] = {
		{raw, raw_var, 0}, {"X", "var", 0}, {"layers/counts", "var", 1}, {"layers/raw_counts", "var", 1}, {"layers/raw", "var", 1}};
	char looked[512] = "", layers[256] = "";
	int n = sizeof try / sizeof *try, r = 0, found = 0;
	const char *hint = "";
	struct countmat mat = {0};
	if (layer) {
		n = 1;
		if (exists(h->file, layer) || (strcmp(opt->layer, "X") && strcmp(opt->layer, "raw/X"))) {
			try[0].path = layer;
			try[0].var = "var";
		} else if (!strcmp(opt->layer, "X")) {
			try[0] = try[1];
		}
	}
	list_layers(h->file, layers);
	for (int i = 0; i < n && r == 0 && (!found || h->mat.largest <= 1); i++) {
		size_t len = strlen(looked);
		if (!has_matrix(h->file, try[i].path)) {
			if (try[i].optional)
				continue;
			snprintf(looked + len, sizeof looked - len, "%s%s: not there", len ? "; " : "", try[i].path);
			continue;
		}
		r = countmat_open(&mat, h->file, try[i].path, h->path, e);
		mat.round = opt->round;
		char *fault = NULL;
		if (r == 0)
			r = look_for_fault(&mat, &fault, &hint, e);
		if (r == 0 && !fault && (!found || mat.largest > h->mat.largest)) {
			countmat_release(&h->mat);
			free(h->matrix);
			h->mat = mat;
			h->matrix = xstrdup(try[i].path);
			*var = try[i].var;
			found = 1;
			mat = (struct countmat){0};
		}
		if (fault)
			snprintf(looked + len, sizeof looked - len, "%s%s: %s", len ? "; " : "", try[i].path, fault);
		countmat_release(&mat);
		free(fault);
	}
	if (r == 0 && !found)
		r = error_set(e, "%s: no raw counts (whole numbers, none negative); looked at %s; %s%s%s", h->path, looked,
			*layers ? "layers that --layer can name: " : "there are no layers", layers, hint);
	free(layer);
	return r;
}

static int empty(const char *s, size_t n)
{
	return !n || (n == 3 && !memcmp(s, "nan", 3)) || (n == 2 && !memcmp(s, "NA", 2)) || (n == 4 && !memcmp(s, "None", 4));
}

/* Are most of these Ensembl gene ids? */
static int mostly_ensembl(const struct texts *t)
{
	size_t n = 0, base;
	for (size_t i = 0; i < t->n; i++)
		n += (size_t)ensembl_id(t->bytes + t->offset[i], t->offset[i + 1] - t->offset[i], &base);
	return t->n && 2 * n >= t->n;
}

static int named(const char *name, const char *const *list)
{
	while (*list && strcasecmp(name, *list))
		list++;
	return *list != NULL;
}

/* Load a column of var when it can hold names: 1 loaded, 0 not text, -1 error. */
static int load_names(struct dataframe_column *c, uint64_t n, struct texts *t, struct error *e)
{
	if (c->kind != DATAFRAME_STR && c->kind != DATAFRAME_CATEGORICAL)
		return 0;
	return dataframe_texts(c, n, t, e) ? -1 : 1;
}

/* Try columns for Ensembl ids, likely names first; 1 found (in t), 0 none, -1 error. */
static int find_ensembl(struct dataframe *var, struct texts *t, const char **name, struct error *e)
{
	static const char *const likely[] = {
		"ensembl_id", "ensembl_ids", "ensembl", "ensembl_gene_id", "gene_ids", "gene_id", "feature_id", "id", NULL};
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < var->ncol; i++) {
			struct dataframe_column *c = var->col + i;
			if (named(c->name, likely) != (pass == 0))
				continue;
			int r = load_names(c, var->nrow, t, e);
			if (r < 0)
				return -1;
			if (r && mostly_ensembl(t)) {
				*name = c->name;
				return 1;
			}
		}
	}
	return 0;
}

static int find_symbols(struct dataframe *var, struct texts *t, struct error *e)
{
	static const char *const likely[] = {"gene_symbol", "gene_symbols", "feature_name", "gene_name", "gene_names", "symbol", "symbols",
		"name", "hgnc_symbol", "gene_short_name", NULL};
	for (size_t i = 0; i < var->ncol; i++) {
		int r = named(var->col[i].name, likely) ? load_names(var->col + i, var->nrow, t, e) : 0;
		if (r)
			return r;
	}
	return 0;
}

static int no_gene_column(const struct dataframe *var, const char *wanted, struct error *e)
{
	char has[300] = "index";
	for (size_t i = 0, at = strlen(has); i < var->ncol && at < sizeof has; i++)
		at += (size_t)snprintf(has + at, sizeof has - at, ", %s", var->col[i].name);
	return error_set(e, "%s: no column '%s' to take gene ids from (it has: %s)", var->where, wanted, has);
}

/* Ids and symbols of the genes from a var frame. */
static int read_genes(struct h5ad *h, struct dataframe *var, const char *frame_name, const char *wanted, struct error *e)
{
	struct texts index = {0}, id = {0}, symbol = {0};
	const char *name = NULL;
	int r = dataframe_texts(&var->index, var->nrow, &index, e), have_id = 0, have_symbol = 0;
	if (r == 0 && wanted && strcmp(wanted, "index")) {
		struct dataframe_column *c = dataframe_find(var, wanted);
		if (!c || c->kind == DATAFRAME_OTHER)
			r = no_gene_column(var, wanted, e);
		else
			r = dataframe_texts(c, var->nrow, &id, e);
		name = wanted;
		have_id = 1;
	} else if (r == 0 && !wanted && !mostly_ensembl(&index)) {
		have_id = find_ensembl(var, &id, &name, e);
		r = have_id < 0 ? -1 : 0;
	}
	if (r == 0) {
		have_symbol = find_symbols(var, &symbol, e);
		r = have_symbol < 0 ? -1 : 0;
	}
	for (uint64_t i = 0; i < var->nrow && r == 0; i++) {
		const struct texts *from[3] = {have_id ? &id : &index, have_symbol ? &symbol : &index, &index};
		const char *s = NULL;
		size_t n = 0;
		/* a gene without an id takes its symbol as id, else its name in the index */
		for (int k = 0; k < 3 && empty(s, n); k++) {
			s = from[k]->bytes + from[k]->offset[i];
			n = from[k]->offset[i + 1] - from[k]->offset[i];
		}
		if (empty(s, n))
			r = error_set(e, "%s: row %" PRIu64 " has no gene id", var->where, i);
		texts_push(&h->id, s, n);
		s = have_symbol ? symbol.bytes + symbol.offset[i] : have_id ? index.bytes + index.offset[i] : "";
		n = have_symbol ? symbol.offset[i + 1] - symbol.offset[i] : have_id ? index.offset[i + 1] - index.offset[i] : 0;
		texts_push(&h->symbol, s, empty(s, n) ? 0 : n);
	}
	h->gene_source = have_id ? xasprintf("%s/%s", frame_name, name) : xasprintf("%s index", frame_name);
	texts_release(&index);
	texts_release(&id);
	texts_release(&symbol);
	return r;
}

static int open_anndata(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	const char *var_path = NULL;
	struct dataframe var = {0};
	if (dataframe_open(&h->obs, h->file, "obs", h->path, e) || find_counts(h, opt, &var_path, e) ||
		dataframe_open(&var, h->file, var_path, h->path, e))
		return -1;
	h->ncell = h->obs.nrow;
	h->ngene = h->mat.ncol;
	int r = 0;
	if (h->mat.nrow != h->ncell)
		r = error_set(e, "%s: %" PRIu64 " cells, but obs has %" PRIu64, h->mat.where, h->mat.nrow, h->ncell);
	else if (h->mat.ncol != var.nrow)
		r = error_set(e, "%s: %" PRIu64 " genes, but %s has %" PRIu64, h->mat.where, h->mat.ncol, var_path, var.nrow);
	else
		r = read_genes(h, &var, var_path, opt->gene_column, e);
	dataframe_release(&var);
	return r;
}

static int no_hdf5(const struct h5ad *h, struct error *e)
{
	char head[64];
	FILE *f = fopen(h->path, "re");
	const struct magic *is = magic_find(head, f ? fread(head, 1, sizeof head, f) : 0);
	const char *end = strrchr(h->path, '.');
	if (f)
		fclose(f);
	if (end && (!strcasecmp(end, ".rds") || !strcasecmp(end, ".rda") || !strcasecmp(end, ".rdata")))
		return error_set(e,
			"%s: a file of R, expected .h5ad, 10x .h5 or a 10x matrix directory; write its counts from R, as .h5ad with "
			"zellkonverter or as a directory with DropletUtils",
			h->path);
	return error_set(e, "%s: this is %s, expected .h5ad, 10x .h5, a 10x matrix directory or its matrix.mtx%s%s", h->path,
		is ? is->name : "not an HDF5 file",
		is && is->unpack         ? "; unpack it with "
			: is && is->text ? "; read a table of counts with anndata, and write it as .h5ad"
					 : "",
		is && is->unpack ? is->unpack : "");
}

static int open_hdf5(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	int is = H5Fis_hdf5(h->path);
	h->file = is < 0 ? -1 : H5Fopen(h->path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (is == 0)
		return no_hdf5(h, e);
	if (h->file < 0)
		return h5_error(e, h->path, "opening");
	if (exists(h->file, "row_attrs") && exists(h->file, "col_attrs"))
		return error_set(e, "%s: a loom file, expected .h5ad or 10x .h5; convert it with anndata", h->path);
	if (exists(h->file, "mod"))
		return error_set(e,
			"%s: a MuData file (.h5mu), expected .h5ad or 10x .h5; write one of its modalities as .h5ad with mudata", h->path);
	if (exists(h->file, "assays"))
		return error_set(e, "%s: a Seurat file, expected .h5ad or 10x .h5; convert it with SeuratDisk", h->path);
	int r = exists(h->file, "obs") ? open_anndata(h, opt, e) : tenx_open_h5(h, opt, e);
	return r && !h5_refused_link() ? r : h5_check(h->path, e);
}

/* An option that says nothing about this kind of file is refused: else it would seem to have been followed. */
static int unused_option(const struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	int anndata = h->obs.where != NULL;
	if (opt->genome && (anndata || strcmp(h->matrix, opt->genome)))
		return error_set(e, "%s: --genome is for files of Cell Ranger 2, which have a group for each genome", h->path);
	if (opt->layer && !anndata)
		return error_set(e, "%s: --layer is for .h5ad; a 10x file has one matrix", h->path);
	if (opt->gene_column && !anndata)
		return error_set(e, "%s: --gene-column is for .h5ad; of a 10x file the gene ids are taken", h->path);
	return 0;
}

int h5ad_open(struct h5ad *h, const char *path, const struct h5ad_options *opt, struct error *e)
{
	*h = (struct h5ad){.path = xstrdup(path), .file = -1, .round = opt->round};
	h5_setup();
	struct stat st;
	size_t prefix;
	int r;
	if (!strcmp(path, "-"))
		r = error_set(e, "standard input: HDF5 cannot be read from a pipe: name the file");
	else if (stat(path, &st))
		r = error_set(e, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode) || h5ad_matrix_name(path, &prefix))
		r = tenx_open_directory(h, e);
	else if (!S_ISREG(st.st_mode))
		r = error_set(e, "%s: HDF5 needs a regular file, not a pipe or device", path);
	else if (!st.st_size)
		r = error_set(e, "%s: the file is empty", path);
	else
		r = open_hdf5(h, opt, e);
	if (r == 0)
		r = unused_option(h, opt, e);
	if (r == 0)
		h->has_ensembl = mostly_ensembl(&h->id);
	else
		h5ad_release(h);
	return r;
}

void h5ad_release(struct h5ad *h)
{
	if (!h->path)
		return;
	countmat_release(&h->mat);
	dataframe_release(&h->obs);
	dataframe_column_release(&h->cell);
	texts_release(&h->cell_text);
	texts_release(&h->id);
	texts_release(&h->symbol);
	free(h->drop);
	free(h->matrix);
	free(h->gene_source);
	free(h->path);
	free(h->stem);
	if (h->file >= 0)
		H5Fclose(h->file);
	*h = (struct h5ad){0};
}

/* A scalar text of any length, malloced; NULL: there is none. */
static char *scalar_text(hid_t file, const char *path)
{
	char *text = NULL, *from = NULL;
	hid_t d = file >= 0 && exists(file, "uns") && exists(file, path) ? H5Dopen2(file, path, H5P_DEFAULT) : -1;
	if (d < 0)
		return NULL;
	hid_t type = H5Dget_type(d), space = H5Dget_space(d);
	if (h5_check_storage(d, path, NULL) == 0 && H5Tis_variable_str(type) > 0 && H5Sget_simple_extent_npoints(space) == 1 &&
		H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &from) >= 0 && from) {
		text = xstrdup(from);
		H5Dvlen_reclaim(type, space, H5P_DEFAULT, &from);
	}
	H5Tclose(type);
	H5Sclose(space);
	H5Dclose(d);
	return text;
}

int h5ad_provenance(const struct h5ad *h, cJSON *to, struct error *e)
{
	char *text = scalar_text(h->file, "uns/" H5AD_PROVENANCE);
	cJSON *list = text ? cJSON_Parse(text) : NULL; /* NULL, or no list of objects: nothing is added */
	const cJSON *line, *old;
	cJSON_ArrayForEach(line, list)
	{
		int known = !cJSON_IsString(cJSON_GetObjectItemCaseSensitive(line, "program"));
		cJSON_ArrayForEach(old, to) known |= cJSON_Compare(old, line, 1);
		if (!known)
			cJSON_AddItemToArray(to, cJSON_Duplicate(line, 1));
	}
	cJSON_Delete(list);
	free(text);
	return h->file < 0 ? 0 : h5_check(h->path, e);
}

int h5ad_start(struct h5ad *h, struct error *e)
{
	return h->file < 0 && !h->mat.where ? tenx_read_directory(h, e) : 0;
}

int h5ad_cell_names(struct h5ad *h, uint64_t row, size_t n, struct texts *t, struct error *e)
{
	texts_clear(t);
	if (h->cell_text.n) {
		for (size_t i = 0; i < n; i++) {
			uint64_t at = h->cell_text.offset[row + i];
			texts_push(t, h->cell_text.bytes + at, h->cell_text.offset[row + i + 1] - at);
		}
		return 0;
	}
	struct dataframe_column *c = h->cell.where ? &h->cell : &h->obs.index;
	struct dataframe_values v = {0};
	int r = dataframe_read(c, row, n, &v, 1, e), missing;
	for (size_t i = 0; i < n && r == 0; i++) {
		char buf[32];
		const char *s;
		size_t len = dataframe_text(c, &v, i, buf, &s, &missing);
		texts_push(t, s, len);
	}
	dataframe_values_release(&v);
	return r;
}

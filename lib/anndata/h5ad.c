#include "anndata/h5ad.h"
#include "anndata/h5.h"
#include "anndata/scale.h"
#include "anndata/zarr.h"

#include "base/idmap.h"
#include "base/magic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static int exists(struct h5ad *h, const char *path)
{
	return store_type(&h->store, path) != STORE_NONE;
}

/* The names in a group, for a message. */
static void list_names(struct h5ad *h, const char *group, char list[256])
{
	struct texts t = {0};
	store_names(&h->store, group, &t);
	for (size_t i = 0, n = 0; i < t.n; i++, n = strlen(list)) {
		int len = (int)(t.offset[i + 1] - t.offset[i]);
		if (n + (size_t)len + 3 < 256)
			snprintf(list + n, 256 - n, "%s%.*s", n ? ", " : "", len, t.bytes + t.offset[i]);
	}
	texts_release(&t);
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

/* --layer names a matrix that is not there: which ones are? */
static int no_layer(struct h5ad *h, const char *name, const char *raw, const char *layers, struct error *e)
{
	int x = store_has_matrix(&h->store, "X"), r = store_has_matrix(&h->store, raw);
	char *has = xasprintf("%s%s%s%s%s", x ? "X" : "", x && r ? ", " : "", r ? "raw/X" : "", (x || r) && *layers ? ", " : "", layers);
	error_set(e, "%s: no layer '%s'; the file has %s%s", h->path, name, *has ? has : "no matrix",
		*has && !strchr(has, ',') ? " only" : "");
	free(has);
	return -1;
}

/*
 * Find the matrix that holds counts. Fills h->mat, h->matrix and *var, the path of its data frame of genes. It is the first whose values could
 * be counts; but one that shows nothing above 1 (no counts at all, or only whether a gene is expressed) gives way to one that shows more.
 */
static int find_counts(struct h5ad *h, const struct h5ad_options *opt, const char **var, struct error *e)
{
	const char *raw = exists(h, "raw.X") ? "raw.X" : "raw/X";
	const char *raw_var = exists(h, "raw.var") ? "raw.var" : "raw/var";
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
		if (exists(h, layer) || (strcmp(opt->layer, "X") && strcmp(opt->layer, "raw/X"))) {
			try[0].path = layer;
			try[0].var = "var";
		} else if (!strcmp(opt->layer, "X")) {
			try[0] = try[1];
		}
	}
	list_names(h, "layers", layers);
	if (layer && !store_has_matrix(&h->store, try[0].path))
		r = no_layer(h, opt->layer, raw, layers, e);
	for (int i = 0; i < n && r == 0 && (!found || h->mat.largest <= 1); i++) {
		size_t len = strlen(looked);
		if (!store_has_matrix(&h->store, try[i].path)) {
			if (try[i].optional)
				continue;
			snprintf(looked + len, sizeof looked - len, "%s%s: not there", len ? "; " : "", try[i].path);
			continue;
		}
		r = countmat_open(&mat, &h->store, try[i].path, e);
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
	if (opt->annotation) {
		int bad = dataframe_open(&h->obs, &h->store, "obs", e);
		h->ncell = h->obs.nrow;
		return bad;
	}
	if (dataframe_open(&h->obs, &h->store, "obs", e) || find_counts(h, opt, &var_path, e) ||
		dataframe_open(&var, &h->store, var_path, e))
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
			"%s: an R file, expected .h5ad, 10x .h5 or a 10x matrix directory; write its counts from R, as .h5ad with "
			"zellkonverter or as a directory with DropletUtils",
			h->path);
	return error_set(e, "%s: this is %s, expected .h5ad, 10x .h5, a 10x matrix directory or its matrix.mtx%s%s", h->path,
		is ? is->name : "not an HDF5 file",
		is && is->unpack         ? "; unpack it with "
			: is && is->text ? "; read a table of counts with anndata, and write it as .h5ad"
					 : "",
		is && is->unpack ? is->unpack : "");
}

/* MuData: an AnnData in mod/NAME for each modality. That of the RNA is called rna by convention. */
static int open_modality(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	struct texts names = {0};
	char list[256] = "";
	size_t pick;
	store_names(&h->store, "mod", &names);
	list_names(h, "mod", list);
	size_t found = names.n;
	for (pick = 0; pick < names.n; pick++)
		if (texts_is(&names, pick, opt->modality ? opt->modality : "rna"))
			found = pick;
	if (found == names.n && names.n == 1 && !opt->modality)
		found = 0;
	int r = 0;
	if (!names.n)
		r = error_set(e, "%s: a MuData file without modalities", h->path);
	else if (found == names.n && opt->modality)
		r = error_set(e, "%s: no modality '%s'; there are: %s", h->path, opt->modality, list);
	else if (found == names.n)
		r = error_set(e, "%s: MuData with the modalities %s; choose one with --modality", h->path, list);
	if (r == 0) {
		char *name = texts_dup(&names, found);
		h->modality = xasprintf("%s: mod/%s", h->path, name);
		h->part = xasprintf("mod/%s", name);
		free(name);
		if (h->store.zarr)
			h->store.zarr = h->part;
		else
			h->store.h5 = h->group = H5Gopen2(h->file, h->part, H5P_DEFAULT);
		h->store.name = h->modality;
		r = h->store.zarr || h->group >= 0 ? open_anndata(h, opt, e) : h5_error(e, h->modality, "opening the group");
	}
	texts_release(&names);
	return r;
}

static int open_hdf5(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	int is = H5Fis_hdf5(h->path);
	h->file = is < 0 ? -1 : H5Fopen(h->path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (is == 0)
		return no_hdf5(h, e);
	if (h->file < 0)
		return h5_error(e, h->path, "opening");
	h->store.h5 = h->file;
	if (exists(h, "row_attrs") && exists(h, "col_attrs"))
		return error_set(e, "%s: a loom file, expected .h5ad or 10x .h5; convert it with anndata", h->path);
	if (exists(h, "assays"))
		return error_set(e, "%s: a Seurat file, expected .h5ad or 10x .h5; convert it with SeuratDisk", h->path);
	int r = exists(h, "mod") ? open_modality(h, opt, e) : exists(h, "obs") ? open_anndata(h, opt, e) : tenx_open_h5(h, opt, e);
	return r && !h5_refused_link() ? r : store_check(&h->store, e);
}

static int open_zarr(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	h->store.zarr = "";
	h->store.folder = &h->root;
	int r = beneath_init(&h->root, h->path, e);
	if (r)
		;
	else if (exists(h, "mod"))
		r = open_modality(h, opt, e);
	else if (exists(h, "obs"))
		r = open_anndata(h, opt, e);
	else
		r = error_set(e, "%s: a zarr store without obs, expected one that anndata wrote", h->path);
	/* what could not be read tells more than what seemed to be missing then */
	return h->store.failure ? store_check(&h->store, e) : r;
}

/* An option that says nothing about this kind of file is refused: else it would seem to have been followed. */
static int unused_option(const struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	int anndata = h->obs.where != NULL;
	if (opt->modality && !h->modality && (anndata || strcmp(h->matrix, opt->modality)))
		return error_set(e, "%s: --modality is for MuData (.h5mu) and the genomes of Cell Ranger 2; this has none", h->path);
	if (opt->layer && !anndata)
		return error_set(e, "%s: --layer is for .h5ad; a 10x file has one matrix", h->path);
	if (opt->gene_column && !anndata)
		return error_set(e, "%s: --gene-column is for .h5ad; a 10x file has gene ids", h->path);
	return 0;
}

int h5ad_open(struct h5ad *h, const char *path, const struct h5ad_options *opt, struct error *e)
{
	*h = (struct h5ad){.path = xstrdup(path), .file = -1, .group = -1, .root.folder = -1, .round = opt->round};
	h->store = (struct store){.name = h->path, .h5 = -1};
	h5_setup();
	struct stat st;
	size_t prefix;
	int r;
	if (!strcmp(path, "-"))
		r = error_set(e, "standard input: HDF5 cannot be read from a pipe: name the file");
	else if (stat(path, &st))
		r = error_set(e, "%s: %s: expected .h5ad, .h5mu, .zarr, 10x .h5 or a 10x matrix directory", path, strerror(errno));
	else if (S_ISDIR(st.st_mode) && zarr_is_store(path))
		r = open_zarr(h, opt, e);
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
	free(h->modality);
	free(h->part);
	store_release(&h->store);
	beneath_release(&h->root);
	if (h->group >= 0)
		H5Gclose(h->group);
	if (h->file >= 0)
		H5Fclose(h->file);
	*h = (struct h5ad){0};
}

/* 10x text files have none. */
static int has_store(const struct h5ad *h)
{
	return h->file >= 0 || h->store.zarr;
}

int h5ad_provenance(struct h5ad *h, cJSON *to, struct error *e)
{
	char *text = has_store(h) ? store_text(&h->store, "uns/" H5AD_PROVENANCE) : NULL;
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
	return has_store(h) ? store_check(&h->store, e) : 0;
}

int h5ad_start(struct h5ad *h, struct error *e)
{
	return !has_store(h) && !h->mat.where ? tenx_read_directory(h, e) : 0;
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

/* AnnData, and MuData, which holds an AnnData for each modality. */
#include "anndata/reader.h"
#include "anndata/crosscheck.h"

static int exists(struct h5ad *h, const char *path)
{
	return store_type(&h->store, path) != STORE_NONE;
}

char *reader_names(struct h5ad *h, const char *group, const char *without)
{
	RELEASED(texts_release) struct texts t = {0};
	char *list = xstrdup("");
	store_names(&h->store, group, &t);
	for (size_t i = 0; i < t.n; i++)
		if (!texts_is(&t, i, without))
			xappend(&list, "%s%.*s", *list ? ", " : "", (int)(t.offset[i + 1] - t.offset[i]), t.bytes + t.offset[i]);
	return list;
}

/* --layer names a matrix that is not there: which ones are? */
static int no_layer(struct h5ad *h, const char *name, const char *layers, struct error *e)
{
	char has[512] = "";
	for (const struct reader_matrix *m = h->reader->matrix; m->path; m++)
		if (!m->optional && store_has_matrix(&h->store, m->path))
			snprintf(has + strlen(has), sizeof has - strlen(has), "%s%s", *has ? ", " : "", m->path);
	snprintf(has + strlen(has), sizeof has - strlen(has), "%s%s", *has && *layers ? ", " : "", layers);
	return error_set(e, "%s: no layer '%s'; the file has %s%s", h->path, name, *has ? has : "no matrix",
		*has && !strchr(has, ',') ? " only" : "");
}

/* The matrices that may hold the counts: all that the reader names, or the one of --layer, whose path is *layer. Returns their number. */
static int candidates(struct h5ad *h, const char *name, char **layer, struct reader_matrix try[READER_MATRICES])
{
	int n = 0;
	for (const struct reader_matrix *m = h->reader->matrix; m->path; m++) {
		struct reader_matrix *to = try + n++;
		*to = *m;
		if (!strcmp(m->path, "raw/X") && exists(h, "raw.X")) /* before anndata 0.7 */
			*to = (struct reader_matrix){"raw.X", "raw.var", 0};
	}
	if (!name)
		return n;
	*layer = xasprintf("layers/%s", name);
	for (int i = 0; i < n && !exists(h, *layer); i++)
		if (!strcmp(h->reader->matrix[i].path, name)) {
			try[0] = try[i];
			return 1;
		}
	try[0] = (struct reader_matrix){*layer, try[n - 1].var, 0};
	return 1;
}

struct candidate { /* a matrix that may hold the counts */
	struct reader_matrix of;
	int agrees; /* its sums are in obs, -1: obs has no sums */
	const char *sums; /* the column that has them */
	struct countmat mat;
	struct values values;
};

/* Has a more genes than b, and no fewer counts in any cell? */
static int covers(const struct candidate *a, const struct candidate *b)
{
	size_t n = a->values.cells < b->values.cells ? a->values.cells : b->values.cells;
	for (size_t i = 0; i < n; i++)
		if (a->values.sum[i] < b->values.sum[i])
			return 0;
	return a->mat.ncol > b->mat.ncol;
}

static int is_better(const struct candidate *a, const struct candidate *than)
{
	int x = values_rank(&a->values), y = values_rank(&than->values);
	if (x != y)
		return x < y;
	if (a->values.kind == VALUES_COUNTS)
		return a->agrees > than->agrees && !covers(than, a);
	return a->values.kind == VALUES_DOUBTFUL && a->values.largest > than->values.largest;
}

static int look_at(struct h5ad *h, struct candidate *c, struct error *e)
{
	if (countmat_open(&c->mat, &h->store, c->of.path, h->reader->across, e) || values_of_matrix(&c->values, &c->mat, e))
		return -1;
	c->agrees = crosscheck_sums(h, c->values.sum, c->values.cells, &c->sums, e);
	return c->agrees < -1 ? -1 : 0;
}

static int is_empty(const struct candidate *c)
{
	return c->values.kind == VALUES_DOUBTFUL && !c->values.largest;
}

/* The best matrix is empty: do layers that were not looked at hold values? */
static int refuse_empty(struct h5ad *h, const char *matrix, struct error *e)
{
	RELEASED(texts_release) struct texts t = {0};
	FREED char *list = xstrdup("");
	store_names(&h->store, "layers", &t);
	for (size_t i = 0; i < t.n; i++) {
		FREED char *name = texts_dup(&t, i), *path = xasprintf("layers/%s", name);
		struct candidate c = {.of.path = path};
		if (look_at(h, &c, e) || !is_empty(&c))
			xappend(&list, "%s%s", *list ? ", " : "", name);
		countmat_release(&c.mat);
		values_release(&c.values);
	}
	return *list ? error_set(e, "%s: %s is empty, and layers hold values; --layer takes the counts from one of them: %s", h->path,
			       matrix, list)
		     : 0;
}

/* Take the best matrix if the options allow it. */
static int take_matrix(
	struct h5ad *h, const struct h5ad_options *opt, struct candidate *c, const char *looked, const char *layers, struct error *e)
{
	const char *hint = c ? values_refused(&c->values, opt->round, opt->unlog, opt->layer ? NAMED_BY_USER : NAMED_NOT) : "";
	if (c && is_empty(c) && c->mat.nrow && !opt->layer && refuse_empty(h, c->of.path, e))
		return -1;
	if (hint)
		return error_set(e, "%s: no raw counts (whole numbers, none negative); looked at %s; %s%s%s%s%s%s", h->path, looked,
			*layers ? "layers that --layer can name: " : "there are no layers", layers, *hint ? "; " : "",
			*hint ? c->of.path : "", *hint ? ": " : "", hint);
	h->mat = c->mat;
	h->values = c->values;
	h->matrix = xstrdup(c->of.path);
	h->var = c->of.var;
	c->mat = (struct countmat){0};
	c->values = (struct values){0};
	return values_take(&h->mat, &h->values, opt->round, opt->unlog, NAMED_BY_USER, e);
}

/*
 * Find the matrix that holds counts. Fills h->mat, h->matrix, h->values, h->why and h->var. It is the first of the best rank (values_rank); of
 * several that hold counts, one whose sums are in obs goes before one of which they are not, unless that one only has fewer genes.
 */
int h5ad_counts(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	struct reader_matrix of[READER_MATRICES];
	struct candidate try[READER_MATRICES] = {0};
	struct candidate *best = NULL, *first = NULL;
	char looked[512] = "";
	FREED char *layer = NULL, *layers = reader_names(h, "layers", "");
	int n = candidates(h, opt->layer, &layer, of), r = 0;
	if (layer && !store_has_matrix(&h->store, of[0].path))
		r = no_layer(h, opt->layer, layers, e);
	for (int i = 0; i < n; i++)
		try[i].of = of[i];
	for (struct candidate *c = try; c < try + n && r == 0 && !(best && best->values.kind == VALUES_COUNTS && best->agrees); c++) {
		size_t len = strlen(looked);
		if (!store_has_matrix(&h->store, c->of.path)) {
			if (!c->of.optional)
				snprintf(looked + len, sizeof looked - len, "%s%s: not there", len ? "; " : "", c->of.path);
			continue;
		}
		r = look_at(h, c, e);
		if (r)
			break;
		snprintf(looked + len, sizeof looked - len, "%s%s: %s", len ? "; " : "", c->of.path, c->values.what);
		first = first ? first : c;
		best = best && !is_better(c, best) ? best : c;
	}
	if (r == 0) {
		h->by_sums = best && first && best != first && best->agrees > 0 && first->values.kind == VALUES_COUNTS;
		h->why = layer                                       ? xstrdup("named by --layer")
			: best && best->agrees > 0                   ? xasprintf("its sums are obs/%s", best->sums)
			: best && best->values.kind == VALUES_COUNTS ? xstrdup("the first that holds counts")
								     : xstrdup("none that was looked at holds whole counts");
		r = take_matrix(h, opt, best, looked, layers, e);
	}
	for (int i = 0; i < n; i++) {
		countmat_release(&try[i].mat);
		values_release(&try[i].values);
	}
	h->layers = reader_names(h, "layers", h->matrix && !strncmp(h->matrix, "layers/", 7) ? h->matrix + 7 : "");
	return r;
}

static struct dataframe_column *gene_column(const struct dataframe *var, size_t column)
{
	return column ? var->col + column - 1 : (struct dataframe_column *)&var->index;
}

static const char *gene_column_name(const void *var, size_t column)
{
	return gene_column(var, column)->name;
}

static int gene_column_load(void *var, size_t column, int any, struct texts *t, struct error *e)
{
	struct dataframe_column *c = gene_column(var, column);
	if (any ? c->kind == DATAFRAME_OTHER : c->kind != DATAFRAME_STR && c->kind != DATAFRAME_CATEGORICAL)
		return 0;
	return dataframe_texts(c, 0, ((struct dataframe *)var)->nrow, t, e) ? -1 : 1;
}

/* Which rows of var are genes? */
static int choose_gene_columns(struct h5ad *h, struct dataframe *var, struct error *e)
{
	RELEASED(texts_release) struct texts type = {0}, control = {0}, index = {0};
	struct feature_words words = {.name = {&index}};
	if (dataframe_texts(&var->index, 0, var->nrow, &index, e))
		return -1;
	for (size_t i = 0; i < var->ncol; i++) {
		struct dataframe_column *c = var->col + i;
		int types = features_is_type(c->name) && (c->kind == DATAFRAME_STR || c->kind == DATAFRAME_CATEGORICAL);
		int controls = features_is_control(c->name) && c->kind != DATAFRAME_OTHER;
		if (((types && !words.type) || (controls && !words.control)) &&
			dataframe_texts(c, 0, var->nrow, types ? &type : &control, e))
			return -1;
		words.type = types ? &type : words.type;
		words.control = controls ? &control : words.control;
	}
	return features_choose(&h->features, &h->drop, &words, var->nrow, var->where, e);
}

int h5ad_features(struct h5ad *h, struct dataframe *var, const struct h5ad_options *opt, struct error *e)
{
	for (size_t i = 0; i < var->ncol; i++)
		if (var->col[i].kind == DATAFRAME_OTHER)
			h5ad_note(h, "column left out: %s: %s", var->col[i].where, var->col[i].why);
	if (!opt->all_features && choose_gene_columns(h, var, e))
		return -1;
	FREED char *index = xasprintf("%s index", h->var);
	struct gene_columns c = {.n = var->nrow,
		.ncol = var->ncol + 1,
		.name = gene_column_name,
		.load = gene_column_load,
		.of = var,
		.where = var->where,
		.table = h->var,
		.index = index,
		.option = "--gene-column",
		.wanted = opt->gene_column,
		.drop = h->drop,
		.genome = h->modality ? NULL : opt->modality};
	return gene_columns_read(&h->genes, &c, e);
}

static int open_obs(struct h5ad *h, struct error *e)
{
	return dataframe_open(&h->obs, &h->store, "obs", e);
}

/* The columns of all modalities are not read; those of one are called "rna:NAME" there. */
static int open_obs_of_modality(struct h5ad *h, struct error *e)
{
	char list[256] = "";
	int r = open_obs(h, e);
	for (size_t i = 0; i < h->elsewhere.n && r == 0; i++) {
		FREED char *name = texts_dup(&h->elsewhere, i);
		size_t n = strlen(list);
		if (*name != '_' && !strchr(name, ':') && !dataframe_find(&h->obs, name) && n + strlen(name) + 3 < sizeof list)
			snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", name);
	}
	if (*list)
		h5ad_note(h, "%s: obs of all modalities has columns that %s lacks (%s): mdata.push_obs() in Python copies them", h->path,
			h->part, list);
	return r;
}

static int open_features(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	RELEASED(dataframe_release) struct dataframe var = {0};
	return dataframe_open(&var, &h->store, h->var, e) || h5ad_features(h, &var, opt, e) ? -1 : 0;
}

/* MuData: an AnnData in mod/NAME for each modality. That of the RNA is called rna by convention. */
static int open_modality(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	RELEASED(texts_release) struct texts names = {0};
	FREED char *list = reader_names(h, "mod", "");
	size_t pick;
	store_names(&h->store, "mod", &names);
	store_names(&h->store, "obs", &h->elsewhere);
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
		FREED char *name = texts_dup(&names, found);
		h->modality = xasprintf("%s: mod/%s", h->path, name);
		h->part = xasprintf("mod/%s", name);
		r = store_enter(&h->store, h->part, h->modality, e);
	}
	return r;
}

static int refuse_seurat(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	return error_set(e, "%s: a Seurat file, expected .h5ad or 10x .h5; convert it with SeuratDisk", h->path);
}

#define ANNDATA_MATRICES \
	{ \
		{"raw/X", "raw/var", 0}, {"X", "var", 0}, {"layers/counts", "var", 1}, {"layers/raw_counts", "var", 1}, \
		{ \
			"layers/raw", "var", 1 \
		} \
	}

const struct reader reader_anndata = {
	.name = "AnnData",
	.in = IN_HDF5 | IN_ZARR,
	.sign = "obs",
	.ending = {".h5ad", ".zarr"},
	.why_not = {[OPTION_LAYER] = FOLLOWED,
		[OPTION_GENE_COLUMN] = FOLLOWED,
		[OPTION_MODALITY] = "only MuData (.h5mu) has modalities",
		[OPTION_ROUND] = FOLLOWED},
	.matrix = ANNDATA_MATRICES,
	.provenance = "uns/" H5AD_PROVENANCE,
	.obsm = "obsm",
	.obs = open_obs,
	.counts = h5ad_counts,
	.features = open_features,
};

const struct reader reader_mudata = {
	.name = "MuData",
	.in = IN_HDF5 | IN_ZARR,
	.sign = "mod",
	.ending = {".h5mu"},
	.why_not = {[OPTION_LAYER] = FOLLOWED, [OPTION_GENE_COLUMN] = FOLLOWED, [OPTION_MODALITY] = FOLLOWED, [OPTION_ROUND] = FOLLOWED},
	.matrix = ANNDATA_MATRICES,
	.provenance = "uns/" H5AD_PROVENANCE,
	.obsm = "obsm",
	.open = open_modality,
	.obs = open_obs_of_modality,
	.counts = h5ad_counts,
	.features = open_features,
};

/* Known, so that the message can say how to convert it. */
const struct reader reader_seurat = {.name = "Seurat", .in = IN_HDF5, .sign = "assays", .open = refuse_seurat};

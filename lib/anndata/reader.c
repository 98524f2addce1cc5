/* The table of formats, and what is the same in all. */
#include "anndata/reader.h"
#include "anndata/h5.h"
#include "anndata/zarr.h"

#include "base/json.h"
#include "base/magic.h"

#include <errno.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/stat.h>

#define EXPECTED ".h5ad, .h5mu, .zarr, .loom, 10x .h5, a 10x matrix directory or its matrix.mtx"

const struct reader *const readers[] = {
	&reader_loom, &reader_seurat, &reader_mudata, &reader_anndata, &reader_tenx3, &reader_tenx2, &reader_tenx_text, NULL};

size_t reader_ending(const char *name)
{
	const char *dot = strrchr(name, '.');
	for (const struct reader *const *r = readers; dot && dot > name && *r; r++)
		for (size_t i = 0; i < sizeof(*r)->ending / sizeof *(*r)->ending; i++)
			if ((*r)->ending[i] && !strcmp(dot, (*r)->ending[i]))
				return strlen(dot);
	return 0;
}

static int is_given(const struct h5ad_options *opt, enum reader_option o, const char **name)
{
	switch (o) {
	case OPTION_LAYER:
		*name = "--layer";
		return opt->layer != NULL;
	case OPTION_GENE_COLUMN:
		*name = "--gene-column";
		return opt->gene_column != NULL;
	case OPTION_MODALITY:
		*name = "--modality";
		return opt->modality != NULL;
	case OPTION_ROUND:
		*name = "--round";
		return opt->round;
	case READER_OPTIONS:
		break;
	}
	return 0;
}

/* An option that says nothing about this kind of file is refused: else it would seem to have been followed. --modality can be a genome that
 * stands before the names of genes, which are read `late`. */
static int refuse_options(const struct h5ad *h, const struct h5ad_options *opt, int late, struct error *e)
{
	const char *name;
	for (enum reader_option o = 0; o < READER_OPTIONS; o++) {
		const char *why = h->reader->why_not[o];
		int after = o == OPTION_MODALITY && !opt->annotation;
		if (is_given(opt, o, &name) && (!why || *why) && late == after && !h->genes.other)
			return error_set(
				e, "%s: %s has no meaning for %s%s%s", h->path, name, h->reader->name, why ? ": " : "", why ? why : "");
	}
	return 0;
}

static void drop_other_genomes(struct h5ad *h)
{
	if (h->genes.other && !h->drop)
		h->drop = xcalloc(h->ngene + 1, 1);
	for (size_t i = 0; i < h->ngene && h->genes.other; i++)
		h->drop[i] |= h->genes.other[i];
}

static int has_sign(struct store *s, const char *sign)
{
	RELEASED(texts_release) struct texts names = {0};
	int there = 0;
	if (strncmp(sign, "*/", 2))
		return store_has(s, sign);
	store_names(s, "", &names);
	for (size_t i = 0; i < names.n && !there; i++) {
		FREED char *name = texts_dup(&names, i), *path = xasprintf("%s/%s", name, sign + 2);
		there = store_type(s, name) == STORE_GROUP && store_has(s, path);
	}
	return there;
}

static int no_reader(struct h5ad *h, enum reader_container in, struct error *e)
{
	char signs[512] = "";
	FREED char *tables = reader_names(h, "tables", "");
	if (*tables)
		return error_set(e, "%s: SpatialData, expected AnnData: name one of its folders %s/tables/ (%s)", h->path, h->path, tables);
	for (const struct reader *const *r = readers; *r; r++)
		if ((*r)->in & in && (*r)->obs)
			snprintf(signs + strlen(signs), sizeof signs - strlen(signs), "%s%s (%s)", *signs ? ", " : "", (*r)->sign,
				(*r)->name);
	return error_set(
		e, "%s: %s of an unknown format: it has none of %s", h->path, in == IN_ZARR ? "a zarr store" : "an HDF5 file", signs);
}

static int check_shape(struct h5ad *h, struct error *e)
{
	if (h->mat.nrow != h->ncell)
		return error_set(e, "%s: %" PRIu64 " cells, but %s has %" PRIu64 "%s", h->mat.where, h->mat.nrow, h->obs.where, h->ncell,
			h->matrix && !strncmp(h->matrix, "raw", 3) && store_has_matrix(&h->store, "X") ? "; --layer X takes X" : "");
	if (!h->mat.ncol)
		return error_set(e, "%s: %" PRIu64 " cells x 0 genes: there are no genes", h->mat.where, h->mat.nrow);
	if (h->mat.ncol != h->genes.id.n)
		return error_set(e, "%s: %" PRIu64 " genes, but %s has %zu", h->mat.where, h->mat.ncol, h->genes.source, h->genes.id.n);
	return 0;
}

/* Columns of obs that say which cells are to be taken: CELLxGENE's, where the same cells are in several files, and Geneformer's. */
static const char *const taking[] = {"is_primary_data", "filter_pass"};

static int count_refused_cells(struct h5ad *h, struct error *e)
{
	RELEASED(texts_release) struct texts t = {0};
	int r = 0;
	for (size_t k = 0; k < sizeof taking / sizeof *taking && r == 0; k++) {
		struct dataframe_column *c = dataframe_find(&h->obs, taking[k]);
		static const char *const no[] = {"False", "false", "FALSE", "0"};
		size_t refused[4] = {0};
		if (!c || c->kind == DATAFRAME_OTHER)
			continue;
		r = dataframe_texts(c, 0, h->ncell, &t, e);
		for (size_t i = 0; i < t.n; i++)
			for (size_t w = 0; w < 4; w++)
				refused[w] += texts_is(&t, i, no[w]);
		for (size_t w = 0; w < 4; w++)
			if (refused[w])
				xappend(&h->refused,
					"%sobs/%s is %s for %zu of %" PRIu64 " cells: scsample --where '%s!=%s' leaves them out",
					h->refused ? "; " : "", c->name, no[w], refused[w], h->ncell, c->name, no[w]);
	}
	return r;
}

enum { TURNED_LOOK = 1 << 16 }; /* names that are looked at */

/* Is it so of the names of cells, or of their values in another column of obs? */
static int cells_are(struct h5ad *h, struct dataframe_column *c, int (*so)(const struct texts *t))
{
	RELEASED(texts_release) struct texts t = {0};
	struct error ignored;
	size_t n = h->ncell < TURNED_LOOK ? (size_t)h->ncell : TURNED_LOOK;
	int words = c->kind == DATAFRAME_STR || (c->kind == DATAFRAME_CATEGORICAL && 2 * c->ncategory > n);
	return words && dataframe_texts(c, 0, n, &t, &ignored) == 0 && so(&t);
}

/*
 * Are the genes of the file cells, and its cells genes? If no gene has an Ensembl id: names of genes that are barcodes, where those of cells are
 * none, are an error; cells with Ensembl ids can be pseudobulks of knockouts, so they are a note.
 */
static int refuse_turned(struct h5ad *h, const struct h5ad_options *opt, struct error *e)
{
	const char *where = h->reader->across ? "columns" : "rows";
	if (h->genes.ensembl || opt->gene_column)
		return 0;
	if (gene_barcodes(&h->genes.id) && !cells_are(h, &h->obs.index, gene_barcodes))
		return error_set(e,
			"%s: %s has genes in %s: transpose it (adata.T); if these barcodes are features, --gene-column says where their names are",
			h->path, h->matrix, where);
	int ids = cells_are(h, &h->obs.index, gene_ids);
	for (size_t i = 0; i < h->obs.ncol && !ids; i++)
		ids = cells_are(h, h->obs.col + i, gene_ids);
	if (ids)
		h5ad_note(h, "%s: cells have Ensembl ids, and genes have none: if %s has genes in %s, transpose it (adata.T)", h->path,
			h->matrix, where);
	return 0;
}

/* Has each gene G two more rows, G-U and G-A? */
static void note_split(struct h5ad *h)
{
	const struct texts *id = &h->genes.id;
	size_t ends[2] = {0};
	for (size_t i = 0; i < id->n; i++)
		for (int k = 0; k < 2; k++)
			ends[k] += id->offset[i + 1] - id->offset[i] > 2 && !memcmp(id->bytes + id->offset[i + 1] - 2, k ? "-A" : "-U", 2);
	if (ends[0] == ends[1] && 4 * ends[0] > id->n)
		h5ad_note(h,
			"%s: counts of %zu genes are split into spliced, unspliced (-U) and ambiguous (-A), as alevin-fry does: add them up",
			h->path, ends[0]);
}

/* Find the reader of an open file, and read with it everything but the entries of the matrix. */
static int read_with(struct h5ad *h, enum reader_container in, const struct h5ad_options *opt, struct error *e)
{
	const struct reader *const *r = readers;
	while (*r && !((*r)->in & in && (!(*r)->sign || has_sign(&h->store, (*r)->sign))))
		r++;
	h->reader = *r;
	if (!h->reader)
		return no_reader(h, in, e);
	if ((h->reader->open && h->reader->open(h, opt, e)) || refuse_options(h, opt, 0, e) || h->reader->obs(h, e))
		return -1;
	h->ncell = h->obs.nrow;
	if (count_refused_cells(h, e))
		return -1;
	for (size_t i = 0; i < h->obs.ncol; i++)
		if (h->obs.col[i].note)
			h5ad_note(h, "%s", h->obs.col[i].note);
	if (opt->annotation)
		return 0;
	if (h->reader->counts(h, opt, e))
		return -1;
	if (!h->why)
		h->why = xstrdup("the only matrix");
	h->ngene = h->mat.ncol;
	int failed = h->reader->features(h, opt, e);
	if (refuse_turned(h, opt, e) || failed || check_shape(h, e) || refuse_options(h, opt, 1, e))
		return -1;
	drop_other_genomes(h);
	note_split(h);
	return 0;
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
			"%s: an R file, expected " EXPECTED "; write its counts from R, as .h5ad with "
			"zellkonverter or as a directory with DropletUtils",
			h->path);
	return error_set(e, "%s: this is %s, expected " EXPECTED "%s%s", h->path, is ? is->name : "not an HDF5 file",
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
	h->store = (struct store){.kind = &store_hdf5, .name = h->path, .h5 = h->file};
	return store_check(&h->store, read_with(h, IN_HDF5, opt, e), e);
}

int h5ad_try(struct h5ad *h, const char *path, const struct h5ad_options *opt, struct error *e)
{
	*h = (struct h5ad){.path = xstrdup(path), .file = -1, .root.folder = -1};
	h5_setup();
	struct stat st;
	size_t prefix;
	int r;
	if (!strcmp(path, "-"))
		r = error_set(e, "standard input: HDF5 cannot be read from a pipe: name the file");
	else if (stat(path, &st))
		r = error_set(e, "%s: %s: expected " EXPECTED, path, strerror(errno));
	else if (S_ISDIR(st.st_mode) && zarr_is_store(path)) {
		h->store = (struct store){.kind = &store_zarr, .name = h->path, .part = "", .folder = &h->root};
		r = store_check(&h->store, beneath_init(&h->root, h->path, e) ? -1 : read_with(h, IN_ZARR, opt, e), e);
	} else if (S_ISDIR(st.st_mode) || h5ad_matrix_name(path, &prefix))
		r = read_with(h, IN_TEXT, opt, e);
	else if (!S_ISREG(st.st_mode))
		r = error_set(e, "%s: HDF5 needs a regular file, not a pipe or device", path);
	else if (!st.st_size)
		r = error_set(e, "%s: the file is empty", path);
	else
		r = open_hdf5(h, opt, e);
	return r;
}

int h5ad_open(struct h5ad *h, const char *path, const struct h5ad_options *opt, struct error *e)
{
	int r = h5ad_try(h, path, opt, e);
	if (r)
		h5ad_release(h);
	return r;
}

void h5ad_note(struct h5ad *h, const char *fmt, ...)
{
	char note[1024];
	va_list arg;
	va_start(arg, fmt);
	int n = vsnprintf(note, sizeof note, fmt, arg);
	va_end(arg);
	texts_push(&h->notes, note, n < 0 ? 0 : (size_t)n < sizeof note ? (size_t)n : sizeof note - 1);
}

char *h5ad_elsewhere(const struct h5ad *h, const char *column)
{
	for (size_t i = 0; i < h->elsewhere.n; i++)
		if (texts_is(&h->elsewhere, i, column))
			return xasprintf("%s has '%s' for all modalities: mdata.push_obs() in Python copies it into each", h->path, column);
	return NULL;
}

void h5ad_release(struct h5ad *h)
{
	if (!h->path)
		return;
	countmat_release(&h->mat);
	dataframe_release(&h->obs);
	texts_release(&h->elsewhere);
	texts_release(&h->notes);
	gene_names_release(&h->genes);
	free_all(h->drop, h->why, h->layers, h->refused);
	features_release(&h->features);
	values_release(&h->values);
	free_all(h->matrix, h->path, h->stem, h->modality, h->part);
	store_release(&h->store);
	beneath_release(&h->root);
	if (h->file >= 0)
		H5Fclose(h->file);
	*h = (struct h5ad){0};
}

int h5ad_provenance(struct h5ad *h, cJSON *to, struct error *e)
{
	const char *path = h->reader->provenance;
	FREED char *text = path ? store_text(&h->store, path) : NULL;
	cJSON *list = text ? cJSON_Parse(text) : NULL; /* NULL, or no list of objects: nothing is added */
	const cJSON *line, *old;
	cJSON_ArrayForEach(line, list)
	{
		int known = !cJSON_IsString(json_get(line, "program"));
		cJSON_ArrayForEach(old, to) known |= cJSON_Compare(old, line, 1);
		if (!known)
			cJSON_AddItemToArray(to, cJSON_Duplicate(line, 1));
	}
	cJSON_Delete(list);
	return path ? store_check(&h->store, 0, e) : 0;
}

int h5ad_start(struct h5ad *h, struct error *e)
{
	return h->reader->start ? h->reader->start(h, e) : 0;
}

int h5ad_cell_names(struct h5ad *h, uint64_t row, size_t n, struct texts *t, struct error *e)
{
	return dataframe_texts(&h->obs.index, row, n, t, e);
}

/* h5tok: AnnData (HDF5 or zarr) and 10x files to a counts stream or, with --rank, to a tokens stream. */
#include "cli_rank.h"
#include "cli.h"
#include "cli_sandbox.h"
#include "h5tok_explain.h"
#include "h5tok_obs.h"
#include "cli_files.h"
#include "cli_genes.h"

#include "anndata/crosscheck.h"
#include "anndata/reader.h"

#define ENTRIES ((size_t)1 << 17) /* matrix entries read at a time: the same for any number of threads */

static struct h5ad_options want;
static const char *obs_names, *map_path, *sample_column, *table_path, *vocab_path, *label_column, *group_column;
static int list_obs, no_counts, explain;

enum { COUNTS = 1, LIST = 8, EXPLAIN = 16 }; /* modes, as RANKS */
enum { MAPPED_COUNTS_MIN = 50 }; /* percent: fewer are the wrong table of --map */

static struct option_def options[] = {
	{0, "Cells", OPT_GROUP},
	{0, "obs", OPT_STRING, &obs_names, "A,B", "copy these obs columns; 'none' copies none (default: all)", .changes = 1},
	{0, "list-obs", OPT_FLAG, &list_obs, NULL, "print the obs columns and their types, and read no counts", .mode = LIST,
		.excludes = "uncompressed"},
	{0, "no-counts", OPT_FLAG, &no_counts, NULL, "write the cells with their obs columns alone: no genes, and no counts are read",
		.mode = LIST, .changes = 1, .excludes = "list-obs"},
	{0, "explain", OPT_FLAG, &explain, NULL, "print what is decided about each file, and why, and read no more counts than that needs",
		.mode = EXPLAIN, .excludes = "uncompressed"},
	{0, "label", OPT_STRING, &label_column, "COL", "also check that this column has labels", .modes = LIST, .needs = "list-obs"},
	{0, "group", OPT_STRING, &group_column, "COL", "also count the cells without a value in this column of groups", .modes = LIST,
		.needs = "list-obs"},
	{KEEP_UNKNOWN_LABELS, .modes = LIST, .needs = "list-obs"},
	{0, "sample-column", OPT_STRING, &sample_column, "NAME",
		"add this column with the name of each cell's file, and append that name to the barcode", .changes = 1},
	{0, "obs-table", OPT_INPUT, &table_path, "FILE",
		"add the columns of this table, joined by the barcode in its first column (TSV or CSV, gzip accepted)"},
	{0, "Counts", OPT_GROUP},
	{0, "layer", OPT_STRING, &want.layer, "NAME", "take the counts from layers/NAME, or from X or raw/X (default: found by content)",
		.changes = 1, .modes = COUNTS | RANKS | EXPLAIN},
	{0, "gene-column", OPT_STRING, &want.gene_column, "NAME",
		"take gene ids from this column of var, or 'index' (default: the one with Ensembl ids, else the index)", .changes = 1,
		.modes = COUNTS | RANKS | EXPLAIN},
	{0, "modality", OPT_STRING, &want.modality, "NAME",
		"the modality to read from MuData (.h5mu; default: rna, or the only one), or the genome from a 10x file that has several",
		.changes = 1},
	{0, "round", OPT_FLAG, &want.round, NULL, "round fractional counts, such as SoupX's, to whole numbers", .changes = 1,
		.modes = COUNTS | RANKS | EXPLAIN},
	{0, "unlog", OPT_FLAG, &want.unlog, NULL, "take counts back from normalised or log-normalised values, if all are exact",
		.changes = 1, .modes = COUNTS | RANKS | EXPLAIN},
	{0, "all-features", OPT_FLAG, &want.all_features, NULL, "read rows that are no genes too: antibodies, guides, control probes",
		.changes = 1, .modes = COUNTS | RANKS | EXPLAIN},
	{0, "Gene ids", OPT_GROUP},
	{0, "map", OPT_INPUT, &map_path, "FILE", "translate gene ids with this table of keys and ids (TSV, gzip accepted)",
		.modes = COUNTS | RANKS | EXPLAIN},
	{0, "Tokens", OPT_GROUP},
	{0, "rank", OPT_INPUT, &vocab_path, "VOCAB", "write tokens, as rankenc -m VOCAB would; the options under Encoding apply",
		.mode = RANKS},
	{0},
};

static struct cli cli = {
	.name = "h5tok",
	.operands = "FILE...",
	.summary =
		"Read raw counts from AnnData (.h5ad, .zarr), MuData and 10x Genomics files into a stream of counts, or of tokens (--rank).",
	.features = "HDF5, zarr, libdeflate, liblzf",
	.options = options,
	.shared = rank_options,
	.common = CLI_STREAM_OUT | CLI_THREADS,
};

/* The state that is kept from file to file. */
struct job {
	struct gene_join genes; /* of all files; a table a file */
	struct idmap ids;
	struct obs obs;
	struct obstable annotation; /* of --obs-table */
	cJSON *provenance; /* of the files, array */
	cJSON *decided; /* about each file: h5ad_explain */
	char **name; /* obs columns of --obs */
	size_t nname;
	uint32_t *panel; /* [files] number of the panel of its genes in the header */
	struct crosscheck_cells *read; /* [files] the cells, once they are read */
	struct countrows rows;
	struct block block[2]; /* in turns: the last one may still be ranked */
	int turn;
	struct texts barcode; /* of some rows, read ahead */
	size_t named; /* index in barcode of the first of `rows` */
	const struct header *header; /* of the counts */
	struct stream *out; /* of the counts, or NULL: */
	struct ranking *rank; /* with --rank */
	uint64_t expected; /* cells of all files */
	uint64_t cells, counts, known, repeats;
	uint64_t unlogged; /* cells whose counts came back */
	double off; /* the largest distance of a value from its count */
	char **sample; /* [files] with --sample-column */
	int file; /* the current one */
	int col_cell, col_barcode, col_counts, col_sample, col_panel, col_gene, col_count; /* col_sample, col_panel: if there is one */
};

/* Open file i. Its annotation includes that of --obs-table. */
static void open_input(struct job *j, struct h5ad *h, int i)
{
	uint64_t found = 0;
	sandbox_reading(cli.operand[i]);
	must(h5ad_open(h, cli.operand[i], &want, &failure));
	if (!h->ncell)
		die("%s: no cells", h->path);
	if (table_path)
		must(obstable_join(&j->annotation, h, sample_column ? j->sample[i] : NULL, &found, &failure));
	if (table_path && found < h->ncell && !j->out) /* once a file */
		warn("%s: %" PRIu64 " of %" PRIu64 " barcodes are not in %s: their annotation is missing", h->path, h->ncell - found,
			h->ncell, table_path);
}

/* First look at a file: what is odd about it, its origin and its obs columns. */
static void survey_cells(struct job *j, struct h5ad *h)
{
	for (size_t i = 0; i < h->notes.n; i++)
		warn("%.*s", (int)(h->notes.offset[i + 1] - h->notes.offset[i]), h->notes.bytes + h->notes.offset[i]);
	if (h->refused)
		info("%s: %s", h->path, h->refused);
	must(h5ad_provenance(h, j->provenance, &failure) || obs_add(&j->obs, h, !obs_names, j->name, j->nname, &failure));
	if (j->obs.skipped)
		warn("column left out: %s", j->obs.skipped);
	free(j->obs.skipped);
	j->obs.skipped = NULL;
}

static void survey_genes(struct job *j, struct h5ad *h, int i)
{
	for (int k = 0; k < i; k++)
		if (cli_same_place(cli.operand[k], h->path))
			warn("%s: this file is given twice", h->path);
	must(gene_join_texts(&j->genes, h->path, &h->genes.id, &h->genes.symbol, h->drop, &failure));
	const struct gene_table *t = j->genes.table + i;
	if (!t->rows)
		die("%s: none of its %zu features is a gene", h->path, h->ngene);
	info("%s: %" PRIu64 " cells x %zu genes, counts from %s%s%s%s, gene ids from %s%s", h->path, h->ncell, t->rows, h->matrix,
		h->by_sums ? " (" : "", h->by_sums ? h->why : "", h->by_sums ? ")" : "", h->genes.source,
		2 * t->ensembl >= t->rows ? "" : " (not Ensembl ids)");
	cJSON_AddItemToArray(j->decided, h5ad_explain(h));
	say_genomes(h->path, &h->genes);
	if (h->genes.by_symbol)
		info("%s: %zu of %zu genes have no id in %s, and are named by %s", h->path, h->genes.by_symbol, h->ngene, h->genes.source,
			h->genes.instead);
	explain_decisions(h);
	if (map_path)
		check_mapped(t, &h->genes.id, map_path);
}

#define SWAP(a, b) \
	do { \
		__typeof__(a) swap_ = (a); \
		(void)((a) = (__typeof__(a))(b)); \
		(void)((b) = swap_); \
	} while (0)

/* Files of one experiment use the same barcodes, so the sample makes them unique. */
static void push_barcode(const struct job *j, struct block *b, const char *name, size_t n)
{
	if (!sample_column) {
		block_push_str(b, j->col_barcode, name, n);
		return;
	}
	FREED char *unique = xasprintf("%.*s-%s", (int)n, name, j->sample[j->file]);
	block_push_str(b, j->col_barcode, unique, strlen(unique));
}

/* Rows [at, end) of the rows just read, as one block. */
static void write_block(struct job *j, size_t at, size_t end)
{
	struct block *b = j->block + (j->turn = !j->turn);
	struct countrows *r = &j->rows;
	size_t n = end - at, items = r->start[end] - r->start[at];
	block_reset(b, j->header);
	block_set_rows(b, n);
	for (size_t i = 0; i < n; i++) {
		((uint64_t *)b->col[j->col_cell].data)[i] = j->cells + i;
		const uint64_t *name = j->barcode.offset + j->named + at + i;
		push_barcode(j, b, j->barcode.bytes + name[0], name[1] - name[0]);
		b->group[0].offset[i + 1] = r->start[at + i + 1] - r->start[at];
		j->counts += r->total[at + i];
	}
	for (size_t i = 0; i < n && sample_column; i++)
		((uint32_t *)b->col[j->col_sample].data)[i] = (uint32_t)j->file;
	for (size_t i = 0; i < n && j->col_panel >= 0; i++)
		((uint32_t *)b->col[j->col_panel].data)[i] = j->panel[j->file];
	memcpy(b->col[j->col_counts].data, r->total + at, n * sizeof *r->total);
	obs_fill(&j->obs, at, n, b);
	struct column *gene = b->col + j->col_gene, *count = b->col + j->col_count;
	if (items == r->start[r->n]) {
		/* usually the block takes all rows: swap the buffers instead of copying */
		SWAP(gene->data, r->gene);
		SWAP(gene->cap, r->gene_cap);
		SWAP(count->data, r->count);
		SWAP(count->cap, r->count_cap);
	} else {
		size_t width = r->narrow ? 2 : 4;
		block_set_items(b, 0, items);
		memcpy(gene->data, (char *)r->gene + r->start[at] * width, items * width);
		memcpy(count->data, r->count + r->start[at], items * sizeof *r->count);
	}
	for (size_t i = 0; i < items && map_path; i++)
		j->known += j->genes.known[block_id(b, j->col_gene, i)] ? ((uint32_t *)count->data)[i] : 0;
	if (j->rank)
		ranking_add(j->rank, b);
	else
		must(stream_write(j->out, b, &failure));
	j->cells += n;
}

/* Names of rows [row, row + n). They are read ahead, because a call of HDF5 is slow. */
static void read_names(struct job *j, struct h5ad *h, uint64_t row, size_t n)
{
	if (j->named + n <= j->barcode.n)
		return;
	size_t ahead = h->ncell - row < BLOCK_ROWS ? h->ncell - row : BLOCK_ROWS;
	must(h5ad_cell_names(h, row, n > ahead ? n : ahead, &j->barcode, &failure));
	j->named = 0;
}

/* Chunks that zarr reads as the fill value, because they are not there. zarr leaves out those that hold nothing else, but not in sparse data. */
static void say_absent(const struct h5ad *h)
{
	const struct h5array *d = &h->mat.data;
	double read = d->absent ? number_at(d->type, d->fill, 0) : 0;
	if (d->absent && (h->mat.layout != LAYOUT_DENSE || read != 0))
		warn("%s: chunks are missing from the store, and zarr reads them as %g: was the whole store copied?", d->where, read);
	else if (d->absent)
		info("%s: chunks are not in the store: right if all their values are 0, else it was not copied whole", d->where);
	for (size_t i = 0; i < h->obs.ncol; i++) {
		const struct dataframe_column *c = h->obs.col + i;
		double fill = c->values.absent && c->values.size ? number_at(c->values.type, c->values.fill, 0) : 0;
		int category = c->kind == DATAFRAME_CATEGORICAL && fill >= 0 && fill < (double)c->ncategory;
		char number[32];
		if (!c->values.absent || c->ncategory == 1) /* of one category all codes are the fill value */
			continue;
		snprintf(number, sizeof number, "%g", fill);
		info("%s: chunks are not in the store: right if all their values are '%s', else it was not copied whole", c->values.where,
			category ? c->category[(size_t)fill] : number);
	}
}

/* Is file i one of those before it under another name? */
static void say_alike(const struct job *j, int i)
{
	for (int k = 0; k < i; k++) {
		enum crosscheck_alike alike = crosscheck_alike(j->read + i, j->read + k);
		if (cli_same_place(cli.operand[k], cli.operand[i]))
			continue; /* told before */
		if (alike == ALIKE_CELLS)
			warn("%s: its cells are those of %s: they have the same names and sums of counts", cli.operand[i], cli.operand[k]);
		else if (alike == ALIKE_NAMES && !sample_column)
			warn("%s: its cells have the names of those of %s; --sample-column tells them apart", cli.operand[i],
				cli.operand[k]);
	}
}

static void stream_cells(struct job *j, struct h5ad *h, int i)
{
	struct crosscheck check;
	int threads = (int)cli.threads, got;
	uint64_t row = 0, before = j->rows.repeats, spill = countmat_spill_bytes(&h->mat);
	if (spill)
		info("%s: not stored by cell: up to %.1f GB of temporary files in %s", h->path, 1e-9 * (double)spill,
			getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	must(h5ad_start(h, &failure));
	obs_file(&j->obs, h);
	crosscheck_init(&check, h);
	j->file = i;
	j->named = j->barcode.n = 0;
	size_t item = type_size(id_type(j->genes.genes.n)) + 4;
	j->rows.narrow = j->header->col[j->col_gene].type == U16;
	while ((got = countmat_next(&h->mat, j->genes.table[i].row, j->genes.table[i].identity, BLOCK_ROWS, ENTRIES, &j->rows, threads,
			&failure)) > 0) {
		read_names(j, h, row, (size_t)got);
		must(obs_read(&j->obs, row, (size_t)got, threads, &failure));
		must(crosscheck_rows(&check, &j->barcode, j->named, j->rows.total, (size_t)got, threads, &failure));
		for (size_t at = 0, end = 0; at < (size_t)got; at = end) {
			while (end < (size_t)got && end - at < BLOCK_ROWS &&
				(end == at || (j->rows.start[end + 1] - j->rows.start[at]) * item < BLOCK_BYTES))
				end++;
			write_block(j, at, end);
		}
		row += (uint64_t)got;
		j->named += (size_t)got;
		sandbox_reading(cli.operand[i]);
		if (!j->rank)
			progress_cells(j->cells, j->expected);
	}
	must(got < 0);
	explain_distance(h);
	if (j->rows.repeats > before && !j->genes.table[i].repeated)
		info("%s: %" PRIu64 " entries are of a cell and gene that have another entry, and are added to it", h->path,
			j->rows.repeats - before);
	j->unlogged += h->mat.unlog ? h->ncell : 0;
	j->off = h->mat.off > j->off ? h->mat.off : j->off;
	for (char *finding; (finding = crosscheck_finding(&check)); free(finding))
		warn("%s", finding);
	j->read[i] = check.cells;
	crosscheck_release(&check);
	say_alike(j, i);
	say_absent(h);
}

/* Without genes and counts. */
static void stream_annotation(struct job *j, struct h5ad *h, int i)
{
	struct countrows *r = &j->rows;
	obs_file(&j->obs, h);
	j->file = i;
	j->named = j->barcode.n = 0;
	for (uint64_t row = 0; row < h->ncell; row += r->n) {
		r->n = h->ncell - row < BLOCK_ROWS ? h->ncell - row : BLOCK_ROWS;
		memset(grow(r->start, r->start_cap, r->n + 1), 0, (r->n + 1) * sizeof *r->start);
		memset(grow(r->total, r->total_cap, r->n), 0, r->n * sizeof *r->total);
		read_names(j, h, row, r->n);
		must(obs_read(&j->obs, row, r->n, (int)cli.threads, &failure));
		write_block(j, 0, r->n);
		j->named += r->n;
	}
}

/* If the files have different genes: those of each file, and a column that says whose genes a cell has. */
static void add_panels(struct job *j, struct header *h)
{
	const struct vocab *v = &j->genes.genes;
	uint32_t *bits = xcalloc(panel_words(v->n), sizeof *bits), most = 0;
	vocab_copy(&h->vocab, v);
	for (int i = 0; i < cli.noperand; i++) {
		memset(bits, 0, panel_words(v->n) * sizeof *bits);
		const struct gene_table *t = j->genes.table + i;
		for (size_t k = 0; k < t->n; k++)
			if (t->row[k] != GENE_NONE && t->row[k] >= v->nspecial)
				bits[t->row[k] / 32] |= 1u << t->row[k] % 32;
		j->panel[i] = panels_add(h, bits);
		most = j->panel[i] > most ? j->panel[i] : most;
	}
	free(bits);
	if (most)
		j->col_panel = header_add(h, PANEL_COLUMN, U32);
	else
		panels_drop(h);
}

static void h5tok_make_header(struct job *j, struct header *h)
{
	header_init(h, STREAM_COUNTS);
	j->col_cell = header_add(h, "cell", U64);
	j->col_barcode = header_add(h, "barcode", STR);
	j->col_counts = header_add(h, "n_counts", U64);
	j->col_panel = -1;
	if (!want.annotation)
		add_panels(j, h);
	if (sample_column && header_find(h, sample_column) >= 0)
		die("--sample-column: '%s' is a column of every stream: choose another name", sample_column);
	if (sample_column)
		j->col_sample = header_add_categorical(h, sample_column, j->sample, (size_t)cli.noperand);
	if (obs_header(&j->obs, h, j->name, j->nname, &failure))
		die("%s: %s", cli.noperand == 1 ? cli.operand[0] : "--obs", failure.msg);
	/* the encoder would copy u16 to u32 */
	j->col_gene = header_add_ragged(h, "gene", vocab_path ? U32 : id_type(j->genes.genes.n), "gene");
	j->col_count = header_add_ragged(h, "count", U32, "gene");
	cJSON_Delete(h->provenance);
	h->provenance = j->provenance;
	FREED char *options_given = opt_provenance((struct option_def *const[]){options, NULL});
	header_provenance(h, "h5tok", options_given);
	if (!want.annotation)
		explain_provenance(h->provenance, j->decided);
}

/* Cell Ranger gives all samples the same file name. The folder above, or above "outs", is then the sample. The name of . and .. is that of the
 * folder. */
static char *sample_name(const char *path)
{
	char *name = xstrdup(path);
	for (;;) {
		size_t n = strlen(name);
		while (n > 1 && name[n - 1] == '/')
			name[--n] = 0;
		char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
		size_t prefix = 1;
		if (slash &&
			((h5ad_matrix_name(last, &prefix) && !prefix) || !strncmp(last, "filtered_", 9) || !strncmp(last, "raw_", 4) ||
				!strcmp(last, "outs"))) {
			*slash = 0;
			continue;
		}
		char *folder = !strcmp(last, ".") || !strcmp(last, "..") || (!slash && !strcmp(last, "outs")) ? realpath(name, NULL) : NULL;
		if (folder) {
			free(name);
			name = folder;
			continue;
		}
		char *sample = xstrdup(last);
		if (h5ad_matrix_name(last, &prefix) && prefix)
			sample[prefix - 1] = 0; /* GSM123_sample_matrix.mtx.gz: without the underscore too */
		else
			sample[strlen(last) - reader_ending(last)] = 0;
		free(name);
		return sample;
	}
}

/* The sample of each file: its name or, where two files have the same, the whole path. */
static char **sample_names(void)
{
	char **name = xcalloc((size_t)cli.noperand, sizeof *name);
	if (strpbrk(sample_column, "\t\r\n") || !*sample_column)
		usage_error("--sample-column: expected a name without tabs and line breaks");
	for (int i = 0; i < cli.noperand; i++)
		name[i] = sample_name(cli.operand[i]);
	for (int i = 0; i < cli.noperand; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(name[i], name[k])) {
				free(name[i]);
				name[i] = xstrdup(cli.operand[i]);
				if (!strcmp(cli.operand[i], cli.operand[k]))
					die("%s: this file is given twice", cli.operand[i]);
			}
	return name;
}

/* The tables that options name. */
static void load_tables(struct job *j)
{
	if (map_path)
		must(idmap_load(&j->ids, map_path, &failure));
	j->genes.ids = map_path ? &j->ids : NULL;
	if (table_path)
		must(obstable_load(&j->annotation, table_path, &failure));
	if (obs_names && strcmp(obs_names, "none"))
		j->name = opt_list(obs_names, &j->nname);
}

/* Read genes and obs columns of all files. A single file stays open. */
static void survey_files(struct job *j, struct h5ad *file)
{
	int n = cli.noperand;
	j->provenance = cJSON_CreateArray();
	j->decided = cJSON_CreateArray();
	j->panel = xcalloc((size_t)n, sizeof *j->panel);
	j->read = xcalloc((size_t)n, sizeof *j->read);
	for (int i = 0; i < n; i++) {
		open_input(j, file, i);
		survey_cells(j, file);
		j->expected += file->ncell;
		if (!want.annotation)
			survey_genes(j, file, i);
		if (n > 1)
			h5ad_release(file);
	}
	if (!want.annotation) {
		must(gene_join_finish(&j->genes, &failure));
		say_joined(&j->genes, map_path != NULL);
		for (int i = 0; i < n; i++)
			explain_joined(cJSON_GetArrayItem(j->decided, i), j->genes.table + i, n > 1, map_path);
		explain_report(&cli, j->decided);
	}
}

/* Read the values of the columns of labels and of groups, and say what they are not. */
static void check_columns(struct job *j, struct h5ad *file, const struct header *h)
{
	struct checked_columns c;
	if (!label_column && !group_column)
		return;
	checked_open(&c, h, label_column, group_column, cli.noperand == 1 ? cli.operand[0] : "the files");
	for (int i = 0; i < cli.noperand; i++) {
		if (cli.noperand > 1)
			open_input(j, file, i);
		checked_file(&c, &j->obs, file, cli.operand[i], (int)cli.threads);
		if (cli.noperand > 1)
			h5ad_release(file);
	}
	checked_close(&c);
}

static void stream_files(struct job *j, struct h5ad *file)
{
	for (int i = 0; i < cli.noperand; i++) {
		if (cli.noperand > 1)
			open_input(j, file, i);
		(want.annotation ? stream_annotation : stream_cells)(j, file, i);
		h5ad_release(file);
	}
	if (map_path && 100 * (double)j->known < MAPPED_COUNTS_MIN * (double)j->counts)
		die("only %.1f %% of the counts are in genes of %s, expected at least %d %%", 100 * (double)j->known / (double)j->counts,
			map_path, MAPPED_COUNTS_MIN);
	FREED char *summary = j->rank ? ranking_commit(j->rank) : NULL;
	if (!j->rank)
		must(stream_commit(j->out, &failure));
	cli_measured_all({"cells_in", (double)j->cells}, {"genes", (double)j->genes.genes.n}, {"counts", (double)j->counts},
		{"entries_added", (double)j->rows.repeats}, {"unlogged_cells", (double)j->unlogged}, {"largest_rounding", j->off});
	cli_report(&cli, "%" PRIu64 " cells, %zu genes, %" PRIu64 " counts, %" PRIu64 " entries added to another of the same gene%s%s",
		j->cells, j->genes.genes.n, j->counts, j->rows.repeats, summary ? "; " : "", summary ? summary : "");
}

/* The options of rankenc need its vocabulary, which is loaded before the files are read. */
static void h5tok_open_output(struct job *j)
{
	FREED char *name = cli.noperand == 1 ? xstrdup(cli.operand[0]) : xasprintf("%s and %d more", cli.operand[0], cli.noperand - 1);
	if (j->rank)
		ranking_start(j->rank, j->header, name, NULL, j->expected);
	else
		j->out = cli_create(&cli, j->header, j->expected);
}

int main(int argc, char **argv)
{
	static struct job j;
	static struct header header;
	static struct h5ad file;
	cli_init(&cli, argc, argv);
	if (!cli.noperand)
		usage_error("name a file: HDF5 cannot be read from a pipe");
	rank_given.encode.canonical = 1; /* as countmat.h makes the rows */
	if (vocab_path)
		j.rank = ranking_new(&cli, vocab_path);
	if (sample_column)
		j.sample = sample_names();
	want.annotation = list_obs || no_counts;
	sandbox_start(&cli, 1);
	load_tables(&j);
	if (explain) {
		struct asked asked = {&want, table_path ? &j.annotation : NULL, j.name, j.nname, !obs_names, map_path};
		int bad = explain_files(&cli, &asked, &j.genes);
		cli_report(&cli, "%d files, %d with an error", cli.noperand, bad);
		return bad != 0;
	}
	survey_files(&j, &file);
	h5tok_make_header(&j, &header);
	if (list_obs) {
		check_columns(&j, &file, &header);
		print_obs(&cli, &header);
		cli_report(&cli, "%zu columns", header.ncol);
	} else {
		j.header = &header;
		h5tok_open_output(&j);
		stream_files(&j, &file);
	}
	return 0;
}
